"""The types of text columns of a Spark DataFrame: judged on the workers, settled on the driver, read on the workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from dipriv._tables.cell_classes import CellClass, classify
from dipriv._tables.column_types import NO_CELLS, Question, ask, check_given, count_classes, parse, settle, settle_text
from dipriv._tables.repeated import coded, distinct
from dipriv.errors import SchemaError
from dipriv.sources.protocol import Scan
from dipriv.sources.spark.tasks import Batches
from dipriv.sources.typed import check_names_are_no_cells

_AS_NAMED = len(CellClass)
"""In counts of classes, the cells that are the name of their column."""


@dataclass(frozen=True)
class ClassCounts:
    """How many cells of each class a task's rows have, and how many are their column's name."""

    names: tuple[str, ...]
    marks: tuple[str, ...]
    schema: ClassVar[str] = "name string, class int, cells bigint"

    def __call__(self, batches: Batches) -> Batches:
        counts = {name: np.zeros(_AS_NAMED + 1, dtype=np.int64) for name in self.names}
        for batch in batches:
            for name, of in counts.items():
                texts, times = distinct(coded(batch.column(name)))
                of[:_AS_NAMED] += count_classes(classify(texts, self.marks), times)
                of[_AS_NAMED] += times[pc.equal(texts, name).fill_null(False).to_numpy(zero_copy_only=False)].sum()
        for name, of in counts.items():
            classes = pa.array(np.arange(len(of)), pa.int32())
            yield pa.record_batch({"name": [name] * len(of), "class": classes, "cells": of})


@dataclass(frozen=True)
class Reading:
    """Reads columns of text as other types, cell by cell, on the workers."""

    types: Mapping[str, pa.DataType]
    marks: tuple[str, ...]
    held: Mapping[str, pa.DataType]
    """The types of these columns as Spark gives them to workers."""

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        names = batch.schema.names
        return pa.record_batch(
            [
                parse(array, self.types[name], self.marks).cast(self.held[name]) if name in self.types else array
                for name, array in zip(names, batch.columns, strict=True)
            ],
            names=names,
        )


def settled_types(
    frame: Any, request: Scan, *, all_text: bool, collected: Callable[..., pa.Table]
) -> dict[str, pa.DataType]:
    """The types of columns of text that are read as other types, as `dipriv.sources.typed` settles them; else none."""
    rules, texts = request.types, text_columns(frame, request.privatized)
    if times := [name for name in texts if name in rules.given and rules.given[name].leaf == "time"]:
        raise SchemaError(
            f"column {times[0]!r} is said to have times of day, for which Spark has no type.",
            "State that it is text, or release the table without Spark.",
        )
    others = {name: frame.schema[name].dataType.simpleString() for name in request.privatized if name not in texts}
    check_given(rules, others)
    judged = texts if all_text else [name for name in texts if rules.judges(name)]
    named = [*judged, *(text_columns(frame, request.passed_through) if all_text else ())]
    if not named:
        return {}
    some = frame.select(*(frame[f"`{name.replace('`', '``')}`"] for name in dict.fromkeys(named)))
    lines = collected(some, ClassCounts(tuple(dict.fromkeys(named)), rules.all_marks), ClassCounts.schema).to_pylist()
    counts = {name: np.append(NO_CELLS, 0) for name in named}
    for line in lines:
        counts[line["name"]][line["class"]] += line["cells"]
    if all_text:
        check_names_are_no_cells("the files", {name: int(of[_AS_NAMED]) for name, of in counts.items()})
    settled = settle if all_text else settle_text
    found = {name: settled(name, counts[name][:_AS_NAMED], rules.given.get(name)) for name in judged}
    ask([of for of in found.values() if isinstance(of, Question)])
    types = {name: _held(of) for name, of in found.items() if isinstance(of, pa.DataType) and not pt.is_time(of)}
    if not types or (all(of == pa.string() for of in types.values()) and not all_text):
        return {}
    return types


def with_types(schema: Any, types: Mapping[str, pa.DataType]) -> Any:
    """A schema of Spark, with these types."""
    from pyspark.sql.types import StructType

    return StructType([_field(column, types.get(column.name)) for column in schema.fields])


def text_columns(frame: Any, names: Sequence[str]) -> list[str]:
    """The columns of text among these."""
    return [name for name in names if frame.schema[name].dataType.typeName() == "string"]


def _held(arrow_type: pa.DataType) -> pa.DataType:
    """The type that Spark holds: all its times are in microseconds."""
    return pa.timestamp("us", arrow_type.tz) if pt.is_timestamp(arrow_type) else arrow_type


def _field(column: Any, arrow_type: pa.DataType | None) -> Any:
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField

    if arrow_type is None:
        return column
    return StructField(column.name, from_arrow_type(arrow_type, prefer_timestamp_ntz=True), True)
