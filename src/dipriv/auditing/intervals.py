"""Exact confidence intervals: valid for every sample size, without asymptotic approximation."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from dipriv.errors import InputError


@dataclass(frozen=True)
class Rate:
    """Successes in independent trials, with the exact (Clopper-Pearson) interval for their probability."""

    hits: int
    tries: int
    confidence: float = 0.95

    @property
    def value(self) -> float:
        return self.hits / self.tries if self.tries else math.nan

    @property
    def lower(self) -> float:
        return at_least(self.hits, self.tries, (1 + self.confidence) / 2)

    @property
    def upper(self) -> float:
        return 1 - at_least(self.tries - self.hits, self.tries, (1 + self.confidence) / 2)


@dataclass(frozen=True)
class Estimate:
    """A number with its interval."""

    value: float
    lower: float
    upper: float
    confidence: float = 0.95


def at_least(hits: int, tries: int, confidence: float) -> float:
    """The one-sided Clopper-Pearson lower confidence limit of a probability."""
    return float(stats.beta.ppf(1 - confidence, hits, tries - hits + 1)) if hits else 0.0


def difference(rate: Rate, control: Rate) -> Estimate:
    """The difference of two rates; by the union bound each limit uses half of the error for each rate."""
    confidence = min(rate.confidence, control.confidence)
    half = (1 + confidence) / 2
    rate, control = Rate(rate.hits, rate.tries, half), Rate(control.hits, control.tries, half)
    return Estimate(rate.value - control.value, rate.lower - control.upper, rate.upper - control.lower, confidence)


def epsilon_of_draws(
    hits: int, tries: int, other_hits: int, other_tries: int, confidence: float, delta: float = 0.0
) -> float:
    """A lower confidence limit of ln((P(event) - δ) / P'(event)), from draws under two neighbouring datasets.

    It bounds ε from below, since (ε, δ)-DP means P(event) <= e^ε P'(event) + δ. The event must be chosen before these
    draws.
    """
    half = (1 + confidence) / 2
    likely = at_least(hits, tries, half) - delta
    rare = 1 - at_least(other_tries - other_hits, other_tries, half)
    return max(0.0, math.log(likely / rare)) if likely > 0 else 0.0


def rho_of_draws(
    hits: NDArray[np.intp], tries: int, other_hits: NDArray[np.intp], other_tries: int, confidence: float
) -> float:
    """A lower confidence limit of the ρ of zCDP, from draws of a finite outcome under two datasets.

    ρ-zCDP means D_α(P‖P') <= α ρ for all α > 1, and Σ p^α p'^(1-α), summed over the outcomes, grows with p and falls
    with p'. All of these have their limits at once (Clopper-Pearson, Bonferroni); the best order α is taken.
    """
    each = 1 - (1 - confidence) / (2 * len(hits))
    likely = np.array([at_least(int(count), tries, each) for count in hits])
    rare = np.array([1 - at_least(int(other_tries - count), other_tries, each) for count in other_hits])
    order = 1 + np.geomspace(0.05, 8.0, 60)
    sums = np.sum(likely ** order[:, np.newaxis] * rare ** (1 - order[:, np.newaxis]), axis=1)
    return max(0.0, float(np.max(np.log(sums) / ((order - 1) * order))))


def epsilon_of_rho(rho: float, delta: float) -> float:
    """The ε that ρ-zCDP implies at this δ (Canonne, Kamath, Steinke 2020, Proposition 12), in double precision.

    >>> f"{epsilon_of_rho(0.014973, 1e-9):.4f}"
    '1.0000'
    """

    def at(log: float) -> float:
        a = math.exp(log)  # α - 1
        return (1 + a) * rho - (math.log(delta) + log + (1 + a) * math.log1p(1 / a)) / a

    if rho <= 0:
        return 0.0
    middle = math.log(math.log(1 / delta) / rho) / 2  # near the best α - 1
    found = optimize.minimize_scalar(at, bounds=(middle - 10, middle + 10), method="bounded", options={"xatol": 1e-9})
    return max(0.0, float(found.fun))


def epsilon_of_guesses(correct: int, guesses: int, canaries: int, confidence: float, delta: float = 0.0) -> float:
    """A lower bound on ε from one run in which fair coins chose the canary records, from the number of correct guesses.

    It is the largest ε that the guesses refute: `chance_of_guesses` at each smaller ε is below 1 - confidence.

    Parameters
    ----------
    correct, guesses : how many guesses were right, and how many were made.
    canaries : how many coins there were, those that were not guessed included.
    confidence : of the bound.
    delta : the δ of the claim.

    Returns
    -------
    The bound, at least 0.
    """
    share = at_least(correct, guesses, confidence)
    pure = max(0.0, math.log(share / (1 - share))) if 0 < share < 1 else 0.0
    if not delta or not pure:
        return pure
    lower, upper = 0.0, pure
    while (middle := (lower + upper) / 2) not in (lower, upper):
        refuted = chance_of_guesses(correct, guesses, canaries, middle, delta) <= 1 - confidence
        lower, upper = (middle, upper) if refuted else (lower, middle)
    return lower


def chance_of_guesses(correct: int, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """The largest probability, under (ε, δ)-DP, of at least this number of correct guesses: a p-value.

    With v correct ones out of r guesses about m canaries, and W binomial with r trials and success probability
    e^ε / (e^ε + 1), it is P(W >= v) + 2 m δ max_i P(v > W >= v - i) / i (Steinke, Nasr, Jagielski 2023, Theorem 5.2 and
    Appendix D), no matter what the guesses depend on.
    """
    w = stats.binom(guesses, 1 / (1 + math.exp(-epsilon)))
    below = np.cumsum(w.pmf(np.arange(correct - 1, -1, -1)))  # P(v > W >= v - i) for i = 1, 2, ..., v
    steepest = float((below / np.arange(1, correct + 1)).max(initial=0.0))
    return min(1.0, float(w.sf(correct - 1)) + 2 * canaries * delta * steepest)


def check_confidence(confidence: float) -> None:
    """Raise InputError unless the confidence is between 0 and 1."""
    if not 0 < confidence < 1:
        raise InputError(f"confidence={confidence!r} is not between 0 and 1.", "Use a confidence such as 0.95.")
