"""Tables in files: CSV, TSV, Parquet and Arrow in, the same out, as streams of Arrow batches.

A `Source` can be read as often as needed. A `Sink` appears whole under its name or not at all: it is written beside
it, forced to disk, and renamed. Messages name files, columns and row numbers, never a cell.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import sys
from collections.abc import Iterator, Sequence
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
        with _told(self.name), self._stream() as stream:
            if self.path is not None and _stamp(self.path) != self.stamp:
                raise InputError(f"{self.name} changed while it was read.", "Give the command again.")
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
        return replace(self, types=MappingProxyType({**found, **self.types}), names=tuple(batch.schema.names))

    def widened(self, column: int) -> Source:
        """The same source with a wider type for one of its CSV columns."""
        name = self.names[column]
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
                raise MisfitError(int(found[1])) from None
            if re.search(r"Expected \d+ columns", text):
                raise self._ragged() from None
            raise

    def _csv_reader(self, stream: Any, *, on_ragged: Any = None) -> Any:
        return pacsv.open_csv(
            stream,
            read_options=pacsv.ReadOptions(block_size=BLOCK_BYTES, use_threads=on_ragged is None),
            parse_options=pacsv.ParseOptions(
                delimiter="\t" if self.format == "tsv" else ",",
                newlines_in_values=True,
                invalid_row_handler=on_ragged,
            ),
            convert_options=pacsv.ConvertOptions(column_types=dict(self.types)),
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
    """Where released batches go; in its context `write` batches and `publish`, else nothing stays."""

    name: str
    path: Path | None
    format: Format
    compression: str | None = None
    force: bool = False
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
        if file.exists() and not file.is_file():
            raise InputError(f"{file} is not a plain file.", "Give the name of a file.")
        return cls(file.name, file, kind, compression, force)

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

    def publish(self) -> None:
        """Finish the file and give it its name; without it, nothing stays."""
        with _told(self.name):
            if self._writer is not None:
                self._writer.close()
            self._stream.close()
            self._file.close()
            if self.path is not None and self._part is not None:
                publish_part(self._part, self.path, replace=self.force)

    def __exit__(self, *_: object) -> None:
        self._writer = None
        with suppress(OSError, pa.ArrowException):
            self._file.close()
        if self._part is not None:
            self._part.unlink(missing_ok=True)

    def _new_writer(self, schema: pa.Schema) -> Any:
        if self.format == "parquet":
            return pq.ParquetWriter(self._stream, schema, compression="zstd")
        if self.format == "arrow":
            return pa.ipc.new_file(self._stream, schema)
        return pacsv.CSVWriter(
            self._stream, schema, write_options=pacsv.WriteOptions(delimiter="\t" if self.format == "tsv" else ",")
        )


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


def part_of(path: Path) -> Path:
    """A name beside the final one, of a file that is not finished."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")


def publish_part(part: Path, path: Path, *, replace: bool = True) -> None:
    """Force a finished file to disk and give it its name, in one step; what is there is replaced, or an error."""
    with part.open("rb") as file:
        os.fsync(file.fileno())
    if replace:
        part.replace(path)
    else:
        _name(part, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _name(part: Path, path: Path) -> None:
    """Give a file a name that nobody has, even if somebody else was faster."""
    try:
        os.link(part, path)
        part.unlink()
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if path.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
        part.replace(path)


def write_text(path: Path, text: str, mode: int = 0o644) -> None:
    """A text file that appears whole or not at all."""
    part = part_of(path)
    try:
        with _told(path.name):
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
                file.write(text)
            publish_part(part, path)
    finally:
        part.unlink(missing_ok=True)


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
