"""Parquet, CSV or TSV files as one Spark DataFrame."""

from __future__ import annotations

import glob
import re
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from dipriv.dialect import DETECTED, Dialect
from dipriv.errors import InputError
from dipriv.sources._formats.delimited import DelimitedText
from dipriv.sources._formats.registry import refuse_unused
from dipriv.sources.files import File, FileBatches
from dipriv.sources.spark.frame import SparkSource
from dipriv.sources.spark.names import quoted
from dipriv.sources.spark.parquet import ParquetSource
from dipriv.sources.spark.session import open_session

READABLE = ("parquet", "csv", "tsv")


@dataclass(frozen=True)
class SparkFiles:
    """Files of one format with the same columns.

    `folder` has them all; it is given to Spark whole where names of folders in it are columns (year=2025).
    """

    name: str
    paths: tuple[Path, ...]
    format: str
    folder: Path | None = None

    @classmethod
    def find(
        cls,
        pattern: str,
        format: str | None = None,
        dialect: Dialect = DETECTED,
        otherwise: Dialect | None = None,
    ) -> SparkFiles:
        """The files of a path: one file, all files in a folder, or those that a pattern such as in/*.csv matches.

        Spark reads text files in one way only, so that a dialect is refused, and that of a schema for text files.
        """
        refuse_unused("files that Spark reads", dialect)
        place = Path(pattern)
        if place.is_dir():
            found = sorted(
                (path for path in place.rglob("*") if path.is_file() and not _is_hidden(path, place)), key=str
            )
        else:
            found = [place] if place.is_file() else list(map(Path, sorted(glob.glob(pattern, recursive=True))))
            found = [path for path in found if path.is_file()]
        if not found:
            raise InputError(f"no file is at {pattern!r}.", "Check the path; * stands for any part of a name.")
        formats = {File.at(path, format).format.name for path in found}
        if len(formats) > 1 or not formats <= set(READABLE):
            raise InputError(
                f"{pattern!r} has files of {', '.join(sorted(formats))}; Spark reads Parquet, CSV or TSV, one of them.",
                "Give files of one format: a pattern such as folder/*.parquet picks them.",
            )
        if formats != {"parquet"}:
            refuse_unused("text files that Spark reads", otherwise or DETECTED)
        files = cls(place.name, tuple(found), formats.pop(), place if place.is_dir() else None)
        files._check()
        return files

    def open(self) -> SparkSource | ParquetSource:
        """The files as a source of rows; all columns of CSV files are text.

        A cell of a CSV file may have several lines, so that Spark reads each file in one task.
        """
        session = open_session()

        def through_spark() -> SparkSource:
            frame, in_folders = self._read(session), tuple(chain.from_iterable(map(self._columns_in_name, self.paths)))
            return SparkSource.open(frame, name=self.name, all_text=self.format != "parquet", in_folders=in_folders)

        if self.format != "parquet" or self._has_columns_in_names():
            return through_spark()
        return ParquetSource(session, self.name, self.paths, through_spark)

    def _has_columns_in_names(self) -> bool:
        """Whether names of folders, such as year=2025, give Spark further columns."""
        return any(self._columns_in_name(path) for path in self.paths)

    def _columns_in_name(self, path: Path) -> tuple[str, ...]:
        if self.folder is None:
            return ()
        return tuple(
            unquote(part.partition("=")[0]) for part in path.relative_to(self.folder).parts[:-1] if "=" in part
        )

    def _check(self) -> None:
        """All files have the columns and types of the first: Spark would fill in nulls, or mistake columns."""
        first: dict[str, Any] | None = None
        if self.format != "parquet" and len(self._columns(self.paths[0])) == 1:
            raise InputError(
                f"{self.paths[0].name} has one column, so that an empty line is a row with a missing cell; "
                "Spark leaves empty lines out.",
                "Write the table to Parquet files, or release it without Spark.",
            )
        if len({self._columns_in_name(path) for path in self.paths}) > 1 or (
            self.folder is not None
            and self._has_columns_in_names()
            and any("=" not in part for path in self.paths for part in path.relative_to(self.folder).parts[:-1])
        ):
            raise InputError(
                f"{self.name} has files in folders that name columns (year=2025), and files elsewhere, which Spark "
                "would leave out.",
                "Put all files in folders that name the same columns, or give those that are.",
            )
        for path in self.paths:
            own = self._columns(path)
            first = own if first is None else first
            if odd := [name for name in {**first, **own} if first.get(name) != own.get(name)]:
                here, there = (str(types.get(odd[0], "missing")) for types in (own, first))
                raise InputError(
                    f"column {odd[0]!r} is {here} in {path.name}, {there} in {self.paths[0].name} "
                    f"({len(odd)} columns differ).",
                    "Write all files with the same columns and types, or give only those that have them.",
                )

    def _read(self, session: Any) -> Any:
        whole = self.folder is not None and self._has_columns_in_names()
        paths = [uri_of(path) for path in ([self.folder] if whole and self.folder else self.paths)]
        if self.format == "parquet":
            return session.read.parquet(*paths)
        reader = session.read.option("header", True).option("sep", "\t" if self.format == "tsv" else ",")
        reader = reader.option("enforceSchema", False).option("mode", "FAILFAST").option("escape", '"')
        texts = ", ".join(f"{quoted(name)} string" for name in reader.csv(paths).columns)
        # in lines, Spark would take those of one cell for rows, and leave out rows of tabs alone
        return reader.option("multiLine", True).schema(texts).csv(paths)

    def _columns(self, path: Path) -> dict[str, Any]:
        if self.format == "parquet":
            try:
                return {column.name: column.type for column in pq.read_schema(path)}
            except (pa.ArrowException, OSError):
                raise InputError(f"{path.name} is not a whole Parquet file.", "Repair it, or leave it out.") from None
        rows = FileBatches.of(File.at(path, self.format))
        if rows.presentation.separator not in (",", "\t"):
            raise InputError(
                f"{path.name}: its cells are not separated by commas or tabs, which Spark needs here.",
                "Release it without Spark, or write it to Parquet files.",
            )
        text = rows.file.format
        assert isinstance(text, DelimitedText)  # noqa: S101
        layout = text.layout(rows.file)
        if layout.quote != '"' or layout.encoding != "utf-8":
            raise InputError(
                f'{path.name}: {layout}; Spark reads text files with quote " and encoding utf-8.',
                "Release it without Spark, or write it to Parquet files.",
            )
        text.check_quotes(rows.file)
        return dict.fromkeys(rows.schema.names, "there")


def _is_hidden(path: Path, folder: Path) -> bool:
    """What Spark does not read, either: names with a dot or an underscore first."""
    return any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)


def uri_of(path: Path) -> str:
    """A path on this machine as Spark takes it: characters that stand for others are escaped."""
    return "file://" + re.sub(r"([*?\[\]{}\\])", r"\\\1", str(path.absolute()))
