"""Which columns depend on which: prices add up, planted trees are found, tables lose noise and keep their margins."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from dipriv.references._learning.dependence import MAX_GROUPS, coarsened, groups_for
from dipriv.references._learning.two_way import denoised, max_entropy_table, rake
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray
from dipriv._tables import frames as tables
from dipriv.mechanism import encode
from dipriv.references._learning import learn as learning
from dipriv.references._learning.domain import domain_of
from dipriv.references._learning.learn import CHOICES, LearnedNetwork, learn
from dipriv.references._learning.measurements import Accountant
from dipriv.references._models.network import Network
from dipriv.release.labels import TableValues, read_labels
from dipriv.sources.protocol import CountedTables
from tests.support import bits, dkw, draws, ks_uniform

N = 20_000


def learned(
    frame: Any, epsilon: float | Fraction, target: str | None = None, seed: int = 1, batch: int | None = None
) -> LearnedNetwork:
    """As a release learns, from one table or from batches."""
    whole = tables.read(frame).clip_infinities()
    size = batch or whole.rows
    parts = [tables.read(frame[first : first + size]) for first in range(0, whole.rows, size)] if batch else [whole]
    rows = CountedTables(whole.rows, lambda: parts)
    columns = [whole.column(name) for name in whole.names]
    labels = read_labels([column for column in columns if column.storage.family == "label"], rows)
    found = [domain_of(column.numeric(labels.get(column.name)), None) for column in columns]
    return learn(found, TableValues(rows, columns, labels), Fraction(epsilon), target, bits(seed))


def parents_of(found: LearnedNetwork) -> dict[int, set[int]]:
    """Each column's parents, both by their place in the table."""
    assert isinstance(found.reference, Network)
    nodes = zip(found.order, found.reference.nodes, strict=True)
    return {column: {found.order[place] for place in node.parents} for column, node in nodes}


def edges(found: LearnedNetwork) -> set[tuple[int, int]]:
    return {(min(i, j), max(i, j)) for i, parents in parents_of(found).items() for j in parents}


def chain(columns: int, seed: int = 2, n: int = N) -> pd.DataFrame:
    """A Markov chain over five levels: each column is the one before, but for every fifth row. The last come first."""
    rng = np.random.default_rng(seed)
    x = [rng.integers(0, 5, n)]
    for _ in range(columns - 1):
        x.append(np.where(rng.random(n) < 0.8, x[-1], rng.integers(0, 5, n)))
    return pd.DataFrame({f"x{i}": x[i] for i in range(columns)})


def mixed(columns: int, n: int = 300) -> pd.DataFrame:
    """Columns of all sorts in turn, some of which depend on others; if they are very many, of the quick sorts."""
    rng = np.random.default_rng(3)
    base = rng.normal(size=n)
    sorts: list[Any] = [
        lambda: base + rng.normal(size=n),
        lambda: rng.poisson(np.exp(base / 2)),
        lambda: np.where(base > 0, "a", "b"),
        lambda: rng.random(n) < 0.3,
        lambda: np.where(rng.random(n) < 0.5, 0.0, rng.lognormal(size=n)),
        lambda: pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
        lambda: np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
        lambda: rng.choice(["x", "y", "z"], n),
    ]
    sorts = sorts[1:4] if columns > 50 else sorts
    return pd.DataFrame({f"c{i}": sorts[i % len(sorts)]() for i in range(columns)})


@pytest.mark.parametrize(
    ("columns", "rows"), [(1, 300), (2, 300), (3, 300), (3, 9000), (14, 300), (14, 9000), (100, 300)]
)
@pytest.mark.parametrize(("with_target", "epsilon"), [(False, 1.0), (True, 0.3)], ids=["tree", "target"])
def test_all_that_is_paid_adds_up_to_epsilon_and_no_more(
    columns: int, rows: int, with_target: bool, epsilon: float
) -> None:
    found = learned(mixed(columns, rows), epsilon, f"c{columns // 2}" if with_target else None)
    given_epsilon = Fraction(epsilon)
    assert found.spent <= given_epsilon
    alone = CHOICES / 3 if columns == 3 else 0  # where one of three choices has one candidate, it costs nothing
    assert found.spent >= given_epsilon * (1 - alone) * Fraction(999, 1000)
    assert sorted(found.order) == list(range(columns))
    assert len(found.codecs) == len(found.kinds) == columns


@pytest.mark.parametrize("epsilon", [1e-6, 40.0, 1e4])
def test_any_epsilon_can_be_spent(epsilon: float) -> None:
    """With a huge ε a tree needs no more than it asks for."""
    for target in (None, "c1"):
        found = learned(mixed(5), epsilon, target)
        assert 0 < found.spent <= Fraction(epsilon)


def test_a_planted_chain_is_found() -> None:
    """Among the edges: columns may have a second parent."""
    planted = {(i, i + 1) for i in range(5)}
    for seed in range(3):
        assert planted <= edges(learned(chain(6), 3.0, seed=seed))
    frame = chain(6)
    alone = pd.DataFrame({name: np.random.default_rng(i).permutation(frame[name]) for i, name in enumerate(frame)})
    assert not all(planted <= edges(learned(alone, 3.0, seed=seed)) for seed in range(3))  # control: nothing to find


@pytest.mark.parametrize("target", [None, "x1"])
def test_one_row_changes_no_score_by_more_than_is_paid_for(target: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores of a table and of its neighbours, in which one row has other groups; all that was released is the same."""
    rng = np.random.default_rng(6)
    calls: list[tuple[NDArray[np.int64], int]] = []
    released: list[tuple[FloatArray, float]] = []
    real_best, real_noisy, real_counts = Accountant.report_noisy_max, Accountant.noisy_counts, learning._joint_counts
    moved, measured = False, 0

    def best(accountant: Accountant, scores: NDArray[np.int64], sensitivity: int, epsilon: Fraction) -> int:
        calls.append((scores.copy(), sensitivity))
        return real_best(accountant, scores, sensitivity, epsilon)

    def noisy(accountant: Accountant, exact: NDArray[np.int64], epsilon: Fraction) -> tuple[FloatArray, float]:
        nonlocal measured
        found = real_noisy(accountant, exact, epsilon)
        if not moved:
            released.append(found)
        measured += 1
        return released[measured - 1] if measured <= len(released) else found

    def counts(*given_: Any) -> dict[tuple[int, int], NDArray[np.int64]]:
        found = {pair: table.copy() for pair, table in real_counts(*given_).items()}
        was, becomes = rng.integers(0, 2, 5), rng.integers(0, 2, 5)
        for (i, j), table in found.items() if moved else ():
            table[was[i], was[j]] -= 1
            table[becomes[i], becomes[j]] += 1
        return found

    monkeypatch.setattr(Accountant, "report_noisy_max", best)
    monkeypatch.setattr(Accountant, "noisy_counts", noisy)
    monkeypatch.setattr(learning, "_joint_counts", counts)
    frame = chain(5, n=3000)
    learned(frame, 2.0, target)
    usual, sensitivity = calls[0]
    moved, most = True, 0
    for _ in range(12):
        calls.clear()
        measured = 0
        learned(frame, 2.0, target)
        assert calls[0][1] == sensitivity
        most = max(most, int(np.abs(calls[0][0] - usual).max()))
    assert most <= sensitivity
    assert 2 * most > sensitivity  # control: a sensitivity of half as much would be too little


@pytest.mark.parametrize("rows", [300, 9000])
def test_parents_come_first_and_are_one_or_two(rows: int) -> None:
    found = learned(mixed(9, rows), 2.0)
    before: set[int] = set()
    for column in found.order:
        parents = parents_of(found)[column]
        assert parents <= before
        assert len(parents) in ((1, 2) if before else (0,))
        before.add(column)


@pytest.mark.parametrize("target", [0, 3, 8])
def test_a_target_is_a_parent_of_every_other_column(target: int) -> None:
    found = learned(mixed(9), 2.0, f"c{target}")
    parents = parents_of(found)
    assert found.order[0] == target
    assert parents.pop(target) == set()
    assert all(target in own for own in parents.values())
    assert sorted(len(own) for own in parents.values()) == [1] + [2] * 7


def test_what_a_target_explains_is_not_measured_again() -> None:
    """x1 and x2 both follow the target; x3 follows x1 beyond it. Given the target, x1 and x3 belong together."""
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, N)
    of_target = [np.where(rng.random(N) < 0.9, y, 1 - y) for _ in range(2)]
    own = rng.integers(0, 3, N)
    frame = pd.DataFrame({"y": y, "x1": 3 * of_target[0] + own, "x2": of_target[1], "x3": own})
    found = learned(frame, 2.0, "y")
    assert (1, 3) in edges(found)


@pytest.mark.parametrize("batch", [1777, 250])
@pytest.mark.parametrize("target", [None, "c2"])
def test_batches_do_not_matter(batch: int, target: str | None) -> None:
    """Counts of batches add up to those of the table."""
    frame = mixed(6, 3000)
    one, other = learned(frame, 2.0, target), learned(frame, 2.0, target, batch=batch)
    assert one.order == other.order
    assert one.spent == other.spent
    assert isinstance(one.reference, Network)
    assert isinstance(other.reference, Network)
    for here, there in zip(one.reference.nodes, other.reference.nodes, strict=True):
        assert np.array_equal(here.tables, there.tables)
        assert np.array_equal(here.inner, there.inner)


@pytest.mark.parametrize("target", [None, "x2"])
def test_with_little_noise_the_network_is_the_tables_law(target: str | None) -> None:
    """Rows of the table become uniforms, given their parents, too."""
    frame = chain(4)
    found = learned(frame, 1e5, target)
    table = tables.read(frame)
    v = encode(found.codecs, [table.cells(name) for name in table.names], draws(1, N))[:, found.order]
    u = found.reference.to_uniform(v)
    bound = dkw(N) + 0.01  # and what the noise of a few counts in 20,000 rows adds
    for column in range(4):
        assert ks_uniform(u[:, column]) < bound
        for half in (u[:, 0] < 0.5, u[:, max(0, column - 1)] > 0.7):
            if column:
                assert ks_uniform(u[half, column]) < dkw(int(half.sum())) + 0.03
    permuted = v[np.random.default_rng(5).permutation(N)]
    control = found.reference.to_uniform(np.column_stack([v[:, :1], permuted[:, 1:]]))
    assert ks_uniform(control[u[:, 0] < 0.3, 1]) > 0.1  # control: a row of somebody else


@settings(max_examples=200)
@given(
    hnp.arrays(np.float64, st.integers(1, 80), elements=st.floats(0, 1e6)),
    st.integers(2, 32),
    st.booleans(),
)
def test_groups_cover_all_states_in_their_order(masses: FloatArray, most: int, ordered: bool) -> None:
    group_of = coarsened(masses, most, ordered)
    assert len(group_of) == len(masses)
    assert group_of[0] == 0
    assert set(np.diff(group_of).tolist()) <= {0, 1}
    assert group_of[-1] < most


def test_groups_are_even_where_states_have_an_order_and_single_where_they_have_none() -> None:
    group_of = coarsened(np.ones(1000), 10, ordered=True)
    assert np.bincount(group_of).tolist() == pytest.approx([100] * 10, abs=2)
    heavy = coarsened(np.array([500.0, 1.0, 1.0, 1.0, 1.0, 496.0]), 4, ordered=True)
    assert heavy[0] != heavy[1]
    assert heavy[-1] != heavy[-2]
    assert coarsened(np.array([9.0, 5.0, 2.0, 1.0, 1.0, 0.0]), 4, ordered=False).tolist() == [0, 1, 2, 3, 3, 3]
    assert groups_for(10**9, 1.0) == MAX_GROUPS
    assert groups_for(1, 100.0) == 2


def a_table(rows: int, columns: int, seed: int, strength: float = 1.0) -> FloatArray:
    """Counts of two dependent columns."""
    rng = np.random.default_rng(seed)
    place = np.abs(np.linspace(0, 1, rows)[:, np.newaxis] - np.linspace(0, 1, columns))
    law = np.outer(rng.dirichlet(np.full(rows, 3.0)), rng.dirichlet(np.full(columns, 3.0))) * np.exp(-strength * place)
    return rng.multinomial(N, (law / law.sum()).ravel()).reshape(rows, columns).astype(np.float64)


@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (5, 9), (20, 20), (1, 6)])
@pytest.mark.parametrize("scale", [10.0, 30.0, 100.0])
def test_noise_is_taken_out_of_a_table(rows: int, columns: int, scale: float) -> None:
    """Nearer to the truth than the noisy table on average, and with the margins that are given."""
    distances = []
    for seed in range(30):
        truth = a_table(rows, columns, seed, 6.0)
        noisy = truth + np.random.default_rng(seed).laplace(scale=scale, size=truth.shape)
        table = denoised(noisy, truth.sum(axis=1), truth.sum(axis=0), scale)
        assert np.all(table >= 0)
        np.testing.assert_allclose(table.sum(axis=0), truth.sum(axis=0), rtol=1e-6, atol=1e-6 * N)
        np.testing.assert_allclose(table.sum(axis=1), truth.sum(axis=1), atol=0.01 * N)  # fitted first, not last
        alone = np.outer(truth.sum(axis=1), truth.sum(axis=0)) / N
        distances.append([np.abs(other - truth).sum() for other in (table, noisy, alone)])
    gained = np.array(distances)
    better = gained[:, 1] - gained[:, 0]
    assert better.mean() > 4.9 * better.std() / np.sqrt(30)
    if min(rows, columns) > 1 and scale == 10:
        kept = gained[:, 2] - gained[:, 0]
        assert kept.mean() > 4.9 * kept.std() / np.sqrt(30)  # and nearer than independence, which has no noise


def test_a_table_of_independent_columns_becomes_their_product() -> None:
    rows, columns = a_table(8, 8, 1).sum(axis=1), a_table(8, 8, 2).sum(axis=0)
    alone = np.outer(rows, columns) / N
    noisy = alone + np.random.default_rng(3).laplace(scale=20.0, size=alone.shape)
    table = denoised(noisy, rows, columns, 20.0)
    assert np.abs(table - alone).sum() < 0.5 * np.abs(noisy - alone).sum()


def test_margins_are_put_right_where_there_is_nothing() -> None:
    table = rake(np.zeros((3, 2)), np.array([5.0, 3.0, 2.0]), np.array([4.0, 6.0]))
    np.testing.assert_allclose(table, np.outer([5.0, 3.0, 2.0], [4.0, 6.0]) / 10)
    empty = rake(np.ones((2, 2)), np.array([10.0, 0.0]), np.array([4.0, 6.0]))
    np.testing.assert_allclose(empty, [[4.0, 6.0], [0.0, 0.0]], atol=1e-6)


@pytest.mark.parametrize("shape", [(2, 2, 2), (4, 3, 5), (8, 6, 2)])
def test_max_entropy_tables_have_the_two_way_marginals(shape: tuple[int, int, int]) -> None:
    for seed in range(10):
        truth = np.random.default_rng(seed).dirichlet(np.full(int(np.prod(shape)), 0.7)).reshape(shape) * N
        table = max_entropy_table(truth.sum(axis=2), truth.sum(axis=1), truth.sum(axis=0))
        for axis in range(3):
            assert np.abs(table.sum(axis=axis) - truth.sum(axis=axis)).sum() < 0.02 * N

        def entropy(counts: FloatArray) -> float:
            share = counts[counts > 0] / counts.sum()
            return float(-(share * np.log(share)).sum())

        assert entropy(table) >= entropy(truth) - 0.01
        odds = table[1:, 1:, 1:] * table[:-1, :-1, 1:] * table[:-1, 1:, :-1] * table[1:, :-1, :-1]
        other = table[:-1, :-1, :-1] * table[1:, 1:, :-1] * table[1:, :-1, 1:] * table[:-1, 1:, 1:]
        np.testing.assert_allclose(odds, other, rtol=0.01)  # no three-way interaction
        interacting = truth[1:, 1:, 1:] * truth[:-1, :-1, 1:] * truth[:-1, 1:, :-1] * truth[1:, :-1, :-1]
        assert not np.allclose(interacting, other, rtol=0.01)  # control


def test_arrow_tables_are_learned_from_alike() -> None:
    frame = mixed(4, 1000)[["c1", "c3"]]
    one, other = learned(frame, 1.0), learned(pa.table(frame).cast(_without_nulls(frame)), 1.0)
    assert isinstance(one.reference, Network)
    assert isinstance(other.reference, Network)
    for here, there in zip(one.reference.nodes, other.reference.nodes, strict=True):
        assert np.array_equal(here.tables, there.tables)


def _without_nulls(frame: pd.DataFrame) -> pa.Schema:
    return pa.schema([pa.field(field.name, field.type, nullable=False) for field in pa.table(frame).schema])
