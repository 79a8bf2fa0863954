"""Ordered whole numbers as codes of values: every value of a numeric type has one, and codes have the values' order.

The line of codes is public: it follows from a column's type and from the schema. It is cut into *octaves*, the values
of one sign between two powers of two, and zero alone; the public tree over a line halves the range of octaves until one
is left, and then halves that. Ordinary magnitudes come first, so that they are found at a small depth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray
from dipriv._base.columns import cast
from dipriv._base.invariants import require
from dipriv._base.jit import jit
from dipriv._base.registry import serializable
from dipriv.codecs.code_index import CodeIndex
from dipriv.codecs.levels import is_step, nearest_index

Codes = NDArray[np.int64]
ORDINARY = 8.0
"""The exponent of two of an ordinary magnitude, about 2^8."""
SPREAD = 8.0
"""How far from the ordinary exponent magnitudes still count as ordinary."""
_SIGN = 2.0
"""The distance between zero and the smallest magnitudes, in the places of octaves."""
_MAX_STEPS = 1 << 62
"""A grid of real numbers reaches at most this many steps from zero."""


class OrderedCodes(Protocol):
    """Codes from `first` to `last`, both included."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the values."""
        ...

    @property
    def first(self) -> int: ...

    @property
    def last(self) -> int: ...

    @property
    def octaves(self) -> Octaves: ...

    def index(self, codes: Codes) -> CodeIndex:
        """Finds codes among these sorted ones."""
        ...

    def to_codes(self, values: NDArray[Any]) -> Codes:
        """The code of each value, clipped to the line: total, so that no value raises an error."""
        ...

    def to_values(self, codes: Codes) -> NDArray[Any]:
        """The inverse on codes of the line."""
        ...


@dataclass(frozen=True, eq=False)
class Octaves:
    """Where the octaves of a line start, in order: their codes, signs (-1, 0, 1) and exponents of two."""

    starts: Codes
    signs: NDArray[np.int64]
    exponents: FloatArray

    @cached_property
    def places(self) -> FloatArray:
        """An increasing place for each start: far magnitudes are close together, so that halving meets them late."""
        warped = _SIGN + np.arcsinh((self.exponents - ORDINARY) / SPREAD) + math.asinh(1100 / SPREAD)
        own = np.where(self.signs == 0, 0.0, self.signs * warped)
        # a negative octave starts at its far end, so its start has the place of the next magnitude
        return np.where(self.signs < 0, own - 1e-9, own)

    def middle(self, low: Codes, last: Codes) -> Codes:
        """The first code of the upper half of each low..last: an octave's start, or inside an octave the middle."""
        begin = np.searchsorted(self.starts, low, side="right")
        end = np.searchsorted(self.starts, last, side="right")
        left = self.places[np.maximum(begin - 1, 0)]
        right = self.places[np.minimum(end, len(self.places) - 1)]
        nearest = np.searchsorted(self.places, (left + right) / 2, side="left")
        nearest = np.clip(nearest, begin, np.maximum(end - 1, begin))
        inside = low + ((last.astype(np.uint64) - low.astype(np.uint64) + np.uint64(1)) >> np.uint64(1)).astype(
            np.int64
        )
        several = begin < end
        return np.where(several, self.starts[np.where(several, nearest, 0)], inside)

    def within(self, first: int, last: int) -> Octaves:
        """The octaves of a part of the line; the first of them starts where the part does."""
        begin = max(0, int(np.searchsorted(self.starts, first, side="right")) - 1)
        end = max(begin + 1, int(np.searchsorted(self.starts, last, side="right")))
        starts = self.starts[begin:end].copy()
        starts[0] = first
        return Octaves(starts, self.signs[begin:end], self.exponents[begin:end])


@serializable(OrderedCodes, former_name="BitsLine")
@dataclass(frozen=True, eq=False)
class FloatBitCodes:
    """Floating-point numbers by their bit patterns: 2^52 (or 2^23) codes an octave, evenly spaced inside it."""

    dtype: np.dtype[Any]
    first: int
    last: int

    def __post_init__(self) -> None:
        require(self.dtype in (np.float32, np.float64), self, "values are float32 or float64")
        most = _largest_code(self.dtype)
        require(-most <= self.first <= self.last <= most, self, "codes are those of finite numbers, in order")

    @classmethod
    def of(cls, dtype: np.dtype[Any], lower: float | None = None, upper: float | None = None) -> FloatBitCodes:
        most, code = float(np.finfo(dtype).max), _largest_code(dtype)
        ends = np.array([-most if lower is None else lower, most if upper is None else upper])
        first, last = cls(dtype, -code, code).to_codes(cast(ends, dtype))
        return cls(dtype, int(first), int(last))

    @property
    def octaves(self) -> Octaves:
        info = np.finfo(self.dtype)
        exponents = np.arange(int(info.minexp), int(info.maxexp))
        starts = np.arange(1, len(exponents) + 1, dtype=np.int64) << info.nmant
        low = exponents[:1] - 1.0  # numbers below the smallest normal one
        return Octaves(
            np.concatenate([(1 - starts - (1 << info.nmant))[::-1], [1 - (1 << info.nmant), 0, 1], starts]),
            np.concatenate([np.full(len(starts) + 1, -1), [0], np.full(len(starts) + 1, 1)]),
            np.concatenate([exponents[::-1], low, [0], low, exponents]).astype(np.float64),
        ).within(self.first, self.last)

    def index(self, codes: Codes) -> CodeIndex:
        return CodeIndex.over(codes, int(np.finfo(self.dtype).nmant))

    def to_codes(self, values: NDArray[Any]) -> Codes:
        kind = np.int64 if self.dtype.itemsize == 8 else np.int32
        codes = np.empty(len(values), dtype=np.int64)
        bits = np.ascontiguousarray(cast(values, self.dtype)).view(kind)
        order_bits(bits, int(np.iinfo(kind).max), self.first, self.last, codes)
        return codes

    def to_values(self, codes: Codes) -> NDArray[Any]:
        kind = np.dtype(np.int64 if self.dtype.itemsize == 8 else np.int32)
        bits: NDArray[Any] = np.abs(codes).astype(kind)
        return np.where(codes >= 0, bits, bits | int(np.iinfo(kind.str).min)).astype(kind).view(self.dtype)


def _largest_code(dtype: np.dtype[Any]) -> int:
    """The bit pattern of the largest finite number."""
    return int(np.finfo(dtype).max.view(f"i{dtype.itemsize}"))


@serializable(OrderedCodes, former_name="StepsLine")
@dataclass(frozen=True, eq=False)
class GridCodes:
    """Whole multiples n of a step whole/per_unit: the code is n - origin. Values between steps go to the nearest."""

    dtype: np.dtype[Any]
    whole: int
    per_unit: int
    first: int
    last: int
    origin: int = 0

    def __post_init__(self) -> None:
        require(is_step(self.whole, self.per_unit, self.dtype), self, "the step is one of its type")
        require(-(1 << 63) <= self.first <= self.last < 1 << 63, self, "codes are 64-bit integers, in order")
        require(
            self.origin == 0 or (self.origin == 1 << 63 and self.dtype == np.uint64), self, "the origin is 0 or 2^63"
        )
        if self.dtype.kind != "f":
            info = np.iinfo(self.dtype)
            least, most = (self.first + self.origin) * self.whole, (self.last + self.origin) * self.whole
            require(int(info.min) <= least and most <= int(info.max), self, "all values fit the type")

    @classmethod
    def of(
        cls,
        dtype: np.dtype[Any],
        whole: int = 1,
        per_unit: int = 1,
        lower: float | None = None,
        upper: float | None = None,
    ) -> GridCodes:
        if dtype.kind == "f":
            reach = min(float(_MAX_STEPS), float(np.finfo(dtype).max) * per_unit / whole)
            bottom, top = -int(reach), int(reach)
        else:
            info = np.iinfo(dtype)
            bottom, top = -(-int(info.min) // whole), int(info.max) // whole
        least, most = bottom, top
        if lower is not None:
            bottom = min(most, max(least, math.ceil(Fraction(lower) * per_unit / whole)))
        if upper is not None:
            top = max(least, min(most, math.floor(Fraction(upper) * per_unit / whole)))
        origin = 1 << 63 if top >= 1 << 63 else 0
        return cls(dtype, whole, per_unit, bottom - origin, max(bottom, top) - origin, origin)

    @property
    def octaves(self) -> Octaves:
        powers = [1 << e for e in range(64)]
        starts = [1 - 2 * power for power in powers[::-1]] + [0] + powers
        signs = [-1] * 64 + [0] + [1] * 64
        exponents = [*range(63, -1, -1), 0, *range(64)]
        there = [place for place, start in enumerate(starts) if -(1 << 63) <= start - self.origin < 1 << 63]
        return Octaves(
            np.array([starts[place] - self.origin for place in there], dtype=np.int64),
            np.array([signs[place] for place in there]),
            np.array([exponents[place] for place in there], dtype=np.float64),
        ).within(self.first, self.last)

    def index(self, codes: Codes) -> CodeIndex:
        return CodeIndex.over(codes, 0)

    def to_codes(self, values: NDArray[Any]) -> Codes:
        if values.dtype.kind == "f" and not self.origin:
            steps = np.empty(len(values), dtype=np.int64)
            nearest_steps(values, float(self.whole), float(self.per_unit), self.first, self.last, steps)
            return steps
        n = self._nearest(values)
        if self.origin:
            codes = (n.astype(np.uint64) - np.uint64(self.origin)).astype(np.int64)
        else:
            codes = np.minimum(n, n.dtype.type(np.iinfo(np.int64).max) if n.dtype == np.uint64 else n).astype(np.int64)
        clipped: Codes = np.clip(codes, self.first, self.last)
        return clipped

    def _nearest(self, values: NDArray[Any]) -> NDArray[Any]:
        """The nearest whole number of steps, as integers."""
        if values.dtype.kind == "f":
            index, between = nearest_index(values.astype(np.float64), self.whole, self.per_unit)
            return np.clip(np.rint(index + between), 0.0, np.nextafter(2.0**64, 0.0)).astype(np.uint64)
        if self.whole == 1:
            return values
        n, rest = np.divmod(values, values.dtype.type(self.whole))
        nearest: NDArray[Any] = n + (rest >= values.dtype.type((self.whole + 1) // 2)).astype(n.dtype)
        return nearest

    def to_values(self, codes: Codes) -> NDArray[Any]:
        if self.dtype.kind == "f":
            return cast(codes.astype(np.float64) * self.whole / self.per_unit, self.dtype)
        if self.dtype == np.uint64:
            return (codes.astype(np.uint64) + np.uint64(self.origin)) * np.uint64(self.whole)
        return cast(codes * np.int64(self.whole), self.dtype)


@jit
def order_bits(bits: NDArray[Any], magnitude: int, first: int, last: int, codes: Codes) -> None:
    """Bit patterns of floating-point numbers as codes: those below zero turned around, -0.0 as 0.0."""
    for i in range(len(bits)):
        code: int = np.int64(bits[i])  # type: ignore[assignment]
        if code < 0:
            code = -(code & magnitude)
        codes[i] = min(max(code, first), last)


@jit
def nearest_steps(values: NDArray[Any], whole: float, per_unit: float, first: int, last: int, codes: Codes) -> None:
    """The nearest whole number of steps of each value, clipped: as `nearest_index`, rounded, in one loop."""
    largest = np.float64(9223372036854774784.0)  # below 2^63
    for i in range(len(values)):
        exact = min(max(np.float64(values[i]), -1e290), 1e290) * per_unit / whole
        index = np.rint(exact)
        if abs(exact - index) > 1e-9 * max(1.0, abs(exact)):
            below = np.floor(exact)
            index = np.rint(below + (exact - below))
        code = first if np.isnan(index) else np.int64(min(max(index, -9223372036854775808.0), largest))
        codes[i] = min(max(code, first), last)
