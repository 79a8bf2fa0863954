"""Where a number stands in a long sorted array, in expected constant time: a guide table over equal cells.

The cells are equal in value, or equal in the order of the doubles (which is nearly logarithmic), whichever leaves
less to search: the first suits bounded densities, the second heavy tails and many scales.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray
from dipriv._base.jit import jit

ENTRIES_PER_CELL = 1
GOOD_RUN = 4.0
BLOCK = 256
SHORT = 8
"""A run so short is searched one by one, which the processor foresees better than bisection."""


@dataclass(frozen=True, eq=False)
class BucketIndex:
    """`starts[c]` is how many entries lie below cell c; cell of x = (place(x) - origin) * cells_per_unit."""

    starts: NDArray[np.signedinteger[Any]] = field(repr=False)
    origin: float = field(repr=False)
    cells_per_unit: float = field(repr=False)
    by_order: bool

    @classmethod
    def over(cls, entries: FloatArray) -> BucketIndex:
        """The guide of a sorted array."""
        by_value = cls._over(entries, by_order=False)
        if by_value.average_run() <= GOOD_RUN:
            return by_value
        return min(by_value, cls._over(entries, by_order=True), key=cls.average_run)

    @classmethod
    def _over(cls, entries: FloatArray, by_order: bool) -> BucketIndex:
        count = max(1, len(entries) // ENTRIES_PER_CELL)
        first, last = (place_of(float(x), int(x.view(np.int64)), by_order) for x in entries[[0, -1]])
        width = 0.5 * last - 0.5 * first  # halves: the ends may differ by more than the largest double
        per_unit = 0.5 * count / width if width > 1e-300 else 0.0
        starts = np.zeros(count + 1, dtype=np.int64)
        count_cells(entries, entries.view(np.int64), by_order, first, per_unit, starts)
        narrow = np.int32 if len(entries) < 2**31 else np.int64  # half the memory to run through
        return cls(np.cumsum(starts).astype(narrow), first, per_unit, by_order)

    def average_run(self) -> float:
        """How long a run is to search, on average, for a number that is drawn like the entries."""
        sizes = np.diff(self.starts).astype(np.float64)
        return float(np.dot(sizes, sizes)) / float(self.starts[-1])

    def find(self, entries: FloatArray, x: FloatArray) -> NDArray[np.int64]:
        """For each x the first entry that is not below it, or the number of entries: like searchsorted, left."""
        found = np.empty(len(x), dtype=np.int64)
        bits = x.view(np.int64)
        find_all(x, bits, entries, self.starts, self.origin, self.cells_per_unit, self.by_order, found)
        return found


@jit
def place_of(x: float, bits: int, by_order: bool) -> float:
    """X itself, or a number that grows with the order of the doubles: their bits, below zero turned around."""
    if not by_order:
        return x
    return float(bits if bits >= 0 else -(bits & 0x7FFFFFFFFFFFFFFF))


@jit
def cell_of(x: float, bits: int, by_order: bool, origin: float, cells_per_unit: float, last: int) -> int:
    """The cell of x, clipped to 0..last."""
    cell = (place_of(x, bits, by_order) - origin) * cells_per_unit
    if not cell > 0.0:  # not-a-number included
        return 0
    return last if cell >= last else int(cell)


@jit
def count_cells(
    entries: FloatArray,
    bits: NDArray[np.int64],
    by_order: bool,
    origin: float,
    cells_per_unit: float,
    counts: NDArray[np.int64],
) -> None:
    """counts[c + 1] = how many entries are in cell c."""
    last = len(counts) - 2
    for i in range(len(entries)):
        counts[cell_of(entries[i], bits[i], by_order, origin, cells_per_unit, last) + 1] += 1


@jit
def find_between(x: float, entries: FloatArray, low: int, high: int) -> int:
    """The first position in low..high whose entry is not below x, or high."""
    while high - low > SHORT:
        middle = (low + high) >> 1
        if entries[middle] < x:
            low = middle + 1
        else:
            high = middle
    while low < high and entries[low] < x:
        low += 1
    return low


@jit
def find_all(
    x: FloatArray,
    bits: NDArray[np.int64],
    entries: FloatArray,
    starts: NDArray[Any],
    origin: float,
    cells_per_unit: float,
    by_order: bool,
    found: NDArray[np.int64],
) -> None:
    """The first entry that is not below each x, or the number of entries.

    Block by block in three passes, the first two without branches that depend on x: so the processor waits for many
    far places of memory at once, instead of for one after the other.
    """
    last = len(starts) - 2
    lows, highs = np.empty(BLOCK, dtype=np.int64), np.empty(BLOCK, dtype=np.int64)
    near = np.empty(BLOCK)
    for start in range(0, len(x), BLOCK):
        size = min(BLOCK, len(x) - start)
        for i in range(size):
            cell = cell_of(x[start + i], bits[start + i], by_order, origin, cells_per_unit, last)
            lows[i], highs[i] = starts[cell], starts[cell + 1]
        for i in range(size):
            near[i] = entries[min(lows[i], len(entries) - 1)]
        for i in range(size):
            low = lows[i]
            if low < highs[i] and near[i] < x[start + i]:
                low = find_between(x[start + i], entries, low + 1, highs[i])
            found[start + i] = low
