"""A discrete column in one step: the paper's mechanism on s levels is one s x s transition matrix.

With u uniform inside its level's interval (c_{i-1}, c_i], the chance that G(u + e) falls into that of level j is
P_ij = (1/π_i) ∫ [Λ(g_j - u) - Λ(g_{j-1} - u)] du over the interval of level i, where g = G⁻¹(c) and Λ is the CDF of
Laplace(b). The matrix is stored as integer weights, each row adding up to 2^63, and sampled by alias tables with one
random word a value. That every column's ratio is at most e^ε is checked on these integers when the matrix is built.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dipriv.errors import InputError
from dipriv.jit import jit
from dipriv.kernels.noisy_uniform import inverse_noisy_uniform_cdf
from dipriv.randomness import Draws, FloatArray, Words

TOTAL = 1 << 63
"""The sum of a row's integer weights."""
RAREST = 1e-12


@dataclass(frozen=True, eq=False)
class Transition:
    """P(released level j | true level i) = weights[i][j] / 2^63, with its alias tables."""

    budget: Fraction
    weights: tuple[tuple[int, ...], ...] = field(repr=False)
    thresholds: NDArray[np.uint64] = field(repr=False)
    aliases: NDArray[np.int64] = field(repr=False)

    @classmethod
    def of(cls, matrix: FloatArray, pi: FloatArray, budget: Fraction) -> Transition:
        """Integer weights for a stochastic matrix; mixed with π, which keeps π fixed, until the ratios hold."""
        limit = exp_below(min(budget, Fraction(64)))  # no ratio of weights exceeds 2^63
        for mix in (0.0, 1e-12, 1e-9, 1e-6, 1e-4, 1e-2):
            weights = tuple(_as_weights((1 - mix) * row + mix * pi) for row in matrix)
            if _largest_ratio(weights) <= limit:
                thresholds, aliases = zip(*(_alias_table(row) for row in weights), strict=True)
                return cls(budget, weights, np.array(thresholds), np.array(aliases))
        raise InputError(f"the transition matrix has a ratio above e^{float(budget):g}.", "Use the direct kernel.")

    @property
    def largest_ratio(self) -> Fraction:
        """The exact largest ratio within a column: e to the ε that the matrix truly spends."""
        return _largest_ratio(self.weights)

    def perturb(self, levels: NDArray[np.int64], draws: Draws) -> NDArray[np.int64]:
        """Level numbers -> released level numbers."""
        released = np.empty(len(levels), dtype=np.int64)
        sample_aliases(levels, draws.words(), self.thresholds, self.aliases, released)
        return released


@jit
def sample_aliases(
    levels: NDArray[np.int64],
    words: Words,
    thresholds: Words,
    aliases: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """One word a value: see `sample_alias`."""
    shift = bin_shift(thresholds.shape[1])
    for i in range(len(levels)):
        out[i] = sample_alias(levels[i], words[i], shift, thresholds, aliases)


@jit
def sample_alias(
    level: int, word: np.uint64, shift: np.uint64, thresholds: Words, aliases: NDArray[np.int64]
) -> np.int64:
    """63 bits: the top ones pick a bin, the others decide between the bin's level and its alias."""
    word = word >> np.uint64(1)
    b = np.int64(word >> shift)
    rest = word & ((np.uint64(1) << shift) - np.uint64(1))
    return b if rest < thresholds[level, b] else aliases[level, b]


@jit
def bin_shift(bins: int) -> np.uint64:
    """How many of the 63 bits are left when a bin is picked."""
    shift = np.uint64(63)
    while bins > 1:
        bins >>= 1
        shift -= np.uint64(1)
    return shift


def laplace_matrix(pi: FloatArray, b: float) -> FloatArray:
    """(s, s) probabilities in double precision; the levels must not be rarer than doubles can integrate over."""
    if np.any((pi > 0) & (pi < RAREST)):
        raise InputError(
            f"a level's probability is {pi[pi > 0].min():.3g}, below {RAREST:g}.", "Use the direct kernel."
        )
    cut = np.concatenate([[0.0], np.cumsum(pi)])
    cut[-1] = 1.0
    g = inverse_noisy_uniform_cdf(cut, b)
    inner = g[1:-1]
    area = _area(np.where(np.isfinite(inner), inner, 0.0)[np.newaxis] - cut[:, np.newaxis], b)
    reach = -np.diff(area, axis=0)  # ∫ Λ(g_j - u) du over the interval of each level, for the inner g_j
    reach = np.where(np.isfinite(inner), reach, np.where(inner > 0, pi[:, np.newaxis], 0.0))
    reach = np.column_stack([np.zeros(len(pi)), reach, pi])
    inside = np.diff(reach, axis=1)
    rows = np.where(pi[:, np.newaxis] > 0, inside / np.where(pi > 0, pi, 1.0)[:, np.newaxis], pi[np.newaxis, :])
    matrix = np.clip(rows, 0.0, None)
    return np.asarray(matrix / matrix.sum(axis=1, keepdims=True), dtype=np.float64)


def exp_below(exponent: Fraction) -> Fraction:
    """A rational just below e to the exponent."""
    with localcontext(prec=60, rounding=ROUND_FLOOR):
        rounded_down = Decimal(exponent.numerator) / Decimal(exponent.denominator)
        return Fraction(rounded_down.exp()) * (1 - Fraction(1, 10**50))


def _area(x: FloatArray, b: float) -> FloatArray:
    """∫ Λ up to x."""
    tail = 0.5 * b * np.exp(-np.abs(x) / b)
    return np.where(x < 0, tail, x + tail)


def _as_weights(row: FloatArray) -> tuple[int, ...]:
    """Integers in proportion to a row, adding up to 2^63; the largest takes what rounding leaves.

    No weight is zero: what one row can release, every row can.
    """
    weights = [max(1, int(Fraction(float(p)) * TOTAL)) for p in row]
    weights[int(np.argmax(row))] += TOTAL - sum(weights)
    return tuple(weights)


def _largest_ratio(weights: tuple[tuple[int, ...], ...]) -> Fraction:
    return max(Fraction(max(column), min(column)) for column in zip(*weights, strict=True))


def _alias_table(weights: tuple[int, ...]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Walker's tables in exact integers: 2^k bins of 2^63/2^k each, every bin shared by at most two levels."""
    bins = 1 << max(0, len(weights) - 1).bit_length()
    size = TOTAL // bins
    left = [*weights, *[0] * (bins - len(weights))]
    thresholds, aliases = [size] * bins, list(range(bins))
    small = [level for level in range(bins) if left[level] < size]
    large = [level for level in range(bins) if left[level] > size]
    while small:
        needy, rich = small.pop(), large[-1]
        thresholds[needy], aliases[needy] = left[needy], rich
        left[rich] -= size - left[needy]
        if left[rich] <= size:
            large.pop()
            if left[rich] < size:
                small.append(rich)
    return np.array(thresholds, dtype=np.uint64), np.array(aliases, dtype=np.int64)
