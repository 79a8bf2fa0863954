"""JSON lines: one object a line, whose keys are the columns."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from dipriv._tables.cell_classes import CellClass, classify
from dipriv._tables.column_types import count_classes, fits
from dipriv._tables.presentation import Presentation, TextColumns
from dipriv.errors import InputError
from dipriv.schema import MISSING_MARKS
from dipriv.sources._errors import BLOCK_BYTES
from dipriv.sources._formats.registry import PLAIN, TableFile, file_format
from dipriv.sources._formats.whole import WholeFormat, check_room, python_values
from dipriv.sources._untrusted import check_width

ENOUGH_ROWS = 3
"""A key that at least this number of rows have is a column, one that no row has is none; in between it is a fault."""


@dataclass(frozen=True)
class JsonLines(WholeFormat):
    name: str = "jsonl"
    suffixes: tuple[str, ...] = (".jsonl", ".ndjson")
    dialect_fields: tuple[str, ...] = ("dates",)

    def text_columns(self, file: TableFile) -> TextColumns:
        """Columns of texts that look like numbers: codes such as "60601". Dates are texts in JSON."""
        _ = self.n_rows(file)
        return file.kept("texts", TextColumns)

    def read_table(self, file: TableFile) -> pa.Table:
        rows, times, where = [], Counter[str](), dict[str, int]()
        for number, line in _lines(file):
            row = _row(file.name, number, line)
            for key in row:
                where.setdefault(key, number)
            times.update(row.keys())
            check_width(file.name, len(times))
            rows.append(row)
            if len(rows) % (1 << 16) == 0:
                check_room(file.name, len(rows), len(times))
        if rare := [key for key in times if times[key] < min(ENOUGH_ROWS, len(rows))]:
            raise InputError(
                f"{file.name}: line {where[rare[0]]} has a key that fewer than {ENOUGH_ROWS} lines have "
                f"({len(rare)} such keys).",
                "Give every line the same keys, with null for missing values.",
            )
        if not times:
            raise InputError(f"{file.name} has no rows.", "Give a table with at least one row.")
        columns = {key: [row.get(key) for row in rows] for key in sorted(times)}  # no row settles their order
        table = pa.table({key: pa.array(cells, pa.string()) for key, cells in columns.items()})
        texts = {key: _are_codes(cells, table[key]) for key, cells in columns.items()}
        file.kept("texts", lambda: TextColumns.by_cells(texts, frozenset(columns)))
        return table

    def check_writable(self, schema: pa.Schema, n_rows: int) -> None:
        for column in schema:
            if pt.is_nested(column.type) or pt.is_binary(column.type):
                raise InputError(
                    f"column {column.name!r} has a type that JSON cannot hold.", "Drop it, or write another format."
                )

    def writer(self, stream: Any, schema: pa.Schema, *, header: bool = True, presentation: Presentation = PLAIN) -> Any:
        return _Writer(stream)


class _Writer:
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write_batch(self, batch: pa.RecordBatch) -> None:
        names = batch.schema.names
        lines = [
            json.dumps(dict(zip(names, map(_value, row), strict=True)), ensure_ascii=False) + "\n"
            for row in zip(*map(python_values, batch.columns), strict=True)
        ]
        self._stream.write("".join(lines).encode("utf-8"))

    def close(self) -> None:
        """Every line is written."""

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _value(cell: Any) -> Any:
    if cell is None or isinstance(cell, (bool, int, str)):
        return cell
    if isinstance(cell, float):
        return cell if math.isfinite(cell) else None if math.isnan(cell) else str(cell)
    return str(cell)


def _lines(file: TableFile) -> Iterator[tuple[int, bytes]]:
    """Lines that are not empty, with their numbers."""
    rest, number = b"", 0
    with file.open() as stream:
        while True:
            block = stream.read(BLOCK_BYTES)
            *whole, rest = (rest + block).split(b"\n")
            if not block and rest:
                whole, rest = [*whole, rest], b""
            for line in whole:
                number += 1
                if line.strip():
                    yield number, line
            if not block:
                return
            if len(rest) > BLOCK_BYTES:
                raise InputError(
                    f"{file.name}: line {number + 1} is longer than {BLOCK_BYTES >> 20} MB.", "Write one object a line."
                )


class _Written(str):
    """A cell that is no text, as it is written in CSV."""

    __slots__ = ()


def _are_codes(cells: Sequence[str | None], written: pa.ChunkedArray) -> bool | None:
    """Whether nearly all cells are texts, and these look like numbers; None if that is undecided."""
    present = [cell for cell in cells if cell is not None]
    are_texts = fits(sum(not isinstance(cell, _Written) for cell in present), len(present))
    counts = count_classes(classify(written.combine_chunks(), MISSING_MARKS))
    numbers, all_ = (int(of.sum()) for of in (counts[[CellClass.WHOLE, CellClass.DECIMAL]], counts[CellClass.WHOLE :]))
    are_numbers = fits(numbers, all_)
    if are_texts is False or are_numbers is False:
        return False
    return True if are_texts and are_numbers else None


def _row(file_name: str, number: int, line: bytes) -> dict[str, str | None]:
    """The cells of a line as they are written in CSV."""
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        found = json.loads(text, parse_int=_Written, parse_float=_Written)
    except (ValueError, RecursionError):
        raise InputError(
            f"{file_name}: line {number} is not JSON in UTF-8.", 'Write one object a line: {"name": value, ...}.'
        ) from None
    if not isinstance(found, dict) or any(isinstance(value, (dict, list)) for value in found.values()):
        raise InputError(
            f"{file_name}: line {number} is not an object of numbers, texts and truth values.",
            'Write one object a line, {"name": value, ...}, without lists and objects in it.',
        )
    return {_clean(key): _cell(value) for key, value in found.items()}


def _cell(value: Any) -> str | None:
    if isinstance(value, bool):
        return _Written("true" if value else "false")
    if isinstance(value, float):  # NaN and Infinity
        return None if math.isnan(value) else _Written(value)
    return value if value is None or isinstance(value, _Written) else _clean(value)


def _clean(text: str) -> str:
    """Without halves of characters, which JSON can write and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode()


file_format(JsonLines())
