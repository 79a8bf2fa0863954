"""Real columns with or without atoms (paper S1.4): each atom is squeezed in as an interval of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dipriv._arrays import FloatArray
from dipriv._columns import ColumnValues, cast
from dipriv._invariants import is_finite, is_increasing, is_vector, require
from dipriv._random.bits import Draws
from dipriv._registry import serializable
from dipriv.codecs.protocol import Codec, as_column


@serializable(former_name="MixedLine")
@dataclass(frozen=True, eq=False)
class AtomsLine:
    """The real line with an interval squeezed in to the left of each atom, eq. (cont_mixed).

    With atoms a_0 < a_1 < ..., a value between a_{k-1} and a_k moves by `shifts[k]`, and atom a_k fills
    (a_k + shifts[k], a_k + shifts[k+1]]. As in the paper the count of shifts starts at the first
    non-negative atom. The paper's intervals have length one; here they grow with the column's scale and
    the atom's size, since a unit interval has no floating-point room beside 1e17 and swamps a column of 1e-9s.
    """

    atoms: FloatArray = field(repr=False)
    shifts: FloatArray = field(repr=False)

    def __post_init__(self) -> None:
        shapes = is_vector(self.atoms, 0) and self.shifts.shape == (len(self.atoms) + 1,)
        require(shapes and is_finite(self.atoms, self.shifts), self, "there is one finite shift more than atoms")
        require(is_increasing(self.atoms) and is_increasing(self.shifts), self, "atoms and shifts increase")

    @classmethod
    def around(cls, atoms: FloatArray, unit: float = 1.0) -> AtomsLine:
        """The line for these atoms, with intervals of at least `unit` (a power of two keeps sums exact)."""
        a = np.unique(np.asarray(atoms, dtype=np.float64))
        widths = np.exp2(np.ceil(np.log2(np.maximum(unit, np.abs(a) * 2.0**-20))))
        first = int(np.searchsorted(a, 0.0, side="left"))
        left = -np.cumsum(widths[:first][::-1])[::-1]
        right = np.cumsum(widths[first:])
        shifts = np.concatenate([left, [0.0], right])
        return cls(a, shifts)

    def place(self, z: FloatArray, fraction: FloatArray) -> FloatArray:
        """V for Z = z; an atom takes the point at `fraction` in (0, 1] of its interval."""
        k = np.searchsorted(self.atoms, z, side="left")
        v = z + self.shifts[k]
        if len(self.atoms):
            is_atom = self.atoms[np.minimum(k, len(self.atoms) - 1)] == z
            width = np.append(np.diff(self.shifts), 0.0)[k]
            v = np.where(is_atom, v + fraction * width, v)
        return v

    def locate(self, v: FloatArray) -> tuple[FloatArray, NDArray[np.intp], FloatArray]:
        """(z, k, fraction): the value, how many atoms lie below it, and the place inside an atom (else nan)."""
        ends = self.atoms + self.shifts[1:]
        k = np.searchsorted(ends, v, side="left")
        z = v - self.shifts[k]
        if not len(self.atoms):
            return z, k, np.full(len(v), np.nan)
        atom = self.atoms[np.minimum(k, len(self.atoms) - 1)]
        inside = (k < len(self.atoms)) & (z > atom)
        width = np.append(np.diff(self.shifts), 1.0)[k]
        beyond = np.where(inside, z - atom, np.nan)
        return np.where(inside, atom, z), k, beyond / width


@serializable(Codec)
@dataclass(frozen=True, eq=False)
class RealCodec:
    """A real column on its line: V = Z where there are no atoms (eq. ptb_c), eq. (cont_mixed) where there are.

    Values are kept inside the declared [low, high]; `floor` is the value below which no reference should
    spread mass (a declared bound, a lowest atom, or zero for a column without negative values). The line is that
    of `scale` times the values, a power of two that keeps sums of huge numbers finite.
    """

    line: AtomsLine
    dtype: np.dtype[Any]
    low: float = -np.inf
    high: float = np.inf
    floor: float = field(repr=False, default=-np.inf)
    scale: float = 1.0

    dims = 1

    def __post_init__(self) -> None:
        require(self.low < self.high and self.floor < math.inf, self, "the bounds are in order")
        mantissa, exponent = math.frexp(self.scale)
        require(mantissa == 0.5 and -100 < exponent < 2, self, "the scale is a power of two from 2^-100 to 1")

    @property
    def lower(self) -> tuple[float, ...]:
        floor = max(self.low, self.floor) * self.scale
        return (float(self.line.place(np.array([floor]), np.zeros(1))[0]),)

    def encode(self, cells: ColumnValues, draws: Draws) -> FloatArray:
        z = cells.values.astype(np.float64, copy=False)
        if np.isfinite(self.low) or np.isfinite(self.high):
            z = np.clip(z, self.low, self.high)
        if self.scale != 1.0:
            z = z * self.scale
        if len(self.line.atoms):
            z = self.line.place(z, 1.0 - draws.uniforms())
        return as_column(z, cells, self.lower[0])

    def decode(self, v: FloatArray) -> ColumnValues:
        z = self.line.locate(v[:, 0])[0] if len(self.line.atoms) else v[:, 0]
        most = np.finfo(np.float64).max * self.scale
        return ColumnValues(cast(np.clip(np.clip(z, -most, most) / self.scale, self.low, self.high), self.dtype))
