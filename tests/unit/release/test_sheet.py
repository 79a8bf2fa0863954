"""The data sheet: written with the output, the same for any table with the same private output, safe to load."""

from __future__ import annotations

import base64
import html
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dipriv
from dipriv._base import atomic_write
from dipriv._serialization.objects import dump
from dipriv.release.fitting import FitPlan
from dipriv.release.model_file import dump_model, load_model
from dipriv.statistics import Mean, Share, Slope
from tests.unit.release.test_intervals import KINDS, population

PAIRS = [("grade", "hours"), ("grade", "passed")]
NAMES = ["people.csv", "people.csv.dipriv.json", "people.csv.sheet.html", "people.csv.sheet.json"]


def released(folder: Path, table: pd.DataFrame, **options: Any) -> Path:
    release = dipriv.privatize(table, 1.0, schema=KINDS, pairs=PAIRS, seed=1, **options)
    release.write(folder / "people.csv", force=True)
    return folder / "people.csv"


def test_a_sheet_gives_the_intervals_and_answers_of_the_release(tmp_path: Path) -> None:
    release = dipriv.privatize(population(1500, 1), 1.0, schema=KINDS, pairs=PAIRS, seed=1)
    release.write(tmp_path / "people.csv")
    assert sorted(file.name for file in tmp_path.iterdir()) == NAMES
    sheet = dipriv.load_sheet(tmp_path / "people.csv")
    asked = [Mean("hours"), Share("passed", "yes"), Slope("grade", "hours")]
    assert sheet.intervals(asked, replicates=10) == release.intervals(asked, replicates=10)
    question = {"passed": "yes", "grade": 3}
    answers = [one.reference.probability(question, replicates=10) for one in (sheet, release)]
    assert answers[0] == answers[1]
    assert sheet.guarantee == release.guarantee
    assert sheet.verdict == release.verdict
    assert set(PAIRS) <= set(sheet.pairs)
    year = datetime.now(UTC).year
    assert sheet.citation.startswith(f"[authors of the table] ({year}). people.csv: 1,500 rows released")
    assert "X. Bi and X. Shen (2023)" in sheet.citation
    named = dipriv.load_sheet(tmp_path / "people.csv.sheet.json")
    assert named.to_json() == sheet.to_json() == (tmp_path / "people.csv.sheet.json").read_text(encoding="utf-8")


def test_found_labels_survive_the_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    table = pd.DataFrame(
        {"town": rng.choice(["A", "B", "<b>"], 3000, p=[0.5, 0.3, 0.2]), "n": rng.integers(0, 5, 3000)}
    )
    release = dipriv.privatize(table, 1.0, seed=2)
    release.write(tmp_path / "towns.csv")
    sheet = dipriv.load_sheet(tmp_path / "towns.csv")
    asked = [Share("town", "<b>"), Mean("n")]
    assert sheet.intervals(asked, replicates=10) == release.intervals(asked, replicates=10)
    page = (tmp_path / "towns.csv.sheet.html").read_text(encoding="utf-8")
    assert "<b>" not in page


def test_names_are_escaped_in_the_page(tmp_path: Path) -> None:
    table = population(500, 3).rename(columns={"alone": "<script>alert(1)</script>"})
    kinds = {name: kind for name, kind in KINDS.items() if name in table}
    release = dipriv.privatize(table, 1.0, schema=kinds, seed=3)
    release.write(tmp_path / "people.csv")
    assert "<script>" not in (tmp_path / "people.csv.sheet.html").read_text(encoding="utf-8")


def test_tables_with_the_same_private_output_have_the_same_sheet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The learned mechanism is the private output. Given it, the sheet must be a function of public facts.

    The two tables have the same columns and number of rows and differ in all rows, so this holds for neighbouring
    tables. The released rows differ, too: the sheet must not see them.
    """
    table, other = population(1000, 4), population(1000, 40)
    first = released(tmp_path, table)
    sheets = [(tmp_path / name).read_bytes() for name in NAMES[2:]]
    rows = first.read_bytes()
    fitted = dipriv.privatize(table, 1.0, schema=KINDS, pairs=PAIRS, seed=1).secrets.mechanism
    monkeypatch.setattr(FitPlan, "fit", lambda plan, *given: fitted)
    released(tmp_path, other)
    assert first.read_bytes() != rows
    assert [(tmp_path / name).read_bytes() for name in NAMES[2:]] == sheets
    monkeypatch.undo()  # the control: another private output, another sheet
    released(tmp_path, other)
    assert [(tmp_path / name).read_bytes() for name in NAMES[2:]] != sheets


def test_output_and_sheet_are_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = dipriv.privatize(population(500, 5), 1.0, schema=KINDS, seed=5)
    written = atomic_write.write_atomic

    def full_disk(path: Path, *given: Any, **options: Any) -> None:
        if path.name.endswith("sheet.html"):
            raise dipriv.StorageError("no space.", "Make some.")
        written(path, *given, **options)

    monkeypatch.setattr(atomic_write, "write_atomic", full_disk)
    with pytest.raises(dipriv.StorageError):
        release.write(tmp_path / "people.csv")
    assert list(tmp_path.iterdir()) == []


def test_releases_without_a_model_say_why(tmp_path: Path) -> None:
    release = dipriv.privatize(population(800, 6), 1.0, reference="holdout", seed=6)
    release.write(tmp_path / "people.csv")
    plain = json.loads((tmp_path / "people.csv.sheet.json").read_bytes())
    assert plain["model"] is None
    sheet = dipriv.load_sheet(tmp_path / "people.csv")
    with pytest.raises(dipriv.InputError, match="the reference is not private"):
        sheet.interval(Mean("hours"))


def run_example(path: Path) -> str:
    """The page's own example, as an analyst would copy it."""
    shown = re.search(
        r"<pre>(import dipriv.*?)</pre>", path.with_name(f"{path.name}.sheet.html").read_text("utf-8"), re.S
    )
    assert shown is not None
    code = html.unescape(shown[1])
    short = code.replace("progress=True", "replicates=10").replace(repr(path.name), repr(str(path)))
    exec(compile(short, "example", "exec"), {})
    return code


@pytest.mark.parametrize(
    ("columns", "asked"),
    [
        (["zip", "patient_id", "pay"], "Mean('pay')"),
        (["zip", "smokes"], "Mean('smokes')"),
        (["day", "zip"], "Share('zip', '01067')"),
        (["day"], "Share('day', None)"),
    ],
)
def test_the_example_of_the_page_runs(
    columns: list[str], asked: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(4)
    table = pd.DataFrame(
        {
            "zip": rng.choice(["01067", "10115"], 2000),
            "patient_id": np.arange(2000),
            "pay": rng.integers(0, 9, 2000),
            "smokes": rng.random(2000) < 0.3,
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 90, 2000), unit="D"),
        }
    )[columns]
    release = dipriv.privatize(table, 2.0, types={"zip": "text"} if "zip" in columns else None, seed=4)
    release.write(tmp_path / "people.csv")
    assert f"sheet.interval({asked}, progress=True)" in run_example(tmp_path / "people.csv")
    assert capsys.readouterr().out


def test_a_sheet_without_a_model_lists_the_measured_pairs(tmp_path: Path) -> None:
    table = population(1500, 1).assign(person=np.arange(1500) // 2)
    release = dipriv.privatize(table, 8.0, schema=KINDS, unit="person", rows_per_unit=2, seed=1)
    release.write(tmp_path / "people.csv")
    sheet = dipriv.load_sheet(tmp_path / "people.csv")
    assert release.verdict is not None
    assert sheet.no_model is not None
    assert set(sheet.pairs) == {pair.columns for pair in release.verdict.pairs} != set()
    assert "<h2>Measured pairs</h2>" in sheet.to_html()


def test_privacy_parameters_are_printed_rounded_up(tmp_path: Path) -> None:
    page = released(tmp_path, population(500, 7)).with_name("people.csv.sheet.html").read_text("utf-8")
    assert re.search(r">delta of a row</td><td[^>]*>1e-9<", page)
    assert "9.99" not in page


def test_without_the_rows_the_reference_still_answers(tmp_path: Path) -> None:
    path = released(tmp_path, population(500, 7))
    rows = pd.read_csv(path)
    path.unlink()
    sheet = dipriv.load_sheet(path)
    assert sheet.reference.mean("hours", replicates=0).value > 0
    with pytest.raises(dipriv.InputError, match="not beside its data sheet"):
        sheet.interval(Mean("hours"))
    assert dipriv.load_sheet(path, table=rows).interval(Mean("hours"), replicates=10).low > 0


@pytest.fixture(scope="module")
def plain_sheet(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("sheet")
    plain: dict[str, Any] = json.loads(released(folder, population(400, 8)).with_name(NAMES[3]).read_bytes())
    return plain


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"format": True},
        {"released": 7},
        {"released": "a\nb"},
        {"declared": "hours"},
        {"declared": [None]},
        {"release": {}},
        {"release": None},
        {"schema": {"hours": {"kind": "os.system"}}},
        {"model": 7},
        {"model": "not base 64!"},
        {"model": base64.b64encode(b"PK nothing").decode()},
        {"model": base64.b64encode(dump({"format": 1})).decode()},
        {"model": base64.b64encode(dump({"format": 2})).decode()},
        {"model": base64.b64encode(dump([1, 2])).decode()},
    ],
    ids=str,
)
def test_hostile_sheets_are_refused(plain_sheet: dict[str, Any], change: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "x.csv.sheet.json"
    file.write_text(json.dumps(plain_sheet | change))
    with pytest.raises(dipriv.DiprivError):
        dipriv.load_sheet(file)


def test_a_sheet_whose_model_is_of_another_release_is_refused(plain_sheet: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "x.csv.sheet.json"
    file.write_text(json.dumps(plain_sheet))
    assert dipriv.load_sheet(file)  # control
    release = plain_sheet["release"]
    rows, half = release["rows"] | {"released": 399}, release["guarantee"] | {"epsilon": 0.5}
    for change in ({"rows": rows}, {"guarantee": half}):
        file.write_text(json.dumps(plain_sheet | {"release": release | change}))
        with pytest.raises(dipriv.InputError):
            dipriv.load_sheet(file)


@pytest.mark.parametrize("content", [b"", b"[" * 100_000, b"\xff\xfe", b"null", b"{}"])
def test_files_that_are_no_sheets_are_refused(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "x.csv.sheet.json"
    file.write_bytes(content)
    with pytest.raises(dipriv.InputError):
        dipriv.load_sheet(file)


def test_limits_of_size_hold(plain_sheet: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "x.csv.sheet.json"
    file.write_text(json.dumps(plain_sheet))
    with pytest.raises(dipriv.InputError, match="more than 100 bytes"):
        dipriv.load_sheet(file, largest=100)
    with pytest.raises(dipriv.InputError, match="not a file"):
        dipriv.load_sheet(tmp_path / "nothing.csv")


@pytest.mark.parametrize(
    "change",
    [
        {"n_learned": 1 << 50},
        {"n_learned": 0},
        {"n_released": 1.5},
        {"order": (0, 0, 1, 2)},
        {"order": (3, 2, 1)},
        {"pairs": (("grade", "nobody"),)},
        {"pairs": (("grade",),)},
        {"pairs": (("grade", "hours", "grade"),)},
        {"spec": {"pairs": (("grade",),)}},
        {"spec": {"pairs": (("grade", "nobody"),)}},
        {"pairs": "grade"},
        {"epsilon": float("nan")},
        {"epsilon": -1.0},
        {"delta": 2.0},
        {"deviations": {}},
        {"deviations": {"grade": -1.0, "hours": 1.0, "passed": 1.0, "alone": 1.0}},
        {"found": ("hours",)},
        {"disjoint": 1},
        {"columns": ()},
        {"columns": (1, 2, 3, 4)},
        {"reference": 5},
        {"kernel": {"class": "exec", "fields": {}}},
        {"spec": {"target": 7}},
        {"declared": "{"},
        {"extra": 1},
    ],
    ids=str,
)
def test_hostile_models_are_refused(change: dict[str, Any]) -> None:
    release = dipriv.privatize(population(300, 9), 1.0, schema=KINDS, seed=9)
    assert release._model is not None
    from dipriv import _serialization as state

    content = state.load(dump_model(release._model))
    assert load_model(dump(content)).names == release._model.names  # the control: unchanged, it loads
    with pytest.raises(dipriv.InputError):
        load_model(dump(content | change))


def test_a_model_that_asks_for_too_much_work_is_refused_before_it() -> None:
    release = dipriv.privatize(population(300, 9), 1.0, schema=KINDS, seed=9)
    assert release._model is not None
    from dipriv import _serialization as state
    from dipriv.release.intervals import Replicates

    huge = load_model(dump(state.load(dump_model(release._model)) | {"n_learned": 1 << 39}))
    with pytest.raises(dipriv.InputError, match="cells"):
        Replicates(huge).values([Mean("hours")], 10)
