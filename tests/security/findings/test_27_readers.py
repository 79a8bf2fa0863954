"""What readers of workbooks, JSON lines, Stata and SPSS files took from single rows: labels, orders, types, rows."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dipriv
from dipriv import Categorical, Discrete, Schema
from dipriv._tables.column_types import TypeRules
from dipriv._tables.presentation import Presentation
from dipriv.dialect import Dialect
from dipriv.errors import SchemaError
from dipriv.guarantee import AssumptionKind
from dipriv.sources._formats.registry import format_named
from dipriv.sources.files import File
from dipriv.sources.stream import open_file

SECRET = "Dr. Nemo"


def workbook(path: Path, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    book = pytest.importorskip("openpyxl").Workbook(write_only=True)
    sheet = book.create_sheet("people")
    for row in (names, *rows):
        sheet.append(row)
    book.save(path)
    return path


def json_lines(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def labelled(path: Path, codes: Sequence[float], labels: dict[int, str]) -> Path:
    pyreadstat, pandas = pytest.importorskip("pyreadstat"), pytest.importorskip("pandas")
    frame = pandas.DataFrame({"job": codes, "age": [float(20 + k % 40) for k in range(len(codes))]})
    write = pyreadstat.write_dta if path.suffix == ".dta" else pyreadstat.write_sav
    write(frame, path, variable_value_labels={"job": labels}, column_labels={"job": "Occupation"})
    return path


def labels_of(path: Path) -> dict[int, str]:
    pyreadstat = pytest.importorskip("pyreadstat")
    _, facts = (pyreadstat.read_dta if path.suffix == ".dta" else pyreadstat.read_sav)(path)
    return {int(code): text for code, text in facts.variable_value_labels.get("job", {}).items()}


# ---- labels ----


@pytest.mark.parametrize("ending", ["dta", "sav"])
def test_a_release_has_no_label_that_no_released_row_has(ending: str, tmp_path: Path) -> None:
    """All labels of the file were written into the release, at any ε."""
    codes = [*([1.0, 2.0, 7.0] * 200), 4.0]
    file = labelled(tmp_path / f"in.{ending}", codes, {1: "clerk", 2: "cook", 7: "nurse", 4: SECRET})
    out = tmp_path / f"out.{ending}"
    release = dipriv.privatize_file(file, out, 5.0)
    assert SECRET.encode() in file.read_bytes()  # control
    assert not [path.name for path in tmp_path.glob("out.*") if SECRET.encode() in path.read_bytes()]
    released = release.data.to_table()["job"].to_pylist()
    found = labels_of(out)
    assert {*found.values()} == {*released} - {None}
    assert found.items() >= {1: "clerk", 2: "cook", 7: "nurse"}.items()
    assert File.at(out).read()["job"].to_pylist() == released


def test_kept_labels_are_those_of_released_rows(tmp_path: Path) -> None:
    codes = [1.0, 2.0] * 150
    file = labelled(tmp_path / "in.dta", codes, {1: "clerk", 2: "cook", 4: SECRET})
    dipriv.privatize_file(file, tmp_path / "out.dta", 1.0, keep=["job"])
    assert labels_of(tmp_path / "out.dta") == {1: "clerk", 2: "cook"}


def coded(cells: Sequence[str | None], labels: Any, path: Path) -> tuple[list[Any], dict[int, str]]:
    """The codes and the labels of a column in a Stata file."""
    table = pa.table({"job": cells})
    with path.open("wb") as stream:
        writer = format_named("stata").writer(
            stream, table.schema, presentation=Presentation(value_labels={"job": labels})
        )
        writer.write_batch(table.to_batches()[0])
        writer.close()
    cells_read, _ = pytest.importorskip("pyreadstat").read_dta(path, output_format="dict")
    return list(cells_read["job"]), labels_of(path)


def test_new_codes_depend_on_released_labels_alone(tmp_path: Path) -> None:
    """A new label got the code after the largest of the file, which tells how many labels there are."""
    found = [
        coded(["new", "cook", "3", "07", None], {1: "clerk", 2: "cook"} | more, tmp_path / "t.dta")
        for more in ({}, {3: SECRET}, {9: SECRET})
    ]
    assert found[0] == found[1] == found[2] == ([4, 2, 3, 5, None], {2: "cook", 4: "new", 5: "07"})
    assert coded(["3", "nurse"], {3: "nurse"}, tmp_path / "t.dta") == ([4, 3], {3: "nurse", 4: "3"})


def test_codes_are_public_and_the_guarantee_says_so(tmp_path: Path) -> None:
    file = labelled(tmp_path / "in.sav", [1.0, 2.0] * 150, {1: "clerk", 2: "cook"})
    guarantee = dipriv.privatize(file, 1.0).guarantee
    assert [one.names for one in guarantee.assumptions if one.kind is AssumptionKind.CODES_PUBLIC] == [("job",)]
    assert "which code a label of 'job' has is public" in str(guarantee)
    assert type(guarantee).from_dict(guarantee.to_dict()) == guarantee


EXTREME = {
    "number": pa.array([float("inf"), -float("inf"), float("nan"), 1.7e308, None]),
    "day": pa.array([10**8, -(10**8), None], pa.int32()).cast(pa.date32()),
    "moment": pa.array([10**18, -(10**18), None]).cast(pa.timestamp("us")),
    "zoned": pa.array([253402300799999999, -62135596800000000, None]).cast(pa.timestamp("us", "Europe/Berlin")),
    "time": pa.array([1, 86399999999999, None]).cast(pa.time64("ns")),
    "label": pa.array(["x" * 40000, "a\0b", "", "1.5", "1e20", "inf", "half", "large", None]),
}


@pytest.mark.parametrize("name", EXTREME)
@pytest.mark.parametrize("form", ["stata", "spss", "xport", "excel", "jsonl"])
def test_every_cell_can_be_written(form: str, name: str) -> None:
    """Some failed after ε was spent: infinities in Stata, moments beyond Python's years, codes that are not whole."""
    pytest.importorskip("openpyxl" if form == "excel" else "pyreadstat")
    table = pa.table({name: EXTREME[name]})
    known, stream = format_named(form), io.BytesIO()
    known.check_writable(table.schema, table.num_rows)
    labels: dict[str, dict[int | float, str]] = {"label": {1.5: "half", 1e10: "large"}} if name == "label" else {}
    writer = known.writer(stream, table.schema, presentation=Presentation(value_labels=labels))
    writer.write_batch(table.to_batches()[0])
    writer.close()
    assert stream.getvalue()


# ---- the order of columns, and the number of rows ----


def test_no_row_settles_the_order_of_columns(tmp_path: Path) -> None:
    """A first line without a key put its column last."""
    usual = [{"b": k, "a": k % 3, "c": k % 5} for k in range(50)]
    orders = [
        File.at(json_lines(tmp_path / "t.jsonl", [first, *usual])).typed().schema.names
        for first in (usual[0], {"b": 1, "c": 3}, {"c": 3, "b": 2, "a": 1})
    ]
    assert orders == [["a", "b", "c"]] * 3


def test_a_row_without_cells_is_a_row(tmp_path: Path) -> None:
    """Rows of a sheet whose cells are all missing were left out, so that the number of rows told of them."""
    rows = [[k % 7, k % 5] for k in range(30)]
    missing: list[Sequence[Any]] = [*rows[:10], [], [None, None], *rows[12:]]
    found = [File.at(workbook(tmp_path / "t.xlsx", ["a", "b"], of)).read() for of in (rows, missing)]
    assert [table.num_rows for table in found] == [30, 30]
    assert found[1]["a"].to_pylist() == [*found[0]["a"].to_pylist()[:10], None, None, *(k % 7 for k in range(12, 30))]
    trailing = File.at(workbook(tmp_path / "t.xlsx", ["a", "b"], [*rows, [], []])).read()
    assert trailing.num_rows == 30
    below = workbook(tmp_path / "t.xlsx", [], [[], ["a", "b"], *rows])  # a title's place that is empty
    assert File.at(below).read().num_rows == 30


# ---- types ----


def read(file: File, rules: TypeRules) -> tuple[Any, ...]:
    """The type of x, and its cells but the last; or that it is asked about."""
    typed = file.typed(rules)
    if typed.questions:
        return ("asked",)
    column = file.table(typed)["x"]
    return column.type, column.to_pylist()[:-1]


def stored(path: Path, cells: Sequence[Any]) -> File:
    if path.suffix == ".xlsx":
        return File.at(workbook(path, ["x", "y"], [[cell, "a"] for cell in cells]))
    return File.at(json_lines(path, [{"x": cell, "y": "a"} for cell in cells]))


ROWS = 40
FLAGS = ["true", "false"] * 20, [True, False] * 20
MONEY = [f"${1000 + k:,}" for k in range(ROWS)]
COLUMNS: dict[str, tuple[Sequence[Any], Sequence[Any]]] = {
    "flags": FLAGS,
    "money": (MONEY, [12.5] * ROWS),
    "money or text": (MONEY, ["12"] * ROWS),
    "grouped or not": ([str(100 + k) for k in range(ROWS)], [f"{1000 + k:,}" for k in range(ROWS)]),
    "codes": ([f"0{k % 10}" for k in range(ROWS)], range(ROWS)),
    "comma": (["1,234"] * ROWS, [1234] * ROWS),
    "marked": (["k.A.", "B"] * 20, ["k.A.", *range(ROWS - 1)]),
    "words": (["word"] * ROWS, range(ROWS)),
    "days": ([f"{13 + k % 15}/01/2024" for k in range(ROWS)], ["2024-01-01"] * ROWS),
}
RULES = {
    "nothing": TypeRules(),
    "number": TypeRules.of({"x": Discrete()}, {}),
    "labels": TypeRules.of({"x": Categorical()}, {}),
    "text": TypeRules.of({"x": Categorical(levels=("a",))}, {}, Dialect(missing=("k.A.",))),
    "marks": TypeRules(marks=("k.A.",)),
    "exact": TypeRules.of({}, {"x": "decimal"}),
    "decimal": TypeRules.of({}, {"x": "decimal"}, Dialect(decimal=",")),
}


@pytest.mark.slow
@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("ending", ["xlsx", "jsonl"])
def test_no_row_changes_how_other_rows_are_read(ending: str, column: str, tmp_path: Path) -> None:
    """How many cells are stored as text chose between two readers: 95% had the one, 94% the other."""
    one, other = COLUMNS[column]
    for share in (38, 37, 21, 20, 2):
        of = [*one[:share], *other[share:-1]]
        neighbours = [
            stored(tmp_path / f"t{k}.{ending}", [*of, last]) for k, last in enumerate((one[-1], other[-1], None))
        ]
        for name, rules in RULES.items():
            results = [read(file, rules) for file in neighbours]
            assert len({repr(result) for result in results if result != ("asked",)}) <= 1, (share, name, results)
            if name == "text" or (name == "exact" and column != "days"):
                assert ("asked",) not in results


def test_how_much_is_stored_as_text_moves_no_type_without_a_question(tmp_path: Path) -> None:
    """Control: the ends differ, so there is something to be asked between them."""
    types: list[Any] = []
    for share in range(ROWS, -1, -4):
        found = read(stored(tmp_path / "t.xlsx", [*FLAGS[0][:share], *FLAGS[1][share:]]), TypeRules())[0]
        if not types or types[-1] != found:
            types.append(found)
    assert types == [pa.string(), "asked", pa.bool_()]


def test_numbers_as_text_are_read_as_the_schema_says(tmp_path: Path) -> None:
    """With 51 plain ones of 100 the others were missing, with 50 none was."""
    for share in (100, 51, 50, 0):
        cells = [str(100 + k) if k < share else f"{1000 + k:,}" for k in range(100)]
        table = stored(tmp_path / "t.jsonl", cells).read(TypeRules.of(Schema({"x": Discrete()}), {}))
        assert table["x"].type == pa.int64()
        assert table["x"].null_count == 0


def test_errors_of_a_sheet_are_no_texts(tmp_path: Path) -> None:
    """They counted as cells of text, so that numbers beside them were asked about."""
    path = workbook(tmp_path / "t.xlsx", ["x"], [[k] if k % 2 else ["#N/A"] for k in range(100)])
    assert File.at(path).read()["x"].type == pa.int64()


# ---- what the guarantee says ----


EXACT: dict[str, Any] = {"x": "text", "y": "text"}


def test_types_that_cells_settle_are_a_condition(tmp_path: Path) -> None:
    """Columns of text in workbooks and JSON lines, and labels, counted as stated by the file."""
    rows = [["nurse", "a"], ["cook", "b"]] * 20
    book = workbook(tmp_path / "t.xlsx", ["x", "y"], rows)
    lines = json_lines(tmp_path / "t.jsonl", [{"x": x, "y": y} for x, y in rows])
    exact, nothing = TypeRules.of({}, EXACT), TypeRules()
    assert open_file(File.at(book)).infers_types(["x", "y"], nothing)
    assert not open_file(File.at(book)).infers_types(["x", "y"], exact)
    assert open_file(File.at(lines)).infers_types(["x", "y"], nothing)
    assert open_file(File.at(lines)).infers_types(["x", "y"], exact)  # which keys are columns
    coded_file = labelled(tmp_path / "t.dta", [1.0, 2.0] * 20, {1: "clerk", 2: "cook"})
    for rules in (nothing, TypeRules.of({}, {"job": "text"})):
        assert open_file(File.at(coded_file)).infers_types(["job"], rules)  # labels or codes
    release = dipriv.privatize(book, 1.0)
    assert "how numbers and dates are written" in str(release.guarantee)


def test_columns_that_a_file_says_are_text_are_no_condition(tmp_path: Path) -> None:
    pandas, pyreadstat = pytest.importorskip("pandas"), pytest.importorskip("pyreadstat")
    frame = pandas.DataFrame({"x": ["nurse", "cook"] * 20, "pay": ["$1,200", "$950"] * 20})
    pyreadstat.write_dta(frame, tmp_path / "t.dta")
    assert not open_file(File.at(tmp_path / "t.dta")).infers_types(["x", "pay"], TypeRules())
    with pytest.raises(SchemaError, match="number or text"):  # so no cell may settle what they are
        File.at(tmp_path / "t.dta").read()


def test_a_stated_text_with_few_cells_stays_text(tmp_path: Path) -> None:
    pandas, pyreadstat = pytest.importorskip("pandas"), pytest.importorskip("pyreadstat")
    frame = pandas.DataFrame({"x": [""] * 40, "y": ["", "word"] * 20, "z": [*[""] * 39, "word"], "n": np.arange(40.0)})
    pyreadstat.write_dta(frame, tmp_path / "t.dta")
    table = File.at(tmp_path / "t.dta").read()
    assert [table[name].type for name in "xyz"] == [pa.string()] * 3
