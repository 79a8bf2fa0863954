"""Help shows its defaults, values are completed, lists of columns are taken, and all faults are told together."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import typer

import dipriv
from dipriv.cli import app
from dipriv.cli import options as opt
from dipriv.guarantee.sidecar import Sidecar, read_sidecar
from dipriv.ledger import Ledger
from tests.unit.cli.run import Ended, run, write_table

Run = Callable[..., Ended]
NAMES = ["age", "city", "affairs", "a,b"]


@pytest.fixture
def command(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run commands in a folder with a table and a ledger."""
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path / "people.csv")
    with Ledger.create(tmp_path / "ledger.db") as ledger:
        ledger.set_budget("survey", 3.0)
    monkeypatch.setenv("DIPRIV_LEDGER", str(tmp_path / "ledger.db"))
    return lambda *arguments: run(capfd, monkeypatch, *arguments)


def commands(of: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """All commands, with the words that call them."""
    of = of or typer.main.get_command(app)
    yield path, of
    for name, below in getattr(of, "commands", {}).items():
        yield from commands(below, (*path, name))


@pytest.mark.parametrize(
    ("path", "of"), list(commands()), ids=lambda value: " ".join(value) if isinstance(value, tuple) else ""
)
def test_help_shows_every_default_in_80_columns(path: tuple[str, ...], of: Any, command: Run) -> None:
    ended = command(*path, "--help")
    assert ended.code == 0
    assert max(map(len, ended.out.splitlines())) <= 80
    shown = " ".join(ended.out.split())
    assert "<bool>" not in shown
    assert "{" not in shown  # arguments by their names
    for option in of.params:
        if option.param_type_name != "option" or option.name in ("install_completion", "show_completion"):
            continue
        assert option.help
        assert " ".join(option.help.split()) in shown  # with the brackets of a default in words
        has_default = option.default not in (None, False, (), []) and not option.required
        if has_default:
            default = getattr(option.default, "value", option.default)
            assert f"[default: {default}]" in shown, option.name
        if option.is_flag:
            assert re.search(rf"{option.opts[-1]} {{2,}}\S", ended.out), option.name  # nothing between name and text


def test_defaults_that_have_no_value_are_told_in_words() -> None:
    told = {
        (path[0], option.name)
        for path, of in commands()
        for option in of.params
        if path and "[default: " in (getattr(option, "help", "") or "")
    }
    for name in ("delta", "reference", "reference_share", "labels", "holdout", "rows_per_unit", "dataset", "ledger"):
        assert ("privatize", name) in told
    assert ("plan", "epsilon") in told
    assert ("audit", "secret") in told
    assert ("ledger", "delta") in told


@pytest.mark.parametrize(
    ("text", "told"), [("1,5", "write 1.5."), ("one", "'one' is not a number"), ("1,5,2", "such as")]
)
def test_numbers_are_asked_for_plainly(text: str, told: str, command: Run) -> None:
    ended = command("privatize", "people.csv", "-o", "o.csv", "-e", text)
    assert ended.code == 2
    assert told in " ".join(ended.err.split())


def test_lists_of_columns() -> None:
    assert opt.given_columns(["age,city", "affairs"], NAMES) == ("age", "city", "affairs")
    assert opt.given_columns(["a,b", "age, city"], NAMES) == ("a,b", "age", "city")
    assert opt.given_columns(['"a,b",age'], NAMES) == ("a,b", "age")
    assert opt.given_columns(["a,b"], ["a", "b"]) == ("a", "b")
    assert opt.given_columns(None, NAMES) == ()
    assert opt.given_pairs(["age,city", "age, a,b", "a,b,age"], NAMES) == (
        ("age", "city"),
        ("age", "a,b"),
        ("a,b", "age"),
    )
    with pytest.raises(typer.BadParameter, match="3 columns, not two"):
        opt.given_pairs(["age,city,affairs"], NAMES)


def test_a_release_without_a_list_of_columns(command: Run) -> None:
    ended = command("privatize", "people.csv", "-o", "o.csv", "-e", 1, "--drop", "a,b", "--drop", "age,city")
    assert ended.code == 0, ended
    assert Path("o.csv").read_text(encoding="utf-8").splitlines()[0].replace('"', "") == "affairs"


def test_all_that_is_wrong_is_told_before_the_table_is_read(command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("o.csv").touch()
    Path("r.html").touch()
    ended = command(
        *("privatize", "people.csv", "-o", "o.csv", "-e", 1, "--report", "r.html", "--schema", "no.toml"),
        *("--ledger", "none.db", "--drop", "aeg,city", "--target", "afairs", "--dates", "d/m"),
    )
    assert ended.code == 1
    for told in ("o.csv exists", "r.html exists", "no.toml is not a file", "there is no ledger at", "dmy"):
        assert ended.err.count(told) >= 1, told
    assert "drop names 'aeg' (did you mean 'age'?); target names 'afairs' (did you mean 'affairs'?)" in ended.err
    assert ended.err.count("Error:") == 6
    assert Path("o.csv").read_bytes() == b""
    ended = command("privatize", "none.csv", "-o", "o.csv", "-e", 0, "--kernel", "laplas", "--sep", "too long")
    assert [told in ended.err for told in ("none.csv is not a file", "o.csv exists", "epsilon=0.0")] == [True] * 3


@pytest.mark.parametrize("which", ["plan", "audit"])
def test_other_commands_tell_all_that_is_wrong_too(which: str, command: Run) -> None:
    Path("o").touch()
    ended = command(which, "none.csv", "-o", "o", "--schema", "no.toml", "-e", 1)
    assert ended.code == (2 if which == "audit" else 1)
    for told in ("o exists", "no.toml is not a file", "none.csv is not a file"):
        assert told in ended.err


def test_a_schema_is_checked_and_counted(command: Run) -> None:
    Path("schema.toml").write_text('rules = ["age > affairs"]\n[age]\nkind = "discrete"\n[city]\nkind = "text"\n')
    ended = command("inspect", "people.csv", "--schema", "schema.toml")
    assert "The schema fits the table: 2 columns declared, 1 of them left out, 1 rule." in ended.out
    assert 'declared kind = "discrete", 18 to 77' in ended.out


def test_a_folder_is_called_so(command: Run) -> None:
    ended = command("privatize", ".", "-o", "o.csv", "-e", 1)
    assert ended.code == 1
    assert ". is a folder." in ended.err


COMPLETED: dict[str, tuple[str, list[str]]] = {
    "target": ("privatize people.csv --target", ["age", "city", "affairs", "a,b"]),
    "begun": ("privatize people.csv -o o.csv -e 1 --target a", ["age", "affairs", "a,b"]),
    "unit": ("privatize people.csv --unit ci", ["city"]),
    "list": ("privatize people.csv --drop age,ci", ["age,city"]),
    "keep": ("plan people.csv --keep c", ["city"]),
    "type": ("privatize people.csv --type ci", ["city="]),
    "type of": ("privatize people.csv --type city=t", ["city=text", "city=time"]),
    "compare": ("compare people.csv out.csv --target ag", ["age"]),
    "semicolons": ("plan odd.txt --sep ; --format csv --target", ["x", "y"]),
    "kernel": ("audit people.csv --kernel o", ["optimal"]),
    "reference": ("privatize people.csv --reference h", ["holdout"]),
    "labels": ("privatize people.csv --labels p", ["private", "public"]),
    "engine": ("privatize people.csv --engine s", ["spark"]),
    "dates": ("plan people.csv --dates d", ["dmy"]),
    "data set": ("privatize people.csv --dataset", ["survey"]),
    "ledger": ("ledger show su", ["survey"]),
    "no file": ("privatize none.csv --target", []),
    "not a table": ("privatize bad.parquet --target", []),
    "no ledger": ("privatize people.csv --ledger none.db --dataset", []),
}


@pytest.mark.parametrize("case", COMPLETED)
def test_completion(case: str, command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("odd.txt").write_text("x;y\n1;2\n", encoding="utf-8")
    Path("bad.parquet").write_bytes(b"PAR1")
    line, offered = COMPLETED[case]
    words = line.split(" ")
    if words[-1].startswith("--"):
        words.append("")
    monkeypatch.setenv("COMP_WORDS", " ".join(["dipriv", *("';'" if word == ";" else word for word in words)]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    monkeypatch.setenv("_DIPRIV_COMPLETE", "complete_bash")
    ended = command()
    assert ended.err == ""
    assert sorted(ended.out.split()) == sorted(offered)


def test_the_note_has_command_schema_versions_and_date_but_no_secret(command: Run) -> None:
    Path("s.toml").write_text('[city]\nkind = "categorical"\nlevels = ["a", "b", "c"]\n', encoding="utf-8")
    place = Path("ledger.db").absolute()
    ended = command(
        *("privatize", Path("people.csv").absolute(), "-o", "out.csv", "-e", 1, "--delta", 0, "--drop", "a,b"),
        *("--seed", 918273645, "--ledger", f"sqlite:///{place}", "--schema", "s.toml", "--type", "age=number", "-q"),
    )
    assert ended.code == 0, ended
    text = Path("out.csv.dipriv.json").read_text(encoding="utf-8")
    note = json.loads(text)
    assert note["format"] == 4
    assert note["provenance"]["command"] == (
        "dipriv privatize people.csv --output out.csv --epsilon 1.0 --delta 0.0 --schema s.toml --type age=number "
        "--drop a,b --seed SEED --quiet"
    )
    assert note["provenance"]["versions"].keys() == {"python", "numpy", "pyarrow"}
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", note["provenance"]["date"])
    assert note["schema"]["city"] == {"kind": "categorical", "levels": ["a", "b", "c"], "encoding": "codes"}
    assert note["declared"] == ["city"]
    assert note["guarantee"]["secure_randomness"] is False  # the seed is noted, its number is not
    sheet = Path("out.csv.sheet.json").read_text(encoding="utf-8")
    page = Path("out.csv.sheet.html").read_text(encoding="utf-8")
    for published in (text, sheet, page):
        assert "918273645" not in published
        assert str(place.parent) not in published
        assert "--seed SEED" in published
    assert "numpy" in page
    assert note["schema"] == json.loads(sheet)["schema"]
    same = read_sidecar("out.csv")
    assert same is not None
    assert same.to_dict() == note
    assert (
        json.loads(json.dumps(dipriv.load_sheet("out.csv").sidecar.to_dict())).items()
        >= {name: note[name] for name in ("provenance", "guarantee", "dataset")}.items()
    )


def test_a_release_from_python_has_no_command(tmp_path: Path) -> None:
    table = pd.DataFrame({"age": range(200)})
    dipriv.privatize(table, 1.0).write(tmp_path / "o.csv")
    note = read_sidecar(tmp_path / "o.csv")
    assert note is not None
    assert note.provenance is not None
    assert note.provenance.command is None
    assert Sidecar.from_dict(note.to_dict() | {"provenance": None}).provenance is None
    with pytest.raises(dipriv.errors.InputError, match="sidecar"):
        Sidecar.from_dict(note.to_dict() | {"provenance": {"command": 3}})
