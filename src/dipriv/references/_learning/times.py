"""A column of dates or times: noisy counts of calendar periods, finer ones only inside those with enough rows.

Years first, then months of the years that have rows, then days, hours, minutes. Each level is one histogram of disjoint
cells. A period that noise explains is taken as empty, so that no date leaves the years that rows have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import Counts, FloatArray
from dipriv._base.jit import jit
from dipriv.codecs.binned import BinnedCodec
from dipriv.codecs.calendar import UNITS, Calendar, Periods
from dipriv.codecs.ordered_codes import Codes, GridCodes
from dipriv.references._learning.counters import LineCounter, StepsCounter
from dipriv.references._learning.domain import Domain, around
from dipriv.references._learning.estimates import OF_STEP, ROWS_PER_BIN, ColumnEstimate, settled
from dipriv.references._learning.measurements import Accountant, Spread
from dipriv.references._learning.postprocess import CLEAR, FAR, finest_step, missing_found, to_total
from dipriv.references._learning.smoothing import smooth_with_peaks

OF_PERIODS = Fraction(2, 5)
"""Of the budget: for the counts of the first periods. Each finer level has half of what is left, the last one all."""
RUN = 8.0
"""In units of log-likelihood: what a run of periods costs. A run that is separate from others costs the logarithm of
the number of all periods more, and one that continues another that of its own: noise makes a run in about 1 of 1,000
columns (Gaussian) or of 100 (Laplace), and long ones less often."""
MAX_PARTS = 1 << 15
"""Of one level."""
_PARTS = dict(zip(UNITS, (10, 10, 12, 31, 24, 60, 60, 1000, 1000, 1000, 1), strict=True))
"""How many parts a unit has at most."""


def cost_of_periods(domain: Domain, cost: Fraction) -> Fraction:
    """Of a column's cost, what all counts of periods have."""
    return cost * (1 - OF_STEP * domain.open_step)


@dataclass(frozen=True, eq=False)
class _Level:
    """Periods to be counted. `of` numbers their groups, whose totals are known with these variances."""

    periods: Periods
    of: NDArray[np.intp]
    totals: FloatArray
    variances: FloatArray


@dataclass
class Times:
    """The step if it is open, then one level after the other, as long as some period has enough rows."""

    domain: Domain
    cost: Fraction
    accountant: Accountant = field(repr=False)
    rows: int
    step: int = 0
    line: GridCodes | None = None
    grown: bool = False
    boundaries: Codes = field(repr=False, default_factory=lambda: np.empty(0, dtype=np.int64))
    at: Codes = field(repr=False, default_factory=lambda: np.empty(0, dtype=np.int64))
    known: Counts = field(repr=False, default_factory=lambda: np.empty(0, dtype=np.int64))
    """known[i] values, of `present`, are below the code at[i]."""
    present: int = 0
    missing: Counts = field(repr=False, default_factory=lambda: np.empty(0, dtype=np.int64))

    def __post_init__(self) -> None:
        self._left = cost_of_periods(self.domain, self.cost)
        self._absent, self._precision = np.zeros(len(self.domain.missing)), 0.0
        self._found: list[tuple[Periods, FloatArray, Spread]] = []
        self._level: _Level | None = None

    @property
    def ready(self) -> bool:
        return self.grown

    @property
    def _calendar(self) -> Calendar:
        assert self.domain.calendar is not None  # noqa: S101
        return self.domain.calendar

    def counter(self) -> StepsCounter | LineCounter:
        if self.line is None and not self.domain.open_step:
            self._settle_on(0)
        if self.line is None or self._level is None:
            return StepsCounter(self.domain)
        wanted = [self._level.periods.starts]
        if int(np.sum(_most_parts(self._level.periods))) <= MAX_PARTS:  # spares a pass
            wanted.append(self._calendar.parts(self.line, self._level.periods)[0].starts)
        self.boundaries = np.unique(np.concatenate(wanted))
        return LineCounter(self.domain, self.line, self.boundaries)

    def take(self, counts: Counts) -> None:
        if self.line is None:
            noisy, spread = self.accountant.noisy_counts(counts, self.cost * OF_STEP)
            return self._settle_on(min(finest_step(noisy, spread, self.rows), len(self.domain.steps) - 1))
        size = len(self.boundaries)
        self.present, self.missing = int(counts[size]), counts[size + 1 :]
        self.at, first = np.unique(np.concatenate([self.at, self.boundaries]), return_index=True)
        self.known = np.concatenate([self.known, counts[:size]])[first]
        while self._level is not None and np.all(np.isin(self._level.periods.starts, self.at)):
            self._level = self._measured(self.line, self._level)
        self.grown = self._level is None
        return None

    def _settle_on(self, step: int) -> None:
        line = self.domain.line(step)
        assert isinstance(line, GridCodes)  # noqa: S101
        self.step, self.line = step, line
        also = around(line, np.array(self.domain.boundaries)) if self.domain.boundaries else np.empty(0, np.int64)
        periods = self._calendar.periods(line, also)
        self._level = _Level(periods, np.zeros(len(periods), dtype=np.intp), np.empty(0), np.empty(0))

    def _measured(self, line: GridCodes, level: _Level) -> _Level | None:
        """Measure a level; the next one, or None where no period has enough rows. Then the rest is spent here."""
        periods, first = level.periods, not len(level.totals)
        exact = self._exact(line, periods)
        cost = self._left * (OF_PERIODS if first else Fraction(1, 2))
        noisy, spread = self._noisy(exact, cost)
        counts = self._estimated(line, level, noisy, spread)
        after = Spread.of(self.accountant.kind, float(self._left / 2)).deviation
        divided = (counts > ROWS_PER_BIN * after) & (periods.lasts > periods.starts)
        if not np.any(divided):
            again, other = self._noisy(exact, self._left)
            share = other.deviation**2 / (spread.deviation**2 + other.deviation**2)
            spread = Spread(spread.kind, spread.scale * math.sqrt(share))
            counts = self._estimated(line, level, share * noisy + (1.0 - share) * again, spread)
        fullest = np.argsort(-counts, kind="stable")
        fullest = fullest[divided[fullest]]
        parents = np.sort(fullest[np.cumsum(_most_parts(periods)[fullest]) <= MAX_PARTS])
        kept = counts > 0
        kept[parents] = False
        whole = np.flatnonzero(kept)
        self._found.append((periods.take(whole), counts[whole], spread))
        if not len(parents):
            return None
        parts, of = self._calendar.parts(line, periods.take(parents))
        return _Level(parts, of, counts[parents], np.full(len(parents), spread.deviation**2))

    def _exact(self, line: GridCodes, periods: Periods) -> Counts:
        """How many values each period has: private."""
        cumulative = np.append(self.known, self.present)
        inside = np.searchsorted(self.at, np.where(periods.lasts < line.last, periods.lasts, 0) + 1)
        above = np.where(periods.lasts < line.last, inside, len(self.at))
        exact: Counts = cumulative[above] - cumulative[np.searchsorted(self.at, periods.starts)]
        return exact

    def _noisy(self, exact: Counts, cost: Fraction) -> tuple[FloatArray, Spread]:
        """Noisy counts of periods. Those of missing cells are averaged over all levels."""
        noisy, spread = self.accountant.noisy_counts(np.concatenate([self.missing, exact]), cost)
        self._left -= cost
        kinds, precision = len(self.missing), spread.deviation**-2
        self._absent = (self._precision * self._absent + precision * noisy[:kinds]) / (self._precision + precision)
        self._precision += precision
        return noisy[kinds:], spread

    def _estimated(self, line: GridCodes, level: _Level, noisy: FloatArray, spread: Spread) -> FloatArray:
        """The counts of periods, smoothed where noise allows it, and none where noise explains them."""
        periods, of = level.periods, level.of
        if not len(level.totals):
            nulls = float(missing_found(self._absent, spread).sum())
            needed = nulls == 0.0 or nulls < self.rows - CLEAR * spread.scale
            far = np.zeros(len(periods))
            if not self.domain.bounded:
                far = FAR * np.log1p(self._calendar.distances(line, periods))
            return np.maximum(_smoothed(periods, noisy, occupied_periods(noisy, spread, far, needed), spread), 0.0)
        count, variance = np.bincount(of), np.bincount(of) * spread.deviation**2
        excess = level.totals - np.bincount(of, noisy)
        agreed = noisy + (excess * variance / (variance + level.variances) / count)[of]
        groups = np.split(np.arange(len(of)), np.flatnonzero(np.diff(of)) + 1)
        there = np.concatenate(
            [occupied_periods(agreed[group], spread, np.zeros(len(group)), needed=True) for group in groups]
        )
        smooth = _smoothed(periods, agreed, there, spread)
        counts = np.zeros(len(of))
        for group in groups:
            inside = group[there[group]]
            counts[inside] = to_total(smooth[inside], max(0.0, float(agreed[group].sum())))
        return counts

    def estimate(self, rows: int) -> ColumnEstimate:
        assert self.line is not None  # noqa: S101
        starts = np.concatenate([periods.starts for periods, _, _ in self._found])
        sizes = np.concatenate([periods.sizes for periods, _, _ in self._found])
        counts = np.concatenate([counts for _, counts, _ in self._found])
        spread = max(self._found, key=lambda found: float(found[1].sum()))[2]
        if not len(starts):  # nothing but missing values: an ordinary period without mass, for values to stand in
            usual = np.array([self._calendar.usual_tick]).astype(self.line.dtype)
            starts, sizes = self.line.to_codes(usual), np.ones(1, dtype=np.uint64)
            counts = np.zeros(1)
        order = np.argsort(starts)
        one = Spread(spread.kind, spread.scale / (spread.deviation * math.sqrt(self._precision)))
        absent, histogram, missing = settled(self._absent, counts[order], one, rows, self.domain.missing)
        codec = BinnedCodec(self.line, starts[order], sizes[order], missing)
        return ColumnEstimate(self.domain, codec, np.concatenate([absent, histogram]), spread, self.step)


def _most_parts(periods: Periods) -> NDArray[np.int64]:
    return np.array([_PARTS[unit] for unit in UNITS])[periods.units]


def _smoothed(periods: Periods, noisy: FloatArray, there: NDArray[np.bool_], spread: Spread) -> FloatArray:
    """Runs of adjacent occupied periods of one unit made smooth, as densities; the others have no rows."""
    smooth = np.zeros(len(noisy))
    own = np.flatnonzero(there)
    if not len(own):
        return smooth
    ends = (np.diff(own) > 1) | (np.diff(periods.units[own]) != 0)
    ends |= periods.starts[own[1:]] != periods.lasts[own[:-1]] + 1
    for run in np.split(own, np.flatnonzero(ends) + 1):
        sizes = periods.sizes[run].astype(np.float64)
        widths = sizes / sizes.mean()
        smooth[run] = widths * smooth_with_peaks(noisy[run] / widths, spread)
    return smooth


def occupied_periods(noisy: FloatArray, spread: Spread, far: FloatArray, needed: bool) -> NDArray[np.bool_]:
    """Which periods have rows: the runs of periods with the largest gain in log-likelihood.

    A run gains what its total is less probable under noise alone. It costs RUN, and as much as `far` says for its end
    that is further from what is usual. Where nothing stands out but some period is `needed`, the best run is taken.
    """
    count = len(noisy)
    first = np.empty(count, dtype=np.int64)
    sizes = noisy / spread.deviation
    if spread.kind == "laplace":  # what a Gaussian count would be that noise explains as well
        sizes = np.minimum(sizes, np.sqrt(2.0 * math.sqrt(2.0) * np.abs(sizes)))
    begin, end = best_runs(sizes, far, RUN, first)
    there = np.zeros(count, dtype=bool)
    stop = count
    while stop:
        start = int(first[stop - 1])
        if start >= 0:
            there[start:stop] = True
        stop = start if start >= 0 else stop - 1
    if needed and not np.any(there):
        there[begin:end] = True
    return there


@jit
def best_runs(sizes: FloatArray, far: FloatArray, cost: float, first: NDArray[np.int64]) -> tuple[int, int]:
    """first[k]: where the run starts that ends with period k in the best division of periods 0..k, or -1 if k is empty.

    Returns the ends of the best single run (dynamic programming over the ends of runs).
    """
    count = len(sizes)
    empty, full = np.empty(count + 1), np.empty(count + 1)
    begins = np.empty(count, dtype=np.int64)
    empty[0], full[0] = 0.0, -np.inf
    separate = np.log(count)
    best, low, high = -np.inf, 0, count
    for stop in range(1, count + 1):
        total = 0.0
        full[stop] = -np.inf
        for start in range(stop - 1, -1, -1):
            total += sizes[start]
            if total <= 0.0:
                continue
            gain = total * total / (2.0 * (stop - start)) - max(far[start], far[stop - 1]) - cost
            before = max(empty[start] - separate, full[start] - np.log(stop - start))
            if before + gain > full[stop]:
                full[stop] = before + gain
                begins[stop - 1] = start
            if gain > best:
                best, low, high = gain, start, stop
        empty[stop] = max(empty[stop - 1], full[stop - 1])
    stop, inside = count, full[count] > empty[count]
    first[:] = -1
    while stop > 0:
        if not inside:
            inside = full[stop - 1] > empty[stop - 1]
            stop -= 1
            continue
        start = begins[stop - 1]
        first[stop - 1] = start
        inside = full[start] - np.log(stop - start) > empty[start] - separate
        stop = start
    return low, high
