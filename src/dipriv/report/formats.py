"""Numbers, times and texts as a reader wants to see them."""

from __future__ import annotations

import math

import numpy as np

from dipriv.report.facts import Clock

DAY = 86400.0
NOTHING = "–"


def number(x: float | None, digits: int = 4) -> str:
    """Format with this number of significant digits, without an exponent where that is readable.

    The digits before the decimal point are never rounded: a postal code stays one.

    >>> number(1234567.4), number(0.00123456), number(2014.0), number(None)
    ('1,234,567', '0.001235', '2014', '–')
    """
    if x is None:
        return NOTHING
    if x == 0:
        return "0"
    if math.isinf(x):
        return "∞" if x > 0 else "−∞"
    size = math.floor(math.log10(abs(x)))
    if not -5 <= size < 9:
        return f"{x:.{digits - 1}e}".replace("-", "−")
    decimals = max(0, digits - 1 - size)
    comma = "," if size >= 4 else ""
    text = f"{round(x, decimals):{comma}.{decimals}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.replace("-", "−")


def fixed(x: float | None, digits: int = 3) -> str:
    """A number around 1 with a fixed number of decimals."""
    return NOTHING if x is None else f"{round(x, digits) + 0.0:.{digits}f}".replace("-", "−")


def signed(x: float) -> str:
    """A difference with its sign."""
    return f"{x:+.3f}".replace("-", "−")


def percent(share: float | None) -> str:
    """A share with one decimal."""
    return NOTHING if share is None else f"{share:.1%}"


def count(n: int) -> str:
    return f"{n:,}"


def time(seconds: float | None, clock: Clock) -> str:
    """A moment as its column holds it, a duration in its largest unit.

    >>> time(86400.0 * 365, "date"), time(90.0, "time of day"), time(5400.0, "duration")
    ('1971-01-01', '00:01:30', '1.5 hours')
    """
    if seconds is None:
        return NOTHING
    if clock == "duration":
        return duration(seconds)
    if clock == "time of day":
        whole = round(seconds) % 86400
        return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"
    moment = np.datetime64(round(seconds), "s")
    return str(np.datetime_as_string(moment, unit="D" if clock == "date" else "m")).replace("T", " ")


def duration(seconds: float | None) -> str:
    """A length of time in its largest unit."""
    if seconds is None:
        return NOTHING
    unit, name = unit_of(seconds)
    return f"{number(seconds / unit)} {name}"


def unit_of(seconds: float) -> tuple[float, str]:
    """The largest unit of time that a length of time has one of."""
    units = ((DAY, "days"), (3600.0, "hours"), (60.0, "minutes"))
    return next(((unit, name) for unit, name in units if abs(seconds) >= unit), (1.0, "seconds"))


def text(label: str, most: int = 60) -> str:
    """A label on one line without control characters, cut to a length."""
    clean = "".join(
        c if c.isprintable() and not "\ud800" <= c <= "\udfff" else "\N{REPLACEMENT CHARACTER}" for c in label
    )
    return clean if len(clean) <= most else clean[: most - 1] + "…"
