"""The exact ε of a finite kernel, computed from its integer weights: no sampling, and rounding only upwards.

Where cells go through a transition matrix of integers, the probability of every outcome is a fraction, and the largest
ratio of two probabilities of one outcome is e^ε. Kernels compute it by other code than the checks in their
constructors.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

from dipriv.auditing.results import Exact
from dipriv.kernels import ExactRatio
from dipriv.mechanism import Chain, Levels, Mechanism, Separate, compose
from dipriv.release.fitting import FittedMechanism


def exact_epsilon(fitted: FittedMechanism, epsilon: float | None = None) -> tuple[Exact, ...]:
    """The exact ε of each column with a finite kernel, and of a row if all are finite; nothing for noise on reals.

    A column is compared with its part of ε, a row with `epsilon`, the claim; the default is the ε of the kernel.
    """
    claimed = fitted.kernel.epsilon if epsilon is None else epsilon
    mechanism = compose([column.codec for column in fitted.columns], fitted.reference, fitted.kernel, fitted.order)
    of_v = [column.name for column in fitted.columns for _ in range(column.codec.dims)]
    found = _ratios(mechanism, len(of_v))
    if len(found) < len(of_v) or fitted.kernel.of_column(0) is None:
        return tuple(
            Exact("a row, all columns together", claimed, smallest_exponent(one.ratio)) for one in found if one
        )
    if len(found) == 1:
        return tuple(Exact(f"column {of_v[0]!r}", claimed, smallest_exponent(one.ratio)) for one in found if one)
    names = (of_v[position] for position in fitted.order)
    each = tuple(
        Exact(f"column {name!r}", rounded_up(one.budget), smallest_exponent(one.ratio))
        for name, one in zip(names, found, strict=True)
        if one
    )
    if None in found:
        return each
    together: Fraction | None = Fraction(1)
    for one in found:
        together = None if one is None or one.ratio is None or together is None else together * one.ratio
    return (*each, Exact("a row, all columns", claimed, smallest_exponent(together)))


def smallest_exponent(ratio: Fraction | None) -> float:
    """The smallest double f with ratio <= e^f, decided exactly: f exceeds a claim iff the ratio exceeds e^claim."""
    if ratio is None:
        return math.inf
    with localcontext(prec=60):
        f = float((Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln())
    f = max(f, 0.0)
    while f > 0 and is_at_most_exp(ratio, lower := math.nextafter(f, 0.0)):
        f = lower
    while not is_at_most_exp(ratio, f):
        f = math.nextafter(f, math.inf)
    return f


def is_at_most_exp(ratio: Fraction, f: float) -> bool:
    """Whether ratio <= e^f. Enough digits always decide it, since e to a rational other than 0 is irrational."""
    if f == 0:
        return ratio <= 1
    digits = 40
    while True:
        with localcontext(prec=digits):
            power = Fraction(Decimal(f).exp())  # within half a unit of the last of its digits
        error = power / 10 ** (digits - 1)
        if ratio <= power - error:
            return True
        if ratio > power + error:
            return False
        digits *= 2


def _ratios(mechanism: Mechanism, width: int) -> list[ExactRatio | None]:
    """Of each column of U, or one of all columns together; None for a column whose noise is not finite."""
    if isinstance(mechanism, Separate):
        return [_ratios(part, 1)[0] for part in mechanism.parts]
    if isinstance(mechanism, Levels):
        return [ExactRatio(mechanism.transition.exact_ratio(), mechanism.transition.budget)]
    ratios = mechanism.kernel.exact_ratios() if isinstance(mechanism, Chain) else None
    return [None] * width if ratios is None else list(ratios)


def rounded_up(number: Fraction) -> float:
    """The smallest float that is at least this number."""
    near = float(number)
    return near if Fraction(near) >= number else math.nextafter(near, math.inf)
