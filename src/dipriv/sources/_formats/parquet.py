"""Parquet files, read by few rows at a time and validated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from dipriv._tables.arrow import is_text
from dipriv._tables.presentation import Presentation
from dipriv._tables.repeated import SAMPLE, may_repeat
from dipriv.sources._formats.registry import PLAIN, BinaryFormat, TableFile, file_format
from dipriv.sources._untrusted import rows_at_once, validate_batch

_MAX_SECONDS = (1 << 63) // 1000 - 1
GROUP_CELLS = 1 << 22
"""Cells of a row group that is written."""
SAMPLE_WRITTEN = 1 << 16
"""The number of cells of a column that are looked at before it is written."""


@dataclass(frozen=True)
class Parquet(BinaryFormat):
    name: str = "parquet"
    suffixes: tuple[str, ...] = (".parquet", ".pq")

    def schema(self, file: TableFile) -> pa.Schema:
        with file.open() as stream:
            return pq.ParquetFile(stream).schema_arrow

    def batches(self, file: TableFile, names: Sequence[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with file.open() as stream:
            yield from read_batches(file.name, stream, names)

    def n_rows(self, file: TableFile) -> int | None:
        with file.open() as stream:
            return int(pq.ParquetFile(stream).metadata.num_rows)

    def writer(self, stream: Any, schema: pa.Schema, *, header: bool = True, presentation: Presentation = PLAIN) -> Any:
        return _RowGroups(stream, schema, GROUP_CELLS // max(1, len(schema)))


def read_batches(
    name: str, stream: Any, names: Sequence[str], groups: Sequence[int] | None = None
) -> Iterator[pa.RecordBatch]:
    """These columns of a file, of all its row groups or of some, by few rows at a time; repeated text is coded."""
    parquet = pq.ParquetFile(stream)
    groups = range(parquet.metadata.num_row_groups) if groups is None else groups
    rows = rows_at_once(parquet, stream, groups)
    repeated = _repeated(parquet, names, rows, groups)
    coded = pq.ParquetFile(stream, metadata=parquet.metadata, read_dictionary=repeated)
    for batch in coded.iter_batches(rows, row_groups=list(groups), columns=list(names)):
        yield validate_batch(name, batch)


@dataclass(eq=False)
class _RowGroups:
    """Writes batches together, in row groups of at least this number of rows: few large ones are faster and smaller.

    A column whose first cells repeat few values gets dictionaries. In others they would be begun and given up in each
    row group, which takes longer and makes the file larger.
    """

    stream: Any
    schema: pa.Schema
    rows: int
    _writer: Any = None
    _waiting: list[pa.RecordBatch] = field(default_factory=list)

    def write_batch(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(_storable(batch))
        if sum(len(each) for each in self._waiting) >= self.rows:
            self._write()

    def _write(self) -> None:
        table = pa.Table.from_batches(self._waiting, schema=self.schema)
        if self._writer is None:
            repeated = _repeating(table.slice(0, SAMPLE_WRITTEN))
            self._writer = pq.ParquetWriter(self.stream, self.schema, compression="zstd", use_dictionary=repeated)
        if len(table):
            self._writer.write_table(table, row_group_size=len(table))
        self._waiting = []

    def close(self) -> None:
        if self._waiting or self._writer is None:
            self._write()
        self._writer.close()

    def __enter__(self) -> _RowGroups:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _storable(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch, where times in seconds that are too large for milliseconds, as which Parquet stores them, are the last
    or first ones that are not.
    """
    columns = [_in_milliseconds(column) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _in_milliseconds(array: pa.Array) -> pa.Array:
    of = array.type
    if pt.is_dictionary(of):
        labels = _in_milliseconds(array.dictionary)
        return pa.DictionaryArray.from_arrays(array.indices, labels, ordered=of.ordered)
    if not pt.is_timestamp(of) or of.unit != "s":
        return array
    ticks = array.cast(pa.int64())
    return pc.max_element_wise(
        pc.min_element_wise(ticks, _MAX_SECONDS, skip_nulls=False), -_MAX_SECONDS, skip_nulls=False
    ).cast(of)


def _repeating(table: pa.Table) -> list[str] | bool:
    """The columns with each value twice on average; True, which stands for all, where some are of types of other kinds.

    Cells of several values have parts that Parquet names in its own way.
    """
    if any(pt.is_nested(of) or isinstance(of, pa.BaseExtensionType) for of in table.schema.types):
        return True
    columns = zip(table.column_names, table.columns, strict=True)
    return [name for name, column in columns if pt.is_dictionary(column.type) or may_repeat(column)]


def _repeated(parquet: Any, names: Sequence[str], rows: int, groups: Sequence[int]) -> list[str]:
    """The columns of text whose first cells repeat few texts: they are read as dictionaries, as they are stored.

    Not views, which Arrow cannot make from dictionaries.
    """
    types = {name: parquet.schema_arrow.field(name).type for name in names}
    texts = [name for name, of in types.items() if is_text(of) and not pa.types.is_string_view(of)]
    some = parquet.iter_batches(min(SAMPLE, rows), row_groups=list(groups), columns=texts) if texts else ()
    for batch in some:
        return [name for name, array in zip(texts, batch.columns, strict=True) if may_repeat(array)]
    return []


file_format(Parquet())
