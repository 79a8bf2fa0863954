"""Rows that can be read again and again, always the same ones: in memory, files, streams, Spark.

A new source is a module that registers itself with `row_source` (see `dipriv.sources.protocol`). The sources registered
here load their modules when they are first used.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import narwhals as nw
import pyarrow as pa

from dipriv._tables import frames
from dipriv._tables.column_types import TypeRules
from dipriv._tables.frames import Column, Table
from dipriv.dialect import DETECTED, Dialect
from dipriv.sources import spark
from dipriv.sources._formats.registry import refuse_unused
from dipriv.sources.in_memory import TableSource
from dipriv.sources.protocol import RowSource, registered_source, row_source

__all__ = ["RowSource", "open_source", "read_table", "row_source"]


def open_source(thing: Any, dialect: Dialect = DETECTED, otherwise: Dialect | None = None) -> RowSource[Any]:
    """The source that a table, a path, a query, a function or a Spark DataFrame is.

    A file is as its dialect says, and as a schema says `otherwise`; for other tables a dialect is refused.
    """
    registered = registered_source(thing)
    if registered is None and is_path(thing):
        from dipriv.sources.stream import open_path

        return open_path(thing, dialect, otherwise)
    refuse_unused("tables that are no files", dialect)
    return registered or TableSource.open(thing)


def read_table(thing: Any, like: Sequence[Column] = (), dialect: Dialect = DETECTED) -> Table:
    """A table in memory: a dataframe, a file by its path, or a Spark DataFrame, which is brought to the driver.

    Columns of a file without types that are named as those of `like` are read as the types of these. Of a dialect, that
    of another file, the file has what has a meaning for its format.
    """
    if isinstance(thing, Table):
        return thing
    if is_path(thing):
        from dipriv.sources.files import File

        types = [pa.field(column.name, column.arrow_type) for column in like]
        return frames.read(File.at(thing, otherwise=dialect).read(TypeRules.like(types, dialect)))
    return frames.read(spark.collect(thing) if spark.is_spark_frame(thing) else thing)


def is_path(thing: object) -> bool:
    """Whether this names a file or files."""
    return isinstance(thing, str | Path)


@row_source(lambda thing: type(thing).__module__ == "dipriv.sources.files")
def _file(file: Any) -> RowSource[Any]:
    from dipriv.sources.stream import open_file

    return open_file(file)


@row_source(lambda thing: callable(thing) and not isinstance(thing, type))
def _function(function: Any) -> RowSource[Any]:
    from dipriv.sources.stream import open_function

    return open_function(function)


@row_source(lambda thing: type(thing).__module__ == "pyarrow._dataset")
def _dataset(data: Any) -> RowSource[Any]:
    from dipriv.sources.stream import open_dataset

    return open_dataset(data)


@row_source(nw.dependencies.is_polars_lazyframe)
def _lazy_frame(frame: Any) -> RowSource[Any]:
    from dipriv.sources.stream import open_lazy_frame

    return open_lazy_frame(frame)
