"""Univariate distributions on a column's encoded line: CDF and quantile function of V, given the distribution of Z."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray
from dipriv._base.atoms_line import AtomsLine
from dipriv._base.coordinates import EncodedColumn, UniformCoordinate
from dipriv._base.invariants import is_finite, is_nondecreasing, is_vector, require
from dipriv._base.registry import serializable
from dipriv.errors import InputError
from dipriv.references._models.scipy_functions import TotalFunctions
from dipriv.schema import Continuous, Discrete, Kind, Mixed

Frozen: TypeAlias = Any
"""A frozen scipy.stats distribution, for example scipy.stats.norm(0, 1)."""
MAX_TABLE = 1 << 20
"""The largest number of values in the table of a discrete distribution."""
MAX_START = 1 << 53
"""Larger whole numbers are not all doubles."""


class Distribution(Protocol):
    """A continuous CDF on the encoded line, and the kind whose codec makes that line."""

    @property
    def kind(self) -> Kind: ...

    def cdf(self, v: FloatArray) -> FloatArray: ...

    def ppf(self, u: FloatArray) -> FloatArray: ...

    def coordinate(self, column: EncodedColumn) -> UniformCoordinate:
        """What kernels may know about the column of U that this distribution makes."""
        ...


@serializable(Distribution, former_name="ContinuousLaw")
@dataclass(frozen=True, eq=False)
class ContinuousDistribution:
    """V = Z with a continuous distribution."""

    dist: Frozen
    kind: Continuous = field(default_factory=Continuous)

    def cdf(self, v: FloatArray) -> FloatArray:
        return self._functions.cdf(v)

    def ppf(self, u: FloatArray) -> FloatArray:
        return self._functions.ppf(u)

    @cached_property
    def _functions(self) -> TotalFunctions:
        return TotalFunctions(self.dist)

    def coordinate(self, column: EncodedColumn) -> UniformCoordinate:
        return UniformCoordinate(column.name)


@serializable(Distribution, former_name="IntegerLaw")
@dataclass(frozen=True, eq=False)
class IntegerDistribution:
    """Lemma S1 on the integers: V is uniform on (k-1, k] given Z = k. The CDF is summed up once, from `start` on."""

    start: int
    cumulative: FloatArray = field(repr=False)
    kind: Discrete = field(default_factory=lambda: Discrete(step=1))

    def __post_init__(self) -> None:
        table = self.cumulative
        require(is_vector(table, 2) and is_finite(table), self, "the table has a finite entry for each value")
        require(is_nondecreasing(table) and table[0] >= 0 and table[-1] == 1, self, "the table is a CDF")
        require(abs(self.start) <= MAX_START, self, "all values are exact doubles")

    @classmethod
    def of(cls, dist: Frozen) -> IntegerDistribution:
        """The table of a distribution, up to 2^-53 of its mass on either side."""
        start = int(max(dist.ppf(2.0**-60), dist.support()[0]))
        below, size = float(dist.cdf(start - 1)), 1 << 10
        while True:
            masses = np.asarray(dist.pmf(np.arange(start, start + size)), dtype=np.float64)
            cumulative = below + np.concatenate([[0.0], np.cumsum(masses)])
            complete = cumulative[-1] >= 1 - 2.0**-50 or dist.sf(start + size - 1) <= 2.0**-53  # sums are rounded
            if complete or start + size > dist.support()[1]:
                return cls(start, np.minimum(cumulative / cumulative[-1], 1.0))
            if size >= MAX_TABLE:
                raise InputError(
                    f"a discrete distribution has {dist.sf(start + size - 1):.2g} of its mass beyond "
                    f"{MAX_TABLE} values.",
                    "Cut its tail: give the values and probabilities with scipy.stats.rv_discrete(values=...).",
                )
            size *= 4

    def cdf(self, v: FloatArray) -> FloatArray:
        return np.interp(v, np.arange(len(self.cumulative)) + (self.start - 1.0), self.cumulative)

    def ppf(self, u: FloatArray) -> FloatArray:
        k = np.clip(np.searchsorted(self.cumulative, u, side="left"), 1, len(self.cumulative) - 1)
        below, above = self.cumulative[k - 1], self.cumulative[k]
        mass = np.where(above > below, above - below, 1.0)
        inside = np.clip((u - below) / mass, 0.0, 1.0)
        low = self.start + k - 2.0
        return np.asarray(np.clip(low + inside, np.nextafter(low, np.inf), low + 1.0), dtype=np.float64)

    def coordinate(self, column: EncodedColumn) -> UniformCoordinate:
        probabilities = np.trim_zeros(np.diff(self.cumulative), "b")
        values = self.start + np.arange(len(probabilities), dtype=np.float64)
        return UniformCoordinate(column.name, probabilities, values)


@serializable(Distribution, former_name="LevelsLaw")
@dataclass(frozen=True, eq=False)
class LevelsDistribution:
    """Lemma S1 on ranks: state number k has probability p[k] on (low + k, low + k + 1]."""

    probabilities: FloatArray = field(repr=False)
    low: float = 0.0
    levels: tuple[int | float, ...] = field(repr=False, default=())

    def __post_init__(self) -> None:
        p = self.probabilities
        require(is_vector(p) and is_finite(p, self.low), self, "each level has a finite probability")
        require(np.all(p >= 0) and abs(p.sum() - 1) < 1e-6, self, "probabilities are not negative and add up to 1")

    @classmethod
    def of(cls, levels: FloatArray, probabilities: FloatArray) -> LevelsDistribution:
        """The distribution on listed levels."""
        order = np.argsort(levels)
        p = np.asarray(probabilities, dtype=np.float64)[order]
        return cls(p / p.sum(), 0.0, tuple(np.asarray(levels)[order].tolist()))

    @classmethod
    def on_line(cls, low: float, counts: NDArray[np.intp]) -> LevelsDistribution:
        """The distribution of observed counts, on a line whose states start at `low`."""
        return cls(counts / counts.sum(), low)

    @property
    def cumulative(self) -> FloatArray:
        return np.concatenate([[0.0], np.cumsum(self.probabilities)])

    @property
    def kind(self) -> Discrete:
        return Discrete(levels=self.levels)

    def cdf(self, v: FloatArray) -> FloatArray:
        return np.interp(v - self.low, np.arange(len(self.cumulative)), self.cumulative)

    def ppf(self, u: FloatArray) -> FloatArray:
        cumulative = self.cumulative
        k = np.minimum(np.searchsorted(cumulative[1:], u, side="left"), len(self.probabilities) - 1)
        below, mass = cumulative[k], self.probabilities[k]
        inside = np.clip((u - below) / np.where(mass > 0, mass, 1.0), np.finfo(np.float64).tiny, 1.0)
        v: FloatArray = self.low + np.maximum(k + inside, np.nextafter(k.astype(np.float64), np.inf))
        return v

    def coordinate(self, column: EncodedColumn) -> UniformCoordinate:
        return column.with_probabilities(self.probabilities)


@serializable(Distribution)
@dataclass(frozen=True, eq=False)
class Mixture:
    """A mixed distribution: atoms with given probabilities, and a continuous distribution for the rest.

    >>> from scipy import stats
    >>> income = Mixture({0.0: 0.3}, stats.expon())      # 30% exact zeros, else Exp(1)
    >>> income.kind
    Mixed(atoms=1, unit=2.0)
    """

    atoms: Mapping[float, float] = field(repr=False)
    continuous: Frozen = field(repr=False)

    def __post_init__(self) -> None:
        if not hasattr(self.continuous, "pdf"):
            raise InputError(
                "the continuous part of a Mixture has no density.",
                "Give a frozen continuous distribution, for example scipy.stats.expon().",
            )
        masses = list(self.atoms.values())
        require(is_finite(list(self.atoms), masses), self, "atoms and their probabilities are finite numbers")
        if not self.atoms or min(masses) <= 0 or not sum(masses) < 1:
            raise InputError(
                f"Mixture has {len(masses)} atoms with total probability {sum(masses):g}, not inside (0, 1).",
                "Give each atom a probability above 0; what is left to 1 is the continuous part.",
            )

    @property
    def kind(self) -> Mixed:
        return Mixed(atoms=tuple(self._points.tolist()), unit=self._unit)

    @property
    def _unit(self) -> float:
        """A power of two of the size of the continuous part, so that neither swamps the other on the line."""
        size = float(np.max(np.abs(self.continuous.ppf([0.25, 0.75]))))
        return 2.0 ** math.ceil(math.log2(size)) if 0 < size < math.inf else 1.0

    @cached_property
    def _functions(self) -> TotalFunctions:
        return TotalFunctions(self.continuous)

    @property
    def _points(self) -> FloatArray:
        return np.array(sorted(self.atoms), dtype=np.float64)

    @property
    def _below(self) -> FloatArray:
        """Total mass of the first k atoms, k = 0..s."""
        return np.concatenate([[0.0], np.cumsum([self.atoms[a] for a in sorted(self.atoms)])])

    def cdf(self, v: FloatArray) -> FloatArray:
        z, k, part = AtomsLine.around(self._points, self._unit).locate(v)
        mass = np.append(np.diff(self._below), 0.0)[k]
        u = (1 - self._below[-1]) * self._functions.cdf(z) + self._below[k]
        return np.asarray(np.where(np.isnan(part), u, u + part * mass), dtype=np.float64)

    def ppf(self, u: FloatArray) -> FloatArray:
        rest = 1 - self._below[-1]
        starts = rest * self._functions.cdf(self._points) + self._below[:-1]
        masses = np.diff(self._below)
        k = np.searchsorted(starts + masses, u, side="left")
        at = np.minimum(k, len(starts) - 1)
        is_atom = (k < len(starts)) & (u > starts[at])
        z = self._functions.ppf(np.clip((u - self._below[k]) / rest, 0.0, 1.0))
        part = np.clip((u - starts[at]) / masses[at], np.finfo(np.float64).tiny, 1.0)
        line = AtomsLine.around(self._points, self._unit)
        return line.place(np.where(is_atom, self._points[at], z), part)

    def coordinate(self, column: EncodedColumn) -> UniformCoordinate:
        return UniformCoordinate(column.name)


def _with_median(distribution: ContinuousDistribution) -> ContinuousDistribution:
    if not math.isfinite(distribution.ppf(np.array([0.5]))[0]):
        raise InputError(
            "a distribution has no finite median: it cannot have its parameters.",
            "Correct them: a scale is above 0, and scipy.stats says what else each distribution needs.",
        )
    return distribution


def as_distribution(dist: Frozen) -> Distribution:
    """A frozen scipy distribution, continuous or discrete, or a `Mixture`, on the encoded line."""
    from scipy.stats import rv_continuous, rv_discrete

    if isinstance(dist, Mixture):
        return dist
    if hasattr(dist, "ppf") and hasattr(dist, "dist") and np.ndim(dist.ppf(0.5)):
        raise InputError("a distribution has arrays for parameters.", "Give one number for each parameter.")
    family: Any = getattr(dist, "dist", dist)  # rv_discrete(values=...) needs no freezing
    if hasattr(family, "xk") and hasattr(family, "pk"):
        return LevelsDistribution.of(family.xk, family.pk)
    if isinstance(family, rv_continuous) and family is not dist:
        return _with_median(ContinuousDistribution(dist))
    if isinstance(family, rv_discrete) and family is not dist:
        low = dist.support()[0]
        if math.isfinite(low) and low != round(low):
            raise InputError(f"a discrete distribution starts at {low:g}, not at a whole number.", "Use a whole `loc`.")
        return IntegerDistribution.of(dist)
    raise InputError(
        f"expected a frozen scipy.stats distribution, got {type(dist).__name__}.",
        "Give its parameters, for example scipy.stats.norm(0, 1), or a dipriv.references.Mixture.",
    )
