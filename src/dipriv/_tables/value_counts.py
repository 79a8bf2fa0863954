"""How many cells of a column have each value: exact counts, which are private."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TypeAlias
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dipriv._base.arrays import Counts, Mask
from dipriv._tables.arrow import decoded
from dipriv._tables.frames import Table


@dataclass(frozen=True, eq=False)
class ValueCounts:
    """The distinct values of a column, nulls and NaN left out, and how many cells have each."""

    values: pa.Array = field(repr=False)
    counts: Counts = field(repr=False)

    def __len__(self) -> int:
        return len(self.values)


ColumnCounts: TypeAlias = Mapping[str, ValueCounts]
"""The counts of some columns, by name."""


def count_values(table: Table, names: Sequence[str]) -> dict[str, ValueCounts]:
    """The counts of some columns in a table's selected rows, in no particular order.

    Labels are counted as they are, other cells as the numbers that `Table.cells` gives: times as ticks, infinities
    clipped, -0.0 as 0.0.
    """
    return {name: _of_column(table, name) for name in names}


def _of_column(table: Table, name: str) -> ValueCounts:
    if table.column(name).storage.family != "label":
        return _of_array(pa.array(table.cells(name).present + 0))  # -0.0 becomes 0.0
    array = table.coded(name)
    if not pa.types.is_dictionary(array.type):
        return _of_array(decoded(array).drop_null())
    codes = _of_array(array.indices.drop_null())  # labels are looked up once each, not once a row
    labels = decoded(array.dictionary).take(codes.values)
    there = labels.is_valid()
    return _added(ValueCounts(labels.filter(there), codes.counts[there.to_numpy(zero_copy_only=False)]))


def _of_array(array: pa.Array) -> ValueCounts:
    found = pc.value_counts(array)
    return ValueCounts(found.field("values"), found.field("counts").to_numpy())


def add_counts(one: ColumnCounts, other: ColumnCounts) -> dict[str, ValueCounts]:
    """The counts of two parts of the rows together, in any order; {} stands for no rows."""
    if not one or not other:
        return dict(one or other)
    return {name: _added(counts, other[name]) for name, counts in one.items()}


def _added(*parts: ValueCounts) -> ValueCounts:
    kind = parts[0].values.type
    values = pa.chunked_array([part.values.cast(kind) for part in parts])
    counts = pa.chunked_array([pa.array(part.counts) for part in parts])
    sums = pa.table({"value": values, "count": counts}).group_by("value", use_threads=False)
    found = sums.aggregate([("count", "sum")]).combine_chunks()
    return ValueCounts(found["value"].combine_chunks(), found["count_sum"].to_numpy())


@dataclass(eq=False)
class RunningCounts:
    """The counts of all parts of the rows that were added so far.

    Parts are added to parts of about their own size (the logarithmic method), so that time is n log n for n cells, and
    memory holds one part and about three times the distinct values.
    """

    _parts: list[ColumnCounts] = field(repr=False, default_factory=list)

    def add(self, part: ColumnCounts) -> None:
        self._parts.append(part)
        while len(self._parts) > 1 and _size(self._parts[-2]) <= 2 * _size(self._parts[-1]):
            self._parts[-2:] = [add_counts(*self._parts[-2:])]

    def total(self) -> dict[str, ValueCounts]:
        """The counts of all rows; {} where there was no part."""
        whole: ColumnCounts = reduce(add_counts, reversed(self._parts), {})
        return dict(whole)


def _size(counts: ColumnCounts) -> int:
    return sum(map(len, counts.values()))


def frequent(counts: ColumnCounts, at_least: int) -> dict[str, ValueCounts]:
    """The values that at least `at_least` cells have, in increasing order, with their counts."""
    return {name: _in_order(_where(found, found.counts >= at_least)) for name, found in counts.items()}


def in_buckets(counts: ColumnCounts, buckets: int) -> list[dict[str, ValueCounts]]:
    """The counts in parts that share no value; a value is in the same part wherever it was counted."""
    bucket_of = {name: _hashed(found.values) % np.uint64(buckets) for name, found in counts.items()}
    return [
        {name: _where(found, bucket_of[name] == bucket) for name, found in counts.items()} for bucket in range(buckets)
    ]


def _hashed(values: pa.Array) -> NDArray[np.uint64]:
    """A number for each value, the same in every process."""
    if pa.types.is_large_string(values.type) or pa.types.is_string(values.type):
        texts = values.cast(pa.large_string()).cast(pa.large_binary())  # as bytes, which need not be in UTF-8
        return np.array([crc32(text) for text in texts.to_pylist()], dtype=np.uint64)
    bits = values.to_numpy(zero_copy_only=False).astype(np.float64).view(np.uint64)
    hashed: NDArray[np.uint64] = (bits * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)  # Fibonacci hashing, mod 2^64
    return hashed


def _where(counts: ValueCounts, there: Mask) -> ValueCounts:
    return counts if there.all() else ValueCounts(counts.values.filter(pa.array(there)), counts.counts[there])


def _in_order(counts: ValueCounts) -> ValueCounts:
    """In an order that follows from the values alone: -0.0 before 0.0, whichever of them was met first."""
    if pa.types.is_floating(counts.values.type):
        numbers = counts.values.to_numpy(zero_copy_only=False)
        order = np.lexsort((~numbers.view(f"u{numbers.itemsize}"), numbers))
    else:
        order = np.asarray(pc.sort_indices(counts.values))
    return ValueCounts(counts.values.take(pa.array(order)), counts.counts[order])
