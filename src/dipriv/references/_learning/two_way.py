"""Two-way tables: singular-value shrinkage, then raking; and maximum-entropy three-way tables made from them.

Everything here is post-processing of numbers that are already private.
"""

from __future__ import annotations

import math

import numpy as np

from dipriv._base.arrays import FloatArray

SHRINK = 0.45
"""Of the noise's own largest singular value; measured to be good on the bank and Adult tables."""
ROUNDS = 25


def denoised(noisy: FloatArray, rows: FloatArray, columns: FloatArray, scale: float) -> FloatArray:
    """A table with these marginals near the noisy one: singular-value shrinkage of its dependence, then raking.

    The marginals are known better than the table, so its difference from independence is centred in both directions.
    Dependence has few large singular values, noise many of similar size, at most about σ(√(m-1) + √(n-1)): each is
    shrunk by its share of noise. Rows and columns with small totals, where noise dominates, are shrunk towards
    independence.
    """
    product = np.outer(rows, columns) / rows.sum()
    excess = noisy - product
    excess = excess - excess.mean(axis=0) - excess.mean(axis=1)[:, np.newaxis] + excess.mean()
    left, values, right = np.linalg.svd(excess, full_matrices=False)
    limit = SHRINK * scale * math.sqrt(2.0) * sum(math.sqrt(max(0, size - 1)) for size in noisy.shape)
    kept = np.sqrt(np.maximum(values**2 - limit**2, 0.0))
    beyond = (left * kept) @ right * np.outer(_trust(rows, scale, len(columns)), _trust(columns, scale, len(rows)))
    return rake(np.maximum(product + beyond, 0.0), rows, columns)


def _trust(totals: FloatArray, scale: float, cells: int) -> FloatArray:
    """The signal's share in rows or columns of noisy cells with these totals: x²/(x² + variance of the noise)."""
    trust: FloatArray = totals**2 / (totals**2 + 2.0 * scale**2 * cells)
    return trust


def rake(table: FloatArray, rows: FloatArray, columns: FloatArray) -> FloatArray:
    """Iterative proportional fitting (raking); a trace of independence keeps every row and column reachable."""
    table = table + 1e-9 * np.outer(rows, columns) / rows.sum()
    for _ in range(ROUNDS):
        table = table * _ratio(rows, table.sum(axis=1))[:, np.newaxis]
        table = table * _ratio(columns, table.sum(axis=0))
    return table


def max_entropy_table(child_first: FloatArray, child_second: FloatArray, parents: FloatArray) -> FloatArray:
    """The maximum-entropy three-way table (child, first, second) with these two-way marginals, by raking."""
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
