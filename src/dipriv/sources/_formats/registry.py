"""What a file format must provide, and which formats there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from dipriv.errors import InputError

COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}


class TableFile(Protocol):
    """A file that a format reads: it can be opened as often as needed."""

    @property
    def name(self) -> str: ...

    def open(self) -> AbstractContextManager[Any]:
        """An Arrow input stream of the file's content, unpacked."""
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
        """Whether all cells are text, whose types are to be settled, and a spreadsheet may take some for formulas."""
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

    def writer(self, stream: Any, schema: pa.Schema, *, header: bool = True) -> Any:
        """An object with `write_batch` and `close`; a text format writes its header unless `header` is False."""
        ...


_FORMATS: dict[str, FileFormat] = {}


def file_format(known: FileFormat) -> FileFormat:
    """Register a format under its name and suffixes."""
    _FORMATS[known.name] = known
    return known


def format_named(name: str) -> FileFormat:
    """The format of this name.

    >>> format_named("csv").suffixes
    ('.csv',)
    """
    if name not in _FORMATS:
        raise InputError(f"format {name!r} is unknown.", f"Use one of {', '.join(_FORMATS)}.")
    return _FORMATS[name]


def format_of(file_name: str, name: str | None = None) -> tuple[FileFormat, str | None]:
    """The format and compression that a file's name says, else the format of the given name."""
    given = None if name is None else format_named(name)
    suffixes = [suffix.lower() for suffix in Path(file_name).suffixes]
    compression = COMPRESSIONS.get(suffixes[-1]) if suffixes else None
    last = suffixes[:-1][-1:] if compression else suffixes[-1:]
    by_suffix = {suffix: known for known in _FORMATS.values() for suffix in known.suffixes}
    found = (by_suffix.get(last[0]) if last else None) or given
    if found is None:
        raise InputError(
            f"the name {file_name!r} does not tell a format." if file_name != "-" else "a pipe has no file name.",
            f"Name it *{', *'.join(by_suffix)} (and {', '.join(COMPRESSIONS)}), or give --format (format=...).",
        )
    return found, compression
