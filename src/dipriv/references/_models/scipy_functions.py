"""Distribution and quantile functions of scipy's distributions, total and silent for every value of a private row."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np

from dipriv._base.arrays import FloatArray

_WIDTHS = (2.0**-40, 2.0**-30, 2.0**-20, 2.0**-10, 0.25)
"""How far inside of (0, 1) a quantile is taken instead of one that is not found."""


def cdf_of(dist: Any, v: FloatArray) -> FloatArray:
    """The distribution function; 0 or 1 where it cannot be computed, on the side of the median."""
    u = _evaluated(dist.cdf, v)
    if (odd := np.isnan(u) & ~np.isnan(v)).any():
        u[odd] = np.asarray(v)[odd] > _evaluated(dist.ppf, np.array([0.5]))[0]
    return u


def ppf_of(dist: Any, u: FloatArray) -> FloatArray:
    """The quantile function, finite: further inside of (0, 1) where a quantile is infinite or is not found."""
    v = _evaluated(dist.ppf, u)
    for width in _WIDTHS:
        odd = ~np.isfinite(v) & ~np.isnan(u)
        if not odd.any():
            break
        v[odd] = _evaluated(dist.ppf, np.clip(np.asarray(u)[odd], width, 1 - width))
    return v


def _evaluated(function: Callable[[Any], Any], at: FloatArray) -> FloatArray:
    """The values of a function, not-a-number where it fails: value by value if it does for one of them."""
    with _SILENT, np.errstate(all="ignore"):
        try:
            return np.array(function(at), dtype=np.float64)
        except Exception:  # a search that does not converge: the message may hold a value
            return np.reshape([_value(function, value) for value in np.ravel(at)], np.shape(at))


def _value(function: Callable[[Any], Any], at: float) -> float:
    try:
        return float(function(at))
    except Exception:
        return float("nan")


class _Silence:
    """While any thread is inside, no warning of numpy or scipy is shown or raised: it would say something of a cell."""

    def __init__(self) -> None:
        self._lock, self._inside = Lock(), 0
        self._filters = warnings.catch_warnings()

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._filters = warnings.catch_warnings()
                self._filters.__enter__()
                warnings.filterwarnings("ignore", module=r"(numpy|scipy)(\.|$)")
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._filters.__exit__(None, None, None)


_SILENT = _Silence()
