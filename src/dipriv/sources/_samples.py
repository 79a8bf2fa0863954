"""Bottom-k samples (Cohen and Kaplan, 2007): the smallest distinct hashes of a stream, each with its exact count.

A hash of the final sample was in it from its first occurrence on, since what is left out only grows: so its count is
exact. Two samples cover the same hashes up to the smaller of their ends, and can be merged.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dipriv._base.jit import jit
from dipriv.sources._cells import Words

LAST = np.uint64(2**64 - 1)
_FIRST_SLOTS = 256


class Counted(NamedTuple):
    """Distinct hashes in ascending order and their counts: all hashes of the stream up to `end`."""

    hashes: Words
    counts: Words
    end: np.uint64

    def first(self, size: int) -> Counted:
        """The smallest of them."""
        if len(self.hashes) <= size:
            return self
        return Counted(self.hashes[:size], self.counts[:size], self.hashes[size - 1])


class Sample:
    """The `size` smallest distinct hashes of those that were added; `size` is a power of 2.

    >>> sample = Sample(2)
    >>> sample.add(np.array([7, 5, 9, 5], np.uint64))
    >>> [each.tolist() for each in sample.counted()]
    [[5, 7], [2, 1], 7]
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.end, self._used = LAST, 0
        self._hashes, self._counts = np.zeros(_FIRST_SLOTS, np.uint64), np.zeros(_FIRST_SLOTS, np.uint64)

    def add(self, hashes: Words, times: Words | None = None) -> None:
        """Count hashes, each once or as often as `times` says."""
        times = np.ones(1, np.uint64) if times is None else times
        place = 0
        while place < len(hashes):
            table = self._hashes, self._counts
            place, self._used = _count(hashes, times, place, self.end, *table, self._used)
            if place < len(hashes):
                self._make_room()

    def candidates(self, hashes: Words) -> Words:
        """Those that may be in the sample; adding these is the same as adding all."""
        return hashes if self.end == LAST else hashes[hashes <= self.end]

    def merge(self, other: Counted) -> None:
        """Add what another sample has counted; what one of them does not cover is left out."""
        self.end = min(self.end, other.end)
        self.add(other.hashes, other.counts)

    def counted(self) -> Counted:
        """The sample so far."""
        taken = np.flatnonzero((self._counts > 0) & (self._hashes <= self.end))
        taken = taken[np.argsort(self._hashes[taken])]
        return Counted(self._hashes[taken], self._counts[taken], self.end).first(self.size)

    def _make_room(self) -> None:
        """Leave out all but the smallest, in a larger table if that has not four slots for each of them."""
        kept, slots = self.counted(), max(_FIRST_SLOTS, min(2 * len(self._hashes), 4 * self.size))
        self.end = kept.end
        self._hashes, self._counts = np.zeros(slots, np.uint64), np.zeros(slots, np.uint64)
        _, self._used = _count(kept.hashes, kept.counts, 0, LAST, self._hashes, self._counts, 0)


@jit
def _count(
    hashes: Words, times: Words, start: int, end: np.uint64, known: Words, counts: Words, used: int
) -> tuple[int, int]:
    """Count the hashes from `start` on that do not exceed `end`, in a table with open addressing.

    Returns the place behind the last one that has been counted, before the end if the table is three quarters full, and
    the number of slots in use.
    """
    mask, most, once = np.uint64(len(known) - 1), len(known) // 4 * 3, len(times) == 1
    for i in range(start, len(hashes)):
        found = hashes[i]
        if found > end:
            continue
        slot = found & mask
        while counts[slot] and known[slot] != found:
            slot = (slot + np.uint64(1)) & mask
        if not counts[slot]:
            if used == most:
                return i, used
            known[slot] = found
            used += 1
        counts[slot] += times[0] if once else times[i]
    return len(hashes), used
