"""Noise on what is learned from rows, at the doors through which it leaves: counts, and the choice of a best score.

For both, the worst neighbours and the event that tells them apart best are known: there is nothing to search for.
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
CHOICES_PER_DRAW = 100
"""Choices are made one by one: so many fewer."""


def audit_primitives(
    epsilon: float, *, draws: int = 400_000, confidence: float = 0.95, seed: Seed = None
) -> tuple[Bound, ...]:
    """Lower bounds on what one measurement costs that is paid for with this ε.

    >>> counts, choices = audit_primitives(1.0, draws=200_000, seed=1)
    >>> 0.9 < counts.lower < 1, 0.7 < choices.lower < 1
    (True, True)
    """
    accountant = Accountant(Fraction(epsilon) * draws, source(seed))  # a budget for all of them
    return (
        _counts(accountant, epsilon, max(1, draws // 2), confidence),
        _choices(accountant, epsilon, max(1, draws // CHOICES_PER_DRAW), confidence),
    )


def _counts(accountant: Accountant, epsilon: float, tries: int, confidence: float) -> Bound:
    """A row moves from one cell to another. The event: at least 1 is seen in the one, at most 0 in the other."""

    def seen(count: int) -> NDArray[np.float64]:
        return accountant.noisy_counts(np.full(tries, count), Fraction(epsilon))[0]

    hits, other_hits = (int(np.count_nonzero((seen(one) >= 1) & (seen(other) <= 0))) for one, other in ((1, 0), (0, 1)))
    lower = epsilon_of_draws(hits, tries, other_hits, tries, confidence)
    return Bound("noise on counts", epsilon, lower, confidence, 2 * tries, "a row that is in one cell or in another")


def _choices(accountant: Accountant, epsilon: float, tries: int, confidence: float) -> Bound:
    """A row moves two scores, as far as one can, apart. The event: the one that is behind is chosen."""

    def chosen(apart: int) -> int:
        scores = np.array([-apart, apart])
        return sum(accountant.report_noisy_max(scores, SENSITIVITY, Fraction(epsilon)) == 0 for _ in range(tries))

    hits, other_hits = chosen(0), chosen(SENSITIVITY)
    lower = epsilon_of_draws(hits, tries, other_hits, tries, confidence)
    return Bound("noisy choice", epsilon, lower, confidence, 2 * tries, "a row that moves two scores apart")
