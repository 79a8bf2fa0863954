"""Columns whose line is cut into cells: V is the number of a cell, or kind of missing value, plus a place inside."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dipriv._arrays import FloatArray
from dipriv._columns import PRESENT, ColumnValues
from dipriv._random.bits import Draws
from dipriv.codecs.levels import find_levels
from dipriv.codecs.ordered_codes import Codes, OrderedCodes


@dataclass(frozen=True, eq=False)
class BinnedCodec:
    """Numbers: cell k has the `sizes[k]` codes from `starts[k]` on. States are the kinds of missing cells, then cells.

    A code is spread over its own share of its cell, so that V is uniform inside a cell if codes are. Codes between two
    cells stand where these meet.
    """

    line: OrderedCodes
    starts: Codes = field(repr=False)
    sizes: NDArray[np.uint64] = field(repr=False)
    missing: tuple[int, ...] = ()

    dims = 1
    lower = (0.0,)

    @property
    def states(self) -> int:
        return len(self.missing) + len(self.starts)

    def encode(self, cells: ColumnValues, draws: Draws) -> FloatArray:
        codes = self.line.to_codes(cells.values)
        cell = np.searchsorted(self.starts, codes, side="right") - 1
        at = np.maximum(cell, 0)
        steps = (codes.astype(np.uint64) - self.starts[at].astype(np.uint64)).astype(np.float64)
        inside = 1.0 - draws.uniforms()
        place = np.clip((steps + inside) / self.sizes[at].astype(np.float64), 2.0**-32, 1.0)
        v = len(self.missing) + np.where(cell < 0, 0.0, at + place)
        return _put_missing(v, inside, cells, self.missing, inside * self.states)[:, np.newaxis]

    def to_states(self, cells: ColumnValues) -> NDArray[np.int64]:
        """The state of each cell; a code between two cells has that of the lower one, a missing cell at worst 0."""
        found = np.searchsorted(self.starts, self.line.to_codes(cells.values), side="right") - 1
        states = np.maximum(found, 0) + len(self.missing)
        return _put_missing(states, 0, cells, self.missing, 0)

    def decode(self, v: FloatArray) -> ColumnValues:
        state = np.clip(np.ceil(v[:, 0]) - 1, 0, self.states - 1).astype(np.int64)
        cell = np.maximum(state - len(self.missing), 0)
        sizes = self.sizes[cell]
        place = np.clip((v[:, 0] - state) * sizes.astype(np.float64), 0.0, 2.0**63)
        steps = np.minimum(np.maximum(np.ceil(place), 1.0).astype(np.uint64) - np.uint64(1), sizes - np.uint64(1))
        values = self.line.to_values((self.starts[cell].astype(np.uint64) + steps).astype(np.int64))
        return _labelled(values, state, self.missing)


@dataclass(frozen=True, eq=False)
class RankedLevelsCodec:
    """Levels in an order of their own: state number m + k is the level numbered `order[k]` of the sorted `levels`."""

    levels: NDArray[Any] = field(repr=False)
    order: NDArray[np.int64] = field(repr=False)
    missing: tuple[int, ...] = ()

    dims = 1
    lower = (0.0,)

    @property
    def states(self) -> int:
        return len(self.missing) + len(self.levels)

    def encode(self, cells: ColumnValues, draws: Draws) -> FloatArray:
        inside = 1.0 - draws.uniforms()
        v = self._of_values(cells.values) + inside
        return _put_missing(v, inside, cells, self.missing, inside * self.states)[:, np.newaxis]

    def decode(self, v: FloatArray) -> ColumnValues:
        return self.from_states(np.clip(np.ceil(v[:, 0]) - 1, 0, self.states - 1).astype(np.int64))

    def to_states(self, cells: ColumnValues) -> NDArray[np.int64]:
        """The state of each cell; a value that is no level goes with the next level, or the last."""
        return _put_missing(self._of_values(cells.values), 0, cells, self.missing, 0)

    def _of_values(self, values: NDArray[Any]) -> NDArray[np.int64]:
        found = np.empty(len(values), dtype=np.int64)
        find_levels(values, self.levels, 0, found)
        rank = np.empty(len(self.order), dtype=np.int64)
        rank[self.order] = np.arange(len(self.order))
        states: NDArray[np.int64] = rank[found] + len(self.missing)
        return states

    def from_states(self, states: NDArray[np.int64]) -> ColumnValues:
        values = self.levels[self.order[np.maximum(states - len(self.missing), 0)]]
        return _labelled(values, states, self.missing)


def _put_missing(
    places: NDArray[Any], inside: Any, cells: ColumnValues, missing: tuple[int, ...], anywhere: Any
) -> NDArray[Any]:
    """The places, with those of missing cells: their state's number and what is inside, else a place anywhere."""
    if cells.missing is None:
        return places
    places = np.where(cells.missing == PRESENT, places, anywhere)
    for number, kind in enumerate(missing):
        places = np.where(cells.missing == kind, number + inside, places)
    return places


def _labelled(values: NDArray[Any], states: NDArray[np.int64], missing: tuple[int, ...]) -> ColumnValues:
    """Values, and which of them are missing."""
    if not missing:
        return ColumnValues(values)
    kinds = np.array([*missing, PRESENT], dtype=np.uint8)
    return ColumnValues(values, kinds[np.minimum(states, len(missing))])
