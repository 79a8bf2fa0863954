"""Finding 18: small parts, repeated rows and questionnaires got a second budget, and one affirmation held for all."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.stats import binom
from typer.testing import CliRunner

import dipriv
from dipriv.cli import app
from dipriv.errors import BudgetError
from dipriv.ledger import Ledger, ReleaseRequest
from tests.golden.make_files import FILES
from tests.security.findings.test_03_second_budget import PROMISE, empty, fingerprint, is_asked_about

__all__ = ["empty"]  # a fixture

Maker = Callable[[int, np.random.Generator], pa.Table]
ALARM = 1e-6


def numbered(columns: np.ndarray) -> pa.Table:
    """A column q1, q2, ... for each column of an array."""
    return pa.table({f"q{i}": column for i, column in enumerate(columns.T)})


def of_frame(frame: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(frame, preserve_index=False)


def register(table: pa.Table, ledger: Ledger) -> None:
    ledger.reserve(ReleaseRequest("people", fingerprint(table)), 0.1, PROMISE)


def people(n: int, rng: np.random.Generator) -> pa.Table:
    """Categories alone: no id, no real numbers, and rows that mostly differ."""
    sizes = {"age": 80, "sex": 2, "job": 30, "region": 16, "hours": 60, "children": 6, "school": 9, "country": 40}
    return pa.table({name: np.minimum(size, rng.geometric(3 / (size + 2), n)) for name, size in sizes.items()})


def yes_and_no(n: int, rng: np.random.Generator) -> pa.Table:
    """Sixty questions that share two answers, and are answered alike."""
    return numbered((rng.random((n, 60)) < 0.5).astype(int))


def alike(n: int, rng: np.random.Generator) -> pa.Table:
    """Six such questions: there are seven different numbers of yes."""
    return yes_and_no(n, rng).select([f"q{i}" for i in range(6)])


def one_factor(n: int, rng: np.random.Generator) -> pa.Table:
    """Forty questions that depend on each other, with five answers each."""
    factor = rng.normal(size=(n, 1))
    return numbered(np.digitize(0.8 * factor + 0.6 * rng.normal(size=(n, 40)), [-1.5, -0.5, 0.5, 1.5]))


def few(n: int, rng: np.random.Generator) -> pa.Table:
    """Two questions with three answers."""
    return numbered(rng.choice(3, (n, 2), p=[0.5, 0.3, 0.2]))


MAKERS: dict[str, Maker] = {each.__name__: each for each in (people, yes_and_no, alike, one_factor, few)}


@pytest.mark.parametrize("share", [100, 400])
def test_a_small_part_is_asked_about(share: int, empty: Ledger) -> None:
    """It was noticed from about a twenty-fifth on; the least probability here is 0.998, for 29 of 40,000 rows."""
    table = people(40_000, np.random.default_rng(1))
    register(table, empty)
    assert is_asked_about(table.slice(1000, table.num_rows // share), empty)


def test_some_rows_without_the_column_that_chose_them_are_asked_about(empty: Ledger) -> None:
    """As in frame[frame.sex == 1].drop(columns="sex")."""
    frame = people(20_000, np.random.default_rng(2)).to_pandas()
    register(of_frame(frame), empty)
    for name in frame:
        part = frame[frame[name] == frame[name].mode()[0]].drop(columns=name)
        assert is_asked_about(of_frame(part), empty)


@pytest.mark.parametrize("make", [people, yes_and_no, one_factor], ids=lambda make: make.__name__)
@pytest.mark.parametrize("times", [2, 5])
def test_repeated_rows_are_asked_about(make: Maker, times: int, empty: Ledger) -> None:
    table = make(2000, np.random.default_rng(3))
    register(table, empty)
    assert is_asked_about(pa.concat_tables([table] * times), empty)
    assert is_asked_about(pa.concat_tables([table.slice(0, 200)] * times), empty)


def test_repeated_rows_of_few_labels_are_asked_about(empty: Ledger) -> None:
    """Sixteen distinct rows: the counts of all of them are divided by what divides all."""
    table = numbered((np.random.default_rng(4).random((3000, 4)) < [0.5, 0.4, 0.3, 0.6]).astype(int))
    register(table, empty)
    assert is_asked_about(pa.concat_tables([table] * 3), empty)


CHANGES: dict[str, Callable[[pa.Table], pa.Table]] = {
    "a row less": lambda table: table.slice(1),
    "a row more": lambda table: pa.concat_tables([table, table.slice(7, 1)]),
    "a row and a column less": lambda table: table.slice(1).drop_columns(table.column_names[:1]),
    "sorted, a row less": lambda table: table.sort_by("q1").slice(1),
    "renamed, a row less": lambda table: table.slice(1).rename_columns([f"x{i}" for i in range(table.num_columns)]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
@pytest.mark.parametrize("make", [yes_and_no, one_factor, few], ids=lambda make: make.__name__)
def test_a_questionnaire_is_asked_about_after_a_small_change(
    make: Maker, change: Callable[[pa.Table], pa.Table], empty: Ledger
) -> None:
    table = make(10_000, np.random.default_rng(5))
    register(table, empty)
    assert is_asked_about(change(table), empty)


@pytest.mark.parametrize("change", [*CHANGES][:4])
def test_a_short_questionnaire_is_asked_about_after_a_small_change(change: str, empty: Ledger) -> None:
    table = alike(300, np.random.default_rng(5))
    register(table, empty)
    assert is_asked_about(CHANGES[change](table), empty)


@pytest.mark.parametrize(
    ("n", "other"),
    [(300, 300), *(pytest.param(*sizes, marks=pytest.mark.slow) for sizes in ((3000, 3000), (10_000, 500)))],
)
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
def test_other_people_with_the_same_questionnaire_are_rarely_asked_about(
    make: Maker, n: int, other: int, empty: Ledger
) -> None:
    """Control: by derivation at most 1% for counts with names and without, 0.1% for each of eight samples of rows."""
    rng, trials = np.random.default_rng(n), 40
    register(make(n, rng), empty)
    assert sum(is_asked_about(make(other, rng), empty) for _ in range(trials)) <= binom.isf(ALARM, trials, 0.028)


def test_two_months_of_a_survey_and_users_of_one_site_are_not_asked_about(empty: Ledger) -> None:
    """Control: pairs of tables that share labels or items, but no person."""
    rng = np.random.default_rng(6)
    months = [people(4000, rng).append_column("month", [np.full(4000, month)]) for month in range(2)]
    items, users = rng.zipf(1.3, 40_000) % 2000, np.sort(rng.integers(0, 400, 40_000))
    ratings = pd.DataFrame({"user": users, "item": items, "rating": rng.integers(1, 6, 40_000)}).drop_duplicates()
    parts = [of_frame(ratings[ratings.user % 2 == half]) for half in range(2)]
    for first, second in (months, parts, [part.drop_columns("user") for part in parts]):
        register(first, empty)
        assert not is_asked_about(second, empty)


@pytest.mark.skipif("DIPRIV_DATA" not in os.environ, reason="needs the folder of data sets DIPRIV_DATA")
def test_halves_of_real_tables_are_told_from_parts(tmp_path: Path) -> None:
    """Two halves of a table have other people; a hundredth of it has the same."""
    from benchmarks.quality.tables import TABLES

    for name in ("adult", "bank-full", "national"):
        frame = TABLES[name].frame.sample(frac=1, random_state=7)
        table = of_frame(frame)
        half = table.num_rows // 2
        with Ledger.create(tmp_path / f"{name}.db") as ledger:
            register(table.slice(0, half), ledger)
            assert not is_asked_about(table.slice(half), ledger)
            assert not is_asked_about(table.slice(half, 500), ledger)
            assert is_asked_about(table.slice(50, half // 100), ledger)
    ratings = pd.read_parquet(Path(os.environ["DIPRIV_DATA"]) / "movielens" / "ml-100k-ratings.parquet")
    user = ratings[ratings.columns[0]]
    with Ledger.create(tmp_path / "ratings.db") as ledger:
        register(of_frame(ratings[user % 2 == 0]), ledger)
        others = of_frame(ratings[user % 2 == 1])
        assert not is_asked_about(others, ledger)
        assert not is_asked_about(others.drop_columns(others.column_names[:1]), ledger)
        assert is_asked_about(of_frame(ratings[user == 2]), ledger)  # a user with many ratings


def test_an_affirmation_holds_for_the_table_that_it_was_made_for(empty: Ledger) -> None:
    """`--new-dataset` let every later table of that name pass, the table of the first data set included."""
    first = people(3000, np.random.default_rng(8))
    part, other_part = first.slice(0, 1500), first.slice(1500)
    register(first, empty)
    affirmed = ReleaseRequest("others", fingerprint(part), is_new=True)
    empty.reserve(affirmed, 0.1, PROMISE)
    empty.reserve(ReleaseRequest("others", fingerprint(part)), 0.1, PROMISE)  # the same table
    empty.reserve(ReleaseRequest("others", fingerprint(part.sort_by("age"))), 0.1, PROMISE)
    with pytest.raises(BudgetError, match="data set 'people'"):
        empty.reserve(ReleaseRequest("others", fingerprint(other_part)), 0.1, PROMISE)
    for table in (part.slice(1), first.slice(1)):  # rows of both data sets
        with pytest.raises(BudgetError, match=r"(?s)dataset=\['others', 'people'\].*new_dataset='others'"):
            empty.preview(names=("others",), table=fingerprint(table), suggestion=None)
    empty.reserve(ReleaseRequest("others", fingerprint(part.slice(1)), is_new=True), 0.1, PROMISE)  # said again
    assert empty.dataset("others").releases == 4


@pytest.mark.parametrize("rows", [0, 1], ids=["the same rows", "a row less"])
def test_a_unit_that_is_renamed_or_dropped_is_refused(rows: int, empty: Ledger) -> None:
    rng = np.random.default_rng(9)
    visits = pa.table({"who": np.arange(900) // 3, "house": 5000 + np.arange(900) // 2, "pay": rng.normal(size=900)})
    options: Any = {"unit": "who", "rows_per_unit": 3, "ledger": empty, "dataset": "visits", "columns": ["pay"]}
    dipriv.privatize(visits, 0.5, **options)
    swapped = visits.rename_columns(["house", "who", "pay"]).slice(rows)
    for table in (swapped, swapped.drop_columns("house")):
        with pytest.raises(BudgetError, match="do not add up"):
            dipriv.privatize(table, 0.5, **options)
    dipriv.privatize(visits.slice(rows), 0.5, **options)  # control
    assert empty.dataset("visits").releases == 2


def test_a_guarantee_that_cannot_be_read_is_migrated_with_the_largest_delta(tmp_path: Path) -> None:
    path = Path(shutil.copy(FILES / "ledger.db", tmp_path))
    with sqlite3.connect(path) as link:
        link.execute("UPDATE dipriv_releases SET guarantee = 'torn' WHERE number = 1")
    link.close()
    with Ledger.open(path) as ledger:
        assert [record.delta for record in ledger.records("people")] == [1.0, 0.0, 0.0, 0.0, 0.0]
        found = ledger.dataset("people")
        assert (found.delta_spent, found.power()) == (1.0, None)
        with pytest.raises(BudgetError, match="δ") as caught:
            ledger.reserve("people", 0.1, PROMISE)
        assert caught.value.remedy.startswith("Raise the budget")


def test_a_mistyped_name_gets_no_budget_and_a_budget_below_what_is_spent_is_said(tmp_path: Path) -> None:
    where = ("--ledger", str(tmp_path / "ledger.db"))

    def run(*arguments: object) -> tuple[str, str]:
        found = CliRunner().invoke(app, ["ledger", *map(str, arguments), *where])
        return found.stdout, found.stderr

    with Ledger.create(where[1]) as ledger:
        run("budget", "people", 3)
        ledger.reserve("people", 2.0, PROMISE)
        for name, other in product(("peple", "People", "people2"), ((), ("--delta", 1e-7))):
            error = run("budget", name, 9, *other)[1]
            assert "did you mean 'people'?" in error
            assert "--new" in error
        assert "did you mean 'people'?" in run("show", "peopel")[1]
        assert [found.name for found in ledger.datasets()] == ["people"]
        assert "more is spent" not in run("budget", "people", 2)[0]
        assert "more is spent than the budget allows" in run("budget", "people", 1)[0]
        assert "more is spent than the budget allows" in run("show", "people")[0]
        assert not run("budget", "people2", 1, "--new")[1]
        assert not run("budget", "visits", 1)[1]  # control: like no other
        assert {found.name for found in ledger.datasets()} == {"people", "people2", "visits"}
