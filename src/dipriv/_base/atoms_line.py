"""The real line with room for atoms: what codecs and distributions of mixed columns share (paper S1.4)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray
from dipriv._base.invariants import is_finite, is_increasing, is_vector, require
from dipriv._base.registry import serializable


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
