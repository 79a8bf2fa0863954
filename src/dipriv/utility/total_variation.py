"""Total variation of a column, defined once: for reports, benchmarks, and what a verdict predicts.

Labels count one by one. Numbers fall into about twenty cells with equal shares of the true column, and a value that
alone has a cell's share has a cell of its own, so that a column of zeros and a few amounts is measured right.
"""

from __future__ import annotations

import numpy as np

from dipriv._base.arrays import FloatArray

CELLS = 20
"""About how many cells a column of numbers is measured in."""


def total_variation(p: FloatArray, q: FloatArray) -> float:
    """Half the sum of the differences of two vectors of shares: the part of the rows that would have to be changed.

    >>> total_variation(np.array([0.5, 0.5]), np.array([0.75, 0.25]))
    0.25
    """
    return float(0.5 * np.sum(np.abs(p - q)))


def cell_edges(values: FloatArray, cells: int = CELLS) -> FloatArray:
    """The inner edges of cells: a cell for each value where there are few, else about `cells` with equal shares.

    Edges lie half-way between neighbouring values, so that a released value counts as the nearest true one.

    Parameters
    ----------
    values
        The true column, without missing cells.
    cells
        How many cells are wanted; a value with the share of a cell has one of its own.

    Returns
    -------
    FloatArray
        In increasing order; `np.searchsorted(edges, x)` is the cell of a number x.

    Examples
    --------
    >>> cell_edges(np.array([0.0] * 95 + [10.0, 20.0, 30.0, 40.0, 50.0]), cells=2)
    array([5.])
    >>> cell_edges(np.array([1.0, 1.0, 3.0]))
    array([2.])
    """
    distinct, counts = np.unique(values, return_counts=True)
    first = np.ones(len(distinct), dtype=bool)
    """Whether a cell starts at a value."""
    if len(distinct) > cells:
        share = len(values) / cells
        alone = counts >= share
        light = np.where(alone, 0, counts)
        before = np.cumsum(light) - light
        run = np.cumsum(alone)  # light values between the same two others
        starts = np.concatenate([[True], run[1:] != run[:-1]])
        since = before - np.maximum.accumulate(np.where(starts, before, 0))
        part = np.floor((since + light / 2) / share)
        first[1:] = (part[1:] != part[:-1]) | alone[1:] | alone[:-1]
    edges: FloatArray = distinct[:-1] / 2 + distinct[1:] / 2
    return edges[first[1:]]


def number_variation(before: FloatArray, after: FloatArray, nulls: tuple[float, float] = (0.0, 0.0)) -> float:
    """The total variation of a column of numbers.

    Parameters
    ----------
    before, after
        The true and the released numbers, without missing cells.
    nulls
        The shares of missing cells before and after, which count as one more value.

    Returns
    -------
    float
        Between 0 and 1.
    """
    edges = cell_edges(before) if len(before) else np.empty(0)
    counts = (np.bincount(np.searchsorted(edges, x), minlength=len(edges) + 1) for x in (before, after))
    p, q = (
        np.append((1.0 - absent) * count / max(1, count.sum()), absent)
        for count, absent in zip(counts, nulls, strict=True)
    )
    return total_variation(p, q)
