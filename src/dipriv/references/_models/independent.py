"""Independent columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dipriv._arrays import FloatArray
from dipriv._coordinates import EncodedColumn, UniformCoordinate
from dipriv.references._models.distributions import Distribution


@dataclass(frozen=True, eq=False)
class Independent:
    """Independent columns, each with a distribution of its own."""

    laws: tuple[Distribution, ...]

    def to_uniform(self, v: FloatArray) -> FloatArray:
        u = np.stack([marginal.cdf(v[:, column]) for column, marginal in enumerate(self.laws)], axis=1)
        return np.clip(u, 0.0, 1.0)

    def from_uniform(self, u: FloatArray) -> FloatArray:
        return np.stack([marginal.ppf(u[:, column]) for column, marginal in enumerate(self.laws)], axis=1)

    def coordinates(self, columns: Sequence[EncodedColumn]) -> list[UniformCoordinate]:
        return [marginal.coordinate(column) for marginal, column in zip(self.laws, columns, strict=True)]
