"""Intervals for statistics of a release that hold the noise, by a parametric bootstrap of the private reference.

A replicate is a table that is drawn from the reference, learned and released again (`release.bootstrap`). With θ_b the
statistic of the released replicate b and θ_R that of the reference, the errors θ_b - θ_R stand for the error of the
released statistic: their mean for its bias, their spread for its noise. The interval is

    θ - bias ± √(t² s² (1 + 1/B + 1/2) + bias²),    t the quantile of Student's distribution, B - 1 degrees of freedom.

The terms 1/2 and bias² are for the bias that is left: the reference is smoother than the truth, so its replicates show
less bias than the release has, in trials less than half of it. They were chosen on the survey and the bank table;
docs/usefulness.md has the coverage on seeds and a table that they were not chosen on. What the reference cannot show at
all is in `release.unseen`, or gets no interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from threading import Lock
from typing import Any, cast

import numpy as np
import pyarrow as pa

from dipriv._base.arrays import FloatArray
from dipriv._base.near_names import did_you_mean, listed
from dipriv._base.parallel import in_parallel
from dipriv._base.progress import Progress, no_progress
from dipriv._tables.arrow import cells_to_arrow
from dipriv.errors import InputError
from dipriv.release.bootstrap import BootstrapModel, Replicate
from dipriv.release.fitting import FittedMechanism
from dipriv.release.unseen import unknown_value, unseen
from dipriv.statistics import Cells, Quantile, Share, ShareBelow, Statistic

REPLICATES = 60
MIN_REPLICATES = 10
UNSEEN = math.sqrt(1 / 2)
"""In standard errors: the bias that a bootstrap at the reference, which is smoother than the truth, does not show."""
SEED = 20230
"""Replicates are drawn from it by default: an interval can be computed again. Nothing private is drawn."""

Pair = tuple[str, str]
AnyStatistic = Statistic | Callable[[Any], Any]


@dataclass(frozen=True)
class Interval:
    """An interval for one number, or the reason why there is none.

    Attributes
    ----------
    name : what the number is.
    estimate : the statistic of the released rows, less its estimated bias.
    low, high : the ends of the interval; NaN where `reason` says why there is none.
    level : how often intervals of this kind hold the true value, such as 0.95.
    released : the statistic of the released rows.
    error : its standard error, noise and sampling together.
    bias : its estimated bias.
    replicates : from how many replicates this was computed.
    unmeasured : the pairs of columns that it rests on and that were not measured.
    reason : why no interval is given; None where one is.
    """

    name: str
    estimate: float
    low: float
    high: float
    level: float
    released: float
    error: float
    bias: float
    replicates: int
    unmeasured: tuple[Pair, ...] = ()
    reason: str | None = None

    def __str__(self) -> str:
        if self.reason is not None:
            return f"{self.name}: {_short(self.released)} in the released rows; no interval: {self.reason}"
        caution = f" Forced: {rests_on(self.unmeasured)}" if self.unmeasured else ""
        return (
            f"{self.name}: {_short(self.estimate)}, {100 * self.level:g}% interval {_short(self.low)} to "
            f"{_short(self.high)}.{caution}"
        )


@dataclass(eq=False)
class Replicates:
    """Replicates of one release. Each is learned once, however many statistics are asked for."""

    model: BootstrapModel
    seed: int = SEED
    _known: dict[int, FittedMechanism] = field(repr=False, default_factory=dict)
    _values: dict[tuple[Any, int], tuple[FloatArray, FloatArray]] = field(repr=False, default_factory=dict)

    def values(
        self, statistics: Sequence[Statistic], count: int, progress: Progress = no_progress
    ) -> dict[Statistic, tuple[FloatArray, FloatArray]]:
        """For each statistic its numbers in drawn and in released tables: two arrays (count, k)."""
        self.model.check_size()
        done, lock = 0, Lock()
        progress("replicates", 0, count)

        def one(number: int) -> None:
            nonlocal done
            waiting = [statistic for statistic in statistics if (statistic, number) not in self._values]
            if waiting or number not in self._known:
                replicate = self.replicate(number)
                for statistic in waiting:
                    both = statistic.values(replicate.drawn), statistic.values(replicate.released)
                    self._values[statistic, number] = both
            with lock:
                done += 1
                progress("replicates", done, count)

        in_parallel(one, range(count))
        return {
            statistic: (
                np.stack([self._values[statistic, number][0] for number in range(count)]),
                np.stack([self._values[statistic, number][1] for number in range(count)]),
            )
            for statistic in statistics
        }

    def learned(self, count: int, progress: Progress = no_progress) -> list[FittedMechanism]:
        """What was learned from each replicate."""
        self.values((), count, progress)
        return [self._known[number] for number in range(count)]

    def replicate(self, number: int) -> Replicate:
        """A replicate; what was learned for it is kept."""
        replicate = self.model.replicate(number, self.seed, self._known.get(number))
        self._known[number] = replicate.fitted
        return replicate


def intervals_of(
    statistics: Iterable[AnyStatistic],
    released: Any,
    replicates: Replicates,
    *,
    level: float = 0.95,
    count: int = REPLICATES,
    force: bool = False,
    progress: Progress = no_progress,
) -> tuple[Interval, ...]:
    """An interval for each number of each statistic of a released table."""
    check_level(level)
    if type(count) is not int or count < MIN_REPLICATES:
        raise InputError(f"replicates={count!r} is not a whole number >= {MIN_REPLICATES}.", "Leave it out.")
    model = replicates.model
    known = [as_statistic(statistic, released, model) for statistic in statistics]
    table = Cells.of(released, list(dict.fromkeys(name for statistic in known for name in statistic.columns)))
    reasons = {statistic: _reason(statistic, model, force=force) for statistic in known}
    targets = {
        statistic: ShareBelow(statistic.column, float(statistic.values(table)[0]))
        if isinstance(statistic, Quantile)
        else statistic
        for statistic in known
        if reasons[statistic] is None
    }
    values = replicates.values(list(dict.fromkeys(targets.values())), count, progress) if targets else {}
    found: list[Interval] = []
    for statistic in known:
        reason = reasons[statistic]
        if reason is not None:
            given = statistic.values(table)
            found += [_none(name, x, level, reason, statistic, model) for name, x in _named(statistic, given)]
            continue
        target = targets[statistic]
        drawn, again = values[target]
        given = target.values(table)
        down, up = unseen(target, table, released, model)
        for place, (name, x) in enumerate(_named(statistic, given)):
            one = _interval(name, float(x), drawn[:, place], again[:, place], level)
            one = replace(one, unmeasured=unmeasured_pairs(statistic.columns, model))
            low, high = one.low + down[place], one.high + up[place]
            if isinstance(target, Share | ShareBelow):
                low, high = max(low, 0.0), min(high, 1.0)
            one = replace(one, low=low, high=high)
            found.append(_quantile_interval(statistic, table, one) if isinstance(statistic, Quantile) else one)
    return tuple(found)


def check_level(level: float) -> None:
    """Raises InputError unless this is a level of confidence."""
    if not isinstance(level, float) or not 0.5 <= level < 1:
        raise InputError(
            f"level={level!r} is not a share from 0.5 to 1.",
            "Use for example level=0.95.",
            command="Use for example --level 0.95.",
        )


def unmeasured_pairs(columns: Sequence[str], model: BootstrapModel) -> tuple[Pair, ...]:
    """The pairs that these columns rest on and that were not measured."""
    measured = {frozenset(pair) for pair in model.pairs}
    return tuple(pair for pair in combinations(model.rests_on(columns), 2) if frozenset(pair) not in measured)


def rests_on(pairs: Sequence[Pair]) -> str:
    """The sentence about pairs that were not measured."""
    shown = ", ".join(f"{one} x {two}" for one, two in pairs[:5])
    more = f" and {len(pairs) - 5} more pairs" if len(pairs) > 5 else ""
    return f"this rests on {shown}{more}, which {'was' if len(pairs) == 1 else 'were'} not measured."


def _interval(name: str, x: float, drawn: FloatArray, released: FloatArray, level: float) -> Interval:
    """From the numbers of drawn tables, whose mean is that of the reference, and of released ones."""
    from scipy.stats import t as student

    usable = np.isfinite(drawn) & np.isfinite(released)
    count = int(usable.sum())
    if not math.isfinite(x) or count < max(MIN_REPLICATES, 0.9 * len(drawn)):
        reason = f"it is not determined in {len(drawn) - count} of {len(drawn)} replicates."
        reason = "the released rows do not determine it." if not math.isfinite(x) else reason
        return Interval(name, x, math.nan, math.nan, level, x, math.nan, math.nan, count, (), reason)
    errors = released[usable] - drawn[usable].mean()
    bias, error = float(errors.mean()), float(errors.std(ddof=1))
    t = float(student.ppf(0.5 + level / 2, count - 1))
    half = math.hypot(t * error * math.sqrt(1 + 1 / count + UNSEEN**2), bias)
    return Interval(name, x - bias, x - bias - half, x - bias + half, level, x, error, bias, count)


def _quantile_interval(quantile: Quantile, table: Cells, below: Interval) -> Interval:
    """An interval of a quantile from that of the share of rows that are not above it (Woodruff 1952).

    A value may be the quantile if its share, less the error, may be the quantile's level. So this holds for columns of
    few values as well, whose quantiles do not move with the noise until they jump.
    """
    x = float(quantile.values(table)[0])
    if below.reason is not None:
        return replace(below, name=str(quantile), estimate=x, released=x)
    low = quantile.at(table, quantile.level + below.released - below.high)
    high = quantile.at(table, quantile.level + below.released - below.low)
    estimate = min(max(quantile.at(table, quantile.level + below.bias), low), high)
    return replace(
        below, name=str(quantile), estimate=estimate, low=low, high=high, released=x, error=math.nan, bias=math.nan
    )


@dataclass(frozen=True, eq=False)
class TableFunction:
    """Any function of a dataframe that gives a number, or some."""

    function: Callable[[Any], Any]
    columns: tuple[str, ...]
    library: str
    types: Mapping[str, pa.DataType]
    size: int
    _lock: Lock = field(repr=False, default_factory=Lock)

    @property
    def names(self) -> tuple[str, ...]:
        name = getattr(self.function, "__name__", "statistic")
        name = "statistic" if name == "<lambda>" else name
        return (name,) if self.size == 1 else tuple(f"{name}[{place}]" for place in range(self.size))

    def values(self, cells: Cells) -> FloatArray:
        with self._lock:  # the caller's function need not be one for several threads
            found = np.atleast_1d(np.asarray(self.function(self._frame(cells)), dtype=np.float64))
        if found.shape != (self.size,):
            raise InputError(
                f"{self.names[0]} gave {found.size} numbers for one table and {self.size} for another.",
                "Give a function of the table that returns always the same numbers.",
            )
        return found

    def _frame(self, cells: Cells) -> Any:
        arrays = {name: cells_to_arrow(*cells.columns[name], self.types[name]) for name in self.columns}
        return _in_library(pa.table(arrays), self.library)


class _Recorder:
    """A dataframe that notes which columns are read: all, unless they are picked by name."""

    def __init__(self, frame: Any, names: Sequence[str]) -> None:
        self._frame, self._names = frame, tuple(names)
        self.read: set[str] = set()

    def __getitem__(self, key: Any) -> Any:
        picked = [key] if isinstance(key, str) else list(key) if isinstance(key, list | tuple) else self._names
        self.read |= {name for name in picked if name in self._names} or set(self._names)
        return self._frame[key] if not isinstance(key, tuple) else self._frame[list(key)]

    def __getattr__(self, name: str) -> Any:
        if name not in ("columns", "shape", "index", "height", "num_rows"):
            self.read |= {name} if name in self._names else set(self._names)
        return getattr(self._frame, name)

    def __len__(self) -> int:
        return len(self._frame)


def as_statistic(statistic: AnyStatistic, released: Any, model: BootstrapModel) -> Statistic:
    """A statistic; of a function of a dataframe, with the columns that it reads in the released table."""
    if hasattr(statistic, "values") and hasattr(statistic, "columns"):
        known = cast(Statistic, statistic)
        if lacking := [name for name in known.columns if name not in model.released_names]:
            raise InputError(
                f"the statistic reads {lacking[0]!r}, which is not a column of the private reference"
                f"{did_you_mean(lacking[0], model.released_names)}.",
                f"Use columns that were privatized: {listed(model.released_names)}.",
            )
        return known
    if not callable(statistic):
        raise InputError(
            f"expected a statistic, got {type(statistic).__name__}.",
            "Use one of dipriv.statistics, such as Mean('age'), or a function of a dataframe.",
        )
    library, types = _library(released), {column.name: column.arrow_type for column in model.facts}
    frame = _in_library(released, library) if isinstance(released, pa.Table) else released
    recorder = _Recorder(frame, model.released_names)
    size = int(np.size(np.asarray(statistic(recorder), dtype=np.float64)))
    columns = tuple(name for name in model.released_names if name in recorder.read)
    return TableFunction(statistic, columns, library, types, size)


def _library(frame: Any) -> str:
    """The library of a dataframe; files are read as pandas has them, where it is installed."""
    name = type(frame).__module__.partition(".")[0]
    if name in ("pandas", "polars"):
        return name
    try:
        import pandas as pd  # noqa: F401
    except ModuleNotFoundError:
        return "pyarrow"
    return "pandas"


def _in_library(table: pa.Table, library: str) -> Any:
    if library == "polars":
        import polars as pl

        return pl.from_arrow(table)
    return table.to_pandas() if library == "pandas" else table


def _reason(statistic: Statistic, model: BootstrapModel, *, force: bool) -> str | None:
    """Why a statistic gets no interval."""
    missing = unmeasured_pairs(statistic.columns, model)
    return rests_on(missing) if missing and not force else unknown_value(statistic, model)


def _named(statistic: Statistic, given: FloatArray) -> list[tuple[str, float]]:
    return list(zip(statistic.names, given.tolist(), strict=True))


def _none(name: str, x: float, level: float, reason: str, statistic: Statistic, model: BootstrapModel) -> Interval:
    pairs = unmeasured_pairs(statistic.columns, model)
    return Interval(name, x, math.nan, math.nan, level, x, math.nan, math.nan, 0, pairs, reason)


def _short(x: float) -> str:
    return f"{x:.4g}"
