"""Where a code stands among many sorted codes, in expected constant time: a guide table in two levels.

The first level has a cell for each octave; the second divides the part of an octave where entries are into about twice
as many equal cells as there are entries. Cells have the order of the codes, so that the entries of lower cells are
below a code and those of higher cells above it, and the few of its own cell decide.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import Counts
from dipriv._base.jit import jit

_Codes = NDArray[np.int64]
SHORT = 8
"""A run so short is searched one by one, which the processor foresees better than bisection."""


@dataclass(frozen=True, eq=False)
class CodeIndex:
    """The guide of sorted `entries`, octave by octave.

    An octave's cells are those from `cells[octave]` on, up to those of the next; each is 2^`shifts[octave]` keys wide,
    and the first begins at `lows[octave]`. `octave_bits` is the power of two of the codes in an octave where codes are
    the bits of floating-point numbers, and 0 where they are whole numbers, which have the octaves of their doubles.
    """

    entries: _Codes = field(repr=False)
    octave_bits: int
    first: int = field(repr=False)
    lows: _Codes = field(repr=False)
    shifts: _Codes = field(repr=False)
    cells: _Codes = field(repr=False)
    starts: NDArray[np.int32] = field(repr=False)
    """How many entries lie below each cell."""

    @classmethod
    def over(cls, entries: _Codes, octave_bits: int) -> CodeIndex:
        """The guide of sorted codes."""
        bits = octave_bits or 52
        keys = np.empty(len(entries), dtype=np.int64)
        keys_of(entries, octave_bits, keys)
        octaves = keys >> bits
        there, begin = np.unique(octaves, return_index=True)
        if not len(there):
            nothing = np.empty(0, dtype=np.int64)
            return cls(entries, octave_bits, 0, nothing, nothing, nothing, np.zeros(1, dtype=np.int32))
        first, count = int(there[0]), int(there[-1] - there[0]) + 1
        sizes = np.diff(np.append(begin, len(entries)))
        spans = keys[begin + sizes - 1] - keys[begin]
        lows, shifts, widths = (np.zeros(count, dtype=np.int64) for _ in range(3))
        lows[there - first] = keys[begin]
        found = zip(spans.tolist(), sizes.tolist(), strict=True)
        shifts[there - first] = [max(0, span.bit_length() - (2 * size).bit_length()) for span, size in found]
        widths[there - first] = (spans >> shifts[there - first]) + 1
        widths = np.maximum(widths, 1)  # one cell for an octave without entries
        cells = np.append(0, np.cumsum(widths))
        own = cells[octaves - first] + ((keys - lows[octaves - first]) >> shifts[octaves - first])
        starts = np.searchsorted(own, np.arange(cells[-1] + 1)).astype(np.int32)
        return cls(entries, octave_bits, first, lows, shifts, cells, starts)

    def up_to(self, codes: _Codes) -> _Codes:
        """For each code how many entries are not above it: like searchsorted, right."""
        found = np.empty(len(codes), dtype=np.int64)
        find_codes(
            codes, self.entries, self.octave_bits, self.first, self.lows, self.shifts, self.cells, self.starts, found
        )
        return found

    def below(self, codes: _Codes) -> Counts:
        """For each entry how many codes are less than it."""
        return np.cumsum(np.bincount(self.up_to(codes), minlength=len(self.entries) + 1))[:-1]


@jit
def key_of(code: int, octave_bits: int) -> int:
    """A number in the order of the codes whose octaves are powers of two: the code, or the bits of its double."""
    if octave_bits:
        return code
    if code >= 0:
        return np.float64(code).view(np.int64)  # type: ignore[return-value]
    return -np.float64(-np.float64(code)).view(np.int64)  # type: ignore[return-value]


@jit
def keys_of(codes: _Codes, octave_bits: int, keys: _Codes) -> None:
    for i in range(len(codes)):
        keys[i] = key_of(codes[i], octave_bits)


@jit
def find_codes(
    codes: _Codes,
    entries: _Codes,
    octave_bits: int,
    first: int,
    lows: _Codes,
    shifts: _Codes,
    cells: _Codes,
    starts: NDArray[np.int32],
    found: _Codes,
) -> None:
    """How many entries are not above each code. All in one loop: handing arrays to a function takes longer."""
    bits = octave_bits if octave_bits else 52
    for i in range(len(codes)):
        code = codes[i]
        key = key_of(code, octave_bits)
        octave = (key >> bits) - first
        if octave < 0:
            found[i] = 0
            continue
        if octave >= len(lows):
            found[i] = len(entries)
            continue
        begin, end = cells[octave], cells[octave + 1] - 1
        cell = min(max(begin + ((key - lows[octave]) >> shifts[octave]), begin), end)
        low, high = np.int64(starts[cell]), np.int64(starts[cell + 1])
        while high - low > SHORT:
            middle = (low + high) >> 1
            if entries[middle] <= code:
                low = middle + 1
            else:
                high = middle
        while low < high and entries[low] <= code:
            low += 1
        found[i] = low
