"""The order of released rows on Spark, and the parts that they come in: neither depends on private cells.

Spark cuts files at numbers of bytes, reads larger files first, and sorts rows by all their cells before it deals them
out (`repartition`). So how many rows a partition has tells how long rows are, and the order of rows tells of cells,
those of columns included that are not released. Here a row's place follows from random bits alone: released rows come
in a random order. Those of a seeded release, which protects nothing, come in Spark's order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dipriv._random.bits import Bits
from dipriv._random.streams import Stream

PART_ROWS = 1 << 20
"""Rows of a part: about as many in a random order, else exactly as many, but for the last."""


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


def in_parts(frame: Any, parts: int, columns: Sequence[str]) -> Any:
    """The rows in their parts and places, which these two columns of the DataFrame have; they are left out."""
    from pyspark.sql import functions

    part, place = columns
    key = functions.element_at(functions.lit(_keys(frame.sparkSession, parts)), functions.col(part) + 1)
    placed = frame.repartition(parts, key).sortWithinPartitions(place)
    # true of every row, which Spark does not know: it leaves out a sort below a join, another sort or partitionBy
    return placed.where(functions.monotonically_increasing_id() >= 0).drop(part, place)


def _keys(session: Any, parts: int) -> list[int]:
    """A number for each part, which Spark's hash of it leads to."""
    from pyspark.sql import functions

    found: dict[int, int] = {}
    start, step = 0, 32 * parts
    while len(found) < parts:
        some = session.range(start, start + step, numPartitions=1).select(functions.col("id").cast("int").alias("key"))
        places = some.select("key", functions.pmod(functions.hash("key"), functions.lit(parts)).alias("part"))
        found = {row["part"]: row["key"] for row in places.collect()} | found
        start += step
    return [found[part] for part in range(parts)]
