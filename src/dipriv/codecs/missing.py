"""Nulls are data: a null is an atom of its column, squeezed in below all values, and privatized like any."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dipriv._arrays import FloatArray
from dipriv._columns import PRESENT, ColumnValues
from dipriv._random.bits import Draws
from dipriv.codecs.protocol import Codec

_NULLS = 1  # the lane of its own; the inner codec uses lane 0


@dataclass(frozen=True, eq=False)
class MissingCodec:
    """Any one-dimensional codec with missing cells below it: kind number j fills (low-(j+1)w, low-jw].

    Values that the inner codec puts below `low` (they were not seen in the reference rows) stand at `low`.
    """

    inner: Codec
    missing: tuple[int, ...]
    low: float = field(repr=False)
    width: float = 1.0

    dims = 1

    @property
    def lower(self) -> tuple[float, ...]:
        return (self.low - len(self.missing) * self.width,)

    def encode(self, cells: ColumnValues, draws: Draws) -> FloatArray:
        v = np.maximum(self.inner.encode(cells, draws), self.low)
        if cells.missing is None:
            return v
        v[cells.missing != PRESENT] = self.low
        spread = self.width * draws.uniforms(_NULLS)
        for number, kind in enumerate(self.missing):
            here = cells.missing == kind
            v[here, 0] = self.low - number * self.width - spread[here]
        return v

    def decode(self, v: FloatArray) -> ColumnValues:
        values = self.inner.decode(np.maximum(v, np.nextafter(self.low, np.inf))).values
        number = np.floor((self.low - v[:, 0]) / self.width)
        number = np.clip(number, 0, len(self.missing) - 1).astype(np.intp)
        kinds = np.array(self.missing, dtype=np.uint8)
        return ColumnValues(values, np.where(v[:, 0] <= self.low, kinds[number], PRESENT).astype(np.uint8))
