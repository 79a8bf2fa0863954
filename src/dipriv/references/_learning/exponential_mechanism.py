"""The exponential mechanism: a candidate i is drawn with probability proportional to exp(score_i/s), exactly.

By inversion: each candidate owns an interval of [0, 1) as long as its probability, and a uniform number U chooses the
one that contains it. Double precision decides unless U is closer to another interval than the error. With u = 2^-53 and
weights exp(-x) ≤ 1, rounding x moves a weight by less than 2u, exp by a few u, and each sum by u of the total: in all
less than 15u of the total for each candidate, and the band is 16 times that. Otherwise, about once in 2^44/n² choices
among n, the intervals are computed in decimal arithmetic, and U gets further random digits, until U lies inside one
of them. Weights that underflow are within the error, so their probabilities are exact, too.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import Words

BAND = 2.0**-45
"""The error that is allowed for in double precision, for each candidate, relative to the sum of the weights."""


def exponential_choice(
    scores: NDArray[np.int64], scale: Fraction, words: Callable[[int], Words], band: float = BAND
) -> int:
    """The number of one of the candidates, drawn exactly; `words` gives further random words, as `Bits.words` does.

    With scores that one row changes by at most Δ and a scale of 2Δ/ε this is ε-DP and ε²/8-zCDP. `band=inf` sends the
    choice through decimal arithmetic, with the same result.
    """
    gaps = scores.max().astype(np.uint64) - scores.astype(np.uint64)  # modulo 2^64, where no gap is too large
    u = int(words(1)[0])
    choice = _choice_by_doubles(gaps, float(scale), u, band)
    return _choice_by_decimals(gaps.tolist(), scale, u, words) if choice is None else choice


def _choice_by_doubles(gaps: Words, scale: float, u: int, band: float) -> int | None:
    """The candidate whose interval certainly contains U in [u, u+1)/2^64, if double precision finds it."""
    ends = np.cumsum(np.exp(gaps / -scale))
    error = len(ends) * ends[-1] * band
    point = u * 2.0**-64 * ends[-1]
    inner = ends[:-1]  # U is at least 0 and less than 1: only ends between candidates are in doubt
    first, last = (int(np.searchsorted(inner, end, side="right")) for end in (point - error, point + error))
    return first if first == last else None


def _choice_by_decimals(gaps: list[int], scale: Fraction, u: int, words: Callable[[int], Words]) -> int:
    """The same, exactly: U is a binary fraction whose digits are drawn as far as they are needed."""
    length = 64
    while True:
        with localcontext(prec=60 + length):
            weights = {gap: (Decimal(-gap * scale.denominator) / scale.numerator).exp() for gap in set(gaps)}
            ends = list(accumulate(weights[gap] for gap in gaps))
            error = len(ends) ** 2 * Decimal(10) ** -(50 + length)
            low, high = (ends[-1] * end / (1 << length) for end in (u, u + 1))
            inner = ends[:-1]
            first, last = (sum(end <= point for end in inner) for point in (low - error, high + error))
        if first == last:
            return first
        u, length = u << 64 | int(words(1)[0]), length + 64
