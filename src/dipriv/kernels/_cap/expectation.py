"""What the cap kernel keeps, in double precision: the best cap, and how a column is distributed before and after.

Nothing here has a say in privacy.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import cache, lru_cache

import numpy as np
from scipy.special import betainc, gammainc, gammaln, ndtri, roots_legendre

from dipriv._base.arrays import FloatArray

MAX_TERMS = 100
"""Harmonics at most: in two columns, where they fall off most slowly, the rest is below 10^-5 of a probability."""
NEGLIGIBLE = 1e-12
"""Harmonics are left out from where they are below this."""
NODES = 128
"""Places of each half of [-1, 1] by which integrals are computed."""


def share_beyond(cosine: float, width: int) -> float:
    """P(t >= cosine) for a coordinate t of a uniform direction, cosine >= 0."""
    return 0.5 - 0.5 * float(betainc(0.5, (width - 1) / 2, cosine**2)) if width > 1 else 0.5


def best_cosine(epsilon: float, width: int, least_share: float, steps: int) -> int:
    """The cap with the largest expected cosine between a row's direction and the released one, of at least this share.

    As a number of `steps` that 1 has, at least 1. With q = e^ε - 1 the expectation is
    q E[t; t >= c] / (1 + q P(t >= c)), and the best c is where it equals c.
    """
    if width == 1:
        return steps // 2  # any cap is half of all
    gain = -math.expm1(-epsilon)  # q/(q + 1)

    def is_too_small(step: int) -> bool:
        cosine = step / steps
        share = share_beyond(cosine, width)
        beyond = _density(width) * (1 - cosine**2) ** ((width - 1) / 2) / (width - 1)
        return share < least_share or gain * beyond / (1 - gain + gain * share) < cosine

    return max(1, bisect_left(range(steps), True, lo=1, key=is_too_small) - 1)


def joint_within(cosine: float, width: int, cuts: FloatArray) -> FloatArray:
    """(k, k): P(u_l in bin i, v_l in bin j, v in the cap of u), for independent uniform u and v.

    A column of a row has the direction's coordinate s and a radius of its own. An indicator of a bin, averaged over the
    radius, is a function of s; the cap is an operator on functions of the direction that has Gegenbauer polynomials of
    s as eigenfunctions (Funk and Hecke). The terms beyond the constant one add up to 0 over the bins of either side.
    """
    s, weights = _places(width)
    below = _below(np.asarray(cuts, dtype=np.float64), s, width)
    inside = np.diff(below, axis=0) * weights  # (bins, places)
    sizes = np.diff(cuts)
    eigenvalues = _eigenvalues(cosine, width)
    parts = _orthonormal(width, len(eigenvalues)) @ inside.T  # (terms, bins)
    whole = share_beyond(cosine, width) * np.outer(sizes, sizes)
    return np.asarray(whole + (parts.T * eigenvalues) @ parts, dtype=np.float64)


def _density(width: int) -> float:
    """The density of t at 0."""
    return math.exp(gammaln(width / 2) - gammaln((width - 1) / 2)) / math.sqrt(math.pi)


def _angles(largest: float) -> tuple[FloatArray, FloatArray]:
    """Places from 0 to the largest angle, and weights, for integrals over the angle."""
    x, weights = _gauss()
    return (x + 1) * (largest / 2), weights * (largest / 2)


@cache
def _gauss() -> tuple[FloatArray, FloatArray]:
    x, weights = roots_legendre(NODES)
    return np.asarray(x), np.asarray(weights)


@lru_cache(maxsize=8)
def _places(width: int) -> tuple[FloatArray, FloatArray]:
    """Places s in [-1, 1] and their weights, which add up to 1; none at 0, where indicators may jump."""
    if width == 1:
        return np.array([-1.0, 1.0]), np.array([0.5, 0.5])
    angle, weights = _angles(math.pi / 2)
    weights = weights * np.sin(angle) ** (width - 2)
    weights = np.concatenate([weights, weights[::-1]])
    s = np.cos(angle)
    return np.concatenate([s, -s[::-1]]), weights / weights.sum()


def _below(cuts: FloatArray, s: FloatArray, width: int) -> FloatArray:
    """(cuts, places): P(r s <= Φ⁻¹(cut)) for a radius r with the law of the norm of normals."""
    x = np.clip(ndtri(cuts), -40.0, 40.0)[:, np.newaxis]
    within = gammainc(width / 2, (x / s) ** 2 / 2)  # P(r <= |x/s|)
    same_side = x * s >= 0
    below = np.where(s > 0, np.where(same_side, within, 0.0), np.where(same_side, 1.0 - within, 1.0))
    below[0], below[-1] = 0.0, 1.0
    return np.asarray(below, dtype=np.float64)


@lru_cache(maxsize=8)
def _orthonormal(width: int, terms: int) -> FloatArray:
    """(terms, places): the polynomials of degree 1, 2, ... that are orthonormal for the law of s."""
    s = _places(width)[0]
    before, now, last = np.zeros_like(s), np.ones_like(s), 0.0
    found = []
    for k in range(1, terms + 1):
        root = math.sqrt(_square(k, width))
        before, now, last = now, (s * now - last * before) / root, root
        found.append(now)
    return np.array(found)


def _square(k: int, width: int) -> float:
    """The recurrence is a_k P_k = s P_(k-1) - a_(k-1) P_(k-2); this is a_k²."""
    half = width / 2 - 1
    return 1 / width if k == 1 else k * (k + 2 * half - 1) / (4 * (k + half) * (k + half - 1))


@lru_cache(maxsize=8)
def _eigenvalues(cosine: float, width: int) -> FloatArray:
    """∫ R_k(t) over the cap for k = 1, 2, ..., R_k the polynomial with R_k(1) = 1, as far as they matter."""
    if width == 1:
        return np.array([0.5])
    angle, weights = _angles(math.acos(cosine))
    t, weights = np.cos(angle), weights * np.sin(angle) ** (width - 2) * _density(width)
    found, before, now = [], np.ones_like(t), t
    for k in range(1, MAX_TERMS + 1):
        found.append(float(now @ weights))
        if max(np.abs(found[-4:])) < NEGLIGIBLE and k > 4:
            break
        before, now = now, ((2 * k + width - 2) * t * now - k * before) / (k + width - 2)
    return np.array(found)
