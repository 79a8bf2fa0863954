"""Re-identification: pick a person's released row among k candidates.

A release keeps row identity, so each released person has one row in it. The attacker knows a person's true row and
sees k released rows: that person's and those of k - 1 others, chosen at random. A non-member of the control group gets
the candidates of a member, and the row of that member counts as right.

What ε allows: replace the person in the table by somebody else. Then the k rows come from k people chosen at random,
none of them the target, so any pick is at the target's position with probability 1/k. In the true table, one
substitution away, the probability of that pick is at most `largest_probability(1/k, ε, δ)`.

The attacker must not know the other k - 1 people. One who knows all of them compares positions of the target, which
takes two substitutions: P(pick j | target at j) <= e^2ε P(pick j | target at i) for all i, and the probabilities of the
picks add up to 1 for each i, so a right pick has probability at most e^2ε / (e^2ε + k - 1). That is never below the
other bound, and no attacker here knows that much.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dipriv._random.bits import Draws, source
from dipriv._tables import frames as tables
from dipriv.auditing.attacks.outcome import compare
from dipriv.auditing.attacks.registry import AttackContext, attack
from dipriv.auditing.attacks.setup import Cohort, Cohorts
from dipriv.auditing.nearness import Points, Space
from dipriv.auditing.results import AttackResult
from dipriv.mechanism import encode
from dipriv.release.fitting import FittedMechanism

CANDIDATES = (2, 10, 100)
"""Numbers k of candidate rows."""
RANK_CLASSES = 8
"""Classes of ranks: with more of them there are few training members in each."""
MAX_CLASSES = 64
"""Classes of labels at most, for the same reason."""
N_SPREADS = 4
"""How often a level is spread over its interval of [0, 1], as the mechanism does."""

Classes: TypeAlias = NDArray[np.uint8]
"""(spreads, columns, rows)"""
Candidates: TypeAlias = NDArray[np.intp]
"""(people, k): positions of released rows."""
Score: TypeAlias = Callable[[Cohort, Candidates], NDArray[np.generic]]
"""(people, k): the larger, the more likely that the row is the person's."""


@attack("re-identification", order=40)
def run(context: AttackContext) -> list[AttackResult]:
    """For each k and each attacker. Within one k no row is a candidate twice as long as there are enough rows."""
    cohorts, space, rng = context.cohorts, context.cohorts.space, context.rng
    released = classes_of_cells(space, space.released)
    attackers = {
        "nearest": (by_nearness(space), "picks the nearest"),
        "learned": (
            by_ratios(cohorts, lambda people: classes_of_cells(space, people.points), released),
            "picks by how cells changed in the rows of other people, which it knows",
        ),
    }
    fitted = context.setup.fitted
    if fitted is not None and fitted.by is None:
        attackers["reference"] = (
            by_ratios(
                cohorts,
                lambda people: classes_of_ranks(fitted, people.rows, 0),
                classes_of_ranks(fitted, context.setup.released, 1),
            ),
            "picks by how ranks under the reference changed in the rows of other people, all of which it knows",
        )
    own = cohorts.members.release_positions
    results = []
    for k in (size for size in CANDIDATES if size <= 1 + len(cohorts.other_positions)):
        decoys = np.resize(rng.permutation(cohorts.other_positions), (len(own), k - 1))
        candidates = rng.permuted(np.column_stack([own, decoys]), axis=1)
        for attacker, (score, how) in attackers.items():
            targets, control = (
                right_picks(score, people, candidates, own) for people in (cohorts.members, cohorts.non_members)
            )
            what = f"Knows a person's row and that one of {k} released rows is from it, and {how}."
            name = f"same row of {k}, {attacker}"
            confidence, epsilon, delta = context.confidence, context.epsilon, context.delta
            results.append(compare(name, what, targets, control, confidence, epsilon, 1 / k, delta))
    return results


def right_picks(score: Score, people: Cohort, candidates: Candidates, own: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Whether the candidate with the largest score is the right one, for as many people as there are candidate sets."""
    count = min(len(people), len(own))
    picked = score(people.slice(0, count), candidates[:count]).argmax(axis=1)
    return np.asarray(candidates[np.arange(count), picked] == own[:count])


def by_nearness(space: Space) -> Score:
    """The smaller the distance, the larger the score."""

    def score(people: Cohort, candidates: Candidates) -> NDArray[np.generic]:
        distances = space.distances(people.points[:, :, np.newaxis], space.released[:, candidates])
        return np.asarray(-distances.sum(axis=0, dtype=np.int64))

    return score


def by_ratios(cohorts: Cohorts, classify: Callable[[Cohort], Classes], released: Classes) -> Score:
    """A sum of log likelihood ratios over columns, learned from the training members."""
    training = cohorts.training_members
    ratios = log_ratios(classify(training), released[:, :, training.release_positions])

    def score(people: Cohort, candidates: Candidates) -> NDArray[np.generic]:
        true = classify(people)
        total = np.zeros(candidates.shape)
        for spread, column in np.ndindex(true.shape[:2]):
            total += ratios[column][true[spread, column][:, np.newaxis], released[spread, column][candidates]]
        return total

    return score


def log_ratios(true: Classes, released: Classes) -> NDArray[np.float64]:
    """(columns, classes, classes): log ratio of the count of a transition to its count under independence.

    A pseudocount of 1 on both sides shrinks rare transitions to 0.
    """
    spreads, columns, rows = true.shape
    counts = np.zeros((columns, MAX_CLASSES, MAX_CLASSES))
    for spread, column in np.ndindex(spreads, columns):
        np.add.at(counts[column], (true[spread, column], released[spread, column]), 1 / spreads)
    independent = counts.sum(axis=2, keepdims=True) * counts.sum(axis=1, keepdims=True) / rows
    return np.asarray(np.log((counts + 1) / (independent + 1)))


def classes_of_cells(space: Space, points: Points) -> Classes:
    """Eighths of ranks, and labels; missing cells are a class of their own."""
    classes = np.empty((1, *points.shape), dtype=np.uint8)
    for column, axis in enumerate(space.axes):
        places = points[column].astype(np.int64)
        if axis.numbers is None:
            classes[0, column] = np.minimum(places + 2, MAX_CLASSES - 1)
        else:
            classes[0, column] = np.where(places > axis.limit, RANK_CLASSES, places * RANK_CLASSES // (axis.limit + 1))
    return classes


def classes_of_ranks(fitted: FittedMechanism, rows: pa.Table, seed: int) -> Classes:
    """Eighths of the ranks under the reference, where the mechanism adds its noise."""
    table = tables.read(rows)
    cells = [column.cells(table) for column in fitted.columns]
    codecs = [column.codec for column in fitted.columns]
    classes = []
    for spread in range(N_SPREADS):
        draws = Draws(source(seed).child(f"spread {spread}"), 0, table.rows)
        u = fitted.reference.to_uniform(encode(codecs, cells, draws)[:, fitted.order])
        classes.append(np.clip(np.nan_to_num(u) * RANK_CLASSES, 0, RANK_CLASSES - 1).astype(np.uint8).T)
    return np.stack(classes)
