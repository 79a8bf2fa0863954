"""Networks: each column follows its table given its parents, states without mass never come, any input has a place."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dipriv._base.arrays import FloatArray
from dipriv.references._models.network import Groups, Network, Node
from tests.support import ALARM, chi_square_tail, dkw, ks_uniform, uniform_rows

N = 200_000
MASSES = np.array([3.0, 1.0, 0.0, 2.0, 2.0])
GROUPS = np.array([0, 0, 1, 1, 2])
"""States 0 and 1 are a group, 2 (never) and 3, and 4 alone."""


def released(network: Network, seed: int = 1, n: int = N) -> FloatArray:
    return network.from_uniform(uniform_rows(n, len(network.nodes), seed))


def states(v: FloatArray) -> Groups:
    return np.ceil(v).astype(np.int64) - 1


def three_columns() -> tuple[Network, FloatArray, FloatArray, FloatArray]:
    """A root, its child, and a child of both; and the probabilities of groups in each."""
    rng = np.random.default_rng(5)
    root, child, last = rng.random((1, 3)), rng.random((3, 3)), rng.random((9, 3))
    child[1, 0] = 0.0  # given group 1 of the root, group 0 of the child does not come
    nodes = [Node.of(parents, GROUPS, MASSES, table) for parents, table in (((), root), ((0,), child), ((0, 1), last))]
    laws = [table / table.sum(axis=1, keepdims=True) for table in (root, child, last)]
    return Network(tuple(nodes)), laws[0], laws[1], laws[2]


def of_states(groups: FloatArray) -> FloatArray:
    """Probabilities of states from those of groups: inside a group in proportion to the masses."""
    totals = np.bincount(GROUPS, MASSES)
    shares: FloatArray = groups[..., GROUPS] * (MASSES / totals[GROUPS])
    return shares


def test_each_column_follows_its_table_given_its_parents() -> None:
    network, root, child, last = three_columns()
    found = states(released(network))
    first, second = GROUPS[found[:, 0]], GROUPS[found[:, 1]]
    assert chi_square_tail(np.bincount(found[:, 0], minlength=5), of_states(root[0])) > ALARM
    assert chi_square_tail(np.bincount(found[:, 0], minlength=5), of_states(root[0] ** 1.1)) < ALARM  # control
    for a in range(3):
        given_a = np.bincount(found[first == a, 1], minlength=5)
        assert chi_square_tail(given_a, of_states(child[a])) > ALARM
        assert chi_square_tail(given_a, of_states(child[(a + 1) % 3])) < ALARM  # control: the line of another group
        for b in range(3):
            both = np.bincount(found[(first == a) & (second == b), 2], minlength=5)
            if child[a, b] == 0:
                assert both.sum() == 0
                continue
            assert chi_square_tail(both, of_states(last[3 * a + b])) > ALARM
            if a != b and both.sum() > 1000:
                assert chi_square_tail(both, of_states(last[3 * b + a])) < ALARM  # control: parents swapped


def test_the_place_inside_a_state_is_uniform() -> None:
    network, *_ = three_columns()
    v = released(network)
    for column in range(3):
        for state in (0, 1, 3, 4):
            inside = v[states(v)[:, column] == state, column] - state
            assert np.all((inside > 0) & (inside <= 1))
            assert ks_uniform(inside) < dkw(len(inside))
            assert ks_uniform(inside**1.2) > dkw(len(inside))  # control


def test_rows_of_this_law_become_independent_uniforms() -> None:
    """Simulated without the network, from the tables alone."""
    network, root, child, last = three_columns()
    rng = np.random.default_rng(6)

    def draw(laws: FloatArray) -> Groups:
        return np.asarray((rng.random((N, 1)) > np.cumsum(of_states(laws), axis=1)).sum(axis=1))

    first = draw(np.tile(root, (N, 1)))
    second = draw(child[GROUPS[first]])
    third = draw(last[3 * GROUPS[first] + GROUPS[second]])
    v = np.stack([first, second, third], axis=1) + 1.0 - rng.random((N, 3))
    u = network.to_uniform(v)
    assert all(ks_uniform(u[:, column]) < dkw(N) for column in range(3))
    limit = 4.9 / np.sqrt(N)  # of a correlation of independent columns, two-sided at 1e-6
    assert np.all(np.abs(np.corrcoef(u, rowvar=False) - np.eye(3)) < limit)
    swapped = network.to_uniform(v[:, [1, 0, 2]])
    assert ks_uniform(swapped[:, 2]) > dkw(N)  # control: another column's law


@settings(max_examples=150)
@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 0.0, 1.0, 0.1, 7.0, 1e-9]), st.booleans()), min_size=1, max_size=12
    ).filter(lambda found: any(mass > 0 for mass, _ in found))
)
@example([(0.1, False), (0.0, False), (1.0, False)])
@example([(1.0, False), (1e-9, False), (0.0, False)])
def test_states_without_mass_are_never_released(found: list[tuple[float, bool]]) -> None:
    """At the ends of the unit interval, too, and wherever the empty states are in their group."""
    masses = np.array([mass for mass, _ in found])
    group_of = np.cumsum([False, *(starts for _, starts in found[1:])])
    totals = np.bincount(group_of, masses).astype(np.float64)
    node = Node.of((), group_of, masses, totals[np.newaxis])
    ends = np.cumsum(masses) / masses.sum()
    near = np.concatenate([ends, np.nextafter(ends, 0), np.nextafter(ends, 1), [2.0**-53, 0.5, 1 - 2.0**-53, 1.0]])
    v = Network((node,)).from_uniform(np.clip(near, 2.0**-53, 1.0)[:, np.newaxis])
    assert np.all(masses[states(v)[:, 0]] > 0)


def test_a_group_without_mass_of_its_own_is_shared_evenly() -> None:
    node = Node.of((), np.array([0, 0, 1]), np.array([0.0, 0.0, 1.0]), np.array([[1.0, 1.0]]))
    found = states(released(Network((node,)), n=20_000))[:, 0]
    assert chi_square_tail(np.bincount(found, minlength=3), np.array([1.0, 1.0, 2.0])) > ALARM
    assert chi_square_tail(np.bincount(found, minlength=3), np.array([1.0, 1.2, 2.0])) < ALARM  # control


def test_any_input_has_a_place() -> None:
    network, *_ = three_columns()
    wild = np.array([np.nan, -np.inf, -1e308, -0.0, 0.0, 5e-324, 2.5, 5.0, 6.0, 1e308, np.inf])
    v = np.array(np.meshgrid(wild, wild, wild)).reshape(3, -1).T
    u = network.to_uniform(v)
    assert np.all((u >= 0) & (u <= 1))
    assert np.array_equal(u[np.isnan(v[:, 0])][:, 0], np.zeros(len(wild) ** 2))
    back = network.from_uniform(np.where(v > 0, v, 0.0))
    assert np.all((back > 0) & (back <= 5))
    held = network.from_uniform(np.array([[-3.0] * 3, [0.0] * 3, [7.0] * 3, [1.0] * 3, [np.inf] * 3]))
    assert np.array_equal(held[0], held[1])
    assert np.array_equal(held[2], held[3])
    assert np.array_equal(held[4], held[3])


@pytest.mark.parametrize("size", [1, 2, 10_000])
def test_long_columns_keep_their_law(size: int) -> None:
    masses = np.random.default_rng(7).exponential(size=size)
    node = Node.of((), np.zeros(size, dtype=np.int64), masses, np.ones((1, 1)))
    v = released(Network((node,)))[:, 0]
    cdf = np.interp(v, np.arange(size + 1), np.concatenate([[0.0], np.cumsum(masses) / masses.sum()]))
    assert ks_uniform(cdf) < dkw(N)
    assert ks_uniform(cdf**1.1) > dkw(N)  # control
