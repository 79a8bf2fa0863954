"""Conversion of zCDP and tails of noise, against the definitions in many digits; a little less is never valid."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import pytest

from dipriv.references._learning.zcdp import (
    delta_of,
    gaussian_tail,
    gaussian_threshold,
    laplace_threshold,
    largest_rho,
)
from tests.unit import exact_laplace

DIGITS = 60
PAIRS = [
    (Fraction(epsilon), Fraction(delta))
    for epsilon in ("0", "1e-6", "0.1", "1", "10", "1000")
    for delta in ("1e-30", "1e-9", "1e-6", "0.01", "0.5")
]


def decimal(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / x.denominator


def delta_at(a: Decimal, rho: Fraction, epsilon: Fraction) -> Decimal:
    """ln δ of the formula at α = 1 + a."""
    return a * ((1 + a) * decimal(rho) - decimal(epsilon)) - a.ln() + (1 + a) * (a / (1 + a)).ln()


def best_log_delta(rho: Fraction, epsilon: Fraction) -> Decimal:
    """min over α of ln δ by golden section: in x = ln(α-1) it falls, then rises."""
    with localcontext(prec=2 * DIGITS):
        shrink = (Decimal(5).sqrt() - 1) / 2
        low, high = Decimal(-40), Decimal(100)
        for _ in range(150):
            left, right = high - shrink * (high - low), low + shrink * (high - low)
            smaller = delta_at(left.exp(), rho, epsilon) < delta_at(right.exp(), rho, epsilon)
            low, high = (low, right) if smaller else (left, high)
        return delta_at(low.exp(), rho, epsilon)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_rho_is_valid_and_no_larger_one_is(epsilon: Fraction, delta: Fraction) -> None:
    rho = largest_rho(epsilon, delta)
    with localcontext(prec=DIGITS):
        limit = decimal(delta).ln()
    assert best_log_delta(rho, epsilon) <= limit
    assert delta_of(rho, epsilon) <= delta * (1 + Fraction(1, 10**12))
    assert best_log_delta(rho * Fraction(1_000_001, 1_000_000), epsilon) > limit  # within 1e-6 of the best
    assert best_log_delta(rho * Fraction(101, 100), epsilon) > limit + Decimal("1e-3")  # control


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_delta_is_the_formula_rounded_up(epsilon: Fraction, delta: Fraction) -> None:
    rho = largest_rho(epsilon, delta)
    with localcontext(prec=DIGITS):
        found, best = decimal(delta_of(rho, epsilon)), best_log_delta(rho, epsilon).exp()
        assert best * (1 - Decimal(10) ** -15) <= found <= best * (1 + Decimal("1e-6"))


def test_rho_stays_below_the_simple_conversion() -> None:
    """ρ + 2 sqrt(ρ ln(1/δ)) = ε (Bun and Steinke 2016) gives a smaller ρ; at ε = 1 and δ = 1e-9 by some percents."""
    log = math.log(1e9)
    simple = (math.sqrt(log + 1) - math.sqrt(log)) ** 2
    assert 1.05 * simple < largest_rho(Fraction(1), Fraction(1, 10**9)) < 1.5 * simple


def test_delta_lies_between_zero_and_one() -> None:
    assert delta_of(Fraction(100), Fraction(1, 10)) == pytest.approx(1.0)
    assert 0 < delta_of(Fraction(1, 10**9), Fraction(1)) < Fraction(1, 10**4000)


def exact_gaussian_tail(variance: Fraction, k: int) -> Decimal:
    """P(Z ≥ k) by summation."""
    with localcontext(prec=DIGITS):
        reach = k + math.isqrt(math.ceil(400 * variance)) + 40
        half = 1 / (2 * decimal(variance))
        ratio, step = (-half).exp(), (-2 * half).exp()  # from z to z + 1 the weight falls by exp(-(2z + 1)/(2σ²))
        weight, total, tail = Decimal(1), Decimal(0), Decimal(0)
        for z in range(reach):
            total += weight if z == 0 else 2 * weight
            tail += weight if z >= k else 0
            weight, ratio = weight * ratio, ratio * step
        return tail / total


@pytest.mark.parametrize("variance", [Fraction(1, 2), 1, Fraction(10), 100, 100**2, 1000**2 + Fraction(1, 7)])
def test_the_gaussian_tail_is_an_upper_bound_and_tight_for_large_variances(variance: Fraction | int) -> None:
    variance = Fraction(variance)
    sigma = math.sqrt(variance)
    for k in sorted({1, 2, *(math.ceil(x * sigma) for x in (0.3, 0.9, 1.0, 1.1, 1.6, 3.0, 6.0, 9.0, 12.0))}):
        exact = exact_gaussian_tail(variance, k)
        assert exact <= decimal(gaussian_tail(variance, k))
        if sigma >= 100:
            assert decimal(gaussian_tail(variance, k)) <= exact * Decimal("1.01")
            assert decimal(gaussian_tail(variance, k + math.ceil(sigma / 50))) < exact  # control: no bound for k
    assert gaussian_tail(variance, 0) == 1


def test_the_gaussian_tail_of_huge_variances() -> None:
    """There it is the normal tail, here to the digits of a printed table (1 - Φ at 1, 3, 6, 9)."""
    variance = Fraction(2**80)
    for x, tail in (
        (1, 0.15865525393145705),
        (3, 0.0013498980316300946),
        (6, 9.865876450376981e-10),
        (9, 1.1285884059538e-19),
    ):
        assert float(gaussian_tail(variance, x << 40)) == pytest.approx(tail, rel=1e-9)
    assert 0 < gaussian_tail(Fraction(1, 100), 2**45) < Fraction(1, 10**2000)


def test_the_gaussian_tail_falls() -> None:
    """Also where one formula ends and the next begins."""
    variance = Fraction(400)
    tails = [gaussian_tail(variance, k) for k in range(400)]
    assert all(more > less for more, less in pairwise(tails))
    assert tails[1] <= Fraction(1, 2) + Fraction(1, 10**15)


@pytest.mark.parametrize("chance", ["0.4", "1e-3", "1e-9", "1e-15", "1e-300"])
@pytest.mark.parametrize("variance", [Fraction(1, 100), Fraction(1), Fraction(10**8, 7), Fraction(2**80)])
def test_the_gaussian_threshold_is_the_smallest_by_its_tail(variance: Fraction, chance: str) -> None:
    share = Fraction(chance)
    k = gaussian_threshold(variance, share)
    assert gaussian_tail(variance, k) <= share < gaussian_tail(variance, k - 1)
    if variance == Fraction(10**8, 7):  # a standard deviation of 3780: 5 steps less are too few
        assert exact_gaussian_tail(variance, k) <= decimal(share) < exact_gaussian_tail(variance, k - 5)


def test_a_chance_smaller_than_the_tail_can_say_still_has_a_valid_threshold() -> None:
    """P(Z ≥ k) ≤ P(N ≥ k - 1) ≤ exp(-(k - 1)²/2)."""
    share = Fraction(1, 10**9000)
    assert (gaussian_threshold(Fraction(1), share) - 1) ** 2 / 2 >= 9000 * math.log(10)


@pytest.mark.parametrize("chance", ["0.999", "0.5", "1e-3", "1e-9", "1e-40"])
@pytest.mark.parametrize("scale", [1, 3, 1000, 2**40 + 7, 2**56])
def test_the_laplace_threshold_is_the_smallest(scale: int, chance: str) -> None:
    share = Fraction(chance)
    k = laplace_threshold(scale, share)
    assert exact_laplace.at_least(k, scale) <= decimal(share)
    assert k == 1 or exact_laplace.at_least(k - 1, scale) > decimal(share)
