"""Linkage: two halves of a person's record are joined through the release."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dipriv.auditing.attacks.outcome import compare
from dipriv.auditing.attacks.registry import AttackContext, attack
from dipriv.auditing.nearness import Points, Space
from dipriv.auditing.results import AttackResult

NEAREST = (1, 5)
"""How many nearest released rows of each half are compared."""


@attack("linkage", order=20)
def run(context: AttackContext) -> list[AttackResult]:
    """Link two halves of the columns if their nearest released rows have a row in common."""
    cohorts = context.cohorts
    first_half, second_half = halves(cohorts.space)
    if not second_half:
        return []

    def linked(people: Points) -> NDArray[np.bool_]:
        """(people, k): whether the nearest 1, 2, ... rows of both halves have a row in common."""
        space, k_max = cohorts.space, max(NEAREST)
        first, second = (space.nearest(people, space.released, k_max, half)[1] for half in (first_half, second_half))
        same = first[:, :, np.newaxis] == second[:, np.newaxis, :]
        return np.stack([same[:, : k + 1, : k + 1].any(axis=(1, 2)) for k in range(k_max)], axis=1)

    targets, control = linked(cohorts.members.points), linked(cohorts.non_members.points)
    return [
        compare(
            f"linkage, {k} nearest",
            f"Knows two halves of a person's columns, and links them if the {k} nearest released rows of both have "
            "one in common.",
            targets[:, k - 1],
            control[:, k - 1],
            context.confidence,
            context.epsilon,
            delta=context.delta,
        )
        for k in NEAREST
    ]


def halves(space: Space) -> tuple[list[int], list[int]]:
    """Two sets of columns with about equal information: columns sorted by distinct values, dealt alternately."""
    distinct = [len(np.unique(column)) for column in space.released]
    order = sorted(range(len(distinct)), key=lambda column: -distinct[column])
    return order[::2], order[1::2]
