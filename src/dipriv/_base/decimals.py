"""Privacy parameters as decimal numbers: exact sums, rounding in a stated direction, and the form that is printed."""

from __future__ import annotations

import math
import re
from fractions import Fraction


def exact(number: float) -> Fraction:
    """A float as the decimal number that it is written as, so that ten times 0.1 is 1.

    >>> 10 * exact(0.1) == 1 < 10 * Fraction(0.1)
    True
    """
    return Fraction(repr(number))


def at_most(number: float) -> Fraction:
    """The smaller one of a float and the decimal number that it is written as: what may be spent where it is printed.

    >>> at_most(0.1) == Fraction(1, 10) < Fraction(0.1), at_most(0.3) == Fraction(0.3) < Fraction(3, 10)
    (True, True)
    """
    return min(Fraction(number), exact(number))


def round_up(number: Fraction) -> float:
    """The smallest float whose decimal form is at least `number`.

    >>> round_up(3 * exact(0.1)), exact(round_up(Fraction(1, 3))) > Fraction(1, 3)
    (0.3, True)
    """
    near = float(number)
    return near if exact(near) >= number else math.nextafter(near, math.inf)


def round_down(number: Fraction) -> float:
    """The largest float whose decimal form is at most `number`."""
    return -round_up(-number)


def in_full(number: float) -> str:
    """All digits of a number, in the shortest form.

    >>> in_full(1.0), in_full(0.1), in_full(1e-9)
    ('1', '0.1', '1e-9')
    """
    return re.sub(r"e([+-])0*", lambda found: "e" + found[1].strip("+"), repr(float(number)).removesuffix(".0"))


def in_short(number: float, digits: int = 4) -> str:
    """A number of at least 0 with at most this many significant digits, rounded up.

    >>> in_short(1 / 3), in_short(2 / 3), in_short(1e-9), in_short(0.5)
    ('0.3334', '0.6667', '1e-9', '0.5')
    """
    if not number:
        return "0"
    unit = Fraction(10) ** (math.floor(math.log10(number)) - digits + 1)
    return in_full(float(math.ceil(exact(number) / unit) * unit))
