"""Exact discrete Laplace noise: P(z) is proportional to exp(-|z|/t) for integers z, with an integer scale t.

|z| = high 2^m + low. The two parts are independent: `high` is geometric with ratio exp(-2^m/t), which is the integer
part of c E with c = t/2^m and E standard exponential, E = -ln U; `low` has mass proportional to exp(-low/t) on
0..2^m-1, by rejection from the uniform. A fair bit is the sign, and -0 is rejected (Canonne, Kamath, Steinke 2020).

The fast path computes c E and exp(-low/t) in double precision and decides only what its error band allows to decide:
the digits of U that were not looked at, plus 2^-48 relative for the C library's log and exp and the products, 32 times
what a library within one unit in the last place needs. What falls inside the band (about once in 10^11 draws) is
decided by decimal arithmetic on as many further random digits as it takes. So the distribution is exact, but that draws
beyond ±2^62 are returned as ±2^62 (`rejection.noisy_sum`); the fast path gives none of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import Words
from dipriv._base.jit import jit
from dipriv._random.bits import Draws
from dipriv._random.rejection import ACCEPTED, REJECTED, accepted_draws, floor_of_scaled_log, is_below_exp, low_bits

MAX_SCALE = 1 << 56
"""Up to here the fast path gives |z| < 2^62: -ln U < 37.5 for its U, and 37.5 t < 2^62."""
BAND = 2.0**-48
"""The relative error that is allowed for in double precision."""


def discrete_laplace(draws: Draws, t: int, band: float = BAND) -> NDArray[np.int64]:
    """One exact draw for each row. `band=inf` sends every draw through decimal arithmetic, with the same result."""
    return accepted_draws(
        draws,
        lambda words, z, state: try_draws(words, float(t), low_bits(t), band, z, state),
        lambda words, digits: _decide(words, digits, t),
    )


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
    high = floor_of_scaled_log(int(words[0]), t, m, digits)
    size = (high << m) + low
    if not is_below_exp(second >> (m + 1), rest, low, t, digits) or (negative and size == 0):
        return 0, REJECTED
    return (-size if negative else size), ACCEPTED
