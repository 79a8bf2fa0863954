"""The outcome of an attack: its rates side by side, and the most that ε allows it.

Why ε says anything about a control group: a target of the table and a stranger of the control group were drawn at
random from the same people, so they could have changed places. The chance of a success on the stranger is therefore the
chance of a success on the target, had the stranger been in the table instead. These two tables differ by the
replacement of one row, which is what ε is promised for ("replace one row", the paper's Definition 1); a promise for
adding or removing a row would have to be used twice, as 2ε.

This holds for every success that depends on the release and on one person, whatever the attacker knows of all others
and of the reference. It is about the mean over people and releases, and about people whom the promise protects: not
about a hold-out.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dipriv.auditing.intervals import Rate, difference
from dipriv.auditing.results import Attack

LARGEST_EXPONENT = 700.0


def compare(
    name: str,
    what: str,
    targets: NDArray[np.bool_],
    control: NDArray[np.bool_],
    confidence: float,
    epsilon: float | None,
    chance: float | None = None,
) -> Attack:
    """Which tries on the targets and on the control group succeeded, as rates that count them as independent.

    `epsilon` is None for people to whom nothing is promised. `chance` is that of the control group where it is known.
    Otherwise it is taken at its rate for what is allowed, and for the limit at the upper end of its interval, as in the
    advantage's lower end: so the advantage exceeds the limit only if the targets' rate exceeds what is allowed whatever
    the control group's rate is, within its interval.
    """
    one, other = (Rate(int(hits.sum()), len(hits), confidence) for hits in (targets, control))
    at_most = Rate(other.hits, other.tries, (1 + confidence) / 2).upper
    chances = (other.value, at_most) if chance is None else (chance, chance)
    allowed, limit = (None if epsilon is None else largest_advantage(epsilon, each) for each in chances)
    return Attack(name, what, one, other, difference(one, other), allowed, limit)


def largest_chance(epsilon: float, chance: float) -> float:
    """The largest chance p of a success that has chance q in a neighbouring table: min(e^ε q, 1 - e^-ε (1 - q)).

    ε-privacy bounds the success, p <= e^ε q, and its opposite, 1 - q <= e^ε (1 - p).

    >>> round(largest_chance(math.log(3), 0.1), 3), round(largest_chance(math.log(3), 0.5), 3)
    (0.3, 0.833)
    """
    more = math.exp(min(epsilon, LARGEST_EXPONENT)) * chance
    return min(more, 1 - math.exp(-epsilon) * (1 - chance))


def largest_advantage(epsilon: float, chance: float) -> float:
    """The largest p - q at this q. It is nowhere above (e^ε - 1) / (e^ε + 1), its value at q = 1 / (e^ε + 1).

    >>> round(largest_advantage(math.log(3), 0.25), 3), round(largest_advantage(math.log(3), 0.9), 3)
    (0.5, 0.067)
    """
    return largest_chance(epsilon, chance) - chance
