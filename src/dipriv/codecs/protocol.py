"""The first and last arrow: a column's cells <-> continuous reals ("continualization", paper S1.3-S1.4)."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from dipriv._base.arrays import FloatArray
from dipriv._base.columns import NAN, NULL, PRESENT, ColumnValues
from dipriv._random.bits import Draws


class Codec(Protocol):
    """Turns the cells of one column into `dims` continuous reals and back.

    If Z follows F, then V = encode(Z) has a continuous distribution function, and decode(encode(Z)) = Z
    on the support. A value outside the support is placed by its order among the supported ones, and a missing
    cell that the codec has no atom for at the line's low end: encode is total, so that it never raises an error
    about a private cell. (`mechanism.fill_missing` leaves none of these in rows that are released.)

    A codec is a frozen dataclass that checks its invariants when it is built; `@serializable(Codec)` lets it stand in
    an exported reference.
    """

    @property
    def dims(self) -> int:
        """How many columns of V this column takes."""
        ...

    @property
    def lower(self) -> tuple[float, ...]:
        """The low end of each of these columns; minus infinity where there is none."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the values that `decode` gives."""
        ...

    @property
    def missing(self) -> tuple[int, ...]:
        """The kinds of missing cells that have an atom."""
        ...

    def encode(self, cells: ColumnValues, draws: Draws) -> FloatArray:
        """(n,) cells -> (n, dims) reals. Random bits come from the uses in `SpreadUse`."""
        ...

    def decode(self, v: FloatArray) -> ColumnValues:
        """(n, dims) reals -> (n,) cells."""
        ...


def are_kinds_missing(missing: tuple[int, ...]) -> bool:
    """Whether these are different kinds of missing values."""
    return len(set(missing)) == len(missing) and set(missing) <= {NULL, NAN}


def spread_below(n: FloatArray, draws: Draws) -> FloatArray:
    """Uniform on (n-1, n] for each whole number n, for any rounding."""
    return np.minimum(n, np.maximum(n - draws.uniforms(), np.nextafter(n - 1.0, np.inf)))


def as_column(v: FloatArray, cells: ColumnValues, low: float) -> FloatArray:
    """`v` as a column of V, missing cells put at the line's low end."""
    if cells.missing is not None:
        v = np.where(cells.missing == PRESENT, v, low)
    return v[:, np.newaxis]
