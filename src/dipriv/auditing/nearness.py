"""Distances between rows and released rows: differences of ranks for numbers, equal or not for labels, as integers.

A number is placed at twice its mid-rank among the released numbers. The distance of two numbers is then the share of
released rows between them, in any unit of measurement, and it is 0 from a released number for that number alone.
Different labels, and a null and a value, have distance 1, which is 2n for n released rows. Distances add up over
columns, like Gower's, without rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dipriv._base.columns import PRESENT
from dipriv._base.jit import jit
from dipriv._tables import frames as tables
from dipriv._tables.arrow import distinct_labels
from dipriv._tables.frames import Table
from dipriv.errors import InputError

Points = NDArray[np.int32]
"""(columns, rows), so that a loop over the rows of a column reads contiguous memory."""
Places = NDArray[np.int64]

MAX_CELLS = 1 << 28
"""Distances of a larger release would overflow 32-bit integers."""
BLOCK = 512
"""Points whose distances are computed at a time."""
MISSING_LABEL = -1
UNKNOWN_LABEL = -2


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
        """The places of the cells of this column."""
        cells = table.cells(self.name, self.labels)
        if self.numbers is None:
            places = np.where(cells.values < 0, UNKNOWN_LABEL, cells.values.astype(np.int32))
            missing_place = MISSING_LABEL
        else:
            sides = [np.searchsorted(self.numbers, cells.values, side) for side in ("left", "right")]
            places = np.add(*sides)
            missing_place = 2 * self.limit  # at the largest distance from all numbers
        if cells.missing is not None:
            places = np.where(cells.missing == PRESENT, places, missing_place)
        return places.astype(np.int32)


@dataclass(frozen=True, eq=False)
class Space:
    """The released rows as points, and the places of other rows among them."""

    axes: tuple[Axis, ...]
    released: Points = field(repr=False)

    @property
    def max_distance(self) -> int:
        """The distance of two different labels; no two numbers are farther from each other."""
        return 2 * int(self.released.shape[1])

    @classmethod
    def of(cls, released: pa.Table) -> Space:
        if released.num_rows * released.num_columns > MAX_CELLS:
            raise InputError(
                f"the release has {released.num_rows * released.num_columns:,} cells; attacks take {MAX_CELLS:,}.",
                "Audit a random sample of the rows.",
            )
        table = tables.read(released)
        axes = tuple(Axis.of(table, name) for name in table.names)
        return cls(axes, np.stack([axis.place(table) for axis in axes]))

    def place(self, rows: pa.Table) -> Points:
        """(columns, rows) of any table with the same columns."""
        if rows.num_rows == 0:
            return np.empty((len(self.axes), 0), dtype=np.int32)
        table = tables.read(rows)
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

    def distances(self, people: Points, others: Points) -> Points:
        """The distance of each row to others, column by column; both arguments have columns first, and broadcast."""
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
    by_column: Points,
) -> None:
    """Distances of a person to the points start:stop, column by column; the last row of `by_column` is their sum."""
    total = len(people)
    for j in range(stop - start):
        by_column[total, j] = 0
    for column in range(len(people)):
        here, limit, weight = people[column, person], limits[column], weights[column]
        for j in range(stop - start):
            distance = np.int32(min(np.int32(abs(np.int32(among[column, start + j] - here))), limit) * weight)
            by_column[column, j] = distance
            by_column[total, j] += distance


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
    by_column = np.empty((len(people) + 1, BLOCK), dtype=np.int32)
    for i in range(people.shape[1]):
        for start in range(0, among.shape[1], BLOCK):
            stop = min(start + BLOCK, among.shape[1])
            measure(people, i, among, start, stop, limits, weights, by_column)
            least = by_column[total, 0]
            for j in range(1, stop - start):
                least = min(least, by_column[total, j])
            if least >= distances[i, count - 1]:
                continue
            for j in range(stop - start):
                if by_column[total, j] < distances[i, count - 1]:
                    put = count - 1
                    while put > 0 and by_column[total, j] < distances[i, put - 1]:
                        distances[i, put], places[i, put] = distances[i, put - 1], places[i, put - 1]
                        put -= 1
                    distances[i, put], places[i, put] = by_column[total, j], start + j


@jit
def find_without_each(
    people: Points, among: Points, limits: NDArray[np.int32], weights: NDArray[np.int32], places: Places
) -> None:
    """The nearest point of each person by all columns but one, for each of them in one pass."""
    total = len(people)
    by_column = np.empty((len(people) + 1, BLOCK), dtype=np.int32)
    nearest = np.empty(total, dtype=np.int32)
    for i in range(people.shape[1]):
        nearest[:] = np.iinfo(np.int32).max
        for start in range(0, among.shape[1], BLOCK):
            stop = min(start + BLOCK, among.shape[1])
            measure(people, i, among, start, stop, limits, weights, by_column)
            for column in range(total):
                best = nearest[column]
                for j in range(stop - start):
                    best = min(best, np.int32(by_column[total, j] - by_column[column, j]))
                if best < nearest[column]:
                    nearest[column] = best
                    for j in range(stop - start):
                        if by_column[total, j] - by_column[column, j] == best:
                            places[i, column] = start + j
                            break
