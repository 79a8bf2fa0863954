"""Where the units of the calendar begin on a line of times: centuries, decades, years, months, days, hours and so on.

Cuts follow from a column's type and from the calendar alone, so they are public.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from datetime import time as clock
from functools import cached_property
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from dipriv.codecs.ordered_codes import Codes, GridCodes
from dipriv.codecs.temporal import ticks_in
from dipriv.errors import SchemaError
from dipriv.schema import RESOLUTIONS, Datetime, moment

DAY_NS = 86_400_000_000_000
UNITS = ("century", "decade", "year", "month", *RESOLUTIONS)
YEARS: dict[str, int] = {"century": 100, "decade": 10, "year": 1}
"""How many years a unit has."""
YEAR, MONTH, DAY, HOUR = (UNITS.index(unit) for unit in ("year", "month", "day", "hour"))
BY_YEAR, BY_DECADE = (1850, 2100), (1500, 2300)
"""From when to when a line is first cut into single years, and into decades."""
FOR_UNKNOWN = (1, 9999)
"""Years that stand for unknown dates in many tables: they are single years, too."""
USUAL_YEAR, NEAR_YEARS, FAR_YEARS = 1990, 60, 20
"""Years up to 60 from 1990 are as usual as each other; 20 years further is one unit of distance."""
MIN_PERIODS = 8
"""A line is first cut into at least this many periods, where it has as many codes."""
_EPOCH = date(1970, 1, 1).toordinal()
_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)")


@dataclass(frozen=True, eq=False)
class Periods:
    """Adjacent parts of a line: period k has the codes from starts[k] to lasts[k], and is a UNITS[units[k]]."""

    starts: Codes = field(repr=False)
    lasts: Codes = field(repr=False)
    units: NDArray[np.int64] = field(repr=False)

    def __len__(self) -> int:
        return len(self.starts)

    def take(self, places: NDArray[np.intp]) -> Periods:
        """Some of the periods."""
        return Periods(self.starts[places], self.lasts[places], self.units[places])

    @property
    def sizes(self) -> NDArray[np.uint64]:
        """How many codes each has."""
        return (self.lasts.astype(np.uint64) - self.starts.astype(np.uint64)) + np.uint64(1)


@dataclass(frozen=True)
class Calendar:
    """The calendar of a column of dates or times, or the clock of times of day.

    Parameters
    ----------
    tick_ns : the length of a tick.
    zone : of absolute times, the zone whose days and years are meant; else the ticks count from midnight in UTC.
    has_dates : whether there are dates; times of day have none.
    """

    tick_ns: int
    zone: str | None = None
    has_dates: bool = True

    def periods(self, line: GridCodes, also: Codes) -> Periods:
        """The whole line in periods: years around now, decades and centuries further away; hours without dates.

        A period starts at each of the codes `also`, too.
        """
        if self.has_dates:
            starts = [line.first, *self._years(line, line.first, line.last)]
        else:
            starts = [line.first, *self._inside(line, line.first, line.last, HOUR)]
        every = np.unique(np.append(np.array(starts, dtype=np.int64), also))
        lasts = np.append(every[1:] - 1, line.last)
        units = np.array([self._unit(line, start) for start in every.tolist()], dtype=np.int64)
        found = Periods(every, lasts, units)
        while len(found) < MIN_PERIODS and np.any(found.lasts > found.starts):
            found, _ = self.parts(line, found)
        return found

    def parts(self, line: GridCodes, periods: Periods) -> tuple[Periods, NDArray[np.intp]]:
        """Each period in parts of its next finer unit that it has two or more of, and the period of each part.

        A period of one code has itself as its only part.
        """
        starts: list[int] = []
        units: list[int] = []
        counts: list[int] = []
        for low, last, own in zip(periods.starts.tolist(), periods.lasts.tolist(), periods.units.tolist(), strict=True):
            unit, inside = own, [low]
            while len(inside) == 1 and low < last and unit < len(UNITS) - 1:
                unit += 1
                inside = [low, *self._inside(line, low, last, unit)]
            starts += inside
            units += [unit] * len(inside)
            counts.append(len(inside))
        of = np.repeat(np.arange(len(periods)), counts)
        begin = np.array(starts, dtype=np.int64)
        same = np.append(of[1:] == of[:-1], False)
        lasts = np.where(same, np.append(begin[1:], 0) - 1, periods.lasts[of])
        return Periods(begin, lasts, np.array(units, dtype=np.int64)), of

    def distances(self, line: GridCodes, periods: Periods) -> NDArray[np.float64]:
        """How far each period is from what is usual: 0 for the years around now, and for times of day."""
        if not self.has_dates:
            return np.zeros(len(periods))
        first = np.array([self._year(line, code) for code in periods.starts.tolist()])
        last = np.array([self._year(line, code) for code in periods.lasts.tolist()])
        away = np.maximum(np.maximum(first - USUAL_YEAR, USUAL_YEAR - last), 0)
        distances: NDArray[np.float64] = np.maximum(away - NEAR_YEARS, 0) / FAR_YEARS
        return distances

    @property
    def usual_tick(self) -> int:
        """A tick that surprises nobody: midnight, of a day around now where there are dates."""
        return self._midnight(date(USUAL_YEAR, 1, 1)) if self.has_dates else 0

    def tick(self, moment: date | clock) -> int:
        """The tick of a date's midnight, of a time or of a time of day, rounded down."""
        if isinstance(moment, clock):
            seconds = (moment.hour * 60 + moment.minute) * 60 + moment.second
            return (seconds * 10**9 + moment.microsecond * 1000) // self.tick_ns
        if not isinstance(moment, datetime):
            return self._midnight(moment)
        aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=self._zone or UTC)
        since = aware - datetime(1970, 1, 1, tzinfo=UTC)
        return ((since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000) // self.tick_ns

    def _unit(self, line: GridCodes, code: int) -> int:
        """The unit of the period in which a line is first cut at a code."""
        if not self.has_dates:
            return HOUR
        year = self._year(line, code)
        if year in FOR_UNKNOWN:
            return YEAR
        return YEAR - (not BY_YEAR[0] <= year < BY_YEAR[1]) - (not BY_DECADE[0] <= year < BY_DECADE[1])

    def _years(self, line: GridCodes, low: int, last: int) -> list[int]:
        first, end = self._year(line, low), self._year(line, last) + 1
        years = {
            *range(-(-first // 100) * 100, end, 100),
            *(year for year in range(*BY_DECADE, 10) if first < year <= end),
            *(year for year in range(*BY_YEAR) if first < year <= end),
            *(year + more for year in FOR_UNKNOWN for more in (0, 1) if first < year + more < end),
        }
        return self._codes(line, low, last, [self._midnight(date(year, 1, 1)) for year in sorted(years) if year > 0])

    def _inside(self, line: GridCodes, low: int, last: int, unit: int) -> list[int]:
        """The codes above `low` and up to `last` at which a unit begins."""
        name = UNITS[unit]
        if unit > DAY:
            ticks = ticks_in(RESOLUTIONS[unit - DAY], self.tick_ns)
            if ticks <= line.whole:  # not finer than a step: single codes
                return list(range(low + 1, last + 1))
            begin, end = low * line.whole, last * line.whole
            return self._codes(line, low, last, list(range((begin // ticks + 1) * ticks, end + 1, ticks)))
        first, end_day = self._day(line, low), self._day(line, last)
        if unit == DAY:
            days = [date.fromordinal(day) for day in range(first.toordinal(), end_day.toordinal() + 1)]
        elif unit == MONTH:
            months = range(first.year * 12 + first.month - 1, end_day.year * 12 + end_day.month)
            days = [date(month // 12, month % 12 + 1, 1) for month in months]
        else:
            step = YEARS[name]
            days = [date(year, 1, 1) for year in range(first.year // step * step, end_day.year + 1, step) if year]
        return self._codes(line, low, last, [self._midnight(day) for day in days])

    def _codes(self, line: GridCodes, low: int, last: int, ticks: list[int]) -> list[int]:
        """The first codes that are not before these ticks, as far as they are inside."""
        codes = (-(-tick // line.whole) for tick in ticks)
        return sorted({code for code in codes if low < code <= last})

    def _day(self, line: GridCodes, code: int) -> date:
        """The date on which a code lies; in years that a calendar has."""
        ordinal = _EPOCH + (code * line.whole * self.tick_ns) // DAY_NS
        day = date.fromordinal(min(max(ordinal, 1), date.max.toordinal()))
        if self._zone is not None and code * line.whole >= self._midnight(_next(day)):
            return _next(day)  # east of Greenwich days begin earlier
        return day

    def _year(self, line: GridCodes, code: int) -> int:
        return self._day(line, code).year

    def _midnight(self, day: date) -> int:
        """The tick at which a day begins, rounded down."""
        ns = (day.toordinal() - _EPOCH) * DAY_NS
        if self._zone is not None:
            offset = datetime.combine(day, clock(), tzinfo=self._zone).utcoffset() or timedelta()
            ns -= (offset.days * 86_400 + offset.seconds) * 10**9
        return ns // self.tick_ns

    @cached_property
    def _zone(self) -> tzinfo | None:
        return None if self.zone is None else zone_of(self.zone)


def bounds_in_ticks(
    name: str, declared: Datetime, tick_ns: int, times: str | None, zone: str | None
) -> tuple[int | None, int | None]:
    """The first and the last tick that a column of dates or times may have, where bounds are declared.

    Raises
    ------
    SchemaError : the column has durations, bounds of another kind than its own, or no value between them.
    """
    bounds = [None if bound is None else moment(bound) for bound in (declared.lower, declared.upper)]
    given = [bound for bound in bounds if bound is not None]
    of = "durations" if times is None else times
    if given and (of == "durations" or any(isinstance(bound, clock) != (of == "times of day") for bound in given)):
        bounded = "times of day" if isinstance(given[0], clock) else "dates"
        raise SchemaError(
            f"column {name!r} has {of}, but the bounds that are declared are {bounded}.",
            "Leave the bounds out." if of == "durations" else f"Declare bounds that are {of}.",
        )
    calendar = Calendar(tick_ns, zone, times == "dates")
    lower, upper = (None if bound is None else calendar.tick(bound) for bound in bounds)
    last = bounds[1]
    if isinstance(last, date) and not isinstance(last, datetime):
        upper = None if last == date.max else calendar.tick(_next(last)) - 1  # no type has a later date
    if declared.resolution is not None and not has_multiple(lower, upper, ticks_in(declared.resolution, tick_ns)):
        raise SchemaError(
            f"column {name!r} has the resolution {declared.resolution!r}, and no value of it lies between "
            f"lower={declared.lower!r} and upper={declared.upper!r}.",
            "Widen the bounds, or declare a finer resolution.",
        )
    return lower, upper


def has_multiple(lower: float | None, upper: float | None, step: int) -> bool:
    """Whether a whole multiple of the step lies between two bounds.

    >>> has_multiple(1, 23, 24), has_multiple(1, 24, 24)
    (False, True)
    """
    return lower is None or upper is None or -(-lower // step) * step <= upper


def zone_of(name: str) -> tzinfo:
    """The zone with a name such as Europe/Berlin or +01:00; UTC where the name is not known.

    >>> zone_of("+01:30").utcoffset(None)
    datetime.timedelta(seconds=5400)
    """
    if found := _OFFSET.fullmatch(name):
        minutes = int(found[2]) * 60 + int(found[3])
        return timezone(timedelta(minutes=minutes if found[1] == "+" else -minutes)) if minutes < 24 * 60 else UTC
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        return UTC


def _next(day: date) -> date:
    return date.fromordinal(min(day.toordinal() + 1, date.max.toordinal()))
