"""A network of columns that each depend on some earlier ones: conditional CDFs from tables over groups of states."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray
from dipriv._base.coordinates import EncodedColumn, UniformCoordinate
from dipriv._base.invariants import is_finite, is_nondecreasing, is_vector, require
from dipriv._base.jit import jit
from dipriv._base.registry import serializable
from dipriv._random.bits import Draws, source
from dipriv.references.protocol import PortableReference

Groups = NDArray[np.int64]

MAX_TYPICAL_ROWS, TYPICAL_CELLS = 16, 512
"""The number of rows by whose levels kernels are compared, and of cells, which wide tables have in fewer rows."""


class Guide(NamedTuple):
    """Where the search for a group, and for a state in its group, begins: [0, 1] is divided into equal cells."""

    groups: NDArray[np.int32]
    """(tables, cells): the first group that ends in the cell or above it."""
    states: NDArray[np.int32]
    """The same for states; those of a group are from `starts` on, in `cells` of them."""
    starts: Groups
    cells: Groups


@serializable()
@dataclass(frozen=True, eq=False)
class Node:
    """The distribution of one column given its parents, the numbers of earlier columns.

    Consecutive states make up a group. `tables[c]` has the cumulative probabilities of the groups where the parents'
    groups have the joint number c; inside a group, `inner` cumulates the shares of its states, which do not depend on
    the parents.
    """

    parents: tuple[int, ...]
    group_of: Groups = field(repr=False)
    inner: FloatArray = field(repr=False)
    """inner[s]: the share of its group that lies below state s; the group's last state ends at 1."""
    tables: FloatArray = field(repr=False)

    def __post_init__(self) -> None:
        groups, inner, tables = self.group_of, self.inner, self.tables
        require(is_vector(groups) and inner.shape == groups.shape, self, "each state has a group and a share")
        require(np.all(np.isin(np.diff(groups), (0, 1))) and groups[0] == 0, self, "groups are numbered in order")
        shape = tables.ndim == 2 and len(tables) > 0 and tables.shape[1] == groups[-1] + 2
        require(shape, self, "tables have an entry for each group")
        require(is_finite(inner, tables), self, "all shares and probabilities are finite")
        require(np.all((inner >= 0) & (inner <= 1)), self, "shares are inside [0, 1]")
        ends = np.all(tables[:, 0] == 0) and np.all(tables[:, -1] == 1)
        require(ends and is_nondecreasing(tables, axis=1), self, "tables have cumulative probabilities")

    @classmethod
    def of(cls, parents: tuple[int, ...], group_of: Groups, masses: FloatArray, tables: FloatArray) -> Node:
        """From the states' groups and masses, and a table of non-negative weights for each joint group of parents."""
        first = np.flatnonzero(np.diff(group_of, prepend=-1))
        sizes = np.diff(np.append(first, len(group_of)))
        totals = np.add.reduceat(masses, first)
        even = 1.0 / np.repeat(sizes, sizes)
        whole = np.repeat(totals, sizes)
        shares = np.where(whole > 0, masses / np.where(whole > 0, whole, 1.0), even)
        below = np.append(0.0, np.cumsum(shares)[:-1])  # a state without mass starts exactly where the next one does
        inner = below - np.repeat(below[first], sizes)
        last = np.maximum.reduceat(np.where(shares > 0, np.arange(len(shares)), -1), first)
        inner = np.where(np.arange(len(shares)) > np.repeat(last, sizes), 1.0, inner)
        cumulative = np.cumsum(tables, axis=1)
        cumulative = cumulative / cumulative[:, -1:]
        padded = np.concatenate([np.zeros((len(tables), 1)), cumulative], axis=1)
        padded[:, -1] = 1.0
        return cls(parents, group_of, np.clip(inner, 0.0, 1.0), padded)

    @property
    def groups(self) -> int:
        return int(self.tables.shape[1]) - 1

    @cached_property
    def ends(self) -> FloatArray:
        """Where each state's share of its group ends."""
        last = np.append(self.group_of[1:] != self.group_of[:-1], True)
        return np.where(last, 1.0, np.append(self.inner[1:], 1.0))

    def probabilities(self, joint: Groups) -> FloatArray:
        """(rows, states): the probabilities of the states where the parents have these joint numbers."""
        return np.asarray(np.diff(self.tables[joint], axis=1)[:, self.group_of] * (self.ends - self.inner))

    @cached_property
    def first(self) -> Groups:
        """The first state of each group."""
        return np.flatnonzero(np.diff(self.group_of, prepend=-1))

    @cached_property
    def guide(self) -> Guide:
        """Built once: finding a quantile takes a step or two then."""
        cells = _power_of_two(4 * self.groups)
        groups = np.empty((len(self.tables), cells), dtype=np.int32)
        for number, table in enumerate(self.tables):
            groups[number] = np.searchsorted(table[1:-1], np.arange(cells) / cells)
        bounds = np.append(self.first, len(self.inner))
        sizes = np.array([_power_of_two(4 * int(size)) for size in np.diff(bounds)], dtype=np.int64)
        states = [
            begin + np.searchsorted(self.ends[begin : stop - 1], np.arange(size) / size)
            for begin, stop, size in zip(bounds[:-1], bounds[1:], sizes, strict=True)
        ]
        starts = np.cumsum(sizes) - sizes
        return Guide(groups, np.concatenate(states).astype(np.int32), starts, sizes)


def _power_of_two(least: int) -> int:
    """Cells of a power of two have exact ends, so that no number is below the cell that it is put into."""
    return 1 << (least - 1).bit_length()


@serializable(PortableReference)
@dataclass(frozen=True, eq=False)
class Network:
    """Columns in an order in which parents come first. V is a state's number plus a place in (0, 1] inside it."""

    nodes: tuple[Node, ...]

    def __post_init__(self) -> None:
        require(self.nodes, self, "there are columns")
        for number, node in enumerate(self.nodes):
            require(all(0 <= parent < number for parent in node.parents), self, "parents come first")
            joint = math.prod(self.nodes[parent].groups for parent in node.parents)
            require(joint == len(node.tables), self, "each joint group of parents has a table")

    def accepts(self, states: Sequence[int | None]) -> bool:
        return list(states) == [len(node.group_of) for node in self.nodes]

    def to_uniform(self, v: FloatArray) -> FloatArray:
        u = np.empty_like(v)
        groups = np.empty((len(self.nodes), len(v)), dtype=np.int64)
        for column, node in enumerate(self.nodes):
            joint = self._joint(node, groups)
            to_uniforms(
                v[:, column], joint, node.group_of, node.inner, node.ends, node.tables, u[:, column], groups[column]
            )
        return u

    def from_uniform(self, u: FloatArray) -> FloatArray:
        v = np.empty_like(u)
        groups = np.empty((len(self.nodes), len(u)), dtype=np.int64)
        for column, node in enumerate(self.nodes):
            joint = self._joint(node, groups)
            from_uniforms(
                u[:, column], joint, node.first, node.inner, node.ends, node.tables, *node.guide,
                v[:, column], groups[column],
            )  # fmt: skip
        return v

    def coordinates(self, columns: Sequence[EncodedColumn]) -> list[UniformCoordinate]:
        """Numbers, with the levels that they have in some rows: these are drawn here, from the network."""
        bits = source(0)  # nothing private is drawn: the same rows each time
        rows = max(2, min(MAX_TYPICAL_ROWS, TYPICAL_CELLS // len(columns)))
        u = np.stack([Draws(bits, 0, rows, number).uniforms() for number in range(len(columns))], axis=1)
        groups = np.ceil(self.from_uniform(u)).astype(np.int64).T - 1  # states
        groups = np.stack([node.group_of[states] for node, states in zip(self.nodes, groups, strict=True)])
        return [
            column.with_probabilities_in_rows(node.probabilities(self._joint(node, groups)))
            for column, node in zip(columns, self.nodes, strict=True)
        ]

    def _joint(self, node: Node, groups: Groups) -> Groups:
        """The joint number of the parents' groups in each row."""
        joint = np.zeros(groups.shape[1], dtype=np.int64)
        for parent in node.parents:
            joint = joint * self.nodes[parent].groups + groups[parent]
        return joint


@jit
def to_uniforms(
    v: FloatArray,
    joint: Groups,
    group_of: Groups,
    inner: FloatArray,
    ends: FloatArray,
    tables: FloatArray,
    u: FloatArray,
    groups: Groups,
) -> None:
    """The conditional CDF at each V, and the group of its state."""
    top = len(group_of)
    for i in range(len(v)):
        clipped = min(max(v[i], 0.0), np.float64(top)) if v[i] >= 0.0 else 0.0  # not-a-number counts as 0
        state = max(0, int(np.ceil(clipped)) - 1)
        group = group_of[state]
        place = inner[state] + (clipped - state) * (ends[state] - inner[state])
        low, high = tables[joint[i], group], tables[joint[i], group + 1]
        u[i] = min(max(low + place * (high - low), 0.0), 1.0)
        groups[i] = group


@jit
def from_uniforms(
    u: FloatArray,
    joint: Groups,
    first: Groups,
    inner: FloatArray,
    ends: FloatArray,
    tables: FloatArray,
    guide: NDArray[np.int32],
    state_guide: NDArray[np.int32],
    guide_starts: Groups,
    guide_cells: Groups,
    v: FloatArray,
    groups: Groups,
) -> None:
    """The conditional quantile at each u: V inside a state of positive probability, and the group of the state."""
    count, cells = len(first), guide.shape[1]
    for i in range(len(u)):
        c = joint[i]
        x = min(u[i], 1.0) if u[i] >= 0.0 else 0.0  # not-a-number counts as 0
        group = np.int64(guide[c, min(int(x * cells), cells - 1)])
        while group < count - 1 and tables[c, group + 1] < x:
            group += 1
        low, high = tables[c, group], tables[c, group + 1]
        share = min(max((x - low) / (high - low), 2.0**-53), 1.0) if high > low else 1.0
        last = (first[group + 1] if group + 1 < count else len(inner)) - 1
        parts = guide_cells[group]
        state = np.int64(state_guide[guide_starts[group] + min(int(share * parts), parts - 1)])
        while state < last and ends[state] < share:
            state += 1
        width = ends[state] - inner[state]
        place = (share - inner[state]) / width if width > 0.0 else 1.0
        v[i] = state + min(max(place, 2.0**-32), 1.0)
        groups[i] = group
