"""Batches that were read once, for later passes: in memory, and beyond a limit in an encrypted scratch file.

Later passes that read these cannot meet other rows than the first pass did: what a row is released as, and what was
counted of it, are of the same row even if the source changes meanwhile. That is more than comparing digests of two
readings, which finds a change only after it has happened.

The scratch file has no name from the start, or loses it at once: it is gone when the process ends, however it ends. It
is readable for its owner only, and what is in it is AES-256 in counter mode under a key that is in memory alone.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Literal
from weakref import finalize

import pyarrow as pa

from dipriv._base.parallel import in_parallel
from dipriv._tables.narrow import narrowed, restored
from dipriv._tables.presentation import Presentation, TextColumns
from dipriv._tables.repeated import coded
from dipriv.errors import StorageError
from dipriv.sources.typed import Batches

MAX_BYTES = 1 << 27
"""Of batches that are kept in memory; others go to the scratch file."""
MAX_TEXT_BYTES = 1 << 26
"""The same for text that is about to be read as other types."""
_BLOCK = 16
"""Bytes that one number of the cipher's counter encrypts."""


@dataclass(eq=False)
class KeptBatches:
    """Tables in the order in which they were added; `is_whole` says whether all could be kept.

    A table may have several batches: dictionaries of narrow indices cannot always be put together.
    """

    limit: int = field(default_factory=lambda: MAX_BYTES)
    is_whole: bool = True
    _tables: list[tuple[pa.Schema, pa.Table | tuple[int, int]]] = field(repr=False, default_factory=list)
    """The schema of each, and its narrow form: in memory, or (place, size) in the scratch file."""
    _bytes: int = 0
    _scratch: _Scratch | None = field(repr=False, default=None)

    def add(self, table: pa.Table) -> None:
        """Keep a table; where the disk has no room for it, none is kept from here on."""
        if not self.is_whole:
            return
        schema, narrow = table.schema, narrowed(table)
        if self._scratch is None and self._bytes + narrow.nbytes <= self.limit:
            self._bytes += narrow.nbytes
            self._tables.append((schema, narrow))
            return
        try:
            self._scratch = self._scratch or _Scratch()
            self._tables.append((schema, self._scratch.write(narrow)))
        except (OSError, StorageError):
            self.is_whole = False

    def __iter__(self) -> Iterator[pa.Table]:
        for schema, kept in self._tables:
            if isinstance(kept, pa.Table):
                yield restored(kept, schema)
            elif self._scratch is not None:
                yield restored(self._scratch.read(*kept), schema)

    def close(self) -> None:
        """Forget all batches."""
        self._tables, self._bytes = [], 0
        if self._scratch is not None:
            self._scratch.file.close()
        self._scratch = None

    def __reduce__(self) -> Any:
        raise TypeError("batches that are kept are private rows, and are not pickled or copied")


@dataclass(eq=False)
class _Scratch:
    """A file without a name, each part of which is encrypted under other numbers of one counter."""

    file: Any = field(repr=False, default_factory=lambda: tempfile.TemporaryFile(buffering=0))  # noqa: SIM115
    _key: bytes = field(repr=False, default_factory=lambda: os.urandom(32))
    _end: int = 0
    _plain: pa.Buffer = field(repr=False, default_factory=lambda: pa.allocate_buffer(0))
    _hidden: bytearray = field(repr=False, default_factory=bytearray)
    _lock: Any = field(repr=False, default_factory=Lock)
    _process: int = field(repr=False, default_factory=os.getpid)

    def __post_init__(self) -> None:
        finalize(self, self.file.close)

    def write(self, table: pa.Table) -> tuple[int, int]:
        self._check_process()
        size = _written(table, pa.MockOutputStream()).size()
        with self._lock:
            if self._plain.size < size:  # room that is used again: new pages are cleared first, which takes longer
                self._plain, self._hidden = pa.allocate_buffer(size), bytearray(size + _BLOCK)
            _written(table, pa.FixedSizeBufferWriter(self._plain))
            place = self._end
            self._end += -(-size // _BLOCK) * _BLOCK  # also if it fails: no part of the counter is used twice
            self._apply(place, memoryview(self._plain).cast("B")[:size], self._hidden)
            self.file.seek(place)
            rest = memoryview(self._hidden)[:size]
            while rest:
                rest = rest[self.file.write(rest) :]
        return place, size

    def read(self, place: int, size: int) -> pa.Table:
        self._check_process()
        hidden = bytearray(size)
        with self._lock:
            self.file.seek(place)
            rest = memoryview(hidden)
            while rest and (count := self.file.readinto(rest)):
                rest = rest[count:]
        done = bytearray(size + _BLOCK)
        self._apply(place, hidden, done)
        plain = memoryview(done).toreadonly()  # as other buffers: loops are compiled once
        with pa.ipc.open_stream(pa.py_buffer(plain)) as reader:
            return reader.read_all()

    def _check_process(self) -> None:
        """A forked copy has the same key, counter and position in the file: it may use none of them."""
        if os.getpid() != self._process:
            raise StorageError(
                "rows that another process keeps are not read or written here.",
                "Prepare and run the release in one process.",
            )

    def _apply(self, place: int, content: Any, done: bytearray) -> None:
        """Put the content under the cipher, or take it out: the same exclusive or. The cipher asks for a block more."""
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        cipher = Cipher(algorithms.AES(self._key), modes.CTR((place // _BLOCK).to_bytes(_BLOCK, "big"))).encryptor()
        cipher.update_into(content, done)


def _written(table: pa.Table, sink: Any) -> Any:
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink


@dataclass(eq=False)
class ReadOnce:
    """A table whose cells are read from their source once for two passes: the first keeps what the second has.

    Columns of text that repeat few texts are dictionaries in both of them. Call `forget` after the second; further
    passes read the source.
    """

    rows: Batches
    names: tuple[str, ...]
    """The columns that one of the two passes asks for."""
    _kept: KeptBatches = field(repr=False, default_factory=lambda: KeptBatches(MAX_TEXT_BYTES))
    _next: Literal["keep", "serve", "read"] = "keep"

    @property
    def name(self) -> str:
        return self.rows.name

    @property
    def schema(self) -> pa.Schema:
        return self.rows.schema

    @property
    def categories(self) -> Mapping[str, pa.Array]:
        return self.rows.categories

    @property
    def presentation(self) -> Presentation:
        return self.rows.presentation

    @property
    def text_columns(self) -> TextColumns:
        return self.rows.text_columns

    @property
    def n_rows(self) -> int | None:
        return self.rows.n_rows

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """All rows of these columns, from the start."""
        if self._next == "read":
            yield from self.rows.batches(names)
        elif self._next == "serve":
            for table in self._kept:
                yield from table.select(list(names)).to_batches()
        else:
            for batch in self.rows.batches(self.names):
                again = pa.record_batch(in_parallel(coded, batch.columns), names=batch.schema.names)
                self._kept.add(pa.Table.from_batches([again]))
                yield again.select(list(names))
            self._next = "serve"
            if not self._kept.is_whole:
                self.forget()

    def forget(self) -> None:
        """Give the room free."""
        self._kept.close()
        self._next = "read"
