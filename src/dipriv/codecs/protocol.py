"""The first and last arrow: a column's cells <-> continuous reals ("continualization", paper S1.3-S1.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dipriv.randomness import Draws, FloatArray

PRESENT, NULL, NAN = 0, 1, 2
"""What a cell is: a value, a null, or a floating-point NaN that its table tells apart from null."""


@dataclass(frozen=True, eq=False)
class Cells:
    """One column as numbers. Where `missing` is not PRESENT the number in `values` means nothing."""

    values: NDArray[Any]
    missing: NDArray[np.uint8] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"Cells({len(self)} of {self.values.dtype})"

    @property
    def present(self) -> NDArray[Any]:
        """The values that are there."""
        return self.values if self.missing is None else self.values[self.missing == PRESENT]

    @property
    def kinds_missing(self) -> tuple[int, ...]:
        """Which of NULL and NAN occur."""
        return () if self.missing is None else tuple(kind for kind in (NULL, NAN) if np.any(self.missing == kind))

    def take(self, rows: Any) -> Cells:
        """The cells at `rows` (a mask, positions or a slice)."""
        return Cells(self.values[rows], None if self.missing is None else self.missing[rows])


class Codec(Protocol):
    """Turns the cells of one column into `dims` continuous reals and back.

    Law: if Z follows F, then V = encode(Z) has a continuous distribution function, and decode(encode(Z)) = Z
    on the support. A value outside the support is placed by its order among the supported ones, and a missing
    cell that the codec has no atom for at the line's low end: encode is total, so it never has to complain
    about a private cell.
    """

    @property
    def dims(self) -> int:
        """How many columns of V this column takes."""
        ...

    @property
    def lower(self) -> tuple[float, ...]:
        """The low end of each of these columns; minus infinity where there is none."""
        ...

    def encode(self, cells: Cells, draws: Draws) -> FloatArray:
        """(n,) cells -> (n, dims) reals."""
        ...

    def decode(self, v: FloatArray) -> Cells:
        """(n, dims) reals -> (n,) cells."""
        ...


def spread_below(n: FloatArray, draws: Draws) -> FloatArray:
    """Uniform on (n-1, n] for each whole number n, whatever the rounding."""
    return np.minimum(n, np.maximum(n - draws.uniforms(), np.nextafter(n - 1.0, np.inf)))


def as_column(v: FloatArray, cells: Cells, low: float) -> FloatArray:
    """`v` as a column of V, missing cells put at the line's low end."""
    if cells.missing is not None:
        v = np.where(cells.missing == PRESENT, v, low)
    return v[:, np.newaxis]


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
