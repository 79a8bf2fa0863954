"""Which noise keeps the most of each row: chosen by expected fidelity, from the reference and ε alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from dipriv._base.arrays import FloatArray
from dipriv._base.coordinates import Partition, UniformCoordinate, equal_parts
from dipriv._base.near_names import did_you_mean
from dipriv._base.parallel import in_parallel
from dipriv.errors import InputError
from dipriv.kernels._cap.kernel import MAX_COLUMNS, CapKernel
from dipriv.kernels._joint.kernel import JointKernel, integer_weights
from dipriv.kernels._per_column.kernel import ColumnsKernel
from dipriv.kernels.laplace import Laplace
from dipriv.kernels.protocol import Kernel, kernel_spec
from dipriv.kernels.shares import check_shares, shares_of

COARSE_BINS = 32
"""The bins of a number, for small ε."""
MAX_BINS = 64
"""The bins of a number for large ε, and at most of a column of levels."""
LARGE_EPSILON = 6.0
"""From this ε of a column on more bins begin to matter."""
MAX_WEIGHT = Fraction(10) ** 200
"""Larger weights are scaled down to it, so that their sums are finite."""
FINE_BINS = 256
"""The bins by which expected fidelities are computed."""
FINE = equal_parts(FINE_BINS)
"""The ranks of a number."""


@dataclass(frozen=True)
class OptimalColumns:
    """The best noise for each column by itself, with ε divided among them: a linear program for each.

    Parameters
    ----------
    weights, costs : as for `Optimal`.

    Raises
    ------
    InputError : a weight or a matrix cannot be used.

    Examples
    --------
    >>> OptimalColumns().build(1.0, ["rating"]).epsilon
    1.0
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    costs: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_shares(self.weights, "weight")
        if not isinstance(self.costs, Mapping):
            raise InputError(
                f"expected costs as a mapping, got {type(self.costs).__name__}.", "Write {column: matrix, ...}."
            )
        for name, cost in self.costs.items():
            _check_cost(name, cost)

    def check(self, epsilon: float, margins: Sequence[UniformCoordinate]) -> None:
        names = [margin.name for margin in margins]
        shares_of(self.weights, names, "weight")
        for name in self.costs:
            if name not in names:
                raise InputError(
                    f"a cost is given for {name!r}, which is not a column{did_you_mean(name, names)}.",
                    "Remove or rename it.",
                )
        for margin in margins:
            if margin.name in self.costs:
                _with_cost(margin, self.costs[margin.name])

    def build(
        self, epsilon: float, names: Sequence[str], margins: Sequence[UniformCoordinate] | None = None
    ) -> ColumnsKernel:
        request = self._request(epsilon, names, margins)
        return ColumnsKernel.best(epsilon, request.partitions(epsilon), request.shares)

    def describe(self) -> str:
        return "optimal (each column by itself)" + _own(self.weights, self.costs)

    def _request(
        self, epsilon: float, names: Sequence[str], margins: Sequence[UniformCoordinate] | None
    ) -> KernelRequest:
        known = tuple(UniformCoordinate(name) for name in names) if margins is None else tuple(margins)
        self.check(epsilon, known)
        shares = shares_of(self.weights, names, "weight")
        matter = [share * margin.matters for share, margin in zip(shares, known, strict=True)]
        return KernelRequest(known, [share / sum(matter) for share in matter], self.costs)


@dataclass(frozen=True)
class OptimalJoint:
    """The best noise for all columns together: ε is spent once for the whole row, not once for each column.

    Parameters
    ----------
    weights : as for `Optimal`.

    Raises
    ------
    InputError : a weight cannot be used.

    Examples
    --------
    >>> OptimalJoint({"income": 3}).build(1.0, ["age", "income"]).weights.tolist()
    [1, 3]
    """

    weights: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_shares(self.weights, "weight")

    def check(self, epsilon: float, margins: Sequence[UniformCoordinate]) -> None:
        shares_of(self.weights, [margin.name for margin in margins], "weight")

    def build(
        self, epsilon: float, names: Sequence[str], margins: Sequence[UniformCoordinate] | None = None
    ) -> JointKernel:
        request = OptimalColumns(self.weights)._request(epsilon, names, margins)
        shares = shares_of(self.weights, names, "weight")  # as they are written, so that 3 : 1 is found to be that
        unit = max(max(shares) / MAX_WEIGHT, Fraction(1))
        given = zip(shares, request.margins, strict=True)
        weights = integer_weights([max(float(share / unit), 1e-300) * margin.matters for share, margin in given])
        return _joint(epsilon, tuple(weights.tolist()))

    def describe(self) -> str:
        return "optimal (all columns together)" + _own(self.weights)


@lru_cache(maxsize=16)
def _joint(epsilon: float, weights: tuple[int, ...]) -> JointKernel:
    return JointKernel.best(epsilon, np.array(weights, dtype=np.int64))


@dataclass(frozen=True)
class OptimalCap:
    """The best noise for all columns together where all matter alike: directions near a row's own are more likely.

    It keeps about a quarter more of many columns of numbers than `OptimalJoint`.

    Raises
    ------
    InputError : there are more columns than it can draw together.

    Examples
    --------
    >>> OptimalCap().build(1.0, ["age", "income"]).epsilon
    1.0
    """

    def check(self, epsilon: float, margins: Sequence[UniformCoordinate]) -> None:
        if len(margins) > MAX_COLUMNS:
            raise InputError(
                f"{len(margins)} columns are more than {MAX_COLUMNS}, which are drawn together at most.",
                "Use OptimalJoint().",
                command="Use --kernel optimal.",
            )

    def build(
        self, epsilon: float, names: Sequence[str], margins: Sequence[UniformCoordinate] | None = None
    ) -> CapKernel:
        known = tuple(UniformCoordinate(name) for name in names) if margins is None else tuple(margins)
        self.check(epsilon, known)
        return _cap(epsilon, tuple(int(margin.matters) for margin in known))

    def describe(self) -> str:
        return "optimal (all columns together, by direction)"


@lru_cache(maxsize=16)
def _cap(epsilon: float, takes_part: tuple[int, ...]) -> CapKernel:
    return CapKernel.best(epsilon, np.array(takes_part, dtype=np.int64))


@kernel_spec("optimal")
@dataclass(frozen=True)
class Optimal:
    """The noise that keeps most: the best for each column, one of two for all columns together, or the paper's.

    It has the greatest expected fidelity, weighted over columns, which follows from the reference and ε: it does not
    depend on released rows.

    Parameters
    ----------
    weights : {column: how much it matters}; columns that are not named have weight 1. `OptimalCap`, which has no
        weights, is chosen only where all are the same.
    costs : {column: matrix of the cost of releasing level j for level i}, in the order of the schema's levels, for a
        column that is released by itself. By default the squared difference for numbers, and 1 for any wrong category.
    directions : whether `OptimalCap` may be chosen. It is not where columns of several rows are released together, as
        with `constant`: the columns of its output depend on each other given a row.

    Raises
    ------
    InputError : a weight or a matrix cannot be used.

    Examples
    --------
    >>> Optimal({"income": 3}).describe()
    'optimal (own weights)'
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    costs: Mapping[str, Any] = field(default_factory=dict)
    directions: bool = True

    def __post_init__(self) -> None:
        OptimalColumns(self.weights, self.costs)

    def check(self, epsilon: float, margins: Sequence[UniformCoordinate]) -> None:
        OptimalColumns(self.weights, self.costs).check(epsilon, margins)

    def build(self, epsilon: float, names: Sequence[str], margins: Sequence[UniformCoordinate] | None = None) -> Kernel:
        columns = OptimalColumns(self.weights, self.costs)
        request = columns._request(epsilon, names, margins)
        rated: list[tuple[float, Kernel]] = []
        shares = [share for share in request.shares if share]
        if len(shares) > 1:
            rated.append(request.rated(OptimalJoint(self.weights).build(epsilon, names, request.margins)))
        alike = len(shares) > 1 and min(shares) == max(shares) and len(names) <= MAX_COLUMNS
        if alike and self.directions:
            rated.append(request.rated(OptimalCap().build(epsilon, names, request.margins)))
        if not rated or request.most_by_columns(epsilon) > max(rated, key=_by_fidelity)[0]:
            rated.append(request.rated(columns.build(epsilon, names, request.margins)))
            with suppress(InputError):  # the paper's, unless the budget is too small for its lattice
                rated.append(request.rated(Laplace(self.weights).build(epsilon, names)))
        return max(rated, key=_by_fidelity)[1]

    def describe(self) -> str:
        return "optimal" + _own(self.weights, self.costs)


@dataclass(frozen=True)
class KernelRequest:
    """The columns, their shares of what matters, which add up to 1, and the costs that users gave."""

    margins: tuple[UniformCoordinate, ...]
    shares: list[Fraction]
    costs: Mapping[str, Any]

    def partitions(self, epsilon: float) -> list[Partition]:
        """The bins of each column's linear program."""
        budgets = [float(Fraction(epsilon) * share) for share in self.shares]
        return [
            self.partition(margin, COARSE_BINS if budget < LARGE_EPSILON else MAX_BINS, MAX_BINS)
            for margin, budget in zip(self.margins, budgets, strict=True)
        ]

    def partition(self, margin: UniformCoordinate, ranks: int, levels: int) -> Partition:
        """A column's bins: `ranks` equal ones for a number, at most `levels` for a column of levels."""
        if margin.name in self.costs:
            return _with_cost(margin, self.costs[margin.name])
        return margin.partition(ranks if margin.probabilities is None else levels)

    def rated(self, kernel: Kernel) -> tuple[float, Kernel]:
        """A kernel and its expected fidelity: the mean over columns, weighted by their shares."""
        expected, of_ranks = 0.0, dict[Fraction, FloatArray]()  # numbers with the same share fare alike
        for column, (margin, share) in enumerate(zip(self.margins, self.shares, strict=True)):
            if not share:
                continue
            if margin.probabilities is not None:
                part = self.partition(margin, FINE_BINS, FINE_BINS)
                expected += float(share) * part.fidelity(kernel.joint_probabilities(column, part.cuts))
                continue
            if share not in of_ranks:
                of_ranks[share] = _cumulative(kernel.joint_probabilities(column, FINE.cuts))
            parts = self._levels_in_rows[column]
            kept = [part.fidelity(_on_cuts(of_ranks[share], part.cuts)) for part in parts]
            expected += float(share) * sum(kept) / len(kept)
        return expected, kernel

    @cached_property
    def _levels_in_rows(self) -> list[list[Partition]]:
        """Of each column what its noise is judged by, the same for all kernels: levels in rows, else ranks."""

        def levels(margin: UniformCoordinate) -> list[Partition]:
            return [FINE] if margin.in_rows is None else margin.partitions_in_rows(MAX_BINS)

        return in_parallel(levels, self.margins)

    def most_by_columns(self, epsilon: float) -> float:
        """An upper bound for kernels of separate columns: ε-private noise leaves a correlation of tanh(ε/2) at most."""
        if self.costs:
            return math.inf
        return sum(float(share) * math.tanh(epsilon * float(share) / 2) for share in self.shares)


def _cumulative(joint: FloatArray) -> FloatArray:
    """The joint distribution function at the cuts."""
    return np.pad(joint.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))


def _on_cuts(cumulative: FloatArray, cuts: FloatArray) -> FloatArray:
    """Joint probabilities of other bins, from those of equal ones, inside of which both ranks are uniform."""
    bins = len(cumulative) - 1
    low = np.minimum((cuts * bins).astype(np.int64), bins - 1)
    place = (cuts * bins - low)[:, np.newaxis]
    for _ in range(2):
        cumulative = (cumulative[low] * (1 - place) + cumulative[low + 1] * place).T
    return np.diff(np.diff(cumulative, axis=0), axis=1)


def _by_fidelity(rated: tuple[float, Kernel]) -> float:
    return rated[0]


def _own(weights: Mapping[str, float], costs: Mapping[str, Any] | None = None) -> str:
    said = [name for name, given in (("own weights", weights), ("own costs", costs)) if given]
    return f" ({' and '.join(said)})" if said else ""


def _check_cost(name: str, cost: Any) -> None:
    try:
        given = np.asarray(cost)
    except ValueError:  # rows of different lengths
        given = np.empty(0)
    matrix = given.astype(np.float64) if given.dtype.kind in "iuf" else np.empty(0)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.all(np.isfinite(matrix)) or np.any(matrix < 0):
        raise InputError(
            f"the cost of column {name!r} is not a square matrix of finite numbers >= 0.",
            "Give one row and one column for each level, cost[i, j] for releasing level j for level i.",
        )


def _with_cost(margin: UniformCoordinate, cost: Any) -> Partition:
    """A column's levels with the cost that a user gave; a missing value for a level costs its largest entry."""
    given = np.asarray(cost, dtype=np.float64)
    if margin.probabilities is None:
        raise InputError(
            f"a cost is given for column {margin.name!r}, which has no levels of its own that are released by "
            "themselves.",
            "Release that column alone, with declared levels, or leave the cost out.",
        )
    states = len(margin.probabilities)
    if states > MAX_BINS:
        raise InputError(
            f"a cost is given for column {margin.name!r}, which has {states} levels and kinds of missing values, more "
            f"than {MAX_BINS}.",
            "Leave the cost out, or bring levels together first.",
        )
    if len(given) != states - margin.missing:
        raise InputError(
            f"the cost of column {margin.name!r} is for {len(given)} levels; the column has {states - margin.missing}.",
            "Declare the column's levels in a schema, and give the cost in their order.",
        )
    if margin.places is not None:
        given = given[np.ix_(margin.places, margin.places)]
    whole = np.full((states, states), given.max())
    whole[margin.missing :, margin.missing :] = given
    np.fill_diagonal(whole[: margin.missing, : margin.missing], 0.0)
    return Partition(margin.probabilities, whole)
