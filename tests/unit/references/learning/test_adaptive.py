"""Which pairs are measured: never above the budget, the worst fitted first, scores of the sensitivity that is paid."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dipriv._base.arrays import Counts
from dipriv.references._learning import adaptive
from dipriv.references._learning.adaptive import MAX_CLIQUE, SENSITIVITY, RoundCost, _score, measure_pairs
from dipriv.references._learning.junction_tree import Pair, largest_clique
from dipriv.references._learning.max_entropy import MarkovModel, NoisyTable
from dipriv.references._learning.measurements import Accountant, NoiseKind
from tests.support import bits

KINDS: tuple[NoiseKind, ...] = ("laplace", "gaussian")
both_kinds = pytest.mark.parametrize("kind", KINDS)
States = NDArray[np.int64]


def joint_counts(states: States, sizes: list[int]) -> dict[Pair, Counts]:
    """Of all pairs of columns of a table of states, one row a line."""
    found = {}
    for i, j in combinations(range(len(sizes)), 2):
        flat = np.bincount(states[:, i] * sizes[j] + states[:, j], minlength=sizes[i] * sizes[j])
        found[i, j] = flat.reshape(sizes[i], sizes[j]).astype(np.int64)
    return found


def of_columns(states: States, sizes: list[int]) -> MarkovModel:
    """Fitted to exact counts of the columns alone."""
    model = MarkovModel(sizes, float(len(states)))
    for column, size in enumerate(sizes):
        counts = np.bincount(states[:, column], minlength=size).astype(np.float64)
        model.add(NoisyTable((column,), counts, np.ones(size)))
    model.fit(60)
    return model


def chain(columns: int, rows: int = 5000, kept: float = 0.8, seed: int = 1) -> tuple[States, list[int]]:
    """Each column is the one before, but for some rows."""
    rng = np.random.default_rng(seed)
    found = [rng.integers(0, 4, rows)]
    for _ in range(columns - 1):
        found.append(np.where(rng.random(rows) < kept, found[-1], rng.integers(0, 4, rows)))
    return np.stack(found, axis=1), [4] * columns


def run(
    states: States,
    sizes: list[int],
    cost: RoundCost,
    budget: Fraction,
    kind: NoiseKind = "laplace",
    first: tuple[Pair, ...] = (),
    seed: int = 1,
) -> tuple[list[Pair], MarkovModel, Accountant]:
    accountant = Accountant(kind, budget, bits(seed))
    model = of_columns(states, sizes)
    return measure_pairs(model, joint_counts(states, sizes), cost, accountant, first), model, accountant


# ---- the budget ----


@settings(max_examples=20)
@given(
    st.sampled_from(KINDS),
    st.integers(2, 5),
    st.fractions(Fraction(1, 1000), Fraction(5), max_denominator=10**6),
    st.fractions(Fraction(1, 1000), Fraction(5), max_denominator=10**6),
    st.integers(1, 12),
)
def test_no_more_than_the_budget_is_spent(
    kind: NoiseKind, columns: int, choice: Fraction, table: Fraction, rounds: int
) -> None:
    states, sizes = chain(columns, 300)
    cost = RoundCost(choice, table)
    measured, model, accountant = run(states, sizes, cost, cost.total * rounds, kind)
    assert accountant.spent <= accountant.budget
    assert accountant.left < cost.total  # and the rest is too little for a round
    assert 1 <= len(measured) <= 2 * rounds
    assert set(measured) == {columns for columns in model.measured if len(columns) == 2}


@both_kinds
def test_the_last_round_takes_the_rest(kind: NoiseKind) -> None:
    states, sizes = chain(4)
    cost = RoundCost(Fraction(1, 10), Fraction(9, 10))
    for budget in (Fraction(3), Fraction(17, 5), Fraction(39, 10)):
        accountant = run(states, sizes, cost, budget, kind)[2]
        assert Fraction(99, 100) * budget <= accountant.spent <= budget


@both_kinds
def test_a_budget_of_less_than_half_a_round_measures_nothing(kind: NoiseKind) -> None:
    states, sizes = chain(3)
    measured, _, accountant = run(states, sizes, RoundCost(Fraction(1), Fraction(9)), Fraction(4), kind)
    assert measured == []
    assert accountant.spent == 0


# ---- which pairs ----


@both_kinds
@pytest.mark.parametrize("seed", range(3))
def test_with_little_noise_the_strongest_pair_comes_first(kind: NoiseKind, seed: int) -> None:
    """Noise of choices is far below the differences of scores, which are hundreds of rows."""
    rng = np.random.default_rng(seed)
    states = rng.integers(0, 4, (5000, 5))
    states[:, 3] = np.where(rng.random(5000) < 0.9, states[:, 1], states[:, 3])
    states[:, 4] = np.where(rng.random(5000) < 0.5, states[:, 0], states[:, 4])
    cost = RoundCost(Fraction(1000), Fraction(1000))
    measured = run(states, [4] * 5, cost, cost.total * 2, kind, seed=seed)[0]
    assert measured[:2] == [(1, 3), (0, 4)]
    poor = RoundCost(Fraction(1, 10**6), Fraction(1))
    anything = {run(states, [4] * 5, poor, poor.total, "laplace", seed=other)[0][0] for other in range(12)}
    assert anything != {(1, 3)}  # control: choices that cost nearly nothing find nothing


def test_a_chain_is_found_and_what_it_explains_is_not_measured_again() -> None:
    states, sizes = chain(5)
    cost = RoundCost(Fraction(100), Fraction(100))
    measured, model, _ = run(states, sizes, cost, cost.total * 4)
    assert sorted(measured) == [(0, 1), (1, 2), (2, 3), (3, 4)]
    expected = joint_counts(states, sizes)[0, 2]
    assert np.abs(model.pairs()[0, 2] - expected).sum() < 0.1 * len(states)


@both_kinds
def test_pairs_that_are_asked_for_are_measured_first_and_are_not_chosen(kind: NoiseKind) -> None:
    states, sizes = chain(5)
    first: tuple[Pair, ...] = ((0, 4), (1, 3), (0, 2))
    cost = RoundCost(Fraction(1, 10), Fraction(1))
    measured, _, accountant = run(states, sizes, cost, cost.total * 6, kind, first)
    assert measured[:3] == list(first)
    assert len(measured) > 3
    without = run(states, sizes, cost, cost.total * 6, kind)[0]
    assert without[:3] != list(first)  # control
    assert accountant.spent <= accountant.budget


@both_kinds
@pytest.mark.parametrize("columns", [2, 3, 4])
def test_all_pairs_are_measured_where_choices_cost_nothing(kind: NoiseKind, columns: int) -> None:
    states, sizes = chain(columns, 20_000)
    pairs = list(combinations(range(columns), 2))
    cost = RoundCost(Fraction(0), Fraction(1))
    measured, _, accountant = run(states, sizes, cost, cost.total * len(pairs), kind)
    assert measured == pairs
    assert accountant.spent <= accountant.budget
    again = run(states, sizes, cost, cost.total * len(pairs), kind, first=(pairs[-1],))[0]
    assert again == [pairs[-1], *pairs[:-1]]


@both_kinds
def test_all_pairs_are_measured_even_if_they_are_noise(kind: NoiseKind) -> None:
    """Independent columns: each table moves the model by less than its noise."""
    states = np.random.default_rng(2).integers(0, 4, (300, 4))
    pairs = list(combinations(range(4), 2))
    cost = RoundCost(Fraction(0), Fraction(1, 100))
    measured = run(states, [4] * 4, cost, cost.total * len(pairs), kind)[0]
    assert measured == pairs


# ---- cliques ----


@both_kinds
def test_no_clique_becomes_too_large(kind: NoiseKind, monkeypatch: pytest.MonkeyPatch) -> None:
    states, sizes = chain(7, 2000, kept=0.6)
    cost = RoundCost(Fraction(50), Fraction(50))
    monkeypatch.setattr(adaptive, "MAX_CLIQUE", 64)
    measured, model, accountant = run(states, sizes, cost, cost.total * 25, kind)
    assert largest_clique(sizes, model.edges) <= 64
    assert accountant.spent <= accountant.budget
    assert measured
    monkeypatch.setattr(adaptive, "MAX_CLIQUE", MAX_CLIQUE)
    wide = run(states, sizes, cost, cost.total * 25, kind)[1]
    assert largest_clique(sizes, wide.edges) > 64  # control


@both_kinds
@pytest.mark.parametrize("choice", [Fraction(0), Fraction(1, 10)], ids=str)
def test_where_no_pair_fits_nothing_is_measured(
    kind: NoiseKind, choice: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop ends; choices may have been paid for, tables have not."""
    monkeypatch.setattr(adaptive, "MAX_CLIQUE", 15)
    states, sizes = chain(3, 500)
    cost = RoundCost(choice, Fraction(1))
    measured, model, accountant = run(states, sizes, cost, cost.total * 10, kind, first=((0, 2),))
    assert measured == []
    assert model.edges == []
    assert accountant.spent <= choice * 3 * 10


# ---- the sensitivity of scores ----


def most_moved(sizes: list[int], rows: int, seed: int, tries: int) -> int:
    """The most by which any score changes where one row is replaced, of random tables and models."""
    rng = np.random.default_rng(seed)
    worst = 0
    for _ in range(tries):
        states = np.stack([rng.integers(0, size, rows) for size in sizes], axis=1)
        other = states.copy()
        other[rng.integers(rows)] = [rng.integers(0, size) for size in sizes]
        here, there = joint_counts(states, sizes), joint_counts(other, sizes)
        for pair in here:
            expected = rng.exponential(rows / here[pair].size, here[pair].shape)
            noise = float(rng.exponential(5.0))
            worst = max(worst, abs(_score(here[pair], expected, noise) - _score(there[pair], expected, noise)))
    return worst


@pytest.mark.parametrize("sizes", [[2, 2], [2, 3, 5], [4, 4, 4, 1]], ids=str)
@pytest.mark.parametrize("rows", [1, 10, 200])
def test_one_row_changes_no_score_by_more_than_is_paid_for(sizes: list[int], rows: int) -> None:
    worst = most_moved(sizes, rows, 3, 300)
    assert worst <= SENSITIVITY
    assert worst > SENSITIVITY // 2 or rows == 1  # control: half of it would be too little


def test_the_bound_is_reached() -> None:
    """A row moves between two cells, one of which the model has too many in and the other too few."""
    here, there = np.array([[3, 0], [0, 0]]), np.array([[2, 0], [0, 1]])
    expected = np.array([[2.0, 0.0], [0.0, 1.0]])
    assert _score(here, expected, 0.0) - _score(there, expected, 0.0) == SENSITIVITY


def test_choices_are_paid_for_at_that_sensitivity(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    real = Accountant.choose

    def choose(own: Accountant, scores: NDArray[np.int64], sensitivity: int, cost: Fraction) -> int:
        seen.append(sensitivity)
        return real(own, scores, sensitivity, cost)

    monkeypatch.setattr(Accountant, "choose", choose)
    states, sizes = chain(4, 300)
    cost = RoundCost(Fraction(1), Fraction(1))
    run(states, sizes, cost, cost.total * 3)
    assert seen
    assert set(seen) == {SENSITIVITY}
