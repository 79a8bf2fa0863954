"""What a ledger keeps of a table to recognize it: keyed hashes of its rows and columns, none of which shows a cell.

A sketch is a sample of a set that two tables draw alike: its `SKETCH_SIZE` smallest keyed hashes (bottom-k sampling,
Cohen and Kaplan 2007). What two samples share estimates what the sets share.

The tags of a column are of its sampled values together with how often each occurs. One row more or less changes one tag
of a column, and one cell two tags; unrelated tables have equal tags by chance (`coincidence`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ive

SKETCH_SIZE = 256
TELLING = 10
"""The smallest number of distinct values in common that says something about two columns or tables."""


@dataclass(frozen=True)
class ColumnFingerprint:
    """The sum of the hashes of a column's cells, in any order; `sketch` is of its values if most of them differ.

    `tags` are sorted keyed hashes of sampled values and their counts. `chance` bounds the probability that an unrelated
    table has a column with `needed` of these tags; it is not stored, nor is the name.
    """

    digest: bytes = field(repr=False)
    n_distinct: int
    sketch: bytes = field(repr=False, default=b"")
    tags: bytes = field(repr=False, default=b"")
    chance: float = field(repr=False, default=1.0)
    name: str = field(repr=False, default="", compare=False)


@dataclass(frozen=True)
class TableFingerprint:
    """The keyed fingerprint of a table.

    `content` is of all rows in any order, `order` of the rows in their order; neither depends on the names or the order
    of columns. `prefixes` are the orders of its beginnings that have as many rows as a known table. `is_ordered` is
    false where the order of rows is not the table's own, but that of an engine.
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


def needed(n_tags: NDArray[np.int64] | int) -> NDArray[np.int64]:
    """How many tags two columns must share to match, of the larger number that one of them has: half, at least one."""
    return np.maximum(1, np.asarray(n_tags, np.int64) // 2).astype(np.int64)


def chances(counts: Sequence[NDArray[np.int64]], labels: Sequence[NDArray[np.uint64]], rows: int) -> list[float]:
    """Bounds on the probabilities that an unrelated table has a column with half of the tags of each of these columns.

    The model: both tables are drawn from the same distribution, row by row. The counts of a value with the share p are
    then about Poisson with the variance v = n p (1 - p) each, and equal with probability exp(-2v) I_0(2v), which is
    about 1 / sqrt(4 pi v). Columns of the other table that have the same label about as often (within two standard
    deviations of the difference) add their own chances; this table shows how many there are. With E the expected
    number of equal tags of a column, Markov's and Chernoff's inequalities bound the probability of m by E / m and
    exp(m - E) (E / m)^m; both take the tags of a column as independent.
    """
    if not counts:
        return []
    owner = np.repeat(np.arange(len(counts)), [len(each) for each in counts])
    every, label = np.concatenate(counts).astype(float), np.unique(np.concatenate(labels), return_inverse=True)[1]
    variance = every * np.maximum(0.0, 1 - every / rows)
    width, span = 2 * np.sqrt(2 * variance), 4.0 * rows + 4  # a label has a span of the line, wider than any width
    place = label * span + every
    line = np.sort(place)
    near = np.searchsorted(line, place + width, "right") - np.searchsorted(line, place - width, "left")
    expected = np.bincount(owner, np.minimum(1.0, ive(0, 2 * variance) * near), minlength=len(counts))
    least = needed(np.array([len(each) for each in counts]))
    with np.errstate(divide="ignore"):
        tail = np.where(expected < least, least - expected + least * np.log(expected / least), 0.0)
    return [float(bound) for bound in np.minimum(1.0, np.minimum(expected / least, np.exp(tail)))]


def coincidence(matched: ArrayLike, all_chances: ArrayLike) -> float:
    """A bound on the probability that columns match by chance with as much evidence as those that do.

    The evidence is the sum of log(1 / c) over matching columns, where c is the chance of each. By Chernoff's inequality
    it reaches s with a probability of at most exp(-ts) times the product of 1 - c + c^(1 - t) over all columns, for any
    t > 0. It takes columns as independent.

    >>> coincidence([0.02, 0.02, 0.02], [0.02, 0.02, 0.02]) < 1e-4
    True
    >>> coincidence([0.02], [0.02] * 20) > 0.3
    True
    """
    smallest = np.finfo(float).tiny
    found, every = np.maximum(matched, smallest), np.maximum(all_chances, smallest)
    return min(
        1.0,
        *(
            float(np.exp(t * np.log(found).sum() + np.log1p(every ** (1 - t) - every).sum()))
            for t in (0.25, 0.5, 0.75, 1.0)
        ),
    )
