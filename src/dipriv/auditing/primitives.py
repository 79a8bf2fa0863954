"""Audits of the measurement primitives: noisy counts, choices and thresholds, with Laplace and with Gaussian noise.

For each of them the worst pair of neighbouring datasets is known, so nothing is searched. One measurement has the whole
budget (ε, δ): Laplace noise costs ε, Gaussian noise the ρ of zCDP that implies (ε, δ).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dipriv._base.arrays import FloatArray, Words
from dipriv._random.bits import Bits, Seed, source
from dipriv.auditing.intervals import epsilon_of_draws, epsilon_of_rho, rho_of_draws
from dipriv.auditing.results import Bound, Exact, Scope
from dipriv.references._learning.measurements import Accountant, NoiseKind
from dipriv.references._learning.zcdp import largest_rho

SENSITIVITY = 1 << 10
"""Of the scores of a choice."""
SEPARATION = 1.75
"""In standard deviations of the noise: the distance of Gaussian counts of two datasets that differ in many rows."""
EDGES = np.linspace(-2.5, 2.5, 11)
"""In standard deviations of the noise: bins of the difference of two Gaussian counts."""
SCORES = ((0, 0), (3, 0), (0, 0, 0), (2, 0, -1))
"""Scores of a choice, in units of their sensitivity."""
ROUNDING = 1e-9
"""An exact ε is rounded down by this part of it, which is more than the error of double precision."""
CELLS = 100_000
"""Cells of the histograms in which the lowest count that is published is sought."""


def audit_primitives(
    epsilon: float, delta: float = 0.0, *, draws: int = 400_000, confidence: float = 0.95, seed: Seed = None
) -> tuple[tuple[Bound, ...], tuple[Exact, ...]]:
    """Lower bounds on the ε of one measurement that costs (ε, δ), and exact results where no sampling is needed.

    Gaussian noise and thresholds are audited where δ is positive: without it they are not used.

    >>> (counts,), (choices,) = audit_primitives(1.0, draws=200_000, seed=1)
    >>> 0.9 < counts.lower < 1, 0.99 < choices.epsilon < 1
    (True, True)
    """
    laplace = Accountant("laplace", Fraction(epsilon) * draws, source(seed))  # a budget for all draws
    counts = _laplace_counts(laplace, epsilon, max(1, draws // 2), confidence)
    choices = Exact(
        "exponential mechanism", epsilon, _range(laplace.kind, Fraction(epsilon)), 0.0, Scope.MEASUREMENT, True
    )
    if not delta:
        return (counts,), (choices,)
    rho = largest_rho(Fraction(epsilon), Fraction(delta))
    gaussian = Accountant("gaussian", rho * draws, source(seed).child("gaussian"))
    found = _gaussian_counts(gaussian, rho, epsilon, delta, max(1, draws // 2), confidence)
    exact = (
        choices,
        _gaussian_choices(rho, epsilon, delta),
        _threshold(laplace, Fraction(epsilon), epsilon, delta),
        _threshold(gaussian, rho, epsilon, delta),
    )
    return (counts, found), exact


def _laplace_counts(accountant: Accountant, epsilon: float, tries: int, confidence: float) -> Bound:
    """One row is in the first bin under D and in the second under D'. The event: counts of at least 1 and at most 0."""

    def noisy(count: int) -> FloatArray:
        return accountant.noisy_counts(np.full(tries, count), Fraction(epsilon))[0]

    def hits(first: int, second: int) -> int:
        return int(np.count_nonzero((noisy(first) >= 1) & (noisy(second) <= 0)))

    lower = epsilon_of_draws(hits(1, 0), tries, hits(0, 1), tries, confidence)
    words = "a row that is in one bin or in another"
    return Bound("Laplace noise on counts", epsilon, lower, confidence, 2 * tries, words, scope=Scope.MEASUREMENT)


def _gaussian_counts(
    accountant: Accountant, rho: Fraction, epsilon: float, delta: float, tries: int, confidence: float
) -> Bound:
    """Many rows are in the first bin under D and in the second under D'; m of them cost m² ρ.

    The difference of the two counts falls into one of a few bins, whose probabilities bound ρ from below.
    """
    deviation = 1 / math.sqrt(rho)
    rows = max(1, round(SEPARATION * deviation / math.sqrt(2)))

    def hits(first: int, second: int) -> NDArray[np.intp]:
        one, other = (accountant.noisy_counts(np.full(tries, count), rho)[0] for count in (first, second))
        bins = np.searchsorted(EDGES, (one - other) / (math.sqrt(2) * deviation))
        return np.bincount(bins, minlength=len(EDGES) + 1)

    of_rows = rho_of_draws(hits(rows, 0), tries, hits(0, rows), tries, confidence)
    lower = epsilon_of_rho(of_rows / rows**2, delta)
    words = f"{rows} rows that are in one bin or in another; ρ of zCDP, as the ε that is charged for it"
    return Bound("Gaussian noise on counts", epsilon, lower, confidence, 2 * tries, words, delta, Scope.MEASUREMENT)


def _gaussian_choices(rho: Fraction, epsilon: float, delta: float) -> Exact:
    """A choice beside Gaussian noise: a range η of the privacy loss costs η²/8 of zCDP."""
    found = epsilon_of_rho(_range("gaussian", rho) ** 2 / 8, delta) * (1 - ROUNDING)
    return Exact("exponential mechanism, zCDP", epsilon, found, delta, Scope.MEASUREMENT, True)


def _range(kind: NoiseKind, cost: Fraction) -> float:
    """The largest range of the privacy loss of a choice, over small score vectors and all their neighbours."""
    ranges = []
    for scores in SCORES:
        before = _log_chances(np.array(scores) * SENSITIVITY, kind, cost)
        for moves in product((-1, 0, 1), repeat=len(scores)):
            after = _log_chances(np.add(scores, moves) * SENSITIVITY, kind, cost)
            ranges.append(float(np.ptp(after - before)))
    return max(ranges) * (1 - ROUNDING)


def _log_chances(scores: NDArray[np.int64], kind: NoiseKind, cost: Fraction) -> FloatArray:
    """The log of the probability that a choice takes each of these scores.

    The choice is by inversion, so a candidate's probability is the length of the interval of random words that lead to
    it, whose ends are found by bisection.
    """

    def choice(word: int) -> int:
        return Accountant(kind, cost, _FirstWord(word)).choose(scores, SENSITIVITY, cost)

    ends = [0, *(_first(choice, number) for number in range(1, len(scores))), 1 << 64]
    return np.log(np.diff(np.array(ends, dtype=object)).astype(np.float64) * 2.0**-64)


class _FirstWord(Bits):
    """Bits that start with a given word."""

    def __init__(self, word: int) -> None:
        super().__init__(bytes(32), secure=False)
        self._word = word

    def blocks(self, lane: int, start: int, count: int) -> Words:
        words = super().blocks(lane, start, count)
        if start == 0:
            words[0, 0] = self._word
        return words


def _first(choice: Callable[[int], int], number: int) -> int:
    """The first word that leads to this candidate or a later one."""
    low, high = -1, 1 << 64
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if choice(middle) >= number else (middle, high)
    return high


def _threshold(accountant: Accountant, cost: Fraction, epsilon: float, delta: float) -> Exact:
    """Whether a label of one row is published with probability at most δ: P(noise reaches the threshold less one row).

    The threshold is the lowest noisy count that is published. Without the row the label cannot show, so that any
    larger probability refutes every ε.
    """
    found = 0.0 if threshold_chance(accountant, cost, delta) <= delta else math.inf
    return Exact(
        f"label of one row, {accountant.kind.capitalize()} noise", epsilon, found, delta, Scope.MEASUREMENT, True
    )


def threshold_chance(accountant: Accountant, cost: Fraction, delta: float, rows: int = 1) -> float:
    """A lower bound on the probability that a label of this number of rows is published by a histogram at (cost, δ)."""
    scale = accountant.frequent(np.zeros(1, np.int64), np.zeros(0, np.int64), cost, Fraction(delta)).spread.scale
    top = 2 + 2 * scale * math.log(1 / delta)
    lowest = _lowest_published(accountant, np.linspace(1, top, CELLS).astype(np.int64), cost, delta)
    lowest = min(lowest, _lowest_published(accountant, np.full(CELLS, int(lowest)), cost, delta))
    return least_chance(accountant.kind, (lowest - rows) / scale)


def _lowest_published(accountant: Accountant, counts: NDArray[np.int64], cost: Fraction, delta: float) -> float:
    published = accountant.frequent(counts, np.zeros(0, np.int64), cost, Fraction(delta))
    return float(published.counts.min(initial=math.inf))


def least_chance(kind: NoiseKind, distance: float) -> float:
    """A lower bound on the probability that discrete noise is at least this distance, in scales, above zero.

    The sums of falling terms over a lattice are at least the integrals of the continuous densities.
    """
    return 0.5 * math.exp(-distance) if kind == "laplace" else float(stats.norm.sf(distance))
