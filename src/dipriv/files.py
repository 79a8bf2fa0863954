"""Tables in files: CSV, TSV, Parquet and Arrow in, the same out, as streams of Arrow batches.

A `Source` can be read as often as needed. A `Sink` appears whole under its name or not at all: it is written beside
it, forced to disk, and renamed. Messages name files, columns and row numbers, never a cell.
"""

from __future__ import annotations

import os
import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from dipriv.errors import InputError

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
BLOCK_BYTES, BATCH_ROWS = 1 << 24, 1 << 18
WIDER = {pa.null(): pa.int64(), pa.int64(): pa.float64(), pa.float64(): pa.string()}
"""What a CSV column becomes when a later cell does not fit the type that the first block suggested; else text."""


class MisfitError(Exception):
    """A CSV cell does not fit its column's type."""

    def __init__(self, column: int) -> None:
        super().__init__(column)
        self.column = column


@dataclass(frozen=True)
class Source:
    """A table in a file, or read whole from a pipe; `types` are those of CSV columns, settled while reading."""

    name: str
    format: Format
    path: Path | None = None
    compression: str | None = None
    buffer: Any = field(repr=False, default=None)
    types: MappingProxyType[str, pa.DataType] = field(repr=False, default_factory=lambda: MappingProxyType({}))

    @classmethod
    def open(cls, path: str | Path, format: str | None = None) -> Source:
        """A file by its path, or the standard input for "-"; the format by extension, or as told."""
        if str(path) == "-":
            return cls("standard input", _format_of("-", format)[0], buffer=pa.py_buffer(sys.stdin.buffer.read()))
        file = Path(path)
        kind, compression = _format_of(file.name, format)
        if not file.is_file():
            raise InputError(f"{file} is not a file.", "Check the path.")
        return cls(file.name, kind, file, compression)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, batch by batch, from the start."""
        with _told(self.name), self._stream() as stream:
            if self.format == "parquet":
                yield from pq.ParquetFile(stream).iter_batches(BATCH_ROWS)
            elif self.format == "arrow":
                yield from _arrow_batches(stream)
            else:
                yield from self._csv(stream)

    def read(self) -> pa.Table:
        """All rows at once, CSV types settled."""
        source = self
        while True:
            batches: list[pa.RecordBatch] = []
            try:
                for batch in source.batches():
                    source = source.settled(batch) if not batches else source
                    batches.append(batch)
            except MisfitError as misfit:
                source = source.widened(misfit.column)
                continue
            if not sum(batch.num_rows for batch in batches):
                raise InputError(f"{self.name} has no rows.", "Give a table with at least one row.")
            return pa.Table.from_batches(batches)

    def rows(self) -> int | None:
        """How many rows there are, where the file says so."""
        if self.format != "parquet":
            return None
        with _told(self.name), self._stream() as stream:
            return int(pq.ParquetFile(stream).metadata.num_rows)

    def settled(self, batch: pa.RecordBatch) -> Source:
        """The same source with the types of this batch, for columns that have none yet."""
        if self.format not in ("csv", "tsv"):
            return self
        found = {field.name: field.type for field in batch.schema}
        return replace(self, types=MappingProxyType({**found, **self.types}))

    def widened(self, column: int) -> Source:
        """The same source with a wider type for one of its CSV columns."""
        names = list(self.types)
        name = names[column]
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
                    yield stream if self.format in ("csv", "tsv") else pa.BufferReader(stream.read())

    def _csv(self, stream: Any) -> Iterator[pa.RecordBatch]:
        try:
            reader = self._csv_reader(stream)
            if odd := [field.name for field in reader.schema if pa.types.is_binary(field.type)]:
                raise InputError(
                    f"{self.name}: column {odd[0]!r} is not in UTF-8.",
                    "Convert the file: iconv -f latin1 -t utf8 OLD > NEW (if it is in Latin-1).",
                )
            yield from reader
        except pa.ArrowInvalid as error:
            text = str(error)
            if "UTF8" not in text and (found := re.search(r"In CSV column #(\d+)", text)):
                raise MisfitError(int(found[1])) from None
            if re.search(r"Expected \d+ columns", text):
                raise self._ragged() from None
            raise

    def _csv_reader(self, stream: Any, *, on_ragged: Any = None) -> Any:
        return pacsv.open_csv(
            stream,
            read_options=pacsv.ReadOptions(block_size=BLOCK_BYTES, use_threads=on_ragged is None),
            parse_options=pacsv.ParseOptions(
                delimiter="\t" if self.format == "tsv" else ",", invalid_row_handler=on_ragged
            ),
            convert_options=pacsv.ConvertOptions(
                column_types=dict(self.types), strings_can_be_null=True, quoted_strings_can_be_null=False
            ),
        )

    def _ragged(self) -> InputError:
        """Where the first row with too many or too few columns is: read again on one thread, which counts rows."""
        found: list[Any] = []

        def seen(row: Any) -> str:
            found.append(row)
            return "error"

        with suppress(pa.ArrowInvalid), self._stream() as stream:
            for _ in self._csv_reader(stream, on_ragged=seen):
                pass
        where = f"row {found[0].number}" if found and found[0].number is not None else "a row"
        counts = f"{found[0].actual_columns} columns, not {found[0].expected_columns}" if found else "another width"
        return InputError(
            f"{self.name}: {where} has {counts}.", "Repair the row, or quote cells that hold the separator."
        )


@dataclass
class Sink:
    """Where released batches go; use as a context manager, `write` batches, and it is published on success."""

    name: str
    path: Path | None
    format: Format
    compression: str | None = None
    _part: Path | None = field(init=False, repr=False, default=None)
    _file: Any = field(init=False, repr=False, default=None)
    _stream: Any = field(init=False, repr=False, default=None)
    _writer: Any = field(init=False, repr=False, default=None)

    @classmethod
    def open(cls, path: str | Path, format: str | None = None, *, force: bool = False) -> Sink:
        """A file by its path, or the standard output for "-"."""
        if str(path) == "-":
            return cls("standard output", None, _format_of("-", format)[0])
        file = Path(path)
        kind, compression = _format_of(file.name, format)
        if file.is_dir():
            raise InputError(f"{file} is a folder.", "Give the name of a file.")
        if file.exists() and not force:
            raise InputError(f"{file} exists.", "Choose another name, or replace it with --force.")
        if not file.parent.is_dir():
            raise InputError(f"the folder {file.parent} does not exist.", "Make it, or choose another.")
        return cls(file.name, file, kind, compression)

    def __enter__(self) -> Sink:
        with _told(self.name):
            if self.path is None:
                self._file = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
            else:
                self._part = part_of(self.path)
                self._file = self._part.open("xb")
            raw = pa.PythonFile(self._file, "w")
            self._stream = raw if self.compression is None else pa.CompressedOutputStream(raw, self.compression)
        return self

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows; the first batch settles the columns."""
        with _told(self.name):
            if self._writer is None:
                self._writer = self._new_writer(batch.schema)
            self._writer.write_batch(batch)

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                with _told(self.name):
                    self._finish()
        finally:
            self._abandon()

    def _new_writer(self, schema: pa.Schema) -> Any:
        if self.format == "parquet":
            return pq.ParquetWriter(self._stream, schema, compression="zstd")
        if self.format == "arrow":
            return pa.ipc.new_file(self._stream, schema)
        return pacsv.CSVWriter(
            self._stream, schema, write_options=pacsv.WriteOptions(delimiter="\t" if self.format == "tsv" else ",")
        )

    def _finish(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._stream.close()
        self._file.close()
        if self.path is not None and self._part is not None:
            publish_part(self._part, self.path)

    def _abandon(self) -> None:
        """Nothing stays of a file that was not finished."""
        self._writer = None
        with suppress(OSError, pa.ArrowException):
            self._file.close()
        if self._part is not None:
            self._part.unlink(missing_ok=True)


def part_of(path: Path) -> Path:
    """A name beside the final one, of a file that is not finished."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")


def publish_part(part: Path, path: Path) -> None:
    """Force a finished file to disk and give it its name, in one step."""
    with part.open("rb") as file:
        os.fsync(file.fileno())
    part.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_text(path: Path, text: str) -> None:
    """A text file that appears whole or not at all."""
    part = part_of(path)
    try:
        with _told(path.name):
            part.write_text(text, encoding="utf-8")
            publish_part(part, path)
    finally:
        part.unlink(missing_ok=True)


def _format_of(name: str, told: str | None) -> tuple[Format, str | None]:
    """The format and compression of a file by its name, or the format as told."""
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
    return next(kind for kind in (told, found) if kind is not None), compression


def _arrow_batches(stream: Any) -> Iterator[pa.RecordBatch]:
    magic = stream.read(6)
    stream.seek(0)
    if magic == b"ARROW1":
        reader = pa.ipc.open_file(stream)
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)
    else:
        yield from pa.ipc.open_stream(stream)


@contextmanager
def _told(name: str) -> Iterator[None]:
    """Errors of Arrow and of the system, told without their cells."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else _plain(str(error))
        raise InputError(f"{name}: {reason}.", "Check the file, its folder and the space on the disk.") from None
    except (pa.ArrowException, UnicodeError) as error:
        raise InputError(
            f"{name}: {_plain(str(error))}.", "Repair the file, or say its format with --format."
        ) from None


def _plain(text: str) -> str:
    """What went wrong, by kind and place: the original message may hold cells."""
    if re.search(r"utf-?8", text, re.IGNORECASE):
        return "it is not in UTF-8"
    if re.search(r"parquet|magic|footer|thrift", text, re.IGNORECASE):
        return "it is not a whole Parquet file"
    if re.search(r"straddling", text):
        return f"a row is longer than {BLOCK_BYTES >> 20} MB, or a quote is never closed"
    if re.search(r"Empty CSV", text):
        return "it is empty"
    if re.search(r"compressed|decompress|gzip|zlib|zstd|lz4|bz2|inflate", text, re.IGNORECASE):
        return "its compressed data is damaged"
    return "it cannot be read as a table of this format"
