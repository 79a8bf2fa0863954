"""Rows that are kept in narrow form come back as they were, with nulls, in every type."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from dipriv._tables.narrow import narrowed, restored

LIMITS = [np.iinfo(kind) for kind in (np.int8, np.int16, np.int32, np.int64)]
ENDS = sorted({end + shift for of in LIMITS for end in (of.min, of.max) for shift in (-1, 0, 1)})
TYPES = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.date32()]


@pytest.mark.parametrize("arrow_type", TYPES, ids=str)
def test_whole_numbers_and_days_come_back(arrow_type: pa.DataType) -> None:
    number = pa.int32() if pa.types.is_date(arrow_type) else arrow_type
    limits = np.iinfo(number.to_pandas_dtype())
    inside = [end for end in (*ENDS, 2**64 - 1, 0, 1) if limits.min <= end <= limits.max]
    for one in inside:
        for other in inside:
            cells = pa.array([one, None, other], number).cast(arrow_type)
            table = pa.table({"x": cells}, schema=pa.schema([pa.field("x", arrow_type, nullable=True)]))
            assert restored(narrowed(table), table.schema).equals(table)


def test_what_is_narrow_takes_less() -> None:
    table = pa.table({"age": [17, 99] * 50, "day": pa.array([10_000, 20_000] * 50, pa.int32()).cast(pa.date32())})
    assert narrowed(table).schema.types == [pa.int8(), pa.int16()]
    assert narrowed(table).nbytes < table.nbytes / 3  # and some bytes that say which cells are null


def test_other_columns_stay_as_they_are() -> None:
    table = pa.table(
        {
            "real": [0.5, None],
            "text": ["a", None],
            "code": pa.array(["a", "b"]).dictionary_encode(),
            "flag": [True, None],
            "at": pa.array([1, None], pa.timestamp("us", "UTC")),
            "none": pa.nulls(2, pa.int64()),
        }
    )
    assert restored(narrowed(table), table.schema).equals(table)
    assert narrowed(table).select(["real", "text", "flag", "at"]).equals(table.select(["real", "text", "flag", "at"]))
    empty = table.slice(0, 0)
    assert restored(narrowed(empty), table.schema).equals(empty)


def test_indices_of_dictionaries_come_back() -> None:
    for count in (1, 127, 128, 129, 32_767, 32_768, 32_769):
        labels = pa.array(map(str, range(count)))
        for index_type in (pa.int8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64()):
            if count > np.iinfo(index_type.to_pandas_dtype()).max:
                continue
            indices = pa.array([0, None, count - 1], index_type)
            every = pa.DictionaryArray.from_arrays(indices, labels, ordered=True)
            few = pa.DictionaryArray.from_arrays(pa.array([0], index_type), labels[:1], ordered=True)
            table = pa.table({"code": pa.chunked_array([every, few])})
            narrow = narrowed(table)
            assert restored(narrow, table.schema).equals(table)
            assert narrow.schema.field("code").type.index_type.bit_width == min(
                index_type.bit_width, 8 if count <= 127 else 16 if count <= 32_767 else 32
            )
