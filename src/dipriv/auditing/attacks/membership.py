"""Membership: whether a person was in the table at all."""

from __future__ import annotations

import numpy as np

from dipriv._arrays import FloatArray
from dipriv.auditing.attacks.outcome import compare
from dipriv.auditing.attacks.setup import Cast, Group
from dipriv.auditing.results import Attack


def membership(cast: Cast, epsilon: float, confidence: float) -> list[Attack]:
    """By the closest released row alone, and beside the closest of other people; limits are set on known people.

    The advantage is the share of members who are called members less that of strangers. What ε says about it needs
    neighbours by replacement: a stranger takes a member's place, and the number of rows is known.
    """
    half = len(cast.outsiders) // 2
    to_set_limits, to_compare = cast.outsiders.some(0, half), cast.outsiders.some(half, len(cast.outsiders))

    def closest(people: Group) -> FloatArray:
        return -people.closest.astype(np.float64)

    def density_ratio(people: Group) -> FloatArray:
        beside = cast.space.nearest(people.points, to_compare.points)[0][:, 0]
        return np.asarray(np.log1p(beside) - np.log1p(people.closest))

    ways = {
        "closest row": (closest, "by the distance to the closest released row"),
        "density ratio": (
            density_ratio,
            "by how much closer a released row is than the closest of people known not to be there",
        ),
    }
    found = []
    for name, (score, how) in ways.items():
        limit = best_threshold(score(cast.insiders), score(to_set_limits))
        what = f"Knows a person's row and tells whether it was in the table {how}, with a limit set on other people."
        targets, control = (score(people) >= limit for people in (cast.members, cast.strangers))
        found.append(compare(f"membership, {name}", what, targets, control, confidence, epsilon))
    return found


def best_threshold(members: FloatArray, strangers: FloatArray) -> float:
    """The limit at or above which the share of members exceeds that of strangers the most."""
    limits = np.unique(np.concatenate([members, strangers]))
    above = [1 - np.searchsorted(np.sort(scores), limits) / len(scores) for scores in (members, strangers)]
    return float(limits[np.argmax(above[0] - above[1])])
