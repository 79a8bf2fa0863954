"""A discrete column in one step: noise on s levels is one s x s transition matrix, in integers.

Level i becomes level j with probability weights[i][j] over the row's sum. That every column's ratio is at most e^ε is
checked on these integers when the matrix is built, and the sampling is exact: alias tables with one random word a value
decide all but about one draw in 2^57, and that one is decided by further random digits.

The paper's mechanism is such a matrix. With u uniform inside its level's interval (c_{i-1}, c_i], the chance that
G(u + e) falls into that of level j is P_ij = (1/π_i) ∫ [Λ(g_j - u) - Λ(g_{j-1} - u)] du over the interval of level i,
where g = G⁻¹(c) and Λ is the CDF of Laplace(b).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray, Words
from dipriv._base.jit import jit
from dipriv._base.registry import serializable
from dipriv._random.bits import Draws
from dipriv._random.streams import NoiseUse
from dipriv.errors import InputError
from dipriv.kernels.noisy_uniform import inverse_noisy_uniform_cdf

TOTAL = 1 << 63
"""The sum of a row's integer weights, where they come from doubles."""
MIN_PROBABILITY = 1e-12
"""For rarer levels the matrix of the paper's noise lacks digits."""
MAX_LEVELS = 256
"""For more levels the matrix of the paper's noise takes seconds to build, and a matrix in a file to be checked."""
DIGITS = 63
"""How many random bits the tables look at."""

Weights = tuple[tuple[int, ...], ...]


@serializable()
@dataclass(frozen=True, eq=False)
class Transition:
    """P(released level j | true level i) = weights[i][j] / sum(weights[i]), within e^budget of each other in a column.

    A level that no row can release has the weight 0 in all rows.
    """

    budget: Fraction
    weights: Weights = field(repr=False)
    digits: int = field(repr=False, default=DIGITS)
    thresholds: NDArray[np.uint64] = field(init=False, repr=False)
    aliases: NDArray[np.int64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        square = all(len(row) == len(self.weights) for row in self.weights)
        if not self.weights or not square or any(min(row) < 0 or not sum(row) for row in self.weights):
            raise InputError("Transition: the weights are not a square matrix of numbers >= 0.", "Build it anew.")
        bins = 1 << max(0, len(self.weights) - 1).bit_length()
        if not bins.bit_length() - 1 <= self.digits <= DIGITS or self.digits < 1:
            raise InputError(f"the transition matrix looks at {self.digits} digits.", "Build it anew.")
        if self.budget < 0 or not has_ratios_within(self.weights, self.budget):
            raise InputError(
                f"the transition matrix has a ratio above e^{float(self.budget):g}.", "Use the direct kernel."
            )
        tables = [_alias_table(row) for row in self.weights]
        room = 1 << (self.digits - bins.bit_length() + 1)
        floors = [
            [threshold * room // sum(row) for threshold in thresholds]
            for row, (thresholds, _) in zip(self.weights, tables, strict=True)
        ]
        object.__setattr__(self, "thresholds", np.array(floors, dtype=np.uint64))
        object.__setattr__(self, "aliases", np.array([aliases for _, aliases in tables], dtype=np.int64))

    @staticmethod
    def is_cheap_to_build(fields: Mapping[str, Any]) -> bool:
        return len(fields["weights"]) <= MAX_LEVELS

    @classmethod
    def of(cls, matrix: FloatArray, pi: FloatArray, budget: Fraction) -> Transition:
        """Integer weights for a stochastic matrix; mixed with π, which keeps π fixed, until the ratios hold."""
        for mix in (0.0, 1e-12, 1e-9, 1e-6, 1e-4, 1e-2):
            weights = tuple(_as_weights((1 - mix) * row + mix * pi) for row in matrix)
            if has_ratios_within(weights, budget):
                return cls(budget, weights)
        raise InputError(f"the transition matrix has a ratio above e^{float(budget):g}.", "Use the direct kernel.")

    @property
    def largest_ratio(self) -> Fraction:
        """The largest ratio within a column, rounded up: e to the ε that the matrix truly spends."""
        return _largest_ratio(self.weights)

    def exact_ratio(self) -> Fraction | None:
        """The largest ratio of two probabilities of one released level, for audits; see `exact_ratio`."""
        return exact_ratio(self.weights)

    @property
    def matrix(self) -> FloatArray:
        """The probabilities, in double precision."""
        return np.array([[weight / sum(row) for weight in row] for row in self.weights])

    def perturb(self, levels: NDArray[np.int64], draws: Draws) -> NDArray[np.int64]:
        """Level numbers -> released level numbers."""
        released = np.empty(len(levels), dtype=np.int64)
        words = draws.words()
        row = sample_aliases(levels, words, self.digits, self.thresholds, self.aliases, 0, released)
        while row < len(levels):
            released[row] = self.decide(int(levels[row]), int(words[row]), draws, row)
            row = sample_aliases(levels, words, self.digits, self.thresholds, self.aliases, row + 1, released)
        return released

    def decide(self, level: int, word: int, draws: Draws, row: int) -> int:
        """What one word leaves undecided, exactly: the binary fraction is continued as far as it takes."""
        thresholds, aliases = _alias_table(self.weights[level])
        length = self.digits - len(thresholds).bit_length() + 1
        word >>= 64 - self.digits
        b, rest = word >> length, word & ((1 << length) - 1)
        threshold = Fraction(thresholds[b], sum(self.weights[level]))
        for more in further_digits(draws, row):
            if Fraction(rest + 1, 1 << length) <= threshold:
                return b
            if Fraction(rest, 1 << length) >= threshold:
                return aliases[b]
            rest, length = rest << 64 | more, length + 64
        raise AssertionError("random digits never end")


def further_digits(draws: Draws, row: int) -> Iterator[int]:
    """Further random words for one draw, from a use of their own."""
    attempt = 0
    while True:
        attempt += 1
        yield from (int(word) for word in draws.blocks_again(NoiseUse.FURTHER_DIGITS, attempt, np.array([row]))[0])


@jit
def sample_aliases(
    levels: NDArray[np.int64],
    words: Words,
    digits: int,
    thresholds: Words,
    aliases: NDArray[np.int64],
    start: int,
    out: NDArray[np.int64],
) -> int:
    """One word a value, from row `start` on, up to the first row that `decide` has to decide: its number comes back."""
    unused, shift = np.uint64(64 - digits), bin_shift(digits, thresholds.shape[1])
    for i in range(start, len(levels)):
        found = sample_alias(levels[i], words[i], unused, shift, thresholds, aliases)
        if found < 0:
            return i
        out[i] = found
    return len(levels)


@jit
def sample_alias(
    level: int, word: np.uint64, unused: np.uint64, shift: np.uint64, thresholds: Words, aliases: NDArray[np.int64]
) -> np.int64:
    """The top bits pick a bin, the others decide between the bin's level and its alias; -1 where they do not."""
    word = word >> unused
    b = np.int64(word >> shift)
    rest = word & ((np.uint64(1) << shift) - np.uint64(1))
    threshold = thresholds[level, b]
    if rest == threshold:
        return np.int64(-1)
    return b if rest < threshold else aliases[level, b]


@jit
def bin_shift(digits: int, bins: int) -> np.uint64:
    """How many of the digits are left when a bin is picked."""
    shift = np.uint64(digits)
    while bins > 1:
        bins >>= 1
        shift -= np.uint64(1)
    return shift


def laplace_matrix(pi: FloatArray, b: float) -> FloatArray:
    """(s, s) probabilities in double precision; the levels must not be rarer than doubles can integrate over."""
    if len(pi) > MAX_LEVELS:
        raise InputError(f"there are {len(pi):,} levels, more than {MAX_LEVELS}.", "Use the direct kernel.")
    if np.any((pi > 0) & (pi < MIN_PROBABILITY)):
        raise InputError(
            f"a level's probability is {pi[pi > 0].min():.3g}, below {MIN_PROBABILITY:g}.", "Use the direct kernel."
        )
    inside = laplace_joint_probabilities(pi, b)
    rows = np.where(pi[:, np.newaxis] > 0, inside / np.where(pi > 0, pi, 1.0)[:, np.newaxis], pi[np.newaxis, :])
    return np.asarray(rows / rows.sum(axis=1, keepdims=True), dtype=np.float64)


def laplace_joint_probabilities(pi: FloatArray, b: float) -> FloatArray:
    """(s, s): the chance of level i before and level j after."""
    cut = np.concatenate([[0.0], np.cumsum(pi)])
    cut[-1] = 1.0
    g = inverse_noisy_uniform_cdf(cut, b)
    inner = g[1:-1]
    area = _area(np.where(np.isfinite(inner), inner, 0.0)[np.newaxis] - cut[:, np.newaxis], b)
    reach = -np.diff(area, axis=0)  # ∫ Λ(g_j - u) du over the interval of each level, for the inner g_j
    reach = np.where(np.isfinite(inner), reach, np.where(inner > 0, pi[:, np.newaxis], 0.0))
    reach = np.column_stack([np.zeros(len(pi)), reach, pi])
    return np.clip(np.diff(reach, axis=1), 0.0, None)


def exp_below(exponent: Fraction) -> Fraction:
    """A rational just below e to the exponent, which is not negative; but not below 1."""
    with localcontext(prec=60, rounding=ROUND_FLOOR):
        rounded_down = Decimal(exponent.numerator) / Decimal(exponent.denominator)
        return max(Fraction(1), Fraction(rounded_down.exp()) * (1 - Fraction(1, 10**50)))


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


def has_ratios_within(weights: Sequence[Sequence[int]], budget: Fraction) -> bool:
    """Whether the rows' probabilities differ by a factor of at most e^budget, in every column."""
    return _largest_ratio(weights) <= exp_below(min(budget, Fraction(1000)))


def _largest_ratio(weights: Sequence[Sequence[int]]) -> Fraction:
    """Over columns, of the largest and the smallest probability in multiples of 2^-128, rounded up and down."""
    largest, smallest = [0] * len(weights), [1 << 128] * len(weights)
    for row in weights:
        total = sum(row)
        for column, weight in enumerate(row):
            exact, rest = divmod(weight << 128, total)
            largest[column] = max(largest[column], exact + (rest > 0))
            smallest[column] = min(smallest[column], exact)
    released = [(most, least) for most, least in zip(largest, smallest, strict=True) if most]
    if any(not least for _, least in released):
        return Fraction(1 << 10_000)
    return max(Fraction(most, least) for most, least in released)


def exact_ratio(weights: Sequence[Sequence[int]]) -> Fraction | None:
    """The largest ratio of two probabilities within a column, by fractions; None where one of the two is 0.

    Audits use it: it shares no code with `has_ratios_within`, by which a matrix proves its ε.
    """
    totals = [sum(row) for row in weights]
    largest = Fraction(1)
    for column in range(len(weights[0])):
        chances = [Fraction(row[column], total) for row, total in zip(weights, totals, strict=True)]
        most, least = max(chances), min(chances)
        if most and not least:
            return None
        if most:
            largest = max(largest, most / least)
    return largest


def _alias_table(weights: Sequence[int]) -> tuple[list[int], list[int]]:
    """Walker's tables in exact integers: 2^k bins of the weights' sum each, every bin shared by at most two levels."""
    bins, size = 1 << max(0, len(weights) - 1).bit_length(), sum(weights)
    left = [*(weight * bins for weight in weights), *[0] * (bins - len(weights))]
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
    return thresholds, aliases
