"""Measurements of private counts: exact costs, never above the budget, and exactly the noise that was paid for."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from dipriv._random.bits import Draws
from dipriv._random.discrete_laplace import MAX_SCALE
from dipriv.errors import InputError, InternalError
from dipriv.references._learning import measurements
from dipriv.references._learning.measurements import LATTICE, Accountant, NoiseKind, Spread, pure_for, root_below
from dipriv.references._learning.zcdp import delta_of, gaussian_threshold, laplace_threshold
from tests.support import ALARM, bits, chi_square_tail, dkw, ks
from tests.unit.exact_laplace import DiscreteLaplace, at_least

RICH = Fraction(10**9)
KINDS: tuple[NoiseKind, ...] = ("laplace", "gaussian")
both_kinds = pytest.mark.parametrize("kind", KINDS)
costs = st.fractions(min_value=Fraction(1, 10**9), max_value=Fraction(1000), max_denominator=10**9)
chances_of_a_single_row = st.integers(2, 40).map(lambda power: Fraction(1, 10**power))
ZEROS: NDArray[np.int64] = np.zeros(3, dtype=np.int64)
NONE: NDArray[np.int64] = np.zeros(0, dtype=np.int64)


def accountant(kind: NoiseKind = "laplace", budget: Fraction = RICH, seed: int = 1) -> Accountant:
    return Accountant(kind, budget, bits(seed))


def of_table(digits: int, steps: int, kind: NoiseKind) -> Fraction:
    """The cost of noise of this scale, or of this variance, in steps of 2^-digits: Δ₁/t with Δ₁ = 2, and Δ₂²/(2σ²)
    with Δ₂² = 2.
    """
    return Fraction(2 << digits, steps) if kind == "laplace" else Fraction(2 << 2 * digits, 2 * steps)


# ---- what is spent ----


@both_kinds
def test_a_budget_is_never_exceeded(kind: NoiseKind) -> None:
    own = accountant(kind, Fraction(1))
    own.spend(Fraction(1, 3))
    own.spend(Fraction(2, 3))
    with pytest.raises(InternalError, match="exceeds what is left"):
        own.spend(Fraction(1, 10**30))
    assert own.spent == 1
    assert own.left == 0


@both_kinds
def test_what_is_not_paid_for_is_not_measured(kind: NoiseKind, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cost comes first: a measurement that is refused has drawn nothing."""
    own = accountant(kind, Fraction(1, 2))
    monkeypatch.setattr(own, "_draws", lambda *_: pytest.fail("measured"))
    calls: tuple[Callable[[], object], ...] = (
        lambda: own.noisy_counts(ZEROS, Fraction(1)),
        lambda: own.frequent(ZEROS, ZEROS, Fraction(1), Fraction(1, 100)),
        lambda: own.choose(ZEROS, 1, Fraction(1)),
    )
    for call in calls:
        with pytest.raises(InternalError, match="exceeds what is left"):
            call()
    assert own.spent == 0


@settings(max_examples=60)
@given(st.sampled_from(KINDS), costs)
def test_a_table_costs_what_its_noise_is_worth_and_no_more_than_requested(kind: NoiseKind, cost: Fraction) -> None:
    own = accountant(kind)
    noisy, spread = own.noisy_counts(np.zeros((2, 3), dtype=np.int64), cost)
    digits, steps = own._laplace_steps(cost) if kind == "laplace" else own._gaussian_steps(cost)
    assert noisy.shape == (2, 3)
    assert own.spent == of_table(digits, steps, kind)
    assert cost - cost**2 / (2 << LATTICE) <= own.spent <= cost  # a scale of 2/ε is rounded up by less than a step
    assert own.spent >= cost * Fraction(99, 100) or cost > 20
    assert spread.kind == kind
    scale = Fraction(steps, 1 << digits) if kind == "laplace" else math.sqrt(Fraction(steps, 1 << 2 * digits))
    assert spread.scale == pytest.approx(float(scale), rel=1e-12)
    assert spread.scale >= Spread.of(kind, float(cost)).scale * (1 - 1e-12)
    assert 0 <= digits <= LATTICE
    assert np.array_equal(np.ldexp(noisy, digits) % 1, np.zeros((2, 3)))


@settings(max_examples=60)
@given(st.sampled_from(KINDS), costs, chances_of_a_single_row)
def test_a_histogram_with_a_threshold_costs_the_same(kind: NoiseKind, cost: Fraction, chance: Fraction) -> None:
    one, other = accountant(kind), accountant(kind)
    found = one.frequent(ZEROS + 5, ZEROS + 7, cost, chance)
    noisy, spread = other.noisy_counts(np.array([5, 5, 5, 7, 7, 7]), cost)
    assert one.spent == other.spent
    assert found.spread == spread
    assert np.array_equal(found.fixed, noisy[3:])
    assert np.array_equal(found.counts, noisy[:3][found.kept])


@settings(max_examples=60)
@given(st.sampled_from(KINDS), costs, st.integers(1, 1000))
def test_a_choice_costs_no_more_than_requested(kind: NoiseKind, cost: Fraction, sensitivity: int) -> None:
    own = accountant(kind)
    own.choose(ZEROS, sensitivity, cost)
    assert 0 < own.spent <= cost
    assert own.spent >= cost * Fraction(99, 100)


@settings(max_examples=60)
@given(costs)
def test_pure_measurements_and_their_costs_are_inverse(cost: Fraction) -> None:
    for kind in KINDS:
        own = accountant(kind)
        assert cost * (1 - Fraction(1, 1 << 39)) <= own.cost_of_pure(pure_for(own.kind, cost)) <= cost


@given(st.fractions(min_value=Fraction(1, 10**30), max_value=Fraction(10**30)))
def test_a_root_is_rounded_down_by_little(square: Fraction) -> None:
    root = root_below(square)
    assert square * (1 - Fraction(1, 1 << 40)) <= root**2 <= square


@both_kinds
def test_budgets_that_are_too_small_are_refused(kind: NoiseKind) -> None:
    own = accountant(kind)
    tiny = Fraction(1, MAX_SCALE) if kind == "laplace" else Fraction(1, measurements.MAX_STEPS**2 + 1)
    with pytest.raises(InputError, match="larger than"):
        own.noisy_counts(ZEROS, tiny)
    assert own.spent == 0


# ---- the noise ----


@pytest.mark.parametrize("cost", [Fraction(1, 1000), Fraction(1), Fraction(50)], ids=str)
@both_kinds
def test_counts_have_the_noise_that_was_paid_for(kind: NoiseKind, cost: Fraction) -> None:
    n = 100_000
    counts = np.arange(n) % 100
    noisy, spread = accountant(kind).noisy_counts(counts, cost)
    z = noisy - counts

    def law(scale: float) -> object:
        """Of multiples of 2^-10, at their centres."""
        steps = math.ldexp(scale, LATTICE)
        return DiscreteLaplace(steps) if kind == "laplace" else stats.norm(scale=steps)

    step = 0.4 * 2.0**-LATTICE / spread.scale if kind == "gaussian" else 0.0  # the normal distribution has no steps
    slack = dkw(n) + step
    assert ks(np.ldexp(z, LATTICE), law(spread.scale)) < slack
    assert ks(np.ldexp(z, LATTICE), law(1.1 * spread.scale)) > slack  # control
    half = counts < 50
    assert ks(np.ldexp(z[half], LATTICE), law(spread.scale)) < slack + dkw(int(half.sum()))


@pytest.mark.parametrize("spread", [Spread.of("laplace", 0.5), Spread.of("gaussian", 0.5)], ids=str)
def test_a_spread_says_how_large_its_noise_is(spread: Spread) -> None:
    law = stats.laplace(scale=spread.scale) if spread.kind == "laplace" else stats.norm(scale=spread.scale)
    assert spread.deviation == pytest.approx(law.std())
    assert spread.mean_size == pytest.approx(law.expect(abs, lb=-100, ub=100), rel=1e-6)


@both_kinds
def test_no_two_measurements_share_random_bits(kind: NoiseKind, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of the stream are numbered, and each number is used once, whatever is measured."""
    used: list[tuple[int, int]] = []

    def recorded(own: object, first: int, count: int) -> Draws:
        used.append((first, count))
        return Draws(bits(1), first, count)

    monkeypatch.setattr(measurements, "Draws", recorded)
    own = accountant(kind)
    for size in (7, 1, 92):
        own.noisy_counts(np.zeros(size, dtype=np.int64), Fraction(1))
        own.frequent(np.zeros(size, dtype=np.int64), ZEROS, Fraction(1), Fraction(1, 10))
        own.choose(np.zeros(size, dtype=np.int64), 1, Fraction(1))
        own.laplace(size, 1000)
    places = [place for first, count in used for place in range(first, first + count)]
    assert len(places) == len(set(places))
    assert len(used) >= 12


@both_kinds
def test_noise_of_two_measurements_is_independent(kind: NoiseKind) -> None:
    own, n = accountant(kind), 20_000
    one, two = (own.noisy_counts(np.zeros(n, dtype=np.int64), Fraction(1))[0] for _ in range(2))
    bound = stats.norm.isf(ALARM / 2) / np.sqrt(n)
    assert abs(stats.pearsonr(one, two).statistic) < bound
    assert abs(stats.pearsonr(one, own.noisy_counts((100 * one).astype(np.int64), Fraction(1))[0]).statistic) > bound


# ---- exact privacy of small cases ----


def gaussian_masses(variance: int, most: int) -> dict[int, Decimal]:
    """P(z), exactly enough, of the discrete Gaussian."""
    with localcontext(prec=40):
        weights = {z: (Decimal(-z * z) / (2 * variance)).exp() for z in range(-most, most + 1)}
        total = sum(weights.values())
        return {z: weight / total for z, weight in weights.items()}


def excess(masses: dict[int, Decimal], one: tuple[int, ...], other: tuple[int, ...], epsilon: float) -> float:
    """Σ max(0, P(output | one) - e^ε P(output | other)): the least δ, over all outputs of two noisy counts."""
    with localcontext(prec=40):
        factor, total = Decimal(epsilon).exp(), Decimal(0)
        zero = Decimal(0)
        for first, second in product(masses, repeat=2):
            here = masses[first] * masses[second]
            there = masses.get(first + one[0] - other[0], zero) * masses.get(second + one[1] - other[1], zero)
            total += max(zero, here - factor * there)
        return float(total)


@pytest.mark.parametrize("rho", [Fraction(1, 20), Fraction(1, 4)], ids=str)
@pytest.mark.parametrize("epsilon", [0.25, 1.0, 2.0])
def test_noisy_counts_of_neighbours_satisfy_epsilon_and_delta(
    rho: Fraction, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that moves from one cell to another, enumerated on the lattice of whole counts."""
    monkeypatch.setattr(measurements, "LATTICE", 0)
    own = accountant("gaussian")
    digits, variance = own._gaussian_steps(rho)
    own.noisy_counts(ZEROS, rho)
    assert digits == 0
    masses = gaussian_masses(variance, 12 * math.isqrt(variance) + 12)
    beyond = 1e-15  # what lies further out than the enumeration
    delta = float(delta_of(own.spent, Fraction(epsilon)))
    for other in ((3, 4), (5, 4), (4, 3), (3, 5), (5, 3)):
        assert excess(masses, (4, 4), other, epsilon) <= delta + beyond
    thin = gaussian_masses(max(1, variance // 4), 12 * math.isqrt(variance) + 12)
    assert excess(thin, (4, 4), (3, 5), epsilon) > delta  # control: half the noise


@settings(max_examples=40)
@given(st.fractions(min_value=Fraction(1, 100), max_value=Fraction(10)), chances_of_a_single_row)
def test_a_label_of_one_row_passes_the_threshold_with_its_chance_at_most(cost: Fraction, chance: Fraction) -> None:
    """Laplace noise: P(1 + Z >= threshold), exactly, of the label that appears or vanishes; a step lower is too low."""
    own = accountant("laplace")
    scale = own._laplace_steps(cost)[1]
    reach = laplace_threshold(scale, chance)
    published = at_least(reach, scale)
    assert Fraction(published) <= chance
    if reach > 1:
        assert Fraction(at_least(reach - 1, scale)) > chance  # control: one step lower


@pytest.mark.parametrize("chance", [Fraction(1, 10**3), Fraction(1, 10**9)], ids=str)
@pytest.mark.parametrize("variance", [1, 30, 1000])
def test_the_same_under_gaussian_noise(variance: int, chance: Fraction) -> None:
    """The threshold is from an upper bound, so up to three steps lower may still be right; four are not."""
    masses = gaussian_masses(variance, 12 * math.isqrt(variance) + 20)
    reach = gaussian_threshold(Fraction(variance), chance)
    published = sum(mass for z, mass in masses.items() if z >= reach)
    assert Fraction(published) <= chance
    lower = sum(mass for z, mass in masses.items() if z >= reach - 4)
    assert Fraction(lower) > chance  # control


@both_kinds
def test_cells_are_published_from_the_threshold_on(kind: NoiseKind, monkeypatch: pytest.MonkeyPatch) -> None:
    """A count of one is published from the very step on that the exact chance allows."""
    cost, chance = Fraction(1, 2), Fraction(1, 10**6)
    own = accountant(kind)
    if kind == "laplace":
        digits, steps = own._laplace_steps(cost)
        reach = laplace_threshold(steps, chance)
    else:
        digits, steps = own._gaussian_steps(cost)
        reach = gaussian_threshold(Fraction(steps), chance)
    spread = Spread.of(kind, float(cost))
    noise = np.array([reach, reach - 1, 2 * reach, -reach, 0])
    monkeypatch.setattr(Accountant, "_lattice_noise", lambda *_: (noise, digits, spread))
    found = own.frequent(np.ones(3, dtype=np.int64), np.ones(2, dtype=np.int64), cost, chance)
    assert found.kept.tolist() == [0, 2]
    np.testing.assert_allclose(found.counts, 1 + np.ldexp(noise[[0, 2]].astype(float), -digits))
    np.testing.assert_allclose(found.fixed, 1 + np.ldexp(noise[3:].astype(float), -digits))


@both_kinds
@pytest.mark.parametrize("at_least", [1, 10])
def test_a_count_that_is_just_looked_at_is_published_by_chance_alone(kind: NoiseKind, at_least: int) -> None:
    """Values of ten rows, if those of nine are not looked at: the threshold is ten rows and the reach of the noise."""
    cost, chance, tries = Fraction(1), Fraction(1, 100), 40_000
    counts, nothing = np.full(tries, at_least, dtype=np.int64), np.empty(0, dtype=np.int64)
    allowed = tries * float(chance) + math.sqrt(3 * tries * float(chance) * math.log(1 / ALARM))  # Chernoff
    found = accountant(kind, Fraction(1)).frequent(counts, nothing, cost, chance, at_least)
    assert len(found.kept) <= allowed
    if at_least > 1:
        control = accountant(kind, Fraction(1)).frequent(counts, nothing, cost, chance, at_least - 4)
        assert len(control.kept) > allowed  # control: a threshold four rows too low


def neighbours_excess(published: float, epsilon: float, gone: float) -> float:
    """The least δ for two tables of which one has a label of a single row where the other has another one.

    All other cells are equal, so three events tell them apart: a is published, b is, neither is.
    """
    one = {"a": published, "b": 0.0, "neither": 1 - published}
    other = {"a": 0.0, "b": gone, "neither": 1 - gone}
    return sum(max(0.0, one[event] - math.exp(epsilon) * other[event]) for event in one)


@both_kinds
def test_labels_that_appear_and_vanish_cost_no_more_delta_than_their_chance(kind: NoiseKind) -> None:
    """One row's label a becomes b, and nobody else has either: exact chances of all that is seen."""
    cost, chance = Fraction(1, 2), Fraction(1, 10**4)
    scale, variance = accountant(kind)._laplace_steps(cost)[1], 40
    masses = gaussian_masses(variance, 200)

    def tail(k: int) -> float:
        if kind == "laplace":
            return float(at_least(k, scale))
        return float(sum(mass for z, mass in masses.items() if z >= k))

    thresholds = laplace_threshold(scale, chance), gaussian_threshold(Fraction(variance), chance)
    reach = thresholds[KINDS.index(kind)]
    own = tail(reach)
    assert neighbours_excess(own, 0.0, own) <= float(chance)
    # a count of two that becomes one, beside a label that appears: the noise costs half of what it may
    half = float(cost) / 2
    assert -math.log1p(-own) <= half
    low = tail(max(1, reach - 4)) if kind == "gaussian" else tail(reach - 1)
    assert neighbours_excess(low, 0.0, low) > float(chance)  # control


@both_kinds
def test_nothing_is_published_of_no_cells(kind: NoiseKind) -> None:
    found = accountant(kind).frequent(NONE, NONE, Fraction(1), Fraction(1, 10))
    assert len(found.kept) == len(found.counts) == len(found.fixed) == 0


# ---- choices ----


def softmax(scores: NDArray[np.int64], scale: float) -> NDArray[np.float64]:
    weights = np.exp((scores - scores.max()) / scale)
    return np.asarray(weights / weights.sum())


@both_kinds
def test_the_best_wins_as_often_as_it_should(kind: NoiseKind) -> None:
    n, scores = 6000, np.array([0, 3, 3, -2])
    own = accountant(kind)
    counts = np.bincount([own.choose(scores, 1, Fraction(1, 8)) for _ in range(n)], minlength=4)
    scale = 16.0 if kind == "laplace" else 2.0
    assert chi_square_tail(counts, softmax(scores, scale)) > ALARM
    assert chi_square_tail(counts, softmax(scores, scale / 2)) < ALARM  # control: half the noise


@pytest.mark.parametrize("sensitivity", [1, 2, 5])
def test_one_row_changes_no_choice_by_more_than_its_cost(sensitivity: int) -> None:
    """All scores may move by the sensitivity, in any directions."""
    own = accountant()
    own.choose(ZEROS, sensitivity, Fraction(1))
    scale = float(2 * sensitivity / own.spent)
    scores = np.array([0, 2, -1])
    moves = np.array(np.meshgrid(*[[-sensitivity, 0, sensitivity]] * 3)).reshape(3, -1).T

    def worst(scale: float) -> float:
        chances = np.array([softmax(scores + move, scale) for move in moves])
        return float(np.log(chances / softmax(scores, scale)).max())

    assert worst(scale) <= float(own.spent) + 1e-9
    assert worst(scale / 2) > float(own.spent)  # control


@pytest.mark.parametrize("sensitivity", [1, 5])
def test_one_row_changes_no_exponential_choice_by_more_than_its_cost(sensitivity: int) -> None:
    """Rényi divergences of all orders are at most α ρ; by the exact probabilities of all choices."""
    own = accountant("gaussian")
    own.choose(ZEROS, sensitivity, Fraction(1, 2))
    scale = sensitivity / math.sqrt(2 * own.spent)
    scores = np.array([0, 2, -1])
    moves = np.array(np.meshgrid(*[[-sensitivity, 0, sensitivity]] * 3)).reshape(3, -1).T

    def worst(scale: float) -> float:
        usual = softmax(scores, scale)
        return max(
            float(np.log((softmax(scores + move, scale) ** a * usual ** (1 - a)).sum()) / (a - 1) / a)
            for move in moves
            for a in (1.001, 1.5, 2.0, 5.0, 50.0)
        )

    assert worst(scale) <= float(own.spent) + 1e-9
    assert worst(scale / 2) > float(own.spent)  # control
