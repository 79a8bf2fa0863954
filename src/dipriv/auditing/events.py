"""Events that tell two worlds apart, learned from draws of both and then fixed.

Each feature of a released row becomes a cell. A score adds up log ratios of how often cells, or pairs of cells, occur
in one world and in the other; an event is a score of at least a threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from dipriv._arrays import FloatArray

Shape: TypeAlias = tuple[tuple[int, ...], ...]
"""Which features a score looks at: one or two together in each of its parts."""
Views: TypeAlias = tuple[tuple[int, ...], ...]
"""Sets of features, each of which is all that is to be seen of a row."""

FINE, MIDDLE, COARSE = 64, 32, 12
"""Cells of a feature by itself, of one among all, and of one among two."""
DRAWS_PER_CELL = 50
"""Fewer cells where there are few draws to learn from."""
THRESHOLDS, NEWTON_STEPS = 256, 6
ERRORS, CLEAR_ERRORS, LATER_ERRORS = 2.0, 4.0, 3.0
"""Standard errors of both chances that a foreseen bound is below its estimate: by few draws of the pilot, where it must
be clear, and by all draws to come, whose confidence may be high."""
STEP = 2.0**-20
"""Entries of a table that columns share are multiples of it: their sums are exact, so those that should tie do."""


@dataclass(frozen=True, eq=False)
class Part:
    """Log ratios by the cells of one feature, or of two. Cell k of a feature is [cuts[k-1], cuts[k])."""

    features: tuple[int, ...]
    cuts: tuple[FloatArray, ...] = field(repr=False)
    table: FloatArray = field(repr=False)

    def of(self, rows: FloatArray) -> FloatArray:
        """The entry for each row."""
        entries: FloatArray = self.table[cells_of(rows, self.features, self.cuts)]
        return entries


@dataclass(frozen=True, eq=False)
class Score:
    """A sum of log ratios: large where the first world is the likelier one."""

    parts: tuple[Part, ...] = field(repr=False)

    @property
    def shape(self) -> Shape:
        return tuple(part.features for part in self.parts)

    def of(self, rows: FloatArray) -> FloatArray:
        total = np.zeros(len(rows))
        for part in self.parts:
            total += part.of(rows)
        return total

    def turned(self) -> Score:
        """The score of the second world against the first."""
        return Score(tuple(replace(part, table=-part.table) for part in self.parts))


@dataclass(frozen=True, eq=False)
class Event:
    """A score of at least the threshold."""

    score: Score
    threshold: float = field(repr=False)

    def hits(self, rows: FloatArray) -> int:
        return int(np.count_nonzero(self.score.of(rows) >= self.threshold))


Learner: TypeAlias = Callable[[FloatArray, FloatArray], Score]
"""How a score is learned from draws (n, f) of a first and of a second world."""


def shapes_of(views: Views, pairs: Sequence[tuple[int, int]] = ()) -> list[Shape]:
    """Each feature by itself, these pairs, and for each view all of its features."""
    alone: list[Shape] = [((feature,),) for view in views for feature in view]
    together: list[Shape] = [tuple((feature,) for feature in view) for view in views if len(view) > 1]
    return alone + [(pair,) for pair in pairs] + together


def pairs_of(views: Views, most: int) -> list[tuple[int, int]]:
    """Pairs of features of a view; where there are very many, those of neighbours."""
    return [pair for view in views for pair in sorted(combinations(view, 2), key=lambda pair: pair[1] - pair[0])[:most]]


def learn(one: FloatArray, other: FloatArray, shape: Shape, most: int = FINE) -> Score:
    """The score of a shape, from draws (n, f) of both worlds, with at most so many cells a feature."""
    enough = min(most, max(2, min(len(one), len(other)) // DRAWS_PER_CELL))
    alone = min(enough, FINE if len(shape) == 1 else MIDDLE)
    return Score(tuple(_learn_part(one, other, of, alone if len(of) == 1 else min(most, COARSE)) for of in shape))


def learn_alike(one: FloatArray, other: FloatArray, ranks: Sequence[int], high: Sequence[bool], most: int) -> Score:
    """The score of opposite corners, from uniform ranks: one table for all of them, with at most so many cells.

    A rank is near where it is on its own world's side, which is the high side in the first world (or in the second)
    where `high` says so. All ranks of both worlds are draws of how near a rank is, so many columns that tell little
    each have little noise together. With two cells there is nothing to learn: the score counts ranks on the near side.
    """
    cuts = np.arange(1, most) / most
    near = np.zeros(most, dtype=np.int64)
    for rank, up in zip(ranks, high, strict=True):
        counts = [np.bincount(cells_of(rows, (rank,), (cuts,)), minlength=most) for rows in (one, other)]
        near += counts[0][::-1] + counts[1] if up else counts[0] + counts[1][::-1]
    table = np.round(log_ratios(near, near[::-1]) / STEP) * STEP
    parts = (Part((rank,), (cuts,), table[::-1] if up else table) for rank, up in zip(ranks, high, strict=True))
    return Score(tuple(parts))


def best_event(score: Score, one: FloatArray, other: FloatArray, tries: int = 0) -> tuple[float, Event]:
    """The threshold with the largest foreseen bound, on draws from which the score was not learned.

    The chances of a sum of several parts are those of a fitted logistic law, unless the counts show clearly more: they
    have so little noise that the bound can be foreseen for as many `tries` as there will be, if more than these.
    """
    ones, others = np.sort(score.of(one)), np.sort(score.of(other))
    pooled = np.unique(np.concatenate([ones, others]))
    thresholds = pooled[np.unique(np.linspace(0, len(pooled) - 1, THRESHOLDS).astype(np.int64))]
    hits = len(ones) - np.searchsorted(ones, thresholds, side="left")
    other_hits = len(others) - np.searchsorted(others, thresholds, side="left")
    if len(score.parts) == 1:
        found = foreseen(hits, len(ones), other_hits, len(others))
    else:
        more = max(1.0, tries / min(len(ones), len(others)))
        fitted, other_fitted = (more * chances for chances in fitted_hits(ones, others, thresholds))
        later = fitted, round(more * len(ones)), other_fitted, round(more * len(others))
        counted = (hits, len(ones), other_hits, len(others))
        too_steep = np.maximum(0.0, foreseen(*later, 0.0) - foreseen(*counted, 0.0))  # a line where odds level off
        found = np.maximum(foreseen(*counted, CLEAR_ERRORS), foreseen(*later, LATER_ERRORS) - too_steep)
    best = int(np.argmax(found))
    return float(found[best]), Event(score, float(thresholds[best]))


def fitted_hits(ones: FloatArray, others: FloatArray, thresholds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """How many sorted scores of each world are at least a threshold, if log odds of the worlds are a line in the score.

    Every draw of both worlds counts for both, by its chances: the line (logistic regression, by Newton's method) has
    two parameters, so what it says of rare events has hardly more noise than what it says of others.
    """
    scores = np.concatenate([ones, others])
    scale = float(scores.std()) or 1.0
    x = np.stack([np.ones(len(scores)), (scores - scores.mean()) / scale], axis=1)
    is_one = np.arange(len(scores)) < len(ones)
    line = np.zeros(2)
    for _ in range(NEWTON_STEPS):
        chance = expit(x @ line)
        curvature = (x * (chance * (1 - chance))[:, np.newaxis]).T @ x + np.eye(2)  # the 1 holds it off infinity
        line += np.linalg.solve(curvature, x.T @ (is_one - chance) - line)
    order = np.argsort(-scores)
    chance = expit(x[order] @ line)
    count = np.searchsorted(-scores[order], -thresholds, side="right")
    totals = (np.append(0.0, np.cumsum(each)) for each in (chance, 1 - chance))
    hits, other_hits = (np.asarray(total[count], dtype=np.float64) for total in totals)
    return hits, other_hits


def foreseen(
    hits: NDArray[Any], tries: int, other_hits: NDArray[Any], other_tries: int, errors: float = ERRORS
) -> FloatArray:
    """About the bound that these draws would give: for choosing only, where it need not hold."""
    likely, rare = np.maximum(hits, 0.5) / tries, np.minimum((other_hits + 1.0) / other_tries, 1.0)
    likely = np.minimum(likely, 1.0)
    error = np.sqrt((1 - likely) / (likely * tries)) + np.sqrt((1 - rare) / (rare * other_tries))
    return np.asarray(np.log(likely / rare) - errors * error, dtype=np.float64)


def dependence(calls: FloatArray) -> float:
    """How much calls (c, n) of the draws of one feature differ, in multiples of what independent draws would."""
    cells = np.searchsorted(cuts_of(calls.ravel(), COARSE), calls, side="right")
    within = float(cells.var())
    return float(cells.mean(axis=1).var(ddof=1)) * calls.shape[1] / within if within > 0 else 1.0


def strengths(cells: NDArray[np.int64], size: int) -> FloatArray:
    """(c, c): for c records whose draws have cells of a finite table, how well the best event tells i from j."""
    count, draws = cells.shape
    counts = counts_of(cells, size)
    shape = (count, count, size)
    order = np.argsort(-log_ratios(counts[:, np.newaxis], counts[np.newaxis]), axis=2)
    hits = np.cumsum(np.take_along_axis(np.broadcast_to(counts[:, np.newaxis], shape), order, axis=2), axis=2)
    others = np.cumsum(np.take_along_axis(np.broadcast_to(counts[np.newaxis], shape), order, axis=2), axis=2)
    return np.asarray(foreseen(hits, draws, others, draws).max(axis=2), dtype=np.float64)


def counts_of(cells: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """(c, size): how often each of the cells occurs in each row of (c, n)."""
    count = len(cells)
    flat = (cells + size * np.arange(count)[:, np.newaxis]).ravel()
    return np.bincount(flat, minlength=size * count).reshape(count, size)


def log_ratios(counts: NDArray[Any], others: NDArray[Any]) -> FloatArray:
    """The logarithm of the ratio of frequencies, held off infinity by half a draw."""
    shares = (counts + 0.5) / counts.sum(axis=-1, keepdims=True)
    return np.asarray(np.log(shares / ((others + 0.5) / others.sum(axis=-1, keepdims=True))), dtype=np.float64)


def cuts_of(values: FloatArray, most: int) -> FloatArray:
    """Cuts between all values where they are few, else quantiles; a value that is met often has a cell of its own."""
    ordered = np.sort(values)
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    if len(starts) <= most:
        return ordered[starts[1:]]
    counts = np.diff(np.append(starts, len(ordered)))
    frequent = ordered[starts[counts * most >= len(ordered)]]
    quantiles = ordered[(np.arange(1, most) * len(ordered)) // most]
    return np.unique(np.concatenate([quantiles, frequent, np.nextafter(frequent, np.inf)]))


def cells_of(rows: FloatArray, features: Sequence[int], cuts: Sequence[FloatArray]) -> NDArray[np.int64]:
    """The number of each row's cell, or pair of cells."""
    cells = np.zeros(len(rows), dtype=np.int64)
    for feature, ends in zip(features, cuts, strict=True):
        cells = cells * (len(ends) + 1) + np.searchsorted(ends, rows[:, feature], side="right")
    return cells


def _learn_part(one: FloatArray, other: FloatArray, features: tuple[int, ...], most: int) -> Part:
    cuts = tuple(cuts_of(np.concatenate([one[:, feature], other[:, feature]]), most) for feature in features)
    size = int(np.prod([len(ends) + 1 for ends in cuts]))
    counts = [np.bincount(cells_of(rows, features, cuts), minlength=size) for rows in (one, other)]
    return Part(features, cuts, log_ratios(counts[0], counts[1]))
