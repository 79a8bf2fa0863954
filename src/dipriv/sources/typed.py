"""Batches whose text columns have settled types: one pass judges all their cells, later passes read them as that type.

Every column of a CSV file is text to begin with. In tables that have types, only the columns of text are judged, and
they stay text unless their keeper says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from dipriv._base.parallel import ahead, in_parallel
from dipriv._base.progress import Progress, no_progress
from dipriv._tables.arrow import is_text, shown_type
from dipriv._tables.cell_classes import CellClass, classify
from dipriv._tables.column_types import (
    NO_CELLS,
    Counts,
    Given,
    Question,
    TypeRules,
    check_given,
    count_classes,
    exact_type,
    fits,
    parse,
    settle,
    settle_text,
    type_name,
)
from dipriv._tables.decorated import POINT, Shapes, class_counts, count_shapes, no_shapes, rewritten_cells
from dipriv._tables.frames import wide_type, widened
from dipriv._tables.notation import FileReading, Notation, file_reading, settle_column
from dipriv._tables.presentation import Presentation, TextColumns
from dipriv._tables.repeated import coded, distinct, repeats, without_null_labels
from dipriv.errors import InputError
from dipriv.schema import MISSING_MARKS


class Batches(Protocol):
    """A table that can be read in batches again and again: `FileBatches`, `BatchSource`, `TypedBatches`."""

    @property
    def name(self) -> str: ...

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def categories(self) -> Mapping[str, pa.Array]: ...

    @property
    def presentation(self) -> Presentation: ...

    @property
    def text_columns(self) -> TextColumns:
        """The columns of a source without types that are text."""
        ...

    @property
    def n_rows(self) -> int | None: ...

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]: ...


Look: TypeAlias = Callable[[pa.RecordBatch], None]


def no_look(batch: pa.RecordBatch) -> None:
    """Do nothing."""


@dataclass(frozen=True, eq=False)
class TypedBatches:
    """The same rows with some columns of text read as other types, cell by cell: what is not of the type is null."""

    rows: Batches
    types: Mapping[str, pa.DataType]
    marks: tuple[str, ...] = ()
    questions: tuple[Question, ...] = ()
    """Of columns whose type is undecided; they stay text."""
    notations: Mapping[str, Notation] = field(default_factory=dict)
    """Of columns whose numbers or dates are not all written plainly."""
    schema: pa.Schema = field(init=False, repr=False)

    def __post_init__(self) -> None:
        fields = [column.with_type(self.types.get(column.name, column.type)) for column in self.rows.schema]
        object.__setattr__(self, "schema", pa.schema(fields))

    @property
    def name(self) -> str:
        return self.rows.name

    @property
    def categories(self) -> Mapping[str, pa.Array]:
        return self.rows.categories

    @property
    def text_columns(self) -> TextColumns:
        return self.rows.text_columns

    @property
    def presentation(self) -> Presentation:
        return replace(self.rows.presentation, notations=self.notations)

    @property
    def n_rows(self) -> int | None:
        return self.rows.n_rows

    def batches(self, names: Sequence[str], look: Look = no_look) -> Iterator[pa.RecordBatch]:
        """All rows of these columns, from the start; `look` is called with each batch as it was read."""
        schema = pa.schema([self.schema.field(name) for name in names])
        for batch in self.coded_batches(names, look):
            columns = [
                array.dictionary.take(array.indices) if array.type != of.type else array
                for array, of in zip(batch.columns, schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def coded_batches(self, names: Sequence[str], look: Look = no_look) -> Iterator[pa.RecordBatch]:
        """The same, where text that was read as a dictionary is one, if each label stands for several cells."""
        fields = [self.schema.field(name) for name in names]
        batches = ahead(self.rows.batches(names))
        for batch in batches if look is no_look else ahead(_looked_at(batches, look)):
            columns = in_parallel(self._column, zip(names, batch.columns, strict=True))
            typed = [of.with_type(array.type) for of, array in zip(fields, columns, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=pa.schema(typed))

    def _column(self, named: tuple[str, pa.Array]) -> pa.Array:
        name, array = named
        wanted = self.schema.field(name).type
        if pt.is_dictionary(array.type) and not pt.is_dictionary(wanted):
            labels = self._column((name, array.dictionary))
            if not is_text(wanted) or pt.is_string_view(wanted) or not repeats(array):
                return labels.take(array.indices).cast(wanted)
            return without_null_labels(pa.DictionaryArray.from_arrays(array.indices, labels.cast(wanted)))
        if name not in self.types:
            return array
        if pt.is_dictionary(array.type):
            return widened(array)
        if name not in self.notations:
            return parse(array, self.types[name], self.marks)
        plain = self.notations[name].plainly(array, (*MISSING_MARKS, *self.marks))
        return parse(plain, self.types[name], ())  # a mark is missing as it is written, so that no other row matters


def _looked_at(batches: Iterable[pa.RecordBatch], look: Look) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        look(batch)
        yield batch


def settle_texts(
    rows: Batches,
    privatized: Sequence[str],
    rules: TypeRules,
    *,
    passed_through: Sequence[str] = (),
    anew: Sequence[str] = (),
    progress: Progress = no_progress,
) -> TypedBatches:
    """The rows of a CSV file, where all columns are text, with the types that all their cells settle.

    Columns of text in other files are judged as those of tables with types. Columns that pass through stay as they are
    written, which is as numbers or dates where all cells of a workbook and such are that; those of them that get new
    identifiers (`anew`) are whole numbers, independent of their cells. Refuses a file without a header
    (`check_names_are_no_cells`).
    """
    judged = [name for name in privatized if is_text(rows.schema.field(name).type)]
    named = {name: 0 for name in (*privatized, *passed_through) if is_text(rows.schema.field(name).type)}
    is_delimited = rows.presentation.separator is not None
    stored = rows.text_columns
    others = [name for name in named if name not in judged and name not in anew]
    kept = [] if is_delimited else [name for name in others if not stored.is_text(name)]
    counted = [*judged, *kept]
    shapes = _sums(rows, counted, lambda array: count_shapes(array, rules.all_marks), no_shapes(), progress, named)
    check_names_are_no_cells(rows.name, named)
    telling = [name for name in judged if name not in rules.given or rules.judges(name)]
    usual = file_reading({name: shapes[name] for name in telling}, rows.presentation.separator)
    plain = replace(rules, decimal=None) if rows.presentation.has_plain_numbers else rules
    settled = {name: _settle(name, shapes[name], stored, rules, plain, usual) for name in judged}
    questions = tuple(of for of, _ in settled.values() if isinstance(of, Question))
    types = {name: pa.string() if isinstance(of, Question) else of for name, (of, _) in settled.items()}
    plainly = [name for name in kept if not rewritten_cells(shapes[name])]  # others stay as they are written
    types |= {name: of for name in plainly if (of := exact_type(class_counts(shapes[name], POINT))) is not None}
    types |= dict.fromkeys(anew, pa.int64())
    notations = {name: of for name, (_, of) in settled.items() if of is not None}
    return TypedBatches(rows, types, rules.marks, questions, notations)


Settled: TypeAlias = tuple[pa.DataType | Question, Notation | None]


def _settle(
    name: str, shapes: Shapes, stored: TextColumns, rules: TypeRules, plain: TypeRules, usual: FileReading
) -> Settled:
    """The type of a column, and how it is written: as text in a table with types, or as cells of any type (`plain`).

    Where it is undecided which of these ways is right, all must lead to the same: each way has the property that no
    single row turns one type into another, and so has the choice between them.
    """
    is_text = stored.is_text(name)
    stays_text = _stays_text(shapes, is_text, rules.given.get(name), is_stated=name in stored.stated)
    ways: list[Settled] = []
    if stays_text is not False:
        found = settle_text(name, class_counts(shapes, POINT), rules.given.get(name)) if rules.judges(name) else None
        ways.append((found or pa.string(), None))
    if stays_text is not True:
        read = {True: (rules,), None: (rules, plain), False: (plain,)}[is_text]
        ways.extend(settle_column(name, shapes, of, usual) for of in read)
    asked = [way for way in ways if isinstance(way[0], Question)]
    if asked or all(way == ways[0] for way in ways):
        return [*asked, *ways][0]
    others = dict.fromkeys(type_name(of) for of, _ in ways if of != ways[0][0])
    marks = "" if others else ", so that the decimal mark that is given may not be that of all"
    return Question(name, f"some of its cells are stored as text, and some are not{marks}", (*others, "text")), None


def _stays_text(shapes: Shapes, is_text: bool | None, given: Given | None, *, is_stated: bool) -> bool | None:
    """Whether a column of text is not read as numbers or dates; None if that is undecided.

    It is read so if its keeper says so, or, unless the file states that it is text, if nearly all cells are written as
    only people write numbers and dates: $1,200.
    """
    if is_text is False or (given is not None and given.families and given.leaf not in ("text", "label")):
        return False
    if is_stated:
        return True
    written = rewritten_cells(shapes)
    rewritten = written > 0 and fits(written, int(class_counts(shapes, POINT)[CellClass.WHOLE :].sum()))
    return False if rewritten else is_text if rewritten is False else None


def settle_columns_of_text(
    rows: Batches,
    privatized: Sequence[str],
    rules: TypeRules,
    *,
    keep: Sequence[str] = (),
    progress: Progress = no_progress,
) -> TypedBatches:
    """The rows of a table that has types: its columns of text are judged if nothing is said about them.

    Dictionaries that are kept have 32-bit indices: narrower ones may have no room for the labels of all batches,
    and a file that is written has one dictionary for all of them.
    """
    type_of = {name: rows.schema.field(name).type for name in privatized}
    texts = [name for name in privatized if is_text(type_of[name])]
    nulls = [name for name in privatized if pt.is_null(type_of[name])]
    check_given(rules, {name: shown_type(of) for name, of in type_of.items() if name not in (*texts, *nulls)})
    judged = [name for name in texts if rules.judges(name)]
    counts = _sums(rows, judged, lambda array: text_classes(array, rules.all_marks), NO_CELLS, progress, {})
    found = {name: settle_text(name, of, rules.given.get(name)) for name, of in counts.items()}
    found |= {name: settle(name, NO_CELLS, rules.given[name]) for name in nulls if name in rules.given}
    questions = tuple(of for of in found.values() if isinstance(of, Question))
    types = {name: of for name, of in found.items() if isinstance(of, pa.DataType)}
    types |= {name: wide_type(of) for name in keep if _is_narrow(of := rows.schema.field(name).type)}
    return TypedBatches(rows, types, rules.marks, questions)


def text_classes(array: pa.Array, marks: Sequence[str]) -> Counts:
    """How many cells of a column of text are of each class."""
    texts, times = distinct(coded(array))
    return count_classes(classify(texts, marks), times)


def _is_narrow(arrow_type: pa.DataType) -> bool:
    """Whether this is a dictionary with indices of less than 32 bits."""
    return bool(pt.is_dictionary(arrow_type) and arrow_type.index_type.bit_width < 32)


def _sums(
    rows: Batches,
    names: Sequence[str],
    count: Callable[[pa.Array], Counts | Shapes],
    nothing: Counts | Shapes,
    progress: Progress,
    named: dict[str, int],
) -> dict[str, Counts | Shapes]:
    """Counts of all cells of some columns, in one pass; adds to `named` how many cells are their column's name."""
    counts, done = dict.fromkeys(names, nothing), 0
    read = list(dict.fromkeys([*names, *named]))

    def look(column: tuple[str, pa.Array]) -> tuple[Counts | Shapes, int]:
        name, array = column
        found = count(array) if name in counts else nothing
        return found, _times_named(array, name) if name in named else 0

    for batch in ahead(rows.batches(read)) if read else ():
        for name, (found, times) in zip(read, in_parallel(look, zip(read, batch.columns, strict=True)), strict=True):
            if name in counts:
                counts[name] = counts[name] + found
            if name in named:
                named[name] += times
        done += batch.num_rows
        progress("judging types", done, rows.n_rows)
    if read and not done:
        raise InputError(f"{rows.name} has no rows.", "Give a table with at least one row.")
    return counts


def _times_named(array: pa.Array, name: str) -> int:
    """How many cells are the name of their column."""
    texts, times = distinct(array)
    return int(times[pc.equal(texts, name).fill_null(False).to_numpy(zero_copy_only=False)].sum())


def check_names_are_no_cells(file_name: str, named: Mapping[str, int]) -> None:
    """A first line that is a person's row would be published as the names of the columns.

    Values of persons occur again, names of columns do not: a file is refused if most names are cells of their columns,
    at least twice each, so that nobody's row alone causes that by repeating the names.
    """
    odd = sum(times >= 2 for times in named.values())
    if 2 * odd > len(named):
        raise InputError(
            f"{file_name}: the first line has no names of columns: in {odd} of {len(named)} columns, what it says is "
            "in several cells of the column, too.",
            "Put a line with the columns' names on top of the file, once; or, if it has one, rename these columns.",
        )
