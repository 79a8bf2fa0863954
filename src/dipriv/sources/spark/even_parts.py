"""Released rows in parts of one size, in their order: how Spark divides a table depends on its private rows.

Spark cuts files at numbers of bytes. So how many rows a partition has tells how long rows are, those of columns
included that are not released, and a folder would have a file for each partition. Here a row's part follows from its
number among the released rows alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PART_ROWS = 1 << 20
"""Rows of a part, but for the last."""
_ROW_BITS = 33
"""Spark's rising numbers have the row's place in its partition in these, and above them the partition's number."""


def in_even_parts(frame: Any, first_released: Mapping[int, int], n_rows: int, part_rows: int = PART_ROWS) -> Any:
    """The rows of a released DataFrame in parts of `part_rows` rows.

    Parameters
    ----------
    first_released
        {mark of a partition's first row: the number, among the released rows, of its first one}.
    """
    from pyspark.sql import functions

    parts = max(1, -(-n_rows // part_rows))
    firsts = {mark >> _ROW_BITS: first for mark, first in first_released.items()}
    starts = functions.lit([firsts.get(place, 0) for place in range(max(firsts) + 1)])
    taken = {name.lower() for name in frame.columns}
    number = next(name for name in map("row{}".format, range(len(taken) + 1)) if name not in taken)
    mark = functions.monotonically_increasing_id()
    partition = functions.shiftright(mark, _ROW_BITS).cast("int")
    place = mark.bitwiseAND(functions.lit((1 << _ROW_BITS) - 1))
    numbered = frame.withColumn(number, functions.element_at(starts, partition + 1) + place)
    part = functions.floor(functions.col(number) / functions.lit(part_rows)).cast("int")
    key = functions.element_at(functions.lit(_keys(frame.sparkSession, parts)), part + 1)
    return numbered.repartition(parts, key).sortWithinPartitions(number).drop(number)


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
