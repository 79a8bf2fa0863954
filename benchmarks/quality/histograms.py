"""The simplest rival: a noisy histogram of each column with all of the privacy budget, rows drawn independently."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from benchmarks.quality.bins import Codebook
from dipriv._base.arrays import FloatArray


def rho(epsilon: float, delta: float) -> float:
    """The largest ρ for which ρ-zCDP gives (ε, δ), by Canonne, Kamath, Steinke 2020, Proposition 2.10.

    >>> round(rho(1.0, 1e-9), 5)
    0.01497
    """
    orders = 1 + np.geomspace(1e-3, 1e6, 20_000)
    constant = orders * np.log1p(-1 / orders) - np.log(orders - 1)

    def excess(found: float) -> float:
        return float(np.min((orders - 1) * (orders * found - epsilon) + constant) - np.log(delta))

    return float(brentq(excess, 0.0, epsilon, xtol=1e-15))


def synthesize(frame: pd.DataFrame, book: Codebook, epsilon: float, delta: float, seed: int) -> pd.DataFrame:
    """As many rows as the frame has, columns independent; (ε, δ), neighbours replace a row.

    A replaced row moves two counts by one. Laplace noise with scale 2/ε_j on k_j counts has an L1 error of 2 k_j/ε_j,
    whose sum is least for ε_j in proportion to the square root of k_j; Gaussian noise with variance 1/ρ_j has one in
    proportion to k_j/√ρ_j, whose sum is least for ρ_j in proportion to k_j to the power 2/3.
    """
    rng = np.random.default_rng(seed)
    weight = {name: code.size ** (2 / 3 if delta else 1 / 2) for name, code in book.items()}
    budget = (rho(epsilon, delta) if delta else epsilon) / sum(weight.values())
    columns = {}
    for name, code in book.items():
        counts = np.bincount(code.encode(frame[name]), minlength=code.size)
        part = budget * weight[name]
        noise = rng.normal(0, part**-0.5, code.size) if delta else rng.laplace(0, 2 / part, code.size)
        shares = project(counts + noise, len(frame)) / len(frame)
        columns[name] = code.decode(rng.choice(code.size, len(frame), p=shares), rng)
    return pd.DataFrame(columns).astype(frame.dtypes.to_dict())


def project(counts: FloatArray, total: float) -> FloatArray:
    """The nearest counts that are not negative and add up to the total (Duchi et al. 2008).

    >>> project(np.array([7.0, 2.0, -3.0]), 10.0).tolist()
    [7.5, 2.5, 0.0]
    """
    largest = np.sort(counts)[::-1]
    excess = (np.cumsum(largest) - total) / np.arange(1, len(counts) + 1)
    last = np.flatnonzero(largest > excess)[-1]
    return np.asarray(np.maximum(counts - excess[last], 0.0))
