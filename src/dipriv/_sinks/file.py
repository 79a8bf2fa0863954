"""A released table in a file: it appears whole under its name or not at all.

It is written beside its place, forced to disk, and renamed.
"""

from __future__ import annotations

import io
import os
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from dipriv._base.atomic_write import check_name, commit_file, create, is_at, temporary_path
from dipriv._sinks.csv_injection import as_text, escaped, formula_names, formulas_in
from dipriv._sinks.sidecar_order import commit_with_sidecars
from dipriv._tables.presentation import Presentation
from dipriv.errors import DiprivError, InputError
from dipriv.guarantee.sidecar import ENDINGS
from dipriv.sources._errors import translate_write_errors
from dipriv.sources._formats import FileFormat, format_of
from dipriv.sources._formats.trial import trial_rows


@dataclass
class FileSink:
    """Where released batches go; in its context `write` batches and `commit`, else nothing stays."""

    name: str
    path: Path | None
    format: FileFormat
    compression: str | None = None
    force: bool = False
    escape_formulas: bool = False
    presentation: Presentation = field(repr=False, default_factory=Presentation)
    """How the source presents its table: numbers and labels are written in kind."""
    formulas: Counter[str] = field(default_factory=Counter)
    """How many of the texts written, names included, a spreadsheet would take for formulas, by column; text only."""
    _part: Path | None = field(init=False, repr=False, default=None)
    _file: Any = field(init=False, repr=False, default=None)
    _stream: Any = field(init=False, repr=False, default=None)
    _writer: Any = field(init=False, repr=False, default=None)
    _schema: Any = field(init=False, repr=False, default=None)
    _made: os.stat_result | None = field(init=False, repr=False, default=None)
    """The finished file."""

    @classmethod
    def at(
        cls, path: str | Path, format: str | None = None, *, force: bool = False, escape_formulas: bool = False
    ) -> FileSink:
        """A file by its path, or the standard output for "-". A link is a file that exists: never what it points to."""
        file = Path(path)
        known, compression = format_of("-" if str(path) == "-" else file.name, format)
        if escape_formulas and not known.is_text:
            raise InputError(
                f"escape_formulas has no meaning for {known.name} files, which spreadsheets do not open as text.",
                "Leave it out, or write a CSV file.",
            )
        if str(path) == "-":
            return cls("standard output", None, known, escape_formulas=escape_formulas)
        if file.is_dir():
            raise InputError(f"{file} is a folder.", "Give the name of a file.")
        if os.path.lexists(file) and not force:
            raise InputError(
                f"{file} exists.",
                "Choose another name, or replace it with force=True.",
                command="Choose another name, or replace it with --force.",
            )
        if not file.parent.is_dir():
            raise InputError(f"the folder {file.parent} does not exist.", "Make it, or choose another.")
        if file.exists() and not file.is_file():
            raise InputError(f"{file} is not a plain file.", "Give the name of a file.")
        for ending in ENDINGS:
            if Path(f"{file}{ending}").is_dir():
                raise InputError(
                    f"{file}{ending} is a folder; a file is to be written there beside the output.",
                    "Choose another name.",
                )
        check_name(file, max(ENDINGS, key=len))
        return cls(file.name, file, known, compression, force, escape_formulas)

    def check(self, schema: pa.Schema, n_rows: int = 0, presentation: Presentation | None = None) -> None:
        """Refuse, before anything is spent, what the format cannot hold; what follows is written as presented."""
        self.presentation = presentation or self.presentation
        self.format.check_writable(schema, n_rows)
        if not self._is_writable(schema):
            for column in schema:
                if not self._is_writable(pa.schema([column])):
                    raise InputError(
                        f"column {column.name!r} has a type that {self.format.name} files cannot hold.",
                        "Drop it, or write another format.",
                    )
            raise InputError(f"{self.format.name} files cannot hold these columns together.", "Write another format.")
        self.formulas.clear()

    def _is_writable(self, schema: pa.Schema) -> bool:
        """Whether rows of this schema can be written: some are, to memory."""
        try:
            rows = trial_rows(schema)
            shown = self._as_text(rows) if self.format.is_text else rows
            with self.format.writer(io.BytesIO(), shown.schema, presentation=self.presentation) as writer:
                writer.write_batch(shown)
                writer.close()
        except DiprivError:
            raise
        except Exception:  # writers of other packages raise anything
            return False
        return True

    def __enter__(self) -> FileSink:
        with translate_write_errors(self.name):
            if self.path is None:
                self._file = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
            else:
                self._part = temporary_path(self.path)
                self._file = create(self._part)
            raw = pa.PythonFile(self._file, "w")
            self._stream = raw if self.compression is None else pa.CompressedOutputStream(raw, self.compression)
        return self

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows; the first batch settles the columns."""
        with translate_write_errors(self.name):
            text = self.format.is_text
            if text:
                batch = self._as_text(batch)
            if self._writer is None or (text and batch.schema != self._schema):
                header = self._writer is None
                self._writer = self.format.writer(
                    self._stream, batch.schema, header=header, presentation=self.presentation
                )
                self._schema = batch.schema
            self._writer.write_batch(batch)

    @property
    def is_written(self) -> bool:
        """Whether the finished file has its name, which a file of another program may have."""
        return self.path is not None and is_at(self.path, self._made)

    def commit(self, beside: Mapping[str, str] | None = None) -> None:
        """Finish the file and give it its name, and the files beside it theirs, {ending: text}; else nothing stays."""
        with translate_write_errors(self.name):
            if self.path is None or beside is None:
                self._finish()
            else:
                commit_with_sidecars(self.path, self._finish, lambda: self.is_written, beside)

    def _finish(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._stream.close()
        self._file.close()
        if self.path is not None and self._part is not None:
            self._made = self._part.stat()
            commit_file(self._part, self.path, replace=self.force)

    def __exit__(self, *_: object) -> None:
        self._writer = None
        with suppress(OSError, pa.ArrowException):
            self._file.close()
        if self._part is not None:
            self._part.unlink(missing_ok=True)

    def _in_kind(self, name: str, array: pa.Array) -> pa.Array:
        """Numbers as the column writes them in the source."""
        notation = self.presentation.notations.get(name)
        return array if notation is None or notation.is_plain(array.type) else notation.written(array)

    def _as_text(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch as a text file holds it; formulas are counted, and escaped if `escape_formulas`."""
        names, columns = batch.schema.names, [as_text(array) for array in batch.columns]
        titled = formula_names(names)
        if self._writer is None:
            self.formulas.update(titled)
        if len(columns) == 1 and columns[0].null_count:  # an empty line is no row to most readers, but "" is
            columns = [columns[0].cast(pa.large_string()).fill_null("")]
        for place, array in enumerate(columns):
            if (found := formulas_in(array)) is not None:
                self.formulas[names[place]] += int(found.sum())
                columns[place] = escaped(array, found) if self.escape_formulas else array
        columns = [self._in_kind(name, array) for name, array in zip(names, columns, strict=True)]
        return pa.record_batch(columns, [f"'{x}" if self.escape_formulas and x in titled else x for x in names])
