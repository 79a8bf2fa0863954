"""Columns in order: the upper one is learned and released as its difference from the lower one, which is not negative.

Differences of private cells are taken row by row before anything is learned, and added to released cells afterwards.
Where the lower cell is missing, so is the upper one. In strict order, a difference is at least one step: the declared
one, a tick of times, 1 of whole numbers, and of reals the last decimal that is known, or the next number. Where the
type has no value above the lower cell, the upper one is missing; if it cannot be, the lower cell makes room.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from dipriv._base.arrays import Mask
from dipriv._base.columns import ColumnValues, Storage, cast
from dipriv._rules import Order
from dipriv._tables.arrow import storage_of, times_of, value_range
from dipriv._tables.frames import Column, Table
from dipriv.codecs.calendar import bounds_in_ticks
from dipriv.codecs.temporal import ticks_in
from dipriv.references import Exclusion, Region
from dipriv.release.rules.cells import Part, Parts, Say, may_be_missing, with_missing
from dipriv.release.rules.formulas import EXACT, on_steps
from dipriv.schema import Categorical, Continuous, Datetime, Discrete, Kind, Mixed


@dataclass(frozen=True, eq=False)
class OrderedColumn:
    """An order, with its two columns."""

    rule: Order
    column: Column
    lower: Column
    kind: Kind | None

    def check(self, columns: Mapping[str, Column], say: Say) -> None:
        lower, upper = self.lower, self.column
        families = ("integer", "real", "temporal")
        if lower.storage.family not in families or upper.storage.family not in families:
            return say(
                f"columns {lower.name!r} and {upper.name!r} hold {lower.storage.label} and {upper.storage.label}",
                "Order columns of numbers, dates or times",
            )
        wider = lower.storage.family == "integer" and pt.is_float64(upper.arrow_type)
        if lower.arrow_type != upper.arrow_type and not wider:
            say(
                f"columns {lower.name!r} and {upper.name!r} have the types {lower.storage.label} and "
                f"{upper.storage.label}",
                "Convert both to one type",
            )
        if isinstance(self.kind, Categorical):
            say(f"column {upper.name!r} is declared as labels, which have no order", "Declare it as numbers")
        self._declared_ends()  # refuses bounds of another kind than the column
        if may_be_missing(lower) and not may_be_missing(upper):
            say(
                f"column {lower.name!r} may be missing, but the type of column {upper.name!r} has no missing cells",
                "Convert the column to a type that has",
            )
        return None

    @property
    def learned(self) -> Column:
        """The column of differences, under the name of the upper column."""
        arrow_type = _difference_type(self.column)
        nullable = self.column.nullable or self.lower.nullable or self.lower.storage.family == "real"
        return Column(self.column.name, storage_of(self.column.name, arrow_type), arrow_type, nullable)

    @property
    def learned_kind(self) -> Kind | None:
        """What is declared about differences: the step of the upper column."""
        if isinstance(self.kind, Discrete):
            return None if self.kind.step is None else Discrete(step=self.kind.step)
        if isinstance(self.kind, Continuous | Mixed) and self.learned.storage.family == "real":
            return Continuous(lower=0.0)
        if isinstance(self.kind, Datetime) and self.learned.storage.family == "temporal":
            return Datetime(self.kind.resolution)
        return None

    @property
    def exclusion(self) -> Exclusion:
        """Where the lower cell is missing, no difference is there."""
        missing = Region(self.lower.name, "none", missing=True)
        return Exclusion(missing, Region(self.column.name, "all"), is_measured=False)

    @property
    def least(self) -> int | float:
        """The smallest difference; 0 as well in strict order of reals that have no step."""
        storage, kind = self.column.storage, self.kind
        if not self.rule.strict:
            return 0
        if isinstance(kind, Discrete) and kind.step is not None:
            return float(kind.step) if storage.family == "real" else max(1, math.ceil(kind.step))
        if isinstance(kind, Datetime) and kind.resolution is not None and storage.family == "temporal":
            return ticks_in(kind.resolution, storage.tick_ns)
        return 0.0 if storage.family == "real" else 1

    @property
    def least_learned(self) -> int | float:
        """The smallest difference that is learned: those of times may have a coarser step, which is not known yet."""
        return self.least if self.learned.storage.family == "integer" else 0

    def before(self, table: Table) -> pa.Array:
        """The differences of all rows; the smallest one where the order is broken."""
        lower, upper = Part(table.all_cells(self.lower.name)), Part(table.all_cells(self.column.name))
        missing = lower.missing | upper.missing
        difference = np.maximum(_subtracted(upper.cells.values, lower.cells.values), self.least_learned)
        storage = self.learned.storage
        array = pa.array(cast(difference, storage.dtype), mask=missing)
        return array.cast(self.learned.arrow_type)

    def after(self, parts: Parts) -> Part:
        lower, difference = parts[self.lower.name], parts[self.column.name]
        missing = lower.missing | difference.missing
        begin, more = lower.cells.values, np.maximum(difference.cells.values, self.least)
        storage = self.column.storage
        values = _added(begin, more, storage)
        decimals = None
        if storage.family == "real":
            decimals = _finer(lower.decimals, difference.decimals)
            values = on_steps(values, 1, 10**decimals) if decimals is not None else values
        values = cast(self._inside(values), storage.dtype)
        values = np.maximum(values, self._above(begin, decimals) if self.rule.strict else _at_least(begin, storage))
        if self.rule.strict:
            missing = missing | (values <= begin) | (values > self._last)
        return Part(with_missing(values, missing, self.column), None, decimals)

    def with_room(self, lower: Part) -> Part:
        """The lower cells, where the upper ones cannot be missing: none is the last value of the type."""
        values = np.minimum(lower.cells.values, np.array(self._last - self.least).astype(lower.cells.values.dtype))
        return Part(ColumnValues(values, lower.cells.missing), lower.labels, lower.decimals)

    def broken(self, parts: Parts) -> Mask:
        """Where the upper cell is below the lower one, or equal in strict order, or stands beside a missing one."""
        lower, upper = parts[self.lower.name], parts[self.column.name]
        below: Mask = upper.cells.values < lower.cells.values
        equal: Mask = upper.cells.values == lower.cells.values
        return ~upper.missing & (lower.missing | below | (equal & self.rule.strict))

    @property
    def _last(self) -> Any:
        """The largest value of the type."""
        last, dtype = value_range(self.column.arrow_type)[1], self.column.storage.dtype
        if last is None:
            return np.finfo(dtype).max if dtype.kind == "f" else np.iinfo(dtype).max
        return last if dtype.kind == "f" else _within(int(last), dtype)

    def _above(self, lower: NDArray[Any], decimals: int | None) -> NDArray[Any]:
        """The nearest value above each lower cell, by the least difference."""
        storage = self.column.storage
        if storage.family != "real":
            return cast(_added(lower, np.full(len(lower), self.least), storage), storage.dtype)
        step = float(self.least) or (0.0 if decimals is None else 10.0**-decimals)
        further = lower.astype(np.float64) + step
        further = further if decimals is None else on_steps(further, 1, 10**decimals)
        with np.errstate(over="ignore"):
            following = np.nextafter(_at_least(lower, storage), storage.dtype.type(np.inf))
        nearest: NDArray[Any] = np.maximum(cast(further, storage.dtype), following)
        return nearest

    def _inside(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values between the bounds that are declared and that the type has."""
        declared, stored = self._declared_ends(), value_range(self.column.arrow_type)
        lower = max((end for end in (declared[0], stored[0]) if end is not None), default=None)
        upper = min((end for end in (declared[1], stored[1]) if end is not None), default=None)
        if values.dtype.kind != "f":
            lower = None if lower is None else _within(math.ceil(lower), values.dtype)
            upper = None if upper is None else _within(math.floor(upper), values.dtype)
        low = values if lower is None else np.maximum(values, lower)
        return low if upper is None else np.minimum(low, upper)

    def _declared_ends(self) -> tuple[float | None, float | None]:
        """The smallest and the largest value declared; of dates and times, multiples of the declared resolution."""
        if isinstance(self.kind, Continuous | Mixed | Discrete):
            return self.kind.lower, self.kind.upper
        if not isinstance(self.kind, Datetime) or self.column.storage.family != "temporal":
            return None, None
        tick_ns = self.column.storage.tick_ns
        low, high = bounds_in_ticks(self.column.name, self.kind, tick_ns, *times_of(self.column.arrow_type))
        step = 1 if self.kind.resolution is None else ticks_in(self.kind.resolution, tick_ns)
        return None if low is None else -(-low // step) * step, None if high is None else high // step * step


def _within(bound: int, dtype: np.dtype[Any]) -> int:
    """The bound, or the nearest number of the type: the year 9999 has no nanosecond."""
    ends = np.iinfo(dtype)
    return min(max(bound, int(ends.min)), int(ends.max))


def _difference_type(upper: Column) -> pa.DataType:
    arrow_type = upper.arrow_type
    if upper.storage.family == "real":
        return pa.float64()
    if pt.is_timestamp(arrow_type) or pt.is_duration(arrow_type) or pt.is_time(arrow_type):
        return pa.duration(arrow_type.unit)
    return pa.int64()


def _subtracted(upper: NDArray[Any], lower: NDArray[Any]) -> NDArray[Any]:
    """Differences of two columns; whole numbers are exact below 2^62 and saturate beyond."""
    with np.errstate(over="ignore", invalid="ignore"):
        near = upper.astype(np.float64) - lower.astype(np.float64)
        if upper.dtype.kind == "f":
            most = np.finfo(np.float64).max
            return np.clip(near, -most, most)
        exact = upper.astype(np.int64) - lower.astype(np.int64)
    return np.where(np.abs(near) < EXACT, exact, cast(near, np.dtype(np.int64)))


def _added(lower: NDArray[Any], difference: NDArray[Any], storage: Storage) -> NDArray[Any]:
    with np.errstate(over="ignore", invalid="ignore"):
        near = lower.astype(np.float64) + difference.astype(np.float64)
        if storage.family == "real":
            most = np.finfo(np.float64).max
            return np.clip(near, -most, most)
        exact = lower.astype(np.int64) + difference.astype(np.int64)
    if storage.dtype == np.uint64:
        return np.where(np.abs(near) < EXACT, np.maximum(exact, 0).astype(np.uint64), cast(near, storage.dtype))
    return np.where(np.abs(near) < EXACT, exact, cast(near, np.dtype(np.int64)))


def _at_least(lower: NDArray[Any], storage: Storage) -> NDArray[Any]:
    """The lower cell as a number of the upper column's type that is not below it."""
    if lower.dtype.kind != "f" and storage.dtype.kind == "f":
        real = lower.astype(np.float64)
        return np.where(np.abs(real) >= 2.0**53, np.nextafter(real, np.inf), real)
    return lower.astype(storage.dtype)


def _finer(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else max(one, other)
