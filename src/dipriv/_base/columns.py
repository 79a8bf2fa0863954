"""One column as numbers: its values, which cells are missing, and what is public about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dipriv._base.registry import serializable

PRESENT, NULL, NAN = 0, 1, 2
"""What a cell is: a value, a null, or a floating-point NaN, where its table distinguishes NaN from null."""


@serializable()
@dataclass(frozen=True)
class Storage:
    """How a table stores a column, a public fact: the family of its type, and for times the length of a tick."""

    family: Literal["integer", "real", "boolean", "label", "temporal"]
    dtype: np.dtype[Any]
    label: str
    tick_ns: int = 1


@dataclass(frozen=True, eq=False)
class NumericColumn:
    """A column's public facts at the level of numpy: labels are the numbers 0, 1, ..., times are counts of ticks."""

    name: str
    storage: Storage
    nullable: bool
    value_range: tuple[float | None, float | None] = (None, None)
    """The smallest and largest value of the type, where its storage could hold more."""
    n_labels: int | None = None
    """How many labels a label column has."""
    times: Literal["dates", "times of day"] | None = None
    """What the ticks of a column of times mean; None for durations and for other columns."""
    zone: str | None = None
    """The zone of absolute times."""


@dataclass(frozen=True, eq=False)
class ColumnValues:
    """One column as numbers. Where `missing` is not PRESENT the number in `values` means nothing."""

    values: NDArray[Any]
    missing: NDArray[np.uint8] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"ColumnValues({len(self)} of {self.values.dtype})"

    @property
    def present(self) -> NDArray[Any]:
        """The values that are not missing."""
        return self.values if self.missing is None else self.values[self.missing == PRESENT]

    @property
    def kinds_missing(self) -> tuple[int, ...]:
        """Which of NULL and NAN occur."""
        return () if self.missing is None else tuple(kind for kind in (NULL, NAN) if np.any(self.missing == kind))

    def take(self, rows: Any) -> ColumnValues:
        """The cells at `rows` (a mask, positions or a slice)."""
        return ColumnValues(self.values[rows], None if self.missing is None else self.missing[rows])


ValuesOf: TypeAlias = Callable[[str], ColumnValues]
"""The columns of some rows, by name."""


def cast(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Numbers as `dtype`: they saturate instead of wrapping around or becoming infinite; reals round to wholes."""
    if values.dtype == dtype:
        return values
    if dtype.kind == "f":
        most = float(np.finfo(dtype).max)
        finite: NDArray[Any] = np.clip(values.astype(np.float64), -most, most).astype(dtype)
        return finite
    info = np.iinfo(dtype)
    if values.dtype.kind in "iu":  # not through float64, which holds whole numbers up to 2^53 only
        own = np.iinfo(values.dtype)
        whole: NDArray[Any] = np.clip(values, max(info.min, own.min), min(info.max, own.max)).astype(dtype)
        return whole
    low, high = float(info.min), float(info.max)
    if high > 2**53:  # float(2^63 - 1) is 2^63: step inside
        high = np.nextafter(high, 0.0)
    rounded: NDArray[Any] = np.rint(np.clip(values, low, high)).astype(dtype)
    return rounded
