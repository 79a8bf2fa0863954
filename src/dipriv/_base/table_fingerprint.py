"""What a ledger keeps of a table to recognize it: keyed hashes of its rows and columns, none of which shows a cell.

A sample is one of a set that two tables draw alike: its smallest keyed hashes (bottom-k sampling, Cohen and Kaplan
2007), each with how often it occurs. What two samples share estimates what the sets share, and `shared` bounds the
probability that unrelated tables share as much.

The tags of a column are of its sampled values together with how often each occurs. One row more or less changes one tag
of a column, and one cell two tags; unrelated tables have equal tags by chance (`chances`, `coincidence`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, ive

SKETCH_SIZE = 256
"""The number of tags of a column."""
SAMPLE_SIZE = 1 << 14
"""The largest number of rows in a sample of rows, and of values in one of a column."""
TELLING = 10
"""The smallest number of distinct values in common that says something about two columns or tables."""
CHANCE, CHANCE_OF_ORDER = 0.01, 1e-6
"""How often a table of few different rows that tells its people may have the counts, or the order, of another's."""
_COUNT_BITS = 16
_MANY = (1 << _COUNT_BITS) - 1
"""Counts from here on are not kept: an unrelated table is taken to have such a value, too."""


@dataclass(frozen=True)
class ColumnFingerprint:
    """The sum of the hashes of a column's cells, in any order; `sketch` is a sample of its values unless they are few.

    `tags` are sorted keyed hashes of sampled values and their counts. `equal_tags` are the expected numbers of tags
    that a column of the same name, and any column, of an unrelated table has in common with it. They are not stored,
    nor is the name: `label` is a keyed hash of it.
    """

    digest: bytes = field(repr=False)
    n_distinct: int
    sketch: bytes = field(repr=False, default=b"")
    tags: bytes = field(repr=False, default=b"")
    equal_tags: tuple[float, float] = field(repr=False, default=(np.inf, np.inf))
    label: bytes = field(repr=False, default=bytes(16), compare=False)
    name: str = field(repr=False, default="", compare=False)


@dataclass(frozen=True)
class TableFingerprint:
    """The keyed fingerprint of a table.

    `content` is of all rows in any order, `order` of the rows in their order; neither depends on the names or the order
    of columns. `named_order` is of the rows in their order, each cell with the name of its column: for `order`, rows
    that have the same cells in other columns are the same. `row_sketch` is like the tags of a column, of whole rows.
    `samples` are of rows, hashed in several ways, with and without the names of columns: see
    `dipriv.sources._fingerprint`.
    `repeats` is how often every row is repeated: tags are those of the table without repetitions. `prefixes` are the
    orders, (without, with names), of its beginnings that have as many rows as a known table. `is_ordered` is false
    where the order of rows is not the table's own, but that of an engine.
    """

    rows: int
    content: bytes = field(repr=False)
    order: bytes = field(repr=False)
    is_ordered: bool = True
    columns: tuple[ColumnFingerprint, ...] = field(repr=False, default=())
    row_sketch: bytes = field(repr=False, default=b"")
    prefixes: frozenset[tuple[bytes, bytes]] = field(repr=False, default=frozenset())
    samples: tuple[bytes, ...] = field(repr=False, default=())
    repeats: int = field(repr=False, default=1)
    named_order: bytes = field(repr=False, default=b"")

    @property
    def has_few_rows(self) -> bool:
        """Whether fewer than `TELLING` rows are different: tables of other people can be the same."""
        return bool(self.samples) and all(len(sample) <= 8 * TELLING for sample in self.samples)

    @property
    def is_telling(self) -> bool:
        """Whether a table with the same content has the same people, and not by chance others.

        If a table of others has as many rows and the same shares p of the different rows, it has the same counts with
        the multinomial probability n! prod(p^c / c!), and has them in the same order with the probability prod(p^c).

        >>> def answers(yes, no):
        ...     sample = packed_sample(np.arange(2, dtype=np.uint64), np.array([yes, no], np.uint64), 2**64 - 1)
        ...     return TableFingerprint(yes + no, b"", b"", samples=(sample,))
        >>> [(one.is_telling, one.has_telling_order) for one in (answers(3, 2), answers(30, 20), answers(30000, 20000))]
        [(False, False), (False, True), (True, True)]
        """
        if not self.has_few_rows:
            return True
        counts = self._counts
        arrangements = gammaln(counts.sum() + 1) - gammaln(counts + 1).sum()
        return bool(self._log_chance + arrangements < math.log(CHANCE))

    @property
    def has_telling_order(self) -> bool:
        """The same for a table that has the rows in the same order, of which few are different."""
        return self.is_ordered and (not self.has_few_rows or self._log_chance < math.log(CHANCE_OF_ORDER))

    @property
    def _counts(self) -> NDArray[np.float64]:
        sample = np.frombuffer(max(self.samples, key=len), dtype="<u8")[:-1]
        return (sample & np.uint64(_MANY)).astype(np.float64)

    @property
    def _log_chance(self) -> float:
        counts = self._counts
        return float((counts * np.log(counts / counts.sum())).sum())


def packed_sample(hashes: NDArray[np.uint64], counts: NDArray[np.uint64], end: int) -> bytes:
    """A sample as it is stored: 48 bits of each hash with 16 of its count, in ascending order; the last is the end."""
    words = hashes >> np.uint64(_COUNT_BITS) << np.uint64(_COUNT_BITS) | np.minimum(counts, np.uint64(_MANY))
    return np.append(words, np.uint64(end) | np.uint64(_MANY)).astype("<u8").tobytes()


class Shared(NamedTuple):
    """How many sampled values two sets have in common, which share this is of the smaller set, and the chance of it."""

    common: int
    share: float
    chance: float
    compared: int = 0
    """How many values of the smaller set are in the range that both samples cover: few say little."""

    def is_telling(self, rare: float) -> bool:
        """Whether `TELLING` values, and a quarter of the smaller set, are in both, and the chance of it is small."""
        return self.common >= TELLING and self.share >= 0.25 and self.chance < rare


def shared(one: bytes, other: bytes, rows: tuple[int, int]) -> Shared:
    """Compare the samples of two tables with these numbers of rows in the range of hashes that both cover.

    The chance: if both tables were drawn from the same distribution, each row of the two together would be in the first
    with probability p = n_1 / (n_1 + n_2), and a value that occurs c times would be in both with probability
    q = 1 - p^c - (1 - p)^c. So values that occur twice tell that the tables are related if most are once in either. By
    Chernoff's inequality s values are in both with probability at most exp(-ts) times the product of 1 - q + q exp(t)
    over all values, for any t > 0. Values that occur once in the two tables together say nothing.

    >>> def sample(first, last):
    ...     hashes = np.arange(first, last, dtype=np.uint64) << np.uint64(20)
    ...     return packed_sample(hashes, np.ones_like(hashes), 2**64 - 1)
    >>> found = shared(sample(0, 20), sample(5, 100), (20, 95))
    >>> found.common, found.share, found.chance < 1e-6
    (15, 0.75, True)
    """
    if not one or not other:
        return Shared(0, 0.0, 1.0)
    hashes, counts = _comparable(one, other)
    found, *places = np.intersect1d(hashes[0], hashes[1], assume_unique=True, return_indices=True)
    common, compared = len(found), min(map(len, hashes))
    share = common / max(1, compared)
    if common < TELLING:
        return Shared(common, share, 1.0, compared)
    if not all(map(np.all, counts)):  # an older version did not count
        return Shared(common, share, 0.0, compared)
    in_both = counts[0][places[0]] + counts[1][places[1]]
    alone = [np.delete(count, place) for count, place in zip(counts, places, strict=True)]
    totals, times = np.unique(np.concatenate([in_both, *alone]), return_counts=True)
    p = rows[0] / sum(rows)
    q = np.where(totals < _MANY, 1 - p**totals - (1 - p) ** totals, 1.0)
    t = np.geomspace(0.01, 40, 60)[:, np.newaxis]
    bounds = (times * np.log1p(q * np.expm1(t))).sum(axis=1) - t[:, 0] * common
    return Shared(common, share, float(np.exp(min(0.0, bounds.min()))), compared)


def is_part(part: TableFingerprint, whole: TableFingerprint) -> bool:
    """Whether all rows of a table, as far as samples tell, are rows of another, no more often, and `TELLING` are."""
    found = [_within(*pair) for pair in zip(part.samples, whole.samples, strict=False) if all(pair)]
    return all(count is not None for count in found) and max((count or 0 for count in found), default=0) >= TELLING


def _within(one: bytes, other: bytes) -> int | None:
    """How many values a sample has in the range that another covers, if all of them are there, no more often."""
    hashes, counts = _comparable(one, other)
    found, *places = np.intersect1d(hashes[0], hashes[1], assume_unique=True, return_indices=True)
    is_within = len(found) == len(hashes[0]) and bool((counts[0][places[0]] <= counts[1][places[1]]).all())
    return len(found) if is_within else None


def _comparable(one: bytes, other: bytes) -> tuple[list[NDArray[np.uint64]], list[NDArray[np.int64]]]:
    """The hashes of two samples in the range that both cover, and their counts."""
    samples = [np.frombuffer(sample, dtype="<u8") for sample in (one, other)]
    end = min(sample[-1] for sample in samples)
    words = [sample[:-1][sample[:-1] <= end] for sample in samples]
    return [word >> np.uint64(_COUNT_BITS) for word in words], [
        (word & np.uint64(_MANY)).astype(np.int64) for word in words
    ]


def overlap(one: bytes, other: bytes) -> float:
    """The share of the smaller of two sketches that is in the other, in the range of hashes that both cover.

    A sketch has at most `SKETCH_SIZE` words. None of it says anything if fewer than `TELLING` are in both.

    >>> few = np.arange(20, dtype="<u8").tobytes()
    >>> overlap(few, np.arange(5, 100, dtype="<u8").tobytes())
    0.75
    """
    first, second = (np.frombuffer(sketch, dtype="<u8") for sketch in (one, other))
    ends = [sketch[-1] for sketch in (first, second) if len(sketch) == SKETCH_SIZE]
    if ends:
        first, second = first[first <= min(ends)], second[second <= min(ends)]
    common = len(np.intersect1d(first, second, assume_unique=True))
    return common / min(len(first), len(second)) if common >= TELLING else 0.0


def needed(n_tags: NDArray[np.int64] | int) -> NDArray[np.int64]:
    """How many tags two columns must share to match, of the larger number that one of them has: half, at least one."""
    return np.maximum(1, np.asarray(n_tags, np.int64) // 2).astype(np.int64)


def equal_tags(
    counts: Sequence[NDArray[np.int64]], labels: Sequence[NDArray[np.uint64]], rows: int
) -> list[tuple[float, float]]:
    """The expected numbers of equal tags in an unrelated table: of a column of the same name, and of any column.

    The model: both tables are drawn from the same distribution, row by row. The counts of a value with the share p are
    then about Poisson with the variance v = n p (1 - p) each, and equal with probability exp(-2v) I_0(2v), which is
    about 1 / sqrt(4 pi v). Columns of the other table that have the same label about as often (within two standard
    deviations of the difference) add their own chances; this table shows how many there are.
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
    equal = ive(0, 2 * variance)
    named = np.bincount(owner, equal, minlength=len(counts))
    of_any = np.bincount(owner, np.minimum(1.0, equal * near), minlength=len(counts))
    return [*zip(named.tolist(), of_any.tolist(), strict=True)]


def tail(expected: ArrayLike, least: ArrayLike) -> NDArray[np.float64]:
    """Bounds on the probabilities that a column has at least these numbers of equal tags, where E are expected.

    Markov's and Chernoff's inequalities bound the probability of m by E / m and exp(m - E) (E / m)^m; the latter takes
    the tags of a column as independent.
    """
    mean, m = np.broadcast_arrays(np.asarray(expected, float), np.asarray(least, float))
    smallest = np.finfo(float).tiny
    with np.errstate(divide="ignore"):
        chernoff = np.where(mean < m, m - mean + m * np.log(np.maximum(mean, smallest) / m), 0.0)
    return np.asarray(np.maximum(smallest, np.minimum(1.0, np.minimum(mean / m, np.exp(chernoff)))))


def coincidence(expected: ArrayLike, n_tags: ArrayLike, found: ArrayLike) -> float:
    """A bound on the probability that columns match by chance with as much evidence as these.

    A column with `n_tags` tags, of which E are expected to be equal, has `found` equal ones: all but one at most, as in
    a table with a row more or less, or `needed`, or fewer. With the bounds p and c on the probabilities of the first
    and of the first two (`tail`), its evidence is log(1 / p), log(1 / c) or 0. By Chernoff's inequality the sum of the
    evidence reaches s with a probability of at most exp(-ts) times the product of 1 - c + (c - p) / c^t + p / p^t over
    all columns, for any t > 0. It takes columns as independent.

    >>> coincidence([0.02, 0.02, 0.02], [2, 2, 2], [1, 1, 1]) < 1e-4
    True
    >>> coincidence([0.02] * 20, [2] * 20, [1] + [0] * 19) > 0.3
    True
    """
    size, met = np.asarray(n_tags), np.asarray(found)
    most = np.maximum(needed(size), size - 1)
    p, c = tail(expected, most), tail(expected, needed(size))
    evidence = np.log(np.where(met >= most, p, np.where(met >= needed(size), c, 1.0))).sum()
    means = {t: 1 - c + (c - p) * c**-t + p ** (1 - t) for t in (0.25, 0.5, 0.75, 1.0)}
    return min(1.0, *(float(np.exp(t * evidence + np.log(mean).sum())) for t, mean in means.items()))
