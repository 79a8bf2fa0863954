"""CSV and TSV: every cell is text here; `dipriv.sources.typed` settles the types of columns."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from dipriv._tables.cell_classes import CellClass, classify
from dipriv.errors import InputError
from dipriv.sources._errors import BLOCK_BYTES
from dipriv.sources._formats.registry import TableFile, file_format
from dipriv.sources._untrusted import check_width

MAX_LINES = 100
"""Lines in one cell of a CSV file."""
_FIRST_LINE = re.compile(rb"""(?:[^"\r\n]++|"[^"]*+")*+""")


@dataclass(frozen=True)
class DelimitedText:
    """Text files with one separator; the first line holds the names of the columns.

    An empty line is a row with a missing cell in a file of one column, so that the number of rows tells of no cell. It
    is no row in a file of more, nor before the names.
    """

    name: str
    suffixes: tuple[str, ...]
    separator: str
    is_text: bool = True

    def schema(self, file: TableFile) -> pa.Schema:
        check_width(file.name, self._separators(file) + 1)
        with self._translated(file), file.open() as stream:
            found = self._reader(stream, None, None).schema
        _check_header(file.name, found.names)
        if odd := [column.name for column in found if pa.types.is_binary(column.type)]:
            raise _not_utf8(file.name, odd[0]) from None
        return pa.schema([(name, pa.string()) for name in found.names])

    def batches(self, file: TableFile, names: Sequence[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        empty_lines = self._empty_lines(file) if len(schema) == 1 else None
        with self._translated(file, schema.names), file.open() as stream:
            for batch in self._reader(stream, schema, names, empty_lines):
                _check_quotes(file.name, batch)
                yield batch

    def n_rows(self, file: TableFile) -> int | None:
        return None

    def writer(self, stream: Any, schema: pa.Schema, *, header: bool = True) -> Any:
        options = pacsv.WriteOptions(include_header=header, delimiter=self.separator)
        return pacsv.CSVWriter(stream, schema, write_options=options)

    def _separators(self, file: TableFile) -> int:
        """How many there are in the first line, before Arrow makes a column for each."""
        with file.open() as stream:
            block = stream.read(BLOCK_BYTES).lstrip(b"\r\n")
        found = _FIRST_LINE.match(block)
        return found[0].count(self.separator.encode()) if found else 0

    @staticmethod
    def _empty_lines(file: TableFile) -> int:
        """How many there are before the first line."""
        with file.open() as stream:
            block = stream.read(BLOCK_BYTES).removeprefix(BOM_UTF8)
        return len(block[: len(block) - len(block.lstrip(b"\r\n"))].splitlines())

    def _reader(
        self,
        stream: Any,
        types: pa.Schema | None,
        names: Sequence[str] | None,
        empty_lines: int | None = None,
        *,
        threads: bool = True,
    ) -> Any:
        """Empty lines are rows if it is known how many of them there are before the names."""
        return pacsv.open_csv(
            stream,
            read_options=pacsv.ReadOptions(block_size=BLOCK_BYTES, use_threads=threads, skip_rows=empty_lines or 0),
            parse_options=pacsv.ParseOptions(
                delimiter=self.separator, newlines_in_values=True, ignore_empty_lines=empty_lines is None
            ),
            convert_options=pacsv.ConvertOptions(column_types=types, include_columns=names),
        )

    def _translated(self, file: TableFile, names: Sequence[str] = ()) -> _TranslatedErrors:
        return _TranslatedErrors(self, file, tuple(names))

    def ragged(self, file: TableFile) -> InputError:
        """Where the first row with too many or too few columns is: read again on one thread, which counts rows."""
        where, counts = "a row", "another width"
        try:
            with file.open() as stream:
                for _ in self._reader(stream, None, None, threads=False):
                    pass
        except pa.ArrowInvalid as error:
            if found := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", str(error)):
                where, counts = f"row {found[1]}", f"{found[3]} columns, not {found[2]}"
        return InputError(
            f"{file.name}: {where} has {counts}.", "Repair the row, or quote cells that hold the separator."
        )


@dataclass(frozen=True)
class _TranslatedErrors:
    """Arrow tells only by the text of an error which cell or row it could not read."""

    format: DelimitedText
    file: TableFile
    names: tuple[str, ...]

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if not isinstance(error, pa.ArrowInvalid):
            return
        text = str(error)
        if "UTF8" in text and (found := re.search(r"In CSV column #(\d+)", text)) and int(found[1]) < len(self.names):
            raise _not_utf8(self.file.name, self.names[int(found[1])]) from None
        if re.search(r"Expected \d+ columns", text):
            raise self.format.ragged(self.file) from None


def _not_utf8(file_name: str, column: str) -> InputError:
    return InputError(
        f"{file_name}: column {column!r} is not in UTF-8.",
        "Convert the file: iconv -f latin1 -t utf8 OLD > NEW (if it is in Latin-1).",
    )


def _check_quotes(name: str, batch: pa.RecordBatch) -> None:
    """A quote that is not closed takes all lines up to the next one, or to the end of the file, into its cell."""
    for column, cells in zip(batch.schema.names, batch.columns, strict=True):
        longest = pc.max(pc.binary_length(cells)).as_py() or 0
        if longest > MAX_LINES and pc.max(pc.count_substring(cells, "\n")).as_py() > MAX_LINES:
            raise InputError(
                f"{name}: a cell of column {column!r} has more than {MAX_LINES} lines: a quote is not closed.",
                'Close it; inside of quotes, write "" for a quote.',
            )


def _check_header(name: str, columns: list[str]) -> None:
    """The first line holds names of columns: a person's row there would be published, and in messages, too."""
    if len(columns) == 1 and re.search(r"[;|\t]", columns[0]):
        raise InputError(
            f"{name}: the first line has one column, with another separator in it.",
            "Separate the cells by commas, or by tabs in a .tsv file.",
        )
    classes = classify(pa.array(columns, pa.string()), ("nan", "NaN")).classes
    if np.any(classes != CellClass.OTHER) or any(column.strip().isdigit() for column in columns):
        raise InputError(
            f"{name}: the first line has numbers, dates or nothing where names of columns should be.",
            "Put a line with the columns' names on top of the file.",
        )
    if len(set(columns)) < len(columns):
        raise InputError(f"{name}: two columns have the same name.", "Rename one of them.")


file_format(DelimitedText("csv", (".csv",), ","))
file_format(DelimitedText("tsv", (".tsv", ".tab"), "\t"))
