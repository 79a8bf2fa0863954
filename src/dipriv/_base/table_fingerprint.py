"""What a ledger keeps of a table to recognize it: keyed hashes of its rows and columns, none of which shows a cell.

A sketch is a sample of a set that two tables draw alike: its `SKETCH_SIZE` smallest keyed hashes (bottom-k sampling,
Cohen and Kaplan 2007). What two samples share estimates what the sets share.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

SKETCH_SIZE = 256
TELLING = 10
"""The smallest number of distinct values in common that says something about two columns or tables."""


@dataclass(frozen=True)
class ColumnFingerprint:
    """The sum of the hashes of a column's cells, in any order; `sketch` is of its values if most of them differ."""

    digest: bytes = field(repr=False)
    n_distinct: int
    sketch: bytes = field(repr=False, default=b"")


@dataclass(frozen=True)
class TableFingerprint:
    """The keyed fingerprint of a table.

    `content` is of the columns' names and of all rows in any order, `order` of the rows in their order; `prefixes` are
    the orders of its beginnings that have as many rows as a known table. `is_ordered` is false where the order of rows
    is not the table's own, but that of an engine.
    """

    rows: int
    content: bytes = field(repr=False)
    order: bytes = field(repr=False)
    is_ordered: bool = True
    columns: tuple[ColumnFingerprint, ...] = field(repr=False, default=())
    row_sketch: bytes = field(repr=False, default=b"")
    prefixes: frozenset[bytes] = field(repr=False, default=frozenset())


class Overlap(NamedTuple):
    """How many sampled values two sets have in common, and the share that this is of the smaller set."""

    common: int
    share: float

    @property
    def is_telling(self) -> bool:
        """Whether at least half of the smaller set is in the other, by `TELLING` values or more."""
        return self.common >= TELLING and self.share >= 0.5


def overlap(one: bytes, other: bytes) -> Overlap:
    """Compare two sketches in the range of hashes that both cover.

    >>> few = np.arange(20, dtype="<u8").tobytes()
    >>> overlap(few, np.arange(5, 100, dtype="<u8").tobytes())
    Overlap(common=15, share=0.75)
    """
    first, second = (np.frombuffer(sketch, dtype="<u8") for sketch in (one, other))
    if not len(first) or not len(second):
        return Overlap(0, 0.0)
    ends = [sketch[-1] for sketch in (first, second) if len(sketch) == SKETCH_SIZE]
    if ends:
        first, second = first[first <= min(ends)], second[second <= min(ends)]
    common = len(np.intersect1d(first, second, assume_unique=True))
    return Overlap(common, common / max(1, min(len(first), len(second))))
