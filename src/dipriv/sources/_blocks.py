"""Rows in blocks of a fixed size, the same ones at each reading.

A release needs that. A row's noise is a function of its number, as is whether it is held out: other values must never
meet the same noise, nor a row be on both sides. And the counts that a reference is learned from put several passes
together: the noise covers one row, not a row that moved in between. So the first reading notes a keyed hash of each
block, and every later one compares a block before anybody sees it. Memory holds a block and what the source reads
ahead.
"""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dipriv._parallel import in_parallel
from dipriv._tables import frames as tables
from dipriv._tables.frames import Table
from dipriv.errors import InputError
from dipriv.sources.batches import Source

MOST_CELLS, FEWEST_ROWS, MOST_ROWS = 1 << 22, 1 << 13, 1 << 18


@dataclass(frozen=True, eq=False)
class Blocks:
    """The columns of a source that are read, block by block; of `noted` columns the content is known."""

    source: Source
    columns: tuple[str, ...]
    noted: tuple[str, ...]
    rows: int
    clips_infinities: bool
    key: bytes = field(repr=False)
    notes: tuple[bytes, ...] = field(repr=False)

    def tables(self) -> Iterator[Table]:
        """All rows; an error instead of a block that is not the same as it was."""
        return (table for _, table in self.placed())

    def placed(self) -> Iterator[tuple[int, Table]]:
        """The same, each table with the number of its first row."""
        position = 0
        for number, table in enumerate(_blocks(self.source, self.columns, self.clips_infinities)):
            if number >= len(self.notes) or note(table, self.noted, self.key) != self.notes[number]:
                raise self._changed(f"rows from number {position} on are not those of the first reading")
            yield position, table
            position += table.rows
        if position != self.rows:
            raise self._changed(f"there are {position} rows now, {self.rows} at the first reading")

    def _changed(self, how: str) -> InputError:
        return InputError(
            f"{self.source.name} changed between two readings: {how}.",
            "Give a source that gives the same rows in the same order each time: sort the query, return a fresh "
            "iterator, or write the rows to Parquet files first.",
        )


@dataclass
class FirstReading:
    """Counts the rows and notes what they are while somebody reads; infinite numbers are refused, if not held."""

    source: Source
    noted: tuple[str, ...]
    clips_infinities: bool
    rows: int = 0
    key: bytes = field(repr=False, default_factory=lambda: os.urandom(32))
    notes: list[bytes] = field(repr=False, default_factory=list)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for table in _blocks(self.source, columns, self.clips_infinities):
            self.notes.append(note(table, self.noted, self.key))
            self.rows += table.rows
            yield from table.native.to_batches()

    def done(self, columns: Sequence[str]) -> Blocks:
        """The blocks for later readings of these columns."""
        if not self.rows:
            raise InputError(f"{self.source.name} has no rows.", "Give a table with at least one row.")
        notes = tuple(self.notes)
        return Blocks(self.source, tuple(columns), self.noted, self.rows, self.clips_infinities, self.key, notes)


def note(table: Table, names: Sequence[str], key: bytes) -> bytes:
    """A keyed hash of the cells as the mechanism sees them: labels, numbers, and which are missing."""

    def of_column(name: str) -> bytes:
        found = hmac.new(key, digestmod="sha256")
        if table.column(name).storage.family == "label":
            labels, codes = _coded(table.array(name))
            found.update(json.dumps(labels, default=str).encode())
            found.update(codes.data)
            return found.digest()
        cells = table.cells(name)
        found.update(np.ascontiguousarray(cells.values).data)
        if cells.missing is not None and cells.missing.any():
            found.update(cells.missing.data)
        return found.digest()

    return hmac.digest(key, b"".join(in_parallel(of_column, names)), "sha256")


def _coded(array: pa.Array) -> tuple[list[Any], NDArray[np.int32]]:
    """Labels in the order in which they are met, and the number of each row's label; -1 for nulls."""
    plain = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
    plain = plain.cast(pa.large_string()) if pa.types.is_string_view(plain.type) else plain
    coded = plain.dictionary_encode()
    return coded.dictionary.to_pylist(), coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)


def cut(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.Table]:
    """The same rows in tables of `size` rows, but for the last, each in one piece."""
    waiting: list[pa.RecordBatch] = []
    missing = size
    for batch in batches:
        start = 0
        while batch.num_rows - start >= missing:
            yield _together([*waiting, batch.slice(start, missing)])
            start, missing, waiting = start + missing, size, []
        if start < batch.num_rows:
            waiting.append(batch.slice(start))
            missing -= batch.num_rows - start
    if waiting:
        yield _together(waiting)


def _together(parts: Sequence[pa.RecordBatch]) -> pa.Table:
    table = pa.Table.from_batches(parts)
    return table if len(parts) == 1 else table.unify_dictionaries().combine_chunks()


def _blocks(source: Source, columns: Sequence[str], clips_infinities: bool) -> Iterator[Table]:
    """Cut by the number of all columns of the source, so that every reading has the same blocks."""
    size = max(FEWEST_ROWS, min(MOST_ROWS, MOST_CELLS // len(source.schema)))
    for block in cut(source.batches(columns), size):
        table = tables.read(block)
        yield table.clip_infinities() if clips_infinities else table
