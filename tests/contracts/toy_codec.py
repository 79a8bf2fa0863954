"""A codec in one file, as a contributor would write it: level k of 0, ..., n - 1 is spread over (2k, 2k + 2].

It registers itself: an exported reference may hold it, and the contract suite tests it with the cases below.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dipriv._base.arrays import FloatArray
from dipriv._base.columns import PRESENT, ColumnValues, Storage
from dipriv._base.invariants import require
from dipriv._base.registry import serializable
from dipriv._random.bits import Draws
from dipriv._random.streams import SpreadUse
from dipriv.codecs import Codec
from dipriv.codecs.protocol import are_kinds_missing
from dipriv.schema import Categorical
from tests.contracts.codec_case import Case


@serializable(Codec)
@dataclass(frozen=True)
class ToyCodec:
    """Whole numbers below `count`; missing kind number j is spread over (-2j - 2, -2j]."""

    count: int
    missing: tuple[int, ...] = ()

    dims = 1
    dtype = np.dtype(np.int32)

    def __post_init__(self) -> None:
        require(0 < self.count < 1 << 31, self, "there are levels, and they are 32-bit integers")
        require(are_kinds_missing(self.missing), self, "kinds of missing values are different and known")

    @property
    def lower(self) -> tuple[float, ...]:
        return (-2.0 * len(self.missing),)

    def encode(self, cells: ColumnValues, draws: Draws) -> FloatArray:
        place = 2.0 - 2.0 * draws.uniforms(SpreadUse.PLACE)
        level = cells.values.astype(np.float64)
        v = np.clip(np.where((level >= 0) & (level < self.count), 2.0 * level + place, 2.0 * level), 0, 2 * self.count)
        if cells.missing is not None:
            v = np.where(cells.missing == PRESENT, v, self.lower[0])
            for number, kind in enumerate(self.missing):
                v = np.where(cells.missing == kind, place - 2.0 * (number + 1), v)
        return v[:, np.newaxis]

    def decode(self, v: FloatArray) -> ColumnValues:
        level = np.clip(np.ceil(v[:, 0] / 2) - 1, -len(self.missing), self.count - 1).astype(np.int32)
        if not self.missing:
            return ColumnValues(level)
        kinds: Any = np.array([*self.missing[::-1], PRESENT], dtype=np.uint8)
        states = np.minimum(level + len(self.missing), len(self.missing))
        return ColumnValues(np.maximum(level, 0), kinds[states])


CODEC_CASES = {
    "toy": Case(
        Categorical(),
        Storage("label", np.dtype(np.int32), "text"),
        4,
        (np.arange(500) % 4).astype(np.int32),
        lambda values, kinds: ToyCodec(4, kinds),
    )
}
