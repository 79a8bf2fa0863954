"""Concentrated differential privacy: ρ-zCDP to (ε, δ)-DP, and the tails of discrete Gaussian and Laplace noise.

ρ-zCDP bounds the Rényi divergence of every order α > 1 by αρ, which implies (ε, δ)-DP (Canonne, Kamath, Steinke 2020,
Proposition 12) with

    δ = exp((α-1)(αρ - ε)) / (α-1) · (1 - 1/α)^α.

Double precision only searches a good α. The result for that α is computed in decimal arithmetic, to at least 50 digits,
and then rounded in its 20th digit to the side that claims less privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dipriv._base.arrays import FloatArray

DIGITS = 50
"""The correct decimal digits of a result before it is rounded."""
KEPT = 20
"""The digits that are kept."""
FAR = Fraction(10**4)
"""Chances below exp(-10^4) are rounded up to about that, to keep numerators and denominators short."""
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")


@lru_cache(maxsize=1024)  # a plan asks for the same few budgets again and again
def largest_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest ρ, rounded down, for which ρ-zCDP implies (ε, δ)-DP, for ε ≥ 0 and 0 < δ < 1.

    For each α the formula is solved by ρ(α) = (ε + (ln δ + ln(α-1) - α ln(1 - 1/α))/(α-1))/α.
    """
    x, y = float(epsilon), float(_log(delta))
    a = _maximum(lambda a: (x + (y + np.log(a) + (1 + a) * np.log1p(1 / a)) / a) / (1 + a))
    with localcontext(prec=_precision(a)):
        terms = [_log(delta), a.ln(), -(1 + a) * (a / (1 + a)).ln()]
        return _floor((_decimal(epsilon) + sum(terms) / a) / (1 + a))


def delta_of(rho: Fraction, epsilon: Fraction) -> Fraction:
    """The smallest δ, rounded up, for which ρ-zCDP implies (ε, δ)-DP, for ρ > 0 and ε ≥ 0."""
    r, x = float(rho), float(epsilon)
    a = _maximum(lambda a: np.log(a) + (1 + a) * np.log1p(1 / a) - a * ((1 + a) * r - x))
    with localcontext(prec=_precision(a)):
        log_delta = a * ((1 + a) * _decimal(rho) - _decimal(epsilon)) - a.ln() + (1 + a) * (a / (1 + a)).ln()
        return min(_ceiling(max(log_delta, _decimal(-FAR)).exp()), Fraction(1))


def gaussian_tail(variance: Fraction, k: int) -> Fraction:
    """An upper bound on P(Z ≥ k) for discrete Gaussian Z, within 1% for σ ≥ 100 and k ≤ 12σ.

    With N normal of the same variance, P(Z ≥ k) ≤ P(N ≥ k - 1) for k ≥ 1 (Canonne, Kamath, Steinke 2020,
    Proposition 25), and P(Z ≥ k) ≤ P(N ≥ k - 1/2) for k ≥ σ + 1/2, where the density is convex. For k ≤ 0 it is 1.
    """
    if k <= 0:
        return Fraction(1)
    edge = k - Fraction(1, 2)
    if edge * edge < variance:
        edge = Fraction(k - 1)
    return _normal_tail(min(edge * edge / variance, FAR))


@lru_cache(maxsize=1 << 12)
def gaussian_threshold(variance: Fraction, chance: Fraction) -> int:
    """The smallest k ≥ 1 for which `gaussian_tail` is at most `chance`, which lies strictly between 0 and 1."""
    log_bound = chance.denominator.bit_length() - chance.numerator.bit_length() + 1  # at least ln(1/chance)
    low, high = 0, math.isqrt(math.floor(2 * variance * log_bound)) + 2  # P(N ≥ k - 1) ≤ exp(-(k - 1)²/(2σ²))
    while high - low > 1:
        k = (low + high) // 2
        low, high = (low, k) if gaussian_tail(variance, k) <= chance else (k, high)
    return high


def laplace_threshold(scale: int, chance: Fraction) -> int:
    """The smallest k ≥ 1 with P(Z ≥ k) ≤ `chance`, which lies strictly between 0 and 1, for discrete Laplace Z."""
    with localcontext(prec=DIGITS + 10 + len(str(scale))):
        k = -scale * (_log(chance) + (1 + (Decimal(-1) / scale).exp()).ln())
        return max(1, math.ceil(k + Decimal(10) ** -DIGITS))


def _normal_tail(square: Fraction) -> Fraction:
    """P(N ≥ √square) for a standard normal variable N, rounded up."""
    with localcontext(prec=DIGITS + 20):
        x = _decimal(square).sqrt()
        density = (-_decimal(square) / 2).exp() / (2 * PI).sqrt()
        if x < 3:  # 1/2 less a series of positive terms
            term = total = x
            for odd in range(3, 201, 2):
                term *= x * x / odd
                total += term
            return _ceiling(Decimal("0.5") - density * total)
        mills = x  # the continued fraction of Laplace; ended at an even number it is an upper bound
        for number in range(200, 0, -1):
            mills = x + number / mills
        return _ceiling(density / mills)


def _maximum(f: Callable[[FloatArray], FloatArray]) -> Decimal:
    """A number a = α - 1 > 0 that nearly maximizes f: a grid of powers, made finer around its best point."""
    low, high = -50.0, 300.0
    for _ in range(4):
        grid = np.linspace(low, high, 1001)
        with np.errstate(over="ignore", invalid="ignore"):
            best = int(np.nanargmax(f(np.exp(grid))))
        low, high = grid[max(best - 2, 0)], grid[min(best + 2, 1000)]
    return Decimal(float(np.exp(grid[best])))


def _precision(a: Decimal) -> int:
    """Digits that make up for cancellation: 1 - 1/α is within 1/a of one, or of the order of a."""
    return DIGITS + 20 + 2 * abs(a.adjusted())


def _decimal(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / x.denominator


def _log(x: Fraction) -> Decimal:
    return _decimal(x).ln()


def _floor(x: Decimal) -> Fraction:
    """The positive number x, less its error, rounded down."""
    return Fraction(Context(prec=KEPT, rounding=ROUND_FLOOR).plus(x - x.scaleb(-DIGITS + 10)))


def _ceiling(x: Decimal) -> Fraction:
    """The positive number x, plus its error, rounded up."""
    return Fraction(Context(prec=KEPT, rounding=ROUND_CEILING).plus(x + x.scaleb(-DIGITS + 10)))
