"""Exact confidence intervals: valid for every sample size, without asymptotic approximation."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy import stats

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


def epsilon_of_draws(hits: int, tries: int, other_hits: int, other_tries: int, confidence: float) -> float:
    """A lower confidence limit of ln(P(event) / P'(event)), from draws under two neighbouring datasets.

    It bounds ε from below, since ε-DP means P(event) <= e^ε P'(event). The event must be chosen before these draws.
    """
    half = (1 + confidence) / 2
    likely = at_least(hits, tries, half)
    rare = 1 - at_least(other_tries - other_hits, other_tries, half)
    return max(0.0, math.log(likely / rare)) if likely > 0 else 0.0


def epsilon_of_guesses(correct: int, guesses: int, confidence: float) -> float:
    """A lower bound on ε from one run in which fair coins chose the canary records, from the number of correct guesses.

    Under ε-DP that number is stochastically dominated by a binomial variable with success probability e^ε / (e^ε + 1)
    (Steinke, Nasr, Jagielski 2023, Theorem 5.2 with δ = 0), no matter what the guesses depend on.
    """
    chance = at_least(correct, guesses, confidence)
    return max(0.0, math.log(chance / (1 - chance))) if 0 < chance < 1 else 0.0


def check_confidence(confidence: float) -> None:
    """Raise InputError unless the confidence is between 0 and 1."""
    if not 0 < confidence < 1:
        raise InputError(f"confidence={confidence!r} is not between 0 and 1.", "Use a confidence such as 0.95.")
