"""Excel, Stata, SPSS, SAS, JSON lines and ORC: the same table from every format, labels kept, hostile files refused."""

from __future__ import annotations

import datetime as dt
import io
import json
import sys
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dipriv import Dialect, Ledger, Release, inspect, privatize, privatize_file
from dipriv._sinks import FileSink
from dipriv._tables.column_types import TypeRules
from dipriv._tables.presentation import Presentation
from dipriv.errors import InputError, MissingDependencyError, SchemaError
from dipriv.sources._formats import excel
from dipriv.sources._formats.parquet import Parquet
from dipriv.sources.files import File
from tests.unit.refusal import refused

openpyxl = pytest.importorskip("openpyxl", reason="needs dipriv[excel]")
pyreadstat = pytest.importorskip("pyreadstat", reason="needs dipriv[stats]")

MARKER = "zq7-marker-xv"
N = 300


def people() -> pa.Table:
    rng = np.random.default_rng(0)
    pay = [None if rng.random() < 0.1 else round(float(x), 2) for x in rng.normal(100, 20, N)]
    days = [dt.date(2020, 1, 1) + dt.timedelta(int(k)) for k in rng.integers(0, 900, N)]
    whole = [None if rng.random() < 0.1 else int(x) for x in rng.integers(0, 9, N)]
    city = [None if rng.random() < 0.05 else str(x) for x in rng.choice(["Köln", "Bonn", "=1+1", "a;b"], N)]
    return pa.table(
        {
            "age": rng.integers(18, 80, N),
            "visits": pa.array(whole, pa.int64()),
            "pay": pay,
            "city": city,
            "day": pa.array(days, pa.date32()),
        }
    )


PEOPLE = people()
SLOW = [pytest.param(ending, marks=pytest.mark.slow) for ending in ("sav", "xpt", "dta.zst")]
ENDINGS = ["csv", "tsv", "xlsx", "dta", "jsonl", "orc", "parquet", "jsonl.gz", *SLOW]


def put(path: Path, table: pa.Table, presentation: Presentation | None = None) -> Path:
    with FileSink.at(path, force=True) as sink:
        sink.check(table.schema, table.num_rows, presentation)
        for batch in table.to_batches(max_chunksize=100):
            sink.write(batch)
        sink.commit()
    return path


@pytest.mark.slow
@pytest.mark.parametrize("ending", ENDINGS)
def test_the_same_table_and_the_same_release_from_every_format(ending: str, tmp_path: Path) -> None:
    """Under the same seed, and with the table in memory beside it."""
    name = f"t.{ending}"
    people = PEOPLE.select(sorted(PEOPLE.column_names)) if ending.startswith("jsonl") else PEOPLE  # keys have no order
    file = put(tmp_path / name, PEOPLE)
    assert File.at(file).read().cast(people.schema).equals(people)
    assert inspect(file).rows == N
    release = privatize(file, 1.0, seed=3)
    assert release.data.to_table().to_pydict() == privatize(people, 1.0, seed=3).data.to_pydict()
    again = privatize_file(file, tmp_path / f"out-{name}", 1.0, seed=3)
    assert again.guarantee == release.guarantee
    read = File.at(tmp_path / f"out-{name}").read(TypeRules.like(people.schema))
    assert read.cast(people.schema).to_pydict() == release.data.to_table().to_pydict()


@pytest.mark.parametrize("ending", ["xlsx", "jsonl", "csv"])
def test_times_and_booleans(ending: str, tmp_path: Path) -> None:
    moments = pa.array([dt.datetime(2024, 1, 1, 9, 30, k) for k in range(60)], pa.timestamp("s"))
    table = pa.table({"at": moments, "ok": [True, False] * 30, "time": pa.array(range(60), pa.time32("s"))})
    assert File.at(put(tmp_path / f"t.{ending}", table)).read().equals(table)


@pytest.mark.parametrize("ending", ["dta", "sav", "xpt"])
def test_times_of_statistics_packages(ending: str, tmp_path: Path) -> None:
    moments = [dt.datetime(1899, 1, 1, 9, 30, k) for k in range(59)]
    table = pa.table({"at": pa.array([*moments, None], pa.timestamp("s"))})
    assert File.at(put(tmp_path / f"t.{ending}", table)).read().equals(table)


# ---- labels ----


def labelled(path: Path, codes: list[float | None], labels: dict[int, str]) -> Path:
    import pandas as pd

    write = pyreadstat.write_dta if path.suffix == ".dta" else pyreadstat.write_sav
    frame = pd.DataFrame({"sex": codes, "age": [float(k % 60) for k in range(len(codes))]})
    write(frame, path, variable_value_labels={"sex": labels}, column_labels={"sex": "Sex of the person"})
    return path


@pytest.mark.parametrize("ending", ["dta", pytest.param("sav", marks=pytest.mark.slow)])
def test_value_labels_are_kept(ending: str, tmp_path: Path) -> None:
    file = labelled(tmp_path / f"t.{ending}", [1.0, 2.0, 2.0, None] * 100, {1: "male", 2: "female", 9: "not known"})
    assert File.at(file).read()["sex"].to_pylist() == ["male", "female", "female", None] * 100
    release = privatize_file(file, tmp_path / f"out.{ending}", 5.0, seed=1)
    read = pyreadstat.read_dta if ending == "dta" else pyreadstat.read_sav
    cells, facts = read(tmp_path / f"out.{ending}", output_format="dict")
    assert set(cells["sex"]) <= {1, 2, None, 3}
    assert {1, 2} <= set(cells["sex"])
    labels = {int(code): text for code, text in facts.variable_value_labels["sex"].items()}
    assert labels.items() >= {1: "male", 2: "female"}.items()
    assert 9 not in labels  # no released row has it
    assert labels.get(3, "(other)") == "(other)"
    assert facts.column_names_to_labels["sex"] == "Sex of the person"
    written = File.at(tmp_path / f"out.{ending}").read()
    assert written.to_pydict() == release.data.to_table().to_pydict()
    privatize_file(file, tmp_path / "out.csv", 5.0, seed=1)
    same = File.at(tmp_path / "out.csv").read(TypeRules.like(written.schema))
    assert same.to_pydict() == written.to_pydict()  # the labels themselves where a format has none


@pytest.mark.slow
def test_numbers_of_which_a_few_have_labels_stay_numbers(tmp_path: Path) -> None:
    ages = [float(20 + k % 50) for k in range(99)]
    file = labelled(tmp_path / "t.sav", [*ages, 99.0], {99: "refused"})
    assert File.at(file).read()["sex"].to_pylist() == [*ages, 99.0]
    some = labelled(tmp_path / "t.sav", [1.0, 1.0, 7.0] * 20, {1: "yes"})
    refused(SchemaError, "column 'sex'", "have labels", call=lambda: File.at(some).read())


@pytest.mark.slow
def test_one_row_does_not_change_whether_labels_are_read(tmp_path: Path) -> None:
    labels, yes = {1: "yes", 2: "no"}, [1.0, 2.0] * 30
    for odd in (7.0, None, 1.5):
        found = File.at(labelled(tmp_path / "t.dta", [*yes, odd], labels)).read()
        assert found["sex"].to_pylist()[:60] == ["yes", "no"] * 30


@pytest.mark.slow
def test_texts_of_statistics_packages_stay_texts(tmp_path: Path) -> None:
    table = pa.table({"zip": ["01234", "12345"] * 30, "code": ["1", "2"] * 30})
    file = put(tmp_path / "t.dta", table)
    refused(SchemaError, "column 'code'", "it is text", "--type", call=lambda: File.at(file).read())
    text = TypeRules.of({}, {"code": "text"})
    assert File.at(file).read(text).equals(table)


# ---- what cannot be written, or is not installed ----


def test_what_cannot_be_written_is_refused_before_anything_is_spent(tmp_path: Path) -> None:
    file = put(tmp_path / "t.parquet", pa.table({"a b": list(range(50)), "c": list(range(50))}))

    book = Ledger.create(tmp_path / "ledger.db")

    def release(name: str) -> Any:
        return privatize_file(file, tmp_path / name, 1.0, ledger=book, dataset="people")

    refused(InputError, "sas7bdat", ".xpt", call=lambda: release("out.sas7bdat"))
    refused(InputError, "column 'a b'", "Stata", "Rename", call=lambda: release("out.dta"))
    assert sum(of.spent for of in book.datasets()) == 0
    assert isinstance(release("out.xlsx"), Release)
    assert book.dataset("people").spent == 1  # control
    book.close()


@pytest.mark.parametrize(("name", "package"), [("t.xlsx", "openpyxl"), ("t.sav", "pyreadstat")])
def test_a_missing_package_is_named(name: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / name, PEOPLE)
    monkeypatch.setitem(sys.modules, package, None)
    extra = "excel" if package == "openpyxl" else "stats"
    for call in (lambda: File.at(tmp_path / name).read(), lambda: put(tmp_path / f"other-{name}", PEOPLE)):
        refused(MissingDependencyError, package, f"pip install 'dipriv[{extra}]'", call=call)


@pytest.mark.parametrize(("name", "remedy"), [("t.xls", ".xlsx"), ("t.json", ".jsonl"), ("t.ods", ".csv")])
def test_formats_that_are_not_read(name: str, remedy: str, tmp_path: Path) -> None:
    refused(InputError, "are not read", remedy, call=lambda: File.at(tmp_path / name))


# ---- Excel ----


def workbook(path: Path, sheets: dict[str, list[list[Any]]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


ROWS: list[list[Any]] = [["a", "b"], *([k, f"x{k % 3}"] for k in range(40))]


def test_sheets(tmp_path: Path) -> None:
    file = workbook(tmp_path / "t.xlsx", {"notes": [["hello"]], "data": ROWS})
    refused(InputError, "has 2 sheets: 'notes', 'data'", "--sheet", call=lambda: File.at(file).read())
    refused(InputError, "no sheet 'dota'", call=lambda: File.at(file, dialect=Dialect(sheet="dota")).read())
    found = File.at(file, dialect=Dialect(sheet="data"))
    assert found.read()["a"].to_pylist() == list(range(40))
    assert found.described() == "sheet 'data'"
    above = workbook(tmp_path / "t.xlsx", {"data": [["Table 5"], [], *ROWS]})
    assert File.at(above, dialect=Dialect(skip=1)).read()["a"].to_pylist() == list(range(40))


def test_odd_cells_of_a_sheet(tmp_path: Path) -> None:
    rows = [*ROWS, [" 7 ", None], [None, None], [dt.datetime(2024, 1, 1), 1.5], ["#DIV/0!", True]]
    found = File.at(workbook(tmp_path / "t.xlsx", {"s": rows})).read()
    assert found["a"].to_pylist()[40:] == [7, None, None, None]
    assert found["b"].to_pylist()[40:] == [None, None, "1.5", "true"]
    wide = workbook(tmp_path / "t.xlsx", {"s": [*ROWS, [1, "x", MARKER]]})
    refused(InputError, "row 42 of the sheet", "without a name", call=lambda: File.at(wide).read())
    refused(InputError, "columns 1, 2 with a number", call=File.at(workbook(tmp_path / "t.xlsx", {"s": [[1, 2]]})).read)
    refused(InputError, "is empty", call=File.at(workbook(tmp_path / "t.xlsx", {"s": []})).read)


def test_codes_that_are_stored_as_text_are_no_numbers(tmp_path: Path) -> None:
    """As in Parquet, Stata and SPSS files: their keeper is asked. What only people write is read without that."""
    codes = [f"6060{k % 9}" for k in range(40)]
    rows: list[list[Any]] = [["zip", "n", "pay"], *([code, k, f"${k},200"] for k, code in enumerate(codes, 1))]
    file = workbook(tmp_path / "t.xlsx", {"s": rows})
    refused(SchemaError, "column 'zip': it is text", "--type zip=number", call=lambda: File.at(file).read())
    for odd in (7, None, "x"):  # one row changes nothing
        found = File.at(workbook(tmp_path / "t.xlsx", {"s": [*rows, [odd, 1, "$1,000"]]}))
        read = found.read(TypeRules.of({}, {"zip": "text"}))
        assert read["zip"].to_pylist()[:40] == codes
        assert read["pay"].to_pylist()[:40] == [k * 1000 + 200 for k in range(1, 41)]
        assert found.read(TypeRules.of({}, {"zip": "number"}))["zip"].to_pylist()[:40] == [*map(int, codes)]


@pytest.mark.slow
def test_a_decimal_mark_is_that_of_texts(tmp_path: Path) -> None:
    """Numbers that are stored as such have none."""
    rows: list[list[Any]] = [["a", "b"], *([k + 0.5, f"{k},250"] for k in range(40))]
    file = workbook(tmp_path / "t.xlsx", {"s": rows})
    comma = Dialect(decimal=",")
    found = File.at(file, dialect=comma).read(TypeRules.of({}, {}, comma))
    assert found.to_pydict() == {"a": [k + 0.5 for k in range(40)], "b": [k + 0.25 for k in range(40)]}
    table = pa.table({"a": [k + 0.5 for k in range(40)]})
    for name in ("t.sav", "t.dta", "t.jsonl", "t.parquet"):
        read = File.at(put(tmp_path / name, table), otherwise=comma).read(TypeRules.of({}, {}, comma))
        assert read.equals(table)
    for name in ("t.jsonl", "t.parquet"):
        refused(InputError, "decimal is given", call=lambda name=name: File.at(tmp_path / name, dialect=comma))  # type: ignore[misc]


def test_formulas_are_values_and_are_never_written(tmp_path: Path) -> None:
    file = workbook(tmp_path / "t.xlsx", {"s": [["a", "b"], *(["=1+1", k] for k in range(40))]})
    assert File.at(file).read(TypeRules.of({}, {"a": "text"}))["a"].null_count == 40  # no value was stored
    texts = pa.table({"=name": ["=HYPERLINK(1)", "+1", "@x", "-y"] * 10, "n": list(range(40))})
    book = openpyxl.load_workbook(put(tmp_path / "t.xlsx", texts))
    cells = [cell for row in book.active.iter_rows() for cell in row]
    assert {cell.data_type for cell in cells} <= {"s", "inlineStr", "n"}
    assert book.active["A2"].value == "=HYPERLINK(1)"
    with zipfile.ZipFile(tmp_path / "t.xlsx") as archive:
        assert b"<f>" not in archive.read("xl/worksheets/sheet1.xml")


def test_texts_that_excel_does_not_hold(tmp_path: Path) -> None:
    table = pa.table(
        {"s": ["a\x00b", "x" * 40_000, "c"], "d": [dt.date(1850, 1, 1)] * 3, "f": [float("inf"), 1.0, None]}
    )
    found = File.at(put(tmp_path / "t.xlsx", table)).read(TypeRules.like(table.schema)).to_pydict()
    assert found["s"] == ["a\N{REPLACEMENT CHARACTER}b", "x" * 32_767, "c"]
    assert found["d"] == table["d"].to_pylist()
    assert found["f"] == table["f"].to_pylist()


def repacked(path: Path, change: dict[str, bytes]) -> Path:
    """The workbook with other parts."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()} | change
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


SHEET = "xl/worksheets/sheet1.xml"
NAMESPACE = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'


def test_a_zip_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(excel, "MAX_UNPACKED_BYTES", 1 << 22)
    file = repacked(workbook(tmp_path / "t.xlsx", {"s": ROWS}), {"xl/media/x.bin": b"\0" * (1 << 23)})
    assert file.stat().st_size < 1 << 16
    refused(InputError, "t.xlsx unpacks to more than 4 MB", call=lambda: File.at(file).read())
    monkeypatch.setattr(excel, "MAX_MEMBERS", 3)
    small = workbook(tmp_path / "small.xlsx", {"s": ROWS})
    refused(InputError, "more than 3 parts", call=lambda: File.at(small).read())


def test_a_part_that_is_larger_than_it_says(tmp_path: Path) -> None:
    """Its reader unpacks no more of a part than it declares, and finds that the checksum is wrong."""
    file = workbook(tmp_path / "t.xlsx", {"s": ROWS})
    with zipfile.ZipFile(file) as archive:
        size = archive.getinfo(SHEET).file_size
    content = file.read_bytes()
    lie = content.replace(size.to_bytes(4, "little"), (50).to_bytes(4, "little"))
    assert lie != content
    file.write_bytes(lie)
    refused(InputError, "t.xlsx", "cannot be read as an Excel workbook", call=lambda: File.at(file).read())


@pytest.mark.slow
def test_enormous_dimensions(tmp_path: Path) -> None:
    file = workbook(tmp_path / "t.xlsx", {"s": ROWS})

    def sheet(rows: str, dimension: str = "A1:XFD1048576") -> Path:
        text = f'<worksheet {NAMESPACE}><dimension ref="{dimension}"/><sheetData>{rows}</sheetData></worksheet>'
        return repacked(file, {SHEET: text.encode()})

    names = '<row r="1"><c r="A1" t="inlineStr"><is><t>a</t></is></c></row>'
    cells = "".join(f'<row r="{k}"><c r="A{k}"><v>{k}</v></c></row>' for k in range(2, 40))
    assert File.at(sheet(names + cells)).read().num_rows == 38
    assert File.at(sheet(names + cells, "A1:A3")).read().num_rows == 38  # what it says is not believed
    far = names + cells + '<row r="1048576"><c r="A1048576"><v>1</v></c></row>'
    refused(InputError, "rows 40 to 1,048,575 of the sheet have no cell", call=File.at(sheet(far)).read)
    near = names + cells + '<row r="100"><c r="A100"><v>1</v></c></row>'
    assert File.at(sheet(near)).read().num_rows == 99
    beyond = names + '<row r="99999999999"><c r="A99999999999"><v>1</v></c></row>'
    refused(InputError, "at most 1,048,576 rows", call=lambda: File.at(sheet(beyond)).read())
    wide = names + "".join(f'<row r="{k}"><c r="XFD{k}"><v>1</v></c></row>' for k in range(2, 40))
    assert File.at(sheet(wide)).read_with_questions()[0].column_names == ["a"]


def test_entities_links_and_macros(tmp_path: Path) -> None:
    laughs = '<!DOCTYPE w [<!ENTITY a "aaaaaaaaaa">' + "".join(
        f'<!ENTITY {chr(98 + k)} "{f"&{chr(97 + k)};" * 10}">' for k in range(9)
    )
    cells = '<sheetData><row r="1"><c t="str"><v>&j;</v></c></row></sheetData>'
    text = f"{laughs}]><worksheet {NAMESPACE}>{cells}</worksheet>"
    file = repacked(workbook(tmp_path / "t.xlsx", {"s": ROWS}), {SHEET: text.encode()})
    refused(InputError, "cannot be read as an Excel workbook", call=lambda: File.at(file).read())
    file = repacked(workbook(tmp_path / "t.xlsx", {"s": ROWS}), {"xl/vbaProject.bin": b"junk"})
    assert File.at(file).read().num_rows == 40
    linked = repacked(workbook(tmp_path / "t.xlsx", {"s": ROWS}), {"xl/externalLinks/externalLink1.xml": b"<x/>"})
    refused(InputError, "links to other workbooks", call=lambda: File.at(linked).read())
    (tmp_path / "old.xlsx").write_bytes(bytes.fromhex("d0cf11e0a1b11ae1") + b"\0" * 600)
    refused(InputError, "older workbook, or has a password", call=lambda: File.at(tmp_path / "old.xlsx").read())


@pytest.mark.parametrize("place", ["file:///etc/passwd", "http://127.0.0.1:1/x.xml", "../../../../etc/passwd"])
def test_what_is_outside_of_a_workbook_is_not_read(place: str, tmp_path: Path) -> None:
    """A sheet that is said to be elsewhere, and an entity that is a file."""
    file, rels = workbook(tmp_path / "t.xlsx", {"s": ROWS}), "xl/_rels/workbook.xml.rels"
    with zipfile.ZipFile(file) as archive:
        text = archive.read(rels).decode()
    elsewhere = text.replace('Target="/xl/worksheets/sheet1.xml"', f'Target="{place}" TargetMode="External"')
    assert elsewhere != text
    refused(InputError, "t.xlsx", call=File.at(repacked(file, {rels: elsewhere.encode()})).read)
    cells = '<sheetData><row r="1"><c t="str"><v>&x;</v></c></row></sheetData>'
    sheet = f'<!DOCTYPE w [<!ENTITY x SYSTEM "{place}">]><worksheet {NAMESPACE}>{cells}</worksheet>'
    file = repacked(workbook(tmp_path / "t.xlsx", {"s": ROWS}), {SHEET: sheet.encode()})
    error = refused(InputError, "t.xlsx", call=File.at(file).read)
    assert "root:" not in str(error)


# ---- files that are damaged, or too large ----


@pytest.mark.parametrize(
    "name",
    [
        *("t.xlsx", "t.jsonl", "t.orc"),
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("t.dta", "t.sav", "t.xpt", "t.sas7bdat")),
    ],
)
def test_damaged_files(name: str, tmp_path: Path) -> None:
    contents = [b"", f"{MARKER},1\n".encode() * 20, b"PK\3\4" + MARKER.encode() * 9]
    if name != "t.sas7bdat":
        whole = put(tmp_path / name, pa.table({"a": [MARKER] * 50, "b": list(range(50))})).read_bytes()
        contents += [whole[: len(whole) // 2], whole[:-1], whole[:20]]
    for content in contents:
        (tmp_path / name).write_bytes(content)
        with suppress(InputError):  # a file that was cut may be read up to there
            message = str(read_or_refuse(tmp_path / name))
            assert MARKER not in message
            assert name in message or "column" in message


def read_or_refuse(file: Path) -> InputError:
    """The error of a file that is refused; raises one for a file that is read."""
    try:
        File.at(file).read()
    except InputError as error:
        return error
    raise InputError("it is read.", "That is fine.")


def test_a_table_that_does_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dipriv.errors import StorageError
    from dipriv.sources._formats import statistics_packages, whole

    file = put(tmp_path / "t.dta", PEOPLE)
    monkeypatch.setattr(whole, "BYTES_A_CELL", 1 << 40)
    monkeypatch.setattr(statistics_packages, "BYTES_A_CELL", 1 << 40)
    refused(StorageError, "t.dta has 300 rows and 5 columns", call=lambda: File.at(file).read())


@pytest.mark.parametrize(("name", "shown"), [("t.sav", "a SPSS file"), ("t.orc", "an ORC file")])
def test_a_file_that_ends_the_process_that_reads_it(
    name: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dipriv.sources import _reader_process

    file = put(tmp_path / name, PEOPLE)
    fatal = tmp_path / "fatal.py"
    fatal.write_text("import os\nos.abort()\n")
    monkeypatch.setattr(_reader_process, "__file__", str(fatal))
    refused(InputError, f"{name} cannot be read as {shown}", call=lambda: File.at(file).read())


@pytest.mark.slow
def test_statistics_files_are_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dipriv.sources._formats import statistics_packages

    for name in ("t.dta", "t.sav", "t.xpt"):
        file = put(tmp_path / name, PEOPLE)
        monkeypatch.setattr(statistics_packages, "CELLS_AT_ONCE", 5 * 77)
        assert File.at(file).read().equals(PEOPLE)
        monkeypatch.setattr(statistics_packages, "CELLS_AT_ONCE", 5 * 100)  # the last part is empty
        assert File.at(file).read().equals(PEOPLE)


# ---- JSON lines ----


def test_parquet_has_dictionaries_where_values_repeat(tmp_path: Path) -> None:
    numbers = np.arange(1000)
    plain = {"number": numbers, "a.b": numbers % 10, "real": numbers / 7, "text": [str(each % 3) for each in numbers]}
    table = pa.table({**plain, "all": pa.array(list("xy") * 500).dictionary_encode(), "null": pa.nulls(1000)})
    nested = table.append_column("list", [[[each, each] for each in range(1000)]])
    for rows, expected in (
        (table, {"a.b", "text", "all", "null"}),
        (nested, {*table.column_names, "list.list.element"}),
    ):
        with Parquet().writer(tmp_path / "x.parquet", rows.schema) as writer:
            writer.write_batch(rows.to_batches()[0])
        written = pq.ParquetFile(tmp_path / "x.parquet")
        columns = [written.metadata.row_group(0).column(place) for place in range(written.metadata.num_columns)]
        assert {of.path_in_schema for of in columns if "RLE_DICTIONARY" in of.encodings} == expected
        assert written.read().equals(rows)
    with Parquet().writer(tmp_path / "none.parquet", table.schema):
        pass
    assert pq.read_table(tmp_path / "none.parquet").equals(table.slice(0, 0))


def test_json_lines(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    good = [{"a": k, "b": k / 4, "c": "x", "ok": k % 2 == 0} for k in range(40)]
    lines = [json.dumps(row) for row in good]
    file.write_text("\ufeff" + "\n\n".join(lines), encoding="utf-8")
    assert File.at(file).read().to_pylist() == good
    file.write_text("\n".join([*lines, '{"b": NaN, "c": null, "ok": true}']))
    assert File.at(file).read().to_pylist()[40] == {"a": None, "b": None, "c": None, "ok": True}
    for bad, fault in {
        "{": "line 41 is not JSON",
        "[1]": "line 41 is not an object",
        '{"a": {"x": 1}}': "line 41 is not an object",
        f'{{"{MARKER}": 1}}': "line 41 has a key that fewer than 3 lines have",
        "[" * 100_000: "line 41 is not JSON",
    }.items():
        file.write_text("\n".join([*lines, bad]))
        error = refused(InputError, fault, call=lambda: File.at(file).read())
        assert MARKER not in str(error)


def test_codes_that_are_texts_in_json_are_no_numbers(tmp_path: Path) -> None:
    rows = [{"code": f"6060{k % 9}", "n": k, "day": f"2024-01-{1 + k % 30:02}", "pay": "$1,200"} for k in range(60)]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    refused(SchemaError, "column 'code': it is text", call=File.at(tmp_path / "t.jsonl").read)
    found = File.at(tmp_path / "t.jsonl").read(TypeRules.of({}, {"code": "text"}))
    assert [str(of) for of in found.schema.types] == ["string", "date32[day]", "int64", "int64"]
    assert found["code"].to_pylist() == [row["code"] for row in rows]


def test_numbers_of_json_are_exact(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"n": 9007199254740993, "s": "\\ud800x"}\n' * 20)
    found = File.at(tmp_path / "t.jsonl").read()
    assert found["n"][0].as_py() == 9007199254740993
    assert found["s"][0].as_py() == "?x"


def test_a_pipe_has_a_format(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    content = put(tmp_path / "t.xlsx", PEOPLE).read_bytes()

    class Input:
        buffer = io.BytesIO(content)

    monkeypatch.setattr(sys, "stdin", Input())
    assert File.at("-", "excel").read().equals(PEOPLE)
