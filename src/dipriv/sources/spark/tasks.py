"""What runs on the workers of a cluster: functions from Arrow batches to Arrow batches, one call a task.

A task's rows come in blocks of a fixed size, each row with its number in the table. The first pass stores a keyed
digest of each block; later passes verify a block before they use its numbers. Nothing here knows Spark.
"""

from __future__ import annotations

import os
import pickle
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.types as pt

from dipriv._base.arrays import Counts
from dipriv._random.bits import Bits
from dipriv._tables import frames
from dipriv._tables.arrow import is_text
from dipriv._tables.frames import Table
from dipriv._tables.narrow import narrowed, restored
from dipriv._tables.value_counts import RunningCounts, ValueCounts, add_counts, count_values, in_buckets
from dipriv._tables.without_pandas import leave_pandas_out
from dipriv._version import __version__
from dipriv.errors import DiprivError, InputError, SourceChangedError
from dipriv.sources._blocks import DIGEST_BYTES, block_digest, cut
from dipriv.sources._encodings import with_valid_text
from dipriv.sources._fingerprint import Fingerprint
from dipriv.sources.holdout import Split
from dipriv.sources.protocol import Counter, ReleasesTables, View, added
from dipriv.sources.spark.even_parts import Places
from dipriv.sources.spark.names import new_name
from dipriv.sources.typed import text_classes

Batches: TypeAlias = Iterator[pa.RecordBatch]
Work: TypeAlias = Callable[[Batches], Batches]
ReadsTypes: TypeAlias = Callable[[pa.RecordBatch], pa.RecordBatch]
"""Reads some columns of a batch as other types: see `dipriv.sources.spark.types.Reading`."""
Pack: TypeAlias = tuple[int, int, int, bytes, bytes, bytes]
"""A block as `FirstPass` gives it: mark, place, rows, digest, summary, data."""
PackFacts: TypeAlias = tuple[int, int, int, bytes, bytes]
"""All of that but the data."""
RowsAndValues: TypeAlias = tuple[int, dict[str, ValueCounts]]
BLOCK_ROWS = 1 << 16
MAX_LABEL_BYTES = 1 << 16
"""Of labels that the first pass counts in a task. Where a column has more, a later pass counts them all."""
REPEATABLE = (
    "Write the table to files, or checkpoint it (DataFrame.checkpoint), and privatize that: its rows must come in the "
    "same partitions and the same order each time they are read."
)


@dataclass(frozen=True)
class Part:
    """A task's rows as they were read first: the number of the first one in the table, a digest of each block."""

    first: int
    n_rows: int
    digests: bytes = field(repr=False)


@dataclass(frozen=True, eq=False)
class Layout:
    """Where each task's rows stand in the table, by the mark of the first one; `marker` is the column of marks.

    Marks are Spark's own (monotonically_increasing_id): they rise by one from row to row, and jump between partitions.
    """

    marker: str
    verified: tuple[str, ...]
    key: bytes = field(repr=False)
    parts: Mapping[int, Part] = field(repr=False)

    @property
    def n_rows(self) -> int:
        return sum(part.n_rows for part in self.parts.values())

    def blocks(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, int, Table]]:
        """(mark of the task's first row, number of the block's first row, block): the same as at first, or an error."""
        done, part = 0, Part(0, 0, b"")
        for mark, block in _blocks(batches, self.marker):
            part = self.parts.get(mark, part)
            place = done // BLOCK_ROWS * DIGEST_BYTES
            table = _as_table(block)
            if block_digest(table, self.verified, self.key) != part.digests[place : place + DIGEST_BYTES]:
                raise changed(f"rows from number {part.first + done} on are not those of the first reading")
            yield mark, part.first + done, table
            done += block.num_rows
        if done != part.n_rows:
            raise changed(f"a task has {done} rows now, {part.n_rows} at the first reading")


@dataclass(frozen=True, eq=False)
class Summary:
    """What the first pass finds in all rows of a task, or of several."""

    fingerprint: Fingerprint | None = field(repr=False)
    labels: Mapping[str, ValueCounts] = field(repr=False)
    """How many cells have each label, of columns that have few."""
    classes: Mapping[str, Counts] = field(repr=False)
    """How many cells of columns of text are of each class."""

    def then(self, later: Summary) -> Summary:
        """Of all rows of this part and of those that come after it."""
        if self.fingerprint is not None and later.fingerprint is not None:
            self.fingerprint.append(later.fingerprint)
        both = [name for name in self.labels if name in later.labels]
        labels = add_counts(*({name: part.labels[name] for name in both} for part in (self, later)))
        classes = {name: counts + later.classes[name] for name, counts in self.classes.items()}
        return Summary(self.fingerprint, labels, classes)

    def to_bytes(self) -> bytes:
        """To be sent to the driver: no more than some labels, and the smaller part of the fingerprint's samples."""
        labels, room = {}, MAX_LABEL_BYTES
        for name, of in sorted(self.labels.items(), key=lambda one: len(one[1])):
            room -= of.values.nbytes + of.counts.nbytes
            if room >= 0:
                labels[name] = of
        seen = b"" if self.fingerprint is None else self.fingerprint.to_bytes()
        return pickle.dumps((seen, labels, self.classes))

    @classmethod
    def from_bytes(cls, data: bytes, key: bytes | None, names: Sequence[str]) -> Summary:
        """What `to_bytes` was called on; the key and the columns are those of the fingerprint."""
        seen, labels, classes = pickle.loads(data)  # noqa: S301 - of our own workers, whose results PySpark unpickles, too
        return cls(None if key is None else Fingerprint.from_bytes(key, names, seen), labels, classes)


@dataclass(frozen=True, eq=False)
class FirstPass:
    """Counts the rows of each block and digests its verified columns, if any: one row a block.

    The last row has the summary of the task's rows.

    Packed, it also gives the block as bytes, for the passes that learn a private reference: Spark hands over a block of
    bytes some ten times as fast as its cells.
    """

    marker: str
    verified: tuple[str, ...]
    key: bytes = field(repr=False)
    fingerprint_key: bytes | None = field(repr=False)
    """A key for fingerprints that the ledger knows again, and that is used for nothing else; None without a ledger."""
    packed: bool
    labels_of: tuple[str, ...] = ()
    """Columns whose labels are counted, if there are few."""
    judged: tuple[str, ...] = ()
    """Columns of text whose cells are classified."""
    marks: tuple[str, ...] = ()
    """Texts that stand for missing cells."""
    reading: ReadsTypes | None = None
    """For all but the fingerprint: a ledger recognizes the cells as they were before."""
    schema = "mark long, place long, rows long, digest binary, summary binary, data binary"

    def __call__(self, batches: Batches) -> Batches:
        seen, counted, row = None, None, None
        for place, (mark, block) in enumerate(_blocks(batches, self.marker)):
            if row is not None:
                yield self._packed(*row, b"")
            some = self._read(block.select(list(self.verified)))
            digest = block_digest(_as_table(some), self.verified, self.key) if self.verified else b""
            if self.fingerprint_key is not None:
                seen = seen or Fingerprint(self.fingerprint_key, block.column_names)
                for batch in block.to_batches():
                    seen.update(batch)
            data = b""
            if self.packed:
                stored = _stored(some)
                counted = self._counted(stored, counted)
                data = _to_bytes(stored.native)
            row = mark, place, block.num_rows, digest, data
        if row is not None:
            summary = counted or Summary(None, {}, {})
            yield self._packed(*row, replace(summary, fingerprint=seen).to_bytes())

    def _read(self, block: pa.Table) -> pa.Table:
        return block if self.reading is None else pa.Table.from_batches(map(self.reading, block.to_batches()))

    def _counted(self, table: Table, before: Summary | None) -> Summary:
        """The counts of a block and of those before it; columns that have many labels already are not counted."""
        few = self.labels_of if before is None else before.labels
        labels = count_values(table, [name for name in few if table.column(name).storage.family == "label"])
        found = Summary(None, labels, {name: text_classes(table.coded(name), self.marks) for name in self.judged})
        both = found if before is None else before.then(found)
        few_labels = {name: of for name, of in both.labels.items() if of.values.nbytes <= MAX_LABEL_BYTES}
        return replace(both, labels=few_labels)

    def _packed(self, mark: int, place: int, rows: int, digest: bytes, data: bytes, summary: bytes) -> pa.RecordBatch:
        row = mark, place, rows, digest, summary, data
        names = ["mark", "place", "rows", "digest", "summary", "data"]
        return pa.record_batch([pa.array([value]) for value in row], names=names)


@dataclass(frozen=True, eq=False)
class HeldRows:
    """How many rows of a task are held out: one row."""

    layout: Layout
    split: Split
    schema = "mark long, held long"

    def __call__(self, batches: Batches) -> Batches:
        mark, held = -1, 0
        for mark, first, table in self.layout.blocks(batches):  # noqa: B007
            held += int(self.split.held_out(table, first).sum())
        if mark >= 0:
            yield pa.record_batch([pa.array([mark]), pa.array([held])], names=["mark", "held"])


@dataclass(frozen=True, eq=False)
class HoldOut:
    """The rows of a task that are held out, as they are."""

    layout: Layout
    split: Split

    def __call__(self, batches: Batches) -> Batches:
        for _, first, table in self.layout.blocks(batches):
            yield from table.native.filter(pa.array(self.split.held_out(table, first))).to_batches()


@dataclass(frozen=True, eq=False)
class Packed:
    """Which of the packed rows a private reference is learned from: all of them, or those that are held out."""

    schema: pa.Schema
    """The types of the columns; blocks may store text as dictionaries."""
    layout: Layout
    split: Split | None
    view: View | None = None
    """Further columns of theirs."""

    def tables(self, packs: Iterable[Pack]) -> Iterator[Table]:
        """The rows of these blocks."""
        return (table for _, table in self.numbered(packs))

    def numbered(self, packs: Iterable[Pack]) -> Iterator[tuple[int, Table]]:
        """The rows of these blocks, and the number of the first one of each.

        A block that had to be packed again must be the same as at first.
        """
        for mark, place, _, digest, _, data in packs:
            part, start = self.layout.parts.get(mark, Part(0, 0, b"")), place * DIGEST_BYTES
            first = part.first + place * BLOCK_ROWS
            if digest != part.digests[start : start + DIGEST_BYTES]:
                raise changed(f"rows from number {first} on are not those of the first reading")
            table = frames.read_stored(_from_bytes(data, self.schema), self.schema)
            if self.split is not None:
                table = table.take(self.split.held_out(table, first))
            if table.rows:
                yield first, table if self.view is None else self.view(table)


def sums_of(packed: Packed, count: Counter, cores: int, packs: Iterable[Pack]) -> Iterator[tuple[int, list[Counts]]]:
    """How many rows a task has, and the counts of them all; nothing where there are none."""
    rows, sums = 0, list[Counts]()
    with as_worker(cores):
        for table in packed.tables(packs):
            rows, sums = rows + table.rows, added(sums, count(table))
    if rows:
        yield rows, sums


def add_up(one: tuple[int, list[Counts]], other: tuple[int, list[Counts]]) -> tuple[int, list[Counts]]:
    """The rows and counts of two parts together."""
    return one[0] + other[0], added(one[1], other[1])


def values_of(
    packed: Packed, names: tuple[str, ...], buckets: int, cores: int, packs: Iterable[Pack]
) -> Iterator[tuple[int, RowsAndValues]]:
    """(number of the bucket, (rows, counts)) for a task: its rows, said once, and how many have each value."""
    rows, running = 0, RunningCounts()
    with as_worker(cores):
        for table in packed.tables(packs):
            rows += table.rows
            running.add(count_values(table, names))
        for bucket, counts in enumerate(in_buckets(running.total(), buckets) if rows else ()):
            yield bucket, (0 if bucket else rows, counts)


def add_values(one: RowsAndValues, other: RowsAndValues) -> RowsAndValues:
    """The rows and the counts of values of two parts together."""
    return one[0] + other[0], add_counts(one[1], other[1])


def all_added(add: Callable[[Any, Any], Any], parts: Iterator[Any]) -> Iterator[Any]:
    """All parts together, one after the other; nothing where there is none."""
    for first in parts:
        yield reduce(add, parts, first)


@dataclass(frozen=True, eq=False)
class Releasing:
    """Releases the rows of a task, but those that are held out, each with its place in the released DataFrame.

    `first_released` is the number, among the released rows, of each task's first one: what its noise depends on.
    """

    layout: Layout
    mechanism: ReleasesTables = field(repr=False)
    keep: tuple[str, ...]
    bits: Bits = field(repr=False)
    split: Split | None
    first_released: Mapping[int, int] = field(repr=False)
    places: Places
    version: str = __version__

    def __call__(self, batches: Batches) -> Batches:
        check_version(self.version)
        done = 0
        for mark, first, table in self.layout.blocks(batches):
            part = table if self.split is None else table.take(~self.split.held_out(table, first))
            if part.rows:
                number = self.first_released[mark] + done
                released = self.mechanism.release(part, self.keep, self.bits, first=number)
                done += part.rows
                for place in self.places(number, part.rows, self.bits):
                    released = released.append_column(new_name(released.column_names), pa.array(place))
                yield from released.to_batches()


def check_version(driver: str) -> None:
    """Refuse to release with another version than the driver's: it may have other noise for the same row."""
    if driver != __version__:
        raise InputError(
            f"a worker has dipriv {__version__}, the driver {driver}.", "Install the same version on both."
        )


def on_worker(
    work: Work, names: list[str], asked: list[str], reading: ReadsTypes | None, cores: int, batches: Batches
) -> Batches:
    """Run on a worker, on as many cores as a task has there. What an unforeseen error says may hold a cell.

    The work is given the columns that are asked for, of the types that text is read as.

    Columns are numbered for Spark, because mapInArrow does not accept every column name.
    """

    def given(batch: pa.RecordBatch) -> pa.RecordBatch:
        some = with_valid_text(batch.rename_columns(names).select(asked))
        return some if reading is None else reading(some)

    with as_worker(cores):
        for batch in work(map(given, batches)):
            yield batch.rename_columns([f"c{number}" for number in range(batch.num_columns)])


@contextmanager
def as_worker(cores: int) -> Iterator[None]:
    """Work on as many cores as a task has, without pandas; unforeseen errors do not say what they say."""
    os.environ.setdefault("DIPRIV_THREADS", str(cores))
    leave_pandas_out()
    try:
        yield
    except DiprivError:
        raise
    except Exception as error:
        place = traceback.extract_tb(sys.exc_info()[2])[-1]
        raise DiprivError(
            f"a task failed: {type(error).__name__} at {Path(place.filename).name}, line {place.lineno}.",
            "The original message is not shown, as it may hold cells. Privatize some of the rows here to see it.",
        ) from None


def changed(how: str) -> SourceChangedError:
    """The error of a table that is not what it was."""
    return SourceChangedError(f"the table changed between two readings: {how}.", REPEATABLE)


def _blocks(batches: Iterable[pa.RecordBatch], marker: str) -> Iterator[tuple[int, pa.Table]]:
    """Blocks without the column of marks, each with the mark of the task's first row."""
    first, done = None, 0
    for block in cut(batches, BLOCK_ROWS):
        marks = block.column(marker)
        first = marks[0].as_py() if first is None else first
        if (marks[0].as_py(), marks[-1].as_py()) != (first + done, first + done + block.num_rows - 1):
            raise SourceChangedError("the rows of a task do not come one after the other.", REPEATABLE)
        done += block.num_rows
        yield first, block.drop_columns([marker])


def _stored(block: pa.Table) -> Table:
    """The same rows, where text that repeats few texts is stored as narrow codes, for all later passes."""
    table = _as_table(block)
    return table.stored(name for name in table.names if is_text(table.arrow_type(name)))


def _as_table(block: pa.Table) -> Table:
    return frames.read(block.combine_chunks())


def _to_bytes(block: pa.Table) -> bytes:
    """Narrow codes that are not compressed: to do that would take longer than all that is saved."""
    narrow, sink = narrowed(block), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, narrow.schema) as writer:
        writer.write_table(narrow)
    return bytes(sink.getvalue())


def _from_bytes(data: bytes, schema: pa.Schema) -> pa.Table:
    """The block again, with the types of the schema, but for text that is stored as a dictionary."""
    narrow = pa.ipc.open_stream(data).read_all()
    coded = [of if pt.is_dictionary(of.type) else schema.field(of.name) for of in narrow.schema]
    return restored(narrow, pa.schema(coded))
