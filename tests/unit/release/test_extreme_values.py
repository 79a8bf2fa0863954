"""Values at the ends of their types work: no warning (pytest makes warnings errors), no overflow, nothing lost."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any, cast

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats

import dipriv
from dipriv import Continuous, Datetime, Discrete, Mixed
from dipriv.references import Known
from tests.unit.typed import NO_NOISE, ROWS, SEED

MAX = float(np.finfo(np.float64).max)
NORMAL = np.random.default_rng(SEED).normal(size=ROWS)
LEVELS = {
    "float64": np.array([1e308, -1e308, 5e-324, -5e-324, 0.0, MAX]),
    "float32": np.array([np.finfo(np.float32).max, np.finfo(np.float32).min, 1e-45, 0.1], np.float32),
    "float16": np.array([65504, -65504, 6e-8, 0.1], np.float16),
    "int64": np.array([2**63 - 1, -(2**63), 0, 2**53 + 1]),
    "int8": np.array([-128, 127], np.int8),
    "uint64": np.array([0, 1, 2**64 - 1, 2**63 + 1], np.uint64),
}
RUNS = {
    "below int64's end": np.array([2**63 - 1 - k for k in range(ROWS)]),
    "above int64's start": np.array([-(2**63) + k for k in range(ROWS)]),
    "below uint64's end": np.array([2**64 - 1 - k for k in range(ROWS)], np.uint64),
    "around 2^53": np.array([2**53 - 150 + k for k in range(ROWS)]),
}
SPREADS = {
    "1e308": NORMAL * 3e307,
    "with both ends": np.append(NORMAL[2:], [MAX, -MAX]),
    "far positive": 1e308 + np.abs(NORMAL) * 1e307,
    "1e-320": NORMAL * 1e-320,
    "float32": np.append(NORMAL[2:] * 1e38 / 4, [np.finfo(np.float32).max, np.finfo(np.float32).min]).astype(
        np.float32
    ),
    "float16": np.append(NORMAL[2:] * 1e3, [65504, -65504]).astype(np.float16),
    "int64": np.append(np.random.default_rng(SEED).integers(-(2**63), 2**63 - 1, ROWS - 2), [2**63 - 1, -(2**63)]),
}


def repeated(levels: Any) -> list[Any]:
    return (list(levels) * ROWS)[:ROWS]


@pytest.mark.parametrize("holes", [False, True], ids=["full", "nulls"])
@pytest.mark.parametrize("levels", LEVELS.values(), ids=LEVELS.keys())
def test_levels_are_exact(levels: Any, holes: bool) -> None:
    cells: list[Any] = repeated(levels.tolist() + [None] * holes)
    table = pa.table({"x": pa.array(cells, pa.from_numpy_dtype(levels.dtype))})
    clear = dipriv.privatize(table, NO_NOISE, public=table, seed=SEED)
    noisy = dipriv.privatize(table, 1.0, reference="holdout", seed=SEED)
    assert clear.data == table
    assert set(noisy.data["x"].to_pylist()) == set(cells)


@pytest.mark.parametrize("holes", [False, True], ids=["full", "nulls"])
@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS.keys())
def test_long_runs_of_large_whole_numbers_are_exact(run: Any, holes: bool) -> None:
    table = pl.DataFrame({"x": run})
    if holes:
        table = table.with_columns(pl.when(pl.int_range(ROWS) % 5 > 0).then("x"))
    clear = dipriv.privatize(table, NO_NOISE, public=table, seed=SEED).data
    noisy: Any = dipriv.privatize(table, 1.0, reference="holdout", seed=SEED).data
    assert clear.equals(table)
    low, high = cast(Any, table["x"].min()), cast(Any, table["x"].max())
    assert low <= noisy["x"].min()
    assert noisy["x"].max() <= high
    assert noisy["x"].n_unique() > ROWS / 10
    assert (noisy["x"].null_count() > 0) is holes


def test_times_are_exact_to_the_nanosecond() -> None:
    ticks = 1_700_000_000_123_456_789 + np.arange(ROWS)
    frame = pl.DataFrame({"x": pl.Series(ticks).cast(pl.Datetime("ns"))})
    clear = dipriv.privatize(frame, NO_NOISE, public=frame, seed=SEED)
    assert clear.schema["x"] == Datetime(resolution="nanosecond")
    assert clear.data.equals(frame)


@pytest.mark.parametrize(
    "kind", [None, Continuous(), Mixed(), pytest.param(Discrete(), marks=pytest.mark.slow)], ids=repr
)
@pytest.mark.parametrize("holes", [False, True], ids=["full", "nulls"])
@pytest.mark.parametrize("spread", SPREADS.values(), ids=SPREADS.keys())
def test_wide_columns_stay_finite(spread: Any, holes: bool, kind: Any) -> None:
    mask = np.arange(ROWS) % 5 == 0 if holes else None
    table = pa.table({"x": pa.array(spread, mask=mask)})
    schema = None if kind is None else {"x": kind}
    for epsilon in (1.0, NO_NOISE):
        noisy = dipriv.privatize(table, epsilon, reference="holdout", schema=schema, seed=SEED).data
        clear = dipriv.privatize(table, epsilon, public=table, schema=schema, seed=SEED).data
        for released in (noisy, clear):
            assert released.schema == table.schema
            present = released["x"].drop_null().to_numpy()
            assert len(present)
            assert np.all(np.isfinite(present))


def test_zero_has_no_sign() -> None:
    frame = pd.DataFrame({"x": np.arange(ROWS, dtype=np.float64) - 20})
    released = dipriv.privatize(frame, NO_NOISE, public=frame, seed=SEED)
    assert released.schema["x"] == Discrete(step=1)
    assert not np.signbit(released.data["x"][released.data["x"] == 0]).any()
    assert 0 in released.data["x"].tolist()


def test_huge_numbers_keep_their_law() -> None:
    """Scaled by a power of two, a column is released as the scaled release."""
    frame = pd.DataFrame({"x": np.where(NORMAL > 1, 1.0, NORMAL)})
    plain = dipriv.privatize(frame, 1.0, reference="holdout", schema={"x": Mixed(atoms=(1.0,))}, seed=SEED).data
    scaled = {"x": Mixed(atoms=(2.0**1020,))}
    huge = dipriv.privatize(frame * 2.0**1020, 1.0, reference="holdout", schema=scaled, seed=SEED).data
    assert np.array_equal(huge["x"] == 2.0**1020, plain["x"] == 1.0)
    np.testing.assert_array_equal(huge["x"], plain["x"] * 2.0**1020)


TEXTS = ["", " ", "a" * 1_000_000, "a\0b", "\N{SNOWMAN}", "\U0001f600", "\n", "nan", "None", "<NA>"]


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_odd_texts_are_texts(library: Any) -> None:
    table = library({"x": repeated(TEXTS)})
    clear = dipriv.privatize(table, NO_NOISE, public=table, seed=SEED).data
    noisy = dipriv.privatize(table, 1.0, reference="holdout", seed=SEED).data
    assert list(map(str, clear["x"])) == repeated(TEXTS)
    assert set(map(str, noisy["x"])) == set(TEXTS)


DIGITS = "12345678901234567890123456789012345678"


@pytest.mark.parametrize("digits", [9, 18, 19, 28, 38])
def test_long_decimals_keep_the_digits_of_a_double(digits: int) -> None:
    ends = [Decimal(sign * int("9" * digits)) for sign in (1, -1)]
    cells = repeated([*ends, Decimal(-1), Decimal(0), Decimal(DIGITS[:digits])])
    table = pa.table({"x": pa.array(cells, pa.decimal128(digits, 0))})
    released = dipriv.privatize(table, NO_NOISE, public=table, seed=SEED).data
    released.validate(full=True)
    for before, after in zip(cells, released["x"].to_pylist(), strict=True):
        assert abs(after - before) <= abs(before) / 2**51
        assert abs(before) >= 2**53 or after == before


LAWS = [
    (pa.array([dt.time(1)] * ROWS), 1e14),
    (pa.array([1] * ROWS, pa.int8()), 1e6),
    (pa.array([1.0] * ROWS, pa.float32()), 1e39),
    (pa.array([1.0] * ROWS).cast(pa.float16()), 1e6),
    (pa.array([Decimal(1)] * ROWS, pa.decimal128(18, 0)), 1e30),
]


@pytest.mark.parametrize(("column", "scale"), LAWS, ids=lambda case: str(getattr(case, "type", case)))
def test_a_law_wider_than_the_type_ends_where_the_type_ends(column: pa.Array, scale: float) -> None:
    table = pa.table({"x": column})
    released = dipriv.privatize(table, 1.0, reference=Known(stats.norm(0, scale)), seed=SEED).data
    released.validate(full=True)
    assert released.schema == table.schema
    cells = released["x"].to_pylist()
    assert None not in cells
    assert min(cells) < max(cells)
    assert not {np.inf, -np.inf} & set(cells)


def test_numpy_times_beyond_their_type_are_not_nulls() -> None:
    frame = pd.DataFrame({"x": pd.to_datetime(["2020-01-01"] * ROWS)})
    released = dipriv.privatize(frame, 1.0, reference=Known(stats.norm(0, 1e30)), seed=SEED).data
    assert released["x"].notna().all()


@pytest.mark.parametrize(("fitted", "given"), [("float64", "int8"), ("float64", "float16"), ("float64", "uint8")])
def test_rows_of_a_narrower_type_than_the_reference_saturate(fitted: str, given: str) -> None:
    reference = (NORMAL * 1e6)[:, np.newaxis].astype(fitted)
    dip = dipriv.DIP(1.0, reference="holdout", seed=SEED).fit(reference)
    released = dip.transform(np.ones((ROWS, 1), dtype=given))
    ends = np.finfo(given) if given == "float16" else np.iinfo(given)
    assert released.dtype == given
    assert released.min() == ends.min
    assert released.max() == ends.max
