"""Smoothed histograms: totals stay, steps and peaks stay, what noise explains goes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from dipriv._base.arrays import FloatArray
from dipriv.references._learning.measurements import NoiseKind, Spread
from dipriv.references._learning.postprocess import quantile, to_total
from dipriv.references._learning.smoothing import (
    BY_CHANCE,
    MAX_BINS,
    MIN_LEVELS,
    PENALTIES,
    SPURIOUS,
    piecewise_even,
    shrunken,
    smooth_with_peaks,
)
from tests.support import ALARM

SPREADS = [Spread("laplace", 8.0), Spread("gaussian", 8.0)]
each_spread = pytest.mark.parametrize("spread", SPREADS, ids=lambda spread: spread.kind)


def noise(spread: Spread, count: int, seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    draw = rng.laplace if spread.kind == "laplace" else rng.normal
    return np.asarray(draw(scale=spread.scale, size=count))


@settings(max_examples=150)
@given(
    hnp.arrays(np.float64, st.integers(1, 60), elements=st.floats(-1e6, 1e6)),
    st.sampled_from(["laplace", "gaussian"]),
    st.integers(0, 1000),
)
def test_segments_keep_totals(noisy: FloatArray, kind: NoiseKind, seed: int) -> None:
    """Where counts add up to something; where a segment adds up to nothing, it stays within its noise of nothing."""
    widths = np.random.default_rng(seed).uniform(0.5, 2.0, len(noisy))
    smooth = piecewise_even(np.abs(noisy), widths, Spread(kind, 5.0), len(noisy))
    assert smooth.sum() == pytest.approx(np.abs(noisy).sum(), rel=1e-9, abs=1e-9)
    even = piecewise_even(noisy, np.ones(len(noisy)), Spread(kind, 5.0), len(noisy))
    assert even.sum() == pytest.approx(noisy.sum(), rel=1e-9, abs=1e-9 * float(np.abs(noisy).sum() + 1))


@each_spread
def test_a_step_function_is_recovered(spread: Spread) -> None:
    """Squared errors: a segment of 50 bins has 1/50 of a bin's variance, and as much again for bins beside a step; at
    most four times SPURIOUS bins of a histogram are taken for peaks, of less than twice the threshold.
    """
    truth = np.repeat([1000.0, 400.0, 0.0, 700.0], 50)
    reach, runs = quantile(spread, SPURIOUS / 200), 20
    allowed = 2 * spread.deviation**2 / 50 + 4 * SPURIOUS * (2 * reach) ** 2 / 200
    errors = np.empty((runs, 200))
    for seed in range(runs):
        errors[seed] = piecewise_even(truth + noise(spread, 200, seed), np.ones(200), spread, 200) - truth
    assert np.mean(errors**2) < allowed
    assert np.mean(noise(spread, 200 * runs, 99) ** 2) > allowed  # control: before


@each_spread
def test_widths_are_taken_into_account(spread: Spread) -> None:
    """Even density in bins of uneven widths is one segment."""
    widths = np.resize([1.0, 4.0, 2.0], 90)
    truth = 100.0 * widths
    smooth = piecewise_even(truth + noise(spread, 90, 1), widths, spread, 90)
    density = smooth / widths
    assert np.ptp(density) < 1e-9 * density.max()
    stepped = piecewise_even(truth + noise(spread, 90, 1), np.ones(90), spread, 90)
    assert np.ptp(stepped / widths) > 1.0  # control: as if widths were the same


@each_spread
def test_a_strong_peak_stays_and_a_weak_one_goes(spread: Spread) -> None:
    """A peak of three thresholds is left but for its noise; noise alone makes about SPURIOUS peaks a histogram."""
    reach = quantile(spread, SPURIOUS / 100)
    truth = np.full(100, 50.0)
    truth[37] += 3 * reach
    false, runs = 0, 200
    for seed in range(runs):
        z = noise(spread, 100, seed)
        smooth = piecewise_even(truth + z, np.ones(100), spread, 100)
        if seed < 20:
            assert smooth[37] > 50 + 1.5 * reach
        flat = piecewise_even(np.full(100, 50.0) + z, np.ones(100), spread, 100)
        false += bool(np.ptp(flat) > 1e-6)
    # each end of a bin starts a segment by chance: both thresholds are SPURIOUS/bins, for single bins
    assert false <= stats.binom.isf(ALARM, runs, min(1.0, 4 * SPURIOUS))
    half = Spread(spread.kind, spread.scale / 2)
    thin = sum(
        bool(np.ptp(piecewise_even(noise(spread, 100, seed), np.ones(100), half, 100)) > 1e-6) for seed in range(runs)
    )
    assert thin > stats.binom.isf(ALARM, runs, 4 * SPURIOUS)  # control: noise twice as large as said


def test_one_bin_and_very_many_stay_as_they_are() -> None:
    spread = SPREADS[0]
    for count in (1, MAX_BINS + 1):
        noisy = noise(spread, count, 1)
        assert np.array_equal(piecewise_even(noisy, np.ones(count), spread, count), noisy)


@each_spread
@pytest.mark.parametrize("shape", ["line", "wave"])
def test_a_smooth_histogram_is_recovered(spread: Spread, shape: str) -> None:
    """A line has two degrees of freedom, a slow wave about eight; the choice among m fits costs 4 log m variances."""
    at, runs = np.linspace(0.0, 1.0, 100), 20
    truth = 500.0 + 300.0 * (at if shape == "line" else np.sin(2 * np.pi * at))
    allowed = (8 + 4 * math.log(len(PENALTIES))) * spread.deviation**2 / 100
    errors = np.array([smooth_with_peaks(truth + noise(spread, 100, seed), spread) - truth for seed in range(runs)])
    assert np.mean(errors**2) < allowed
    assert np.mean(noise(spread, 100 * runs, 99) ** 2) > allowed  # control: before


@each_spread
def test_peaks_of_a_smooth_histogram_stay_as_they_are(spread: Spread) -> None:
    """Peaks of three thresholds, two of them side by side; the levels around them are not drawn up."""
    reach = quantile(spread, SPURIOUS / 100)
    truth = 500.0 + np.linspace(0.0, 200.0, 100)
    high = [20, 60, 61]
    peaks = truth.copy()
    peaks[high] += 3 * reach + 10_000.0
    around = np.setdiff1d(np.arange(100), high)
    for seed in range(20):
        noisy = peaks + noise(spread, 100, seed)
        smooth = smooth_with_peaks(noisy, spread)
        assert np.array_equal(smooth[high], noisy[high])
        assert np.abs(smooth - truth)[around].max() < 2 * reach
        assert np.abs(np.convolve(noisy, np.ones(3) / 3, "same") - truth)[around].max() > 2 * reach  # control


def test_few_levels_and_very_many_are_not_smoothed() -> None:
    for count in (1, MIN_LEVELS - 1, MAX_BINS + 1):
        noisy = noise(SPREADS[0], count, 1)
        assert np.array_equal(smooth_with_peaks(noisy, SPREADS[0]), noisy)


@each_spread
def test_no_rare_label_of_thousands_becomes_common(spread: Spread) -> None:
    """2,000 labels of one row each and one common one: rare labels stay within what noise explains of their mean.

    Without signal their variance is that of noise: the shrinkage factor 1 - σ²/s² is about the relative error of s²,
    √(κ/n) with κ the kurtosis less one, at most five for Laplace noise.
    """
    rows, count = 20_000, 2000
    truth = np.ones(count)
    truth[0] = rows - count + 1
    for seed in range(20):
        noisy = truth + noise(spread, count, seed)
        shrunk = shrunken(noisy, spread)
        rare = shrunk[1:]
        factor = stats.norm.isf(ALARM / 2) * math.sqrt(5 / count)
        explained = quantile(spread, BY_CHANCE / count)
        allowed = 1 + factor * explained + spread.deviation * stats.norm.isf(ALARM / 2) / math.sqrt(count)
        passed = rare > explained  # at most BY_CHANCE of the histograms have one
        assert passed.sum() <= 1
        assert rare[~passed].max() <= allowed
        assert np.sort(noisy[1:])[-5] > allowed  # control: several noisy counts are above
        assert shrunk[0] == noisy[0]  # the common one stays
        settled = to_total(shrunk, float(rows))
        assert settled[1:][~passed].max() <= allowed


@each_spread
def test_labels_that_differ_are_not_made_equal(spread: Spread) -> None:
    """Counts that vary by far more than noise are hardly shrunk."""
    truth = np.linspace(0, 2000.0, 100)
    noisy = truth + noise(spread, 100, 1)
    assert np.abs(shrunken(noisy, spread) - truth).max() < 1.5 * np.abs(noisy - truth).max()
    assert np.corrcoef(shrunken(noisy, spread), truth)[0, 1] > 0.999


def test_a_single_label_stays() -> None:
    assert shrunken(np.array([3.0]), SPREADS[0]).tolist() == [3.0]
    assert shrunken(np.array([500.0, 3.0]), SPREADS[0]).tolist() == [500.0, 3.0]
    assert shrunken(np.array([2.0, 2.0, 2.0]), SPREADS[0]).tolist() == [2.0, 2.0, 2.0]
