"""Weights with a public total: what is released is rescaled to it, which is post-processing.

Sums are exact, so that a release has the same weights however its rows are cut into blocks.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dipriv._base.arrays import FloatArray
from dipriv._base.columns import ColumnValues
from dipriv._tables.arrow import value_range
from dipriv._tables.frames import Column
from dipriv.errors import SchemaError
from dipriv.schema import Schema, Weight

Sums = Mapping[str, Fraction]
"""{column: the sum of its released weights, before they are rescaled}."""
_MANTISSA, _HALF = 53, 27


def totals_of(schema: Schema) -> dict[str, float]:
    """{column: the public total of its weights}."""
    return {name: kind.total for name, kind in schema.items() if isinstance(kind, Weight) and kind.total is not None}


def check_totals(columns: Sequence[Column], totals: Mapping[str, float], rows: int) -> None:
    """Refuse a total that this many weights cannot have in the type of their column: public facts, before ε is spent.

    Raises
    ------
    SchemaError : with the first such column.
    """
    for column in columns:
        if column.name not in totals:
            continue
        widest = _range_of(column.storage.dtype)[1]
        largest = min(widest, value_range(column.arrow_type)[1] or widest)
        if totals[column.name] > rows * largest:
            raise SchemaError(
                f"column {column.name!r} has a total of {totals[column.name]:,}, and {rows:,} weights of type "
                f"{column.storage.label} have at most {rows * largest:,.16g}.",
                "Correct the total, or convert the column to a type of larger numbers, such as int64 or float64.",
            )


def sum_of(cells: ColumnValues) -> Fraction:
    """The exact sum of the cells that are not missing.

    >>> sum_of(ColumnValues(np.array([1e16, 1.0, -1e16])))
    Fraction(1, 1)
    """
    mantissas, exponents = np.frexp(cells.present.astype(np.float64))
    whole = np.ldexp(mantissas, _MANTISSA).astype(np.int64)
    found = Fraction(0)
    for exponent in np.unique(exponents):
        here = whole[exponents == exponent]
        halves = int((here >> _HALF).sum()), int((here & ((1 << _HALF) - 1)).sum())
        found += ((halves[0] << _HALF) + halves[1]) * Fraction(2) ** (int(exponent) - _MANTISSA)
    return found


def rescaled(cells: ColumnValues, total: float, released: Fraction, uniforms: FloatArray) -> ColumnValues:
    """The weights times total / their sum; where the sum is not positive they stay.

    Whole ones are rounded up with the probability that keeps their mean, by these uniform numbers: rounded to the
    nearest number, small weights would all stay as they were.
    """
    if released <= 0:
        return cells
    dtype = cells.values.dtype
    is_whole = dtype.kind in "iu"
    low, high = _range_of(dtype)
    factor = float(min(Fraction(total) / released, Fraction(sys.float_info.max if is_whole else high)))
    with np.errstate(over="ignore"):
        values = cells.values * factor
    values = np.clip(np.floor(values + uniforms) if is_whole else values, low, high)
    return ColumnValues(values.astype(dtype), cells.missing)


def _range_of(dtype: np.dtype[Any]) -> tuple[float, float]:
    """The smallest and the largest double that this type of numbers holds.

    >>> _range_of(np.dtype(np.int64))[1] == 2.0**63 - 1024
    True
    """
    if dtype.kind == "f":
        return float(np.finfo(dtype).min), float(np.finfo(dtype).max)
    bounds = np.iinfo(dtype)
    high = float(bounds.max)  # of 64 bits: rounded up to a power of two, which the type does not hold
    return float(bounds.min), high if high <= bounds.max else float(np.nextafter(high, 0))
