"""Rows in blocks of a fixed size, the same ones in every pass.

A release needs that. A row's noise is a function of its number, as is whether it is held out: other values must never
meet the same noise, nor a row be on both sides. And the counts that a reference is learned from put several passes
together: the noise covers one row, not a row that moved in between. So the first pass stores a keyed digest of each
block; later passes verify each block before yielding it. Memory holds a block and what the source reads ahead.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from dipriv._base.parallel import in_parallel
from dipriv._tables.frames import Table

DIGEST_BYTES = 32


def block_digest(table: Table, names: Sequence[str], key: bytes) -> bytes:
    """An HMAC of the cells as the mechanism sees them: labels, numbers, and which cells are missing."""

    def of_column(name: str) -> bytes:
        found = hmac.new(key, digestmod="sha256")
        if table.column(name).storage.family == "label":
            for part in _text_parts(table.array(name)):
                found.update(part)
            return found.digest()
        cells = table.cells(name)
        found.update(np.ascontiguousarray(cells.values).data)
        if cells.missing is not None and cells.missing.any():
            found.update(cells.missing.data)
        return found.digest()

    return hmac.digest(key, b"".join(in_parallel(of_column, names)), "sha256")


def _text_parts(array: pa.Array) -> Iterator[Any]:
    """What distinguishes labels, independent of how they are stored: positions of nulls, lengths and content."""
    if pt.is_dictionary(array.type):
        labels, codes = _coded(array)
        yield json.dumps(labels, default=str).encode()
        yield codes.data
        return
    if pt.is_string_view(array.type):
        array = array.cast(pa.large_string())
    if array.null_count:
        yield np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False)).data
        array = array.fill_null("")
    _, offsets, content = array.buffers()
    width = "<i8" if pt.is_large_string(array.type) else "<i4"
    ends = np.frombuffer(offsets, dtype=width)[array.offset : array.offset + len(array) + 1]
    yield np.diff(ends).data
    if content is not None:
        yield content[int(ends[0]) : int(ends[-1])]


def _coded(array: pa.Array) -> tuple[list[Any], NDArray[np.int32]]:
    """Labels in the order in which they are met, and the number of each row's label; -1 for nulls."""
    plain = array.dictionary_decode()
    plain = plain.cast(pa.large_string()) if pa.types.is_string_view(plain.type) else plain
    coded = plain.dictionary_encode()
    labels = coded.dictionary
    if pt.is_temporal(labels.type):  # Python has no dates before the year 1 or after 9999
        labels = labels.view(pa.int32() if labels.type.bit_width == 32 else pa.int64())
    return labels.to_pylist(), coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)


def cut(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.Table]:
    """The same rows in tables of `size` rows, but for the last, each in one piece."""
    waiting: list[pa.RecordBatch] = []
    missing = size
    for batch in batches:
        start = 0
        while batch.num_rows - start >= missing:
            yield _together([*waiting, batch.slice(start, missing)])
            start, missing, waiting = start + missing, size, []
        if start < batch.num_rows:
            waiting.append(batch.slice(start))
            missing -= batch.num_rows - start
    if waiting:
        yield _together(waiting)


def _together(parts: Sequence[pa.RecordBatch]) -> pa.Table:
    table = pa.Table.from_batches(parts)
    return table if len(parts) == 1 else table.unify_dictionaries().combine_chunks()
