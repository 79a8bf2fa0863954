"""Columns whose codes are divided into bins: V is the number of a bin, or kind of missing cell, plus a place inside."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray
from dipriv._base.columns import PRESENT, ColumnValues
from dipriv._base.invariants import is_increasing, is_vector, require
from dipriv._base.jit import jit
from dipriv._base.registry import serializable
from dipriv._random.bits import Draws
from dipriv.codecs.code_index import CodeIndex
from dipriv.codecs.levels import check_levels, find_levels
from dipriv.codecs.ordered_codes import Codes, OrderedCodes
from dipriv.codecs.protocol import Codec, are_kinds_missing


@serializable(Codec, former_name="CellsCodec")
@dataclass(frozen=True, eq=False)
class BinnedCodec:
    """Numbers: bin k has the `sizes[k]` codes from `starts[k]` on. States are the kinds of missing cells, then bins.

    A code is spread over its own share of its bin, so that V is uniform inside a bin if codes are. Codes between two
    bins stand where these meet.
    """

    line: OrderedCodes
    starts: Codes = field(repr=False)
    sizes: NDArray[np.uint64] = field(repr=False)
    missing: tuple[int, ...] = ()

    dims = 1
    lower = (0.0,)

    def __post_init__(self) -> None:
        starts, sizes = self.starts, self.sizes
        require(is_vector(starts) and sizes.shape == starts.shape, self, "each bin has a start and a size")
        require(is_increasing(starts) and np.all(sizes > 0), self, "bins are in order and not empty")
        gaps = starts[1:].astype(np.uint64) - starts[:-1].astype(np.uint64)  # modulo 2^64, as all of these sums
        require(np.all(sizes[:-1] <= gaps), self, "no two bins overlap")
        last = int(starts[-1]) + int(sizes[-1]) - 1
        require(self.line.first <= int(starts[0]) and last <= self.line.last, self, "bins lie on their line")
        require(are_kinds_missing(self.missing), self, "kinds of missing values are different and known")

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.line.dtype

    @property
    def states(self) -> int:
        return len(self.missing) + len(self.starts)

    @cached_property
    def _index(self) -> CodeIndex:
        return self.line.index(self.starts)

    def encode(self, cells: ColumnValues, draws: Draws) -> FloatArray:
        codes = self.line.to_codes(cells.values)
        inside = 1.0 - draws.uniforms()
        v = np.empty(len(codes))
        place_in_bins(codes, self._index.up_to(codes), inside, self.starts, self.sizes, len(self.missing), v)
        return _put_missing(v, inside, cells, self.missing, inside * self.states)[:, np.newaxis]

    def to_states(self, cells: ColumnValues) -> NDArray[np.int64]:
        """The state of each cell; a code between two bins has that of the lower one, a missing cell at worst 0."""
        states = np.maximum(self._index.up_to(self.line.to_codes(cells.values)) - 1, 0) + len(self.missing)
        return _put_missing(states, 0, cells, self.missing, 0)

    def decode(self, v: FloatArray) -> ColumnValues:
        codes, states = np.empty(len(v), dtype=np.int64), np.empty(len(v), dtype=np.int64)
        codes_in_bins(v[:, 0], self.starts, self.sizes, len(self.missing), codes, states)
        return _labelled(self.line.to_values(codes), states, self.missing)


@jit
def place_in_bins(
    codes: Codes,
    found: Codes,
    inside: FloatArray,
    starts: Codes,
    sizes: NDArray[np.uint64],
    missing: int,
    v: FloatArray,
) -> None:
    """Where each code is spread to; `found` counts the bins that start at it or below."""
    for i in range(len(codes)):
        if found[i] == 0:
            v[i] = missing
            continue
        k = found[i] - 1
        steps = np.float64(np.uint64(codes[i]) - np.uint64(starts[k]))  # modulo 2^64
        place = min(max((steps + inside[i]) / np.float64(sizes[k]), 2.0**-32), 1.0)
        v[i] = missing + (k + place)


@jit
def codes_in_bins(
    v: FloatArray, starts: Codes, sizes: NDArray[np.uint64], missing: int, codes: Codes, states: Codes
) -> None:
    """The inverse: the code at each place, and its state."""
    most = np.float64(missing + len(starts) - 1)
    for i in range(len(v)):
        state = 0 if np.isnan(v[i]) else np.int64(min(max(np.ceil(v[i]) - 1.0, 0.0), most))
        k = max(state - missing, 0)
        place = min(max((v[i] - state) * np.float64(sizes[k]), 0.0), 2.0**63)
        step = min(np.uint64(max(np.ceil(place), 1.0)) - np.uint64(1), sizes[k] - np.uint64(1))
        codes[i] = np.int64(np.uint64(starts[k]) + step)
        states[i] = state


@serializable(Codec, former_name="RanksCodec")
@dataclass(frozen=True, eq=False)
class RankedLevelsCodec:
    """Levels in an order of their own: state number m + k is the level numbered `order[k]` of the sorted `levels`."""

    levels: NDArray[Any] = field(repr=False)
    order: NDArray[np.int64] = field(repr=False)
    missing: tuple[int, ...] = ()

    dims = 1
    lower = (0.0,)

    def __post_init__(self) -> None:
        check_levels(self, self.levels, self.missing)
        require(np.array_equal(np.sort(self.order), np.arange(len(self.levels))), self, "the order has each level once")

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.levels.dtype

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
