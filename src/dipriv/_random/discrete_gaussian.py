"""Exact discrete Gaussian noise: P(z) is proportional to exp(-z²/(2σ²)) for integers z, with a rational variance σ².

By rejection (Canonne, Kamath, Steinke 2020, Algorithm 3). The proposal has |z| = high 2^m + low, where `high` is
geometric with ratio exp(-2^m/t), which is the integer part of c E with c = t/2^m and E = -ln U standard exponential,
`low` is uniform on 0..2^m-1, and t = floor(σ) + 1. It is accepted with probability exp(-x),

    x = (|z| - σ²/t)²/(2σ²) + low/t,

since exp(-high 2^m/t) exp(-x) is exp(-z²/(2σ²)) up to a constant. A fair bit is the sign, and -0 is rejected. For large
σ three proposals in four are accepted.

The fast path computes c E and exp(-x) in double precision and decides only what its error band allows to decide: the
digits of U and of the coin that were not looked at, plus 2^-45, relative for c E and absolute for exp(-x). Rounding x
moves exp(-x) by less than 4 · 2^-53, as y exp(-y²/2) and y² exp(-y²/2) stay below 0.74; with the library's exp and the
coin it is less than 2^-50, so the band is 32 times what a library within one unit in the last place needs. What
falls inside the band is decided by decimal arithmetic on further random digits. So the distribution is exact, but that
draws beyond ±2^62 are returned as ±2^62 (`rejection.noisy_sum`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import Words
from dipriv._base.jit import jit
from dipriv._random.bits import Draws
from dipriv._random.rejection import ACCEPTED, REJECTED, accepted_draws, floor_of_scaled_log, is_below_exp, low_bits

MAX_VARIANCE = 1 << 80
"""Up to here |z| is exact in double precision, and at most once in 2^29 draws the digits of the coin are too few."""
BAND = 2.0**-45
"""The error that is allowed for in double precision."""


def discrete_gaussian(draws: Draws, variance: Fraction, band: float = BAND) -> NDArray[np.int64]:
    """One exact draw for each row. `band=inf` sends every draw through decimal arithmetic, with the same result."""
    t = proposal_scale(variance)
    return accepted_draws(
        draws,
        lambda words, z, state: try_draws(words, float(variance), float(t), low_bits(t), band, z, state),
        lambda words, digits: _decide(words, digits, variance),
    )


def proposal_scale(variance: Fraction) -> int:
    """T = floor(σ) + 1."""
    return math.isqrt(math.floor(variance)) + 1


@jit
def try_draws(
    words: Words, variance: float, t: float, m: int, band: float, z: NDArray[np.int64], state: NDArray[np.uint8]
) -> None:
    """Each pair of words -> z and whether it is accepted, rejected, or too close to call."""
    c = t * 2.0**-m
    mask = (np.int64(1) << np.int64(m)) - np.int64(1)
    width = 2.0 ** (m - 63)
    center = variance / t
    for i in range(len(z)):  # signed integers and no branches: half the time
        digits = np.float64(np.int64(words[i, 0] >> np.uint64(11)))
        low = np.int64(words[i, 1]) & mask
        negative = np.int64(words[i, 1] >> np.uint64(m)) & 1
        below = np.float64(np.int64(words[i, 1] >> np.uint64(m + 1))) * width
        y = -math.log((digits + 0.5) * 2.0**-53) * c
        high = np.int64(y)
        error = y * band + c / max(digits, 0.25)
        size = (high << np.int64(m)) + low
        distance = np.float64(size) - center
        chance = math.exp(-(distance * distance * (0.5 / variance) + np.float64(low) / t))
        rejected = (below > chance) | ((negative == 1) & (size == 0))
        decided = (y - high > error) & (high + 1.0 - y > error) & (abs(chance - below - width / 2) > width / 2 + band)
        z[i] = size * (1 - 2 * negative)
        state[i] = rejected * decided + 2 * (not decided)


def _decide(words: Words, digits: Iterator[int], variance: Fraction) -> tuple[int, int]:
    """The same, exactly: U and the coin are binary fractions whose digits are drawn as far as they are needed."""
    t = proposal_scale(variance)
    m = low_bits(t)
    second = int(words[1])
    low, negative = second & ((1 << m) - 1), second >> m & 1
    size = (floor_of_scaled_log(int(words[0]), t, m, digits) << m) + low
    x = (size - variance / t) ** 2 / (2 * variance) + Fraction(low, t)
    if not is_below_exp(second >> (m + 1), 63 - m, x.numerator, x.denominator, digits) or (negative and size == 0):
        return 0, REJECTED
    return (-size if negative else size), ACCEPTED
