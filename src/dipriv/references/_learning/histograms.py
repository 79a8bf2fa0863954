"""One column at a time: its step, its bins and their noisy histogram, measured in a few passes over the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import Counts, FloatArray
from dipriv._base.columns import NULL
from dipriv.codecs.binned import BinnedCodec, RankedLevelsCodec
from dipriv.codecs.ordered_codes import Codes, FloatBitCodes, OrderedCodes
from dipriv.references._learning.counters import (
    ColumnCounter,
    ColumnsCounter,
    LevelsCounter,
    LineCounter,
    StatesCodec,
    StepsCounter,
)
from dipriv.references._learning.domain import Domain
from dipriv.references._learning.measurements import Accountant
from dipriv.references._learning.postprocess import (
    CLEAR,
    finest_step,
    missing_found,
    occupied,
    single_values,
    to_total,
    trimmed,
    up_to_bounds,
    with_minimum,
    without_isolated_bins,
)
from dipriv.references._learning.privtree import PrivTree
from dipriv.references.protocol import CountableValues

OF_TWO_LEVELS, OF_LEVELS, OF_NUMBERS = Fraction(1, 4), Fraction(1), Fraction(3)
"""Weights of columns: two levels need little, and of numbers the cells must be found, too."""
OF_STEP, OF_TREE = Fraction(1, 6), Fraction(1, 5)
"""Of a column's budget: for finding its step, if that is open, and for its tree."""
MIN_LEVEL_ROWS, MAX_RARE_SHARE = 5.0, 0.01
"""A listed level has about five rows at least, but the rare ones together no more than a hundredth of all rows."""


@dataclass(frozen=True, eq=False)
class ColumnEstimate:
    """A column's codec, its histogram, which adds up to the number of rows, its noise scale and its step."""

    domain: Domain
    codec: StatesCodec = field(repr=False)
    histogram: FloatArray = field(repr=False)
    scale: float
    step: int = 0
    least: float = 0.0
    """The count that every state has at least, where states are levels."""


class _Learner(Protocol):
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


def weight(domain: Domain) -> Fraction:
    """How much of the budget a column gets, beside the others: by public facts."""
    if domain.levels is None:
        return OF_NUMBERS
    return OF_LEVELS if len(domain.levels) > 2 else OF_TWO_LEVELS


def learn_columns(
    domains: Sequence[Domain], rows: CountableValues, epsilon: Fraction, accountant: Accountant
) -> list[ColumnEstimate]:
    """The histograms of all columns, together under ε."""
    weights = [weight(domain) for domain in domains]
    budgets = [epsilon * own / sum(weights) for own in weights]
    columns: list[_Learner] = [
        _Levels(domain, budget, accountant)
        if domain.levels is not None
        else _Numbers(domain, budget, accountant, rows.n_rows)
        for domain, budget in zip(domains, budgets, strict=True)
    ]
    while waiting := [column for column in columns if not column.ready]:
        totals = rows.count(ColumnsCounter(tuple(column.counter() for column in waiting)))
        for column, counts in zip(waiting, totals, strict=True):
            column.take(counts)
    return [column.estimate(rows.n_rows) for column in columns]


@dataclass
class _Levels:
    """Listed levels: one histogram."""

    domain: Domain
    epsilon: Fraction
    accountant: Accountant = field(repr=False)
    noisy: FloatArray | None = field(repr=False, default=None)
    scale: float = 0.0

    @property
    def ready(self) -> bool:
        return self.noisy is not None

    @property
    def _codec(self) -> RankedLevelsCodec:
        levels = self.domain.levels if self.domain.levels is not None else np.empty(0)
        return RankedLevelsCodec(levels, np.arange(len(levels)), self.domain.missing)

    def counter(self) -> LevelsCounter:
        return LevelsCounter(self.domain, self._codec)

    def take(self, counts: Counts) -> None:
        self.noisy, self.scale = self.accountant.noisy_counts(counts, self.epsilon)

    def estimate(self, rows: int) -> ColumnEstimate:
        assert self.noisy is not None  # noqa: S101
        kinds = len(self.domain.missing)
        absent, histogram, missing = _settle(
            self.noisy[:kinds], self.noisy[kinds:], self.scale, rows, self.domain.missing
        )
        if self.domain.has_no_label:  # no label at all: nothing but nulls
            absent, histogram, missing = np.array([float(rows)]), np.zeros(1), (NULL,)
        least = min(MIN_LEVEL_ROWS, MAX_RARE_SHARE * rows / len(histogram)) if histogram.any() else 0.0
        histogram = with_minimum(histogram, least)
        order = np.arange(len(histogram)) if self.domain.ordered else np.argsort(-histogram, kind="stable")
        codec = RankedLevelsCodec(self._codec.levels, order, missing)
        return ColumnEstimate(self.domain, codec, np.concatenate([absent, histogram[order]]), self.scale, least=least)


@dataclass
class _Numbers:
    """A line of numbers: the step if it is open, then a tree, then one histogram."""

    domain: Domain
    epsilon: Fraction
    accountant: Accountant = field(repr=False)
    rows: int
    step: int = 0
    line: OrderedCodes | None = None
    tree: PrivTree | None = None
    boundaries: Codes = field(repr=False, default_factory=lambda: np.empty(0, dtype=np.int64))
    known: Counts = field(repr=False, default_factory=lambda: np.empty(0, dtype=np.int64))
    at: Codes = field(repr=False, default_factory=lambda: np.empty(0, dtype=np.int64))
    """known[i] values, of `present`, are below the code at[i]."""
    present: int = 0
    missing: Counts = field(repr=False, default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def ready(self) -> bool:
        return self.tree is not None and self.tree.grown

    def counter(self) -> StepsCounter | LineCounter:
        if self.line is None and not self.domain.open_step:
            self._settle_on(0)
        if self.tree is None or self.line is None:
            return StepsCounter(self.domain)
        requested = self.tree.boundaries()
        fixed = [self.line.octaves.starts, self.domain.cuts(self.line)] if not len(self.at) else []
        self.boundaries = np.unique(np.concatenate([requested, *fixed]))
        return LineCounter(self.domain, self.line, self.boundaries)

    def take(self, counts: Counts) -> None:
        if self.tree is None:
            noisy, scale = self.accountant.noisy_counts(counts, self.epsilon * OF_STEP)
            step = finest_step(noisy, scale, self.rows)
            real = self.domain.column.storage.family == "real"
            return self._settle_on(step if real else min(step, len(self.domain.steps) - 1))
        size = len(self.boundaries)
        self.present, self.missing = int(counts[size]), counts[size + 1 :]
        self.tree.grow(self.boundaries, counts[:size], self.present)
        at = np.concatenate([self.at, self.boundaries])
        self.at, first = np.unique(at, return_index=True)
        self.known = np.concatenate([self.known, counts[:size]])[first]
        return None

    def _settle_on(self, step: int) -> None:
        """The line is known: the tree may start."""
        self.step, self.line = step, self.domain.line(step)
        budget = self.epsilon * OF_TREE
        self.tree = PrivTree(self.line.first, self.line.last, self.line.octaves, self.accountant, budget)

    def estimate(self, rows: int) -> ColumnEstimate:
        assert self.tree is not None  # noqa: S101
        assert self.line is not None  # noqa: S101
        octaves = self.line.octaves
        starts = np.unique(np.concatenate([self.tree.leaves, octaves.starts, self.domain.cuts(self.line)]))
        exact = np.diff(np.append(self.known[np.searchsorted(self.at, starts)], self.present))
        left = self.epsilon * (1 - OF_TREE - (OF_STEP if self.domain.open_step else 0))
        noisy, scale = self.accountant.noisy_counts(np.concatenate([self.missing, exact]), left)
        kinds = len(self.missing)
        octave_of = np.searchsorted(octaves.starts, starts, side="right") - 1
        nulls = float(missing_found(noisy[:kinds], scale).sum())
        needed = nulls == 0.0 or nulls < rows - CLEAR * scale
        taken = occupied(octaves, octave_of, noisy[kinds:], scale, needed, self.domain.usual(self.line))
        taken = up_to_bounds(octaves, taken, self.domain.bounded)
        kept, counts = trimmed(octaves, octave_of, noisy[kinds:], taken, scale, self.domain.bounded)
        histogram = np.zeros(len(starts))
        sizes = np.append(starts[1:], 0).astype(np.uint64) - starts.astype(np.uint64)
        sizes[-1] = np.uint64((self.line.last - int(starts[-1]) + 1) % 2**64)
        clean = without_isolated_bins(octave_of[kept], counts[kept], sizes[kept], scale)
        absent, histogram[kept], missing = _settle(noisy[:kinds], clean, scale, rows, self.domain.missing)
        if isinstance(self.line, FloatBitCodes):
            starts, sizes = single_values(self.line, starts, sizes, histogram, scale)
        there = histogram > 0
        if not np.any(there):  # nothing but missing values: a cell without mass, for values to stand in
            there[-1] = True
        codec = BinnedCodec(self.line, starts[there], sizes[there], missing)
        return ColumnEstimate(self.domain, codec, np.concatenate([absent, histogram[there]]), scale, self.step)


def _settle(
    absent: FloatArray, histogram: FloatArray, scale: float, rows: int, kinds: tuple[int, ...]
) -> tuple[FloatArray, FloatArray, tuple[int, ...]]:
    """Counts that add up to the rows: of the kinds of missing cells that were found, and of the rest."""
    found = missing_found(absent, scale)
    there: NDArray[np.bool_] = found > 0
    settled = to_total(np.concatenate([found[there], histogram]), float(rows))
    count = int(there.sum())
    return settled[:count], settled[count:], tuple(np.array(kinds, dtype=np.int64)[there].tolist())
