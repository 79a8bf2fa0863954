"""The first and last arrow: a column's cells <-> continuous reals ("continualization", paper S1.3-S1.4)."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from dipriv._arrays import FloatArray
from dipriv._columns import PRESENT, ColumnValues
from dipriv._random.bits import Draws


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

    def encode(self, cells: ColumnValues, draws: Draws) -> FloatArray:
        """(n,) cells -> (n, dims) reals."""
        ...

    def decode(self, v: FloatArray) -> ColumnValues:
        """(n, dims) reals -> (n,) cells."""
        ...


def spread_below(n: FloatArray, draws: Draws) -> FloatArray:
    """Uniform on (n-1, n] for each whole number n, whatever the rounding."""
    return np.minimum(n, np.maximum(n - draws.uniforms(), np.nextafter(n - 1.0, np.inf)))


def as_column(v: FloatArray, cells: ColumnValues, low: float) -> FloatArray:
    """`v` as a column of V, missing cells put at the line's low end."""
    if cells.missing is not None:
        v = np.where(cells.missing == PRESENT, v, low)
    return v[:, np.newaxis]
