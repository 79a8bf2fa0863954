"""Tables in memory whose columns of text, and pandas columns of objects, have settled types.

A column that is text in the table stays text: one that looks like numbers or dates is questioned, and read as these if
its keeper says so. A pandas column of objects has no type of its own: it is judged by the classes of its objects.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from dipriv._tables.arrow import is_text
from dipriv._tables.cell_classes import classify
from dipriv._tables.column_types import (
    NO_CELLS,
    Counts,
    Given,
    Question,
    TypeRules,
    check_given,
    count_classes,
    fits,
    is_nearly_empty,
    parse,
    settle,
    settle_text,
)
from dipriv._tables.frames import Column, Table
from dipriv._tables.python_objects import ObjectClass, as_text, class_of, is_absent
from dipriv.schema import ColumnType

_NO_MARKS: tuple[str, ...] = ()
_SAID: dict[ObjectClass, str] = {
    "number": "numbers",
    "boolean": "booleans",
    "date": "dates",
    "time": "times of day",
    "text": "text",
    "other": "objects",
}


def settle_table(table: Table, names: Sequence[str], rules: TypeRules) -> tuple[Table, tuple[Question, ...]]:
    """The table with settled types in these columns, and the questions about those whose type is undecided."""
    found: dict[str, pa.Array | Question | None] = {}
    for name in names:
        given = rules.given.get(name)
        if is_objects(table, name):
            found[name] = _settle_objects(name, table.native_column(name), rules)
        elif pt.is_null(table.arrow_type(name)):
            found[name] = _settle_nulls(name, table.rows, given)
        elif not is_text(table.arrow_type(name)):
            check_given(rules, {name: str(table.arrow_type(name))})
        elif rules.judges(name):
            texts = table.whole_array(name)
            counts = count_classes(classify(texts, rules.all_marks))
            of = settle_text(name, counts, given)
            found[name] = parse(texts, of, rules.marks) if isinstance(of, pa.DataType) else of
    questions = tuple(of for of in found.values() if isinstance(of, Question))
    arrays = {name: of for name, of in found.items() if of is not None and not isinstance(of, Question)}
    return table.with_arrays(arrays), questions


def read_from_text(table: Table, columns: Iterable[Column]) -> tuple[Column, ...]:
    """The columns that are text or objects in the table, and have been read as another type."""
    read = [column for column in columns if _is_readable(column.arrow_type)]
    return tuple(of for of in read if is_objects(table, of.name) or is_text(table.arrow_type(of.name)))


def conform(table: Table, columns: Iterable[Column]) -> Table:
    """The table with its columns of text or objects read as the types of these columns, cell by cell."""
    arrays = {}
    for column in columns:
        name, target = column.name, column.arrow_type
        if name not in table.names:
            continue
        if is_objects(table, name):
            arrays[name] = parse(as_text(table.native_column(name)), target, _NO_MARKS)
        elif is_text(table.arrow_type(name)):
            arrays[name] = parse(table.whole_array(name), target, _NO_MARKS)
    return table.with_arrays(arrays)


def is_objects(table: Table, name: str) -> bool:
    """Whether this is a pandas column of Python objects."""
    return table.backend == "pandas" and table.native_column(name).dtype == object


def _settle_nulls(name: str, rows: int, given: Given | None) -> pa.Array | Question | None:
    """A column without a cell and without a type: of the type that is given, if any."""
    of = None if given is None else settle(name, NO_CELLS, given)
    return pa.nulls(rows, of) if isinstance(of, pa.DataType) else of


def _settle_objects(name: str, series: Any, rules: TypeRules) -> pa.Array | Question | None:
    """A column of objects with one type; None if it has one, or holds things that dipriv does not take.

    A type that is given by name settles it for any objects.
    """
    present = series.to_numpy()[~is_absent(series)]
    classes = Counter[ObjectClass]()
    for of, times in Counter(map(type, present)).items():
        classes[class_of(of)] += times
    given = rules.given.get(name)
    settled = next((of for of in classes if fits(classes[of], len(present))), None)
    if not len(present):
        return _settle_nulls(name, len(series), given)
    if settled == "other" and not (given and given.option):
        return None
    if given is not None and (given.option or settled == "text") and given.leaf != "label":
        return _read(series, settle(name, _count(series, rules), given), rules)
    if settled is None or is_nearly_empty(len(present), len(series)):
        return _question(name, classes, len(present), is_nearly_empty(len(present), len(series)))
    if settled == "text":
        asked = settle_text(name, _count(series, rules), given) if rules.judges(name) else None
        return _read(series, asked if isinstance(asked, Question) else pa.string(), rules)
    if settled == "time":  # with their fractions of seconds
        return pa.array([cell if isinstance(cell, datetime.time) else None for cell in series], pa.time64("us"))
    return _read(series, settle(name, _count(series, rules)), rules)


def _question(name: str, classes: Counter[ObjectClass], cells: int, nearly_empty: bool) -> Question:
    found: list[tuple[ObjectClass, int]] = classes.most_common(1) or [("text", 0)]
    most = found[0][0]
    looks = "it is nearly empty" if nearly_empty else f"{100 * classes[most] // cells}% of its cells are {_SAID[most]}"
    first: ColumnType = "number" if most == "text" or most == "other" else most  # noqa: PLR1714 - for type checkers
    return Question(name, looks, (first, "text"))


def _count(series: Any, rules: TypeRules) -> Counts:
    return count_classes(classify(as_text(series), rules.all_marks))


def _read(series: Any, found: pa.DataType | Question, rules: TypeRules) -> pa.Array | Question:
    """Objects as the type that was found; those that are read as text stay what they are, as text of a table does."""
    if isinstance(found, Question):
        return found
    texts = as_text(series)
    return texts.cast(found) if is_text(found) else parse(texts, found, rules.marks)


def _is_readable(arrow_type: pa.DataType) -> bool:
    """Whether cells of text can be read as this type."""
    kinds = (pt.is_integer, pt.is_floating, pt.is_boolean, pt.is_date, pt.is_timestamp, pt.is_time)
    return any(is_kind(arrow_type) for is_kind in kinds)
