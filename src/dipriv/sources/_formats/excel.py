"""Excel workbooks (.xlsx): the values of one sheet. Formulas are never evaluated, links and macros are not read."""

from __future__ import annotations

import datetime as dt
import io
import math
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from dipriv._tables.column_types import fits
from dipriv._tables.presentation import Presentation, TextColumns
from dipriv.dialect import DETECTED, Dialect
from dipriv.errors import InputError
from dipriv.sources._formats.delimited import check_names
from dipriv.sources._formats.registry import PLAIN, TableFile, file_format
from dipriv.sources._formats.whole import TableWriter, WholeFormat, check_room, optional, python_values
from dipriv.sources._untrusted import check_width, memory

MAX_UNPACKED_BYTES = 1 << 30
MAX_MEMBERS = 10_000
MAX_ROWS, MAX_COLUMNS = 1_048_576, 16_384
"""Of a sheet."""
MAX_EMPTY_ROWS = 1_000
"""Between two that have a cell: further ones are not part of the table."""
MAX_TEXT = 32_767
"""Characters of a cell."""
_OLD = bytes.fromhex("d0cf11e0a1b11ae1")
"""Older workbooks, and those with a password, begin with that."""
_FIRST_YEAR = 1900
_ERRORS = ("#DIV/0!", "#REF!", "#VALUE!", "#NAME?", "#NULL!", "#NUM!", "#N/A")


@dataclass(frozen=True)
class Excel(WholeFormat):
    name: str = "excel"
    suffixes: tuple[str, ...] = (".xlsx",)
    dialect: Dialect = field(default=DETECTED)
    dialect_fields: tuple[str, ...] = ("decimal", "dates", "skip", "sheet")

    def with_dialect(self, dialect: Dialect) -> Excel:
        return replace(self, dialect=dialect)

    def text_columns(self, file: TableFile) -> TextColumns:
        """Columns whose cells are stored as text, but for a few: codes such as 01234 are no numbers."""
        _ = self.n_rows(file)
        return file.kept("texts", TextColumns)

    def described(self, file: TableFile) -> str:
        _ = self.n_rows(file)
        return f"sheet {file.kept('sheet', lambda: '')!r}"

    def read_table(self, file: TableFile) -> pa.Table:
        openpyxl = _openpyxl()
        with file.open() as stream:
            content = stream.read()
        _check_archive(file.name, content)
        try:
            with warnings.catch_warnings():  # they hold cells
                warnings.simplefilter("ignore")
                workbook = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True, keep_links=False)
                return self._read(file, workbook)
        except InputError:
            raise
        except Exception:  # its messages may hold cells, and damaged files raise anything
            raise InputError(
                f"{file.name} cannot be read as an Excel workbook.", "Open it in Excel and save it again as .xlsx."
            ) from None

    def check_writable(self, schema: pa.Schema, n_rows: int) -> None:
        _openpyxl()
        if n_rows >= MAX_ROWS or len(schema) > MAX_COLUMNS:
            raise InputError(
                f"an Excel sheet has room for {MAX_ROWS - 1:,} rows and {MAX_COLUMNS:,} columns, not for {n_rows:,} "
                f"and {len(schema):,}.",
                "Write a CSV or Parquet file.",
            )
        for column in schema:
            if pt.is_nested(column.type) or pt.is_binary(column.type) or pt.is_duration(column.type):
                raise InputError(
                    f"column {column.name!r} has a type that Excel cells cannot hold.",
                    "Drop it, or write another format.",
                )

    def writer(self, stream: Any, schema: pa.Schema, *, header: bool = True, presentation: Presentation = PLAIN) -> Any:
        return _Writer(stream, schema, presentation)

    def _read(self, file: TableFile, workbook: Any) -> pa.Table:
        sheet = self._sheet(file.name, workbook)
        file.kept("sheet", lambda: sheet.title)
        sheet.reset_dimensions()  # what it says of itself may be wrong
        rows = _rows(file.name, sheet, self.dialect.skip or 0)
        names = _names(file.name, next(rows, (0, ()))[1])
        columns: list[list[str | None]] = [[] for _ in names]
        texts = [0] * len(names)
        for number, row in rows:
            if len(columns[0]) % (1 << 16) == 0:
                check_room(file.name, len(columns[0]), len(names))
            if len(row) > len(names) and row[len(names)] is not None:
                raise InputError(
                    f"{file.name}: row {number} of the sheet has a cell in a column without a name.",
                    "Name the column, or remove its cells.",
                )
            for place, column in enumerate(columns):
                cell = row[place] if place < len(row) else None
                column.append(_as_text(cell))
                texts[place] += isinstance(cell, str) and column[-1] is not None
        cells = [sum(cell is not None for cell in column) for column in columns]
        are_texts = {name: fits(of, all_) for name, of, all_ in zip(names, texts, cells, strict=True)}
        file.kept("texts", lambda: TextColumns.by_cells(are_texts))
        return pa.table([pa.array(column, pa.string()) for column in columns], names=names)

    def _sheet(self, file_name: str, workbook: Any) -> Any:
        sheets = {sheet.title: sheet for sheet in workbook.worksheets}
        wanted = self.dialect.sheet
        if wanted is None:
            visible = [sheet for sheet in sheets.values() if sheet.sheet_state == "visible"]
            if len(visible) == 1:
                return visible[0]
            fault = f"{file_name} has {len(visible)} sheets"
        elif wanted in sheets:
            return sheets[wanted]
        else:
            fault = f"{file_name} has no sheet {wanted!r:.60}"
        named = ", ".join(f"{title!r:.40}" for title in list(sheets)[:10])
        raise InputError(
            f"{fault}: {named}.",
            "Name that with the table: dialect=Dialect(sheet=...).",
            command="Name that with the table: --sheet NAME.",
        )


def _openpyxl() -> Any:
    return optional("openpyxl", "excel", "Excel workbooks")


def _check_archive(name: str, content: bytes) -> None:
    """The sizes that a workbook unpacks to, before it is: its reader unpacks no more of a part than it declares."""
    if content.startswith(_OLD):
        raise InputError(
            f"{name} is an older workbook, or has a password.", "Open it in Excel and save it as .xlsx without one."
        )
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            parts = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, EOFError, RuntimeError):
        raise InputError(f"{name} is not a whole Excel workbook.", "Save it again as .xlsx.") from None
    limit = min(MAX_UNPACKED_BYTES, memory() // 8)
    if sum(part.file_size for part in parts) > limit or len(parts) > MAX_MEMBERS:
        raise InputError(
            f"{name} unpacks to more than {limit >> 20:,} MB, or to more than {MAX_MEMBERS:,} parts.",
            "Save the sheet as CSV.",
        )
    if any(part.filename.lower().startswith("xl/externallinks/") for part in parts):
        raise InputError(
            f"{name} has links to other workbooks, from which cells may have old values.",
            "Break the links in Excel (Data, Edit Links), or save the sheet as CSV.",
        )


def _rows(name: str, sheet: Any, skip: int) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """The rows from the first to the last that has a cell, with their numbers.

    None beyond the first column without a name is looked at.
    """
    width, last = None, 0
    found = sheet.iter_rows(values_only=True)
    for number, row in enumerate(found, start=1):
        if number > MAX_ROWS:
            raise InputError(f"{name}: a sheet has at most {MAX_ROWS:,} rows.", "Save it again as .xlsx.")
        if number <= skip or all(cell is None for cell in row):
            continue
        if width is None:
            width = len(row) + 1
        elif number - last > MAX_EMPTY_ROWS:
            raise InputError(
                f"{name}: rows {last + 1:,} to {number - 1:,} of the sheet have no cell.",
                "Remove what is below the table; if these are rows of it, save the sheet as CSV.",
            )
        else:
            yield from ((empty, ()) for empty in range(last + 1, number))
        yield number, row[:width]
        last = number


def _names(name: str, row: tuple[Any, ...]) -> list[str]:
    """The names of columns, up to the last one."""
    if not row:
        raise InputError(
            f"{name}: the sheet is empty.",
            "Name another: dialect=Dialect(sheet=...).",
            command="Name another: --sheet NAME.",
        )
    names = [_as_text(cell) or "" for cell in row]
    while names and not names[-1]:
        names.pop()
    check_width(name, len(names))
    check_names(name, names)
    return names


def _as_text(cell: Any) -> str | None:
    """A cell as it is written in CSV; errors are missing."""
    if cell is None or isinstance(cell, str):
        return None if cell in _ERRORS else cell
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 1e18 else repr(cell)
    if isinstance(cell, dt.datetime):
        return str(cell.date() if cell.time() == dt.time() else cell.replace(tzinfo=None))
    return str(cell)


class _Writer(TableWriter):
    """One sheet; texts are texts, even those that begin with =."""

    def written(self, table: pa.Table) -> bytes:
        openpyxl = _openpyxl()
        illegal = openpyxl.cell.cell.ILLEGAL_CHARACTERS_RE
        workbook = openpyxl.Workbook(write_only=True)
        sheet = workbook.create_sheet("released")

        def cell(value: Any) -> Any:
            shown = _as_cell(value)
            if isinstance(shown, float):  # with all its digits, of which the package would write 16
                number = openpyxl.cell.WriteOnlyCell(sheet, value=repr(shown))
                number.data_type = "n"
                return number
            if not isinstance(shown, str):
                return shown
            text = openpyxl.cell.WriteOnlyCell(sheet, value=illegal.sub("\N{REPLACEMENT CHARACTER}", shown)[:MAX_TEXT])
            text.data_type = "s"
            return text

        sheet.append([cell(name) for name in table.column_names])
        for batch in table.to_batches():
            for row in zip(*map(python_values, batch.columns), strict=True):
                sheet.append([cell(value) for value in row])
        content = io.BytesIO()
        workbook.save(content)
        return content.getvalue()


def _as_cell(value: Any) -> Any:
    """What Excel holds; what it does not is text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None if math.isnan(value) else str(value)
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.isoformat(sep=" ")
    if isinstance(value, dt.date) and value.year < _FIRST_YEAR:
        return str(value)
    return value


file_format(Excel())
