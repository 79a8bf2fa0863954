"""Discrete columns: listed levels of any spacing, or a lattice of equally spaced values (paper S1.3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dipriv.codecs.protocol import Cells, as_column, cast
from dipriv.randomness import Bits, FloatArray, uniforms


@dataclass(frozen=True, eq=False)
class LevelsCodec:
    """Lemma S1 on ranks: level number k (from 0) is spread evenly over (k, k+1], so F_V(k+1) = F(a_k).

    The paper spreads a_k over (a_{k-1}, a_k]; the mechanism's law depends on the order of the levels alone,
    and ranks keep every digit however unequal the spacing.
    """

    levels: NDArray[Any] = field(repr=False)

    dims = 1
    lower = (0.0,)

    def encode(self, cells: Cells, bits: Bits) -> FloatArray:
        size = len(self.levels)
        k = np.searchsorted(self.levels, cells.values, side="left")
        known = (k < size) & (self.levels[np.minimum(k, size - 1)] == cells.values)
        v = np.where(known, k + 1 - uniforms(bits, len(cells)), k.astype(np.float64))
        return as_column(v, cells, self.lower[0])

    def decode(self, v: FloatArray) -> Cells:
        k = np.clip(np.ceil(v[:, 0]) - 1, 0, len(self.levels) - 1).astype(np.intp)
        return Cells(self.levels[k])


@dataclass(frozen=True, eq=False)
class LatticeCodec:
    """Values n * whole / per_unit for integers n: V = n - U is uniform on (n-1, n], and decode is the ceiling.

    `low` is the low end of the line, n_min - 1 where the smallest value is known; values further down are
    placed there. A value off the lattice is placed where it stands between its neighbours.
    """

    whole: int
    per_unit: int
    dtype: np.dtype[Any]
    low: float = -np.inf

    dims = 1

    @property
    def lower(self) -> tuple[float, ...]:
        return (self.low,)

    def encode(self, cells: Cells, bits: Bits) -> FloatArray:
        if cells.values.dtype.kind in "iu":
            n, rest = np.divmod(cells.values, self.whole)
            index = n.astype(np.float64)
            between = rest.astype(np.float64) / self.whole
        else:
            index, between = nearest_index(cells.values.astype(np.float64), self.whole, self.per_unit)
        v = np.where(between == 0, index - uniforms(bits, len(cells)), index + between)
        return as_column(np.maximum(v, self.low), cells, self.low)

    def decode(self, v: FloatArray) -> Cells:
        n = np.ceil(np.maximum(v[:, 0], self.low + 0.5 if np.isfinite(self.low) else self.low))
        if self.dtype.kind in "iu":
            whole = cast(n * self.whole if abs(self.whole) == 1 else n, self.dtype)
            return Cells(whole if self.whole == 1 else _times(whole, self.whole))
        return Cells((n * self.whole / self.per_unit).astype(self.dtype))


def nearest_index(values: FloatArray, whole: int, per_unit: int) -> tuple[FloatArray, FloatArray]:
    """The lattice index of each value and how far it stands beyond it; 0 for values on the lattice."""
    exact = values * per_unit / whole
    index = np.rint(exact)
    on_lattice = np.abs(exact - index) <= 1e-9 * np.maximum(1.0, np.abs(exact))
    below = np.floor(exact)
    return np.where(on_lattice, index, below), np.where(on_lattice, 0.0, exact - below)


def _times(n: NDArray[Any], whole: int) -> NDArray[Any]:
    info = np.iinfo(n.dtype)
    multiples: NDArray[Any] = np.clip(n, -(-info.min // whole), info.max // whole) * n.dtype.type(whole)
    return multiples
