"""A column's histogram, and what all ways of making one share."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import Counts, FloatArray
from dipriv.references._learning.counters import ColumnCounter, StatesCodec
from dipriv.references._learning.domain import Domain
from dipriv.references._learning.measurements import Spread
from dipriv.references._learning.postprocess import missing_found, to_total

OF_STEP = Fraction(1, 20)
"""Of the budget of a column of numbers: for finding its step."""
ROWS_PER_BIN = 16.0
"""In standard deviations of the noise: about how many rows a bin needs to be worth dividing."""

FLOOR, OF_ROWS = 0.15, 1 / 200
"""In standard deviations of the noise: the rows that a state has at least that is known to exist, rare as it may be.
All such rows of a column are at most this part of its rows."""


@dataclass(frozen=True, eq=False)
class ColumnEstimate:
    """A column's codec, its histogram, which adds up to the number of rows, its noise and its step."""

    domain: Domain
    codec: StatesCodec = field(repr=False)
    histogram: FloatArray = field(repr=False)
    spread: Spread
    step: int = 0
    floor: float = 0.0
    """States with no more rows than this were not found, but are known or likely to exist."""

    @property
    def found(self) -> FloatArray:
        """The histogram of the states that were found."""
        return np.where(self.histogram > self.floor, self.histogram, 0.0)


class Learner(Protocol):
    """Learns one column in a few passes over the rows."""

    @property
    def ready(self) -> bool:
        """Whether no further pass is needed."""
        ...

    def counter(self) -> ColumnCounter:
        """Before a pass: what to count."""
        ...

    def take(self, counts: Counts) -> None:
        """After a pass: the counts of all rows."""
        ...

    def estimate(self, rows: int) -> ColumnEstimate:
        """The column's histogram, when it is ready."""
        ...


def with_totals(smooth: FloatArray, noisy: FloatArray, group_of: NDArray[np.intp]) -> FloatArray:
    """Made non-negative, with the totals of the groups, which were measured by themselves."""
    agreed = np.zeros(len(noisy))
    for group in np.unique(group_of):
        inside = group_of == group
        if (total := float(noisy[inside].sum())) > 0:
            agreed[inside] = to_total(smooth[inside], total)
    return agreed


def with_floor(histogram: FloatArray, known: NDArray[np.bool_], spread: Spread, rows: int) -> tuple[FloatArray, float]:
    """Each `known` state with a few rows at least, taken from the others in proportion; and how many these are.

    A count is not negative, so its mean given a noisy count near zero is a part of the noise's deviation, never zero.
    """
    floor = min(FLOOR * spread.deviation, OF_ROWS * rows / max(1, int(known.sum())))
    low = known & (histogram <= floor)
    left, others = float(histogram.sum()) - floor * float(low.sum()), float(histogram[~low].sum())
    if not np.any(low) or left <= 0 or others <= 0:
        return histogram, 0.0
    return np.where(low, floor, histogram * (left / others)), floor


def settled(
    absent: FloatArray, histogram: FloatArray, spread: Spread, rows: int, kinds: tuple[int, ...]
) -> tuple[FloatArray, FloatArray, tuple[int, ...]]:
    """Counts that add up to the rows: of the kinds of missing cells that were found, and of the rest."""
    found = missing_found(absent, spread)
    there: NDArray[np.bool_] = found > 0
    counts = to_total(np.concatenate([found[there], histogram]), float(rows))
    count = int(there.sum())
    return counts[:count], counts[count:], tuple(np.array(kinds, dtype=np.int64)[there].tolist())
