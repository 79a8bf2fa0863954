"""Junction trees: which cliques a Markov network has, and in which order messages pass between them.

A set of columns is a Python integer whose bit j stands for column j: intersections of hundreds of cliques are quick.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Pair = tuple[int, int]
Columns = frozenset[int]


@dataclass(frozen=True)
class JunctionTree:
    """Maximal cliques of a triangulated graph, parents first; the separator is what a clique shares with its parent."""

    cliques: tuple[tuple[int, ...], ...]
    parents: tuple[int | None, ...]

    def separator(self, number: int) -> tuple[int, ...]:
        parent = self.parents[number]
        shared = () if parent is None else self.cliques[parent]
        return tuple(column for column in self.cliques[number] if column in shared)


def junction_tree(sizes: Sequence[int], edges: Iterable[Pair], leading: Columns = frozenset()) -> JunctionTree:
    """The junction tree of a graph whose column j has `sizes[j]` states: a maximum spanning forest of its cliques."""
    sets = _maximal([clique for _, clique in _eliminate(sizes, edges, leading)])
    order, parents = [0], {0: -1}
    best = {number: (_shared(sets[number], sets[0]), 0) for number in range(1, len(sets))}
    while best:
        number = max(best, key=lambda candidate: (best[candidate][0], -candidate))
        shared, parent = best.pop(number)
        order.append(number)
        parents[number] = parent if shared else -1
        for other, (found, _) in best.items():
            if (common := _shared(sets[other], sets[number])) > found:
                best[other] = (common, number)
    place = {number: position for position, number in enumerate(order)}
    return JunctionTree(
        tuple(_columns(sets[number]) for number in order),
        tuple(place[parents[number]] if parents[number] >= 0 else None for number in order),
    )


def largest_clique(sizes: Sequence[int], edges: Iterable[Pair], leading: Columns = frozenset()) -> int:
    """The number of cells of the largest clique of the triangulated graph."""
    cliques = (clique for _, clique in _eliminate(sizes, edges, leading))
    return max(math.prod(sizes[column] for column in _columns(clique)) for clique in cliques)


def chain_rule(sizes: Sequence[int], edges: Iterable[Pair], leading: Columns) -> list[tuple[int, tuple[int, ...]]]:
    """Each column with those that it depends on, which come before it; the leading columns come before all others.

    The order is that of elimination, reversed: what a column depends on are its neighbours when it is eliminated, and
    together they are in one clique of the junction tree.
    """
    eliminated = _eliminate(sizes, edges, leading)
    return [(column, _columns(clique ^ 1 << column)) for column, clique in reversed(eliminated)]


def _eliminate(sizes: Sequence[int], edges: Iterable[Pair], leading: Columns) -> list[tuple[int, int]]:
    """Triangulation: columns are eliminated one by one, always the one whose clique has fewest cells; leading columns
    after all others. Each comes with its clique.
    """
    neighbours = [0] * len(sizes)
    for i, j in edges:
        neighbours[i] |= 1 << j
        neighbours[j] |= 1 << i
    logs = [math.log(size) for size in sizes]
    cells = {column: _log_cells(column, neighbours[column], logs) for column in range(len(sizes))}
    cliques = []
    while cells:
        column = min(cells, key=lambda candidate: (candidate in leading, cells[candidate], candidate))
        del cells[column]
        around = neighbours[column]
        cliques.append((column, around | 1 << column))
        for other in _columns(around):
            neighbours[other] = (neighbours[other] | around) & ~(1 << other | 1 << column)
            cells[other] = _log_cells(other, neighbours[other], logs)
    return cliques


def _maximal(sets: list[int]) -> list[int]:
    """Those that are no part of another one: in elimination order only an earlier clique can contain a later one."""
    kept: list[int] = []
    for one in sets:
        if not any(one & other == one for other in kept):
            kept.append(one)
    return kept


def _log_cells(column: int, around: int, logs: Sequence[float]) -> float:
    return logs[column] + sum(logs[other] for other in _columns(around))


def _shared(one: int, other: int) -> int:
    return (one & other).bit_count()


def _columns(of: int) -> tuple[int, ...]:
    found = []
    while of:
        lowest = of & -of
        found.append(lowest.bit_length() - 1)
        of ^= lowest
    return tuple(found)
