"""The result of an attack: success rates with intervals, and the largest advantage that ε and δ allow.

Why they bound the advantage over a control group: members and non-members were drawn at random from the same people, so
they are exchangeable. The probability of a success on a non-member is therefore the probability of a success on the
target, had the non-member been in the table instead. These two tables are neighbours: they differ by the substitution
of one row (the paper's Definition 1). Under add-or-remove neighbours the bound would have to be used twice, as 2ε.

This holds for every success that depends on the release and on one person, no matter what the attacker knows about all
others and about the reference. It is a statement about the mean over people and releases, and about people whom the
guarantee protects, so not about rows that are held out without protection.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dipriv.auditing.intervals import Rate, difference
from dipriv.auditing.results import AttackResult
from dipriv.guarantee.trade_off import largest_probability


def compare(
    name: str,
    what: str,
    targets: NDArray[np.bool_],
    control: NDArray[np.bool_],
    confidence: float,
    epsilon: float | None,
    chance: float | None = None,
    delta: float = 0.0,
) -> AttackResult:
    """Compare success on the targets with success on the control group.

    Parameters
    ----------
    name, what : the attack, and what the attacker knows and does.
    targets, control : whether each trial succeeded; trials count as independent.
    confidence : of each interval.
    epsilon, delta : the claim; ε is None for people whom the guarantee does not cover.
    chance : the success probability of the control group where it is known.

    Returns
    -------
    The rates and the advantage. Without a known `chance`, `allowed` is computed at the control group's observed rate,
    and `limit` at the upper end of its interval, which is also the end used in the lower end of the advantage. So the
    advantage exceeds `limit` only if the targets' rate exceeds what the claim allows at every control rate in the
    interval.
    """
    target_rate, control_rate = (Rate(int(hits.sum()), len(hits), confidence) for hits in (targets, control))
    upper = Rate(control_rate.hits, control_rate.tries, (1 + confidence) / 2).upper
    chances = (control_rate.value, upper) if chance is None else (chance, chance)
    allowed, limit = (None if epsilon is None else max_advantage(epsilon, each, delta) for each in chances)
    return AttackResult(name, what, target_rate, control_rate, difference(target_rate, control_rate), allowed, limit)


def max_advantage(epsilon: float, chance: float, delta: float = 0.0) -> float:
    """The largest p - q at this q. For δ = 0 it is at most (e^ε - 1) / (e^ε + 1), its value at q = 1 / (e^ε + 1).

    >>> import math
    >>> round(max_advantage(math.log(3), 0.25), 3), round(max_advantage(math.log(3), 0.9), 3)
    (0.5, 0.067)
    """
    return largest_probability(chance, epsilon, delta) - chance
