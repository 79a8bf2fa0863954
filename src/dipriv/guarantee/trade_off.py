"""The trade-off of (ε, δ)-differential privacy between an event's probabilities under two neighbouring datasets."""

from __future__ import annotations

import math

_MAX_EXPONENT = 700.0
"""e to a larger power overflows."""
_SLACK = 1 + 2.0**-50
"""More than the rounding errors of one exponential and two products."""


def largest_probability(chance: float, epsilon: float, delta: float = 0.0) -> float:
    """The largest p that (ε, δ)-DP allows an event whose probability under a neighbour is q = `chance`; rounded up.

    The event has p <= e^ε q + δ and its complement 1 - q <= e^ε (1 - p) + δ, so that

        p <= min(1, e^ε q + δ, 1 - e^-ε (1 - q - δ))

    (Kairouz, Oh, Viswanath 2015, Theorem 2.1). For the rejection of a hypothesis, q is the level of the test and p its
    power: Lemma 1 of the paper, for δ = 0 (Wasserman and Zhou 2010, Theorem 2.4).

    >>> round(largest_probability(0.1, math.log(3)), 3), round(largest_probability(0.5, math.log(3)), 3)
    (0.3, 0.833)
    >>> round(largest_probability(0.1, math.log(3), delta=0.01), 3)
    0.31
    """
    if not delta and (not epsilon or not chance):
        return chance
    factor = math.exp(epsilon) * _SLACK if epsilon < _MAX_EXPONENT else math.inf
    more = _up(_up(chance * factor if chance else 0.0) + delta)
    rest = max(0.0, _down(_down(1 - chance) - delta))
    return min(1.0, more, _up(1 - _down(rest * (math.exp(-epsilon) / _SLACK))))


def _up(number: float) -> float:
    return math.nextafter(number, math.inf)


def _down(number: float) -> float:
    return math.nextafter(number, -math.inf)
