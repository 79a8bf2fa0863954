"""The exact sampler: its law, its decimal fallback, its independence of batches, and OpenDP beside it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dipriv._random import discrete_laplace as module
from dipriv._random.bits import Draws, source
from dipriv._random.discrete_laplace import MAX_SCALE, discrete_laplace
from dipriv._random.rejection import ACCEPTED, UNDECIDED, low_bits
from tests.support import ALARM, chi_square_tail, draws


def mass(z: np.ndarray, t: float) -> np.ndarray:
    """P(z) of the discrete Laplace law, from its definition."""
    q = math.exp(-1 / t)
    return np.asarray((1 - q) / (1 + q) * np.exp(-np.abs(z) / t))


@pytest.mark.parametrize("t", [1, 2, 3, 10, 200, 300, 1000])
def test_the_law_is_the_exact_mass_function(t: int) -> None:
    """Small scales have m = 0 and no `low`; from 512 on both parts are at work."""
    n, reach = 400_000, 12 * t
    z = discrete_laplace(draws(1, n), t)
    cells = np.arange(-reach, reach + 1)
    counts = np.bincount(z[np.abs(z) <= reach] + reach, minlength=len(cells))
    beyond = n - counts.sum()
    assert chi_square_tail(np.append(counts, beyond), np.append(mass(cells, t), 1 - mass(cells, t).sum())) > ALARM
    starts = np.linspace(0, len(cells), 24, endpoint=False).astype(int)  # coarser, for a sharper control
    coarse = np.append(np.add.reduceat(counts, starts), beyond)
    for scale, passes in ((t, True), (1.05 * t, False)):
        hoped = np.add.reduceat(mass(cells, scale), starts)
        assert (chi_square_tail(coarse, np.append(hoped, 1 - hoped.sum())) > ALARM) is passes


@pytest.mark.parametrize("t", [2**40, 31 * 2**40 + 7, MAX_SCALE])
def test_large_scales_have_laplace_quantiles_and_fair_low_bits(t: int) -> None:
    n = 200_000
    z = discrete_laplace(draws(2, n), t)
    edges = t * stats.laplace.ppf(np.arange(1, 64) / 64)
    assert chi_square_tail(np.bincount(np.searchsorted(edges, z), minlength=64), np.ones(64)) > ALARM
    assert chi_square_tail(np.bincount(np.searchsorted(1.05 * edges, z), minlength=64), np.ones(64)) < ALARM  # control
    low = np.abs(z) & ((1 << low_bits(t)) - 1)
    fifths = low * 64 // (1 << low_bits(t))
    ratio = (1 << low_bits(t)) / t / 64
    assert chi_square_tail(np.bincount(fifths, minlength=64), np.exp(-ratio * np.arange(64))) > ALARM
    for bit in (0, 7, low_bits(t) - 8):
        assert stats.binomtest(int(((low >> bit) & 1).sum()), n).pvalue > ALARM


@pytest.mark.parametrize("t", [1, 3, 300, 2**20 + 1, 2**40, 31 * 2**40 + 7, MAX_SCALE])
def test_the_decimal_fallback_decides_like_the_fast_path(t: int) -> None:
    """Forced for every draw, it gives the same integers from the same bits."""
    rows = draws(3, 500)
    assert np.array_equal(discrete_laplace(rows, t), discrete_laplace(rows, t, band=math.inf))


def test_the_band_catches_what_the_fast_path_cannot_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words that stand exactly at a threshold are undecided; more digits settle them either way."""
    t, m = 2**40, low_bits(2**40)
    threshold = int(math.exp(-5 * 2**m / t) * 2**64)
    words = np.array([[threshold, 12345], [threshold + (1 << 20), 12345]], dtype=np.uint64)
    z, state = np.empty(2, dtype=np.int64), np.empty(2, dtype=np.uint8)
    module.try_draws(words, float(t), m, module.BAND, z, state)
    assert state.tolist()[0] == UNDECIDED
    low, high = (module._decide(words[0], iter([digit] * 9), t)[0] for digit in (0, 2**64 - 1))
    assert {low >> m, high >> m} <= {4, 5}
    calls: list[int] = []
    decide = module._decide
    monkeypatch.setattr(module, "_decide", lambda *given: calls.append(1) or decide(*given))  # type: ignore[func-returns-value]
    discrete_laplace(draws(4, 2000), t)
    assert not calls  # about once in 10^11


def test_zero_digits_are_followed_by_more() -> None:
    """U = 0.000... has no logarithm yet: the fallback draws on until it has one."""
    t, m = 2**40, low_bits(2**40)
    size, state = module._decide(np.array([0, 12345], dtype=np.uint64), iter([0, 1 << 63, 5]), t)
    assert state == ACCEPTED
    assert size >> m == int(-math.log(2.0**-129) * 256)


def test_batches_do_not_matter() -> None:
    bits = source(5)
    whole = discrete_laplace(Draws(bits, 0, 3000), 5)
    parts = [discrete_laplace(Draws(bits, first, count), 5) for first, count in ((0, 1), (1, 999), (1000, 2000))]
    assert np.array_equal(whole, np.concatenate(parts))


def test_opendp_draws_from_the_same_law() -> None:
    dp = pytest.importorskip("opendp.prelude", reason="opendp is in benchmarks/requirements.txt")
    dp.enable_features("contrib")
    n, t = 20_000, 50
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    theirs = np.array(dp.m.make_laplace(*space, scale=float(t))([0] * n))
    ours = discrete_laplace(Draws(source(None), 0, n), t)
    edges = t * stats.laplace.ppf(np.arange(1, 16) / 16)
    table = [np.bincount(np.searchsorted(edges, z), minlength=16) for z in (ours, theirs)]
    assert stats.chi2_contingency(table).pvalue > ALARM
    table[1] = np.bincount(np.searchsorted(edges, 1.2 * theirs), minlength=16)
    assert stats.chi2_contingency(table).pvalue < ALARM  # control
