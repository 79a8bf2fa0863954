"""A fingerprint depends on the key, names, types and cells, and on nothing that a user cannot see."""

from __future__ import annotations

import datetime as dt
import itertools
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dipriv
from dipriv.sources._fingerprint import Fingerprint
from tests.unit.refusal import SECRET, refused

KEY = bytes(range(32))

INTEGERS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(max_size=5)
MOMENTS = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1))
CELLS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): INTEGERS,
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.int8(): st.integers(-128, 127),
    pa.float64(): st.floats(),
    pa.float32(): st.floats(width=32),
    pa.bool_(): st.booleans(),
    pa.string(): TEXTS,
    pa.binary(): st.binary(max_size=5),
    pa.decimal128(9, 2): st.decimals(-1000, 1000, places=2),
    pa.date32(): st.dates(),
    pa.timestamp("us"): MOMENTS,
    pa.timestamp("us", "UTC"): MOMENTS,
    pa.time64("us"): st.times(),
    pa.duration("us"): st.timedeltas(dt.timedelta(-9999), dt.timedelta(9999)),
    pa.null(): st.none(),
    pa.list_(pa.string()): st.lists(TEXTS, max_size=3),
    pa.struct([("a", pa.int64()), ("b", pa.string())]): st.fixed_dictionaries({"a": INTEGERS, "b": TEXTS}),
}


def digest(*batches: pa.RecordBatch, key: bytes = KEY) -> bytes:
    fingerprint = Fingerprint(key, batches[0].schema.names)
    for batch in batches:
        fingerprint.update(batch)
    return fingerprint.digest()


def of(array: pa.Array, name: str = "x", key: bytes = KEY) -> bytes:
    return digest(pa.record_batch([array], names=[name]), key=key)


@st.composite
def tables(draw: st.DrawFn) -> pa.RecordBatch:
    """A batch of some rows, of one to three columns of any types, with nulls."""
    rows = draw(st.integers(0, 12))
    types = draw(st.lists(st.sampled_from(list(CELLS)), min_size=1, max_size=3))
    columns = [draw(st.lists(st.none() | CELLS[kind], min_size=rows, max_size=rows)) for kind in types]
    arrays = [pa.array(cells, kind, from_pandas=False) for cells, kind in zip(columns, types, strict=True)]
    return pa.record_batch(arrays, names=[f"c{i}" for i in range(len(types))])


def meant(array: pa.Array) -> list[object]:
    """Cells as a fingerprint sees them: what is not a number is missing, times count to the microsecond."""
    if getattr(array.type, "unit", None) == "ns":
        array = array.cast(pa.int64())
        return [None if cell is None else cell // 1000 for cell in array.to_pylist()]
    return [None if cell is None or cell != cell else cell for cell in array.to_pylist()]


def far_from_zero(array: pa.Array) -> pa.Array:
    """The same cells, as a slice in the middle of a longer array."""
    return pa.concat_arrays([array, array, array]).slice(len(array), len(array))


@given(tables(), st.lists(st.integers(0, 12), max_size=4))
def test_batches_and_slices_do_not_matter(table: pa.RecordBatch, cuts: list[int]) -> None:
    ends = [0, *sorted(min(cut, table.num_rows) for cut in cuts), table.num_rows]
    pieces = [table.slice(start, stop - start) for start, stop in itertools.pairwise(ends)]
    moved = pa.record_batch([far_from_zero(column) for column in table.columns], names=table.schema.names)
    assert digest(table) == digest(*pieces) == digest(moved)
    assert len(digest(table)) == 16


@given(tables(), st.data())
def test_one_cell_matters(table: pa.RecordBatch, data: st.DataObject) -> None:
    if not table.num_rows:
        return
    column = data.draw(st.integers(0, table.num_columns - 1))
    row = data.draw(st.integers(0, table.num_rows - 1))
    kind = table.schema.types[column]
    cells = table.columns[column].to_pylist()
    other = [*cells[:row], data.draw(st.none() | CELLS[kind]), *cells[row + 1 :]]
    changed = pa.array(other, kind, from_pandas=False)
    arrays = [*table.columns[:column], changed, *table.columns[column + 1 :]]
    same = meant(changed) == meant(table.columns[column])
    assert (digest(pa.record_batch(arrays, names=table.schema.names)) == digest(table)) == same


@given(st.lists(st.none() | TEXTS, max_size=12))
def test_how_text_is_stored_does_not_matter(cells: list[str | None]) -> None:
    plain = pa.array(cells, pa.string())
    labels = pa.array(["unused", *reversed(list(dict.fromkeys(cells)))], pa.string())  # a null may be among them
    places = [None if cell is None and i % 2 else labels.to_pylist().index(cell) for i, cell in enumerate(cells)]
    stored = [plain.cast(kind) for kind in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string()))]
    stored.append(pa.DictionaryArray.from_arrays(pa.array(places, pa.int16()), labels))
    stored.append(pa.DictionaryArray.from_arrays(pa.array(places, pa.int64()), labels.cast(pa.large_string())))
    assert {of(array) for array in stored} == {of(plain)}
    assert digest(*(pa.record_batch([array], names=["x"]) for array in stored)) == of(pa.array(cells * 5, pa.string()))


@given(st.lists(st.none() | st.integers(0, 127), max_size=12))
def test_widths_do_not_matter_but_kinds_do(cells: list[int | None]) -> None:
    def alike(*kinds: pa.DataType) -> set[bytes]:
        return {of(pa.array(cells, pa.int64()).cast(kind)) for kind in kinds}

    integers = alike(*(getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)))
    floats = alike(pa.float16(), pa.float32(), pa.float64())
    decimals = alike(pa.decimal128(30, 1), pa.decimal256(40, 2))
    assert len(integers | floats | decimals) == 1
    if cells:
        assert len(integers | alike(pa.string()) | alike(pa.timestamp("s")) | alike(pa.duration("s"))) == 4


def test_the_same_moment_is_the_same_in_any_unit() -> None:
    seconds = pa.array([0, 86_400, None, 1_700_000_000], pa.timestamp("s"))
    units = {of(seconds.cast(pa.timestamp(unit))) for unit in ("s", "ms", "us", "ns")}
    assert len(units) == 1
    days = pa.array([0, 1, None], pa.date32())
    assert of(days) == of(days.cast(pa.timestamp("s")))
    assert of(seconds) != of(pa.array([0, 86_400, None, 1_700_000_001], pa.timestamp("s")))  # control


@pytest.mark.parametrize("width", [pa.int32(), pa.float64(), pa.uint64(), pa.decimal128(30, 2), pa.timestamp("us")])
def test_what_lies_under_a_null_does_not_matter(width: pa.DataType) -> None:
    hidden = [pa.array(cells, pa.int64()).cast(width) for cells in ([1, 2, 3], [1, 9, 3])]
    valid = pa.array([True, False, True]).buffers()[1]
    shown = [pa.Array.from_buffers(width, 3, [valid, array.buffers()[1]]) for array in hidden]
    assert shown[0].null_count == 1
    assert len({of(array) for array in shown}) == 1
    assert len({of(array) for array in hidden}) == 2  # control


def test_what_lies_under_a_null_text_does_not_matter() -> None:
    hidden = [pa.array(cells) for cells in (["a", SECRET, "c"], ["a", "", "c"])]
    valid = pa.array([True, False, True]).buffers()[1]
    shown = [pa.Array.from_buffers(pa.string(), 3, [valid, *array.buffers()[1:]]) for array in hidden]
    assert of(shown[0]) == of(shown[1]) == of(pa.array(["a", None, "c"]))
    assert of(hidden[0]) != of(hidden[1])  # control


def test_what_is_not_a_number_is_missing() -> None:
    odd = np.array([0x7FF8000000000001, 0x7FF8000000000000], dtype=np.uint64).view(np.float64)
    assert of(pa.array(odd, from_pandas=False)) == of(pa.array([np.nan, np.nan], from_pandas=False))
    assert of(pa.array([np.nan], from_pandas=False)) == of(pa.array([None], pa.float64()))


def test_other_ways_to_store_the_same_do_not_matter() -> None:
    day, cells = dt.date(2026, 1, 2), [b"ab", None, b"cd"]
    assert of(pa.array([day, None], pa.date32())) == of(pa.array([day, None], pa.date64()))
    assert len({of(pa.array(cells, kind)) for kind in (pa.binary(), pa.large_binary(), pa.binary(2))}) == 1
    assert of(pc.run_end_encode(pa.array([1, 1, 2]))) == of(pa.array([1, 1, 2]))
    assert of(pa.array([bytes(16)], pa.uuid())) == of(pa.array([bytes(16)]))
    assert of(pa.array([Decimal("1.50")], pa.decimal128(5, 2))) == of(pa.array([Decimal("1.50")], pa.decimal256(60, 2)))
    table = pa.record_batch([pa.array([1])], names=["x"])
    assert digest(table, table.slice(0, 0)) == digest(table)
    assert Fingerprint(KEY, ["x"]).digest() == digest(table.slice(0, 0))


def test_key_name_order_and_place_matter() -> None:
    cells, swapped = pa.array([1, 2, None]), pa.array([2, 1, None])
    two = pa.record_batch([cells, swapped], names=["x", "y"])
    others = [
        of(cells),
        of(cells, key=bytes(32)),
        of(cells, name="y"),
        of(swapped),
        of(pa.array([1, None, 2])),
        of(pa.array([1, 2, None, None])),
        of(pa.array([1, 2])),
        digest(two),
        digest(pa.record_batch([swapped, cells], names=["y", "x"])),
        digest(pa.record_batch([swapped, cells], names=["x", "y"])),
        of(pa.array([2**64 - 1], pa.uint64())),
        of(pa.array([-1])),
        *(of(pa.array(cells)) for cells in (["ab", "c"], ["a", "bc"], ["abc", ""], ["abc", None])),
        *(of(pa.array(cells)) for cells in ([["ab"], ["c"]], [["a"], ["bc"]], [["ab", "c"], []], [["ab", "c"], None])),
    ]
    assert len(set(others)) == len(others)


def test_what_cannot_be_one_table_is_refused() -> None:
    fingerprint = Fingerprint(KEY, ["x"])
    fingerprint.update(pa.record_batch([pa.array([1])], names=["x"]))
    before = fingerprint.digest()
    text = pa.record_batch([pa.array([SECRET])], names=["x"])
    refused(dipriv.InputError, "'x' changes its type", call=lambda: fingerprint.update(text))
    refused(dipriv.InputError, "columns", call=lambda: fingerprint.update(text.rename_columns(["y"])))
    assert fingerprint.digest() == before
    refused(dipriv.InputError, "3 bytes", call=lambda: Fingerprint(b"key", ["x"]))
