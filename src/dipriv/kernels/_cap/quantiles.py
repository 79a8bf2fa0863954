"""Normal quantiles of 64-bit words, by a table of quadratics in basic double arithmetic.

A word w stands for the uniforms V in [w, w + 1]/2^64. A word of the upper half has minus the quantile of its
complement, exactly. In the lower half each octave [2^-(k+1), 2^-k) of V, k = 1, ..., 35, has 256 equal pieces. On each
of them the quantile is the quadratic through its values at both ends and in the middle. Below 2^-36 it is held there.

Let g = Φ⁻¹. Between V = 2^-36 and 1 - 2^-36 the result is within ERROR = 2^-30 of g(V), for every V of the word:

- the quadratic is off by at most √3/216 h³ max|g'''| on a piece of width h, which is below 2^-31;
- nodes are multiples of 2^-40 within 2^-40 of g, and interpolation makes at most 5/4 of an error of nodes;
- a word becomes a double, which moves V by at most 2^-64 + 2^-53 V, and so g by at most 2^-64 g'(V) + 2^-52;
- rounding in the evaluation is below 2^-48.

Towards the tail g' grows and the first term falls: in each octave the sum is below 2^-30. The tests certify the
nodes in decimal arithmetic, and the sum octave by octave.

Nodes are scipy's quantiles, rounded by at most 2^-41: so those may be off by 2^-41, hundreds of units in their last
place. Where another machine's logarithm differs in its last digit, a few nodes differ by 2^-40. The bound allows for
that, and a seeded release differs less than once in 10^12 rows. All else is the same on every machine.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
from scipy.special import ndtri

from dipriv._base.arrays import FloatArray
from dipriv._base.jit import jit

TAIL = 36
"""Quantiles are held at those of 2^-36 and 1 - 2^-36."""
PIECES = 256
"""Pieces of an octave: a power of 2, so that the leading digits of a double number them."""
NODE_DIGITS = 40
"""Nodes are multiples of 2^-40."""
ERROR = Fraction(1, 1 << 30)
"""The largest error between the tails."""
MAX_QUANTILE = 7
"""No quantile is larger: -Φ⁻¹(2^-36) is 6.7."""


@cache
def quantile_pieces() -> FloatArray:
    """(35 · 256 + 1, 3): c0, c1, c2 of c0 + c1 x + c2 x², x from 0 to 1; the last is for V = 1/2.

    There -2^-60 stands for 0, so that no quantile is 0 and every row has a direction.
    """
    nodes = table_nodes()
    low, middle, high = nodes[:, :-1:2], nodes[:, 1::2], nodes[:, 2::2]
    pieces = np.stack([low, 4 * middle - 3 * low - high, 2 * (low + high) - 4 * middle], axis=-1).reshape(-1, 3)
    table = np.concatenate([pieces, [[-(2.0**-60), 0.0, 0.0]]])
    table.flags.writeable = False
    return table


def table_nodes() -> FloatArray:
    """(35, 513): the quantiles at the ends and the middle of each piece, from V = 2^-36 up to 1/2."""
    lowest = np.ldexp(1.0, np.arange(-TAIL, -1))[:, np.newaxis]
    nodes: FloatArray = ndtri(lowest * (1 + np.arange(2 * PIECES + 1) / (2 * PIECES)))
    return np.round(nodes * 2.0**NODE_DIGITS) * 2.0**-NODE_DIGITS


@jit
def quantile(word: np.uint64, pieces: FloatArray) -> np.float64:
    """The quantile of a word: the exponent and 8 digits of its double number the piece, 44 digits are the place."""
    upper = word >> np.uint64(63)
    lower = ~word if upper else word
    digits = np.float64(np.int64(max(lower, np.uint64(1 << 28)))).view(np.int64)
    piece = (digits >> np.int64(44)) - np.int64((1023 + 28) * 256)
    x = np.float64(digits & np.int64((1 << 44) - 1)) * 2.0**-44
    y = pieces[piece, 0] + x * (pieces[piece, 1] + x * pieces[piece, 2])
    return np.float64(-y if upper else y)


@jit
def word_of(u: float) -> np.uint64:
    """The word of a uniform: below 0 and not-a-number as 0, 1 and above as the last."""
    if u >= 1.0:
        return ~np.uint64(0)
    return np.uint64(u * 2.0**64) if u > 0.0 else np.uint64(0)
