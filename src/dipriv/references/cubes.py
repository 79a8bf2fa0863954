"""The continualized empirical distribution as boxes: one box per reference row, each with equal mass.

Box q is the product over columns l of (lo[q, l], hi[q, l]], where hi is the row's own value and lo the
next smaller reference value of that column: "the cube on the immediate bottom-left of the observation"
(paper S1.6). Boxes are kept in the order of their first column, group by group; the paper's empirical
reference is the case of a single group, appendix S4 that of one group per individual.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dipriv.randomness import FloatArray

Edge = Literal["unit-free", "paper"]
Groups = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Cubes:
    """Boxes of the reference rows, sorted by group and first column; group g owns rows starts[g]:starts[g+1]."""

    lo: FloatArray = field(repr=False)
    hi: FloatArray = field(repr=False)
    starts: NDArray[np.intp] = field(repr=False)

    @classmethod
    def build(cls, v: FloatArray, lower: FloatArray, edge: Edge, groups: Groups | None = None) -> Cubes:
        """Boxes of reference rows `v` (m, p): eqs. (continualized_edf) and (multi_cond). O(p m log m).

        `edge="paper"` puts d_0 one unit below each minimum. The default puts it one mean gap below, but not
        below the line's low end `lower`, so that the result does not depend on the column's unit.
        """
        m, p = v.shape
        group = np.zeros(m, dtype=np.intp) if groups is None else groups
        count = int(group.max()) + 1
        lo, hi = np.empty_like(v), np.empty_like(v)
        order = np.empty(0, dtype=np.intp)
        for column in reversed(range(p)):  # the first column comes last and leaves its order
            order = np.lexsort((v[:, column], group))
            below, above = _intervals(v[order, column], group[order], count, float(lower[column]), edge)
            lo[order, column], hi[order, column] = below, above
        starts = np.searchsorted(group[order], np.arange(count + 1))
        return cls(lo[order], hi[order], starts)

    def to_uniform(self, v: FloatArray, groups: Groups | int = 0) -> FloatArray:
        """Forward: C(x_1), and for l >= 2 C(x_l | x_1..x_{l-1}), which is 0 where no box holds the earlier columns."""
        first, last = self.starts[groups], self.starts[np.add(groups, 1)]
        q = self._box_of(v[:, 0], first, last)
        rank = q - first
        q = np.minimum(q, last - 1)
        u = np.empty_like(v)
        inside = np.ones(len(v), dtype=bool)
        for column in range(v.shape[1]):
            x, lo, hi = v[:, column], self.lo[q, column], self.hi[q, column]
            part = _fraction(x, lo, hi)
            u[:, column] = (
                (np.minimum(rank, last - first - 1) + part) / (last - first) if column == 0 else part * inside
            )
            inside &= (lo < x) & (x <= hi)
        return u

    def from_uniform(self, u: FloatArray, groups: Groups | int = 0) -> FloatArray:
        """Backward: the first column picks the box, and each column its place inside that box."""
        first, last = self.starts[groups], self.starts[np.add(groups, 1)]
        place = u[:, 0] * (last - first)
        rank = np.clip(np.ceil(place) - 1, 0, last - first - 1)
        q = first + rank.astype(np.intp)
        v = np.empty_like(u)
        for column in range(u.shape[1]):
            part = np.clip(place - rank, 0.0, 1.0) if column == 0 else u[:, column]
            v[:, column] = _between(self.lo[q, column], self.hi[q, column], part)
        return v

    def _box_of(self, x: FloatArray, first: NDArray[np.intp], last: NDArray[np.intp]) -> NDArray[np.intp]:
        """The first box of the row's group whose upper end is not below x, or `last`: one bisection for all rows."""
        top = self.hi[:, 0]
        if np.ndim(first) == 0:
            return first + np.searchsorted(top[first:last], x, side="left")
        low, high = first.copy(), last.copy()
        while np.any(low < high):
            middle = (low + high) // 2
            right = (low < high) & (top[np.minimum(middle, len(top) - 1)] < x)
            low, high = np.where(right, middle + 1, low), np.where(right | (low >= high), high, middle)
        return low


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


def _fraction(x: FloatArray, lo: FloatArray, hi: FloatArray) -> FloatArray:
    """(x - lo) / (hi - lo) held to [0, 1]; halves first, so that 1e308 - (-1e308) does not overflow."""
    width = 0.5 * hi - 0.5 * lo
    beyond = 0.5 * np.clip(x, lo, hi) - 0.5 * lo
    return np.where(x >= hi, 1.0, beyond / np.where(width > 0, width, 1.0))


def _between(lo: FloatArray, hi: FloatArray, part: FloatArray) -> FloatArray:
    """Lo + part (hi - lo), exact at both ends and without overflow."""
    return np.clip((1.0 - part) * lo + part * hi, lo, hi)
