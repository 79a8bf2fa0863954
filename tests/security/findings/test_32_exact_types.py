"""Finding 32: one date, or one 1,234, refused a table whose types were all exact, in a column of neither."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.types as pt
import pytest

import dipriv
from dipriv._tables import notation
from dipriv._tables.cell_classes import CellClass
from dipriv._tables.column_types import Given, Question, TypeRules, settle, settle_text
from dipriv._tables.presentation import Presentation, TextColumns
from dipriv.schema import ColumnType
from dipriv.sources import open_source
from dipriv.sources.typed import settle_texts
from tests.security.findings.test_01_odd_cell import promised
from tests.unit.tables.test_notation import SORTS

EXACT: dict[ColumnType, pa.DataType] = {
    "text": pa.string(),
    "whole": pa.int64(),
    "decimal": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "time": pa.time32("s"),
}
ODD = ("", "5", "7,5", "1,234", "1.234,5 €", "01/02/2024", "31/12/2024 9:30", "2024-05-06", "09:30", "true", "hello")
CELLS: dict[str, Callable[[Random], str]] = SORTS | {
    "boolean": lambda rng: rng.choice(("true", "false")),
    "time": lambda rng: f"{rng.randrange(24):02}:{rng.randrange(60):02}",
    "moment": lambda rng: f"{rng.randint(1, 28)}/{rng.randint(1, 12)}/2024 {rng.randrange(24):02}:15",
    "zoned": lambda rng: f"2024-{rng.randint(1, 12):02}-03T04:05:06Z",
    "undated": lambda rng: f"0{rng.randint(1, 9)}/0{rng.randint(1, 9)}/2024",
    "thousands": lambda rng: f"{rng.randint(1, 9)},{rng.randint(100, 999)}",
    "empty": lambda rng: "",
    "odd": lambda rng: rng.choice(ODD),
}


# ---- one odd cell ----


@pytest.mark.parametrize("said", EXACT)
@pytest.mark.parametrize("dense", [False, True], ids=["sparse", "dense"])
@pytest.mark.parametrize("separator", [",", ";"])
def test_one_odd_cell_leaves_a_table_of_exact_types_as_it_is(
    separator: str, dense: bool, said: ColumnType, tmp_path: Path
) -> None:
    """With the order of dates if there are dates, and the mark of numbers if semicolons separate them; else without."""
    usual = {"boolean": "true", "date": "31/12/2024", "time": "09:30"}.get(said, "5") if dense else ""
    options: dict[str, Any] = {"types": {"a": "text", "b": said}}
    options |= {"dates": "dmy"} if said == "date" else {}
    options |= {"decimal": ","} if said in ("whole", "decimal") and separator == ";" else {}
    found = [promised(file(tmp_path, separator, [usual] * 59 + [odd]), **as_options(options)) for odd in ODD]
    assert found == [found[0]] * len(ODD)
    assert found[0][1].field("b").type == EXACT[said]


@pytest.mark.parametrize("said", ["boolean", "date", "time"])
def test_many_numbers_in_a_column_of_another_type_are_missing(said: ColumnType, tmp_path: Path) -> None:
    at = file(tmp_path, ";", ["1,234"] * 60)
    options = as_options({"types": {"a": "text", "b": said}, "dates": "dmy"})
    assert promised(at, **options)[1].field("b").type == EXACT[said]


def file(folder: Path, separator: str, cells: Sequence[str]) -> Path:
    lines = [f"a{separator}b", *(f'"{"xyz"[row % 3]}"{separator}"{cell}"' for row, cell in enumerate(cells))]
    at = folder / "t.csv"
    at.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return at


def as_options(given: Mapping[str, Any]) -> dict[str, Any]:
    dialect = {name: of for name, of in given.items() if name != "types"}
    return {"types": given["types"], "dialect": dipriv.Dialect(**dialect)}


# ---- neighbours ----


@dataclass(frozen=True)
class Texts:
    """The rows of a file of text, in memory."""

    table: pa.RecordBatch
    presentation: Presentation
    text_columns: TextColumns
    name: str = "the table"

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    @property
    def categories(self) -> Mapping[str, pa.Array]:
        return {}

    @property
    def n_rows(self) -> int:
        return int(self.table.num_rows)

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        yield self.table.select(names)


@dataclass(frozen=True)
class Pair:
    """Two tables that differ in one row, and what is said about both."""

    tables: tuple[Texts, Texts]
    place: int
    rules: TypeRules


def pair(rng: Random) -> Pair:
    """Columns of any exact types, whose cells are of two sorts in any proportion and empty as often as not.

    Only what SECURITY.md says is needed is always given: the order of dates for dates, and the mark of numbers unless
    commas separate the cells or numbers have a type of their own.
    """
    separator = rng.choice((",", ";", "\t", "|", None))
    said = {f"c{place}": rng.choice(list(EXACT)) for place in range(rng.randint(1, 3))}
    has_numbers = bool({*said.values()} & {"whole", "decimal"})
    needs_mark = has_numbers and separator not in (None, ",")
    decimal = rng.choice(
        (".", ",") if needs_mark else (None,) if has_numbers and separator is None else (None, ".", ",")
    )
    dates = rng.choice(("dmy", "mdy", "ymd") if "date" in said.values() else (None, "dmy", "ymd"))
    rows = rng.choice((1, 2, 3, 8, 20, 41, 100))
    place = rng.randrange(rows)
    before, after = dict[str, list[str]](), dict[str, list[str]]()
    for name in said:
        one, two = rng.choices(list(CELLS), k=2)
        few = rng.choice((0, 1, 2, 3, rows // 20, rows // 20 + 1, rows // 20 + 2, rows // 2))
        share = rng.choice((0.0, 0.02, 0.5, 1.0))
        cells = [CELLS[two if row < few else one](rng) if rng.random() < share else "" for row in range(rows)]
        before[name] = cells
        after[name] = [*cells[:place], CELLS[rng.choice(list(CELLS))](rng), *cells[place + 1 :]]
    presentation = Presentation(separator, has_plain_numbers=separator is None)
    stored = [TextColumns(), TextColumns()] if separator else stored_as(rng, said)
    tables = [
        Texts(pa.record_batch({name: pa.array(cells, pa.string()) for name, cells in of.items()}), presentation, texts)
        for of, texts in zip((before, after), stored, strict=True)
    ]
    given = {name: Given.type(of) for name, of in said.items()}
    return Pair((tables[0], tables[1]), place, TypeRules(given, decimal=decimal, dates=dates))


def stored_as(rng: Random, names: Iterable[str]) -> list[TextColumns]:
    """Whether columns of two workbooks are text: one row can make that undecided."""
    is_text = {name: rng.choice((True, False)) for name in names}
    return [TextColumns.by_cells({name: rng.choice((None, of)) for name, of in is_text.items()}) for _ in range(2)]


def outcome(texts: Texts, rules: TypeRules, place: int) -> dict[str, Any]:
    """What is asked; else each column's type, the cells of all rows but one, and how its numbers would be written."""
    typed = settle_texts(texts, texts.schema.names, rules)
    if typed.questions:
        return {"asked": {question.option for question in typed.questions}}
    (batch,) = typed.batches(texts.schema.names)
    found: dict[str, Any] = {}
    for name, array in zip(texts.schema.names, batch.columns, strict=True):
        of, cells = typed.notations.get(name), array.to_pylist()
        is_number = pt.is_integer(array.type) or pt.is_floating(array.type)
        plain = of is None or not is_number or of.is_plain(array.type)
        shown = None if plain or of is None else of.written(pa.array([-12345, 7], array.type)).to_pylist()
        found[name] = array.type, [*cells[:place], *cells[place + 1 :]], shown
    return found


def differences(pairs: Iterable[Pair]) -> tuple[int, set[str], int]:
    """In how many pairs one row makes a difference; what is asked in any of them; how many cells are read."""
    different, asked, read = 0, set[str](), 0
    for of in pairs:
        before, after = (outcome(table, of.rules, of.place) for table in of.tables)
        different += before != after
        asked |= before.get("asked", set()) | after.get("asked", set())
        read += sum(cell is not None for name in before if name != "asked" for cell in before[name][1])
    return different, asked, read


def pairs(number: int) -> list[Pair]:
    rng = Random(32)
    return [pair(rng) for _ in range(number)]


@pytest.mark.parametrize("number", [300, pytest.param(5000, marks=pytest.mark.slow)])
def test_no_row_of_a_table_of_exact_types_causes_a_question_or_changes_how_others_are_read(number: int) -> None:
    different, asked, read = differences(pairs(number))
    assert (different, asked) == (0, set())
    assert read > number  # a control: not all cells are missing


def test_if_a_type_left_other_families_open_one_row_would_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: by the shapes of cells alone, one row causes questions of both sorts."""
    monkeypatch.setattr(notation, "_leaves_open", lambda given, family: True)
    different, asked, _ = differences(pairs(300))
    assert different > 10
    assert asked >= {"decimal", "dates"}


def test_the_guarantee_says_where_cells_settle_how_exact_types_are_read() -> None:
    """Without the order of dates and the mark of numbers cells settle these, and nothing else; another control."""
    different = 0
    for of in pairs(300):
        presentation = of.tables[0].presentation
        facts = presentation.separator, presentation.has_plain_numbers
        assert not any(of.rules.is_read_by_cells(name, *facts) for name in of.rules.given)
        rules = replace(of.rules, decimal=None, dates=None)
        found = differences([replace(of, rules=rules)])
        assert not found[0] or any(rules.is_read_by_cells(name, *facts) for name in rules.given)
        different += found[0]
    assert different > 10


def test_the_guarantee_says_that_cells_settle_the_order_of_dates_in_a_column_that_is_text_in_its_file(
    tmp_path: Path,
) -> None:
    frame = pd.DataFrame({"x": ["01/02/2024", ""] * 20})
    frame.to_stata(tmp_path / "t.dta", write_index=False)
    source = open_source(tmp_path / "t.dta")
    settled = {of: source.infers_types(["x"], TypeRules({"x": Given.type(of)})) for of in EXACT}
    assert settled == dict.fromkeys(EXACT, False) | {"date": True}
    for of in EXACT:
        assert not source.infers_types(["x"], TypeRules({"x": Given.type(of)}, decimal=",", dates="dmy"))


# ---- columns of text in tables with types, and on Spark ----


@pytest.mark.parametrize("said", EXACT)
def test_any_counts_of_cells_settle_an_exact_type_alike(said: ColumnType) -> None:
    """`settle` for text files on Spark, `settle_text` for columns of text in Parquet files, dataframes and on Spark."""
    rng, given = np.random.default_rng(32), Given.type(said)
    for _ in range(500):
        counts = np.where(rng.random(len(CellClass)) < 0.5, 0, rng.integers(0, 90, len(CellClass)))
        assert settle("x", counts, given) == EXACT[said]
        assert settle_text("x", counts, given) == (None if said == "text" else EXACT[said])
    assert isinstance(settle("x", np.eye(len(CellClass), dtype=np.int64)[CellClass.WHOLE]), Question)  # a control
