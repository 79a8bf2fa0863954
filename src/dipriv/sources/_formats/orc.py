"""ORC files, stripe by stripe, validated; a process of its own reads them, since damaged ones may end it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from dipriv._tables.presentation import Presentation
from dipriv.errors import InputError
from dipriv.sources._formats.registry import PLAIN, BinaryFormat, TableFile, file_format
from dipriv.sources._formats.separate_process import reader_process
from dipriv.sources._untrusted import check_width, validate_batch


@dataclass(frozen=True)
class Orc(BinaryFormat):
    name: str = "orc"
    suffixes: tuple[str, ...] = (".orc",)

    def schema(self, file: TableFile) -> pa.Schema:
        found = self._facts(file).remove_metadata()
        check_width(file.name, len(found))
        return found

    def batches(self, file: TableFile, names: Sequence[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with _read(file) as batches:
            for batch in batches:
                yield validate_batch(file.name, batch.select(list(names))).replace_schema_metadata()

    def n_rows(self, file: TableFile) -> int | None:
        return int(self._facts(file).metadata[b"rows"])

    def _facts(self, file: TableFile) -> pa.Schema:
        def find() -> pa.Schema:
            with _read(file, "facts") as batches:
                return batches.read_all().schema

        return file.kept("facts", find)

    def check_writable(self, schema: pa.Schema, n_rows: int) -> None:
        """Decimals of negative scale would end the process while they are written."""
        for column in schema:
            if _has_negative_scale(column.type):
                raise InputError(
                    f"column {column.name!r} has a type that ORC files cannot hold: decimals of negative scale.",
                    "Cast it to decimals of scale 0, drop it, or write .csv or .arrow.",
                )

    def writer(self, stream: Any, schema: pa.Schema, *, header: bool = True, presentation: Presentation = PLAIN) -> Any:
        return _Writer(stream, schema)


@contextmanager
def _read(file: TableFile, *options: str) -> Iterator[pa.RecordBatchReader]:
    with reader_process(file, "orc", *options) as process:
        try:
            with pa.ipc.open_stream(process.stdout) as batches:
                yield batches
        except (pa.ArrowInvalid, OSError):
            raise _unreadable(file) from None
    if process.returncode:
        raise _unreadable(file)


def _unreadable(file: TableFile) -> InputError:
    return InputError(f"{file.name} cannot be read as an ORC file.", "Save it again, or convert it to Parquet.")


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


def _has_negative_scale(of: pa.DataType) -> bool:
    """Whether this type, or one within it, is of decimals that have digits before the point alone."""
    if pt.is_dictionary(of):
        return _has_negative_scale(of.value_type)
    inner = [of.field(place).type for place in range(of.num_fields)]
    return (pt.is_decimal(of) and of.scale < 0) or any(map(_has_negative_scale, inner))


def _held(table: pa.Table) -> pa.Table:
    fields = [
        column.with_type(column.type.value_type if pt.is_dictionary(column.type) else column.type)
        for column in table.schema
    ]
    return table.cast(pa.schema(fields))


file_format(Orc())
