"""The maximum-entropy distribution that fits noisy tables: a Markov network on a junction tree (Private-PGM).

Its probability is a product of one positive table for each measured set of columns. The tables are fitted to all
measurements, each weighted by its noise (McKenna, Sheldon, Miklau 2019); marginals are computed by belief propagation
on a junction tree. Everything here is post-processing of numbers that are already private.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from dipriv._base.arrays import FloatArray
from dipriv.references._learning.junction_tree import JunctionTree, junction_tree

Columns = tuple[int, ...]
"""One column or two, in ascending order."""
MAX_LOG = 60.0
"""Logarithms of a table's entries stay within this distance of zero: e^-60 of N rows is no row."""
DAMPING = 20.0
"""In standard deviations of the noise: cells with fewer rows move less than a Newton step would move them."""
GROW, SHRINK, MIN_LENGTH, ENOUGH = 1.2, 0.5, 1e-6, 1e-5


@dataclass(frozen=True, eq=False)
class _Message:
    """Joint marginals of some columns with one separator: lines begin..end are the states of column i."""

    rows: FloatArray
    columns: list[tuple[int, int, int]]


@dataclass(frozen=True, eq=False)
class NoisyTable:
    """Counts of one column's groups or of two columns' joint groups, with the variance of the noise in each cell."""

    columns: Columns
    counts: FloatArray = field(repr=False)
    variance: FloatArray = field(repr=False)

    @property
    def deviation(self) -> FloatArray:
        return np.sqrt(self.variance)

    def combined(self, other: NoisyTable) -> NoisyTable:
        """Both measurements as one: inverse-variance weighting."""
        variance = 1.0 / (1.0 / self.variance + 1.0 / other.variance)
        counts = variance * (self.counts / self.variance + other.counts / other.variance)
        return NoisyTable(self.columns, counts, variance)


class MarkovModel:
    """Beliefs (marginals of cliques, which add up to `total`) of the product of all tables e^logs[columns]."""

    def __init__(self, sizes: Sequence[int], total: float) -> None:
        self.sizes, self.total = tuple(sizes), total
        self.logs: dict[Columns, FloatArray] = {}
        self.measured: dict[Columns, NoisyTable] = {}
        self._length = 0.5
        self._rebuild()

    @property
    def edges(self) -> list[tuple[int, int]]:
        return [(columns[0], columns[1]) for columns in self.logs if len(columns) == 2]

    def add(self, table: NoisyTable) -> None:
        """One measurement more; `fit` takes it into account."""
        known = self.measured.get(table.columns)
        self.measured[table.columns] = table if known is None else known.combined(table)
        if known is None:
            self.logs[table.columns] = np.zeros(table.counts.shape)
            self._rebuild()

    def marginal(self, columns: Columns) -> FloatArray:
        """The marginal of columns that share a clique."""
        return self._marginal_of(self._home[columns] if columns in self._home else self._find(columns), columns)

    def fit(self, rounds: int) -> None:
        """Lower the loss ½ Σ (marginal - counts)² / variance by damped Newton steps on the logarithms of the tables.

        A step ignores that tables overlap, so its length adapts: it is halved until the loss falls.
        """
        beliefs, loss, excess = self._evaluate(self.logs)
        for _ in range(rounds):
            direction = {
                columns: -excess[columns] / (counts + DAMPING * table.deviation)
                for columns, table in self.measured.items()
                for counts in (np.maximum(excess[columns] + table.counts, 0.0),)
            }
            length = self._length
            while True:
                logs = {
                    columns: np.clip(self.logs[columns] + length * direction[columns], -MAX_LOG, MAX_LOG)
                    for columns in self.logs
                }
                trial, new_loss, new_excess = self._evaluate(logs)
                if new_loss <= loss or length < MIN_LENGTH:
                    break
                length *= SHRINK
            gained = loss - new_loss
            if gained < 0:
                break
            self.logs, beliefs, loss, excess = logs, trial, new_loss, new_excess
            self._length = min(length * GROW, 1.0)
            if gained <= ENOUGH * loss:
                break
        self.beliefs = beliefs

    def pairs(self) -> dict[tuple[int, int], FloatArray]:
        """The joint marginals of all pairs i < j of columns.

        Columns of one clique have theirs in its belief. For others, messages P(x_i, separator) of all columns i on one
        side pass along each edge of the tree, and separators make the two sides independent.
        """
        found: dict[tuple[int, int], FloatArray] = {}
        for number, clique in enumerate(self.tree.cliques):
            for pair in combinations(clique, 2):
                if pair not in found:
                    found[pair] = self._marginal_of(number, pair)
        messages: dict[tuple[int, int], _Message] = {}
        for source, sink in self._schedule():
            message = self._message(source, sink, messages)
            messages[source, sink] = message
            separator, clique = self._shared[source, sink], self.tree.cliques[sink]
            for j in clique:
                if j in separator or not len(message.columns):
                    continue
                joint = message.rows @ self._conditional(sink, separator, (j,))
                for i, begin, end in message.columns:
                    if i < j:
                        found[i, j] = joint[begin:end]
        return found

    def _schedule(self) -> list[tuple[int, int]]:
        """All directed edges of the tree, each after those that it needs."""
        links = [(number, self._link(number)) for number in range(1, len(self.tree.cliques))]
        return [*reversed(links), *((parent, number) for number, parent in links)]

    def _message(self, source: int, sink: int, messages: Mapping[tuple[int, int], _Message]) -> _Message:
        """P(x_i, separator) for every column i on the source's side that the sink does not have."""
        separator = self._shared[source, sink]
        size = math.prod(self.sizes[column] for column in separator)
        parts, columns, begin = [], [], 0
        for i in self.tree.cliques[source]:
            if i not in separator:
                together = self.marginal_in(source, (i, *separator))
                parts.append(together.reshape(self.sizes[i], size))
                columns.append((i, begin, begin + self.sizes[i]))
                begin += self.sizes[i]
        for other in self._next[source]:
            if other != sink:
                message = messages[other, source]
                parts.append(self._passed_on(message.rows, source, self._shared[other, source], separator))
                columns += [(i, begin + first, begin + last) for i, first, last in message.columns]
                begin += len(message.rows)
        return _Message(np.concatenate(parts) if parts else np.zeros((0, size)), columns)

    def _passed_on(self, rows: FloatArray, number: int, before: Columns, after: Columns) -> FloatArray:
        """From P(x_i, one separator) to P(x_i, another separator of the same clique)."""
        both = tuple(column for column in before if column in after)
        left = tuple(column for column in before if column not in after)
        new = tuple(column for column in after if column not in before)
        sizes = [math.prod(self.sizes[column] for column in part) for part in (both, left, new)]
        table = self._conditional(number, (*both, *left), new).reshape(sizes)
        places = [1 + before.index(column) for column in (*both, *left)]
        cube = rows.reshape(-1, *(self.sizes[column] for column in before)).transpose([0, *places])
        moved = np.matmul(cube.reshape(len(rows), sizes[0], sizes[1]).transpose(1, 0, 2), table)
        cube = moved.transpose(1, 0, 2).reshape(-1, *(self.sizes[column] for column in (*both, *new)))
        order = [1 + (*both, *new).index(column) for column in after]
        after_rows: FloatArray = cube.transpose([0, *order]).reshape(len(rows), -1)
        return after_rows

    def _conditional(self, number: int, given: Columns, of: Columns) -> FloatArray:
        """P(of | given) inside a clique, as a matrix."""
        size = math.prod(self.sizes[column] for column in given)
        joint = self.marginal_in(number, (*given, *of)).reshape(size, -1)
        totals = joint.sum(axis=1, keepdims=True)
        conditional: FloatArray = np.divide(joint, totals, out=np.zeros_like(joint), where=totals > 0)
        return conditional

    def marginal_in(self, number: int, columns: Columns) -> FloatArray:
        """The marginal of a clique's columns, with axes in this order."""
        marginal = self._marginal_of(number, columns)
        there = [column for column in self.tree.cliques[number] if column in columns]
        ordered: FloatArray = marginal.transpose([there.index(column) for column in columns])
        return ordered

    def _link(self, number: int) -> int:
        """The clique that this one is linked to; trees of several components are linked by empty separators."""
        parent = self.tree.parents[number]
        return 0 if parent is None else parent

    def _rebuild(self) -> None:
        self.tree: JunctionTree = junction_tree(self.sizes, self.edges)
        self._shared: dict[tuple[int, int], Columns] = {}
        self._next: list[list[int]] = [[] for _ in self.tree.cliques]
        for number in range(1, len(self.tree.cliques)):
            link, shared = self._link(number), self.tree.separator(number)
            self._shared[number, link] = self._shared[link, number] = shared
            self._next[number].append(link)
            self._next[link].append(number)
        self._home = {columns: self._find(columns) for columns in self.logs}
        self.beliefs = self._propagate(self.logs)

    def _find(self, columns: Columns) -> int:
        """The smallest clique that contains these columns."""
        return min(
            (number for number, clique in enumerate(self.tree.cliques) if set(columns) <= set(clique)),
            key=lambda number: math.prod(self.sizes[column] for column in self.tree.cliques[number]),
        )

    def _marginal_of(self, number: int, columns: Columns, beliefs: list[FloatArray] | None = None) -> FloatArray:
        belief = (self.beliefs if beliefs is None else beliefs)[number]
        marginal: FloatArray = belief.sum(axis=self._other_axes(number, columns))
        return marginal

    def _evaluate(
        self, logs: Mapping[Columns, FloatArray]
    ) -> tuple[list[FloatArray], float, dict[Columns, FloatArray]]:
        """Beliefs, loss, and how much the marginals exceed the measured counts."""
        beliefs = self._propagate(logs)
        loss, excess = 0.0, {}
        for columns, table in self.measured.items():
            excess[columns] = self._marginal_of(self._home[columns], columns, beliefs) - table.counts
            loss += 0.5 * float(np.vdot(excess[columns], excess[columns] / table.variance))
        return beliefs, loss, excess

    def _propagate(self, logs: Mapping[Columns, FloatArray]) -> list[FloatArray]:
        """Belief propagation: messages to the roots, then back.

        Tables may contradict each other by more than a double's exponent, so products are sums of logarithms.
        """
        tree = self.tree
        beliefs = [np.zeros([self.sizes[column] for column in clique]) for clique in tree.cliques]
        for columns, table in logs.items():
            number = self._home[columns]
            beliefs[number] += self._expanded(table, columns, number)
        up: dict[int, FloatArray] = {}
        for number in range(len(beliefs) - 1, 0, -1):
            parent = tree.parents[number]
            if parent is not None:
                separator = self._shared[number, parent]
                up[number] = _log_sum_exp(beliefs[number], self._other_axes(number, separator))
                beliefs[parent] += self._expanded(up[number], separator, parent)
        for number in range(len(beliefs)):
            parent = tree.parents[number]
            if parent is not None:
                separator = self._shared[number, parent]
                with np.errstate(divide="ignore"):  # the logarithm of a marginal that is zero
                    wanted = np.log(self._marginal_of(parent, separator, beliefs))
                beliefs[number] += self._expanded(wanted - up[number], separator, number)
            belief = np.exp(beliefs[number] - beliefs[number].max())
            beliefs[number] = belief * (self.total / belief.sum())
        return beliefs

    def _other_axes(self, number: int, columns: Columns) -> tuple[int, ...]:
        return tuple(axis for axis, column in enumerate(self.tree.cliques[number]) if column not in columns)

    def _expanded(self, table: FloatArray, columns: Columns, number: int) -> FloatArray:
        """A table over some columns of a clique, in the clique's shape for broadcasting."""
        return table.reshape([self.sizes[column] if column in columns else 1 for column in self.tree.cliques[number]])


def _log_sum_exp(table: FloatArray, axes: tuple[int, ...]) -> FloatArray:
    """The logarithm of Σ e^table over some axes, exact where single entries of e^table underflow."""
    largest = table.max(axis=axes, keepdims=True)
    total: FloatArray = np.log(np.exp(table - largest).sum(axis=axes)) + largest.squeeze(axes)
    return total
