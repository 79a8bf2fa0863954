"""Tables in files, or in a pipe, as streams of Arrow batches.

A file can be read as often as needed. It may come from anybody: what is read from a binary file is validated in full
before it is used, and what a small file expands to is limited. Messages name files, columns and row numbers, never a
cell.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from dipriv.errors import InputError, SourceChangedError, StorageError
from dipriv.sources._errors import BLOCK_BYTES, CellTypeError, translate_errors
from dipriv.sources._formats import FileFormat, format_of
from dipriv.sources._untrusted import memory

MAX_UNPACKED_BYTES = 1 << 30
"""A compressed Parquet or Arrow file is unpacked whole before it is read; a text file is not, and may be longer."""
_WIDER = {pa.null(): pa.int64(), pa.int64(): pa.float64(), pa.float64(): pa.string()}
"""What a text column becomes when a later cell does not fit the type that the first block suggested; else text."""
_NO_TYPES: Mapping[str, pa.DataType] = MappingProxyType({})


@dataclass(frozen=True)
class File:
    """A table in a file, or read whole from a pipe."""

    name: str
    format: FileFormat
    path: Path | None = None
    compression: str | None = None
    buffer: Any = field(repr=False, default=None)
    stamp: tuple[int, ...] = field(repr=False, default=())

    @classmethod
    def at(cls, path: str | Path, format: str | None = None) -> File:
        """A file by its path, or the standard input for "-"; the format by extension, else the given one."""
        if str(path) == "-":
            return cls("standard input", format_of("-", format)[0], buffer=pa.py_buffer(sys.stdin.buffer.read()))
        file = Path(path)
        known, compression = format_of(file.name, format)
        if not file.is_file():
            raise InputError(f"{file} is not a file.", "Check the path.")
        return cls(file.name, known, file, compression, stamp=_stamp(file))

    @contextmanager
    def open(self) -> Iterator[Any]:
        """The content as an Arrow stream; refuses a file that was replaced or written to since it was found."""
        if self.path is not None and _stamp(self.path) != self.stamp:
            raise SourceChangedError(f"{self.name} changed while it was read.", "Give the command again.")
        raw = pa.BufferReader(self.buffer) if self.path is None else pa.OSFile(str(self.path))
        with raw:
            if self.compression is None:
                yield raw
            else:
                with pa.CompressedInputStream(raw, self.compression) as stream:
                    yield stream if self.format.is_text else pa.BufferReader(self._unpacked(stream))

    def n_rows(self) -> int | None:
        """How many rows there are, where the file says so."""
        with translate_errors(self.name):
            return self.format.n_rows(self)

    def read(self) -> pa.Table:
        """All rows at once."""
        source = FileBatches.of(self)
        while True:
            batches: list[pa.RecordBatch] = []
            room = memory()
            try:
                for batch in source.batches(source.schema.names):
                    batches.append(batch)
                    room -= batch.nbytes
                    if room < 0:
                        raise StorageError(f"{self.name} does not fit the memory of this machine.", "Give fewer rows.")
            except CellTypeError as misfit:
                source = source.widened(misfit.column)
                continue
            if not sum(batch.num_rows for batch in batches):
                raise InputError(f"{self.name} has no rows.", "Give a table with at least one row.")
            return pa.Table.from_batches(batches)

    def _unpacked(self, stream: Any) -> pa.Buffer:
        unpacked = bytearray()
        while piece := stream.read(BLOCK_BYTES):
            unpacked += piece
            if len(unpacked) > MAX_UNPACKED_BYTES:
                raise InputError(
                    f"{self.name} unpacks to more than {MAX_UNPACKED_BYTES >> 20:,} MB.",
                    "Unpack it first, and give the unpacked file.",
                )
        return pa.py_buffer(unpacked)


@dataclass(frozen=True, eq=False)
class FileBatches:
    """The rows of a file with settled types; `verbatim` columns of text files are not converted."""

    file: File
    schema: pa.Schema = field(repr=False)
    verbatim: frozenset[str] = frozenset()
    categories: Mapping[str, pa.Array] = field(repr=False, default_factory=dict)

    @classmethod
    def of(cls, file: File, verbatim: Sequence[str] = ()) -> FileBatches:
        """Types come from the file, or from the first block of a text file."""
        with translate_errors(file.name):
            given = dict.fromkeys(verbatim, pa.string()) if file.format.is_text else _NO_TYPES
            found = pa.schema([column.remove_metadata() for column in file.format.schema(file, given)])
            _ = found.names  # refuses names that are no text
        return cls(file, found, frozenset(verbatim))

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def n_rows(self) -> int | None:
        return self.file.n_rows()

    def raw(self) -> FileBatches:
        """The same rows with all cells of a text file as text."""
        if not self.file.format.is_text:
            return self
        return replace(self, schema=pa.schema([(name, pa.string()) for name in self.schema.names]))

    def with_verbatim(self, names: Sequence[str]) -> FileBatches:
        """The same rows with these columns of a text file read as strings, without type inference."""
        return FileBatches.of(self.file, names) if names and self.file.format.is_text else self

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """All rows of these columns, from the start."""
        with translate_errors(self.name):
            yield from (batch for batch in self.file.format.batches(self.file, names, self.schema) if batch.num_rows)

    def widened(self, column: int) -> FileBatches:
        """The same rows with a wider type for one column of a text file."""
        found = self.schema.field(column) if column < len(self.schema) else None
        if found is None or found.type == pa.string():  # nothing is wider, and to try again would never end
            raise InputError(f"{self.name}: column {column} cannot be read.", "Repair the file.")
        wider = found.with_type(_WIDER.get(found.type, pa.string()))
        return replace(self, schema=self.schema.set(column, wider))


def _stamp(path: Path) -> tuple[int, ...]:
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns
