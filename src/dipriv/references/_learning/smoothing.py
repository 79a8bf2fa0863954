"""Noisy histograms made smoother: what noise explains is averaged out, what stands out stays.

Everything here is post-processing of numbers that are already private.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
