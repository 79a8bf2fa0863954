"""The best transition matrix for one column: a linear program, solved by HiGHS.

For k bins with probabilities π and costs c_ij of releasing j for i, over transition matrices P:

    minimize Σ π_i P_ij c_ij   so that   P 1 = 1,   π P = π,   P_ij <= e^ε P_i'j for all i, i' and j.

Write P_ij = π_j (1 + a (y_ij - h_j)) with h_j = Σ_i π_i y_ij, y >= 0 and a = min(1, e^ε - 1). Then π P = π holds by
itself, P 1 = 1 says that Σ_j π_j y_ij is the same for all i, and the ratio bound holds if
a y_ij <= (e^ε - 1)(1 - a h_j), for then column j lies between m_j = π_j (1 - a h_j) and e^ε m_j.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dipriv._base.arrays import FloatArray

MAX_EXPONENT = 12.0
"""For larger ε the program's coefficients differ too much for doubles; the best matrix for this ε is used."""
MIN_EXCESS = 1e-20
"""For smaller e^ε - 1 all excess is rounded to zero in multiples of 2^-48."""


def best_excess(pi: FloatArray, cost: FloatArray, epsilon: float) -> FloatArray:
    """(k, k): the excess P_ij/π_j - 1 of the best matrix, in doubles; its π-means are zero both ways."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_matrix

    k = len(pi)
    room = math.expm1(min(epsilon, MAX_EXPONENT))
    a = min(1.0, room)
    loss = np.outer(pi, pi) * centred(pi, cost)
    largest = np.abs(loss).max()
    if largest == 0 or room < MIN_EXCESS:
        return np.zeros((k, k))
    row, column = (index.ravel() for index in np.indices((k, k)))
    y, h, mean, each = np.arange(k * k), k * k + np.arange(k), np.full(k, k * k + k), np.arange(k)
    ones = np.ones(k)
    means: Any = csr_matrix(  # Σ_j π_j y_ij = mean, Σ_i π_i y_ij = h_j
        (
            np.concatenate([pi[column], -ones, pi[row], -ones]),
            (np.concatenate([row, each, k + column, k + each]), np.concatenate([y, mean, y, h])),
        )
    )
    bounds: Any = csr_matrix(  # (a / room) y_ij + a h_j <= 1
        (np.repeat([a / room, a], k * k), (np.tile(y, 2), np.concatenate([y, h[column]]))),
        shape=(k * k, k * k + k + 1),
    )
    solved = linprog(
        np.concatenate([loss.ravel() / largest, np.zeros(k + 1)]),
        A_ub=bounds,
        b_ub=np.ones(k * k),
        A_eq=means,
        b_eq=np.zeros(2 * k),
        method="highs-ds",
        options={"presolve": False},  # finds nothing here, and takes ten times as long as the rest
    )
    return np.zeros((k, k)) if solved.x is None else a * centred(pi, solved.x[: k * k].reshape(k, k))


def lazy_excess(pi: FloatArray, epsilon: float) -> FloatArray:
    """The same for the matrix that leaves a level as it is with the largest private probability, else draws from π.

    It is the best for two levels and for equally likely categories, and tends to the identity as ε grows.
    """
    odds = math.expm1(min(epsilon, 60.0)) * float(pi.min())
    return np.asarray(odds / (1 + odds) * (np.diag(1 / pi) - 1))


def centred(pi: FloatArray, matrix: FloatArray) -> FloatArray:
    """The matrix less its π-means over rows and over columns."""
    rows, columns = matrix @ pi, pi @ matrix
    return np.asarray(matrix - rows[:, np.newaxis] - columns + pi @ rows)
