"""What a file format must provide, and which formats there are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from dipriv._base.near_names import did_you_mean
from dipriv._tables.presentation import Presentation, TextColumns
from dipriv.dialect import DETECTED, Dialect
from dipriv.errors import InputError

Found = TypeVar("Found")
PLAIN = Presentation()

COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}


class TableFile(Protocol):
    """A file that a format reads: it can be opened as often as needed."""

    @property
    def name(self) -> str: ...

    def open(self) -> AbstractContextManager[Any]:
        """An Arrow input stream of the file's content, unpacked."""
        ...

    def kept(self, what: str, find: Callable[[], Found]) -> Found:
        """What `find` returns, called once for this file."""
        ...


class FileFormat(Protocol):
    """Reads and writes tables as streams of Arrow batches. Messages name files, columns and rows, never a cell."""

    @property
    def name(self) -> str:
        """What --format calls it."""
        ...

    @property
    def suffixes(self) -> tuple[str, ...]: ...

    @property
    def is_text(self) -> bool:
        """Whether cells are written as text, so that a spreadsheet may take some for formulas."""
        ...

    @property
    def has_types(self) -> bool:
        """Whether columns have types; else all columns are given as text, and their types are to be settled."""
        ...

    @property
    def dialect_fields(self) -> tuple[str, ...]:
        """The fields of a dialect that have a meaning for such files; marks of missing cells have one for all."""
        ...

    def with_dialect(self, dialect: Dialect) -> FileFormat:
        """The format with what is given about a file, in these fields."""
        ...

    def text_columns(self, file: TableFile) -> TextColumns:
        """The columns that are text, in a format without types."""
        ...

    def presentation(self, file: TableFile) -> Presentation:
        """How the file presents its table."""
        ...

    def described(self, file: TableFile) -> str:
        """How the file is written, in words for its keeper; empty if there is nothing to say."""
        ...

    def schema(self, file: TableFile) -> pa.Schema:
        """The columns: their types, or text for each column of a text format."""
        ...

    def batches(self, file: TableFile, names: Sequence[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """All rows of these columns from the start, with the types of `schema`."""
        ...

    def n_rows(self, file: TableFile) -> int | None:
        """How many rows there are, where the file says so."""
        ...

    def check_writable(self, schema: pa.Schema, n_rows: int) -> None:
        """Refuse a table that the format cannot hold, before anything is spent."""
        ...

    def writer(self, stream: Any, schema: pa.Schema, *, header: bool = True, presentation: Presentation = PLAIN) -> Any:
        """A context with `write_batch` and `close`; a text format writes its header unless `header` is False."""
        ...


class BinaryFormat:
    """What formats have in common whose columns have types."""

    name: str
    is_text = False
    has_types = True
    dialect_fields: tuple[str, ...] = ()

    def with_dialect(self, dialect: Dialect) -> Any:
        return self

    def text_columns(self, file: TableFile) -> TextColumns:
        return TextColumns()

    def presentation(self, file: TableFile) -> Presentation:
        return PLAIN

    def described(self, file: TableFile) -> str:
        return ""

    def n_rows(self, file: TableFile) -> int | None:
        return None

    def check_writable(self, schema: pa.Schema, n_rows: int) -> None:
        """Every table can be written whose columns the writer takes."""


FORMATS: dict[str, FileFormat] = {}


def file_format(known: FileFormat) -> FileFormat:
    """Register a format under its name and suffixes."""
    FORMATS[known.name] = known
    return known


def in_dialect(known: FileFormat, given: Dialect, otherwise: Dialect = DETECTED) -> FileFormat:
    """The format of a file with what is given about it; refuses what has no effect.

    `otherwise` is what else is known, from a schema or about another file: it holds as far as it has a meaning.
    """
    refuse_unused(f"{known.name} files", given, known.dialect_fields)
    return known.with_dialect(given.over(otherwise.only(known.dialect_fields)))


def refuse_unused(what: str, given: Dialect, used: Collection[str] = ()) -> None:
    """Refuse what is given about a table, and has no effect."""
    for field in fields(Dialect):
        if field.name not in (*used, "missing") and getattr(given, field.name) is not None:
            raise InputError(
                f"{field.name} is given, which has no meaning for {what}.",
                f"Leave it out of the dialect: Dialect({field.name}=...).",
                command=f"Leave out --{'sep' if field.name == 'separator' else field.name}.",
            )


_UNREAD = {
    ".xls": "Open it in Excel and save it as .xlsx.",
    ".xlsm": "Open it in Excel and save it as .xlsx, without macros.",
    ".xlsb": "Open it in Excel and save it as .xlsx.",
    ".ods": "Save it as .xlsx or .csv.",
    ".json": "Write JSON lines, one object a line, to a .jsonl file.",
    ".rds": "Write a .parquet or .csv file from R.",
    ".rdata": "Write a .parquet or .csv file from R.",
    ".txt": "Name it .csv or .tsv.",
}
"""Endings of tables in other formats, and what to do with them."""


def format_named(name: str) -> FileFormat:
    """The format of this name.

    >>> format_named("csv").suffixes
    ('.csv',)
    """
    if name not in FORMATS:
        raise InputError(
            f"format {name!r:.40} is unknown{did_you_mean(name, FORMATS)}.", f"Use one of {', '.join(FORMATS)}."
        )
    return FORMATS[name]


def format_of(file_name: str, name: str | None = None) -> tuple[FileFormat, str | None]:
    """The format and compression that a file's name says, else the format of the given name."""
    given = None if name is None else format_named(name)
    suffixes = [suffix.lower() for suffix in Path(file_name).suffixes]
    compression = COMPRESSIONS.get(suffixes[-1]) if suffixes else None
    last = suffixes[:-1][-1:] if compression else suffixes[-1:]
    by_suffix = {suffix: known for known in FORMATS.values() for suffix in known.suffixes}
    found = (by_suffix.get(last[0]) if last else None) or given
    if found is None and last and last[0] in _UNREAD:
        raise InputError(f"{last[0]} files are not read.", _UNREAD[last[0]])
    if found is None:
        names = f"Name it *{', *'.join(by_suffix)} (and {', '.join(COMPRESSIONS)})"
        raise InputError(
            f"the name {file_name!r} does not tell a format." if file_name != "-" else "a pipe has no file name.",
            f"{names}, or give its format: format='csv'.",
            command=f"{names}, or give its format: --format csv.",
        )
    return found, compression
