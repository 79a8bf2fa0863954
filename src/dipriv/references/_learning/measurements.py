"""Measurement primitives: discrete Laplace on counts and report-noisy-max, each with its privacy cost.

No other code may read private counts. Neighbouring tables differ in one row, so a table of counts changes by at most
one in two cells. Counts are multiples of 2^-LATTICE, and the noise is discrete Laplace with an integer scale that is
rounded up: the cost is never more than the requested ε.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import Counts, FloatArray
from dipriv._random.bits import Bits, Draws
from dipriv._random.discrete_laplace import MAX_SCALE, discrete_laplace
from dipriv.errors import InputError, InternalError

LATTICE = 10
"""Counts have this many binary digits after the point; fewer where ε is tiny."""


@dataclass
class Accountant:
    """A privacy budget that is spent on one measurement after the other, and never exceeded."""

    budget: Fraction
    bits: Bits = field(repr=False)
    spent: Fraction = Fraction(0)
    _drawn: int = 0

    def spend(self, cost: Fraction) -> None:
        if self.spent + cost > self.budget:
            raise InternalError(
                f"a measurement of {float(cost):.3g} exceeds what is left of epsilon={float(self.budget):.3g}.",
                "This is a fault in dipriv: please report it.",
            )
        self.spent += cost

    def noise(self, count: int, scale: int) -> NDArray[np.int64]:
        """Fresh discrete Laplace noise of an integer scale."""
        draws = Draws(self.bits, self._drawn, count)
        self._drawn += count
        return discrete_laplace(draws, scale)

    def noisy_counts(self, counts: Counts, epsilon: Fraction) -> tuple[FloatArray, float]:
        """A histogram or table of disjoint cells with noise, and the scale b of the noise: sensitivity two in L1."""
        digits, scale = lattice_scale(2 / epsilon)
        self.spend(Fraction(2 << digits, scale))
        flat = np.asarray(counts, dtype=np.int64).ravel()
        noisy = (flat << digits) + self.noise(len(flat), scale)
        return np.ldexp(noisy.astype(np.float64), -digits).reshape(counts.shape), math.ldexp(scale, -digits)

    def report_noisy_max(self, scores: NDArray[np.int64], sensitivity: int, epsilon: Fraction) -> int:
        """The number of the largest noisy score. One row changes each whole score by at most `sensitivity`.

        The noise is one-sided (geometric). Given all other noise, a score wins if its own reaches a whole number, which
        one row moves by at most twice the sensitivity, and P(z >= m) falls by a factor of e^(-1/scale) a step at most.
        """
        scale = math.ceil(2 * sensitivity / epsilon)
        self.spend(Fraction(2 * sensitivity, clamp_scale(scale)))
        noise = self.noise(len(scores), scale)
        while len(below := np.flatnonzero(noise < 0)):
            noise[below] = self.noise(len(below), scale)
        return int(np.argmax(scores + noise))


def lattice_scale(scale: Fraction) -> tuple[int, int]:
    """(digits, t): the noise scale as t steps of 2^-digits, rounded up."""
    for digits in range(LATTICE, -1, -1):
        steps = math.ceil(scale * (1 << digits))
        if steps <= 1 << 40:
            return digits, steps
    return 0, clamp_scale(math.ceil(scale))


def clamp_scale(scale: int) -> int:
    """A scale that exact noise can have."""
    if scale > MAX_SCALE:
        raise InputError(
            f"a noise scale of {scale:.3g} is larger than {MAX_SCALE:.3g}.",
            "Use a larger epsilon, or fewer columns.",
        )
    return scale
