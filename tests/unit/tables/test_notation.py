"""How numbers and dates are written: read in every notation, and decided so that no single row can change it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dipriv._tables.cell_classes import CellClass, classify
from dipriv._tables.column_types import Given, Question, TypeRules, count_classes, parse
from dipriv._tables.decorated import (
    COMMA,
    DAY_FIRST,
    MONTH_FIRST,
    N_DECORATIONS,
    POINT,
    YEAR_FIRST,
    class_counts,
    count_shapes,
    decoration,
    rewritten_cells,
    write_plainly,
)
from dipriv._tables.notation import FileReading, Notation, file_reading, settle_column
from dipriv._tables.repeated import coded, distinct
from dipriv.dialect import DETECTED
from dipriv.schema import MISSING_MARKS, Continuous, Discrete

WHOLES = ["0", "7", "10", "123", "1234", "9" * 17, "9" * 18, "8" * 19, "9" * 25, "007"]
CODES = [f"007{rest}" for rest in ("", ".", ".5", ".123", ".0000", f".{'7' * 12}")]
READ = {  # cell: (with a decimal point, with a decimal comma)
    "12": ("12", "12"),
    "12.5": ("12.5", ""),
    "12,5": ("", "12.5"),
    "1.234": ("1.234", "1234"),
    "1,234": ("1234", "1.234"),
    "0,123": ("", "0.123"),
    "1,234,567": ("1234567", ""),
    "1.234.567": ("", "1234567"),
    "1,234.56": ("1234.56", ""),
    "1.234,56": ("", "1234.56"),
    "1 234,5": ("", "1234.5"),
    "1\u00a0234": ("1234", "1234"),
    "1\u202f234.5": ("1234.5", ""),
    "1'234'567": ("1234567", "1234567"),
    "$1,234.50": ("1234.50", ""),
    "-$5": ("-5", "-5"),
    "$ -5": ("-5", "-5"),
    "5,00 €": ("", "5.00"),
    "EUR 5": ("5", "5"),
    "12 %": ("12", "12"),
    "\u22125,5": ("", "-5.5"),
    ".5": ("0.5", ""),
    "1e5": ("1e5", "1e5"),
    "1.5e5": ("1.5e5", ""),
    " 7 ": ("7", "7"),
    "007": ("", ""),
    "$5 €": ("", ""),
    "1,23,456": ("", ""),
    "1,2345.6": ("", ""),
    "$": ("", ""),
    "12,": ("", ""),
    "cat": ("", ""),
}


@pytest.mark.parametrize("cell", READ)
def test_numbers_in_both_readings(cell: str) -> None:
    for reading, expected in zip((POINT, COMMA), READ[cell], strict=True):
        texts = pa.array([cell, "x", None])
        assert write_plainly(texts, MISSING_MARKS, reading, None, YEAR_FIRST).to_pylist() == [expected, "", ""]
        is_number = class_counts(count_shapes(pa.array([cell]), MISSING_MARKS), reading)[
            [CellClass.WHOLE, CellClass.DECIMAL]
        ].any()
        assert is_number == bool(expected)


@pytest.mark.parametrize(
    ("cell", "day_first", "month_first"),
    [
        ("31/12/2024", "2024-12-31", ""),
        ("12/31/2024", "", "2024-12-31"),
        ("1.2.2024", "2024-02-01", "2024-01-02"),
        ("29-02-2023", "", ""),
        ("31.12.2024 9:05", "2024-12-31 09:05", ""),
        ("2024/1/2", "2024-01-02", "2024-01-02"),
        ("2024-01-02", "2024-01-02", "2024-01-02"),
        ("31/12/24", "", ""),
        ("1/2/2024x", "", ""),
    ],
)
def test_dates_in_both_orders(cell: str, day_first: str, month_first: str) -> None:
    for order, expected in ((DAY_FIRST, day_first), (MONTH_FIRST, month_first)):
        assert write_plainly(pa.array([cell]), MISSING_MARKS, POINT, 0, order).to_pylist() == [expected]


CELLS = st.text(st.sampled_from("0123456789,.-+ $€%'e/:xT\u00a0"), max_size=12)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.lists(CELLS, max_size=30))
def test_plain_cells_are_what_they_were(cells: list[str]) -> None:
    """With a decimal point, numbers, times and ISO dates stay in their class; other cells may become these."""
    texts = pa.array(cells, pa.string())
    before = count_classes(classify(texts, MISSING_MARKS))
    shapes = count_shapes(texts, MISSING_MARKS)
    after = class_counts(shapes, POINT)
    assert after.sum() == before.sum() == class_counts(shapes, COMMA).sum() == len(cells)
    if not rewritten_cells(shapes):
        assert after.tolist() == before.tolist()
    assert all(after[: CellClass.OTHER_DATE] >= before[: CellClass.OTHER_DATE])
    for order in (YEAR_FIRST, DAY_FIRST, MONTH_FIRST):
        for reading in (POINT, COMMA):
            plain = write_plainly(texts, MISSING_MARKS, reading, None, order)
            plain.validate(full=True)
            assert not set(classify(plain, MISSING_MARKS).classes) & {CellClass.OTHER, CellClass.OTHER_DATE}


@settings(derandomize=True, deadline=None, max_examples=300)
@given(
    st.integers(-(10**9), 10**9),
    st.integers(0, 3),
    st.sampled_from([(POINT, ""), (POINT, ","), (POINT, " "), (COMMA, "."), (COMMA, ""), (COMMA, "'")]),
    st.integers(0, N_DECORATIONS - 1),
)
def test_what_is_written_is_read_back(whole: int, places: int, marks: tuple[int, str], sign: int) -> None:
    reading, group = marks
    value = whole / 10**places
    notation = Notation(reading, group, sign, places)
    written = notation.written(pa.array([value, None, float("nan")]))
    assert written.to_pylist()[1:] == [None, None]
    assert float(notation.plainly(written[:1], ())[0].as_py()) == value
    assert "".join(decoration(sign)).strip() in written[0].as_py()


def test_texts_that_repeat_count_as_often_as_they_occur() -> None:
    """Each is looked at once: all shapes of READ, and a null."""
    cells = [cell for place, cell in enumerate((*READ, "31/12/2024", "NA", None)) for _ in range(60 + place)]
    Random(0).shuffle(cells)
    texts = pa.array(cells)
    few, times = distinct(coded(texts))
    assert len(few) == len(READ) + 3
    assert times.sum() == len(cells)
    assert count_shapes(coded(texts), MISSING_MARKS).tolist() == count_shapes(texts, MISSING_MARKS).tolist()
    of_few = count_classes(classify(few, MISSING_MARKS), times)
    assert of_few.tolist() == count_classes(classify(texts, MISSING_MARKS)).tolist()
    assert coded(pa.array([f"{number}" for number in range(5000)])).type == pa.string()


def test_plain_numbers_are_counted_as_others_are() -> None:
    """Those with spaces around them, or a sign before them, go through the grammar of all numbers."""
    numbers = [f"{whole}{rest}" for whole in WHOLES for rest in ("", ".", ".5", ".123", ".0000", f".{'7' * 12}")]
    for cell in (*numbers, *READ, "1e5", "1.5e5", "01.5"):
        plain = count_shapes(pa.array([cell]), MISSING_MARKS)
        for longer in (f" {cell}", f"{cell} ", f"+{cell}" if cell in numbers and cell not in CODES else f" {cell} "):
            assert count_shapes(pa.array([longer]), MISSING_MARKS).tolist() == plain.tolist(), longer
    assert shapes_of(["1.5"]).tolist() != shapes_of(["1.55"]).tolist() != shapes_of(["1.555"]).tolist()  # control


# ---- decisions ----


def shapes_of(cells: list[str]) -> np.ndarray:
    return count_shapes(pa.array(cells), MISSING_MARKS)


def outcome(columns: dict[str, list[str]], separator: str, rules: TypeRules = TypeRules()) -> dict[str, str]:  # noqa: B008
    """Types and notations, or what is asked, of each column."""
    shapes = {name: shapes_of(cells) for name, cells in columns.items()}
    usual = file_reading(shapes, separator)
    found = {name: settle_column(name, of, rules, usual) for name, of in shapes.items()}
    return {
        name: f"ask {kind.option}" if isinstance(kind, Question) else f"{kind} {notation and notation.described(kind)}"
        for name, (kind, notation) in found.items()
    }


def read(columns: dict[str, list[str]], separator: str, rows: list[int], rules: TypeRules) -> dict[str, object]:
    """Of each column: its type, what some rows are read as, and how numbers would be written; None if it is asked."""
    shapes = {name: shapes_of(cells) for name, cells in columns.items()}
    usual = file_reading(shapes, separator)
    found: dict[str, object] = {}
    for name, of in shapes.items():
        kind, notation = settle_column(name, of, rules, usual)
        if isinstance(kind, Question):
            found[name] = None
            continue
        texts = pa.array([columns[name][row] for row in rows], pa.string())
        plain = texts if notation is None else notation.plainly(texts, MISSING_MARKS)
        number = pa.array([12345], kind) if pa.types.is_integer(kind) or pa.types.is_floating(kind) else None
        shown = None if number is None or notation is None or notation.is_plain(kind) else notation.written(number)
        found[name] = kind, parse(plain, kind, ()).to_pylist(), shown
    return found


def test_a_german_file() -> None:
    columns = {
        "age": [str(20 + row % 50) for row in range(100)],
        "score": [f"{row % 37},{row % 10}" for row in range(100)],
        "pay": [f"{1 + row % 9}.{row % 1000:03},50 €" for row in range(100)],
        "thousands": [f"{1 + row % 9}.{row % 1000:03}" for row in range(100)],
        "born": [f"{1 + row % 28:02}.{1 + row % 12:02}.1980" for row in range(100)],
        "city": ["Köln", "Bonn"] * 50,
    }
    assert outcome(columns, ";") == {
        "age": "int64 None",
        "score": "double decimal comma",
        "pay": "double decimal comma, thousands as 1.000, €",
        "thousands": "int64 thousands as 1.000",
        "born": "date32[day] day first",
        "city": "string None",
    }


def test_what_a_file_does_not_tell_is_asked_and_options_answer() -> None:
    columns = {"x": [f"{1 + row % 9}.{row % 900 + 100}" for row in range(50)], "d": ["01/02/2024", "03/04/2024"] * 25}
    assert outcome(columns, ";") == {"x": "ask decimal", "d": "ask dates"}
    assert outcome(columns, ";", TypeRules(decimal=",", dates="mdy")) == {
        "x": "int64 thousands as 1.000",
        "d": "date32[day] month first",
    }
    assert outcome(columns, ";", TypeRules(decimal=".", dates="ymd"))["x"] == "double None"
    assert outcome(columns, ",")["x"] == "double None"  # a comma separates cells


def test_mixed_signs_are_asked() -> None:
    assert outcome({"x": ["$5", "5 €"] * 20}, ",") == {"x": "ask type"}
    said = TypeRules({"x": Given.type("number")})
    assert outcome({"x": ["$5", "5 €"] * 20}, ",", said) == {"x": "int64 "}


def test_one_odd_cell_changes_nothing() -> None:
    money = [f"${1 + row % 9},{row % 1000:03}.25" for row in range(60)]
    settled = outcome({"x": money}, ",")
    assert settled == {"x": "double thousands as 1,000, $"}
    for odd in ("", "5", "7 €", "1.234,56", "1,5", "cat", "99%", "$1234.5", "31/12/2024", "$1,234.567"):
        assert outcome({"x": [odd, *money[1:]]}, ",") == settled


SORTS: dict[str, Callable[[Random], str]] = {
    "whole": lambda rng: str(rng.randrange(2000)),
    "point": lambda rng: f"{rng.random() * 3000:.{rng.randrange(4)}f}",
    "comma": lambda rng: f"{rng.random() * 3000:.{rng.randrange(4)}f}".replace(".", ","),
    "grouped": lambda rng: f"{rng.randrange(9000):,}",
    "dotted": lambda rng: f"{rng.randrange(9000):,}".replace(",", "."),
    "money": lambda rng: f"${rng.randrange(9000):,}.{rng.randrange(100):02}",
    "euro": lambda rng: f"{rng.randrange(900)},{rng.randrange(100):02} €",
    "percent": lambda rng: f"{rng.randrange(101)}%",
    "day": lambda rng: f"{rng.randint(1, 28)}/{rng.randint(1, 12)}/2024",
    "month": lambda rng: f"{rng.randint(1, 12)}/{rng.randint(1, 28)}/2024",
    "iso": lambda rng: f"2024-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}",
    "text": lambda rng: rng.choice(("a", "b", "")),
    "exponent": lambda rng: rng.choice(("1e-5", "2e7", "inf")),
    "either": lambda rng: rng.choice(("1.234", "1,234", "5", "7,5", "7.5")),
}


GIVEN = {
    "nothing": TypeRules(),
    "types": TypeRules({"0": Given.type("decimal"), "1": Given.type("whole")}),
    "kinds": TypeRules.of({"0": Continuous(), "1": Discrete()}, {}, DETECTED),
}


@pytest.mark.parametrize("declared", GIVEN)
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_no_single_row_leads_from_one_reading_to_another(separator: str, declared: str) -> None:
    """Random files, and each with one row changed: types, all other rows and the writing are the same, or it is asked.

    Each column's cells are of two sorts in any proportion, so that many columns are near the borders.
    """
    rng = Random(f"rows/{separator}")
    asked = settled = 0
    for _ in range(250):
        rows = rng.choice((2, 3, 5, 8, 20, 41, 120))
        sorts = [rng.sample(list(SORTS), 2) for _ in range(rng.randint(1, 3))]
        odd = [rng.choice((0, 1, 2, 3, rows // 20, rows // 20 + 1, rows // 20 + 2, rows // 2)) for _ in sorts]

        def row(number: int) -> list[str]:
            return [SORTS[one if number >= few else two](rng) for (one, two), few in zip(sorts, odd, strict=True)]  # noqa: B023

        table = [row(number) for number in range(rows)]
        changed = list(table)
        changed[rng.randrange(rows)] = [SORTS[rng.choice(list(SORTS))](rng) for _ in sorts]
        same = [number for number in range(rows) if table[number] is changed[number]]
        before, after = (
            read(
                {str(place): list(cells) for place, cells in enumerate(zip(*of, strict=True))},
                separator,
                same,
                GIVEN[declared],
            )
            for of in (table, changed)
        )
        for name in before:
            if before[name] is None or after[name] is None:
                asked += 1
                continue
            settled += 1
            assert before[name] == after[name]
    assert settled > 50  # controls: both happen
    assert asked > 10


def test_a_reading_without_a_gap_would_be_changed_by_one_row() -> None:
    """The control: by majority alone, one row decides how all others are read."""

    def majority(cells: list[str]) -> int:
        point, comma = (int(class_counts(shapes_of(cells), of)[[1, 2]].sum()) for of in (POINT, COMMA))
        return POINT if point >= comma else COMMA

    cells = ["1.234"] * 20 + ["7,5"] * 2 + ["7.5"] * 2
    assert majority(cells) == POINT
    assert majority([*cells[:-1], "8,5"]) == COMMA
    assert outcome({"x": cells}, ";") == outcome({"x": [*cells[:-1], "8,5"]}, ";") == {"x": "ask decimal"}


def test_the_file_settles_what_a_column_leaves_open() -> None:
    assert file_reading({}, ";") == FileReading(None, None)
    assert file_reading({}, ",") == FileReading(POINT, None)
    assert file_reading({"x": shapes_of(["1,5"] * 5)}, ";") == FileReading(COMMA, None)
    assert file_reading({"x": shapes_of(["1.5"] * 5)}, "\t") == FileReading(POINT, None)
    assert file_reading({"x": shapes_of(["31/12/2024"] * 3)}, ",") == FileReading(POINT, DAY_FIRST)
    assert file_reading({"x": shapes_of(["31/12/2024", "12/31/2024"] * 9)}, ",") == FileReading(POINT, None)


@pytest.mark.parametrize(
    ("cells", "odd"),
    [
        (["1e-5"] * 40, "0,00123"),  # exponents have no number of decimals
        ([""] * 40, "$5"),
        ([""] * 40, "1,5"),
    ],
)
def test_one_row_does_not_decide_how_others_are_written(cells: list[str], odd: str) -> None:
    """Without other evidence, one cell chose the decimals, the sign or the decimal mark of all released numbers."""
    usual = {"file": ["7,5"] * 40}
    for rules in GIVEN.values():
        before, after = (read({"0": of, **usual}, ";", [*range(39)], rules)["0"] for of in (cells, [*cells[:-1], odd]))
        assert before == after or after is None  # or it is asked
