"""Each column's labels, kind and codec: from its type, the schema and the reference rows, never from released rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from dipriv._base.columns import NULL, ColumnValues, cast
from dipriv._base.invariants import require
from dipriv._base.registry import serializable
from dipriv._tables.any_values import as_labels
from dipriv._tables.arrow import OTHER, distinct_labels, meaning, place_of_others, room_for_labels, times_of
from dipriv._tables.frames import Column, Table, contains_text
from dipriv.codecs import Codec
from dipriv.codecs.calendar import bounds_in_ticks
from dipriv.codecs.fit import fit_codec, infer_kind
from dipriv.errors import InputError, ReferenceDataError, SchemaError
from dipriv.schema import Categorical, Datetime, Kind, Schema

MIN_REFERENCE_ROWS = 2


@serializable()
@dataclass(frozen=True, eq=False)
class FittedColumn:
    """A column that is ready to be encoded: its type's facts, what it was taken as, its labels and its codec."""

    facts: Column
    kind: Kind
    labels: pa.Array | None = field(repr=False)
    codec: Codec = field(repr=False)

    def check_invariants(self) -> None:
        """The codec gives values of the column's type, and there are labels if and only if it gives their numbers."""
        storage = self.facts.storage
        require(self.codec.dtype == storage.dtype, self, "the codec gives values of the column's type")
        require((storage.family == "label") == (self.labels is not None), self, "a column of labels has labels")
        require(self.labels is None or self._are_labels(self.labels), self, "labels are distinct and of the type")

    def _are_labels(self, labels: pa.Array) -> bool:
        """Labels of the column's type, all different, and the codec gives no number beyond them."""
        arrow_type, levels = self.facts.arrow_type, getattr(self.codec, "levels", None)
        if levels is None or labels[1:].null_count:
            return False
        is_text = meaning(arrow_type) == "text"
        if not (meaning(labels.type) == "text" if is_text else labels.type == arrow_type.value_type):
            return False
        room = room_for_labels(arrow_type) + (place_of_others(labels) == 0)
        distinct = len(labels.unique()) == len(labels) <= room
        return distinct and int(levels[0]) >= 0 and int(levels[-1]) < max(1, len(labels))

    @property
    def name(self) -> str:
        return self.facts.name

    def cells(self, table: Table) -> ColumnValues:
        """This column of a table's selected rows, as numbers of this column's width."""
        return self._narrow(table.cells(self.name, self.labels))

    def all_cells(self, table: Table) -> ColumnValues:
        """The same for all rows of the table, selected or not."""
        return self._narrow(table.all_cells(self.name, self.labels))

    def _narrow(self, cells: ColumnValues) -> ColumnValues:
        if cells.values.dtype.kind == "f" and self.facts.storage.dtype.kind != "f":
            return cells  # between whole numbers: its place is the codec's to find
        return ColumnValues(cast(cells.values, self.facts.storage.dtype), cells.missing)

    def as_learned(self, array: pa.Array) -> pa.Array:
        """Converted cells, where text is the label that means the same: a type makes 1 of "01"."""
        is_text = self.labels is not None and meaning(self.facts.arrow_type) == "text"
        return as_labels(array, self.labels) if is_text else array

    def check(self, table: Table) -> None:
        """Rows to release must have the column with the same type and room for nulls."""
        found = check_same_column(self.facts, table)
        if NULL in self.codec.missing and not found.nullable:
            raise ReferenceDataError(
                f"column {self.name!r} has nulls in the reference rows, but its type {found.storage.label} holds none.",
                "Convert the column to a nullable type, or fill the nulls of the reference rows.",
            )


def check_same_column(column: Column, table: Table) -> Column:
    """The column of a table that has the same name and type as the reference's; refuses a table without it."""
    if column.name not in table.names:
        raise ReferenceDataError(
            f"column {column.name!r} of the reference is not in the table.", "Release tables with the same columns."
        )
    found = table.column(column.name)
    _check_same_type(column, found)
    return found


def fit_columns(
    columns: Sequence[Column], schema: Schema, kinds_from_distribution: Mapping[str, Kind], reference: Table | None
) -> list[FittedColumn]:
    """Fit every column: by the kind that its given distribution determines, or else on the reference rows, if any."""
    for name in kinds_from_distribution.keys() & schema.keys():
        if schema[name] != kinds_from_distribution[name]:
            raise SchemaError(
                f"column {name!r} is declared {schema[name]!r}, but its distribution makes it "
                f"{kinds_from_distribution[name]!r}.",
                "Leave it out of the schema.",
            )
    if reference is not None:
        _check_reference(columns, reference)
        for column in columns:
            refuse_infinities(column.name, reference)
    fitted = [
        _of_distribution(column, kinds_from_distribution[column.name])
        if column.name in kinds_from_distribution
        else _fit_column(column, schema.get(column.name), reference)
        for column in columns
    ]
    if kinds_from_distribution and reference is not None:
        for one in fitted:
            _refuse_nulls(one.name, one.cells(reference))
    return fitted


def infer(table: Table, names: Sequence[str]) -> Schema:
    """The schema that these rows suggest: what dipriv would read from reference rows."""
    kinds: dict[str, Kind] = {}
    for name in names:
        column = table.column(name)
        refuse_infinities(name, table)
        labels = _labels_of(column, None, table)
        kinds[name] = with_levels(infer_kind(column.storage, _some(name, table.cells(name, labels))), labels)
    return Schema(kinds)


def holds_infinities(name: str, table: Table) -> bool:
    """Whether a column has infinite numbers, which are clipped when its cells are taken as numbers."""
    array = table.array(name)
    return pt.is_floating(array.type) and bool(pc.any(pc.is_inf(array)).as_py())


def refuse_infinities(name: str, reference: Table) -> None:
    """Of rows that a distribution is read from; in rows that are released they are clipped."""
    if holds_infinities(name, reference):
        raise InputError(
            f"column {name!r} holds infinite values in the reference rows, which are finite numbers and nulls.",
            "Replace them by nulls or by a top code that you declare as an atom: Mixed(atoms=(...)).",
            command="Replace them by empty cells or by a top code that the schema declares as an atom.",
        )


def _refuse_nulls(name: str, cells: ColumnValues) -> None:
    """A distribution of scipy.stats gives nulls no probability, so its parameters are not estimated from them."""
    if cells.kinds_missing:
        raise InputError(
            f"column {name!r} has nulls in the reference rows, to which its distribution gives no probability.",
            "Fill or drop them first, or use an empirical reference, where a null is an atom.",
        )


def _of_distribution(column: Column, kind: Kind) -> FittedColumn:
    """A column whose distribution is given: nothing of it is read from rows."""
    return FittedColumn(
        column.without_categories(), kind, None, fit_codec(column.name, kind, column.storage, None, None)
    )


def _fit_column(column: Column, declared: Kind | None, reference: Table | None) -> FittedColumn:
    if reference is None:
        raise SchemaError(
            f"column {column.name!r} has no distribution and no rows may be read.", "Give it a distribution."
        )
    labels = _labels_of(column, declared, reference)
    count = None if labels is None else len(labels)
    seen = _stored(column, _some(column.name, reference.cells(column.name, labels)))
    if labels is not None and np.any(seen.present < 0):
        raise SchemaError(
            f"column {column.name!r}: reference rows hold labels outside its {count} levels.",
            "Complete the levels, or correct the rows.",
        )
    kind = declared or infer_kind(column.storage, seen)
    if isinstance(kind, Datetime):
        _check_times(column, kind, seen.present)
    codec = fit_codec(column.name, kind, column.storage, count, seen)
    return FittedColumn(column.without_categories(), with_levels(kind, labels), labels, codec)


def _check_times(column: Column, kind: Datetime, ticks: NDArray[Any]) -> None:
    """Refuse reference rows outside the bounds of dates or times that are declared."""
    low, high = bounds_in_ticks(column.name, kind, column.storage.tick_ns, *times_of(column.arrow_type))
    if (low is not None and ticks.min() < low) or (high is not None and ticks.max() > high):
        raise SchemaError(
            f"column {column.name!r}: reference rows lie outside the declared bounds "
            f"[{kind.lower or '-inf'}, {kind.upper or 'inf'}].",
            "Widen the bounds, or correct the rows.",
        )


def _labels_of(column: Column, declared: Kind | None, reference: Table) -> pa.Array | None:
    """The labels of a text or categorical column: those of the schema, else those met in the reference rows.

    Where the column's type lists ordered categories they give the order. The list of others may be in the order in
    which private rows have them. A category that no reference row has is left out: it cannot be released, and a list
    made from private rows must not travel with a public reference.
    """
    if column.storage.family != "label":
        return None
    labels = declared_labels(column, declared)
    if labels is None:
        labels = distinct_labels(reference.array(column.name))
        labels = labels.take(pa.array(label_order(column, labels)))
        check_room(column, labels)
    return labels


def check_room(column: Column, labels: pa.Array, with_others: str = "") -> None:
    """Refuse a dictionary whose indices are too narrow for labels that are public, before ε is spent."""
    count, room = len(labels) - labels.null_count, room_for_labels(column.arrow_type)
    if count > room:
        raise SchemaError(
            f"column {column.name!r} has {count} labels{with_others}, and its type {column.arrow_type} has room for "
            f"{room}.",
            "Cast it to a dictionary with int32 indices, or to text.",
        )


def label_order(column: Column, labels: pa.Array) -> NDArray[np.intp]:
    """The order of sorted labels: as they are, or as an ordered type lists them, after those that it does not list."""
    if column.labels is None:
        return np.arange(len(labels))
    places = pc.index_in(labels.cast(column.labels.type), value_set=column.labels).fill_null(-1)
    return np.argsort(places.to_numpy(), kind="stable")


def declared_labels(column: Column, declared: Kind | None) -> pa.Array | None:
    """The labels that the schema lists, None where it does not; categories of a type come from rows."""
    levels = declared.levels if isinstance(declared, Categorical) else None
    if levels is None:
        return None
    if contains_text(column):
        if not all(isinstance(level, str) for level in levels):
            raise SchemaError(f"column {column.name!r} holds text but some declared levels are not.", "Quote them.")
        stored = pa.array(levels, pa.large_string())
        check_room(column, stored)
        return stored
    try:
        stored = pa.array(levels, column.arrow_type.value_type)
        same = stored.to_pylist() == list(levels)
    except (pa.ArrowException, OverflowError):
        same = False
    if not same:
        raise SchemaError(
            f"column {column.name!r}: some declared levels cannot be stored as {column.storage.label}.",
            "Correct the levels.",
        )
    check_room(column, stored)
    return stored


def label_of_others(column: Column) -> pa.Array:
    """The label that stands for all that are not listed: `OTHER`, or a null in a column whose labels are not text.

    That follows from the type: intervals and periods are not text, whether there is one or not.
    """
    if not contains_text(column):
        return pa.nulls(1, column.arrow_type.value_type)
    return pa.array([OTHER if column.label_values is None else None], pa.large_string())


def with_levels(kind: Kind, labels: pa.Array | None) -> Kind:
    """The kind with its labels written out, where a schema can hold them."""
    if not isinstance(kind, Categorical) or labels is None:
        return kind
    try:
        return replace(kind, levels=tuple(labels.drop_null().to_pylist()))
    except (SchemaError, OverflowError, ValueError):  # no label, or values that no schema holds: intervals, dates
        return kind


def _check_reference(columns: Sequence[Column], reference: Table) -> None:
    if reference.rows < MIN_REFERENCE_ROWS:
        raise ReferenceDataError(
            f"there are {reference.rows} reference rows; at least {MIN_REFERENCE_ROWS} are needed.",
            "Hold out a larger share, give a public table, or state a known distribution.",
        )
    if lacking := [column.name for column in columns if column.name not in reference.names]:
        raise ReferenceDataError(
            f"column {lacking[0]!r} is not in the reference rows ({len(lacking)} columns differ).",
            "Give reference rows with the same columns, or choose columns with columns=[...].",
            command="Give a public table with the same columns, or leave columns out with --drop.",
        )
    for column in columns:
        _check_same_type(column, reference.column(column.name))


def _check_same_type(expected: Column, found: Column) -> None:
    if meaning(expected.arrow_type) != meaning(found.arrow_type):
        raise ReferenceDataError(
            f"column {expected.name!r} is {found.storage.label} in one table, {expected.storage.label} in the other.",
            "Convert one of them, so that reference rows and released rows have the same types.",
        )


def _stored(column: Column, cells: ColumnValues) -> ColumnValues:
    """Reference cells as the column stores them."""
    stored = ColumnValues(cast(cells.values, column.storage.dtype), cells.missing)
    if column.storage.family == "integer" and np.any(stored.present != cells.present):
        raise ReferenceDataError(
            f"column {column.name!r}: some of the {len(cells)} reference rows hold numbers that do not fit "
            f"{column.storage.label}.",
            "Round them, or convert the column to a wider type.",
        )
    return stored


def _some(name: str, cells: ColumnValues) -> ColumnValues:
    if not len(cells.present):
        raise ReferenceDataError(
            f"column {name!r} has no value but nulls in the {len(cells)} reference rows.",
            "Leave it out with drop=[...], pass it through with keep=[...], or give more reference rows.",
            command="Leave it out with --drop, pass it through with --keep, or give more reference rows.",
        )
    return cells
