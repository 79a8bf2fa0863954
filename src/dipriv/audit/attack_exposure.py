"""Exposure: rows of the table that stand in the release, cell by cell or nearly so.

Aimed at the hold-out if there is one: the release may be made of it (the paper's empirical reference puts a box around
each of its rows), and only a private reference promises it anything. Otherwise at the released people.
"""

from __future__ import annotations

import numpy as np

from dipriv.audit.attack_outcome import compare
from dipriv.audit.attack_scene import Cast
from dipriv.audit.results import Attack

CLOSE = 0.01
"""The share of people that are by chance as near to a released row as what counts as nearly verbatim."""


def exposure(cast: Cast, epsilon: float, confidence: float, *, held_protected: bool) -> list[Attack]:
    """Verbatim, and within a radius that the attacker takes from people who are not counted."""
    aimed = cast.held if len(cast.held) else cast.members
    whom = "held-out people" if len(cast.held) else "released people"
    promised = None if len(cast.held) and not held_protected else epsilon
    targets, control = aimed.closest, cast.strangers.closest
    radius = np.quantile(cast.outsiders.closest, CLOSE, method="inverted_cdf")
    return [
        compare(
            "exposure, verbatim",
            f"Looks whether the rows of {whom} are in the release, equal in every cell.",
            targets == 0,
            control == 0,
            confidence,
            promised,
        ),
        compare(
            "exposure, nearly verbatim",
            f"Looks whether the rows of {whom} have a released row as near as only {CLOSE:.0%} of other people have.",
            targets <= radius,
            control <= radius,
            confidence,
            promised,
        ),
    ]
