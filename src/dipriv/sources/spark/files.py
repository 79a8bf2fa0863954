"""`dipriv privatize --engine spark`: Parquet or CSV files in, a folder of Parquet files out, whole or not at all."""

from __future__ import annotations

import glob
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dipriv._tables.frames import check_names
from dipriv.errors import InputError
from dipriv.release.publish import TYPES_READ, ReleasedTable, Request, finish, recipe_of, without_columns
from dipriv.sources.files import Source, temporary_path
from dipriv.sources.spark.frame import quoted, told
from dipriv.sources.spark.privatize import prepare
from dipriv.sources.spark.session import open_session

READABLE = ("parquet", "csv", "tsv")


@dataclass(frozen=True)
class Files:
    """Files of one format with the same columns; `folder` is given to Spark whole, for columns in names of folders."""

    name: str
    paths: tuple[Path, ...]
    format: str
    folder: Path | None = None

    @classmethod
    def find(cls, pattern: str, format: str | None = None) -> Files:
        """The files of a path: one file, all files in a folder, or those that a pattern such as in/*.csv matches."""
        place = Path(pattern)
        if place.is_dir():
            found = sorted(path for path in place.rglob("*") if path.is_file() and not _is_hidden(path, place))
        else:
            found = [place] if place.is_file() else sorted(Path(path) for path in glob.glob(pattern, recursive=True))
            found = [path for path in found if path.is_file()]
        if not found:
            raise InputError(f"no file is at {pattern!r}.", "Check the path; * stands for any part of a name.")
        formats = {Source.open(path, format).format for path in found}
        if len(formats) > 1 or not formats <= set(READABLE):
            raise InputError(
                f"{pattern!r} has files of {', '.join(sorted(formats))}; Spark reads Parquet, CSV or TSV, one of them.",
                "Give files of one format: a pattern such as folder/*.parquet picks them.",
            )
        files = cls(place.name, tuple(found), formats.pop(), place if place.is_dir() else None)
        files.check()
        return files

    def check(self) -> None:
        """All files have the columns and types of the first: Spark would fill in nulls, or mistake columns."""
        first: dict[str, Any] | None = None
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

    def read(self, session: Any, verbatim: Sequence[str]) -> Any:
        """The files as one DataFrame; of CSV files, these columns as the text that they are."""
        paths = [_uri(path) for path in ([self.folder] if self.folder else self.paths)]
        if self.format == "parquet":
            return session.read.parquet(*paths)
        reader = session.read.option("header", True).option("sep", "\t" if self.format == "tsv" else ",")
        reader = reader.option("enforceSchema", False).option("mode", "FAILFAST")
        found = reader.option("inferSchema", True).csv(paths).schema
        texts = ", ".join(
            f"{quoted(column.name)} {'string' if column.name in verbatim else column.dataType.simpleString()}"
            for column in found.fields
        )
        return reader.schema(texts).csv(paths)

    def _columns(self, path: Path) -> dict[str, Any]:
        if self.format == "parquet":
            try:
                return {column.name: column.type for column in pq.read_schema(path)}
            except (pa.ArrowException, OSError):
                raise InputError(f"{path.name} is not a whole Parquet file.", "Repair it, or leave it out.") from None
        batch = next(Source.open(path, self.format).batches(), None)
        return {} if batch is None else dict.fromkeys(batch.schema.names, "there")


@dataclass
class Folder:
    """A folder that appears whole under its name or not at all."""

    path: Path
    part: Path

    @classmethod
    def open(cls, name: str, *, force: bool = False) -> Folder:
        """A folder by its path, to be written; one that is there is replaced if that is asked for."""
        path = Path(name).absolute()
        if name == "-" or path.suffix.lstrip(".") in ("csv", "tsv", "arrow"):
            raise InputError(f"{name} is not the name of a folder.", "Spark writes a folder of Parquet files.")
        if path.exists() and not (force and path.is_dir()):
            raise InputError(f"{name} exists.", "Choose another name, or replace the folder with --force.")
        if not path.parent.is_dir():
            raise InputError(f"the folder {path.parent} does not exist.", "Make it, or choose another.")
        return cls(path, temporary_path(path))

    def __enter__(self) -> Folder:
        return self

    def publish(self) -> None:
        """Give the finished folder its name; what was there goes once the new one is there."""
        old = temporary_path(self.path)
        if self.path.exists():
            self.path.rename(old)
        try:
            self.part.rename(self.path)
        except BaseException:
            if old.exists():
                old.rename(self.path)
            raise
        shutil.rmtree(old, ignore_errors=True)

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.part, ignore_errors=True)


def publish(request: Request, files: Files, folder: Folder) -> ReleasedTable:
    """Privatize files into a folder, on Spark."""
    session = open_session()
    frame = files.read(session, request.keep)
    check_names(request.drop, frame.columns, "drop")
    frame = frame.select(*(quoted(name) for name in frame.columns if name not in request.drop))
    aside: set[str | None] = {*request.keep, *request.drop}
    plan = prepare(
        frame,
        request.epsilon,
        reference=recipe_of(request),
        kernel=request.kernel,
        schema=None if request.schema is None else without_columns(request.schema, aside),
        keep=request.keep,
        holdout=request.holdout,
        public=request.public,
        ledger=request.ledger,
        dataset=request.dataset,
        seed=request.seed,
    )
    if files.format != "parquet":
        said = replace(plan.guarantee, assumptions=(*plan.guarantee.assumptions, TYPES_READ))
        plan = replace(plan, guarantee=said)
    origin, account = plan.origin, plan.account
    with folder, plan.spending(folder.path.name) as spent, told():
        release = plan.release()
        kinds = {
            name: kind.name + (" (declared)" if name in release.fitted.declared else "")
            for name, kind in release.schema.items()
        }
        done = ReleasedTable(
            plan.guarantee,
            origin.held + origin.released,
            origin.released,
            0,
            kinds,
            account.name if account else None,
            release.fidelity,
        )
        release.data.write.option("compression", "zstd").parquet(f"file://{folder.part}")
        _check_written(folder.part, origin.released)
        finish(folder, done)
        spent(origin.released)
    return done


def _check_written(part: Path, rows: int) -> None:
    """Every row once."""
    found = sum(pq.read_metadata(path).num_rows for path in part.glob("*.parquet"))
    if found != rows:
        raise InputError(f"{found:,} rows were written, not {rows:,}.", "Give the command again on files at rest.")


def _is_hidden(path: Path, folder: Path) -> bool:
    """What Spark does not read, either: names with a dot or an underscore first."""
    return any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)


def _uri(path: Path) -> str:
    """A path on this machine as Spark takes it: characters that stand for others are escaped."""
    return "file://" + re.sub(r"([*?\[\]{}\\])", r"\\\1", str(path.absolute()))
