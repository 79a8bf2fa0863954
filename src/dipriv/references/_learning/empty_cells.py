"""Two-way tables with many empty cells: noise must not fill them.

A child has no income, an industry has one category: such tables have zeros that two independent columns would not
have. Everything here is post-processing of numbers that are already private.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit, log_ndtr, logit

from dipriv._base.arrays import FloatArray
from dipriv.references._learning.measurements import Spread

ROUNDS = 20
PRIOR = 2.0
"""Cells, half of them empty, that each share of empty cells is estimated with besides those of the table."""


def without_noise(noisy: FloatArray, expected: FloatArray, spread: Spread) -> FloatArray:
    """Noisy counts, each times the probability that its cell is not empty (empirical Bayes).

    The odds that a cell is empty are those of its row times those of its column over those of the table, all estimated
    from the noisy counts (expectation-maximization). A cell that is not empty has an exponential count; its mean is
    what independent columns would have, larger by as much as there are empty cells. A table with rows in nearly all
    cells stays nearly as it is.

    Parameters
    ----------
    noisy
        A measured table.
    expected
        The counts if the two columns were independent.
    spread
        The noise of a cell.
    """
    odds = np.zeros(noisy.shape)
    for _ in range(ROUNDS):
        means = np.maximum(expected * (1.0 + np.exp(odds)), spread.deviation)
        empty = expit(odds + _log_noise(noisy, spread) - _log_filled(noisy, means, spread))
        odds = _log_odds(empty, 1) + _log_odds(empty, 0) - _log_odds(empty, (0, 1))
    kept: FloatArray = (1.0 - empty) * noisy
    return kept


def _log_odds(empty: FloatArray, axes: int | tuple[int, ...]) -> FloatArray:
    """The log odds of an empty cell along these axes."""
    mean = empty.mean(axis=axes, keepdims=True)
    weight = PRIOR / (PRIOR + empty.size / mean.size)
    found: FloatArray = logit((1.0 - weight) * mean + weight / 2.0)
    return found


def _log_noise(noisy: FloatArray, spread: Spread) -> FloatArray:
    """The logarithm of the density of noise."""
    scale = spread.scale
    if spread.kind == "laplace":
        return -np.abs(noisy) / scale - math.log(2.0 * scale)
    return -((noisy / scale) ** 2) / 2.0 - math.log(math.sqrt(2.0 * math.pi) * scale)


def _log_filled(noisy: FloatArray, means: FloatArray, spread: Spread) -> FloatArray:
    """The logarithm of the density of noise plus an exponential variable with these means, which exceed its scale."""
    scale, rate = spread.scale, 1.0 / means
    if spread.kind == "gaussian":
        tail: FloatArray = log_ndtr(noisy / scale - scale * rate)
        return np.log(rate) + (scale * rate) ** 2 / 2.0 - rate * noisy + tail
    fall = 1.0 / scale
    above = np.maximum(noisy, 0.0)
    parts = -np.expm1(-(fall - rate) * above) / (fall - rate) + 1.0 / (fall + rate)
    return np.log(rate * fall / 2.0) + np.log(parts) - rate * above + np.minimum(noisy, 0.0) * fall
