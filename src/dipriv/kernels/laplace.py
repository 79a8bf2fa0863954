"""The paper's kernel: Laplace noise on the uniform scale, brought back to uniform by G (S1.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dipriv.errors import InputError
from dipriv.randomness import Bits, FloatArray

SMALLEST = 2.0**-53
"""Released uniforms stay inside [SMALLEST, 1 - SMALLEST], so that unbounded laws give finite values."""


@dataclass(frozen=True)
class Laplace:
    """v = G(u + e), e ~ Laplace(p/ε) in each of p columns.

    `shares` weighs the columns: column l gets ε_l in proportion to its share, and the ε_l add up to ε. Columns not
    named have share 1.

    >>> Laplace({"income": 3.0}).build(1.0, ["age", "income"]).scales.round(3).tolist()
    [4.0, 1.333]
    """

    shares: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, share in self.shares.items():
            if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share < np.inf:
                raise InputError(
                    f"the share of column {name!r} is {share!r}, not a finite number above 0.",
                    "Give each column a positive share; drop columns that are not needed.",
                )

    def build(self, epsilon: float, names: Sequence[str]) -> LaplaceKernel:
        if unknown := [name for name in self.shares if name not in names]:
            raise InputError(f"a share is given for {unknown[0]!r}, which is not a column.", "Remove or rename it.")
        share = np.array([self.shares.get(name, 1.0) / names.count(name) for name in names])
        return LaplaceKernel(epsilon, _scales(epsilon, share))

    def describe(self) -> str:
        return "laplace" + (" (own budget shares)" if self.shares else "")


@dataclass(frozen=True, eq=False)
class LaplaceKernel:
    """Independent Laplace noise of the given scales; Σ 1/scale <= ε."""

    epsilon: float
    scales: FloatArray

    def perturb(self, u: FloatArray, bits: Bits) -> FloatArray:
        held = np.clip(np.nan_to_num(u, nan=0.0), 0.0, 1.0)
        noise = laplace_noise(bits, u.size).reshape(u.shape) * self.scales
        return np.clip(noisy_uniform_cdf(held + noise, self.scales), SMALLEST, 1.0 - SMALLEST)


def laplace_noise(bits: Bits, count: int) -> FloatArray:
    """Standard Laplace noise in double precision: a sign bit and -log of a uniform on (0, 1]."""
    words = bits.words(count)
    uniform = ((words >> np.uint64(11)).astype(np.float64) + 1.0) * 2.0**-53
    size: FloatArray = -np.log(uniform)
    noise: FloatArray = np.where(words & np.uint64(1), size, -size)
    return noise


def noisy_uniform_cdf(x: FloatArray, b: FloatArray | float) -> FloatArray:
    """G of S1.1: the CDF at x of Uniform(0, 1) + Laplace(b), to relative precision in the lower tail.

    The law is symmetric about 1/2, so the survival function is noisy_uniform_cdf(1 - x, b), and only
    x <= 1/2 has to be computed.

    >>> float(noisy_uniform_cdf(np.array(0.5), 1.0))
    0.5
    """
    below = np.minimum(x, 1.0 - x)
    half = _lower_half(below, np.asarray(b, dtype=np.float64))
    return np.where(x <= 0.5, half, 1.0 - half)


def _lower_half(x: FloatArray, b: FloatArray) -> FloatArray:
    """G at x <= 1/2. For b >= 1 the middle is x + b e^(-1/2b) sinh((1/2 - x)/b), which does not cancel."""
    with np.errstate(over="ignore", under="ignore"):
        tail = -0.5 * b * np.exp(np.minimum(x, 0.0) / b) * np.expm1(-1.0 / b)
        inner = np.maximum(x, 0.0)
        sharp = inner + 0.5 * b * (np.exp(-inner / b) - np.exp((inner - 1.0) / b))
        flat = inner + b * np.exp(-0.5 / b) * np.sinh(np.minimum((0.5 - inner) / b, 1.0))
    return np.asarray(np.where(x < 0, tail, np.where(b >= 1.0, flat, sharp)), dtype=np.float64)


def _scales(epsilon: float, share: FloatArray) -> FloatArray:
    """Σ share / (ε share_l), rounded up until Σ 1/scale <= ε holds in exact arithmetic."""
    from fractions import Fraction

    scales: FloatArray = share.sum() / (epsilon * share)
    while sum(1 / Fraction(float(scale)) for scale in scales) > Fraction(epsilon):
        scales = np.nextafter(scales, np.inf)
    return scales
