"""Linkage: two halves of a person's data are put together through the release."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dipriv.auditing.attacks.outcome import compare
from dipriv.auditing.attacks.setup import Cast
from dipriv.auditing.nearness import Points
from dipriv.auditing.results import Attack

NEAREST = (1, 5)


def linkage(cast: Cast, epsilon: float, confidence: float) -> list[Attack]:
    """The released rows nearest to each half of a person's columns: is one row among both?"""
    one, other = halves(cast)
    if not other:
        return []

    def linked(people: Points) -> NDArray[np.bool_]:
        """(people, count): whether the nearest 1, 2, ... rows of both halves have a row in common."""
        released, most = cast.space.released, max(NEAREST)
        near, also = (cast.space.nearest(people, released, most, half)[1] for half in (one, other))
        same = near[:, :, np.newaxis] == also[:, np.newaxis, :]
        return np.stack([same[:, : k + 1, : k + 1].any(axis=(1, 2)) for k in range(most)], axis=1)

    targets, control = linked(cast.members.points), linked(cast.strangers.points)
    return [
        compare(
            f"linkage, {k} nearest",
            f"Knows two halves of a person's columns, and links them if the {k} nearest released rows of both have "
            "one in common.",
            targets[:, k - 1],
            control[:, k - 1],
            confidence,
            epsilon,
        )
        for k in NEAREST
    ]


def halves(cast: Cast) -> tuple[list[int], list[int]]:
    """Two sets of columns that tell about as much: those with the most distinct values are dealt out in turn."""
    distinct = [len(np.unique(column)) for column in cast.space.released]
    order = sorted(range(len(distinct)), key=lambda column: -distinct[column])
    return order[::2], order[1::2]
