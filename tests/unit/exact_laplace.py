"""The discrete Laplace law in as many digits as it takes: P(z) proportional to exp(-|z|/t) for integers z."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

DIGITS = 60


def at_least(k: int, t: int) -> Decimal:
    """P(Z >= k)."""
    with localcontext(prec=DIGITS):
        q = (Decimal(-1) / t).exp()
        if k > 0:
            return (Decimal(-k) / t).exp() / (1 + q)
        return 1 - (Decimal(k - 1) / t).exp() / (1 + q)


@lru_cache(maxsize=100_000)
def chances(k: int, t: int) -> tuple[Decimal, Decimal]:
    """P(Z >= k) and P(Z < k), each to full relative precision."""
    return at_least(k, t), at_least(1 - k, t)


@dataclass(frozen=True)
class DiscreteLaplace:
    """The same in double precision, for distances between distributions; the scale may be any number."""

    scale: float

    def mass(self, z: NDArray[Any]) -> NDArray[np.float64]:
        q = np.exp(-1 / self.scale)
        return np.asarray((1 - q) / (1 + q) * np.exp(-np.abs(z) / self.scale))

    def cdf(self, x: NDArray[Any]) -> NDArray[np.float64]:
        z = np.floor(np.asarray(x, dtype=np.float64))
        q = np.exp(-1 / self.scale)
        tail = np.exp(-np.where(z < 0, -z, z + 1) / self.scale) / (1 + q)
        return np.asarray(np.where(z < 0, tail, 1 - tail))
