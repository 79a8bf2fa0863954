"""Exact discrete Laplace noise: P(z) is proportional to exp(-|z|/t) for integers z, with an integer scale t.

|z| = high 2^m + low. The two parts are independent: `high` is geometric with ratio exp(-2^m/t), which is the integer
part of c E with c = t/2^m and E standard exponential, E = -ln U; `low` has mass proportional to exp(-low/t) on
0..2^m-1, by rejection from the uniform. A fair bit is the sign, and -0 is rejected (Canonne, Kamath, Steinke 2020).

The fast path computes c E and exp(-low/t) in double precision and decides only what its error band allows to decide:
the digits of U that were not looked at, plus 2^-48 relative for the C library's log and exp and the products, 32 times
what a library within one unit in the last place needs. What falls inside the band (about once in 10^11 draws) is
decided by decimal arithmetic on as many further random digits as it takes. So the distribution is exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal, localcontext

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import Words
from dipriv._base.jit import jit
from dipriv._random.bits import Draws
from dipriv._random.streams import NoiseUse

MAX_SCALE = 1 << 56
"""Beyond this |z| would not fit a 64-bit integer."""
BAND = 2.0**-48
"""The relative error that is allowed for in double precision."""
ACCEPTED = 0
"""The state of a draw whose value counts."""
REJECTED = 1
"""The state of a draw that is to be repeated."""
UNDECIDED = 2
"""The state of a draw that needs further digits."""


def low_bits(t: int) -> int:
    """m: how many bits are `low`, so that c = t/2^m lies in [256, 512) where t allows it."""
    return max(0, t.bit_length() - 9)


def discrete_laplace(draws: Draws, t: int, band: float = BAND) -> NDArray[np.int64]:
    """One exact draw for each row. `band=inf` sends every draw through decimal arithmetic, with the same result."""
    z = np.empty(draws.count, dtype=np.int64)
    rows = np.arange(draws.count)
    words = draws.blocks(NoiseUse.DRAW)
    attempt = 0
    while len(rows):
        drawn, state = np.empty(len(rows), dtype=np.int64), np.empty(len(rows), dtype=np.uint8)
        try_draws(words, float(t), low_bits(t), band, drawn, state)
        for row in np.flatnonzero(state == UNDECIDED):
            drawn[row], state[row] = _decide(words[row], _more_digits(draws, int(rows[row]), attempt), t)
        z[rows] = drawn
        rows = rows[state == REJECTED]
        attempt += 1
        words = draws.blocks_again(NoiseUse.DRAW, attempt, rows)
    return z


@jit
def try_draws(words: Words, t: float, m: int, band: float, z: NDArray[np.int64], state: NDArray[np.uint8]) -> None:
    """Each pair of words -> z and whether it is accepted, rejected, or too close to call."""
    c = t * 2.0**-m
    mask = np.uint64((np.uint64(1) << np.uint64(m)) - np.uint64(1))
    rest = 63 - m
    for i in range(len(z)):
        digits = words[i, 0] >> np.uint64(11)
        low = words[i, 1] & mask
        negative = (words[i, 1] >> np.uint64(m)) & np.uint64(1)
        coin = words[i, 1] >> np.uint64(m + 1) if rest > 0 else np.uint64(0)
        y = -math.log((np.float64(digits) + 0.5) * 2.0**-53) * c
        high = math.floor(y)
        error = y * band + c / max(np.float64(digits), 0.25)
        z[i] = np.int64(high) << np.int64(m) | np.int64(low)
        if y - high <= error or high + 1.0 - y <= error:
            state[i] = 2
            continue
        ratio = np.float64(low) / t
        above = (np.float64(coin) + 1.0) * 2.0**-rest
        if above > 1.0 - ratio - band:  # else certainly below exp(-ratio) >= 1 - ratio
            chance = math.exp(-ratio)
            if above - 2.0**-rest >= chance + band:
                state[i] = 1
                continue
            if above > chance - band:
                state[i] = 2
                continue
        state[i] = 1 if negative and z[i] == 0 else 0
        if negative:
            z[i] = -z[i]


def _decide(words: Words, digits: Iterator[int], t: int) -> tuple[int, int]:
    """The same, exactly: U and the coin are binary fractions whose digits are drawn as far as they are needed."""
    m = low_bits(t)
    second = int(words[1])
    low, negative, rest = second & ((1 << m) - 1), second >> m & 1, 63 - m
    size = (_floor_of_scaled_log(int(words[0]), t, m, digits) << m) + low
    if not _is_below_exp(second >> (m + 1), rest, low, t, digits) or (negative and size == 0):
        return 0, REJECTED
    return (-size if negative else size), ACCEPTED


def _floor_of_scaled_log(u: int, t: int, m: int, digits: Iterator[int]) -> int:
    """floor(-ln(U) t/2^m) for U in [u, u+1)/2^64 and further digits."""
    length = 64
    while True:
        with localcontext(prec=60 + length):
            margin = Decimal(10) ** -(20 + length // 2)  # decimal's ln is correctly rounded: this is ample
            ends = [-(Decimal(end) / (1 << length)).ln() * t / (1 << m) for end in (u + 1, u) if end]
            if u and math.floor(ends[0] - margin) == math.floor(ends[1] + margin):
                return min(math.floor(ends[0]), (1 << 62) >> m)  # far tails may be cut: post-processing
        u, length = u << 64 | next(digits), length + 64


def _is_below_exp(coin: int, length: int, low: int, t: int, digits: Iterator[int]) -> bool:
    """Whether the coin's binary fraction of `length` and further digits lies below exp(-low/t)."""
    while low:
        with localcontext(prec=60 + length):
            threshold = (Decimal(-low) / t).exp() * (1 << length)
            margin = Decimal(10) ** -20
            if coin + 1 <= threshold - margin:
                return True
            if coin >= threshold + margin:
                return False
        coin, length = coin << 64 | next(digits), length + 64
    return True


def _more_digits(draws: Draws, row: int, attempt: int) -> Iterator[int]:
    """Further random words for one draw, from a use of their own."""
    number = 0
    while True:
        words = draws.blocks_again(NoiseUse.FURTHER_DIGITS, attempt << 8 | number, np.array([row]))
        yield from (int(word) for word in words[0])
        number += 1
