"""Whole numbers and days in as few bytes as their values need, for rows that are kept between two passes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

_NARROW = (pa.int8(), pa.int16(), pa.int32())


def narrowed(table: pa.Table) -> pa.Table:
    """The same cells, whole numbers and days as the narrowest whole numbers that hold them all.

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
    if pt.is_date32(column.type):
        column = column.cast(pa.int32())
    if not pt.is_integer(column.type) or column.type.bit_width == 8 or not len(column):
        return column
    least, most = (end.as_py() for end in pc.min_max(column).values())
    if least is None:
        return column.cast(pa.int8())
    for narrow in _NARROW:
        limits = np.iinfo(narrow.to_pandas_dtype())
        if narrow.bit_width < column.type.bit_width and limits.min <= least and most <= limits.max:
            return column.cast(narrow)
    return column


def _as(column: pa.ChunkedArray, arrow_type: pa.DataType) -> pa.ChunkedArray:
    if column.type == arrow_type:
        return column
    return column.cast(pa.int32()).cast(arrow_type) if pt.is_date32(arrow_type) else column.cast(arrow_type)
