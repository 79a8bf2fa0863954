"""Intervals that hold for every sample size: nothing here is an approximation for many draws."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy import stats


@dataclass(frozen=True)
class Rate:
    """Hits among independent tries, with the exact (Clopper-Pearson) interval for their chance."""

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
    """A chance that the true one is not below, with this confidence, whatever it is."""
    return float(stats.beta.ppf(1 - confidence, hits, tries - hits + 1)) if hits else 0.0


def difference(one: Rate, other: Rate) -> Estimate:
    """One rate less the other: each end is safe because both of its rates are, with half of the error each."""
    confidence = min(one.confidence, other.confidence)
    half = (1 + confidence) / 2
    one, other = Rate(one.hits, one.tries, half), Rate(other.hits, other.tries, half)
    return Estimate(one.value - other.value, one.lower - other.upper, one.upper - other.lower, confidence)


def epsilon_of_draws(hits: int, tries: int, other_hits: int, other_tries: int, confidence: float) -> float:
    """A lower bound on ε from one event, drawn in two neighbouring worlds: ln of the ratio of its chances, at least.

    The event must have been chosen before these draws. ε-privacy says P(event) <= e^ε P'(event).
    """
    half = (1 + confidence) / 2
    likely = at_least(hits, tries, half)
    rare = 1 - at_least(other_tries - other_hits, other_tries, half)
    return max(0.0, math.log(likely / rare)) if likely > 0 else 0.0


def epsilon_of_guesses(correct: int, guesses: int, confidence: float) -> float:
    """A lower bound on ε from one run: fair coins chose the canary rows, and so many guesses of them are correct.

    Under ε-privacy the number of correct guesses is at most, in distribution, binomial with chance e^ε / (e^ε + 1)
    (Steinke, Nasr, Jagielski 2023, Theorem 5.2 with δ = 0), whatever the guesses depend on.
    """
    chance = at_least(correct, guesses, confidence)
    return max(0.0, math.log(chance / (1 - chance))) if 0 < chance < 1 else 0.0
