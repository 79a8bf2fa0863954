"""The continualized empirical distribution as boxes: one box per reference row, each with equal mass.

Box q is the product over columns l of (lo[q, l], hi[q, l]], where hi is the row's own value and lo the
next smaller reference value of that column: "the cube on the immediate bottom-left of the observation"
(paper S1.6). Boxes are kept in the order of their first column, group by group; the paper's empirical
reference is the case of a single group, appendix S4 that of one group per individual.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dipriv.jit import jit
from dipriv.randomness import FloatArray
from dipriv.references.guide import Guide, find_between, find_one

Edge = Literal["unit-free", "paper"]
Groups = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Cubes:
    """Boxes sorted by group and first column: bounds[q, l] = (lo, hi); group g owns boxes starts[g]:starts[g+1]."""

    bounds: FloatArray = field(repr=False)
    starts: NDArray[np.int64] = field(repr=False)
    top: FloatArray = field(repr=False)
    guide: Guide = field(repr=False)

    @classmethod
    def build(cls, v: FloatArray, lower: FloatArray, edge: Edge, groups: Groups | None = None) -> Cubes:
        """Boxes of reference rows `v` (m, p): eqs. (continualized_edf) and (multi_cond). O(p m log m).

        `edge="paper"` puts d_0 one unit below each minimum. The default puts it one mean gap below, but not
        below the line's low end `lower`, so that the result does not depend on the column's unit.
        """
        m, p = v.shape
        group = np.zeros(m, dtype=np.intp) if groups is None else groups
        count = int(group.max()) + 1
        bounds = np.empty((m, p, 2))
        order = np.empty(0, dtype=np.intp)
        for column in reversed(range(p)):  # the first column comes last and leaves its order
            order = np.argsort(v[:, column]) if groups is None else np.lexsort((v[:, column], group))
            bounds[order, column, 0], bounds[order, column, 1] = _intervals(
                v[order, column], group[order], count, float(lower[column]), edge
            )
        bounds = bounds[order]
        top = bounds[:, 0, 1].copy()
        starts = np.searchsorted(group[order], np.arange(count + 1)).astype(np.int64)
        return cls(bounds, starts, top, Guide.over(top if count == 1 else top[:1]))

    def to_uniform(self, v: FloatArray, groups: Groups | None = None) -> FloatArray:
        """Forward: C(x_1), and for l >= 2 C(x_l | x_1..x_{l-1}), which is 0 where no box holds the earlier columns."""
        u = np.empty_like(v)
        guide = self.guide
        if groups is None:
            forward(v, self.bounds, self.top, guide.starts, guide.origin, guide.cells_per_unit, guide.by_order, u)
        else:
            forward_in_groups(v, self.bounds, self.top, self.starts, groups, u)
        return u

    def from_uniform(self, u: FloatArray, groups: Groups | None = None) -> FloatArray:
        """Backward: the first column picks the box, and each column its place inside that box."""
        v = np.empty_like(u)
        backward(u, self.bounds, self.starts, np.zeros(0, dtype=np.intp) if groups is None else groups, v)
        return v


@jit
def forward(
    v: FloatArray,
    bounds: FloatArray,
    top: FloatArray,
    starts: NDArray[Any],
    origin: float,
    cells_per_unit: float,
    by_order: bool,
    u: FloatArray,
) -> None:
    for i in range(len(v)):
        q = find_one(v[i, 0], top, starts, origin, cells_per_unit, by_order)
        forward_row(v[i], bounds, 0, len(top), q, u[i])


@jit
def forward_in_groups(
    v: FloatArray, bounds: FloatArray, top: FloatArray, starts: NDArray[np.int64], groups: Groups, u: FloatArray
) -> None:
    for i in range(len(v)):
        first, last = starts[groups[i]], starts[groups[i] + 1]
        forward_row(v[i], bounds, first, last, find_between(v[i, 0], top, first, last), u[i])


@jit
def forward_row(x: FloatArray, bounds: FloatArray, first: int, last: int, q: int, u: FloatArray) -> None:
    """One row's conditional CDFs, given its box q among first..last by the first column."""
    q = min(q, last - 1)
    inside = True
    for column in range(len(x)):
        lo, hi = bounds[q, column, 0], bounds[q, column, 1]
        if x[column] >= hi:
            part = 1.0
        elif x[column] <= lo:
            part = 0.0
        else:  # halves first, so that 1e308 - (-1e308) does not overflow
            part = (0.5 * x[column] - 0.5 * lo) / (0.5 * hi - 0.5 * lo)
        if column == 0:
            u[0] = (q - first + part) / (last - first)
        else:
            u[column] = part if inside else 0.0
        inside = inside and lo < x[column] <= hi


@jit
def backward(u: FloatArray, bounds: FloatArray, starts: NDArray[np.int64], groups: Groups, v: FloatArray) -> None:
    first, last = starts[0], starts[1]
    for i in range(len(u)):
        if len(groups):
            first, last = starts[groups[i]], starts[groups[i] + 1]
        place = u[i, 0] * (last - first)
        rank = min(max(int(np.ceil(place)) - 1, 0), last - first - 1)
        for column in range(u.shape[1]):
            part = min(max(place - rank, 0.0), 1.0) if column == 0 else u[i, column]
            lo, hi = bounds[first + rank, column, 0], bounds[first + rank, column, 1]
            v[i, column] = min(max((1.0 - part) * lo + part * hi, lo), hi)


def _intervals(v: FloatArray, group: Groups, count: int, lower: float, edge: Edge) -> tuple[FloatArray, FloatArray]:
    """(lo, hi) of sorted values: t equal values share the gap below them in t equal parts, so no box is empty."""
    new_group = np.append(True, group[1:] != group[:-1])
    new_run = new_group | np.append(True, v[1:] != v[:-1])
    run = np.cumsum(new_run) - 1
    run_start = np.flatnonzero(new_run)
    run_length = np.diff(np.append(run_start, len(v)))
    previous = np.where(new_group[run_start], 0.0, v[run_start - 1])
    edges = _edges(v, group, count, lower, edge)
    previous = np.where(new_group[run_start], edges[group[run_start]], previous)
    place = np.arange(len(v)) - run_start[run]
    length = run_length[run]
    lo = _between(previous[run], v, place / length)
    hi = np.where(place + 1 == length, v, _between(previous[run], v, (place + 1) / length))
    return lo, hi


def _edges(v: FloatArray, group: Groups, count: int, lower: float, edge: Edge) -> FloatArray:
    """d_0 of each group: its low end."""
    starts = np.searchsorted(group, np.arange(count + 1))
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


def _between(lo: FloatArray, hi: FloatArray, part: FloatArray) -> FloatArray:
    """Lo + part (hi - lo), exact at both ends and without overflow."""
    return np.clip((1.0 - part) * lo + part * hi, lo, hi)
