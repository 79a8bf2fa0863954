"""Learning from end to end: what is spent, which pairs are measured, groups, dependence, labels found privately."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats

import dipriv
from dipriv._random.bits import source
from dipriv._tables import frames as tables
from dipriv._tables.arrow import OTHER
from dipriv._tables.fitted_columns import label_of_others
from dipriv.errors import InputError
from dipriv.mechanism import encode
from dipriv.references import Private
from dipriv.references._learning.learn import LearnedNetwork
from dipriv.references._learning.measurements import Accountant, Frequent
from dipriv.references._learning.shares import CHOICES
from dipriv.references._models.network import Network
from dipriv.release.labels import TableValues
from dipriv.schema import Categorical, Schema
from dipriv.sources.protocol import CountedTables
from tests.support import ALARM, bits, dkw, draws, ks_uniform

N = 20_000


def learned(
    frame: Any,
    epsilon: float,
    delta: float = 1e-9,
    spec: Private | None = None,
    seed: int = 1,
    schema: Schema | None = None,
    batch: int | None = None,
) -> tuple[LearnedNetwork, Fraction]:
    """As a release learns with all of ε for the reference, and its budget."""
    whole = tables.read(frame)
    size = batch or whole.rows
    parts = [tables.read(frame[first : first + size]) for first in range(0, whole.rows, size)] if batch else [whole]
    columns = [whole.column(name) for name in whole.names]
    numeric = [column.numeric(None) for column in columns]
    plan = (spec or Private()).plan(numeric, schema or Schema({}), epsilon, delta, whole.rows, disjoint=True)
    others = {domain.name: label_of_others(whole.column(domain.name)) for domain in plan.domains if domain.finds_labels}
    rows = TableValues(CountedTables(whole.rows, lambda: parts), columns, others)
    return plan.learn(rows, bits(seed)), plan.shares.budget


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


def chain(columns: int, seed: int = 2, n: int = N) -> pd.DataFrame:
    """A Markov chain over five levels: each column is the one before, but for every fifth row."""
    rng = np.random.default_rng(seed)
    x = [rng.integers(0, 5, n)]
    for _ in range(columns - 1):
        x.append(np.where(rng.random(n) < 0.8, x[-1], rng.integers(0, 5, n)))
    return pd.DataFrame({f"x{i}": x[i] for i in range(columns)})


def cramers_v(one: Any, other: Any) -> float:
    return float(stats.contingency.association(pd.crosstab(one, other).to_numpy(), method="cramer"))


# ---- what is spent ----


@pytest.mark.parametrize(
    ("columns", "rows"),
    [(1, 300), (2, 300), (3, 9000), (8, 300), (14, 9000), pytest.param(60, 300, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-9), (0.3, 1e-6)])
def test_all_that_is_spent_is_the_budget_and_no_more(columns: int, rows: int, epsilon: float, delta: float) -> None:
    """Listed pairs cost no choice, so that what is planned for choices may be left."""
    for spec, left in ((Private(), Fraction(0)), (Private(f"c{columns // 2}"), CHOICES)):
        found, budget = learned(mixed(columns, rows), epsilon, delta, spec)
        assert budget * (Fraction(98, 100) - left) <= found.spent <= budget
        assert sorted(found.order) == list(range(columns))
        assert len(found.codecs) == len(found.kinds) == columns


@pytest.mark.parametrize("epsilon", [1e-6, 40.0, 1e4])
def test_any_epsilon_can_be_spent(epsilon: float) -> None:
    """With a huge ε a tree needs no more than it asks for."""
    for spec in (Private(), Private("c1")):
        found, budget = learned(mixed(5), epsilon, spec=spec)
        assert 0 < found.spent <= budget


# ---- pairs ----


def test_a_planted_chain_is_found() -> None:
    planted = {(i, i + 1) for i in range(5)}
    for seed in range(3):
        assert planted <= {*learned(chain(6), 3.0, seed=seed)[0].pairs}


@pytest.mark.parametrize("target", [0, 3, 7])
def test_pairs_with_the_target_are_measured_first(target: int) -> None:
    found, _ = learned(mixed(8, 5000), 2.0, spec=Private(f"c{target}"))
    wanted = {(min(target, other), max(target, other)) for other in range(8) if other != target}
    assert {*found.pairs[:7]} == wanted
    without, _ = learned(mixed(8, 5000), 2.0)
    assert {*without.pairs[:7]} != wanted  # control


def test_listed_pairs_are_measured_first_and_before_the_target() -> None:
    spec = Private("c0", pairs=(("c5", "c2"), ("c1", "c4"), ("c2", "c5")))
    found, _ = learned(mixed(6, 5000), 2.0, spec=spec)
    assert found.pairs[:4] == ((2, 5), (1, 4), (0, 1), (0, 2))


def test_a_pair_of_one_column_is_refused() -> None:
    with pytest.raises(InputError, match="'c1'"):
        dipriv.privatize(mixed(3), 1.0, reference=Private(pairs=(("c1", "c1"),)))


def test_a_pair_is_measured_where_rows_are_few() -> None:
    spec = Private(pairs=(("c1", "c3"),))
    assert learned(mixed(6, 100), 0.5, spec=spec)[0].pairs[:1] == ((1, 3),)
    assert learned(mixed(6, 100), 0.5)[0].pairs == ()  # control: columns alone


# ---- the network ----


@pytest.mark.parametrize("batch", [1777, 250])
@pytest.mark.parametrize("target", [None, "c2"])
def test_batches_do_not_matter(batch: int, target: str | None) -> None:
    """Counts of batches add up to those of the table."""
    frame = mixed(6, 3000)
    one, other = (learned(frame, 2.0, spec=Private(target), batch=size)[0] for size in (None, batch))
    assert (one.order, one.spent, one.pairs) == (other.order, other.spent, other.pairs)
    assert isinstance(one.reference, Network)
    assert isinstance(other.reference, Network)
    for here, there in zip(one.reference.nodes, other.reference.nodes, strict=True):
        assert np.array_equal(here.tables, there.tables)
        assert np.array_equal(here.inner, there.inner)


@pytest.mark.parametrize("target", [None, "x2"])
def test_with_little_noise_the_network_is_the_tables_distribution(target: str | None) -> None:
    """Rows of the table become uniforms, given their parents, too."""
    frame = chain(4)
    found, _ = learned(frame, 1e5, 0.0, Private(target))
    table = tables.read(frame)
    v = encode(found.codecs, [table.cells(name) for name in table.names], draws(1, N))[:, found.order]
    u = found.reference.to_uniform(v)
    bound = dkw(N) + 0.01  # and what fitting leaves in 20,000 rows
    for column in range(4):
        assert ks_uniform(u[:, column]) < bound
        for half in (u[:, 0] < 0.5, u[:, max(0, column - 1)] > 0.7):
            if column:
                assert ks_uniform(u[half, column]) < dkw(int(half.sum())) + 0.03
    permuted = v[np.random.default_rng(5).permutation(N)]
    control = found.reference.to_uniform(np.column_stack([v[:, :1], permuted[:, 1:]]))
    assert ks_uniform(control[u[:, 0] < 0.3, 1]) > 0.1  # control: a row of somebody else


def test_arrow_tables_are_learned_from_alike() -> None:
    frame = mixed(4, 1000)[["c1", "c3"]]
    fields = [pa.field(field.name, field.type, nullable=False) for field in pa.table(frame).schema]
    one, other = (learned(data, 1.0)[0] for data in (frame, pa.table(frame).cast(pa.schema(fields))))
    assert isinstance(one.reference, Network)
    assert isinstance(other.reference, Network)
    for here, there in zip(one.reference.nodes, other.reference.nodes, strict=True):
        assert np.array_equal(here.tables, there.tables)


# ---- releases ----


def table_of_labels(rows: int = 8000, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    school = rng.choice(["none", "school", "college", "doctorate"], rows, p=[0.2, 0.5, 0.25, 0.05])
    rich = rng.random(rows) < pd.Series(school).map({"none": 0.1, "school": 0.2, "college": 0.5, "doctorate": 0.8})
    return pd.DataFrame(
        {
            "school": school,
            "pay": np.where(rich, ">50K", "<=50K"),
            "sex": rng.choice(["f", "m"], rows),
            "region": rng.choice([f"r{number}" for number in range(6)], rows),
        }
    )


DECLARED = {
    "school": Categorical(("none", "school", "college", "doctorate")),
    "pay": Categorical(("<=50K", ">50K")),
    "sex": Categorical(("f", "m")),
    "region": Categorical(tuple(f"r{number}" for number in range(6))),
}


@pytest.mark.parametrize(
    "options",
    [{}, {"delta": 0.0, "schema": DECLARED}, {"delta": 0.0, "labels": "public"}, {"reference": Private("pay")}],
    ids=["default", "pure and declared", "pure and public", "target"],
)
def test_a_strong_dependence_is_kept(options: dict[str, Any]) -> None:
    """Cramér's V within a quarter of what it was; independent columns have at most √((k - 1)/n) and what noise adds."""
    frame = table_of_labels()
    for seed in range(2):
        release = dipriv.privatize(frame, 2.0, seed=seed, **options)
        released, was = release.data, cramers_v(frame["school"], frame["pay"])
        assert abs(cramers_v(released["school"], released["pay"]) - was) < was / 4
        assert cramers_v(released["sex"], released["pay"]) < was / 4
        permuted = np.random.default_rng(seed).permutation(released["pay"])
        assert abs(cramers_v(released["school"], permuted) - was) > was / 4  # control
        assert release.guarantee.delta == options.get("delta", 1e-9)


def test_declared_labels_are_released_under_pure_privacy() -> None:
    release = dipriv.privatize(table_of_labels(500), 1.0, delta=0.0, schema=DECLARED, seed=1)
    assert release.guarantee.delta == 0.0
    for name, kind in DECLARED.items():
        assert {*release.data[name]} <= {*(kind.levels or ())}


# ---- labels found privately ----

ROWS = 3000
SECRET = "the only one"


def cities() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    return pd.DataFrame({"x": [*rng.choice(["Bonn", "Köln", "Ulm"], ROWS - 1).tolist(), SECRET]})


def published(seed: int, epsilon: float = 0.5) -> set[str]:
    return {*dipriv.privatize(cities(), epsilon, seed=seed).data["x"]}


def test_a_label_of_one_row_is_never_published(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its chance is below 1e-9 a release, and found in none of many; common labels are in all of them."""
    for seed in range(40):
        found = published(seed)
        assert SECRET not in found
        assert {"Bonn", "Köln", "Ulm"} <= found
    real = Accountant.frequent

    def without_threshold(own: Accountant, counts: Any, fixed: Any, cost: Fraction, chance: Fraction) -> Frequent:
        """As if any label could be published whose noisy count is above 0: half of all of one row."""
        return real(own, counts, fixed, cost, Fraction(1, 2))

    monkeypatch.setattr(Accountant, "frequent", without_threshold)
    shown = sum(SECRET in {*_labels_of(seed)} for seed in range(20))
    assert shown >= stats.binom.ppf(ALARM, 20, 0.3)
    assert shown > 0  # control


def _labels_of(seed: int) -> list[Any]:
    """The labels that a fitted release may show."""
    labels = dipriv.DIP(0.5, seed=seed).fit(cities()).mechanism_.columns[0].labels
    assert labels is not None
    return list(labels.to_pylist())


def test_an_exported_reference_has_published_labels_only(tmp_path: Path) -> None:
    frame = cities().assign(y=np.arange(ROWS) % 5)
    dip = dipriv.DIP(1.0, seed=3).fit(frame)
    dip.export_local(tmp_path / "reference")
    local = dipriv.load_local(tmp_path / "reference", seed=5)
    expected = dip.mechanism_.release(tables.read(frame), (), source(5))
    pd.testing.assert_frame_equal(local.privatize(frame), expected)
    assert {*expected["x"]} <= {OTHER, "Bonn", "Köln", "Ulm"}
    with np.load(tmp_path / "reference") as archive:
        contents = b"".join(archive[name].tobytes() for name in archive.files)
    assert SECRET.encode() not in contents
    assert "Köln".encode() in contents or b"K\\u00f6ln" in contents  # control: others are there
    assert local.privatize({"x": "never seen", "y": 1}).keys() == {"x", "y"}


@pytest.mark.parametrize("rows", [5, 40])
def test_where_rows_are_few_all_labels_are_other(rows: int) -> None:
    """A threshold of some twenty rows: nothing is published of fewer, and the release works all the same."""
    frame = pd.DataFrame({"x": [f"n{number % 7}" for number in range(rows)], "y": np.arange(rows)})
    released = dipriv.privatize(frame, 0.5, seed=1).data
    assert {*released["x"]} == {OTHER}
    assert len(released) == rows


def test_shares_of_labels_found_privately_are_right() -> None:
    """Within what noise and sampling allow, but for the rows' own noise, which keeps the distribution."""
    frame = table_of_labels(20_000)
    released = dipriv.privatize(frame, 2.0, seed=1).data
    for name in frame:
        for label, share in frame[name].value_counts(normalize=True).items():
            allowed = stats.norm.isf(ALARM / 2) * (math.sqrt(share * (1 - share) / 20_000) + 60 / 20_000)
            assert abs((released[name] == label).mean() - share) < allowed
