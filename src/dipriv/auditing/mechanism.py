"""Lower bound on ε from a distinguishing event between two neighbouring datasets (as in DP-Sniper, StatDP).

A pilot chooses the datasets and the event. They are then fixed, and fresh draws under both datasets give the bound. It
holds with its confidence no matter what the pilot chose; a bad choice only makes it smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray
from dipriv._base.progress import Progress, no_progress
from dipriv._random.bits import Bits, Seed, source
from dipriv.auditing.events import (
    FINE_BINS,
    Event,
    Learner,
    Shape,
    Views,
    best_event,
    cuts_of,
    dependence,
    learn,
    learn_shared,
    pairs_of,
    shapes_of,
    strengths,
)
from dipriv.auditing.intervals import check_confidence, epsilon_of_draws
from dipriv.auditing.neighbours import (
    BLOCKS,
    NeighbouringDatasets,
    Records,
    draw,
    draw_pair,
    draw_records,
    records_of,
    views_of,
)
from dipriv.auditing.results import Bound, Scope
from dipriv.errors import InputError
from dipriv.guarantee.guarantee import check_epsilon
from dipriv.release.fitting import FittedMechanism

Learners: TypeAlias = tuple[Learner, ...]
"""Ways to learn a score for the same features; the best of them is chosen with more draws."""

MIN_DRAWS = 10_000
"""The smallest number of draws of an audit."""
MIN_PILOT_DRAWS = 2000
"""The smallest number of draws of each round of the pilot but the first."""
TWO_BINS = 2
"""Low and high ranks: a score that needs no learning."""
COARSE_BINS = 8
"""Bins of a feature in a score that is learned reliably from few draws, and in the first round of the pilot."""
MAX_PAIRS = 66
"""Pairs of features of a view in the first round."""
SHORT_LIST = 3
"""Candidates that each round passes to the next."""
MAX_OPPOSITES = 3
"""Pairs of opposite corners among the candidates."""
BY_CHANCE = 25.0
"""If the variance between calls exceeds this times the i.i.d. variance, rows of a call share random bits."""
BLOCK_MARGIN = 0.3
"""A block is chosen only if its expected bound is larger by this than that of a single row."""
PILOT_SHARE = 0.4
"""Share of the work that the pilot takes, for the progress callback."""


@dataclass(frozen=True, eq=False)
class AuditPlan:
    """Neighbouring datasets of a mechanism, and an event that is more probable under D than under D'."""

    fitted: FittedMechanism = field(repr=False)
    records: Records = field(repr=False)
    pair: NeighbouringDatasets
    event: Event = field(repr=False)

    def measure(
        self, epsilon: float, draws: int, confidence: float, bits: Bits, progress: Progress = no_progress
    ) -> Bound:
        """The bound from fresh draws, half of them under each dataset (Clopper-Pearson, half of the error for each)."""
        hits, tries = [0, 0], [0, 0]
        for side, dataset in enumerate((self.pair.d, self.pair.d_prime)):
            for (rows,) in draw(self.fitted, self.records, [dataset], draws // 2, bits.child(f"world {side}"), 1):
                hits[side] += self.event.hits(rows)
                tries[side] += len(rows)
                progress("drawing rows", min(1.0, sum(tries) / draws), 1.0)
        lower = epsilon_of_draws(hits[0], tries[0], hits[1], tries[1], confidence)
        return Bound("released rows", epsilon, lower, confidence, sum(tries), self.words, scope=Scope.ROW)

    @property
    def words(self) -> str:
        """The datasets and the features of the event, without any cell of a table."""
        d, d_prime = (self.records.words[dataset.rows[-1]] for dataset in (self.pair.d, self.pair.d_prime))
        layout = self.pair.layout
        block = "" if layout == "alone" else f", beside a known row ({layout})"
        return f"{d} against {d_prime}{block}, by {_in_words(self.event.score.shape, self.fitted)}"


@dataclass(frozen=True, eq=False)
class Candidate:
    """Neighbouring datasets, ways to learn a score for them, and the bound to expect."""

    expected: float
    pair: NeighbouringDatasets
    learners: Learners = field(repr=False)


def audit_rows(
    fitted: FittedMechanism,
    epsilon: float,
    *,
    draws: int = 2_000_000,
    confidence: float = 0.95,
    seed: Seed = None,
    progress: Progress = no_progress,
) -> Bound:
    """A lower bound on the ε of released rows, given the fitted mechanism.

    Parameters
    ----------
    fitted : the mechanism under audit.
    epsilon : the claim for a row.
    draws : released rows to draw.
    confidence : of the bound.
    seed : of all draws.
    progress : called with what is being done and the share of it that is done.

    Returns
    -------
    The bound, with a description of the event.

    Raises
    ------
    InputError : an argument is out of its range.
    """
    epsilon = check_epsilon(epsilon)
    if draws < MIN_DRAWS:
        raise InputError(f"draws is {draws}; an audit needs at least {MIN_DRAWS}.", "Allow more draws.")
    check_confidence(confidence)
    bits = source(seed)
    plan = plan_audit(fitted, draws, bits.child("pilot"))
    progress("drawing rows", PILOT_SHARE, 1.0)

    def after_pilot(what: str, done: float, total: float | None) -> None:
        progress(what, PILOT_SHARE + (1 - PILOT_SHARE) * done, total)

    return plan.measure(epsilon, draws, confidence, bits.child("measure"), after_pilot)


def plan_audit(fitted: FittedMechanism, draws: int, bits: Bits) -> AuditPlan:
    """The datasets and the event with the largest expected bound, in three rounds: all records, some, the last few."""
    records = records_of(fitted, bits.child("records"))
    single, dependent = _best_single_rows(fitted, records, draws, bits)
    beside, *others = _best_blocks(fitted, records, single[0], draws, bits)
    last = single + [block for block in (beside, *others) if block.expected > single[0].expected]
    if dependent:  # rows of a call share bits: a row adds no information to the row beside it
        last = [beside]
    events = [
        _fix(fitted, records, each, draws // 2, len(last), bits.child(f"last {k}")) for k, each in enumerate(last)
    ]
    margins = [0.0 if each.pair.layout == "alone" else BLOCK_MARGIN for each in last]
    best = max(range(len(last)), key=lambda k: events[k][0] - margins[k])
    return AuditPlan(fitted, records, last[best].pair, events[best][1])


def _fix(
    fitted: FittedMechanism, records: Records, candidate: Candidate, tries: int, n_candidates: int, bits: Bits
) -> tuple[float, Event]:
    """The best event and its expected bound, with scores learned again from more draws and rated by as many others."""
    d, d_prime = draw_pair(fitted, records, candidate.pair, max(MIN_PILOT_DRAWS, tries // n_candidates), bits)
    scores = [learner(_rows(d[::2]), _rows(d_prime[::2])) for learner in candidate.learners]
    events = (best_event(score, _rows(d[1::2]), _rows(d_prime[1::2]), tries) for score in scores)
    return max(events, key=lambda event: event[0])


def _best_single_rows(
    fitted: FittedMechanism, records: Records, draws: int, bits: Bits
) -> tuple[list[Candidate], bool]:
    """The best candidates of one row, best first, and whether the rows of a call depend on each other.

    For several columns a pair of opposite corners is always among them. Where each column has little information, the
    best of many other pairs is the best by chance.
    """
    views = views_of(fitted)
    drawn = draw_records(
        fitted, records, range(len(records)), max(256, min(8192, draws // 256)), bits.child("all records")
    )
    pairs, feature_pairs = _short_list(drawn.reshape(len(records), -1, drawn.shape[3]), views)
    opposites = records.opposites()[:MAX_OPPOSITES] if len(fitted.order) > 1 else []
    pairs = list(dict.fromkeys(pairs + opposites))
    numbers = sorted({number for pair in pairs for number in pair})
    drawn = draw_records(fitted, records, numbers, max(MIN_PILOT_DRAWS, draws // 64), bits.child("some"))
    rows = dict(zip(numbers, drawn, strict=True))

    def best(pair: tuple[int, int], ways: list[Learners]) -> Candidate:
        d, d_prime = pair
        return max(_candidates(rows[d], rows[d_prime], NeighbouringDatasets.of_rows(d, d_prime), ways), key=_expected)

    ways = _learners(shapes_of(views, feature_pairs))
    found = sorted((best(pair, ways) for pair in pairs), key=_expected, reverse=True)
    shared = [best(pair, [_shared_learners(views[-1], records.corners[pair[0]])]) for pair in opposites]
    if shared:
        found = sorted([max(shared, key=_expected), *found[: SHORT_LIST - 1]], key=_expected, reverse=True)
    features = (calls[:, :, feature] for calls in rows.values() for feature in range(calls.shape[2]))
    dependent = any(dependence(calls) > BY_CHANCE for calls in features)
    return found[:SHORT_LIST], dependent


def _learners(shapes: list[Shape]) -> list[Learners]:
    """Each of these shapes with few bins, and with many."""
    return [(partial(learn, shape=shape, max_bins=bins),) for shape in shapes for bins in (COARSE_BINS, FINE_BINS)]


def _shared_learners(ranks: Sequence[int], high: NDArray[np.bool_]) -> Learners:
    """One table for all ranks: with two bins, which need no learning, or with more, which can distinguish more."""
    sizes = (TWO_BINS, COARSE_BINS, FINE_BINS)
    return tuple(partial(learn_shared, ranks=ranks, high=high.tolist(), bins=bins) for bins in sizes)


def _expected(candidate: Candidate) -> float:
    return candidate.expected


def _short_list(drawn: FloatArray, views: Views) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The pairs of records, and the pairs of features, that distinguish best in the first round."""
    width = drawn.shape[2]
    cuts = [cuts_of(drawn[:, :, feature].ravel(), COARSE_BINS) for feature in range(width)]
    sizes = [len(ends) + 1 for ends in cuts]
    bins = [np.searchsorted(ends, drawn[:, :, feature], side="right") for feature, ends in enumerate(cuts)]
    by_features = {
        (f, g): strengths(bins[f] * sizes[g] + bins[g], sizes[f] * sizes[g]) for f, g in pairs_of(views, MAX_PAIRS)
    }
    feature_pairs = sorted(by_features, key=lambda pair: -by_features[pair].max())[:SHORT_LIST]
    rankings = [
        np.max([strengths(bins[f], sizes[f]) for f in range(width)], axis=0),
        *(by_features[pair] for pair in feature_pairs),
    ]
    for view in views:
        means = np.stack([bins[f].mean(axis=1) / sizes[f] for f in view], axis=1)
        rankings.append(
            np.abs(means[:, np.newaxis] - means).sum(axis=2)
        )  # reliable even if each column has little information
    record_pairs: dict[tuple[int, int], None] = {}
    for ranking in rankings:
        np.fill_diagonal(ranking, -np.inf)
        for place in np.argsort(-ranking, axis=None)[:SHORT_LIST]:
            first, second = sorted(int(number) for number in np.unravel_index(place, ranking.shape))
            record_pairs.setdefault((first, second))
    return list(record_pairs), feature_pairs


def _candidates(
    d: FloatArray, d_prime: FloatArray, pair: NeighbouringDatasets, ways: list[Learners]
) -> list[Candidate]:
    """The expected bounds in both directions; scores are learned from half of the calls and rated by the others."""
    found, training = [], (_rows(d[::2]), _rows(d_prime[::2]))
    d, d_prime = _rows(d[1::2]), _rows(d_prime[1::2])
    for learners in ways:
        scores = [learner(*training) for learner in learners]
        expected = max(best_event(score, d, d_prime)[0] for score in scores)
        swapped = max(best_event(score.negated(), d_prime, d)[0] for score in scores)
        found += [Candidate(expected, pair, learners), Candidate(swapped, pair.swapped(), learners)]
    return found


def _best_blocks(fitted: FittedMechanism, records: Records, best: Candidate, draws: int, bits: Bits) -> list[Candidate]:
    """For each layout, the best candidate with the same two records in a block whose first row is known."""
    (known,), (substitute,) = best.pair.d.rows, best.pair.d_prime.rows
    width = max(feature for view in views_of(fitted) for feature in view) + 1
    shapes: list[Shape] = [((feature, width + feature),) for feature in range(width)]
    shapes += [((2 * width + feature,),) for feature in range(width)]
    found = []
    for layout in BLOCKS:
        pair = NeighbouringDatasets.of_blocks(known, substitute, layout)
        d, d_prime = draw_pair(fitted, records, pair, max(MIN_PILOT_DRAWS, draws // 128), bits.child(layout))
        found.append(max(_candidates(d, d_prime, pair, _learners(shapes)), key=_expected))
    return found


def _rows(calls: FloatArray) -> FloatArray:
    """The draws of all calls."""
    return calls.reshape(-1, calls.shape[-1])


def _in_words(shape: Shape, fitted: FittedMechanism) -> str:
    of_v = [column.name for column in fitted.columns for _ in range(column.codec.dims)]
    names = [f"column {name!r}" for name in fitted.names] + [f"the rank of column {name!r}" for name in of_v]
    width = max(feature for view in views_of(fitted) for feature in view) + 1
    if len(shape) > 1:
        return "all columns" if shape[0][0] == 0 else "the ranks of all columns"
    both = " of both rows" if max(shape[0]) >= width else ""
    return " and ".join(dict.fromkeys(names[feature % width] + both for feature in shape[0]))
