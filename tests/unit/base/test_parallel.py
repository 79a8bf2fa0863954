"""Streams and threads: the same rows whatever the batches, and no more than a batch at a time."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Iterator
from threading import Event

import numpy as np
import pyarrow as pa
import pytest

import dipriv
from dipriv._base import parallel as chunks
from dipriv.references import Grouped

RNG = np.random.default_rng(0)
N = 5000
TABLE = pa.table(
    {
        "who": np.repeat(np.arange(N // 10), 10),
        "a": RNG.normal(size=N),
        "b": RNG.poisson(3, N),
        "c": pa.array(RNG.choice(["x", "y"], N)).dictionary_encode(),
        "d": pa.array(RNG.normal(size=N).astype(np.float32), mask=RNG.random(N) < 0.2),
    }
)
COLUMNS = {
    "one real": ["a"],
    "one count": ["b"],
    "one label": ["c"],
    "one with nulls": ["d"],
    "many": ["a", "b", "c", "d"],
}


@pytest.mark.parametrize("columns", COLUMNS.values(), ids=COLUMNS.keys())
@pytest.mark.parametrize("sizes", [[N], [1, 4999], [1000] * 5, [0, 777, 0, 4223]])
def test_batches_do_not_change_the_rows(columns: list[str], sizes: list[int]) -> None:
    table = TABLE.select(columns)
    dip = dipriv.DIP(1.0, public=table, seed=7).fit(table)
    batches = []
    start = 0
    for size in sizes:
        batches.append(pa.RecordBatch.from_pylist([], table.schema) if size == 0 else None)
        if size:
            batches[-1] = table.slice(start, size).combine_chunks().to_batches()[0]
        start += size
    streamed = pa.Table.from_batches(dip.transform_batches(batches), table.schema)
    assert streamed.to_pylist() == dip.transform(table).to_pylist()


@pytest.mark.parametrize("columns", COLUMNS.values(), ids=COLUMNS.keys())
def test_threads_and_chunks_do_not_change_the_rows(columns: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    table = TABLE.select(columns)
    monkeypatch.setattr(chunks, "MIN_CHUNK_ROWS", 1)
    released = []
    for threads, cells in ((1, 1 << 17), (1, 700), (4, 700), (3, 1111)):
        monkeypatch.setenv("DIPRIV_THREADS", str(threads))
        monkeypatch.setattr(chunks, "CHUNK_CELLS", cells)
        released.append(dipriv.privatize(table, 1.0, reference="holdout", seed=3).data)
    assert all(other.equals(released[0]) for other in released[1:])
    assert not dipriv.privatize(table, 1.0, reference="holdout", seed=4).data.equals(released[0])


def test_groups_do_not_depend_on_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "MIN_CHUNK_ROWS", 1)
    table = TABLE.select(["who", "a", "b"])
    released = []
    for cells in (1 << 17, 333):
        monkeypatch.setattr(chunks, "CHUNK_CELLS", cells)
        release = dipriv.privatize(table, 1.0, reference=Grouped(by="who", first=5), keep=["who"], seed=3)
        released.append(release.data)
    assert released[0].equals(released[1])


def test_a_stream_is_read_as_it_is_written() -> None:
    """One batch in, one out: nothing is gathered."""
    dip = dipriv.DIP(1.0, public=TABLE.select(["a"])).fit(TABLE.select(["a"]))
    read = []

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(100):
            read.append(number)
            yield pa.record_batch({"a": RNG.normal(size=50)})

    stream = dip.transform_batches(batches())
    assert next(stream).num_rows == 50
    assert read == [0]
    assert sum(batch.num_rows for batch in stream) == 99 * 50


@pytest.mark.parametrize("asked", ["0", "-1", "many", "1.5"])
def test_a_wrong_number_of_threads_is_refused(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIPRIV_THREADS", asked)
    with pytest.raises(dipriv.InputError, match="DIPRIV_THREADS"):
        chunks.threads()


def test_shared_threads_end_with_a_failure_and_are_new_in_a_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIPRIV_THREADS", "2")
    begun: list[int] = []
    going_on = Event()

    def work(number: int) -> int:
        begun.append(number)
        if number == 0:
            raise KeyError
        going_on.wait(0.05)
        return number

    with pytest.raises(KeyError):
        chunks.in_parallel(work, range(1000))
    after = len(begun)
    assert after < 1000
    going_on.wait(0.2)
    assert len(begun) == after
    assert chunks.in_parallel(lambda number: chunks.in_parallel(str, range(number)), range(4))[3] == ["0", "1", "2"]
    if hasattr(os, "fork"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            signal.alarm(30)
            os._exit(sum(chunks.in_parallel(abs, range(5))))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 10


@pytest.mark.parametrize("threads", ["1", "3"])
def test_each_item_is_worked_on_in_order_and_nothing_comes_after_a_failure(
    threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIPRIV_THREADS", threads)
    taken: list[int] = []

    def items(last: int, failing: int = -1) -> Iterator[int]:
        for number in range(last):
            if number == failing:
                raise ValueError
            taken.append(number)
            yield number

    def work(number: int) -> int:
        if number == 20:
            raise KeyError
        return number * number

    def results(last: int, failing: int = -1) -> tuple[list[int], type[Exception] | None]:
        done: list[int] = []
        try:
            for result in chunks.each_in_parallel(work, items(last, failing)):
                done.append(result)
        except (KeyError, ValueError) as error:
            return done, type(error)
        return done, None

    squares = [number * number for number in range(30)]
    assert results(15) == (squares[:15], None)
    assert results(1) == (squares[:1], None)
    assert results(30) == (squares[:20], KeyError)  # of the work on an item
    assert results(30, failing=10) == (squares[:10], ValueError)  # of the items
    taken.clear()
    next(chunks.each_in_parallel(work, items(15)))
    assert len(taken) <= 3 + int(threads)  # few ahead, however many there are
