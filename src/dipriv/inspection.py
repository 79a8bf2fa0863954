"""What a table looks like to dipriv before anything is released: kinds, warnings, suggestions, and a draft schema.

All this is read from private rows, for their owner only. A repr or an error gives names, types and counts; values show
in `Inspection.summary` and in the draft schema alone, which say so.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from dipriv._base.columns import ColumnValues
from dipriv._tables import frames as tables
from dipriv._tables.arrow import cells_to_arrow, decoded, is_text
from dipriv._tables.column_types import Question, TypeRules
from dipriv._tables.fitted_columns import infer
from dipriv._tables.frames import Column, Table, check_names, contains_text
from dipriv._tables.identifiers import MIN_VALUES, Counts, Warned, count, free_text, refuse_free_text, warning
from dipriv._tables.suggestions import Suggestion, odd_cells, read_as_missing, suggest
from dipriv._tables.typed_tables import settle_table
from dipriv.codecs.fit import common_step, kind_of_type
from dipriv.codecs.temporal import coarsest_resolution
from dipriv.dialect import DETECTED, Dialect
from dipriv.errors import DiprivError
from dipriv.schema import (
    DRAFT_SECTION,
    Categorical,
    Code,
    ColumnType,
    Datetime,
    Discrete,
    Identifier,
    Kind,
    Meaning,
    Mixed,
    Postal,
    Schema,
    SchemaLike,
    Text,
    as_schema,
    without_values,
)
from dipriv.sources import is_path
from dipriv.sources.files import File, FileBatches

__all__ = ["ColumnFacts", "Inspection", "free_text", "inspect", "refuse_free_text"]

RARE = 5
"""A level that occurs fewer times than this may point to a person."""
MAX_LISTED = 1000
"""A draft lists the labels of a column if they are no more than this."""
MAX_NUMBERS = 50
"""And the levels of a column of numbers, if they are no more than this."""
MAX_TOP = 3
TOP_SHARE = 0.005
"""Values with a smaller share of the cells are not shown."""
NEARLY_ALL_ROWS = 0.99
"""An order of dates is suggested if at least this share of the rows keep it."""
MAX_ORDERED = 20
"""Of as many columns of dates, orders are looked for."""
WIDTH = 79

_SUSPECTED: dict[Warned, str] = {
    "identifier": "an identifier: its values stand for people or rows",
    "near-unique key": "a near-unique key: nearly every row has a value of its own",
    "free text": "free text: long or mostly distinct values",
}
_PRIVATE = "Private: read from the rows, for the keeper of the table alone. Do not publish it."


@dataclass(frozen=True)
class ColumnFacts:
    """One column as dipriv sees it.

    `kind` is what its rows suggest, without levels if they are many or suspect; None if its type or its values are
    refused, and then `refused` says why, or asks what it is if it is `undecided`. `nulls` include NaN; `distinct` is
    exact, but 0 for a refused column. `facts` are what would be read from the rows: levels, step, atoms, resolution,
    nulls. Once declared they are assumed public. `rare` is the number of levels or atoms that occur fewer than five
    times.
    """

    name: str
    storage: str
    kind: Kind | None = field(repr=False)
    nulls: int = field(repr=False)
    distinct: int = field(repr=False)
    warning: Warned | None = field(repr=False, default=None)
    facts: tuple[str, ...] = field(repr=False, default=())
    rare: int = field(repr=False, default=0)
    refused: str | None = field(repr=False, default=None)
    undecided: bool = field(repr=False, default=False)
    option: str = "type"
    """What decides an undecided column: `type`, or `decimal` or `dates` of the file."""
    written: str = field(repr=False, default="")
    """How its numbers or dates are written in a text file, if not plainly."""
    taken_as: str = ""
    """What `privatize` takes it as if nothing is declared."""
    meaning: Meaning | None = field(repr=False, default=None)
    """What it may be beyond its type, and `why`."""
    why: str = field(repr=False, default="")
    drafted: Kind | Meaning | None = field(repr=False, default=None)
    """What the draft declares: a meaning, or what the type alone says, which is nothing of real numbers."""
    natural: Kind | None = field(repr=False, default=None)
    """The kind without levels and atoms, with a step or a resolution that all values have."""
    lowest: str = field(repr=False, default="")
    highest: str = field(repr=False, default="")
    top: tuple[tuple[str, float], ...] = field(repr=False, default=())
    """The most frequent values and their shares of the cells."""
    notes: tuple[str, ...] = field(repr=False, default=())
    """What else its keeper may want to know."""
    advice: tuple[str, ...] = field(repr=False, default=())
    """What may be declared, if nothing is."""
    unit: str = field(repr=False, default="")
    """About a key that several rows share, as persons do."""
    declared: str | None = None
    """The kind that the given schema declares."""
    bounds: tuple[int | float, int | float] | None = field(repr=False, default=None)
    """The smallest and the largest number."""


@dataclass(frozen=True)
class Inspection:
    """The columns of a table as dipriv sees them.

    Attributes
    ----------
    rows : how many rows the table has.
    columns : the facts of each column, in the table's order.
    file : how the file is written, in words.
    dialect : what was given about that.
    orders : rules such as "admitted <= discharged" about columns of dates or times that nearly all rows keep.
    """

    rows: int
    columns: tuple[ColumnFacts, ...]
    file: str = ""
    dialect: Dialect = DETECTED
    orders: tuple[str, ...] = field(repr=False, default=())

    def summary(self) -> str:
        """Each column with its range, its most frequent values, and suggestions: private.

        Returns
        -------
        Text of at most 79 characters a line, but for long names.
        """
        described = f" The file: {self.file}." if self.file else ""
        lines = [_PRIVATE, f"{self.rows:,} rows, {len(self.columns)} columns.{described}"]
        for column in self.columns:
            lines += ["", *_lines(column, self.rows)]
        if self.orders:
            text = f"Nearly all rows keep {', '.join(self.orders)}. If that must be so, declare it: rules = [...]."
            lines += ["", *textwrap.wrap(text, WIDTH)]
        asked = [column for column in self.columns if column.undecided]
        if asked:
            options = ", ".join(dict.fromkeys(f"--{column.option}" for column in asked))
            names = ", ".join(column.name for column in asked)
            lines += ["", *textwrap.wrap(f"Undecided: {names}. Say what they are ({options}), or declare them.", WIDTH)]
        return "\n".join(lines)

    def schema_toml(self) -> str:
        """A draft schema with comments, to edit. `Schema.from_toml` loads it as it is.

        It declares meanings (identifiers, codes, money and such), and kinds that follow from a column's type. Levels,
        atoms, bounds, steps and resolutions, and all about real numbers, are read from the rows, and are comments.
        Columns that dipriv refuses are comments, too.

        Returns
        -------
        The text of a TOML file.
        """
        header = [
            f"Drafted by dipriv from the private rows: {self.rows} rows, {len(self.columns)} columns.",
            "What this file declares is assumed public: kinds that follow from the types of columns, and what",
            "they seem to be, such as identifiers, codes and money. What else was read from the rows is in comments.",
            "Do not publish this file as it is: remove what is not public, and remove the # only from what everybody",
            "may know. What is not declared is found under differential privacy by the private reference, and read",
            "from the reference rows by others.",
        ]
        file = [Schema({}, self.dialect).to_toml()] if self.dialect else []
        if self.orders:
            read = "Nearly all of the private rows keep these rules. Remove the # if everybody may know that:"
            file = [_comment([read, _line("rules", list(self.orders))]), *file]
        return "\n".join([_comment(header), *file, *(_draft(column) for column in self.columns), *self._mark()])

    def _mark(self) -> list[str]:
        """The section by which `privatize` knows a draft again; not in a schema with a column of its name."""
        if DRAFT_SECTION in [column.name for column in self.columns]:
            return []
        comment = ["By this section dipriv knows its draft again, and warns. Remove it when you have checked the file."]
        empty = Schema({})
        empty.is_draft = True
        return [_comment(comment) + empty.to_toml()]


def inspect(
    frame: Any,
    *,
    schema: SchemaLike = None,
    types: Mapping[str, ColumnType] | None = None,
    missing: Sequence[str] = (),
    dialect: Dialect | None = None,
) -> Inspection:
    """What each column of a table looks like to dipriv: kind, range, nulls, and what it seems to be.

    `print(inspection.summary())` shows it all. It is private: it is read from the rows.

    Parameters
    ----------
    frame : pandas, polars or pyarrow table, or two-dimensional numpy array; or the path of a file.
    schema, types, missing, dialect : as for `dipriv.privatize`. Nothing is suggested for columns that the schema
        declares.

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
    declared = as_schema(schema)
    given = replace(dialect or DETECTED, missing=(*(dialect or DETECTED).missing, *missing))
    if is_path(frame):
        file = File.at(frame, None, given, declared.dialect)
        return inspect_file(file, types, given.over(declared.dialect), declared)
    return _inspect(tables.read(frame), types or {}, given.over(declared.dialect), declared)


def inspect_file(
    file: File, types: Mapping[str, ColumnType] | None, dialect: Dialect, declared: Schema | None = None
) -> Inspection:
    """The same for a file."""
    declared = Schema({}) if declared is None else declared
    rows = file.typed(TypeRules.of(declared, types or {}, dialect))
    table = tables.read(file.table(rows))
    if file.format.has_types:
        found = _inspect(table, types or {}, dialect, declared)
    else:
        said = {name: notation.described(rows.types[name]) for name, notation in rows.notations.items()}
        found = _inspect(table, types or {}, dialect, declared, rows.questions, said)
        found = _with_misfits(found, file, table, dialect)
    return replace(found, file=file.described(), dialect=dialect)


def _with_misfits(found: Inspection, file: File, table: Table, dialect: Dialect) -> Inspection:
    """With the cells of a text file that are missing because they are not of their column's type."""
    names = [
        one.name
        for one in found.columns
        if one.nulls and one.refused is None and not is_text(table.arrow_type(one.name))
    ]
    if not names:
        return found
    every = pa.Table.from_batches(FileBatches.of(file).batches(names))
    labels = {
        one.name: pc.unique(table.array(one.name)) for one in found.columns if is_text(table.arrow_type(one.name))
    }
    notes = {
        name: read_as_missing(every[name].combine_chunks(), table.array(name), dialect.missing, labels)
        for name in names
    }
    return replace(
        found, columns=tuple(replace(one, notes=(*one.notes, *notes.get(one.name, ()))) for one in found.columns)
    )


def _inspect(
    table: Table,
    types: Mapping[str, ColumnType],
    dialect: Dialect,
    declared: Schema,
    questions: Sequence[Question] | None = None,
    written: Mapping[str, str] | None = None,
) -> Inspection:
    check_names(types, table.names, "types")
    rules = TypeRules.of(declared, types, dialect)
    if questions is None:
        table, questions = settle_table(table, table.names, rules)
    asked = {question.column: question for question in questions}
    said = written or {}
    columns = [_look(table, name, asked.get(name), said.get(name, ""), rules.marks) for name in table.names]
    kinds = {name: of["kind"] for name, of in declared.only(table.names).to_dict().items()}
    columns = [replace(column, declared=kinds.get(column.name)) for column in columns]
    orders = [text for text in _orders(table, columns) if text not in declared.rules.texts]
    return Inspection(table.rows, tuple(columns), orders=tuple(orders))


def _orders(table: Table, columns: Sequence[ColumnFacts]) -> tuple[str, ...]:
    """Orders of dates or times of one type that nearly all rows keep; what follows from others is left out."""
    names = [column.name for column in columns if isinstance(column.kind, Datetime)][:MAX_ORDERED]
    cells = {name: table.array(name) for name in names}
    found = set[tuple[str, str]]()
    for one, other in permutations(names, 2):
        if cells[one].type != cells[other].type or pt.is_duration(cells[one].type):
            continue
        keep = pc.sum(pc.less_equal(cells[one], cells[other])).as_py() or 0
        equal = pc.sum(pc.equal(cells[one], cells[other])).as_py() or 0
        rows = table.rows - pc.is_null(pc.equal(cells[one], cells[other])).true_count
        if rows >= MIN_VALUES and keep >= NEARLY_ALL_ROWS * rows > equal:
            found.add((one, other))
    follow = {(a, d) for a, b in found for c, d in found if b == c}
    return tuple(
        f"{_in_rules(one)} <= {_in_rules(other)}"
        for one, other in permutations(names, 2)
        if (one, other) in found - follow
    )


def _in_rules(name: str) -> str:
    """A column's name as rules have it."""
    plain = re.fullmatch(r"[^\W\d]\w*", name) and name not in ("is", "not", "missing", "in", "true", "false")
    return name if plain else '"' + name.replace('"', '""') + '"'


def _look(table: Table, name: str, question: Question | None, written: str, marks: Sequence[str]) -> ColumnFacts:
    if question is not None:
        return _asked(table, name, question, marks)
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
    found = suggest(column, kind, counts, suspected, written)
    is_number = column.storage.family in ("integer", "real")
    ends = (counts.values.to_numpy().min().item(), counts.values.to_numpy().max().item()) if is_number else None
    natural = _natural(kind, column, counts)
    lowest, highest = _ends(column, counts)
    return ColumnFacts(
        name,
        _type_name(column.arrow_type),
        kind,
        nulls,
        counts.distinct,
        suspected,
        (*_read_from_rows(column, kind), *(["nulls"] if nulls else [])),
        _rare(kind, counts),
        written=written,
        taken_as=_taken_as(natural, column),
        meaning=found.meaning,
        why=found.why,
        natural=natural,
        drafted=kind_of_type(column.storage) if found.meaning is None else found.meaning,
        lowest=lowest,
        highest=highest,
        top=_top(column, counts),
        notes=found.notes,
        advice=found.advice,
        unit=found.unit,
        bounds=ends,
    )


def _asked(table: Table, name: str, question: Question, marks: Sequence[str]) -> ColumnFacts:
    """A column whose type is undecided, with the cells that cause that."""
    facts = replace(_refused(table, name, str(question)), undecided=True, option=question.option)
    try:
        array, column = table.array(name), table.column(name)
    except DiprivError:
        return facts
    if not is_text(array.type):
        return facts
    counts = count(table, column)
    found = Suggestion()
    if counts.distinct:
        suspected = warning(table, column, Categorical(), counts)
        found = suggest(column, Categorical(), counts, suspected if suspected == "identifier" else None, "")
    coded = found.meaning if isinstance(found.meaning, Postal | Identifier) or "leading zeros" in found.why else None
    notes = () if coded else (*odd_cells(array.drop_null(), marks), *found.notes)
    may_be_code = isinstance(found.meaning, Code) and coded is None
    return replace(
        facts,
        distinct=counts.distinct,
        meaning=coded,
        why=found.why if coded else "",
        drafted=coded,
        top=_top(column, counts),
        notes=notes,
        advice=('if these are codes, declare kind = "code"',) if may_be_code else (),
        unit=found.unit,
    )


def _natural(kind: Kind, column: Column, counts: Counts) -> Kind:
    """The kind without what was read from the rows: levels and atoms."""
    if isinstance(kind, Datetime) and kind.resolution is None:
        return Datetime(coarsest_resolution(counts.values.to_numpy(), column.storage.tick_ns))
    if not isinstance(kind, Discrete) or kind.levels is None:
        return without_values(kind)
    if column.storage.family == "integer":
        return Discrete(step=1)
    step = common_step(counts.values.to_numpy())
    return Mixed() if step is None else Discrete(step=1 if step >= 1 else 10.0 ** np.floor(np.log10(step)))


def _taken_as(kind: Kind, column: Column) -> str:
    """What a release with the private reference takes a column as, in words."""
    family = column.storage.family
    if family == "boolean":
        return "true or false"
    if isinstance(kind, Categorical):
        return "labels"
    if isinstance(kind, Datetime):
        return "dates" if kind.resolution == "day" else f"times to the {kind.resolution}"
    if family == "integer" or (isinstance(kind, Discrete) and kind.step is not None and kind.step >= 1):
        return "whole numbers"
    if isinstance(kind, Discrete) and kind.step is not None:
        digits = len(f"{kind.step:.9f}".rstrip("0").partition(".")[2])
        return f"numbers with {digits} decimal{'s' if digits > 1 else ''}"
    return "real numbers"


def _texts(column: Column, values: pa.Array) -> list[str]:
    """Some of the values of `Counts` as they would be written."""
    if column.storage.family != "label":
        values = cells_to_arrow(ColumnValues(values.to_numpy()), None, column.arrow_type)
    return [str(value) for value in pc.cast(decoded(values), pa.string()).to_pylist()]


def _ends(column: Column, counts: Counts) -> tuple[str, str]:
    if column.storage.family == "label" or not counts.distinct:
        return "", ""
    ends = pc.min_max(counts.values)
    low, high = _texts(column, pa.array([ends["min"].as_py(), ends["max"].as_py()], counts.values.type))
    return low, high


def _top(column: Column, counts: Counts) -> tuple[tuple[str, float], ...]:
    """The most frequent values, if they occur often."""
    places = np.argsort(-counts.times, kind="stable")[:MAX_TOP]
    places = places[counts.times[places] > max(1, TOP_SHARE * counts.present)]
    texts = _texts(column, counts.values.take(pa.array(places))) if len(places) else []
    return tuple(zip(texts, (counts.times[places] / counts.present).tolist(), strict=True))


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


def _lines(column: ColumnFacts, rows: int) -> list[str]:
    """A column for a terminal: its name and type, then what is known, then what to think of."""
    said = [column.storage, f"{column.distinct:,} distinct"] if column.distinct else [column.storage]
    said += [f"{column.nulls:,} missing ({column.nulls / rows:.1%})"] if column.nulls else []
    said += [f"written with {column.written}"] if column.written else []
    lines = [f"{column.name}: {', '.join(said)}"]
    if column.refused is not None:
        lines += _wrapped("undecided: " if column.undecided else "refused: ", column.refused)
    else:
        spread = f", {column.lowest} to {column.highest}" if column.lowest != column.highest else ""
        what = f'declared kind = "{column.declared}"' if column.declared else f"taken as {column.taken_as}"
        lines += _wrapped("", what + spread)
    if column.top:
        lines += _wrapped("most often ", ", ".join(f"{text!r:.32} {share:.1%}" for text, share in column.top))
    is_key = column.unit and isinstance(column.meaning, Identifier)
    if column.meaning is not None and not column.declared and not is_key:
        gone = " and leave it out" if column.meaning.released_as is None else ""
        lines += _wrapped("! ", f'declare kind = "{column.meaning.name}"{gone} ({column.why})')
    if column.rare and isinstance(column.kind, Categorical) and not column.declared:
        lines += _wrapped("! ", f"{column.rare:,} labels occur fewer than {RARE} times: each may point to a person")
    advice = () if column.declared else column.advice
    for note in (*column.notes, *advice, *([column.unit] if column.unit else [])):
        lines += _wrapped("! ", note)
    return lines


def _wrapped(mark: str, text: str) -> list[str]:
    clean = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return textwrap.wrap(mark + clean, WIDTH, initial_indent="  ", subsequent_indent="    ")


def _draft(column: ColumnFacts) -> str:
    """A column's section of the draft: its kind, then in comments what was read from its rows."""
    notes = [f"{column.storage}, {column.distinct} distinct values, {column.nulls} nulls."]
    if column.drafted is None and column.natural is None:
        advice = "Drop it (--drop), or keep it as it is, unprotected (--keep); or convert it, or say its type (--type)."
        return _comment([f"{column.refused}", *column.notes, *column.advice, *_unit(column), advice])
    section = "" if column.drafted is None else _section(column.name, column.drafted)
    if column.warning is not None:
        notes.append(f"WARNING: this looks like {_SUSPECTED[column.warning]}.")
    if isinstance(column.drafted, Identifier):
        notes.append("It is left out; anew = true releases new identifiers. If it is a measurement, declare that kind.")
    elif isinstance(column.drafted, Text):
        notes.append("It is left out, unless you declare its public labels: levels = [...].")
    elif isinstance(column.drafted, Postal):
        notes.append(
            f"Because of {column.why}. digits = 3 keeps the first 3 characters: larger areas, so that more remain."
        )
    elif column.meaning is not None:
        notes.append(f"Because of {column.why}.")
    return _comment([*notes, *column.notes, *column.advice, *_unit(column)]) + section + _comment(_from_rows(column))


def _unit(column: ColumnFacts) -> list[str]:
    """That a schema does not protect persons, by itself."""
    if not column.unit:
        return []
    return ["SEVERAL ROWS FOR A VALUE: THIS FILE ALONE PROTECTS ROWS, NOT PERSONS.", f"{column.unit}."]


def _from_rows(column: ColumnFacts) -> list[str]:
    """What was read from the rows, as lines of the section that are comments."""
    kind, natural, drafted = column.kind, column.natural, column.drafted
    if kind is None or natural is None or (drafted is not None and drafted.name in ("identifier", "text")):
        return []
    values = next((name for name in ("levels", "atoms") if getattr(kind, name, None)), None)
    if values and isinstance(kind, Discrete) and (column.meaning is not None or _follow_from_bounds(kind)):
        values = None
    lines = [] if drafted is not None else [_section(column.name, type(kind if values else natural)()).rstrip()]
    if values:
        instead = " (instead of the step)" if getattr(drafted, "step", None) else ""
        lines += [f"{values.capitalize()}{instead}:"]
        if column.rare:
            lines.append(f"{column.rare} of these {values} occur fewer than {RARE} times: each may point to a person.")
        lines.append(_line(values, list(getattr(kind, values))))
    elif column.meaning is None and natural != drafted:
        found = {name: of for name in ("step", "resolution") if (of := getattr(natural, name, None)) is not None}
        instead = " (instead of the one above)" if getattr(drafted, "step", None) else ""
        lines += [text for name, of in found.items() for text in (f"{name.capitalize()}{instead}:", _line(name, of))]
    lower, upper = column.bounds or (0, 0)
    if lower < upper and hasattr(natural if drafted is None else drafted, "lower") and values != "levels":
        lines += ["The smallest and the largest value:", _line("lower", lower), _line("upper", upper)]
    if lines:
        head = "" if drafted is not None else ", and then from [...] and kind, too"
        lines = [f"Read from the private rows. Remove the # only from what is public anyway{head}:", *lines]
    if not values and isinstance(kind, Categorical) and "levels" in column.facts:
        lines.append("Its levels are not listed: the private reference finds those that many rows have.")
    return lines


def _line(name: str, value: Any) -> str:
    """A field of a section, in one line."""
    import tomli_w

    lines = tomli_w.dumps({name: value}).rstrip("\n").split("\n")
    line = f"{lines[0]}{' '.join(line.strip() for line in lines[1:])}"
    return f"{line.removesuffix(', ]')}]" if line.endswith(", ]") else line


def _section(name: str, kind: Kind | Meaning) -> str:
    """A section of a schema without fields that have their defaults."""
    import tomli_w

    plain = Schema({name: kind}).to_dict()[name]
    defaults = {one.name: one.default for one in fields(kind)}
    return tomli_w.dumps({name: {key: of for key, of in plain.items() if key == "kind" or of != defaults[key]}})


def _follow_from_bounds(kind: Discrete) -> bool:
    """Whether levels are too many to list, or whole numbers without gaps: bounds and a step say as much."""
    levels = kind.levels or ()
    whole = all(level == int(level) for level in levels)
    return len(levels) > MAX_NUMBERS or (whole and max(levels) - min(levels) + 1 == len(levels))


def _comment(lines: list[str]) -> str:
    return "".join(f"# {line}\n" for text in lines for line in text.split("\n"))
