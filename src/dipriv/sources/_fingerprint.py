"""A keyed fingerprint of a table's content, taken from the source's cells before any option acts on them.

A cell has a keyed hash of its canonical form (`dipriv.sources._cells`), a row that of the sum of its cells' hashes. So
equal tables have equal fingerprints, however they are stored, typed, or cut into batches or partitions, and tables
that share columns or rows are recognized by them:

* a column is the sum of its cells' hashes, in two words modulo 2^64 each: a hash of the multiset of cells;
* a table is the sum of its rows' hashes; names and order of columns do not matter;
* the order of rows is the polynomial Σ f_i r^i of the rows' hashes f_i, in the same words, for a secret odd r;
* samples of distinct rows and cells are those with the smallest hashes, with the exact numbers of their occurrences
  (`dipriv.sources._samples`); tags are hashes of sampled cells or rows and of these numbers.

Rows are sampled in several ways. In the sum of a row's hashes, `yes` in one column and `no` in another are the same as
the other way round: questionnaires have few different sums. So the hashes are also multiplied by numbers that depend on
the names of their columns. Such products are summed over all columns, over all but one of three groups, so that the
loss of one column leaves one of these sums, and over small subsets: the k columns whose names have the smallest keyed
hashes, with another hash for each subset. A table that lost other columns has the same subset, and by some of the
subsets its rows are recognized. Small ones survive the loss of many columns, large ones tell rows of few labels from
each other. The sum without names recognizes rows under new names.

Sums of parts add up, so that workers can fingerprint theirs. Without the key a fingerprint says nothing about the
table: a plain hash of a small table could be found by trying all tables.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dipriv._base.jit import jit
from dipriv._base.parallel import in_parallel
from dipriv._base.table_fingerprint import (
    SAMPLE_SIZE,
    SKETCH_SIZE,
    TELLING,
    ColumnFingerprint,
    TableFingerprint,
    equal_tags,
    packed_sample,
)
from dipriv.errors import InputError
from dipriv.sources._cells import ROW, Hashes, Words, cell_hashes, hash_shortly, row_hashes
from dipriv.sources._samples import LAST, Counted, Sample
from dipriv.sources.protocol import FingerprintRequest

_KEY_BYTES = range(16, 65)
_SLICE_ROWS, _MIN_SLICE_ROWS, _SLICE_CELLS = 1 << 15, 1 << 10, 1 << 18
"""Rows that are hashed at a time, fewer of wide tables."""
_BLOCK_ROWS = 1 << 10
"""Rows whose sums stay in the processor's cache."""
_COLUMN_WORDS = 1 << 15
"""The size of all samples of columns together, unless that is less than `SKETCH_SIZE` for each."""
_DISTINCT = 1 / 16
"""The least number of distinct values, for each row, of a column whose values are sampled."""
_SENT_ROWS = 1 << 9
"""How many rows of a sample a worker sends: those of 32 workers and more make a whole sample."""
_SUBSETS = (3, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 6, 6, 6, 8, 8, 12, 24)
"""The numbers of columns in each subset of them, at most."""
_GROUPS = 3
_UNNAMED, _NAMED = range(2)
_WAYS = range(2 + _GROUPS + len(_SUBSETS))
"""Of hashing a row: all columns without and with their names, all but a group of them, and each of the subsets."""
_SUBSET_ROWS = 1 << 11
"""The size of the sample of rows of a subset of columns."""


@dataclass(frozen=True)
class _Keys:
    """What is derived from the key: for cells, rows and tags two words each, for the order two odd numbers, a key."""

    cells: Words = field(repr=False)
    rows: Words = field(repr=False)
    tags: Words = field(repr=False)
    multipliers: tuple[int, int] = field(repr=False)
    digest: bytes = field(repr=False)

    @classmethod
    def of(cls, key: bytes) -> _Keys:
        if len(key) not in _KEY_BYTES:
            raise InputError(f"the fingerprint's key has {len(key)} bytes.", "Use a ledger's fingerprint_key().")
        words = np.frombuffer(hmac.digest(key, b"words", "sha512"), dtype="<u8").astype(np.uint64)
        odd = [int(word) // 8 * 8 + 3 for word in words[4:6]]  # 3 modulo 8: its powers repeat after 2^62 rows
        return cls(words[:2], words[2:4], words[6:], (odd[0], odd[1]), hmac.digest(key, b"digest", "sha256"))

    def label(self, name: str) -> bytes:
        """16 bytes for the name of a column, in upper or lower case."""
        plain = name.strip().casefold().encode("utf-8", "surrogatepass")
        return hashlib.blake2b(plain, key=self.digest, digest_size=16, person=b"name").digest()

    def another(self, label: bytes, number: int) -> bytes:
        """16 bytes for a further column with the same label."""
        content = label + number.to_bytes(4, "little")
        return hashlib.blake2b(content, key=self.digest, digest_size=16, person=b"another").digest()

    def place(self, label: bytes, way: int) -> bytes:
        """The place of a column among those from which the first are taken."""
        return hashlib.blake2b(label, key=self.digest, digest_size=16, person=b"subset", salt=bytes([way])).digest()


@dataclass(frozen=True, eq=False)
class _Part:
    """What some rows add: the sums of columns, rows and their order, and hashes for each sample."""

    rows: int
    columns: Words
    table: Words
    order: Words
    samples: list[Words]


class Fingerprint:
    """The fingerprint of a table that comes in batches.

    It does not depend on how the rows are cut into batches, on slices, on what lies under a null, or on how cells are
    stored: the text `31`, the integer and the float are alike, as are a date and its text, text and a dictionary, null,
    NaN and an empty text. Lists, structs and other nested cells are hashed one by one in Python, slowly.

    >>> table = pa.table({"age": [31, None, 47], "name": ["Ann", "Bo", "Cy"]})
    >>> typed, text = Fingerprint(bytes(32), table.column_names), Fingerprint(bytes(32), table.column_names)
    >>> typed.update(table.to_batches()[0])
    >>> text.update(pa.record_batch({"age": ["31", "NA", "47.0"], "name": ["Ann", "Bo", "Cy"]}))
    >>> typed.result() == text.result()
    True
    """

    def __init__(self, key: bytes, names: Sequence[str]) -> None:
        self._keys, self.names, self.rows = _Keys.of(key), tuple(names), 0
        self._labels = [self._keys.label(name) for name in self.names]
        self._columns = np.zeros((len(self.names), 2), np.uint64)
        self._table, self._order = np.zeros(2, np.uint64), np.zeros(4, np.uint64)
        self._multipliers = np.array([_multiplier(label) for label in self._different_labels()], np.uint64)
        share = max(SKETCH_SIZE, _COLUMN_WORDS // max(1, len(self.names)))
        self._column_samples = [Sample(min(SAMPLE_SIZE, 1 << share.bit_length() - 1)) for _ in self.names]
        self._row_samples = [Sample(SAMPLE_SIZE if way <= _NAMED else _SUBSET_ROWS) for way in _WAYS]
        self._ways = self._ways_of_columns()

    def _ways_of_columns(self) -> list[list[int]]:
        """For each column, the ways of hashing a row by name that it belongs to."""
        groups = [int.from_bytes(label[8:], "little") % _GROUPS for label in self._labels]
        ways = [[_NAMED, *(_NAMED + 1 + other for other in range(_GROUPS) if other != group)] for group in groups]
        for way, size in enumerate(_SUBSETS, start=_NAMED + 1 + _GROUPS):
            places = [self._keys.place(label, way) for label in self._labels]
            for column in sorted(range(len(places)), key=places.__getitem__)[:size]:
                ways[column].append(way)
        return ways

    def update(self, batch: pa.RecordBatch) -> None:
        """Add the next rows."""
        if tuple(batch.schema.names) != self.names:
            raise InputError(
                f"a batch has {batch.num_columns} columns that are not the table's {len(self.names)} in their order.",
                "Give batches of one table.",
            )
        size = max(_MIN_SLICE_ROWS, min(_SLICE_ROWS, _SLICE_CELLS // max(1, len(self.names))))
        slices = [batch.slice(start, size) for start in range(0, batch.num_rows, size)]
        first = 0 if self.rows else 1  # by the samples of the first rows most others are left out at once
        for some in (slices[:first], slices[first:]):
            for part in in_parallel(self._part, some):
                self._add(part)

    def _part(self, some: pa.RecordBatch) -> _Part:
        """What some rows add."""
        sums, named = (Hashes(*(np.zeros(some.num_rows, np.uint64) for _ in range(2))) for _ in range(2))
        high = np.empty((len(self.names), some.num_rows), np.uint64)
        columns = np.empty_like(self._columns)
        for place, array in enumerate(some.columns):
            found = cell_hashes(array, self._keys.cells)
            high[place], columns[place] = found.high, _sums(found)
            for lane in range(2):
                np.add(sums[lane], found[lane], out=sums[lane])
                _add_product(found[lane], self._multipliers[place], named[lane])
        rows = row_hashes(sums, self._keys.rows)
        multipliers = [np.uint64(multiplier) for multiplier in self._keys.multipliers]
        in_order = zip((*rows, *row_hashes(named, self._keys.rows)), 2 * multipliers, strict=True)
        order = [_polynomial(*pair) for pair in in_order]
        samples = [self._row_samples[_UNNAMED].candidates(rows.high), *self._named(high)]
        samples += [sample.candidates(own) for sample, own in zip(self._column_samples, high, strict=True)]
        return _Part(some.num_rows, columns, _sums(rows), np.array(order, np.uint64), samples)

    def _named(self, high: Words) -> list[Words]:
        """The hashes of rows that count for the samples of each way by name."""
        ends = np.array([sample.end for sample in self._row_samples[_NAMED:]], np.uint64)
        found, counts = np.empty((len(ends), high.shape[1]), np.uint64), np.zeros(len(ends), np.int64)
        members = np.array([[way in own for own in self._ways] for way in _WAYS[_NAMED:]], np.bool_)
        _hash_ways(high, members, self._multipliers, self._keys.rows[0], self._keys.rows[1], ends, found, counts)
        return [hashes[:count].copy() for hashes, count in zip(found, counts, strict=True)]

    def _add(self, part: _Part) -> None:
        self._columns += part.columns
        self._table += part.table
        self._order += self._shift() * part.order
        for sample, hashes in zip(self._samples(), part.samples, strict=True):
            sample.add(hashes)
        self.rows += part.rows

    def append(self, later: Fingerprint) -> None:
        """Add rows that were fingerprinted by themselves, with the same key and columns."""
        self._columns += later._columns
        self._table += later._table
        self._order += self._shift() * later._order
        for own, other in zip(self._samples(), later._samples(), strict=True):
            own.merge(other.counted())
        self.rows += later.rows

    def _samples(self) -> list[Sample]:
        return [*self._row_samples, *self._column_samples]

    def _shift(self) -> Words:
        """r^i for the next row."""
        return np.array([pow(multiplier, self.rows, 1 << 64) for multiplier in 2 * self._keys.multipliers], np.uint64)

    def to_bytes(self) -> bytes:
        """The sums and the smaller part of the samples so far, to be sent to where they are added up."""
        parts = [np.array([self.rows], np.uint64), self._table, self._order, self._columns.ravel()]
        for place, sample in enumerate(self._samples()):
            found = sample.counted().first(_SENT_ROWS if place < len(_WAYS) else SKETCH_SIZE)
            parts += [np.array([len(found.hashes), found.end], np.uint64), found.hashes, found.counts]
        return np.concatenate(parts).astype("<u8").tobytes()

    @classmethod
    def from_bytes(cls, key: bytes, names: Sequence[str], data: bytes) -> Fingerprint:
        """The fingerprint that `to_bytes` was called on."""
        found, words = cls(key, names), np.frombuffer(data, dtype="<u8").astype(np.uint64)
        rows, found._table, found._order, columns, words = np.split(words, np.cumsum([1, 2, 4, found._columns.size]))
        found.rows, found._columns = int(rows[0]), columns.reshape(-1, 2)
        for sample in found._samples():
            size = int(words[0])
            head, hashes, counts, words = np.split(words, np.cumsum([2, size, size]))
            sample.merge(Counted(hashes, counts, head[1]))
        return found

    def _different_labels(self) -> list[bytes]:
        """The labels, of columns with the same one, such as q and Q, numbered by their names."""
        found, met = list(self._labels), Counter[bytes]()
        for _, place in sorted(zip(self.names, range(len(self.names)), strict=True)):
            label = self._labels[place]
            if number := met[label]:
                found[place] = self._keys.another(label, number)
            met[label] += 1
        return found

    def order(self) -> bytes:
        """16 bytes for all rows so far, in their order."""
        return self._order[:2].astype("<u8").tobytes()

    def named_order(self) -> bytes:
        """The same, of rows that have their cells in the same columns."""
        return self._order[2:].astype("<u8").tobytes()

    def content(self) -> bytes:
        """16 bytes for all rows so far, in any order; the names of the columns do not matter, nor does their order."""
        facts = json.dumps([self.rows, len(self.names), self._table.tolist()]).encode()
        return hashlib.blake2b(facts, key=self._keys.digest, digest_size=16).digest()

    def result(
        self, prefixes: frozenset[tuple[bytes, bytes]] = frozenset(), *, is_ordered: bool = True
    ) -> TableFingerprint:
        """The fingerprint of all rows so far."""
        if not self.rows:
            raise InputError("the table has no rows.", "Give a table with at least one row.")
        rows, columns = ([each.counted() for each in some] for some in (self._row_samples, self._column_samples))
        repeats = 1
        if len(rows[_NAMED].hashes) >= TELLING:  # fewer counts have a common divisor by chance
            repeats = int(np.gcd.reduce(np.concatenate([each.counts for each in (rows[_NAMED], *columns)])))
        few = [each.first(SKETCH_SIZE) for each in columns]
        labels, counts = [each.hashes for each in few], [each.counts.astype(np.int64) // repeats for each in few]
        expected = equal_tags(counts, labels, self.rows // repeats)
        tags = map(self._tags, labels, counts)
        return TableFingerprint(
            self.rows,
            self.content(),
            self.order(),
            is_ordered,
            tuple(map(self._column, range(len(self.names)), columns, tags, expected)),
            self._row_sketch(rows[_UNNAMED].first(SKETCH_SIZE), repeats),
            prefixes,
            tuple(map(_packed, rows)),
            repeats,
            self.named_order(),
        )

    def _row_sketch(self, rows: Counted, repeats: int) -> bytes:
        """A sample of distinct rows with their counts: half of each word has the row's hash, the other half its tag.

        Rows of few columns or labels are met in unrelated tables, too, but not equally often.
        """
        half = np.uint64(32)
        tags = row_hashes(Hashes(rows.hashes, rows.counts // np.uint64(repeats)), self._keys.tags).high
        return np.sort((rows.hashes >> half << half) | (tags >> half)).astype("<u8").tobytes()

    def _tags(self, labels: Words, counts: NDArray[np.int64]) -> bytes:
        tags = row_hashes(Hashes(labels, counts.astype(np.uint64)), self._keys.tags).high
        return np.unique(tags).astype("<u8").tobytes()

    def _column(self, place: int, found: Counted, tags: bytes, expected: tuple[float, float]) -> ColumnFingerprint:
        size, end = len(found.hashes), float(found.end)
        n_distinct = size if found.end == LAST else min(self.rows, round((size - 1) * 2.0**64 / end))
        values = _packed(found) if n_distinct >= max(TELLING, self.rows * _DISTINCT) else b""
        sums, label, name = self._columns[place], self._labels[place], self.names[place]
        return ColumnFingerprint(sums.astype("<u8").tobytes(), n_distinct, values, tags, expected, label, name)


def fingerprint_of(batch: pa.RecordBatch, key: bytes) -> Fingerprint:
    """The fingerprint of a table that is one batch."""
    fingerprint = Fingerprint(key, batch.schema.names)
    fingerprint.update(batch)
    return fingerprint


class PrefixFingerprints:
    """The fingerprint of a table that comes in batches, and of its beginnings of given numbers of rows."""

    def __init__(self, request: FingerprintRequest, names: Sequence[str]) -> None:
        self._sizes = request.prefix_sizes
        self._fingerprint = Fingerprint(request.key, names)
        self._met: set[tuple[bytes, bytes]] = set()

    def update(self, batch: pa.RecordBatch) -> None:
        """Add the next rows."""
        rows, found = self._fingerprint.rows, self._fingerprint
        for end in sorted(end for end in self._sizes if rows < end <= rows + batch.num_rows):
            found.update(batch.slice(0, end - found.rows))
            self._met.add((found.order(), found.named_order()))
            batch = batch.slice(end - rows)
            rows = end
        found.update(batch)

    def result(self) -> TableFingerprint:
        """The fingerprints of all rows so far."""
        return self._fingerprint.result(frozenset(self._met))


def _multiplier(label: bytes) -> np.uint64:
    """A secret odd number for the label of a column's name."""
    return np.uint64(int.from_bytes(label[:8], "little") | 1)


def _packed(sample: Counted) -> bytes:
    return packed_sample(sample.hashes, sample.counts, int(sample.end))


def _sums(hashes: Hashes) -> Words:
    return np.array([lane.sum() for lane in hashes], np.uint64)


@jit
def _polynomial(values: Words, multiplier: np.uint64) -> np.uint64:
    total, power = np.uint64(0), np.uint64(1)
    for i in range(len(values)):
        total += values[i] * power
        power *= multiplier
    return total


@jit
def _hash_ways(
    high: Words,
    members: NDArray[np.bool_],
    multipliers: Words,
    k0: np.uint64,
    k1: np.uint64,
    ends: Words,
    found: Words,
    counts: NDArray[np.int64],
) -> None:
    """Of each way the hashes of rows that are not above its end: of the sums of its columns' products."""
    sums, hashes = np.empty(_BLOCK_ROWS, np.uint64), np.empty(_BLOCK_ROWS, np.uint64)
    for start in range(0, high.shape[1], _BLOCK_ROWS):
        size = min(_BLOCK_ROWS, high.shape[1] - start)
        for way in range(len(members)):
            sums[:] = np.uint64(0)
            for column in range(len(high)):
                if members[way, column]:
                    _add_product(high[column, start : start + size], multipliers[column], sums)
            _hash_shortly(sums[:size], np.uint64(ROW + _NAMED + way), k0, k1, hashes)
            counts[way] = _keep_up_to(hashes[:size], ends[way], found[way], counts[way])


@jit
def _add_product(values: Words, multiplier: np.uint64, sums: Words) -> None:
    for i in range(len(values)):
        sums[i] += values[i] * multiplier


@jit
def _hash_shortly(words: Words, kind: np.uint64, k0: np.uint64, k1: np.uint64, found: Words) -> None:
    for i in range(len(words)):
        found[i] = hash_shortly(words[i], kind, k0, k1)


@jit
def _keep_up_to(hashes: Words, end: np.uint64, kept: Words, count: int) -> int:
    for i in range(len(hashes)):
        kept[count] = hashes[i]
        count += hashes[i] <= end
    return count
