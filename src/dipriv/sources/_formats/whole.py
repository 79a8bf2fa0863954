"""Formats that are read at once: their cells are kept as text in memory, and types are settled as those of CSV."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from types import ModuleType, TracebackType
from typing import Any

import pyarrow as pa

from dipriv._tables.presentation import Presentation
from dipriv.errors import MissingDependencyError, StorageError
from dipriv.sources._formats.registry import BinaryFormat, TableFile
from dipriv.sources._untrusted import memory

BATCH_ROWS = 1 << 16
BYTES_A_CELL = 100
"""Of memory, at most about, while cells are objects of Python."""


class WholeFormat(BinaryFormat):
    """What formats have in common that are read at once; `read_table` gives a table of text, and declared texts."""

    has_types = False
    dialect_fields: tuple[str, ...] = ("decimal", "dates")

    def read_table(self, file: TableFile) -> pa.Table:
        """All rows; cells of other types than text are written as in CSV."""
        raise NotImplementedError

    def presentation(self, file: TableFile) -> Presentation:
        return Presentation(has_plain_numbers=True)

    def schema(self, file: TableFile) -> pa.Schema:
        found: pa.Schema = self._table(file).schema
        return found

    def batches(self, file: TableFile, names: Sequence[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        yield from self._table(file).select(list(names)).to_batches(max_chunksize=BATCH_ROWS)

    def n_rows(self, file: TableFile) -> int | None:
        return int(self._table(file).num_rows)

    def _table(self, file: TableFile) -> pa.Table:
        return file.kept("table", lambda: self.read_table(file).combine_chunks())


class TableWriter:
    """Collects the batches of a release, and writes them as one table when it is closed."""

    def __init__(self, stream: Any, schema: pa.Schema, presentation: Presentation) -> None:
        self.stream, self.schema, self.presentation = stream, schema, presentation
        self._batches: list[pa.RecordBatch] = []

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        self._batches.append(batch)

    def close(self) -> None:
        """Write all rows."""
        self.stream.write(self.written(pa.Table.from_batches(self._batches, self.schema)))

    def written(self, table: pa.Table) -> bytes:
        """The file of a table."""
        raise NotImplementedError

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing is open."""


def python_values(array: pa.Array) -> list[Any]:
    """The cells as objects of Python; moments that it has no object for, as those beyond the year 9999, as texts."""
    try:
        return list(array.to_pylist())
    except (OverflowError, ValueError):
        return [_python_value(cell) for cell in array]


def _python_value(cell: pa.Scalar) -> Any:
    try:
        return cell.as_py()
    except (OverflowError, ValueError):
        return cell.cast(pa.string()).as_py()


def optional(module: str, extra: str, what: str) -> ModuleType:
    """A package that reads and writes a format; refuses with its extra if it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingDependencyError(
            f"{what} need the package {module}, which is not installed.", f"Install it: pip install 'dipriv[{extra}]'."
        ) from None


def check_room(name: str, rows: int, columns: int) -> None:
    """Refuse a table that would not fit into memory, before it is read."""
    if rows * columns * BYTES_A_CELL > memory():
        raise StorageError(
            f"{name} has {rows:,} rows and {columns:,} columns, which do not fit the memory of this machine.",
            "Convert it to Parquet or CSV, which are read in parts.",
        )
