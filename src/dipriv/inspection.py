"""What a table looks like to dipriv before anything is released: kinds, warnings, and a draft schema to edit.

All this is read from private rows, for their owner only. A repr or an error gives names, types and counts; the
values themselves (levels, atoms, steps) show in the draft schema alone, whose header says what to do with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from dipriv._tables import frames as tables
from dipriv._tables.column_types import Question, TypeRules
from dipriv._tables.fitted_columns import infer
from dipriv._tables.frames import Column, Table, check_names, contains_text
from dipriv._tables.identifiers import Counts, Warned, count, free_text, refuse_free_text, warning
from dipriv._tables.typed_tables import settle_table
from dipriv.errors import DiprivError
from dipriv.schema import Categorical, ColumnType, Datetime, Discrete, Kind, Mixed, Schema
from dipriv.sources import is_path
from dipriv.sources.files import File

__all__ = ["ColumnFacts", "Inspection", "free_text", "inspect", "refuse_free_text"]

RARE = 5
"""A level that occurs fewer times than this may point to a person."""
MAX_LISTED = 1000
"""A draft lists the labels of a column if they are no more than this."""

_SUSPECTED: dict[Warned, str] = {
    "identifier": "an identifier: its values stand for people or rows",
    "near-unique key": "a near-unique key: nearly every row has a value of its own",
    "free text": "free text: long or mostly distinct values",
}
_DECLARE_LABELS = (
    "and adding levels = [...] with its public labels. Text with mostly distinct or long values is refused."
)
_DECLARE_NUMBERS = "if it is a measurement. Left like this it is privatized as any other number."


@dataclass(frozen=True)
class ColumnFacts:
    """One column as dipriv sees it.

    `kind` is what it would be taken as, without levels if they are many or suspect; None if its type or its values are
    refused, and then `refused` says why, or asks what it is if it is `undecided`. `nulls` include NaN; `distinct` is
    exact, but 0 for a refused column. `facts` are what would be read from the rows: levels, step, atoms, resolution,
    nulls. Once declared they are assumed public. `rare` is the number of declared levels or atoms that occur fewer than
    five times.
    """

    name: str
    storage: str
    kind: Kind | None = field(repr=False)
    nulls: int
    distinct: int
    warning: Warned | None = None
    facts: tuple[str, ...] = ()
    rare: int = 0
    refused: str | None = None
    undecided: bool = False


@dataclass(frozen=True)
class Inspection:
    """The columns of a table as dipriv sees them.

    Attributes
    ----------
    rows : how many rows the table has.
    columns : the facts of each column, in the table's order.
    """

    rows: int
    columns: tuple[ColumnFacts, ...]

    def schema_toml(self) -> str:
        """A draft schema with comments, to edit. `Schema.from_toml` loads it as it is.

        Columns with a warning and columns that dipriv refuses are commented out, with advice.

        Returns
        -------
        The text of a TOML file.
        """
        header = [
            f"Drafted by dipriv from the private rows: {self.rows} rows, {len(self.columns)} columns.",
            "What this file declares is assumed public. Do not publish it as it is: remove what is not public.",
            "What is left out is found under differential privacy by the private reference, and read from the",
            "reference rows by others. These refuse rows with a level that you removed from a list.",
        ]
        return "\n".join([_comment(header), *(_draft(column) for column in self.columns)])


def inspect(frame: Any, *, types: Mapping[str, ColumnType] | None = None, missing: Sequence[str] = ()) -> Inspection:
    """What each column of a table looks like to dipriv: kind, nulls, and whether it seems to identify people.

    Parameters
    ----------
    frame : pandas, polars or pyarrow table, or two-dimensional numpy array; or the path of a file.
    types, missing : as for `dipriv.privatize`.

    Returns
    -------
    Inspection : facts about each column, and a draft schema.

    Raises
    ------
    InputError : it is not a table, or has no rows or columns.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"row": range(50), "sex": ["f", "m"] * 25})
    >>> [(column.name, column.kind, column.warning) for column in inspect(table).columns]
    [('row', Discrete(step=1), 'identifier'), ('sex', Categorical(levels=2), None)]
    """
    if is_path(frame):
        return inspect_file(File.at(frame), types, missing)
    return _inspect(tables.read(frame), TypeRules.of({}, types or {}, missing))


def inspect_file(file: File, types: Mapping[str, ColumnType] | None, missing: Sequence[str]) -> Inspection:
    """The same for a file."""
    rules = TypeRules.of({}, types or {}, missing)
    found, questions = file.read_with_questions(rules)
    return _inspect(tables.read(found), rules, questions if file.format.is_text else None)


def _inspect(table: Table, rules: TypeRules, questions: Sequence[Question] | None = None) -> Inspection:
    check_names(rules.given, table.names, "types")
    if questions is None:
        table, questions = settle_table(table, table.names, rules)
    asked = {question.column: question for question in questions}
    return Inspection(table.rows, tuple(_look(table, name, asked.get(name)) for name in table.names))


def _look(table: Table, name: str, question: Question | None) -> ColumnFacts:
    if question is not None:
        return replace(_refused(table, name, str(question)), undecided=True)
    try:
        column = table.column(name)
        counts = count(table, column)
        kind = _kind(table, column, counts)
    except DiprivError as fault:
        return _refused(table, name, fault.fault)
    suspected = warning(table, column, kind, counts)
    if suspected and isinstance(kind, Categorical):
        kind = Categorical()
    nulls = table.rows - counts.present
    facts = (*_read_from_rows(column, kind), *(["nulls"] if nulls else []))
    shown = _type_name(column.arrow_type)
    return ColumnFacts(name, shown, kind, nulls, counts.distinct, suspected, facts, _rare(kind, counts))


def _kind(table: Table, column: Column, counts: Counts) -> Kind:
    """What `infer_schema` says, with labels only where a schema can declare them."""
    if column.storage.family == "label" and (counts.distinct > MAX_LISTED or not _has_plain_labels(column)):
        return Categorical()
    return infer(table, [column.name])[column.name]


def _has_plain_labels(column: Column) -> bool:
    """Whether text is text, and not how intervals, tuples and other objects are written out."""
    values = column.label_values
    return not contains_text(column) or values is None or all(isinstance(value, str) for value in values)


def _refused(table: Table, name: str, why: str) -> ColumnFacts:
    try:
        array = table.array(name)
    except DiprivError:
        return ColumnFacts(name, "object", None, 0, 0, refused=why)
    return ColumnFacts(name, _type_name(array.type), None, array.null_count, 0, refused=why)


def _type_name(arrow_type: pa.DataType) -> str:
    """An Arrow type's name, without the names of nested fields: they may come from cells."""
    if pt.is_dictionary(arrow_type):
        return f"dictionary of {_type_name(arrow_type.value_type)}"
    return str(arrow_type).partition("<")[0] if pt.is_nested(arrow_type) else str(arrow_type)


def _read_from_rows(column: Column, kind: Kind) -> tuple[str, ...]:
    """What is read from the rows, rather than from the type, of a column of this kind."""
    if isinstance(kind, Categorical):
        return () if column.storage.family == "boolean" else ("levels",)
    if isinstance(kind, Discrete):
        return ("levels",) if kind.step is None else ("step",)
    if isinstance(kind, Datetime):
        return ("levels",) if kind.resolution is None else ("resolution",)
    return ("atoms",) if isinstance(kind, Mixed) else ()


def _declared(kind: Kind | None) -> str | None:
    """Which of these facts a schema with this kind declares."""
    return next((name for name in ("levels", "step", "atoms", "resolution") if getattr(kind, name, None)), None)


def _rare(kind: Kind, counts: Counts) -> int:
    rare = counts.times < RARE
    if isinstance(kind, Mixed):
        return int(np.sum(rare & np.isin(counts.values.to_numpy(), kind.atoms or ())))
    return int(np.sum(rare)) if _declared(kind) == "levels" else 0


def _draft(column: ColumnFacts) -> str:
    """A column's section of the draft: comments, then its kind, itself a comment if the column is suspect."""
    if column.kind is None:
        advice = "Drop it (--drop), or keep it as it is, unprotected (--keep); or convert it, or say its type (--type)."
        return _comment([f"{column.refused}", advice])
    section = Schema({column.name: column.kind}).to_toml()
    notes = [f"{column.storage}, {column.distinct} distinct values, {column.nulls} nulls."]
    if column.warning is None:
        return _comment([*notes, *_assumptions(column)]) + section
    notes.append(f"WARNING: this looks like {_SUSPECTED[column.warning]}.")
    notes.append(
        "Drop it (--drop), or keep it as it is, unprotected (--keep), or declare it by removing the # signs below"
    )
    notes.append(_DECLARE_LABELS if isinstance(column.kind, Categorical) else _DECLARE_NUMBERS)
    return _comment([*notes, *section.split("\n")[:-1]])


def _assumptions(column: ColumnFacts) -> list[str]:
    notes = []
    declared = _declared(column.kind)
    if declared:
        notes.append(f"Read from the data and declared here, so assumed public: {declared}.")
    if "levels" in column.facts and not declared:
        notes.append("Its levels are not declared: the private reference finds those that many rows have.")
    if column.rare:
        notes.append(
            f"{column.rare} of these {declared} occur fewer than {RARE} times: each may point to a person. "
            "Remove those that are not public."
        )
    if column.nulls:
        notes.append("That it has nulls is not declared: it will be read from the reference rows.")
    return notes


def _comment(lines: list[str]) -> str:
    return "".join(f"# {line}\n" for text in lines for line in text.split("\n"))
