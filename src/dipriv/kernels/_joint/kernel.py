"""The joint kernel: ε is spent once on the whole row, not column by column.

The K leading bits of all u_l make the row's bits c. Flips z are drawn independently of the row, and v = c XOR z with
fresh uniform low bits. Because z does not depend on u, v is uniform whenever u is. Let
s(z) = Σ_l a_l Σ_k 4^(K-k) (-1)^z_lk and S = {z: s(z) >= τ}; z has probability A/D inside S and B/D outside, for
integers A >= B and D = |S| A + |Sᶜ| B. So P(v|u) / P(v|u') <= A/B <= e^ε, a fact about integers that no rounding can
change. With the best τ no other distribution of z has a larger expected score, which is the weighted sum of the
columns' correlations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray, Words
from dipriv._base.decimals import at_most
from dipriv._base.jit import jit
from dipriv._base.registry import serializable
from dipriv._random.bits import Draws
from dipriv.errors import InputError
from dipriv.kernels._joint.counts import (
    Classes,
    FlipDistribution,
    best_limit,
    bits_of,
    classes_of,
    counts_within,
    table_size,
    total_cost,
)
from dipriv.kernels._joint.recount import draws_what_it_says
from dipriv.kernels._joint.sampler import FlipTables, draw_flips
from dipriv.kernels.protocol import ExactRatio, Kernel
from dipriv.kernels.transition import Transition, exp_below

OUTSIDE = 1 << 64
"""The weight B of a z outside S."""
QUICK_TABLE = 1 << 20
"""A table of this many numbers takes about a second to build."""
QUICK_COUNT = 1 << 36
"""Scores are counted in about a second if this many digits are touched."""
MAX_BITS = 8
"""The largest number of bits a column."""
MAX_TABLE = 1 << 24
"""The largest number of entries in the tables."""
MAX_CLASS = (1 << 16) - 1
"""The largest number of bits of one weight, so that a pick fits a word."""
MAX_LOADED_BITS = 1 << 14
"""From a file: bits of all columns together."""
MAX_LOADED_WEIGHT = 1 << 20
"""From a file: the weight of a column."""
MAX_LOADED_TABLE = 1 << 21
"""From a file: entries in the tables, twice what dipriv builds by itself."""


@serializable(Kernel)
@dataclass(frozen=True, eq=False)
class JointKernel:
    """P(z) is inside/D where the score is at least the threshold, else outside/D.

    >>> kernel = JointKernel.best(2.0, np.array([1, 1, 0]))
    >>> [round(float(sum(kernel.flips(column)[:4])), 3) for column in range(3)]  # the leading bit stays as it is
    [0.807, 0.807, 0.5]
    """

    epsilon: float
    weights: NDArray[np.int64]
    bits: int
    threshold: int
    inside: int
    outside: int
    _tables: FlipTables = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _check_epsilon(self.epsilon)
        weights = np.array(self.weights)
        _check_weights(weights)
        classes = _checked_classes(weights, self.bits)
        total = total_cost(classes)
        if not -total <= self.threshold <= total:
            raise InputError(f"JointKernel: the threshold {self.threshold} is not among the scores, ±{total}.", _REMEDY)
        if not 1 <= self.outside <= self.inside:
            raise InputError(
                "JointKernel: z in S must be at least as likely as z outside, and none impossible.", _REMEDY
            )
        if self.largest_ratio > _ratio_limit(self.epsilon, self.inside):
            spent = math.log(self.inside) - math.log(self.outside)
            raise InputError(f"the kernel spends {spent!r}, more than epsilon={self.epsilon!r}.", _REMEDY)
        flips = FlipDistribution(classes, (total - self.threshold) // 2, self.inside, self.outside)
        object.__setattr__(self, "weights", weights.astype(np.int64))
        object.__setattr__(self, "_tables", FlipTables(flips, _places(weights, self.bits), len(weights)))

    @staticmethod
    def is_cheap_to_build(fields: Mapping[str, Any]) -> bool:
        weights, bits = fields["weights"], fields["bits"]
        if weights.ndim != 1 or not 1 <= bits <= MAX_BITS or not 1 <= len(weights) * bits <= MAX_LOADED_BITS:
            return False
        if np.any(weights < 0) or weights.max() > MAX_LOADED_WEIGHT:
            return False
        classes = classes_of(weights.tolist(), bits)
        return max(table_size(classes), total_cost(classes)) <= MAX_LOADED_TABLE

    @classmethod
    def best(cls, epsilon: float, weights: NDArray[np.int64], bits: int | None = None) -> JointKernel:
        """The kernel whose threshold gives the largest expected score, by the exact counts of all scores."""
        _check_epsilon(epsilon)
        _check_weights(weights)
        if bits is None:
            bits = default_bits(weights)
        classes = _checked_classes(weights, bits)
        useful = min(at_most(epsilon), Fraction(bits_of(classes) + 64))  # there, S has all but e^-64 of the mass
        inside = max(OUTSIDE, int(exp_below(useful) * OUTSIDE))
        threshold = total_cost(classes) - 2 * best_limit(classes, inside, OUTSIDE)
        return cls(epsilon, weights, bits, threshold, inside, OUTSIDE)

    @property
    def width(self) -> int:
        return len(self.weights)

    @property
    def largest_ratio(self) -> Fraction:
        """The exact bound on P(v|u) / P(v|u')."""
        return Fraction(self.inside, self.outside)

    def perturb(self, u: FloatArray, draws: Draws) -> FloatArray:
        v = np.empty_like(u)
        z = draw_flips(self._tables, draws.of_column(len(self.weights)))
        for column, weight in enumerate(self.weights):
            words = draws.of_column(column).words()
            if weight:
                move_bins(u[:, column], z[:, column], words, self.bits, v[:, column])
            else:
                v[:, column] = ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
        return v

    def of_column(self, column: int) -> None:
        """No column has a kernel of its own: the flips of all columns are drawn together."""

    def on_levels(self, probabilities: FloatArray) -> Transition:
        raise InputError(
            "a column of the joint kernel is perturbed together with others, not by a matrix of its own.",
            "Perturb all columns at once, or use the laplace kernel.",
        )

    def flips(self, column: int) -> tuple[Fraction, ...]:
        """The exact P(z_l = b) for b = 0, ..., 2^K - 1: the probability that the bin of v is that of u XOR b."""
        a, K, flips = int(self.weights[column]), self.bits, self._tables.flips
        if not a:
            return (Fraction(1, 1 << K),) * (1 << K)
        within = counts_within(flips.classes, flips.limit, tuple(a << 2 * k for k in range(K)))
        others = 1 << flips.coins[0] - K
        masses = (count * self.inside + (others - count) * self.outside for count in within)
        return tuple(Fraction(mass, flips.total) for mass in masses)

    def joint_probabilities(self, column: int, cuts: FloatArray) -> FloatArray:
        """(k, k): P(u_l in bin i, v_l in bin j) for a uniform u_l and the bins between cuts 0 < ... < 1."""
        own = np.arange(1 << self.bits)
        inner = np.clip(np.asarray(cuts, dtype=np.float64)[:, np.newaxis] * len(own) - own, 0.0, 1.0)
        overlap = np.diff(inner, axis=0)
        flips = np.array([float(p) for p in self.flips(column)])
        joint = overlap @ flips[own[:, np.newaxis] ^ own] @ overlap.T / len(own)
        return np.asarray(joint, dtype=np.float64)

    def exact_ratios(self) -> tuple[ExactRatio, ...]:
        """A/B for the whole row, or 1 if all flips have one weight; unbounded if the tables draw anything else."""
        flips, ratio = self._tables.flips, None
        if flips.inside >= flips.outside >= 1 and draws_what_it_says(flips):
            some_outside = flips.limit < sum(weight * size for weight, size in flips.classes)
            ratio = Fraction(flips.inside, flips.outside) if flips.limit >= 0 and some_outside else Fraction(1)
        return (ExactRatio(ratio, Fraction(self.epsilon)),)


@jit
def move_bins(u: FloatArray, z: NDArray[np.uint8], words: Words, bits: int, v: FloatArray) -> None:
    """V in the middle of one of 2^52 steps: K digits are the bin of U XOR z, the others are from the word.

    u is clipped to [0, 1], and not-a-number counts as 0.
    """
    bins = 2.0**bits
    low, rest = np.uint64(52 - bits), np.uint64(12 + bits)
    for i in range(len(u)):
        clipped = min(u[i], 1.0) if u[i] >= 0.0 else 0.0
        number = np.uint64(min(clipped * bins, bins - 1.0)) ^ np.uint64(z[i])
        v[i] = (np.float64(number << low | words[i] >> rest) + 0.5) * 2.0**-52


def default_bits(weights: NDArray[np.int64]) -> int:
    """3 bits a column, which carry 1 - 4^-3 of its variance; fewer where the scores would take long to count."""
    return next((bits for bits in (3, 2) if _is_quick(weights, bits)), 1)


def integer_weights(weights: Sequence[float]) -> NDArray[np.int64]:
    """Small integers in proportion to weights, as they are written: exactly where the largest need not exceed 64.

    Else the largest becomes 64, or less as far as many columns ask for small tables. A weight above 0 stays above 0.

    >>> integer_weights([0.3, 0.1, 0.0]).tolist(), integer_weights([0.7, 0.7]).tolist()
    ([3, 1, 0], [1, 1])
    """
    if not all(0 <= weight < np.inf for weight in weights) or not any(weights):
        raise InputError("the weights are not finite numbers >= 0 with one above 0.", "Give each column a weight.")
    written = [Fraction(repr(float(weight))) for weight in weights]
    shares = [weight / max(written) for weight in written]
    exact = [m for m in range(1, 65) if all((share * m).denominator == 1 for share in shares)][:1]
    scaled = {
        m: np.array([max(round(share * m), int(share > 0)) for share in shares], dtype=np.int64)
        for m in (*exact, 64, 32, 16, 8, 4, 2, 1)
    }
    choices = [(bits, m) for bits in (3, 2, 1) for m in (*exact, 64, 32, 16, 8)] + [(1, 4), (1, 2)]
    return next((scaled[m] for bits, m in choices if _is_quick(scaled[m], bits)), scaled[1])


_REMEDY = "Build the kernel with JointKernel.best(epsilon, integer_weights(...))."


def _is_quick(weights: NDArray[np.int64], bits: int) -> bool:
    classes = classes_of(weights.tolist(), bits)
    return table_size(classes) <= QUICK_TABLE and bits_of(classes) ** 2 * total_cost(classes) <= QUICK_COUNT


def _check_epsilon(epsilon: float) -> None:
    if not 0 < epsilon < np.inf:
        raise InputError(f"epsilon is {epsilon!r}, not a finite number above 0.", "Choose a privacy budget.")


def _check_weights(weights: NDArray[np.int64]) -> None:
    if weights.ndim != 1 or weights.dtype.kind not in "iu" or np.any(weights < 0) or not np.any(weights):
        raise InputError(
            "JointKernel: the weights are not whole numbers >= 0, one a column, with one above 0.", _REMEDY
        )


def _checked_classes(weights: NDArray[np.int64], bits: int) -> Classes:
    if not 1 <= bits <= MAX_BITS:
        raise InputError(f"JointKernel: {bits} bits a column are not 1 to {MAX_BITS}.", _REMEDY)
    classes = classes_of(weights.tolist(), bits)
    size = max(table_size(classes), total_cost(classes))
    if size > MAX_TABLE or max(count for _, count in classes) > MAX_CLASS:
        raise InputError(f"weights up to {weights.max()} in {len(weights)} columns need too large tables.", _REMEDY)
    return classes


def _ratio_limit(epsilon: float, inside: int) -> Fraction:
    """1, or a rational just below e^ε; just above A if that is less, since no power beyond A decides anything."""
    return max(Fraction(1), exp_below(min(Fraction(epsilon), Fraction(inside.bit_length()))))


def _places(weights: NDArray[np.int64], bits: int) -> NDArray[np.int64]:
    """(pK, 2): the column and the value in its bin number of every bit that has a weight, heaviest first."""
    bits_by_weight = sorted(
        (-(int(a) << 2 * k), column, 1 << k) for column, a in enumerate(weights) if a for k in range(bits)
    )
    return np.array([(column, value) for _, column, value in bits_by_weight], dtype=np.int64)
