"""Validate untrusted Arrow data: buffer bounds and decompression bombs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt
from numpy.typing import NDArray

from dipriv.errors import InputError

MAX_COLUMNS = 10_000
BATCH_ROWS, BATCH_TEXT = 1 << 18, 1 << 28
"""Rows of a Parquet file that are read at once; fewer where they could hold more bytes of text."""
_LITTLE_TEXT = 1 << 28


def memory() -> int:
    """The bytes of memory that the machine has."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # a system that does not tell
        return 1 << 33


def validate_batch(name: str, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch, once all its offsets, indices and texts are valid, its rows are there, and its labels fit memory."""
    batch.validate(full=True)
    check_width(name, len(batch.schema.names))
    if batch.num_rows > 8 * batch.nbytes:
        raise InputError(f"{name} claims {batch.num_rows:,} rows that have no cells.", "Leave out columns of nulls.")
    for column, array in zip(batch.schema.names, batch.columns, strict=True):
        if (size := _expanded_bytes(array)) > memory() // 2:
            raise InputError(
                f"{name}: the labels of column {column!r} expand to {size >> 20:,} MB, over half of this machine's "
                "memory.",
                "Shorten its labels, or use a machine with more memory.",
            )
    return batch


def check_width(name: str, columns: int) -> None:
    """Each column costs memory and time even where it is empty."""
    if columns > MAX_COLUMNS:
        raise InputError(
            f"{name} has {columns:,} columns, more than {MAX_COLUMNS:,}.", "Leave columns out of the file."
        )


def rows_at_once(file: Any, stream: Any, groups: Iterable[int] | None = None) -> int:
    """How many rows of a Parquet file to read at once: a text that is stored once may stand in every row.

    The dictionaries of its texts are looked at first, row group by row group. What the metadata says of them is not: it
    may be wrong, and Arrow ends the process where it is.
    """
    check_width("the Parquet file", len(file.schema_arrow))
    texts = [field.name for field in file.schema_arrow if _is_text(field.type)]
    if not texts:
        return BATCH_ROWS
    rows = BATCH_ROWS
    dictionaries = pq.ParquetFile(stream, metadata=file.metadata, read_dictionary=texts)
    for group in range(file.metadata.num_row_groups) if groups is None else groups:
        for batch in dictionaries.iter_batches(1, row_groups=[group], columns=texts):
            longest = sum(map(_longest, batch.columns))
            rows = max(1, min(rows, BATCH_TEXT // max(1, longest)))
            break
    return rows


def _expanded_bytes(array: pa.Array) -> int:
    """The bytes of text that views and labels expand to, where these may be many more than are stored; else 0."""
    if pt.is_dictionary(array.type) and _is_text(array.type.value_type):
        lengths = _lengths(array.dictionary)
        if not len(lengths) or int(lengths.max()) * len(array) <= _LITTLE_TEXT:
            return 0
        return int(lengths[array.indices.drop_null().to_numpy(zero_copy_only=False)].sum())
    return int(_lengths(array).sum()) if pt.is_string_view(array.type) else 0


def _longest(array: pa.Array) -> int:
    texts = array.dictionary if pt.is_dictionary(array.type) else array
    lengths = _lengths(texts) if _is_text(texts.type) else np.zeros(0, dtype=np.int64)
    return int(lengths.max(initial=0))


def _lengths(texts: pa.Array) -> NDArray[np.int64]:
    """The bytes of each text, 0 for nulls."""
    if not pt.is_string_view(texts.type):
        found: NDArray[Any] = pc.binary_length(texts).fill_null(0).to_numpy(zero_copy_only=False)
        return found.astype(np.int64)
    words = np.frombuffer(texts.buffers()[1], dtype="<i4")  # a view has four, the first of which is its length
    lengths = words[4 * texts.offset : 4 * (texts.offset + len(texts)) : 4].astype(np.int64)
    return lengths if not texts.null_count else np.where(texts.is_null().to_numpy(zero_copy_only=False), 0, lengths)


def _is_text(arrow_type: pa.DataType) -> bool:
    return bool(pt.is_string(arrow_type) or pt.is_large_string(arrow_type) or pt.is_string_view(arrow_type))
