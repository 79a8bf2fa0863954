"""Rows are drawn by rejection: words that do not depend on the row, and whether they lie in its cap."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray, Words
from dipriv._base.jit import jit
from dipriv._random.bits import Draws
from dipriv.kernels._cap.quantiles import quantile, quantile_pieces, word_of

MAX_WORDS = 1 << 17
"""As many words are drawn at a time: they fit the processor's cache."""


def draw_rows(u: FloatArray, draws: Draws, cosine: float, mixing: int, trials: int) -> FloatArray:
    """A row v for each row of u: as it is drawn, or in its row's cap with probability mixing/2^64.

    The first use has a coin and one trial of each row, use r = 1, 2, ... has `trials` further ones, in which rows that
    are still without v look for one in their cap.
    """
    n, width = u.shape
    v = np.empty((n, width))
    size = max(1, MAX_WORDS // (width + 1))
    for start in range(0, n, size):
        part = slice(start, min(start + size, n))
        some = Draws(draws.bits, draws.first + start, part.stop - start, draws.column)
        _draw_some(u[part], some, cosine, mixing, trials, v[part])
    return v


def _draw_some(u: FloatArray, draws: Draws, cosine: float, mixing: int, trials: int, v: FloatArray) -> None:
    width, pieces = u.shape[1], quantile_pieces()
    rows = np.arange(draws.count)
    words = draws.runs(0, blocks_for(width + 1))
    rows = rows[: draw_or_try(u, words, cosine, np.uint64(mixing), pieces, v, rows)]
    use = 0
    while len(rows):
        use += 1
        words = draws.runs_again(use, blocks_for(trials * width), rows)
        rows = rows[: try_cap(u, words, cosine, trials, pieces, v, rows)]


def blocks_for(words: int) -> int:
    """Blocks of two words."""
    return (words + 1) // 2


@jit
def draw_or_try(
    u: FloatArray,
    words: Words,
    cosine: float,
    mixing: np.uint64,
    pieces: FloatArray,
    v: FloatArray,
    rows: NDArray[np.int64],
) -> int:
    """The first word is the coin, the next are a v that is released unless the coin asks for one in the cap.

    Rows that are left without v come first in `rows`, and their number comes back.
    """
    x, left = np.empty(u.shape[1]), 0
    for i in range(len(rows)):
        if words[i, 0] < mixing:
            reach = cosine * locate(u[i], pieces, x)
            sign = side_of_cap(words[i], 1, x, reach, pieces)
            if sign == 0:
                rows[left] = i
                left += 1
                continue
        else:
            sign = 1
        place(words[i], 1, sign, v[i])
    return left


@jit
def try_cap(
    u: FloatArray, words: Words, cosine: float, trials: int, pieces: FloatArray, v: FloatArray, rows: NDArray[np.int64]
) -> int:
    """Further trials for some of the rows, in turn; rows that are left without v come first in `rows`."""
    width = u.shape[1]
    x, left = np.empty(width), 0
    for i in range(len(rows)):
        row = rows[i]
        reach = cosine * locate(u[row], pieces, x)
        sign, trial = 0, 0
        while sign == 0 and trial < trials:
            sign = side_of_cap(words[i], trial * width, x, reach, pieces)
            trial += 1
        if sign:
            place(words[i], (trial - 1) * width, sign, v[row])
        else:
            rows[left] = row
            left += 1
    return left


@jit
def locate(u: FloatArray, pieces: FloatArray, x: FloatArray) -> float:
    """Write the normal scores of a row, and give their norm."""
    total = 0.0
    for k in range(len(u)):
        x[k] = quantile(word_of(u[k]), pieces)
        total += x[k] * x[k]
    return math.sqrt(total)


@jit
def side_of_cap(words: Words, start: int, x: FloatArray, reach: float, pieces: FloatArray) -> int:
    """1 if the v that starts there is in the cap of x, -1 if its mirror image is, where all words are complements."""
    product, total = 0.0, 0.0
    for k in range(len(x)):
        y = quantile(words[start + k], pieces)
        product += x[k] * y
        total += y * y
    least = reach * math.sqrt(total)
    if product >= least:
        return 1
    return -1 if -product >= least else 0


@jit
def place(words: Words, start: int, sign: int, v: FloatArray) -> None:
    """V, or its mirror image, in the middle of one of 2^52 steps."""
    for k in range(len(v)):
        word = words[start + k] if sign > 0 else ~words[start + k]
        v[k] = (np.float64(word >> np.uint64(12)) + 0.5) * 2.0**-52
