"""Spark for tests: one small session a process, or a skip that says what is missing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from benchmarks.scale.java import use_small_java
from dipriv.errors import InputError
from dipriv.sources.spark.session import open_session

MAX_RESULT_BYTES = 2 << 20
"""No job may send more than that to the driver: it holds the reference, never the table."""


def session(log: Path, **settings: str) -> Iterator[Any]:
    """A session on two cores that tries a task four times, and writes an event log."""
    before = os.environ.get("JAVA_HOME")
    use_small_java()
    try:
        started = open_session(
            spark_master="local[2,4]",
            spark_ui_enabled="false",
            spark_sql_shuffle_partitions="2",
            spark_driver_maxResultSize=str(MAX_RESULT_BYTES),
            spark_sql_session_timeZone="America/New_York",
            spark_eventLog_enabled="true",
            spark_eventLog_compress="false",
            spark_eventLog_dir=f"file://{log}",
            **settings,
        )
    except InputError as reason:
        pytest.skip(f"no Spark for this test: {reason.fault}")
    yield started
    started.stop()
    if before is None:
        os.environ.pop("JAVA_HOME", None)


def in_partitions(session: Any, table: pa.Table, sizes: list[int]) -> Any:
    """A DataFrame of the table's rows in their order, in partitions of these sizes."""
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
    frames, start = [], 0
    for size in sizes:
        part = session.createDataFrame(table.slice(start, size).combine_chunks(), schema)
        frames.append(part.coalesce(1))
        start += size
    return reduce(lambda one, other: one.union(other), frames)
