"""The best noise for each column by itself: bins of [0, 1] are swapped by a linear program's transition matrix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray, Words, first_not_below
from dipriv._base.coordinates import Partition
from dipriv._base.decimals import at_most
from dipriv._base.invariants import require
from dipriv._base.jit import jit
from dipriv._base.registry import serializable
from dipriv._random.bits import Draws
from dipriv._random.streams import NoiseUse
from dipriv.errors import InputError
from dipriv.kernels._per_column.integer_channel import InvariantChannel, best_swap, masses_of
from dipriv.kernels.protocol import ExactRatio, Kernel
from dipriv.kernels.transition import Transition, bin_shift, sample_alias


@serializable(Kernel)
@dataclass(frozen=True, eq=False)
class ColumnsKernel:
    """Column l: u's bin goes through the swap number which[l], and v is uniform inside the bin that comes out."""

    epsilon: float
    swaps: tuple[InvariantChannel, ...] = field(repr=False)
    which: tuple[int, ...] = field(repr=False)

    def __post_init__(self) -> None:
        require(all(0 <= number < len(self.swaps) for number in self.which), self, "each column has one of the swaps")
        if self.spent > Fraction(self.epsilon):
            raise InputError(
                f"the columns' budgets add up to {float(self.spent)!r}, more than epsilon={self.epsilon!r}.",
                "Build the kernel from its description.",
            )

    @classmethod
    def best(cls, epsilon: float, parts: Sequence[Partition], shares: Sequence[Fraction]) -> ColumnsKernel:
        """The best swap for each column, with its share of ε; one without a share is replaced by fresh uniforms."""
        budgets = [at_most(epsilon) * share / sum(shares) for share in shares]
        swaps: dict[InvariantChannel, int] = {}
        which = []
        for part, budget in zip(parts, budgets, strict=True):
            found = best_swap(masses_of(part.probabilities), part.cost, budget) if budget else NOTHING_KEPT
            which.append(swaps.setdefault(found, len(swaps)))
        return cls(epsilon, tuple(swaps), tuple(which))

    @property
    def width(self) -> int:
        return len(self.which)

    @property
    def spent(self) -> Fraction:
        """The exact total of the columns' budgets."""
        return sum((self.swaps[number].transition.budget for number in self.which), Fraction(0))

    def perturb(self, u: FloatArray, draws: Draws) -> FloatArray:
        v = np.empty_like(u)
        for column, number in enumerate(self.which):
            _perturb(self.swaps[number], u[:, column], draws.of_column(column), v[:, column])
        return v

    def of_column(self, column: int) -> ColumnsKernel:
        """The kernel of one column alone."""
        swap = self.swaps[self.which[column]]
        return ColumnsKernel(math.nextafter(float(swap.transition.budget), math.inf), (swap,), (0,))

    def on_levels(self, probabilities: FloatArray) -> Transition:
        swap = self.swaps[self.which[0]]
        if swap.masses != masses_of(np.asarray(probabilities, dtype=np.float64)):
            raise InputError("the bins of the column are not its levels.", "Use the direct kernel.")
        return swap.transition

    def joint_probabilities(self, column: int, cuts: FloatArray) -> FloatArray:
        swap = self.swaps[self.which[column]]
        return rebin(swap.cuts, swap.joint_probabilities, cuts)

    def exact_ratios(self) -> tuple[ExactRatio, ...]:
        transitions = [self.swaps[number].transition for number in self.which]
        return tuple(ExactRatio(transition.exact_ratio(), transition.budget) for transition in transitions)


NOTHING_KEPT = InvariantChannel((1 << 48,), Transition(Fraction(0), ((1 << 96,),)))
"""A single bin: what comes out is fresh."""


def rebin(own: FloatArray, joint: FloatArray, cuts: FloatArray) -> FloatArray:
    """Joint probabilities of (bin before, bin after) for other bins: u and v are uniform inside the kernel's own."""
    overlap = np.minimum(own[1:, np.newaxis], cuts[1:]) - np.maximum(own[:-1, np.newaxis], cuts[:-1])
    width = np.diff(own)[:, np.newaxis]
    share = np.clip(overlap, 0.0, None) / np.where(width > 0, width, 1.0)
    return np.asarray(share.T @ joint @ share)


def _perturb(swap: InvariantChannel, u: FloatArray, draws: Draws, v: FloatArray) -> None:
    words, places, transition = draws.words(), draws.words(NoiseUse.PLACE_IN_BIN), swap.transition
    ends = swap.cuts[1:-1]
    tables = transition.digits, transition.thresholds, transition.aliases
    row = swap_bins(u, ends, swap.cuts, words, places, *tables, 0, v)
    while row < len(u):
        number = first_not_below(min(u[row], 1.0), ends, len(ends))
        to = transition.decide(int(number), int(words[row]), draws, row)
        v[row] = place_in(swap.cuts, np.int64(to), places[row])
        row = swap_bins(u, ends, swap.cuts, words, places, *tables, row + 1, v)


@jit
def swap_bins(
    u: FloatArray,
    ends: FloatArray,
    cuts: FloatArray,
    words: Words,
    places: Words,
    digits: int,
    thresholds: Words,
    aliases: NDArray[np.int64],
    start: int,
    v: FloatArray,
) -> int:
    """As `sample_aliases`, with bins for levels. Any u counts: below 0 and not-a-number as 0, above 1 as 1."""
    unused, shift = np.uint64(64 - digits), bin_shift(digits, thresholds.shape[1])
    for i in range(start, len(u)):
        number = first_not_below(min(u[i], 1.0), ends, len(ends))
        to = sample_alias(number, words[i], unused, shift, thresholds, aliases)
        if to < 0:
            return i
        v[i] = place_in(cuts, to, places[i])
    return len(u)


@jit
def place_in(cuts: FloatArray, number: np.int64, word: np.uint64) -> np.float64:
    """A uniform place inside a bin, above its low end, and inside the open unit interval."""
    inside = (np.float64(word >> np.uint64(11)) + 0.5) * 2.0**-53
    low, high = cuts[number], cuts[number + 1]
    place = max(low + inside * (high - low), np.nextafter(low, 1.0))
    return np.float64(min(max(place, 2.0**-53), 1.0 - 2.0**-53))
