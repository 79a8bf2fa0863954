"""One column at a time: labels or frequent values, the step, bins and their noisy histogram, in a few passes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import Counts, FloatArray
from dipriv._base.columns import NULL
from dipriv.codecs.binned import BinnedCodec, RankedLevelsCodec
from dipriv.codecs.ordered_codes import Codes, FloatBitCodes, GridCodes, OrderedCodes
from dipriv.references._learning.counters import (
    ColumnsCounter,
    LevelsCounter,
    LineCounter,
    StepsCounter,
)
from dipriv.references._learning.domain import MAX_ALONE, Domain, around
from dipriv.references._learning.estimates import (
    OF_STEP,
    ROWS_PER_BIN,
    ColumnEstimate,
    Learner,
    settled,
    with_floor,
    with_totals,
)
from dipriv.references._learning.measurements import Accountant, NoiseKind, Spread, pure_for
from dipriv.references._learning.postprocess import (
    CLEAR,
    finest_step,
    masses_between_octaves,
    missing_found,
    occupied,
    quantile,
    single_values,
    without_empty_ends,
)
from dipriv.references._learning.privtree import PrivTree
from dipriv.references._learning.shares import Shares
from dipriv.references._learning.smoothing import piecewise_even, shrunken, smooth_with_peaks
from dipriv.references._learning.times import OF_PERIODS, Times, cost_of_periods
from dipriv.references.protocol import CountableValues, Frequencies

OF_VALUES, OF_TREE = Fraction(1, 4), Fraction(1, 8)
"""Of the budget of a column of numbers: for its frequent values and the cells of its tree."""
TREE_FROM = 150
"""Rows for each unit of a tree's noise from which a tree finds more than even cuts do."""
MIN_RESOLUTION, MIN_RESOLUTION_UNBOUNDED, MAX_RESOLUTION = 4, 16, 64
"""Where nothing is declared values may lie in a narrow range, which few bins would not show."""
OF_GROUPS, OF_GROUPS_IN_NOISE = Fraction(2, 5), Fraction(4, 5)
"""Of a histogram's budget: for counts of whole octaves or groups of levels, which say where the values are. More, where
only the most frequent values will stand out of the noise."""
ROWS_PER_LEVEL = 2.0
"""In standard deviations of the noise: the mean number of rows of a level up to which groups of levels are counted."""
MIN_VALUE_ROWS = 10
"""Values of fewer rows are not looked at, so that most distinct ones stay where the rows are."""
USUAL = 4.0
"""The exponent of a usual magnitude: about 2^4."""
CLEAR_CODE = 0.01
"""How often noise may take a number for one that clearly occurs."""
OTHER = 0.006
"""How often noise alone may make rows of labels that are not published."""


def grows_tree(domain: Domain, kind: NoiseKind, cost: Fraction, rows: int) -> bool:
    """Whether a column of numbers that costs this much has a tree; it finds frequent values, too."""
    return domain.calendar is None and rows * pure_for(kind, cost * OF_TREE) >= 4 * TREE_FROM


def cost_of_bins(domain: Domain, kind: NoiseKind, cost: Fraction, rows: int) -> Fraction:
    """Of a column's cost, the part that the counts of single labels, levels or bins get: from public facts alone."""
    if domain.finds_labels:
        return cost
    if domain.levels is not None:
        return cost * (1 - OF_GROUPS_IN_NOISE) if _counts_groups(domain, kind, cost, rows) else cost
    if domain.calendar is not None:
        return cost_of_periods(domain, cost) * (1 - OF_PERIODS)
    left, resolution = _of_line(domain, kind, cost, rows)
    return left * (1 - _of_groups(resolution))


def _counts_groups(domain: Domain, kind: NoiseKind, cost: Fraction, rows: int) -> bool:
    """Whether groups of levels are counted, too, because single levels do not stand out of the noise."""
    levels = 0 if domain.levels is None else len(domain.levels)
    return domain.many_in_order and rows < ROWS_PER_LEVEL * levels * Spread.of(kind, float(cost)).deviation


def _of_line(domain: Domain, kind: NoiseKind, cost: Fraction, rows: int) -> tuple[Fraction, int]:
    """What the histogram of a line of numbers costs, and its number of bins in an octave."""
    spent = (
        OF_TREE * grows_tree(domain, kind, cost, rows) + OF_STEP * domain.open_step + OF_VALUES * domain.finds_values
    )
    left = cost * (1 - spent)
    power = np.log2(max(1.0, rows / (ROWS_PER_BIN * Spread.of(kind, float(left)).deviation)))
    least = MIN_RESOLUTION if domain.bounded else MIN_RESOLUTION_UNBOUNDED
    return left, int(np.clip(2 ** round(power), least, MAX_RESOLUTION))


def _of_groups(resolution: int) -> Fraction:
    """The part of a histogram's budget for counts of whole octaves."""
    return OF_GROUPS_IN_NOISE if resolution <= MIN_RESOLUTION else OF_GROUPS


def learn_columns(
    domains: Sequence[Domain], rows: CountableValues, shares: Shares, accountant: Accountant
) -> list[ColumnEstimate]:
    """The histograms of all columns, each at its own cost."""
    found = rows.frequencies([domain.name for domain in domains if domain.finds_labels])
    found |= rows.frequencies([domain.name for domain in domains if domain.finds_values], MIN_VALUE_ROWS)
    estimates: dict[str, ColumnEstimate] = {}
    learners: dict[str, Learner] = {}
    kept: dict[str, NDArray[np.intp]] = {}
    for domain, cost in zip(domains, shares.columns, strict=True):
        name = domain.name
        if domain.finds_labels:
            kept[name], estimates[name] = _found_labels(
                domain, found[name], cost, shares.chance, accountant, rows.n_rows
            )
        elif domain.levels is not None:
            learners[name] = _Levels(domain, cost, accountant, rows.n_rows)
        elif domain.calendar is not None:
            learners[name] = Times(domain, cost, accountant, rows.n_rows)
        else:
            learners[name] = numbers = _Numbers(domain, cost, accountant, rows.n_rows)
            if domain.finds_values:
                numbers.find_values(found[name], shares.chance)
    rows.keep_labels(kept)
    while waiting := [learner for learner in learners.values() if not learner.ready]:
        totals = rows.count(ColumnsCounter(tuple(learner.counter() for learner in waiting)))
        for learner, counts in zip(waiting, totals, strict=True):
            learner.take(counts)
    estimates |= {name: learner.estimate(rows.n_rows) for name, learner in learners.items()}
    return [estimates[domain.name] for domain in domains]


def _found_labels(
    domain: Domain, found: Frequencies, cost: Fraction, chance: Fraction, accountant: Accountant, rows: int
) -> tuple[NDArray[np.intp], ColumnEstimate]:
    """Labels that are found under (ε, δ): which are kept, and the counts of one for all others and of the kept ones."""
    nulls = np.full(len(domain.missing), rows - int(found.counts.sum()) - found.others, dtype=np.int64)
    frequent = accountant.frequent(found.counts, nulls, cost, chance)
    spread = frequent.spread
    left = rows - float(frequent.counts.sum()) - float(missing_found(frequent.fixed, spread).sum())
    noise = spread.deviation * np.sqrt(1.0 + len(frequent.kept))
    few = len(frequent.kept) and left < noise * quantile(Spread("gaussian", 1.0), OTHER)
    noisy = np.concatenate([[0.0 if few else max(left, 0.0)], frequent.counts])
    absent, histogram, missing = settled(frequent.fixed, noisy, spread, rows, domain.missing)
    order = np.argsort(-histogram, kind="stable")
    codec = RankedLevelsCodec(np.arange(len(histogram), dtype=domain.column.storage.dtype), order, missing)
    return frequent.kept, ColumnEstimate(domain, codec, np.concatenate([absent, histogram[order]]), spread)


@dataclass
class _Levels:
    """Listed levels: one histogram, and one of groups of levels where only their totals stand out of the noise."""

    domain: Domain
    cost: Fraction
    accountant: Accountant = field(repr=False)
    rows: int
    noisy: FloatArray | None = field(repr=False, default=None)
    spread: Spread = field(default_factory=lambda: Spread("laplace", 0.0))

    @property
    def ready(self) -> bool:
        return self.noisy is not None

    @property
    def _codec(self) -> RankedLevelsCodec:
        levels = self.domain.levels if self.domain.levels is not None else np.empty(0)
        return RankedLevelsCodec(levels, np.arange(len(levels)), self.domain.missing)

    @property
    def _groups(self) -> NDArray[np.intp]:
        """Groups of about √k consecutive levels."""
        count = len(self._codec.levels)
        return np.arange(count, dtype=np.intp) // max(2, round(math.sqrt(count)))

    def counter(self) -> LevelsCounter:
        return LevelsCounter(self.domain, self._codec)

    @property
    def _in_groups(self) -> bool:
        return _counts_groups(self.domain, self.accountant.kind, self.cost, self.rows)

    def take(self, counts: Counts) -> None:
        kinds = len(self.domain.missing)
        if self._in_groups:
            measured = _two_resolutions(
                counts[kinds:], self._groups, counts[:kinds], self.cost, OF_GROUPS_IN_NOISE, self.accountant
            )
            self.noisy, self.spread = np.concatenate([measured.absent, measured.bins]), measured.spread
        else:
            self.noisy, self.spread = self.accountant.noisy_counts(counts, self.cost)

    def estimate(self, rows: int) -> ColumnEstimate:
        assert self.noisy is not None  # noqa: S101
        kinds = len(self.domain.missing)
        own = self.noisy[kinds:]
        ordered = self.domain.ordered
        smooth = own if ordered else shrunken(own, self.spread)
        if self.domain.many_in_order:
            smooth = smooth_with_peaks(own, self.spread)
        if self._in_groups:
            smooth = with_totals(smooth, own, self._groups)
        absent, histogram, missing = settled(self.noisy[:kinds], smooth, self.spread, rows, self.domain.missing)
        if self.domain.has_no_label:  # no label at all: nothing but nulls
            absent, histogram, missing = np.array([float(rows)]), np.zeros(1), (NULL,)
        floor = 0.0
        if self.domain.lists_levels and not self.domain.has_no_label:
            histogram, floor = with_floor(histogram, np.ones(len(histogram), dtype=bool), self.spread, rows)
        order = np.arange(len(histogram)) if ordered else np.argsort(-histogram, kind="stable")
        codec = RankedLevelsCodec(self._codec.levels, order, missing)
        return ColumnEstimate(self.domain, codec, np.concatenate([absent, histogram[order]]), self.spread, floor=floor)


@dataclass
class _Numbers:
    """A line of numbers: frequent values, the step if it is open, a tree where rows allow it, then one histogram."""

    domain: Domain
    cost: Fraction
    accountant: Accountant = field(repr=False)
    rows: int
    step: int = 0
    line: OrderedCodes | None = None
    tree: PrivTree | None = None
    values: NDArray[np.generic] = field(repr=False, default_factory=lambda: np.empty(0))
    boundaries: Codes = field(repr=False, default_factory=lambda: np.empty(0, dtype=np.int64))
    known: Counts = field(repr=False, default_factory=lambda: np.empty(0, dtype=np.int64))
    at: Codes = field(repr=False, default_factory=lambda: np.empty(0, dtype=np.int64))
    """known[i] values, of `present`, are below the code at[i]."""
    present: int = 0
    missing: Counts = field(repr=False, default_factory=lambda: np.empty(0, dtype=np.int64))

    def __post_init__(self) -> None:
        self._of_tree = OF_TREE if grows_tree(self.domain, self.accountant.kind, self.cost, self.rows) else Fraction(0)
        self._left, self._resolution = _of_line(self.domain, self.accountant.kind, self.cost, self.rows)

    @property
    def ready(self) -> bool:
        return len(self.at) > 0 and (self.tree is None or self.tree.grown)

    def find_values(self, found: Frequencies, chance: Fraction) -> None:
        """Frequent exact values become bins of their own."""
        nothing = np.empty(0, dtype=np.int64)
        cost = self.cost * OF_VALUES
        self.values = found.values[self.accountant.frequent(found.counts, nothing, cost, chance, MIN_VALUE_ROWS).kept]

    def counter(self) -> StepsCounter | LineCounter:
        if self.line is None and not self.domain.open_step:
            self._settle_on(0)
        if self.line is None:
            return StepsCounter(self.domain)
        requested = self.tree.boundaries() if self.tree is not None else np.empty(0, dtype=np.int64)
        fixed = [] if len(self.at) else [self._fixed(self.line)]
        self.boundaries = np.unique(np.concatenate([requested, *fixed]))
        return LineCounter(self.domain, self.line, self.boundaries)

    def take(self, counts: Counts) -> None:
        if self.line is None:
            noisy, spread = self.accountant.noisy_counts(counts, self.cost * OF_STEP)
            step = finest_step(noisy, spread, self.rows)
            real = self.domain.column.storage.family == "real"
            return self._settle_on(step if real else min(step, len(self.domain.steps) - 1))
        size = len(self.boundaries)
        self.present, self.missing = int(counts[size]), counts[size + 1 :]
        if self.tree is not None:
            self.tree.grow(self.boundaries, counts[:size], self.present)
        at = np.concatenate([self.at, self.boundaries])
        self.at, first = np.unique(at, return_index=True)
        self.known = np.concatenate([self.known, counts[:size]])[first]
        return None

    def _settle_on(self, step: int) -> None:
        """The line is known: the tree may start."""
        self.step, self.line = step, self.domain.line(step)
        if self._of_tree:
            epsilon = pure_for(self.accountant.kind, self.cost * self._of_tree)
            self.tree = PrivTree(self.line.first, self.line.last, self.line.octaves, self.accountant, epsilon)

    def _fixed(self, line: OrderedCodes) -> Codes:
        """Codes at which bins start in any case."""
        return np.union1d(self.domain.cuts(line, self._resolution), around(line, self.values))

    def estimate(self, rows: int) -> ColumnEstimate:
        assert self.line is not None  # noqa: S101
        line, octaves = self.line, self.line.octaves
        leaves = self.tree.leaves if self.tree is not None else np.empty(0, dtype=np.int64)
        starts = np.unique(np.concatenate([leaves, self._fixed(line)]))
        exact = np.diff(np.append(self.known[np.searchsorted(self.at, starts)], self.present))
        octave_of = np.searchsorted(octaves.starts, starts, side="right") - 1
        part = _of_groups(self._resolution)
        measured = _two_resolutions(exact, octave_of, self.missing, self._left, part, self.accountant)
        absent, spread, by_octave = measured.absent, measured.spread, measured.groups
        nulls = float(missing_found(absent, spread).sum())
        needed = nulls == 0.0 or nulls < rows - CLEAR * spread.scale
        taken = occupied(octaves, by_octave, measured.deviations, spread.kind, needed, USUAL)
        noisy = measured.bins
        histogram = np.zeros(len(starts))
        sizes = np.append(starts[1:], 0).astype(np.uint64) - starts.astype(np.uint64)
        sizes[-1] = np.uint64((line.last - int(starts[-1]) + 1) % 2**64)
        there = taken[octave_of]
        widths = masses_between_octaves(octaves, line.last, starts, sizes, octave_of, by_octave, measured.deviations)
        histogram[there] = self._smoothed(
            line, starts[there], sizes[there], widths[there], octave_of[there], noisy[there], spread
        )
        kept = there.copy()
        kept[there] = without_empty_ends(octaves, octave_of[there], histogram[there], widths[there], spread.deviation)
        histogram = _moved_inside(histogram, kept, octave_of)
        absent, own, missing = settled(absent, histogram[kept], spread, rows, self.domain.missing)
        histogram = np.zeros(len(starts))
        histogram[kept] = own
        if isinstance(line, FloatBitCodes):
            starts, sizes = single_values(line, starts, sizes, histogram, spread)
        histogram, floor = with_floor(histogram, self._likely(line, starts, sizes, histogram, spread), spread, rows)
        there = histogram > 0
        if not np.any(there):  # nothing but missing values: a cell without mass, for values to stand in
            there[-1] = True
        codec = BinnedCodec(line, starts[there], sizes[there], missing)
        return ColumnEstimate(self.domain, codec, np.concatenate([absent, histogram[there]]), spread, self.step, floor)

    def _likely(
        self, line: OrderedCodes, starts: Codes, sizes: NDArray[np.uint64], histogram: FloatArray, spread: Spread
    ) -> NDArray[np.bool_]:
        """Whole numbers that are likely to be rare codes: inside a small range, most numbers of which clearly occur.

        Numbers between the ends of age groups are not: few numbers of that range occur.
        """
        clear = np.flatnonzero(histogram > quantile(spread, CLEAR_CODE))
        likely = np.zeros(len(histogram), dtype=bool)
        if len(clear) and isinstance(line, GridCodes) and self.domain.column.storage.family != "temporal":
            inside = slice(int(clear[0]), int(clear[-1]) + 1)
            count = inside.stop - inside.start
            alone = bool(np.all(sizes[inside] == 1)) and count <= MAX_ALONE
            is_whole = bool(np.all(line.to_values(starts[inside]) % 1 == 0))
            likely[inside] = alone and is_whole and len(clear) > count / 2
        return likely

    def _smoothed(
        self,
        line: OrderedCodes,
        starts: Codes,
        sizes: NDArray[np.uint64],
        widths: FloatArray,
        octave_of: NDArray[np.intp],
        noisy: FloatArray,
        spread: Spread,
    ) -> FloatArray:
        """Bins between frequent values are smoothed, octave by octave; frequent values stay as they are."""
        values = np.concatenate([line.to_codes(self.values), line.to_codes(self.domain.atoms)])
        alone = np.isin(starts, values) & (sizes == 1)
        rest = ~alone
        smooth = noisy.copy()
        smooth[rest] = _smooth(noisy[rest], widths[rest], octave_of[rest], spread)
        return smooth


def _smooth(noisy: FloatArray, widths: FloatArray, group_of: NDArray[np.intp], spread: Spread) -> FloatArray:
    """Smoothed inside each group, whose total stays."""
    smooth = noisy.copy()
    for group in np.unique(group_of):
        inside = group_of == group
        smooth[inside] = piecewise_even(noisy[inside], widths[inside], spread, len(noisy))
    return with_totals(smooth, noisy, group_of)


def _moved_inside(histogram: FloatArray, kept: NDArray[np.bool_], octave_of: NDArray[np.intp]) -> FloatArray:
    """The counts of bins that are not kept go to those of the same octave that are, in proportion."""
    size = int(octave_of.max()) + 1
    totals = np.bincount(octave_of, histogram, minlength=size)
    inside = np.bincount(octave_of[kept], histogram[kept], minlength=size)
    factors = np.divide(totals, inside, out=np.ones(size), where=inside > 0)
    return np.where(kept, histogram * factors[octave_of], 0.0)


@dataclass(frozen=True, eq=False)
class _Measured:
    """Bins and groups of them, both measured."""

    absent: FloatArray
    """Kinds of missing cells."""
    bins: FloatArray
    spread: Spread
    groups: FloatArray
    deviations: FloatArray
    """Standard deviations of the groups' noise."""


def _two_resolutions(
    counts: Counts, group_of: NDArray[np.intp], missing: Counts, cost: Fraction, part: Fraction, accountant: Accountant
) -> _Measured:
    """Noisy counts of bins that agree with noisy counts of groups of bins: least squares.

    The noise of a sum of many bins is large; a second histogram, of groups, costs little and says where the rows are.
    """
    kinds = len(missing)
    totals = np.bincount(group_of, counts).astype(np.int64)
    groups, coarse = accountant.noisy_counts(np.concatenate([missing, totals]), cost * part)
    bins, spread = accountant.noisy_counts(np.concatenate([missing, counts]), cost * (1 - part))
    share = spread.deviation**2 / (coarse.deviation**2 + spread.deviation**2)
    absent = share * groups[:kinds] + (1.0 - share) * bins[:kinds]
    cells = np.bincount(group_of)
    variance = cells * spread.deviation**2
    excess = groups[kinds:] - np.bincount(group_of, bins[kinds:])
    each = excess * variance / (variance + coarse.deviation**2) / np.maximum(cells, 1)
    agreed = bins[kinds:] + each[group_of]
    deviations = np.sqrt(variance * coarse.deviation**2 / (variance + coarse.deviation**2))
    return _Measured(absent, agreed, spread, np.bincount(group_of, agreed).astype(np.float64), deviations)
