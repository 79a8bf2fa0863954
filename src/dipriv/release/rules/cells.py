"""What rules work on: columns of numbers with their labels, and constants of rules as such numbers."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from dipriv._base.arrays import Mask
from dipriv._base.columns import NAN, NULL, PRESENT, ColumnValues
from dipriv._rules import Constant
from dipriv._tables.any_values import array_of_any
from dipriv._tables.arrow import cells_from_arrow, distinct_labels, place_of_others, room_for_labels
from dipriv._tables.frames import Column, Table, contains_text
from dipriv.schema import Categorical, Discrete, Kind, lattice


@dataclass(frozen=True, eq=False)
class Part:
    """One column of some rows: its cells, the labels that their numbers stand for, and how many decimals they have."""

    cells: ColumnValues
    labels: pa.Array | None = field(repr=False, default=None)
    decimals: int | None = None
    """None where that is not known."""

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def missing(self) -> Mask:
        """Marks the cells that are missing."""
        kinds = self.cells.missing
        absent = np.zeros(len(self), dtype=bool) if kinds is None else kinds != PRESENT
        if self.labels is not None and self.labels.null_count:  # a label that is null stands for rare ones
            null = np.append(self.labels.is_null().to_numpy(zero_copy_only=False), False)
            absent = absent | null[np.where(absent, -1, self.cells.values)]
        return absent

    def texts(self) -> pa.Array:
        """Labels written out, null where the cell is missing."""
        assert self.labels is not None  # noqa: S101
        codes = pa.array(self.cells.values.astype(np.int64), mask=self.missing | (self.cells.values < 0))
        return self.labels.take(codes)


Parts: TypeAlias = Mapping[str, Part]
"""Columns of the same rows, by name."""
Say: TypeAlias = Callable[[str, str], None]
"""Takes a problem: what is wrong, and what to do."""


def part_of(table: Table, column: Column) -> Part:
    """A column of all rows of a table, selected or not, as it is."""
    if column.storage.family != "label":
        return Part(table.all_cells(column.name))
    labels = distinct_labels(table.whole_array(column.name))
    return Part(table.all_cells(column.name, labels), labels)


def may_be_missing(column: Column) -> bool:
    """Whether the type has cells that are missing, not-a-number included."""
    return column.nullable or column.storage.family == "real"


def with_missing(values: NDArray[Any], missing: Mask, column: Column) -> ColumnValues:
    """Cells of a column, missing in the way that its type has."""
    if not missing.any():
        return ColumnValues(values)
    return ColumnValues(values, np.where(missing, NULL if column.nullable else NAN, PRESENT).astype(np.uint8))


def decimals_of(column: Column, kind: Kind | None) -> int | None:
    """How many decimals a column's values have, by its type and by what it was taken as."""
    if column.storage.family in ("integer", "boolean"):
        return 0
    if isinstance(kind, Discrete) and kind.step is not None:
        whole_and_unit = lattice(kind.step)
        return None if whole_and_unit is None else round(math.log10(whole_and_unit[1]))
    levels = kind.levels if isinstance(kind, Discrete | Categorical) else None
    if levels is None or column.storage.family != "real":
        return None
    units = [lattice(abs(level)) if level else (0, 1) for level in levels if isinstance(level, int | float)]
    return None if None in units else round(math.log10(max(unit[1] for unit in units if unit)))


def stored(column: Column, value: Constant) -> int | float | None:
    """A constant as the number that a column of numbers, booleans or times has for it; None where there is none."""
    family, dtype = column.storage.family, column.storage.dtype
    if family == "boolean":
        return int(value) if isinstance(value, bool) else None
    if isinstance(value, bool):
        return None
    if family in ("integer", "real"):
        if isinstance(value, str):
            return None
        if family == "real":
            return float(value)
        info = np.iinfo(dtype)
        return int(value) if value == int(value) and info.min <= value <= info.max else None
    if not isinstance(value, str):
        return None
    cells = cells_from_arrow(array_of_any([_time(value, column.arrow_type)], column.arrow_type), None)
    return None if cells.missing is not None and cells.missing[0] != PRESENT else int(cells.values[0])


def check_list(column: Column, labels: pa.Array, say: Say) -> None:
    """Refuse a list of labels that the type of a column has no room for."""
    if len(labels) > room_for_labels(column.arrow_type):
        say(
            f"it lists {len(labels)} labels of column {column.name!r}, whose type {column.arrow_type} has room for "
            f"{room_for_labels(column.arrow_type)}",
            "Cast it to a dictionary with int32 indices, or to text",
        )


def label_array(column: Column, values: Sequence[Constant]) -> pa.Array | None:
    """Constants as labels of a column; None where one cannot be."""
    if contains_text(column):
        return pa.array(values, pa.large_string()) if all(isinstance(value, str) for value in values) else None
    try:
        labels = pa.array(values, column.arrow_type.value_type)
        return labels if labels.to_pylist() == list(values) else None
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None


def numbers_of(labels: pa.Array, wanted: pa.Array) -> NDArray[np.int64]:
    """Where some labels stand among others; -1 for those that are not there."""
    found = pc.index_in(wanted.cast(labels.type), value_set=labels)
    numbers: NDArray[np.int64] = found.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def with_labels(part: Part, wanted: pa.Array, room: int | None = None) -> Part:
    """The same cells, with these labels in the list, too.

    Where a type has no room for all others, the last ones are released as the one that stands for those not listed.
    """
    assert part.labels is not None  # noqa: S101
    new = wanted.cast(part.labels.type).filter(pa.array(numbers_of(part.labels, wanted) < 0))
    labels = pa.concat_arrays([part.labels, new]) if len(new) else part.labels
    if room is None or len(labels) - labels.null_count <= room:
        return Part(part.cells, labels, part.decimals)
    others = place_of_others(labels)
    kept = labels.is_null().to_numpy(zero_copy_only=False)
    kept[[others, *numbers_of(labels, wanted)]] = True
    kept[np.flatnonzero(~kept)[: room + labels.null_count - np.count_nonzero(kept)]] = True
    places = np.cumsum(kept) - 1
    places = np.where(kept, places, places[others]).astype(part.cells.values.dtype)
    cells = ColumnValues(places[part.cells.values], part.cells.missing)
    return Part(cells, labels.filter(pa.array(kept)), part.decimals)


def _time(text: str, arrow_type: pa.DataType) -> Any:
    try:
        if pt.is_time(arrow_type):
            return dt.time.fromisoformat(text)
        if pt.is_date(arrow_type):
            return dt.date.fromisoformat(text)
        return dt.datetime.fromisoformat(text) if pt.is_timestamp(arrow_type) else None
    except ValueError:
        return None
