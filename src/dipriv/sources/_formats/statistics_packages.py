"""Files of statistics packages: Stata (.dta), SPSS (.sav, .zsav) and SAS (.sas7bdat, .xpt).

ReadStat reads them, in a process of its own. All their numbers are doubles, so whether a column is whole is settled by
its cells, as in CSV. A column whose values nearly all have labels is read as its labels; a release to Stata or SPSS has
codes and labels again, but only labels that released rows have: those of a file often come from its rows.
"""

from __future__ import annotations

import itertools
import json
import math
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from dipriv._tables.column_types import fits
from dipriv._tables.presentation import Presentation, TextColumns
from dipriv.errors import DiprivError, InputError, SchemaError
from dipriv.sources._formats.registry import PLAIN, TableFile, file_format
from dipriv.sources._formats.separate_process import reader_process
from dipriv.sources._formats.trial import trial_rows
from dipriv.sources._formats.whole import BYTES_A_CELL, TableWriter, WholeFormat, check_room, optional
from dipriv.sources._reader_process import TOO_LARGE, UNREADABLE
from dipriv.sources._untrusted import check_width, validate_batch

CELLS_AT_ONCE = 20_000_000
"""In a batch that is read."""
STATA_MAX = 8.9e307
"""Stata has no larger numbers, and no infinite ones: they are missing."""
MAX_CODE = 2**31 - 2**24
"""Codes of labels are whole in Stata, and this leaves room for new ones."""
ROWS_WITHOUT_CELLS = 128
"""Before the first value in a trial: more than the package looks at for the type of a column."""
_DAY, _MICROS = 86_400, 1_000_000
_SECONDS_1960, _SECONDS_1582 = -315_619_200, -12_219_379_200
"""1960-01-01 and 1582-10-14, in seconds since 1970."""
_LAST, _FIRST = 253_402_300_799, -62_135_596_800
"""The years 1 to 9999."""
_SPSS_DATES = ("DATE", "ADATE", "EDATE", "JDATE", "SDATE", "MOYR", "QYR", "WKYR")
_SAS_DATES = ("DATE", "MMDDYY", "DDMMYY", "YYMMDD", "E8601DA", "WEEKDATE", "WORDDATE", "MONYY", "JULIAN")


@dataclass(frozen=True)
class Clock:
    """How numbers stand for dates and times: `unit` seconds each, from `origin`."""

    kind: str
    unit: float
    origin: int = 0


def _stata_clock(of: str) -> Clock | None:
    if of.startswith(("%td", "%d", "%-td", "%-d")):
        return Clock("date", _DAY, _SECONDS_1960)
    if of.lower().startswith(("%tc", "%-tc")):
        is_time = of.lower().lstrip("%-tc").startswith("hh")
        return Clock("time" if is_time else "moment", 0.001, 0 if is_time else _SECONDS_1960)
    return None


def _spss_clock(of: str) -> Clock | None:
    name = of.rstrip("0123456789.")
    if name in _SPSS_DATES:
        return Clock("date", 1, _SECONDS_1582)
    if name in ("DATETIME", "YMDHMS"):
        return Clock("moment", 1, _SECONDS_1582)
    return Clock("time", 1) if name == "TIME" else None


def _sas_clock(of: str) -> Clock | None:
    name = of.upper()
    if name.startswith(("DATETIME", "E8601DT")):
        return Clock("moment", 1, _SECONDS_1960)
    if name.startswith(_SAS_DATES):
        return Clock("date", _DAY, _SECONDS_1960)
    return Clock("time", 1) if name.startswith(("TIME", "E8601TM")) else None


_CLOCKS = {"stata": _stata_clock, "spss": _spss_clock, "sas": _sas_clock, "xport": _sas_clock}
_CLOCK_FORMATS = {
    "stata": {"date": "%td", "moment": "%tc", "time": "%tcHH:MM:SS"},
    "spss": {"date": "DATE", "moment": "DATETIME", "time": "TIME"},
    "xport": {"date": "DATE", "moment": "DATETIME", "time": "TIME"},
}
"""What columns of dates and times are written as, by the kind of their clock."""
_PER_SECOND = {"s": 1, "ms": 1_000, "us": _MICROS, "ns": 1_000_000_000}
_READERS = {"stata": "read_dta", "spss": "read_sav", "sas": "read_sas7bdat", "xport": "read_xport"}
_SHOWN = {"stata": "Stata", "spss": "SPSS", "sas": "SAS", "xport": "SAS transport"}


@dataclass(frozen=True)
class Contents:
    """A file that was read: cells as text, which columns are text, and labels."""

    table: pa.Table
    texts: TextColumns
    presentation: Presentation


@dataclass(frozen=True)
class StatisticsFile(WholeFormat):
    name: str
    suffixes: tuple[str, ...]
    can_write: bool = True

    def read_table(self, file: TableFile) -> pa.Table:
        return self._contents(file).table

    def text_columns(self, file: TableFile) -> TextColumns:
        return self._contents(file).texts

    def presentation(self, file: TableFile) -> Presentation:
        return self._contents(file).presentation

    def described(self, file: TableFile) -> str:
        labelled = len(self._contents(file).presentation.value_labels)
        return f"{_SHOWN[self.name]} file, {labelled} columns of labelled values"

    def check_writable(self, schema: pa.Schema, n_rows: int) -> None:
        if not self.can_write:
            raise InputError("sas7bdat files cannot be written.", "Write a .xpt file, which SAS reads, or .csv.")
        _pyreadstat(), _pandas()
        try:
            self._try_to_write(schema)
        except DiprivError:
            raise
        except Exception:  # of a writer that tells the fault by its text
            raise self._unwritable(schema) from None

    def writer(self, stream: Any, schema: pa.Schema, *, header: bool = True, presentation: Presentation = PLAIN) -> Any:
        return _Writer(self.name, stream, schema, presentation)

    def _try_to_write(self, schema: pa.Schema) -> None:
        self.writer(None, schema).written(pa.Table.from_batches([trial_rows(schema, ROWS_WITHOUT_CELLS)]))

    def _unwritable(self, schema: pa.Schema) -> InputError:
        for column in schema:
            try:
                self._try_to_write(pa.schema([column]))
            except Exception:
                return InputError(
                    f"column {column.name!r} cannot be written to {_SHOWN[self.name]} files: its name or its type.",
                    "Rename it (up to 32 letters, digits and _, a letter first), drop it, or write .csv or .parquet.",
                )
        return InputError(
            f"{len(schema)} columns cannot be written to one {_SHOWN[self.name]} file.", "Write .csv or .parquet."
        )

    def _contents(self, file: TableFile) -> Contents:
        return file.kept("contents", lambda: self._read(file))

    def _read(self, file: TableFile) -> Contents:
        _pyreadstat()
        with reader_process(file, _READERS[self.name], CELLS_AT_ONCE, BYTES_A_CELL) as process:
            written, _ = process.communicate()
        if process.returncode == TOO_LARGE:
            rows, columns = map(int, written.split())
            check_room(file.name, rows, columns)
        code = process.returncode
        try:
            with pa.ipc.open_stream(written) as batches:
                check_width(file.name, len(batches.schema))
                table = pa.Table.from_batches([validate_batch(file.name, of) for of in batches], batches.schema)
                facts = json.loads(batches.schema.metadata[b"facts"])
        except (pa.ArrowException, OSError, ValueError, KeyError, TypeError):
            code = code or UNREADABLE
        if code:
            raise InputError(
                f"{file.name} cannot be read as a {_SHOWN[self.name]} file.", "Save it again, or convert it to CSV."
            )
        return self._presented(table, facts)

    def _presented(self, table: pa.Table, facts: Any) -> Contents:
        columns: dict[str, pa.Array] = {}
        labels: dict[str, Mapping[int | float, str]] = {}
        texts, judged = set(), set()
        for name in table.column_names:
            cells = table[name].combine_chunks()
            if pt.is_string(cells.type):
                texts.add(name)
                columns[name] = pc.if_else(pc.equal(cells, ""), pa.scalar(None, pa.string()), cells)
                continue
            clock = _CLOCKS[self.name](facts["formats"].get(name, ""))
            known = {code: text for code, text in facts["value_labels"].get(name, ()) if text}
            if clock is not None:
                columns[name] = _as_times(cells, clock)
            elif known:
                judged.add(name)
                labelled = _labelled(name, cells, known)
                columns[name] = _as_numbers(cells) if labelled is None else labelled
                labels |= {} if labelled is None else {name: known}
            else:
                columns[name] = _as_numbers(cells)
        presentation = Presentation(has_plain_numbers=True, value_labels=labels, column_labels=facts["column_labels"])
        stored = TextColumns(frozenset(texts), found=frozenset(labels), settled=frozenset(judged))
        return Contents(pa.table(columns), stored, presentation)


def _labelled(name: str, values: pa.Array, labels: Mapping[float, str]) -> pa.Array | None:
    """The labels of the values if nearly all have one; None if most have none; codes without one are written out."""
    present = values.drop_null()
    codes = pa.array(list(labels), pa.float64())
    settled = fits(int(pc.sum(pc.is_in(present, codes)).as_py() or 0), len(present)) if len(present) else True
    if settled is None:
        raise SchemaError(
            f"column {name!r}: some of its values have labels, and some have none.",
            "Label all of its values or none; or leave the column out of the file.",
        )
    if not settled:
        return None
    texts = pa.array(list(labels.values()), pa.string())
    return pc.coalesce(texts.take(pc.index_in(values, codes)), _as_numbers(values))


def _as_numbers(values: pa.Array) -> pa.Array:
    """Numbers as texts; those that are whole without a point."""
    plain = values.cast(pa.string())
    whole = pc.and_(pc.equal(values, pc.floor(values)), pc.less(pc.abs(values), 2.0**62))
    return pc.if_else(whole, pc.if_else(whole, values, 0.0).cast(pa.int64(), safe=False).cast(pa.string()), plain)


def _as_times(values: pa.Array, clock: Clock) -> pa.Array:
    """Dates and times as texts; those beyond the years 1 to 9999 are missing."""
    numbers = values.to_numpy(zero_copy_only=False).astype(np.float64)
    with np.errstate(all="ignore"):
        seconds = numbers * clock.unit + clock.origin
        absent = ~_is_on(clock, seconds)
        micros = np.where(absent, 0, np.rint(seconds * _MICROS)).astype(np.int64)
    if clock.kind == "date":
        return pa.array((micros // (_DAY * _MICROS)).astype(np.int32), mask=absent).cast(pa.date32()).cast(pa.string())
    whole = pa.array(micros // _MICROS, mask=absent)
    if clock.kind == "time":
        return whole.cast(pa.int32()).cast(pa.time32("s")).cast(pa.string())
    finer = pa.array(micros, mask=absent).cast(pa.timestamp("us")).cast(pa.string())
    return pc.if_else(pa.array(micros % _MICROS == 0), whole.cast(pa.timestamp("s")).cast(pa.string()), finer)


def _clock_kind(of: pa.DataType) -> str:
    """The kind of the clock that a type needs; empty for other types than dates and times."""
    kinds = {"date": pt.is_date(of), "moment": pt.is_timestamp(of), "time": pt.is_time(of)}
    return next((kind for kind, is_of in kinds.items() if is_of), "")


def _on_clock(column: pa.ChunkedArray, clock: Clock) -> pa.Array:
    """Dates and times as numbers, to the microsecond; those beyond the years 1 to 9999 are missing."""
    if pt.is_time(column.type):
        column = column.cast(pa.time64("ns"))
    elif pt.is_date(column.type):
        column = column.cast(pa.timestamp("s" if pt.is_date32(column.type) else "ms"))
    per_second = _PER_SECOND[column.type.unit]
    ticks = column.combine_chunks().view(pa.int64()).fill_null(0).to_numpy()
    if clock.kind == "date":
        ticks = ticks - ticks % (_DAY * per_second)
    seconds, part = np.divmod(ticks, per_second)
    micros = part * _MICROS // per_second
    numbers = (seconds.astype(np.float64) - clock.origin) / clock.unit + micros / (_MICROS * clock.unit)
    absent = column.is_null().to_numpy() | ~_is_on(clock, seconds)
    return pa.array(numbers, mask=absent)


def _is_on(clock: Clock, seconds: NDArray[Any]) -> NDArray[np.bool_]:
    """Which seconds are within a day, or within the years 1 to 9999."""
    first, last = (0, _DAY - 1) if clock.kind == "time" else (_FIRST, _LAST)
    found: NDArray[np.bool_] = (seconds >= first) & (seconds < last + 1)
    return found


class _Writer(TableWriter):
    """Numbers, dates and times are doubles, labelled values codes.

    No column is of Python's objects, whose type the package would guess by the first cells. ReadStat writes to a path,
    so a folder for the owner only is used.
    """

    def __init__(self, format_name: str, stream: Any, schema: pa.Schema, presentation: Presentation) -> None:
        super().__init__(stream, schema, presentation)
        self.format_name = format_name

    def written(self, table: pa.Table) -> bytes:
        columns, labels, formats = {}, {}, {}
        for name, cells in zip(table.column_names, table.columns, strict=True):
            column = cells.cast(cells.type.value_type) if pt.is_dictionary(cells.type) else cells
            shown = _CLOCK_FORMATS[self.format_name].get(_clock_kind(column.type), "")
            clock = _CLOCKS[self.format_name](shown)
            known = self.presentation.value_labels.get(name)
            if known and self.format_name != "xport":
                columns[name], labels[name] = _codes(column, known)
            elif clock is not None:
                columns[name], formats[name] = _on_clock(column, clock), shown
            else:
                columns[name] = _held(column)
            if self.format_name == "stata" and pt.is_floating(columns[name].type):
                columns[name] = _within(columns[name], STATA_MAX)
        frame = pa.table(columns).to_pandas()
        described = {name: text for name, text in self.presentation.column_labels.items() if name in columns}
        package, options = _pyreadstat(), {"column_labels": described, "variable_format": formats}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "released"
            if self.format_name == "stata":
                package.write_dta(frame, path, variable_value_labels=labels, **options)
            elif self.format_name == "spss":
                package.write_sav(frame, path, variable_value_labels=labels, **options)
            else:
                package.write_xport(frame, path, **options)
            return path.read_bytes()


def _codes(column: pa.ChunkedArray, known: Mapping[int | float, str]) -> tuple[pa.Array, dict[float, str]]:
    """The codes of a column's labels, and the labels that it has: known ones, and new ones with new codes."""
    texts = column.cast(pa.string()).to_pylist()
    present = dict.fromkeys(text for text in texts if text is not None)
    usable = {float(code): text for code, text in known.items() if code == int(code) and abs(code) <= MAX_CODE}
    labels = {code: text for code, text in usable.items() if text in present}
    code_of = {text: code for code, text in reversed(labels.items())}
    labels = {code: text for text, code in code_of.items()}
    new = [text for text in present if text not in code_of]
    for text in new:
        code = _number(text)
        if code is not None and code not in labels:
            code_of[text] = code
    taken = {*code_of.values()}
    free = (float(code) for code in itertools.count(int(max(0.0, *labels, 0.0)) + 1) if code not in taken)
    for text in new:
        if text not in code_of:
            code_of[text] = next(free)
            labels[code_of[text]] = text
    return pa.array([None if text is None else code_of[text] for text in texts], pa.float64()), labels


def _number(text: str) -> float | None:
    """The code that a value without a label was written as."""
    try:
        code = float(text)
    except ValueError:
        return None
    return code if _as_numbers(pa.array([code])).to_pylist() == [text] and math.isfinite(code) else None


def _held(column: pa.ChunkedArray) -> Any:
    """What ReadStat writes: doubles and texts."""
    kind = column.type
    if pt.is_boolean(kind):
        return column.cast(pa.int8()).cast(pa.float64())
    if pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind) or pt.is_null(kind):
        return column.cast(pa.float64(), safe=False)
    return column.cast(pa.string()).fill_null("")


def _within(column: pa.ChunkedArray, most: float) -> Any:
    return pc.if_else(pc.less_equal(pc.abs(column), most), column, pa.scalar(None, column.type))


def _pyreadstat() -> Any:
    return optional("pyreadstat", "stats", "files of Stata, SPSS and SAS")


def _pandas() -> Any:
    return optional("pandas", "stats", "files of Stata, SPSS and SAS")


file_format(StatisticsFile("stata", (".dta",)))
file_format(StatisticsFile("spss", (".sav", ".zsav")))
file_format(StatisticsFile("xport", (".xpt",)))
file_format(StatisticsFile("sas", (".sas7bdat",), can_write=False))
