"""A distribution that is known beforehand: DIP then keeps it exactly (Theorem 1), and every row is released."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from dipriv._arrays import FloatArray
from dipriv._invariants import is_finite, is_vector, require
from dipriv._registry import serializable
from dipriv.errors import InputError
from dipriv.references._models.distributions import Distribution, Frozen, LevelsDistribution, Mixture, as_law
from dipriv.references.protocol import Order, PortableReference, ReferenceRows
from dipriv.schema import Continuous, Kind


@dataclass(frozen=True, eq=False)
class Known:
    """A known law: one for a one-column table, {column: law} for independent columns, or a multivariate normal.

    >>> from scipy import stats
    >>> Known({"age": stats.norm(40, 12), "visits": stats.poisson(3)}).describe()
    'known law (independent columns)'
    """

    dist: Frozen = field(repr=False)
    _laws: Mapping[str, Distribution] = field(init=False, repr=False, default_factory=dict)
    order: ClassVar[Order] = None
    source: ClassVar[Literal["nothing"]] = "nothing"

    def __post_init__(self) -> None:
        laws = {} if _is_normal(self.dist) else {name: as_law(dist) for name, dist in self._dists().items()}
        object.__setattr__(self, "_laws", laws)

    def kinds(self, names: Sequence[str]) -> Mapping[str, Kind]:
        if _is_normal(self.dist):
            if len(names) != len(self.dist.mean):
                raise InputError(
                    f"the known normal law has {len(self.dist.mean)} columns, the table {len(names)}.",
                    "Choose the table's columns with columns=[...], in the order of the law.",
                )
            return dict.fromkeys(names, Continuous())
        return {name: law.kind for name, law in match_columns(self._laws, names, "law").items()}

    def fit(self, rows: ReferenceRows) -> Independent | Normal:
        if not _is_normal(self.dist):
            return Independent(tuple(match_columns(self._laws, rows.names, "law").values()))
        return Normal.of(self.dist.mean, self.dist.cov)

    def describe(self) -> str:
        if _is_normal(self.dist):
            return "known law (multivariate normal)"
        return "known law" + (" (independent columns)" if isinstance(self.dist, Mapping) else "")

    def exposes(self, columns: int) -> bool:
        return False

    def _dists(self) -> Mapping[str, Frozen]:
        return self.dist if isinstance(self.dist, Mapping) else {"": self.dist}


@serializable(PortableReference)
@dataclass(frozen=True, eq=False)
class Independent:
    """Independent columns, each with its own law."""

    laws: tuple[Distribution, ...]

    def __post_init__(self) -> None:
        require(self.laws, self, "there are columns")

    def accepts(self, states: Sequence[int | None]) -> bool:
        return len(states) == len(self.laws) and all(
            len(law.probabilities) == count
            for law, count in zip(self.laws, states, strict=True)
            if isinstance(law, LevelsDistribution)
        )

    def to_uniform(self, v: FloatArray) -> FloatArray:
        u = np.stack([law.cdf(v[:, column]) for column, law in enumerate(self.laws)], axis=1)
        return np.clip(u, 0.0, 1.0)

    def from_uniform(self, u: FloatArray) -> FloatArray:
        return np.stack([law.ppf(u[:, column]) for column, law in enumerate(self.laws)], axis=1)


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


def match_columns(given: Mapping[str, Any], names: Sequence[str], what: str) -> dict[str, Any]:
    """{column: given}, where a single unnamed entry means the only column of the table."""
    if "" in given and len(given) == 1:
        if len(names) != 1:
            raise InputError(
                f"one {what} is given for {len(names)} columns.",
                f"Give a {what} for each, {{column: {what}}}, or a multivariate normal.",
            )
        return {names[0]: given[""]}
    if lacking := [name for name in names if name not in given]:
        raise InputError(
            f"column {lacking[0]!r} has no {what} ({len(lacking)} of {len(names)} columns lack one).",
            "Give one for each column, or choose columns with columns=[...].",
        )
    if extra := [name for name in given if name not in names]:
        raise InputError(f"a {what} is given for {extra[0]!r}, which is not a column.", "Remove or rename it.")
    return {name: given[name] for name in names}


def _is_normal(dist: Frozen) -> bool:
    if isinstance(dist, (Mapping, Mixture)):
        return False
    from scipy.stats import multivariate_normal

    return isinstance(dist, type(multivariate_normal()))
