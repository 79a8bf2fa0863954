"""A folder of Parquet files that appears whole under its name or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dipriv._base.atomic_write import is_at, temporary_path
from dipriv._sinks.sidecar_order import commit_with_sidecars
from dipriv.errors import InputError, StorageError


@dataclass
class FolderSink:
    """In its context write files into `part` and `commit`, else nothing stays."""

    path: Path
    part: Path
    _made: os.stat_result | None = field(init=False, repr=False, default=None)
    """The finished folder."""

    @classmethod
    def at(cls, name: str | Path, *, force: bool = False, escape_formulas: bool = False) -> FolderSink:
        """A new folder to write to; with `force` an existing one is replaced."""
        if escape_formulas:
            raise InputError(
                "escape_formulas has no meaning for Parquet files, which spreadsheets do not open as text.",
                "Leave it out.",
            )
        path = Path(name).absolute()
        if str(name) == "-" or path.suffix.lstrip(".") in ("csv", "tsv", "arrow"):
            raise InputError(f"{name} is not the name of a folder.", "Spark writes a folder of Parquet files.")
        if path.exists() and not (force and path.is_dir()):
            raise InputError(
                f"{name} exists.",
                "Choose another name, or replace the folder with force=True.",
                command="Choose another name, or replace the folder with --force.",
            )
        if not path.parent.is_dir():
            raise InputError(f"the folder {path.parent} does not exist.", "Make it, or choose another.")
        return cls(path, temporary_path(path))

    @property
    def name(self) -> str:
        return self.path.name

    def __enter__(self) -> FolderSink:
        return self

    def check(self, schema: pa.Schema, n_rows: int = 0, presentation: object = None) -> None:
        """Spark writes every type that it reads."""

    def check_written(self, n_rows: int) -> None:
        """Every row was written once."""
        found = sum(pq.read_metadata(path).num_rows for path in self.part.glob("*.parquet"))
        if found != n_rows:
            raise StorageError(
                f"{found:,} rows were written, not {n_rows:,}.", "Give the command again on files at rest."
            )

    @property
    def is_written(self) -> bool:
        """Whether the finished folder has its name, which a folder of another program may have."""
        return is_at(self.path, self._made)

    def commit(self, beside: Mapping[str, str]) -> None:
        """Rename the finished folder and write the files beside it; a folder that it replaces is removed afterwards."""
        commit_with_sidecars(self.path, self._finish, lambda: self.is_written, beside)

    def _finish(self) -> None:
        old = temporary_path(self.path)
        if self.path.exists():
            self.path.rename(old)
        self._made = self.part.stat()
        try:
            self.part.rename(self.path)
        except BaseException:
            if old.exists():
                old.rename(self.path)
            raise
        shutil.rmtree(old, ignore_errors=True)

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.part, ignore_errors=True)
