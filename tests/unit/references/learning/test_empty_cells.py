"""Noise in the empty cells of two-way tables: gone where a table has many of them, kept where it has none."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate

from dipriv._base.arrays import FloatArray
from dipriv.references._learning.empty_cells import _log_filled, _log_noise, without_noise
from dipriv.references._learning.measurements import NoiseKind, Spread

KINDS: list[NoiseKind] = ["laplace", "gaussian"]
SCALE = 30.0


def noise(kind: NoiseKind, shape: tuple[int, ...], seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    return rng.laplace(0.0, SCALE, shape) if kind == "laplace" else rng.normal(0.0, SCALE, shape)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mean", [45.0, 1000.0])
def test_densities_are_those_of_noise_alone_and_of_noise_plus_an_exponential_count(
    kind: NoiseKind, mean: float
) -> None:
    spread = Spread(kind, SCALE)

    def density(count: float, at: float) -> float:
        return float(np.exp(_log_noise(np.array([at - count]), spread) - count / mean)[0]) / mean

    for at in (-90.0, -1.0, 0.0, 40.0, 700.0):
        wanted, error = integrate.quad(
            density, 0, max(at, 0.0) + 30 * SCALE, points=[max(at, 0.0)], args=(at,), limit=400, epsabs=0
        )
        found = float(np.exp(_log_filled(np.array([at]), np.array([mean]), spread))[0])
        assert found == pytest.approx(wanted, abs=10 * error, rel=1e-6)
    whole, _ = integrate.quad(lambda at: float(np.exp(_log_noise(np.array([at]), spread))[0]), -900, 900, limit=400)
    assert whole == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_noise_does_not_fill_the_empty_cells_of_a_function(kind: NoiseKind) -> None:
    """The mean of max(0, noise) is half its mean size; less than half of that is left, and full cells stay."""
    true = np.kron(np.eye(12), np.full((1, 1), 1500.0))
    expected = np.full(true.shape, true.mean())
    spread = Spread(kind, SCALE)
    for seed in range(5):
        noisy = true + noise(kind, true.shape, seed)
        found = without_noise(noisy, expected, spread)
        assert np.maximum(found, 0)[true == 0].mean() < 0.5 * spread.mean_size / 2
        assert np.maximum(noisy, 0)[true == 0].mean() > 0.6 * spread.mean_size / 2  # control: the noise itself
        assert found[true > 0] == pytest.approx(noisy[true > 0], rel=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_without_empty_cells_stays_as_it_is(kind: NoiseKind) -> None:
    true = np.outer(np.linspace(1, 2, 10), np.linspace(1, 2, 8)) * 250.0
    spread = Spread(kind, SCALE)
    for seed in range(5):
        noisy = true + noise(kind, true.shape, seed)
        found = without_noise(noisy, true, spread)
        assert np.abs(found - noisy).sum() < 0.1 * np.abs(noisy - true).sum()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (40, 2)])
def test_any_counts_have_a_finite_answer_between_zero_and_themselves(kind: NoiseKind, shape: tuple[int, int]) -> None:
    for size in (0.0, 1.0, 1e6, 1e12):
        noisy = size * noise(kind, shape, 1)
        found = without_noise(noisy, np.full(shape, 1e3), Spread(kind, SCALE))
        assert np.all(np.isfinite(found))
        assert np.all(np.abs(found) <= np.abs(noisy))
        if size > 1:
            assert found[noisy > 0] == pytest.approx(noisy[noisy > 0], rel=1e-6)
