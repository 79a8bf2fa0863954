"""Arrow IPC files (Feather) and streams, validated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dipriv._tables.presentation import Presentation
from dipriv.sources._formats.registry import PLAIN, BinaryFormat, TableFile, file_format
from dipriv.sources._untrusted import validate_batch


@dataclass(frozen=True)
class ArrowIpc(BinaryFormat):
    name: str = "arrow"
    suffixes: tuple[str, ...] = (".arrow", ".feather", ".ipc")

    def schema(self, file: TableFile) -> pa.Schema:
        with file.open() as stream:
            return (pa.ipc.open_file(stream) if _is_file(stream) else pa.ipc.open_stream(stream)).schema

    def batches(self, file: TableFile, names: Sequence[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with file.open() as stream:
            for batch in _batches(stream):
                yield validate_batch(file.name, batch).select(list(names))

    def writer(self, stream: Any, schema: pa.Schema, *, header: bool = True, presentation: Presentation = PLAIN) -> Any:
        return _Writer(stream, schema)


class _Writer:
    """A file has one dictionary a column, which may grow: each batch's own labels are added to it."""

    def __init__(self, stream: Any, schema: pa.Schema) -> None:
        self._file = pa.ipc.new_file(stream, schema, options=pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True))
        self._labels: dict[str, pa.Array] = {}

    def write_batch(self, batch: pa.RecordBatch) -> None:
        columns = [
            self._with_all_labels(name, array) if pa.types.is_dictionary(array.type) else array
            for name, array in zip(batch.schema.names, batch.columns, strict=True)
        ]
        self._file.write_batch(pa.RecordBatch.from_arrays(columns, schema=batch.schema))

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _with_all_labels(self, name: str, array: pa.DictionaryArray) -> pa.DictionaryArray:
        seen = self._labels.get(name)
        if seen is None or array.dictionary.equals(seen):
            self._labels[name] = array.dictionary
            return array
        new = array.dictionary.filter(pc.is_null(pc.index_in(array.dictionary, seen)))
        labels = self._labels[name] = pa.concat_arrays([seen, new])
        places = pc.index_in(array.dictionary, labels).cast(array.type.index_type)
        return pa.DictionaryArray.from_arrays(places.take(array.indices), labels, ordered=array.type.ordered)


def _is_file(stream: Any) -> bool:
    magic = stream.read(6)
    stream.seek(0)
    return bool(magic == b"ARROW1")


def _batches(stream: Any) -> Iterator[pa.RecordBatch]:
    if not _is_file(stream):
        yield from pa.ipc.open_stream(stream)
        return
    reader = pa.ipc.open_file(stream)
    for number in range(reader.num_record_batches):
        yield reader.get_batch(number)


file_format(ArrowIpc())
