"""A multivariate normal distribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dipriv._arrays import FloatArray
from dipriv._coordinates import EncodedColumn, UniformCoordinate, without_levels
from dipriv.errors import InputError


@dataclass(frozen=True, eq=False)
class Normal:
    """A multivariate normal: with Σ = L L', column l of L⁻¹(x - μ) is its conditional standard score."""

    mean: FloatArray = field(repr=False)
    root: FloatArray = field(repr=False)

    @classmethod
    def of(cls, mean: FloatArray, cov: FloatArray) -> Normal:
        try:
            return cls(np.asarray(mean, dtype=np.float64), np.linalg.cholesky(np.asarray(cov, dtype=np.float64)))
        except np.linalg.LinAlgError:
            raise InputError(
                f"the covariance of the {len(mean)} columns is singular.",
                "Leave out columns that others determine, or use another reference.",
            ) from None

    def to_uniform(self, v: FloatArray) -> FloatArray:
        from scipy.linalg import solve_triangular
        from scipy.special import ndtr

        finite = np.clip(v - self.mean, -1e300, 1e300)
        return np.asarray(ndtr(solve_triangular(self.root, finite.T, lower=True).T))

    def from_uniform(self, u: FloatArray) -> FloatArray:
        from scipy.special import ndtri

        return np.asarray(self.mean + ndtri(u) @ self.root.T)

    def coordinates(self, columns: Sequence[EncodedColumn]) -> list[UniformCoordinate]:
        return without_levels(columns)
