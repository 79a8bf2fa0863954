"""Text that is not what its encoding says: bytes that are no UTF-8, and UTF-8 that was read in another encoding."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from dipriv._tables.arrow import is_text


def with_valid_text(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows; bytes that are not in UTF-8 are replacement characters: not all who hand over text check it."""
    columns = list(map(_valid, batch.columns))
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _valid(array: pa.Array) -> pa.Array:
    if not (pt.is_string(array.type) or pt.is_large_string(array.type)):
        return array
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        found = array.cast(pa.large_string()).cast(pa.large_binary()).to_pylist()
        return pa.array([None if text is None else text.decode("utf-8", "replace") for text in found], array.type)
    return array


def as_in_utf8(encoding: str) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """Rows of a file that was read in this encoding; cells whose bytes are in UTF-8 are what they are there.

    A ledger looks at these, so that a file in UTF-8 is the same table in whichever encoding it is read.
    """

    def converted(array: pa.Array) -> pa.Array:
        if pt.is_dictionary(array.type):
            return pa.DictionaryArray.from_arrays(array.indices, converted(array.dictionary))
        if not is_text(array.type):
            return array
        odd = pc.fill_null(pc.invert(pc.string_is_ascii(array)), False)
        texts = [_in_utf8(text, encoding) for text in array.filter(odd).to_pylist()]
        return pc.replace_with_mask(array, odd, pa.array(texts, array.type)) if texts else array

    def convert(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch(list(map(converted, batch.columns)), names=batch.schema.names)

    return convert


def _in_utf8(text: str, encoding: str) -> str:
    try:
        content = text.encode(encoding)
        return text if content.isascii() else content.decode("utf-8")  # encodings in 7 bits are never UTF-8
    except UnicodeError:
        return text
