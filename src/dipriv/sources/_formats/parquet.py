"""Parquet files, read by few rows at a time and validated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dipriv._tables.presentation import Presentation
from dipriv.sources._formats.registry import PLAIN, BinaryFormat, TableFile, file_format
from dipriv.sources._untrusted import rows_at_once, validate_batch


@dataclass(frozen=True)
class Parquet(BinaryFormat):
    name: str = "parquet"
    suffixes: tuple[str, ...] = (".parquet", ".pq")

    def schema(self, file: TableFile) -> pa.Schema:
        with file.open() as stream:
            return pq.ParquetFile(stream).schema_arrow

    def batches(self, file: TableFile, names: Sequence[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with file.open() as stream:
            parquet = pq.ParquetFile(stream)
            for batch in parquet.iter_batches(rows_at_once(parquet, stream), columns=list(names)):
                yield validate_batch(file.name, batch)

    def n_rows(self, file: TableFile) -> int | None:
        with file.open() as stream:
            return int(pq.ParquetFile(stream).metadata.num_rows)

    def writer(self, stream: Any, schema: pa.Schema, *, header: bool = True, presentation: Presentation = PLAIN) -> Any:
        return pq.ParquetWriter(stream, schema, compression="zstd")


file_format(Parquet())
