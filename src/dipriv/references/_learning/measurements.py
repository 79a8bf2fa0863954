"""Measurement primitives, each with its privacy cost: noisy counts, thresholds, choices.

Laplace noise costs ε, Gaussian noise ρ of zero-concentrated differential privacy (zCDP).

No other code may read private counts. Neighbouring tables differ in one row, so a table of counts changes by at most
one in two cells. Counts are multiples of 2^-digits, and noise is drawn exactly on that lattice with a scale that is
rounded up: the cost is never more than requested. Proofs are in docs/theory/private-reference.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import Counts, FloatArray
from dipriv._random.bits import Bits, Draws
from dipriv._random.discrete_gaussian import discrete_gaussian
from dipriv._random.discrete_laplace import MAX_SCALE, discrete_laplace
from dipriv._random.rejection import noisy_sum
from dipriv.errors import InputError, InternalError
from dipriv.references._learning.exponential_mechanism import exponential_choice
from dipriv.references._learning.zcdp import gaussian_threshold, laplace_threshold

LATTICE = 10
"""Counts have this many binary digits after the point; fewer where the budget is tiny."""
MAX_STEPS = 1 << 40
"""The largest noise scale in steps of the lattice for which the lattice is fine."""
NoiseKind: TypeAlias = Literal["laplace", "gaussian"]


@dataclass(frozen=True)
class Spread:
    """How large the noise of one count is."""

    kind: NoiseKind
    scale: float
    """b of Laplace noise, σ of Gaussian noise."""

    @classmethod
    def of(cls, kind: NoiseKind, cost: float) -> Spread:
        """The noise of a table of counts that may cost this much."""
        return cls(kind, 2.0 / cost if kind == "laplace" else 1.0 / math.sqrt(cost))

    @property
    def deviation(self) -> float:
        """The standard deviation."""
        return self.scale * math.sqrt(2.0) if self.kind == "laplace" else self.scale

    @property
    def mean_size(self) -> float:
        """The mean absolute value."""
        return self.scale if self.kind == "laplace" else self.scale * math.sqrt(2.0 / math.pi)


@dataclass(frozen=True, eq=False)
class Frequent:
    """The cells of a histogram that may be published."""

    kept: NDArray[np.intp] = field(repr=False)
    """Their numbers among the private cells."""
    counts: FloatArray = field(repr=False)
    fixed: FloatArray = field(repr=False)
    """The noisy counts of the public cells."""
    spread: Spread


@dataclass
class Accountant:
    """A privacy budget that is spent on one measurement after the other, and never exceeded.

    The budget is ε where the noise is Laplace, ρ where it is Gaussian; it adds up in rational numbers.
    """

    kind: NoiseKind
    budget: Fraction
    bits: Bits = field(repr=False)
    spent: Fraction = Fraction(0)
    _drawn: int = 0

    @property
    def left(self) -> Fraction:
        return self.budget - self.spent

    def spend(self, cost: Fraction) -> None:
        if self.spent + cost > self.budget:
            raise InternalError(
                f"a measurement of {float(cost):.3g} exceeds what is left of a budget of {float(self.budget):.3g}.",
                "This is a fault in dipriv: please report it.",
            )
        self.spent += cost

    def cost_of_pure(self, epsilon: Fraction) -> Fraction:
        """What an ε-differentially private measurement costs."""
        return epsilon if self.kind == "laplace" else epsilon**2 / 2

    def laplace(self, count: int, scale: int) -> NDArray[np.int64]:
        """Fresh discrete Laplace noise of an integer scale; the caller spends."""
        return discrete_laplace(self._draws(count), scale)

    def noisy_counts(self, counts: Counts, cost: Fraction) -> tuple[FloatArray, Spread]:
        """A histogram or table of disjoint cells with noise: sensitivity two in L1, the root of two in L2."""
        flat = np.asarray(counts, dtype=np.int64).ravel()
        noise, digits, spread = self._lattice_noise(len(flat), cost)
        noisy = np.ldexp(noisy_sum(flat << digits, noise).astype(np.float64), -digits)
        return noisy.reshape(np.shape(counts)), spread

    def frequent(self, counts: Counts, fixed: Counts, cost: Fraction, chance: Fraction, at_least: int = 1) -> Frequent:
        """One noisy histogram over `counts`, of cells that are private in themselves, and `fixed`, of public ones.

        Of the private cells, which are those that `at_least` rows have, only those are published whose noisy counts
        reach a threshold. A count of `at_least` reaches it with at most this chance, which is what it costs in δ.
        """
        noise, digits, spread = self._lattice_noise(len(counts) + len(fixed), cost)
        noisy = noisy_sum(np.concatenate([counts, fixed]).astype(np.int64) << digits, noise)
        if self.kind == "laplace":
            reach = laplace_threshold(self._laplace_steps(cost)[1], chance)
        else:
            reach = gaussian_threshold(Fraction(self._gaussian_steps(cost)[1]), chance)
        kept = np.flatnonzero(noisy[: len(counts)] >= (at_least << digits) + reach)
        values = np.ldexp(noisy.astype(np.float64), -digits)
        return Frequent(kept, values[kept], values[len(counts) :], spread)

    def choose(self, scores: NDArray[np.int64], sensitivity: int, cost: Fraction) -> int:
        """The number of a score that is probably among the largest. One row changes each by at most `sensitivity`."""
        if self.kind == "laplace":
            scale = 2 * sensitivity / cost
            self.spend(cost)
        else:
            scale = 1 / root_below(2 * cost / sensitivity**2)
            self.spend(Fraction(sensitivity) ** 2 / (2 * scale**2))
        return exponential_choice(scores, scale, self._words)

    def _lattice_noise(self, count: int, cost: Fraction) -> tuple[NDArray[np.int64], int, Spread]:
        """Noise for one table of counts in steps of 2^-digits; it is paid for here."""
        if self.kind == "laplace":
            digits, scale = self._laplace_steps(cost)
            self.spend(Fraction(2 << digits, scale))
            return self.laplace(count, scale), digits, Spread("laplace", math.ldexp(scale, -digits))
        digits, variance = self._gaussian_steps(cost)
        self.spend(Fraction(1 << 2 * digits, variance))
        noise = discrete_gaussian(self._draws(count), Fraction(variance))
        return noise, digits, Spread("gaussian", math.ldexp(math.sqrt(variance), -digits))

    def _laplace_steps(self, epsilon: Fraction) -> tuple[int, int]:
        """(digits, t): the noise scale 2/ε as t steps of 2^-digits, rounded up."""
        for digits in range(LATTICE, -1, -1):
            steps = math.ceil(2 * (1 << digits) / epsilon)
            if steps <= MAX_STEPS:
                return digits, steps
        return 0, clamp_scale(math.ceil(2 / epsilon))

    def _gaussian_steps(self, rho: Fraction) -> tuple[int, int]:
        """(digits, σ²): the variance 1/ρ in squared steps of 2^-digits, rounded up."""
        for digits in range(LATTICE, -1, -1):
            variance = math.ceil((1 << 2 * digits) / rho)
            if variance <= MAX_STEPS**2:
                return digits, variance
        raise InputError(
            f"a noise variance of {float(1 / rho):.3g} is larger than {float(MAX_STEPS**2):.3g}.",
            "Use a larger epsilon, or fewer columns.",
        )

    def _draws(self, count: int) -> Draws:
        draws = Draws(self.bits, self._drawn, count)
        self._drawn += count
        return draws

    def _words(self, count: int) -> NDArray[np.uint64]:
        """Fresh random words."""
        return self._draws((count + 1) // 2).blocks().reshape(-1)[:count]


def pure_for(kind: NoiseKind, cost: Fraction) -> Fraction:
    """The largest ε of a pure measurement that costs no more than this."""
    return cost if kind == "laplace" else root_below(2 * cost)


def clamp_scale(scale: int) -> int:
    """A scale that exact noise can have."""
    if scale > MAX_SCALE:
        raise InputError(
            f"a noise scale of {scale:.3g} is larger than {MAX_SCALE:.3g}.",
            "Use a larger epsilon, or fewer columns.",
        )
    return scale


def root_below(square: Fraction) -> Fraction:
    """A rational number whose square is at most this one, and less by no more than 2^-40 of it."""
    shift = max(0, 96 - square.numerator.bit_length() + square.denominator.bit_length())
    shift += shift % 2
    return Fraction(math.isqrt((square.numerator << shift) // square.denominator), 1 << shift // 2)
