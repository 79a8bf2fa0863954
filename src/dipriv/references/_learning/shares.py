"""How a reference's budget is divided between columns, choices and tables: by public facts alone.

The error of a noisy histogram grows with its number of cells k: Laplace noise adds k · 2/ε_j, so the sum over columns
is least for ε_j ∝ √k_j; for Gaussian noise it is least for ρ_j ∝ k_j^(2/3). Rows, columns, k, ε and δ decide how many
tables are measured, into how many groups columns fall in them, and which noise is better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dipriv.references._learning.adaptive import RoundCost
from dipriv.references._learning.domain import Domain
from dipriv.references._learning.measurements import NoiseKind, Spread
from dipriv.references._learning.zcdp import largest_rho

CHOICES = Fraction(8, 100)
"""The part of the budget that chooses pairs."""
ROUNDS_PER_COLUMN = 1.5
ROWS_PER_ROUND, PLENTY = 500, 10
"""Rows times ε for each table; with ten times as much for each there may be more tables than 1.5 for each column."""
TABLE_WEIGHT = 5.0
"""The weight of a table beside √k of a column; halving or doubling it changes little."""
POWERS: dict[NoiseKind, float] = {"laplace": 1 / 2, "gaussian": 2 / 3}
FOUND_LABELS = 24
"""How many labels a column is expected to have where nothing says so."""
MIN_BINS, MAX_BINS = 10, 64
"""How many bins of an ordered column rows and noise can distinguish, at least and at most."""
OF_CONVERSION, OF_THRESHOLDS = Fraction(1, 2), Fraction(3, 8)
"""Parts of δ: for Gaussian noise, and for the thresholds of labels and frequent values. The rest is slack."""
MIN_GROUPS, MAX_GROUPS, MAX_ORDERED_GROUPS = 3, 32, 16
"""How many groups of its states a column has in tables. Dependence on an ordered column is smooth: more groups than 16
are not needed, and cliques stay small."""
ROWS_PER_CELL = 10.0
CLEAR = 2.5
"""In standard deviations of the noise: what stands out of it."""
ROWS_PER_NOISE = 2.0
"""A cell of a table has about this many rows for each unit of noise."""


@dataclass(frozen=True)
class Shares:
    """The division of one budget. Costs are ε of Laplace noise or ρ of Gaussian noise."""

    kind: NoiseKind
    budget: Fraction
    delta: Fraction
    chance: Fraction
    """How probable it may be that a label of one row, or a value of ten, is published, column by column."""
    columns: tuple[Fraction, ...]
    cells: tuple[int, ...]
    """How many cells the columns' histograms are expected to have."""
    round: RoundCost | None
    """What a round may spend at first; None where columns are all that rows and ε allow."""

    def error(self, rows: int) -> float:
        """The mean noise of a cell as a multiple of its sampling error: of columns or tables, whichever is larger.

        The cells are those that the rows could fill: about ten rows in each.
        """
        sampling = math.sqrt(2.0 / math.pi * rows)
        filled = min(math.sqrt(rows / ROWS_PER_CELL), float(MAX_ORDERED_GROUPS))
        columns = max(
            Spread.of(self.kind, float(cost)).mean_size * math.sqrt(max(cells, MAX_BINS))
            for cost, cells in zip(self.columns, self.cells, strict=True)
        )
        tables = 0.0 if self.round is None else Spread.of(self.kind, float(self.round.table)).mean_size * filled
        return max(columns, tables) / sampling

    def groups(self, rows: int) -> int:
        """How many groups a column may have in tables."""
        if self.round is None:
            return MAX_GROUPS
        noise = Spread.of(self.kind, float(self.round.table)).mean_size
        return int(min(max(math.sqrt(rows / (ROWS_PER_NOISE * noise)), MIN_GROUPS), MAX_GROUPS))

    @property
    def clear(self) -> float:
        """How many rows stand out of the noise of a table's cell, so that a function of a label stays one."""
        return math.inf if self.round is None else CLEAR * Spread.of(self.kind, float(self.round.table)).deviation


def divide(domains: Sequence[Domain], rows: int, epsilon: Fraction, delta: Fraction, tables_first: int = 0) -> Shares:
    """The better division: with Laplace noise, or, where δ allows it, with Gaussian noise.

    Parameters
    ----------
    tables_first
        How many tables are measured in any case.
    """
    laplace = _divide("laplace", domains, rows, epsilon, epsilon, delta, tables_first)
    if not delta:
        return laplace
    rho = largest_rho(epsilon, delta * OF_CONVERSION)
    gaussian = _divide("gaussian", domains, rows, epsilon, rho, delta, tables_first) if rho > 0 else laplace
    return min(laplace, gaussian, key=lambda shares: _noise(shares, domains))


def _divide(
    kind: NoiseKind,
    domains: Sequence[Domain],
    rows: int,
    epsilon: Fraction,
    budget: Fraction,
    delta: Fraction,
    tables_first: int,
) -> Shares:
    bins = distinguishable_bins(len(domains), rows, epsilon)
    cells = tuple(planned_cells(domain, bins) for domain in domains)
    most = len(domains) * (len(domains) - 1) // 2
    affordable = float(rows * epsilon) / ROWS_PER_ROUND
    rounds = min(int(max(min(ROUNDS_PER_COLUMN * len(domains), affordable), affordable / PLENTY)), most)
    if rounds < len(domains) / 2:  # a few tables are not worth what the columns lose
        rounds = 0
    rounds = max(rounds, min(tables_first, most))
    roots = sum(math.sqrt(k) for k in cells)
    of_columns = Fraction(roots / (roots + TABLE_WEIGHT * rounds)).limit_denominator(1 << 20)
    weight = {k: Fraction(k ** POWERS[kind]).limit_denominator(1 << 20) for k in set(cells)}
    unit = budget * of_columns / sum(weight[k] for k in cells)
    columns = tuple(unit * weight[k] for k in cells)
    thresholds = sum(domain.has_thresholds for domain in domains)
    needed = delta if thresholds or kind == "gaussian" else Fraction(0)
    chance = delta * OF_THRESHOLDS / max(1, thresholds)
    if not rounds:
        return Shares(kind, budget, needed, chance, columns, cells, None)
    left = budget * (1 - of_columns)
    choices = min(budget * CHOICES, left / 2) if most > rounds > tables_first else Fraction(0)
    cost = RoundCost(choices / rounds, (left - choices) / rounds)
    return Shares(kind, budget, needed, chance, columns, cells, cost)


def distinguishable_bins(columns: int, rows: int, epsilon: Fraction) -> int:
    """How many bins of an ordered column have more rows than noise: the square root of rows for each unit of noise."""
    return min(max(round(math.sqrt(rows * epsilon / (2 * columns))), MIN_BINS), MAX_BINS)


def planned_cells(domain: Domain, bins: int) -> int:
    """How many cells a column's histogram is expected to have."""
    if domain.levels is None:
        return FOUND_LABELS if domain.finds_labels else bins
    count = len(domain.levels) + len(domain.missing)
    return min(count, bins) if domain.ordered else count


def _noise(shares: Shares, domains: Sequence[Domain]) -> float:
    """The noise to be expected in all histograms and, for each column, a table.

    Columns of numbers are measured in two resolutions, at half the cost each.
    """
    columns = sum(
        cells * Spread.of(shares.kind, float(cost) / (1 + domain.is_line)).deviation
        for domain, cost, cells in zip(domains, shares.columns, shares.cells, strict=True)
    )
    if shares.round is None:
        return columns
    return columns + len(domains) * MAX_ORDERED_GROUPS**2 * Spread.of(shares.kind, float(shares.round.table)).deviation
