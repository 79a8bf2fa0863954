"""PrivTree (Zhang, Xiao, Xie 2016) on a line of codes: cells that adapt to the data, found under ε.

A node is split while its count, less δ for each level above it and clipped to at least -δ, is above zero after noise of
scale λ, where δ = λ ln 2. The noise does not grow with the depth of the tree. With neighbours that differ in one row
λ = 4/ε suffices: see docs/theory/private-reference.md for the proof, with discrete noise.

The tree requests counts at boundaries of many levels in one pass, so that a file is read a few times only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import Counts
from dipriv.codecs.ordered_codes import Codes, Octaves
from dipriv.references._learning.measurements import Accountant, clamp_scale

LN2_ABOVE = Fraction(693_147_181, 10**9)
MAX_CELLS = 1 << 14
MIN_LEVELS = 3
"""Levels that a pass counts below the nodes that wait, even where they have more cells than `MAX_CELLS`."""
MIN_SCALE = 2
"""λ is at least two counts, which the proof needs; a larger ε is not spent."""
DIGITS = 20
SLACK = 1 + Fraction(1, 1 << 16)
"""For the noise being discrete: e^(1/t) <= SLACK for scales t of 2^17 steps and more."""


@dataclass
class PrivTree:
    """A tree that grows by some levels each time the counts that it requests are supplied."""

    first: int
    last: int
    octaves: Octaves = field(repr=False)
    accountant: Accountant = field(repr=False)
    epsilon: Fraction
    depth: int = 0

    def __post_init__(self) -> None:
        scale = max(Fraction(MIN_SCALE), 4 * SLACK / self.epsilon)
        self._digits = DIGITS
        while math.ceil(scale * (1 << self._digits)) > 1 << 50 and self._digits > 0:
            self._digits -= 1
        self._scale = clamp_scale(math.ceil(scale * (1 << self._digits)))
        self._bias = math.ceil(self._scale * LN2_ABOVE)
        self.accountant.spend(self.accountant.cost_of_pure(4 * SLACK * (1 << self._digits) / self._scale))
        self._low = np.array([self.first], dtype=np.int64)
        self._high = np.array([self.last], dtype=np.int64)
        self._leaves: list[Codes] = []

    @property
    def grown(self) -> bool:
        """Whether no node waits for counts."""
        return len(self._low) == 0

    @property
    def leaves(self) -> Codes:
        """Where the leaves start, in order."""
        return np.sort(np.concatenate(self._leaves)) if self._leaves else self._low

    def boundaries(self) -> Codes:
        """Codes below which counts are needed; all of them, to be brought to `grow` as cumulative counts."""
        self._levels: list[tuple[Codes, Codes]] = [(self._low, self._high)]
        self._splits: list[Codes] = []
        low, high = self._low, self._high
        limit = max(MAX_CELLS, len(low) << MIN_LEVELS)
        while len(low) * 2 <= limit:
            wide = high > low
            if not np.any(wide):
                break
            middle = low.copy()
            middle[wide] = self.octaves.middle(low[wide], high[wide])
            self._splits.append(middle)
            lows, highs = np.stack([low, middle], axis=1)[wide], np.stack([middle - 1, high], axis=1)[wide]
            low, high = lows.ravel(), highs.ravel()
            self._levels.append((low, high))
        ends = self._high[self._high < self.last] + 1
        return np.unique(np.concatenate([ends, *(low for low, _ in self._levels)]))

    def grow(self, boundaries: Codes, below: Counts, total: int) -> None:
        """Decide as many levels as were requested. below[i] is how many codes are less than boundaries[i]."""
        cumulative = np.append(below, total)
        waiting = np.arange(len(self._low))
        for lows, highs in self._levels[: len(self._splits)]:
            number = np.cumsum(highs > lows) - 1  # among the nodes that can be split
            low, high = lows[waiting], highs[waiting]
            counts = cumulative[np.searchsorted(boundaries, high, side="right")]
            counts = counts - cumulative[np.searchsorted(boundaries, low)]
            split = (high > low) & self._splits_now(counts)
            self._leaves.append(low[~split])
            parents = number[waiting[split]]
            waiting = np.stack([2 * parents, 2 * parents + 1], axis=1).ravel()
            self.depth += 1
            if not len(waiting):
                break
        low, high = self._levels[-1]
        self._low, self._high = (low[waiting], high[waiting]) if len(waiting) else (low[:0], high[:0])
        if not self._splits:  # nothing is wider than one code
            self._leaves.append(self._low)
            self._low = self._low[:0]

    def _splits_now(self, counts: Counts) -> NDArray[np.bool_]:
        """Which nodes of this level are split: b + noise > 0 with b = max(-δ, count - depth δ)."""
        biased = (counts.astype(np.int64) << self._digits) - self.depth * self._bias
        split: NDArray[np.bool_] = (
            np.maximum(biased, -self._bias) + self.accountant.laplace(len(counts), self._scale) > 0
        )
        return split
