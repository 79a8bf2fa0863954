"""Lower bounds on ε of the measurement primitives: noisy counts and report-noisy-max.

For both, the worst pair of neighbouring datasets and the most distinguishing event are known, so nothing is searched.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dipriv._random.bits import Seed, source
from dipriv.auditing.intervals import epsilon_of_draws
from dipriv.auditing.results import Bound
from dipriv.references._learning.measurements import Accountant

SENSITIVITY = 1 << 10
"""Of the scores of report-noisy-max."""
DRAWS_PER_CHOICE = 100
"""Choices are made one at a time: one for this many draws."""


def audit_primitives(
    epsilon: float, *, draws: int = 400_000, confidence: float = 0.95, seed: Seed = None
) -> tuple[Bound, ...]:
    """Lower bounds on the ε of one measurement whose privacy cost is `epsilon`.

    >>> counts, choices = audit_primitives(1.0, draws=200_000, seed=1)
    >>> 0.9 < counts.lower < 1, 0.7 < choices.lower < 1
    (True, True)
    """
    accountant = Accountant(Fraction(epsilon) * draws, source(seed))  # a budget for all draws
    return (
        _counts(accountant, epsilon, max(1, draws // 2), confidence),
        _choices(accountant, epsilon, max(1, draws // DRAWS_PER_CHOICE), confidence),
    )


def _counts(accountant: Accountant, epsilon: float, tries: int, confidence: float) -> Bound:
    """One row is in the first bin under D and in the second under D'. The event: counts of at least 1 and at most 0."""

    def noisy(count: int) -> NDArray[np.float64]:
        return accountant.noisy_counts(np.full(tries, count), Fraction(epsilon))[0]

    def hits(first: int, second: int) -> int:
        return int(np.count_nonzero((noisy(first) >= 1) & (noisy(second) <= 0)))

    lower = epsilon_of_draws(hits(1, 0), tries, hits(0, 1), tries, confidence)
    return Bound("noise on counts", epsilon, lower, confidence, 2 * tries, "a row that is in one bin or in another")


def _choices(accountant: Accountant, epsilon: float, tries: int, confidence: float) -> Bound:
    """One row changes both scores by the sensitivity, in opposite directions. The event: the lower one is chosen."""

    def hits(change: int) -> int:
        scores = np.array([-change, change])
        return sum(accountant.report_noisy_max(scores, SENSITIVITY, Fraction(epsilon)) == 0 for _ in range(tries))

    lower = epsilon_of_draws(hits(0), tries, hits(SENSITIVITY), tries, confidence)
    return Bound("noisy choice", epsilon, lower, confidence, 2 * tries, "a row that moves two scores")
