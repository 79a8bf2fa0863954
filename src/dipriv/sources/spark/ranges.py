"""Ranges of the rows of Parquet files, which workers read and write themselves. Nothing here knows Spark.

To hand rows from Java to Python and back takes Spark longer than dipriv takes to learn from them and to release them.
So a task gets a range of row numbers, and reads its rows with Arrow, as on one machine.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dipriv._random.bits import Bits
from dipriv._tables.frames import Table
from dipriv.sources._formats.parquet import Parquet, read_batches
from dipriv.sources.protocol import ReleasesTables
from dipriv.sources.spark.tasks import Batches, Pack, Packed, changed, check_version

MAX_GROUP_RANGES = 4
"""A row group can only be read from its start: one that is in more ranges than this would be read too often."""


@dataclass(frozen=True)
class Piece:
    """Some rows of a file: those of consecutive row groups, from a place on."""

    path: str
    groups: tuple[int, ...]
    skipped: int
    """Rows of these groups before the piece."""
    n_rows: int


@dataclass(frozen=True)
class RowRange:
    """Consecutive rows of a table; `first` is the number of the first one."""

    first: int
    pieces: tuple[Piece, ...]


def ranges_of(paths: Sequence[Path], size: int) -> list[RowRange] | None:
    """The rows of these files in ranges of `size` rows; None where a row group is in too many of them."""
    groups = [
        (str(path.absolute()), group, metadata.row_group(group).num_rows)
        for path in paths
        for metadata in [pq.read_metadata(path)]
        for group in range(metadata.num_row_groups)
    ]
    if any(rows > MAX_GROUP_RANGES * size for _, _, rows in groups):
        return None
    ends = list(accumulate(rows for _, _, rows in groups))
    starts = [0, *ends[:-1]]
    ranges, here = [], 0
    for first in range(0, ends[-1] if ends else 0, size):
        last = min(first + size, ends[-1])
        while ends[here] <= first:
            here += 1
        found: dict[str, list[tuple[int, int, int]]] = {}
        place = here
        while place < len(groups) and starts[place] < last:
            if starts[place] < ends[place]:
                found.setdefault(groups[place][0], []).append((groups[place][1], starts[place], ends[place]))
            place += 1
        ranges.append(RowRange(first, tuple(_piece(path, of, first, last) for path, of in found.items())))
    return ranges


def _piece(path: str, groups: Sequence[tuple[int, int, int]], first: int, last: int) -> Piece:
    """The part between two row numbers of some groups, each with the numbers of its first row and after its last."""
    numbers, starts, ends = zip(*groups, strict=True)
    start = max(first, starts[0])
    return Piece(path, numbers, start - starts[0], min(last, ends[-1]) - start)


@dataclass(frozen=True)
class RangeReader:
    """Reads these columns of ranges, each row with its number in a further column, `marker`."""

    names: tuple[str, ...]
    marker: str

    def __call__(self, ranges: Iterable[RowRange]) -> Batches:
        for some in ranges:
            number = some.first
            for piece in some.pieces:
                for batch in self._rows(piece):
                    marks = pa.array(np.arange(number, number + batch.num_rows))
                    yield batch.append_column(self.marker, marks)
                    number += batch.num_rows

    def _rows(self, piece: Piece) -> Batches:
        skip, missing = piece.skipped, piece.n_rows
        with pa.OSFile(piece.path) as stream:
            if pq.read_metadata(stream).num_row_groups <= max(piece.groups):
                raise changed(f"{Path(piece.path).name} has other row groups now")
            stream.seek(0)
            for batch in read_batches(Path(piece.path).name, stream, self.names, piece.groups):
                some = batch.slice(skip, missing)
                skip, missing = max(0, skip - batch.num_rows), missing - some.num_rows
                if some.num_rows:
                    yield some
                if not missing:
                    return
        raise changed(f"{Path(piece.path).name} has {missing:,} rows fewer now")


@dataclass(frozen=True, eq=False)
class PartWriter:
    """Releases the packed rows of ranges, each range into a file of its own, in a folder that all workers share.

    A task that runs twice writes the same rows twice; a file appears whole, under a name that follows from the number
    of its first row.
    """

    packed: Packed
    mechanism: ReleasesTables = field(repr=False)
    keep: tuple[str, ...]
    bits: Bits = field(repr=False)
    folder: str
    size: int
    """Rows of a range: blocks do not cross their ends."""
    version: str

    def __call__(self, packs: Iterable[Pack]) -> Iterator[int]:
        """How many rows each file has."""
        check_version(self.version)
        blocks = self.packed.numbered(packs)
        for part, some in groupby(blocks, key=lambda block: block[0] // self.size):
            yield self._write(f"part-{part:05}.parquet", some)

    def _write(self, name: str, blocks: Iterable[tuple[int, Table]]) -> int:
        rows, writer = 0, None
        unfinished = Path(self.folder) / f".{secrets.token_hex(8)}.part"
        try:
            with pa.OSFile(str(unfinished), "wb") as stream:
                for first, table in blocks:
                    released = self.mechanism.release(table, self.keep, self.bits, first=first)
                    writer = writer or Parquet().writer(stream, released.schema)
                    for batch in released.to_batches():
                        writer.write_batch(batch)
                    rows += released.num_rows
                if writer is not None:
                    writer.close()
            os.replace(unfinished, Path(self.folder) / name)
        finally:
            unfinished.unlink(missing_ok=True)
        return rows
