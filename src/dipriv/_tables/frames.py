"""The only place that knows dataframes: pandas, polars, pyarrow and numpy tables <-> columns of numbers.

Inside, a column is an Arrow array and then `ColumnValues`; the released column is built with the dtype of the input's
column. Labels become codes here, so that the arrows see numbers only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dipriv._base.arrays import Mask
from dipriv._base.columns import NULL, PRESENT, ColumnValues, NumericColumn, Storage, cast
from dipriv._base.invariants import require
from dipriv._base.near_names import unknown_columns
from dipriv._base.registry import serializable
from dipriv._tables.any_values import array_from_any, array_of_any, valid_text
from dipriv._tables.arrow import (
    cells_from_arrow,
    cells_to_arrow,
    decoded,
    is_text,
    labelled,
    storage_of,
    times_of,
    value_range,
)
from dipriv._tables.python_objects import as_text, is_absent, texts_of, without_scalars
from dipriv._tables.repeated import coded, compact
from dipriv.errors import InputError, SchemaError

Backend: TypeAlias = Literal["pandas", "polars", "pyarrow", "numpy"]
_PLAIN = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
MAX_NAME = 1 << 16
"""The longest name of a column in an exported reference."""


@serializable()
@dataclass(frozen=True, eq=False)
class Column:
    """A column's facts: name, type, whether it can hold nulls, and labels if its type puts them in an order.

    `label_values` are objects of pandas that have no type, such as intervals, where labels are how they are written.
    """

    name: str
    storage: Storage
    arrow_type: pa.DataType
    nullable: bool
    labels: pa.Array | None = field(repr=False, default=None)
    label_values: tuple[Any, ...] | None = field(repr=False, default=None)
    prefix: int | None = None
    """Of a column of codes: how many leading characters are kept, 0 for all. None for other columns."""

    def numeric(self, labels: pa.Array | None) -> NumericColumn:
        """The same facts without Arrow, where cells are positions in `labels` (None for columns without labels)."""
        n_labels = None if labels is None else len(labels)
        times, zone = times_of(self.arrow_type)
        return NumericColumn(
            self.name, self.storage, self.nullable, value_range(self.arrow_type), n_labels, times, zone
        )

    def without_categories(self) -> Column:
        """The same facts without the categories that the type lists, which come from rows."""
        return replace(self, labels=None, label_values=None)

    def check_invariants(self) -> None:
        """Of a column in an exported reference, which carries no labels of the table that it was fitted with."""
        require(self.labels is None and self.label_values is None, self, "an exported column has no labels of a table")
        require(self.prefix is None or (self.prefix >= 0 and self.storage.family == "label"), self, "codes are labels")
        require(len(self.name) <= MAX_NAME, self, "the name is not longer than 65,536 characters")
        require(self.storage == storage_of(self.name, self.arrow_type), self, "the storage is that of the type")


def contains_text(column: Column) -> bool:
    """Whether the cells are text, plain or as the labels of a dictionary."""
    return column.storage.label in ("text", "labels")


@dataclass(frozen=True, eq=False)
class Table:
    """A table with text column names, at least one row, and columns of types that dipriv takes (checked on use).

    A selection of rows is kept as a mask over the native table, whose columns are converted once.
    """

    native: Any = field(repr=False)
    backend: Backend
    names: tuple[str, ...]
    rows: int
    selected: Mask | None = field(repr=False, default=None)
    _arrays: dict[str, tuple[pa.Array, pa.Array | None, tuple[Any, ...] | None]] = field(
        repr=False, default_factory=dict
    )
    _numbers: dict[str, ColumnValues] = field(repr=False, default_factory=dict)
    _labelled: dict[str, tuple[pa.Array, ColumnValues]] = field(repr=False, default_factory=dict)
    """Of columns of labels: the list of labels that was asked for last, and the cells as positions in it."""
    _cells: dict[str, ColumnValues] = field(repr=False, default_factory=dict)
    _coded: dict[str, pa.Array] = field(repr=False, default_factory=dict)
    """Columns of text as `coded` gives them."""
    _declared: Mapping[str, pa.DataType] = field(default_factory=dict)
    """Columns that an Arrow table stores as other dictionaries, and the type that they have to all others: text
    (`stored`), or a dictionary whose indices may be too narrow for the labels of private rows (`with_prefixes`)."""
    _computed: frozenset[str] = frozenset()
    """Columns that are not the native table's, or stand in place of those."""
    _numbers_as_labels: Mapping[str, bool] = field(default_factory=dict)
    """Columns of numbers that are labels, and are released as numbers; and whether these may be null."""

    def column(self, name: str) -> Column:
        """The public facts of a column; refuses types that dipriv does not take."""
        if self._is_stored(name):
            return Column(name, storage_of(name, self._declared[name]), self._declared[name], self._nullable(name))
        array, labels, label_values = self._raw(name)
        storage = storage_of(name, array.type)
        return Column(name, storage, self._declared_type(name), self._nullable(name), labels, label_values)

    def array(self, name: str) -> pa.Array:
        """A column's selected rows as one Arrow array."""
        array = self._raw(name)[0]
        return array if self.selected is None else _filter_array(array, self.selected)

    def coded(self, name: str) -> pa.Array:
        """The same, where text that repeats few texts is a dictionary: each of them is looked at once."""
        array = self._all_coded(name)
        return array if self.selected is None else _filter_array(array, self.selected)

    def _all_coded(self, name: str) -> pa.Array:
        if name not in self._coded:
            stored = self._is_stored(name)
            self._coded[name] = _one_chunk(self._stored_column(name)) if stored else coded(self._raw(name)[0])
        return self._coded[name]

    def _is_stored(self, name: str) -> bool:
        """Whether this is a column that an Arrow table stores in another type than the declared one."""
        return name in self._declared and name not in self._computed

    def stored(self, names: Iterable[str]) -> Table:
        """The same rows of an Arrow table, which stores these columns as dictionaries if they repeat few texts."""
        native, texts = self.native, dict(self._declared)
        for name in names:
            array, place = self._all_coded(name), self.names.index(name)
            if pa.types.is_dictionary(array.type) and (name in texts or is_text(self._stored_column(name).type)):
                texts.setdefault(name, self._stored_column(name).type)
                small = compact(array)
                native = native.set_column(place, native.schema.field(place).with_type(small.type), small)
        return replace(self, native=native, _declared=texts, _arrays={}, _coded={}, _labelled={})

    def cells(self, name: str, labels: pa.Array | None = None) -> ColumnValues:
        """A column's selected rows as numbers; labels as their position in `labels`, -1 for others."""
        if self.selected is None:
            return self.all_cells(name, labels)
        if labels is not None:
            return self.all_cells(name, labels).take(self.selected)
        if name not in self._cells:
            self._cells[name] = self.all_cells(name).take(self.selected)
        return self._cells[name]

    def all_cells(self, name: str, labels: pa.Array | None = None) -> ColumnValues:
        """The same for all rows of the native table, selected or not."""
        if labels is not None:
            if name not in self._labelled or self._labelled[name][0] is not labels:
                self._labelled[name] = labels, cells_from_arrow(self._all_coded(name), labels)
            return self._labelled[name][1]
        if name not in self._numbers:
            self._numbers[name] = self._read_numbers(name)
        return self._numbers[name]

    def _read_numbers(self, name: str) -> ColumnValues:
        cells = cells_from_arrow(self._raw(name)[0], None)
        if self._nan_is_null(name) and cells.missing is not None:
            return ColumnValues(cells.values, np.where(cells.missing == PRESENT, cells.missing, NULL).astype(np.uint8))
        return cells

    def with_types(self, types: Mapping[str, pa.DataType]) -> Table:
        """The same rows where columns that have no type of their own have these: objects of pandas, nothing but nulls.

        What cannot be converted is null: an error would depend on a cell.
        """
        typeless = [name for name in types if name in self.names and self._is_typeless(name)]
        if not typeless:
            return self
        arrays = {name: self.converted(name, types[name]) for name in typeless}
        native = self.native
        if self.backend == "pyarrow":
            for name, array in arrays.items():
                native = native.set_column(self.names.index(name), name, array)
        elif self.backend == "polars":
            import polars as pl

            native = native.with_columns(pl.Series(name, pl.from_arrow(array)) for name, array in arrays.items())
        kept = {name: raw for name, raw in self._arrays.items() if name not in arrays}
        found = kept | {name: (array, None, None) for name, array in arrays.items()}
        return replace(self, native=native, _arrays=found, _numbers={}, _labelled={}, _cells={}, _coded={})

    def with_wide_indices(self) -> Table:
        """The same table where dictionaries of Arrow have room for labels of other tables (see `with_index_types`)."""
        if self.backend != "pyarrow":
            return self
        native = self.native
        for place, column in enumerate(native.columns):
            if pa.types.is_dictionary(column.type) and column.type.index_type != pa.int32():
                wide = _one_chunk(_widened(column))
                native = native.set_column(place, native.schema.field(place).with_type(wide.type), wide)
        return self if native is self.native else Table(native, "pyarrow", self.names, self.rows)

    def converted(self, name: str, arrow_type: pa.DataType, marks: Sequence[str] = ()) -> pa.Array:
        """The cells of a column in another type. Each depends on its own cell alone, and no cell causes an error.

        Text is not looked for `marks` of missing cells where it stays text.
        """
        return self._converted(self._native_column(name), arrow_type, marks)

    def _converted(self, column: Any, arrow_type: pa.DataType, marks: Sequence[str]) -> pa.Array:
        is_pandas = self.backend == "pandas"
        if is_pandas and column.dtype == "category":  # by its categories: how Arrow has them depends on all of them
            labels = self._converted(category_values(column.dtype), _value_type(arrow_type), marks)
            codes = column.cat.codes.to_numpy()
            labelled = pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32), mask=codes < 0), labels)
            return array_from_any(labelled, arrow_type)
        if is_pandas and column.dtype == object:  # in its columns of numbers, not-a-number is null
            pairs = zip(column, is_absent(column), strict=True)
            return array_of_any([None if absent else cell for cell, absent in pairs], arrow_type, marks)
        if self.backend == "polars" and str(column.dtype) == "Object":
            return array_of_any(list(column), arrow_type, marks)
        try:
            found = self._to_arrow(column)
        except (TypeError, ValueError, OverflowError, NotImplementedError, pa.ArrowException):  # Arrow has no such type
            return array_of_any([None] * len(column), arrow_type)
        if not isinstance(found, pa.ChunkedArray):
            return array_from_any(found, arrow_type, marks)
        if found.num_chunks == 1:
            return array_from_any(found.chunk(0), arrow_type, marks)
        of_value = _value_type(arrow_type)  # chunks may have dictionaries of their own
        parts = [array_from_any(chunk, of_value, marks) for chunk in found.chunks]
        return array_from_any(pa.chunked_array(parts, of_value).combine_chunks(), arrow_type)

    def _to_arrow(self, column: Any) -> Any:
        if self.backend == "pandas":
            return _from_pandas(column)
        if self.backend == "numpy":
            return pa.array(column)
        return column.to_arrow() if self.backend == "polars" else column

    def _is_typeless(self, name: str) -> bool:
        column = self._native_column(name)
        if self.backend == "pandas":
            return bool(column.dtype == object)
        return (self.backend == "polars" and str(column.dtype) == "Null") or (
            self.backend == "pyarrow" and pa.types.is_null(column.type)
        )

    def take(self, rows: Mask) -> Table:
        """The rows of a whole table where the mask is true."""
        return replace(self, rows=int(np.count_nonzero(rows)), selected=rows, _cells={})

    def rebuild(
        self,
        released: Mapping[str, tuple[ColumnValues, pa.Array | None]],
        keep: Sequence[str],
        keys: Mapping[str, NDArray[np.int64]] | None = None,
        anew: Mapping[str, int] | None = None,
    ) -> Any:
        """A native table of released and kept columns in this table's order, with its dtypes and its index.

        Columns of `keys` have these whole numbers in place of their cells, independent of their type. `anew` are
        columns of new identifiers in their own type, whole numbers from the one that is given on.
        """
        keys, anew = keys or {}, anew or {}
        made = {name: self._numbered(name, numbers) for name, numbers in keys.items()}
        made |= {name: self._identifiers(name, first) for name, first in anew.items()}
        columns = [name for name in self.names if name in released or name in keep or name in made]
        parts = {
            name: self._build(name, *released[name])
            if name in released
            else made[name]
            if name in made
            else self._kept(name)
            for name in columns
        }
        if self.backend == "pandas":
            return _pandas_frame(_index(self.native.index, self.selected), self.native.columns, parts, self.names)
        if self.backend == "polars":
            import polars as pl

            return pl.DataFrame(parts)
        if self.backend == "numpy":
            dtype = self.native.dtype
            for numbers in keys.values():
                if not np.array_equal(numbers.astype(dtype), numbers):  # too narrow for the keys
                    dtype = np.result_type(dtype, np.int64)
            return np.stack(list(parts.values()), axis=1).astype(dtype, copy=False)
        fields = [
            pa.field(name, pa.int64()) if name in keys else self._field(name).remove_metadata() for name in columns
        ]
        fields = [of.with_nullable(True) if of.name in self._numbers_as_labels else of for of in fields]
        return pa.Table.from_arrays(list(parts.values()), schema=pa.schema(fields))

    def batch(self) -> pa.RecordBatch:
        """All columns of all rows as one Arrow batch; those without an Arrow type are left out."""
        arrays = {}
        for name in self.names:
            with suppress(SchemaError):
                arrays[name] = self._raw(name)[0]
        return pa.record_batch(arrays)

    def fingerprinted(self) -> pa.RecordBatch:
        """The same, to recognize the table by: columns without an Arrow type are text, and none is left out."""
        return pa.record_batch({name: self._recognizable(name) for name in self.names})

    def _recognizable(self, name: str) -> pa.Array:
        column = self._native_column(name)
        if not (self.backend == "polars" and str(column.dtype) == "Object"):  # Arrow would have its pointers
            with suppress(SchemaError):
                return self._raw(name)[0]
        if self.backend == "pandas":
            return as_text(column.astype(object))
        if self.backend == "pyarrow":  # a dictionary, of labels that are refused
            return pa.chunked_array([chunk.dictionary_decode() for chunk in column.chunks]).combine_chunks()
        cells = list(column)
        return texts_of(cells, [cell is None for cell in cells])

    def selected_rows(self) -> pa.Table:
        """The selected rows of an Arrow table, unchanged."""
        columns = [self._native_column(name) for name in self.names]
        if self.selected is not None:
            columns = [_filter(column, "pyarrow", self.selected) for column in columns]
        fields = [self._field(name).with_type(of.type) for name, of in zip(self.names, columns, strict=True)]
        return pa.Table.from_arrays(columns, schema=pa.schema(fields))

    def with_numbers(self, columns: Mapping[str, NDArray[np.float64]]) -> Any:
        """A native table of these float64 columns, all of this table's, with its names and its index."""
        if self.backend == "pandas":
            return _pandas_frame(self.native.index, self.native.columns, columns, self.names)
        if self.backend == "polars":
            import polars as pl

            return pl.DataFrame(dict(columns))
        return np.stack(list(columns.values()), axis=1) if self.backend == "numpy" else pa.table(dict(columns))

    def native_column(self, name: str) -> Any:
        """A column of all rows, as the table's library has it."""
        return self._native_column(name)

    def arrow_type(self, name: str) -> pa.DataType:
        """The Arrow type of a column."""
        return self._raw(name)[0].type

    def identifier_type(self, name: str) -> pa.DataType:
        """The Arrow type of a column of identifiers, which none of its cells decides: pandas' objects are text."""
        is_object = self.backend == "pandas" and self._native_column(name).dtype == object
        return pa.string() if is_object else self.arrow_type(name)

    def whole_array(self, name: str) -> pa.Array:
        """A column of all rows of the native table, selected or not, as one Arrow array."""
        return self._raw(name)[0]

    def with_arrays(self, arrays: Mapping[str, pa.Array]) -> Table:
        """The same table with these columns in place of its own."""
        if not arrays:
            return self
        native, known = self.native, {of: raw for of, raw in self._arrays.items() if of not in arrays}
        if self.backend == "pandas":
            native = native.copy(deep=False)
            for name, array in arrays.items():
                if pa.types.is_dictionary(array.type):  # of a pandas category, which stays one
                    known[name] = array, array.dictionary if array.type.ordered else None, None
                    continue
                series = _pandas_series(array, self._native_column(name))
                native.isetitem(self.names.index(name), series)
                if series.dtype == object:  # the type could not be read back from nulls
                    known[name] = array, None, None
        elif self.backend == "polars":
            import polars as pl

            native = native.with_columns(**{name: pl.Series(name, pl.from_arrow(of)) for name, of in arrays.items()})
        else:
            for name, array in arrays.items():
                native = native.set_column(self.names.index(name), pa.field(name, array.type), array)
        declared = {name: of for name, of in self._declared.items() if name not in arrays}
        return replace(
            self, native=native, _arrays=known, _numbers={}, _labelled={}, _cells={}, _coded={}, _declared=declared
        )

    def with_computed(self, arrays: Mapping[str, pa.Array]) -> Table:
        """The same rows with further columns, or others in place of its own, which are not those of the native table.

        They have all rows of the native table, selected or not, and may have nulls. `rebuild` does not know them.
        """
        if not arrays:
            return self
        others = {name: raw for name, raw in self._arrays.items() if name not in arrays}
        numbers, cells = (
            {name: of for name, of in known.items() if name not in arrays} for known in (self._numbers, self._cells)
        )
        return replace(
            self,
            names=tuple(dict.fromkeys((*self.names, *arrays))),
            _arrays=others | {name: (array, None, None) for name, array in arrays.items()},
            _numbers=numbers,
            _labelled={},
            _cells=cells,
            _coded={},
            _computed=self._computed | frozenset(arrays),
        )

    def with_numbers_as_labels(self, nullable: Mapping[str, bool]) -> Table:
        """The same rows, where these columns of numbers are labels; `rebuild` makes numbers of them again."""
        arrays = {}
        for name in nullable:
            array = self._raw(name)[0]
            if pa.types.is_floating(array.type):
                array = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
            arrays[name] = array.dictionary_encode()
        if not arrays:
            return self
        return replace(self.with_computed(arrays), _numbers_as_labels={**self._numbers_as_labels, **nullable})

    def with_prefixes(self, prefixes: Mapping[str, int]) -> Table:
        """The same rows, where cells of these columns of text have their first characters only: this number of them."""
        if not prefixes:
            return self
        native, kept = self.native, {name: raw for name, raw in self._arrays.items() if name not in prefixes}
        declared = {name: of for name, of in self._declared.items() if name not in prefixes}
        native = native.copy(deep=False) if self.backend == "pandas" else native
        for name, length in prefixes.items():
            array = self._raw(name)[0]
            if self.backend == "pandas" and _is_arrow_dictionary(self._native_column(name).dtype):
                kept[name] = _cut_texts(array, length).dictionary_encode(), None, None
                continue
            column = _cut(self._native_column(name), array, length, self.backend)
            if self.backend == "pandas":
                native.isetitem(self.names.index(name), column)
                if column.dtype == object:  # the type could not be read back from nulls
                    kept[name] = _cut_texts(array, length), None, None
            elif self.backend == "polars":
                native = native.with_columns(column)
            else:
                as_declared = self._field(name)
                native = native.set_column(self.names.index(name), as_declared.with_type(column.type), column)
                if column.type != as_declared.type:
                    declared[name] = as_declared.type
        return replace(
            self, native=native, _arrays=kept, _numbers={}, _labelled={}, _cells={}, _coded={}, _declared=declared
        )

    def _raw(self, name: str) -> tuple[pa.Array, pa.Array | None, tuple[Any, ...] | None]:
        """A column's array, the labels that its type puts in order, and the objects that its labels stand for."""
        if name not in self._arrays:
            self._arrays[name] = self._convert(name)
        return self._arrays[name]

    def _convert(self, name: str) -> tuple[pa.Array, pa.Array | None, tuple[Any, ...] | None]:
        native = self._native_column(name)
        if self.backend == "pandas":
            return _read_pandas(name, native)
        if self.backend == "polars":
            labels = pa.array(native.dtype.categories.to_list(), pa.large_string()) if _is_enum(native.dtype) else None
            array = _arrow(name, str(native.dtype), native.to_arrow)
            if pa.types.is_dictionary(array.type):  # how wide its indices are follows from the labels that occur
                array = pa.DictionaryArray.from_arrays(array.indices.cast(pa.int32()), array.dictionary)
            return array, labels, None
        if self.backend == "numpy":
            return _arrow(name, str(native.dtype), lambda: pa.array(native)), None, None
        if pa.types.is_dictionary(native.type):
            storage_of(name, native.type)  # labels of types that are refused cannot be put together
        return _one_chunk(native), None, None

    def _declared_type(self, name: str) -> pa.DataType:
        """The Arrow type of a column; as one array, a dictionary of several parts has wider indices."""
        if self._is_stored(name):
            return self._declared[name]
        found = self._raw(name)[0].type
        if name in self._computed or not pa.types.is_dictionary(found):
            return found
        native = self._native_column(name)
        if self.backend == "pyarrow":
            return native.type
        return getattr(native.dtype, "pyarrow_dtype", found) if self.backend == "pandas" else found

    def _native_column(self, name: str) -> Any:
        position = self.names.index(name)
        if self.backend == "pandas":
            return self.native.iloc[:, position]
        if self.backend == "numpy":
            return self.native[:, position]
        if self.backend == "polars":
            return self.native.get_column(name)
        column, declared = self._stored_column(name), self._declared.get(name)
        return column if declared is None or pa.types.is_dictionary(declared) else column.cast(declared)

    def _stored_column(self, name: str) -> pa.ChunkedArray:
        """A column of an Arrow table, as that has it."""
        return self.native.column(self.names.index(name))

    def _field(self, name: str) -> pa.Field:
        """The field of a column of an Arrow table, with the type that it has to others."""
        found = self.native.schema.field(self.names.index(name))
        return found.with_type(self._declared.get(name, found.type))

    def _nan_is_null(self, name: str) -> bool:
        """Among plain floats of pandas and numpy NaN is how a null is written."""
        if name in self._computed:
            return False
        return self.backend in ("pandas", "numpy") and isinstance(self._native_column(name).dtype, np.dtype)

    def _kept(self, name: str) -> Any:
        """The kept cells of the selected rows, with nothing of other rows: labels, or what a slice's buffers hold."""
        column = self._native_column(name)
        if self.backend == "pandas" and (of := getattr(column.dtype, "pyarrow_dtype", None)) is not None:
            import pandas as pd

            cells = pa.chunked_array(pa.chunked_array(pa.Array.from_pandas(column)).chunks, of)
            index = column.index if self.selected is None else column.index[self.selected]
            cells = cells if self.selected is None else _filter(cells, "pyarrow", self.selected)
            return pd.Series(column.dtype.__from_arrow__(_in_own_chunk(cells)), index)
        some = column if self.selected is None else _filter(column, self.backend, self.selected)
        if self.backend == "pyarrow":
            return _in_own_chunk(some)
        if self.backend == "polars":
            return _kept_polars(some)
        if self.backend == "pandas" and some.dtype == "category":
            return some.cat.remove_unused_categories()
        return some

    def _numbered(self, name: str, numbers: NDArray[np.int64]) -> Any:
        if self.backend == "polars":
            import polars as pl

            return pl.Series(name, numbers)
        return pa.array(numbers) if self.backend == "pyarrow" else numbers

    def _identifiers(self, name: str, first: int) -> Any:
        """Whole numbers from `first` on, one for each selected row, in the type of a column of such or of text."""
        native = self._native_column(name)
        numbers = np.arange(first, first + self.rows)
        if self.backend == "numpy":
            return numbers.astype(native.dtype)
        if self.backend == "pandas":
            import pandas as pd

            texts = not pd.api.types.is_numeric_dtype(native.dtype)
            return pd.Series(numbers.astype(str).astype(object) if texts else numbers).astype(native.dtype).array
        array = pa.array(numbers).cast(self._raw(name)[0].type)
        if self.backend == "polars":
            import polars as pl

            return pl.Series(name, pl.from_arrow(array)).cast(native.dtype)
        return array

    def _nullable(self, name: str) -> bool:
        if name in self._computed:
            return True
        if self.backend == "pandas":
            dtype = self._native_column(name).dtype
            return not (isinstance(dtype, np.dtype) and dtype.kind in "iub")
        if self.backend == "numpy":
            return bool(self.native.dtype.kind == "f")
        return True if self.backend == "polars" else bool(self.native.schema.field(name).nullable)

    def _build(self, name: str, cells: ColumnValues, labels: pa.Array | None) -> Any:
        if self._is_stored(name):
            return cells_to_arrow(cells, labels, self._declared[name])
        native = self._native_column(name)
        if name in self._numbers_as_labels:
            array = decoded(cells_to_arrow(cells, labels, self._raw(name)[0].type))
            return _like_numbers(array, native, self.backend, nullable=self._numbers_as_labels[name])
        if self.backend == "numpy":
            return _numpy_values(cells, native.dtype)
        if self.backend == "pandas":
            return _build_pandas(cells, labels, native, self._declared_type(name))
        array = cells_to_arrow(cells, labels, self._declared_type(name))
        if self.backend == "polars":
            import polars as pl

            return pl.Series(name, pl.from_arrow(array)).cast(_polars_type(native.dtype, labels))
        return array


def _like_numbers(array: pa.Array, native: Any, backend: Backend, *, nullable: bool) -> Any:
    """Released labels that are numbers, as a column of the native one's type, or one of pandas with nulls."""
    if backend == "polars":
        import polars as pl

        return pl.Series(native.name, pl.from_arrow(array)).cast(native.dtype)
    if backend == "pyarrow":
        return array
    dtype: Any = native.dtype
    if isinstance(dtype, np.dtype) and (dtype.kind == "f" or not nullable):
        return array.to_numpy(zero_copy_only=False).astype(dtype)
    import pandas as pd

    if isinstance(dtype, np.dtype):
        dtype = pd.array(np.empty(0, dtype)).dtype  # Int64 for int64, and so on
    return dtype.__from_arrow__(pa.chunked_array([array]))


def _cut(column: Any, array: pa.Array, length: int, backend: Backend) -> Any:
    """The leading characters of each text of a native column, whose Arrow array this is.

    Dictionaries of Arrow have 32-bit indices: how many labels are left of all parts of a column is a fact about rows.
    """
    if backend == "pyarrow":
        texts = _cut_texts(array, length)
        if pa.types.is_dictionary(column.type):
            found = texts.cast(column.type.value_type).dictionary_encode()
            return pa.DictionaryArray.from_arrays(found.indices, found.dictionary, ordered=column.type.ordered)
        return texts.cast(column.type)
    if backend == "polars":
        import polars as pl

        texts = column.cast(pl.String).str.slice(0, length)
        return texts if column.dtype == pl.String else texts.cast(pl.Categorical)
    import pandas as pd

    cells = _cut_texts(array, length).to_pylist()
    texts = pd.Series(np.array([*cells, None], dtype=object)[:-1], index=column.index, dtype=object)
    if column.dtype != "category":
        return texts.astype(column.dtype)
    labels = pa.array(sorted({*cells} - {None}), pa.string())
    return texts.astype(pd.CategoricalDtype(_categories(labels, column.dtype)))


def _cut_texts(array: pa.Array, length: int) -> pa.Array:
    return pc.utf8_slice_codeunits(decoded(array), 0, length)


def _is_arrow_dictionary(dtype: Any) -> bool:
    """Whether a dtype of pandas is a dictionary of Arrow."""
    arrow_type = getattr(dtype, "pyarrow_dtype", None)
    return arrow_type is not None and pa.types.is_dictionary(arrow_type)


def read_stored(table: pa.Table, schema: pa.Schema) -> Table:
    """An Arrow table that may store columns of text as dictionaries; the schema has their types."""
    types = {of.name: schema.field(of.name).type for of in table.schema if pa.types.is_dictionary(of.type)}
    return replace(read(table), _declared={name: of for name, of in types.items() if not pa.types.is_dictionary(of)})


def read(frame: Any) -> Table:
    """A table of any supported library, checked for shape and names."""
    table = _recognize(frame)
    if len(set(table.names)) < len(table.names):
        raise _repeated(table.names)
    if not table.names:
        raise InputError("the table has no columns.", "Pass a table with at least one column.")
    if table.rows == 0:
        raise InputError("the table has no rows.", "Pass a table with at least one row.")
    return table


def check_names(given: Iterable[str], names: Sequence[str], where: str) -> None:
    """Raise InputError unless every given name is a column, and none is given twice."""
    if not isinstance(given, Iterable):
        raise InputError(f"expected {where} as a list of names, got {type(given).__name__}.", f"Write {where}=[...].")
    given = list(given)
    if wrong := unknown_columns([(where, given)], names):
        raise InputError(*wrong)
    if len(set(given)) < len(given):
        raise InputError(f"{where} names a column twice.", "Name each column once.")


def _repeated(names: Sequence[str]) -> InputError:
    first = next(name for name in names if names.count(name) > 1)
    return InputError(f"column name {first!r} occurs {names.count(first)} times.", "Rename one of them.")


def _recognize(frame: Any) -> Table:
    if isinstance(frame, np.ndarray):
        if frame.ndim != 2 or frame.dtype.kind not in "iufb":
            raise InputError(
                f"the array has {frame.ndim} dimensions of {frame.dtype}.",
                "Pass rows x columns of numbers, or a dataframe.",
            )
        return Table(frame, "numpy", tuple(f"x{i}" for i in range(frame.shape[1])), frame.shape[0])
    if isinstance(frame, pa.RecordBatch):
        frame = pa.Table.from_batches([frame])
    try:
        wrapped = nw.from_native(frame, pass_through=True)
    except nw.exceptions.DuplicateError:
        names = frame.column_names if isinstance(frame, pa.Table) else frame.columns
        raise _repeated([str(name) for name in names]) from None
    if isinstance(wrapped, nw.LazyFrame):
        raise InputError(f"expected a table, got a lazy {type(frame).__name__}.", "Call .collect() first.")
    if isinstance(wrapped, nw.DataFrame):
        for backend in ("pandas", "polars", "pyarrow"):
            if getattr(wrapped.implementation, f"is_{backend}")():
                names = frame.columns if backend == "pandas" else wrapped.columns
                return Table(frame, backend, tuple(str(name) for name in names), len(frame))
    raise InputError(
        f"expected a table, got {type(frame).__name__}.",
        "Pass a pandas, polars or pyarrow table, or a two-dimensional numpy array.",
    )


def _read_pandas(name: str, series: Any) -> tuple[pa.Array, pa.Array | None, tuple[Any, ...] | None]:
    if series.dtype == "category":
        categories = series.dtype.categories
        array = categories_to_arrow(series, _labels(category_values(series.dtype)))
        ordered = array.dictionary if array.type.ordered else None
        return array, ordered, tuple(categories) if _is_written_out(categories) else None
    if isinstance(series.dtype, np.dtype) and series.dtype.kind == "f":
        return _arrow(name, str(series.dtype), lambda: pa.array(series.to_numpy(), from_pandas=False)), None, None
    array = _arrow(name, str(series.dtype), lambda: _from_pandas(series))
    if series.dtype == object and not _is_plain(array.type):
        raise objects_error(name)  # the type, digits after the point included, would be read from the cells
    return array, None, None


def objects_error(name: str) -> SchemaError:
    """The refusal of a column of objects that have no type."""
    return SchemaError(
        f"column {name!r} holds objects that are neither text, booleans, dates nor times of day.",
        "Give it a type of its own (astype, pandas.to_datetime, ArrowDtype), leave it out with drop=[...], or pass it "
        "through with keep=[...].",
        command="Give it a type of its own in the file, leave it out with --drop, or pass it through with --keep.",
    )


def _from_pandas(series: Any) -> Any:
    if series.dtype == object:
        values = series.to_numpy()
        if (plain := without_scalars(values)) is not values:
            series = type(series)(plain, dtype=object)
    try:
        return pa.Array.from_pandas(series)
    except UnicodeEncodeError:  # one cell's lone surrogate must not decide whether the table is released
        return pa.Array.from_pandas(series.astype(object).map(valid_text).astype(series.dtype))  # of the same dtype


def _is_plain(arrow_type: pa.DataType) -> bool:
    kinds = (
        pa.types.is_null,
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_boolean,
        pa.types.is_date32,
        pa.types.is_time,
    )
    return any(is_kind(arrow_type) for is_kind in kinds)


def _labels(categories: Any) -> pa.Array:
    """Categories of pandas as Arrow labels, of a type that depends on theirs alone; objects are text."""
    if _is_written_out(categories):
        return pa.array([repr(value) for value in categories], pa.string())
    if categories.dtype == object or type(categories.dtype).__name__ == "StringDtype":
        return texts_of(categories, np.zeros(len(categories), dtype=bool)).cast(pa.string())
    return _one_chunk(pa.Array.from_pandas(categories))


def category_values(dtype: Any) -> Any:
    """The categories of a pandas dtype as a column of their type; pandas itself would guess one for objects.

    Zeros have no sign: pandas takes 0.0 and -0.0 for one category, and which of them it lists is a fact about a row.
    """
    import pandas as pd

    found, of = dtype.categories, dtype.categories.dtype
    if isinstance(of, pd.IntervalDtype) and found.left.dtype.kind == "f":
        found = pd.IntervalIndex.from_arrays(found.left + 0.0, found.right + 0.0, found.closed)
    elif pd.api.types.is_float_dtype(of) and not isinstance(of, pd.ArrowDtype):
        found = found + 0.0
    return pd.Series(found, dtype=of)


def _is_written_out(categories: Any) -> bool:
    """Whether these are intervals or periods, which Arrow has no type for. What is written differs for any two."""
    return type(categories.dtype).__name__ in ("IntervalDtype", "PeriodDtype")


def categories_to_arrow(series: Any, labels: pa.Array) -> pa.DictionaryArray:
    """A pandas category, where each has one of these labels; several may have the same, or a null."""
    different = pc.unique(labels).drop_null()
    places = pc.index_in(labels, value_set=different)
    codes = series.cat.codes.to_numpy().astype(np.int32)
    indices = places.take(pa.array(codes, mask=codes < 0)).cast(pa.int32())
    return pa.DictionaryArray.from_arrays(indices, different, ordered=series.dtype.ordered)


def _arrow(name: str, dtype: str, convert: Any) -> pa.Array:
    try:
        return _one_chunk(convert())
    except Exception:  # Arrow and polars put the offending cell into their messages
        raise SchemaError(
            f"column {name!r} of type {dtype} has no single Arrow type (mixed or unsupported values).",
            "Convert it to one type, leave it out with drop=[...], or pass it through with keep=[...].",
            command="Convert it to one type, leave it out with --drop, or pass it through with --keep.",
        ) from None


def _one_chunk(array: Any) -> pa.Array:
    if isinstance(array, pa.ChunkedArray):
        if pa.types.is_dictionary(array.type) and array.num_chunks > 1:
            array = _widened(array).unify_dictionaries()  # narrow indices may have no room for the labels of all chunks
        array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
    return array


def _widened(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of dictionaries, with 32-bit indices."""
    return pa.chunked_array(map(widened, column.chunks), wide_type(column.type))


def wide_type(arrow_type: pa.DataType) -> pa.DataType:
    """The type of a dictionary, with 32-bit indices."""
    return pa.dictionary(pa.int32(), arrow_type.value_type, arrow_type.ordered)


def widened(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """The same cells with 32-bit indices; labels that are null, which Arrow cannot unify, are null cells."""
    return _with_labels(array, _is_label(array), pa.int32())


def _pandas_series(array: pa.Array, old: Any) -> Any:
    """An Arrow array as a pandas column in place of another, of a dtype that does not depend on cells."""
    import pandas as pd

    nullable: dict[pa.DataType, Any] = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    if _is_plain(array.type) and (old.dtype == object or array.type not in nullable):
        cells = np.array([*array.to_pylist(), None], dtype=object)[:-1]  # the extra None keeps numpy from guessing
        return pd.Series(cells, index=old.index, dtype=object)
    if array.type in nullable:
        return pd.Series(nullable[array.type].__from_arrow__(array), index=old.index)
    series = array.to_pandas()
    series.index = old.index
    return series


def _build_pandas(cells: ColumnValues, labels: pa.Array | None, series: Any, arrow_type: pa.DataType) -> Any:
    import pandas as pd

    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype) and labels is not None:
        none = labels[:1].null_count  # a first label that is null stands for labels that are not listed
        codes = cells.values - none if len(labels) else np.full(len(cells), -1)
        codes = codes if cells.missing is None else np.where(cells.missing == PRESENT, codes, -1)
        listed = _categories(labels[none:], dtype)
        if not listed.is_unique:  # labels of another library, which are one category here: 0.0 and -0.0
            places, listed = pd.factorize(listed)
            codes = np.append(places, -1)[codes]
        return pd.Categorical.from_codes(codes, listed, ordered=dtype.ordered)
    array = cells_to_arrow(cells, labels, arrow_type)
    if isinstance(dtype, np.dtype):
        if dtype.kind in "iufbmM":
            return _numpy_values(cells, dtype)
        # whether None, NaN or NA marked what was missing is a fact about private cells: it is None for all
        return np.array([*array.to_pylist(), None], dtype=object)[:-1]  # the extra None keeps numpy from guessing
    return dtype.__from_arrow__(pa.chunked_array([array]))


def _categories(labels: pa.Array, dtype: Any) -> Any:
    """Labels as categories of pandas, in their order and, if that is possible, of the type that the dtype's have.

    They are made from the labels alone, which may be published: of private categories that are the same label, the one
    that is listed would be a fact about a row.
    """
    import pandas as pd

    of = dtype.categories
    if _is_written_out(of):
        values = _from_writing(labels.to_pylist(), of.dtype)
    else:  # objects as Python has them; times as they are, for Python has not all of them
        values = labels.to_pylist() if of.dtype == object else labels.to_pandas()
    try:
        return pd.Index(values, dtype=of.dtype)
    except (TypeError, ValueError):
        return pd.Index(values, dtype=object)


def _from_writing(labels: list[str], dtype: Any) -> list[Any]:
    """Periods or intervals from how they are written; the labels themselves if one of them is something else."""
    import pandas as pd

    def parsed(label: str) -> Any:
        if found := re.fullmatch(r"Period\('(.+)', '.+'\)", label):
            return pd.Period(found[1], freq=dtype.freq)
        if found := re.fullmatch(r"Interval\((.+), (.+), closed='(.+)'\)", label):
            left, right = pd.Series([found[1], found[2]]).astype(dtype.subtype)
            return pd.Interval(left, right, closed=dtype.closed)
        return None

    try:
        values = [parsed(label) for label in labels]
    except (TypeError, ValueError):
        return [*labels]
    return values if [repr(value) for value in values] == labels else [*labels]


def _polars_type(dtype: Any, labels: pa.Array | None) -> Any:
    """The type of a released column, without labels of the private one, which number those of its type's list."""
    import polars as pl

    if labels is not None and _is_enum(dtype):
        return pl.Enum(labels.to_pylist())
    if type(dtype).__name__ == "Categorical" and hasattr(pl, "Categories"):
        return pl.Categorical(pl.Categories.random())
    return dtype


def _numpy_values(cells: ColumnValues, dtype: np.dtype[Any]) -> NDArray[Any]:
    if dtype.kind in "mM":
        not_a_time = np.iinfo(np.int64).min
        ticks = np.maximum(cast(cells.values, np.dtype(np.int64)), not_a_time + 1)
        if cells.missing is not None:
            ticks = np.where(cells.missing == PRESENT, ticks, not_a_time)
        return np.asarray(ticks.view(dtype))
    if dtype.kind == "b":
        return cells.values.astype(dtype)
    values = cast(cells.values, dtype)
    if cells.missing is None or dtype.kind != "f":
        return values
    return np.where(cells.missing == PRESENT, values, dtype.type(np.nan))


def _pandas_frame(index: Any, labels: Any, parts: Mapping[str, Any], names: Sequence[str]) -> Any:
    import pandas as pd

    data = {
        number: pd.Series(part, index=index, dtype=part.dtype, copy=False) for number, part in enumerate(parts.values())
    }
    frame = pd.DataFrame(data, index=index, copy=False)
    frame.columns = labels[[names.index(name) for name in parts]]
    return frame


def _index(index: Any, selected: Mask | None) -> Any:
    """The selected part of an index, without labels that only other rows have; row numbers are not written out."""
    import pandas as pd

    if isinstance(index, pd.MultiIndex):
        used = (index if selected is None else index[selected]).remove_unused_levels()
        for number, level in enumerate(used.levels):
            if isinstance(level, pd.CategoricalIndex):
                met: Any = level.remove_unused_categories()
                used = used.set_levels([met], level=[number])
        return used
    if isinstance(index, pd.CategoricalIndex):
        return (index if selected is None else index[selected]).remove_unused_categories()
    if selected is None:
        return index
    if isinstance(index, pd.RangeIndex):
        positions = np.flatnonzero(selected)
        counts_from_zero = (index.start, index.step) == (0, 1)
        positions = positions if counts_from_zero else positions * index.step + index.start
        return pd.Index(positions, name=index.name, copy=False)
    return index[selected]


def of_objects(series: Any) -> bool:
    """Whether a pandas column holds objects, or is a category of such."""
    return bool((series.dtype.categories if series.dtype == "category" else series).dtype == object)


def like_table(released: pa.Table, types: Mapping[str, pa.DataType], table: Table) -> Any:
    """Released rows in these types, in the library of the table that was given, with its index if it has one."""
    released = with_index_types(released, types)
    if table.backend == "pandas":
        found = released.to_pandas()
        found.index = table.native.index
        return found
    if table.backend == "polars":
        import polars as pl

        return pl.DataFrame(pl.from_arrow(released))
    return released


def _value_type(arrow_type: pa.DataType) -> pa.DataType:
    """The type, or that of a dictionary's labels."""
    return arrow_type.value_type if pa.types.is_dictionary(arrow_type) else arrow_type


def with_index_types(released: pa.Table, types: Mapping[str, pa.DataType]) -> pa.Table:
    """Released rows where dictionaries have indices of these types; wider ones were for labels of private rows."""
    for place, name in enumerate(released.column_names):
        wanted = types.get(name)
        if wanted is not None and pa.types.is_dictionary(wanted) and released.schema.types[place] != wanted:
            labels = _one_chunk(released.column(name))
            typed = labelled(labels.indices.cast(pa.int32()), labels.dictionary, wanted)
            released = released.set_column(place, name, typed)
    return released


def _in_own_chunk(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The same cells in one chunk, with own buffers: readers cut columns by the lengths of cells, also of others."""
    of = column.type
    own = pa.chunked_array(map(_with_own_buffers, column.chunks), of)
    try:
        if not pa.types.is_dictionary(of):
            return pa.chunked_array([own.combine_chunks()], of)
        whole = _without_unused_labels(_one_chunk(own))
        indices = whole.indices.cast(of.index_type)
        return pa.chunked_array([pa.DictionaryArray.from_arrays(indices, whole.dictionary, ordered=of.ordered)], of)
    except (
        pa.ArrowException,
        TypeError,
    ):  # narrow indices have no room for the labels of all chunks; over 2 GB of text
        return own


def _with_own_buffers(array: pa.Array) -> pa.Array:
    """The same cells without those of other rows, which slices and views have in their buffers, and without labels
    of dictionaries, at any depth, that only other rows have.
    """
    of = array.type
    if isinstance(of, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(of, _with_own_buffers(array.storage))
    if pa.types.is_dictionary(of):
        return _without_unused_labels(array)
    if of in _PLAIN:
        return _with_own_buffers(array.cast(_PLAIN[of])).cast(of)
    if pa.types.is_list_view(of) or pa.types.is_large_list_view(of):  # each part of these has all cells
        return _list_view_of_own(array)
    if pa.types.is_union(of) and of.mode == "dense":  # put together, these would have all cells of their parts
        return array.take(pa.array(np.arange(len(array))))
    array = pa.concat_arrays([array, array[:0]])  # of two, so that it copies
    if not of.num_fields:
        return array
    if pa.types.is_struct(of) or pa.types.is_union(of):
        parts = [array.field(place) for place in range(of.num_fields)]
    else:
        parts = [array.run_ends, array.values] if pa.types.is_run_end_encoded(of) else [array.values]
    own, buffers = [_with_own_buffers(part) for part in parts], array.buffers()[: of.num_buffers]
    return pa.Array.from_buffers(of, len(array), buffers, array.null_count, children=own)


def _list_view_of_own(array: Any) -> pa.Array:
    sizes = pc.fill_null(pc.list_value_length(array), 0)
    ends = np.cumsum(sizes.to_numpy(zero_copy_only=False), dtype=np.int64)
    offsets = pa.array(ends - sizes.to_numpy(zero_copy_only=False)).cast(sizes.type)
    values = _with_own_buffers(array.flatten())
    return type(array).from_arrays(offsets, sizes, values, type=array.type, mask=array.is_null())


def _kept_polars(series: Any) -> Any:
    """The same cells, as `_with_own_buffers`; the type of an Enum lists its labels."""
    import polars as pl

    if series.dtype == pl.Object:  # Arrow would have its pointers
        return series
    try:
        array = _with_own_buffers(_one_chunk(series.cast(_met_type(series.dtype, None)).to_arrow()))
    except (pa.ArrowException, pl.exceptions.PolarsError):  # types that Arrow lacks, such as integers of 128 bits
        return pl.Series(series.name, series.to_list(), series.dtype)
    return pl.Series(series.name, pl.from_arrow(array)).cast(_met_type(series.dtype, array))


def _met_type(dtype: Any, texts: pa.Array | None) -> Any:
    """A type of polars that lists the labels among these cells alone; without cells, with text in place of labels."""
    import polars as pl

    if type(dtype).__name__ == "Categorical" and hasattr(pl, "Categories"):
        return pl.String if texts is None else _polars_type(dtype, None)
    if _is_enum(dtype):
        met = None if texts is None else {*texts.to_pylist()}
        return pl.String if met is None else pl.Enum([label for label in dtype.categories if label in met])
    if isinstance(dtype, pl.Struct):
        parts = [None if texts is None else texts.field(place) for place in range(len(dtype.fields))]
        return pl.Struct({of.name: _met_type(of.dtype, part) for of, part in zip(dtype.fields, parts, strict=True)})
    if isinstance(dtype, pl.List | pl.Array):
        inner = _met_type(dtype.inner, None if texts is None else texts.values)
        return pl.List(inner) if isinstance(dtype, pl.List) else pl.Array(inner, dtype.size)
    return dtype


def _is_enum(dtype: Any) -> bool:
    return bool(type(dtype).__name__ == "Enum")


def _filter(column: Any, backend: Backend, rows: Mask) -> Any:
    """A native column's rows where the mask is true."""
    if backend == "pyarrow" and pa.types.is_dictionary(column.type):
        return column.filter(pa.array(rows))
    if backend == "pyarrow":
        return pa.chunked_array([_filter_array(_one_chunk(column), rows)], column.type)
    if backend == "polars":
        import polars as pl

        return column.filter(pl.Series(rows))
    return column[rows]


def _without_unused_labels(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """The same cells; labels that only other rows have, which are not released, are gone from the dictionary."""
    outside = pc.fill_null(pc.greater_equal(array.indices, len(array.dictionary)), False)
    if pc.any(outside).as_py():  # of cells of structs that are null
        indices = pc.if_else(outside, pa.scalar(None, array.indices.type), array.indices)
        array = pa.DictionaryArray.from_arrays(indices, array.dictionary, ordered=array.type.ordered)
    codes = array.indices.drop_null().to_numpy(zero_copy_only=False)
    used = np.bincount(codes, minlength=len(array.dictionary)) > 0
    return _with_labels(array, used & _is_label(array), array.indices.type)


def _is_label(array: pa.DictionaryArray) -> Mask:
    """Which labels of a dictionary are not null."""
    found: Mask = array.dictionary.is_valid().to_numpy(zero_copy_only=False)
    return found


def _with_labels(array: pa.DictionaryArray, wanted: Mask, index_type: pa.DataType) -> pa.DictionaryArray:
    """A dictionary of these labels alone, in buffers of its own; cells with others are null."""
    places = pa.array(np.cumsum(wanted) - 1, mask=~wanted).cast(index_type)
    labels = _with_own_buffers(_filter_array(array.dictionary, wanted))
    return pa.DictionaryArray.from_arrays(places.take(array.indices), labels, ordered=array.type.ordered)


def _filter_array(array: pa.Array, rows: Mask) -> pa.Array:
    """Arrow cannot select rows of views themselves."""
    plain = _PLAIN.get(array.type)
    if plain is not None:
        return array.cast(plain).filter(pa.array(rows)).cast(array.type)
    try:
        return array.filter(pa.array(rows))
    except pa.ArrowNotImplementedError:  # of types that have views in them
        runs = np.flatnonzero(np.diff(rows, prepend=False, append=False)).reshape(-1, 2).tolist()
        return pa.concat_arrays([array[:0], *(array[first:end] for first, end in runs)])
