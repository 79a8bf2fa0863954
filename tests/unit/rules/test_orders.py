"""Strict order: the upper cell is above the lower one in every row, at the ends of types as well."""

from __future__ import annotations

import datetime
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dipriv
from dipriv import Schema
from dipriv._base.columns import ColumnValues
from dipriv._tables import frames
from dipriv.errors import RuleWarning, SchemaError
from dipriv.release.rules import bind
from dipriv.release.rules.cells import Part
from dipriv.release.rules.orders import OrderedColumn

RULE = Schema(rules=["low < high"])


def ordered(table: pa.Table, **kinds: Any) -> OrderedColumn:
    columns = [frames.read(table).column(name) for name in ("low", "high")]
    bound = bind(RULE.rules, columns, Schema(kinds))
    (found,) = bound._ordered.values()
    return found


def released(table: pa.Table, low: Any, difference: Any, decimals: int | None = None, **kinds: Any) -> Part:
    order = ordered(table, **kinds)
    learned = order.learned.storage.dtype
    parts = {
        "low": Part(ColumnValues(np.array(low, dtype=order.lower.storage.dtype)), None, decimals),
        "high": Part(ColumnValues(np.array(difference, dtype=learned)), None, decimals),
    }
    return order.after(parts)


def of_type(arrow_type: pa.DataType) -> pa.Table:
    return pa.table({"low": pa.nulls(1, arrow_type), "high": pa.nulls(1, arrow_type)})


def test_a_difference_is_at_least_one_step() -> None:
    assert released(of_type(pa.int64()), [5, 5, 5], [0, 1, 7]).cells.values.tolist() == [6, 6, 12]
    by_fives = released(of_type(pa.int64()), [5, 10], [0, 15], high=dipriv.Discrete(step=5))
    assert by_fives.cells.values.tolist() == [10, 25]
    assert released(of_type(pa.float64()), [0.1, 0.5], [0.0, 0.2], 1).cells.values.tolist() == [0.2, 0.7]
    assert released(of_type(pa.float64()), [0.1], [0.0]).cells.values[0] == np.nextafter(0.1, 1.0)
    assert released(of_type(pa.date32()), [100], [0]).cells.values.tolist() == [101]
    by_days = released(of_type(pa.timestamp("s")), [0], [0], high=dipriv.Datetime("day"))
    assert by_days.cells.values.tolist() == [86_400]
    weak = Schema(rules=["low <= high"])
    bound = bind(weak.rules, [frames.read(of_type(pa.int64())).column(name) for name in ("low", "high")], Schema({}))
    (order,) = bound._ordered.values()
    parts = {name: Part(ColumnValues(np.array([value]))) for name, value in (("low", 5), ("high", 0))}
    assert order.after(parts).cells.values.tolist() == [5]  # control


def test_bounds_of_the_upper_column_are_about_its_values_not_about_differences() -> None:
    adult = dipriv.Discrete(step=1, lower=18, upper=30)
    assert ordered(of_type(pa.int64()), high=adult).learned_kind == dipriv.Discrete(step=1)
    assert released(of_type(pa.int64()), [5, 20, 25], [2, 3, 9], high=adult).cells.values.tolist() == [18, 23, 30]
    assert released(
        of_type(pa.uint8()), [5, 20], [2, 3], high=dipriv.Discrete(step=1, lower=-1)
    ).cells.values.tolist() == [*(7, 23)]
    real = dipriv.Continuous(lower=18.0)
    assert released(of_type(pa.float64()), [5.0, 20.0], [2.0, 3.0], high=real).cells.values.tolist() == [18.0, 23.0]
    day = dipriv.Datetime("day", lower="1970-01-03 12:00")
    assert released(of_type(pa.date32()), [0, 9], [1, 1], high=day).cells.values.tolist() == [2, 10]
    assert released(of_type(pa.timestamp("s")), [0], [1], high=day).cells.values.tolist() == [3 * 86_400]


@pytest.mark.parametrize(
    ("arrow_type", "last"),
    [
        (pa.int64(), 2**63 - 1),
        (pa.int8(), 127),
        (pa.uint64(), 2**64 - 1),
        (pa.float64(), np.finfo(np.float64).max),
        (pa.float32(), np.finfo(np.float32).max),
        (pa.time32("s"), 86_399),
        (pa.timestamp("ns"), 2**63 - 1),
        (pa.duration("ns"), 2**63 - 1),
    ],
)
def test_nothing_is_above_the_last_value_of_a_type(arrow_type: pa.DataType, last: Any) -> None:
    part = released(of_type(arrow_type), [last, 1], [3, 3])
    assert part.missing.tolist() == [True, False]
    assert part.cells.values[1] == 4


def test_lower_cells_make_room_where_upper_ones_cannot_be_missing() -> None:
    rng = np.random.default_rng(1)
    low = rng.integers(0, 128, 400).astype(np.int8)
    table = pd.DataFrame({"low": low, "high": np.maximum(low, rng.integers(0, 128, 400)).astype(np.int8)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuleWarning)
        data = dipriv.privatize(table, 2.0, schema=RULE, seed=1).data
    assert (data["low"] < data["high"]).all()
    assert (data.dtypes == np.int8).all()
    weak: Any = dipriv.privatize(table, 2.0, schema=Schema(rules=["low <= high"]), seed=1).data
    assert (weak["low"] == weak["high"]).any()  # control
    with pytest.raises(SchemaError, match="may leave nothing above it"):
        dipriv.privatize(table.assign(top=table["high"]), 2.0, schema=Schema(rules=["low < high", "high < top"]))


def test_strict_order_of_dates_and_chains() -> None:
    rng = np.random.default_rng(2)
    first = pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, 500), unit="D")
    table = pa.Table.from_pandas(
        pd.DataFrame(
            {"a": first.date, "b": (first + pd.Timedelta(days=1)).date, "c": (first + pd.Timedelta(days=9)).date}
        )
    )
    data = dipriv.privatize(table, 1.0, schema=Schema(rules=["a < b", "b < c"]), seed=1).data.to_pandas()
    assert (data["a"] < data["b"]).all()
    assert (data["b"] < data["c"]).all()
    assert isinstance(data["c"][0], datetime.date)


def test_equal_cells_break_strict_order_only() -> None:
    table = pd.DataFrame({"low": [1, 2, 3] * 50, "high": [1, 3, 4] * 50})
    with pytest.warns(RuleWarning, match="50 of 150 private rows break the rule 'low < high'"):
        dipriv.privatize(table, 1.0, schema=RULE, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuleWarning)
        dipriv.privatize(table, 1.0, schema=Schema(rules=["low <= high"]), seed=1)  # control


@pytest.mark.parametrize("unit", ["ns", "us", "s"])
@pytest.mark.parametrize("rule", ["low <= high", "low < high"])
def test_times_of_every_unit_are_in_order(rule: str, unit: str) -> None:
    """The year 9999, in nanoseconds, is beyond 64 bits: such releases failed after ε was spent."""
    low: Any = pd.Series(pd.date_range("2024-01-01", periods=300, freq="h")).to_numpy().astype(f"datetime64[{unit}]")
    low = pd.Series(low)
    table = pd.DataFrame({"low": low, "high": (low + pd.Timedelta(hours=2)).astype(low.dtype)})
    data: Any = dipriv.privatize(table, 3.0, schema=Schema(rules=[rule]), seed=1).data
    assert (data["low"] <= data["high"]).all()
    assert data.dtypes.equals(table.dtypes)


STAYS = pa.table(
    {name: pa.array([datetime.datetime(2021, 6, day + 1) for day in range(20)] * 20) for name in ("low", "high")}
)


def test_bounds_of_another_kind_are_refused_before_anything_is_spent() -> None:
    with pytest.raises(SchemaError, match="column 'high' has dates, but the bounds that are declared are times of day"):
        ordered(STAYS, high=dipriv.Datetime(upper="18:00"))


def test_a_declared_end_is_a_multiple_of_the_resolution() -> None:
    found = ordered(STAYS, high=dipriv.Datetime(resolution="day", upper="2021-06-20"))
    day = 86_400 * 10**6
    last = (datetime.date(2021, 6, 20) - datetime.date(1970, 1, 1)).days * day
    assert found._declared_ends()[1] == last
    assert ordered(STAYS, high=dipriv.Datetime(upper="2021-06-20"))._declared_ends()[1] == last + day - 1
