"""The share of all words in the computed cap of a row: within what bounds it lies for every row, in exact arithmetic.

docs/theory/kernels.md has the proof.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

from dipriv.kernels._cap.quantiles import ERROR, MAX_QUANTILE, TAIL

DIGITS = 80
"""Decimal digits of the computation."""
ROUNDING = Fraction(1, 10**50)
"""What is allowed for rounding in it: each of at most some thousand numbers below 2 has an error below 10^-78."""
ROUND_OFF = Fraction(1, 1 << 53)
"""Half a unit in the last place of double precision, relative."""
IN_TAILS = Fraction(2, 1 << TAIL)
"""The probability that a uniform is in one of the tails, where quantiles are held."""


def share_of_cap(cosine: Fraction, width: int) -> Fraction:
    """P(t >= cosine) for a coordinate t of a uniform direction in `width` dimensions, to within `ROUNDING`.

    The share falls by the same kind of step with every two dimensions more: from 1/2 in one dimension, and from the
    angle in two.
    """
    with localcontext(prec=DIGITS):
        c = Decimal(cosine.numerator) / Decimal(cosine.denominator)
        if width % 2:
            share, step, a = Decimal("0.5"), c / 2, Decimal(0)
        else:
            pi = 4 * _arctan(Decimal(1))
            share = 2 * _arctan(((1 - c) / (1 + c)).sqrt()) / pi
            step, a = (1 - c * c).sqrt() * c / pi, Decimal("0.5")
        for _ in range((width - 1) // 2):
            share -= step
            step *= (1 - c * c) * (a + Decimal("0.5")) / (a + 1)
            a += 1
    return Fraction(share)


def error_of_share(cosine: Fraction, width: int, error: Fraction = ERROR, tail: Fraction = IN_TAILS) -> Fraction:
    """How far the share of words in the computed cap can be from that of the cap, for any row.

    `error` is that of a quantile outside of the tails, which a column is in with the probability `tail`.
    """
    root = Fraction(math.isqrt(width << 40) + 1, 1 << 20)
    layer = (1 + cosine) * root * error + MAX_QUANTILE * root * (3 * width + 8) * ROUND_OFF
    return Fraction(4, 5) * layer / (1 - cosine) + width * tail


def least_share(cosine: Fraction, width: int) -> Fraction:
    """No row has a smaller share of words in its computed cap."""
    return share_of_cap(cosine, width) - ROUNDING - error_of_share(cosine, width)


def _arctan(z: Decimal) -> Decimal:
    """The arc tangent of 0 <= z <= 1: halved four times, then its series, which alternates."""
    for _ in range(4):
        z = z / (1 + (1 + z * z).sqrt())
    total, power, k = Decimal(0), z, 1
    while abs(power) > Decimal(10) ** -DIGITS:
        total += power / k
        power, k = -power * z * z, k + 2
    return 16 * total
