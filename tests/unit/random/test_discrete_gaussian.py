"""The exact discrete Gaussian sampler: its distribution, its decimal fallback, its bits, and OpenDP beside it."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dipriv._random import discrete_gaussian as module
from dipriv._random.bits import Draws, source
from dipriv._random.discrete_gaussian import MAX_VARIANCE, discrete_gaussian, proposal_scale
from dipriv._random.rejection import ACCEPTED, UNDECIDED, low_bits
from tests.support import ALARM, chi_square_tail, draws

TINY = Fraction(1, 10**400)
"""A variance that is zero in double precision."""


def mass(z: NDArray[np.int64], variance: float) -> NDArray[np.float64]:
    """P(z) of the discrete Gaussian distribution on a range that contains all but its far tails."""
    weights = np.exp(-(z.astype(float) ** 2) / (2 * variance))
    return np.asarray(weights / weights.sum())


def rounded_mass(z: NDArray[np.int64], variance: float) -> NDArray[np.float64]:
    """P(z) of a normal variable that is rounded to the nearest integer."""
    edges = stats.norm.cdf(np.append(z - 0.5, z[-1] + 0.5), scale=math.sqrt(variance))
    return np.diff(edges)


@pytest.mark.parametrize("variance", [Fraction(1, 4), Fraction(2, 3), 1, Fraction(7, 2), 100, 511**2, 1000**2])
def test_the_distribution_is_the_exact_mass_function(variance: Fraction | int) -> None:
    """Small variances have no `low`; from a standard deviation of 511 on both parts are at work."""
    n, sigma = 400_000, math.sqrt(variance)
    reach = math.ceil(9 * sigma)
    z = discrete_gaussian(draws(1, n), Fraction(variance))
    assert np.abs(z).max() <= reach  # beyond is less likely than 1e-18 a draw
    cells = np.arange(-reach, reach + 1)
    counts = np.bincount(z + reach, minlength=len(cells))
    assert chi_square_tail(counts, mass(cells, float(variance))) > ALARM
    starts = np.unique(np.linspace(0, len(cells), 48, endpoint=False).astype(int))  # coarser, for a sharper control
    for factor, passes in ((1.0, True), (0.8, False)):
        hoped = np.add.reduceat(mass(cells, factor * float(variance)), starts)
        assert (chi_square_tail(np.add.reduceat(counts, starts), hoped) > ALARM) is passes
    if variance == 1:
        assert chi_square_tail(counts, rounded_mass(cells, 1.0)) < ALARM  # control


@pytest.mark.parametrize("variance", [2**40, MAX_VARIANCE - Fraction(1, 3), MAX_VARIANCE])
def test_large_variances_have_normal_quantiles_and_fair_low_bits(variance: Fraction | int) -> None:
    n, sigma = 200_000, math.sqrt(variance)
    z = discrete_gaussian(draws(2, n), Fraction(variance))
    edges = sigma * stats.norm.ppf(np.arange(1, 64) / 64)
    assert chi_square_tail(np.bincount(np.searchsorted(edges, z), minlength=64), np.ones(64)) > ALARM
    wrong = math.sqrt(0.8) * edges
    assert chi_square_tail(np.bincount(np.searchsorted(wrong, z), minlength=64), np.ones(64)) < ALARM  # control
    for bit in (0, 5, low_bits(proposal_scale(Fraction(variance))) - 8):
        assert stats.binomtest(int(((np.abs(z) >> bit) & 1).sum()), n).pvalue > ALARM


@pytest.mark.parametrize("variance", [Fraction(1, 100), TINY])
def test_tiny_variances_give_zeros(variance: Fraction) -> None:
    """P(z ≠ 0) is 4e-22 for a variance of 1/100."""
    assert not discrete_gaussian(draws(3, 1000), variance).any()


@pytest.mark.parametrize("variance", [Fraction(2, 3), Fraction(7, 2), 250_000, 700**2])
def test_the_decisions_give_the_exact_mass_function(variance: Fraction | int) -> None:
    """P(z is proposed) P(it is accepted), by bisection of the coin, is proportional to exp(-z²/(2σ²))."""
    variance = Fraction(variance)
    t = proposal_scale(variance)
    m = low_bits(t)
    highs = {0, 1, 2, 3, (t >> m) - 1, t >> m, 2 * t >> m}
    pairs = itertools.product(sorted(highs), sorted({0, (1 << m) // 3, (1 << m) - 1}))
    sizes = [size for high, low in pairs if (size := (high << m) + low) <= 4 * math.sqrt(variance)]
    error = 2.0 ** (m - 63) * math.exp(8) * 2  # a unit of the coin, relative to an acceptance of exp(-8) or more
    for factor, agrees in ((Fraction(1), True), (Fraction(4, 5), False)):
        ratios = [_accepted_mass(size, variance, t, m) / _weight(size, factor * variance) for size in sizes]
        assert (max(ratios) / min(ratios) - 1 <= error) is agrees


def _weight(size: int, variance: Fraction) -> Decimal:
    with localcontext(prec=60):
        exponent = size * size / (2 * variance)
        return (Decimal(-exponent.numerator) / exponent.denominator).exp()


def _accepted_mass(size: int, variance: Fraction, t: int, m: int) -> Decimal:
    """P(|z| = size is proposed) times the least coin that is rejected."""
    high, low = size >> m, size & ((1 << m) - 1)
    with localcontext(prec=60):
        ends = [(Decimal(-(high + more) << m) / t).exp() for more in (0, 1)]
        first = int((ends[0] + ends[1]) / 2 * (1 << 64))
        accepted, rejected = 0, 1 << (63 - m)
        while rejected - accepted > 1:
            coin = (accepted + rejected) // 2
            words = np.array([first, coin << (m + 1) | low], dtype=np.uint64)
            state = module._decide(words, iter([1 << 63] * 9), variance)
            assert state[1] != ACCEPTED or state[0] == size
            accepted, rejected = (coin, rejected) if state[1] == ACCEPTED else (accepted, coin)
        return (ends[0] - ends[1]) * rejected / (1 << 63)


@pytest.mark.parametrize(
    "variance", [TINY, Fraction(1, 100), Fraction(2, 3), 1, 90_000, 2**40 + Fraction(1, 3), MAX_VARIANCE]
)
def test_the_decimal_fallback_decides_like_the_fast_path(variance: Fraction | int) -> None:
    """Forced for every draw, it gives the same integers from the same bits."""
    rows = draws(4, 500)
    given = Fraction(variance)
    assert np.array_equal(discrete_gaussian(rows, given), discrete_gaussian(rows, given, band=math.inf))


def test_the_band_catches_what_the_fast_path_cannot_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A U between two values of `high` is undecided, and a coin at its threshold; more digits settle them."""
    variance = Fraction(2**40)
    t = proposal_scale(variance)
    m = low_bits(t)
    edge, inside = (int(math.exp(-high * 2**m / t) * 2**64) for high in (5, 5.5))
    chance = math.exp(-float((5 * 2**m - variance / t) ** 2 / (2 * variance)))
    near, far = (int(share * chance * 2 ** (63 - m)) << (m + 1) for share in (1, 0.5))
    words = np.array([[edge, far], [inside, near], [inside, far]], dtype=np.uint64)
    z, state = np.empty(3, dtype=np.int64), np.empty(3, dtype=np.uint8)
    module.try_draws(words, float(variance), float(t), m, module.BAND, z, state)
    assert state.tolist() == [UNDECIDED, UNDECIDED, ACCEPTED]
    assert z[2] == 5 << m
    assert {module._decide(words[0], iter([digit] * 9), variance)[0] >> m for digit in (0, 2**64 - 1)} <= {4, 5}
    calls: list[int] = []
    decide = module._decide
    monkeypatch.setattr(module, "_decide", lambda *given: calls.append(1) or decide(*given))  # type: ignore[func-returns-value]
    discrete_gaussian(draws(5, 2000), variance)
    assert not calls  # about once in 10^10


def test_batches_do_not_matter() -> None:
    bits, variance = source(6), Fraction(77, 3)
    whole = discrete_gaussian(Draws(bits, 0, 3000), variance)
    parts = [discrete_gaussian(Draws(bits, first, n), variance) for first, n in ((0, 1), (1, 999), (1000, 2000))]
    assert np.array_equal(whole, np.concatenate(parts))
    assert not np.array_equal(whole, discrete_gaussian(Draws(source(7), 0, 3000), variance))  # control


def test_opendp_draws_from_the_same_distribution() -> None:
    dp = pytest.importorskip("opendp.prelude", reason="opendp is in benchmarks/requirements.txt")
    dp.enable_features("contrib")
    n, sigma = 20_000, 50
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    theirs = np.array(dp.m.make_gaussian(*space, scale=float(sigma))([0] * n))
    ours = discrete_gaussian(Draws(source(None), 0, n), Fraction(sigma**2))
    edges = sigma * stats.norm.ppf(np.arange(1, 16) / 16)
    table = [np.bincount(np.searchsorted(edges, z), minlength=16) for z in (ours, theirs)]
    assert stats.chi2_contingency(table).pvalue > ALARM
    table[1] = np.bincount(np.searchsorted(edges, 1.2 * theirs), minlength=16)
    assert stats.chi2_contingency(table).pvalue < ALARM  # control
