"""How a reference's budget is divided between columns, choices and tables: by public facts alone.

The error of a noisy histogram grows with its number of cells k: Laplace noise adds k · 2/ε_j, so the sum over columns is
least for ε_j ∝ √k_j; for Gaussian noise it is least for ρ_j ∝ k_j^(2/3). Rows, columns, k, ε and δ decide how many
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
ROWS_PER_ROUND = 500
"""Rows times ε for each table."""
TABLE_WEIGHT = 7.0
"""The weight of a table beside √k of a column; halving or doubling it changes little."""
POWERS: dict[NoiseKind, float] = {"laplace": 1 / 2, "gaussian": 2 / 3}
FOUND_LABELS, NUMBER_BINS = 24, 48
"""How many cells the histogram of a column is expected to have where nothing says so."""
OF_CONVERSION, OF_THRESHOLDS = Fraction(1, 2), Fraction(3, 8)
"""Parts of δ: for Gaussian noise, and for the thresholds of labels and frequent values. The rest is slack."""
MIN_GROUPS, MAX_GROUPS = 3, 32
ROWS_PER_NOISE = 2.0
"""A cell of a table has about this many rows for each unit of noise."""


@dataclass(frozen=True)
class Shares:
    """The division of one budget. Costs are ε of Laplace noise or ρ of Gaussian noise."""

    kind: NoiseKind
    budget: Fraction
    delta: Fraction
    chance: Fraction
    """How probable it may be that a label or value of a single row is published, column by column."""
    columns: tuple[Fraction, ...]
    round: RoundCost | None
    """What a round may spend at first; None where columns are all that rows and ε allow."""

    def error(self, rows: int) -> float:
        """The mean noise of a cell, in the tables if there are any, beside the sampling error of a cell."""
        cost = min(self.columns) if self.round is None else self.round.table
        noise = Spread.of(self.kind, float(cost)).mean_size
        cells = math.sqrt(NUMBER_BINS) if self.round is None else float(self.groups(rows))
        return noise * cells / math.sqrt(2.0 / math.pi * rows)

    def groups(self, rows: int) -> int:
        """How many groups a column may have in tables."""
        if self.round is None:
            return MAX_GROUPS
        noise = Spread.of(self.kind, float(self.round.table)).mean_size
        return int(min(max(math.sqrt(rows / (ROWS_PER_NOISE * noise)), MIN_GROUPS), MAX_GROUPS))


def divide(
    domains: Sequence[Domain], rows: int, epsilon: Fraction, delta: Fraction, tables_first: int = 0
) -> Shares:
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
    return min(laplace, gaussian, key=lambda shares: _noise(shares, domains, rows))


def _divide(
    kind: NoiseKind,
    domains: Sequence[Domain],
    rows: int,
    epsilon: Fraction,
    budget: Fraction,
    delta: Fraction,
    tables_first: int,
) -> Shares:
    cells = [planned_cells(domain) for domain in domains]
    most = len(domains) * (len(domains) - 1) // 2
    rounds = min(int(ROUNDS_PER_COLUMN * len(domains)), int(rows * epsilon / ROWS_PER_ROUND), most)
    rounds = max(rounds, min(tables_first, most))
    roots = sum(math.sqrt(k) for k in cells)
    of_columns = Fraction(roots / (roots + TABLE_WEIGHT * rounds)).limit_denominator(1 << 20)
    weights = [Fraction(k ** POWERS[kind]).limit_denominator(1 << 20) for k in cells]
    columns = tuple(budget * of_columns * weight / sum(weights) for weight in weights)
    thresholds = sum(domain.has_thresholds for domain in domains)
    needed = delta if thresholds or kind == "gaussian" else Fraction(0)
    chance = delta * OF_THRESHOLDS / max(1, thresholds)
    if not rounds:
        return Shares(kind, budget, needed, chance, columns, None)
    left = budget * (1 - of_columns)
    choices = min(budget * CHOICES, left / 2) if most > rounds else Fraction(0)
    return Shares(kind, budget, needed, chance, columns, RoundCost(choices / rounds, (left - choices) / rounds))


def planned_cells(domain: Domain) -> int:
    """How many cells a column's histogram is expected to have."""
    if domain.levels is not None:
        return len(domain.levels) + len(domain.missing)
    return FOUND_LABELS if domain.finds_labels else NUMBER_BINS


def _noise(shares: Shares, domains: Sequence[Domain], rows: int) -> float:
    """The noise to be expected in all histograms and, for each column, a table."""
    columns = sum(
        planned_cells(domain) * Spread.of(shares.kind, float(cost)).mean_size
        for domain, cost in zip(domains, shares.columns, strict=True)
    )
    if shares.round is None:
        return columns
    each = Spread.of(shares.kind, float(shares.round.table)).mean_size
    return columns + len(domains) * each * shares.groups(rows) ** 2
