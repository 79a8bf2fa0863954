"""Which columns depend on which: edges chosen by noisy scores, their two-way tables, and the network made of them.

A tree: each column has one parent, and the tree has the greatest dependence. With a target, the target is a parent of
every other column, and these form a tree among themselves, judged by what the target leaves unexplained. A column with
two parents has the three-way table of greatest entropy with the measured two-way ones: no three-way table is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from dipriv.private.noise import Counts, Purse
from dipriv.private.pairs import denoised, of_greatest_entropy
from dipriv.randomness import FloatArray
from dipriv.references.network import Groups, Network, Node

Pair = tuple[int, int]
JointCounts = Callable[[Sequence[Pair]], dict[Pair, Counts]]
"""Exact joint counts of groups for pairs (i, j), i < j: private, they leave through the purse only."""
SCORE_DIGITS = 4
FLOOR = 0.5
"""A table's score is lowered by this part of the noise that measuring it adds: large tables must be worth it."""
FEWEST_GROUPS, MOST_GROUPS = 2, 32
ROWS_PER_NOISE = 2.0


@dataclass(frozen=True, eq=False)
class Margin:
    """A column's law: the masses of its states, and the groups of consecutive states that tables are made of."""

    masses: FloatArray = field(repr=False)
    group_of: Groups = field(repr=False)

    @property
    def totals(self) -> FloatArray:
        return np.bincount(self.group_of, self.masses).astype(np.float64)

    @property
    def groups(self) -> int:
        return int(self.group_of[-1]) + 1


def groups_for(rows: int, scale: float) -> int:
    """How many groups a column may have, so that a cell of a table has some rows for each unit of noise."""
    return int(np.clip(np.sqrt(rows / (ROWS_PER_NOISE * scale)), FEWEST_GROUPS, MOST_GROUPS))


def coarsened(masses: FloatArray, most: int, ordered: bool) -> Margin:
    """At most so many groups: of about the same mass where states have an order, else the heaviest one by one."""
    if not ordered:
        alone = min(most - 1, max(1, int(np.count_nonzero(masses))))
        return Margin(masses, np.minimum(np.arange(len(masses)), alone if len(masses) > alone else len(masses) - 1))
    group_of = np.zeros(len(masses), dtype=np.int64)
    group, inside, left = 0, 0.0, float(masses.sum())
    for state, mass in enumerate(masses):
        aim = (left + inside) / (most - group)
        if state and inside + mass / 2 > aim and group < most - 1:
            group, inside = group + 1, 0.0
        group_of[state] = group
        inside, left = inside + mass, left - mass
    return Margin(masses, group_of)


@dataclass
class Builder:
    """Builds the network: `scoring` and `tables` are the budgets of all choices and of all tables."""

    margins: Sequence[Margin] = field(repr=False)
    purse: Purse = field(repr=False)
    rows: int
    scoring: Fraction
    each_table: Fraction
    table_scale: float
    sampled: JointCounts = field(repr=False)
    """Joint counts of some of the rows, for scores."""
    sample: int
    whole: JointCounts = field(repr=False)
    """Joint counts of all rows, for tables."""
    tables: dict[Pair, FloatArray] = field(repr=False, default_factory=dict)

    def tree(self) -> list[tuple[int, tuple[int, ...]]]:
        """(column, parents) in an order in which parents come first."""
        count = len(self.margins)
        if count == 1:
            return [(0, ())]
        products = {pair: self._product(*pair) for pair in _pairs(range(count))}
        edges = self._spanning(list(range(count)), products, self.scoring / (count - 1))
        self.measure(edges)
        return [(0, ()), *((child, (parent,)) for parent, child in edges)]

    def around(self, target: int) -> list[tuple[int, tuple[int, ...]]]:
        """The same, with the target as a parent of all others."""
        others = [column for column in range(len(self.margins)) if column != target]
        self.measure([(target, column) for column in others])
        if len(others) < 2:
            return [(target, ()), *((column, (target,)) for column in others)]
        given = {pair: self._given(target, *pair) for pair in _pairs(others)}
        edges = self._spanning(others, given, self.scoring / (len(others) - 1))
        self.measure(edges)
        start = others[0]
        return [(target, ()), (start, (target,)), *((child, (target, parent)) for parent, child in edges)]

    def network(self, chain: Sequence[tuple[int, tuple[int, ...]]]) -> Network:
        """Conditional tables for all columns of the chain, numbered by their places in it."""
        place = {column: number for number, (column, _) in enumerate(chain)}
        nodes = []
        for column, parents in chain:
            margin = self.margins[column]
            weights = _usable(self._conditional(column, parents), margin.totals)
            nodes.append(Node.of(tuple(place[p] for p in parents), margin.group_of, margin.masses, weights))
        return Network(tuple(nodes))

    def measure(self, edges: Sequence[Pair]) -> None:
        """Spend on the tables of these edges."""
        counts = self.whole([_sorted(edge) for edge in edges])
        for (i, j), exact in counts.items():
            noisy, scale = self.purse.noisy_counts(exact, self.each_table)
            table = denoised(noisy, self.margins[i].totals, self.margins[j].totals, scale)
            self.tables[i, j], self.tables[j, i] = table, table.T

    def _conditional(self, column: int, parents: tuple[int, ...]) -> FloatArray:
        """Weights of the column's groups, one line for each joint group of the parents."""
        if not parents:
            return self.margins[column].totals[np.newaxis]
        if len(parents) == 1:
            return self.tables[parents[0], column]
        first, second = parents
        three = of_greatest_entropy(self.tables[column, first], self.tables[column, second], self.tables[first, second])
        return three.reshape(len(three), -1).T

    def _spanning(self, columns: list[int], expected: dict[Pair, FloatArray], each: Fraction) -> list[Pair]:
        """The edges (inside, new) of a tree of greatest noisy dependence: Prim's algorithm, ε for each choice."""
        counts = self.sampled(list(expected))
        scores = {pair: self._score(counts[pair], expected[pair]) for pair in expected}
        inside, outside = columns[:1], columns[1:]
        edges: list[Pair] = []
        while outside:
            choices = [(i, j) for i in inside for j in outside]
            best = 0
            if len(choices) > 1:
                worth = np.array([scores[_sorted(choice)] for choice in choices])
                best = self.purse.noisy_best(worth, 2 << SCORE_DIGITS, each)
            edges.append(choices[best])
            inside.append(choices[best][1])
            outside.remove(choices[best][1])
        return edges

    def _score(self, counts: Counts, expected: FloatArray) -> int:
        """Σ |count - expected| of the sampled rows, less a public part of the noise, in steps of 2^-SCORE_DIGITS."""
        shrunk = np.rint(np.ldexp(expected * (self.sample / self.rows), SCORE_DIGITS)).astype(np.int64)
        noise = FLOOR * self.table_scale * counts.size * self.sample / self.rows
        return int(np.abs((counts << SCORE_DIGITS) - shrunk).sum()) - round(noise * (1 << SCORE_DIGITS))

    def _product(self, i: int, j: int) -> FloatArray:
        return np.outer(self.margins[i].totals, self.margins[j].totals) / self.rows

    def _given(self, target: int, i: int, j: int) -> FloatArray:
        """What independence given the target would make of the table."""
        totals = self.margins[target].totals
        shares = np.divide(self.tables[i, target], totals, out=np.zeros_like(self.tables[i, target]), where=totals > 0)
        return np.asarray(shares @ self.tables[target, j])


def _usable(weights: FloatArray, fallback: FloatArray) -> FloatArray:
    """Lines without any weight get the column's own law."""
    empty = weights.sum(axis=1) <= 0
    return np.where(empty[:, np.newaxis], fallback, weights)


def _pairs(columns: Sequence[int]) -> list[Pair]:
    return [(i, j) for place, i in enumerate(columns) for j in columns[place + 1 :]]


def _sorted(pair: Pair) -> Pair:
    return pair if pair[0] < pair[1] else (pair[1], pair[0])
