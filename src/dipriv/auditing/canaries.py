"""Canaries: rows of a table that are replaced, each by one of two records chosen by a fair coin.

*Extreme* canaries share the same two records at opposite ends of each column: the rows released in their places reveal
the coins as well as the noise on single rows allows. *Distinct* canaries have two records each, with numbers that no
other row has: if one of these numbers occurs anywhere in a release, released rows were learned from. Only privatized
columns are changed, and no label is new, because labels may be public.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray
from dipriv._base.columns import PRESENT, ColumnValues, Storage
from dipriv._tables import frames as tables
from dipriv._tables.arrow import cells_to_arrow, distinct_labels
from dipriv._tables.frames import Table
from dipriv.codecs.fit import infer_kind
from dipriv.codecs.temporal import ticks_in
from dipriv.schema import Continuous, Datetime, Discrete, Kind, Mixed

Places = NDArray[np.intp]
Numbers = NDArray[Any]

GAP_SHARE = 2.0**-20
"""A new number lies above an existing one by this share of the gap to the next."""
MAX_NEW = 120
"""New values at most, where a column has few levels or no free steps."""
ROWS_PER_NEW = 25
"""There, at most one new value for this many rows."""
COPIES = (1, 2)
"""Some canaries share their numbers with this many other rows: a repeated number may be taken for an atom."""
ROWS_PER_COPY = 1000
"""Others share their numbers with one in this many rows."""
MAX_DECIMALS = 9
"""Steps of reals are rounded to this many decimals."""


@dataclass(frozen=True, eq=False)
class Canaries:
    """The positions of canaries, and the cells that their two records consist of.

    `sources` are indices into each column extended by its `new` cells. `fixed` rows are replaced independently of the
    coins. `numbers` are the new numbers of both records, NaN for a canary without one in a column.
    """

    positions: Places = field(repr=False)
    sources: Mapping[str, Places] = field(repr=False)
    new: Mapping[str, pa.Array] = field(repr=False, default_factory=dict)
    fixed: Places = field(repr=False, default_factory=lambda: np.zeros(0, dtype=np.intp))
    fixed_sources: Mapping[str, Places] = field(repr=False, default_factory=dict)
    numbers: Mapping[str, FloatArray] = field(repr=False, default_factory=dict)

    def __len__(self) -> int:
        return len(self.positions)

    def plant(self, table: pa.Table, coins: NDArray[np.bool_]) -> pa.Table:
        """The table with each canary replaced by the record that its coin chooses."""
        which = coins.astype(np.intp), np.arange(len(self))
        for name, sources in self.sources.items():
            index = np.arange(table.num_rows)
            index[self.positions] = sources[which]
            index[self.fixed] = self.fixed_sources.get(name, self.fixed)
            column, place = table.column(name), table.schema.get_field_index(name)
            chunks = [*column.chunks, self.new[name]] if name in self.new else column.chunks
            longer = pa.chunked_array(chunks, column.type)
            table = table.set_column(place, table.schema.field(place), longer.take(pa.array(index)))
        return table


@dataclass(frozen=True, eq=False)
class RecordPair:
    """Two records; each column's cells are taken from two rows of the table."""

    words: str
    rows: Mapping[str, tuple[int, int]] = field(repr=False)


def record_pairs(table: pa.Table, names: Sequence[str], rng: np.random.Generator) -> list[RecordPair]:
    """Pairs of the lowest and highest cells, all low against all high and mixed, and of nulls where there are some."""
    whole = tables.read(table)
    ends = {name: ends_of(whole, name).tolist() for name in names}
    missing = {name: row for name in names if (row := _missing(whole, name)) is not None}
    width = len(names)
    sides = {tuple([0] * width), tuple(number % 2 for number in range(width))}
    if width > 2:
        sides |= {tuple(side) for side in rng.integers(0, 2, (2, width)).tolist()}
    found = [
        RecordPair(
            "lowest and highest cells",
            {name: (ends[name][side], ends[name][1 - side]) for name, side in zip(names, low, strict=True)},
        )
        for low in sorted(sides)
    ]
    for side in (0, 1) if missing else ():
        rows = {name: (missing.get(name, ends[name][1 - side]), ends[name][side]) for name in names}
        found.append(RecordPair("nulls, lowest and highest cells", rows))
    return found


def extremes(positions: Places, pairs: Sequence[RecordPair]) -> Canaries:
    """Canaries at these positions that use the pairs in turn."""
    turn = np.arange(len(positions)) % len(pairs)
    names = pairs[0].rows
    return Canaries(positions, {name: np.array([pair.rows[name] for pair in pairs]).T[:, turn] for name in names})


def distinct(
    table: pa.Table, names: Sequence[str], count: int, rng: np.random.Generator, *, crowded: bool = True
) -> Canaries | None:
    """At most `count` canaries with numbers of their own; None where no column has room for any.

    With `crowded`, some get new values in columns of few levels or beyond the largest value, which a schema may refuse.
    """
    whole, rows = tables.read(table), table.num_rows
    most = min(MAX_NEW, rows // ROWS_PER_NEW) if crowded else 0
    smooth = {name: free for name in names if len(free := _near_others(whole, name)) > 1}
    others = {name: free for name in names if name not in smooth and len(free := _steps(whole, name, rng, most)) > 1}
    values = {name: rng.permutation(free)[: 2 * count] for name, free in (smooth | others).items()}
    count = min(count, max((len(free) // 2 for free in values.values()), default=0))
    if not count:
        return None
    order = rng.permutation(rows).astype(np.intp)
    repeated = np.repeat(np.arange(count), _copies(count, rows))
    fixed = order[count : count + 2 * len(repeated)]
    sources: dict[str, Places] = {}
    new: dict[str, pa.Array] = {}
    numbers: dict[str, FloatArray] = {}
    for name in names:
        sources[name] = np.tile(rng.integers(0, rows, count), (2, 1))
        if name in values:
            own = min(count, len(values[name]) // 2)
            pairs = values[name][: 2 * own].reshape(2, own)
            new[name] = cells_to_arrow(ColumnValues(pairs.ravel()), None, table.schema.field(name).type)
            sources[name][:, :own] = rows + np.arange(2 * own).reshape(2, own)
            numbers[name] = np.full((2, count), np.nan)
            numbers[name][:, :own] = pairs
    return Canaries(
        order[:count], sources, new, fixed, {name: sources[name][:, repeated].ravel() for name in smooth}, numbers
    )


def _copies(count: int, rows: int) -> NDArray[np.int64]:
    """How many other rows repeat each canary's two records: none for half of the canaries."""
    kinds = sorted({*COPIES, max(1, -(-rows // ROWS_PER_COPY) - 1)})
    copies = np.zeros(count, dtype=np.int64)
    for place, each in enumerate(kinds):
        room = rows // 4 // len(kinds) // (2 * each)
        some = np.arange(count)[1 + 2 * place :: 2 * len(kinds)]
        copies[some[:room]] = each
    return copies


def ends_of(table: Table, name: str) -> Places:
    """The rows of the lowest and the highest cell."""
    order = _in_order(table, name)
    return order[[0, -1]] if len(order) else np.zeros(2, dtype=np.intp)


def lower_half(table: Table, name: str) -> Places:
    """The rows of the lower half of all cells."""
    order = _in_order(table, name)
    return order[: -(-len(order) // 2)] if len(order) else np.zeros(1, dtype=np.intp)


def _in_order(table: Table, name: str) -> Places:
    """The rows with a value, sorted by it."""
    cells = _as_cells(table, name)
    there = np.arange(len(cells)) if cells.missing is None else np.flatnonzero(cells.missing == PRESENT)
    return np.asarray(there[np.argsort(cells.values[there], kind="stable")])


def _missing(table: Table, name: str) -> int | None:
    """A row without a value."""
    missing = _as_cells(table, name).missing
    return None if missing is None or not missing.any() else int(np.argmax(missing != PRESENT))


def _as_cells(table: Table, name: str) -> ColumnValues:
    """A column as numbers, labels by their places in sorted order."""
    is_label = table.column(name).storage.family == "label"
    return table.cells(name, distinct_labels(table.array(name)) if is_label else None)


def _near_others(table: Table, name: str) -> Numbers:
    """For a column of reals: a number just above each of its numbers."""
    storage = table.column(name).storage
    if storage.family != "real" or not isinstance(infer_kind(storage, table.cells(name)), Continuous | Mixed):
        return np.zeros(0)
    values = np.unique(table.cells(name).present)
    low, high = values[:-1], values[1:]
    near = np.maximum(low + (0.5 * high - 0.5 * low) * (2 * GAP_SHARE), np.nextafter(low, high)).astype(values.dtype)
    return np.asarray(near[near < high])


def _steps(table: Table, name: str, rng: np.random.Generator, most: int) -> Numbers:
    """For a column of steps or levels: free steps between its values, or up to `most` between and beyond them."""
    storage = table.column(name).storage
    cells = table.cells(name) if storage.family in ("integer", "real", "temporal") else ColumnValues(np.zeros(0))
    values = np.unique(cells.present)
    if len(values) < 2:
        return values[:0]
    step = _step_of(infer_kind(storage, cells), storage)
    between = values[:0] if step is None else _stepped(values[:-1], values[1:], step)
    if len(between) >= MAX_NEW:
        return between
    fine = step or (1 if values.dtype.kind in "iu" else float(np.diff(values).min()) / 2)
    between = rng.permutation(_stepped(values[:-1], values[1:], fine))[: most // 2]
    top = np.full(most - len(between), values[-1])
    return np.concatenate([between, _stepped(top, None, fine, 1 + np.arange(len(top)))])


def _step_of(kind: Kind, storage: Storage) -> int | float | None:
    """The step of a column of steps; None for a column of few levels."""
    if isinstance(kind, Datetime) and kind.resolution is not None:
        return ticks_in(kind.resolution, storage.tick_ns)
    return kind.step if isinstance(kind, Discrete) else None


def _stepped(values: Numbers, below: Numbers | None, step: int | float, steps: Any = 1) -> Numbers:
    """Values `steps` steps above each value, where the type can hold them and they are `below` the next value."""
    if values.dtype.kind == "f":
        above = np.round(values.astype(np.float64) + step * steps, MAX_DECIMALS).astype(values.dtype)
    else:
        info = np.iinfo(values.dtype)
        wide = [int(value) + int(step) * int(more) for value, more in np.broadcast(values, steps)]
        above = np.array([min(value, int(info.max)) for value in wide], dtype=values.dtype)
    free = above > values if below is None else (above > values) & (above < below)
    return np.unique(above[free])
