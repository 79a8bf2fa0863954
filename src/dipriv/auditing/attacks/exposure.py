"""Exposure: rows of the table that appear in the release, identical or nearly identical.

The targets are the held-out rows if there are any. A release may reproduce them (the paper's empirical reference puts
a box around each), and only a private reference protects them. Otherwise the targets are released people.
"""

from __future__ import annotations

import numpy as np

from dipriv.auditing.attacks.outcome import compare
from dipriv.auditing.attacks.registry import AttackContext, attack
from dipriv.auditing.results import AttackResult

NEAR_SHARE = 0.01
"""The distance that counts as near is this quantile among non-members who have no identical released row."""


@attack("exposure", order=10)
def run(context: AttackContext) -> list[AttackResult]:
    """Identical rows, and rows within a radius that the attacker takes from known non-members.

    The radius comes from those who have no identical released row: in tables of few levels many have one, and their
    distance of 0 would be no radius. Where all of them have one, the second attack is left out.
    """
    cohorts = context.cohorts
    has_holdout = len(cohorts.held_out) > 0
    people = "held-out people" if has_holdout else "released people"
    epsilon = None if has_holdout and not context.setup.all_protected else context.epsilon
    targets = (cohorts.held_out if has_holdout else cohorts.members).closest
    control = cohorts.non_members.closest
    results = [
        compare(
            "exposure, verbatim",
            f"Looks whether the rows of {people} are in the release, equal in every cell.",
            targets == 0,
            control == 0,
            context.confidence,
            epsilon,
            delta=context.delta,
        )
    ]
    unequal = cohorts.known_non_members.closest[cohorts.known_non_members.closest > 0]
    if len(unequal):
        radius = np.quantile(unequal, NEAR_SHARE, method="inverted_cdf")
        what = (
            f"Looks whether the rows of {people} have a released row that is equal, or as near as that of the nearest "
            f"{NEAR_SHARE:.0%} of other people without an equal one."
        )
        near, control_near = targets <= radius, control <= radius
        name, confidence = "exposure, nearly verbatim", context.confidence
        results.append(compare(name, what, near, control_near, confidence, epsilon, delta=context.delta))
    return results
