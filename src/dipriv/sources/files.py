"""Tables in files: CSV, TSV, Parquet and Arrow in, the same out, as streams of Arrow batches.

A `Source` can be read as often as needed. It may come from anybody: what is read from a binary file is checked in full
before it is used, and what a small file unfolds to is limited. A `Sink` appears whole under its name or not at all: it
is written beside it, forced to disk, and renamed. Messages name files, columns and row numbers, never a cell.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from dipriv._atomic_write import check_name, commit_file, create, temporary_path, write_atomic
from dipriv._sinks.csv_injection import as_text, escaped, formula_names, formulas_in
from dipriv.errors import InputError
from dipriv.guarantee.sidecar import NOTE
from dipriv.sources._errors import BLOCK_BYTES, CellTypeError, told, whatever
from dipriv.sources._untrusted import BATCH_ROWS, check_width, checked, memory, rows_at_once

__all__ = ["BATCH_ROWS", "CellTypeError", "Sink", "Source", "commit_file", "temporary_path", "write_text"]

Format: TypeAlias = Literal["csv", "tsv", "parquet", "arrow"]
FORMATS: tuple[Format, ...] = ("csv", "tsv", "parquet", "arrow")
EXTENSIONS: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
LARGEST_UNPACKED = 1 << 30
"""A compressed Parquet or Arrow file is unpacked whole before it is read; a CSV file is not, and may be longer."""
_FIRST_LINE = re.compile(rb"""(?:[^"\r\n]++|"[^"]*+")*+""")
WIDER = {pa.null(): pa.int64(), pa.int64(): pa.float64(), pa.float64(): pa.string()}
"""What a CSV column becomes when a later cell does not fit the type that the first block suggested; else text."""


@dataclass(frozen=True)
class Source:
    """A table in a file, or read whole from a pipe; `types` are those of CSV columns, settled while reading."""

    name: str
    format: Format
    path: Path | None = None
    compression: str | None = None
    buffer: Any = field(repr=False, default=None)
    stamp: tuple[int, ...] = field(repr=False, default=())
    types: MappingProxyType[str, pa.DataType] = field(repr=False, default_factory=lambda: MappingProxyType({}))
    names: tuple[str, ...] = ()

    @classmethod
    def open(cls, path: str | Path, format: str | None = None) -> Source:
        """A file by its path, or the standard input for "-"; the format by extension, else as told."""
        if str(path) == "-":
            return cls("standard input", _format_of("-", format)[0], buffer=pa.py_buffer(sys.stdin.buffer.read()))
        file = Path(path)
        kind, compression = _format_of(file.name, format)
        if not file.is_file():
            raise InputError(f"{file} is not a file.", "Check the path.")
        return cls(file.name, kind, file, compression, stamp=_stamp(file))

    def verbatim(self, columns: Sequence[str]) -> Source:
        """The same source with these CSV columns as the text that they are."""
        if self.format not in ("csv", "tsv"):
            return self
        return replace(self, types=MappingProxyType({**self.types, **dict.fromkeys(columns, pa.string())}))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, batch by batch, from the start; refuses a file that changed since it was opened."""
        with told(self.name), whatever(self.name), self._stream() as stream:
            if self.path is not None and _stamp(self.path) != self.stamp:
                raise InputError(f"{self.name} changed while it was read.", "Give the command again.")
            if self.format in ("csv", "tsv"):
                yield from self._csv(stream)
                return
            for batch in _parquet_batches(stream) if self.format == "parquet" else _arrow_batches(stream):
                yield checked(self.name, batch)

    def read(self) -> pa.Table:
        """All rows at once, CSV types settled."""
        source = self
        while True:
            batches: list[pa.RecordBatch] = []
            room = memory()
            try:
                for batch in source.batches():
                    source = source.settled(batch) if not batches else source
                    batches.append(batch)
                    room -= batch.nbytes
                    if room < 0:
                        raise InputError(f"{self.name} does not fit the memory of this machine.", "Give fewer rows.")
            except CellTypeError as misfit:
                source = source.widened(misfit.column)
                continue
            if not sum(batch.num_rows for batch in batches):
                raise InputError(f"{self.name} has no rows.", "Give a table with at least one row.")
            return pa.Table.from_batches(batches)

    def rows(self) -> int | None:
        """How many rows there are, where the file says so."""
        if self.format != "parquet":
            return None
        with told(self.name), self._stream() as stream:
            return int(pq.ParquetFile(stream).metadata.num_rows)

    def settled(self, batch: pa.RecordBatch) -> Source:
        """The same source with the types of this batch, for columns that have none yet."""
        if self.format not in ("csv", "tsv"):
            return self
        found = {field.name: field.type for field in batch.schema}
        return replace(self, types=MappingProxyType({**found, **self.types}), names=tuple(batch.schema.names))

    def widened(self, column: int) -> Source:
        """The same source with a wider type for one of its CSV columns."""
        name = self.names[column] if column < len(self.names) else ""
        if self.types.get(name, pa.string()) == pa.string():  # nothing is wider, and to try again would never end
            raise InputError(f"{self.name}: column {column} cannot be read.", "Repair the file.")
        wider = WIDER.get(self.types[name], pa.string())
        return replace(self, types=MappingProxyType({**self.types, name: wider}))

    @contextmanager
    def _stream(self) -> Iterator[Any]:
        raw = pa.BufferReader(self.buffer) if self.path is None else pa.OSFile(str(self.path))
        with raw:
            if self.compression is None:
                yield raw
            else:
                with pa.CompressedInputStream(raw, self.compression) as stream:
                    yield stream if self.format in ("csv", "tsv") else pa.BufferReader(self._unpacked(stream))

    def _unpacked(self, stream: Any) -> pa.Buffer:
        unpacked = bytearray()
        while piece := stream.read(BLOCK_BYTES):
            unpacked += piece
            if len(unpacked) > LARGEST_UNPACKED:
                raise InputError(
                    f"{self.name} unpacks to more than {LARGEST_UNPACKED >> 20:,} MB.",
                    "Unpack it first, and give the unpacked file.",
                )
        return pa.py_buffer(unpacked)

    def _separators(self) -> int:
        """How many there are in the first line, before Arrow makes a column for each."""
        separator = b"\t" if self.format == "tsv" else b","
        with self._stream() as stream:
            block = stream.read(BLOCK_BYTES).lstrip(b"\r\n")
        found = _FIRST_LINE.match(block)
        return found[0].count(separator) if found else 0

    def _csv(self, stream: Any) -> Iterator[pa.RecordBatch]:
        try:
            if not self.names:
                check_width(self.name, self._separators() + 1)
            reader = self._csv_reader(stream)
            _check_header(self.name, reader.schema.names)
            if odd := [field.name for field in reader.schema if pa.types.is_binary(field.type)]:
                raise InputError(
                    f"{self.name}: column {odd[0]!r} is not in UTF-8.",
                    "Convert the file: iconv -f latin1 -t utf8 OLD > NEW (if it is in Latin-1).",
                )
            yield from reader
        except pa.ArrowInvalid as error:
            text = str(error)
            if "UTF8" not in text and (found := re.search(r"In CSV column #(\d+)", text)):
                raise CellTypeError(int(found[1])) from None
            if re.search(r"Expected \d+ columns", text):
                raise self._ragged() from None
            raise

    def _csv_reader(self, stream: Any, *, threads: bool = True) -> Any:
        return pacsv.open_csv(
            stream,
            read_options=pacsv.ReadOptions(block_size=BLOCK_BYTES, use_threads=threads),
            parse_options=pacsv.ParseOptions(delimiter="\t" if self.format == "tsv" else ",", newlines_in_values=True),
            convert_options=pacsv.ConvertOptions(column_types=dict(self.types)),
        )

    def _ragged(self) -> InputError:
        """Where the first row with too many or too few columns is: read again on one thread, which counts rows."""
        where, counts = "a row", "another width"
        try:
            with self._stream() as stream:
                for _ in self._csv_reader(stream, threads=False):
                    pass
        except pa.ArrowInvalid as error:
            if found := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", str(error)):
                where, counts = f"row {found[1]}", f"{found[3]} columns, not {found[2]}"
        return InputError(
            f"{self.name}: {where} has {counts}.", "Repair the row, or quote cells that hold the separator."
        )


@dataclass
class Sink:
    """Where released batches go; in its context `write` batches and `publish`, else nothing stays."""

    name: str
    path: Path | None
    format: Format
    compression: str | None = None
    force: bool = False
    escape_formulas: bool = False
    formulas: Counter[str] = field(default_factory=Counter)
    """How many of the texts written, names included, a spreadsheet would take for formulas, by column; CSV only."""
    _part: Path | None = field(init=False, repr=False, default=None)
    _file: Any = field(init=False, repr=False, default=None)
    _stream: Any = field(init=False, repr=False, default=None)
    _writer: Any = field(init=False, repr=False, default=None)
    _schema: Any = field(init=False, repr=False, default=None)

    @classmethod
    def open(
        cls, path: str | Path, format: str | None = None, *, force: bool = False, escape_formulas: bool = False
    ) -> Sink:
        """A file by its path, or the standard output for "-". A link is a file that exists: never what it points to."""
        if str(path) == "-":
            return cls("standard output", None, _format_of("-", format)[0], escape_formulas=escape_formulas)
        file = Path(path)
        kind, compression = _format_of(file.name, format)
        if file.is_dir():
            raise InputError(f"{file} is a folder.", "Give the name of a file.")
        if os.path.lexists(file) and not force:
            raise InputError(f"{file} exists.", "Choose another name, or replace it with --force.")
        if not file.parent.is_dir():
            raise InputError(f"the folder {file.parent} does not exist.", "Make it, or choose another.")
        if file.exists() and not file.is_file():
            raise InputError(f"{file} is not a plain file.", "Give the name of a file.")
        if Path(f"{file}{NOTE}").is_dir():
            raise InputError(f"{file}{NOTE} is a folder; a note is to be written there.", "Choose another name.")
        check_name(file, NOTE)
        return cls(file.name, file, kind, compression, force, escape_formulas)

    def check(self, schema: pa.Schema) -> None:
        """Refuse, before anything is spent, columns of types that the format cannot hold."""
        for column in schema:
            try:
                empty = pa.record_batch([pa.array([], column.type)], [column.name])
                with self._writer_of(io.BytesIO(), (self._as_text(empty) if self._is_text else empty).schema):
                    pass
            except (pa.ArrowException, NotImplementedError):
                raise InputError(
                    f"column {column.name!r} has a type that {self.format} files cannot hold.",
                    "Drop it, or write another format.",
                ) from None
        self.formulas.clear()

    def __enter__(self) -> Sink:
        with told(self.name):
            if self.path is None:
                self._file = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
            else:
                self._part = temporary_path(self.path)
                self._file = create(self._part)
            raw = pa.PythonFile(self._file, "w")
            self._stream = raw if self.compression is None else pa.CompressedOutputStream(raw, self.compression)
        return self

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows; the first batch settles the columns."""
        with told(self.name):
            if self._is_text:
                batch = self._as_text(batch)
            if self._writer is None or (self._is_text and batch.schema != self._schema):
                self._writer, self._schema = self._writer_of(self._stream, batch.schema), batch.schema
            self._writer.write_batch(batch)

    def publish(self) -> None:
        """Finish the file and give it its name; without it, nothing stays."""
        with told(self.name):
            if self._writer is not None:
                self._writer.close()
            self._stream.close()
            self._file.close()
            if self.path is not None and self._part is not None:
                commit_file(self._part, self.path, replace=self.force)

    def __exit__(self, *_: object) -> None:
        self._writer = None
        with suppress(OSError, pa.ArrowException):
            self._file.close()
        if self._part is not None:
            self._part.unlink(missing_ok=True)

    @property
    def _is_text(self) -> bool:
        return self.format in ("csv", "tsv")

    def _as_text(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch as a text file holds it; formulas are counted, and escaped if that is asked for."""
        names, columns = batch.schema.names, [as_text(array) for array in batch.columns]
        titled = formula_names(names)
        if self._writer is None:
            self.formulas.update(titled)
        if len(columns) == 1 and columns[0].null_count:  # an empty line is no row to most readers, but "" is
            columns = [columns[0].cast(pa.large_string()).fill_null("")]
        for place, array in enumerate(columns):
            if (found := formulas_in(array)) is not None:
                self.formulas[names[place]] += int(found.sum())
                columns[place] = escaped(array, found) if self.escape_formulas else array
        return pa.record_batch(columns, [f"'{x}" if self.escape_formulas and x in titled else x for x in names])

    def _writer_of(self, stream: Any, schema: pa.Schema) -> Any:
        if self.format == "parquet":
            return pq.ParquetWriter(stream, schema, compression="zstd")
        if self.format == "arrow":
            return pa.ipc.new_file(stream, schema)
        separator = "\t" if self.format == "tsv" else ","
        options = pacsv.WriteOptions(include_header=self._writer is None, delimiter=separator)
        return pacsv.CSVWriter(stream, schema, write_options=options)


def _check_header(name: str, columns: list[str]) -> None:
    """The first line holds names of columns: a person's row there would be published, and in messages, too."""
    if len(columns) == 1 and re.search(r"[;|\t]", columns[0]):
        raise InputError(
            f"{name}: the first line has one column, with another separator in it.",
            "Separate the cells by commas, or by tabs in a .tsv file.",
        )
    if any(not column.strip() or _is_number(column) for column in columns):
        raise InputError(
            f"{name}: the first line has numbers or nothing where names of columns should be.",
            "Put a line with the columns' names on top of the file.",
        )
    if len(set(columns)) < len(columns):
        raise InputError(f"{name}: two columns have the same name.", "Rename the columns apart.")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def write_text(path: Path, text: str, mode: int = 0o644) -> None:
    """A text file that appears whole or not at all."""
    write_atomic(path, text.encode("utf-8", "replace"), mode)


def _stamp(path: Path) -> tuple[int, ...]:
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _format_of(name: str, told: str | None) -> tuple[Format, str | None]:
    """The format and compression of a file by its name, else the format as told."""
    if told is not None and told not in FORMATS:
        raise InputError(f"format {told!r} is unknown.", f"Use one of {', '.join(FORMATS)}.")
    suffixes = [suffix.lower() for suffix in Path(name).suffixes]
    compression = COMPRESSIONS.get(suffixes[-1]) if suffixes else None
    last = suffixes[:-1][-1:] if compression else suffixes[-1:]
    found = EXTENSIONS.get(last[0]) if last else None
    if found is None and told is None:
        raise InputError(
            f"the format of {name!r} is not told by its name." if name != "-" else "a pipe has no file name.",
            f"Name it *{', *'.join(EXTENSIONS)} (and {', '.join(COMPRESSIONS)}), or give --format.",
        )
    return next(kind for kind in (found, told) if kind is not None), compression


def _parquet_batches(stream: Any) -> Iterator[pa.RecordBatch]:
    file = pq.ParquetFile(stream)
    yield from file.iter_batches(rows_at_once(file, stream))


def _arrow_batches(stream: Any) -> Iterator[pa.RecordBatch]:
    magic = stream.read(6)
    stream.seek(0)
    if magic == b"ARROW1":
        reader = pa.ipc.open_file(stream)
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)
    else:
        yield from pa.ipc.open_stream(stream)
