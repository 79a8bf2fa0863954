"""From forms to a release: it is that of the command line, and what is wrong in a form is said, all at once."""

from __future__ import annotations

import html
import re
import shlex
from collections.abc import Iterator
from datetime import date
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import dipriv
from dipriv.cli import app
from dipriv.ledger import Ledger
from dipriv.studio import work
from dipriv.studio.sketches import sketch
from tests.unit.studio.support import Client, studio

ROWS = 400


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine").mkdir()
    rng = np.random.default_rng(40)
    lines = [
        f"{row};{rng.integers(18, 80)};{'ab'[row % 2]};{rng.integers(0, 5)},5;{row % 9 if row % 3 else -9}"
        for row in range(ROWS)
    ]
    (tmp_path / "mine" / "people.csv").write_text("id;age;town, old;pay;left\n" + "\n".join(lines) + "\n")
    for name in ("ledger.db", "other.db"):
        Ledger.create(tmp_path / name).close()
    return tmp_path


@pytest.fixture
def client(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setattr(work, "_write_report", lambda *_: "")
    place = str(folder / "ledger.db")
    with studio(folder / "cache", folder / "mine", ledger=place, ledger_shown=place) as running:
        client = Client(running).begin()
        client.do("open", path="people.csv")
        yield client


def shown(page: str, title: str) -> str:
    """The text of a box to copy."""
    found = re.search(rf'<pre id="{title}"[^>]*>(.*?)</pre>', page, re.DOTALL)
    assert found, page
    return html.unescape(found[1])


TABLE = {
    "use-0": "drop",
    "kind-1": "discrete",
    "step-1": "1",
    "kind-2": "categorical",
    "values-2": "a\nb\nc",
    "type-3": "number",
    "missing": "-9",
    "decimal": ",",
    "go": "question",
}


def test_a_release_is_that_of_the_command_and_of_the_python_that_are_shown(
    client: Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "used for" in client.do("table", **TABLE).text
    asked = client.do(
        "question", target="age", one="town, old", other="pay", rules="age < 20 => pay is missing", go="pair"
    ).text
    assert "town, old with pay" in asked
    planned = client.do("question", target="age", rules="age < 20 => pay is missing", go="budget").text
    assert planned.count('class="panel"') == len(work.EPSILONS)
    assert "spend ε = 2" in client.do("budget", epsilon="2", delta="1e-8").text
    done = client.do("release", output="out.csv", seed="7", people="new", dataset="folk").text
    assert "NOT PRIVATE" in done
    assert "Verdict" in done
    assert re.search(r"<p class=\"caution\">Private: .*private rows break the rule", done)
    command, python = shown(done, "done-command"), shown(done, "done-python")
    mine = folder / "mine"
    first = (mine / "out.csv").read_bytes()
    assert client.download("0") == first
    schema = dipriv.Schema.from_toml(client.download("schema-of-release").decode())
    assert schema["town, old"].levels == ("a", "b", "c")  # type: ignore[union-attr]
    assert "id" not in (mine / "out.csv").read_text().splitlines()[0]
    schema.save(mine / "people-schema.toml")
    monkeypatch.chdir(mine)
    (mine / "out.csv").rename(mine / "first.csv")
    ran = CliRunner().invoke(app, shlex.split(command.replace("ledger.db", "other.db"))[1:])
    assert ran.exit_code == 0, ran.output
    assert (mine / "out.csv").read_bytes() == first
    (mine / "out.csv").unlink()
    with pytest.warns(dipriv.RuleWarning):
        exec(compile(python.replace("ledger.db", "other.db"), "shown", "exec"), {})
    assert (mine / "out.csv").read_bytes() == first
    assert client.download("2") == (mine / "out.csv.sheet.json").read_bytes()


def test_all_problems_of_a_form_are_said_at_once_and_nothing_changes(client: Client) -> None:
    tab = client.server.tabs.find(client.tab)
    assert tab is not None
    before = tab.choices
    wrong = {"use-0": "lose", "kind-1": "discrete", "step-1": "x", "values-2": "a", "skip": "-2", "lower-3": "1"}
    said = client.do("table", **wrong).text
    for place in ("&#39;id&#39;", "step is not a number", "&#39;town, old&#39;: choose a kind", "&#39;pay&#39;", "kip"):
        assert place in said, place
    assert "<form" not in said  # the form itself stays in the page, as it was filled in
    assert tab.choices == before
    assert "not a privatized column" in client.do("question", one="age", other="none", go="budget").text
    assert "ε is not a number" in client.do("budget", epsilon="much").text
    assert 'role="alert"' in client.do("budget", epsilon="-1").text
    assert "The name of the data set is missing" in client.do("release", output="x.csv", people="same").text
    assert "not an action" in client.do("nothing").text


def test_what_was_declared_can_be_taken_back(client: Client) -> None:
    tab = client.server.tabs.find(client.tab)
    assert tab is not None
    client.do("table", **TABLE)
    assert tab.choices is not None
    assert (len(tab.choices.schema), tab.choices.dialect.missing, tab.choices.drop) == (2, ("-9",), ("id",))
    page = client.ask("GET", "/view/table").text
    assert "a\nb\nc</textarea>" in page
    client.do("table", go="again")
    assert (len(tab.choices.schema), tab.choices.dialect.missing, tab.choices.drop) == (0, (), ())


def test_a_schema_may_say_how_the_file_is_written(folder: Path) -> None:
    (folder / "mine" / "odd.csv").write_text("a title\nage;pay\n" + "30;1\n40;2\n" * 50)
    schema = dipriv.Schema({"age": dipriv.Discrete(step=1)}, dipriv.Dialect(skip=1))
    with studio(folder / "cache", folder / "mine", folder / "mine" / "odd.csv", schema=schema) as running:
        seen = Client(running).begin().ask("GET", "/view").text
    assert "100 rows, 2 columns" in seen
    assert "Declare<span" in seen


def test_an_exhausted_budget_is_said_and_nothing_is_written(client: Client, folder: Path) -> None:
    with Ledger.open(folder / "ledger.db") as ledger:
        ledger.set_budget("people", 0.5)
    client.do("table", **TABLE)
    refused = client.do("release", output="out.csv", people="same", dataset="people").text
    assert "only 0.5 is left" in refused
    assert not (folder / "mine" / "out.csv").exists()
    assert "of 0.5 left" in client.ask("GET", "/view/ledger").text


def test_a_file_that_is_no_table_is_said_and_another_can_be_opened(client: Client, folder: Path) -> None:
    client.do("close")
    (folder / "mine" / "broken.parquet").write_bytes(b"PAR1 no table")
    assert 'role="alert"' in client.do("open", path="broken.parquet").text
    assert 'role="alert"' in client.upload("empty.csv", b"").text
    assert 'role="alert"' in client.upload("ragged.csv", b"a,b\n1,2\n3\n").text
    assert "400 rows" in client.do("open", path="people.csv").text


@pytest.mark.slow
def test_an_audit_is_shown_and_spends_nothing(client: Client, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dipriv, "audit", partial(dipriv.audit, draws=20_000))
    client.do("table", **TABLE)
    seen = client.do("audit").text
    assert "ttack" in seen
    assert 'aria-label="Attacks"' in seen
    with Ledger.open(folder / "ledger.db") as ledger:
        assert not ledger.datasets()


def test_sketches_are_of_all_types_and_leave_out_what_cannot_be_drawn() -> None:
    table = pa.table(
        {
            "whole": [1, 2, 2, None],
            "constant": [0.5, 0.5, 0.5, 0.5],
            "wide": [-1e308, 1e308, 0.0, float("inf")],
            "day": [date(2024, 1, 1), date(2024, 12, 31), None, None],
            "clock": pa.array([0, 1, 2, 3], pa.time64("us")),
            "label": ["a", "b", "a", None],
            "truth": [True, False, True, True],
            "coded": pa.array(["x", "y", "x", "x"]).dictionary_encode(),
            "many": [f"a very long label that is cut {row}" for row in range(4)],
            "nothing": pa.nulls(4, pa.float64()),
            "nested": [[1], [2], [3], [4]],
        }
    )
    found = sketch(table)
    assert set(table.column_names) - set(found) == {"nothing", "nested"}
    assert found["whole"].ends == ("1", "2")
    assert (found["whole"].bars[0], found["whole"].bars[-1]) == (0.5, 1.0)
    assert found["day"].ends == ("2024-01-01", "2024-12-31")
    assert (found["label"].labels, found["label"].bars) == (("a", "b"), (1.0, 0.5))
    assert all(0 <= bar <= 1 for one in found.values() for bar in one.bars)
    assert "a" not in repr(found["label"]).replace("Sketch", "").replace("more", "")
