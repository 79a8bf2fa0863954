"""Attributes: all of a person's columns are known but one, which is inferred from the release."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dipriv.auditing.attacks.outcome import compare
from dipriv.auditing.attacks.setup import Cast
from dipriv.auditing.nearness import Places, Points
from dipriv.auditing.results import Attack

TOLERANCE = 0.05
"""A number is inferred if no more than this share of the released rows lies between it and the truth."""


def attributes(cast: Cast, epsilon: float, confidence: float, secret: str | None = None) -> list[Attack]:
    """Each column in turn, or the secret one: from the nearest row by the others, and from the person's own row.

    Whose row is whose is known, because row identity is kept. A stranger of the control group is given the released
    row of a member, as if it were the one that he does not have.
    """
    columns = [column for column, name in enumerate(cast.names) if secret in (None, name)]
    sides = cast.members.points, cast.strangers.points[:, : len(cast.members)]
    own = [np.tile(cast.members.own[: people.shape[1], np.newaxis], len(columns)) for people in sides]
    sources = {"own row": ("which released row is the person's", "there", own)}
    if len(cast.names) > 1:
        nearest = [nearest_without(cast, people, columns) for people in sides]
        sources = {"nearest row": ("all other columns", "in the nearest released row", nearest), **sources}
    found = []
    for place, column in enumerate(columns):
        right = "equal" if cast.space.axes[column].numbers is None else f"within {TOLERANCE:.0%} of the ranks"
        for source, (known, where, rows) in sources.items():
            what = f"Knows {known}, and reads {cast.names[column]!r} {where}: right if {right}."
            targets, control = (
                inferred(cast, people, row[:, place], column) for people, row in zip(sides, rows, strict=True)
            )
            name = f"attribute {cast.names[column]}, {source}"
            found.append(compare(name, what, targets, control, confidence, epsilon))
    return found


def inferred(cast: Cast, people: Points, rows: Places, column: int) -> NDArray[np.bool_]:
    """Whether this column of the released rows tells that of the people."""
    apart = cast.space.apart(people, cast.space.released[:, rows])[column]
    return np.asarray(apart <= TOLERANCE * cast.space.farthest)


def nearest_without(cast: Cast, people: Points, columns: Sequence[int]) -> Places:
    """(people, columns): the nearest released rows by all columns but each of these; one pass if they are many."""
    if len(columns) > 1:
        return cast.space.nearest_without_each(people, cast.space.released)[:, columns]
    known = [column for column in range(len(cast.names)) if column != columns[0]]
    return cast.space.nearest(people, cast.space.released, 1, known)[1]
