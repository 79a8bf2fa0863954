"""Two tables -> their comparable columns: numbers, times or codes of labels on both sides, rows paired if known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray
from dipriv._base.columns import PRESENT, ColumnValues, Storage
from dipriv._tables.arrow import distinct_labels
from dipriv._tables.fitted_columns import holds_infinities
from dipriv._tables.frames import Column, Table
from dipriv.codecs.fit import infer_kind
from dipriv.errors import DiprivError, InputError
from dipriv.report.facts import MAX_CELLS, MAX_ROWS, MIN_ROWS_COMPARED, Clock, Scale
from dipriv.schema import Categorical, Kind, Schema, Weight

Rows = NDArray[np.intp]


@dataclass(frozen=True, repr=False, eq=False)
class Values:
    """Some rows of a column: numbers, seconds or codes of labels, not-a-number where a cell is missing."""

    all: FloatArray

    @property
    def present(self) -> FloatArray:
        return self.all[~np.isnan(self.all)]

    @property
    def nulls(self) -> float:
        """The share of missing cells."""
        return float(np.mean(np.isnan(self.all)))


@dataclass(frozen=True, repr=False, eq=False)
class Pair:
    """A column of both tables. `mates` are the originals of the released rows, row by row, or None if not known."""

    name: str
    kind: Kind | None
    scale: Scale
    clock: Clock | None
    labels: tuple[str, ...]
    before: Values
    after: Values
    mates: Values | None

    @property
    def unchanged(self) -> bool:
        """Whether every released row has the value of its original row, although there is more than one value."""
        if self.mates is None or not np.array_equal(self.mates.all, self.after.all, equal_nan=True):
            return False
        return len(np.unique(self.after.all)) > 1

    @property
    def step(self) -> float | None:
        """The distance of neighbouring values, where the kind declares one."""
        step = getattr(self.kind, "step", None)
        return None if step is None else float(step)


@dataclass(frozen=True, repr=False, eq=False)
class Sampled:
    """Which rows of both tables are looked at, and which original row each of the released ones came from."""

    before: Rows
    after: Rows
    mates: Rows | None


def sample(original: Table, released: Table, rows: Any, rng: np.random.Generator) -> Sampled:
    """At most `MAX_ROWS` of each table, fewer if it is wide; a released row keeps its original row."""
    origin = _origin(original, released, rows)
    most = min(MAX_ROWS, max(MIN_ROWS_COMPARED, MAX_CELLS // max(1, len(original.names))))
    before, after = (_some(table.rows, most, rng) for table in (original, released))
    return Sampled(before, after, None if origin is None else origin[after])


def pair_columns(
    original: Table, released: Table, sampled: Sampled, schema: Schema, new_keys: Sequence[str] = ()
) -> tuple[list[Pair], list[tuple[str, str]]]:
    """The columns that both tables have with types that can be compared, and the others with the reason."""
    pairs: list[Pair] = []
    left_out: list[tuple[str, str]] = []
    for name in original.names:
        if name not in released.names:
            left_out.append((name, "only in the original"))
            continue
        if name in new_keys:
            left_out.append((name, "new keys in the release"))
            continue
        if name in schema.left_out:
            left_out.append((name, f"declared as {schema.meanings[name].name}, and made anew or passed through"))
            continue
        try:
            found = _pair(name, original, released, sampled, schema.get(name))
        except DiprivError as error:  # its fault names columns and types, never a cell
            left_out.append((name, error.fault))
            continue
        if isinstance(found, str):
            left_out.append((name, found))
        else:
            pairs.append(found)
    left_out.extend((name, "only in the release") for name in released.names if name not in original.names)
    return pairs, left_out


def _some(rows: int, most: int, rng: np.random.Generator) -> Rows:
    if rows <= most:
        return np.arange(rows)
    return np.sort(rng.choice(rows, most, replace=False))


def _origin(original: Table, released: Table, rows: Any) -> Rows | None:
    if rows is None:
        return np.arange(original.rows) if original.rows == released.rows else None
    origin = np.asarray(rows)
    if origin.ndim != 1 or origin.dtype.kind not in "iu" or len(origin) != released.rows:
        raise InputError(
            f"rows has shape {origin.shape} and type {origin.dtype}; the release has {released.rows} rows.",
            "Give one row number of the original for each released row: release.secrets.row_positions.",
        )
    if len(origin) and not (origin.min() >= 0 and origin.max() < original.rows):
        raise InputError(
            f"rows has numbers outside the original's {original.rows} rows.", "Count the original's rows from 0."
        )
    return origin.astype(np.intp)


def _pair(name: str, original: Table, released: Table, at: Sampled, declared: Kind | None) -> Pair | str:
    here, there = original.column(name), released.column(name)
    scale, clock = _scale(here)
    if (scale, clock) != _scale(there):
        return f"{here.storage.label} in the original, {there.storage.label} in the release"
    if where := [
        said for said, table in (("original", original), ("release", released)) if holds_infinities(name, table)
    ]:
        return f"infinite numbers in the {' and the '.join(where)}"
    codes = None
    labels: tuple[str, ...] = ("False", "True") if scale == "label" else ()
    if here.storage.family == "label":
        codes = _common_labels(original, released, name, declared)
        labels = tuple(str(label) for label in codes.to_pylist())
    cells = original.all_cells(name, codes)
    before, after = cells.take(at.before), released.all_cells(name, codes).take(at.after)
    kind = declared or (infer_kind(here.storage, before) if len(before.present) else None)
    scaled = _scaled_to_total(cells, kind) if scale == "number" else 1.0
    if clock == "timestamp" and getattr(kind, "resolution", None) == "day":
        clock = "date"
    return Pair(
        name,
        kind,
        scale,
        clock,
        labels,
        Values(scaled * _values(before, here.storage).all),
        _values(after, there.storage),
        None if at.mates is None else Values(scaled * _values(cells.take(at.mates), here.storage).all),
    )


def _scaled_to_total(cells: ColumnValues, kind: Kind | None) -> float:
    """What weights are multiplied with to have their declared total, as released ones do; 1 for other columns."""
    if not isinstance(kind, Weight) or kind.total is None:
        return 1.0
    own = float(np.sum(cells.present, dtype=np.float64))
    return kind.total / own if own > 0 else 1.0


def _scale(column: Column) -> tuple[Scale, Clock | None]:
    family, kind = column.storage.family, column.arrow_type
    if family == "temporal":
        if pt.is_date(kind):
            return "time", "date"
        return "time", "timestamp" if pt.is_timestamp(kind) else "time of day" if pt.is_time(kind) else "duration"
    return ("number", None) if family in ("integer", "real") else ("label", None)


def _values(cells: ColumnValues, storage: Storage) -> Values:
    """Numbers unchanged; times in seconds, independent of the unit of their table."""
    numbers = cells.values.astype(np.float64)
    if storage.family == "temporal":
        numbers = numbers * (storage.tick_ns / 1e9)
    if cells.missing is not None:
        numbers = np.where(cells.missing == PRESENT, numbers, np.nan)
    return Values(numbers)


def _common_labels(original: Table, released: Table, name: str, declared: Kind | None) -> pa.Array:
    """The labels of both tables: the declared ones in their order, the others sorted."""
    one, two = (distinct_labels(table.array(name)) for table in (original, released))
    kind = one.type if one.type == two.type else pa.large_string()
    met = distinct_labels(pa.concat_arrays([one.cast(kind), two.cast(kind)]))
    order = declared.levels if isinstance(declared, Categorical) else None
    if order is None:
        return met
    rank = {level: place for place, level in enumerate(order)}
    places = [rank.get(label, len(rank)) for label in met.to_pylist()]
    return met.take(pa.array(np.argsort(places, kind="stable")))
