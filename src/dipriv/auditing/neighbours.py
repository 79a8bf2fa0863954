"""The worlds of an audit: records at the corners of a mechanism, and rows that differ in one of them.

A fitted mechanism is a channel for rows. Copies of one record, released at once, are as many draws of it; two records
are two neighbouring worlds. A *block* is two rows released together, of which the attacker knows the first: it tells
whether the noise of one row says anything about the noise of another.
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

from dipriv._arrays import FloatArray
from dipriv._columns import NAN, NULL, PRESENT, ColumnValues
from dipriv._parallel import FEWEST_ROWS
from dipriv._random.bits import Bits, Draws
from dipriv._tables import frames as tables
from dipriv._tables.arrow import cells_to_arrow
from dipriv._tables.fitted_columns import FittedColumn
from dipriv._tables.frames import Table
from dipriv.auditing.events import Views
from dipriv.codecs import RealCodec
from dipriv.mechanism import decode, encode
from dipriv.references import Independent
from dipriv.release.fitting import FittedMechanism

Layout: TypeAlias = Literal["alone", "beside", "in another chunk", "in another batch"]
BLOCKS: tuple[Layout, ...] = ("beside", "in another chunk", "in another batch")

NEAR = 2.0**-26
"""How near the corners of U are to 0 and 1."""
BEYOND = 2.0**100
"""A number beyond any column's support, but not beyond a short float."""
MOST_LEVELS, MOST_CORNERS, MIXED = 6, 32, 8
MOST_NUMBERS = 1 << 25
"""No array of a pilot has more."""
CALL_ROWS, MANY, VERY_MANY, FEWEST_CHUNKS = 1 << 15, 8, 64, 2
"""Pilots are drawn in many calls with bits of their own, and rows beside each other in very many: bits that are reused
by all rows of a call make one draw of it."""


@dataclass(frozen=True, eq=False)
class Records:
    """Candidate rows as an Arrow table, and words for each that say where it stands, never what it holds."""

    table: pa.Table = field(repr=False)
    words: tuple[str, ...]
    corners: NDArray[np.bool_] = field(repr=False)
    """(c, width): which ranks of the first c records are high, the others being low; in the order of V."""

    def __len__(self) -> int:
        return len(self.words)

    def take(self, rows: NDArray[np.int64]) -> pa.Table:
        return self.table.take(pa.array(rows))

    def opposites(self) -> list[tuple[int, int]]:
        """Couples of corners that differ in every rank; that of all low ranks and all high ones is the first."""
        numbers = {tuple(corner): number for number, corner in enumerate(self.corners.tolist())}
        couples = ((number, numbers.get(tuple(not up for up in corner), -1)) for corner, number in numbers.items())
        return [(one, other) for one, other in couples if one < other]


@dataclass(frozen=True)
class World:
    """One row (a record's number), or a block of two and how the second is placed."""

    rows: tuple[int, ...]
    layout: Layout = "alone"


def records_of(fitted: FittedMechanism, bits: Bits) -> Records:
    """Rows at which a mechanism can tell the most: corners of U brought back to cells, ends of types, rare cells."""
    high = _high_ranks(len(fitted.order), bits)
    corners, words = _corners(fitted, high)
    special = [_special_cells(column, fitted.nulls_have_mass) for column in fitted.columns]
    rows: list[list[tuple[str, Any, int]]] = []
    if len(special) == 1:
        rows += [[one] for one in special[0]]
    else:
        ends = [(cells[0], cells[1]) for cells in special]
        rows += [[end[side] for end in ends] for side in (0, 1)]
        rows += [[end[(number + side) % 2] for number, end in enumerate(ends)] for side in (0, 1)]
        for pick in bits.words(MIXED * len(special)).reshape(MIXED, -1):
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
    fitted: FittedMechanism, records: Records, worlds: Sequence[World], count: int, bits: Bits, calls: int
) -> Iterator[list[FloatArray]]:
    """The features of about `count` independent releases of each of these worlds of one layout, in many calls.

    A block has those of its known row, those of the other, and how these differ. Rows that are released together have
    noise of their own, so each of them (each block of them) is a draw. That is a part of what is claimed: a mechanism
    for which it is wrong is refuted, and rightly.
    """
    layout = worlds[0].layout
    for number, size in enumerate(_sizes(count, layout, calls)):
        here = bits.child(f"call {number}")
        rows = np.array([world.rows for world in worlds])  # one line for each world
        if layout == "in another batch":
            batches = [records.take(np.repeat(column, size)).combine_chunks().to_batches()[0] for column in rows.T]
            released = pa.Table.from_batches(list(fitted.release_batches(batches, (), here)))
        else:
            order = np.tile(rows, (1, size)) if layout == "beside" else np.repeat(rows, size, axis=1)
            released = fitted.release(tables.read(records.take(order.ravel())), (), here)
        seen = features(fitted, released, here.child("look"))
        if layout == "in another batch":
            by_row = seen.reshape(rows.shape[1], len(worlds), size, -1).swapaxes(0, 1)
        elif layout == "beside":
            by_row = seen.reshape(len(worlds), size, rows.shape[1], -1).swapaxes(1, 2)
        else:
            by_row = seen.reshape(len(worlds), rows.shape[1], size, -1)
        yield [one[0] if layout == "alone" else _block(one[0], one[1]) for one in by_row]


def draw_all(
    fitted: FittedMechanism, records: Records, worlds: Sequence[World], count: int, bits: Bits
) -> list[FloatArray]:
    """(calls, n, features) for each of these worlds; fewer releases where rows are very wide."""
    count = min(count, _room(fitted, 3 * len(worlds)))
    return [np.stack(calls) for calls in zip(*draw(fitted, records, worlds, count, bits, MANY), strict=True)]


def draw_records(
    fitted: FittedMechanism, records: Records, numbers: Sequence[int], count: int, bits: Bits
) -> FloatArray:
    """(records, calls, n, features): about `count` releases of each of these records, all of them in each call."""
    count = min(count, _room(fitted, len(numbers)))
    calls = max(MANY, -(-count * len(numbers) // CALL_ROWS))
    each = -(-count // calls)
    table = tables.read(records.take(np.repeat(numbers, each)))
    parts = []
    for number in range(calls):
        here = bits.child(f"call {number}")
        seen = features(fitted, fitted.release(table, (), here), here.child("look"))
        parts.append(seen.reshape(len(numbers), each, -1))
    return np.stack(parts, axis=1)


def views_of(fitted: FittedMechanism) -> Views:
    """Which features are a view of the whole row: its columns, and its ranks where they say more."""
    columns = tuple(range(len(fitted.columns)))
    ranks = tuple(range(len(columns), len(columns) + len(fitted.order)))
    return (columns, ranks) if _looks_at_ranks(fitted) else (columns,)


def has_ranks(fitted: FittedMechanism) -> bool:
    """Whether ranks say what the columns by themselves do not: where a column's law depends on others."""
    return not isinstance(fitted.reference, Independent)


def _looks_at_ranks(fitted: FittedMechanism) -> bool:
    """Ranks say more by themselves, or there are several, which are alike where columns are not."""
    return has_ranks(fitted) or len(fitted.order) > 1


def features(fitted: FittedMechanism, released: pa.Table, bits: Bits) -> FloatArray:
    """(n, f) numbers that an attacker computes from released rows: each column, and each rank by the reference."""
    table = tables.read(released)
    numbers = [as_numbers(column.all_cells(table)) for column in fitted.columns]
    return np.stack([*numbers, *(ranks(fitted, table, bits).T if _looks_at_ranks(fitted) else ())], axis=1)


def ranks(fitted: FittedMechanism, table: Table, bits: Bits) -> FloatArray:
    """(n, width): where each column stands by the reference, given the columns before it; in the order of V."""
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
    """The features of both rows, and the other less the known one: 0 for two missing cells."""
    same = known == other
    difference = np.where(same, 0.0, other) - np.where(same, 0.0, known)
    return np.concatenate([known, other, difference], axis=1)


def _reference(fitted: FittedMechanism, rows: int) -> Any:
    return fitted.reference if fitted.by is None else fitted.reference.at(np.zeros(rows, dtype=np.intp))


def _room(fitted: FittedMechanism, times: int) -> int:
    """How many rows can be held at a time, so many times."""
    width = max(feature for view in views_of(fitted) for feature in view) + 1
    return max(MANY * 128, MOST_NUMBERS // (width * times))


def _sizes(count: int, layout: Layout, calls: int) -> list[int]:
    """How many rows, or blocks of rows, each call has."""
    if layout == "in another chunk":
        return [FEWEST_ROWS] * max(FEWEST_CHUNKS, round(count / FEWEST_ROWS))
    calls = max(VERY_MANY if layout == "beside" else calls, -(-count // CALL_ROWS))
    return [-(-count // calls)] * calls


def _high_ranks(width: int, bits: Bits) -> NDArray[np.bool_]:
    """(c, width): corners of U, all of them or some, by which of their ranks are high; the opposite of each is one."""
    if 1 << width <= MOST_CORNERS:
        return np.array(list(product([False, True], repeat=width)))
    steps = np.arange(width)
    random = bits.words((MOST_CORNERS // 2 - 2) * width).reshape(-1, width) % np.uint64(2) == 1
    some = np.concatenate([np.stack([steps < 0, steps % 2 == 0]), random])
    return np.concatenate([some, ~some])


def _corners(fitted: FittedMechanism, high: NDArray[np.bool_]) -> tuple[list[ColumnValues], list[str]]:
    """Points of U near these corners (in the order of V) and its middle, as cells."""
    order = list(fitted.order)
    u = np.concatenate([np.where(high, 1 - NEAR, NEAR), np.full((1, len(order)), 0.5)])
    words = [_common("a high rank" if side else "a low rank" for side in row) for row in high] + ["a middle rank"]
    v = np.empty_like(u)
    v[:, order] = _reference(fitted, len(u)).from_uniform(u[:, order])
    return decode([column.codec for column in fitted.columns], v), words


def _special_cells(column: FittedColumn, nulls: bool) -> list[tuple[str, Any, int]]:
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
        found = [("below all", -BEYOND, PRESENT), ("above all", BEYOND, PRESENT)]
    else:
        info = np.iinfo(np.int32 if pt.is_date(column.facts.arrow_type) else storage.dtype)
        lowest = info.min + (info.min < 0)  # the lowest of all is how some libraries write a missing time
        found = [("below all", lowest, PRESENT), ("above all", info.max, PRESENT)]
    levels = getattr(inner, "levels", ())
    picked = np.unique(np.linspace(0, max(0, len(levels) - 1), MOST_LEVELS).astype(np.int64)) if len(levels) else ()
    found += [("a level", levels[place], PRESENT) for place in picked]
    if isinstance(inner, RealCodec):
        found += [("an atom", atom / inner.scale, PRESENT) for atom in inner.line.atoms[:MOST_LEVELS]]
    if nulls and column.facts.nullable:
        found.append(("null", 0, NULL))
        if pt.is_floating(column.facts.arrow_type):
            found.append(("not a number", 0, NAN))
    return found


def _as_arrow(column: FittedColumn, corners: ColumnValues, more: list[tuple[str, Any, int]]) -> pa.Array:
    """Cells of a column as Arrow, labels as a dictionary with one label that is not among them."""
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
    """Words of all columns, said once where they agree."""
    each = list(words)
    return each[0] if len(set(each)) == 1 else ", ".join(each)
