"""Odd cells do not stop a private release: a refusal would disclose them, and ε would be spent.

pytest makes warnings errors, so nothing overflows or is divided by zero either.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dipriv

ROWS = 300
INT64, UINT64 = (-(2**63), 2**63 - 1, 0, -1), (2**64 - 1, 2**63, 0, 1)
NOTHING: tuple[None, ...] = (None,)
COLUMNS: dict[str, tuple[pa.DataType, tuple[Any, ...]]] = {
    "whole": (pa.int64(), (0, 3, -7, 10**6, None)),
    "int64": (pa.int64(), INT64),
    "uint64": (pa.uint64(), UINT64),
    "int8": (pa.int8(), (-128, 127)),
    "float64": (pa.float64(), (1e308, -1e308, 5e-324, 0.0, -0.0, np.inf, -np.inf, np.nan, None)),
    "float32": (pa.float32(), (3.4e38, -3.4e38, 1e-45, np.inf, np.nan)),
    "float16": (pa.float16(), tuple(np.array([65504, -65504, 6e-8, np.inf, np.nan], np.float16))),
    "decimal": (pa.decimal128(18, 9), (Decimal("999999999.999999999"), Decimal("-999999999.999999999"), None)),
    "wide decimal": (pa.decimal128(38, 4), (Decimal(10) ** 33, -(Decimal(10) ** 33), Decimal("0.0001"))),
    "boolean": (pa.bool_(), (True, False, None)),
    "date": (pa.date32(), (-(2**31), 2**31 - 1, -719_162, 2_932_896)),  # BC, and the years 1 and 9999
    "time": (pa.timestamp("s"), INT64),
    "exact time": (pa.timestamp("ns", "UTC"), INT64),
    "time of day": (pa.time64("ns"), (0, 86_400 * 10**9 - 1, 3600 * 10**9)),
    "duration": (pa.duration("ns"), INT64),
    "text": (pa.string(), ("a", "", "(other)", None)),
    "numbers as labels": (pa.dictionary(pa.int8(), pa.float64()), (1.5, np.nan, np.inf, None)),
    "same whole": (pa.int64(), (7,)),
    "same real": (pa.float64(), (0.1,)),
    "same text": (pa.string(), ("x",)),
    "not a number": (pa.float64(), (np.nan,)),
    "infinite": (pa.float64(), (np.inf,)),
    "no whole number": (pa.int64(), NOTHING),
    "no real number": (pa.float64(), NOTHING),
    "no text": (pa.string(), NOTHING),
    "no boolean": (pa.bool_(), NOTHING),
    "no date": (pa.date32(), NOTHING),
}


def column(name: str, rows: int) -> pa.Array:
    kind, values = COLUMNS[name]
    cells = [values[number % len(values)] for number in range(rows)]
    if not pa.types.is_temporal(kind):
        return pa.array(cells, kind)
    return pa.array(cells, pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)


def check(table: pa.Table, epsilon: float, **options: Any) -> None:
    released = dipriv.privatize(table, epsilon, seed=1, **options).data
    assert released.schema == table.schema
    assert released.num_rows == table.num_rows
    released.validate(full=True)


@pytest.mark.parametrize("name", COLUMNS)
def test_any_column_is_released(name: str) -> None:
    for rows in (1, 3, ROWS):
        for epsilon in (1e-6, 1000.0):
            check(pa.table({"x": column(name, rows)}), epsilon)
    check(pa.table({"x": column(name, ROWS)}), 1.0, delta=0, labels="public")


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 2, ROWS])
@pytest.mark.parametrize(("epsilon", "delta"), [(1e-6, 1e-30), (1.0, 1e-9), (30.0, 1e-30), (1.0, 0.0)])
def test_any_columns_are_released_together(rows: int, epsilon: float, delta: float) -> None:
    table = pa.table({name: column(name, rows) for name in COLUMNS})
    check(table, epsilon, delta=delta, labels="private" if delta else "public", target="text")


@pytest.mark.parametrize("epsilon", [1.0, 1000.0])
def test_columns_that_are_functions_of_each_other_are_released(epsilon: float) -> None:
    base = np.arange(4000) % 5
    functions = {"same": base, "half": base // 2, "scaled": base * 3.5, "odd": base % 2 == 1, "nothing": base * 0}
    check(pa.table({"base": base, **functions}), epsilon)


@pytest.mark.slow
def test_many_columns_of_few_rows_are_released() -> None:
    names = list(COLUMNS)
    check(pa.table({f"{number}": column(names[number % len(names)], 50) for number in range(100)}), 1.0)
