"""Leading columns come first in the chain rule, and the chain rule is that of the same distribution."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dipriv.references._learning.junction_tree import Pair, chain_rule, junction_tree, largest_clique
from dipriv.references._learning.max_entropy import MarkovModel, NoisyTable

SIZES = (3, 2, 4, 2, 3)
TREE: list[Pair] = [(0, 1), (1, 2), (2, 3), (1, 4)]
LOOP: list[Pair] = [(0, 1), (1, 2), (2, 3), (0, 3), (3, 4)]


def fitted(edges: list[Pair], leading: frozenset[int]) -> MarkovModel:
    rng = np.random.default_rng(6)
    model = MarkovModel(SIZES, 1000.0, leading)
    shapes = [(one,) for one in range(len(SIZES))] + edges
    for columns in shapes:
        counts = rng.random([SIZES[column] for column in columns])
        model.add(NoisyTable(columns, 1000 * counts / counts.sum(), np.ones(counts.shape)))
    model.fit(30)
    return model


def of_tables(model: MarkovModel) -> np.ndarray:
    """The joint distribution as the product of all tables, by brute force."""
    letters = "abcde"
    parts = [np.exp(table) for table in model.logs.values()]
    places = ",".join("".join(letters[column] for column in columns) for columns in model.logs)
    joint: np.ndarray = np.einsum(f"{places}->{letters}", *parts)
    return np.asarray(joint / joint.sum())


def of_chain(model: MarkovModel) -> np.ndarray:
    """The joint distribution as the product of conditional ones, in the order of the chain rule."""
    letters, parts, places = "abcde", [], []
    before: set[int] = set()
    for column, number, given in model.chain_rule():
        assert {*given} <= before
        before.add(column)
        joint = model.marginal_in(number, (*given, column))
        parts.append(joint / joint.sum(axis=-1, keepdims=True))
        places.append("".join(letters[one] for one in (*given, column)))
    assert before == {*range(len(SIZES))}
    joint = np.einsum(f"{','.join(places)}->{letters}", *parts)
    return np.asarray(joint)


@pytest.mark.parametrize("leading", [(), (0,), (0, 2), (0, 2, 4), (3, 4), (0, 1, 2, 3, 4)], ids=str)
@pytest.mark.parametrize("edges", [TREE, LOOP], ids=["tree", "loop"])
def test_the_chain_rule_is_that_of_the_distribution(edges: list[Pair], leading: tuple[int, ...]) -> None:
    model = fitted(edges, frozenset(leading))
    order = [column for column, _, _ in model.chain_rule()]
    assert {*order[: len(leading)]} == {*leading}
    np.testing.assert_allclose(of_chain(model), of_tables(model), rtol=1e-8)


def test_leading_columns_are_joined_where_others_connect_them() -> None:
    edges: list[Pair] = [(0, 1), (1, 2)]
    apart = chain_rule((2, 2, 2), edges, frozenset({1}))
    assert dict(apart) == {1: (), 0: (1,), 2: (1,)}
    joined = dict(chain_rule((2, 2, 2), edges, frozenset({0, 2})))
    assert joined[1] == (0, 2)
    assert sorted(len(given) for given in joined.values()) == [0, 1, 2]
    assert largest_clique((2, 2, 2), edges) == 4
    assert largest_clique((2, 2, 2), edges, frozenset({0, 2})) == 8
    assert junction_tree((2, 2, 2), edges, frozenset({0, 2})).cliques == ((0, 1, 2),)


def test_cliques_have_all_that_a_column_depends_on() -> None:
    model = fitted(LOOP, frozenset({1, 3}))
    for column, number, given in model.chain_rule():
        assert {column, *given} <= {*model.tree.cliques[number]}
        assert math.prod(SIZES[one] for one in model.tree.cliques[number]) <= largest_clique(
            SIZES, LOOP, frozenset({1, 3})
        )
