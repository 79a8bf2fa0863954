"""The best transition matrix for one column: a linear program, solved by HiGHS.

For k cells with probabilities π and costs c_ij of releasing j for i, over transition matrices P:

    minimize Σ π_i P_ij c_ij   so that   P 1 = 1,   π P = π,   P_ij <= e^ε P_i'j for all i, i' and j.

Write P_ij = π_j (1 + d (g_j - t_ij)) with d = 1 - e^-ε, g_j = Σ_i π_i t_ij and t >= 0. Then π P = π holds by itself,
P 1 = 1 says that Σ_j π_j t_ij is the same for all i, and the ratio bound holds if t_ij <= 1 + d g_j, for then column j
lies between e^-ε M_j and M_j = π_j (1 + d g_j). Nothing in it is small or large, whatever ε and however rare a cell.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dipriv.errors import InputError
from dipriv.randomness import FloatArray

LARGEST_EXPONENT = 24.0
"""Ratios beyond e^24 would buy less than 1e-9 of correlation and cost digits."""


def best_excess(pi: FloatArray, cost: FloatArray, epsilon: float) -> FloatArray:
    """(k, k): the excess P_ij/π_j - 1 of the best matrix, in doubles; its π-means are zero both ways."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_matrix

    k = len(pi)
    d = -math.expm1(-min(epsilon, LARGEST_EXPONENT))
    row, column = (index.ravel() for index in np.indices((k, k)))
    t, g, mean, each = np.arange(k * k), k * k + np.arange(k), np.full(k, k * k + k), np.arange(k)
    ones = np.ones(k)
    means: Any = csr_matrix(  # Σ_j π_j t_ij = mean, Σ_i π_i t_ij = g_j
        (
            np.concatenate([pi[column], -ones, pi[row], -ones]),
            (np.concatenate([row, each, k + column, k + each]), np.concatenate([t, mean, t, g])),
        )
    )
    bounds: Any = csr_matrix(  # t_ij - d g_j <= 1
        (np.concatenate([np.ones(k * k), np.full(k * k, -d)]), (np.tile(t, 2), np.concatenate([t, g[column]]))),
        shape=(k * k, k * k + k + 1),
    )
    gain = np.outer(pi, pi) * centred(pi, cost)
    largest = np.abs(gain).max()
    if largest == 0:
        return np.zeros((k, k))
    solved = linprog(
        np.concatenate([-gain.ravel() / largest, np.zeros(k + 1)]),
        A_ub=bounds,
        b_ub=np.ones(k * k),
        A_eq=means,
        b_eq=np.zeros(2 * k),
        method="highs-ds",
        options={"presolve": False},  # finds nothing here, and takes ten times as long as the rest
    )
    if solved.x is None:
        raise InputError(f"the linear program for {k} cells was not solved.", 'Use kernel="laplace".')
    return -d * centred(pi, solved.x[: k * k].reshape(k, k))


def centred(pi: FloatArray, matrix: FloatArray) -> FloatArray:
    """The matrix less its π-means over rows and over columns."""
    rows, columns = matrix @ pi, pi @ matrix
    return np.asarray(matrix - rows[:, np.newaxis] - columns + pi @ rows)
