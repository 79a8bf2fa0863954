"""The only place that knows dataframes: pandas, polars, pyarrow and numpy tables <-> columns of numbers.

Inside, a column is an Arrow array and then `ColumnValues`; the released column is built with the dtype of the input's
column. Labels become codes here, so that the arrows see numbers only.
"""

from __future__ import annotations

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
from dipriv._base.registry import serializable
from dipriv._tables.any_values import array_of_any, valid_text
from dipriv._tables.arrow import cells_from_arrow, cells_to_arrow, storage_of, value_range
from dipriv._tables.python_objects import as_text, texts_of
from dipriv.errors import InputError, SchemaError

Backend: TypeAlias = Literal["pandas", "polars", "pyarrow", "numpy"]
MAX_NAME = 1 << 16
"""The longest name of a column in an exported reference."""


@serializable()
@dataclass(frozen=True, eq=False)
class Column:
    """A column's public facts: name, type, whether it can hold nulls, and labels if its type fixes them."""

    name: str
    storage: Storage
    arrow_type: pa.DataType
    nullable: bool
    labels: pa.Array | None = field(repr=False, default=None)
    label_values: tuple[Any, ...] | None = field(repr=False, default=None)

    def numeric(self, labels: pa.Array | None) -> NumericColumn:
        """The same facts without Arrow, where cells are positions in `labels` (None for columns without labels)."""
        n_labels = None if labels is None else len(labels)
        return NumericColumn(self.name, self.storage, self.nullable, value_range(self.arrow_type), n_labels)

    def without_categories(self) -> Column:
        """The same facts without the categories that the type lists, which come from rows."""
        return replace(self, labels=None, label_values=None)

    def check_invariants(self) -> None:
        """Of a column in an exported reference, which carries no labels of the table that it was fitted with."""
        require(self.labels is None and self.label_values is None, self, "an exported column has no labels of a table")
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
    _cells: dict[str, ColumnValues] = field(repr=False, default_factory=dict)

    def column(self, name: str) -> Column:
        """The public facts of a column; refuses types that dipriv does not take."""
        array, labels, label_values = self._raw(name)
        storage = storage_of(name, array.type)
        return Column(name, storage, array.type, self._nullable(name), labels, label_values)

    def array(self, name: str) -> pa.Array:
        """A column's selected rows as one Arrow array."""
        array = self._raw(name)[0]
        return array if self.selected is None else _filter_array(array, self.selected)

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
            return cells_from_arrow(self._raw(name)[0], labels)
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
        arrays = {
            name: array_of_any(list(self._native_column(name)), types[name])
            if self.backend == "pandas"
            else array_of_any([None] * len(self.native), types[name])
            for name in typeless
        }
        native = self.native
        if self.backend == "pyarrow":
            for name, array in arrays.items():
                native = native.set_column(self.names.index(name), name, array)
        elif self.backend == "polars":
            import polars as pl

            native = native.with_columns(pl.Series(name, pl.from_arrow(array)) for name, array in arrays.items())
        kept = {name: raw for name, raw in self._arrays.items() if name not in arrays}
        found = kept | {name: (array, None, None) for name, array in arrays.items()}
        return replace(self, native=native, _arrays=found, _numbers={}, _cells={})

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

    def rebuild(self, released: Mapping[str, tuple[ColumnValues, pa.Array | None]], keep: Sequence[str]) -> Any:
        """A native table of released and kept columns in this table's order, with its dtypes and its index."""
        columns = [name for name in self.names if name in released or name in keep]
        parts = {name: self._build(name, *released[name]) if name in released else self._kept(name) for name in columns}
        if self.backend == "pandas":
            return _pandas_frame(_index(self.native.index, self.selected), self.native.columns, parts, self.names)
        if self.backend == "polars":
            import polars as pl

            return pl.DataFrame(parts)
        if self.backend == "numpy":
            return np.stack(list(parts.values()), axis=1).astype(self.native.dtype, copy=False)
        fields = [self.native.schema.field(name).remove_metadata() for name in columns]
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
        if self.selected is None:
            return self.native
        columns = [_filter(column, "pyarrow", self.selected) for column in self.native.columns]
        return pa.Table.from_arrays(columns, schema=self.native.schema)

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
        return replace(self, native=native, _arrays=known, _numbers={}, _cells={})

    def _raw(self, name: str) -> tuple[pa.Array, pa.Array | None, tuple[Any, ...] | None]:
        """A column's array, and the labels that its type fixes; converted once."""
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
            return array, labels, None if labels is None else tuple(labels.to_pylist())
        if self.backend == "numpy":
            return _arrow(name, str(native.dtype), lambda: pa.array(native)), None, None
        if pa.types.is_dictionary(native.type):
            storage_of(name, native.type)  # labels of types that are refused cannot be put together
        return _one_chunk(native), None, None

    def _native_column(self, name: str) -> Any:
        position = self.names.index(name)
        if self.backend == "pandas":
            return self.native.iloc[:, position]
        if self.backend == "numpy":
            return self.native[:, position]
        return self.native.get_column(name) if self.backend == "polars" else self.native.column(position)

    def _nan_is_null(self, name: str) -> bool:
        """Among plain floats of pandas and numpy NaN is how a null is written."""
        return self.backend in ("pandas", "numpy") and isinstance(self._native_column(name).dtype, np.dtype)

    def _kept(self, name: str) -> Any:
        column = self._native_column(name)
        some = column if self.selected is None else _filter(column, self.backend, self.selected)
        if self.backend == "pyarrow" and pa.types.is_dictionary(column.type):
            return pa.chunked_array([_without_unused_labels(_one_chunk(some))], column.type)
        if self.backend == "pandas" and some.dtype == "category":
            return some.cat.remove_unused_categories()
        if self.backend == "polars" and _is_enum(some.dtype):
            import polars as pl

            met = set(some.unique().to_list())
            return some.cast(pl.Enum([label for label in some.dtype.categories.to_list() if label in met]))
        return some

    def _nullable(self, name: str) -> bool:
        if self.backend == "pandas":
            dtype = self._native_column(name).dtype
            return not (isinstance(dtype, np.dtype) and dtype.kind in "iub")
        if self.backend == "numpy":
            return bool(self.native.dtype.kind == "f")
        return True if self.backend == "polars" else bool(self.native.schema.field(name).nullable)

    def _build(self, name: str, cells: ColumnValues, labels: pa.Array | None) -> Any:
        native = self._native_column(name)
        if self.backend == "numpy":
            return _numpy_values(cells, native.dtype)
        if self.backend == "pandas":
            return _build_pandas(cells, labels, native, self._raw(name)[0].type)
        array = cells_to_arrow(cells, labels, self._raw(name)[0].type)
        if self.backend == "polars":
            import polars as pl

            listed = pl.Enum(labels.to_pylist()) if labels is not None and _is_enum(native.dtype) else native.dtype
            return pl.Series(name, pl.from_arrow(array)).cast(listed)
        return array


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
    if unknown := [name for name in given if name not in names]:
        raise InputError(
            f"{where} names {unknown[0]!r}, which is not a column of the table ({len(names)} columns).",
            "Correct the name, or remove it.",
        )
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
        codes = series.cat.codes.to_numpy().astype(np.int32)
        values = tuple(series.dtype.categories.tolist())
        labels = _labels(values)
        indices = pa.array(codes, mask=codes < 0)
        return pa.DictionaryArray.from_arrays(indices, labels, ordered=series.dtype.ordered), labels, values
    if isinstance(series.dtype, np.dtype) and series.dtype.kind == "f":
        return _arrow(name, str(series.dtype), lambda: pa.array(series.to_numpy(), from_pandas=False)), None, None
    array = _arrow(name, str(series.dtype), lambda: _from_pandas(series))
    if series.dtype == object and not _is_plain(array.type):
        # the type of such columns, digits after the point included, would be read from the cells
        raise SchemaError(
            f"column {name!r} holds objects that are neither text, booleans, dates nor times of day.",
            "Give it a type of its own (astype, pandas.to_datetime, ArrowDtype), leave it out (drop=[...], --drop), or "
            "pass it through (keep=[...], --keep).",
        )
    return array, None, None


def _from_pandas(series: Any) -> Any:
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


def _labels(values: tuple[Any, ...]) -> pa.Array:
    """Categories as Arrow labels; written out where Arrow has no type for them (intervals, tuples)."""
    try:
        return pa.array([valid_text(value) for value in values])
    except (pa.ArrowException, OverflowError):
        return pa.array([repr(value) for value in values])


def _arrow(name: str, dtype: str, convert: Any) -> pa.Array:
    try:
        return _one_chunk(convert())
    except Exception:  # Arrow and polars put the offending cell into their messages
        raise SchemaError(
            f"column {name!r} of type {dtype} has no single Arrow type (mixed or unsupported values).",
            "Convert it to one type, leave it out (drop=[...], --drop), or pass it through (keep=[...], --keep).",
        ) from None


def _one_chunk(array: Any) -> pa.Array:
    if isinstance(array, pa.ChunkedArray):
        if pa.types.is_dictionary(array.type):
            array = array.unify_dictionaries()
        array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
    return array


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
        return pd.Categorical.from_codes(codes, _categories(labels[none:], dtype), ordered=dtype.ordered)
    array = cells_to_arrow(cells, labels, arrow_type)
    if isinstance(dtype, np.dtype):
        if dtype.kind in "iufbmM":
            return _numpy_values(cells, dtype)
        # whether None, NaN or NA marked what was missing is a fact about private cells: it is None for all
        return np.array([*array.to_pylist(), None], dtype=object)[:-1]  # the extra None keeps numpy from guessing
    return dtype.__from_arrow__(pa.chunked_array([array]))


def _categories(labels: pa.Array, dtype: Any) -> Any:
    """Labels as categories of pandas, in their order and, if that is possible, of the type that the dtype's have."""
    import pandas as pd

    listed = _labels(tuple(dtype.categories.tolist()))
    places = pc.index_in(labels.cast(listed.type), value_set=listed)
    if not places.null_count:
        return dtype.categories.take(places.to_numpy())
    values = [
        label if place is None else dtype.categories[place]
        for label, place in zip(labels.to_pylist(), places.to_pylist(), strict=True)
    ]
    try:
        return pd.Index(values, dtype=dtype.categories.dtype)
    except (TypeError, ValueError):
        return pd.Index(values, dtype=object)


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
        return (index if selected is None else index[selected]).remove_unused_levels()
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


def _is_enum(dtype: Any) -> bool:
    return bool(type(dtype).__name__ == "Enum")


def _filter(column: Any, backend: Backend, rows: Mask) -> Any:
    """A native column's rows where the mask is true."""
    if backend == "pyarrow":
        return pa.chunked_array([_filter_array(_one_chunk(column), rows)], column.type)
    if backend == "polars":
        import polars as pl

        return column.filter(pl.Series(rows))
    return column[rows]


def _without_unused_labels(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """The same cells; labels that only other rows have, which are not released, are gone from the dictionary."""
    codes = array.indices.drop_null().to_numpy(zero_copy_only=False)
    used = np.bincount(codes, minlength=len(array.dictionary)) > 0
    if used.all():
        return array
    places = pa.array(np.cumsum(used) - 1).cast(array.indices.type)
    labels = array.dictionary.filter(pa.array(used))
    return pa.DictionaryArray.from_arrays(places.take(array.indices), labels, ordered=array.type.ordered)


def _filter_array(array: pa.Array, rows: Mask) -> pa.Array:
    """Arrow cannot select rows of string views themselves."""
    if pa.types.is_string_view(array.type):
        return array.cast(pa.large_string()).filter(pa.array(rows)).cast(array.type)
    return array.filter(pa.array(rows))
