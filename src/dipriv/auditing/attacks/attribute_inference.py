"""Attribute inference: the attacker knows all of a person's columns but one, and infers that from the release."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dipriv.auditing.attacks.outcome import compare
from dipriv.auditing.attacks.registry import AttackContext, attack
from dipriv.auditing.nearness import Places, Points, Space
from dipriv.auditing.results import AttackResult

TOLERANCE = 0.05
"""A number is inferred if no more than this share of the released rows lies between it and the truth."""


@attack("attribute inference", order=50)
def run(context: AttackContext) -> list[AttackResult]:
    """Each column in turn, or the secret one: from the nearest row by the other columns, and from the own row.

    The attacker knows which released row is whose, because a release keeps row identity. A non-member is assigned the
    released row of a member in place of the own one.
    """
    cohorts, space = context.cohorts, context.cohorts.space
    columns = [column for column, name in enumerate(cohorts.names) if context.secret in (None, name)]
    sides = cohorts.members.points, cohorts.non_members.points[:, : len(cohorts.members)]
    positions = cohorts.members.release_positions
    own = [np.tile(positions[: people.shape[1], np.newaxis], len(columns)) for people in sides]
    sources = {"own row": ("which released row is the person's", "there", own)}
    if len(cohorts.names) > 1:
        nearest = [nearest_without(space, people, columns) for people in sides]
        sources = {"nearest row": ("all other columns", "in the nearest released row", nearest), **sources}
    results = []
    for place, column in enumerate(columns):
        right = "equal" if space.axes[column].numbers is None else f"within {TOLERANCE:.0%} of the ranks"
        for source, (known, where, rows) in sources.items():
            what = f"Knows {known}, and reads {cohorts.names[column]!r} {where}: right if {right}."
            targets, control = (
                inferred(space, people, row[:, place], column) for people, row in zip(sides, rows, strict=True)
            )
            name = f"attribute {cohorts.names[column]}, {source}"
            confidence, epsilon = context.confidence, context.epsilon
            results.append(compare(name, what, targets, control, confidence, epsilon, delta=context.delta))
    return results


def inferred(space: Space, people: Points, rows: Places, column: int) -> NDArray[np.bool_]:
    """Whether this column of the released rows equals that of the people, or is within the tolerance."""
    distance = space.distances(people, space.released[:, rows])[column]
    return np.asarray(distance <= TOLERANCE * space.max_distance)


def nearest_without(space: Space, people: Points, columns: Sequence[int]) -> Places:
    """(people, columns): the nearest released rows by all columns but each of these."""
    if len(columns) > 1:  # one pass for all of them
        return space.nearest_without_each(people, space.released)[:, columns]
    known = [column for column in range(len(space.axes)) if column != columns[0]]
    return space.nearest(people, space.released, 1, known)[1]
