"""Run every registered attack on a release and compare its success rate with that on a control group.

An attack succeeds or fails on each person. Its rate on members of the table is compared with its rate on non-members,
about whom the release holds no information. The difference, the attacker's advantage, is what the release discloses,
and for protected rows ε and δ bound it. Cohorts are disjoint: nobody the attacker learns from is counted.

Intervals treat the trials as independent. They are not quite, because all of them concern one release with one
reference. The intervals describe how the rates would vary over further people of this setup, not over releases.
"""

from __future__ import annotations

import numpy as np

from dipriv._base.progress import Progress, no_progress
from dipriv._random.bits import Seed
from dipriv._tables.frames import check_names
from dipriv.auditing.attacks.registry import AttackContext, registered_attacks
from dipriv.auditing.attacks.setup import MIN_PEOPLE, AttackSetup, as_sequence, assign_cohorts
from dipriv.auditing.intervals import check_confidence
from dipriv.auditing.results import AttackResult
from dipriv.errors import InputError
from dipriv.guarantee.guarantee import check_epsilon


def run_attacks(
    setup: AttackSetup,
    epsilon: float,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    secret: str | None = None,
    max_people: int = 2_000,
    seed: Seed = None,
    progress: Progress = no_progress,
) -> tuple[AttackResult, ...]:
    """Run every attack that the setup has enough columns and rows for.

    Parameters
    ----------
    setup : the table, its release and the control group.
    epsilon, delta : the claim for the release.
    confidence : of each interval by itself.
    secret : the column to infer from the others; by default each in turn.
    max_people : the largest size of a cohort.
    seed : seed of the attacker's randomness. It has no influence on the noise of the release.
    progress : called with what is being done and the share of it that is done.

    Returns
    -------
    The results, in the order of the registry.

    Raises
    ------
    InputError : an argument is out of its range, or `secret` is not a column.
    """
    epsilon = check_epsilon(epsilon)
    check_confidence(confidence)
    if max_people < MIN_PEOPLE:
        raise InputError(f"max_people={max_people!r} is below {MIN_PEOPLE}.", f"Attack at least {MIN_PEOPLE} people.")
    if secret is not None:
        check_names([secret], setup.table.column_names, "secret")
    rng = np.random.default_rng(None if seed is None else as_sequence(seed))
    cohorts = assign_cohorts(setup, max_people, rng)
    context = AttackContext(setup, cohorts, epsilon, confidence, rng, secret, delta)
    results: list[AttackResult] = []
    attacks = registered_attacks()
    for number, attack in enumerate(attacks, start=1):
        results += attack.run(context)
        progress("attacking", number, len(attacks))
    return tuple(results)
