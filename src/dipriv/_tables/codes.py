"""Columns of codes: labels, for every type that they may have, cut to their leading characters where that is declared.

Each cell is rewritten by itself, and what is kept of it is public, so neighbouring tables stay neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.types as pt

from dipriv._tables.arrow import storage_of
from dipriv._tables.frames import Backend, Column, Table, contains_text
from dipriv.errors import SchemaError
from dipriv.schema import Code, Meaning, Postal


def as_code(column: Column, meaning: Meaning | None, backend: Backend) -> Column:
    """The public facts of a column that may be declared as a code: codes are labels.

    Whole numbers of pandas get nulls, which rare codes are released as, unless all codes are declared.

    Raises
    ------
    SchemaError : its type does not suit what is declared.
    """
    if not isinstance(meaning, Code | Postal):
        return column
    family, arrow_type = column.storage.family, column.arrow_type
    if family in ("temporal", "boolean") or pt.is_decimal(arrow_type) or (meaning.prefix and not contains_text(column)):
        zeros = ", which have no leading zeros" if meaning.prefix and family in ("integer", "real") else ""
        raise SchemaError(
            f"column {column.name!r} is declared {meaning!r} but holds {column.storage.label}{zeros}.",
            "Convert it to text, or declare another kind.",
        )
    if family == "label":
        return replace(column, prefix=meaning.prefix)
    labels = pa.dictionary(pa.int32(), arrow_type)
    nullable = column.nullable or (meaning.levels is None and backend != "numpy")
    return Column(column.name, storage_of(column.name, labels), labels, nullable, prefix=0)


def recoded(table: Table, columns: Iterable[Column]) -> Table:
    """The table with its columns of codes as labels, cut where that is declared. Doing it again changes nothing."""
    codes = {column.name: column for column in columns if column.prefix is not None and column.name in table.names}
    numbers = {
        name: column.nullable
        for name, column in codes.items()
        if table.column(name).storage.family in ("integer", "real")
    }
    cut = {name: of.prefix for name, of in codes.items() if of.prefix and contains_text(table.column(name))}
    return table.with_prefixes(cut).with_numbers_as_labels(numbers)


@dataclass(frozen=True)
class Recoding:
    """`recoded` for these columns, and another view of the result, as one view of rows."""

    columns: tuple[Column, ...]
    then: Callable[[Table], Table] | None = None

    def __call__(self, table: Table) -> Table:
        table = recoded(table, self.columns)
        return table if self.then is None else self.then(table)
