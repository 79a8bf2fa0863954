"""Independent columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dipriv._base.arrays import FloatArray
from dipriv._base.coordinates import EncodedColumn, UniformCoordinate
from dipriv._base.invariants import require
from dipriv._base.registry import serializable
from dipriv.references._models.distributions import Distribution, LevelsDistribution
from dipriv.references.protocol import PortableReference


@serializable(PortableReference)
@dataclass(frozen=True, eq=False)
class Independent:
    """Independent columns, each with a distribution of its own."""

    laws: tuple[Distribution, ...]

    def __post_init__(self) -> None:
        require(self.laws, self, "there are columns")

    def accepts(self, states: Sequence[int | None]) -> bool:
        return len(states) == len(self.laws) and all(
            len(marginal.probabilities) == count
            for marginal, count in zip(self.laws, states, strict=True)
            if isinstance(marginal, LevelsDistribution)
        )

    def to_uniform(self, v: FloatArray) -> FloatArray:
        u = np.stack([marginal.cdf(v[:, column]) for column, marginal in enumerate(self.laws)], axis=1)
        return np.clip(u, 0.0, 1.0)

    def from_uniform(self, u: FloatArray) -> FloatArray:
        return np.stack([marginal.ppf(u[:, column]) for column, marginal in enumerate(self.laws)], axis=1)

    def coordinates(self, columns: Sequence[EncodedColumn]) -> list[UniformCoordinate]:
        return [marginal.coordinate(column) for marginal, column in zip(self.laws, columns, strict=True)]
