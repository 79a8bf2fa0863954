"""Tables in files, or in a pipe, as streams of Arrow batches.

A file can be read as often as needed. It may come from anybody: what is read from a binary file is validated in full
before it is used, and what a small file expands to is limited. Messages name files, columns and row numbers, never a
cell.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from dipriv._base.parallel import ahead
from dipriv._tables import frames
from dipriv._tables.arrow import is_text
from dipriv._tables.column_types import Question, TypeRules, ask
from dipriv._tables.presentation import Presentation, TextColumns
from dipriv.dialect import DETECTED, Dialect
from dipriv.errors import InputError, SourceChangedError, StorageError
from dipriv.schema import ColumnType, Postal, Schema
from dipriv.sources._errors import BLOCK_BYTES, translate_errors
from dipriv.sources._formats import FileFormat, format_of
from dipriv.sources._formats.registry import in_dialect
from dipriv.sources._untrusted import memory
from dipriv.sources.typed import TypedBatches, settle_texts

Found = TypeVar("Found")

MAX_UNPACKED_BYTES = 1 << 30
"""A compressed Parquet or Arrow file is unpacked whole before it is read; a text file is not, and may be longer."""


@dataclass(frozen=True)
class File:
    """A table in a file, or read whole from a pipe."""

    name: str
    format: FileFormat
    path: Path | None = None
    compression: str | None = None
    buffer: Any = field(repr=False, default=None)
    stamp: tuple[int, ...] = field(repr=False, default=())
    _kept: dict[str, Any] = field(init=False, repr=False, compare=False, default_factory=dict)

    @classmethod
    def at(
        cls,
        path: str | Path,
        format: str | None = None,
        dialect: Dialect = DETECTED,
        otherwise: Dialect | None = None,
    ) -> File:
        """A file by its path, or the standard input for "-"; the format by extension, else the given one.

        `dialect` is refused where it has no effect; of `otherwise` the file has what has one, for the rest.
        """
        if str(path) == "-":
            known, _ = format_of("-", format)
            known = in_dialect(known, dialect, otherwise or DETECTED)
            return cls("standard input", known, buffer=pa.py_buffer(sys.stdin.buffer.read()))
        file = Path(path)
        if file.is_dir():
            raise InputError(
                f"{file} is a folder.",
                "Give a file in it; dipriv.privatize also takes a folder of Parquet files.",
                command="Give a file in it; of Parquet files --engine spark takes a folder.",
            )
        known, compression = format_of(file.name, format)
        if not file.is_file():
            raise InputError(f"{file} is not a file.", "Check the path.")
        return cls(file.name, in_dialect(known, dialect, otherwise or DETECTED), file, compression, stamp=_stamp(file))

    @classmethod
    def of(cls, name: str, content: pa.Buffer) -> File:
        """A file in memory, whose name says its format."""
        return cls(name, format_of(name)[0], buffer=content)

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

    def kept(self, what: str, find: Callable[[], Found]) -> Found:
        """What `find` returns, called once for this file: how it is written, or its rows if they are read at once."""
        if what not in self._kept:
            self._kept[what] = find()
        found: Found = self._kept[what]
        return found

    def n_rows(self) -> int | None:
        """How many rows there are, where the file says so."""
        with translate_errors(self.name):
            return self.format.n_rows(self)

    def described(self) -> str:
        """How the file is written, in words for its keeper; empty if there is nothing to say."""
        with translate_errors(self.name):
            return self.format.described(self)

    def typed(self, rules: TypeRules | None = None) -> TypedBatches:
        """The rows with the types of the file, or with those that the cells of a text file settle."""
        rows = FileBatches.of(self)
        if self.format.has_types:
            return TypedBatches(rows, {})
        return settle_texts(rows, rows.schema.names, rules or TypeRules())

    def read(self, rules: TypeRules | None = None) -> pa.Table:
        """All rows at once; refuses a text file with columns whose type is undecided."""
        rows = self.typed(rules)
        ask(rows.questions)
        return self.table(rows)

    def read_with_questions(self, rules: TypeRules | None = None) -> tuple[pa.Table, tuple[Question, ...]]:
        """All rows at once; columns of a text file whose type is undecided are text."""
        rows = self.typed(rules)
        return self.table(rows), rows.questions

    def table(self, rows: TypedBatches) -> pa.Table:
        """All rows at once."""
        batches: list[pa.RecordBatch] = []
        room = memory()
        for batch in rows.batches(rows.schema.names):
            batches.append(batch)
            room -= batch.nbytes
            if room < 0:
                raise StorageError(f"{self.name} does not fit the memory of this machine.", "Give fewer rows.")
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
    """The rows of a file; all columns are text if the format has no types."""

    file: File
    schema: pa.Schema = field(repr=False)
    categories: Mapping[str, pa.Array] = field(repr=False, default_factory=dict)
    presentation: Presentation = field(repr=False, default_factory=Presentation)
    text_columns: TextColumns = field(repr=False, default_factory=TextColumns)

    @classmethod
    def of(cls, file: File) -> FileBatches:
        """The columns as the file has them."""
        with translate_errors(file.name):
            found = pa.schema([column.remove_metadata() for column in file.format.schema(file)])
            _ = found.names  # refuses names that are no text
            presentation, texts = file.format.presentation(file), file.format.text_columns(file)
        return cls(file, found, presentation=presentation, text_columns=texts)

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def n_rows(self) -> int | None:
        return self.file.n_rows()

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """All rows of these columns, from the start."""
        with translate_errors(self.name):
            batches = ahead(self.file.format.batches(self.file, names, self.schema))
            yield from (batch for batch in batches if batch.num_rows)


def read_alike(
    original: File,
    released: File,
    schema: Schema | None,
    types: Mapping[str, ColumnType],
    dialect: Dialect = DETECTED,
) -> tuple[pa.Table, pa.Table]:
    """A table and its release: columns of text files have the types that the table's cells settle."""
    rules = TypeRules.of(schema or {}, types, dialect)
    table = original.read(rules)
    meanings = {} if schema is None else schema.meanings
    cut = {name: of.prefix for name, of in meanings.items() if isinstance(of, Postal) and name in table.column_names}
    texts = {name: length for name, length in cut.items() if length and is_text(table.schema.field(name).type)}
    table = frames.read(table).with_prefixes(texts).native
    return table, released.read(TypeRules.like(table.schema))


def _stamp(path: Path) -> tuple[int, ...]:
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns
