"""Missing values are data: a null is an atom of its column, placed below all values, and privatized like any value."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dipriv._base.arrays import FloatArray
from dipriv._base.columns import PRESENT, ColumnValues
from dipriv._base.invariants import require
from dipriv._base.registry import serializable
from dipriv._random.bits import Draws
from dipriv._random.streams import SpreadUse
from dipriv.codecs.protocol import Codec, are_kinds_missing


@serializable(Codec, former_name="NullsCodec")
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

    def __post_init__(self) -> None:
        require(math.isfinite(self.low) and 0 < self.width < math.inf, self, "intervals are finite and not empty")
        require(self.missing and are_kinds_missing(self.missing), self, "there are known kinds of missing values")
        one_line = self.inner.dims == 1 and not isinstance(self.inner, MissingCodec)
        require(one_line, self, "the inner codec has one dimension and no missing values of its own")

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.inner.dtype

    @property
    def lower(self) -> tuple[float, ...]:
        return (self.low - len(self.missing) * self.width,)

    def encode(self, cells: ColumnValues, draws: Draws) -> FloatArray:
        v = np.maximum(self.inner.encode(cells, draws), self.low)
        if cells.missing is None:
            return v
        v[cells.missing != PRESENT] = self.low
        spread = self.width * draws.uniforms(SpreadUse.MISSING)
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
