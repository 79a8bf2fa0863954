"""The maximum-entropy distribution that fits noisy tables: a Markov network on a junction tree (Private-PGM).

Its probability is a product of one positive table for each measured set of columns. The tables are fitted to all
measurements, each weighted by its noise (McKenna, Sheldon, Miklau 2019); marginals are computed by belief propagation
on a junction tree. Everything here is post-processing of numbers that are already private.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise

import numpy as np

from dipriv._base.arrays import FloatArray, Mask
from dipriv.references._learning.belief_propagation import Layout
from dipriv.references._learning.junction_tree import JunctionTree, chain_rule, junction_tree

Columns = tuple[int, ...]
"""One column or two, in ascending order."""
MAX_LOG = 60.0
"""Logarithms of a table's entries stay within this distance of zero: e^-60 of N rows is no row."""
NEVER = -1e4
"""The logarithm of a probability that is zero beside any other."""
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

    def combined(self, other: NoisyTable) -> NoisyTable:
        """Both measurements as one: inverse-variance weighting."""
        variance = 1.0 / (1.0 / self.variance + 1.0 / other.variance)
        counts = variance * (self.counts / self.variance + other.counts / other.variance)
        return NoisyTable(self.columns, counts, variance)


class MarkovModel:
    """Beliefs (marginals of cliques, which add up to `total`) of the product of all tables e^logs[columns]."""

    def __init__(self, sizes: Sequence[int], total: float, leading: frozenset[int] = frozenset()) -> None:
        self.sizes, self.total = tuple(sizes), total
        self.leading = leading
        """Columns that come first in the chain rule."""
        self.logs: dict[Columns, FloatArray] = {}
        self.measured: dict[Columns, NoisyTable] = {}
        self.impossible: dict[tuple[int, int], Mask] = {}
        self.loss = math.nan
        """What `fit` lowered it to."""
        self._length = 0.5
        self._conditionals: dict[tuple[int, Columns, Columns], FloatArray] = {}
        self._rebuild()

    @property
    def edges(self) -> list[tuple[int, int]]:
        return list(dict.fromkeys([*self.pairs_measured, *self.impossible]))

    @property
    def pairs_measured(self) -> list[tuple[int, int]]:
        return [(columns[0], columns[1]) for columns in self.logs if len(columns) == 2]

    def exclude(self, pair: tuple[int, int], cells: Mask) -> None:
        """Cells of a pair, measured or not, that have no probability."""
        self.impossible[pair] = cells
        self._rebuild()

    def add(self, *tables: NoisyTable) -> None:
        """More measurements; `fit` takes them into account."""
        for table in tables:
            known = self.measured.get(table.columns)
            self.measured[table.columns] = table if known is None else known.combined(table)
        if new := {table.columns: np.zeros(table.counts.shape) for table in tables if table.columns not in self.logs}:
            self.logs |= new
            self._rebuild()

    def marginal(self, columns: Columns) -> FloatArray:
        """The marginal of columns that share a clique."""
        return self._marginal_of(self._home[columns] if columns in self._home else self._find(columns), columns)

    def fit(self, rounds: int) -> None:
        """Lower the loss ½ Σ (marginal - counts)² / variance by damped Newton steps on the logarithms of the tables.

        A step ignores that tables overlap, so its length adapts: it is halved until the loss falls.
        """
        logs, tables = _flat(self.logs.values()), [self.measured[columns] for columns in self.logs]
        counts, variance = _flat(table.counts for table in tables), _flat(table.variance for table in tables)
        damping = DAMPING * np.sqrt(variance)

        def evaluate(logs: FloatArray) -> tuple[FloatArray, float, FloatArray]:
            """Beliefs, the loss, and how much the marginals exceed the measured counts."""
            beliefs = self._layout.beliefs(logs, self.total)
            excess = self._layout.marginals(beliefs) - counts
            return beliefs, 0.5 * float(np.vdot(excess, excess / variance)), excess

        beliefs, self.loss, excess = evaluate(logs)
        for _ in range(rounds):
            direction = -excess / (np.maximum(excess + counts, 0.0) + damping)
            length = self._length
            while True:
                moved = np.clip(logs + length * direction, -MAX_LOG, MAX_LOG)
                trial, loss, new_excess = evaluate(moved)
                if loss <= self.loss or length < MIN_LENGTH:
                    break
                length *= SHRINK
            gained = self.loss - loss
            if gained < 0:
                break
            logs, beliefs, self.loss, excess = moved, trial, loss, new_excess
            self._length = min(length * GROW, 1.0)
            if gained <= ENOUGH * loss:
                break
        places = zip(self.logs.items(), pairwise(self._layout.tables.tolist()), strict=True)
        self.logs = {columns: logs[begin:end].reshape(table.shape) for (columns, table), (begin, end) in places}
        self.beliefs = self._layout.arrays(beliefs)

    def pairs(self) -> dict[tuple[int, int], FloatArray]:
        """The joint marginals of all pairs i < j of columns.

        Columns of one clique have theirs in its belief. For others, messages P(x_i, separator) of all columns i on one
        side pass along each edge of the tree, and separators make the two sides independent.
        """
        self._conditionals.clear()
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
        """P(of | given) inside a clique, as a matrix; many messages of `pairs` need the same ones."""
        if (number, given, of) in self._conditionals:
            return self._conditionals[number, given, of]
        size = math.prod(self.sizes[column] for column in given)
        joint = self.marginal_in(number, (*given, *of)).reshape(size, -1)
        totals = joint.sum(axis=1, keepdims=True)
        conditional: FloatArray = np.divide(joint, totals, out=np.zeros_like(joint), where=totals > 0)
        self._conditionals[number, given, of] = conditional
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
        self.tree: JunctionTree = junction_tree(self.sizes, self.edges, self.leading)
        self._shared: dict[tuple[int, int], Columns] = {}
        self._next: list[list[int]] = [[] for _ in self.tree.cliques]
        for number in range(1, len(self.tree.cliques)):
            link, shared = self._link(number), self.tree.separator(number)
            self._shared[number, link] = self._shared[link, number] = shared
            self._next[number].append(link)
            self._next[link].append(number)
        self._home = {columns: self._find(columns) for columns in self.logs}
        self._layout = Layout.of(self.tree, self.sizes, list(self.logs), list(self._home.values()), self._never())
        self.beliefs = self._layout.arrays(self._layout.beliefs(_flat(self.logs.values()), self.total))

    def _never(self) -> FloatArray:
        """What impossible cells add to the logarithms of cliques: of each pair, in one clique."""
        found = [np.zeros([self.sizes[column] for column in clique]) for clique in self.tree.cliques]
        for pair, cells in self.impossible.items():
            number = self._find(pair)
            shape = [self.sizes[column] if column in pair else 1 for column in self.tree.cliques[number]]
            found[number] += np.where(cells, NEVER, 0.0).reshape(shape)
        return _flat(found)

    def chain_rule(self) -> Iterator[tuple[int, int, Columns]]:
        """Each column, with a clique that has it together with the earlier columns that it depends on, and these."""
        if self.leading:
            for column, given in chain_rule(self.sizes, self.edges, self.leading):
                yield column, self._find((*given, column)), given
            return
        placed: set[int] = set()
        for number, clique in enumerate(self.tree.cliques):
            given = tuple(column for column in clique if column in placed)
            for column in (column for column in clique if column not in given):
                yield column, number, given
                placed.add(column)
                given = (*given, column)

    def _find(self, columns: Columns) -> int:
        """The smallest clique that contains these columns."""
        return min(
            (number for number, clique in enumerate(self.tree.cliques) if set(columns) <= set(clique)),
            key=lambda number: math.prod(self.sizes[column] for column in self.tree.cliques[number]),
        )

    def _marginal_of(self, number: int, columns: Columns) -> FloatArray:
        marginal: FloatArray = self.beliefs[number].sum(axis=self._other_axes(number, columns))
        return marginal

    def _other_axes(self, number: int, columns: Columns) -> tuple[int, ...]:
        return tuple(axis for axis, column in enumerate(self.tree.cliques[number]) if column not in columns)


def _flat(arrays: Iterable[FloatArray]) -> FloatArray:
    return np.concatenate([np.zeros(0), *(array.ravel() for array in arrays)])
