"""Batches whose text columns have settled types: one pass judges all their cells, later passes read them as that type.

Every column of a CSV file is text to begin with. In tables that have types, only the columns of text are judged, and
they stay text unless their keeper says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from dipriv._base.parallel import in_parallel
from dipriv._base.progress import Progress, no_progress
from dipriv._tables.arrow import is_text
from dipriv._tables.cell_classes import classify
from dipriv._tables.column_types import (
    NO_CELLS,
    Counts,
    Question,
    TypeRules,
    check_given,
    count_classes,
    parse,
    settle,
    settle_text,
)
from dipriv.errors import InputError


class Batches(Protocol):
    """A table that can be read in batches again and again: `FileBatches`, `BatchSource`, `TypedBatches`."""

    @property
    def name(self) -> str: ...

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def categories(self) -> Mapping[str, pa.Array]: ...

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
    def n_rows(self) -> int | None:
        return self.rows.n_rows

    def batches(self, names: Sequence[str], look: Look = no_look) -> Iterator[pa.RecordBatch]:
        """All rows of these columns, from the start; `look` is called with each batch as it was read."""
        schema = pa.schema([self.schema.field(name) for name in names])
        for batch in self.rows.batches(names):
            look(batch)
            columns = in_parallel(self._column, zip(names, batch.columns, strict=True)) if self.types else batch.columns
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _column(self, named: tuple[str, pa.Array]) -> pa.Array:
        name, array = named
        return parse(array, self.types[name], self.marks) if name in self.types else array


def settle_texts(
    rows: Batches,
    privatized: Sequence[str],
    rules: TypeRules,
    *,
    passed_through: Sequence[str] = (),
    progress: Progress = no_progress,
) -> TypedBatches:
    """The rows of a CSV file, where all columns are text, with the types that all their cells settle.

    Columns that pass through stay as they are written. Refuses a file without a header (`check_names_are_no_cells`).
    """
    judged = [name for name in privatized if is_text(rows.schema.field(name).type)]
    named = {name: 0 for name in (*privatized, *passed_through) if is_text(rows.schema.field(name).type)}
    counts = _counts(rows, judged, rules, progress, named)
    check_names_are_no_cells(rows.name, named)
    found = {name: settle(name, counts[name], rules.given.get(name)) for name in judged}
    questions = tuple(of for name in privatized if isinstance(of := found.get(name), Question))
    types = {name: pa.string() if isinstance(of, Question) else of for name, of in found.items()}
    return TypedBatches(rows, types, rules.marks, questions)


def settle_columns_of_text(
    rows: Batches, privatized: Sequence[str], rules: TypeRules, progress: Progress = no_progress
) -> TypedBatches:
    """The rows of a table that has types: its columns of text are judged if nothing is said about them."""
    type_of = {name: rows.schema.field(name).type for name in privatized}
    texts = [name for name in privatized if is_text(type_of[name])]
    nulls = [name for name in privatized if pt.is_null(type_of[name])]
    check_given(rules, {name: str(of) for name, of in type_of.items() if name not in (*texts, *nulls)})
    counts = _counts(rows, [name for name in texts if rules.judges(name)], rules, progress, {})
    found = {name: settle_text(name, of, rules.given.get(name)) for name, of in counts.items()}
    found |= {name: settle(name, NO_CELLS, rules.given[name]) for name in nulls if name in rules.given}
    questions = tuple(of for of in found.values() if isinstance(of, Question))
    types = {name: of for name, of in found.items() if isinstance(of, pa.DataType)}
    return TypedBatches(rows, types, rules.marks, questions)


def _counts(
    rows: Batches,
    names: Sequence[str],
    rules: TypeRules,
    progress: Progress,
    named: dict[str, int],
) -> dict[str, Counts]:
    """The classes of all cells of some columns, in one pass; adds to `named` how many cells are their column's name."""
    counts, done = dict.fromkeys(names, NO_CELLS), 0
    read = list(dict.fromkeys([*names, *named]))
    for batch in rows.batches(read) if read else ():
        arrays = dict(zip(read, batch.columns, strict=True))
        classes = in_parallel(lambda array: count_classes(classify(array, rules.all_marks)), map(arrays.get, names))
        counts = {name: counts[name] + of for name, of in zip(names, classes, strict=True)}
        for name in named:
            named[name] += pc.sum(pc.equal(arrays[name], name)).as_py() or 0
        done += batch.num_rows
        progress("judging types", done, rows.n_rows)
    if read and not done:
        raise InputError(f"{rows.name} has no rows.", "Give a table with at least one row.")
    return counts


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
