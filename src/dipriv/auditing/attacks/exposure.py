"""Exposure: rows of the table that stand in the release, cell by cell or nearly so.

Aimed at the hold-out if there is one: the release may be made of it (the paper's empirical reference puts a box around
each of its rows), and only a private reference promises it anything. Otherwise at the released people.
"""

from __future__ import annotations

import numpy as np

from dipriv.auditing.attacks.outcome import compare
from dipriv.auditing.attacks.setup import Cast
from dipriv.auditing.results import Attack

CLOSE = 0.01
"""Of people who have no equal released row, the share that is by chance as near to one as what counts as near."""


def exposure(cast: Cast, epsilon: float, confidence: float, *, held_protected: bool) -> list[Attack]:
    """Verbatim, and within a radius that the attacker takes from people who are not counted.

    It is taken among those who have no equal released row: in tables of levels many have one, and their distance of 0
    would be no radius. Where all of them have one there is no second attack.
    """
    aimed = cast.held if len(cast.held) else cast.members
    whom = "held-out people" if len(cast.held) else "released people"
    promised = None if len(cast.held) and not held_protected else epsilon
    targets, control = aimed.closest, cast.strangers.closest
    found = [
        compare(
            "exposure, verbatim",
            f"Looks whether the rows of {whom} are in the release, equal in every cell.",
            targets == 0,
            control == 0,
            confidence,
            promised,
        )
    ]
    unequal = cast.outsiders.closest[cast.outsiders.closest > 0]
    if len(unequal):
        radius = np.quantile(unequal, CLOSE, method="inverted_cdf")
        what = (
            f"Looks whether the rows of {whom} have a released row that is equal, or as near as that of the nearest "
            f"{CLOSE:.0%} of other people without an equal one."
        )
        found.append(
            compare("exposure, nearly verbatim", what, targets <= radius, control <= radius, confidence, promised)
        )
    return found
