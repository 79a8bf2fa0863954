"""Membership inference: was a person's row in the table at all?"""

from __future__ import annotations

import numpy as np

from dipriv._base.arrays import FloatArray
from dipriv.auditing.attacks.outcome import compare
from dipriv.auditing.attacks.registry import AttackContext, attack
from dipriv.auditing.attacks.setup import Cohort
from dipriv.auditing.results import AttackResult


@attack("membership inference", order=30)
def run(context: AttackContext) -> list[AttackResult]:
    """By the distance to the closest release row, alone and relative to that of known non-members.

    Thresholds are set on people whom the attacker knows. The advantage is the share of members called members less
    that of non-members (Yeom et al. 2018). ε bounds it because neighbouring tables are substitute-one: a non-member
    takes a member's place, and the number of rows is known.
    """
    cohorts = context.cohorts
    known = cohorts.known_non_members
    half = len(known) // 2
    for_threshold, for_density = known.slice(0, half), known.slice(half, len(known))

    def closest(people: Cohort) -> FloatArray:
        return -people.closest.astype(np.float64)

    def density_ratio(people: Cohort) -> FloatArray:
        distance = cohorts.space.nearest(people.points, for_density.points)[0][:, 0]
        return np.asarray(np.log1p(distance) - np.log1p(people.closest))

    scores = {
        "closest row": (closest, "by the distance to the closest released row"),
        "density ratio": (
            density_ratio,
            "by how much closer a released row is than the closest of people known not to be there",
        ),
    }
    results = []
    for name, (score, how) in scores.items():
        threshold = best_threshold(score(cohorts.training_members), score(for_threshold))
        what = f"Knows a person's row and tells whether it was in the table {how}, with a limit set on other people."
        targets, control = (score(people) >= threshold for people in (cohorts.members, cohorts.non_members))
        title, confidence, epsilon = f"membership, {name}", context.confidence, context.epsilon
        results.append(compare(title, what, targets, control, confidence, epsilon, delta=context.delta))
    return results


def best_threshold(members: FloatArray, non_members: FloatArray) -> float:
    """The threshold with the largest difference between the shares of members and non-members at or above it."""
    thresholds = np.unique(np.concatenate([members, non_members]))
    above = [1 - np.searchsorted(np.sort(scores), thresholds) / len(scores) for scores in (members, non_members)]
    return float(thresholds[np.argmax(above[0] - above[1])])
