"""Releases with a private reference: every row, the whole promise, ε spent first, nothing read that is not said."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

import dipriv
from dipriv._random.bits import Bits, source
from dipriv._sinks import FileSink
from dipriv._tables import frames as tables
from dipriv.codecs.binned import BinnedCodec
from dipriv.codecs.levels import LevelsCodec
from dipriv.errors import BudgetError, DisclosureError, InputError, SchemaError
from dipriv.guarantee import Assumption, AssumptionKind, Model, PrivacyUnit, Unprotected, UnprotectedKind
from dipriv.ledger import Ledger
from dipriv.references import Private
from dipriv.references._learning import learn as learning
from dipriv.references._learning.domain import Domain, domain_of
from dipriv.references._learning.learn import LearnedNetwork, learn
from dipriv.references._learning.shares import Shares, divide
from dipriv.references._learning.zcdp import delta_of
from dipriv.release import fitting
from dipriv.release.labels import TableValues
from dipriv.schema import Categorical, Continuous, Discrete
from dipriv.sources.files import File, FileBatches
from dipriv.sources.protocol import CountableRows, CountedTables
from tests.support import ALARM, bits
from tests.unit.refusal import refused

N = 1500
MARKER = 987_654.25


def people(rows: int = N, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, rows),
            "pay": np.append(np.where(rng.random(rows - 1) < 0.2, 0.0, rng.lognormal(10, 1, rows - 1)), MARKER),
            "cents": np.round(rng.lognormal(3, 1, rows), 2),
            "sex": pd.Categorical(rng.choice(["f", "m"], rows), categories=["m", "f", "x"]),
            "city": rng.choice(["Bonn", "Köln", "Ulm"], rows),
            "born": pd.Timestamp("1990-01-01") + pd.to_timedelta(rng.integers(0, 9000, rows), unit="D"),
            "ok": rng.random(rows) < 0.5,
            "gap": np.where(rng.random(rows) < 0.3, np.nan, rng.normal(size=rows)).astype(np.float32),
        },
        index=pd.Index(np.arange(rows) * 3 + 7, name="nr"),
    )


@dataclass
class Seen:
    """What a release learned from."""

    budgets: list[Fraction]
    """Of ε or ρ."""
    rows: list[int]
    plans: list[fitting.FitPlan]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    found = Seen([], [], [])
    real_learn, real_fit = learn, fitting.FitPlan.fit

    def spied(columns: Any, rows: TableValues, shares: Shares, *others: Any) -> LearnedNetwork:
        found.budgets.append(shares.budget)
        assert isinstance(rows.rows, CountedTables)
        found.rows.append(sum(table.rows for table in rows.rows.tables()))
        assert found.rows[-1] == rows.n_rows
        return real_learn(columns, rows, shares, *others)

    def fit(plan: fitting.FitPlan, rows: CountableRows, own: Bits) -> fitting.FittedMechanism:
        found.plans.append(plan)
        return real_fit(plan, rows, own)

    monkeypatch.setattr(learning, "learn", spied)
    monkeypatch.setattr(fitting.FitPlan, "fit", fit)
    return found


# ---- every row, in its own library ----


def test_pandas_keeps_dtypes_index_and_every_row() -> None:
    frame = people().assign(
        whole=pd.array(np.arange(N) % 50, dtype="Int64"),
        short=(np.arange(N) % 7).astype(np.int8),
        zoned=people()["born"].dt.tz_localize("Europe/Paris"),
        lasts=pd.to_timedelta(np.arange(N) % 90, unit="min"),
        text=pd.array(["a", None, "b"] * (N // 3), dtype="string"),
    )
    release = dipriv.privatize(frame, 1.0, seed=1)
    assert release.data.drop(columns="sex").dtypes.equals(frame.drop(columns="sex").dtypes)
    assert set(release.data["sex"].cat.categories) <= {"(other)", "f", "m"}  # no category that is not published
    assert release.data.index.equals(frame.index)
    assert release.secrets.released.all()
    assert release.secrets.split is None
    assert len(release.secrets.row_positions) == N
    assert set(release.data["city"]) <= {"(other)", "Bonn", "Köln", "Ulm"}
    assert not release.data.equals(frame)


@pytest.mark.parametrize("seed", range(3))
def test_days_stay_days_and_cents_stay_cents(seed: int) -> None:
    frame = people(8000)[["born", "cents"]]
    released = dipriv.privatize(frame, 2.0, seed=seed).data
    assert released["born"].dt.normalize().equals(released["born"])
    assert np.array_equal(released["cents"], np.round(released["cents"], 2))


def test_polars_keeps_its_types() -> None:
    frame = pl.from_pandas(people()).with_columns(
        pl.col("born").cast(pl.Date).alias("day"), pl.col("city").cast(pl.Enum(["Bonn", "Köln", "Ulm"])).alias("enum")
    )
    released = dipriv.privatize(frame, 1.0, seed=1).data
    assert isinstance(released, pl.DataFrame)
    lists = {"sex": pl.Categorical, "enum": pl.Enum}  # of categories, which are those of the release alone
    assert released.drop(*lists).schema == frame.drop(*lists).schema
    assert all(isinstance(released.schema[name], of) for name, of in lists.items())
    assert released.height == N


def test_pyarrow_keeps_its_types() -> None:
    table = pa.table(people().reset_index(drop=True)).append_column(
        "price", pa.array(np.round(np.random.default_rng(1).lognormal(size=N), 2)).cast(pa.decimal128(12, 2))
    )
    table = table.append_column("at", pa.array((np.arange(N) * 37 % 86_400).astype(np.int32)).cast(pa.time32("s")))
    table = table.append_column("half", pa.array(np.arange(N) % 30).cast(pa.float16()))
    released = dipriv.privatize(table, 1.0, seed=1).data
    assert released.schema.equals(table.schema.remove_metadata())
    assert released.num_rows == N


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u1", "u8", "?"])
def test_numpy_arrays_keep_their_type(dtype: str) -> None:
    array = np.random.default_rng(1).poisson(3, (N, 3)).astype(dtype)
    released = dipriv.privatize(array, 1.0, seed=1).data
    assert released.dtype == array.dtype
    assert released.shape == array.shape


def test_an_estimator_releases_the_same_rows() -> None:
    frame = people()
    same = dipriv.privatize(frame, 1.0, seed=3)
    dip = dipriv.DIP(1.0, seed=3)
    pd.testing.assert_frame_equal(dip.fit_transform(frame), same.data)
    once = Assumption(AssumptionKind.TRANSFORMED_ONCE, epsilon=dip.mechanism_.kernel.epsilon)
    assert dip.guarantee_ == replace(same.guarantee, assumptions=(*same.guarantee.assumptions, once))
    assert dip.schema_ == same.schema
    assert dip.transform(frame.iloc[:100]).shape == (100, 8)


def test_columns_that_are_kept_or_dropped() -> None:
    frame = people()
    release = dipriv.privatize(frame, 1.0, columns=["pay", "age"], keep=["city"], seed=1)
    assert list(release.data.columns) == ["age", "pay", "city"]
    assert release.data["city"].equals(frame["city"])
    assert set(release.schema) == {"age", "pay"}
    unchanged = Unprotected(UnprotectedKind.UNCHANGED_COLUMNS, columns=("city",))
    assert release.guarantee.unprotected == (unchanged,)
    assert not release.guarantee.assumes(AssumptionKind.LABELS_PUBLIC)  # a column that passes through is not learned


# ---- what is promised ----


@pytest.mark.parametrize("columns", [1, 2, 4])
def test_every_row_has_all_of_epsilon_and_the_share_is_said(columns: int, seen: Seen) -> None:
    names = ["age", "pay", "cents", "ok"][:columns]
    said = dipriv.privatize(people()[names], 1.0).guarantee
    assert said.epsilon == 1.0
    assert said.unprotected == ()
    assert said.secure_randomness
    assert "of each row; the kernel spends ε = " in str(said)
    assert "hold-out" not in str(said)
    assert "reference rows" not in str(said)
    plan = seen.plans[0]
    assert plan.reference_epsilon + Fraction(plan.row_epsilon) == 1
    assert 0 < plan.row_epsilon < 1
    assert f"learned with ε = {float(plan.reference_epsilon):.4g}" in str(said)
    assert (said.reference.epsilon, said.reference.row_epsilon) == (float(plan.reference_epsilon), plan.row_epsilon)
    (budget,) = seen.budgets
    if said.delta == 0:
        assert budget == plan.reference_epsilon
    else:
        assert delta_of(budget, plan.reference_epsilon) < Fraction(said.delta) or budget == plan.reference_epsilon


@pytest.mark.parametrize("share", [0.01, 0.3, 0.99])
def test_the_share_may_be_chosen(share: float, seen: Seen) -> None:
    release = dipriv.privatize(people()[["age", "pay"]], 0.7, reference=Private(reference_share=share), seed=1)
    plan = seen.plans[0]
    assert plan.reference_epsilon + Fraction(plan.row_epsilon) == Fraction(0.7)
    assert float(plan.reference_epsilon) == pytest.approx(0.7 * share)
    assert release.guarantee.reference.epsilon == pytest.approx(0.7 * share)


def test_labels_that_are_read_are_named() -> None:
    frame = people()[["city", "sex", "age"]]
    said = dipriv.privatize(frame, 1.0, labels="public", seed=1).guarantee
    assert Assumption(AssumptionKind.LABELS_PUBLIC, ("city", "sex")) in said.assumptions
    found = dipriv.privatize(frame, 1.0, seed=1).guarantee
    assert not any(found.assumes(kind) for kind in (AssumptionKind.LABELS_PUBLIC, AssumptionKind.CATEGORIES_PUBLIC))
    declared = {"city": Categorical(("Bonn", "Köln", "Ulm", "Rom"))}
    told = dipriv.privatize(people()[["city", "age"]], 1.0, schema=declared, seed=1).guarantee
    assert not told.assumes(AssumptionKind.LABELS_PUBLIC)
    assert Assumption(AssumptionKind.SCHEMA_PUBLIC, ("city",)) in told.assumptions


def test_a_hold_out_and_the_rest_have_all_of_epsilon(seen: Seen) -> None:
    frame = people()
    release = dipriv.privatize(frame, 1.0, holdout=0.25, seed=1)
    held = N - len(release.data)
    assert abs(held / N - 0.25) < np.sqrt(np.log(2 / ALARM) / (2 * N))  # Hoeffding
    assert seen.rows == [held]
    assert seen.plans[0].reference_epsilon == seen.plans[0].row_epsilon == 1
    assert release.guarantee.epsilon == 1.0
    assert release.guarantee.unprotected == ()
    assert release.guarantee.reference.rows == held
    assert release.secrets.split is not None
    again = dipriv.privatize(frame, 1.0, split=release.secrets.split, seed=2)
    assert again.secrets.row_positions.tolist() == release.secrets.row_positions.tolist()
    assert set(release.data.index) == set(frame.index[release.secrets.released])


@pytest.mark.parametrize("options", [{}, {"holdout": 0.5}], ids=["all rows", "hold-out"])
def test_rows_of_a_person_share_epsilon(options: dict[str, Any], seen: Seen) -> None:
    frame = people().assign(who=np.random.default_rng(1).integers(0, 400, N))
    release = dipriv.privatize(frame, 1.0, unit="who", rows_per_unit=3, seed=1, **options)
    persons = frame["who"].to_numpy()[release.secrets.released]
    assert (pd.factorize(persons)[0] + 1).tolist() == release.data["who"].tolist()
    assert np.bincount(persons).max() == 3
    plan = seen.plans[0]
    if options:
        assert 3 * plan.reference_epsilon <= 1
        assert 3 * Fraction(plan.row_epsilon) <= 1
        assert plan.reference_epsilon == Fraction(plan.row_epsilon)
        assert not set(persons) & set(
            frame["who"].to_numpy()[~release.secrets.released & np.isin(frame["who"], persons, invert=True)]
        )
    else:
        assert 3 * (plan.reference_epsilon + Fraction(plan.row_epsilon)) <= 1
        assert seen.rows == [len(release.data)]  # the reference is learned from the same rows, at most three a person
    assert 3 * (plan.reference_epsilon + Fraction(plan.row_epsilon)) >= Fraction(999, 1000)
    assert release.guarantee.epsilon == 1.0
    assert release.guarantee.unit == PrivacyUnit.rows_of("who", 3)


# ---- the ledger ----


def test_the_ledger_is_charged_once(tmp_path: Path) -> None:
    with Ledger.create(tmp_path / "ledger.db") as ledger:
        dipriv.privatize(people(), 0.75, ledger=ledger, dataset="people")
        assert ledger.dataset("people").spent == 0.75
        assert [record.state for record in ledger.records("people")] == ["done"]
        ledger.set_budget("people", 1.0)
        with pytest.raises(BudgetError):
            dipriv.privatize(people(), 0.5, ledger=ledger)
        refused(
            DisclosureError,
            "held out none",
            call=lambda: dipriv.privatize(people(), 0.1, reference="holdout", ledger=ledger),
        )


def test_epsilon_is_spent_before_anything_is_learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Ledger.create(tmp_path / "ledger.db") as ledger:

        def fails(*_: object) -> LearnedNetwork:
            assert ledger.dataset("people").spent == 1
            raise InputError("no.", "No.")

        monkeypatch.setattr(learning, "learn", fails)
        for call in (
            lambda: dipriv.privatize(people(), 1.0, ledger=ledger, dataset="people"),
            lambda: run(tmp_path, pa.table(people()), ledger=ledger, new_dataset="files"),
        ):
            with pytest.raises((InputError, AssertionError)):
                call()
        assert ledger.dataset("people").spent == 1
        assert ledger.dataset("files").spent == 1
        assert [record.state for record in ledger.records("people")] == ["failed"]
        assert not list(tmp_path.glob("out*"))


def test_what_the_budget_refuses_is_not_learned(tmp_path: Path, seen: Seen) -> None:
    with Ledger.create(tmp_path / "ledger.db") as ledger:
        ledger.set_budget("people", 0.5)
        with pytest.raises(BudgetError):
            dipriv.privatize(people(), 1.0, ledger=ledger, dataset="people")
        assert ledger.dataset("people").spent == 0
    assert seen.budgets == []


# ---- refusals ----


def test_labels_that_no_schema_declares_are_refused_on_request() -> None:
    strict = Private(labels="declared")
    frame = people().drop(columns="sex")
    for given in (frame, frame.astype({"city": "category"})):  # categories come from the rows
        refused(
            SchemaError,
            "does not declare the labels of 'city'",
            "Categorical",
            call=lambda given=given: dipriv.privatize(given, 1.0, reference=strict),  # type: ignore[misc]
        )
    declared = {"city": Categorical(("Bonn", "Köln", "Ulm", "Rom"))}
    said = dipriv.privatize(frame, 1.0, reference=strict, schema=declared, seed=1)
    assert set(said.data["city"]) <= {"Bonn", "Köln", "Ulm", "Rom"}
    dipriv.privatize(frame.drop(columns="city"), 1.0, reference=strict)
    dipriv.privatize(frame.astype({"city": "category"}), 1.0, reference=strict, schema=declared)
    dipriv.privatize(frame, 1.0, reference=strict, keep=["city"])


def test_a_label_that_was_not_declared_is_no_error_and_never_comes_out() -> None:
    """An error would tell that somebody has it."""
    declared = {"city": Categorical(("Bonn", "Köln"))}
    frame = people().drop(columns="sex")
    released = dipriv.privatize(frame, 100.0, labels="declared", schema=declared, seed=1).data
    assert set(released["city"]) == {"Bonn", "Köln"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"reference": Private(target="nobody")}, "'nobody'"),
        ({"schema": {"city": Categorical(("a", "b"), encoding="onehot")}}, "dummy variables"),
        ({"schema": {"city": Continuous()}}, "declared Continuous()"),
        ({"split": "mine"}, "expected a split, got str"),
    ],
    ids=["target", "onehot", "kind", "split"],
)
def test_bad_requests_are_refused_before_anything_is_learned(options: dict[str, Any], words: str, seen: Seen) -> None:
    with pytest.raises(InputError) as caught:
        dipriv.privatize(people(), 1.0, **options)
    assert words in str(caught.value)
    assert seen.budgets == []


@pytest.mark.parametrize("share", [0, 1, -0.5, 2.0, True, "half", float("nan")])
def test_shares_are_between_0_and_1(share: Any) -> None:
    with pytest.raises(InputError, match="reference_share"):
        Private(reference_share=share)


def test_free_text_is_refused_by_its_public_labels_and_else_other() -> None:
    frame = people().assign(note=[f"met {i} people on the way home" for i in range(N)])
    with pytest.raises(SchemaError, match="'note' looks like free text"):
        dipriv.privatize(frame, 1.0, labels="public")
    released = dipriv.privatize(frame, 1.0).data  # nothing about the labels is read before ε is spent
    assert set(released["note"]) == {"(other)"}


@pytest.mark.parametrize(
    "options", [{"target": "age"}, {"reference_share": 0.5}, {"labels": "public"}, {"pairs": [("age", "pay")]}]
)
def test_files_need_a_private_reference_for_its_options(options: dict[str, Any], tmp_path: Path) -> None:
    refused(
        InputError,
        "the reference is not private",
        call=lambda: run(tmp_path, pa.table(people()), reference="holdout", **options),
    )


# ---- nothing else is read: neighbouring tables ----

EXTREMES: dict[str, dict[str, Any]] = {
    "real": {"1e300": 1e300, "-1e300": -1e300, "inf": np.inf, "-inf": -np.inf, "null": np.nan, "tiny": 5e-324},
    "short": {"3e38": 3e38, "inf": np.inf, "-inf": -np.inf, "null": np.nan},
    "cents": {"1e308": 1e308, "off the step": 0.123456789, "-inf": -np.inf},
    "count": {"huge": 2**63 - 1, "low": -(2**63)},
    "unsigned": {"huge": 2**64 - 1},
    "byte": {"low": -128, "high": 127},
    "day": {"far": pd.Timestamp("2262-01-01"), "past": pd.Timestamp("1700-03-04 05:06:07.123456"), "null": pd.NaT},
    "lasts": {"long": pd.Timedelta(days=100_000), "null": pd.NaT},
    "ok": {"true": True},
}


def base(rows: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(8)
    return pd.DataFrame(
        {
            "real": rng.normal(size=rows),
            "short": rng.exponential(size=rows).astype(np.float32),
            "cents": np.round(rng.lognormal(size=rows), 2),
            "count": rng.poisson(4, rows),
            "unsigned": rng.poisson(9, rows).astype(np.uint64),
            "byte": rng.integers(0, 5, rows).astype(np.int8),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 500, rows), unit="D"),
            "lasts": pd.to_timedelta(rng.integers(0, 500, rows), unit="min"),
            "ok": np.zeros(rows, dtype=bool),
        }
    )


def neighbour(column: str, name: str) -> pd.DataFrame:
    frame = base()
    frame.loc[17, column] = EXTREMES[column][name]
    assert frame.dtypes.equals(base().dtypes)
    return frame


@cache
def usual_release(column: str, seed: int) -> dipriv.Release[Any]:
    return dipriv.privatize(base()[[column]], 1.0, seed=seed)


@pytest.mark.parametrize(
    ("column", "name"), [(column, name) for column, found in EXTREMES.items() for name in found], ids=str
)
def test_one_extreme_row_changes_no_public_fact(column: str, name: str) -> None:
    """The same noise: kinds, promise, types and errors are those of the table without it."""
    for seed in range(2):
        one = usual_release(column, seed)
        other = dipriv.privatize(neighbour(column, name)[[column]], 1.0, seed=seed)
        assert one.schema == other.schema
        assert one.guarantee == other.guarantee
        assert one.data.dtypes.equals(other.data.dtypes)
        assert len(one.data) == len(other.data) == 400
        if other.data[column].dtype.kind == "f":
            assert other.data[column].dropna().abs().max() < 1e5


TICKS: dict[str, tuple[pa.DataType, pa.DataType, tuple[int, int], list[int]]] = {
    "date32": (pa.int32(), pa.date32(), (0, 9000), [2**31 - 1, -(2**31)]),
    "time32": (pa.int32(), pa.time32("s"), (0, 3600), [86_399]),
    "time64": (pa.int64(), pa.time64("us"), (0, 10**9), [86_400 * 10**6 - 1]),
    "duration": (pa.int64(), pa.duration("ns"), (0, 10**12), [2**63 - 1, -(2**63)]),
    "seconds": (pa.int64(), pa.timestamp("s"), (10**9, 2 * 10**9), [2**63 - 1, -(2**63)]),
    "zoned": (pa.int64(), pa.timestamp("ns", "UTC"), (10**18, 15 * 10**17), [2**63 - 1]),
    "decimal": (pa.int64(), pa.decimal128(38, 2), (0, 1000), [2**63 - 1, -(2**63)]),
    "float16": (pa.int32(), pa.float16(), (0, 100), [65_504]),
}


@pytest.mark.parametrize("name", TICKS)
def test_one_extreme_row_of_any_arrow_type_changes_no_public_fact(name: str) -> None:
    number, kind, ends, extremes = TICKS[name]
    ticks = np.random.default_rng(9).integers(*ends, 300).tolist()
    tables_ = [
        pa.table({"z": pa.array([*ticks, last], number).cast(kind), "o": np.arange(301) % 3})
        for last in (ticks[0], None, *extremes)
    ]
    for columns in (["z"], ["z", "o"]):
        one, *others = (dipriv.privatize(table.select(columns), 1.0, seed=3) for table in tables_)
        for other in others:
            other.data.validate(full=True)
            assert one.schema == other.schema
            assert one.guarantee == other.guarantee
            assert one.data.schema.equals(other.data.schema)


def test_infinities_are_clipped() -> None:
    frame = neighbour("real", "inf")[["real"]]
    released = dipriv.privatize(frame, 1.0).data["real"]
    assert not np.isinf(released).any()  # noise may make nulls, in one of 100 columns


def test_a_stream_of_batches_holds_infinities_too() -> None:
    """As `transform` does: a refusal would tell that somebody in the batch is infinite."""
    table = pa.table({"x": np.arange(500.0)})
    dip = dipriv.DIP(1.0, seed=1).fit(table)
    batch = pa.record_batch({"x": np.array([1.0, np.inf, -np.inf, 3.0])})
    expected = dip.transform(pa.Table.from_batches([batch]))
    streamed = pa.Table.from_batches(list(dip.transform_batches([batch])))
    assert streamed.equals(expected)


SEEDS = 60
Facts = tuple[float, ...]
Plan = Callable[[tables.Table], list[Domain]]


def facts_of(found: LearnedNetwork) -> Facts:
    """How many cells, their lowest and highest codes, how many kinds of missing cells; the kind and its bounds."""
    (codec,), (kind,) = found.codecs, found.kinds
    assert isinstance(codec, BinnedCodec | LevelsCodec)
    ends = codec.starts[[0, -1]] if isinstance(codec, BinnedCodec) else codec.levels[[0, -1]]
    bounds = getattr(kind, "lower", None) or 0.0, getattr(kind, "upper", None) or 0.0
    return (codec.states, *ends.astype(float).tolist(), len(codec.missing), kind.name == "discrete", *bounds)


def learned_facts(frame: pd.DataFrame, seed: int, plan: Plan) -> list[Facts]:
    table = tables.read(frame)
    rows = TableValues(CountedTables(table.rows, lambda: [table]))
    domains = plan(table)
    shares = divide(domains, table.rows, Fraction(1, 2), Fraction(0))
    return [facts_of(learn(domains, rows, shares, (), bits(seed + k))) for k in range(SEEDS)]


def honest(table: tables.Table) -> list[Domain]:
    return [domain_of(table.column(name).numeric(None), None) for name in table.names]


def leaky(table: tables.Table) -> list[Domain]:
    """Bounds read from the rows, as many programs do."""
    (name,) = table.names
    values = table.cells(name).present
    return [domain_of(table.column(name).numeric(None), Continuous(float(values.min()), float(values.max())))]


def broken_promise(one: list[Facts], other: list[Facts], epsilon: float) -> float:
    """The most by which ln(p/q) certainly exceeds ε, over all events that a fact is at least, or at most, so much."""
    n = len(one)
    left, right = np.array(one), np.array(other)
    events = [
        (sign * left[:, fact] >= sign * at, sign * right[:, fact] >= sign * at)
        for fact in range(left.shape[1])
        for at in np.unique(np.concatenate([left[:, fact], right[:, fact]]))
        for sign in (-1, 1)
    ]
    alarm = ALARM / (2 * len(events))
    worst = -np.inf
    for here, there in events:
        for p, q in ((int(here.sum()), int(there.sum())), (int(there.sum()), int(here.sum()))):
            at_least = stats.beta.ppf(alarm, p, n - p + 1) if p else 0.0  # Clopper-Pearson
            at_most = stats.beta.ppf(1 - alarm, q + 1, n - q) if q < n else 1.0
            if at_least > 0:
                worst = max(worst, float(np.log(at_least / at_most)) - epsilon)
    return worst


@pytest.mark.slow
@pytest.mark.parametrize(
    ("column", "extremes"), [("short", [3e38]), ("few", [2**15 - 1, -(2**15)])], ids=["reals", "whole numbers"]
)
def test_the_cells_of_neighbouring_tables_have_nearly_the_same_law(column: str, extremes: list[Any]) -> None:
    """No event about the cells is likelier by more than e^ε with an extreme row; bounds read from the rows fail."""
    usual = base().assign(few=base()["count"].astype(np.int16))[[column]]
    usual_facts = learned_facts(usual, 0, honest)
    for number, value in enumerate(extremes):
        other = usual.copy()
        other.loc[17, column] = value
        assert broken_promise(usual_facts, learned_facts(other, 1000 * (number + 1), honest), 0.5) <= 0
    if column == "few":
        leaked = learned_facts(usual, 0, leaky), learned_facts(other, 1000, leaky)
        assert broken_promise(*leaked, 0.5) > 0  # control


# ---- files ----


def run(
    folder: Path, table: pa.Table, name: str = "in.parquet", out: str = "out.parquet", **asked: Any
) -> dipriv.Release[Any]:
    file = folder / name
    if not file.exists():
        with FileSink.at(file) as sink:
            for batch in table.to_batches(max_chunksize=asked.pop("batch", 400)):
                sink.write(batch)
            sink.commit()
    asked.pop("batch", None)
    return dipriv.privatize_file(file, folder / out, asked.pop("epsilon", 1.0), force=True, **asked)


def plain(rows: int = N) -> pa.Table:
    """Columns that CSV can tell the types of."""
    frame = people(rows).reset_index(drop=True)
    return pa.table(frame[["age", "pay", "cents", "city", "ok"]]).replace_schema_metadata(None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("extension", "options"),
    [
        ("parquet", {}),
        ("parquet", {"target": "pay"}),
        ("parquet", {"holdout": 0.5}),
        ("parquet", {"unit": "age", "rows_per_unit": 2}),
        ("parquet", {"keep": ("city",)}),
        ("csv", {}),
        ("csv", {"holdout": 0.5}),
        ("csv", {"unit": "age", "rows_per_unit": 2}),
        ("arrow", {}),
        ("csv.gz", {}),
    ],
    ids=str,
)
def test_a_file_gives_the_rows_of_a_table_in_memory(extension: str, options: dict[str, Any], tmp_path: Path) -> None:
    done = run(tmp_path, plain(), f"in.{extension}", f"out.{extension}", seed=7, **options)
    released = File.at(tmp_path / f"out.{extension}").read()
    own = dict(options)
    reference = Private(own.pop("target", None))
    same = dipriv.privatize(plain(), 1.0, reference=reference, seed=7, **own)
    if "csv" in extension:
        same_data = same.data.cast(released.schema)
        assert released.to_pydict() == same_data.to_pydict()
    else:
        assert released.equals(same.data)
    extra = (Assumption(AssumptionKind.FILE_TYPES_PUBLIC),) if extension.startswith("csv") else ()
    assert done.guarantee == replace(same.guarantee, assumptions=(*same.guarantee.assumptions, *extra))
    assert (done.row_counts.read, done.n_rows) == (N, same.n_rows)


@pytest.mark.parametrize("batch", [23, 100_000])
def test_batches_do_not_matter(batch: int, tmp_path: Path) -> None:
    table = plain(300)
    run(tmp_path, table, "in.arrow", "out.arrow", seed=3, batch=batch)
    expected = dipriv.privatize(table, 1.0, seed=3).data
    assert File.at(tmp_path / "out.arrow").read().equals(expected)


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts how often a file is read."""
    count = [0]
    real = FileBatches.batches

    def counted(source: FileBatches, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        count[0] += 1
        return real(source, names)

    monkeypatch.setattr(FileBatches, "batches", counted)
    return count


def test_a_file_is_read_a_few_times_only(tmp_path: Path, passes: list[int]) -> None:
    """64 levels of a tree, some 14 of them a pass; types, steps, tables and the release have one pass each."""
    run(tmp_path, plain(5000), seed=3)
    assert passes[0] <= 16


def test_more_columns_do_not_mean_more_passes(tmp_path: Path, passes: list[int]) -> None:
    rng = np.random.default_rng(5)

    def wide(columns: int) -> pa.Table:
        return pa.table({f"c{i}": rng.choice(["a", "b", "c"], 500) for i in range(columns)})

    run(tmp_path, wide(2), "two.parquet", seed=3)
    two, passes[0] = passes[0], 0
    run(tmp_path, wide(12), "twelve.parquet", seed=3)
    assert passes[0] == two


def test_infinite_numbers_in_a_file_are_no_error(tmp_path: Path) -> None:
    table = pa.table({"x": np.append(np.random.default_rng(1).normal(size=500), [np.inf, -np.inf, np.nan])})
    for extension in ("parquet", "csv"):
        run(tmp_path, table, f"in.{extension}", f"out.{extension}")
        released = File.at(tmp_path / f"out.{extension}").read()["x"].to_pylist()
        assert len(released) == 503
        assert all(value is None or abs(value) < 1e6 or value != value for value in released)


def test_a_note_beside_the_file_has_no_value(tmp_path: Path) -> None:
    done = run(tmp_path, plain())
    text = (tmp_path / "out.parquet.dipriv.json").read_text(encoding="utf-8")
    assert str(MARKER) not in text
    written = json.loads(text)["schema"]["city"]["levels"]
    released = pq.read_table(tmp_path / "out.parquet")["city"].unique().to_pylist()
    assert {*released} - {None} <= {*written} <= {"(other)", *released}  # the published labels
    assert done.schema["city"].name == "categorical"
    assert done.schema["age"].name == "discrete"


# ---- where the data is ----


def test_a_private_reference_may_be_exported(tmp_path: Path) -> None:
    frame = people()
    dip = dipriv.DIP(1.0, reference=Private(target="pay"), seed=3).fit(frame)
    dip.export_local(tmp_path / "reference")
    local = dipriv.load_local(tmp_path / "reference", seed=5)
    expected = dip.mechanism_.release(tables.read(frame), (), source(5))
    pd.testing.assert_frame_equal(local.privatize(frame), expected)
    record = {name: value.item() if hasattr(value, "item") else value for name, value in frame.iloc[5].items()}
    released = local.privatize(record | {"born": dt.datetime(2000, 1, 1)})
    assert released.keys() == set(frame.columns)


@pytest.mark.parametrize("columns", [["pay"], ["age"], ["cents"], ["city"], ["ok"], ["gap"], ["born"], ["age", "pay"]])
def test_every_sort_of_reference_survives_the_file(columns: list[str], tmp_path: Path) -> None:
    frame = people()[columns]
    dip = dipriv.DIP(1.0, seed=3).fit(frame)
    dip.export_local(tmp_path / "reference")
    local = dipriv.load_local(tmp_path / "reference", seed=5)
    expected = dip.mechanism_.release(tables.read(frame), (), source(5))
    pd.testing.assert_frame_equal(local.privatize(frame), expected)


def test_an_exported_file_has_no_cell_but_what_the_reference_holds(tmp_path: Path) -> None:
    frame = people()
    dip = dipriv.DIP(1.0, seed=3).fit(frame)
    dip.export_local(tmp_path / "reference")
    code = int(np.array([MARKER]).view(np.int64)[0])
    with np.load(tmp_path / "reference") as archive:
        manifest = archive["manifest"].tobytes()
        arrays = [archive[name] for name in archive.files if name != "manifest"]
    assert str(MARKER).encode() not in manifest
    for array in arrays:
        assert array.size < N  # counts of cells, not rows
        assert MARKER not in array
        assert code not in array
        assert MARKER * 100 not in array
    assert not any(isinstance(field, pd.DataFrame) for field in vars(dip.mechanism_).values())


def test_an_exported_promise_is_local_and_says_what_was_learned(tmp_path: Path) -> None:
    dip = dipriv.DIP(1.0).fit(people()[["age", "city"]])
    dip.export_local(tmp_path / "reference")
    said = dipriv.load_local(tmp_path / "reference").guarantee
    assert said.model is Model.LOCAL
    assert said.epsilon == dip.mechanism_.kernel.epsilon
    assert "local differential privacy" in str(said)
    assert said.assumes(AssumptionKind.RECORD_NOT_LEARNED_FROM)
    assert "(other)" in str(said)
    assert said.secure_randomness


def test_levels_of_one_column_that_nobody_has_do_no_harm() -> None:
    """A single column of levels has a short cut through its transition matrix, which must bear empty ends."""
    for cells, declared in (
        (np.full(5000, 3), Discrete(levels=(1, 2, 3, 4, 5))),
        (np.full(5000, 5), Discrete(levels=(1, 2, 3, 4, 5))),
        (np.zeros(5000, dtype=np.int64), Discrete(levels=(0, 1))),
    ):
        for seed in range(5):
            released = dipriv.privatize(pd.DataFrame({"x": cells}), 1.0, schema={"x": declared}, seed=seed).data["x"]
            assert (released == cells).mean() > 0.99


def test_a_declared_step_less_column_keeps_its_decimals() -> None:
    frame = pd.DataFrame({"x": np.tile([0.25, 0.5, 0.75], 2000)})
    released = dipriv.privatize(frame, 1.0, schema={"x": Discrete()}, seed=1).data["x"]
    assert stats.ks_2samp(frame["x"], released).statistic < 0.2
    assert not released.isin([0.0, 1.0]).all()
