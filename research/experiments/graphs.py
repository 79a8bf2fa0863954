"""Tables sim2:graphical, low and high dimension: a precision matrix estimated from a release by graphical lasso.

The solver is scikit-learn's `graphical_lasso`; as in R's glasso, which the paper used, the diagonal is penalized too.
The penalty is chosen by five-fold cross-validation of the Gaussian likelihood on the released rows. Released rows
are near copies of hold-out rows, which a fold shares with the others, so that cross-validation takes the smallest
penalty that it is offered. The grids are stated below: nearly zero in low dimension, where the paper's error without
privacy equals that of no penalty at all, p(p+1)/2N, and {0.2, 0.3, 0.4} in high dimension, whose smallest penalty gives
the paper's errors in both networks.

NLRM and NOPM privatize each column with ε/p, with bounds read from the private rows. Their noise is orders of magnitude
wider than the data; the columns are scaled to it before the fit and the result is scaled back, which leaves a nearly
unpenalized estimate.
"""

from __future__ import annotations

import warnings
from typing import Literal

import numpy as np
from sklearn.covariance import graphical_lasso
from sklearn.exceptions import ConvergenceWarning

from dipriv._base.arrays import FloatArray
from dipriv.references import Empirical
from dipriv.release.privatize import privatize
from research.baselines import naive
from research.protocol import Experiment, Values, child, for_all, printed, split_of

LOW_EPSILONS, HIGH_EPSILONS = (1.0, 2.0, 3.0, 4.0), (1.0, 2.0, 3.0)
HOLDOUTS = (0.15, 0.25, 0.35)
LOW_GRID, HIGH_GRID = (1e-4, 3e-4, 1e-3), (0.2, 0.3, 0.4)
OTHER_PENALTIES = (0.18, 0.22)
FOLDS = 5
NAIVE: dict[str, Literal["lrm", "opm"]] = {"NLRM": "lrm", "NOPM": "opm"}
LOW_PAPER = """
Chain, p = 5 | NP | 0.01 (0.00) | 0.01 (0.00) | 0.01 (0.00) | 0.01 (0.00)
Chain, p = 5 | DIP (hold 15%) | 0.06 (0.02) | 0.06 (0.02) | 0.06 (0.02) | 0.06 (0.02)
Chain, p = 5 | DIP (hold 25%) | 0.04 (0.01) | 0.04 (0.02) | 0.04 (0.02) | 0.04 (0.02)
Chain, p = 5 | DIP (hold 35%) | 0.03 (0.01) | 0.03 (0.01) | 0.03 (0.01) | 0.03 (0.01)
Chain, p = 5 | NLRM | 37.08 (0.45) | 30.15 (0.44) | 26.08 (0.42) | 23.28 (0.45)
Chain, p = 5 | NOPM | 73.91 (0.43) | 67.07 (0.43) | 63.14 (0.41) | 60.54 (0.43)
Chain, p = 15 | NP | 0.06 (0.01) | 0.06 (0.01) | 0.06 (0.01) | 0.06 (0.01)
Chain, p = 15 | DIP (hold 15%) | 0.51 (0.07) | 0.51 (0.07) | 0.51 (0.08) | 0.51 (0.08)
Chain, p = 15 | DIP (hold 25%) | 0.34 (0.05) | 0.34 (0.05) | 0.34 (0.05) | 0.34 (0.05)
Chain, p = 15 | DIP (hold 35%) | 0.28 (0.04) | 0.28 (0.04) | 0.28 (0.04) | 0.28 (0.04)
Chain, p = 15 | NLRM | 145.84 (0.82) | 125.09 (0.79) | 112.92 (0.82) | 104.28 (0.78)
Chain, p = 15 | NOPM | 256.25 (0.79) | 235.54 (0.76) | 223.41 (0.80) | 214.84 (0.77)
Exp Decay, p = 5 | NP | 0.01 (0.00) | 0.01 (0.00) | 0.01 (0.00) | 0.01 (0.00)
Exp Decay, p = 5 | DIP (hold 15%) | 0.06 (0.02) | 0.06 (0.02) | 0.06 (0.02) | 0.06 (0.02)
Exp Decay, p = 5 | DIP (hold 25%) | 0.04 (0.02) | 0.04 (0.02) | 0.04 (0.02) | 0.04 (0.01)
Exp Decay, p = 5 | DIP (hold 35%) | 0.03 (0.01) | 0.03 (0.01) | 0.03 (0.01) | 0.03 (0.01)
Exp Decay, p = 5 | NLRM | 34.39 (0.40) | 27.46 (0.40) | 23.41 (0.39) | 20.58 (0.40)
Exp Decay, p = 5 | NOPM | 71.22 (0.38) | 64.38 (0.39) | 60.47 (0.38) | 57.84 (0.38)
Exp Decay, p = 15 | NP | 0.06 (0.01) | 0.06 (0.01) | 0.06 (0.01) | 0.06 (0.01)
Exp Decay, p = 15 | DIP (hold 15%) | 0.52 (0.08) | 0.51 (0.08) | 0.52 (0.08) | 0.51 (0.08)
Exp Decay, p = 15 | DIP (hold 25%) | 0.34 (0.05) | 0.34 (0.05) | 0.34 (0.05) | 0.34 (0.05)
Exp Decay, p = 15 | DIP (hold 35%) | 0.28 (0.04) | 0.28 (0.04) | 0.28 (0.04) | 0.28 (0.04)
Exp Decay, p = 15 | NLRM | 136.11 (0.70) | 115.30 (0.69) | 103.16 (0.67) | 94.54 (0.67)
Exp Decay, p = 15 | NOPM | 246.52 (0.67) | 225.75 (0.66) | 213.65 (0.64) | 205.10 (0.64)
"""
HIGH_PAPER = """
Chain, p = 250 | DIP (hold 15%) | 101.53 (2.82) | 101.51 (2.83) | 101.49 (2.82)
Chain, p = 250 | DIP (hold 25%) | 79.21 (2.21) | 79.18 (2.19) | 79.18 (2.19)
Chain, p = 250 | DIP (hold 35%) | 75.47 (1.75) | 75.46 (1.74) | 75.45 (1.73)
Exp Decay, p = 250 | DIP (hold 15%) | 42.18 (1.10) | 42.17 (1.10) | 42.16 (1.09)
Exp Decay, p = 250 | DIP (hold 25%) | 29.32 (1.25) | 29.31 (1.25) | 29.31 (1.25)
Exp Decay, p = 250 | DIP (hold 35%) | 25.35 (1.41) | 25.35 (1.43) | 25.33 (1.43)
"""


def precision_matrix(network: str, p: int, rng: np.random.Generator) -> FloatArray:
    """Ω of a chain (Σ_kl = exp(-|τ_k - τ_l|/2), steps of τ uniform on [0.5, 1]) or of exponential decay."""
    if network == "Chain":
        tau = np.cumsum(np.append(0.0, rng.uniform(0.5, 1, p - 1)))
        return np.asarray(np.linalg.inv(np.exp(-0.5 * np.abs(tau[:, None] - tau))))
    place = np.arange(p)
    return np.asarray(np.exp(-2.0 * np.abs(place[:, None] - place)))


def entropy_loss(truth: FloatArray, estimate: FloatArray) -> float:
    """tr(Σ Ω̂) - log|Σ Ω̂| - p."""
    product = np.linalg.solve(truth, estimate)
    return float(np.trace(product) - np.linalg.slogdet(product)[1] - len(truth))


def lasso(rows: FloatArray, grid: tuple[float, ...]) -> FloatArray:
    """Ω̂ with the penalty that does best on left-out rows."""
    fold = np.arange(len(rows)) % FOLDS

    def score(penalty: float) -> float:
        try:
            return sum(_likelihood(rows[fold == k], _fit(rows[fold != k], penalty)) for k in range(FOLDS))
        except FloatingPointError:  # too small a penalty for a singular covariance
            return -np.inf

    return _fit(rows, max(grid, key=score))


def _fit(rows: FloatArray, penalty: float) -> FloatArray:
    """Ω̂ at one penalty, the diagonal penalized as well."""
    covariance = np.cov(rows.T, bias=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the gap is then small against the losses compared
        penalized = covariance + penalty * np.eye(len(covariance))
        return np.asarray(graphical_lasso(penalized, penalty, tol=1e-2 if len(covariance) > 50 else 1e-4)[1])


def _likelihood(rows: FloatArray, precision: FloatArray) -> float:
    return float(np.linalg.slogdet(precision)[1] - np.trace(np.cov(rows.T, bias=True) @ precision))


def _scaled_lasso(rows: FloatArray, grid: tuple[float, ...]) -> FloatArray:
    """The same on columns scaled to unit deviation, scaled back."""
    scale = rows.std(axis=0)
    return lasso(rows / scale, grid) / np.outer(scale, scale)


def _sample(setting: str, rows: int, seed: np.random.SeedSequence) -> tuple[FloatArray, FloatArray]:
    network, _, p = setting.partition(", p = ")
    rng = np.random.default_rng(seed)
    truth = precision_matrix(network, int(p), rng)
    root = np.linalg.cholesky(np.linalg.inv(truth))
    return truth, rng.normal(size=(rows, int(p))) @ root.T


def _dip(
    truth: FloatArray, x: FloatArray, epsilons: tuple[float, ...], grid: tuple[float, ...], seed: np.random.SeedSequence
) -> dict[tuple[str, float], float]:
    measured = {}
    for share in HOLDOUTS:
        for epsilon in epsilons:
            loss = entropy_loss(truth, lasso(_release(x, share, epsilon, seed), grid))
            measured[f"DIP (hold {share:.0%})", epsilon] = loss
    return measured


def _release(x: FloatArray, share: float, epsilon: float, seed: np.random.SeedSequence) -> FloatArray:
    """A release; the split is the same at every ε, so that ε alone makes the difference."""
    split, rng = split_of(seed, share), child(seed, "DIP", share, epsilon)
    reference = Empirical(edge="paper")
    return np.asarray(privatize(x, epsilon, reference=reference, kernel="laplace", split=split, seed=rng).data)


def _low(setting: str, seed: np.random.SeedSequence) -> Values:
    truth, x = _sample(setting, 2000, seed)
    measured = for_all(LOW_EPSILONS, "NP", entropy_loss(truth, lasso(x, LOW_GRID)))
    measured |= _dip(truth, x, LOW_EPSILONS, LOW_GRID, seed)
    for method, name in NAIVE.items():
        for epsilon in LOW_EPSILONS:
            rng = child(seed, method, epsilon)
            noisy = naive(x, epsilon, method=name, bounds="sample", seed=rng).data
            measured[method, epsilon] = entropy_loss(truth, _scaled_lasso(noisy, LOW_GRID))
    return measured


def _high(setting: str, seed: np.random.SeedSequence) -> Values:
    truth, x = _sample(setting, 200, seed)
    measured = _dip(truth, x, HIGH_EPSILONS, HIGH_GRID, seed)
    for share in HOLDOUTS:  # how much hangs on the penalty
        for penalty in OTHER_PENALTIES:
            loss = entropy_loss(truth, _fit(_release(x, share, 1.0, seed), penalty))
            measured[f"DIP (hold {share:.0%}), penalty {penalty}", 1.0] = loss
    return measured


LOW = Experiment(
    name="graphs",
    title="Gaussian graphical models, N = 2000",
    source="Table of low-dimensional graphs (appendix)",
    measure="entropy loss of the precision matrix",
    settings=("Chain, p = 5", "Chain, p = 15", "Exp Decay, p = 5", "Exp Decay, p = 15"),
    epsilons=LOW_EPSILONS,
    reps=50,
    run=_low,
    paper=printed(LOW_PAPER, LOW_EPSILONS),
    order_only=frozenset({"NOPM"}),
    rivals=frozenset({"NLRM", "NOPM"}),
    insensitive=True,
)
HIGH = Experiment(
    name="graphs-highdim",
    title="Gaussian graphical models, N = 200, p = 250",
    source="Table sim2:graphical",
    measure="entropy loss of the precision matrix",
    settings=("Chain, p = 250", "Exp Decay, p = 250"),
    epsilons=HIGH_EPSILONS,
    reps=10,
    run=_high,
    paper=printed(HIGH_PAPER, HIGH_EPSILONS),
    insensitive=True,
)
