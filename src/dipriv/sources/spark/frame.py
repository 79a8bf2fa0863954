"""The rows of a Spark DataFrame as the driver sees them: numbered once, then read by jobs that send back little.

What a job needs goes to the workers as a broadcast, never as text in a plan. Each task sends little back: counts of its
rows, or labels. The driver holds the counts, 16 bytes for each 65,536 rows, and a hold-out, where there is one.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa

from dipriv import errors
from dipriv._arrays import Counts
from dipriv._tables import frames as tables
from dipriv._tables.arrow import distinct_labels
from dipriv._tables.frames import Table
from dipriv.errors import DiprivError, InputError, SchemaError
from dipriv.sources.holdout import Split
from dipriv.sources.protocol import Counter, Labels
from dipriv.sources.spark.tasks import (
    REPEATABLE,
    FirstReading,
    HeldRows,
    HoldOut,
    Layout,
    Pack,
    Packed,
    Part,
    Work,
    add_up,
    labels_of,
    on_worker,
    sums_of,
)

MOST_HELD = 5_000_000
"""More hold-out rows than that are not brought to the driver."""
MOST_LABELS = 1_000_000


@dataclass(frozen=True, eq=False)
class Numbered:
    """A DataFrame with a further column of marks that rise from row to row, and where each task's rows start.

    A mark is made of the partition's number in the DataFrame's own plan and the row's place there: it stays the same in
    a task that is tried again or runs twice, and where a later step puts partitions into one task (coalesce, union).
    """

    frame: Any = field(repr=False)
    layout: Layout
    packs: Any = field(repr=False)
    _forget: ExitStack = field(repr=False)

    @classmethod
    def read(cls, frame: Any, noted: tuple[str, ...], key: bytes, *, clips_infinities: bool, packed: bool) -> Numbered:
        """The first reading: count, note, and refuse infinite numbers unless they are held to finite ones.

        Packed, the rows stay on the workers' disks as blocks of bytes, for the passes that learn a private reference.
        """
        from pyspark import StorageLevel
        from pyspark.sql import functions

        marker = next(name for name in _names() if name not in {column.lower() for column in frame.columns})
        marked = frame.select("*", functions.monotonically_increasing_id().alias(marker))
        some = marked.select(*map(quoted, (*noted, marker)))
        reading = FirstReading(marker, noted, key, clips_infinities, packed)
        made, shared = mapped(some, reading, FirstReading.schema)
        packs = made.rdd.map(tuple)
        with ExitStack() as forget:
            forget.callback(shared.destroy)
            if packed:
                forget.callback(packs.persist(StorageLevel.DISK_ONLY).unpersist)
            with told():
                found = sorted(packs.map(_without_data).collect())
            layout = Layout(marker, noted, key, _parts(found))
            return cls(marked, layout, packs, forget.pop_all() if packed else ExitStack())

    @property
    def rows(self) -> int:
        return self.layout.rows

    def forget(self) -> None:
        """Remove the blocks from the workers' disks."""
        self._forget.close()

    def fingerprint(self, key: bytes) -> bytes:
        """16 bytes for all rows in their order, cut as they are, for a ledger's key that the layout has, too."""
        parts = sorted(self.layout.parts.items())
        text = b"".join(b"%d:%b" % (part.rows, part.digests) for _, part in parts)
        return hmac.digest(key, text, "sha256")[:16]

    def held_rows(self, split: Split) -> dict[int, int]:
        """{mark of a task's first row: how many of its rows are held out}."""
        found = collected(self.some(), HeldRows(self.layout, split), HeldRows.schema)
        return {line["mark"]: line["held"] for line in found.to_pylist()}

    def hold_out(self, split: Split, held: int, names: Sequence[str]) -> Table:
        """The rows that are held out, brought to the driver: they are the reference."""
        if held > MOST_HELD:
            raise InputError(
                f"the hold-out has {held:,} rows; the driver takes up to {MOST_HELD:,}.",
                "Hold out a smaller share, use the private reference, or give a public table.",
            )
        some = self.some()
        schema = some.select(*map(quoted, self.layout.noted)).schema
        rows = collected(some, HoldOut(self.layout, split), schema)
        if rows.num_rows != held:
            raise InputError(f"the hold-out has {rows.num_rows:,} rows now, {held:,} before.", REPEATABLE)
        return tables.read(rows.select(list(names)))

    def some(self) -> Any:
        """Only the columns that are noted, and the marks."""
        return self.frame.select(*map(quoted, (*self.layout.noted, self.layout.marker)))


@dataclass(frozen=True, eq=False)
class SparkRows:
    """The rows that a private reference is learned from, packed; each pass is one job."""

    numbered: Numbered
    n_rows: int
    split: Split | None = None

    def count(self, counter: Counter) -> list[Counts]:
        """The sums over all rows: of each task, then added up, on the workers where there are many."""
        cores = task_cores(self.numbered.frame.sparkSession.sparkContext)
        with self._shared(counter) as shared, told():

            def sums(packs: Iterator[Pack]) -> Iterator[tuple[int, list[Counts]]]:
                packed, asked = shared.value
                return sums_of(packed, asked, cores, packs)

            rows, found = self.numbered.packs.mapPartitions(sums).treeReduce(add_up)
        if rows != self.n_rows:
            raise InputError(f"there are {rows:,} rows now, {self.n_rows:,} at the first reading.", REPEATABLE)
        return list(found)

    def labels(self, names: Sequence[str]) -> Labels:
        """All distinct labels, found by the workers."""
        asked = tuple(names)
        with self._shared(asked) as shared, told():

            def labels(packs: Iterator[Pack]) -> Iterator[tuple[int, str]]:
                packed, asked = shared.value
                return labels_of(packed, asked, packs)

            found = self.numbered.packs.mapPartitions(labels).distinct().take(MOST_LABELS + 1)
        if len(found) > MOST_LABELS:
            raise SchemaError(
                f"the columns {', '.join(map(repr, names))} have more than {MOST_LABELS:,} labels.",
                "Drop the one that is free text or a key, keep it as it is, unprotected (keep=[...]), or declare its "
                "public labels in a schema: Categorical(levels=...).",
            )
        listed: dict[str, list[str]] = {name: [] for name in names}
        for place, label in found:
            listed[asked[place]].append(label)
        return {name: distinct_labels(pa.array(labels, pa.string())) for name, labels in listed.items()}

    @contextmanager
    def _shared(self, thing: Any) -> Iterator[Any]:
        """What a pass needs, on the workers: which rows, and this."""
        packed = Packed(self.numbered.layout, self.split)
        shared = self.numbered.frame.sparkSession.sparkContext.broadcast((packed, thing))
        try:
            yield shared
        finally:
            shared.destroy()


def _without_data(pack: Pack) -> tuple[int, int, int, bytes, str]:
    mark, place, rows, digest, infinite, _ = pack
    return mark, place, rows, bytes(digest), infinite or ""


def _parts(found: list[tuple[int, int, int, bytes, str]]) -> dict[int, Part]:
    """Where each task's rows stand in the table, from what is known of its blocks, in their order."""
    if not found:
        raise InputError("the table has no rows.", "Pass a table with at least one row.")
    if odd := sorted({infinite for *_, infinite in found} - {""}):
        raise InputError(
            f"column {odd[0]!r} has infinite numbers.",
            "Leave these rows or the column out, or use the private reference.",
        )
    if len({block[:2] for block in found}) < len(found):
        raise InputError("two tasks read the same rows.", REPEATABLE)
    parts, first = dict[int, Part](), 0
    for mark, blocks in groupby(found, key=itemgetter(0)):
        sizes, digests = zip(*((rows, digest) for _, _, rows, digest, _ in blocks), strict=True)
        parts[mark] = Part(first, sum(sizes), b"".join(digests))
        first += sum(sizes)
    return parts


def task_cores(context: Any) -> int:
    """How many cores a task has."""
    return int(context.getConf().get("spark.task.cpus", "1"))


def mapped(frame: Any, work: Work, schema: Any) -> tuple[Any, Any]:
    """The frame of this schema that the workers make, lazily, and the broadcast that tells them how."""
    from pyspark.sql.types import StructField, StructType

    context = frame.sparkSession.sparkContext
    cores = task_cores(context)
    names = frame.columns
    shared = context.broadcast(work)

    def privatize(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return on_worker(shared.value, names, cores, batches)

    made = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    numbered = [StructField(f"c{place}", field.dataType, field.nullable) for place, field in enumerate(made)]
    given = frame.toDF(*(f"c{place}" for place in range(len(names))))
    return given.mapInArrow(privatize, StructType(numbered)).toDF(*made.names), shared


def collected(frame: Any, work: Work, schema: Any) -> pa.Table:
    """What the workers make, brought to the driver."""
    made, shared = mapped(frame, work, schema)
    try:
        with told():
            return made.toArrow()
    finally:
        shared.destroy()


@contextmanager
def told() -> Iterator[None]:
    """An error that dipriv raised on a worker, as itself."""
    try:
        yield
    except Exception as error:
        found = re.search(r"dipriv\.errors\.(\w+): (.+)\n(.+)", str(error))
        kind = getattr(errors, found[1], None) if found else None
        if found is None or not (isinstance(kind, type) and issubclass(kind, DiprivError)):
            raise
        raise kind(found[2].strip(), found[3].strip()) from None


def quoted(name: str) -> str:
    """A column's name as Spark's expressions take it, whatever it holds."""
    return "`" + name.replace("`", "``") + "`"


def _names() -> Iterator[str]:
    yield "mark"
    yield from (f"mark{number}" for number in range(1, 1 << 20))
