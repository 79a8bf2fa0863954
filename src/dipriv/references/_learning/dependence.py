"""Which columns depend on which: edges chosen by noisy scores, their two-way tables, and the network made of them.

First a maximum spanning tree of dependence, then, where rows and ε suffice, a second parent for every column: one
that shares a measured table with the first parent, scored by the dependence that the first parent leaves unexplained.
With a target, the target is the first parent of every other column, and these form a tree among themselves. A column
with two parents has the maximum-entropy three-way table with the measured two-way ones: no three-way table is
measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from dipriv._base.arrays import Counts, FloatArray
from dipriv.references._learning.measurements import Accountant
from dipriv.references._learning.postprocess import to_total, with_minimum
from dipriv.references._learning.two_way import denoised, max_entropy_table
from dipriv.references._models.network import Groups, Network, Node

Pair = tuple[int, int]
Chain = dict[int, tuple[int, ...]]
"""The parents of each column, in an order in which parents come first."""
SCORE_DIGITS = 4
FLOOR = 0.5
"""A table's score is lowered by this part of the noise that measuring it adds: large tables must be worth it."""
MIN_GROUPS, MAX_GROUPS = 2, 32
ROWS_PER_NOISE = 2.0
SECOND_FROM = 1500
"""Rows times ε for each column from which second parents are worth their tables; measured to be good."""


@dataclass(frozen=True, eq=False)
class NoisyMarginal:
    """A column's noisy histogram over its states, and the groups of consecutive states that two-way tables use."""

    histogram: FloatArray = field(repr=False)
    group_of: Groups = field(repr=False)
    totals: FloatArray = field(repr=False)
    variances: FloatArray = field(repr=False)
    """Of the totals of groups, by the noise in them."""
    least: FloatArray = field(repr=False)
    """What the totals are at least."""

    @classmethod
    def of(cls, histogram: FloatArray, group_of: Groups, scale: float, least: float) -> NoisyMarginal:
        totals = np.bincount(group_of, histogram).astype(np.float64)
        states = np.bincount(group_of).astype(np.float64)
        return cls(histogram, group_of, totals, states * 2.0 * scale**2, states * least)

    @property
    def groups(self) -> int:
        return len(self.totals)


def groups_for(rows: int, scale: float) -> int:
    """How many groups a column may have, so that a cell of a table has some rows for each unit of noise."""
    return int(np.clip(np.sqrt(rows / (ROWS_PER_NOISE * scale)), MIN_GROUPS, MAX_GROUPS))


def coarsened(histogram: FloatArray, max_groups: int, ordered: bool) -> Groups:
    """The group of each state: at most `max_groups` groups.

    Ordered states: groups with about the same count. Others: the most frequent states have groups of their own.
    """
    if not ordered:
        alone = min(max_groups - 1, max(1, int(np.count_nonzero(histogram))))
        return np.minimum(np.arange(len(histogram)), alone)
    group_of = np.zeros(len(histogram), dtype=np.int64)
    group, inside, left = 0, 0.0, float(histogram.sum())
    for state, count in enumerate(histogram):
        aim = (left + inside) / (max_groups - group)
        if state and inside + count / 2 > aim and group < max_groups - 1:
            group, inside = group + 1, 0.0
        group_of[state] = group
        inside, left = inside + count, left - count
    return group_of


def second_parents(columns: int, rows: int, epsilon: Fraction) -> int:
    """How many columns get a second parent where there is no target: all that can, or none where ε is little for it."""
    return max(0, columns - 2) if rows * epsilon >= SECOND_FROM * columns else 0


@dataclass
class Builder:
    """Builds the network from marginals and exact joint counts, which only the accountant's measurements may read."""

    marginals: list[NoisyMarginal] = field(repr=False)
    counts: Mapping[Pair, Counts] = field(repr=False)
    """Of the groups of all pairs (i, j), i < j: private."""
    accountant: Accountant = field(repr=False)
    rows: int
    each_choice: Fraction
    each_table: Fraction
    second: int = 0
    """How many columns get a second parent."""
    noisy: dict[Pair, FloatArray] = field(repr=False, default_factory=dict)
    tables: dict[Pair, FloatArray] = field(repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._alone = tuple(self.marginals)
        self._scale = float(2 / self.each_table)

    def tree(self) -> Chain:
        """A tree, then second parents."""
        columns = list(range(len(self.marginals)))
        products = {pair: self._product(*pair) for pair in _pairs(columns)}
        edges = self._spanning(columns, products)
        self.measure(edges)
        self.settle()
        chain: Chain = {0: (), **{child: (parent,) for parent, child in edges}}
        for _ in range(self.second):
            self._add_parent(chain)
        self.settle()
        return chain

    def around(self, target: int) -> Chain:
        """The target as a parent of all others, and a tree among these."""
        others = [column for column in range(len(self.marginals)) if column != target]
        self.measure([(target, column) for column in others])
        self.settle()
        given = {pair: self._given(target, *pair) for pair in _pairs(others)}
        edges = self._spanning(others, given)
        self.measure(edges)
        self.settle()
        return {target: (), others[0]: (target,), **{child: (target, parent) for parent, child in edges}}

    def network(self, chain: Chain) -> Network:
        """Conditional tables for all columns of the chain, numbered by their places in it."""
        place = {column: number for number, column in enumerate(chain)}
        nodes = []
        for column, parents in chain.items():
            marginal = self.marginals[column]
            weights = _usable(self._conditional(column, parents), marginal.totals)
            nodes.append(Node.of(tuple(place[p] for p in parents), marginal.group_of, marginal.histogram, weights))
        return Network(tuple(nodes))

    def measure(self, edges: Sequence[Pair]) -> None:
        """Spend on the tables of these edges."""
        for edge in edges:
            pair = _sorted(edge)
            self.noisy[pair], self._scale = self.accountant.noisy_counts(self.counts[pair], self.each_table)
            self._denoise(pair)

    def settle(self) -> None:
        """Make marginals and tables consistent: a column's own counts and the marginals of its tables are averaged."""
        self.marginals = [self._marginal(column) for column in range(len(self.marginals))]
        for pair in self.noisy:
            self._denoise(pair)

    def _denoise(self, pair: Pair) -> None:
        i, j = pair
        table = denoised(self.noisy[pair], self.marginals[i].totals, self.marginals[j].totals, self._scale)
        self.tables[i, j], self.tables[j, i] = table, table.T

    def _marginal(self, column: int) -> NoisyMarginal:
        """Inverse-variance weighting of all estimates of a column's marginal."""
        alone = self._alone[column]
        weighed, weights = alone.totals / alone.variances, 1.0 / alone.variances
        for (i, j), noisy in self.noisy.items():
            if column in (i, j):
                variance = 2.0 * self._scale**2 * noisy.size / alone.groups
                weighed = weighed + noisy.sum(axis=1 if column == i else 0) / variance
                weights = weights + 1.0 / variance
        totals = with_minimum(to_total(weighed / weights, float(self.rows)), alone.least)
        return NoisyMarginal(alone.histogram, alone.group_of, totals, 1.0 / weights, alone.least)

    def _conditional(self, column: int, parents: tuple[int, ...]) -> FloatArray:
        """Weights of the column's groups, one line for each joint group of the parents."""
        if not parents:
            return self.marginals[column].totals[np.newaxis]
        if len(parents) == 1:
            return self.tables[parents[0], column]
        first, second = parents
        three = max_entropy_table(self.tables[column, first], self.tables[column, second], self.tables[first, second])
        return three.reshape(len(three), -1).T

    def _spanning(self, columns: list[int], expected: Mapping[Pair, FloatArray]) -> list[Pair]:
        """The edges (inside, new) of a maximum spanning tree of noisy scores: Prim's algorithm, ε for each choice."""
        scores = {pair: self._score(pair, model) for pair, model in expected.items()}
        inside, outside = columns[:1], columns[1:]
        edges: list[Pair] = []
        while outside:
            choices = [(i, j) for i in inside for j in outside]
            edges.append(choices[self._best([scores[_sorted(choice)] for choice in choices])])
            inside.append(edges[-1][1])
            outside.remove(edges[-1][1])
        return edges

    def _add_parent(self, chain: Chain) -> None:
        """A second parent for one column, if any can have one."""
        place = {column: number for number, column in enumerate(chain)}
        choices = [
            (child, second)
            for child, parents in chain.items()
            if len(parents) == 1
            for second in chain
            if place[second] < place[child] and (parents[0], second) in self.tables
        ]
        if choices:
            scores = [self._score(_sorted(pair), self._given(chain[pair[0]][0], *_sorted(pair))) for pair in choices]
            child, second = choices[self._best(scores)]
            chain[child] = (*chain[child], second)
            self.measure([(child, second)])

    def _best(self, scores: Sequence[int]) -> int:
        if len(scores) == 1:
            return 0
        return self.accountant.report_noisy_max(np.array(scores, dtype=np.int64), 2 << SCORE_DIGITS, self.each_choice)

    def _score(self, pair: Pair, expected: FloatArray) -> int:
        """Σ |count - expected|, less a public part of the noise, in steps of 2^-SCORE_DIGITS."""
        counts = self.counts[pair]
        model = np.rint(np.ldexp(expected, SCORE_DIGITS)).astype(np.int64)
        noise = round(FLOOR * self._scale * counts.size * (1 << SCORE_DIGITS))
        return int(np.abs((counts << SCORE_DIGITS) - model).sum()) - noise

    def _product(self, i: int, j: int) -> FloatArray:
        return np.outer(self.marginals[i].totals, self.marginals[j].totals) / self.rows

    def _given(self, parent: int, i: int, j: int) -> FloatArray:
        """What independence given a common neighbour would make of the table."""
        totals = self.marginals[parent].totals
        shares = np.divide(self.tables[i, parent], totals, out=np.zeros_like(self.tables[i, parent]), where=totals > 0)
        return np.asarray(shares @ self.tables[parent, j])


def _usable(weights: FloatArray, fallback: FloatArray) -> FloatArray:
    """Rows without any weight get the column's marginal."""
    empty = weights.sum(axis=1) <= 0
    return np.where(empty[:, np.newaxis], fallback, weights)


def _pairs(columns: Sequence[int]) -> list[Pair]:
    return [(i, j) for place, i in enumerate(columns) for j in columns[place + 1 :]]


def _sorted(pair: Pair) -> Pair:
    return pair if pair[0] < pair[1] else (pair[1], pair[0])
