"""Noisy histograms made smoother: what noise explains is averaged out, what stands out stays.

Everything here is post-processing of numbers that are already private.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solveh_banded

from dipriv._base.arrays import FloatArray
from dipriv._base.jit import jit
from dipriv.references._learning.measurements import Spread
from dipriv.references._learning.postprocess import quantile

SPURIOUS = 0.1
"""About how many bins of a histogram noise alone may take for single peaks."""
MAX_BINS = 3000
"""Time grows with the square of the number of bins; a histogram of more has bins that adapt already."""
MIN_WEIGHT = 1e-12
"""Bins that are narrower than this part of the widest one count as that wide."""
MIN_LEVELS = 5
PENALTIES = 10.0 ** np.arange(-2.0, 6.5, 0.5)
PEAK, PEAK_ROUNDS = 1.2, 6
"""A level that differs from the median of its neighbours by this many times what noise explains is a peak."""
PROBES = 32
"""Random vectors that estimate the trace of a matrix."""
BY_CHANCE = 0.01
"""How often noise may take any rare level for a common one."""


def piecewise_even(noisy: FloatArray, widths: FloatArray, spread: Spread, bins: int) -> FloatArray:
    """Segments of even density, by least squares with a penalty for each segment (a Potts functional).

    Parameters
    ----------
    noisy
        Counts of adjacent bins.
    widths
        How wide the bins are, in any unit.
    spread
        The noise of a bin.
    bins
        How many bins the histogram has, of which these may be a part.
    """
    count = len(noisy)
    if not 1 < count <= MAX_BINS:
        return noisy
    weights = np.maximum(widths / widths.max(), MIN_WEIGHT)
    ends = np.empty(count, dtype=np.int64)
    penalty = quantile(spread, SPURIOUS / max(2, bins)) ** 2 / 2  # a peak makes two further segments
    best_segments(noisy, weights, penalty, np.empty(count + 1), ends)
    smooth = np.empty(count)
    stop = count
    while stop:
        start = int(ends[stop - 1])
        part = slice(start, stop)
        density = float(noisy[part] @ weights[part]) / float(weights[part] @ weights[part])
        total = noisy[part].sum()
        share = weights[part] * density
        smooth[part] = share * (total / share.sum()) if share.sum() > 0 < total else share
        stop = start
    return smooth


@jit
def best_segments(
    noisy: FloatArray, weights: FloatArray, penalty: float, cost: FloatArray, ends: NDArray[np.int64]
) -> None:
    """ends[k]: where the last segment of the best division of the first k + 1 bins starts (dynamic programming)."""
    cost[0] = 0.0
    for stop in range(1, len(noisy) + 1):
        squares, products, sizes = 0.0, 0.0, 0.0
        best, start = np.inf, 0
        for first in range(stop - 1, -1, -1):
            squares += noisy[first] * noisy[first]
            products += noisy[first] * weights[first]
            sizes += weights[first] * weights[first]
            total = cost[first] + squares - products * products / sizes + penalty
            if total < best:
                best, start = total, first
        cost[stop] = best
        ends[stop - 1] = start


def smooth_with_peaks(noisy: FloatArray, spread: Spread) -> FloatArray:
    """A smooth histogram of adjacent levels, except those that stand out of it, which stay as they are.

    Minimizes the squared error plus a penalty for second differences (Whittaker 1923). The penalty's weight has the
    least risk by Stein's unbiased estimate, which needs the variance of the noise: it is known. Levels that differ from
    the smooth histogram by more than noise explains are left out of the fit.
    """
    count = len(noisy)
    if not MIN_LEVELS <= count <= MAX_BINS:
        return noisy
    far = quantile(spread, SPURIOUS / count)
    padded = np.pad(noisy, 2, mode="reflect")
    nearby = np.median([padded[shift : shift + count] for shift in (0, 1, 3, 4)], axis=0)
    peaks = np.abs(noisy - nearby) > PEAK * far
    for _ in range(PEAK_ROUNDS):
        smooth = _least_risk(noisy, ~peaks, spread.deviation)
        further = ~peaks & (np.abs(noisy - smooth) > far)
        if not further.any():
            break
        peaks |= further
    return np.where(peaks, noisy, smooth)


def _least_risk(noisy: FloatArray, fitted: NDArray[np.bool_], deviation: float) -> FloatArray:
    """The penalized fit to the levels `fitted` that has the least estimated risk."""
    signs = np.where(np.random.default_rng(0).random((len(noisy), PROBES)) < 0.5, -1.0, 1.0)
    right = fitted[:, None] * np.column_stack([noisy, signs])
    differences = _second_differences(len(noisy))
    risk, best = 2.0 * deviation**2 * fitted.sum(), noisy  # the risk of no smoothing
    for penalty in PENALTIES:
        matrix = penalty * differences
        matrix[0] += fitted + MIN_WEIGHT * penalty
        solved = solveh_banded(matrix, right, lower=True)
        smooth: FloatArray = solved[:, 0]
        freedom = float(np.sum((solved[:, 1:] * signs)[fitted])) / PROBES  # a trace, by Hutchinson's estimate
        estimate = float(np.sum((noisy - smooth)[fitted] ** 2)) + 2.0 * deviation**2 * freedom
        if estimate < risk:
            risk, best = estimate, smooth
    return best


def _second_differences(count: int) -> FloatArray:
    """D'D of the matrix D of second differences: its main diagonal and the two below it."""
    bands = np.zeros((3, count))
    for offset, value in ((0, 1.0), (1, -2.0), (2, 1.0)):
        bands[0, offset : count - 2 + offset] += value * value
    bands[1, : count - 2] += -2.0
    bands[1, 1 : count - 1] += -2.0
    bands[2, : count - 2] = 1.0
    return bands


def shrunken(noisy: FloatArray, spread: Spread) -> FloatArray:
    """Counts of levels without an order. Those that stand out stay; the others are shrunk towards their mean.

    How much, is what their own variance says: many levels that differ by noise alone become equally frequent, and no
    rare level becomes common because its noise is the largest of thousands.
    """
    few = noisy < quantile(spread, BY_CHANCE / max(2, len(noisy)))
    count = int(few.sum())
    if count < 2:
        return noisy
    mean, variance = float(noisy[few].mean()), float(noisy[few].var(ddof=1))
    signal = max(0.0, 1.0 - spread.deviation**2 / variance) if variance > 0 else 0.0
    shrunk = noisy.copy()
    shrunk[few] = mean + signal * (noisy[few] - mean)
    return shrunk
