"""What the reference implies about each coordinate of U, its levels or that it is a number: input of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray
from dipriv._base.jit import jit

MAX_LEVELS = 1 << 10
"""More levels are merged by quantiles first."""
WRONG_LEVEL = 0.01
"""What a wrong level of a number costs beside the squared difference, as a part of what an unrelated number costs: it
matters for levels that are close together, as 0 and 1 where others are millions."""


@dataclass(frozen=True, eq=False)
class Partition:
    """A partition of [0, 1]: the probabilities of its bins, and what it costs to release bin j for bin i.

    `fidelity` is 1 - E cost / (the same for a release that has nothing to do with the row): the correlation where the
    cost is the squared difference of numbers, and agreement beyond chance (Cohen's kappa) where it is 0 or 1.
    """

    probabilities: FloatArray = field(repr=False)
    cost: FloatArray = field(repr=False)

    @property
    def cuts(self) -> FloatArray:
        """Where the bins end, from 0 on."""
        return np.concatenate([[0.0], np.minimum(np.cumsum(self.probabilities)[:-1], 1.0), [1.0]])

    def fidelity(self, joint: FloatArray) -> float:
        """For these joint probabilities of (bin before, bin after)."""
        unrelated = float(joint.sum(axis=1) @ self.cost @ joint.sum(axis=0))
        return 1.0 - float((joint * self.cost).sum()) / unrelated if unrelated > 0 else 0.0


@dataclass(frozen=True, eq=False)
class UniformCoordinate:
    """One column of U. `probabilities` are those of the levels that fill [0, 1] from left to right.

    Without them the column is a number whose rank is uniform. `values` are the levels' numbers; without them levels
    are categories. The first `missing` levels are kinds of missing values. Where nothing about the row passes through
    the column, it does not matter, and no ε is spent on it. Where levels fill [0, 1] differently from row to row, noise
    is made for ranks, and compared by the levels `in_rows`.
    """

    name: str
    probabilities: FloatArray | None = field(repr=False, default=None)
    values: FloatArray | None = field(repr=False, default=None)
    missing: int = 0
    places: tuple[int, ...] | None = field(repr=False, default=None)
    """Where the schema lists each level that is not a missing value, if not in this order."""
    matters: bool = True
    in_rows: FloatArray | None = field(repr=False, default=None)
    """(rows, levels): the probabilities of the levels in some rows that are drawn from the reference."""

    def bin_of(self, max_bins: int) -> NDArray[np.intp]:
        """The bin of each level where rare neighbours share one, so that there are at most `max_bins`."""
        return _merged(np.ones(1) if self.probabilities is None else self.probabilities, max_bins)

    def partition(self, max_bins: int) -> Partition:
        """At most `max_bins` bins: equal ones, or the levels, where rare neighbours share a bin."""
        if self.probabilities is None:
            return equal_parts(max_bins)
        bin_of = self.bin_of(max_bins)
        pi = np.bincount(bin_of, weights=self.probabilities)
        shares = self.probabilities / np.where(pi > 0, pi, 1.0)[bin_of]
        cost = 1.0 - np.diag(np.bincount(bin_of, weights=shares**2))
        if self.values is not None:
            cost = 2 * WRONG_LEVEL * cost + _squared_differences(
                _points(self.probabilities, self.values, self.missing), shares, bin_of
            )
        return Partition(pi / pi.sum(), np.asarray(cost, dtype=np.float64))

    def partitions_in_rows(self, max_bins: int) -> list[Partition]:
        """The levels as they fill [0, 1] in some rows."""
        rows = () if self.in_rows is None else self.in_rows
        return [replace(self, probabilities=row, in_rows=None).partition(max_bins) for row in rows]


@dataclass(frozen=True, eq=False)
class EncodedColumn:
    """One column of V: its name and, where each unit interval of its line is one level, the values of the levels.

    The first `missing` intervals are kinds of missing values. The values of categories carry no meaning.
    """

    name: str
    values: FloatArray | None = field(repr=False, default=None)
    missing: int = 0
    is_categorical: bool = False
    places: tuple[int, ...] | None = field(repr=False, default=None)
    """Where the schema lists each level that is not a missing value, if not in this order."""
    points: FloatArray | None = field(repr=False, default=None)
    """A value inside each unit interval of the line, where these are levels or bins of numbers in a chain."""

    def with_probabilities(self, probabilities: FloatArray) -> UniformCoordinate:
        """The coordinate of U where the levels have these probabilities in every row; a number without levels."""
        if self.values is None:
            return UniformCoordinate(self.name)
        values = None if self.is_categorical else self.values
        return UniformCoordinate(self.name, probabilities, values, self.missing, self.places)

    def with_probabilities_in_rows(self, in_rows: FloatArray) -> UniformCoordinate:
        """The coordinate of U where the levels have these probabilities in some rows, and others in others."""
        if self.points is None:
            return UniformCoordinate(self.name)
        values = None if self.is_categorical else self.points
        return UniformCoordinate(self.name, None, values, self.missing, in_rows=in_rows)


def without_levels(columns: Sequence[EncodedColumn]) -> list[UniformCoordinate]:
    """Every column counts as a number: in a chain the levels fill [0, 1] differently from row to row."""
    return [UniformCoordinate(column.name) for column in columns]


def equal_parts(count: int) -> Partition:
    """Ranks in bins of the same probability; both ranks are uniform inside their bins."""
    middle = (np.arange(count) + 0.5) / count
    return Partition(np.full(count, 1 / count), (middle[:, np.newaxis] - middle) ** 2 + 1 / (6 * count**2))


def _points(pi: FloatArray, values: FloatArray, missing: int) -> FloatArray:
    """Numbers in standard units, and each kind of missing value at distance 1 in a direction of its own.

    So a missing value in place of a number, or the reverse, costs as much as an unrelated number does.
    """
    present, x = pi[missing:], np.asarray(values[missing:], dtype=np.float64)
    x = x / max(np.abs(x).max(initial=0.0), np.finfo(np.float64).tiny)  # squares of 1e300 would not be finite
    total = present.sum()
    x = x - (present @ x / total if total > 0 else 0.0)
    spread = np.sqrt(present @ x**2 / total) if total > 0 else 0.0
    points = np.zeros((len(pi), 1 + missing))
    points[missing:, 0] = x / spread if spread > 0 else 0.0
    points[:missing, 1:] = np.eye(missing)
    return points


def _squared_differences(points: FloatArray, shares: FloatArray, bin_of: NDArray[np.intp]) -> FloatArray:
    """(k, k): expected squared distances between a point of one bin and one of the other, each by its share."""
    means = np.stack([np.bincount(bin_of, weights=shares * column) for column in points.T], axis=1)
    squares = np.bincount(bin_of, weights=shares * (points**2).sum(axis=1))
    return np.asarray(squares[:, np.newaxis] + squares - 2 * means @ means.T)


def _merged(pi: FloatArray, max_bins: int) -> NDArray[np.intp]:
    """The bin of each level: the two neighbours that are rarest together share one, until there are few enough."""
    if len(pi) > MAX_LEVELS:
        middle = np.cumsum(pi) - pi / 2
        coarse = np.unique((middle * (MAX_LEVELS / pi.sum())).astype(np.int64), return_inverse=True)[1]
        return _merged(np.bincount(coarse, weights=pi).astype(np.float64), max_bins)[coarse]
    return merge_rarest(pi, max_bins)


@jit
def merge_rarest(pi: FloatArray, max_bins: int) -> NDArray[np.intp]:
    """The bins where two neighbours share one, the rarest pair first, until there are few enough."""
    count = len(pi)
    after, before = np.arange(1, count + 1), np.arange(-1, count - 1)
    mass, alive = pi.copy(), np.ones(count, dtype=np.intp)
    pairs = [(mass[i] + mass[i + 1], i, i + 1) for i in range(count - 1)]
    heapify(pairs)
    left = count
    while left > max_bins:
        total, i, j = heappop(pairs)
        if not (alive[i] and alive[j] and after[i] == j and total == mass[i] + mass[j]):
            continue
        mass[i], alive[j], after[i] = total, 0, after[j]
        if after[i] < count:
            before[after[i]] = i
            heappush(pairs, (total + mass[after[i]], i, after[i]))
        if before[i] >= 0:
            heappush(pairs, (mass[before[i]] + total, before[i], i))
        left -= 1
    return np.cumsum(alive) - 1
