"""Distances between two distributions on a common list of values, and what sampling alone would give for them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray
from dipriv.report.facts import Distance

REPEATS = 200
"""How many pairs of samples are drawn to see what sampling alone gives."""
BINS = 20
_FEW = 2000

Measure = Callable[[FloatArray, FloatArray], float]
"""Two vectors of shares of the same values -> a distance."""


def kolmogorov(p: FloatArray, q: FloatArray) -> float:
    """The largest difference of the distribution functions; the values must be sorted."""
    return float(np.max(np.abs(np.cumsum(p - q))))


def total_variation(p: FloatArray, q: FloatArray) -> float:
    """Half the sum of the differences: the share of rows to move to make the one the other."""
    return float(0.5 * np.sum(np.abs(p - q)))


def wasserstein(values: FloatArray, scale: float) -> Measure:
    """The mean distance that rows have to move along the line, in units of `scale`."""
    gaps = np.diff(values) / scale

    def measure(p: FloatArray, q: FloatArray) -> float:
        return float(np.sum(np.abs(np.cumsum(p - q)[:-1]) * gaps))

    return measure


def line_distances(before: FloatArray, after: FloatArray, rng: np.random.Generator) -> tuple[Distance, ...]:
    """Kolmogorov-Smirnov, total variation (in quantile bins) and Wasserstein for numbers."""
    values, places = np.unique(np.concatenate([before, after]), return_inverse=True)
    bin_of = np.searchsorted(bin_edges(before), values, side="right")

    def binned(p: FloatArray, q: FloatArray) -> float:
        return 0.5 * float(np.sum(np.abs(np.bincount(bin_of, p - q))))

    measures: dict[str, Measure] = {"KS": kolmogorov, "Total variation": binned}
    sd = float(np.std(before))
    if 0 < sd < np.inf:
        measures["Wasserstein / sd"] = wasserstein(values, sd)
    return _measure_all(measures, places, len(values), len(before), rng)


def label_distances(before: FloatArray, after: FloatArray, rng: np.random.Generator) -> tuple[Distance, ...]:
    """Total variation for codes of labels."""
    values, places = np.unique(np.concatenate([before, after]), return_inverse=True)
    return _measure_all({"Total variation": total_variation}, places, len(values), len(before), rng)


def bin_edges(values: FloatArray) -> FloatArray:
    """Inner edges of bins: one bin a value where there are few values, else about 20 with equal shares of the rows."""
    distinct = np.unique(values)
    if len(distinct) <= BINS:
        return distinct[1:]
    inner = np.arange(1, BINS) / BINS
    return np.unique(np.quantile(values, inner, method="inverted_cdf"))


def _measure_all(
    measures: dict[str, Measure], places: NDArray[np.intp], width: int, n: int, rng: np.random.Generator
) -> tuple[Distance, ...]:
    """All measures between the first n and the other rows, and between pairs of samples of the first n."""
    m = len(places) - n
    counts = np.bincount(places[:n], minlength=width)
    p, q = counts / n, np.bincount(places[n:], minlength=width) / m
    chance: dict[str, list[float]] = {name: [] for name in measures}
    for _ in range(REPEATS):
        first, second = (_resample(places[:n], counts, size, rng) / size for size in (n, m))
        for name, measure in measures.items():
            chance[name].append(measure(first, second))
    return tuple(
        Distance(name, measure(p, q), float(np.mean(chance[name])), float(np.quantile(chance[name], 0.95)))
        for name, measure in measures.items()
    )


def _resample(rows: NDArray[np.intp], counts: NDArray[np.intp], size: int, rng: np.random.Generator) -> FloatArray:
    """How often each value is met among `size` of the rows, drawn with replacement."""
    if len(counts) <= _FEW:
        return rng.multinomial(size, counts / len(rows)).astype(np.float64)
    drawn = rows[rng.integers(0, len(rows), size)]
    return np.bincount(drawn, minlength=len(counts)).astype(np.float64)
