"""Batches that the first pass keeps: what comes back, what lies on disk, and when the source is read again."""

from __future__ import annotations

import os
import pickle
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

import dipriv
from dipriv.errors import SourceChangedError
from dipriv.sources import _kept, stream
from dipriv.sources._formats.delimited import DelimitedText
from dipriv.sources._kept import KeptBatches

N = 3000
SECRET = "a name that nobody may read"


def table(extra: int = 0) -> pa.Table:
    rng = np.random.default_rng(5)
    age = rng.integers(18, 90, N)
    age[-1] += extra
    return pa.table({"age": age, "pay": rng.lognormal(10, 1, N).round(2), "city": ["Bonn", "Ulm", "Kiel"] * (N // 3)})


def odd_table() -> pa.Table:
    return pa.table(
        {
            "text": pa.array([SECRET, None, ""] * 50),
            "label": pa.array(["x", None, "y"] * 50).dictionary_encode(),
            "real": pa.array([1.5, None, np.nan] * 50, from_pandas=False),
            "day": pa.array([1, None, 3] * 50, pa.int32()).cast(pa.date32()),
            "truth": pa.array([True, None, False] * 50),
        }
    )


@pytest.mark.parametrize("limit", [0, 1000, 1 << 20])
def test_what_is_kept_comes_back_again_and_again(limit: int) -> None:
    kept, tables = KeptBatches(limit), [odd_table(), odd_table().slice(7, 20), odd_table().slice(3, 1), in_parts()]
    for one in tables:
        kept.add(one)
    for _ in range(2):
        found = list(kept)
        assert [one.schema for one in found] == [one.schema for one in tables]
        assert [str(one.to_pydict()) for one in found] == [str(one.to_pydict()) for one in tables]


def in_parts(last: str = "c199") -> pa.Table:
    """Labels for which the narrow indices of one part have no room."""
    narrow = pa.dictionary(pa.int8(), pa.string())
    texts = [[f"c{n}" for n in range(100)] * 3, [*(f"c{n}" for n in range(100, 127)), last] * 10]
    parts = [pa.record_batch({"c": pa.array(of).dictionary_encode().cast(narrow)}) for of in texts]
    return pa.Table.from_batches(parts)


@pytest.mark.parametrize("last", ["c126", "new"])
def test_one_more_label_than_there_is_room_for_loses_no_part(last: str) -> None:
    """All parts but the first were lost, after ε was spent, where the last row's label was one too many."""
    table = in_parts(last)
    table = table.append_column("x", pa.array(np.arange(len(table)) % 7))
    release = dipriv.privatize(lambda: iter(table.to_batches()), 1.0)
    assert release.data.to_table().num_rows == len(table)


def test_the_scratch_file_has_no_name_is_its_owners_and_shows_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    kept = KeptBatches(0)
    for _ in range(2):
        kept.add(odd_table())
    scratch = kept._scratch
    assert scratch is not None
    assert not list(tmp_path.iterdir())
    assert stat.S_IMODE(os.fstat(scratch.file.fileno()).st_mode) & 0o077 == 0
    scratch.file.seek(0)
    content = scratch.file.read()
    plain = pa.BufferOutputStream()
    with pa.ipc.new_stream(plain, odd_table().schema) as writer:
        writer.write_table(odd_table())
    assert SECRET.encode() in plain.getvalue().to_pybytes()  # control: unencrypted it would be there
    assert SECRET.encode() not in content
    assert content.count(content[:64]) == 1  # equal batches look different
    kept.close()
    assert scratch.file.closed


def test_private_rows_are_not_pickled() -> None:
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(KeptBatches())


@pytest.mark.usefixtures("no_room_for_rows")
def test_a_full_disk_keeps_nothing_and_the_release_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = KeptBatches()
    kept.add(odd_table())
    assert not kept.is_whole
    assert not list(kept)
    path = tmp_path / "people.csv"
    pacsv.write_csv(table(), path)
    read_again = dipriv.privatize(path, 1.0, seed=4).data.to_table()
    monkeypatch.undo()
    assert read_again.equals(dipriv.privatize(path, 1.0, seed=4).data.to_table())


@pytest.mark.parametrize("changed", [None, 50, 150])
def test_a_disk_that_fills_up_has_all_blocks_verified_that_are_read_again(
    changed: int | None, no_room_for_rows: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first block fits the memory: its digest is that of what was kept. A later change is found in any block."""
    monkeypatch.setattr(stream, "MIN_BLOCK_ROWS", 100)
    monkeypatch.setattr(stream, "MAX_BLOCK_ROWS", 100)
    monkeypatch.setattr(_kept, "MAX_BYTES", table().slice(0, 100).nbytes)
    batch, readings = table().combine_chunks().to_batches()[0], 0

    def read() -> Iterator[pa.RecordBatch]:
        nonlocal readings
        readings += 1
        age = batch["age"].to_numpy().copy()
        if changed is not None and readings > 3:
            age[changed] += 1
        yield pa.record_batch({"age": age, "pay": batch["pay"], "city": batch["city"]})

    if changed is None:
        assert dipriv.privatize(read, 1.0).data.to_table().num_rows == N
        return
    with pytest.raises(SourceChangedError, match=f"rows from number {changed // 100 * 100} on"):
        dipriv.privatize(read, 1.0).data.to_table()


@pytest.mark.parametrize("limit", [0, 1 << 28])
def test_a_text_file_is_read_once(limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readings: list[int] = []
    batches = DelimitedText.batches

    def counted(self: DelimitedText, *arguments: Any) -> Iterator[pa.RecordBatch]:
        readings.append(1)
        return batches(self, *arguments)

    path = tmp_path / "people.csv"
    pacsv.write_csv(table(), path)
    monkeypatch.setattr(DelimitedText, "batches", counted)
    monkeypatch.setattr(_kept, "MAX_BYTES", limit)
    monkeypatch.setattr(_kept, "MAX_TEXT_BYTES", limit)
    dipriv.privatize_file(path, tmp_path / "out.csv", 1.0)
    assert len(readings) == 1


def test_a_source_that_changes_later_changes_nothing() -> None:
    """One reading is to look at the columns, another to compare it with that; the third is the first pass."""

    def source(changes: int) -> Any:
        readings = 0

        def batches() -> Iterator[pa.RecordBatch]:
            nonlocal readings
            readings += 1
            yield from table(extra=changes if readings > 4 else 0).to_batches()

        return batches

    released = [dipriv.privatize(source(changes), 1.0, seed=3).data for changes in (0, 30)]
    first = [data.to_table() for data in released]
    assert first[0].equals(first[1])
    assert released[1].to_table().equals(first[1])
