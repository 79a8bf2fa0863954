"""Tables in memory whose columns of text, and pandas columns of objects, have settled types.

A column that is text in the table stays text: one that looks like numbers or dates is questioned, and read as these if
its keeper says so. A pandas column of objects has no type of its own: it is judged by the classes of its objects.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.types as pt

from dipriv._tables.any_values import array_of_any, read_texts
from dipriv._tables.arrow import is_text, shown_type
from dipriv._tables.cell_classes import classify
from dipriv._tables.column_types import (
    NEARLY_EMPTY,
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
from dipriv._tables.frames import Column, Table, categories_to_arrow, category_values, objects_error, of_objects
from dipriv._tables.python_objects import ObjectClass, as_text, class_of, is_absent
from dipriv._tables.repeated import distinct
from dipriv.schema import ColumnType

Reader: TypeAlias = Callable[[Any], pa.Array]
"""How a pandas column of objects is read, each by itself."""
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
        elif _is_text_category(table.arrow_type(name)) and given is not None and given.leaf == "text":
            continue  # it is what it is said to be
        elif pt.is_null(table.arrow_type(name)):
            found[name] = _settle_nulls(name, table.rows, given)
        elif not is_text(table.arrow_type(name)):
            check_given(rules, {name: shown_type(table.arrow_type(name))})
        elif rules.judges(name):
            texts, times = distinct(table.coded(name))
            of = settle_text(name, count_classes(classify(texts, rules.all_marks), times), given)
            found[name] = parse(table.whole_array(name), of, rules.marks) if isinstance(of, pa.DataType) else of
    questions = tuple(of for of in found.values() if isinstance(of, Question))
    arrays = {name: of for name, of in found.items() if of is not None and not isinstance(of, Question)}
    return table.with_arrays(arrays), questions


def read_from_text(table: Table, columns: Iterable[Column]) -> tuple[Column, ...]:
    """The columns that are text or objects in the table, and have been read as another type."""
    read = [column for column in columns if _is_readable(column.arrow_type)]
    return tuple(of for of in read if is_objects(table, of.name) or is_text(table.arrow_type(of.name)))


def conform(table: Table, columns: Iterable[Column], marks: Sequence[str] = _NO_MARKS) -> Table:
    """The table with its columns of text or objects read as the types of these columns, cell by cell.

    `marks` are missing, beside those that always are.
    """
    arrays = {}
    for column in columns:
        name, target = column.name, column.arrow_type
        if name not in table.names:
            continue
        if is_objects(table, name):
            of = target.value_type if pt.is_dictionary(target) else target
            arrays[name] = _each(table.native_column(name), _reader_as(of, marks))
        elif is_text(table.arrow_type(name)) and not pt.is_dictionary(target):
            arrays[name] = _read_as(table.whole_array(name), target, marks)
    return table.with_arrays(arrays)


def _reader_as(arrow_type: pa.DataType, marks: Sequence[str]) -> Reader:
    """How objects are read as this type; times of day as they are: as text, they would lose fractions of seconds."""
    if pt.is_time(arrow_type):
        return lambda cells: array_of_any(list(cells), arrow_type, marks)
    return lambda cells: _read_as(as_text(cells), arrow_type, marks)


def _read_as(texts: pa.Array, arrow_type: pa.DataType, marks: Sequence[str]) -> pa.Array:
    """Text cells as columns of text are read; other types, which those never are, as any values are converted."""
    read = parse if is_text(arrow_type) or _is_readable(arrow_type) else read_texts
    return read(texts, arrow_type, marks)


def is_objects(table: Table, name: str) -> bool:
    """Whether this is a pandas column of Python objects, or a category of such."""
    return table.backend == "pandas" and of_objects(table.native_column(name))


def _is_text_category(arrow_type: pa.DataType) -> bool:
    return pt.is_dictionary(arrow_type) and is_text(arrow_type.value_type)


def _settle_nulls(name: str, rows: int, given: Given | None) -> pa.Array | Question | None:
    """A column without a cell and without a type: of the type that is given, if any."""
    of = None if given is None else settle(name, NO_CELLS, given)
    return pa.nulls(rows, of) if isinstance(of, pa.DataType) else of


def _settle_objects(name: str, series: Any, rules: TypeRules) -> pa.Array | Question | None:
    """A column of objects with one type; None if it has one, or holds things that dipriv does not take.

    A type that is given by name settles it for any objects. Of a category, the cells are judged, not the categories.
    """
    is_category = series.dtype == "category"
    found = _judge_objects(name, series.astype(object) if is_category else series, rules)
    if found is None and is_category and series.notna().any():
        raise objects_error(name)
    return found if found is None or isinstance(found, Question) else _each(series, found)


def _judge_objects(name: str, series: Any, rules: TypeRules) -> Reader | Question | None:
    """How these objects are read, each by itself."""
    present = series.to_numpy()[~is_absent(series)]
    classes = Counter[ObjectClass]()
    for of, times in Counter(map(type, present)).items():
        classes[class_of(of)] += times
    given = rules.given.get(name)
    settled = next((of for of in classes if fits(classes[of], len(present))), None)
    if not len(present):
        return None if given is None else _reader(settle(name, NO_CELLS, given), rules)
    if settled == "other" and not (given and given.option):
        return None
    if given is not None and (given.option or settled == "text") and given.leaf != "label":
        return _reader(settle(name, _count(series, rules), given), rules)
    if settled is None or is_nearly_empty(len(present), len(series)):
        return _question(name, classes, len(present), is_nearly_empty(len(present), len(series)))
    if settled == "text":
        asked = settle_text(name, _count(series, rules), given) if rules.judges(name) else None
        return asked if isinstance(asked, Question) else _reader(pa.string(), rules)
    return _times_of_day if settled == "time" else _reader(settle(name, _count(series, rules)), rules)


def _each(series: Any, read: Reader) -> pa.Array:
    """The cells of a pandas column; those of a category as one, whose labels have the order of the categories."""
    if series.dtype != "category":
        return read(series)
    return categories_to_arrow(series, read(category_values(series.dtype)))


def _question(name: str, classes: Counter[ObjectClass], cells: int, nearly_empty: bool) -> Question:
    found: list[tuple[ObjectClass, int]] = classes.most_common(1) or [("text", 0)]
    most = found[0][0]
    looks = NEARLY_EMPTY if nearly_empty else f"{100 * classes[most] // cells}% of its cells are {_SAID[most]}"
    first: ColumnType = "number" if most == "text" or most == "other" else most  # noqa: PLR1714 - for type checkers
    return Question(name, looks, (first, "text"))


def _count(series: Any, rules: TypeRules) -> Counts:
    return count_classes(classify(as_text(series), rules.all_marks))


def _reader(found: pa.DataType | Question, rules: TypeRules) -> Reader | Question:
    """Objects as the type that was found; those that are read as text stay what they are, as text of a table does."""
    if isinstance(found, Question):
        return found
    return lambda series: as_text(series).cast(found) if is_text(found) else parse(as_text(series), found, rules.marks)


def _times_of_day(series: Any) -> pa.Array:
    """With their fractions of seconds."""
    return pa.array([cell if isinstance(cell, datetime.time) else None for cell in series], pa.time64("us"))


def _is_readable(arrow_type: pa.DataType) -> bool:
    """Whether cells of text can be read as this type, or as labels of it."""
    arrow_type = arrow_type.value_type if pt.is_dictionary(arrow_type) else arrow_type
    kinds = (pt.is_integer, pt.is_floating, pt.is_boolean, pt.is_date, pt.is_timestamp, pt.is_time)
    return any(is_kind(arrow_type) for is_kind in kinds)
