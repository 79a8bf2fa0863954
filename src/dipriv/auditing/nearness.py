"""How near rows are to released rows: shares of ranks for numbers, equal or not for labels, all in whole numbers.

A number stands where it falls among the released ones: at twice its middle rank. So the distance of two numbers is the
share of released rows between them, whatever the unit, and it is 0 from a released number for that number alone. Labels
that differ, and a null beside a value, are 1 apart, which is 2n for n released rows. Distances add up over columns, as
Gower's do, without any rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dipriv._columns import PRESENT
from dipriv._jit import jit
from dipriv._tables import frames as tables
from dipriv._tables.arrow import distinct_labels
from dipriv._tables.frames import Table
from dipriv.errors import InputError

Points = NDArray[np.int32]
"""(columns, rows): column by column, so that a loop over rows reads side by side."""
Places = NDArray[np.int64]

MOST_CELLS = 1 << 28
"""More would not fit the whole numbers that distances are counted in."""
BLOCK = 512
MISSING_LABEL, UNKNOWN_LABEL = -1, -2


@dataclass(frozen=True, eq=False)
class Axis:
    """One column of the release: its sorted numbers, or its labels. `limit * weight` is the largest distance."""

    name: str
    numbers: NDArray[np.generic] | None = field(repr=False)
    labels: pa.Array | None = field(repr=False)
    limit: int
    weight: int

    @classmethod
    def of(cls, released: Table, name: str) -> Axis:
        family = released.column(name).storage.family
        if family == "label":
            return cls(name, None, distinct_labels(released.array(name)), 1, 2 * released.rows)
        if family == "boolean":
            return cls(name, None, None, 1, 2 * released.rows)
        return cls(name, np.sort(released.cells(name).present), None, 2 * released.rows, 1)

    def place(self, table: Table) -> NDArray[np.int32]:
        """Where the cells of this column stand."""
        cells = table.cells(self.name, self.labels)
        if self.numbers is None:
            places = np.where(cells.values < 0, UNKNOWN_LABEL, cells.values.astype(np.int32))
            nowhere = MISSING_LABEL
        else:
            sides = [np.searchsorted(self.numbers, cells.values, side) for side in ("left", "right")]
            places = np.add(*sides)
            nowhere = 2 * self.limit  # as far from all numbers as can be
        if cells.missing is not None:
            places = np.where(cells.missing == PRESENT, places, nowhere)
        return places.astype(np.int32)


@dataclass(frozen=True, eq=False)
class Space:
    """The released rows as points, and where other rows stand among them."""

    axes: tuple[Axis, ...]
    released: Points = field(repr=False)

    @property
    def farthest(self) -> int:
        """The distance of two labels that differ, which no two numbers exceed."""
        return 2 * int(self.released.shape[1])

    @classmethod
    def of(cls, released: pa.Table) -> Space:
        if released.num_rows * released.num_columns > MOST_CELLS:
            raise InputError(
                f"the release has {released.num_rows * released.num_columns:,} cells; attacks take {MOST_CELLS:,}.",
                "Audit a random sample of the rows.",
            )
        table = tables.read(released).clip_infinities()
        axes = tuple(Axis.of(table, name) for name in table.names)
        return cls(axes, np.stack([axis.place(table) for axis in axes]))

    def place(self, rows: pa.Table) -> Points:
        """(columns, rows) of any table with the same columns."""
        if rows.num_rows == 0:
            return np.empty((len(self.axes), 0), dtype=np.int32)
        table = tables.read(rows).clip_infinities()
        return np.stack([axis.place(table) for axis in self.axes])

    def nearest(
        self, people: Points, among: Points, count: int = 1, columns: Sequence[int] | None = None
    ) -> tuple[Places, Places]:
        """(people, count) distances to the nearest points in these columns, and their positions; ties to the first."""
        chosen = np.arange(len(self.axes)) if columns is None else np.asarray(columns)
        limits, weights = self._scales(chosen)
        distances = np.full((people.shape[1], count), np.iinfo(np.int64).max)
        places = np.full((people.shape[1], count), -1, dtype=np.int64)
        find_nearest(
            np.ascontiguousarray(people[chosen]),
            np.ascontiguousarray(among[chosen]),
            limits,
            weights,
            distances,
            places,
        )
        return distances, places

    def nearest_without_each(self, people: Points, among: Points) -> Places:
        """(people, columns): the position of the nearest point by all columns but that one; ties to the first."""
        places = np.full((people.shape[1], len(self.axes)), -1, dtype=np.int64)
        find_without_each(people, among, *self._scales(np.arange(len(self.axes))), places)
        return places

    def apart(self, people: Points, others: Points) -> Points:
        """How far rows are from others, column by column; both have columns first, and are repeated to fit."""
        limits, weights = (
            scale.reshape(-1, *[1] * (others.ndim - 1)) for scale in self._scales(np.arange(len(self.axes)))
        )
        return np.asarray(np.minimum(np.abs(people - others), limits) * weights)

    def _scales(self, columns: NDArray[np.intp]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        limits = np.array([self.axes[column].limit for column in columns], dtype=np.int32)
        return limits, np.array([self.axes[column].weight for column in columns], dtype=np.int32)


@jit
def measure(
    people: Points,
    person: int,
    among: Points,
    start: int,
    stop: int,
    limits: NDArray[np.int32],
    weights: NDArray[np.int32],
    apart: Points,
) -> None:
    """How far a person is from the points start:stop, column by column; the last line of `apart` is the sum."""
    total = len(people)
    for j in range(stop - start):
        apart[total, j] = 0
    for column in range(len(people)):
        here, limit, weight = people[column, person], limits[column], weights[column]
        for j in range(stop - start):
            away = np.int32(min(np.int32(abs(np.int32(among[column, start + j] - here))), limit) * weight)
            apart[column, j] = away
            apart[total, j] += away


@jit
def find_nearest(
    people: Points,
    among: Points,
    limits: NDArray[np.int32],
    weights: NDArray[np.int32],
    distances: Places,
    places: Places,
) -> None:
    """The nearest points of each person, nearest first."""
    total, count = len(people), distances.shape[1]
    apart = np.empty((len(people) + 1, BLOCK), dtype=np.int32)
    for i in range(people.shape[1]):
        for start in range(0, among.shape[1], BLOCK):
            stop = min(start + BLOCK, among.shape[1])
            measure(people, i, among, start, stop, limits, weights, apart)
            least = apart[total, 0]
            for j in range(1, stop - start):
                least = min(least, apart[total, j])
            if least >= distances[i, count - 1]:
                continue
            for j in range(stop - start):
                if apart[total, j] < distances[i, count - 1]:
                    put = count - 1
                    while put > 0 and apart[total, j] < distances[i, put - 1]:
                        distances[i, put], places[i, put] = distances[i, put - 1], places[i, put - 1]
                        put -= 1
                    distances[i, put], places[i, put] = apart[total, j], start + j


@jit
def find_without_each(
    people: Points, among: Points, limits: NDArray[np.int32], weights: NDArray[np.int32], places: Places
) -> None:
    """The nearest point of each person by all columns but one, for each of them in one pass."""
    total = len(people)
    apart = np.empty((len(people) + 1, BLOCK), dtype=np.int32)
    nearest = np.empty(total, dtype=np.int32)
    for i in range(people.shape[1]):
        nearest[:] = np.iinfo(np.int32).max
        for start in range(0, among.shape[1], BLOCK):
            stop = min(start + BLOCK, among.shape[1])
            measure(people, i, among, start, stop, limits, weights, apart)
            for column in range(total):
                best = nearest[column]
                for j in range(stop - start):
                    best = min(best, np.int32(apart[total, j] - apart[column, j]))
                if best < nearest[column]:
                    nearest[column] = best
                    for j in range(stop - start):
                        if apart[total, j] - apart[column, j] == best:
                            places[i, column] = start + j
                            break
