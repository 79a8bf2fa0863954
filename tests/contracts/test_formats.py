"""What every file format promises, those of dipriv and one that a test adds: rows come back, whole and typed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dipriv
import tests.contracts.toy_format  # noqa: F401 (registers itself)
from dipriv._sinks import FileSink
from dipriv._tables.presentation import Presentation
from dipriv.errors import InputError
from dipriv.guarantee import Assumption, AssumptionKind
from dipriv.sources._formats import format_of
from dipriv.sources._formats.registry import format_named
from dipriv.sources.files import File

SUFFIXES = {
    "csv": ".csv",
    "tsv": ".tsv",
    "parquet": ".parquet",
    "arrow": ".arrow",
    "orc": ".orc",
    "jsonl": ".jsonl",
    "excel": ".xlsx",
    "stata": ".dta",
    "spss": ".sav",
    "xport": ".xpt",
    "toy-lines": ".toyl",
}
DATED = {"excel", "stata", "spss", "xport"}
"""Formats that write when a file was made."""
WITHOUT_BOOLEANS = {"stata", "spss", "xport"}
MARKER = "zq7-marker-xv"
TABLE = pa.table(
    {
        "whole": pa.array([1, 2, None, -4, 2**53]),
        "real": [0.1, 1.5, 2.5, None, 1e-300],
        "text": ["a", "Köln ☃ \U0001f600", "two\nlines", 'say "x", \ttab', "x" * 200],
        "when": pa.array([0, 86_400, None, 10, 1_700_000_000], pa.timestamp("s")),
        "flag": [True, False, None, True, True],
    }
)
READ_IN_A_PROCESS = {"stata", "spss", "xport"}
every_format = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in READ_IN_A_PROCESS)) for name in SUFFIXES]
)


def kinds(schema: pa.Schema) -> list[str]:
    """The types, but for the unit of times: Parquet has no seconds."""
    return [str(kind).partition("[")[0] for kind in schema.types]


def table_for(name: str) -> pa.Table:
    """A table of all types that the format has; numbers of SAS transport files have a smaller range.

    Keys of JSON lines have no order: their columns are in that of the names.
    """
    if name == "jsonl":
        return TABLE.select(sorted(TABLE.column_names))
    table = TABLE.drop_columns(["flag"]) if name in WITHOUT_BOOLEANS else TABLE
    return table.set_column(1, "real", pa.array([0.1, 1.5, 2.5, None, 1e-70])) if name == "xport" else table


def put(path: Path, table: pa.Table = TABLE, size: int = 2, format: str | None = None) -> Path:
    with FileSink.at(path, format, force=True) as sink:
        for batch in table.to_batches(max_chunksize=size):
            sink.write(batch)
        sink.commit()
    return path


@every_format
def test_a_format_is_known_by_its_name_and_suffixes(name: str) -> None:
    known = format_named(name)
    assert known.name == name
    assert SUFFIXES[name] in known.suffixes
    for suffix in known.suffixes:
        assert format_of(f"people{suffix}") == (known, None)
        assert format_of(f"PEOPLE{suffix.upper()}.gz") == (known, "gzip")
    assert format_of("people", name) == (known, None)


@every_format
@pytest.mark.parametrize("packed", ["", ".gz", ".zst"])
def test_rows_come_back_with_types_nulls_and_letters(name: str, packed: str, tmp_path: Path) -> None:
    file = put(tmp_path / f"t{SUFFIXES[name]}{packed}", table_for(name))
    for _ in range(2):  # as often as needed
        found = File.at(file).read()
        assert found.to_pydict() == table_for(name).to_pydict()
        assert kinds(found.schema) == kinds(table_for(name).schema)
    assert [found.name for found in tmp_path.iterdir()] == [file.name]


@every_format
def test_the_format_can_be_given_instead_of_a_suffix(name: str, tmp_path: Path) -> None:
    file = put(tmp_path / "people.data", table_for(name), format=name)
    assert File.at(file, name).read().to_pydict() == table_for(name).to_pydict()
    with pytest.raises(InputError, match="does not tell a format"):
        File.at(file)


@every_format
def test_the_schema_is_that_of_the_rows(name: str, tmp_path: Path) -> None:
    file = File.at(put(tmp_path / f"t{SUFFIXES[name]}", table_for(name)))
    rows = file.typed()
    assert rows.schema.names == table_for(name).column_names
    assert kinds(rows.schema) == kinds(table_for(name).schema)
    assert all(column.metadata is None for column in rows.schema)
    assert file.n_rows() in (None, TABLE.num_rows)


@every_format
def test_some_columns_are_read_in_the_order_that_is_asked_for(name: str, tmp_path: Path) -> None:
    rows = File.at(put(tmp_path / f"t{SUFFIXES[name]}", table_for(name))).typed()
    found = pa.Table.from_batches(rows.batches(["text", "whole"]))
    assert found.to_pydict() == TABLE.select(["text", "whole"]).to_pydict()


@every_format
def test_batches_do_not_change_the_rows(name: str, tmp_path: Path) -> None:
    table = pa.table({"a": np.arange(5000), "b": np.arange(5000) / 7})
    files = [put(tmp_path / f"{size}{SUFFIXES[name]}", table, size) for size in (777, 5000)]
    for file in files:
        rows = File.at(file).typed()
        batches = list(rows.batches(["a", "b"]))
        assert pa.Table.from_batches(batches).to_pydict() == table.to_pydict()
        assert all(batch.num_rows for batch in batches)
        assert all(batch.schema.equals(rows.schema) for batch in batches)


@every_format
def test_batches_may_have_dictionaries_of_their_own(name: str, tmp_path: Path) -> None:
    parts: list[list[str | None]] = [["b", "a", None], ["a", "c"], ["c"], ["b", "d", "a"]]
    batches = [pa.record_batch({"n": range(len(part)), "x": pa.array(part).dictionary_encode()}) for part in parts]
    with FileSink.at(tmp_path / f"t{SUFFIXES[name]}") as sink:
        for batch in batches:
            sink.write(batch)
        sink.commit()
    found = File.at(tmp_path / f"t{SUFFIXES[name]}").read()["x"].to_pylist()
    assert [cell or None for cell in found] == [cell for part in parts for cell in part]  # some have no null texts


@every_format
def test_what_is_not_of_the_format_is_refused_without_a_cell(name: str, tmp_path: Path) -> None:
    broken = tmp_path / f"t{SUFFIXES[name]}"
    broken.write_bytes(f'{{"a": 1,2\n"{MARKER}\n'.encode() + b"\xff\xfe\0")
    with pytest.raises(InputError) as caught:
        File.at(broken).read()
    assert broken.name in caught.value.fault
    assert MARKER not in f"{caught.value} {caught.value.__cause__}"
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def people(rows: int = 800) -> pa.Table:
    rng = np.random.default_rng(4)
    return pa.table(
        {
            "row": np.arange(rows),
            "age": rng.integers(18, 90, rows),
            "pay": rng.normal(size=rows),
            "city": rng.choice(["Bonn", "Köln", "Ulm"], rows),
        }
    )


def texts(table: pa.Table) -> dict[str, list[Any]]:
    """The cells; those of the kept column as texts, as which a text file has them."""
    plain: dict[str, list[Any]] = table.to_pydict()
    return plain | {"row": [str(cell) for cell in plain["row"]]}


def cells(path: Path) -> dict[str, list[Any]]:
    return texts(File.at(path).read())


CODES = {1.0: "female", 2.0: "male", 9.0: "not known"}
SCHEMA = dipriv.Schema(
    {"age": dipriv.Discrete(step=1), "pay": dipriv.Continuous(lower=0.0)},
    dipriv.Dialect(separator=";", decimal=",", encoding="latin-1", missing=("k.A.",)),
)


def survey(rows: int = 900) -> pa.Table:
    """Whole numbers and decimals with nulls, dates, labels, and codes whose zeros count."""
    rng = np.random.default_rng(9)
    missing = rng.random((2, rows)) < 0.1
    days = np.datetime64("2020-01-01") + rng.integers(0, 900, rows)
    return pa.table(
        {
            "age": pa.array(rng.integers(18, 90, rows), mask=missing[0]),
            "pay": pa.array(np.round(rng.gamma(2, 900, rows), 2), mask=missing[1]),
            "sex": rng.choice([*CODES.values()], rows),
            "zip": rng.choice(["01067", "04109", "50667"], rows),
            "day": pa.array(days).cast(pa.date32()),
        }
    )


def written(path: Path, table: pa.Table) -> Path:
    """As people have it: CSV from a spreadsheet with decimal commas, SPSS and Stata with labelled codes."""
    if path.suffix == ".csv":
        rows = [";".join("k.A." if cell is None else str(cell) for cell in row.values()) for row in table.to_pylist()]
        text = "\n".join([";".join(table.column_names), *rows]).replace(".", ",").replace("k,A,", "k.A.")
        path.write_text(text, encoding="latin-1")
        return path
    with FileSink.at(path) as sink:
        sink.check(table.schema, table.num_rows, Presentation(value_labels={"sex": CODES}))
        for batch in table.to_batches():
            sink.write(batch)
        sink.commit()
    return path


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".csv", ".xlsx", ".dta", ".sav", ".parquet", ".orc", ".jsonl"])
def test_the_same_table_from_every_format_gives_the_same_release(suffix: str, tmp_path: Path) -> None:
    """Under the same seed and with the same schema, whose section about the file is for CSV alone."""
    if suffix in (".dta", ".sav", ".xlsx"):
        pytest.importorskip("openpyxl" if suffix == ".xlsx" else "pyreadstat")
    table = survey()
    if suffix == ".jsonl":  # keys have no order
        table = table.select(sorted(table.column_names))
    here: Any = dipriv.privatize(table, 1.0, schema=SCHEMA, seed=3)
    file = written(tmp_path / f"t{suffix}", table)
    release = dipriv.privatize(file, 1.0, schema=SCHEMA, seed=3)
    assert release.data.to_table().to_pydict() == here.data.to_pydict()
    assert release.data.schema.names == table.column_names
    assert {*here.data["zip"].to_pylist()} <= {"01067", "04109", "50667", None}
    assert dipriv.privatize(file, 1.0, schema=SCHEMA, seed=4).data.to_table().to_pydict() != here.data.to_pydict()
    if suffix == ".sav":
        import pyreadstat

        cells, facts = pyreadstat.read_sav(file, output_format="dict")
        assert {*cells["sex"]} == {*CODES}  # a control: the file has codes
        assert facts.variable_value_labels["sex"] == CODES


@pytest.mark.slow
@every_format
@pytest.mark.parametrize("options", [{}, {"reference": "holdout"}], ids=["private", "holdout"])
def test_a_release_goes_in_and_out(name: str, options: dict[str, Any], tmp_path: Path) -> None:
    file, out = put(tmp_path / f"in{SUFFIXES[name]}", people(), 300), tmp_path / f"out{SUFFIXES[name]}"
    release = dipriv.privatize_file(file, out, 1.0, keep=["row"], seed=3, **options)
    table = people().select(sorted(people().column_names)) if name == "jsonl" else people()  # keys have no order
    here: Any = dipriv.privatize(table, 1.0, keep=["row"], seed=3, **options)
    assert cells(out) == texts(here.data)
    inferred = (Assumption(AssumptionKind.FILE_TYPES_PUBLIC),) if not format_named(name).has_types else ()
    assert release.guarantee.assumptions == (*here.guarantee.assumptions, *inferred)
    sidecar = json.loads(out.with_name(f"{out.name}.dipriv.json").read_text(encoding="utf-8"))
    assert sidecar["guarantee"] == release.guarantee.to_dict()
    other = tmp_path / f"other{SUFFIXES[name]}"
    dipriv.privatize_file(file, other, 1.0, keep=["row"], seed=4, **options)
    assert cells(other) != texts(here.data)  # control: the noise is there
    written = tmp_path / f"written{SUFFIXES[name]}"
    dipriv.privatize(file, 1.0, keep=["row"], seed=3, **options).write(written)
    assert cells(written) == cells(out)
    assert name in DATED or written.read_bytes() == out.read_bytes()
