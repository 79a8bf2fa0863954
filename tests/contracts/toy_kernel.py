"""A kernel in one file, as a contributor would write it: randomized response on the halves of [0, 1].

It registers itself: `kernel="toy"` finds it, an exported reference may hold it, and the contract suite tests it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dipriv._base.arrays import FloatArray
from dipriv._base.coordinates import UniformCoordinate
from dipriv._base.registry import serializable
from dipriv._random.bits import Draws
from dipriv._random.streams import NoiseUse
from dipriv.errors import InputError
from dipriv.kernels import ExactRatio, Kernel, Transition, kernel_spec
from dipriv.kernels.transition import exact_ratio, exp_below

WORDS = 1 << 32


@kernel_spec("toy")
@dataclass(frozen=True)
class Toy:
    """Each column keeps its half of [0, 1] with the largest probability that ε / p allows."""

    def check(self, epsilon: float, margins: Sequence[UniformCoordinate]) -> None:
        """Any ε will do."""

    def build(
        self, epsilon: float, names: Sequence[str], margins: Sequence[UniformCoordinate] | None = None
    ) -> ToyKernel:
        odds = exp_below(min(Fraction(epsilon) / len(names), Fraction(20)))
        return ToyKernel(epsilon, len(names), max(WORDS // 2, int(WORDS * odds / (1 + odds))))

    def describe(self) -> str:
        return "toy"


@serializable(Kernel)
@dataclass(frozen=True)
class ToyKernel:
    """The half stays with probability keeps / 2^32; the place inside the half that comes out is fresh."""

    epsilon: float
    width: int
    keeps: int

    def __post_init__(self) -> None:
        if self.width < 1 or not WORDS // 2 <= self.keeps < WORDS:
            raise InputError("ToyKernel: a half stays more often than not, but not always.", "Build it with Toy().")
        ratio = exact_ratio(self._weights)
        if ratio is None or ratio > exp_below(min(Fraction(self.epsilon) / self.width, Fraction(1000))):
            raise InputError("ToyKernel: the halves are kept too often for epsilon.", "Build it with Toy().")

    @property
    def _weights(self) -> tuple[tuple[int, int], tuple[int, int]]:
        changes = WORDS - self.keeps
        return (self.keeps, changes), (changes, self.keeps)

    def perturb(self, u: FloatArray, draws: Draws) -> FloatArray:
        v = np.empty_like(u)
        for column in range(self.width):
            own = draws.of_column(column)
            upper = u[:, column] > 0.5  # not-a-number is below
            changed = own.words(NoiseUse.DRAW) >> np.uint64(32) >= np.uint64(self.keeps)
            inside = (own.words(NoiseUse.PLACE_IN_BIN) >> np.uint64(12)).astype(np.float64) + 0.5
            v[:, column] = ((upper ^ changed) + inside * 2.0**-52) / 2
        return v

    def of_column(self, column: int) -> ToyKernel:
        return ToyKernel(math.nextafter(self.epsilon / self.width, math.inf), 1, self.keeps)

    def on_levels(self, probabilities: FloatArray) -> Transition:
        raise InputError("the toy kernel has no matrix of levels.", "Use the direct kernel.")

    def joint_probabilities(self, column: int, cuts: FloatArray) -> FloatArray:
        ends = np.clip(np.asarray(cuts)[:, np.newaxis] * 2 - np.arange(2), 0.0, 1.0)
        overlap = np.diff(ends, axis=0)
        return np.asarray(overlap @ (np.array(self._weights) / WORDS / 2) @ overlap.T)

    def exact_ratios(self) -> tuple[ExactRatio, ...]:
        return (ExactRatio(exact_ratio(self._weights), Fraction(self.epsilon) / self.width),) * self.width
