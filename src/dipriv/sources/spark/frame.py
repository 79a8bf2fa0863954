"""The rows of a Spark DataFrame as the driver sees them: numbered once, then read by jobs that send back little.

One job counts the rows of each partition, so that every row has a number. A private reference is learned by jobs that
send counts to the driver; a hold-out is brought there, as it is the reference. Then the fitted mechanism goes to the
workers, and Spark releases partition by partition, through Arrow, when the result is used.

A task may run twice: it failed, a worker was lost, Spark tried a slow task elsewhere, or the result is used again. The
noise of a row is a function of the release's secret key and the row's number alone, so each run gives the same row
again. That is safe: whoever sees the same release twice has learned nothing that the first did not tell, whereas noise
drawn anew would be a second release, with an ε of its own. Different rows have different numbers and so bits that are
independent of each other. Other values under the same number would tell how they differ; so each block of rows is
verified against its digest of the first pass before it is released, and a task stops if it is not the same. That all
workers compute alike, bit for bit, needs the same versions of dipriv and numpy on processors of one kind.

What a job needs goes to the workers, which hold the private rows anyway, as a broadcast, never as text in a plan, log
or name. What jobs put on disks is removed when they end (`Workspace`); the broadcast of a released DataFrame, which is
computed when it is used, when Spark's Java process ends. For all that lies there meanwhile, set
spark.io.encryption.enabled where disks are not trusted. The driver holds the counts, 40 bytes for each 65,536 rows, and
a hold-out, where there is one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import accumulate, chain, groupby
from math import isqrt
from operator import itemgetter
from typing import Any, Protocol

import pyarrow as pa

from dipriv import errors
from dipriv._base.arrays import Counts
from dipriv._base.table_fingerprint import TableFingerprint
from dipriv._random.bits import Bits
from dipriv._tables import frames
from dipriv._tables.column_types import TypeRules
from dipriv._tables.frames import Column, Table
from dipriv._tables.presentation import Presentation
from dipriv._tables.value_counts import ValueCounts, frequent
from dipriv.errors import DiprivError, InputError, SchemaError, SourceChangedError
from dipriv.sources._errors import refuse_folders
from dipriv.sources.contribution_bound import ContributionBound
from dipriv.sources.holdout import GroupHoldout, Split
from dipriv.sources.protocol import CountableRows, Counter, ReleaseJob, RowSelection, Scan, View
from dipriv.sources.spark.even_parts import Places, in_parts
from dipriv.sources.spark.interrupts import after_spark
from dipriv.sources.spark.names import new_name, quoted
from dipriv.sources.spark.tasks import (
    REPEATABLE,
    FirstPass,
    HeldRows,
    HoldOut,
    Layout,
    Pack,
    Packed,
    PackFacts,
    Part,
    Releasing,
    RowsAndValues,
    Summary,
    Work,
    add_up,
    add_values,
    all_added,
    on_worker,
    sums_of,
    values_of,
)
from dipriv.sources.spark.types import Reading, settled_types, text_columns, with_types
from dipriv.sources.spark.workers import REMEDY, check_workers
from dipriv.sources.spark.workspace import Workspace, jobs

MAX_HELD_ROWS = 5_000_000
"""More hold-out rows than that are not brought to the driver."""
MAX_BUCKETS = 64
"""The most parts that the distinct values of all columns are divided into, for the workers to count."""
LIMITS = {
    "groups": "a reference per group needs the table on one machine. Use one reference for all rows.",
    "totals": "weights with a total need the sum of all released ones before the first leaves. Leave total out of the "
    "schema, and rescale the released weights.",
    "unit": "contribution bounding needs all rows of a unit on one machine. Leave unit out, or bound rows in Spark.",
    "sample": "a report needs the table on one machine. Use dipriv compare on some of the files.",
}


@dataclass(frozen=True, eq=False)
class SparkSource:
    """A `RowSource` of a Spark DataFrame; releases a lazy DataFrame of the same schema."""

    frame: Any = field(repr=False)
    name: str = "the DataFrame"
    all_text: bool = False
    """Whether columns have no types of their own, as in CSV files."""
    suggested_dataset: str | None = None
    writes_folder: bool = True
    releases_later: bool = False
    in_folders: tuple[str, ...] = ()
    """The columns that names of folders give."""
    limits: Mapping[str, str] = field(repr=False, default_factory=lambda: LIMITS)

    @classmethod
    def open(cls, frame: Any, **facts: Any) -> SparkSource:
        """A batch DataFrame of a classic session, with column names that Spark can distinguish."""
        if type(frame).__module__.startswith("pyspark.sql.connect."):
            raise InputError(
                "the DataFrame belongs to a Spark Connect session, which has no broadcasts for the release's key.",
                "Run dipriv in a classic session, on the driver (spark-submit).",
            )
        if frame.isStreaming:
            raise InputError("the DataFrame is a stream without an end.", "Release its files one after the other.")
        check_distinguishable(frame.columns)
        return cls(frame, **facts)

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(self.frame.columns)

    def infers_types(self, names: Sequence[str], rules: TypeRules) -> bool:
        texts = text_columns(self.frame, names)
        return any(rules.is_settled_by_cells(name, is_text=not self.all_text) for name in texts)

    def scan(self, request: Scan) -> SparkRows:
        """Number, count and digest the rows; for a private reference they stay with the workers as packed blocks.

        The columns that Arrow has no type for are refused if they are used, and before that workers that cannot run
        dipriv.
        """
        refuse_folders(request.privatized, self.in_folders)
        return SparkRows.read(*self._as_typed(request), request)

    @after_spark()
    def _as_typed(self, request: Scan) -> tuple[Any, Any, Table, Any, Reading | None]:
        """The columns to read, those that a ledger sees, their types here and in Spark, and how text is read."""
        check_workers(self.frame.sparkSession.sparkContext)
        session, asked = self.frame.sparkSession, {*request.used}
        known = _empty(session, self.frame.schema, asked).native.schema
        every = self.frame.select(*(quoted(column.name) for column in known if not pa.types.is_null(column.type)))
        used = self.frame.select(*(quoted(name) for name in self.frame.columns if name in asked))
        types = settled_types(used, request, all_text=self.all_text, collected=collected)
        schema = with_types(used.schema, types)
        empty = _empty(session, schema, asked)
        held = {name: empty.native.schema.field(name).type for name in types}
        reading = Reading(types, request.types.marks, held) if types else None
        return used if request.learns_from_all else every, every, empty, schema, reading


def check_distinguishable(names: Sequence[str]) -> None:
    """Refuse columns that Spark, which ignores upper and lower case, cannot distinguish."""
    lower = [name.lower() for name in names]
    if twice := [name for name in lower if lower.count(name) > 1]:
        raise InputError(
            f"column name {twice[0]!r} occurs {lower.count(twice[0])} times, but for upper and lower case.",
            "Rename one of them.",
        )
    if not lower:
        raise InputError("the table has no columns.", "Pass a table with at least one column.")


@dataclass(frozen=True, eq=False)
class SparkSelection(RowSelection):
    """Also the number, among the released rows, of the first row of each task."""

    first_released: Mapping[int, int] = field(repr=False, default_factory=dict)


@dataclass(frozen=True, eq=False)
class SparkRows:
    """A DataFrame with a further column of marks that rise from row to row, and where each task's rows start.

    A mark is made of the partition's number in the DataFrame's own plan and the row's place there: it stays the same in
    a task that is tried again or runs twice, and where a later step puts partitions into one task (coalesce, union).
    """

    frame: Any = field(repr=False)
    empty: Table = field(repr=False)
    layout: Layout
    packs: Any = field(repr=False)
    fingerprint: TableFingerprint | None
    label_counts: Mapping[str, ValueCounts] = field(repr=False)
    """Of all rows, for columns that have few labels and were counted in the first pass."""
    schema: Any
    """Spark's types of the columns that are verified, released or kept, where text is read as other types, too."""
    reading: Reading | None
    """How text is read as these."""
    _workspace: Workspace = field(repr=False)

    @classmethod
    def read(
        cls, frame: Any, every: Any, empty: Table, schema: Any, reading: Reading | None, request: Scan
    ) -> SparkRows:
        """The first pass. Packed, the rows stay with the workers as blocks of bytes, for learning.

        `every` has all columns that Arrow has a type for: a ledger recognizes the data set by them, released or not.
        All passes hand the same columns to Python: of others, Spark may make other partitions, by their bytes, and put
        rows in another order.
        """
        from pyspark.sql import functions

        packed, key = request.counted, os.urandom(32)
        fingerprint_key = None if request.fingerprint is None else request.fingerprint.key
        whole = frame if fingerprint_key is None else every
        marker = new_name(whole.columns)
        asked = FirstPass(marker, request.verified, key, fingerprint_key, packed, request.labels_of, reading=reading)
        workspace = Workspace(frame.sparkSession.sparkContext)
        with workspace.kept():
            marked = whole.select("*", functions.monotonically_increasing_id().alias(marker))
            packs, found = first_packs(mapped(marked, asked, FirstPass.schema, workspace).rdd, workspace, packed)
            layout = Layout(marker, request.verified, key, parts_of(found))
            summary = summary_of(found, fingerprint_key, every.columns)
            if not packed:
                workspace.close()
            seen = fingerprint_of(summary)
            return cls(marked, empty, layout, packs, seen, summary.labels, schema, reading, workspace)

    @property
    def n_rows(self) -> int:
        return self.layout.n_rows

    @property
    def presentation(self) -> Presentation:
        return Presentation()

    def columns(self, names: Sequence[str]) -> list[Column]:
        return [self.empty.column(name) for name in names]

    @after_spark()
    def select(
        self, split: Split | None, unit: ContributionBound | None, groups: GroupHoldout | None, bits: Bits
    ) -> SparkSelection:
        held = {} if split is None else self._held_rows(split)
        parts = self.layout.parts
        firsts = accumulate((part.n_rows - held.get(number, 0) for number, part in parts.items()), initial=0)
        out = sum(held.values())
        return SparkSelection(
            self.n_rows, out, out, self.n_rows - out, split, first_released=dict(zip(parts, firsts, strict=False))
        )

    def countable(self, selection: RowSelection, view: View | None = None) -> CountableRows:
        if selection.split is None:
            return PackedRows(self, selection.n_released, None, view, self.label_counts)
        return PackedRows(self, selection.n_reference, selection.split, view)

    @after_spark()
    def gather(self, selection: RowSelection) -> Table:
        """The rows that are held out, brought to the driver: they are the reference."""
        split, held = selection.split, selection.n_held_out
        assert split is not None  # noqa: S101
        if held > MAX_HELD_ROWS:
            raise InputError(
                f"the hold-out has {held:,} rows; the driver takes up to {MAX_HELD_ROWS:,}.",
                "Hold out a smaller share, use the private reference, or give a public table.",
            )
        schema = _bare_schema(self.schema, self.layout.verified)
        rows = collected(self.frame, HoldOut(self.layout, split), schema, self._verified, self.reading)
        if rows.num_rows != held:
            raise SourceChangedError(f"the hold-out has {rows.num_rows:,} rows now, {held:,} before.", REPEATABLE)
        return frames.read(rows)

    @after_spark()
    def release(self, job: ReleaseJob) -> Any:
        """A lazy DataFrame, in parts: nothing is released before it is used, nor after `close`."""
        from pyspark.sql.types import IntegerType, LongType

        assert isinstance(job.selection, SparkSelection)  # noqa: S101
        places, noise = Places.of(job.selection.n_released), job.noise.repeatable()
        work = Releasing(
            self.layout,
            job.mechanism,
            job.keep,
            noise,
            job.selection.split,
            job.selection.first_released,
            places,
        )
        released = {*job.mechanism.names, *job.keep}
        schema = _bare_schema(self.schema, [name for name in self.schema.names if name in released])
        columns = []
        for of in (IntegerType(), LongType()):
            columns.append(new_name(schema.names))
            schema = schema.add(columns[-1], of, nullable=False)
        used = (*self.schema.names, self.layout.marker)
        made = mapped(self.frame, work, schema, self._workspace, used, self.reading)
        identifiers = job.mechanism.anew
        firsts = places.firsts(job.selection.n_released, noise) if identifiers else ()
        return in_parts(made, places.parts, columns, identifiers, firsts)

    def end_learning(self) -> None:
        """Remove packed blocks from all workers."""
        self._workspace.close()

    def close(self) -> None:
        """Remove packed blocks, and what a released DataFrame needs, from all workers."""
        self._workspace.close()

    def _held_rows(self, split: Split) -> dict[int, int]:
        """{mark of a task's first row: how many of its rows are held out}."""
        found = collected(self.frame, HeldRows(self.layout, split), HeldRows.schema, self._verified, self.reading)
        return {line["mark"]: line["held"] for line in found.to_pylist()}

    @property
    def _verified(self) -> tuple[str, ...]:
        """The columns that are verified, and the marks."""
        return *self.layout.verified, self.layout.marker


class HasPacks(Protocol):
    """Rows that are packed, on the workers."""

    @property
    def packs(self) -> Any: ...

    @property
    def empty(self) -> Table: ...

    @property
    def layout(self) -> Layout: ...


@dataclass(frozen=True, eq=False)
class PackedRows:
    """The rows that a private reference is learned from, packed; each pass is one job."""

    rows: HasPacks
    n_rows: int
    split: Split | None = None
    view: View | None = None
    known_counts: Mapping[str, ValueCounts] = field(repr=False, default_factory=dict)

    @after_spark()
    def count(self, counter: Counter) -> list[Counts]:
        """The sums over all rows: of each task, then added up, by the workers in some parts where there are many."""
        packs = self.rows.packs
        cores = task_cores(packs.context)
        parts = isqrt(packs.getNumPartitions())
        with self._shared(counter) as (workspace, shared):

            def sums(number: int, packs: Iterator[Pack]) -> Iterator[tuple[int, tuple[int, list[Counts]]]]:
                packed, asked = shared.value
                return ((number % parts, found) for found in sums_of(packed, asked, cores, packs))

            made = packs.mapPartitionsWithIndex(sums)
            some = _added(made, parts, add_up, workspace) if parts > 2 else made.values()
            rows, found = reduce(add_up, some.collect())
        self._check(rows)
        return list(found)

    @after_spark()
    def value_counts(self, names: Sequence[str], at_least: int = 1) -> dict[str, ValueCounts]:
        """Those that the first pass did not count are added up by the workers, each a part of the values.

        The driver receives the frequent ones alone.
        """
        rest = [name for name in names if name not in self.known_counts]
        found = {**self.known_counts, **(self._value_counts(rest, at_least) if rest else {})}
        return frequent({name: found[name] for name in names}, at_least)

    def _value_counts(self, names: Sequence[str], at_least: int) -> dict[str, ValueCounts]:
        packs = self.rows.packs
        cores = task_cores(packs.context)
        buckets = min(packs.getNumPartitions(), MAX_BUCKETS)
        with self._shared(tuple(names)) as (workspace, shared):

            def values(packs: Iterator[Pack]) -> Iterator[tuple[int, RowsAndValues]]:
                packed, asked = shared.value
                return values_of(packed, asked, buckets, cores, packs)

            added = _added(packs.mapPartitions(values), buckets, add_values, workspace)
            found = added.map(lambda part: (part[0], frequent(part[1], at_least))).collect()
        every: RowsAndValues = reduce(add_values, found)
        rows, counts = every
        self._check(rows)
        return counts

    def _check(self, rows: int) -> None:
        if rows != self.n_rows:
            raise SourceChangedError(f"there are {rows:,} rows now, {self.n_rows:,} at the first reading.", REPEATABLE)

    @contextmanager
    def _shared(self, thing: Any) -> Iterator[tuple[Workspace, Any]]:
        """What a pass needs, on the workers: which rows, and this."""
        context = self.rows.packs.context
        schema = self.rows.empty.native.schema
        with Workspace(context) as workspace, jobs(context), worker_errors():
            yield workspace, workspace.broadcast((Packed(schema, self.rows.layout, self.split, self.view), thing))


def _added(pairs: Any, parts: int, add: Callable[[Any, Any], Any], workspace: Workspace) -> Any:
    """What pairs (number of the part, counts) have for each part, added up by the workers.

    Not by Spark's reduceByKey, which writes what exceeds a limit of memory to files that it does not encrypt.
    """
    shuffled = workspace.shuffle(pairs.partitionBy(parts, int))
    return shuffled.values().mapPartitions(partial(all_added, add))


def first_packs(made: Any, workspace: Workspace, packed: bool) -> tuple[Any, list[PackFacts]]:
    """The blocks of the first pass, persisted if they are packed, and what the driver has to know of each, in order.

    An accumulator brings that to the driver while the blocks are made: to ask for it in a job over persisted blocks,
    Spark would hand all of them to Python again. A part that is made again takes the place of the first.
    """
    heard = workspace.context.accumulator(dict[int, list[PackFacts]](), _FactsOfParts())

    def with_facts(number: int, packs: Iterator[Any]) -> Iterator[Pack]:
        facts = list[PackFacts]()
        for mark, place, rows, digest, summary, data in packs:
            facts.append((mark, place, rows, bytes(digest), bytes(summary)))
            yield mark, place, rows, digest, summary, data
        heard.add({number: facts})

    packs = made.mapPartitionsWithIndex(with_facts, preservesPartitioning=True)
    if packed:
        workspace.persist(packs)
    with jobs(workspace.context), worker_errors():
        packs._jrdd.count()
    found = sorted(chain.from_iterable(heard.value.values()))
    heard.value = {}
    return packs, found


class _FactsOfParts:
    """An `AccumulatorParam` of Spark: {number of a part: what is known of its blocks}."""

    def zero(self, value: dict[int, list[PackFacts]]) -> dict[int, list[PackFacts]]:
        return {}

    def addInPlace(  # noqa: N802
        self, one: dict[int, list[PackFacts]], other: dict[int, list[PackFacts]]
    ) -> dict[int, list[PackFacts]]:
        return {**one, **other}


def parts_of(found: list[PackFacts]) -> dict[int, Part]:
    """Where each task's rows stand in the table, from what is known of its blocks, in their order."""
    if not found:
        raise no_rows()
    if len({block[:2] for block in found}) < len(found):
        raise SourceChangedError("two tasks read the same rows.", REPEATABLE)
    parts, first = dict[int, Part](), 0
    for mark, blocks in groupby(found, key=itemgetter(0)):
        sizes, digests = zip(*((rows, digest) for _, _, rows, digest, _ in blocks), strict=True)
        parts[mark] = Part(first, sum(sizes), b"".join(digests))
        first += sum(sizes)
    return parts


def no_rows() -> InputError:
    return InputError("the table has no rows.", "Pass a table with at least one row.")


def summary_of(found: list[PackFacts], key: bytes | None, names: Sequence[str]) -> Summary:
    """What the first pass found in all rows, from what is known of their blocks, in their order."""
    parts = [Summary.from_bytes(summary, key, names) for *_, summary in found if summary]
    if not parts:
        raise no_rows()
    return reduce(Summary.then, parts)


def fingerprint_of(summary: Summary) -> TableFingerprint | None:
    """The fingerprint of all rows, whose order is Spark's and not the table's."""
    return None if summary.fingerprint is None else summary.fingerprint.result(is_ordered=False)


def _empty(session: Any, schema: Any, used: set[str]) -> Table:
    """A table without rows, of a DataFrame's names and types."""
    types = _arrow_types(session, schema.fields)
    for column in schema.fields:
        if column.name in used and column.name not in types:
            raise SchemaError(
                f"column {column.name!r} has type {column.dataType.simpleString().partition('<')[0]}, for which Arrow "
                "has none.",
                "Convert it, or leave it out with drop=[...].",
                command="Convert it, or leave it out with --drop.",
            )
    fields = [
        pa.field(name, types[name], schema[name].nullable) if name in types else pa.field(name, pa.null())
        for name in schema.names
    ]
    return Table(pa.schema(fields).empty_table(), "pyarrow", tuple(schema.names), 0)


def _arrow_types(session: Any, columns: Sequence[Any]) -> dict[str, pa.DataType]:
    """Arrow's types of Spark's columns, those that have one; all at once, else one by one."""
    from pyspark.sql.types import StructType

    try:
        found = session.createDataFrame([], StructType(list(columns))).toArrow().schema
    except Exception:
        if len(columns) == 1:
            return {}
        return {name: kind for column in columns for name, kind in _arrow_types(session, [column]).items()}
    return {column.name: column.type for column in found}


def _bare_schema(schema: Any, names: Sequence[str]) -> Any:
    """Of these columns, in this order, without metadata."""
    from pyspark.sql.types import StructField, StructType

    fields = {field.name: field for field in schema.fields}
    return StructType([StructField(name, fields[name].dataType, fields[name].nullable) for name in names])


def task_cores(context: Any) -> int:
    """How many cores a task has."""
    return int(context.getConf().get("spark.task.cpus", "1"))


def mapped(
    frame: Any,
    work: Work,
    schema: Any,
    workspace: Workspace,
    columns: Sequence[str] | None = None,
    reading: Reading | None = None,
) -> Any:
    """The frame of this schema that the workers make, lazily; the workspace has the broadcast that says how.

    The work is given these columns, in this order, or all, of the types that text is read as.
    """
    from pyspark.sql.types import StructField, StructType

    cores = task_cores(workspace.context)
    names = frame.columns
    asked = names if columns is None else list(columns)
    shared = workspace.broadcast((work, reading))

    def privatize(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        job, types = shared.value
        return on_worker(job, names, asked, types, cores, batches)

    made = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    numbered = [StructField(f"c{place}", field.dataType, field.nullable) for place, field in enumerate(made)]
    given = frame.toDF(*(f"c{place}" for place in range(len(names))))
    return given.mapInArrow(privatize, StructType(numbered)).toDF(*made.names)


def collected(
    frame: Any,
    work: Work,
    schema: Any,
    columns: Sequence[str] | None = None,
    reading: Reading | None = None,
) -> pa.Table:
    """What the workers make, of these columns or all, brought to the driver."""
    context = frame.sparkSession.sparkContext
    with Workspace(context) as workspace, jobs(context), worker_errors():
        return mapped(frame, work, schema, workspace, columns, reading).toArrow()


@contextmanager
def worker_errors() -> Iterator[None]:
    """Raise an error that dipriv raised on a worker as itself."""
    try:
        yield
    except Exception as error:
        if "No module named 'dipriv" in str(error):
            raise InputError("a worker's Python cannot import dipriv.", REMEDY) from None
        found = re.search(r"dipriv\.errors\.(\w+): (.+)\n(.+)", str(error))
        kind = getattr(errors, found[1], None) if found else None
        if found is None or not (isinstance(kind, type) and issubclass(kind, DiprivError)):
            raise
        raise kind(found[2].strip(), found[3].strip()) from None
