"""Whole numbers, days and indices of dictionaries in few bytes, for rows that are kept between two passes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

_NARROW = (pa.int8(), pa.int16(), pa.int32())


def narrowed(table: pa.Table) -> pa.Table:
    """The same cells, whole numbers, days and indices as the narrowest whole numbers that hold them all.

    >>> narrowed(pa.table({"age": [17, None]})).schema.types
    [DataType(int8)]
    """
    columns = [_narrow(column) for column in table.columns]
    fields = [of.with_type(column.type) for of, column in zip(table.schema, columns, strict=True)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def restored(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table that was narrowed, by its schema."""
    columns = [_as(column, of.type) for column, of in zip(table.columns, schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)


def _narrow(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pt.is_dictionary(column.type):
        labels = max((len(part.dictionary) for part in column.chunks), default=0)
        return _with_indices(column, _narrowest(column.type.index_type, 0, labels))
    if pt.is_date32(column.type):
        column = column.cast(pa.int32())
    if not pt.is_integer(column.type) or not len(column):
        return column
    least, most = (end.as_py() for end in pc.min_max(column).values())
    return column.cast(_narrowest(column.type, least or 0, most or 0))


def _narrowest(integer: pa.DataType, least: int, most: int) -> pa.DataType:
    """The type, or a narrower one that holds these numbers."""
    for narrow in _NARROW:
        limits = np.iinfo(narrow.to_pandas_dtype())
        if narrow.bit_width < integer.bit_width and limits.min <= least and most <= limits.max:
            return narrow
    return integer


def _as(column: pa.ChunkedArray, arrow_type: pa.DataType) -> pa.ChunkedArray:
    if column.type == arrow_type:
        return column
    if pt.is_dictionary(arrow_type):
        return _with_indices(column, arrow_type.index_type)
    return column.cast(pa.int32()).cast(arrow_type) if pt.is_date32(arrow_type) else column.cast(arrow_type)


def _with_indices(column: pa.ChunkedArray, integer: pa.DataType) -> pa.ChunkedArray:
    """The same dictionaries, with indices of this type."""
    of = column.type
    if of.index_type == integer:
        return column
    parts = [
        pa.DictionaryArray.from_arrays(part.indices.cast(integer), part.dictionary, ordered=of.ordered, safe=False)
        for part in column.chunks
    ]
    return pa.chunked_array(parts, pa.dictionary(integer, of.value_type, of.ordered))
