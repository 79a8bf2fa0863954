"""The contract that every reference passes: its distribution becomes uniform, it has an inverse, it is total."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from dipriv._base.arrays import FloatArray
from dipriv._base.coordinates import EncodedColumn
from dipriv._tables import frames
from dipriv.errors import InputError
from dipriv.kernels import Optimal
from dipriv.references import (
    Empirical,
    Grouped,
    Known,
    Mixture,
    Parametric,
    Private,
    Reference,
    ReferenceRows,
    by_name,
    protocol,
    reference_spec,
)
from dipriv.references._models.network import Network, Node
from dipriv.references.protocol import as_spec, registered_names
from dipriv.release.fidelity import expected_fidelity
from dipriv.release.fitting import FittedMechanism, plan_fit
from dipriv.schema import Schema
from dipriv.sources.protocol import CountedTables
from tests.contracts.toy_reference import Toy
from tests.support import bits, dkw, ks_uniform, uniform_rows

N = 60_000


def fit(recipe: Known | Parametric | Empirical, v: FloatArray, p: int) -> Reference:
    names = tuple(f"c{i}" for i in range(p))
    return recipe.fit(ReferenceRows(v, np.full(p, -np.inf), names))


def grouped(of_one_group: bool) -> Reference:
    rng = np.random.default_rng(5)
    groups = np.repeat(np.arange(300), 7)
    v = rng.normal(loc=groups[:, None], size=(len(groups), 3))
    fitted = Grouped(by="g").fit(ReferenceRows(v, np.full(3, -np.inf), ("a", "b", "c"), groups))
    return fitted.at(np.full(N, 7) if of_one_group else rng.integers(0, 300, N))


def network(parents: list[tuple[int, ...]], seed: int) -> Reference:
    """Six states in four groups a column, with random conditional tables; some states and cells have no mass."""
    rng = np.random.default_rng(seed)
    group_of = np.array([0, 0, 1, 2, 2, 3])
    nodes = []
    for own in parents:
        masses = rng.random(6) * (rng.random(6) < 0.8)
        tables = rng.random((4 ** len(own), 4)) * (rng.random((4 ** len(own), 4)) < 0.8) + np.eye(4)[0]
        nodes.append(Node.of(own, group_of, masses, tables))
    return Network(tuple(nodes))


def numbers() -> pa.Table:
    x, y = np.random.default_rng(8).normal(size=(2, 2000))
    return pa.table({"x": x, "y": x + y})


def released_by(name: str) -> FittedMechanism:
    """As a release fits the reference of this name, whatever it is fitted on."""
    table = frames.read(numbers())
    rows = CountedTables(table.rows, lambda: [table])
    columns = [table.column(column) for column in table.names]
    plan = plan_fit(by_name(name), Optimal(), 1.0, columns, Schema({}), rows=rows, reference=table, bits=bits(0))
    return plan.fit(rows, bits(1))


_nothing = np.empty((0, 1))
_rows = np.random.default_rng(1).normal(size=(400, 3)) @ np.array([[1, 2, 0], [0, 1, 1], [0, 0, 1.0]])
_ties = np.round(_rows, 1)
_cov = np.array([[4.0, 1.0, 0.5], [1.0, 2.0, -0.7], [0.5, -0.7, 1.0]])

REFERENCES: dict[str, tuple[Reference, int]] = {
    "uniform": (fit(Known(stats.uniform()), _nothing, 1), 1),
    "beta": (fit(Known(stats.beta(2, 5)), _nothing, 1), 1),
    "normal": (fit(Known(stats.norm(3, 10)), _nothing, 1), 1),
    "exponential": (fit(Known(stats.expon()), _nothing, 1), 1),
    "bernoulli": (fit(Known(stats.bernoulli(0.1)), _nothing, 1), 1),
    "binomial": (fit(Known(stats.binom(5, 0.5)), _nothing, 1), 1),
    "poisson": (fit(Known(stats.poisson(3)), _nothing, 1), 1),
    "geometric": (fit(Known(stats.geom(0.2)), _nothing, 1), 1),
    "listed levels": (fit(Known(stats.rv_discrete(values=([1, 5, 70], [0.2, 0.5, 0.3]))), _nothing, 1), 1),
    "mixture": (fit(Known(Mixture({-1.0: 0.1, 0.0: 0.3, 2.5: 0.2}, stats.norm())), _nothing, 1), 1),
    "mixture, atoms at the ends": (fit(Known(Mixture({0.0: 0.3, 1.0: 0.1}, stats.uniform())), _nothing, 1), 1),
    "independent": (fit(Known({"c0": stats.norm(), "c1": stats.poisson(2)}), np.empty((0, 2)), 2), 2),
    "multivariate normal": (fit(Known(stats.multivariate_normal([1, 2, 3], _cov)), np.empty((0, 3)), 3), 3),
    "fitted gamma": (fit(Parametric("gamma"), np.random.default_rng(2).gamma(2, size=(500, 1)), 1), 1),
    "fitted normal": (fit(Parametric("multivariate_normal"), _rows, 3), 3),
    "empirical, one column": (fit(Empirical(), _rows[:, :1], 1), 1),
    "empirical": (fit(Empirical(), _rows, 3), 3),
    "empirical, paper's edge": (fit(Empirical(edge="paper"), _rows, 3), 3),
    "empirical with ties": (fit(Empirical(), _ties, 3), 3),
    "grouped, rows of one group": (grouped(of_one_group=True), 3),
    "network, one column": (network([()], 1), 1),
    "network, a chain": (network([(), (0,), (1,)], 2), 3),
    "network, two parents": (network([(), (0,), (0, 1)], 3), 3),
    **{f"registered as {name}": (released_by(name).reference, 2) for name in registered_names()},
}
WITH_GROUPS = REFERENCES | {"grouped": (grouped(of_one_group=False), 3)}
every_reference = pytest.mark.parametrize(("reference", "p"), WITH_GROUPS.values(), ids=WITH_GROUPS.keys())


@every_reference
def test_it_is_its_own_inverse(reference: Reference, p: int) -> None:
    u = np.clip(uniform_rows(N, p, seed=3), 1e-9, 1 - 1e-9)
    v = reference.from_uniform(u)
    assert v.shape == (N, p)
    assert np.all(np.isfinite(v))
    again = reference.to_uniform(v)
    np.testing.assert_allclose(again, u, atol=1e-6)  # Φ⁻¹ and sums of boxes cost digits, not ranks
    np.testing.assert_allclose(reference.from_uniform(again), v, atol=1e-6 * np.ptp(v))


@every_reference
def test_its_own_law_becomes_uniform_on_the_cube(reference: Reference, p: int) -> None:
    u = reference.to_uniform(reference.from_uniform(uniform_rows(N, p, seed=4)))
    assert all(ks_uniform(u[:, column]) < dkw(N) for column in range(p))
    limit = stats.norm.isf(5e-7 / p**2) / np.sqrt(N)  # correlations of independent uniforms, two-sided, all pairs
    assert np.all(np.abs(np.corrcoef(u, rowvar=False) - np.eye(p)) < limit)
    bent = reference.to_uniform(reference.from_uniform(uniform_rows(N, p, seed=4) ** 1.1))
    assert all(ks_uniform(bent[:, column]) > dkw(N) for column in range(p))  # control


@every_reference
def test_it_is_total(reference: Reference, p: int) -> None:
    """Any real row has a U inside the cube, so that an outlandish private row meets no error."""
    wild = np.array([-np.inf, -1e308, -1.0, 0.0, 5e-324, 1.0, 1e308, np.inf])
    v = np.full((N, p), 0.5)
    v[: len(wild) ** min(p, 2), :2] = np.array(np.meshgrid(*[wild] * min(p, 2))).reshape(min(p, 2), -1).T
    u = reference.to_uniform(v)
    assert np.all((u >= 0) & (u <= 1))


@pytest.mark.parametrize(("reference", "p"), REFERENCES.values(), ids=REFERENCES.keys())
def test_it_is_monotone_in_each_column_given_the_earlier_ones(reference: Reference, p: int) -> None:
    start = reference.from_uniform(np.tile(uniform_rows(1, p, seed=6), (N, 1)))
    for column in range(p):
        v = start.copy()
        v[:, column] = np.linspace(v[:, column].min() - 5, v[:, column].max() + 5, N)
        assert np.all(np.diff(reference.to_uniform(v)[:, column]) >= -1e-12)


@every_reference
def test_it_tells_of_each_coordinate(reference: Reference, p: int) -> None:
    """One for each column, by name; probabilities, where it has some, add up to one."""
    names = [f"c{column}" for column in range(p)]
    found = reference.coordinates([EncodedColumn(name) for name in names])
    assert [coordinate.name for coordinate in found] == names
    totals = [coordinate.probabilities.sum() for coordinate in found if coordinate.probabilities is not None]
    np.testing.assert_allclose(totals, 1.0)


@pytest.mark.parametrize("mean", [0.1, 20.0, 50.0, 1000.0])
def test_a_table_of_integers_ends_where_the_tail_does(mean: float) -> None:
    """Sums of probabilities are rounded: that they stay below one does not mean that a tail is left."""
    reference = fit(Known(stats.poisson(mean)), _nothing, 1)
    k = np.arange(int(mean) + 10.0)
    np.testing.assert_allclose(reference.to_uniform(k[:, np.newaxis])[:, 0], stats.poisson(mean).cdf(k), atol=1e-12)
    with pytest.raises(InputError, match="mass beyond"):
        Known(stats.zipf(1.5))  # control: this tail is left


# ---- the registry ----


@contextmanager
def registered(name: str, spec: Any) -> Iterator[None]:
    reference_spec(name)(spec)
    try:
        yield
    finally:
        del protocol._specs._classes[name]


def test_names_stand_for_specs() -> None:
    assert isinstance(by_name("private"), Private)
    assert isinstance(as_spec("holdout"), Empirical)
    assert isinstance(as_spec("toy"), Toy)
    assert as_spec(spec := Known(stats.norm())) is spec


def test_an_unknown_name_is_refused_with_those_that_are_known() -> None:
    with registered("another", Toy), pytest.raises(InputError, match=r'"private", .*"toy", "another"') as caught:
        by_name("median")
    assert "'median'" in str(caught.value)
    with pytest.raises(InputError, match="unknown"):
        by_name("another")


def test_a_name_is_registered_once() -> None:
    reference_spec("toy")(Toy)  # the same one again changes nothing
    with pytest.raises(InputError, match="'private' already"):
        reference_spec("private")(Toy)
    assert isinstance(by_name("private"), Private)


@pytest.mark.parametrize(
    "thing", [None, 3, Toy, object(), Empirical], ids=["none", "number", "class", "object", "spec class"]
)
def test_what_is_no_spec_is_refused(thing: Any) -> None:
    with pytest.raises(InputError, match="expected a reference, got"):
        as_spec(thing)


def test_a_toy_reference_releases_rows_from_one_file() -> None:
    fitted = released_by("toy")
    table = numbers()
    released = fitted.release(frames.read(table), (), bits(2))
    assert released.schema == table.schema
    assert not released.equals(table)
    kept = [np.corrcoef(table[name], released[name])[0, 1] for name in table.column_names]
    expected = list(expected_fidelity(fitted).values())
    np.testing.assert_allclose(kept, expected, atol=5 / np.sqrt(table.num_rows))  # five standard errors
    assert min(expected) > 0.05  # control: unrelated rows would not have it
