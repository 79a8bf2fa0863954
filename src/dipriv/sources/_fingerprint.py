"""A keyed fingerprint of a table's content, taken from the source's cells before any option acts on them.

A cell has a keyed hash of its canonical form (`dipriv.sources._cells`), a row that of the sum of its cells' hashes. So
equal tables have equal fingerprints, however they are stored, typed, or cut into batches or partitions, and tables
that share columns or rows are recognized by them:

* a column is the sum of its cells' hashes, in two words modulo 2^64 each: a hash of the multiset of cells;
* a table is the sum of its rows' hashes; names and order of columns do not matter;
* the order of rows is the polynomial Σ f_i r^i of the rows' hashes f_i, in the same words, for a secret odd r;
* sketches are samples of distinct rows and cells: those with the smallest hashes. A cell of the final sketch was in
  it from its first occurrence on, so that the number of its occurrences is exact; tags are hashes of sampled cells or
  rows and of these numbers.

Sums of parts add up, so that workers can fingerprint theirs. Without the key a fingerprint says nothing about the
table: a plain hash of a small table could be found by trying all tables.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dipriv._base.jit import jit
from dipriv._base.parallel import in_parallel
from dipriv._base.table_fingerprint import SKETCH_SIZE, TELLING, ColumnFingerprint, TableFingerprint, chances
from dipriv.errors import InputError
from dipriv.sources._cells import Hashes, Words, cell_hashes, row_hashes
from dipriv.sources.protocol import FingerprintRequest

_KEY_BYTES = range(16, 65)
_SLICE_ROWS = 1 << 15
_LAST = np.uint64(2**64 - 1)


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
        self._columns = np.zeros((len(self.names), 2), np.uint64)
        self._table, self._order = np.zeros(2, np.uint64), np.zeros(2, np.uint64)
        self._sketches = np.full((len(self.names) + 1, SKETCH_SIZE), _LAST)  # the last is of the rows
        self._counts = np.zeros(self._sketches.shape, np.uint64)

    def update(self, batch: pa.RecordBatch) -> None:
        """Add the next rows."""
        if tuple(batch.schema.names) != self.names:
            raise InputError(
                f"a batch has {batch.num_columns} columns that are not the table's {len(self.names)} in their order.",
                "Give batches of one table.",
            )
        for start in range(0, batch.num_rows, _SLICE_ROWS):
            self._update(batch.slice(start, _SLICE_ROWS))

    def _update(self, some: pa.RecordBatch) -> None:
        sums = Hashes(*(np.zeros(some.num_rows, np.uint64) for _ in range(2)))

        def of_column(place: int) -> Hashes:
            found = cell_hashes(some.column(place), self._keys.cells)
            _keep_smallest(found.high, self._sketches[place], self._counts[place])
            return found

        for place, found in enumerate(in_parallel(of_column, range(len(self.names)))):
            self._columns[place] += _sums(found)
            for lane in range(2):
                np.add(sums[lane], found[lane], out=sums[lane])
        rows = row_hashes(sums, self._keys.rows)
        _keep_smallest(rows.high, self._sketches[-1], self._counts[-1])
        self._table += _sums(rows)
        pairs = zip(rows, map(np.uint64, self._keys.multipliers), strict=True)
        self._order += self._shift() * np.array([_polynomial(*pair) for pair in pairs], np.uint64)
        self.rows += some.num_rows

    def append(self, later: Fingerprint) -> None:
        """Add rows that were fingerprinted by themselves, with the same key and columns."""
        self._columns += later._columns
        self._table += later._table
        self._order += self._shift() * later._order
        for place, own in enumerate(self._sketches):
            _merge(later._sketches[place], later._counts[place], own, self._counts[place])
        self.rows += later.rows

    def _shift(self) -> Words:
        """r^i for the next row."""
        return np.array([pow(multiplier, self.rows, 1 << 64) for multiplier in self._keys.multipliers], np.uint64)

    def to_bytes(self) -> bytes:
        """The sums so far, to be sent to where they are added up."""
        parts = (np.array([self.rows]), self._table, self._order, self._columns, self._sketches, self._counts)
        return b"".join(part.astype("<u8").tobytes() for part in parts)

    @classmethod
    def from_bytes(cls, key: bytes, names: Sequence[str], data: bytes) -> Fingerprint:
        """The fingerprint that `to_bytes` was called on."""
        found, words = cls(key, names), np.frombuffer(data, dtype="<u8").astype(np.uint64)
        ends = np.cumsum([1, 2, 2, found._columns.size, found._sketches.size])
        rows, table, order, columns, sketches, counts = np.split(words, ends)
        found.rows, found._table, found._order, found._columns = int(rows[0]), table, order, columns.reshape(-1, 2)
        found._sketches, found._counts = sketches.reshape(-1, SKETCH_SIZE), counts.reshape(-1, SKETCH_SIZE)
        return found

    def order(self) -> bytes:
        """16 bytes for all rows so far, in their order."""
        return self._order.astype("<u8").tobytes()

    def content(self) -> bytes:
        """16 bytes for all rows so far, in any order; the names of the columns do not matter, nor does their order."""
        facts = json.dumps([self.rows, len(self.names), self._table.tolist()]).encode()
        return hashlib.blake2b(facts, key=self._keys.digest, digest_size=16).digest()

    def result(self, prefixes: frozenset[bytes] = frozenset(), *, is_ordered: bool = True) -> TableFingerprint:
        """The fingerprint of all rows so far."""
        if not self.rows:
            raise InputError("the table has no rows.", "Give a table with at least one row.")
        sampled = [sketch < _LAST for sketch in self._sketches[:-1]]
        labels = [sketch[some] for sketch, some in zip(self._sketches, sampled, strict=False)]
        counts = [count[some].astype(np.int64) for count, some in zip(self._counts, sampled, strict=False)]
        tags = map(self._tags, labels, counts)
        bounds = chances(counts, labels, self.rows)
        columns = tuple(map(self._column, self._columns, labels, tags, bounds, self.names))
        order, content = self.order(), self.content()
        return TableFingerprint(self.rows, content, order, is_ordered, columns, self._row_sketch(), prefixes)

    def _row_sketch(self) -> bytes:
        """A sample of distinct rows with their counts: half of each word has the row's hash, the other half its tag.

        Rows of few columns or labels are met in unrelated tables, too, but not equally often.
        """
        rows, half = self._sketches[-1], np.uint64(32)
        tags = row_hashes(Hashes(rows, self._counts[-1]), self._keys.tags).high
        return np.sort(((rows >> half << half) | (tags >> half))[rows < _LAST]).astype("<u8").tobytes()

    def _tags(self, labels: Words, counts: NDArray[np.int64]) -> bytes:
        tags = row_hashes(Hashes(labels, counts.astype(np.uint64)), self._keys.tags).high
        return np.unique(tags).astype("<u8").tobytes()

    def _column(self, sums: Words, sketch: Words, tags: bytes, chance: float, name: str) -> ColumnFingerprint:
        size = len(sketch)
        n_distinct = size if size < SKETCH_SIZE else min(self.rows, round((size - 1) * 2.0**64 / float(sketch[-1])))
        mostly_distinct = n_distinct >= max(TELLING, self.rows / 2)
        values = _packed(sketch) if mostly_distinct else b""
        return ColumnFingerprint(sums.astype("<u8").tobytes(), n_distinct, values, tags, chance, name)


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
        self._met: set[bytes] = set()

    def update(self, batch: pa.RecordBatch) -> None:
        """Add the next rows."""
        rows, found = self._fingerprint.rows, self._fingerprint
        for end in sorted(end for end in self._sizes if rows < end <= rows + batch.num_rows):
            found.update(batch.slice(0, end - found.rows))
            self._met.add(found.order())
            batch = batch.slice(end - rows)
            rows = end
        found.update(batch)

    def result(self) -> TableFingerprint:
        """The fingerprints of all rows so far."""
        return self._fingerprint.result(frozenset(self._met))


def _packed(sketch: Words) -> bytes:
    return sketch[sketch < _LAST].astype("<u8").tobytes()


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
def _add(found: np.uint64, times: np.uint64, sketch: Words, counts: Words) -> None:
    """Count a hash that is among the smallest distinct ones; put it into the sorted sketch if it is new."""
    if found > sketch[-1] or found == _LAST:
        return
    place = np.searchsorted(sketch, found)
    if sketch[place] != found:
        for later in range(len(sketch) - 1, place, -1):
            sketch[later], counts[later] = sketch[later - 1], counts[later - 1]
        sketch[place], counts[place] = found, np.uint64(0)
    counts[place] += times


@jit
def _keep_smallest(hashes: Words, sketch: Words, counts: Words) -> None:
    """Count those of the hashes that are among the smallest distinct ones, and put them into a sorted sketch."""
    met = np.full(256, _LAST)  # the last one of each ending, and how often it came since: repeated values are common
    times = np.zeros(256, np.uint64)
    for i in range(len(hashes)):
        found = hashes[i]
        if found > sketch[-1]:
            continue
        slot = found & np.uint64(255)
        if met[slot] != found:
            _add(met[slot], times[slot], sketch, counts)
            met[slot], times[slot] = found, np.uint64(0)
            _add(found, np.uint64(0), sketch, counts)
        times[slot] += np.uint64(1)
    _merge(met, times, sketch, counts)


@jit
def _merge(hashes: Words, times: Words, sketch: Words, counts: Words) -> None:
    """Add the numbers of occurrences of distinct hashes."""
    for i in range(len(hashes)):
        _add(hashes[i], times[i], sketch, counts)
