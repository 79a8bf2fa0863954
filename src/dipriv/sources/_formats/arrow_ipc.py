"""Arrow IPC files (Feather) and streams, validated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from dipriv.sources._formats.registry import TableFile, file_format
from dipriv.sources._untrusted import validate_batch


@dataclass(frozen=True)
class ArrowIpc:
    name: str = "arrow"
    suffixes: tuple[str, ...] = (".arrow", ".feather", ".ipc")
    is_text: bool = False

    def schema(self, file: TableFile, types: Mapping[str, pa.DataType]) -> pa.Schema:
        with file.open() as stream:
            return (pa.ipc.open_file(stream) if _is_file(stream) else pa.ipc.open_stream(stream)).schema

    def batches(self, file: TableFile, names: Sequence[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with file.open() as stream:
            for batch in _batches(stream):
                yield validate_batch(file.name, batch).select(list(names))

    def n_rows(self, file: TableFile) -> int | None:
        return None

    def writer(self, stream: Any, schema: pa.Schema, *, header: bool = True) -> Any:
        return pa.ipc.new_file(stream, schema)


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
