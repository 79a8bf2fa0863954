"""How much a released row says about its original row, beside what reference and kernel leave on average."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from dipriv._base.arrays import FloatArray
from dipriv._base.columns import NULL, PRESENT, ColumnValues
from dipriv.release.fidelity import correlation_of, kappa_of
from dipriv.report.facts import MIN_ROWS_SHOWN, Fidelity
from dipriv.report.pairing import Pair

Z = 1.96
"""Of a 95% interval."""
CORRELATION: Literal["correlation"] = "correlation"
AGREEMENT: Literal["agreement beyond chance"] = "agreement beyond chance"


def row_fidelity(pair: Pair, expected: float | None, bound: float | None) -> tuple[Fidelity, ...]:
    """Correlation of numbers and times, agreement of labels beyond chance; nothing where rows are not paired.

    Parameters
    ----------
    pair : the column.
    expected : what reference and kernel leave on average, an estimate; it is moved between 0 and the bound.
    bound : the largest correlation that the noise on rows allows, where it is known.

    Returns
    -------
    Fidelity : with a 95% interval; nothing where it cannot be measured.
    """
    if pair.mates is None:
        return ()
    one, two = _cells(pair.mates.all), _cells(pair.after.all)
    there = ~(np.isnan(pair.mates.all) | np.isnan(pair.after.all))
    n = len(one) if pair.scale == "label" else int(there.sum())
    if n < MIN_ROWS_SHOWN:
        return ()
    if expected is not None:
        expected = None if math.isnan(expected) else min(max(0.0, expected), 1.0 if bound is None else bound)
    value = kappa_of(one, two) if pair.scale == "label" else correlation_of(one, two)
    if not np.isfinite(value):
        return ()
    if pair.scale == "label":
        agree = float(
            np.mean((pair.mates.all == pair.after.all) | (np.isnan(pair.mates.all) & np.isnan(pair.after.all)))
        )
        low, high = kappa_interval(value, agree, n)
    else:
        low, high = fisher_interval(value, n)
    return (Fidelity(AGREEMENT if pair.scale == "label" else CORRELATION, value, low, high, expected),)


def fisher_interval(r: float, n: int) -> tuple[float, float]:
    """The 95% interval of a correlation by Fisher's transformation.

    >>> low, high = fisher_interval(0.0, 403)
    >>> round(low, 3), round(high, 3)
    (-0.098, 0.098)
    """
    if abs(r) >= 1 or n <= 3:
        return (r, r) if abs(r) >= 1 else (-1.0, 1.0)
    half = Z / math.sqrt(n - 3)
    return math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)


def kappa_interval(kappa: float, agree: float, n: int) -> tuple[float, float]:
    """The 95% interval of Cohen's kappa of n rows, with his simple standard error: agreement varies, chance does not.

    >>> kappa_interval(1.0, 1.0, 400), [round(end, 3) for end in kappa_interval(0.0, 0.5, 400)]
    ((1.0, 1.0), [-0.098, 0.098])
    """
    if kappa >= 1:
        return kappa, kappa
    unlike_by_chance = (1.0 - agree) / (1.0 - kappa)
    half = Z * math.sqrt(agree * (1.0 - agree) / n) / unlike_by_chance
    return max(-1.0, kappa - half), min(1.0, kappa + half)


def _cells(values: FloatArray) -> ColumnValues:
    missing = np.isnan(values)
    return ColumnValues(np.where(missing, 0.0, values), np.where(missing, NULL, PRESENT).astype(np.uint8))
