"""The types of text columns, judged over all their cells so that no single row can change one.

A type *fits* a column if at most 5% of its cells are something else, and is *ruled out* if at most half of them are of
it. In between the column is undecided, and its keeper is asked before anything is spent. Between "fits" and "ruled out"
there are at least two rows for every number of cells, so one row can make a settled column undecided, but never move it
from one type to another. In a settled column, a cell that is something else is missing.

A type that the keeper gives by name settles its column, however many cells are something else, or missing: what it says
is public. Cells decide only what it leaves open: whether a `number` is whole, and whether times have a zone.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from dipriv._tables.arrow import is_text
from dipriv._tables.cell_classes import CellClass, Cells, classify
from dipriv.dialect import DETECTED, Dialect
from dipriv.errors import DiprivError, SchemaError, refuse_all
from dipriv.schema import MISSING_MARKS, Categorical, Code, ColumnType, Datetime, Kind, Postal, Schema

MAX_MISFITS = 20
"""A type fits if at most one cell in this many is something else."""
MAX_FINER = 100
"""Whole numbers may have one decimal number in this many cells, dates a time of day, and times fractions of seconds."""
ENOUGH_CELLS = 10
"""A column with fewer cells than this, and in fewer than half of the rows, is nearly empty."""
NEARLY_EMPTY = "it is nearly empty"

_DAY, _SECOND = 86_400_000_000, 1_000_000
_FAMILIES: dict[str, tuple[CellClass, ...]] = {
    "number": (CellClass.WHOLE, CellClass.DECIMAL),
    "boolean": (CellClass.BOOLEAN,),
    "datetime": (CellClass.DATE, CellClass.SECONDS, CellClass.MICROSECONDS),
    "datetime with zone": (CellClass.UTC_SECONDS, CellClass.UTC_MICROSECONDS),
    "time": (CellClass.TIME,),
}
"""Types whose cells have nothing in common: a cell is of one of them, or of none."""
_PLURAL = {
    "number": "numbers",
    "boolean": "true or false",
    "datetime": "dates",
    "datetime with zone": "times with a zone",
    "time": "times of day",
}
_FAMILIES_OF: dict[str, tuple[str, ...]] = {
    "number": ("number",),
    "whole": ("number",),
    "decimal": ("number",),
    "boolean": ("boolean",),
    "date": ("datetime",),
    "datetime": ("datetime", "datetime with zone"),
    "seconds": ("datetime", "datetime with zone"),
    "microseconds": ("datetime", "datetime with zone"),
    "time": ("time",),
}
_FINER: dict[str, tuple[CellClass, ...]] = {
    "decimal": (CellClass.DECIMAL,),
    "datetime": (CellClass.SECONDS, CellClass.MICROSECONDS),
    "microseconds": (CellClass.MICROSECONDS, CellClass.UTC_MICROSECONDS),
}
"""The cells of a family that only the finer one of two types holds exactly."""
_STEPS: dict[str, tuple[tuple[ColumnType, ColumnType], ...]] = {
    "number": (("whole", "decimal"),),
    "datetime": (("date", "datetime"), ("seconds", "microseconds")),
    "datetime with zone": (("seconds", "microseconds"),),
}
"""The types of a family, from coarse to fine."""
_DETAIL = {"decimal": "decimals", "datetime": "a time of day", "microseconds": "fractions of a second"}
_SHORT: dict[ColumnType, ColumnType] = {
    "whole": "number",
    "decimal": "number",
    "seconds": "datetime",
    "microseconds": "datetime",
}
_ARROW: dict[str, pa.DataType] = {
    "text": pa.string(),
    "boolean": pa.bool_(),
    "whole": pa.int64(),
    "decimal": pa.float64(),
    "date": pa.date32(),
    "seconds": pa.timestamp("s"),
    "microseconds": pa.timestamp("us"),
    "time": pa.time32("s"),
}


@dataclass(frozen=True)
class Given:
    """What the keeper says about a column: one of `families`, and exactly `leaf` if that is not None.

    A kind of the schema is not `firm`: where its families are ruled out, the column is judged as if nothing were said.
    Where one row more or less could rule them out, its keeper is asked.
    """

    families: tuple[str, ...] = ()
    leaf: str | None = None
    firm: bool = True
    option: bool = False
    """Whether this is a type by its name, rather than what follows from a kind or from a public table's columns."""

    @property
    def is_exact(self) -> bool:
        """Whether cells settle nothing: not if the kind fits, if numbers are whole, or if times have a zone."""
        return self.firm and self.leaf not in (None, "label") and len(self.families) <= 1

    @classmethod
    def type(cls, name: ColumnType) -> Given:
        """A type by its name."""
        leaf = None if name in ("number", "datetime") else name
        return cls(_FAMILIES_OF.get(name, ()), leaf, option=True)

    @classmethod
    def arrow(cls, arrow_type: pa.DataType) -> Given:
        """The type whose cells can be compared with those of an Arrow type; text for all others."""
        if pt.is_integer(arrow_type):
            return cls(("number",), "whole")
        if pt.is_floating(arrow_type) or pt.is_decimal(arrow_type):
            return cls(("number",), "decimal")
        if pt.is_boolean(arrow_type):
            return cls(("boolean",), "boolean")
        if pt.is_date(arrow_type):
            return cls(("datetime",), "date")
        if pt.is_timestamp(arrow_type):
            family = "datetime" if arrow_type.tz is None else "datetime with zone"
            return cls((family,), "seconds" if arrow_type.unit == "s" else "microseconds")
        return cls(("time",), "time") if pt.is_time(arrow_type) else cls(leaf="text")

    @classmethod
    def kind(cls, kind: Kind) -> Given:
        """The type that a declared kind asks for."""
        if isinstance(kind, Datetime):
            return cls(("datetime", "datetime with zone", "time"), firm=False)
        if not isinstance(kind, Categorical):
            return cls(("number",), firm=False)
        types = {type(level) for level in kind.levels or ()}
        if not types:
            return cls(("boolean",), "label", firm=False)
        if types == {bool}:
            return cls(("boolean",), "boolean", firm=False)
        return cls(leaf="text") if str in types else cls(("number",), firm=False)


@dataclass(frozen=True)
class TypeRules:
    """What the keeper says about the types of columns: `given` types, and marks of missing cells beside the usual ones.

    `asks` is whether columns of text that look like numbers or dates are questioned. `decimal` and `dates` are those of
    a `dipriv.Dialect`, for text files. `as_most` is whether these follow from most cells where they are not given: one
    row may then change them, so it is for tables that are compared with another, never for rows to be released.
    """

    given: Mapping[str, Given] = field(default_factory=dict)
    marks: tuple[str, ...] = ()
    asks: bool = True
    decimal: str | None = None
    dates: str | None = None
    as_most: bool = False

    @classmethod
    def of(
        cls,
        schema: Mapping[str, Kind],
        types: Mapping[str, ColumnType],
        dialect: Dialect = DETECTED,
        *,
        asks: bool = True,
    ) -> TypeRules:
        """What a schema, types by name, and a dialect say."""
        kinds = {name: Given.kind(kind) for name, kind in schema.items()}
        meanings = schema.meanings if isinstance(schema, Schema) else {}
        kinds |= {name: Given(leaf="text") for name, of in meanings.items() if isinstance(of, Code | Postal)}
        given = kinds | {name: Given.type(of) for name, of in types.items()}
        return cls(given, dialect.missing, asks, dialect.decimal, dialect.dates)

    @classmethod
    def like(cls, columns: Iterable[pa.Field], dialect: Dialect = DETECTED) -> TypeRules:
        """The types of another table's columns."""
        given = {column.name: Given.arrow(column.type) for column in columns}
        return cls(given, dialect.missing, False, dialect.decimal, dialect.dates, as_most=True)

    @property
    def all_marks(self) -> tuple[str, ...]:
        return (*MISSING_MARKS, *self.marks)

    def judges(self, name: str) -> bool:
        """Whether the cells of a column of text must be looked at."""
        given = self.given.get(name)
        return self.asks if given is None else given.leaf not in ("text", "label")

    def is_settled_by_cells(self, name: str, *, is_text: bool, is_objects: bool = False) -> bool:
        """Whether cells settle the type of a column that is text in a table with types, or has no type of its own.

        The classes of objects may overrule a kind, but not a type that is given by name.
        """
        given = self.given.get(name)
        if given is None or (is_objects and not given.option):
            return not is_text
        return not given.is_exact and (not is_text or given.leaf != "label")

    def is_read_by_cells(self, name: str, separator: str | None, has_plain_numbers: bool) -> bool:
        """Whether cells settle the decimal mark or the order of dates of a column in a file with this separator.

        Where numbers have a type of their own, a mark that is given is that of columns whose cells are texts.
        """
        given = self.given.get(name)
        families = _FAMILIES if given is None else given.families
        open_mark = has_plain_numbers if self.decimal is not None else separator not in (None, ",")
        decimal = open_mark and "number" in families
        return decimal or (self.dates is None and any(of.startswith("datetime") for of in families))


@dataclass(frozen=True)
class Question:
    """A column whose type is undecided: what it looks like, and what its keeper may say it is, or how it is written."""

    column: str
    looks: str
    answers: tuple[str, ...]
    option: Literal["type", "decimal", "dates"] = "type"
    """What the answers are for; `decimal` and `dates` are those of the file."""

    def __str__(self) -> str:
        return f"column {self.column!r}: {self.looks} ({' or '.join(self.answers)}?)"


Counts: TypeAlias = NDArray[np.int64]
"""How many cells of each `CellClass` a column has. Counts of parts of the rows add up."""
NO_CELLS: Counts = np.zeros(len(CellClass), dtype=np.int64)


def count_classes(cells: Cells, times: Counts | None = None) -> Counts:
    """How many cells of each class there are, each counted once or as often as `times` says."""
    if times is None:
        return np.bincount(cells.classes, minlength=len(CellClass))
    return np.bincount(cells.classes, times, len(CellClass)).astype(np.int64)


def check_given(rules: TypeRules, typed: Mapping[str, str]) -> None:
    """Refuse types that are given for columns that have one."""
    for name, found in typed.items():
        if name in rules.given and rules.given[name].option:
            raise SchemaError(
                f"a type is given for column {name!r}, which is {found}, not text.",
                "Leave it out of types, or convert the column.",
                command="Leave out its --type, or convert the column.",
            )


def ask(questions: Sequence[Question], others: Sequence[DiprivError] = ()) -> None:
    """Refuse columns whose type is undecided, and with them those with other problems: all of them at once."""
    refuse_all([*([_question_error(questions)] if questions else []), *others])


def _question_error(questions: Sequence[Question]) -> SchemaError:
    firsts = {question.column: question.answers[0] for question in questions if question.option == "type"}
    of_file = {question.option: question.answers[0] for question in questions if question.option != "type"}
    options = [f"--type {shlex.quote(f'{name}={answer}')}" for name, answer in firsts.items()]
    options += [f"--{option} {answer}" for option, answer in of_file.items()]
    in_python = [f"types={firsts!r}"] if firsts else []
    if of_file:
        in_python.append(f"dialect=Dialect({', '.join(f'{name}={of!r}' for name, of in of_file.items())})")
    empty = [question.column for question in questions if question.looks == NEARLY_EMPTY]
    remedy = (
        "Say what each is, such as {1}, or declare its kind in the schema; or leave it out with {0}, or pass it {2}."
    )
    if empty:
        remedy = (
            "Leave out what is nearly empty: {0}. Or say what each is, such as {1}, or declare its kind in the schema, "
            "or pass it {2}."
        )
    drop = " ".join(f"--drop {shlex.quote(name)}" for name in empty)
    return SchemaError(
        f"{'; '.join(map(str, questions))}.",
        remedy.format(f"drop={empty!r}" if empty else "drop=[...]", ", ".join(in_python), "through with keep=[...]"),
        command=remedy.format(drop or "--drop", " ".join(options), "through with --keep"),
    )


def fits(some: int, cells: int) -> bool | None:
    """Whether nearly all `cells` are like these; None if one row more or less could matter.

    >>> fits(95, 100), fits(94, 100), fits(51, 100), fits(50, 100)
    (True, None, None, False)
    """
    misfits = cells // MAX_MISFITS
    if cells and cells - some <= misfits:
        return True
    return False if some <= min(cells // 2, cells - misfits - 2) else None


def few(some: int, cells: int) -> bool | None:
    """Whether so few of `cells` are like these that they may be rounded; None if one row more or less could matter.

    >>> few(1, 100), few(2, 100), few(3, 100)
    (True, None, False)
    """
    allowed = cells // MAX_FINER
    if some <= allowed:
        return True
    return False if some >= max(2 * cells / MAX_FINER, allowed + 2) else None


def is_nearly_empty(cells: int, rows: int) -> bool:
    """Whether a column with cells in so few rows could be of any type."""
    return cells < max(2, min(ENOUGH_CELLS, rows / 2))


def settle(name: str, counts: Counts, given: Given | None = None) -> pa.DataType | Question:
    """The type of a column whose cells are all written as text, as in CSV files."""
    if given is not None and given.leaf == "text":
        return pa.string()
    cells = int(counts[CellClass.WHOLE :].sum())
    if given is not None and (given.option or not cells):
        return _settle_as_given(name, counts, given)
    shares = {family: fits(_size(counts, family), cells) for family in _FAMILIES}
    nearly_empty = is_nearly_empty(cells, cells + int(counts[CellClass.MISSING]))
    if given is not None and given.leaf == "label":
        settled = shares["boolean"] if cells > 1 else None  # without any cell it is text
        if settled is None:
            return Question(name, _looks(counts, "boolean", cells, nearly_empty), ("boolean", "text"))
        return pa.bool_() if settled else pa.string()
    if given is not None:
        margin = 0 if len(given.families) == 1 else 2  # so that one row cannot replace one family by another
        excess = {family: 2 * _size(counts, family) - cells - margin for family in given.families}
        possible = [family for family in excess if excess[family] > 0]
        if possible:
            return _leaf(name, counts, possible[0], given)
        if given.firm:
            raise SchemaError(
                f"column {name!r} is {given.leaf} in the table that it is compared with, but not even half of its "
                "cells are.",
                "Give a table whose columns have the same types.",
            )
        nearest = max(given.families, key=excess.__getitem__)
        if excess[nearest] > -2:  # one row changes it by two at most
            looks = _looks(counts, nearest, cells, nearly_empty)
            return Question(name, looks, (*_answers(counts, nearest), "text"))
    most = max(_FAMILIES, key=lambda family: _size(counts, family))
    if nearly_empty:
        return Question(name, NEARLY_EMPTY, (*_answers(counts, most), "text"))
    found = [family for family in _FAMILIES if shares[family] is not False]
    if not found:
        if 2 * int(counts[CellClass.OTHER_DATE]) > cells:
            return _other_dates(name, counts, cells)
        return pa.string()
    if len(found) == 1 and shares[found[0]]:
        return _leaf(name, counts, found[0])
    return Question(name, _looks(counts, most, cells, False), (*_answers(counts, most), "text"))


def exact_type(counts: Counts) -> pa.DataType | None:
    """The type that all cells have; None if they have several, or are written in a way that a type would not keep."""
    cells = int(counts[CellClass.WHOLE :].sum())
    found: dict[str, CellClass] = {"whole": CellClass.WHOLE, "date": CellClass.DATE, "boolean": CellClass.BOOLEAN}
    for leaf, of in found.items():
        if cells and counts[of] == cells:
            return _ARROW[leaf]
    return pa.float64() if cells and _size(counts, "number") == cells else None


def type_name(of: pa.DataType) -> ColumnType:
    """What a type that cells settle is called.

    >>> type_name(pa.int64()), type_name(pa.timestamp("us", "UTC")), type_name(pa.bool_())
    ('number', 'datetime', 'boolean')
    """
    unzoned = pa.timestamp(of.unit) if pt.is_timestamp(of) else of
    leaf: ColumnType = next(name for name, known in _ARROW.items() if known == unzoned)  # type: ignore[misc]
    return _SHORT.get(leaf, leaf)


def _settle_as_given(name: str, counts: Counts, given: Given) -> pa.DataType | Question:
    """The type of a column of which all is given but whether times have a zone: they have none unless most have.

    One row changes by two at most how many more times with a zone there are than without.
    """
    if given.leaf == "label":
        return pa.string()
    family = given.families[0]
    zoned = "datetime with zone"
    if family != zoned and zoned in given.families:
        more = _size(counts, zoned) - _size(counts, family)
        if 0 < more <= 2:
            times = _size(counts, zoned) + _size(counts, family)
            return Question(name, f"{_percent(_size(counts, zoned), times)} of its times have a zone", ("text",))
        family = zoned if more > 2 else family
    return _leaf(name, counts, family, given)


def settle_text(name: str, counts: Counts, given: Given | None = None) -> pa.DataType | Question | None:
    """The type of a column that is text in a table with types; None if it stays what it is."""
    if given is not None and given.leaf in ("text", "label"):
        return None
    if given is not None:
        found = settle(name, counts, given)
        return None if found == pa.string() else found
    cells = int(counts[CellClass.WHOLE :].sum())
    for family in _FAMILIES:
        if family != "boolean" and 2 * _size(counts, family) > cells:
            looks = f"it is text, and {_looks(counts, family, cells, False)}"
            return Question(name, looks, (*_answers(counts, family), "text"))
    return _other_dates(name, counts, cells) if 2 * int(counts[CellClass.OTHER_DATE]) > cells else None


def parse(texts: pa.Array, arrow_type: pa.DataType, marks: Sequence[str]) -> pa.Array:
    """Text cells as `arrow_type`, total: what cannot be read as that is null.

    Numbers are rounded to whole ones and times cut to days or seconds where the type has no finer values.
    """
    if pt.is_null(texts.type):
        return pa.nulls(len(texts), arrow_type)
    texts = (
        texts.cast(pa.large_string()) if pt.is_string_view(texts.type) else texts
    )  # Arrow has few functions of views
    if is_text(arrow_type):
        return _without_marks(texts, marks).cast(arrow_type)
    cells = classify(texts, (*MISSING_MARKS, *marks))
    classes, values = cells.classes, cells.values
    if pt.is_floating(arrow_type):
        return _decimals(texts, cells).cast(arrow_type)
    if pt.is_integer(arrow_type):
        return _whole(texts, cells, arrow_type)
    if pt.is_boolean(arrow_type):
        return pa.array(values.astype(bool), mask=classes != CellClass.BOOLEAN)
    zoned = pt.is_timestamp(arrow_type) and arrow_type.tz is not None
    family = "time" if pt.is_time(arrow_type) else "datetime with zone" if zoned else "datetime"
    absent = ~_among(classes, family)
    if pt.is_date(arrow_type):
        return pa.array((values // _DAY).astype(np.int32), mask=absent).cast(pa.date32()).cast(arrow_type)
    if pt.is_time(arrow_type):
        return pa.array((values // _SECOND).astype(np.int32), mask=absent).cast(pa.time32("s")).cast(arrow_type)
    if arrow_type.unit == "s":
        return pa.array(values // _SECOND, mask=absent).cast(arrow_type)
    if arrow_type.unit == "ns":
        absent |= np.abs(values) > np.iinfo(np.int64).max // 1000
    return pa.array(values, mask=absent).cast(pa.timestamp("us", arrow_type.tz)).cast(arrow_type, safe=False)


def _whole(texts: pa.Array, cells: Cells, arrow_type: pa.DataType) -> pa.Array:
    whole, values = cells.classes == CellClass.WHOLE, cells.values
    rows = np.flatnonzero(cells.classes == CellClass.DECIMAL)
    if len(rows):
        decimals = texts.take(pa.array(rows))
        rounded = np.rint(_reals(decimals).to_numpy())
        fitting = np.abs(rounded) < 2.0**63
        exact = classify(pc.replace_substring_regex(decimals, r"\.0*[\s\v]*$", ""), ())  # 1.0 is as exact as 1
        fits = exact.classes == CellClass.WHOLE
        whole, values = whole.copy(), values.copy()
        whole[rows] = fits | fitting
        values[rows] = np.where(fits, exact.values, np.where(fitting, rounded, 0.0).astype(np.int64))
    dtype = np.dtype(arrow_type.to_pandas_dtype())
    low, high = (int(np.clip(end, -(2**63), 2**63 - 1)) for end in (np.iinfo(dtype).min, np.iinfo(dtype).max))
    whole = whole & (values >= low) & (values <= high)
    return pa.array(values.astype(dtype), mask=~whole)


def _decimals(texts: pa.Array, cells: Cells) -> pa.Array:
    numbers = _among(cells.classes, "number")
    some = texts if numbers.all() else pc.if_else(pa.array(numbers), texts, pa.scalar(None, texts.type))
    return _reals(some, cells.padded)


def _reals(texts: pa.Array, padded: bool = True) -> pa.Array:
    return (pc.utf8_trim_whitespace(texts) if padded else texts).cast(pa.float64())


def _without_marks(texts: pa.Array, marks: Sequence[str]) -> pa.Array:
    """A text column: empty cells and the marks that the keeper gave are null, and no other."""
    missing = pc.equal(pc.binary_length(texts), 0)
    if marks:
        given = pa.array([mark.strip() for mark in marks], texts.type)
        missing = pc.or_(missing, pc.is_in(pc.utf8_trim_whitespace(texts), value_set=given))
    return pc.if_else(missing, pa.scalar(None, texts.type), texts)


def _leaf(name: str, counts: Counts, family: str, given: Given | None = None) -> pa.DataType | Question:
    """The type of a column of one family: as given, else as finely as enough of its cells are written."""
    leaf = None if given is None else given.leaf
    if leaf is None:
        leaves = _leaves(counts, family, days=given is None or not given.firm)
        if len(leaves) > 1:
            share = _percent(_finer(counts, family, leaves[1]), _size(counts, family))
            return Question(name, f"{share} of its {_PLURAL[family]} have {_DETAIL[leaves[1]]}", leaves)
        leaf = leaves[0]
    if family == "datetime with zone":
        return pa.timestamp(_ARROW[leaf].unit, "UTC")
    return _ARROW[leaf]


def _leaves(counts: Counts, family: str, days: bool = True) -> tuple[ColumnType, ...]:
    """The type that the cells of one family have, or two types where that is undecided; `days` for mere dates, too."""
    steps = _STEPS.get(family, ())[0 if days else -1 :]
    for coarse, fine in steps:
        settled = few(_finer(counts, family, fine), _size(counts, family))
        if settled is None:
            return coarse, fine
        if settled:
            return (coarse,)
    return (steps[-1][1] if steps else family,)  # type: ignore[return-value]


def _answers(counts: Counts, family: str) -> tuple[ColumnType, ...]:
    """What a column may be said to be that is of this family: by one name if its cells settle the rest."""
    leaves = _leaves(counts, family)
    return leaves if len(leaves) > 1 else (_SHORT.get(leaves[0], leaves[0]),)


def _size(counts: Counts, family: str) -> int:
    return int(counts[list(_FAMILIES[family])].sum())


def _finer(counts: Counts, family: str, leaf: str) -> int:
    """How many cells of the family only this finer type holds exactly; cells of other families are missing."""
    return int(sum(counts[of] for of in _FINER[leaf] if of in _FAMILIES[family]))


def _among(classes: NDArray[np.uint8], family: str) -> NDArray[np.bool_]:
    low, high = _FAMILIES[family][0], _FAMILIES[family][-1]
    return (classes >= low) & (classes <= high)


def _looks(counts: Counts, family: str, cells: int, nearly_empty: bool) -> str:
    if nearly_empty:
        return NEARLY_EMPTY
    return f"{_percent(_size(counts, family), cells)} of its cells are {_PLURAL[family]}"


def _other_dates(name: str, counts: Counts, cells: int) -> Question:
    share = _percent(int(counts[CellClass.OTHER_DATE]), cells)
    return Question(name, f"{share} of its cells look like dates that are not written as 2024-12-31", ("text",))


def _percent(some: int, cells: int) -> str:
    return f"{100 * some // cells if cells else 0}%"
