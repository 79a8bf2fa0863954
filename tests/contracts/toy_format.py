"""A file format in one file: JSON lines, with names that end in .toyl. It shows all that a new format needs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.json as pajson

from dipriv._tables.presentation import Presentation
from dipriv.sources._formats.registry import PLAIN, BinaryFormat, TableFile, file_format


@dataclass(frozen=True)
class JsonLines(BinaryFormat):
    name: str = "toy-lines"
    suffixes: tuple[str, ...] = (".toyl",)

    def schema(self, file: TableFile) -> pa.Schema:
        found: pa.Schema = _read(file).schema
        return found

    def batches(self, file: TableFile, names: Sequence[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        wanted = pa.schema([schema.field(name) for name in names])
        yield from _read(file).select(list(names)).cast(wanted).to_batches(max_chunksize=1000)

    def writer(
        self, stream: Any, schema: pa.Schema, *, header: bool = True, presentation: Presentation = PLAIN
    ) -> JsonWriter:
        return JsonWriter(stream)


@dataclass(frozen=True)
class JsonWriter:
    stream: Any

    def write_batch(self, batch: pa.RecordBatch) -> None:
        for row in batch.to_pylist():
            self.stream.write(json.dumps(row, ensure_ascii=False, default=str).encode() + b"\n")

    def close(self) -> None:
        """Nothing is held back."""

    def __enter__(self) -> JsonWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _read(file: TableFile) -> pa.Table:
    with file.open() as stream:
        return pajson.read_json(pa.BufferReader(stream.read()), pajson.ReadOptions(block_size=1 << 26))


file_format(JsonLines())
