"""Finding 30: how many labels narrow dictionaries have, and how pandas writes a zero, were facts about single rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

import dipriv
from dipriv import Postal, Schema, Weight
from dipriv.errors import SchemaError
from dipriv.sources import stream
from tests.unit.refusal import refused

ROOM = {"int8": 128, "uint8": 256}
SCHEMA = {"z": Postal(digits=5)}


def batch(codes: list[str], index_type: str, first: int = 0) -> pa.RecordBatch:
    """Postal codes, each several times, in a dictionary of their own."""
    places = np.tile(np.arange(len(codes)), 4000 // len(codes)).astype(index_type)
    labels = pa.DictionaryArray.from_arrays(pa.array(places), pa.array(codes))
    return pa.record_batch({"z": labels, "y": (first + np.arange(len(places))) % 3})


def batches(n_codes: int, index_type: str) -> list[pa.RecordBatch]:
    """Two batches with this many postal codes in all: neither has too many of them for its dictionary."""
    codes = [f"{number:05d}" for number in range(n_codes)]
    return [batch(codes[:100], index_type), batch(codes[100:], index_type)]


def in_memory(parts: list[pa.RecordBatch], folder: Path) -> Any:
    return dipriv.privatize(pa.Table.from_batches(parts), 1.0, schema=SCHEMA, seed=1).data


def of_function(parts: list[pa.RecordBatch], folder: Path) -> Any:
    return dipriv.privatize(lambda: iter(parts), 1.0, schema=SCHEMA, seed=1).data.to_table()


def of_file(parts: list[pa.RecordBatch], folder: Path) -> Any:
    with pa.ipc.new_stream(folder / "in.arrow", parts[0].schema) as writer:
        for part in parts:
            writer.write_batch(part)
    dipriv.privatize_file(folder / "in.arrow", folder / "out.arrow", 1.0, schema=SCHEMA, seed=1, force=True)
    with pa.ipc.open_file(folder / "out.arrow") as reader:
        return reader.read_all()


def of_transform(parts: list[pa.RecordBatch], folder: Path) -> Any:
    dip = dipriv.DIP(1.0, schema=SCHEMA, seed=1).fit(pa.Table.from_batches(parts[:1]))
    return dip.transform(pa.Table.from_batches(parts))


def in_pandas(parts: list[pa.RecordBatch], folder: Path) -> Any:
    frame = pa.Table.from_batches(parts).to_pandas(types_mapper=pd.ArrowDtype)
    return pa.Table.from_pandas(dipriv.privatize(frame, 1.0, schema=SCHEMA, seed=1).data)


WAYS: list[Callable[[list[pa.RecordBatch], Path], Any]] = [
    in_memory,
    of_function,
    of_file,
    of_transform,
    in_pandas,
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("index_type", ROOM)
def test_one_more_postal_code_is_released_as_others_are(
    way: Callable[[list[pa.RecordBatch], Path], Any], index_type: str, tmp_path: Path
) -> None:
    """Codes were cut into a dictionary of all batches, which had no room for the 129th: an error, after ε was spent."""
    fits, one_more = (way(batches(ROOM[index_type] + more, index_type), tmp_path) for more in (0, 1))
    for data in (fits, one_more):
        assert data.schema.field("z").type == pa.dictionary(getattr(pa, index_type)(), pa.string())
        data.validate(full=True)
        assert data["z"].null_count == 0


def labels_of(cells: pd.Series, **options: Any) -> list[str]:
    """The labels of a release, with the signs of zeros."""
    data = dipriv.privatize(pd.DataFrame({"a": cells.astype("category")}), 2.0, seed=1, **options).data
    return [str(label) for label in data["a"].cat.categories]


@pytest.mark.parametrize("first", [0.0, -0.0])
@pytest.mark.parametrize("dtype", ["float64", "float32", "Float64", "Float32", "interval"])
def test_the_sign_of_one_zero_is_not_that_of_all(dtype: str, first: float) -> None:
    """pandas takes 0.0 and -0.0 for one category, and lists the one that it met first: it was the released label."""
    cells = [first, *[0.0, 1.0, 2.0] * 1000]
    if dtype == "interval":
        column = pd.Series([pd.Interval(cell, 3.0) for cell in cells])
        assert labels_of(column) == ["(0.0, 3.0]", "(1.0, 3.0]", "(2.0, 3.0]"]
        return
    for options in ({}, {"labels": "public"}, {"reference": "holdout"}):
        assert labels_of(pd.Series(cells, dtype=dtype), **options) == ["0.0", "1.0", "2.0"]


def test_zeros_that_arrow_distinguishes_are_released_as_one_category() -> None:
    """A reference that was learned from both is used for a table of pandas, which has one of them."""
    cells = np.tile([0.0, -0.0, 1.0], 1000)
    dip = dipriv.DIP(2.0, seed=1).fit(pa.table({"a": pa.array(cells).dictionary_encode()}))
    released = dip.transform(pd.DataFrame({"a": pd.Series(cells[1:]).astype("category")}))
    assert sorted(released["a"].cat.categories) == [0.0, 1.0]
    assert released["a"].notna().all()


private_rows_break_them = pytest.mark.filterwarnings("ignore::dipriv.errors.RuleWarning")


def narrow(n_labels: int) -> pa.Table:
    """A dictionary with this many labels, which has room for 128, and whole numbers."""
    places = np.tile(np.arange(n_labels), 60)
    labels = pa.DictionaryArray.from_arrays(
        pa.array(places.astype(np.int8)), pa.array([f"label {number:03d}" for number in range(n_labels)])
    )
    y = np.random.default_rng(0).integers(0, 5, len(places))
    return pa.table({"z": labels, "y": y, "w": pa.array(places % 2).cast(pa.string()).dictionary_encode()})


@private_rows_break_them
@pytest.mark.parametrize("rule", ["y = 1 => z = 'new'", "y = 1 => z = 'label 127'"])
@pytest.mark.parametrize("n_labels", [127, 128])
@pytest.mark.parametrize("streamed", [False, True], ids=["memory", "stream"])
def test_labels_that_rules_set_are_kept_in_narrow_dictionaries(rule: str, n_labels: int, streamed: bool) -> None:
    """The label was put behind all others, where the type has no room: all these rows were released as "(other)"."""
    table = narrow(n_labels)
    given = (lambda: iter(table.to_batches(1000))) if streamed else table
    found = dipriv.privatize(given, 60.0, schema=Schema(rules=[rule]), seed=1).data
    data = found.to_table() if streamed else found
    frame = data.to_pandas()
    assert data.schema.field("z").type == table.schema.field("z").type
    assert set(frame["z"][frame["y"] == 1]) == {rule.split("'")[1]}
    assert frame["z"].nunique() > 100


@private_rows_break_them
def test_a_rule_is_judged_by_the_labels_that_are_released() -> None:
    """A row whose label the type has no room for meets the condition of "(other)", which is what it is released as."""
    table = narrow(128)
    schema = Schema(rules=["z != 'label 127' => y = 3"])
    frame = dipriv.privatize(table, 60.0, schema=schema, seed=1).data.to_pandas()
    assert set(frame["y"][frame["z"] != "label 127"]) == {3}


LISTS: dict[str, dict[str, Any]] = {
    "public labels": {"schema": Schema(rules=["y = 1 => z = 'new'"]), "labels": "public"},
    "hold-out": {"schema": Schema(rules=["y = 1 => z = 'new'"]), "reference": "holdout"},
    "combinations": {
        "schema": Schema(
            combinations=[{"columns": ["z", "w"], "rows": [[f"label {number:03d}", "0"] for number in range(129)]}]
        )
    },
    "function": {
        "schema": Schema(functions={"z": {"of": "y", "map": {str(number): f"label {number}" for number in range(129)}}})
    },
    "rules alone": {"schema": Schema(rules=[f"y = {number} => z = 'new {number}'" for number in range(128)])},
}


@private_rows_break_them
@pytest.mark.parametrize("options", LISTS.values(), ids=LISTS.keys())
def test_labels_of_rules_that_have_no_room_are_refused_before_anything_is_spent(options: dict[str, Any]) -> None:
    """The release failed after it was spent."""
    error = refused(SchemaError, "room for 128", call=lambda: dipriv.privatize(narrow(128), 2.0, **options))
    assert not getattr(error, "__notes__", None)


@pytest.mark.parametrize("suffix", [".feather", ".parquet"])
@pytest.mark.parametrize("block", [500, 100_000], ids=["blocks", "one block"])
def test_kept_labels_of_many_narrow_dictionaries_are_written(
    block: int, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file has one dictionary for all batches, whose labels had no room: an error, after ε was spent.

    In one block, the released rows had the boundaries of the batches that were read.
    """
    monkeypatch.setattr(stream, "MIN_BLOCK_ROWS", block)
    monkeypatch.setattr(stream, "MAX_BLOCK_ROWS", block)
    codes = [f"{number:05d}" for number in range(400)]
    parts = [batch(codes[first : first + 100], "int8") for first in range(0, 400, 100)]
    options: dict[str, Any] = {"keep": ["z"], "seed": 1}
    dipriv.privatize_file(lambda: iter(parts), tmp_path / f"out{suffix}", 1.0, **options)
    written = (
        pq.read_table(tmp_path / "out.parquet")
        if suffix == ".parquet"
        else feather.read_table(tmp_path / "out.feather")
    )
    streamed = dipriv.privatize(lambda: iter(parts), 1.0, **options).data
    n_rows = sum(part.num_rows for part in parts)
    assert [part.num_rows for part in streamed] == [block] * (n_rows // block) + [n_rows] * (block > n_rows)
    for table in (written, streamed.to_table()):
        assert table["z"].to_pylist() == pa.Table.from_batches(parts)["z"].to_pylist()
        assert table.schema.field("z").type == pa.dictionary(pa.int32(), pa.string())


WEIGHTS: dict[str, tuple[pa.DataType, int]] = {
    "int8": (pa.int8(), 127),
    "uint16": (pa.uint16(), 65535),
    "float16": (pa.float16(), 65504),
    "decimal": (pa.decimal128(5, 0), 99999),
}


@pytest.mark.parametrize(("kind", "largest"), WEIGHTS.values(), ids=WEIGHTS.keys())
@pytest.mark.parametrize("streamed", [False, True], ids=["memory", "stream"])
def test_a_total_that_a_type_cannot_have_is_refused(kind: pa.DataType, largest: int, streamed: bool) -> None:
    """Every weight was released as the largest number of its type, and the total was missed without a word."""
    weights = pa.array(np.ones(300, np.float16)) if pa.types.is_float16(kind) else pa.array([1] * 300, kind)
    table = pa.table({"w": weights, "x": np.arange(300)})

    def release(total: int) -> Any:
        given = (lambda: iter(table.to_batches(100))) if streamed else table
        return dipriv.privatize(given, 1.0, schema={"w": Weight(total=total)}, seed=1)

    most = 300 * largest
    error = refused(SchemaError, "column 'w' has a total", f"{most:,}", call=lambda: release(most + 1))
    assert not getattr(error, "__notes__", None)
    assert release(most).n_rows == 300
