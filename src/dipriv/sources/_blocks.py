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
from dipriv._tables.arrow import decoded
from dipriv._tables.frames import Table

DIGEST_BYTES = 32


def block_digest(table: Table, names: Sequence[str], key: bytes) -> bytes:
    """An HMAC of the cells as the mechanism sees them: types, numbers, labels, and which cells are missing and how.

    Blocks that differ in any of these are different texts to the HMAC: each part has its length before it, and a column
    always has the same number of parts in the same order.
    """

    def of_column(name: str) -> bytes:
        storage = table.column(name).storage
        facts = json.dumps([name, storage.label, table.rows])
        is_label = storage.family == "label"
        cells = _label_parts(table.array(name)) if is_label else _number_parts(table, name)
        return _hashed(key, [facts.encode(), *cells])

    return _hashed(key, in_parallel(of_column, names))


def _hashed(key: bytes, parts: Iterable[Any]) -> bytes:
    found = hmac.new(key, digestmod="sha256")
    for part in parts:
        found.update(memoryview(part).nbytes.to_bytes(8, "little"))
        found.update(part)
    return found.digest()


def _number_parts(table: Table, name: str) -> list[Any]:
    """The numbers, and the kind of each missing cell where there is one: null or not a number."""
    cells = table.cells(name)
    missing = b"" if cells.missing is None or not cells.missing.any() else _bytes(cells.missing)
    return [cells.values.dtype.str.encode(), _bytes(cells.values), missing]


def _label_parts(array: pa.Array) -> list[Any]:
    """What distinguishes labels: those of a dictionary in the order in which they are met, and each row's number."""
    if not pt.is_dictionary(array.type):
        return _text_parts(array)
    labels, coded = array.dictionary, array.indices.dictionary_encode()
    if pt.is_string_view(labels.type):
        labels = labels.cast(pa.string())
    if labels.null_count or len(labels.unique()) < len(labels):
        coded = decoded(array).dictionary_encode()
        labels = coded.dictionary
    else:
        labels = labels.take(coded.dictionary)
    if pt.is_temporal(labels.type):  # Python has no dates before the year 1 or after 9999
        labels = labels.view(pa.int32() if labels.type.bit_width == 32 else pa.int64())
    is_text = pt.is_string(labels.type) or pt.is_large_string(labels.type)
    written = _text_parts(labels) if is_text else [json.dumps(labels.to_pylist(), default=str).encode(), b"", b""]
    return [*written, _bytes(coded.indices.fill_null(-1).to_numpy(zero_copy_only=False))]


def _text_parts(array: pa.Array) -> list[Any]:
    """The positions of nulls, the lengths, and all texts one after the other."""
    if not pt.is_large_string(array.type):
        array = array.cast(pa.large_string())
    nulls = b""
    if array.null_count:
        nulls = _bytes(np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False)).astype("<i8"))
        array = array.fill_null("")
    _, offsets, content = array.buffers()
    ends = np.frombuffer(offsets, dtype="<i8")[array.offset : array.offset + len(array) + 1]
    return [nulls, _bytes(np.diff(ends)), b"" if content is None else content[int(ends[0]) : int(ends[-1])]]


def _bytes(values: NDArray[Any]) -> Any:
    return np.ascontiguousarray(values).data


def cut(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.Table]:
    """The same rows in tables of `size` rows, but for the last, each in one piece.

    Only dictionaries stay in parts whose indices have no room for the labels of all parts. Text that is a dictionary in
    some parts only is text in all of them.
    """
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
    if len(parts) == 1:
        return pa.Table.from_batches(parts)
    table = pa.Table.from_batches(_of_one_type(parts))
    try:
        return table.unify_dictionaries().combine_chunks()
    except pa.ArrowInvalid:  # the labels that all parts have together are a fact about rows
        coded = [pt.is_dictionary(column.type) for column in table.schema]
        others = table.select([name for name, is_coded in zip(table.column_names, coded, strict=True) if not is_coded])
        joined = iter(others.combine_chunks().columns)
        columns = [column if is_coded else next(joined) for column, is_coded in zip(table.columns, coded, strict=True)]
        return pa.Table.from_arrays(columns, schema=table.schema)


def _of_one_type(parts: Sequence[pa.RecordBatch]) -> Sequence[pa.RecordBatch]:
    """The parts, where columns that are dictionaries in some of them only are written out."""
    if all(part.schema == parts[0].schema for part in parts):
        return parts
    types = [{part.schema.types[place] for part in parts} for place in range(parts[0].num_columns)]
    return [
        pa.record_batch(
            [decoded(array) if len(of) > 1 else array for array, of in zip(part.columns, types, strict=True)],
            names=part.schema.names,
        )
        for part in parts
    ]
