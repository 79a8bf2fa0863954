"""The Markov model against brute force: all marginals, and what fitting must achieve."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dipriv._base.arrays import FloatArray
from dipriv.references._learning.junction_tree import Pair
from dipriv.references._learning.max_entropy import Columns, MarkovModel, NoisyTable

TOTAL = 1000.0


def table(columns: Columns, counts: FloatArray, deviation: float = 1.0) -> NoisyTable:
    return NoisyTable(columns, counts, np.full(counts.shape, deviation**2))


def brute_force(model: MarkovModel) -> FloatArray:
    """The joint distribution as one array: the product of all tables."""
    joint = np.ones(model.sizes)
    for columns, logs in model.logs.items():
        shape = [size if column in columns else 1 for column, size in enumerate(model.sizes)]
        joint = joint * np.exp(logs).reshape(shape)
    return np.asarray(joint * (model.total / joint.sum()))


def marginal(joint: FloatArray, columns: Columns) -> FloatArray:
    """With axes in the order of `columns`."""
    there = sorted(columns)
    sums = joint.sum(axis=tuple(axis for axis in range(joint.ndim) if axis not in columns))
    return np.asarray(sums.transpose([there.index(column) for column in columns]))


@st.composite
def models(draw: st.DrawFn) -> MarkovModel:
    """Two to six columns of one to four states, any edges, random tables."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=2, max_size=6))
    pairs = list(combinations(range(len(sizes)), 2))
    edges: list[Pair] = draw(st.lists(st.sampled_from(pairs), unique=True))
    model = MarkovModel(sizes, TOTAL)
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    for columns in [*((column,) for column in range(len(sizes))), *edges]:
        model.add(table(columns, np.ones([sizes[column] for column in columns])))
        model.logs[columns] = rng.normal(scale=2.0, size=model.logs[columns].shape)
    model.fit(0)  # beliefs of these tables
    return model


@settings(max_examples=150)
@given(models())
def test_beliefs_are_the_marginals_of_the_product(model: MarkovModel) -> None:
    joint = brute_force(model)
    for number, clique in enumerate(model.tree.cliques):
        np.testing.assert_allclose(model.beliefs[number], marginal(joint, clique), atol=1e-9 * TOTAL)
        for size in range(1, len(clique) + 1):
            for columns in permutations(clique, size):
                np.testing.assert_allclose(
                    model.marginal_in(number, columns), marginal(joint, columns), atol=1e-9 * TOTAL
                )
    for columns in model.logs:
        np.testing.assert_allclose(model.marginal(columns), marginal(joint, columns), atol=1e-9 * TOTAL)


@settings(max_examples=150)
@given(models())
def test_pairs_are_the_marginals_of_all_pairs_of_columns(model: MarkovModel) -> None:
    joint, found = brute_force(model), model.pairs()
    everything = list(combinations(range(len(model.sizes)), 2))
    assert sorted(found) == everything
    for i, j in everything:
        np.testing.assert_allclose(found[i, j], marginal(joint, (i, j)), atol=1e-9 * TOTAL)


def test_tables_that_contradict_each_other_beyond_the_range_of_doubles_have_a_product() -> None:
    """16 tables make state 0 of a column e^-50 times as likely, 16 others state 1, and one of them e times more."""
    model = MarkovModel([2] * 33, TOTAL)
    for other in range(1, 33):
        model.add(table((0, other), np.ones((2, 2))))
        model.logs[0, other] = -50.0 * np.array([[1, 1], [0, 0]] if other % 2 else [[0, 0], [1, 1]])
    model.logs[0, 1][1] += 1.0
    model.fit(0)
    assert np.exp(-50.0 * 16) == 0.0
    np.testing.assert_allclose(model.marginal((0,)), TOTAL * np.array([1.0, np.e]) / (1.0 + np.e))


def test_the_check_would_find_a_wrong_marginal() -> None:
    """Control: independent columns are not what tables of pairs say."""
    model = MarkovModel([2, 2], TOTAL)
    model.add(table((0, 1), np.ones((2, 2))))
    model.logs[0, 1] = np.array([[1.0, 0.0], [0.0, 1.0]])
    model.fit(0)
    alone = np.outer(model.marginal((0,)), model.marginal((1,))) / TOTAL
    assert not np.allclose(model.pairs()[0, 1], alone, atol=1e-2 * TOTAL)


def a_joint(sizes: list[int], seed: int) -> FloatArray:
    """Counts that leave no pair of columns independent."""
    weights = np.random.default_rng(seed).dirichlet(np.full(int(np.prod(sizes)), 2.0))
    return weights.reshape(sizes) * TOTAL


CHAIN: list[Pair] = [(0, 1), (1, 2), (2, 3)]
CYCLE: list[Pair] = [(0, 1), (1, 2), (2, 3), (0, 3)]


@pytest.mark.parametrize("edges", [CHAIN, CYCLE, [(0, 2)], list(combinations(range(4), 2))], ids=str)
def test_exact_marginals_that_agree_are_recovered(edges: list[Pair]) -> None:
    """The tables' own noise allows each cell a small part of its standard deviation."""
    joint = a_joint([3, 2, 4, 3], 1)
    model = MarkovModel(joint.shape, TOTAL)
    wanted: list[Columns] = [*((column,) for column in range(4)), *edges]
    for columns in wanted:
        model.add(table(columns, marginal(joint, columns)))
    start = max(np.abs(model.marginal(columns) - marginal(joint, columns)).max() for columns in wanted)
    model.fit(400)
    for columns in wanted:
        np.testing.assert_allclose(model.marginal(columns), marginal(joint, columns), atol=0.5)
    assert start > 5.0  # control: the model before fitting


def test_a_chain_is_fitted_to_the_markov_chain() -> None:
    """Maximum entropy: x0 and x2 are independent given x1."""
    joint = a_joint([3, 2, 4], 2)
    model = MarkovModel(joint.shape, TOTAL)
    for columns in ((0,), (1,), (2,), (0, 1), (1, 2)):
        model.add(table(columns, marginal(joint, columns)))
    model.fit(400)
    first, second = marginal(joint, (0, 1)), marginal(joint, (1, 2))
    chain = np.einsum("ij,jk->ik", first, second / second.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(model.pairs()[0, 2], chain, atol=1.0)
    assert np.abs(marginal(joint, (0, 2)) - chain).max() > 5.0  # control: which the joint distribution is not


def test_columns_alone_make_the_independent_model() -> None:
    joint = a_joint([3, 5, 2], 3)
    model = MarkovModel(joint.shape, TOTAL)
    for column in range(3):
        model.add(table((column,), marginal(joint, (column,))))
    model.fit(200)
    for i, j in combinations(range(3), 2):
        alone = np.outer(model.marginal((i,)), model.marginal((j,))) / TOTAL
        np.testing.assert_allclose(model.pairs()[i, j], alone, atol=1e-9 * TOTAL)
        np.testing.assert_allclose(alone.sum(axis=1), marginal(joint, (i,)), atol=0.5)
        assert np.abs(alone - marginal(joint, (i, j))).max() > 5.0  # control


def test_a_column_without_a_table_is_even() -> None:
    model = MarkovModel([4, 3], TOTAL)
    np.testing.assert_allclose(model.marginal((0,)), np.full(4, TOTAL / 4))
    np.testing.assert_allclose(model.pairs()[0, 1], np.full((4, 3), TOTAL / 12))


def noisy_model(seed: int) -> MarkovModel:
    rng = np.random.default_rng(seed)
    joint = a_joint([4, 3, 5, 2], seed)
    model = MarkovModel(joint.shape, TOTAL)
    for columns in ((0,), (1,), (2,), (3,), *CYCLE):
        exact = marginal(joint, columns)
        model.add(table(columns, exact + rng.normal(scale=10.0, size=exact.shape), 10.0))
    return model


def test_fitting_is_deterministic() -> None:
    one, other = noisy_model(1), noisy_model(1)
    for model in (one, other):
        model.fit(25)
        model.fit(100)
    for here, there in zip(one.beliefs, other.beliefs, strict=True):
        assert np.array_equal(here, there)


@pytest.mark.parametrize("seed", range(5))
def test_fitting_never_raises_the_loss(seed: int) -> None:
    model = noisy_model(seed)
    losses = []
    for rounds in (0, *[1] * 29):
        model.fit(rounds)
        losses.append(model.loss)
    assert np.all(np.diff(losses) <= 0)
    assert losses[-1] < 0.5 * losses[0]
    assert all(np.all(belief >= 0) for belief in model.beliefs)
    for belief in model.beliefs:
        assert belief.sum() == pytest.approx(TOTAL)


def test_two_measurements_are_one_by_inverse_variance_weighting() -> None:
    """The mean with the least variance, cell by cell; equal weights are not it."""
    one = NoisyTable((0,), np.array([10.0, 20.0]), np.array([1.0, 4.0]))
    other = NoisyTable((0,), np.array([16.0, 30.0]), np.array([2.0, 4.0]))
    both = one.combined(other)
    np.testing.assert_allclose(both.counts, [12.0, 25.0])
    np.testing.assert_allclose(both.variance, [2 / 3, 2.0])
    np.testing.assert_allclose(other.combined(one).counts, both.counts)
    assert not np.allclose(both.counts, (one.counts + other.counts) / 2)  # control
    model = MarkovModel([2], TOTAL)
    model.add(one)
    model.add(other)
    assert np.array_equal(model.measured[0,].counts, both.counts)
    assert list(model.logs) == [(0,)]


def test_a_precise_table_weighs_more() -> None:
    """Two tables of one column's pairs disagree about it: the one with less noise has its way, nearly."""
    low, high = np.array([[100.0, 100.0], [400.0, 400.0]]), np.array([[400.0, 400.0], [100.0, 100.0]])

    def fitted(one: float, other: float) -> float:
        model = MarkovModel([2, 2, 2], TOTAL)
        model.add(table((0, 1), low, one))
        model.add(table((0, 2), high, other))
        model.fit(300)
        return float(model.marginal((0,))[0])

    assert abs(fitted(1.0, 100.0) - 200.0) < 100.0
    assert abs(fitted(100.0, 1.0) - 800.0) < 100.0
    assert abs(fitted(30.0, 30.0) - 500.0) < 10.0  # control


def test_extreme_measurements_stay_finite() -> None:
    model = MarkovModel([3, 3], TOTAL)
    model.add(table((0,), np.array([-1e9, 2e9, 0.0])))
    model.add(table((0, 1), np.array([[-1e6, 1e6, 0.0]] * 3), 1e-3))
    model.fit(100)
    assert all(np.all(np.isfinite(belief)) for belief in model.beliefs)
    assert model.marginal((0,)).sum() == pytest.approx(TOTAL)
