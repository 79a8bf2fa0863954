"""The command line as a user meets it: real processes, exit codes, pipes, errors without tracebacks, kill -9."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import dipriv
from dipriv.ledger import Ledger

MARKER = "zq7-marker-xv"
NOBODY = "postgresql://user:secret@127.0.0.1:1/nothing"


def dipriv_command(
    *arguments: object, folder: Path, text: bool = True, code: int | None = 0, **more: Any
) -> subprocess.CompletedProcess[Any]:
    default = folder / "default.db"
    environment = {**os.environ, "COLUMNS": "160", "DIPRIV_LEDGER": str(default)} | more.pop("env", {})
    if not default.exists():
        Ledger.create(default).close()
    done = subprocess.run(
        [sys.executable, "-m", "dipriv", *map(str, arguments)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=text,
        check=False,
        timeout=300,
        **more,
    )
    assert code is None or done.returncode == code, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in str(done.stderr)
    return done


@pytest.mark.slow
def test_a_file_as_people_have_it(tmp_path: Path) -> None:
    """Semicolons, decimal commas, Latin-1, dates with the day first, a title, and a mark for missing cells."""
    rows = [
        f"{row % 60 + 18};{row % 90},{row % 10};{row % 28 + 1:02}.{row % 12 + 1:02}.2024;K\xf6ln" for row in range(400)
    ]
    text = "Umfrage\nalter;wert;tag;ort\n" + "\n".join([*rows, "k.A.;1,5;01.02.2024;Bonn"]) + "\n"
    (tmp_path / "t.csv").write_bytes(text.encode("latin-1"))
    said = ["--skip", "1", "--encoding", "latin-1", "--na", "k.A."]
    assert "--skip N" in dipriv_command("inspect", "t.csv", "--encoding", "latin-1", folder=tmp_path, code=1).stderr
    assert "--encoding latin-1" in dipriv_command("inspect", "t.csv", "--skip", "1", folder=tmp_path, code=1).stderr
    seen = dipriv_command("inspect", "t.csv", *said, "-o", "s.toml", folder=tmp_path).stdout
    assert "decimal comma" in seen
    assert "day first" in seen
    assert 'The file: separator ;, quote ", encoding latin-1.' in seen
    assert "[file]" in (tmp_path / "s.toml").read_text()
    dipriv_command("plan", "t.csv", *said, folder=tmp_path)
    dipriv_command("privatize", "t.csv", "-o", "out.csv", "-e", "1", *said, folder=tmp_path)
    lines = (tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "alter;wert;tag;ort"
    assert "," in lines[1].split(";")[1]
    dipriv_command("privatize", "t.csv", "-o", "by.csv", "-e", "1", "--schema", "s.toml", folder=tmp_path)
    dipriv_command("compare", "t.csv", "out.csv", *said, folder=tmp_path)
    dipriv_command("audit", "t.csv", "-e", "1", "--schema", "s.toml", "--draws", 20_000, folder=tmp_path)
    error = dipriv_command("privatize", "t.csv", "-o", "x.xlsx", "-e", "1", "--dates", "d/m", folder=tmp_path, code=1)
    assert "dmy" in error.stderr


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write(tmp_path / "people.csv")


def write(file: Path, rows: int = 2000, seed: int = 1) -> Path:
    rng = np.random.default_rng(seed)
    columns = {
        "id": np.arange(rows) + 5_000_000 * seed,
        "age": rng.integers(18, 90, rows),
        "income": rng.lognormal(10, 1, rows).round(2),
        "sex": np.array(["f", "m"])[rng.integers(0, 2, rows)],
    }
    pacsv.write_csv(pa.table(columns), file)
    return file


ASKED = ("--epsilon", "1", "--reference", "holdout", "--keep", "id")


def test_a_table_is_published(table: Path, tmp_path: Path) -> None:
    done = dipriv_command("privatize", table, "-o", "out.parquet", *ASKED, folder=tmp_path)
    released = pq.read_table(tmp_path / "out.parquet")
    assert released.column_names == ["id", "age", "income", "sex"]
    assert "ε = 1 differential privacy" in done.stdout
    assert "no formal protection" in done.stdout
    assert "ε spent 1" in done.stdout
    assert done.stderr == "Warning: columns passed through unprotected: 'id'.\n"  # and no progress bar
    again = dipriv_command("privatize", table, "-o", "out2.csv", *ASKED, folder=tmp_path)
    assert "release 2, ε spent 2" in again.stdout


@pytest.mark.slow
def test_the_result_as_json(table: Path, tmp_path: Path) -> None:
    done = dipriv_command("privatize", table, "-o", "out.csv", *ASKED, "--json", folder=tmp_path)
    told = json.loads(done.stdout)
    assert told["guarantee"]["epsilon"] == 1.0
    assert told["rows"]["read"] == 2000
    assert told["ledger"] == {
        "dataset": "people",
        "release": 1,
        "releases": 1,
        "spent": 1.0,
        "budget": 10.0,
        "delta_spent": told["guarantee"]["delta"],
        "delta_budget": 1e-6,
    }


@pytest.mark.slow
def test_too_few_rows_are_warned_of_once_on_standard_error(tmp_path: Path) -> None:
    few, many = write(tmp_path / "few.csv", 60), write(tmp_path / "many.csv", 20_000, seed=2)
    done = dipriv_command("privatize", few, "-o", "a.csv", "-e", 1, "--drop", "id", "-q", folder=tmp_path)
    assert done.stderr.count("Warning: 60 rows at ε = 1 are too few") == 1
    assert not done.stdout
    done = dipriv_command("privatize", many, "-o", "b.csv", "-e", 4, "--drop", "id", folder=tmp_path)
    assert "too few" not in done.stderr + done.stdout


@pytest.mark.slow
def test_pipes(table: Path, tmp_path: Path) -> None:
    done = dipriv_command(
        *("privatize", "-", "-o", "-", "--format", "csv", *ASKED, "--no-ledger", "--seed", "3"),
        folder=tmp_path,
        text=False,
        input=table.read_bytes(),
    )
    (tmp_path / "piped.csv").write_bytes(done.stdout)
    same = dipriv_command(
        *("privatize", table, "-o", "-", *ASKED, "--no-ledger", "--seed", "3"), folder=tmp_path, text=False
    )
    assert same.stdout == done.stdout  # in the format of the input
    dipriv_command("privatize", table, "-o", "out.csv", *ASKED, "--no-ledger", "--seed", "3", "-q", folder=tmp_path)
    assert (tmp_path / "piped.csv").read_bytes() == (tmp_path / "out.csv").read_bytes()
    assert "NOT PRIVATE: SEEDED" in done.stderr.decode()


@pytest.mark.slow
def test_a_schema_goes_from_inspect_to_privatize(table: Path, tmp_path: Path) -> None:
    shown = dipriv_command("inspect", table, "-o", "schema.toml", folder=tmp_path)
    assert "identifier" in shown.stdout
    assert set(dipriv.Schema.load(tmp_path / "schema.toml")) == {"age", "sex"}  # a real is a comment
    dipriv_command("privatize", table, "-o", "out.csv", *ASKED, "--schema", "schema.toml", folder=tmp_path)
    note = json.loads((tmp_path / "out.csv.dipriv.json").read_text(encoding="utf-8"))
    assert note["columns"]["sex"] == "categorical (declared)"
    one_rule = 'rules = ["age < 15 => income is missing"]\n[age]\nkind = "discrete"\nstep = 1\n'
    (tmp_path / "one.toml").write_text(one_rule)
    one = dipriv_command("inspect", table, "--schema", "one.toml", folder=tmp_path)
    assert "The schema fits the table: 1 column declared, 1 rule." in one.stdout


@pytest.mark.slow
def test_released_weights_are_compared_as_the_note_says(table: Path, tmp_path: Path) -> None:
    (tmp_path / "weights.toml").write_text('[income]\nkind = "weight"\ntotal = 2e12\n')
    asked = ("-e", 4, "--no-ledger", "--drop", "id", "--schema", "weights.toml")
    dipriv_command("privatize", table, "-o", "out.csv", *asked, folder=tmp_path)
    shown = dipriv_command("compare", table, "out.csv", folder=tmp_path).stdout
    assert "100.0% of the original rows lie outside" not in shown
    (tmp_path / "out.csv.dipriv.json").unlink()  # control: nothing says that weights were rescaled
    again = dipriv_command("compare", table, "out.csv", "-o", "again.html", folder=tmp_path).stdout
    assert "100.0% of the original rows lie outside" in again


@pytest.mark.slow
def test_a_release_is_compared(table: Path, tmp_path: Path) -> None:
    dipriv_command("privatize", table, "-o", "out.csv", *ASKED, "--report", "own.html", folder=tmp_path)
    asked = dipriv_command("compare", table, "out.csv", "-o", "report.html", "--target", "income", folder=tmp_path)
    assert "columns: " in asked.stdout or "columns are good" in asked.stdout
    assert "Regression of income: " in asked.stdout
    own, shown = (asked.stdout.index(text) for text in ("As the release says of itself", "As the private table shows"))
    assert own < asked.stdout.index("Verdict: ") < shown
    for name in ("own.html", "report.html"):
        page = (tmp_path / name).read_text(encoding="utf-8")
        assert ("Regression of income" in page) == (name == "report.html")
        assert "do not publish" in page
        assert "ε = 1 differential privacy" in page
    (tmp_path / "out.csv.dipriv.json").write_text("[" * 100_000)  # a note that somebody else wrote
    again = dipriv_command("compare", table, "out.csv", "-o", "again.html", folder=tmp_path)
    assert "Verdict: " not in again.stdout
    assert "ε = 1 differential privacy" not in (tmp_path / "again.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_report_of_a_release_with_a_target_has_its_regression(table: Path, tmp_path: Path) -> None:
    dipriv_command(
        "privatize", table, "-o", "out.csv", "-e", 1, "--no-ledger", "--target", "income", "--report", "own.html",
        folder=tmp_path,
    )  # fmt: skip
    page = (tmp_path / "own.html").read_text(encoding="utf-8")
    assert "Regression of income" in page
    assert "As the release" in page
    dipriv_command("compare", table, "out.csv", "-o", "again.html", folder=tmp_path)
    assert "As the release" in (tmp_path / "again.html").read_text(encoding="utf-8")  # its note has the verdict
    note = tmp_path / "out.csv.dipriv.json"
    note.write_text(note.read_text(encoding="utf-8").replace('"all_pairs"', '"some_pairs"'), encoding="utf-8")
    note.write_text(note.read_text(encoding="utf-8").replace('"pairs": [', '"pairs": 1, "x": ['), encoding="utf-8")
    dipriv_command("compare", table, "out.csv", "-o", "odd.html", folder=tmp_path)
    assert "As the release" not in (tmp_path / "odd.html").read_text(encoding="utf-8")  # control: not a verdict


@pytest.mark.slow
def test_the_ledger_is_listed_shown_and_limited(table: Path, tmp_path: Path) -> None:
    where = ("--ledger", f"sqlite:///{tmp_path}/budget.db")
    missing = dipriv_command("ledger", "budget", "people", 1.5, *where, folder=tmp_path, code=1)
    assert "there is no ledger at" in missing.stderr
    assert "dipriv ledger create" in missing.stderr
    assert not (tmp_path / "budget.db").exists()
    dipriv_command("ledger", "create", where[1], folder=tmp_path)
    dipriv_command("ledger", "create", where[1], folder=tmp_path, code=1)
    dipriv_command("ledger", "budget", "people", 1.5, *where, folder=tmp_path)
    dipriv_command("privatize", table, "-o", "a.csv", *ASKED, "--dataset", "people", *where, folder=tmp_path)
    refused = dipriv_command("privatize", table, "-o", "b.csv", *ASKED, *where, folder=tmp_path, code=1)
    assert "0.5" in refused.stderr
    assert f"dipriv ledger budget people EPSILON --ledger {tmp_path}/budget.db" in refused.stderr
    assert not (tmp_path / "b.csv").exists()
    assert "1.5" in dipriv_command("ledger", *where, folder=tmp_path).stdout
    shown = dipriv_command("ledger", "show", "people", *where, folder=tmp_path).stdout
    assert "a.csv" in shown
    assert "no formal protection" in shown  # rows were held out: nothing bounds what an attacker learns
    assert "power at most" not in shown
    private = ("-e", "1", "--drop", "id", "--dataset", "others", *where)
    write(tmp_path / "others.csv", rows=900, seed=2)
    dipriv_command("privatize", "others.csv", "-o", "c.csv", *private, folder=tmp_path)
    shown = dipriv_command("ledger", "show", "others", *where, folder=tmp_path).stdout
    assert "After 1 release the best test" in shown
    assert "13.6%" in shown  # 5% times e, rounded up
    assert "9 of 10 left, the default budget" in shown
    unknown = dipriv_command("ledger", "show", "nobody", *where, folder=tmp_path, code=1)
    assert "nobody" in unknown.stderr


@pytest.mark.slow
def test_no_file_is_overwritten_by_mistake(table: Path, tmp_path: Path) -> None:
    before = table.read_bytes()
    for arguments in (
        ("privatize", table, "-o", "same.csv", *ASKED, "--report", "same.csv"),
        ("privatize", table, "-o", "o.csv", *ASKED, "--report", table),
        ("privatize", table, "-o", table, *ASKED, "--force"),
        ("privatize", table, "-o", "o.csv", "-e", "1", "--public", table),
        ("inspect", table, "-o", table),
        ("inspect", table, "-o", table, "--force"),
        ("compare", table, table, "-o", "report.html"),
    ):
        dipriv_command(*arguments, folder=tmp_path, code=1)
    assert table.read_bytes() == before
    assert {file.name for file in tmp_path.iterdir() if "default" not in file.name} == {"people.csv"}


@pytest.mark.slow
def test_secrets_are_the_owners_alone(table: Path, tmp_path: Path) -> None:
    dipriv_command("inspect", table, "-o", "schema.toml", folder=tmp_path)
    dipriv_command("privatize", table, "-o", "out.csv", *ASKED, "--report", "report.html", folder=tmp_path)
    for name in ("schema.toml", "report.html", "default.db"):
        assert (tmp_path / name).stat().st_mode & 0o077 == 0
    dipriv_command("inspect", table, "-o", "schema.toml", folder=tmp_path, code=1)
    dipriv_command("inspect", table, "-o", "schema.toml", "--force", folder=tmp_path)


@pytest.mark.slow
def test_kept_columns_pass_through_letter_by_letter(tmp_path: Path) -> None:
    rows = "".join(f"{number:05},1.50,{number % 7}\n" for number in range(200))
    (tmp_path / "t.csv").write_text("zip,price,x\n" + rows, encoding="utf-8")
    asked = ("-e", "1", "--reference", "holdout", "--keep", "zip", "--keep", "price")
    dipriv_command("privatize", "t.csv", "-o", "o.csv", *asked, folder=tmp_path)
    lines = (tmp_path / "o.csv").read_text(encoding="utf-8").replace('"', "").splitlines()[1:]
    assert {line.rsplit(",", 1)[0] for line in lines} <= {line.rsplit(",", 1)[0] for line in rows.splitlines()}


@pytest.mark.slow
def test_seeded_and_uncounted_releases_are_called_so(table: Path, tmp_path: Path) -> None:
    dipriv_command("privatize", table, "-o", "a.csv", *ASKED, "--seed", "3", folder=tmp_path)
    shown = dipriv_command("ledger", "show", "people", folder=tmp_path).stdout
    assert "NOT PRIVATE: seeded" in shown
    assert "nothing bounds" in shown
    done = dipriv_command("privatize", table, "-o", "b.csv", *ASKED, "--no-ledger", folder=tmp_path)
    assert "would hold out other rows" in done.stderr


BAD: dict[str, tuple[tuple[object, ...], int, str]] = {
    "no epsilon": (("privatize", "people.csv", "-o", "o.csv"), 2, "Missing option"),
    "bad epsilon": (("privatize", "people.csv", "-o", "o.csv", "-e", "0", "--reference", "holdout"), 1, "epsilon=0.0"),
    "missing file": (("privatize", "none.csv", "-o", "o.csv", *ASKED), 1, "none.csv is not a file"),
    "unknown column": (("privatize", "people.csv", "-o", "o.csv", *ASKED, "--drop", "x"), 1, "'x'"),
    "no format": (("privatize", "people.csv", "-o", "o", *ASKED), 1, "--format"),
    "no folder": (("privatize", "people.csv", "-o", "no/o.csv", *ASKED), 1, "does not exist"),
    "exists": (("privatize", "people.csv", "-o", "ragged.csv", *ASKED), 1, "--force"),
    "undecided": (("privatize", "odd.csv", "-o", "o.csv", "-e", "1"), 1, "--type x=number, or declare"),
    "in Latin-1": (("inspect", "latin.csv"), 1, "--encoding latin-1"),
    "ragged": (("privatize", "ragged.csv", "-o", "o.csv", *ASKED), 1, "line 3 has 3 cells"),
    "truncated": (("privatize", "cut.parquet", "-o", "o.csv", *ASKED), 1, "not a whole Parquet file"),
    "unreachable": (("privatize", "people.csv", "-o", "o.csv", *ASKED, "--ledger", NOBODY), 1, "127.0.0.1"),
    "not a ledger": (("ledger", "--ledger", "people.csv"), 1, "people.csv"),
    "no names": (("privatize", "bare.csv", "-o", "o.csv", "-e", "1", "--reference", "holdout"), 1, "as its name"),
    "idle option": (("privatize", "people.csv", "-o", "o.csv", *ASKED, "--rows-per-unit", "3"), 1, "without a unit"),
    "unknown unit": (("privatize", "people.csv", "-o", "o.csv", *ASKED, "--unit", "who"), 1, "'who'"),
    "unknown command": (("publish",), 2, "No such command"),
    "idle target": (("privatize", "people.csv", "-o", "o.csv", *ASKED, "--target", "pay"), 1, "not private"),
    "unknown target": (("privatize", "people.csv", "-o", "o.csv", "-e", "1", "--target", "who"), 1, "'who'"),
    "declared": (("privatize", "people.csv", "-o", "o.csv", "-e", "1", "--labels", "declared"), 1, "declared"),
    "three in a pair": (("privatize", "people.csv", "-o", "o.csv", "-e", "1", "--pair", "a,b,c"), 2, "3 columns"),
    "unknown pair": (("privatize", "people.csv", "-o", "o.csv", "-e", "1", "--pair", "agee,who"), 1, "did you mean"),
}  # fmt: skip


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=() if case in ("ragged", "no epsilon", "undecided") else pytest.mark.slow)
        for case in BAD
    ],
)
def test_bad_input_is_told_and_loses_nothing(case: str, table: Path, tmp_path: Path) -> None:
    (tmp_path / "ragged.csv").write_text(f"a,b\n1,2\n1,{MARKER},3\n", encoding="utf-8")
    (tmp_path / "bare.csv").write_text("79,48.81,m\n12,3.5,f\n", encoding="utf-8")
    (tmp_path / "odd.csv").write_text("x,y\n" + "1,1\nno,2\n2,1\n" * 30, encoding="utf-8")
    (tmp_path / "latin.csv").write_bytes("x,y\n1,K\xf6ln\n".encode("latin-1"))
    pq.write_table(pa.table({"a": np.arange(9000)}), tmp_path / "cut.parquet")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "cut.parquet").read_bytes()[:4000])
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    arguments, code, told = BAD[case]
    done = dipriv_command(*arguments, folder=tmp_path, code=code)
    assert told in done.stderr
    assert not re.search(r"\w=[\[{.']|[A-Z]\w+\(", done.stderr)  # remedies have options, not arguments
    assert MARKER not in done.stderr + done.stdout
    assert "secret" not in done.stderr
    after = {file.name: file.read_bytes() for file in tmp_path.iterdir() if not file.name.startswith("default.db")}
    assert after == before
    if (tmp_path / "default.db").exists():
        with Ledger.open(tmp_path / "default.db") as ledger:
            assert sum(found.spent for found in ledger.datasets()) == 0


@pytest.mark.slow
def test_a_debugger_gets_the_traceback(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dipriv", "--debug", "privatize", "none.csv", "-o", "o.csv", "-e", "1"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "Traceback" in done.stderr


@pytest.mark.slow
def test_version_help_and_plain_output(tmp_path: Path) -> None:
    assert dipriv_command("--version", folder=tmp_path).stdout.strip() == f"dipriv {dipriv.__version__}"
    shown = dipriv_command("--help", folder=tmp_path, env={"NO_COLOR": "1", "FORCE_COLOR": ""}).stdout
    assert "\x1b[3" not in shown
    for command in ("privatize", "inspect", "compare", "ledger", "audit"):
        assert command in shown
        dipriv_command(command, "--help", folder=tmp_path)


@pytest.mark.slow
def test_a_process_that_is_asked_to_end_cleans_up(tmp_path: Path) -> None:
    """SIGTERM in the middle of writing: no unfinished file stays, and the release is spent."""
    table = write(tmp_path / "people.csv", rows=400_000)
    Ledger.create(tmp_path / "ledger.db").close()
    asked = ("privatize", table, "-o", tmp_path / "out.csv", *ASKED, "--ledger", tmp_path / "ledger.db", "-q")
    process = subprocess.Popen(
        [sys.executable, "-m", "dipriv", *map(str, asked)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 120
    while not any(part.stat().st_size for part in tmp_path.glob(".out.csv.*.part")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 143
    assert "Terminated." in told
    assert "is spent in the ledger, as release 1 of data set 'people'" in told
    assert "Traceback" not in told
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ledger.db", "people.csv"]
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        assert [(record.state, record.epsilon) for record in ledger.records("people")] == [("failed", 1.0)]


@pytest.mark.slow
@pytest.mark.parametrize("group", range(5))
def test_kill_9_at_any_moment(group: int, tmp_path: Path) -> None:
    """Ten trials a group: the output is whole or absent, and whatever exists was spent before."""
    table = write(tmp_path / "people.csv", rows=120_000)
    moment = random.Random(group)
    url = f"sqlite:///{tmp_path}/ledger.db"
    Ledger.create(url).close()
    spent = 0.0
    longest = 0.0
    for trial in range(10):
        out = tmp_path / f"out-{trial}.csv"
        asked = ["privatize", str(table), "-o", str(out), *ASKED, "--ledger", url, "-q"]
        start = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-m", "dipriv", *asked], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        if trial == 0:
            process.wait()
            longest = time.monotonic() - start
        else:
            time.sleep(moment.uniform(0.3, 1.0) * longest)
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert process.stderr is not None
        process.stderr.close()
        with Ledger.open(url) as ledger:
            now = sum(found.spent for found in ledger.datasets())
        assert now in (spent, spent + 1)
        if out.exists():
            assert now == spent + 1
            with Ledger.open(url) as ledger:
                rows = ledger.records("people")[0].rows
            assert pacsv.read_csv(out).num_rows == rows
            assert out.with_name(f"{out.name}.dipriv.json").exists()
        spent = now
    assert spent >= 1
