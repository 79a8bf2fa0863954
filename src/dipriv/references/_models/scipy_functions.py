"""Distribution and quantile functions of scipy's distributions, total and silent for every value of a private row.

What is computed of a value depends on no other value. scipy leaves out values outside of the support before it
computes, and numpy then has other loops for the parameters, with other last bits: so here no value is outside.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray

_WIDTHS = (2.0**-40, 2.0**-30, 2.0**-20, 2.0**-10, 0.25)
"""How far inside of (0, 1) a quantile is taken instead of one that is not found."""


@dataclass(frozen=True, eq=False)
class TotalFunctions:
    """The functions of a frozen distribution."""

    dist: Any

    def cdf(self, v: FloatArray) -> FloatArray:
        """The distribution function; 0 or 1 where it cannot be computed, on the side of the median."""
        z = (np.asarray(v, dtype=np.float64) - self._loc) / self._scale + 0.0  # -0.0 is 0.0
        low, high = self._standard.support()
        inside = (low < z) & (z < high)
        u = self._inside(np.where(inside, z, self._median))
        u = np.where(inside, u, z >= high)
        u = np.where(np.isnan(u), z > self._median, u)
        return np.where(np.isnan(z), np.nan, np.clip(u, 0.0, 1.0))

    def ppf(self, u: FloatArray) -> FloatArray:
        """The quantile function, finite: further inside of (0, 1) where a quantile is infinite or is not found."""
        v = _evaluated(self.dist.ppf, u)
        for width in _WIDTHS:
            odd = ~np.isfinite(v) & ~np.isnan(u)
            if not odd.any():
                break
            v[odd] = _evaluated(self.dist.ppf, np.clip(np.asarray(u)[odd], width, 1 - width))
        return v

    def _inside(self, z: FloatArray) -> FloatArray:
        """The distribution function at points of the support."""
        if not self._is_of_scipy:
            return _one_by_one(self._standard.cdf, z)
        try:
            return _silently(self._standard.cdf, z)
        except Exception:  # for some of them, which are left out of what is computed at once
            failing = np.isnan(_one_by_one(self._standard.cdf, z))
            if failing.all():
                return np.full(np.shape(z), np.nan)
            u = _evaluated(self._standard.cdf, np.where(failing, z[~failing][0], z))
            return np.where(failing, np.nan, u)

    @cached_property
    def _standard(self) -> Any:
        """With location 0 and scale 1, where scipy computes with the values as they are."""
        shapes = {name: value for name, value in self.dist.kwds.items() if name not in ("loc", "scale")}
        return self.dist.dist(*self.dist.args[: self.dist.dist.numargs], **shapes)

    @cached_property
    def _loc(self) -> float:
        return self._parameter("loc", 0, 0.0)

    @cached_property
    def _scale(self) -> float:
        return self._parameter("scale", 1, 1.0)

    def _parameter(self, name: str, place: int, default: float) -> float:
        given = self.dist.args[self.dist.dist.numargs :]
        return float(given[place] if len(given) > place else self.dist.kwds.get(name, default))

    @cached_property
    def _median(self) -> float:
        return float(_evaluated(self._standard.ppf, np.array([0.5]))[0])

    @property
    def _is_of_scipy(self) -> bool:
        """Else its functions may compute anything of all values together."""
        return type(self.dist.dist).__module__.startswith("scipy.stats.")


def _evaluated(function: Callable[[Any], Any], at: FloatArray) -> FloatArray:
    """The values of a function, not-a-number where it fails."""
    try:
        return _silently(function, at)
    except Exception:  # a search that does not converge: the message may hold a value
        return _one_by_one(function, at)


def _one_by_one(function: Callable[[Any], Any], at: FloatArray) -> FloatArray:
    """The values of a function, each computed by itself; not-a-number where it fails."""
    different, places = np.unique(at, return_inverse=True)
    values = np.array([_value(function, value) for value in different], dtype=np.float64)
    return values[places].reshape(np.shape(at))


def _value(function: Callable[[Any], Any], at: float) -> float:
    try:
        return float(_silently(function, np.float64(at)))
    except Exception:
        return float("nan")


def _silently(function: Callable[[Any], Any], at: Any) -> NDArray[np.float64]:
    with _SILENT, np.errstate(all="ignore"):
        return np.array(function(at), dtype=np.float64)


class _Silence:
    """While any thread is inside, no warning is shown or raised: it would say something of a cell."""

    def __init__(self) -> None:
        self._lock, self._inside = Lock(), 0
        self._filters = warnings.catch_warnings()

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._filters = warnings.catch_warnings()
                self._filters.__enter__()
                warnings.simplefilter("ignore")
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._filters.__exit__(None, None, None)


_SILENT = _Silence()
