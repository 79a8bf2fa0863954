"""Categories as the paper's s-1 dummies (S1.3). One column of codes is `LevelsCodec` on 0..s-1."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray
from dipriv._base.columns import PRESENT, ColumnValues
from dipriv._base.registry import serializable
from dipriv._random.bits import Draws
from dipriv.codecs.levels import check_levels
from dipriv.codecs.protocol import Codec


@serializable(Codec)
@dataclass(frozen=True, eq=False)
class OneHotCodec:
    """Each state but the first has a 0/1 dummy, spread over (0, 1] and (1, 2] as in `LevelsCodec`.

    The states are the levels, then the kinds of missing cells. If several dummies are 1 after
    privatization the first counts; with none, the first state. Dummy number k draws its place from use k.
    """

    levels: NDArray[Any] = field(repr=False)
    missing: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_levels(self, self.levels, self.missing)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.levels.dtype

    @property
    def dims(self) -> int:
        return max(1, len(self.levels) + len(self.missing) - 1)

    @property
    def lower(self) -> tuple[float, ...]:
        return (0.0,) * self.dims

    def encode(self, cells: ColumnValues, draws: Draws) -> FloatArray:
        k = np.searchsorted(self.levels, cells.values, side="left")
        state = np.where(np.append(self.levels, self.levels[-1:])[k] == cells.values, k, 0)
        if cells.missing is not None:
            state = np.where(cells.missing == PRESENT, state, 0)
            for number, kind in enumerate(self.missing):
                state = np.where(cells.missing == kind, len(self.levels) + number, state)
        dummies = state[:, np.newaxis] == np.arange(1, self.dims + 1)
        v: FloatArray = dummies + 1.0 - np.stack([draws.uniforms(use) for use in range(self.dims)], axis=1)
        return v

    def decode(self, v: FloatArray) -> ColumnValues:
        dummies = v > 1
        state = np.where(dummies.any(axis=1), dummies.argmax(axis=1) + 1, 0)
        state = np.minimum(state, len(self.levels) + len(self.missing) - 1)
        values = self.levels[np.minimum(state, len(self.levels) - 1)]
        if not self.missing:
            return ColumnValues(values)
        kinds = np.array([PRESENT] * len(self.levels) + list(self.missing), dtype=np.uint8)
        return ColumnValues(values, kinds[state])
