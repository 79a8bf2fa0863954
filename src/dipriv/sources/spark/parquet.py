"""Parquet files on Spark, read and written by the workers themselves: Spark hands out ranges of rows, and sees no row.

All passes but the first read the blocks that the first packed, the release included, and each range becomes a file of
the release. So a release has the rows of the first pass, in the order of the files, and its files have numbers of rows
that no private row changes. Releases with a hold-out and those of tables whose types Spark and Arrow read differently
go through Spark's own reader (`SparkRows`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dipriv._base.table_fingerprint import TableFingerprint
from dipriv._random.bits import Bits
from dipriv._tables.frames import Column, Table
from dipriv._tables.presentation import Presentation
from dipriv._version import __version__
from dipriv.errors import InternalError
from dipriv.sources.contribution_bound import ContributionBound
from dipriv.sources.holdout import GroupHoldout, Split
from dipriv.sources.protocol import CountableRows, ReleaseJob, RowSelection, Scan, View
from dipriv.sources.spark import ReleasedParts
from dipriv.sources.spark.even_parts import PART_ROWS
from dipriv.sources.spark.frame import (
    PackedRows,
    SparkRows,
    SparkSource,
    collected,
    fingerprint_of_parts,
    new_name,
    parts_of,
    task_cores,
    without_data,
    worker_errors,
)
from dipriv.sources.spark.ranges import PartWriter, RangeReader, RowRange, ranges_of
from dipriv.sources.spark.tasks import FirstPass, Layout, Pack, Packed, Work, as_worker
from dipriv.sources.spark.workspace import Workspace, jobs

TASKS_PER_CORE, MAX_TASK_RANGES = 3, 8
"""A task has several ranges, one after the other, where there are many of them: each task costs time by itself."""


@dataclass(frozen=True, eq=False)
class ParquetSource(SparkSource):
    """Also where the files are; `frame` is the DataFrame of the same files."""

    paths: tuple[Path, ...] = ()

    def scan(self, request: Scan) -> SparkRows | RangedRows:  # type: ignore[override]
        empty = self.empty(request)
        files = self._readable(request, empty.native.schema)
        if files is None:
            return self.scanned(request, empty, collected, SparkRows.read)
        return self.scanned(request, empty, files.collected, files.read)

    def _readable(self, request: Scan, types: pa.Schema) -> ParquetRanges | None:
        """The files, where all rows are released and Arrow has the types of the columns that Spark has."""
        if not request.learns_from_all or not self.paths:
            return None
        schema = pq.read_schema(self.paths[0])
        if schema.names != self.frame.columns:  # names of folders give Spark further columns
            return None
        if any(schema.field(name).type != types.field(name).type for name in request.used):
            return None
        ranges = ranges_of(self.paths, PART_ROWS)
        return None if ranges is None else ParquetRanges(self.frame.sparkSession, tuple(schema.names), ranges)


@dataclass(frozen=True, eq=False)
class ParquetRanges:
    """Ranges of rows that the workers read."""

    session: Any = field(repr=False)
    names: tuple[str, ...]
    ranges: Sequence[RowRange] = field(repr=False)

    def read(self, frame: Any, every: Any, empty: Table, request: Scan) -> RangedRows:
        """The first pass, over the files instead of DataFrames of their columns."""
        return RangedRows.read(self, empty, request)

    def collected(self, frame: Any, work: Work, schema: Any) -> pa.Table:
        """What the workers make of the columns of this DataFrame, brought to the driver."""
        context = self.session.sparkContext
        with Workspace(context) as workspace, jobs(context), worker_errors():
            made = self.mapped(work, frame.columns, new_name(frame.columns), workspace).collect()
        names = [part.partition(" ")[0] for part in schema.split(", ")]
        return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in made])

    def mapped(self, work: Work, names: Sequence[str], marker: str, workspace: Workspace) -> Any:
        """An RDD of the rows, as tuples, that the workers make from the batches of these columns and of marks."""
        context = self.session.sparkContext
        cores, shared = task_cores(context), workspace.broadcast((RangeReader(tuple(names), marker), work))

        def made(ranges: Iterator[RowRange]) -> Iterator[tuple[Any, ...]]:
            read, asked = shared.value
            with as_worker(cores):
                for batch in asked(read(ranges)):
                    yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

        tasks = max(
            -(-len(self.ranges) // MAX_TASK_RANGES), min(len(self.ranges), TASKS_PER_CORE * context.defaultParallelism)
        )
        return context.parallelize(self.ranges, tasks).mapPartitions(made)


@dataclass(frozen=True, eq=False)
class RangedRows:
    """The rows after the first pass: packed blocks on the workers' disks, until `close`."""

    files: ParquetRanges = field(repr=False)
    empty: Table = field(repr=False)
    layout: Layout
    packs: Any = field(repr=False)
    fingerprint: TableFingerprint | None
    _workspace: Workspace = field(repr=False)

    @classmethod
    def read(cls, files: ParquetRanges, empty: Table, request: Scan) -> RangedRows:
        """The first pass; a ledger recognizes the data set by all columns, released or not."""
        used = tuple(name for name in files.names if name in {*request.used})
        every = used if request.fingerprint is None else files.names
        key, marker = os.urandom(32), new_name(files.names)
        seen_by = None if request.fingerprint is None else request.fingerprint.key
        reading = FirstPass(marker, used, key, seen_by, packed=True)
        workspace = Workspace(files.session.sparkContext)
        try:
            packs = workspace.persist(files.mapped(reading, every, marker, workspace))
            with jobs(workspace.context), worker_errors():
                found = sorted(packs.map(without_data).collect())
            layout = Layout(marker, used, key, parts_of(found))
            fingerprint = None if seen_by is None else fingerprint_of_parts(found, seen_by, every)
        except BaseException:
            workspace.close()
            raise
        own = [place for place, name in enumerate(empty.names) if name in used]
        schema = pa.schema([empty.native.schema.field(place) for place in own])
        return cls(files, Table(schema.empty_table(), "pyarrow", used, 0), layout, packs, fingerprint, workspace)

    @property
    def n_rows(self) -> int:
        return self.layout.n_rows

    @property
    def presentation(self) -> Presentation:
        return Presentation()

    def columns(self, names: Sequence[str]) -> list[Column]:
        return [self.empty.column(name) for name in names]

    def select(
        self, split: Split | None, unit: ContributionBound | None, groups: GroupHoldout | None, bits: Bits
    ) -> RowSelection:
        if split is not None or unit is not None or groups is not None:
            raise InternalError("all rows were to be released.", "This is a fault in dipriv: please report it.")
        return RowSelection(self.n_rows, n_released=self.n_rows)

    def countable(self, selection: RowSelection, view: View | None = None) -> CountableRows:
        return PackedRows(self, selection.n_released, None, view)

    def gather(self, selection: RowSelection) -> Table:
        raise InternalError("no rows are held out.", "This is a fault in dipriv: please report it.")

    def release(self, job: ReleaseJob) -> ReleasedParts:
        """Nothing is released before it is written, nor after `close`."""
        return ReleasedParts(self.files.session, self._writing(job))

    def _writing(self, job: ReleaseJob) -> Callable[[Path], None]:
        def write(folder: Path) -> None:
            context = self._workspace.context
            packed = Packed(self.empty.native.schema, self.layout, None)
            asked = PartWriter(
                packed, job.mechanism, job.keep, job.noise.repeatable(), str(folder), PART_ROWS, __version__
            )
            cores = task_cores(context)
            folder.mkdir()
            with Workspace(context) as workspace, jobs(context), worker_errors():
                shared = workspace.broadcast(asked)

                def written(packs: Iterator[Pack]) -> Iterator[int]:
                    with as_worker(cores):
                        yield from shared.value(packs)

                self.packs.mapPartitions(written).collect()
            for left in folder.glob(".*.part"):  # of a task that was killed and done again
                left.unlink()

        return write

    def end_learning(self) -> None:
        """The packed blocks are released from, too."""

    def close(self) -> None:
        """Remove packed blocks from all disks."""
        self._workspace.close()
