"""Rows that can be read again and again, always the same ones: in memory, files, streams, Spark.

A new source is a module that registers itself with `row_source` (see `dipriv.sources.protocol`).
"""

from __future__ import annotations

from typing import Any

from dipriv._tables import frames
from dipriv._tables.frames import Table
from dipriv.sources import spark, stream
from dipriv.sources.files import File
from dipriv.sources.in_memory import TableSource
from dipriv.sources.protocol import RowSource, registered_source, row_source

__all__ = ["RowSource", "open_source", "read_table", "row_source"]


def open_source(thing: Any) -> RowSource[Any]:
    """The source that a table, a path, a query, a function or a Spark DataFrame is."""
    return registered_source(thing) or TableSource.open(thing)


def read_table(thing: Any) -> Table:
    """A table in memory: a dataframe, a file by its path, or a Spark DataFrame, which is brought to the driver."""
    if isinstance(thing, Table):
        return thing
    if isinstance(thing, File):
        return frames.read(thing.read())
    if stream.is_path(thing):
        return frames.read(File.at(thing).read())
    return frames.read(spark.collect(thing) if spark.is_spark_frame(thing) else thing)
