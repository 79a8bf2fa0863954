"""Rows of a Spark DataFrame: registered here, loaded when one is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dipriv.sources.protocol import RowSource, row_source


@dataclass(frozen=True, eq=False)
class ReleasedParts:
    """Released rows that workers write to Parquet files themselves: `write` does that, into a folder that it makes."""

    session: Any = field(repr=False)
    write: Callable[[Path], None] = field(repr=False)


def is_spark_frame(thing: object) -> bool:
    """Whether this is a DataFrame of PySpark, without importing it."""
    return type(thing).__module__.startswith("pyspark.sql.") and type(thing).__name__ == "DataFrame"


@row_source(is_spark_frame)
def open_frame(frame: Any) -> RowSource[Any]:
    """A DataFrame of a classic Spark session."""
    from dipriv.sources.spark.frame import SparkSource

    return SparkSource.open(frame)


def collect(frame: Any) -> Any:
    """A DataFrame as an Arrow table, on the driver."""
    from dipriv.sources.spark.frame import worker_errors

    with worker_errors():
        return frame.toArrow()
