"""The order of released rows on Spark, and the parts that they come in: neither depends on private cells.

Spark cuts files at numbers of bytes, reads larger files first, and sorts rows by all their cells before it deals them
out (`repartition`). So how many rows a partition has tells how long rows are, and the order of rows tells of cells,
those of columns included that are not released. Here a row's place follows from random bits alone: released rows come
in a random order, and new identifiers number them in it. Those of a seeded release, which protects nothing, come in
Spark's order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dipriv._random.bits import Bits
from dipriv._random.streams import Stream
from dipriv.sources.spark.names import new_name
from dipriv.sources.spark.workspace import jobs

PART_ROWS = 1 << 20
"""Rows of a part: about as many in a random order, else exactly as many, but for the last."""
_ROW_OF_PARTITION = (1 << 33) - 1
"""The bits of Spark's `monotonically_increasing_id` that number the rows of a partition; the others number that."""


@dataclass(frozen=True)
class Places:
    """In which part each released row is, and where it is there."""

    parts: int
    part_rows: int

    @classmethod
    def of(cls, n_rows: int) -> Places:
        """Parts for this number of rows."""
        return cls(max(1, -(-n_rows // PART_ROWS)), PART_ROWS)

    def __call__(self, first: int, count: int, bits: Bits) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The part of each of `count` rows, the first of which has this number, and what parts are sorted by."""
        if bits.secure:
            words = bits.child(Stream.PLACES).blocks(0, first, count)
            part = (words[:, 0] >> np.uint64(32)) * np.uint64(self.parts) >> np.uint64(32)
            return part.astype(np.int32), words[:, 1].copy().view(np.int64)
        numbers = np.arange(first, first + count, dtype=np.int64)
        return (numbers // self.part_rows).astype(np.int32), numbers

    def firsts(self, n_rows: int, bits: Bits) -> list[int]:
        """The number of the first of these rows in each part, in the order that they are released in."""
        sizes = np.zeros(self.parts, dtype=np.int64)
        for first in range(0, n_rows, PART_ROWS):
            part, _ = self(first, min(PART_ROWS, n_rows - first), bits)
            sizes += np.bincount(part, minlength=self.parts)
        return list(accumulate(sizes.tolist()[:-1], initial=0))


def in_parts(
    frame: Any, parts: int, columns: Sequence[str], identifiers: Sequence[str] = (), firsts: Sequence[int] = ()
) -> Any:
    """The rows in their parts and places, which these two columns of the DataFrame have; they are left out.

    New identifiers, which come in Spark's order, become the numbers of the rows in theirs; `firsts` are the numbers of
    the first row of each part, from 0.
    """
    from pyspark.sql import functions

    part, place = columns
    number_of_part = functions.col(part) + 1
    key = functions.element_at(functions.lit(_keys(frame.sparkSession, parts)), number_of_part)
    row = new_name(frame.columns)
    placed = frame.repartition(parts, key).sortWithinPartitions(place)
    placed = placed.withColumn(row, functions.monotonically_increasing_id())
    if identifiers:
        first = functions.element_at(functions.lit([*firsts]).cast("array<bigint>"), number_of_part)
        number = first + functions.col(row).bitwiseAND(_ROW_OF_PARTITION) + 1
        placed = placed.withColumns({name: number.cast(frame.schema[name].dataType) for name in identifiers})
    # true of every row, which Spark does not know: it leaves out a sort below a join, another sort or partitionBy
    return placed.where(functions.col(row) >= 0).drop(part, place, row)


def _keys(session: Any, parts: int) -> list[int]:
    """A number for each part, which Spark's hash of it leads to."""
    from pyspark.sql import functions

    found: dict[int, int] = {}
    start, step = 0, 32 * parts
    while len(found) < parts:
        some = session.range(start, start + step, numPartitions=1).select(functions.col("id").cast("int").alias("key"))
        places = some.select("key", functions.pmod(functions.hash("key"), functions.lit(parts)).alias("part"))
        with jobs(session.sparkContext):
            found = {row["part"]: row["key"] for row in places.collect()} | found
        start += step
    return [found[part] for part in range(parts)]
