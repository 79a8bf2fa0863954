"""A released table's canonical form: names, types and cells, whatever its library, its chunks or its way with text."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.types as pt

Columns = list[tuple[str, str, pa.Array]]
_TEXT = "text"


def digest(data: Any) -> str:
    """SHA-256 of a table's canonical form."""
    found = hashlib.sha256()
    for name, kind, array in columns_of(data):
        found.update(f"{len(name)}:{name}{len(kind)}:{kind}{len(array)}:".encode())
        found.update(np.packbits(array.is_null().to_numpy(zero_copy_only=False)).tobytes())
        found.update(_cells(array.drop_null()))
    return found.hexdigest()


def columns_of(data: Any) -> Columns:
    """Names, types as text, and cells; of a pandas table also its index and the categories of its types."""
    if isinstance(data, pd.DataFrame):
        return [part for part in _of_pandas(data) if part is not None]
    if isinstance(data, pl.DataFrame):
        return [(name, _polars_type(data[name]), _whole(data[name].to_arrow())) for name in data.columns]
    if isinstance(data, np.ndarray):
        return [(f"x{i}", str(data.dtype), pa.array(data[:, i], from_pandas=False)) for i in range(data.shape[1])]
    assert isinstance(data, pa.Table)
    return [(column.name, _arrow_type(column.type), _whole(data.column(column.name))) for column in data.schema]


def _of_pandas(frame: pd.DataFrame) -> Columns:
    parts: Columns = [("index", _TEXT, pa.array([repr(label) for label in frame.index.tolist()], pa.large_string()))]
    for name in frame.columns:
        series = frame[name]
        if isinstance(series.dtype, pd.CategoricalDtype):
            labels = pa.array([repr(label) for label in series.dtype.categories.tolist()], pa.large_string())
            parts.append((f"categories of {name}", f"ordered={series.dtype.ordered}", labels))
        array = _pandas_array(series)
        kind = _TEXT if _is_text(array.type) else str(series.dtype)
        parts.append((str(name), kind, array))
    return parts


def _pandas_array(series: pd.Series[Any]) -> pa.Array:
    if isinstance(series.dtype, np.dtype) and series.dtype.kind == "f":
        return pa.array(series.to_numpy(), from_pandas=False)  # a NaN stays one
    if isinstance(series.dtype, pd.CategoricalDtype):
        codes = series.cat.codes.to_numpy().astype(np.int32)
        labels = pa.array([str(label) for label in series.dtype.categories.tolist()], pa.large_string())
        return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), labels)
    return _whole(pa.Array.from_pandas(series))


def _polars_type(series: pl.Series) -> str:
    if series.dtype == pl.String:
        return _TEXT
    return "categorical" if isinstance(series.dtype, pl.Categorical) else str(series.dtype)


def _arrow_type(kind: pa.DataType) -> str:
    if pt.is_dictionary(kind):
        return f"dictionary of {_arrow_type(kind.value_type)}"
    return _TEXT if _is_text(kind) else str(kind)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind))


def _whole(array: Any) -> pa.Array:
    if isinstance(array, pa.ChunkedArray):
        array = array.unify_dictionaries() if pt.is_dictionary(array.type) else array
        array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
    return array.cast(pa.large_string()) if _is_text(array.type) else array


def _cells(array: pa.Array) -> bytes:
    """The cells, none of them null: numbers by their bits, times by their ticks, all others as text."""
    kind = array.type
    if pt.is_dictionary(kind):
        return _cells(array.dictionary_decode())
    if pt.is_floating(kind):
        values = array.to_numpy(zero_copy_only=False)
        return _little(np.where(np.isnan(values), np.array(np.nan, values.dtype), values))
    if pt.is_boolean(kind):
        return _cells(array.cast(pa.uint8()))
    if pt.is_temporal(kind):
        return _cells(array.view(pa.int32() if kind.bit_width == 32 else pa.int64()))
    if pt.is_integer(kind):
        return _little(array.to_numpy(zero_copy_only=False))
    texts = [text.encode() for text in array.cast(pa.large_string()).to_pylist()]
    return b"".join(b"%d:%s" % (len(text), text) for text in texts)


def _little(values: np.ndarray[Any, np.dtype[Any]]) -> bytes:
    return values.astype(values.dtype.newbyteorder("<")).tobytes()
