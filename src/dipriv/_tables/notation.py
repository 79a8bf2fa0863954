"""How the numbers and dates of a text column are written: decided so that no single row can change it.

Which of point and comma is the decimal mark, and whether the day or the month is first, changes how the cells of all
rows are read. So both are decided by a gap in the evidence that is wider than what one row can move, and asked in
between. One row moves the evidence D of a column (cells that speak for one reading less cells that speak for the other)
by at most two, and so each of the two largest D of the columns of a file. The file's own reading is decided if these
differ by three or more, in one direction or the other: one row moves their difference by at most four. A column is read
as its file is unless more than one cell in 20, and five more, speak against it. So no single row leads from one reading
of a column to the other.

Where a type is given by name, only what its own cells need is decided or asked: the decimal mark of numbers, and the
order of dates. Cells of other types are missing, however they are read.

How released numbers are written (signs of currencies, thousands, decimals) is decided with such gaps, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from dipriv._tables.cell_classes import CellClass
from dipriv._tables.column_types import MAX_MISFITS, Given, Question, TypeRules, fits, settle
from dipriv._tables.decorated import (
    COMMA,
    DAY_FIRST,
    GROUP_MARKS,
    MAX_PLACES,
    MONTH_FIRST,
    POINT,
    YEAR_FIRST,
    Shapes,
    class_counts,
    date_evidence,
    decimal_evidence,
    decoration,
    decoration_counts,
    group_counts,
    ordered_dates,
    place_counts,
    rewritten_cells,
    write_plainly,
)

_DECIMALS = {".": POINT, ",": COMMA}
_ORDERS = {"ymd": YEAR_FIRST, "dmy": DAY_FIRST, "mdy": MONTH_FIRST}
_FILE_GAP = 3
"""The difference of the largest D of both readings that decides for a file."""
_COLUMN_GAP = 5
"""Beyond one cell in 20, what speaks against the reading of the file must exceed this for a column to be an exception.

One row moves D by two, and one twentieth of the cells by one; a file's reading may become undecided at the same time.
"""
_FEW = 3
"""How many cells it takes to conclude how numbers are written: two are a question, one says nothing."""
_DATES = (CellClass.DATE, CellClass.SECONDS, CellClass.MICROSECONDS)
_NUMBERS = (CellClass.WHOLE, CellClass.DECIMAL)


@dataclass(frozen=True)
class Notation:
    """How the numbers and dates of a column are written. Dates are released as 2024-12-31."""

    reading: int = POINT
    group: str = ""
    """Between groups of three digits."""
    decoration: int = 0
    places: int | None = None
    """The number of decimals of every cell; None if they differ."""
    order: int = YEAR_FIRST
    reads_any_decoration: bool = False

    def plainly(self, texts: pa.Array, marks: tuple[str, ...]) -> pa.Array:
        """The cells as plain numbers and dates; what is written otherwise is empty."""
        read = None if self.reads_any_decoration else self.decoration
        return write_plainly(texts, marks, self.reading, read, self.order)

    def is_plain(self, arrow_type: pa.DataType) -> bool:
        """Whether released cells of this type are written as Arrow writes them."""
        if pt.is_integer(arrow_type):
            return not self.group and not self.decoration
        return not pt.is_floating(arrow_type) or (self.reading == POINT and not self.group and not self.decoration)

    def written(self, numbers: pa.Array) -> pa.Array:
        """Numbers as this column writes them; missing ones are null.

        >>> Notation(COMMA, ".", 8, 2).written(pa.array([1234.5, -3.0, None])).to_pylist()
        ['1.234,50 €', '-3,00 €', None]
        """
        decimal = "," if self.reading == COMMA else "."
        signs = str.maketrans({",": self.group, ".": decimal})
        before, behind = decoration(self.decoration)
        grouped = "," if self.group else ""
        places = None if pt.is_integer(numbers.type) else self.places
        texts: list[str | None] = []
        for value in numbers.to_pylist():
            if value is None or value != value:  # noqa: PLR0124 - not a number
                texts.append(None)
                continue
            if abs(value) == float("inf"):
                texts.append(str(value))
                continue
            text = format(abs(value), f"{grouped}.{places}f") if places is not None else _shortest(abs(value), grouped)
            sign = "-" if value < 0 and text.strip("0,.") else ""
            texts.append(f"{sign}{before}{text.translate(signs)}{behind}")
        return pa.array(texts, pa.large_string())

    def described(self, arrow_type: pa.DataType) -> str:
        """How cells of this type are written, in words; empty for plain numbers and dates.

        >>> notation = Notation(COMMA, ".", 8, order=DAY_FIRST)
        >>> notation.described(pa.float64()), notation.described(pa.date32())
        ('decimal comma, thousands as 1.000, €', 'day first')
        """
        if pt.is_temporal(arrow_type):
            return ("", "day first", "month first")[self.order]
        said = ["decimal comma"] if self.reading == COMMA and pt.is_floating(arrow_type) else []
        said += [f"thousands as 1{self.group}000"] if self.group else []
        said += [text] if (text := "".join(decoration(self.decoration)).strip()) else []
        return ", ".join(said)


def _shortest(value: Any, grouped: str) -> str:
    """The shortest text that gives the same number, without an exponent."""
    text = format(value, grouped)
    return format(Decimal(repr(value)), f"{grouped}f") if "e" in text else text.removesuffix(".0")


@dataclass(frozen=True)
class FileReading:
    """How most columns of a file are read; None where that is undecided."""

    decimal: int | None = POINT
    order: int | None = None


def file_reading(shapes: Mapping[str, Shapes], separator: str | None) -> FileReading:
    """How a file is read, by all its columns.

    Where cells are separated by commas, or not separated at all, the decimal mark is a point, and the order of dates is
    open. In files with semicolons a decimal point needs evidence, too: such files come from where commas are usual.
    """
    for_point, for_comma = _largest(shapes, decimal_evidence)
    for_day, for_month = _largest(shapes, date_evidence)
    order = DAY_FIRST if for_day - for_month >= _FILE_GAP else None
    order = MONTH_FIRST if for_month - for_day >= _FILE_GAP else order
    if separator in (None, ","):
        return FileReading(POINT, order)
    if for_comma - for_point >= _FILE_GAP:
        return FileReading(COMMA, order)
    no_comma = for_comma == 0 and (separator != ";" or for_point >= _FILE_GAP)
    return FileReading(POINT if no_comma else None, order)


def _largest(shapes: Mapping[str, Shapes], evidence: Callable[[Shapes], tuple[int, int, int]]) -> tuple[int, int]:
    differences = [one - other for one, other, _ in map(evidence, shapes.values())]
    return max(0, *differences, 0), max(0, *(-difference for difference in differences), 0)


def settle_column(
    name: str, shapes: Shapes, rules: TypeRules, file: FileReading
) -> tuple[pa.DataType | Question, Notation | None]:
    """The type of a column of a text file, and how its cells are written; None if all of them are plain."""
    given = rules.given.get(name)
    if given is not None and given.leaf == "text":
        return pa.string(), None
    cells = int(class_counts(shapes, POINT)[CellClass.WHOLE :].sum())
    reading = _reading(shapes, cells, given, rules, file) if _leaves_open(given, "number") else POINT
    if reading is None:
        if _could_be(given, "number", *(_size(class_counts(shapes, of), _NUMBERS) for of in (POINT, COMMA)), cells):
            looks = "its cells do not tell whether 1,234 is over a thousand, or just over one"
            return Question(name, looks, (".", ","), "decimal"), None
        reading = POINT
    counts = class_counts(shapes, reading).copy()
    order = _order(shapes, cells, rules, file) if _leaves_open(given, "datetime") else YEAR_FIRST
    dates = sum(ordered_dates(shapes))
    if order is None:
        if _could_be(given, "datetime", _size(counts, _DATES) + dates, cells):
            looks = "its cells do not tell whether 01/02/2024 is in January or in February"
            return Question(name, looks, ("dmy", "mdy"), "dates"), None
        order = YEAR_FIRST
    _add_dates(counts, shapes, order)
    found = settle(name, counts, given)
    notation = Notation(reading, order=order, reads_any_decoration=True)
    is_number = isinstance(found, pa.DataType) and (pt.is_integer(found) or pt.is_floating(found))
    if is_number and not rules.as_most and not (given is not None and given.option):
        settled = _settle_writing(name, shapes, replace(notation, reads_any_decoration=False), found)
        if isinstance(settled, Question):
            return settled, None
        notation = settled
    is_rewritten = reading == COMMA or rewritten_cells(shapes) > 0
    is_text = isinstance(found, pa.DataType) and pt.is_string(found)
    return found, notation if is_rewritten and not is_text else None


def _reading(shapes: Shapes, cells: int, given: Given | None, rules: TypeRules, file: FileReading) -> int | None:
    """Which decimal mark a column has; None to ask."""
    if rules.decimal is not None:
        return _DECIMALS[rules.decimal]
    point, comma, both = decimal_evidence(shapes)
    if rules.as_most:
        leaf = CellClass.WHOLE if given is not None and given.leaf == "whole" else CellClass.DECIMAL
        counts = {of: class_counts(shapes, of) for of in (POINT, COMMA)}
        return max(counts, key=lambda of: (_size(counts[of], _NUMBERS), int(counts[of][leaf])))
    if file.decimal == POINT and given is not None and given.is_exact:
        return POINT
    has_decimals = class_counts(shapes, POINT)[CellClass.DECIMAL] > 0  # such as 1e5, without any mark
    if not (point or comma or both or has_decimals):
        return file.decimal if given is not None and given.leaf == "decimal" else POINT
    return _decided(point - comma, cells, {POINT: 1, COMMA: -1}, file.decimal)


def _order(shapes: Shapes, cells: int, rules: TypeRules, file: FileReading) -> int | None:
    """Whether the day or the month is first; `YEAR_FIRST` if neither is in more than a few cells; None to ask."""
    if rules.dates is not None:
        return _ORDERS[rules.dates]
    day, month, _ = date_evidence(shapes)
    dates = sum(ordered_dates(shapes))
    if rules.as_most:
        return YEAR_FIRST if not dates else DAY_FIRST if day >= month else MONTH_FIRST
    few = cells // MAX_MISFITS
    if dates <= few:
        return YEAR_FIRST
    return None if dates == few + 1 else _decided(day - month, cells, {DAY_FIRST: 1, MONTH_FIRST: -1}, file.order)


def _decided(difference: int, cells: int, ways: Mapping[int, int], usual: int | None) -> int | None:
    """The reading of a column with this difference of evidence; `usual` is that of its file."""
    few = cells // MAX_MISFITS
    for reading, sign in ways.items():
        if sign * difference >= (-few if reading == usual else few + _COLUMN_GAP):
            return reading
    return None


def _leaves_open(given: Given | None, family: str) -> bool:
    """Whether it matters how cells of a family are read: where a type of another is given by name, they are missing."""
    return given is None or not given.firm or any(of.startswith(family) for of in given.families)


def _could_be(given: Given | None, family: str, *sizes_and_cells: int) -> bool:
    """Whether a column may turn out to be of a family: it is given, or not ruled out by any of these sizes."""
    *sizes, cells = sizes_and_cells
    asked = given is not None and any(of.startswith(family) for of in given.families)
    return asked or any(fits(size, cells) is not False for size in sizes)


def _size(counts: Shapes, classes: tuple[CellClass, ...]) -> int:
    return int(counts[list(classes)].sum())


def _add_dates(counts: Shapes, shapes: Shapes, order: int) -> None:
    """Count the dates that this order reads as what they are, in place."""
    if order == YEAR_FIRST:
        return
    day, month, _ = date_evidence(shapes)
    days, moments = ordered_dates(shapes)
    unread = month if order == DAY_FIRST else day
    days, moments = max(0, days - unread), moments - max(0, unread - days)
    counts[CellClass.DATE] += days
    counts[CellClass.SECONDS] += moments
    counts[CellClass.OTHER_DATE] -= days + moments


def _settle_writing(name: str, shapes: Shapes, notation: Notation, kind: pa.DataType) -> Notation | Question:
    """How released numbers are written: with what nearly all cells have, and without what nearly none has."""
    decorations = decoration_counts(shapes)
    numbers, most = int(decorations.sum()), int(np.argmax(decorations))
    if numbers and fits(int(decorations[most]), numbers) is not True:
        share = 100 * int(decorations[most]) // numbers
        looks = f"{share}% of its numbers have the same sign of a currency or percent, or none"
        return Question(name, looks, ("number", "text"))
    if most and decorations[most] == _FEW - 1:
        return Question(name, "hardly any of its cells are numbers, with a sign", ("number", "text"))
    most = most if decorations[most] >= _FEW else 0
    groups = group_counts(shapes, notation.reading)
    mark = 1 + int(np.argmax(groups[1:]))
    times, long = int(groups[mark]), int(groups.sum())
    grouped = times >= _FEW and fits(times, long)
    if not grouped and times > 1 and fits(times, long) is not False:
        looks = f"{100 * times // long}% of its numbers of four and more digits have a mark between thousands"
        return Question(name, looks, ("number", "text"))
    found = replace(notation, decoration=most, group=GROUP_MARKS[mark] if grouped else "")
    if found.is_plain(kind) or pt.is_integer(kind):
        return found
    places = place_counts(shapes, notation.reading)  # none for 1e-5
    written, usual = _size(class_counts(shapes, notation.reading), _NUMBERS), int(np.argmax(places))
    times = int(places[usual])
    misfits = written - times - written // MAX_MISFITS
    if misfits <= 1 and times >= _FEW - 1 and (misfits == 1 or times == _FEW - 1):
        return Question(name, f"nearly all of its numbers have {usual} decimals", ("number", "text"))
    return replace(found, places=usual if misfits <= 0 and times >= _FEW and usual < MAX_PLACES else None)
