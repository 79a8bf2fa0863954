"""Two-way tables: noise taken out, margins put right, and three-way tables of greatest entropy made from them.

Everything here is post-processing of numbers that are already private.
"""

from __future__ import annotations

import math

import numpy as np

from dipriv._arrays import FloatArray

SHRINK = 0.45
"""Of the noise's own largest singular value; measured to be good on the bank and Adult tables."""
ROUNDS = 25


def denoised(noisy: FloatArray, rows: FloatArray, columns: FloatArray, scale: float) -> FloatArray:
    """A table with these margins near the noisy one: what it has beyond independence, less what is noise.

    The margins are known better than the table tells, so what it has beyond independence adds up to nothing in every
    line. Dependence has few singular values that matter, noise has all of them alike, about σ(√(m-1) + √(n-1)) at most:
    each is shortened by its share of noise. Lines with few rows, about which the noise says more than the data, are
    brought near independence.
    """
    product = np.outer(rows, columns) / rows.sum()
    excess = noisy - product
    excess = excess - excess.mean(axis=0) - excess.mean(axis=1)[:, np.newaxis] + excess.mean()
    left, values, right = np.linalg.svd(excess, full_matrices=False)
    limit = SHRINK * scale * math.sqrt(2.0) * sum(math.sqrt(max(0, size - 1)) for size in noisy.shape)
    kept = np.sqrt(np.maximum(values**2 - limit**2, 0.0))
    beyond = (left * kept) @ right * np.outer(_trust(rows, scale, len(columns)), _trust(columns, scale, len(rows)))
    return with_margins(np.maximum(product + beyond, 0.0), rows, columns)


def _trust(totals: FloatArray, scale: float, cells: int) -> FloatArray:
    """How much of what lines of so many noisy cells show is about their rows: x²/(x² + variance of the noise)."""
    trust: FloatArray = totals**2 / (totals**2 + 2.0 * scale**2 * cells)
    return trust


def with_margins(table: FloatArray, rows: FloatArray, columns: FloatArray) -> FloatArray:
    """Iterative proportional fitting; a trace of independence keeps every row and column reachable."""
    table = table + 1e-9 * np.outer(rows, columns) / rows.sum()
    for _ in range(ROUNDS):
        table = table * _ratio(rows, table.sum(axis=1))[:, np.newaxis]
        table = table * _ratio(columns, table.sum(axis=0))
    return table


def of_greatest_entropy(child_first: FloatArray, child_second: FloatArray, parents: FloatArray) -> FloatArray:
    """The three-way table (child, first, second) without interaction that has these three two-way margins."""
    child = child_first.sum(axis=1)
    table: FloatArray = np.einsum(
        "ja,jb->jab", child_first, child_second * _ratio(np.ones_like(child), child)[:, np.newaxis]
    )
    table = table + 1e-9 * table.sum() / table.size
    for _ in range(ROUNDS):
        table = table * _ratio(child_first, table.sum(axis=2))[:, :, np.newaxis]
        table = table * _ratio(child_second, table.sum(axis=1))[:, np.newaxis, :]
        table = table * _ratio(parents, table.sum(axis=0))[np.newaxis]
    return table


def _ratio(wanted: FloatArray, there: FloatArray) -> FloatArray:
    ratio: FloatArray = np.divide(wanted, there, out=np.zeros_like(wanted, dtype=np.float64), where=there > 0)
    return ratio
