"""Real columns with or without atoms (paper S1.4): each atom becomes an interval on the line."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dipriv._base.arrays import FloatArray
from dipriv._base.atoms_line import AtomsLine
from dipriv._base.columns import ColumnValues, cast
from dipriv._base.invariants import require
from dipriv._base.registry import serializable
from dipriv._random.bits import Draws
from dipriv.codecs.protocol import Codec, as_column


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
    missing: ClassVar[tuple[int, ...]] = ()

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
