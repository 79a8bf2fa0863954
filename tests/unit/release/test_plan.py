"""A plan is a function of public facts: it reads nothing else, spends nothing, and foresees errors about right."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dipriv
from dipriv._base.arrays import FloatArray
from dipriv._base.html import text
from dipriv.cli import app
from dipriv.errors import InputError, SchemaError
from dipriv.release import forecast as module
from dipriv.release.options import ReleaseOptions
from dipriv.report.page import render
from dipriv.schema import Kind
from dipriv.sources import open_source
from dipriv.sources.protocol import Scan
from dipriv.utility.forecast import PublicFacts, Setting, error_model
from dipriv.utility.plan_html import page, picture
from dipriv.utility.total_variation import total_variation

N = 600
COLOURS = ("red", "green", "blue", "black")


def table(seed: int, rows: int = N, labels: int = 4) -> pd.DataFrame:
    """Tables of different seeds have nothing in common but public facts: rows, names, types, number of labels."""
    rng = np.random.default_rng(seed)
    centre = 10.0 ** rng.integers(-3, 6)
    return pd.DataFrame(
        {
            "real": rng.normal(centre, centre / 7, rows),
            "whole": rng.integers(0, 2 + 10**seed, rows),
            "yes": rng.random(rows) < (0.9 if seed else 0.1),
            "text": [
                f"label {seed} {number}" for number in [*range(labels), *rng.zipf(2 + seed, rows - labels) % labels]
            ],
            "listed": rng.choice(COLOURS[: 2 + seed], rows),
            "day": pd.Timestamp("1970-01-01") + pd.to_timedelta(rng.integers(0, 9 + 9000 * seed, rows), unit="D"),
            "person": rng.integers(0, rows, rows),
        }
    )


SCHEMA: dict[str, Kind] = {"listed": dipriv.Categorical(levels=COLOURS), "whole": dipriv.Discrete(step=1)}
OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "schema": {"schema": SCHEMA},
    "target": {"target": "yes", "pairs": [("real", "whole")]},
    "holdout": {"holdout": 0.3},
    "unit": {"unit": "person", "rows_per_unit": 2},
    "pure": {"delta": 0.0, "drop": ["text"], "schema": SCHEMA},
    "share": {"reference_share": 0.7, "kernel": "laplace", "columns": ["yes", "real"]},
    "one column": {"columns": ["whole"]},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_tables_with_equal_facts_have_equal_plans_to_the_last_digit(options: dict[str, Any]) -> None:
    first, second = (dipriv.plan(table(seed), (0.5, 4.0), **options) for seed in (0, 1))
    assert json.dumps(first.to_dict()) == json.dumps(second.to_dict())
    assert first == second
    assert str(first) == str(second)
    more = dipriv.plan(table(0, rows=N + 1), (0.5, 4.0), **options)
    assert more.to_dict() != first.to_dict()  # control: the number of rows is a public fact, and matters


def test_labels_that_are_called_public_count_by_their_number_alone() -> None:
    options: dict[str, Any] = {"labels": "public", "columns": ["real", "text"]}
    first, second, other = (dipriv.plan(table(*of), **options) for of in ((0, N), (1, N), (0, N, 6)))
    assert first == second
    assert [column.cells for column in first.epsilons[0].columns][1] == 4
    assert other != first  # control


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_command_gives_equal_plans_for_files_with_equal_facts(ending: str, tmp_path: Path) -> None:
    printed = []
    ledger = tmp_path / "ledger.db"
    for seed in (0, 1, 2):
        frame, file = table(seed, rows=N + (seed == 2)), tmp_path / f"table{seed}.{ending}"
        if ending == "csv":
            frame.to_csv(file, index=False)
        else:
            frame.to_parquet(file)
        asked = ["plan", str(file), "-e", "1", "-e", "4", "--drop", "person", "--json"]
        ran = CliRunner().invoke(app, asked, env={"DIPRIV_LEDGER": str(ledger)}, catch_exceptions=False)
        assert ran.exit_code == 0
        printed.append(ran.stdout)
    assert printed[0] == printed[1] != printed[2]  # the third has another number of rows
    assert [one["epsilon"] for one in json.loads(printed[0])["epsilons"]] == [1.0, 4.0]
    assert not ledger.exists()


@dataclass(eq=False)
class SealedRows:
    """Rows whose number and columns are known, and that refuse everything else."""

    n_rows: int
    _columns: list[Any] = field(repr=False)
    closed: bool = False

    def columns(self, names: Any) -> list[Any]:
        return self._columns

    def close(self) -> None:
        self.closed = True

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"a plan asked its rows for {name}")


def test_nothing_is_asked_of_rows_but_their_number_and_types() -> None:
    source = open_source(table(0))
    options = ReleaseOptions(1.0)
    expected = module.public_facts(source, options)
    columns = source.scan(Scan(source.column_names)).columns(source.column_names)
    rows = SealedRows(N, columns)

    class Sealed:
        column_names = source.column_names

        def scan(self, request: Any) -> SealedRows:
            return rows

    found = module.public_facts(cast(Any, Sealed()), options)
    assert rows.closed
    assert [column.name for column in found.columns] == [column.name for column in expected.columns]
    with pytest.raises(AssertionError, match="asked its rows for"):  # control: public labels must be read
        module.public_facts(cast(Any, Sealed()), ReleaseOptions(1.0, labels="public"))


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"reference": "holdout"}, "private reference"),
        ({"ledger": "ledger.db"}, "no effect"),
        ({"seed": 1}, "no effect"),
        ({"target": "nobody"}, "target names .nobody., which is not a column"),
        ({"epsilon": []}, "no epsilon"),
        ({"epsilon": [1.0, -1.0]}, "epsilon"),
    ],
)
def test_refusals(options: dict[str, Any], fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        dipriv.plan(table(0), **options)


def test_what_a_release_refuses_a_plan_refuses() -> None:
    with pytest.raises(SchemaError, match="delta=0"):
        dipriv.plan(table(0), delta=0.0)


def test_more_epsilon_and_more_rows_buy_smaller_errors() -> None:
    plan = dipriv.plan(table(0, rows=2000).drop(columns="person"))
    errors = [one.error for one in plan.epsilons]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > 2 * errors[-1]
    assert [one.fidelity for one in plan.epsilons] == sorted(one.fidelity for one in plan.epsilons)
    assert dipriv.plan(table(0, rows=20_000).drop(columns="person")).epsilons[0].error < errors[0] / 3


def test_a_unit_divides_epsilon_among_its_rows() -> None:
    of_rows = dipriv.plan(table(0), 1.0, drop=["person"])
    of_units = dipriv.plan(table(0), 2.0, unit="person", rows_per_unit=2)
    assert of_units.epsilons[0].epsilon == 2.0
    assert of_units.epsilons[0].error == pytest.approx(of_rows.epsilons[0].error, rel=0.05)


def _shares(count: int) -> FloatArray:
    weights = np.arange(1.0, count + 1.0) ** -1.5
    return np.asarray(weights / weights.sum())


@pytest.mark.slow
def test_errors_are_about_right_for_shares_that_are_given() -> None:
    """Three declared columns, 60 releases: the mean total variation has a standard error below 8%."""
    rng = np.random.default_rng(3)
    counts = {"a": 2, "b": 5, "c": 9}
    frame = pd.DataFrame({name: rng.choice(list("uvwxyzpqr")[:k], 3000, p=_shares(k)) for name, k in counts.items()})
    schema: dict[str, Kind] = {name: dipriv.Categorical(levels=tuple("uvwxyzpqr")[:k]) for name, k in counts.items()}
    releases = [dipriv.privatize(frame, 1.0, schema=schema, seed=seed).data for seed in range(60)]
    options = ReleaseOptions(1.0, schema=schema)
    facts = module.public_facts(open_source(frame), options)
    wrong = PublicFacts(facts.rows // 4, facts.columns, facts.schema)
    spec: Any = options.spec
    setting = Setting(1.0, options.row_delta, spec, options.kernel_spec)
    model, control = (error_model(given, setting) for given in (facts, wrong))
    for number, name in enumerate(counts):
        labels = schema_levels(schema[name])
        true = shares_of(frame[name], labels)
        measured = np.mean([total_variation(true, shares_of(one[name], labels)) for one in releases])
        assert model.total_variation(number, true) == pytest.approx(measured, rel=0.5)
        assert control.total_variation(number, true) > 1.5 * measured  # a quarter of the rows


def schema_levels(kind: Kind) -> tuple[Any, ...]:
    assert isinstance(kind, dipriv.Categorical)
    assert kind.levels is not None
    return kind.levels


def shares_of(column: pd.Series[Any], labels: tuple[Any, ...]) -> FloatArray:
    return np.array([float((column == label).mean()) for label in labels])


def test_what_would_change_is_said() -> None:
    plan = dipriv.plan(table(0), [1.0, 8.0])
    options = [change.option for change in plan.changes]
    assert options == ["schema", "drop", "target", "holdout=0.25", "delta=1e-6"]
    assert plan.changes[0].columns == ("text", "listed")
    assert all(text(change.text) in plan._repr_html_() for change in plan.changes)
    declared = dipriv.plan(table(0), 8.0, drop=["text"], schema=SCHEMA, target="yes", holdout=0.3)
    assert [change.option for change in declared.changes] == [
        "drop",
        "no target",
        "no holdout",
        "delta=1e-6",
        "delta=0",
    ]


def test_the_recommendation_names_the_smallest_epsilon_that_is_enough() -> None:
    frame = table(0, rows=20_000).drop(columns=["person", "text"])
    enough = dipriv.plan(frame, schema=SCHEMA)
    assert enough.recommended == enough.chosen.epsilon
    assert f"Use ε = {enough.recommended:g}" in enough.recommendation
    few = dipriv.plan(frame.head(60), schema=SCHEMA)
    assert few.recommended is None
    assert "No ε up to 8 is enough" in few.recommendation


def test_columns_that_are_expected_to_be_good_are_not_called_lost_in_one_breath() -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"town": rng.choice(["a", "b"], 4000), "code": rng.choice(["c", "d"], 4000)})
    said = dipriv.plan(frame, [1, 4]).recommendation
    assert "2 of 2 columns are expected to be good" in said
    assert ", but with many labels or values 'town', 'code' may be lost." in said


@pytest.mark.parametrize(
    "options", [{}, *(pytest.param(one, marks=pytest.mark.slow) for one in ({"target": "works"}, {"labels": "public"}))]
)
def test_a_release_says_what_more_epsilon_would_give(options: dict[str, Any]) -> None:
    """From its public facts alone: what dipriv.plan says of the same table."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"age": rng.integers(18, 90, 1000), "town": rng.choice(["a", "b", "c"], 1000)})
    frame["works"] = rng.random(1000) < 0.5
    release = dipriv.privatize(frame, 1.0, **options)
    delta = release.guarantee.delta
    same, fewer = (replace(dipriv.plan(of, [1, 2, 4, 8], **options), delta=delta) for of in (frame, frame.head(900)))
    assert release.forecast == same != fewer
    assert "What more ε would give" in render(release.report(original=frame))
    assert dipriv.privatize(frame, 1.0, reference="holdout").forecast is None


def test_columns_may_be_good_where_pairs_are_not() -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({f"x{place}": rng.integers(0, 2, 6000) for place in range(9)})
    said = dipriv.plan(frame, [0.1, 2.0]).recommendation
    assert "For single columns ε = 2 is enough" in said
    assert "For pairs of columns no ε up to 2 is enough" in said
    assert "No ε up to 0.1 is enough" in dipriv.plan(frame, 0.1).recommendation  # control


def test_html_is_escaped_and_has_a_picture() -> None:
    frame = pd.DataFrame({"<script>x": [1, 2, 3] * 50, "plain": [True, False, True] * 50})
    plan = dipriv.plan(frame, 1.0)
    html = page(plan)
    assert "<script>" not in html
    assert "&lt;script&gt;x" in html
    assert html.count("<svg") == 1
    assert picture(plan).count("<circle") == 1 + 2  # the legend, and a dot for each column


def test_labels_that_were_read_from_the_rows_are_said_to_be() -> None:
    """With labels="public" a label more changes the forecast: everything that shows it says where labels come from."""
    table = pd.DataFrame({"t": ["a", "b", "c", "d"] * 100})
    said = "The labels of t were read from the rows: you call them public."
    found = dipriv.plan(table, 1.0, labels="public")
    assert found.labels_read == ("t",)
    assert said in str(found)
    assert said in found._repr_html_()
    assert found.to_dict()["labels_read"] == ["t"]
    private = dipriv.plan(table, 1.0)
    assert not private.labels_read
    assert said not in str(private) + private._repr_html_()
