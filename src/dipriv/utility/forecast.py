"""What a release will be good for, before any ε is spent: computed from public facts alone.

The public facts are how many rows there are, the names and types of the columns, the schema and the options. The plan
of a private reference follows from them: how its budget is divided, and so the noise of every count. A cell of a
column with the share p of the rows is off by three errors:

    noise of its count       σ/N, where two-way tables that contain the column lower σ² by their own information
    sampling of the rows     √(p(1 - p)(1 - ρ²)/n), where the released rows keep a correlation ρ with the true ones
    merging                  p, where labels are found and a count of pN rows does not reach their threshold

As a function of p this is what survey statisticians call a generalized variance function; it says how far any share is
off. The total variation of a column, half the sum over its cells, needs the shares themselves, which are not public. So
typical ones stand in for them: labels with shares ∝ rank^-s (Zipf), numbers in about twenty cells. Where nothing
declares how many labels or values there are, the error is given for few and for many as well. How well all this agrees
with releases of real tables is on record (docs/usefulness.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

import numpy as np
from scipy.special import ndtr

from dipriv._base.arrays import FloatArray
from dipriv._base.columns import NumericColumn
from dipriv._base.coordinates import UniformCoordinate
from dipriv.kernels import KernelSpec
from dipriv.references._learning.column_histograms import OF_GROUPS, OF_TREE, OF_VALUES, grows_tree
from dipriv.references._learning.domain import Domain
from dipriv.references._learning.estimates import OF_STEP
from dipriv.references._learning.learn import MarkovPlan
from dipriv.references._learning.measurements import Spread
from dipriv.references._learning.shares import MAX_ORDERED_GROUPS
from dipriv.references.protocol import LearnableSpec
from dipriv.schema import Schema
from dipriv.utility.expected_error import MEAN_SIZE
from dipriv.utility.total_variation import CELLS

SKEW, SKEW_IN_ORDER, SKEW_OF_FEW = 1.0, 0.5, 3.0
"""Typical shares of k labels, or of few levels in order, are ∝ rank^-(SKEW + SKEW_OF_FEW/k): 85% no and 15% yes."""
FOUND = (8, 2, 40)
"""How many labels a column has that nothing lists: typical, few, many."""
WHOLE, REAL = (12, 2, CELLS), (16, 2, CELLS)
"""The cells of whole and of real numbers whose values nothing lists: typical, few, many."""
COMMON = 0.15
"""The typical share of the most frequent one of many levels in order."""
AT_ATOMS = 0.4
"""The typical share of declared atoms."""
SMOOTHED = 2.0
"""The variance of a cell of numbers in those of a bin: a cell has many bins, most of whose noise is smoothed away."""
UNEVEN, UNEVEN_WHOLE = 0.02, 0.01
"""By what part cells of real and of whole numbers are off because values lie unevenly inside of bins."""
ALONE = 0.1
"""Values with a larger share than this have a bin of their own, in which nothing is uneven."""
MIN_NOISE = 1 / 4
"""The variance of a rare level, in that of its noise: counts are not negative, and rare ones are shrunk."""
BINS = 64
"""How many bins the fidelity of a number is summed over."""
SHARES = (0.01, 0.1, 0.5)
"""Shares for which a forecast says how far they are off."""


@dataclass(frozen=True, eq=False)
class PublicFacts:
    """All that a forecast may know of a table."""

    rows: int
    columns: tuple[NumericColumn, ...]
    schema: Schema
    """The declared kinds."""
    labels_read: tuple[str, ...] = ()
    """Columns whose labels were read from the rows and are called public."""


@dataclass(frozen=True, eq=False)
class Setting:
    """The options of a release that its errors depend on; ε and δ are those of a row."""

    epsilon: float
    delta: float
    spec: LearnableSpec
    kernel: KernelSpec
    holdout: float | None = None
    """The share of rows that only the reference is learned from."""


@dataclass(frozen=True)
class ColumnForecast:
    """One column.

    Attributes
    ----------
    error : expected total variation of its distribution: the part of the rows that would have to be changed.
    least, most : the same for a column of few and of many labels or values; `error` where their number is public.
    share_errors : (share, expected error of a label or value that this share of the rows has), for several shares.
    cells : how many labels, values or twentieths of the rows are taken as typical.
    public : whether this number is public.
    fidelity : expected correlation of released with true values; agreement beyond chance for labels.
    budget : its part of what the histograms of all columns cost.
    """

    name: str
    error: float
    least: float
    most: float
    share_errors: tuple[tuple[float, float], ...]
    cells: int
    public: bool
    fidelity: float
    budget: float


@dataclass(frozen=True)
class PairsForecast:
    """The pairs of columns whose two-way tables can be measured.

    Attributes
    ----------
    measured, possible : how many, and how many there are.
    error : expected total variation of a measured table from its noise; None where none is measured.
    """

    measured: int
    possible: int
    error: float | None


@dataclass(frozen=True)
class EpsilonForecast:
    """What one ε buys.

    Attributes
    ----------
    reference_epsilon, row_epsilon : what the reference and the row's own noise get of a row's ε.
    columns : in the order of the table.
    """

    epsilon: float
    reference_epsilon: float
    row_epsilon: float
    columns: tuple[ColumnForecast, ...]
    pairs: PairsForecast

    @property
    def error(self) -> float:
        """The median of the columns' expected errors."""
        return float(np.median([column.error for column in self.columns]))

    @property
    def fidelity(self) -> float:
        """The median of the columns' fidelities."""
        return float(np.median([column.fidelity for column in self.columns]))


def forecast(facts: PublicFacts, setting: Setting) -> EpsilonForecast:
    """The errors to be expected of a release with this setting.

    Raises
    ------
    InputError : the schema or an option does not fit the columns, or ε is too small for them.
    """
    model = error_model(facts, setting)
    plan = model.plan
    columns = tuple(_column(model, number) for number in range(len(plan.domains)))
    return EpsilonForecast(
        setting.epsilon, float(plan.reference_epsilon), plan.row_epsilon, columns, _pairs(model, len(columns))
    )


def _column(model: ErrorModel, number: int) -> ColumnForecast:
    domain, costs = model.plan.domains[number], model.plan.shares.columns
    counts = cell_counts(domain)
    error, few, many = (model.total_variation(number, typical_shares(domain, cells)) for cells in counts)
    squares = model.squares(number, np.array(SHARES))[0]
    return ColumnForecast(
        domain.name,
        error,
        min(error, few),
        max(error, many),
        tuple(zip(SHARES, (MEAN_SIZE * np.sqrt(squares)).tolist(), strict=True)),
        counts[0],
        len(set(counts)) == 1,
        model.fidelities[number],
        float(costs[number] / sum(costs)),
    )


def _pairs(model: ErrorModel, width: int) -> PairsForecast:
    """How many tables are measured, and how well."""
    possible = width * (width - 1) // 2
    measured = min(round(model.rounds), possible)
    if not measured:
        return PairsForecast(0, possible, None)
    groups = model.groups
    cells = (float(groups.sum()) ** 2 - float((groups**2).sum())) / (width * (width - 1))  # the mean over pairs
    return PairsForecast(measured, possible, min(1.0, cells * MEAN_SIZE * model.table_noise / model.rows / 2))


def error_model(facts: PublicFacts, setting: Setting) -> ErrorModel:
    """The error of every share, from public facts.

    Raises
    ------
    InputError : the schema or an option does not fit the columns, or ε is too small for them.
    """
    held_out = 0 if setting.holdout is None else max(1, round(facts.rows * setting.holdout))
    learned, released = held_out or facts.rows, max(1, facts.rows - held_out)
    disjoint = setting.holdout is not None
    plan = cast(
        MarkovPlan,
        setting.spec.plan(facts.columns, facts.schema, setting.epsilon, setting.delta, learned, disjoint=disjoint),
    )
    kernel = setting.kernel.build(plan.row_epsilon, [domain.name for domain in plan.domains], plan.coordinates())
    fidelities = []
    for number, domain in enumerate(plan.domains):
        shares = None if domain.ordered else typical_shares(domain, cell_counts(domain)[0])
        part = UniformCoordinate(domain.name, shares).partition(BINS)
        fidelities.append(part.fidelity(kernel.joint_probabilities(number, part.cuts)))
    return ErrorModel(plan, learned, released, tuple(fidelities))


@dataclass(frozen=True, eq=False)
class ErrorModel:
    """The errors of a release whose reference is learned by this plan.

    Attributes
    ----------
    rows, released : how many rows the reference is learned from, and how many are released.
    fidelities : the expected correlation of each column with what it was.
    """

    plan: MarkovPlan = field(repr=False)
    rows: int
    released: int
    fidelities: tuple[float, ...]

    def total_variation(self, number: int, p: FloatArray) -> float:
        """The expected total variation of a column whose cells have these shares of the rows."""
        squares, merged = self.squares(number, p)
        return min(1.0, MEAN_SIZE * float(np.sqrt(squares) @ (1.0 - merged)) / 2.0 + float(merged @ p))

    def squares(self, number: int, p: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The mean squared errors of cells with these shares, and the chances that they are merged into others."""
        domain = self.plan.domains[number]
        sampled = p * (1.0 - p) * max(0.0, 1.0 - self.fidelities[number] ** 2) / self.released
        noise = self._variance(number) / self.rows**2 * (1.0 - 1.0 / max(2, cell_counts(domain)[0]))
        if domain.is_line:
            uneven = UNEVEN_WHOLE if domain.column.storage.family == "integer" else UNEVEN
            return noise + sampled + (uneven * p * (p < ALONE)) ** 2, np.zeros(len(p))
        if not domain.finds_labels:
            return noise * np.clip(p**2 / noise, MIN_NOISE, 1.0) + sampled, np.zeros(len(p))
        merged = ndtr((self._threshold(number) - p * self.rows) / self._own(number))
        return (1.0 - merged) * (noise + sampled) + merged * p**2, merged

    @property
    def rounds(self) -> float:
        """How many tables the budget is for, at the cost of the first ones."""
        shares = self.plan.shares
        return 0.0 if shares.round is None else float((shares.budget - sum(shares.columns)) / shares.round.total)

    @cached_property
    def groups(self) -> FloatArray:
        """How many groups each column typically has in tables."""
        most = self.plan.shares.groups(self.rows)
        return np.array(
            [
                min(cell_counts(domain)[0], most, MAX_ORDERED_GROUPS if domain.ordered else most)
                for domain in self.plan.domains
            ],
            dtype=np.float64,
        )

    @property
    def table_noise(self) -> float:
        """The standard deviation of a count in a table."""
        shares = self.plan.shares
        return math.inf if shares.round is None else Spread.of(shares.kind, float(shares.round.table)).deviation

    def _variance(self, number: int) -> float:
        """The variance of a cell's count, by the column's own histogram and by the tables that contain it.

        A table with g groups of the other column gives each count as a sum of g noisy ones. Tables are taken to fall
        evenly on the columns.
        """
        if not self.rounds:
            return self._own(number) ** 2
        others = np.delete(self.groups, number)
        information = 2.0 * self.rounds / len(self.groups) * float(np.mean(1.0 / others)) / self.table_noise**2
        return 1.0 / (self._own(number) ** -2 + information)

    def _own(self, number: int) -> float:
        """The standard deviation of a cell's count in the column's own histogram."""
        shares, domain = self.plan.shares, self.plan.domains[number]
        cost = shares.columns[number]
        if domain.is_line:
            spent = OF_TREE * grows_tree(domain, shares.kind, cost, self.rows)
            spent += OF_STEP * domain.open_step + OF_VALUES * domain.finds_values
            return Spread.of(shares.kind, float(cost * (1 - spent) * (1 - OF_GROUPS))).deviation * math.sqrt(SMOOTHED)
        several = len(domain.levels) / CELLS if domain.levels is not None and domain.many_in_order else 1.0
        return Spread.of(shares.kind, float(cost)).deviation * math.sqrt(max(1.0, several / 2))

    def _threshold(self, number: int) -> float:
        """About how many rows a label needs to be found."""
        shares = self.plan.shares
        logs = math.log(1.0 / float(shares.chance)) if shares.chance else math.inf
        scale = Spread.of(shares.kind, float(shares.columns[number])).scale
        return scale * (logs if shares.kind == "laplace" else math.sqrt(2.0 * logs))


def cell_counts(domain: Domain) -> tuple[int, int, int]:
    """How many cells a column has: typical, few, many; three times the same where their number is public."""
    if domain.finds_labels:
        return FOUND
    if domain.levels is None:
        return WHOLE if domain.column.storage.family == "integer" else REAL
    count = len(domain.levels)
    return (CELLS,) * 3 if domain.ordered and count > CELLS else (count,) * 3


def typical_shares(domain: Domain, cells: int) -> FloatArray:
    """The shares of the cells of a typical column."""
    if domain.finds_labels or (domain.levels is not None and len(domain.levels) == cells):
        skew = (SKEW_IN_ORDER if domain.ordered else SKEW) + SKEW_OF_FEW / cells
        weights = np.arange(1.0, cells + 1.0) ** -skew
        return np.asarray(weights / weights.sum())
    alone, at = (len(domain.atoms), AT_ATOMS) if domain.levels is None else (1, COMMON)
    if not alone:
        return np.full(cells, 1.0 / cells)
    rest = max(1, round(cells * (1.0 - at)))
    return np.concatenate([np.full(alone, at / alone), np.full(rest, (1.0 - at) / rest)])
