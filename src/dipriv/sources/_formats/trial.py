"""Rows that a writer is tried with, before anything is spent: what a format cannot hold by its type shows in them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.types as pt


def trial_rows(schema: pa.Schema, nulls: int = 1) -> pa.RecordBatch:
    """This number of rows without cells, then one with a value of each column's type.

    >>> trial_rows(pa.schema({"day": pa.date32(), "name": pa.string()})).to_pylist()
    [{'day': None, 'name': None}, {'day': datetime.date(1970, 1, 1), 'name': ''}]
    """
    columns = [pa.concat_arrays([pa.nulls(nulls, column.type), _one(column.type)]) for column in schema]
    return pa.record_batch(columns, names=schema.names)


def _one(of: pa.DataType) -> pa.Array:
    """A value of this type; a null if Arrow makes no such value, as of unions."""
    if pt.is_dictionary(of):
        return pa.DictionaryArray.from_arrays(pa.array([0], of.index_type), _one(of.value_type), ordered=of.ordered)
    if isinstance(of, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(of, _one(of.storage_type))
    try:
        return pa.array([_value(of)], of)
    except (pa.ArrowException, TypeError, ValueError):
        return pa.nulls(1, of)


def _value(of: pa.DataType) -> Any:
    """Bytes are no text in UTF-8, as those of a cell may be."""
    if pt.is_struct(of):
        return {field.name: _value(field.type) for field in of}
    if pt.is_map(of):
        return [(_value(of.key_type), _value(of.item_type))]
    if pt.is_nested(of) and not pt.is_union(of):
        return [_value(of.value_type)] * (of.list_size if pt.is_fixed_size_list(of) else 1)
    if pt.is_fixed_size_binary(of):
        return b"\xff" * of.byte_width
    if pt.is_binary(of) or pt.is_large_binary(of) or pt.is_binary_view(of):
        return b"\xff"
    if pt.is_string(of) or pt.is_large_string(of) or pt.is_string_view(of):
        return ""
    if pt.is_interval(of):
        return (0, 0, 0)
    if pt.is_timestamp(of):
        return (1 << 63) - 1  # a format with another unit may have no such time
    return False if pt.is_boolean(of) else 0
