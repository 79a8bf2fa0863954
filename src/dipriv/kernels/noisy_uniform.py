"""G: the distribution function of Uniform(0, 1) + Laplace(b), and its inverse (paper S1.1)."""

from __future__ import annotations

import math

import numpy as np

from dipriv._base.arrays import FloatArray
from dipriv._base.jit import jit


def noisy_uniform_cdf(x: FloatArray, b: FloatArray | float) -> FloatArray:
    """G of S1.1: the CDF at x of Uniform(0, 1) + Laplace(b), to relative precision in the lower tail.

    It is symmetric about 1/2, so the survival function is noisy_uniform_cdf(1 - x, b), and only x <= 1/2 has to be
    computed. For b >= 1 the middle is x + b e^(-1/2b) sinh((1/2 - x)/b), which does not cancel.

    >>> float(noisy_uniform_cdf(np.array(0.5), 1.0))
    0.5
    """
    scale = np.asarray(b, dtype=np.float64)
    below = np.minimum(x, 1.0 - x)
    inner = np.maximum(below, 0.0)
    with np.errstate(over="ignore", under="ignore"):
        tail = -0.5 * scale * np.exp(np.minimum(below, 0.0) / scale) * np.expm1(-1.0 / scale)
        sharp = inner + 0.5 * scale * (np.exp(-inner / scale) - np.exp((inner - 1.0) / scale))
        flat = inner + scale * np.exp(-0.5 / scale) * np.sinh(np.minimum((0.5 - inner) / scale, 1.0))
    half = np.where(below < 0, tail, np.where(scale >= 1.0, flat, sharp))
    return np.asarray(np.where(x <= 0.5, half, 1.0 - half), dtype=np.float64)


@jit
def cdf_at(x: float, b: float, tail: float, slope: float) -> float:
    """G at one point, given `tail_of(b)` and `slope_of(b)`; the compiled twin of `noisy_uniform_cdf`."""
    below = min(x, 1.0 - x)
    if below < 0.0:
        half = tail * math.exp(below / b)
    elif b >= 1.0:
        grown = math.expm1((0.5 - below) / b)
        half = below + slope * (grown + grown / (grown + 1.0))
    else:
        half = below + 0.5 * b * (math.exp(-below / b) - math.exp((below - 1.0) / b))
    return half if x <= 0.5 else 1.0 - half


def tail_of(b: float) -> float:
    """G(0), from which the tail falls off."""
    return -0.5 * b * math.expm1(-1.0 / b)


def slope_of(b: float) -> float:
    """The factor of 2 sinh((1/2 - x)/b) in the middle: 2 sinh(y) = expm1(y) + expm1(y) / (expm1(y) + 1)."""
    return 0.5 * b * math.exp(-0.5 / b)


def inverse_noisy_uniform_cdf(u: FloatArray, b: float) -> FloatArray:
    """G⁻¹ by bisection to the last digit, infinite at 0 and 1."""
    low = np.full(u.shape, -40.0 * b - 40.0)
    high = 1.0 - low
    for _ in range(120):
        middle = 0.5 * (low + high)
        below = noisy_uniform_cdf(middle, b) < u
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.where(u <= 0, -np.inf, np.where(u >= 1, np.inf, 0.5 * (low + high)))
