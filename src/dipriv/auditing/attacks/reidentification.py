"""Line-ups: row identity is kept, so each released person has one row in the release. Which one?

The attacker knows a person's true row and sees k released rows, one of them from that row and the others from people
drawn by lot. A stranger of the control group faces the line-up of a member, and the row of that member counts as right.

What ε allows: put a stranger in the person's place in the table. Then the k rows come from k people drawn by lot, none
of them the one whom the attacker looks for; so whatever is picked, it is at the person's place with chance 1/k. In the
true table, one replacement away, the chance of that pick is at most `largest_chance(ε, 1/k)`.

This needs that the attacker does not know the other k - 1 people. Who knows them all compares places of the person,
which takes two replacements: P(pick j | the person is at j) <= e^2ε P(pick j | the person is at i) for all i, and the
picks of each i add up to 1, so a right pick has chance at most e^2ε / (e^2ε + k - 1). That is never below the other
bound, and no attacker here knows so much.
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
from dipriv.auditing.attacks.setup import Cast, Group, Scene
from dipriv.auditing.nearness import Points, Space
from dipriv.auditing.results import Attack
from dipriv.mechanism import encode
from dipriv.release.fitting import FittedMechanism

SIZES = (2, 10, 100)
BINS, CLASSES = 8, 64
"""Classes of ranks, and of labels at most: with more of them there are few insiders in each to learn from."""
SPREADS = 4
"""How often a level is spread over its share of [0, 1], as the mechanism does."""

Classes: TypeAlias = NDArray[np.uint8]
"""(spreads, columns, rows)"""
Shown: TypeAlias = NDArray[np.intp]
"""(people, k): released rows."""
Score: TypeAlias = Callable[[Group, Shown], NDArray[np.generic]]
"""(people, k): the larger, the more likely that the row is from the person."""


def line_ups(scene: Scene, cast: Cast, epsilon: float, confidence: float, rng: np.random.Generator) -> list[Attack]:
    """For each size and each attacker. No row is in two line-ups of a size as long as there are enough of them."""
    released = classes_of_cells(cast.space, cast.space.released)
    attackers = {
        "nearest": (by_nearness(cast.space), "picks the nearest"),
        "learned": (
            by_ratios(cast, lambda people: classes_of_cells(cast.space, people.points), released),
            "picks by how cells changed in the rows of other people, which it knows",
        ),
    }
    fitted = scene.fitted
    if fitted is not None and fitted.by is None:
        attackers["reference"] = (
            by_ratios(
                cast,
                lambda people: classes_of_ranks(fitted, people.rows, 0),
                classes_of_ranks(fitted, scene.released, 1),
            ),
            "picks by how ranks under the reference changed in the rows of other people, all of which it knows",
        )
    own = cast.members.own
    found = []
    for k in (size for size in SIZES if size <= 1 + len(cast.others)):
        decoys = np.resize(rng.permutation(cast.others), (len(own), k - 1))
        shown = rng.permuted(np.column_stack([own, decoys]), axis=1)
        for name, (score, how) in attackers.items():
            targets, control = (right_picks(score, people, shown, own) for people in (cast.members, cast.strangers))
            what = f"Knows a person's row and that one of {k} released rows is from it, and {how}."
            found.append(compare(f"same row of {k}, {name}", what, targets, control, confidence, epsilon, 1 / k))
    return found


def right_picks(score: Score, people: Group, shown: Shown, own: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Whether the row with the largest score is the right one, for as many people as there are line-ups."""
    count = min(len(people), len(own))
    picked = score(people.some(0, count), shown[:count]).argmax(axis=1)
    return np.asarray(shown[np.arange(count), picked] == own[:count])


def by_nearness(space: Space) -> Score:
    """The less distance, the likelier."""

    def score(people: Group, shown: Shown) -> NDArray[np.generic]:
        apart = space.apart(people.points[:, :, np.newaxis], space.released[:, shown])
        return np.asarray(-apart.sum(axis=0, dtype=np.int64))

    return score


def by_ratios(cast: Cast, see: Callable[[Group], Classes], released: Classes) -> Score:
    """Column by column, by a ratio of likelihoods that is learned from the insiders."""
    ratios = log_ratios(see(cast.insiders), released[:, :, cast.insiders.own])

    def score(people: Group, shown: Shown) -> NDArray[np.generic]:
        true = see(people)
        total = np.zeros(shown.shape)
        for spread, column in np.ndindex(true.shape[:2]):
            total += ratios[column][true[spread, column][:, np.newaxis], released[spread, column][shown]]
        return total

    return score


def log_ratios(true: Classes, released: Classes) -> NDArray[np.float64]:
    """(columns, classes, classes): log of how often one class comes out as another, to how often it would by chance.

    One row more on both sides keeps what was hardly seen near 0.
    """
    spreads, columns, rows = true.shape
    counts = np.zeros((columns, CLASSES, CLASSES))
    for spread, column in np.ndindex(spreads, columns):
        np.add.at(counts[column], (true[spread, column], released[spread, column]), 1 / spreads)
    by_chance = counts.sum(axis=2, keepdims=True) * counts.sum(axis=1, keepdims=True) / rows
    return np.asarray(np.log((counts + 1) / (by_chance + 1)))


def classes_of_cells(space: Space, points: Points) -> Classes:
    """Eighths of ranks, and labels; what is missing is a class of its own."""
    classes = np.empty((1, *points.shape), dtype=np.uint8)
    for column, axis in enumerate(space.axes):
        places = points[column].astype(np.int64)
        if axis.numbers is None:
            classes[0, column] = np.minimum(places + 2, CLASSES - 1)
        else:
            classes[0, column] = np.where(places > axis.limit, BINS, places * BINS // (axis.limit + 1))
    return classes


def classes_of_ranks(fitted: FittedMechanism, rows: pa.Table, seed: int) -> Classes:
    """Eighths of the ranks under the reference, which is where the mechanism adds its noise."""
    table = tables.read(rows).clip_infinities()
    cells = [column.cells(table) for column in fitted.columns]
    codecs = [column.codec for column in fitted.columns]
    classes = []
    for spread in range(SPREADS):
        draws = Draws(source(seed).child(f"spread {spread}"), 0, table.rows)
        u = fitted.reference.to_uniform(encode(codecs, cells, draws)[:, fitted.order])
        classes.append(np.clip(np.nan_to_num(u) * BINS, 0, BINS - 1).astype(np.uint8).T)
    return np.stack(classes)
