"""Neighbouring datasets for auditing a fitted mechanism, and draws of its output on them.

A fitted mechanism is a channel for rows. Copies of one record that are released together are independent draws of its
output, and two records are neighbouring datasets of one row. A *block* is a dataset of two rows, the first of which the
attacker knows: it shows whether the noise of one row reveals anything about the noise of another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray
from dipriv._base.columns import NAN, NULL, PRESENT, ColumnValues
from dipriv._base.parallel import MIN_CHUNK_ROWS as ROWS_PER_CHUNK
from dipriv._random.bits import Bits, Draws
from dipriv._tables import frames as tables
from dipriv._tables.arrow import cells_to_arrow
from dipriv._tables.fitted_columns import FittedColumn
from dipriv._tables.frames import Table
from dipriv.auditing.events import Views
from dipriv.codecs.real import RealCodec
from dipriv.mechanism import decode, encode
from dipriv.references._models.independent import Independent
from dipriv.release.fitting import FittedMechanism

Layout: TypeAlias = Literal["alone", "beside", "in another chunk", "in another batch"]
BLOCKS: tuple[Layout, ...] = ("beside", "in another chunk", "in another batch")

CORNER = 2.0**-26
"""The distance of ranks at the corners of U from 0 and 1."""
OUT_OF_SUPPORT = 2.0**100
"""A number outside any column's support, and within the range of 32-bit floats."""
MAX_LEVELS = 6
"""Levels and atoms of a column among the records."""
MAX_CORNERS = 32
"""Corners of U among the records."""
N_MIXED = 8
"""Records that combine special cells of all columns at random."""
MAX_NUMBERS = 1 << 25
"""Numbers in an array of a pilot at most."""
ROWS_PER_CALL = 1 << 15
"""Rows that are released in one call at most."""
MIN_CALLS = 8
"""Calls of a pilot, each with its own random bits: bits that all rows of a call share make the call one draw."""
MIN_BLOCK_CALLS = 64
"""The same for rows beside each other."""
MIN_CHUNKS = 2
"""Calls of a pilot for rows in different chunks, which are large."""


@dataclass(frozen=True, eq=False)
class Records:
    """Candidate rows as an Arrow table, with a description of each that gives its position and never shows a cell."""

    table: pa.Table = field(repr=False)
    words: tuple[str, ...]
    corners: NDArray[np.bool_] = field(repr=False)
    """(c, width): which ranks of the first c records are high, the others being low; in the order of V."""

    def __len__(self) -> int:
        return len(self.words)

    def take(self, rows: NDArray[np.int64]) -> pa.Table:
        return self.table.take(pa.array(rows))

    def opposites(self) -> list[tuple[int, int]]:
        """Pairs of corners that differ in every rank, starting with all low and all high ranks."""
        numbers = {tuple(corner): number for number, corner in enumerate(self.corners.tolist())}
        pairs = ((number, numbers.get(tuple(not up for up in corner), -1)) for corner, number in numbers.items())
        return [(first, second) for first, second in pairs if first < second]


@dataclass(frozen=True)
class SmallDataset:
    """A dataset of one row (a record's number), or a block of two rows and their layout."""

    rows: tuple[int, ...]
    layout: Layout = "alone"


@dataclass(frozen=True)
class NeighbouringDatasets:
    """Two datasets D and D' of the same layout that differ in their last row (substitute-one neighbours)."""

    d: SmallDataset
    d_prime: SmallDataset

    @classmethod
    def of_rows(cls, row: int, substitute: int) -> NeighbouringDatasets:
        """Datasets of one row each."""
        return cls(SmallDataset((row,)), SmallDataset((substitute,)))

    @classmethod
    def of_blocks(cls, known: int, substitute: int, layout: Layout) -> NeighbouringDatasets:
        """Blocks whose first row is known, and whose second row is the same record or the substitute."""
        return cls(SmallDataset((known, known), layout), SmallDataset((known, substitute), layout))

    @property
    def layout(self) -> Layout:
        return self.d.layout

    def swapped(self) -> NeighbouringDatasets:
        return NeighbouringDatasets(self.d_prime, self.d)


def records_of(fitted: FittedMechanism, bits: Bits) -> Records:
    """Rows whose outputs may differ the most: corners of U decoded to cells, ends of types, rare cells."""
    high = _high_ranks(len(fitted.order), bits)
    corners, words = _corners(fitted, high)
    special = [_special_cells(column) for column in fitted.columns]
    rows: list[list[tuple[str, Any, int]]] = []
    if len(special) == 1:
        rows += [[one] for one in special[0]]
    else:
        ends = [(cells[0], cells[1]) for cells in special]
        rows += [[end[side] for end in ends] for side in (0, 1)]
        rows += [[end[(number + side) % 2] for number, end in enumerate(ends)] for side in (0, 1)]
        for pick in bits.words(N_MIXED * len(special)).reshape(N_MIXED, -1):
            rows.append([cells[int(word) % len(cells)] for word, cells in zip(pick, special, strict=True)])
    words += [_common(word for word, _, _ in row) for row in rows]
    arrays = {}
    for number, column in enumerate(fitted.columns):
        more = [row[number] for row in rows]
        arrays[column.name] = _as_arrow(column, corners[number], more)
    if fitted.by is not None and fitted.groups is not None:
        arrays[fitted.by] = fitted.groups.take(pa.array([0] * len(words)))
    return Records(pa.table(arrays), tuple(words), high)


def draw(
    fitted: FittedMechanism, records: Records, datasets: Sequence[SmallDataset], count: int, bits: Bits, calls: int
) -> Iterator[list[FloatArray]]:
    """The features of about `count` independent releases of each of these datasets of one layout, call by call.

    The features of a block are those of its known row, those of the other, and their differences. Rows that are
    released together have independent noise, so each row (or block) is one draw. Independence is part of the claim: a
    mechanism that violates it is refuted rightly.
    """
    layout = datasets[0].layout
    for number, size in enumerate(_sizes(count, layout, calls)):
        here = bits.child(f"call {number}")
        rows = np.array([dataset.rows for dataset in datasets])  # one line for each dataset
        if layout == "in another batch":
            batches = [records.take(np.repeat(column, size)).combine_chunks().to_batches()[0] for column in rows.T]
            released = pa.Table.from_batches(list(fitted.release_batches(batches, (), here)))
        else:
            order = np.tile(rows, (1, size)) if layout == "beside" else np.repeat(rows, size, axis=1)
            released = fitted.release(tables.read(records.take(order.ravel())), (), here)
        seen = features(fitted, released, here.child("look"))
        if layout == "in another batch":
            by_row = seen.reshape(rows.shape[1], len(datasets), size, -1).swapaxes(0, 1)
        elif layout == "beside":
            by_row = seen.reshape(len(datasets), size, rows.shape[1], -1).swapaxes(1, 2)
        else:
            by_row = seen.reshape(len(datasets), rows.shape[1], size, -1)
        yield [each[0] if layout == "alone" else _block(each[0], each[1]) for each in by_row]


def draw_pair(
    fitted: FittedMechanism, records: Records, pair: NeighbouringDatasets, count: int, bits: Bits
) -> tuple[FloatArray, FloatArray]:
    """(calls, n, features) under D and under D'; fewer releases where rows are very wide."""
    datasets = (pair.d, pair.d_prime)
    count = min(count, _max_draws(fitted, 3 * len(datasets)))
    d, d_prime = zip(*draw(fitted, records, datasets, count, bits, MIN_CALLS), strict=True)
    return np.stack(d), np.stack(d_prime)


def draw_records(
    fitted: FittedMechanism, records: Records, numbers: Sequence[int], count: int, bits: Bits
) -> FloatArray:
    """(records, calls, n, features): about `count` releases of each of these records, all of them in each call."""
    count = min(count, _max_draws(fitted, len(numbers)))
    calls = max(MIN_CALLS, -(-count * len(numbers) // ROWS_PER_CALL))
    each = -(-count // calls)
    table = tables.read(records.take(np.repeat(numbers, each)))
    parts = []
    for number in range(calls):
        here = bits.child(f"call {number}")
        seen = features(fitted, fitted.release(table, (), here), here.child("look"))
        parts.append(seen.reshape(len(numbers), each, -1))
    return np.stack(parts, axis=1)


def views_of(fitted: FittedMechanism) -> Views:
    """The views of a whole row: its columns, and its ranks where they add information."""
    columns = tuple(range(len(fitted.columns)))
    ranks = tuple(range(len(columns), len(columns) + len(fitted.order)))
    return (columns, ranks) if _uses_ranks(fitted) else (columns,)


def has_ranks(fitted: FittedMechanism) -> bool:
    """Whether ranks add information to columns: if the distribution of a column depends on others."""
    return not isinstance(fitted.reference, Independent)


def _uses_ranks(fitted: FittedMechanism) -> bool:
    """Whether ranks add information, or there are several: their distributions are alike, those of columns are not."""
    return has_ranks(fitted) or len(fitted.order) > 1


def features(fitted: FittedMechanism, released: pa.Table, bits: Bits) -> FloatArray:
    """(n, f) features that an attacker computes from released rows: each column, and each rank under the reference."""
    table = tables.read(released)
    numbers = [as_numbers(column.all_cells(table)) for column in fitted.columns]
    return np.stack([*numbers, *(ranks(fitted, table, bits).T if _uses_ranks(fitted) else ())], axis=1)


def ranks(fitted: FittedMechanism, table: Table, bits: Bits) -> FloatArray:
    """(n, width): the rank of each column under the reference, given the columns before it; in the order of V."""
    cells = [column.all_cells(table) for column in fitted.columns]
    v = encode([column.codec for column in fitted.columns], cells, Draws(bits, 0, table.rows))
    in_place = np.empty_like(v)
    in_place[:, fitted.order] = _reference(fitted, table.rows).to_uniform(v[:, fitted.order])
    return in_place


def as_numbers(cells: ColumnValues) -> FloatArray:
    """Nulls below all numbers, not-a-numbers above."""
    values = cells.values.astype(np.float64)
    if cells.missing is None:
        return values
    return np.where(cells.missing == PRESENT, values, np.where(cells.missing == NULL, -np.inf, np.inf))


def _block(known: FloatArray, other: FloatArray) -> FloatArray:
    """The features of both rows and their differences, which are 0 for two missing cells."""
    same = known == other
    difference = np.where(same, 0.0, other) - np.where(same, 0.0, known)
    return np.concatenate([known, other, difference], axis=1)


def _reference(fitted: FittedMechanism, rows: int) -> Any:
    return fitted.reference if fitted.by is None else fitted.reference.at(np.zeros(rows, dtype=np.intp))


def _max_draws(fitted: FittedMechanism, copies: int) -> int:
    """The number of rows of which `copies` fit into memory."""
    width = max(feature for view in views_of(fitted) for feature in view) + 1
    return max(MIN_CALLS * 128, MAX_NUMBERS // (width * copies))


def _sizes(count: int, layout: Layout, calls: int) -> list[int]:
    """The number of rows, or blocks of rows, of each call."""
    if layout == "in another chunk":
        return [ROWS_PER_CHUNK] * max(MIN_CHUNKS, round(count / ROWS_PER_CHUNK))
    calls = max(MIN_BLOCK_CALLS if layout == "beside" else calls, -(-count // ROWS_PER_CALL))
    return [-(-count // calls)] * calls


def _high_ranks(width: int, bits: Bits) -> NDArray[np.bool_]:
    """(c, width): which ranks are high, for all corners of U or some of them, each with its opposite."""
    if 1 << width <= MAX_CORNERS:
        return np.array(list(product([False, True], repeat=width)))
    steps = np.arange(width)
    random = bits.words((MAX_CORNERS // 2 - 2) * width).reshape(-1, width) % np.uint64(2) == 1
    some = np.concatenate([np.stack([steps < 0, steps % 2 == 0]), random])
    return np.concatenate([some, ~some])


def _corners(fitted: FittedMechanism, high: NDArray[np.bool_]) -> tuple[list[ColumnValues], list[str]]:
    """Points of U at these corners (in the order of V) and in its middle, decoded to cells."""
    order = list(fitted.order)
    u = np.concatenate([np.where(high, 1 - CORNER, CORNER), np.full((1, len(order)), 0.5)])
    words = [_common("a high rank" if side else "a low rank" for side in row) for row in high] + ["a middle rank"]
    v = np.empty_like(u)
    v[:, order] = _reference(fitted, len(u)).from_uniform(u[:, order])
    return decode([column.codec for column in fitted.columns], v), words


def _special_cells(column: FittedColumn) -> list[tuple[str, Any, int]]:
    """(words, number, kind of missing): the ends of the type first, then levels, atoms and missing cells."""
    codec, storage = column.codec, column.facts.storage
    inner = getattr(codec, "inner", codec)
    found: list[tuple[str, Any, int]]
    if column.labels is not None:
        found = [("the first level", 0, PRESENT), ("the last level", len(column.labels) - 1, PRESENT)]
        if pt.is_large_string(column.labels.type) or pt.is_string(column.labels.type):
            found.append(("no level", len(column.labels), PRESENT))
    elif storage.family == "boolean":
        found = [("the first level", 0, PRESENT), ("the last level", 1, PRESENT)]
    elif storage.dtype.kind == "f":
        found = [("below all", -OUT_OF_SUPPORT, PRESENT), ("above all", OUT_OF_SUPPORT, PRESENT)]
    else:
        info = np.iinfo(np.int32 if pt.is_date(column.facts.arrow_type) else storage.dtype)
        lowest = info.min + (info.min < 0)  # some libraries use the lowest value for a missing time
        found = [("below all", lowest, PRESENT), ("above all", info.max, PRESENT)]
    levels = getattr(inner, "levels", ())
    picked = np.unique(np.linspace(0, max(0, len(levels) - 1), MAX_LEVELS).astype(np.int64)) if len(levels) else ()
    found += [("a level", levels[place], PRESENT) for place in picked]
    if isinstance(inner, RealCodec):
        found += [("an atom", atom / inner.scale, PRESENT) for atom in inner.line.atoms[:MAX_LEVELS]]
    if column.facts.nullable:
        found.append(("null", 0, NULL))
        if pt.is_floating(column.facts.arrow_type):
            found.append(("not a number", 0, NAN))
    return found


def _as_arrow(column: FittedColumn, corners: ColumnValues, more: list[tuple[str, Any, int]]) -> pa.Array:
    """Cells of a column as Arrow; labels as a dictionary with one additional label."""
    missing = np.zeros(len(corners), dtype=np.uint8) if corners.missing is None else corners.missing
    dtype = corners.values.dtype
    cells = ColumnValues(
        np.concatenate([corners.values, np.array([dtype.type(value) for _, value, _ in more], dtype=dtype)]),
        np.concatenate([missing, np.array([kind for _, _, kind in more], dtype=np.uint8)]),
    )
    if column.labels is None:
        return cells_to_arrow(cells, None, column.facts.arrow_type)
    indices = pa.array(cells.values.astype(np.int32), mask=cells.missing == NULL)
    labels = column.labels
    if pt.is_large_string(labels.type) or pt.is_string(labels.type):
        labels = pa.array([*labels.to_pylist(), _unused(labels)], labels.type)
    return pa.DictionaryArray.from_arrays(indices, labels)


def _unused(labels: pa.Array) -> str:
    taken, name = set(labels.to_pylist()), "?"
    while name in taken:
        name += "?"
    return name


def _common(words: Any) -> str:
    """The descriptions of all columns, once if they agree."""
    each = list(words)
    return each[0] if len(set(each)) == 1 else ", ".join(each)
