"""The calendar on a line of ticks: all codes are in one period, and periods are units of the calendar in its zone."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest

from dipriv.codecs.calendar import DAY_NS, UNITS, Calendar, bounds_in_ticks
from dipriv.codecs.ordered_codes import Codes, GridCodes
from dipriv.errors import SchemaError
from dipriv.schema import Datetime, Resolution

FIRST, END = (dt.date.min.toordinal() - 719_163) * 86_400, (dt.date.max.toordinal() - 719_162) * 86_400
INT = np.dtype(np.int64)
NONE: Codes = np.empty(0, dtype=np.int64)
LINES = {
    "days": (Calendar(DAY_NS), GridCodes.of(INT, lower=FIRST // 86_400, upper=END // 86_400 - 1)),
    "seconds": (Calendar(10**9), GridCodes.of(INT, lower=FIRST, upper=END - 1)),
    "hours of seconds": (Calendar(10**9, "Asia/Kolkata"), GridCodes.of(INT, 3600, lower=FIRST, upper=END - 1)),
    "all nanoseconds": (Calendar(1), GridCodes.of(INT)),
    "microseconds, Berlin": (Calendar(1000, "Europe/Berlin"), GridCodes.of(INT, 1, 1, FIRST * 10**6, END * 10**6 - 1)),
    "microseconds, New York": (Calendar(1000, "America/New_York"), GridCodes.of(INT, 1, 1, 0, 10**17)),
    "microseconds, no such zone": (Calendar(1000, "No/Where"), GridCodes.of(INT, 1, 1, 0, 10**17)),
    "times of day": (Calendar(10**6, has_dates=False), GridCodes.of(INT, lower=0, upper=86_399_999)),
    "one code": (Calendar(DAY_NS), GridCodes.of(INT, lower=20_000, upper=20_000)),
    "one year": (Calendar(DAY_NS), GridCodes.of(INT, lower=20_089, upper=20_453)),
}


@pytest.mark.parametrize("name", LINES)
def test_periods_and_their_parts_cover_the_line_without_overlap(name: str) -> None:
    calendar, line = LINES[name]
    periods = calendar.periods(line, np.array([line.first, (line.first + line.last) // 2]))
    assert len(periods) >= min(8, line.last - line.first + 1)
    rng = np.random.default_rng(1)
    for _ in range(5):
        if (periods.starts[0], periods.lasts[-1]) == (line.first, line.last):
            np.testing.assert_array_equal(periods.starts[1:], periods.lasts[:-1] + 1)
        chosen = periods.take(rng.choice(len(periods), min(40, len(periods)), replace=False))
        parts, of = calendar.parts(line, chosen)
        for number in range(len(chosen)):
            own = parts.take(np.flatnonzero(of == number))
            assert (own.starts[0], own.lasts[-1]) == (chosen.starts[number], chosen.lasts[number])
            np.testing.assert_array_equal(own.starts[1:], own.lasts[:-1] + 1)
            assert len(own) > 1 or own.starts[0] == own.lasts[0]
            assert len(own) == 1 or own.units[0] > chosen.units[number]
        periods = parts


@pytest.mark.parametrize("zone", [None, "Europe/Berlin", "America/New_York", "Asia/Kolkata", "+09:30"])
def test_years_months_and_days_begin_at_midnight_in_their_zone(zone: str | None) -> None:
    calendar = Calendar(10**9, zone)
    line = GridCodes.of(INT, lower=FIRST, upper=END - 1)
    begin = calendar.tick(dt.date(2024, 1, 1))
    years = calendar.periods(line, NONE)
    year = int(np.searchsorted(years.starts, begin))
    assert years.starts[year] == begin
    assert years.lasts[year] + 1 == calendar.tick(dt.date(2025, 1, 1))
    months, _ = calendar.parts(line, years.take(np.array([year])))
    assert months.starts.tolist() == [calendar.tick(dt.date(2024, month, 1)) for month in range(1, 13)]
    days, _ = calendar.parts(line, months.take(np.array([1])))
    assert days.starts.tolist() == [calendar.tick(dt.date(2024, 2, day)) for day in range(1, 30)]
    naive = np.datetime64("2024-01-01", "s").astype(np.int64)
    hours = {None: 0, "Europe/Berlin": -1, "America/New_York": 5, "Asia/Kolkata": -5.5, "+09:30": -9.5}
    assert begin - naive == hours[zone] * 3600


def test_far_years_are_in_decades_and_centuries() -> None:
    calendar, line = LINES["days"]
    periods = calendar.periods(line, NONE)
    names = [UNITS[unit] for unit in periods.units]
    years = [(dt.date(1970, 1, 1) + dt.timedelta(int(start))).year for start in periods.starts]
    assert [name for name, year in zip(names, years, strict=True) if year in (1400, 1700, 1990, 2250, 5000)] == [
        *("century", "decade", "year", "decade", "century")
    ]
    far = calendar.distances(line, periods)
    assert far[years.index(1990)] == far[years.index(2025)] == 0 < far[years.index(2250)] < far[years.index(9900)]


@pytest.mark.parametrize(
    ("times", "zone", "lower", "upper", "ticks"),
    [
        ("dates", None, "2025-01-01", "2025-01-02", (1_735_689_600, 1_735_862_399)),
        ("dates", None, "2025-01-01T06:00", "2025-01-02 00:00", (1_735_711_200, 1_735_776_000)),
        ("dates", "Europe/Berlin", dt.date(2025, 1, 1), None, (1_735_686_000, None)),
        ("dates", "Europe/Berlin", "2025-01-01 00:00+00:00", None, (1_735_689_600, None)),
        ("times of day", None, "08:00", dt.time(17, 30), (28_800, 63_000)),
        (None, None, None, None, (None, None)),
    ],
)
def test_declared_bounds_are_ticks(
    times: str | None, zone: str | None, lower: str, upper: str, ticks: tuple[int | None, int | None]
) -> None:
    assert bounds_in_ticks("when", Datetime(lower=lower, upper=upper), 10**9, times, zone) == ticks


@pytest.mark.parametrize(("times", "lower"), [("dates", "08:00"), ("times of day", "2025-01-01"), (None, "2025-01-01")])
def test_bounds_of_another_kind_are_refused(times: str | None, lower: str) -> None:
    with pytest.raises(SchemaError, match=r"column 'when' has .*, but the bounds that are declared are "):
        bounds_in_ticks("when", Datetime(lower=lower), 10**9, times, None)


def test_the_last_date_that_there_is_is_inside_its_bound() -> None:
    """Many tables write 9999-12-31 for "no end"."""
    ends = [bounds_in_ticks("x", Datetime(upper=f"9999-12-{day}"), DAY_NS, "dates", None)[1] for day in (31, 30)]
    assert ends == [None, 2_932_895]


def test_bounds_without_a_value_of_the_resolution_between_them_are_refused() -> None:
    def of(resolution: Resolution | None) -> Datetime:
        return Datetime(resolution, "2025-01-01 06:00", "2025-01-01 18:00")

    with pytest.raises(SchemaError, match=r"column 'when' has the resolution 'day', and no value of it lies between"):
        bounds_in_ticks("when", of("day"), 10**9, "dates", None)
    for other in ("hour", None):
        assert bounds_in_ticks("when", of(other), 10**9, "dates", None) == (1_735_711_200, 1_735_754_400)
