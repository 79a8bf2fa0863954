"""Parquet files on Spark, read and written by the workers themselves: Spark hands out ranges of rows, and sees no row.

All passes but the first read the blocks that the first packed, the release included, and each range becomes a file of
the release. So a release has the rows of the first pass, in the order of the files, and its files have numbers of rows
that no private row changes. Releases with a hold-out, and those of tables whose types Spark and Arrow read differently
or whose text is read as other types, go through Spark's own reader (`SparkRows`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from dipriv._base.table_fingerprint import TableFingerprint
from dipriv._random.bits import Bits
from dipriv._tables.arrow import is_text, shown_type
from dipriv._tables.column_types import Question, TypeRules, ask, check_given, settle_text
from dipriv._tables.frames import Column, Table
from dipriv._tables.presentation import Presentation
from dipriv._tables.value_counts import ValueCounts
from dipriv._version import __version__
from dipriv.errors import InternalError
from dipriv.sources.contribution_bound import ContributionBound
from dipriv.sources.holdout import GroupHoldout, Split
from dipriv.sources.protocol import CountableRows, ReleaseJob, RowSelection, Scan, View
from dipriv.sources.spark import ReleasedParts
from dipriv.sources.spark.even_parts import PART_ROWS
from dipriv.sources.spark.frame import (
    LIMITS,
    PackedRows,
    SparkRows,
    SparkSource,
    check_distinguishable,
    fingerprint_of,
    first_packs,
    no_rows,
    parts_of,
    summary_of,
    task_cores,
    worker_errors,
)
from dipriv.sources.spark.interrupts import after_spark
from dipriv.sources.spark.names import new_name
from dipriv.sources.spark.ranges import PartWriter, RangeReader, RowRange, ranges_of
from dipriv.sources.spark.tasks import FirstPass, Layout, Pack, Packed, Work, as_worker
from dipriv.sources.spark.workers import check_workers
from dipriv.sources.spark.workspace import Workspace, jobs

SAME_TYPES = (
    *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
    *(pa.string(), pa.date32(), pa.timestamp("us")),
)
"""Types that Spark's reader and Arrow's have in common, besides decimals and times of the session's zone."""
TASKS_PER_CORE, MAX_TASK_RANGES = 3, 8
"""A task has several ranges, one after the other, where there are many of them: each task costs time by itself."""


@dataclass(frozen=True, eq=False)
class ParquetSource:
    """A `RowSource` of Parquet files with the same columns; releases `ReleasedParts`, or what Spark's reader does."""

    session: Any = field(repr=False)
    name: str
    paths: tuple[Path, ...]
    through_spark: Callable[[], SparkSource] = field(repr=False)
    """Opens a DataFrame of the same files."""
    suggested_dataset: str | None = None
    writes_folder: bool = True
    releases_later: bool = False
    limits: Mapping[str, str] = field(repr=False, default_factory=lambda: LIMITS)
    schema: pa.Schema = field(init=False, repr=False)

    def __post_init__(self) -> None:
        schema = pq.read_schema(self.paths[0])
        check_distinguishable(schema.names)
        object.__setattr__(self, "schema", schema)

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(self.schema.names)

    def infers_types(self, names: Sequence[str], rules: TypeRules) -> bool:
        return any(rules.is_settled_by_cells(name, is_text=True) for name in self._texts(names))

    def scan(self, request: Scan) -> SparkRows | RangedRows:
        """Workers read the files, where all rows are released and text stays text."""
        is_read_anew = any(name in request.types.given for name in self._texts(request.privatized))
        ranges = None
        if request.learns_from_all and not is_read_anew and all(map(self._is_of_spark, request.used)):
            ranges = ranges_of(self.paths, PART_ROWS)
        if ranges is None:
            return self.through_spark().scan(request)
        if not ranges:
            raise no_rows()
        with after_spark():
            check_workers(self.session.sparkContext)
        others = [name for name in request.privatized if name not in self._texts(request.privatized)]
        check_given(request.types, {name: shown_type(self.schema.field(name).type) for name in others})
        return RangedRows.read(ParquetRanges(self.session, self.schema, ranges), request)

    def _texts(self, names: Sequence[str]) -> list[str]:
        """The columns among these that Spark reads as text."""
        types = {name: self.schema.field(name).type for name in names}
        return [name for name, of in types.items() if is_text(of.value_type if pt.is_dictionary(of) else of)]

    def _is_of_spark(self, name: str) -> bool:
        """Whether Spark's reader has this column in the same type."""
        of = self.schema.field(name).type
        if pt.is_timestamp(of) and of.tz is not None:
            return bool(of == pa.timestamp("us", self.session.conf.get("spark.sql.session.timeZone")))
        return of in SAME_TYPES or bool(pt.is_decimal128(of))


@dataclass(frozen=True, eq=False)
class ParquetRanges:
    """Ranges of rows that the workers read."""

    session: Any = field(repr=False)
    schema: pa.Schema
    ranges: Sequence[RowRange] = field(repr=False)

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
    """The rows after the first pass: packed blocks on the workers, until `close`."""

    files: ParquetRanges = field(repr=False)
    empty: Table = field(repr=False)
    layout: Layout
    packs: Any = field(repr=False)
    fingerprint: TableFingerprint | None
    label_counts: Mapping[str, ValueCounts] = field(repr=False)
    _workspace: Workspace = field(repr=False)

    @classmethod
    def read(cls, files: ParquetRanges, request: Scan) -> RangedRows:
        """The first pass; a ledger recognizes the data set by all columns, released or not.

        Columns of text that look like numbers or dates are asked about.
        """
        names, rules = files.schema.names, request.types
        schema = pa.schema([pa.field(of.name, of.type) for of in files.schema if of.name in {*request.used}])
        used = tuple(schema.names)
        every = used if request.fingerprint is None else tuple(names)
        judged = tuple(name for name in request.privatized if is_text(schema.field(name).type) and rules.judges(name))
        key, marker = os.urandom(32), new_name(names)
        seen_by = None if request.fingerprint is None else request.fingerprint.key
        reading = FirstPass(marker, used, key, seen_by, True, request.labels_of, judged, rules.all_marks)
        workspace = Workspace(files.session.sparkContext)
        with workspace.kept():
            packs, found = first_packs(files.mapped(reading, every, marker, workspace), workspace, packed=True)
            layout = Layout(marker, used, key, parts_of(found))
            summary = summary_of(found, seen_by, every)
            settled = [settle_text(name, counts) for name, counts in summary.classes.items()]
            ask([of for of in settled if isinstance(of, Question)])
            empty = Table(schema.empty_table(), "pyarrow", used, 0)
            return cls(files, empty, layout, packs, fingerprint_of(summary), summary.labels, workspace)

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
        return PackedRows(self, selection.n_released, None, view, self.label_counts)

    def gather(self, selection: RowSelection) -> Table:
        raise InternalError("no rows are held out.", "This is a fault in dipriv: please report it.")

    def release(self, job: ReleaseJob) -> ReleasedParts:
        """Nothing is released before it is written, nor after `close`."""
        return ReleasedParts(self.files.session, self._writing(job))

    def _writing(self, job: ReleaseJob) -> Callable[[Path], None]:
        @after_spark()
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
        """Remove packed blocks from all workers."""
        self._workspace.close()
