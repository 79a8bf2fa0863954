"""Junction trees of random graphs: triangulated, maximal cliques, running intersection."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dipriv.references._learning.junction_tree import JunctionTree, Pair, junction_tree, largest_clique


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[int], list[Pair]]:
    """Sizes of up to nine columns, some of them with a single state, and some edges."""
    sizes = draw(st.lists(st.integers(1, 40), min_size=1, max_size=9))
    pairs = list(combinations(range(len(sizes)), 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return sizes, edges


def has_running_intersection(tree: JunctionTree) -> bool:
    """Whether what a clique shares with any earlier one is in its parent as well; then trees are connected."""
    for number, clique in enumerate(tree.cliques):
        parent = tree.parents[number]
        before = {column for earlier in tree.cliques[:number] for column in earlier}
        above = set() if parent is None else set(tree.cliques[parent])
        if not set(clique) & before <= above:
            return False
    return True


def is_triangulated(size: int, cliques: tuple[tuple[int, ...], ...]) -> bool:
    """Whether the graph in which the columns of each clique are all linked is chordal: columns whose neighbours are all
    linked can be taken away until none is left.
    """
    links = {frozenset(pair) for clique in cliques for pair in combinations(clique, 2)}
    left = set(range(size))
    while left:
        around = {one: {other for other in left if frozenset((one, other)) in links} for one in left}
        simple = [one for one in left if all(frozenset(pair) in links for pair in combinations(around[one], 2))]
        if not simple:
            return False
        left.remove(simple[0])
    return True


@settings(max_examples=300)
@given(graphs())
def test_cliques_are_maximal_and_cover_columns_and_edges(graph: tuple[list[int], list[Pair]]) -> None:
    sizes, edges = graph
    tree = junction_tree(sizes, edges)
    cliques = [set(clique) for clique in tree.cliques]
    assert set().union(*cliques) == set(range(len(sizes)))
    assert all(any(set(edge) <= clique for clique in cliques) for edge in edges)
    assert not any(one <= other for one, other in combinations(cliques, 2))
    assert not any(other <= one for one, other in combinations(cliques, 2))
    assert all(tuple(sorted(clique)) == clique for clique in tree.cliques)


@settings(max_examples=300)
@given(graphs())
def test_the_tree_has_the_running_intersection_property(graph: tuple[list[int], list[Pair]]) -> None:
    sizes, edges = graph
    tree = junction_tree(sizes, edges)
    assert has_running_intersection(tree)
    assert is_triangulated(len(sizes), tree.cliques)
    assert tree.parents[0] is None
    for number, parent in enumerate(tree.parents):
        assert parent is None or parent < number
        shared = set() if parent is None else set(tree.cliques[number]) & set(tree.cliques[parent])
        assert set(tree.separator(number)) == shared
        assert parent is None or shared


@settings(max_examples=200)
@given(graphs())
def test_no_column_is_linked_across_components(graph: tuple[list[int], list[Pair]]) -> None:
    """Triangulation adds edges inside connected components only."""
    sizes, edges = graph
    component = list(range(len(sizes)))
    for _ in sizes:
        for i, j in edges:
            component[i] = component[j] = min(component[i], component[j])
    for clique in junction_tree(sizes, edges).cliques:
        assert len({component[column] for column in clique}) == 1


@settings(max_examples=300)
@given(graphs())
def test_the_largest_clique_is_that_of_the_tree(graph: tuple[list[int], list[Pair]]) -> None:
    sizes, edges = graph
    cells = [math.prod(sizes[column] for column in clique) for clique in junction_tree(sizes, edges).cliques]
    assert largest_clique(sizes, edges) == max(cells)


@pytest.mark.parametrize(("length", "cells"), [(3, 8), (4, 8), (7, 8)])
def test_cycles_are_cut_into_triangles(length: int, cells: int) -> None:
    edges = [(i, i + 1) for i in range(length - 1)] + [(0, length - 1)]
    assert largest_clique([2] * length, edges) == cells
    assert len(junction_tree([2] * length, edges).cliques) == length - 2


def test_the_checks_find_what_is_wrong() -> None:
    """Controls: a cycle of four is not triangulated, and a chain in the wrong order has no running intersection."""
    assert not is_triangulated(4, ((0, 1), (1, 2), (2, 3), (0, 3)))
    assert not has_running_intersection(JunctionTree(((0, 1), (2, 3), (1, 2)), (None, 0, 0)))
    assert has_running_intersection(JunctionTree(((0, 1), (1, 2), (2, 3)), (None, 0, 1)))
