"""Belief propagation on a junction tree, laid out in flat arrays for compiled loops.

The cells of all cliques stand one after another, and so do those of all tables and of all separators. Where a cell of a
clique is in a table or in a separator is computed once for a tree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray
from dipriv._base.jit import jit
from dipriv.references._learning.junction_tree import JunctionTree

Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Layout:
    """Where the cells of cliques, tables and separators are. Roots have separators of no cells."""

    shapes: tuple[tuple[int, ...], ...]
    cliques: Places = field(repr=False)
    """Where each clique begins, and where the last one ends."""
    tables: Places = field(repr=False)
    separators: Places = field(repr=False)
    parents: Places = field(repr=False)
    """The parent of each clique, -1 for roots."""
    homes: Places = field(repr=False)
    """The clique that each table is multiplied into."""
    in_tables: Places = field(repr=False)
    """For each table, the place in it of each cell of its home."""
    in_separators: Places = field(repr=False)
    """For each clique, the place in its separator of each of its cells, then of each cell of its parent."""
    fixed: FloatArray = field(repr=False)
    """What the logarithm of each cell of each clique has beside its tables."""

    @classmethod
    def of(
        cls,
        tree: JunctionTree,
        sizes: Sequence[int],
        tables: Sequence[tuple[int, ...]],
        homes: Sequence[int],
        fixed: FloatArray,
    ) -> Layout:
        def count(columns: tuple[int, ...]) -> int:
            return math.prod(sizes[column] for column in columns)

        def places(columns: tuple[int, ...], number: int, begin: int) -> Places:
            """Where the cells of a clique are in a table that begins here."""
            clique = tree.cliques[number]
            cells = np.arange(begin, begin + count(columns))
            inside = cells.reshape([sizes[column] if column in columns else 1 for column in clique])
            return np.add(inside, np.zeros([sizes[column] for column in clique], dtype=np.int64)).ravel()

        shared = [tree.separator(number) for number in range(len(tree.cliques))]
        of_tables = _begins([count(columns) for columns in tables])
        of_separators = _begins(
            [0 if parent is None else count(columns) for parent, columns in zip(tree.parents, shared, strict=True)]
        )
        inner = [
            places(columns, home, begin) for columns, home, begin in zip(tables, homes, of_tables[:-1], strict=True)
        ]
        links = [
            places(shared[number], end, of_separators[number])
            for number, parent in enumerate(tree.parents)
            if parent is not None
            for end in (number, parent)
        ]
        return cls(
            tuple(tuple(sizes[column] for column in clique) for clique in tree.cliques),
            _begins([count(clique) for clique in tree.cliques]),
            of_tables,
            of_separators,
            np.array([-1 if parent is None else parent for parent in tree.parents], dtype=np.int64),
            np.array(homes, dtype=np.int64),
            np.concatenate([np.zeros(0, np.int64), *inner]),
            np.concatenate([np.zeros(0, np.int64), *links]),
            fixed,
        )

    def beliefs(self, logs: FloatArray, total: float) -> FloatArray:
        """The marginals of all cliques of the product of all tables e^logs; each clique adds up to `total`."""
        found = self.fixed.copy()
        _add_tables(logs, self.cliques, self.homes, self.in_tables, found)
        links = self.cliques, self.separators, self.parents, self.in_separators
        sums, marginals = np.empty(self.separators[-1]), np.zeros(self.separators[-1])
        _collect(found, total, *links, np.empty(self.separators[-1]), sums)
        _distribute(found, *links, sums, marginals)
        return found

    def marginals(self, beliefs: FloatArray) -> FloatArray:
        """The marginals of all tables."""
        found = np.zeros(self.tables[-1])
        _sum_up(beliefs, self.cliques, self.homes, self.in_tables, found)
        return found

    def arrays(self, beliefs: FloatArray) -> list[FloatArray]:
        """The beliefs of each clique, with an axis for each column."""
        parts = np.split(beliefs, self.cliques[1:-1])
        return [part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True)]


def _begins(counts: Sequence[int]) -> Places:
    return np.concatenate([[0], np.cumsum(np.array(counts, dtype=np.int64))]).astype(np.int64)


@jit
def _add_tables(logs: FloatArray, cliques: Places, homes: Places, in_tables: Places, beliefs: FloatArray) -> None:
    """Every table added to its home."""
    place = 0
    for home in homes:
        for cell in range(cliques[home], cliques[home + 1]):
            beliefs[cell] += logs[in_tables[place]]
            place += 1


@jit
def _sum_up(beliefs: FloatArray, cliques: Places, homes: Places, in_tables: Places, marginals: FloatArray) -> None:
    """The marginals of tables from those of their homes."""
    place = 0
    for home in homes:
        for cell in range(cliques[home], cliques[home + 1]):
            marginals[in_tables[place]] += beliefs[cell]
            place += 1


@jit
def _collect(
    beliefs: FloatArray,
    total: float,
    cliques: Places,
    separators: Places,
    parents: Places,
    in_separators: Places,
    largest: FloatArray,
    sums: FloatArray,
) -> None:
    """Messages to the roots: logarithms become the marginals of roots, and Σ = `sums` a separator for other cliques.

    Tables may contradict each other by more than a double's exponent, so messages are logarithms.
    """
    place = len(in_separators)
    for number in range(len(parents) - 1, -1, -1):
        begin, end, parent = cliques[number], cliques[number + 1], parents[number]
        if parent < 0:
            top = beliefs[begin:end].max()
            for cell in range(begin, end):
                beliefs[cell] = np.exp(beliefs[cell] - top)
            beliefs[begin:end] *= total / beliefs[begin:end].sum()
            continue
        above = place - (cliques[parent + 1] - cliques[parent])
        place = above - (end - begin)
        largest[separators[number] : separators[number + 1]] = -np.inf
        sums[separators[number] : separators[number + 1]] = 0.0
        for cell in range(begin, end):
            shared = in_separators[place + cell - begin]
            largest[shared] = max(largest[shared], beliefs[cell])
        for cell in range(begin, end):
            shared = in_separators[place + cell - begin]
            beliefs[cell] = np.exp(beliefs[cell] - largest[shared])
            sums[shared] += beliefs[cell]
        message = largest[separators[number] : separators[number + 1]]
        message += np.log(sums[separators[number] : separators[number + 1]])
        for cell in range(cliques[parent], cliques[parent + 1]):
            beliefs[cell] += largest[in_separators[above + cell - cliques[parent]]]


@jit
def _distribute(
    beliefs: FloatArray,
    cliques: Places,
    separators: Places,
    parents: Places,
    in_separators: Places,
    sums: FloatArray,
    marginals: FloatArray,
) -> None:
    """Messages from the roots: a clique given its separator, times the marginal of the separator in the parent."""
    place = 0
    for number in range(len(parents)):
        begin, end, parent = cliques[number], cliques[number + 1], parents[number]
        if parent < 0:
            continue
        above = place + end - begin
        for cell in range(cliques[parent], cliques[parent + 1]):
            marginals[in_separators[above + cell - cliques[parent]]] += beliefs[cell]
        marginals[separators[number] : separators[number + 1]] /= sums[separators[number] : separators[number + 1]]
        for cell in range(begin, end):
            beliefs[cell] *= marginals[in_separators[place + cell - begin]]
        place = above + cliques[parent + 1] - cliques[parent]
