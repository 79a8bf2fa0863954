"""Discrete columns: listed levels of any spacing, or a lattice of equally spaced values (paper S1.3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray, first_not_below
from dipriv._base.columns import PRESENT, ColumnValues, cast
from dipriv._base.invariants import is_finite, is_increasing, is_vector, require
from dipriv._base.jit import jit
from dipriv._base.registry import serializable
from dipriv._random.bits import Draws
from dipriv.codecs.protocol import Codec, are_kinds_missing, as_column, spread_below

_POWERS_OF_TEN = frozenset(10**digits for digits in range(10))
"""What a step of a grid of real numbers may be divided by."""


@serializable(Codec)
@dataclass(frozen=True, eq=False)
class LevelsCodec:
    """Lemma S1 on ranks: level number k (from 0) is spread evenly over (k, k+1], so F_V(k+1) = F(a_k).

    The paper spreads a_k over (a_{k-1}, a_k]; the mechanism's distribution depends on the order of the levels alone,
    and ranks keep every digit however unequal the spacing. Kinds of missing cells are levels below the others:
    kind number j fills (-j-1, -j].
    """

    levels: NDArray[Any] = field(repr=False)
    missing: tuple[int, ...] = ()

    dims = 1

    def __post_init__(self) -> None:
        check_levels(self, self.levels, self.missing)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.levels.dtype

    @property
    def lower(self) -> tuple[float, ...]:
        return (-float(len(self.missing)),)

    @property
    def states(self) -> int:
        """How many unit intervals the line has, counted from `lower`."""
        return len(self.missing) + len(self.levels)

    def encode(self, cells: ColumnValues, draws: Draws) -> FloatArray:
        top = self.to_states(cells).astype(np.float64) + (1.0 - len(self.missing))
        known = np.take(self.levels, np.maximum(top, 1.0).astype(np.int64) - 1) == cells.values
        beyond = cells.values > self.levels[-1]
        v = np.where(known, spread_below(top, draws), np.where(beyond, top, top - 1.0))
        if cells.missing is not None:
            v = np.where(cells.missing == PRESENT, v, np.where(top <= 0, spread_below(top, draws), self.lower[0]))
        return v[:, np.newaxis]

    def decode(self, v: FloatArray) -> ColumnValues:
        states = np.ceil(v[:, 0] - self.lower[0]) - 1
        return self.from_states(np.clip(states, 0, self.states - 1).astype(np.int64))

    def to_states(self, cells: ColumnValues) -> NDArray[np.int64]:
        """The number of each cell's interval; a value that is no level goes with the next level, or the last."""
        states = np.empty(len(cells), dtype=np.int64)
        find_levels(cells.values, self.levels, len(self.missing), states)
        if cells.missing is not None:
            states[cells.missing != PRESENT] = 0
            for number, kind in enumerate(self.missing):
                states[cells.missing == kind] = len(self.missing) - 1 - number
        return states

    def from_states(self, states: NDArray[np.int64]) -> ColumnValues:
        """The inverse on levels and kinds of missing cells."""
        if not self.missing:
            return ColumnValues(np.take(self.levels, states))
        kinds = np.array([*self.missing[::-1], PRESENT], dtype=np.uint8)
        values = np.take(self.levels, np.maximum(states - len(self.missing), 0))
        return ColumnValues(values, np.take(kinds, np.minimum(states, len(self.missing))))


def check_levels(owner: Codec, levels: NDArray[Any], missing: tuple[int, ...]) -> None:
    """Levels can be searched, and kinds of missing values are such."""
    require(is_vector(levels) and is_finite(levels) and is_increasing(levels), owner, "levels are finite and increase")
    require(are_kinds_missing(missing), owner, "kinds of missing values are different and known")


@jit
def find_levels(values: NDArray[Any], levels: NDArray[Any], offset: int, states: NDArray[np.int64]) -> None:
    """The first level that is not below each value, clipped to the last level, counted from `offset`."""
    for i in range(len(values)):
        states[i] = first_not_below(values[i], levels, len(levels) - 1) + offset


@serializable(Codec)
@dataclass(frozen=True, eq=False)
class LatticeCodec:
    """Values n * whole / per_unit for integers n: V = n - U is uniform on (n-1, n], and decode is the ceiling.

    `low` is the low end of the line, n_min - 1 where the smallest value is known; values further down are
    placed there. A value off the lattice is placed where it stands between its neighbours. Integers n too large
    for a double are counted from `origin`.
    """

    whole: int
    per_unit: int
    dtype: np.dtype[Any]
    low: float = field(repr=False, default=-np.inf)
    origin: int = field(repr=False, default=0)

    dims = 1
    missing: ClassVar[tuple[int, ...]] = ()

    def __post_init__(self) -> None:
        require(is_step(self.whole, self.per_unit, self.dtype), self, "the step is one of its type")
        require(self.low < np.inf, self, "the low end is a number below infinity")
        if self.dtype.kind == "f":
            require(self.origin == 0, self, "steps of real numbers are counted from 0")
        else:
            info = np.iinfo(self.dtype)
            require(int(info.min) <= self.origin <= int(info.max), self, "the origin is a number of its type")

    @property
    def lower(self) -> tuple[float, ...]:
        return (self.low,)

    def encode(self, cells: ColumnValues, draws: Draws) -> FloatArray:
        if cells.values.dtype.kind in "iu":
            n, rest = np.divmod(cells.values, self.whole)
            index = _since(self.origin, n)
            between = rest.astype(np.float64) / self.whole
        else:
            index, between = nearest_index(cells.values.astype(np.float64), self.whole, self.per_unit)
            index = index - self.origin
        v = np.where(between == 0, spread_below(index, draws), index + between)
        return as_column(np.maximum(v, self.low), cells, self.low)

    def decode(self, v: FloatArray) -> ColumnValues:
        n = np.ceil(np.maximum(v[:, 0], self.low + 0.5 if np.isfinite(self.low) else self.low))
        n = n + 0.0  # the ceiling of -0.5 is -0.0
        if self.dtype.kind in "iu":
            return ColumnValues(_times(_after(self.origin, n, self.dtype), self.whole))
        return ColumnValues(cast(n * self.whole / self.per_unit, self.dtype))


def is_step(whole: int, per_unit: int, dtype: np.dtype[Any]) -> bool:
    """Whether whole / per_unit is a step that a grid of this type can have."""
    if dtype.kind == "f":
        return 1 <= whole < 1 << 63 and per_unit in _POWERS_OF_TEN
    return 1 <= whole <= int(np.iinfo(dtype).max) and per_unit == 1


def nearest_index(values: FloatArray, whole: int, per_unit: int) -> tuple[FloatArray, FloatArray]:
    """The lattice index of each value and how far it stands beyond it; 0 for values on the lattice."""
    exact = np.clip(values, -1e290, 1e290) * per_unit / whole
    index = np.rint(exact)
    on_lattice = np.abs(exact - index) <= 1e-9 * np.maximum(1.0, np.abs(exact))
    below = np.floor(exact)
    return np.where(on_lattice, index, below), np.where(on_lattice, 0.0, exact - below)


def _since(origin: int, n: NDArray[Any]) -> FloatArray:
    """The difference n - origin, taken among integers; -1 for all n below the origin."""
    if origin == 0:
        return n.astype(np.float64)
    steps = n.astype(np.uint64) - np.uint64(origin % 2**64)  # modulo 2^64, as all of these sums
    return np.where(n < origin, -1.0, steps.astype(np.float64))


def _after(origin: int, steps: FloatArray, dtype: np.dtype[Any]) -> NDArray[Any]:
    """The inverse of `_since`; saturates at the end of the type."""
    if origin == 0:
        return cast(steps, dtype)
    counted = np.minimum(cast(steps, np.dtype(np.uint64)), np.uint64(int(np.iinfo(dtype).max) - origin))
    n: NDArray[Any] = (counted + np.uint64(origin % 2**64)).astype(dtype)
    return n


def _times(n: NDArray[Any], whole: int) -> NDArray[Any]:
    info = np.iinfo(n.dtype)
    multiples: NDArray[Any] = np.clip(n, -(-info.min // whole), info.max // whole) * n.dtype.type(whole)
    return multiples
