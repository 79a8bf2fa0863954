"""Distinguishing events between two neighbouring datasets D and D', learned from draws under both and then fixed.

Each feature of a released row is binned. A score is a sum of log likelihood ratios of D to D' over bins, or pairs of
bins; an event is a score of at least a threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from dipriv._base.arrays import FloatArray

Shape: TypeAlias = tuple[tuple[int, ...], ...]
"""Which features a score uses: one feature, or a pair, in each of its parts."""
Views: TypeAlias = tuple[tuple[int, ...], ...]
"""Sets of features; each set by itself describes a whole row."""

FINE_BINS = 64
"""Bins of a feature that is scored by itself."""
SUM_BINS = 32
"""Bins of a feature in a sum over all features."""
PAIR_BINS = 12
"""Bins of each feature of a pair."""
MIN_DRAWS_PER_BIN = 50
"""There are fewer bins where there are few draws to learn from."""
N_THRESHOLDS = 256
"""Thresholds that are tried for a score."""
NEWTON_STEPS = 6
"""Of the logistic regression."""
PILOT_ERRORS = 2.0
"""Standard errors by which an expected bound is below its estimate from the draws of a pilot."""
CLEAR_ERRORS = 4.0
"""The same, where the counts of a pilot must clearly exceed the fitted logistic distribution."""
FINAL_ERRORS = 3.0
"""The same for all draws to come, whose confidence may be high."""
WEIGHT_STEP = 2.0**-20
"""Log ratios that columns share are multiples of this, so that their sums are exact and equal sums tie."""


@dataclass(frozen=True, eq=False)
class Part:
    """Log ratios by the bins of one feature, or of two. Bin k of a feature is [cuts[k-1], cuts[k])."""

    features: tuple[int, ...]
    cuts: tuple[FloatArray, ...] = field(repr=False)
    table: FloatArray = field(repr=False)

    def of(self, rows: FloatArray) -> FloatArray:
        """The entry for each row."""
        entries: FloatArray = self.table[bins_of(rows, self.features, self.cuts)]
        return entries


@dataclass(frozen=True, eq=False)
class Score:
    """A sum of log likelihood ratios: large where D is more likely than D'."""

    parts: tuple[Part, ...] = field(repr=False)

    @property
    def shape(self) -> Shape:
        return tuple(part.features for part in self.parts)

    def of(self, rows: FloatArray) -> FloatArray:
        total = np.zeros(len(rows))
        for part in self.parts:
            total += part.of(rows)
        return total

    def negated(self) -> Score:
        """The score of D' against D."""
        return Score(tuple(replace(part, table=-part.table) for part in self.parts))


@dataclass(frozen=True, eq=False)
class Event:
    """A score of at least the threshold."""

    score: Score
    threshold: float = field(repr=False)

    def hits(self, rows: FloatArray) -> int:
        return int(np.count_nonzero(self.score.of(rows) >= self.threshold))


Learner: TypeAlias = Callable[[FloatArray, FloatArray], Score]
"""Learns a score from draws (n, f) under D and under D'."""


def shapes_of(views: Views, pairs: Sequence[tuple[int, int]] = ()) -> list[Shape]:
    """Each feature by itself, these pairs, and for each view all of its features."""
    alone: list[Shape] = [((feature,),) for view in views for feature in view]
    together: list[Shape] = [tuple((feature,) for feature in view) for view in views if len(view) > 1]
    return alone + [(pair,) for pair in pairs] + together


def pairs_of(views: Views, limit: int) -> list[tuple[int, int]]:
    """The first `limit` pairs of features of each view, features with close numbers first."""
    return [
        pair for view in views for pair in sorted(combinations(view, 2), key=lambda pair: pair[1] - pair[0])[:limit]
    ]


def learn(d: FloatArray, d_prime: FloatArray, shape: Shape, max_bins: int = FINE_BINS) -> Score:
    """The score of a shape, from draws (n, f) under D and D', with at most `max_bins` bins per feature."""
    supported = min(max_bins, max(2, min(len(d), len(d_prime)) // MIN_DRAWS_PER_BIN))
    single = min(supported, FINE_BINS if len(shape) == 1 else SUM_BINS)
    return Score(
        tuple(_learn_part(d, d_prime, of, single if len(of) == 1 else min(max_bins, PAIR_BINS)) for of in shape)
    )


def learn_shared(d: FloatArray, d_prime: FloatArray, ranks: Sequence[int], high: Sequence[bool], bins: int) -> Score:
    """The score of opposite corners of the cube from uniform ranks, with one table of log ratios for all ranks.

    D is the corner whose ranks are high where `high` is true, D' the opposite one. A rank is near if it is on the side
    of its own corner. All ranks under D and D' are draws of the same distribution of nearness, so that many columns
    with little information each are estimated well together. With two bins there is nothing to learn: the score counts
    the ranks on the near side.
    """
    cuts = np.arange(1, bins) / bins
    near = np.zeros(bins, dtype=np.int64)
    for rank, up in zip(ranks, high, strict=True):
        counts = [np.bincount(bins_of(rows, (rank,), (cuts,)), minlength=bins) for rows in (d, d_prime)]
        near += counts[0][::-1] + counts[1] if up else counts[0] + counts[1][::-1]
    table = np.round(log_ratios(near, near[::-1]) / WEIGHT_STEP) * WEIGHT_STEP
    parts = (Part((rank,), (cuts,), table[::-1] if up else table) for rank, up in zip(ranks, high, strict=True))
    return Score(tuple(parts))


def best_event(score: Score, d: FloatArray, d_prime: FloatArray, tries: int = 0) -> tuple[float, Event]:
    """The largest expected bound over thresholds and its event, on draws from which the score was not learned.

    For a sum of several parts the hits are those of a fitted logistic model, unless the counts clearly exceed them. The
    model has so little sampling error that the bound can be extrapolated to a larger number of `tries`.
    """
    scores, scores_prime = np.sort(score.of(d)), np.sort(score.of(d_prime))
    n, n_prime = len(scores), len(scores_prime)
    pooled = np.unique(np.concatenate([scores, scores_prime]))
    thresholds = pooled[np.unique(np.linspace(0, len(pooled) - 1, N_THRESHOLDS).astype(np.int64))]
    hits = n - np.searchsorted(scores, thresholds, side="left")
    hits_prime = n_prime - np.searchsorted(scores_prime, thresholds, side="left")
    if len(score.parts) == 1:
        bounds = expected_bound(hits, n, hits_prime, n_prime)
    else:
        factor = max(1.0, tries / min(n, n_prime))
        fitted, fitted_prime = (factor * hits for hits in fitted_hits(scores, scores_prime, thresholds))
        final = fitted, round(factor * n), fitted_prime, round(factor * n_prime)
        counted = (hits, n, hits_prime, n_prime)
        # where the odds level off, the line overestimates them
        excess = np.maximum(0.0, expected_bound(*final, 0.0) - expected_bound(*counted, 0.0))
        bounds = np.maximum(expected_bound(*counted, CLEAR_ERRORS), expected_bound(*final, FINAL_ERRORS) - excess)
    best = int(np.argmax(bounds))
    return float(bounds[best]), Event(score, float(thresholds[best]))


def fitted_hits(scores: FloatArray, scores_prime: FloatArray, thresholds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Expected numbers of scores at or above each threshold, if the log odds of D to D' are linear in the score.

    Every draw counts for both datasets, weighted by its probability of coming from each. The line (logistic regression
    by Newton's method) has two parameters, so its estimates for rare events have hardly more sampling error than those
    for others.
    """
    pooled = np.concatenate([scores, scores_prime])
    scale = float(pooled.std()) or 1.0
    x = np.stack([np.ones(len(pooled)), (pooled - pooled.mean()) / scale], axis=1)
    is_d = np.arange(len(pooled)) < len(scores)
    line = np.zeros(2)
    for _ in range(NEWTON_STEPS):
        probability = expit(x @ line)
        hessian = (x * (probability * (1 - probability))[:, np.newaxis]).T @ x + np.eye(2)  # ridge 1: stays finite
        line += np.linalg.solve(hessian, x.T @ (is_d - probability) - line)
    order = np.argsort(-pooled)
    probability = expit(x[order] @ line)
    count = np.searchsorted(-pooled[order], -thresholds, side="right")
    totals = (np.append(0.0, np.cumsum(each)) for each in (probability, 1 - probability))
    hits, hits_prime = (np.asarray(total[count], dtype=np.float64) for total in totals)
    return hits, hits_prime


def expected_bound(
    hits: NDArray[Any], tries: int, other_hits: NDArray[Any], other_tries: int, errors: float = PILOT_ERRORS
) -> FloatArray:
    """An approximation of the bound that these draws would give, for choosing events only: it need not hold."""
    likely, rare = np.maximum(hits, 0.5) / tries, np.minimum((other_hits + 1.0) / other_tries, 1.0)
    likely = np.minimum(likely, 1.0)
    error = np.sqrt((1 - likely) / (likely * tries)) + np.sqrt((1 - rare) / (rare * other_tries))
    return np.asarray(np.log(likely / rare) - errors * error, dtype=np.float64)


def dependence(calls: FloatArray) -> float:
    """Variance of the mean of a feature between calls (c, n), divided by its variance for independent draws."""
    bins = np.searchsorted(cuts_of(calls.ravel(), PAIR_BINS), calls, side="right")
    within = float(bins.var())
    return float(bins.mean(axis=1).var(ddof=1)) * calls.shape[1] / within if within > 0 else 1.0


def strengths(bins: NDArray[np.int64], size: int) -> FloatArray:
    """(c, c): for c records with binned draws, the expected bound of the best event of record i against record j."""
    count, draws = bins.shape
    counts = counts_of(bins, size)
    shape = (count, count, size)
    order = np.argsort(-log_ratios(counts[:, np.newaxis], counts[np.newaxis]), axis=2)
    hits = np.cumsum(np.take_along_axis(np.broadcast_to(counts[:, np.newaxis], shape), order, axis=2), axis=2)
    others = np.cumsum(np.take_along_axis(np.broadcast_to(counts[np.newaxis], shape), order, axis=2), axis=2)
    return np.asarray(expected_bound(hits, draws, others, draws).max(axis=2), dtype=np.float64)


def counts_of(bins: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """(c, size): the count of each bin in each row of (c, n)."""
    count = len(bins)
    flat = (bins + size * np.arange(count)[:, np.newaxis]).ravel()
    return np.bincount(flat, minlength=size * count).reshape(count, size)


def log_ratios(counts: NDArray[Any], others: NDArray[Any]) -> FloatArray:
    """Log ratios of frequencies, with a pseudocount of one half."""
    shares = (counts + 0.5) / counts.sum(axis=-1, keepdims=True)
    return np.asarray(np.log(shares / ((others + 0.5) / others.sum(axis=-1, keepdims=True))), dtype=np.float64)


def cuts_of(values: FloatArray, max_bins: int) -> FloatArray:
    """Cuts between all values where they are few, else at quantiles; a frequent value gets a bin of its own."""
    ordered = np.sort(values)
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    if len(starts) <= max_bins:
        return ordered[starts[1:]]
    counts = np.diff(np.append(starts, len(ordered)))
    frequent = ordered[starts[counts * max_bins >= len(ordered)]]
    quantiles = ordered[(np.arange(1, max_bins) * len(ordered)) // max_bins]
    return np.unique(np.concatenate([quantiles, frequent, np.nextafter(frequent, np.inf)]))


def bins_of(rows: FloatArray, features: Sequence[int], cuts: Sequence[FloatArray]) -> NDArray[np.int64]:
    """The number of each row's bin, or pair of bins."""
    bins = np.zeros(len(rows), dtype=np.int64)
    for feature, ends in zip(features, cuts, strict=True):
        bins = bins * (len(ends) + 1) + np.searchsorted(ends, rows[:, feature], side="right")
    return bins


def _learn_part(d: FloatArray, d_prime: FloatArray, features: tuple[int, ...], max_bins: int) -> Part:
    cuts = tuple(cuts_of(np.concatenate([d[:, feature], d_prime[:, feature]]), max_bins) for feature in features)
    size = int(np.prod([len(ends) + 1 for ends in cuts]))
    counts = [np.bincount(bins_of(rows, features, cuts), minlength=size) for rows in (d, d_prime)]
    return Part(features, cuts, log_ratios(counts[0], counts[1]))
