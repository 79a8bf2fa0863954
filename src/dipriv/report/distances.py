"""Distances between two distributions on a common list of values, and what sampling alone would give for them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray
from dipriv.report.facts import Distance
from dipriv.utility.total_variation import cell_edges, total_variation

REPEATS, FEW_REPEATS = 200, 40
"""How many pairs of samples are drawn to see what sampling alone gives; fewer for wide tables."""
KS, TOTAL_VARIATION, WASSERSTEIN = "KS", "Total variation", "Wasserstein / sd"
_FEW = 2000

Measure = Callable[[FloatArray, FloatArray], float]
"""Two vectors of shares of the same values, the last one that of missing cells -> a distance."""


def distances(
    before: FloatArray, after: FloatArray, *, are_labels: bool, rng: np.random.Generator, repeats: int = REPEATS
) -> tuple[Distance, ...]:
    """Total variation, and for numbers Kolmogorov-Smirnov and Wasserstein distances of the cells that are there.

    Parameters
    ----------
    before, after : numbers, or codes of labels; not-a-number where a cell is missing.
    are_labels : whether they are codes.
    rng : for samples of the original.
    repeats : how many pairs of samples are drawn.

    Returns
    -------
    Distance : of each measure, with its values for two samples of the original.
    """
    both = np.concatenate([before, after])
    values, places = np.unique(both[~np.isnan(both)], return_inverse=True)
    place_of = np.full(len(both), len(values))
    place_of[~np.isnan(both)] = places
    measures: dict[str, Measure] = {TOTAL_VARIATION: total_variation}
    known = before[~np.isnan(before)]
    if not are_labels:
        measures = {KS: _of_present(kolmogorov), TOTAL_VARIATION: _in_cells(cell_edges(known), values)}
        sd = float(np.std(known))
        if 0 < sd < np.inf:
            measures[WASSERSTEIN] = _of_present(wasserstein(values, sd))
    return _measure_all(measures, place_of, len(values) + 1, len(before), rng, repeats)


def kolmogorov(p: FloatArray, q: FloatArray) -> float:
    """The largest difference of the distribution functions; the values must be sorted."""
    return float(np.max(np.abs(np.cumsum(p - q))))


def wasserstein(values: FloatArray, scale: float) -> Measure:
    """The mean distance that rows have to move along the line, in units of `scale`."""
    gaps = np.diff(values) / scale

    def measure(p: FloatArray, q: FloatArray) -> float:
        return float(np.sum(np.abs(np.cumsum(p - q)[:-1]) * gaps))

    return measure


def _of_present(measure: Measure) -> Measure:
    """The same measure of the cells that are there; 0 where a sample has none."""

    def of_present(p: FloatArray, q: FloatArray) -> float:
        one, two = 1.0 - p[-1], 1.0 - q[-1]
        return measure(p[:-1] / one, q[:-1] / two) if min(one, two) > 0 else 0.0

    return of_present


def _in_cells(edges: FloatArray, values: FloatArray) -> Measure:
    """Total variation of numbers in cells; missing ones have a cell of their own."""
    cell_of = np.append(np.searchsorted(edges, values), len(edges) + 1)

    def measure(p: FloatArray, q: FloatArray) -> float:
        return 0.5 * float(np.sum(np.abs(np.bincount(cell_of, p - q))))

    return measure


def _measure_all(
    measures: dict[str, Measure], places: NDArray[np.intp], width: int, n: int, rng: np.random.Generator, repeats: int
) -> tuple[Distance, ...]:
    """All measures between the first n and the other rows, and between pairs of samples of the first n."""
    m = len(places) - n
    counts = np.bincount(places[:n], minlength=width)
    p, q = counts / n, np.bincount(places[n:], minlength=width) / m
    chance: dict[str, list[float]] = {name: [] for name in measures}
    for _ in range(repeats):
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
