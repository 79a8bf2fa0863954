"""Untrusted tables: Arrow buffers out of bounds, decompression bombs, texts that are not UTF-8, too many columns."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dipriv
from dipriv._sinks import FileSink
from dipriv._tables.arrow import distinct_labels
from dipriv.errors import InputError, StorageError
from dipriv.ledger import Ledger
from dipriv.sources import _untrusted as foreign
from dipriv.sources import files
from dipriv.sources.batches import parquet_files
from dipriv.sources.files import File, FileBatches
from tests.security.support import little


def arrow_file(table: pa.Table | pa.RecordBatch) -> bytes:
    buffer = io.BytesIO()
    with pa.ipc.new_file(buffer, table.schema) as writer:
        writer.write(table)
    return buffer.getvalue()


def reading(tmp_path: Path, name: str, content: bytes) -> Callable[[], Any]:
    (tmp_path / name).write_bytes(content)
    return lambda: File.at(tmp_path / name).read()


def test_arrow_files_that_point_outside_of_themselves(tmp_path: Path) -> None:
    codes = pa.py_buffer(np.array([0, 10**6], dtype=np.int32))
    labels = pa.DictionaryArray.from_arrays(
        pa.Array.from_buffers(pa.int32(), 2, [None, codes]), pa.array(["a"]), safe=False
    )
    broken = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 1], dtype=np.int32)), pa.py_buffer(b"\xff")]
    )
    for array in (labels, broken):
        call = reading(tmp_path, "t.arrow", arrow_file(pa.record_batch([array], ["x"])))
        with pytest.raises(InputError, match=r"t\.arrow: it (cannot be read|is not in UTF-8)"):
            call()
    stream = arrow_file(pa.record_batch([pa.array(["ab", "c"])], ["x"]))
    crafted = stream.replace(
        np.array([0, 2, 3], dtype=np.int32).tobytes(), np.array([0, 2, 10**6], dtype=np.int32).tobytes()
    )
    assert crafted != stream
    with pytest.raises(InputError, match=r"t\.arrow: it cannot be read"):
        reading(tmp_path, "t.arrow", crafted)()


def test_arrow_names_that_are_no_text(tmp_path: Path) -> None:
    content = arrow_file(pa.record_batch([pa.array([1])], ["abcd"])).replace(b"abcd", b"\xff\xfe\xfd\xfc")
    with pytest.raises(InputError, match=r"is not in UTF-8"):
        reading(tmp_path, "t.arrow", content)()


def test_rows_that_have_no_cells(tmp_path: Path) -> None:
    nulls = pa.Array.from_buffers(pa.null(), 2**31 - 1, [None])
    with little(), pytest.raises(InputError, match="claims 2,147,483,647 rows that have no cells"):
        reading(tmp_path, "t.arrow", arrow_file(pa.record_batch([nulls], ["x"])))()
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2**30], pa.int32()), pa.array([1]))
    with little(), pytest.raises(InputError, match="no cells"):
        reading(tmp_path, "t.arrow", arrow_file(pa.record_batch([runs], ["x"])))()


def test_labels_that_unfold_beyond_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 1 << 12
    label = "x" * (1 << 20)
    folded = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, dtype=np.int32)), pa.array([label]))
    view = struct.pack("<i4sii", len(label), b"xxxx", 0, 0)
    views = pa.Array.from_buffers(
        pa.string_view(), rows, [None, pa.py_buffer(view * rows), pa.py_buffer(label.encode())]
    )
    monkeypatch.setattr(foreign, "memory", lambda: 1 << 32)
    for array in (folded, views):
        with little(), pytest.raises(InputError, match=r"'x' expand to 4,096 MB, over half"):
            reading(tmp_path, "t.arrow", arrow_file(pa.record_batch([array], ["x"])))()


def test_parquet_texts_that_unfold_are_read_in_few_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 1 << 15
    label = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, dtype=np.int32)), pa.array(["x" * (1 << 20)]))
    pq.write_table(pa.table({"x": label}), tmp_path / "t.parquet", store_schema=False)
    assert (tmp_path / "t.parquet").stat().st_size < 1 << 18  # and 32 GB of text
    monkeypatch.setattr(foreign, "BATCH_TEXT", 1 << 23)
    batch = next(FileBatches.of(File.at(tmp_path / "t.parquet")).batches(["x"]))
    assert batch.num_rows == 8
    batch = next(parquet_files(str(tmp_path / "t.parquet")).batches(["x"]))
    assert batch.num_rows == 8


def test_parquet_folders_with_text_that_is_none(tmp_path: Path) -> None:
    bytes_ = pa.array([b"ab", b"\xff\xfe"]).cast(pa.large_binary())
    broken = pa.Array.from_buffers(pa.large_string(), 2, bytes_.buffers())
    pq.write_table(pa.table({"x": pa.array(["a", "b"], pa.large_string())}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"x": broken}), tmp_path / "1.parquet")
    batches = parquet_files(str(tmp_path)).batches(["x"])
    assert next(batches)["x"].to_pylist() == ["a", "b"]
    with pytest.raises(InputError, match="not in UTF-8"):
        next(batches)


def test_parquet_folders_with_a_name_that_is_no_text(tmp_path: Path) -> None:
    for number, name in enumerate((b"abcd", b"\xff\xfe\xfd\xfc")):
        pq.write_table(pa.table({"abcd": [1, 2]}), tmp_path / f"{number}.parquet", store_schema=False)
        file = tmp_path / f"{number}.parquet"
        file.write_bytes(file.read_bytes().replace(b"abcd", name))
    with pytest.raises(InputError, match=r"it is not in UTF-8"):
        parquet_files(str(tmp_path))


def test_labels_are_told_apart_without_unfolding_them() -> None:
    labels = pa.array(["y" * (1 << 20), "x" * (1 << 20), "never"])
    folded = pa.DictionaryArray.from_arrays(pa.array(np.arange(1 << 12, dtype=np.int32) % 2), labels)
    assert distinct_labels(folded).to_pylist() == [
        labels[1].as_py(),
        labels[0].as_py(),
    ]  # 4 GB do not fit 32-bit offsets


def test_more_than_memory_is_not_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.table({"x": np.arange(10_000)}), tmp_path / "t.parquet")
    monkeypatch.setattr(files, "memory", lambda: 1000)
    with pytest.raises(StorageError, match="does not fit the memory"):
        File.at(tmp_path / "t.parquet").read()


def test_a_packed_file_that_unpacks_to_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with FileSink.at(tmp_path / "t.arrow.gz") as sink:
        sink.write(pa.record_batch({"x": np.zeros(1_000_000)}))
        sink.commit()
    assert (tmp_path / "t.arrow.gz").stat().st_size < 20_000
    assert File.at(tmp_path / "t.arrow.gz").read().num_rows == 1_000_000
    monkeypatch.setattr(files, "MAX_UNPACKED_BYTES", 1_000_000)
    with pytest.raises(InputError, match="unpacks to more than"):
        File.at(tmp_path / "t.arrow.gz").read()


@pytest.mark.parametrize("head", ["a" + ",a" * 20_000, '"a,b"' + ",a" * 20_000, "\r\n" + ",a" * 20_000])
def test_more_columns_than_anybody_has(head: str, tmp_path: Path) -> None:
    with little(), pytest.raises(InputError, match=r"20,001 columns, more than 10,000"):
        reading(tmp_path, "t.csv", head.encode() + b"\n1\n")()
    many = pa.schema([(f"x{i}", pa.int64()) for i in range(10_001)])
    with pytest.raises(InputError, match="10,001 columns"):
        reading(tmp_path, "t.arrow", arrow_file(pa.record_batch([pa.array([1])] * 10_001, schema=many)))()


def test_a_ragged_row_that_is_no_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="line 3 has 3 cells, but that with the names of columns has 2"):
        reading(tmp_path, "t.csv", b"a,b\n1,2\n1,\xff,3\n")()


def test_a_type_that_the_format_cannot_hold_is_refused_before_anything_is_spent(tmp_path: Path) -> None:
    table = pa.table({"age": np.arange(500) % 50, "kept": pa.array([[1, 2]] * 500)})
    pq.write_table(table, tmp_path / "in.parquet")
    with Ledger.create(tmp_path / "ledger.db") as ledger:
        with pytest.raises(InputError, match="'kept' has a type that csv files cannot hold"):
            dipriv.privatize_file(
                tmp_path / "in.parquet", tmp_path / "out.csv", 1.0, keep=("kept",), ledger=ledger, dataset="people"
            )
        assert ledger.datasets() == []


@pytest.mark.parametrize("values", [[1, None, 3], ["a", None, "b"], [True, None], [0.5, None]])
def test_a_null_that_is_alone_in_its_line_is_a_row(values: list[Any], tmp_path: Path) -> None:
    with FileSink.at(tmp_path / "t.csv") as sink:
        for part in (values[:1], values, values[:1]):
            sink.write(pa.record_batch({"x": pa.array(part, pa.array(values).type)}))
        sink.commit()
    found = File.at(tmp_path / "t.csv").read()["x"].to_pylist()
    expected = [values[0], *values, values[0]]
    assert [None if value == "" else value for value in found] == expected
