"""Groups of a column's states, in which it enters two-way tables: few enough for noise, and cut where people cut."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray
from dipriv.references._learning.shares import MAX_GROUPS, MAX_ORDERED_GROUPS
from dipriv.references._models.network import Groups

A_FEW_MORE = 1.5
"""A column with a few more states than groups keeps them all, so that functions of a column stay functions."""
HEAVY, MOSTLY = 0.25, 0.9
"""Ordered states with this part of an even group's count, if they have most of all rows, are as good as all states."""
TOLERANCE = 0.4
"""How much a group's count may differ from an even share, so that it begins with a round number."""


def coarsened(
    histogram: FloatArray, digits: FloatArray | None, missing: int, max_groups: int, clear: float = math.inf
) -> Groups:
    """The group of each state, about `max_groups` of them. Kinds of missing cells stand alone.

    A state without rows goes with the one before it: the noise of tables must not give it any.

    Parameters
    ----------
    digits
        Of ordered states, how many digits the number has with which each begins. Their groups have about the same
        count and begin at round numbers: laws and forms have their limits there. None for states without an order: the
        most frequent ones have groups of their own.
    clear
        States without an order that have more rows than this have groups of their own in any case, up to MAX_GROUPS.
    """
    own = histogram[missing:]
    there = np.flatnonzero(own > 0)
    if digits is not None:
        enough = HEAVY * own.sum() / max_groups
        heavy = np.flatnonzero(own > enough)
        if own[heavy].sum() > MOSTLY * own.sum():
            there = _with_runs_between(heavy, own, digits, enough)
    if len(there) <= 1:
        group_of = np.zeros(len(own), dtype=np.int64)
    elif len(there) <= A_FEW_MORE * max_groups:
        group_of = np.maximum(np.searchsorted(there, np.arange(len(own)), side="right") - 1, 0)
    elif digits is None:
        alone = min(int(np.sum(own > clear)), len(there) - 1, MAX_GROUPS - 1)
        group_of = np.minimum(np.arange(len(own)), max(max_groups - 1, alone))
    else:
        group_of = _even_groups(own, digits, min(max_groups, MAX_ORDERED_GROUPS))
    return np.concatenate([np.arange(missing), missing + group_of])


def _with_runs_between(
    heavy: NDArray[np.intp], counts: FloatArray, digits: FloatArray, enough: float
) -> NDArray[np.intp]:
    """Heavy states, and the starts of even groups of the states between them, where these have enough rows together.

    So positive values among zeros have groups of their own, however few rows each value has.
    """
    starts, edges = [heavy], [-1, *heavy.tolist(), len(counts)]
    for begin, end in zip([edge + 1 for edge in edges[:-1]], edges[1:], strict=True):
        n_groups = int(counts[begin:end].sum() // enough)
        if n_groups:
            group_of = _even_groups(counts[begin:end], digits[begin:end], n_groups)
            starts.append(begin + np.unique(group_of, return_index=True)[1])
    return np.sort(np.concatenate(starts))


def _even_groups(counts: FloatArray, digits: FloatArray, max_groups: int) -> Groups:
    """Consecutive states in groups with about the same count, which begin with numbers of few digits."""
    below = np.append(0.0, np.cumsum(counts))
    starts = [0]
    while len(starts) < max_groups:
        begin = starts[-1]
        aim = (below[-1] - below[begin]) / (max_groups - len(starts) + 1)
        sizes = below[begin + 1 : -1] - below[begin]
        if aim <= 0 or not len(sizes):
            break
        after = begin + 1 + np.flatnonzero((counts[begin + 1 :] > 0) & (sizes > 0) & (sizes < below[-1] - below[begin]))
        if not len(after):
            break
        off = np.abs(below[after] - below[begin] - aim) / aim
        near = after[off <= max(TOLERANCE, off.min())]
        best = near[digits[near] == digits[near].min()]
        starts.append(int(best[np.argmin(np.abs(below[best] - below[begin] - aim))]))
    return np.searchsorted(starts, np.arange(len(counts)), side="right") - 1


def digits_of(values: FloatArray) -> FloatArray:
    """How many significant digits numbers have, with a half for a last digit of five.

    >>> digits_of(np.array([0.0, 20.0, 15.0, 14.0, 1250.0])).tolist()
    [0.0, 1.0, 1.5, 2.0, 2.5]
    """
    found = np.zeros(len(values))
    for place, value in enumerate(values.tolist()):
        text = f"{abs(value):.12e}".split("e")[0].replace(".", "").rstrip("0")
        found[place] = len(text) - 0.5 * text.endswith("5")
    return found
