"""CSV and TSV: every cell is text here; `dipriv.sources.typed` settles the types of columns."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.types as pt

from dipriv._tables.cell_classes import CellClass, classify
from dipriv._tables.presentation import Presentation, TextColumns
from dipriv._tables.repeated import coded, distinct
from dipriv.dialect import DETECTED, SEPARATORS, Dialect
from dipriv.errors import InputError
from dipriv.sources._encodings import OtherEncoding
from dipriv.sources._errors import BLOCK_BYTES
from dipriv.sources._formats.lent import read_ahead
from dipriv.sources._formats.quotes import CheckedQuotes
from dipriv.sources._formats.registry import PLAIN, TableFile, file_format
from dipriv.sources._untrusted import check_width

WRITTEN_ROWS = 1 << 14
"""Rows that Arrow writes at a time: with its own 1,024 it takes longer."""
MAX_LISTED = 10
"""Columns that a message lists by their places."""
_UTF8 = "utf-8"
_MARKS = ((codecs.BOM_UTF8, _UTF8), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_LINE_END = re.compile(r"\r\n|\r|\n")
_NAMES = {"\t": "a tab", "|": "|"}


@dataclass(frozen=True)
class Layout:
    """How a text file is written, as far as that is needed to find its cells: given, or found in its first line."""

    separator: str
    quote: str
    encoding: str
    skip: int
    """Lines before that with the names of columns, which are not empty."""
    quotes_names: bool
    """Whether some of these names are in quotes."""
    ends_with_return: bool
    """Whether a carriage return alone is at the end of the line with the names."""

    def __str__(self) -> str:
        separator = _NAMES.get(self.separator, self.separator)
        return f"separator {separator}, quote {self.quote}, encoding {self.encoding}"


class SparinglyQuoted:
    """Writes rows with quotes where a text needs them: Arrow's own writer puts all texts in quotes, or none.

    A text needs them that holds the separator, a quote or the end of a line, begins or ends with a space, or is empty:
    a missing cell is empty without quotes.
    """

    def __init__(self, stream: Any, schema: pa.Schema, separator: str, *, header: bool) -> None:
        self._stream, self._separator = stream, separator
        self._needs = rf'^$|^\s|\s$|["\r\n]|{re.escape(separator)}'
        options = pacsv.WriteOptions(
            include_header=False, delimiter=separator, quoting_style="none", batch_size=WRITTEN_ROWS
        )
        self._plain = pacsv.CSVWriter(stream, schema, write_options=options)
        if header:
            self._write([self._text(pa.array([name])) for name in schema.names])

    def __enter__(self) -> SparinglyQuoted:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        if any(_is_text(array) and self._needs_quotes(distinct(coded(array))[0]) for array in batch.columns):
            self._write([self._text(array) for array in batch.columns])
        else:
            self._plain.write_batch(batch)

    def close(self) -> None:
        """Write what is kept back."""
        self._plain.close()

    def _needs_quotes(self, texts: pa.Array) -> bool:
        return bool(pc.any(pc.match_substring_regex(texts, self._needs)).as_py())

    def _text(self, array: pa.Array) -> pa.Array:
        found = array.cast(pa.large_string())
        if _is_text(array):
            needs = pc.match_substring_regex(found, self._needs)
            if pc.any(needs).as_py():
                quote = pa.scalar('"', pa.large_string())
                quoted = _joined(quote, pc.replace_substring(found, '"', '""'), quote)
                found = pc.if_else(needs, quoted, found)
        return pc.fill_null(found, "")

    def _write(self, columns: list[pa.Array]) -> None:
        *others, last = columns
        ended = _joined(*others, _joined(last, pa.scalar("\n", pa.large_string())), between=self._separator)
        _, offsets, content = ended.buffers()
        ends = np.frombuffer(offsets, dtype="<i8")[ended.offset : ended.offset + len(ended) + 1]
        if len(ended):
            self._stream.write(content.slice(ends[0], ends[-1] - ends[0]))


def _beyond(skip: int, block: bytes, encoding: str) -> str:
    """The text of the first block of a file, after this number of lines."""
    text = codecs.getincrementaldecoder(encoding)("replace").decode(block).removeprefix("\ufeff")
    ends = [end.end() for end in islice(_LINE_END.finditer(text), skip)]
    return text[ends[-1] if len(ends) == skip else len(text) :] if skip else text


def _is_text(array: pa.Array) -> bool:
    return bool(pt.is_string(array.type) or pt.is_large_string(array.type))


def _has_plain_text(of: pa.DataType) -> bool:
    """Whether every cell of this type can be written as text: that is known before anything is spent."""
    kinds = (pt.is_string, pt.is_large_string, pt.is_integer, pt.is_floating, pt.is_boolean, pt.is_decimal)
    return any(is_kind(of) for is_kind in (*kinds, pt.is_date, pt.is_time, pt.is_timestamp))


def _joined(*texts: Any, between: str = "") -> pa.Array:
    return pc.binary_join_element_wise(*texts, pa.scalar(between, pa.large_string()))


@dataclass(frozen=True)
class DelimitedText:
    """Text files with one separator; the first line holds the names of the columns.

    An empty line is a row with a missing cell in a file of one column, so that the number of rows tells of no cell. It
    is no row in a file of more, nor before the names.
    """

    name: str
    suffixes: tuple[str, ...]
    separator: str
    dialect: Dialect = field(default=DETECTED)
    is_text: bool = True
    has_types: bool = False
    dialect_fields: tuple[str, ...] = ("separator", "quote", "decimal", "encoding", "dates", "skip")

    def with_dialect(self, dialect: Dialect) -> DelimitedText:
        return replace(self, dialect=dialect)

    def text_columns(self, file: TableFile) -> TextColumns:
        return TextColumns()

    def presentation(self, file: TableFile) -> Presentation:
        layout = self.layout(file)
        return Presentation(separator=layout.separator, quotes_texts=layout.quotes_names)

    def described(self, file: TableFile) -> str:
        return str(self.layout(file))

    def schema(self, file: TableFile) -> pa.Schema:
        with self._translated(file), file.open() as stream, closing(self._read(file, stream, None, None)) as read:
            found = next(read)
        _check_header(file.name, found.names)
        if any(pa.types.is_binary(column.type) for column in found):
            raise self.undecodable(file)
        return pa.schema([(name, pa.string()) for name in found.names])

    def batches(self, file: TableFile, names: Sequence[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        empty_lines = self._empty_lines(file) if len(schema) == 1 else None
        with self._translated(file), file.open() as stream:
            yield from islice(self._read(file, stream, schema, names, empty_lines), 1, None)

    def n_rows(self, file: TableFile) -> int | None:
        return None

    def check_quotes(self, file: TableFile) -> None:
        """Refuse a file with a quote that is not closed, or a cell of many lines, as `batches` does, for others."""
        with file.open() as stream:
            content = self._checked(file, stream, self.layout(file).skip)
            while content.read(BLOCK_BYTES):
                pass

    def check_writable(self, schema: pa.Schema, n_rows: int) -> None:
        """Every table can be written."""

    def writer(self, stream: Any, schema: pa.Schema, *, header: bool = True, presentation: Presentation = PLAIN) -> Any:
        separator = self.dialect.separator or (presentation.separator if self.separator == "," else None)
        if not presentation.quotes_texts and all(_has_plain_text(column.type) for column in schema):
            return SparinglyQuoted(stream, schema, separator or self.separator, header=header)
        options = pacsv.WriteOptions(
            include_header=header, delimiter=separator or self.separator, batch_size=WRITTEN_ROWS
        )
        return pacsv.CSVWriter(stream, schema, write_options=options)

    def layout(self, file: TableFile) -> Layout:
        """What is given, and for the rest what the first line says."""
        return file.kept("layout", lambda: self._find_layout(file))

    def _find_layout(self, file: TableFile) -> Layout:
        given = self.dialect
        with file.open() as stream:
            block = stream.read(BLOCK_BYTES)
        encoding = given.encoding or next((of for mark, of in _MARKS if block.startswith(mark)), _UTF8)
        if codecs.lookup(encoding).name == _UTF8:
            encoding = _UTF8
        if (
            given.encoding is None
            and encoding == _UTF8
            and b"\0" in re.split(rb"[\r\n]", block[:64].lstrip(b"\r\n"))[0]
        ):
            raise InputError(
                f"{file.name}: it has bytes of zero in its first line, as in UTF-16 without a byte order mark.",
                "Say how it is encoded, such as dialect=Dialect(encoding='utf-16-le').",
                command="Say how it is encoded, such as --encoding utf-16-le.",
            )
        names = _beyond(given.skip or 0, block, encoding).lstrip("\r\n")
        end = _LINE_END.search(names)
        line = names if end is None else names[: end.start()]
        quote = given.quote or ('"' if '"' in line else _single_quote(line))
        own = (given.separator,) if given.separator else ("\t",) if self.separator == "\t" else SEPARATORS
        unquoted = {mark: _unquoted(line, quote, mark) for mark in own}
        counts = {mark: -1 if found is None else found.count(mark) for mark, found in unquoted.items()}
        if max(counts.values()) <= 0 and None in unquoted.values():
            raise InputError(
                f"{file.name}: in the first line, a quote is not closed where its cell ends.",
                'Close it, and write names of several lines in one; inside of quotes, write "" for a quote.',
            )
        separator = given.separator or self._separator(file.name, counts)
        _check_comment(file.name, names, max(0, counts[separator]), given.skip or 0)
        check_width(file.name, counts[separator] + 1)
        quotes_names = unquoted[separator] != line
        return Layout(separator, quote, encoding, given.skip or 0, quotes_names, end is not None and end[0] == "\r")

    def _separator(self, file_name: str, counts: dict[str, int]) -> str:
        if self.separator == "\t":
            return self.separator
        most = max(counts.values())
        found = [mark for mark, count in counts.items() if count == most]
        if most > 0 and len(found) > 1:
            raise InputError(
                f"{file_name}: the first line has as many {found[0]} as {_NAMES.get(found[1], found[1])}.",
                "Say what separates the cells: dialect=Dialect(separator=...).",
                command="Say what separates the cells: --sep ';'.",
            )
        return found[0] if most > 0 or self.separator not in found else self.separator

    def _empty_lines(self, file: TableFile) -> int:
        """How many there are before the line with the names, beyond those to skip."""
        layout = self.layout(file)
        with file.open() as stream:
            block = stream.read(BLOCK_BYTES)
        rest = _beyond(layout.skip, block, layout.encoding)
        return len(rest[: len(rest) - len(rest.lstrip("\r\n"))].splitlines())

    def _read(
        self,
        file: TableFile,
        stream: Any,
        types: pa.Schema | None,
        names: Sequence[str] | None,
        empty_lines: int | None = None,
    ) -> Generator[Any, None, None]:
        """The schema, then the batches. Empty lines are rows if it is known how many there are before the names."""
        layout = self.layout(file)
        skip = layout.skip + (empty_lines or 0)
        open_reader = partial(
            pacsv.open_csv,
            read_options=pacsv.ReadOptions(block_size=BLOCK_BYTES, skip_rows=skip),
            parse_options=pacsv.ParseOptions(
                delimiter=layout.separator,
                quote_char=layout.quote,
                newlines_in_values=True,
                ignore_empty_lines=empty_lines is None,
            ),
            convert_options=pacsv.ConvertOptions(column_types=types, include_columns=names),
        )
        return read_ahead(self._checked(file, stream, skip), open_reader)

    def _checked(self, file: TableFile, stream: Any, skip: int) -> CheckedQuotes:
        layout = self.layout(file)
        if layout.encoding != _UTF8:
            has_ascii = "A".encode(layout.encoding) == b"A"
            own = pa.PythonFile(OtherEncoding(stream, file.name, layout.encoding), "r") if has_ascii else stream
            stream = pa.transcoding_input_stream(own, layout.encoding, "utf8")
        return CheckedQuotes(stream, file.name, layout.quote, layout.separator, skip, layout.ends_with_return)

    def _translated(self, file: TableFile) -> _TranslatedErrors:
        return _TranslatedErrors(self, file)

    def ragged(self, file: TableFile) -> InputError:
        """Where the first line with too many or too few cells is: read again, line by line."""
        line, cells, width = self._first_ragged(file)
        fault = f"line {line} has {cells} cells, but that with the names of columns has {width}"
        if line is None:
            fault = "a line has more or fewer cells than that with the names of columns"
        remedy = "Repair the line, or quote cells that hold the separator."
        skip = "If other lines are before that with the columns' names, leave them out: {}. " if width == 1 else ""
        return InputError(
            f"{file.name}: {fault}.",
            skip.format("dialect=Dialect(skip=...)") + remedy,
            command=skip.format("--skip N") + remedy,
        )

    def _first_ragged(self, file: TableFile) -> tuple[int | None, int, int]:
        """The line of the file that a row of another width ends at, its width, and that of the names."""
        layout = self.layout(file)
        width = None
        encoding = "utf-8-sig" if layout.encoding == _UTF8 else layout.encoding
        with file.open() as stream, suppress(csv.Error):
            text = io.TextIOWrapper(stream, encoding, errors="replace", newline="")
            before = sum(1 for _ in islice(text, layout.skip))
            rows = csv.reader(text, delimiter=layout.separator, quotechar=layout.quote)
            for row in filter(None, rows):
                width = width or len(row)
                if len(row) != width:
                    return before + rows.line_num, len(row), width
        return None, 0, width or 0

    def undecodable(self, file: TableFile) -> InputError:
        """Where the first byte is that the encoding has no character for."""
        encoding = self.layout(file).encoding
        decoder = codecs.getincrementaldecoder(encoding)()
        position, line, rest = 0, 1, 0
        with file.open() as stream:
            while block := stream.read(BLOCK_BYTES):
                try:
                    text = decoder.decode(block)
                    rest = len(decoder.getstate()[0])
                except UnicodeDecodeError as error:
                    line += error.object[: error.start].count(b"\n")
                    position += error.start - rest
                    break
                line += text.count("\n")
                position += len(block)
        expected = "UTF-8" if encoding == _UTF8 else encoding
        return InputError(
            f"{file.name}: line {line} is not in {expected} (byte {position + 1:,} of the file).",
            "Say how it is encoded: dialect=Dialect(encoding='latin-1'), or 'cp1252' for files of Windows.",
            command="Say how it is encoded: --encoding latin-1, or cp1252 for files of Windows.",
        )


@dataclass(frozen=True)
class _TranslatedErrors:
    """Arrow tells only by the text of an error which row it could not read."""

    format: DelimitedText
    file: TableFile

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if isinstance(error, UnicodeError) or (isinstance(error, pa.ArrowInvalid) and "UTF8" in str(error)):
            raise self.format.undecodable(self.file) from None
        if isinstance(error, pa.ArrowInvalid) and re.search(r"Expected \d+ columns", str(error)):
            raise self.format.ragged(self.file) from None


def _unquoted(line: str, quote: str, separator: str) -> str | None:
    """A line without its cells in quotes; None if a quote at the start of a cell is not closed where the cell ends."""
    mark = re.escape(separator)
    rest = re.sub(rf"(^|{mark}){quote}(?:[^{quote}]|{quote}{quote})*+{quote}(?= *(?:{mark}|$))", r"\1", line)
    return None if re.search(rf"(?:^|{mark}){quote}", rest) else rest


def _single_quote(line: str) -> str:
    """' if all names of the first line are in such quotes, else the double quote."""
    cells = re.split("|".join(map(re.escape, SEPARATORS)), re.sub("'[^']*+'", "''", line.strip()))
    return "'" if all(cell.strip() == "''" for cell in cells) else '"'


def _check_comment(file_name: str, names: str, separators: int, skipped: int) -> None:
    """A first line that is a comment has no names of columns."""
    if not (names.startswith(("# ", "//")) or (names.startswith("#") and not separators)):
        return
    lines = names.splitlines()
    comments = next((place for place, line in enumerate(lines) if not line.startswith(("#", "//"))), len(lines))
    raise InputError(
        f"{file_name}: the first line is a comment, not the names of columns.",
        f"Leave comments out: dialect=Dialect(skip={skipped + comments}).",
        command=f"Leave comments out: --skip {skipped + comments}.",
    )


def _check_header(name: str, columns: list[str]) -> None:
    """The first line holds names of columns: a person's row there would be published, and in messages, too."""
    check_names(name, columns)
    if broken := [place for place, column in enumerate(columns, 1) if _LINE_END.search(column)]:
        raise InputError(
            f"{name}: the first line has {_listed(broken)} with a name of several lines.", "Write it in one line."
        )
    if len(columns) == 1 and re.search(r"[;|\t]", columns[0]):
        raise InputError(
            f"{name}: the first line has one column, with another separator in it.",
            "Say what separates the cells: dialect=Dialect(separator=...).",
            command="Say what separates the cells: --sep ';'.",
        )


def check_names(name: str, columns: Sequence[str]) -> None:
    """Refuse a first line that has other things than different names.

    What is not a name may be a cell: it is refused by its place alone.
    """
    classes = classify(pa.array(columns, pa.string()), ("nan", "NaN")).classes
    unnamed = [place for place, of in enumerate(classes, 1) if of == CellClass.MISSING]
    known = (CellClass.OTHER, CellClass.MISSING)
    values = [
        place
        for place, (of, text) in enumerate(zip(classes, columns, strict=True), 1)
        if of not in known or text.strip().isdigit()
    ]
    faults = [f"{_listed(unnamed)} without a name"] if unnamed else []
    faults += [f"{_listed(values)} with a number, a date or a truth value as its name"] if values else []
    if faults:
        remedy = "Give each column a name there; if the line with the names comes later, leave out those before it: {}."
        raise InputError(
            f"{name}: the first line has {' and '.join(faults)}.",
            remedy.format("dialect=Dialect(skip=...)"),
            command=remedy.format("--skip N"),
        )
    if twice := [column for column, times in Counter(columns).items() if times > 1]:
        found = {
            column: [place for place, of in enumerate(columns, 1) if of == column] for column in twice[:MAX_LISTED]
        }
        said = "; ".join(f"{_listed(places)} have the same name" for places in found.values())
        more = f" ({len(twice)} such names)" if len(twice) > MAX_LISTED else ""
        raise InputError(f"{name}: {said}{more}.", "Give each column a name of its own.")


def _listed(places: Sequence[int]) -> str:
    """Columns by their places in the line, which count from 1."""
    shown = ", ".join(map(str, places[:MAX_LISTED]))
    more = f" and {len(places) - MAX_LISTED} more" if len(places) > MAX_LISTED else ""
    return f"column{'s' * (len(places) > 1)} {shown}{more}"


file_format(DelimitedText("csv", (".csv",), ","))
file_format(DelimitedText("tsv", (".tsv", ".tab"), "\t"))
