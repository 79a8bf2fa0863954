"""ORC files, stripe by stripe, validated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from dipriv._tables.presentation import Presentation
from dipriv.sources._formats.registry import PLAIN, BinaryFormat, TableFile, file_format
from dipriv.sources._untrusted import check_width, validate_batch


@dataclass(frozen=True)
class Orc(BinaryFormat):
    name: str = "orc"
    suffixes: tuple[str, ...] = (".orc",)

    def schema(self, file: TableFile) -> pa.Schema:
        from pyarrow import orc

        with file.open() as stream:
            found: pa.Schema = orc.ORCFile(stream).schema
        check_width(file.name, len(found))
        return found

    def batches(self, file: TableFile, names: Sequence[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        from pyarrow import orc

        with file.open() as stream:
            found = orc.ORCFile(stream)
            for stripe in range(found.nstripes):
                yield validate_batch(file.name, found.read_stripe(stripe, columns=list(names))).select(list(names))

    def n_rows(self, file: TableFile) -> int | None:
        from pyarrow import orc

        with file.open() as stream:
            return int(orc.ORCFile(stream).nrows)

    def writer(self, stream: Any, schema: pa.Schema, *, header: bool = True, presentation: Presentation = PLAIN) -> Any:
        return _Writer(stream, schema)


class _Writer:
    """ORC has no dictionaries: labels are written as texts."""

    def __init__(self, stream: Any, schema: pa.Schema) -> None:
        from pyarrow import orc

        self._file = orc.ORCWriter(stream, compression="zstd")
        self._file.write(_held(schema.empty_table()))  # refuses types that ORC does not have

    def write_batch(self, batch: pa.RecordBatch) -> None:
        self._file.write(_held(pa.Table.from_batches([batch])))

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _held(table: pa.Table) -> pa.Table:
    fields = [
        column.with_type(column.type.value_type if pt.is_dictionary(column.type) else column.type)
        for column in table.schema
    ]
    return table.cast(pa.schema(fields))


file_format(Orc())
