"""Tools shared by the tests: derived tolerances, distances, and where the data and the vectors are."""

from __future__ import annotations

import json
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dipriv._base.arrays import FloatArray
from dipriv._random.bits import Bits, Draws, source

ALARM = 1e-6
"""The chance that a statistical test fails although the code is right."""
TEXT_HAS_A_TYPE = pytest.mark.skipif(
    int(version("pandas").partition(".")[0]) < 3,
    reason="before pandas 3, columns of text are objects, and times have other units",
)


def data_folder() -> Path:
    """The folder of real data: DIPRIV_DATA, else beside the project."""
    return Path(os.environ.get("DIPRIV_DATA", Path(__file__).parents[2] / "shared" / "data"))


def vectors(name: str) -> Any:
    """A file of test vectors, or a skip that says where it was looked for."""
    path = data_folder().parent / "vectors" / name
    if not path.exists():
        pytest.skip(f"test vectors {name} not found beside the data folder {data_folder().name}; set DIPRIV_DATA")
    return json.loads(path.read_text())


def bits(seed: int) -> Bits:
    return source(seed)


def draws(seed: int, count: int, first: int = 0) -> Draws:
    return Draws(source(seed), first, count)


def uniform_rows(n: int, p: int, seed: int) -> FloatArray:
    return np.stack([Draws(bits(seed), 0, n, column).uniforms() for column in range(p)], axis=1)


def dkw(n: int, alarm: float = ALARM) -> float:
    """Dvoretzky-Kiefer-Wolfowitz with Massart's constant: P(sup|F_n - F| > bound) <= alarm."""
    return float(np.sqrt(np.log(2 / alarm) / (2 * n)))


def ks(sample: NDArray[Any], law: Any) -> float:
    """sup|F_n - F| for a law with atoms or without: both one-sided limits at each observed value."""
    values, counts = np.unique(sample, return_counts=True)
    above = np.cumsum(counts) / len(sample)
    right = law.cdf(values)
    left = law.cdf(np.nextafter(values, -np.inf))
    return float(max(np.max(np.abs(above - right)), np.max(np.abs(above - counts / len(sample) - left))))


def ks_uniform(sample: NDArray[Any]) -> float:
    return ks(sample, stats.uniform())


def chi_square_tail(counts: NDArray[Any], probabilities: NDArray[Any]) -> float:
    """P(a chi-square as large as this | the probabilities are right); cells expected below 10 are pooled."""
    expected = probabilities / probabilities.sum() * counts.sum()
    rare = expected < 10
    seen, hoped = counts[~rare].astype(float), expected[~rare]
    if expected[rare].sum() > 0:
        seen, hoped = np.append(seen, counts[rare].sum()), np.append(hoped, expected[rare].sum())
    elif counts[rare].sum() > 0:
        return 0.0
    if len(seen) == 1:
        return 1.0
    statistic = float(np.sum((seen - hoped) ** 2 / hoped))
    return float(stats.chi2.sf(statistic, len(seen) - 1))
