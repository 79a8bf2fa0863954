"""Every Arrow type comes back as it went in."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import dipriv
from tests.unit.typed import CODES, NO_NOISE, ROWS, SEED, check_round_trip, values

UNITS = ("s", "ms", "us", "ns")
HOLES = pytest.mark.parametrize("holes", [False, True], ids=["full", "nulls"])
TYPES = [
    *((kind, "whole") for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())),
    *((kind, "whole") for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())),
    *((kind, "real") for kind in (pa.float16(), pa.float32(), pa.float64())),
    (pa.bool_(), "boolean"),
    *((kind, "text") for kind in (pa.string(), pa.large_string(), pa.string_view())),
    *((kind, "date") for kind in (pa.date32(), pa.date64())),
    *((pa.timestamp(unit), "local time") for unit in UNITS),
    *((pa.timestamp(unit, "Europe/Paris"), "absolute time") for unit in UNITS),
    *((pa.duration(unit), "duration") for unit in UNITS),
    *((kind, "time of day") for kind in (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"))),
    *((kind, "decimal") for kind in (pa.decimal32(5, 2), pa.decimal64(12, 2), pa.decimal128(18, 3))),
    *((kind, "decimal") for kind in (pa.decimal128(38, 10), pa.decimal256(38, 2))),
]
LABELS = [
    *((pa.int8(), kind, "text") for kind in (pa.string(), pa.large_string(), pa.string_view())),
    (pa.uint16(), pa.int64(), "whole"),
    (pa.int32(), pa.date32(), "date"),
    (pa.int64(), pa.bool_(), "boolean"),
    (pa.int32(), pa.decimal128(9, 2), "decimal"),
]


def cells(table: pa.Table) -> list[Any]:
    table.validate(full=True)
    return list(table.column(0).to_pylist())


def field(table: pa.Table) -> pa.Field:
    return table.schema.field(0)


def labelled(index: pa.DataType, kind: pa.DataType, sort: str, *, holes: bool, ordered: bool = False) -> pa.Array:
    cells = values(sort, holes)
    labels = sorted({cell for cell in cells if cell is not None}, reverse=True)
    positions = pa.array([None if cell is None else labels.index(cell) for cell in cells], index)
    return pa.DictionaryArray.from_arrays(positions, pa.array(labels).cast(kind), ordered=ordered)


@HOLES
@pytest.mark.parametrize(("kind", "sort"), TYPES, ids=str)
def test_types(kind: pa.DataType, sort: str, holes: bool) -> None:
    check_round_trip(pa.table({"x": pa.array(values(sort, holes), kind)}), cells, field)


@HOLES
@pytest.mark.parametrize("ordered", [False, True], ids=["unordered", "ordered"])
@pytest.mark.parametrize(("index", "kind", "sort"), LABELS, ids=str)
def test_dictionaries(index: pa.DataType, kind: pa.DataType, sort: str, ordered: bool, holes: bool) -> None:
    array = labelled(index, kind, sort, holes=holes, ordered=ordered)
    assert array.type == pa.dictionary(index, kind, ordered)
    check_round_trip(pa.table({"x": array}), cells, field)


def test_a_null_among_the_labels_of_a_dictionary_is_a_null() -> None:
    array = pa.DictionaryArray.from_arrays(pa.array(CODES), pa.array(["a", None, "b", "c", "d", "e", "f"]))
    check_round_trip(pa.table({"x": array}), cells, field)


def test_chunks_with_dictionaries_of_their_own() -> None:
    cells_of = values("text", holes=True)
    chunks = [pa.array(part, pa.string()).dictionary_encode() for part in (cells_of[:9], cells_of[9:], [])]
    assert chunks[0].dictionary != chunks[1].dictionary
    check_round_trip(pa.table({"x": pa.chunked_array(chunks)}), cells, field)


@pytest.mark.parametrize("sort", ["boolean", "decimal", "text", "whole", "date"])
def test_slices_are_read_from_where_they_start(sort: str) -> None:
    table = pa.table({"x": values(sort, holes=True) * 2}).slice(150, ROWS)
    check_round_trip(table, cells, field)


@pytest.mark.parametrize("nullable", [False, True])
def test_fields_keep_whether_they_take_nulls(nullable: bool) -> None:
    schema = pa.schema([pa.field("x", pa.int16(), nullable=nullable)])
    check_round_trip(pa.table({"x": pa.array(values("whole", holes=False), pa.int16())}, schema=schema), cells, field)


@pytest.mark.parametrize("kind", [dipriv.Mixed(), dipriv.Datetime(resolution="hour")])
def test_dates_in_milliseconds_stay_whole_days(kind: Any) -> None:
    table = pa.table({"x": pa.array(values("date", holes=True), pa.date64())})
    release = dipriv.privatize(table, 1.0, reference="holdout", schema={"x": kind}, seed=SEED)
    assert set(cells(release.data)) <= set(cells(table))


def test_a_record_batch_comes_back_as_a_table() -> None:
    batch = pa.record_batch({"x": values("whole", holes=True)})
    release = dipriv.privatize(batch, NO_NOISE, public=batch, seed=SEED)
    assert release.data == pa.Table.from_batches([batch])
