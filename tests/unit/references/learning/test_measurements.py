"""The doors for private counts: exact prices, never more than the budget, noise of exactly the scale that was paid."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from dipriv._random.discrete_laplace import MAX_SCALE
from dipriv.errors import InputError, InternalError
from dipriv.references._learning.measurements import LATTICE, Accountant, lattice_scale
from tests.support import ALARM, bits, chi_square_tail, dkw, ks
from tests.unit.exact_laplace import DiscreteLaplace

RICH = Fraction(10**9)
fractions = st.fractions(min_value=Fraction(1, 10**9), max_value=Fraction(10**6))


def accountant(budget: Fraction = RICH, seed: int = 1) -> Accountant:
    return Accountant(budget, bits(seed))


def test_a_budget_is_never_exceeded() -> None:
    own = accountant(Fraction(1))
    own.spend(Fraction(1, 3))
    own.spend(Fraction(2, 3))
    with pytest.raises(InternalError, match="exceeds what is left"):
        own.spend(Fraction(1, 10**30))
    assert own.spent == 1
    for call in (
        lambda: accountant(Fraction(1, 2)).noisy_counts(np.zeros(3, dtype=np.int64), Fraction(1)),
        lambda: accountant(Fraction(1, 2)).report_noisy_max(np.zeros(3, dtype=np.int64), 1, Fraction(1)),
    ):
        with pytest.raises(InternalError, match="exceeds what is left"):
            call()


def test_what_is_not_paid_for_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """The price comes first: a purse that refuses has drawn nothing."""
    own = accountant(Fraction(1, 2))
    monkeypatch.setattr(own, "noise", lambda *_: pytest.fail("measured"))
    for call in (
        lambda: own.noisy_counts(np.arange(3), Fraction(1)),
        lambda: own.report_noisy_max(np.arange(3), 1, Fraction(1)),
    ):
        with pytest.raises(InternalError):
            call()
    assert own.spent == 0


@settings(max_examples=100)
@given(fractions)
def test_a_table_costs_what_its_noise_is_worth_and_no_more_than_asked(epsilon: Fraction) -> None:
    own = accountant()
    noisy, scale = own.noisy_counts(np.zeros((2, 3), dtype=np.int64), epsilon)
    assert noisy.shape == (2, 3)
    assert own.spent == 2 / Fraction(scale)  # two counts change by one; the scale is a binary fraction
    assert own.spent <= epsilon
    digits, steps = lattice_scale(2 / epsilon)
    assert own.spent == Fraction(2 << digits, steps)
    assert epsilon - own.spent < epsilon / steps  # rounded up by less than one step
    assert 0 <= digits <= LATTICE
    assert np.array_equal(np.ldexp(noisy, digits) % 1, np.zeros((2, 3)))


@settings(max_examples=100)
@given(fractions, st.integers(1, 1000))
def test_a_choice_costs_no_more_than_asked(epsilon: Fraction, sensitivity: int) -> None:
    own = accountant()
    own.report_noisy_max(np.zeros(3, dtype=np.int64), sensitivity, epsilon)
    scale = 2 * sensitivity / own.spent
    assert scale.denominator == 1
    assert own.spent <= epsilon
    assert scale - 1 < 2 * sensitivity / epsilon


def test_budgets_that_are_too_small_are_refused() -> None:
    own = accountant()
    with pytest.raises(InputError, match="larger than"):
        own.noisy_counts(np.zeros(2, dtype=np.int64), Fraction(1, MAX_SCALE))
    with pytest.raises(InputError, match="larger than"):
        own.report_noisy_max(np.zeros(2, dtype=np.int64), 1, Fraction(1, MAX_SCALE))
    assert own.spent == 0


@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), Fraction(1), Fraction(7, 3), Fraction(50)])
def test_counts_have_noise_of_the_scale_that_was_paid(epsilon: Fraction) -> None:
    n = 200_000
    counts = np.arange(n) % 100
    own = accountant()
    noisy, scale = own.noisy_counts(counts, epsilon)
    digits, steps = lattice_scale(2 / epsilon)
    z = np.ldexp(noisy - counts, digits)
    assert ks(z, DiscreteLaplace(steps)) < dkw(n)
    assert ks(z, DiscreteLaplace(1.1 * steps)) > dkw(n)  # control
    assert scale == math.ldexp(steps, -digits)
    half = counts < 50
    assert ks(z[half], DiscreteLaplace(steps)) < dkw(int(half.sum()))  # whatever the count


def test_no_bit_is_used_twice() -> None:
    own, other = accountant(), accountant()
    parts = np.concatenate([own.noise(7, 1000), own.noise(1, 1000), own.noise(92, 1000)])
    assert np.array_equal(parts, other.noise(100, 1000))
    one, two = own.noise(20_000, 1000), own.noise(20_000, 1000)
    assert abs(stats.pearsonr(one, two).statistic) < 4.9 / np.sqrt(20_000)  # two-sided at 1e-6


def winners(scores: NDArray[np.int64], scale: float) -> NDArray[np.float64]:
    """P(each score wins after one-sided noise, P(z) ~ exp(-z/scale) for z >= 0), the first of equals; enumerated."""
    q = np.exp(-1 / scale)
    tops = np.arange(int(scores.min()), int(scores.max()) + int(60 * scale))
    chances = []
    for i, score in enumerate(scores):
        own = np.where(tops >= score, (1 - q) * q ** (tops - score), 0.0)
        others = [1 - q ** np.maximum(0, tops - other + (j > i)) for j, other in enumerate(scores) if j != i]
        chances.append(float(np.sum(own * np.prod(others, axis=0))))
    return np.array(chances)


def test_the_best_wins_as_often_as_it_should() -> None:
    n, scores = 8000, np.array([0, 3, 3, -2])
    own = accountant()
    counts = np.bincount([own.report_noisy_max(scores, 1, Fraction(1, 2)) for _ in range(n)], minlength=4)
    law = winners(scores, 4.0)
    assert law.sum() == pytest.approx(1, abs=1e-12)
    assert law[1] > law[2]  # the first of equals
    assert chi_square_tail(counts, law) > ALARM
    assert chi_square_tail(counts, winners(scores, 2.0)) < ALARM  # control: half the noise


@pytest.mark.parametrize("sensitivity", [1, 2, 5])
def test_one_row_changes_no_choice_by_more_than_its_price(sensitivity: int) -> None:
    """All scores may move by the sensitivity, in any directions."""
    own = accountant()
    own.report_noisy_max(np.zeros(3, dtype=np.int64), sensitivity, Fraction(1))
    scale = float(2 * sensitivity / own.spent)
    scores = np.array([0, 2, -1])

    def worst(scale: float) -> float:
        moves = np.array(np.meshgrid(*[[-sensitivity, 0, sensitivity]] * 3)).reshape(3, -1).T
        laws = np.array([winners(scores + move, scale) for move in moves])
        return float(np.log(laws / winners(scores, scale)).max())

    assert worst(scale) <= float(own.spent) + 1e-9
    assert worst(scale / 2) > float(own.spent)  # control
