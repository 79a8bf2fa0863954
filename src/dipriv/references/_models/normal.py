"""A multivariate normal distribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dipriv._base.arrays import FloatArray
from dipriv._base.coordinates import EncodedColumn, UniformCoordinate, without_levels
from dipriv._base.invariants import is_finite, is_vector, require
from dipriv._base.registry import serializable
from dipriv.errors import InputError
from dipriv.references.protocol import PortableReference


@serializable(PortableReference)
@dataclass(frozen=True, eq=False)
class Normal:
    """A multivariate normal: with Σ = L L', column l of L⁻¹(x - μ) is its conditional standard score."""

    mean: FloatArray = field(repr=False)
    root: FloatArray = field(repr=False)

    def __post_init__(self) -> None:
        shapes = is_vector(self.mean) and self.root.shape == 2 * self.mean.shape
        require(shapes and is_finite(self.mean, self.root), self, "mean and root are finite, of one width")
        triangular = not np.any(np.triu(self.root, 1)) and np.all(np.diag(self.root) > 0)
        require(triangular, self, "the root is lower triangular with a positive diagonal")

    def accepts(self, states: Sequence[int | None]) -> bool:
        return len(states) == len(self.mean)

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
