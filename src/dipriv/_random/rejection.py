"""Exact rejection sampling: double precision decides nearly all draws, decimal arithmetic those too close to call.

A sampler tries one block of random bits for each row. An attempt is accepted, rejected, or undecided: its random binary
fractions are then extended, digit by digit, until decimal arithmetic decides. Rejected rows have another attempt.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import Words
from dipriv._random.bits import Draws
from dipriv._random.streams import NoiseUse

ACCEPTED = 0
"""The state of a draw whose value counts."""
REJECTED = 1
"""The state of a draw that is to be repeated."""
UNDECIDED = 2
"""The state of a draw that needs further digits."""
MAX_NOISE = 1 << 62
"""Draws z beyond ±2^62 are returned as ±2^62: 64-bit integers do not hold them all. See `noisy_sum`."""
MAX_NOISY = 1 << 61
"""Numbers that get noise are at most this large, and so are noisy numbers."""


def noisy_sum(values: NDArray[np.int64], noise: NDArray[np.int64]) -> NDArray[np.int64]:
    """Add noise: x + z clipped to ±2^61, for |x| <= 2^61; a function of the exact x + z, so post-processing.

    Where |z| > 2^62 was returned as ±2^62, x + z and what is added here lie beyond the same end, ±2^61. Clipping z
    alone would not be post-processing: x + 2^62 tells x.
    """
    clipped: NDArray[np.int64] = np.clip(values + noise, -MAX_NOISY, MAX_NOISY)
    return clipped


def low_bits(t: int) -> int:
    """m: the number of low bits of |z|, so that c = t/2^m lies in [256, 512) where t allows it."""
    return max(0, t.bit_length() - 9)


def accepted_draws(
    draws: Draws,
    attempt_all: Callable[[Words, NDArray[np.int64], NDArray[np.uint8]], None],
    decide: Callable[[Words, Iterator[int]], tuple[int, int]],
) -> NDArray[np.int64]:
    """One accepted value for each row.

    `attempt_all` writes the value and the state of each pair of words; `decide` gives both for one pair and its further
    digits, and never leaves it undecided. Values beyond ±`MAX_NOISE` are returned as ±`MAX_NOISE`.
    """
    z = np.empty(draws.count, dtype=np.int64)
    rows = np.arange(draws.count)
    words = draws.blocks(NoiseUse.DRAW)
    attempt = 0
    while len(rows):
        drawn, state = np.empty(len(rows), dtype=np.int64), np.empty(len(rows), dtype=np.uint8)
        attempt_all(words, drawn, state)
        for row in np.flatnonzero(state == UNDECIDED):
            value, state[row] = decide(words[row], _more_digits(draws, int(rows[row]), attempt))
            drawn[row] = min(max(value, -MAX_NOISE), MAX_NOISE)
        z[rows] = drawn
        rows = rows[np.flatnonzero(state == REJECTED)]
        attempt += 1
        words = draws.blocks_again(NoiseUse.DRAW, attempt, rows)
    return z


def floor_of_scaled_log(u: int, t: int, m: int, digits: Iterator[int]) -> int:
    """floor(-ln(U) t/2^m) for U in [u, u+1)/2^64 and further digits."""
    length = 64
    while True:
        with localcontext(prec=60 + length):
            margin = Decimal(10) ** -(20 + length // 2)  # decimal's ln is correctly rounded: this is ample
            ends = [-(Decimal(end) / (1 << length)).ln() * t / (1 << m) for end in (u + 1, u) if end]
            if u and math.floor(ends[0] - margin) == math.floor(ends[1] + margin):
                return math.floor(ends[0])
        u, length = u << 64 | next(digits), length + 64


def is_below_exp(coin: int, length: int, numerator: int, denominator: int, digits: Iterator[int]) -> bool:
    """Whether the coin's binary fraction of `length` and further digits lies below exp(-numerator/denominator)."""
    while numerator:
        with localcontext(prec=60 + length):
            threshold = (Decimal(-numerator) / denominator).exp() * (1 << length)
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
