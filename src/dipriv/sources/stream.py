"""Rows on this machine that come in batches: files, folders of files, lazy queries, functions.

The first pass keeps the rows for the others (`dipriv.sources._kept`). Where there is no room for them, every pass reads
the same blocks again; memory holds a block, and the hold-out where there is one. With a privacy unit it also holds a
number for each row, and what was released once for each person.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dipriv._base.parallel import ahead, each_in_parallel
from dipriv._base.table_fingerprint import TableFingerprint
from dipriv._random.bits import Bits
from dipriv._tables import frames
from dipriv._tables.arrow import is_text, storage_of
from dipriv._tables.column_types import TypeRules, ask
from dipriv._tables.frames import Column, Table
from dipriv._tables.presentation import Presentation
from dipriv._tables.value_counts import RunningCounts, ValueCounts, count_values
from dipriv.dialect import DETECTED, Dialect
from dipriv.errors import InputError, InternalError, SourceChangedError, unusable
from dipriv.sources._blocks import block_digest, cut
from dipriv.sources._errors import refuse_folders
from dipriv.sources._fingerprint import PrefixFingerprints
from dipriv.sources._formats.registry import refuse_unused
from dipriv.sources._kept import KeptBatches, ReadOnce
from dipriv.sources.batches import BatchSource, batch_function, data_set, lazy_frame, parquet_files
from dipriv.sources.contribution_bound import BoundedRows, ContributionBound, numbers_of, unit_keys
from dipriv.sources.files import File, FileBatches
from dipriv.sources.holdout import GroupHoldout, Split
from dipriv.sources.protocol import (
    CountableRows,
    CountedTables,
    ReleaseJob,
    RowSelection,
    Scan,
    View,
)
from dipriv.sources.typed import Batches, Look, TypedBatches, no_look, settle_columns_of_text, settle_texts

MAX_BLOCK_CELLS, MIN_BLOCK_ROWS, MAX_BLOCK_ROWS = 1 << 21, 1 << 13, 1 << 17
LIMITS = {"groups": "a reference per group needs the table in memory. Use dipriv.privatize on a dataframe."}
_REPEATABLE = (
    "Give a source that gives the same rows in the same order each time: sort the query, return a fresh iterator, or "
    "write the rows to Parquet files first."
)


@dataclass(frozen=True, eq=False)
class StreamSource:
    """A `RowSource` of batches; releases `ReleasedBatches`."""

    rows: Batches
    all_text: bool = False
    """Whether columns have no types of their own, as in CSV files."""
    suggested_dataset: str | None = None
    writes_folder: bool = False
    releases_later: bool = False
    in_folders: tuple[str, ...] = ()
    """The columns that names of folders give."""
    limits: Mapping[str, str] = field(repr=False, default_factory=lambda: LIMITS)

    @property
    def name(self) -> str:
        return self.rows.name

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(self.rows.schema.names)

    def infers_types(self, names: Sequence[str], rules: TypeRules) -> bool:
        texts = [name for name in names if is_text(self.rows.schema.field(name).type)]
        stored, presentation = self.rows.text_columns, self.rows.presentation
        untyped = [name for name in texts if self.all_text and name not in stored.stated]
        plain = [name for name in untyped if presentation.has_plain_numbers]
        read = [name for name in texts if name in untyped or (self.all_text and name in rules.given)]
        return (
            any(name in stored.settled for name in names)
            or any(rules.is_settled_by_cells(name, is_text=name not in untyped) for name in texts)
            or any(rules.is_read_by_cells(name, presentation.separator, name in plain) for name in read)
        )

    def scan(self, request: Scan) -> StreamedRows:
        """Settle the types of text; then count and fingerprint the rows."""
        names, rules, progress = request.privatized, request.types, request.progress
        refuse_folders(names, self.in_folders)
        if not self.all_text:
            rows = settle_columns_of_text(self.rows, names, rules, keep=request.keep, progress=progress)
            _ask(rows, names)
            return _first_pass(rows, request)
        once = ReadOnce(self.rows, tuple(_columns_to_read(self.rows, request)))
        rows = settle_texts(
            once, names, rules, passed_through=request.passed_through, anew=request.anew, progress=progress
        )
        _ask(rows, names)
        found = _first_pass(rows, request)
        once.forget()
        return found


def _ask(rows: TypedBatches, names: Sequence[str]) -> None:
    """Refuse columns whose type is a question, or one that dipriv does not take: all of them at once."""
    asked = {question.column for question in rows.questions}
    others = [name for name in names if name not in asked]
    ask(rows.questions, unusable(others, lambda name: storage_of(name, rows.schema.field(name).type)))


def _columns_to_read(rows: Batches, request: Scan) -> list[str]:
    """A ledger recognizes the data set by the cells of all its columns as they are read; else only those in use are."""
    names = rows.schema.names
    return names if request.fingerprint is not None else [name for name in names if name in {*request.used}]


def _first_pass(rows: TypedBatches, request: Scan) -> StreamedRows:
    """Count and fingerprint the rows, and keep them, or digests of them where there is no room."""
    names, used = rows.schema.names, {*request.used}
    seen = None if request.fingerprint is None else PrefixFingerprints(request.fingerprint, names)
    every = _columns_to_read(rows, request)
    key, digests, count = os.urandom(32), list[bytes](), 0
    running, kept = RunningCounts(), KeptBatches()
    for block in ahead(_blocks(rows, every, no_look if seen is None else seen.update)):
        table = frames.read_stored(block.select([name for name in every if name in used]), rows.schema)
        labels = [name for name in request.privatized if table.column(name).storage.family == "label"]
        table = table.stored(labels)
        kept.add(table.native)
        if not kept.is_whole:  # later passes will read the source again
            read_earlier = (frames.read_stored(earlier, rows.schema) for earlier in kept)
            digests += [block_digest(earlier, request.verified, key) for earlier in read_earlier]
            kept.close()
            digests.append(block_digest(table, request.verified, key))
        running.add(count_values(table, [name for name in request.labels_of if name in labels]))
        count += table.rows
        request.progress("reading", count, rows.n_rows)
    if not count:
        raise InputError(f"{rows.name} has no rows.", "Give a table with at least one row.")
    fingerprint = None if seen is None else seen.result()
    read = tuple(name for name in names if name in used)
    return StreamedRows(rows, read, request, count, fingerprint, running.total(), key, tuple(digests), kept)


@dataclass(frozen=True, eq=False)
class StreamedRows:
    """The rows after the first pass; of rows that are read again, privatized columns are verified block by block."""

    batches: TypedBatches
    names: tuple[str, ...]
    request: Scan
    n_rows: int
    fingerprint: TableFingerprint | None
    label_counts: Mapping[str, ValueCounts] = field(repr=False)
    """Of all rows, for the columns that the first pass counted."""
    key: bytes = field(repr=False)
    digests: tuple[bytes, ...] = field(repr=False)
    kept: KeptBatches = field(repr=False)

    @property
    def empty(self) -> Table:
        schema = self.batches.schema
        return Table(schema.empty_table(), "pyarrow", tuple(schema.names), 0)

    @property
    def presentation(self) -> Presentation:
        return self.batches.presentation

    def columns(self, names: Sequence[str]) -> list[Column]:
        listed = self.batches.categories
        return [
            replace(column, labels=listed[column.name]) if column.name in listed else column
            for column in map(self.empty.column, names)
        ]

    def tables(self, what: str | None = None) -> Iterator[tuple[int, Table]]:
        """Each block with the number of its first row; an error instead of a block that is not what it was."""
        position = 0
        kept = (frames.read_stored(block, self.batches.schema) for block in self.kept)
        for table in ahead(kept) if self.kept.is_whole else self._read_again():
            yield position, table
            position += table.rows
            if what is not None:
                self.request.progress(what, position, self.n_rows)
        if position != self.n_rows:
            raise self._changed(f"there are {position} rows now, {self.n_rows} at the first reading")

    def _read_again(self) -> Iterator[Table]:
        """The blocks of the source, each verified before it is used."""
        position = 0
        for number, block in enumerate(_blocks(self.batches, self.names)):
            table = frames.read_stored(block, self.batches.schema)
            known = self.digests[number] if number < len(self.digests) else None
            if block_digest(table, self.request.verified, self.key) != known:
                raise self._changed(f"rows from number {position} on are not those of the first reading")
            yield table
            position += table.rows

    def select(
        self, split: Split | None, unit: ContributionBound | None, groups: GroupHoldout | None, bits: Bits
    ) -> RowSelection:
        if groups is not None:
            raise InternalError("a stream has no groups.", "This is a fault in dipriv: please report it.")
        if split is None and unit is None:
            return RowSelection(self.n_rows, n_released=self.n_rows)
        held, keys, scores = [], [], []
        by_key = split is not None and split.by is not None
        for position, table in self.tables("selecting rows"):
            held.append(np.zeros(table.rows, dtype=bool) if split is None else split.held_out(table, position))
            if split is not None and by_key:
                scores.append(split.scores(table))
            if unit is not None:
                keys.append(unit_keys(unit, table, bits, position))
        out = np.concatenate(held)
        bound = None
        if unit is not None:
            bound = BoundedRows.of(unit, [np.concatenate(part) for part in zip(*keys, strict=True)])
        inside = np.ones(self.n_rows, dtype=bool) if bound is None else bound.kept
        return RowSelection(
            self.n_rows,
            int(out.sum()),
            int((out & inside).sum()),
            int((~out & inside).sum()),
            split,
            None if bound is None else bound.kept,
            persons=None if bound is None else numbers_of(bound.keys[~out & inside]),
            differing={} if bound is None else bound.differing,
            keys_digest=split.digest_of(np.concatenate(scores)) if split is not None and by_key else None,
        )

    def countable(self, selection: RowSelection, view: View | None = None) -> CountableRows:
        whole = selection.split is None
        side = selection.released_rows if whole else selection.reference_rows
        return CountedTables(
            selection.n_released if whole else selection.n_reference,
            lambda: (some if view is None else view(some) for _, some in self._selected(side, "learning")),
            self.label_counts if selection.n_released == self.n_rows else {},
        )

    def gather(self, selection: RowSelection) -> Table:
        parts = []
        for position, table in self.tables("gathering the hold-out"):
            rows = selection.reference_rows(table, position)
            parts.append((table if rows is None else table.take(rows)).selected_rows())
        return frames.read(pa.concat_tables(parts))

    def release(self, job: ReleaseJob) -> ReleasedBatches:
        return ReleasedBatches(self, job)

    def released_pairs(self, job: ReleaseJob) -> Iterator[tuple[Table, pa.Table]]:
        """Selected rows and what they are released as, block by block."""
        process, persons, sums = os.getpid(), job.persons(), self._weight_sums(job)

        def numbered() -> Iterator[tuple[int, Table]]:
            number = 0
            for _, some in self._selected(job.selection.released_rows, "releasing"):
                if os.getpid() != process:
                    raise forked()
                yield number, some
                number += some.rows

        def release(block: tuple[int, Table]) -> tuple[Table, pa.Table]:
            first, some = block
            typed = job.mechanism.typed(some)  # codes are cut, so that both sides can be compared
            return typed, job.mechanism.release(typed, job.keep, job.noise, first, persons=persons, sums=sums)

        if persons is None:
            yield from each_in_parallel(release, numbered())
        else:  # what a person has in common is drawn with the first of their rows
            yield from map(release, numbered())

    def _weight_sums(self, job: ReleaseJob) -> dict[str, Fraction] | None:
        """The sums of released weights that have a total, in a pass of their own."""
        if not job.mechanism.totals:
            return None
        number, persons, sums = 0, job.persons(), dict.fromkeys(job.mechanism.totals, Fraction(0))
        for _, some in self._selected(job.selection.released_rows, "adding up weights"):
            found = job.mechanism.weight_sums(some, job.noise, number, persons=persons)
            sums = {name: sums[name] + found[name] for name in sums}
            number += some.rows
        return sums

    def end_learning(self) -> None:
        """Nothing was left behind."""

    def close(self) -> None:
        """Nothing was left behind."""

    def _selected(self, side: Callable[[Table, int], Any], what: str) -> Iterator[tuple[int, Table]]:
        for position, table in self.tables(what):
            rows = side(table, position)
            if rows is None or rows.any():
                yield position, table if rows is None or rows.all() else table.take(rows)

    def _changed(self, how: str) -> SourceChangedError:
        return SourceChangedError(f"{self.batches.name} changed between two readings: {how}.", _REPEATABLE)


@dataclass(eq=False)
class ReleasedBatches:
    """Released rows that are made while they are read, in one pass over the source.

    Reading them again gives the same rows bit for bit, so it tells nothing new and costs no ε: the noise of a row is a
    function of this release's secret key and of the row's number, not drawn anew. That is safe because the row is the
    same, too: a source that changed is refused. Kept columns are as the source then has them. They cannot be pickled,
    nor read in another process.
    """

    _rows: StreamedRows = field(repr=False)
    _job: ReleaseJob = field(repr=False)
    _on_finish: Callable[[int], None] = field(repr=False, default=lambda n_rows: None)
    _on_failure: Callable[[BaseException], None] = field(repr=False, default=lambda error: None)
    _process: int = field(repr=False, default_factory=os.getpid)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the released table."""
        names, keys = {*self._job.mechanism.names, *self._job.keep}, self._job.keys
        return pa.schema(
            [
                pa.field(keys, pa.int64()) if column.name == keys else column
                for column in self._rows.batches.schema
                if column.name in names or column.name == keys
            ]
        )

    @property
    def presentation(self) -> Presentation:
        """How the source presents its table."""
        found = self._rows.presentation.without(self._job.keys)
        types = {column.name: column.type for column in self.schema}
        plain = {name for name, of in found.notations.items() if name not in types or of.is_plain(types[name])}
        return replace(found, notations={name: of for name, of in found.notations.items() if name not in plain})

    @property
    def n_rows(self) -> int:
        return self._job.selection.n_released

    def notify(self, on_finish: Callable[[int], None], on_failure: Callable[[BaseException], None]) -> None:
        """Call these when the rows were read to the end, or when reading them failed."""
        self._on_finish, self._on_failure = on_finish, on_failure

    def reader(self) -> pa.RecordBatchReader:
        """The released rows as a stream of Arrow batches."""
        return pa.RecordBatchReader.from_batches(self.schema, self._batches())

    def to_table(self) -> pa.Table:
        """All released rows, in memory."""
        return self.reader().read_all()

    def pairs(self) -> Iterator[tuple[Table, pa.Table]]:
        """(selected rows, released rows), block by block: the first of each is private."""
        if os.getpid() != self._process:
            raise forked()
        yield from self._rows.released_pairs(self._job)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            for _, released in self.pairs():
                yield from released.to_batches()
        except GeneratorExit:
            raise
        except BaseException as error:
            self._on_failure(error)
            raise
        self._on_finish(self.n_rows)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return iter(self.reader())

    def __reduce__(self) -> Any:
        raise TypeError("released batches hold the release's secret key and are not pickled or copied")

    def __repr__(self) -> str:
        return f"ReleasedBatches({self.n_rows} rows, {len(self.schema)} columns)"


def forked() -> InputError:
    """The error of a release that another process began: its noise is not known here."""
    return InputError(
        "this release was made by another process, whose noise is not known here.",
        "Read it where it was made: noise drawn anew would be a second release, with its own ε.",
    )


def _blocks(rows: TypedBatches, names: Sequence[str], look: Look = no_look) -> Iterator[pa.Table]:
    """Cut by the number of all columns of the source, so that every pass has the same blocks."""
    size = max(MIN_BLOCK_ROWS, min(MAX_BLOCK_ROWS, MAX_BLOCK_CELLS // len(rows.schema)))
    return cut(rows.coded_batches(names, look), size)


def open_file(file: File) -> StreamSource:
    """A file as a source of rows."""
    suggestion = None if file.path is None else file.path.stem
    return StreamSource(FileBatches.of(file), not file.format.has_types, suggestion)


def open_path(path: str | Path, dialect: Dialect = DETECTED, otherwise: Dialect | None = None) -> StreamSource:
    """A file of any format, a folder of Parquet files, or a pattern such as people/*.parquet."""
    if Path(path).is_file():
        return open_file(File.at(path, None, dialect, otherwise))
    refuse_unused("folders of Parquet files", dialect)
    return _of_folders(parquet_files(str(path)))


def open_lazy_frame(frame: Any) -> StreamSource:
    """A lazy polars query."""
    return _of_folders(lazy_frame(frame))


def open_dataset(data: Any) -> StreamSource:
    """A pyarrow Dataset."""
    return _of_folders(data_set(data))


def _of_folders(rows: BatchSource) -> StreamSource:
    return StreamSource(rows, in_folders=rows.in_folders)


def open_function(function: Callable[[], Any]) -> StreamSource:
    """A function that returns a fresh iterator of record batches each time."""
    return StreamSource(batch_function(function))
