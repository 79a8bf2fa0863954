"""The continualized empirical distribution as boxes: one box per reference row, each with equal mass.

Box q is the product over columns l of (lo[q, l], hi[q, l]], where hi is the row's own value and lo the
next smaller reference value of that column: "the cube on the immediate bottom-left of the observation"
(paper S1.6). Boxes are kept in the order of their first column, group by group; the paper's empirical
reference is the case of a single group, appendix S4 that of one group per individual.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray
from dipriv._base.coordinates import EncodedColumn, UniformCoordinate
from dipriv._base.invariants import is_finite, is_increasing, is_vector, require
from dipriv._base.jit import jit
from dipriv._base.registry import serializable
from dipriv.references._models.bucket_index import BucketIndex, find_between
from dipriv.references.protocol import PortableReference

Edge = Literal["unit-free", "paper"]
Groups = NDArray[np.intp]


@serializable(PortableReference, former_name="Cubes", former_fields=("guide",), max_length=None)
@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes sorted by group and first column; group g owns boxes starts[g]:starts[g+1].

    In the first column box q reaches from top[q-1], or edges[g] for a group's lowest box, to top[q]; in column l >= 2
    from rest[q, l-2, 0] to rest[q, l-2, 1].
    """

    top: FloatArray = field(repr=False)
    edges: FloatArray = field(repr=False)
    rest: FloatArray = field(repr=False)
    starts: NDArray[np.int64] = field(repr=False)
    guide: BucketIndex = field(init=False, repr=False)
    """Finds a place among the tops of the only group; with several groups each is searched by bisection."""

    def __post_init__(self) -> None:
        top, edges, rest, starts = self.top, self.edges, self.rest, self.starts
        require(is_vector(top) and is_vector(edges), self, "there are boxes and groups")
        require(rest.ndim == 3 and rest.shape[::2] == (len(top), 2), self, "each box has two ends in each column")
        ends = starts.shape == (len(edges) + 1,) and starts[0] == 0 and starts[-1] == len(top)
        require(ends and is_increasing(starts), self, "each box belongs to one group")
        object.__setattr__(self, "guide", BucketIndex.over(top if len(edges) == 1 else top[:1]))

    def check_invariants(self) -> None:
        """Of boxes from a file; rounding may put boxes of subnormal numbers out of order, which does no harm."""
        top, edges, rest = self.top, self.edges, self.rest
        require(is_finite(top, edges, rest), self, "all ends are finite")
        falls = np.flatnonzero(top[1:] < top[:-1]) + 1
        in_order = np.all(np.isin(falls, self.starts)) and np.all(edges <= top[self.starts[:-1]])
        require(in_order, self, "boxes of a group are in order")
        require(np.all(rest[:, :, 0] <= rest[:, :, 1]), self, "no box ends below its start")

    def accepts(self, states: Sequence[int | None]) -> bool:
        return len(self.edges) == 1 and len(states) == self.rest.shape[1] + 1

    @classmethod
    def build(cls, v: FloatArray, lower: FloatArray, edge: Edge, groups: Groups | None = None) -> Boxes:
        """Boxes of reference rows `v` (m, p): eqs. (continualized_edf) and (multi_cond). O(p m log m).

        `edge="paper"` puts d_0 one unit below each minimum. The default puts it one mean gap below, but not
        below the line's low end `lower`, so that the result does not depend on the column's unit.
        """
        m, p = v.shape
        sizes = np.array([m]) if groups is None else np.bincount(groups)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        sides = np.empty((p - 1, 2, m))  # column by column first: each is worked on in the processor's cache
        for column in reversed(range(p)):  # the first column comes last and leaves its order and edges
            if p == 1 and groups is None:
                x = np.sort(v[:, 0])  # values alone sort in a tenth of the time
            else:
                order = np.argsort(v[:, column]) if groups is None else np.lexsort((v[:, column], groups))
                x = v[order, column]
            edges = _edges(x, starts, float(lower[column]), edge)
            lo, hi = np.empty(m if column else 0), np.empty(m)  # the first column's boxes lie side by side
            fill_intervals(x, starts, edges, lo, hi)
            if column:
                sides[column - 1, 0, order], sides[column - 1, 1, order] = lo, hi
        rest = np.empty((m, p - 1, 2))
        if p > 1:
            transpose(sides, order, rest)
        return cls(hi, edges, rest, starts)

    def to_uniform(self, v: FloatArray, groups: Groups | None = None) -> FloatArray:
        """Forward: C(x_1), and for l >= 2 C(x_l | x_1..x_{l-1}), which is 0 where no box holds the earlier columns."""
        u = np.empty_like(v)
        if groups is None:
            boxes = self.guide.find(self.top, v[:, 0])
        else:
            boxes = np.empty(len(v), dtype=np.int64)
            find_in_groups(v[:, 0], self.top, self.starts, groups, boxes)
        forward(v, self.top, self.edges, self.rest, self.starts, _or_none(groups), boxes, u)
        return u

    def from_uniform(self, u: FloatArray, groups: Groups | None = None) -> FloatArray:
        """Backward: the first column picks the box, and each column its place inside that box."""
        v = np.empty_like(u)
        backward(u, self.top, self.edges, self.rest, self.starts, _or_none(groups), v)
        return v

    def coordinates(self, columns: Sequence[EncodedColumn]) -> list[UniformCoordinate]:
        """The first column picks the box, and nothing about the row passes through its place inside the box."""
        return [UniformCoordinate(column.name, matters=number == 0) for number, column in enumerate(columns)]


def _or_none(groups: Groups | None) -> Groups:
    """No groups as an array of none, which the compiled loops take."""
    return np.zeros(0, dtype=np.intp) if groups is None else groups


@jit
def find_in_groups(
    x: FloatArray, top: FloatArray, starts: NDArray[np.int64], groups: Groups, boxes: NDArray[np.int64]
) -> None:
    """The box of each row among those of its group, by its first column; one past the last where x is above all."""
    for i in range(len(x)):
        boxes[i] = find_between(x[i], top, starts[groups[i]], starts[groups[i] + 1])


@jit
def forward(
    v: FloatArray,
    top: FloatArray,
    edges: FloatArray,
    rest: FloatArray,
    starts: NDArray[np.int64],
    groups: Groups,
    boxes: NDArray[np.int64],
    u: FloatArray,
) -> None:
    """The conditional CDFs of each row, given its box by the first column."""
    g = 0
    for i in range(len(v)):
        if len(groups):
            g = groups[i]
        first, last = starts[g], starts[g + 1]
        q = min(boxes[i], last - 1)
        lo, hi = edges[g] if q == first else top[q - 1], top[q]
        u[i, 0] = (q - first + fraction(v[i, 0], lo, hi)) / (last - first)
        inside = lo < v[i, 0] <= hi
        for column in range(1, v.shape[1]):
            lo, hi = rest[q, column - 1, 0], rest[q, column - 1, 1]
            u[i, column] = fraction(v[i, column], lo, hi) if inside else 0.0
            inside = inside and lo < v[i, column] <= hi


@jit
def backward(
    u: FloatArray,
    top: FloatArray,
    edges: FloatArray,
    rest: FloatArray,
    starts: NDArray[np.int64],
    groups: Groups,
    v: FloatArray,
) -> None:
    """The conditional quantiles of each row, each column given the released columns before it."""
    g = 0
    for i in range(len(u)):
        if len(groups):
            g = groups[i]
        first, last = starts[g], starts[g + 1]
        place = u[i, 0] * (last - first)
        rank = min(max(int(np.ceil(place)) - 1, 0), last - first - 1)
        q = first + rank
        lo = edges[g] if rank == 0 else top[q - 1]
        v[i, 0] = between(lo, top[q], min(max(place - rank, 0.0), 1.0))
        for column in range(1, u.shape[1]):
            v[i, column] = between(rest[q, column - 1, 0], rest[q, column - 1, 1], u[i, column])


@jit
def fraction(x: float, lo: float, hi: float) -> float:
    """(x - lo) / (hi - lo) clipped to [0, 1]; halves first, so that 1e308 - (-1e308) does not overflow."""
    if x >= hi:
        return 1.0
    return 0.0 if x <= lo else (0.5 * x - 0.5 * lo) / (0.5 * hi - 0.5 * lo)


@jit
def transpose(sides: FloatArray, order: NDArray[np.intp], rest: FloatArray) -> None:
    """rest[k, l, s] = sides[l, s, order[k]], in blocks of rows that stay in the cache."""
    for start in range(0, len(order), 64):
        for column in range(sides.shape[0]):
            for k in range(start, min(start + 64, len(order))):
                rest[k, column, 0] = sides[column, 0, order[k]]
                rest[k, column, 1] = sides[column, 1, order[k]]


@jit
def fill_intervals(v: FloatArray, starts: NDArray[np.int64], edges: FloatArray, lo: FloatArray, hi: FloatArray) -> None:
    """(lo, hi) of sorted values: t equal values share the gap below them in t equal parts, so no box is empty."""
    for group in range(len(edges)):
        below, start = edges[group], starts[group]
        while start < starts[group + 1]:
            end = start + 1
            while end < starts[group + 1] and v[end] == v[start]:
                end += 1
            for place in range(start, end):
                if len(lo):
                    lo[place] = between(below, v[start], (place - start) / (end - start))
                hi[place] = between(below, v[start], (place + 1 - start) / (end - start))
            below, start = v[start], end


@jit
def between(lo: float, hi: float, part: float) -> float:
    """Lo + part (hi - lo), exact at both ends and without overflow."""
    return min(max((1.0 - part) * lo + part * hi, lo), hi)


def _edges(v: FloatArray, starts: NDArray[np.int64], lower: float, edge: Edge) -> FloatArray:
    """d_0 of each group: its low end."""
    smallest, largest = v[starts[:-1]], v[starts[1:] - 1]
    if edge == "paper":
        return smallest - 1.0
    gap = (largest - smallest) / np.maximum(1, np.diff(starts) - 1)
    seen = gap[gap > 0]
    if len(seen):
        usual = float(np.median(seen))
    else:
        usual = float(v.max() - v.min()) / len(v) or abs(float(v[0])) * 2.0**-10 or 1.0
    edges = np.maximum(lower, smallest - np.where(gap > 0, gap, usual))
    return np.minimum(edges, smallest)
