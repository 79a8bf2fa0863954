"""Finding 11: private rows stayed on the disks of Spark's workers after a release was refused, and their labels always.

Each kind of exit is followed by a search of Spark's local folders for a text that is in every row.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dipriv
from dipriv._random.bits import source
from dipriv._sinks import FolderSink
from dipriv.errors import BudgetError, DiprivError
from dipriv.ledger import Ledger
from dipriv.release.fitting import FitPlan
from dipriv.release.options import ReleaseOptions
from dipriv.release.privatize import release_file
from dipriv.sources.spark import frame, workspace
from dipriv.sources.spark.files import SparkFiles
from tests import spark_support

pytest.importorskip("pyspark", reason="pyspark is not installed; make test installs it, or pip install dipriv[spark]")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

MARK = "zq7-marker-xv"
N = 600
TABLE = pa.table({"label": [f"{MARK} {i % 40}" for i in range(N)], "x": [float(i) for i in range(N)]})


@pytest.fixture(autouse=True)
def on_disks(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where Spark's memory has no room for packed blocks."""
    monkeypatch.setattr(workspace, "LEVEL", "DISK_ONLY")


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from spark_support.session(
        tmp_path_factory.mktemp("events"), spark_local_dir=str(tmp_path_factory.mktemp("local"))
    )


@pytest.fixture(scope="module")
def rows(session: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Nine partitions, so that counts are shuffled, read from a file: nothing of them is in Spark's folders."""
    path = str(tmp_path_factory.mktemp("in") / "rows")
    spark_support.in_partitions(session, TABLE, [N // 9] * 8 + [N - 8 * (N // 9)]).write.parquet(path)
    return session.read.option("mergeSchema", "false").parquet(path)


@pytest.fixture
def found_in(session: Any) -> Callable[..., list[str]]:
    """Files in Spark's local folders with these bytes."""
    context = session.sparkContext
    folders = [Path(context.getConf().get("spark.local.dir")), Path(context._temp_dir)]

    def found(*needles: bytes) -> list[str]:
        files = {path for folder in folders for path in folder.rglob("*") if path.is_file()}
        return [path.name for path in files if any(needle in _content(path) for needle in needles)]

    return found


def _without_shuffles(names: list[str]) -> set[str]:
    """Released rows are brought into their order by a shuffle: its files have nothing else."""
    return {name for name in names if not name.startswith("shuffle")}


def test_a_command_is_terminated(tmp_path: Path) -> None:
    """SIGTERM to `dipriv privatize --engine spark` while a reference is learned."""
    local, out, ledger = tmp_path / "local", tmp_path / "out", tmp_path / "ledger.db"
    pq.write_table(pa.concat_tables([TABLE] * 50), tmp_path / "in.parquet")
    local.mkdir()
    Ledger.create(ledger).close()
    arguments = ["privatize", "in.parquet", "-o", out, "-e", "1", "--ledger", ledger, "--dataset", "people"]
    program = (
        "from dipriv.sources.spark import workspace as w; w.LEVEL = 'DISK_ONLY'; from dipriv import cli; cli.main()"
    )
    command = [sys.executable, "-c", program, *map(str, arguments), "--engine", "spark"]
    with subprocess.Popen(command, cwd=tmp_path, env=os.environ | {"SPARK_LOCAL_DIRS": str(local)}) as process:
        end = time.monotonic() + 120
        while not any(MARK.encode() in _content(path) for path in local.rglob("rdd_*")):
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.02)
        process.terminate()
    assert process.returncode == 143
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet", "ledger.db", "local"]
    while list(local.iterdir()) and time.monotonic() < end:
        time.sleep(0.1)  # Java ends after Python
    assert not list(local.iterdir())


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:  # removed while the others were read
        return b""


Search = Callable[..., list[str]]


def test_success(rows: Any, found_in: Search, tmp_path: Path) -> None:
    during: list[str] = []

    def look(what: str, done: float, total: float | None) -> None:
        if what == "learning":
            during.extend(found_in(MARK.encode()))

    released = dipriv.privatize_file(rows, tmp_path / "out", 2.0, seed=3, progress=look)
    assert during  # control: packed blocks were there, and the search finds them
    key = source(3).child("noise")._key
    assert not _without_shuffles(found_in(MARK.encode()))
    assert not found_in(key)
    assert released.data.count() == N  # the written rows, which need no key
    before = found_in(MARK.encode())
    lazy = dipriv.privatize(rows, 2.0, seed=3)
    assert found_in(key)  # control: rows that are computed later need it
    assert not [name for name in found_in(MARK.encode()) if name.startswith(("rdd", "shuffle")) and name not in before]
    assert lazy.data.count() == N


def test_memory(rows: Any, session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks that Spark has in memory are gone as well."""
    during: list[int] = []

    def stored() -> int:
        return len(session.sparkContext._jsc.sc().getRDDStorageInfo())

    def breaks(*_: Any) -> None:
        during.append(stored())
        raise RuntimeError

    monkeypatch.setattr(workspace, "LEVEL", "MEMORY_AND_DISK_DESER")
    before = stored()
    dipriv.privatize(rows, 1.0)
    assert stored() == before
    monkeypatch.setattr(FitPlan, "fit", breaks)
    with pytest.raises(RuntimeError):
        dipriv.privatize(rows, 1.0)
    assert during == [before + 1]  # control
    assert stored() == before


def test_the_budget_is_refused(rows: Any, found_in: Search, tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db")
    ledger.set_budget("people", 0.5)
    with pytest.raises(BudgetError):
        dipriv.privatize(rows, 1.0, ledger=ledger, dataset="people")
    assert not found_in(MARK.encode())


def test_an_error_on_the_driver(rows: Any, found_in: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    during: list[str] = []

    def breaks(*_: Any) -> None:
        during.extend(found_in(MARK.encode()))
        raise RuntimeError

    monkeypatch.setattr(FitPlan, "fit", breaks)
    with pytest.raises(RuntimeError):
        dipriv.privatize(rows, 1.0)
    assert during  # control
    assert not found_in(MARK.encode())


@pytest.mark.parametrize("form", ["DataFrame", "files"])
def test_an_error_of_the_progress_bar(form: str, rows: Any, found_in: Search, session: Any, tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "rows.parquet")
    reports: list[str] = []

    def breaks(what: str, done: float, total: float | None) -> None:
        reports.append(what)
        if what == "reading" and done:
            raise RuntimeError

    def release() -> None:
        if form == "DataFrame":
            dipriv.privatize(rows, 1.0, progress=breaks)
        else:
            files, out = SparkFiles.find(str(tmp_path / "rows.parquet")).open(), FolderSink.at(tmp_path / "out")
            release_file(files, out, ReleaseOptions(1.0), progress=breaks)

    before = set(session.sparkContext._jsc.getPersistentRDDs())
    with pytest.raises(RuntimeError):
        release()
    assert "reading" in reports  # control
    assert set(session.sparkContext._jsc.getPersistentRDDs()) == before
    assert not found_in(MARK.encode())


def test_a_task_fails(rows: Any, found_in: Search, tmp_path: Path) -> None:
    """One partition fails for good while the others are still being packed."""

    def fails(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.column("x")[0].as_py() == 0:
                raise ValueError(MARK)
            time.sleep(0.3)
            yield batch

    with pytest.raises(Exception, match="ValueError") as caught:
        dipriv.privatize(rows.mapInArrow(fails, rows.schema), 1.0)
    assert not isinstance(caught.value, DiprivError)  # it is the caller's own function that fails
    assert not found_in(MARK.encode())


def test_an_interrupt(rows: Any, found_in: Search) -> None:
    """SIGINT while some partitions are packed and others are not; their tasks run on for a while."""

    def slow(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            time.sleep(0.5)
            yield batch

    during: list[str] = []

    def interrupt() -> None:
        while not during:
            time.sleep(0.05)
            during.extend(name for name in found_in(MARK.encode()) if name.startswith("rdd"))
        os.kill(os.getpid(), signal.SIGINT)

    watcher = threading.Thread(target=interrupt)
    watcher.start()
    with pytest.raises(KeyboardInterrupt):
        dipriv.privatize(rows.mapInArrow(slow, rows.schema), 1.0)
    watcher.join()
    assert during  # control
    assert not found_in(MARK.encode())
    time.sleep(2)
    assert not found_in(MARK.encode())  # nor put there by a task that was late
    assert rows.count() == N  # the session goes on


def test_an_interrupt_in_the_middle_of_a_command(rows: Any, found_in: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark's own handler talks to Java on the same connection, which was of no use then: blocks stayed on disks."""
    from py4j.clientserver import ClientServerConnection

    send, find_cores = ClientServerConnection.send_command, frame.task_cores
    asked, answers = list[str](), list[bytes]()

    class Interrupted:
        """What Java answers, before which an interrupt comes."""

        def __init__(self, stream: Any) -> None:
            self.stream = stream

        def readline(self) -> Any:
            os.kill(os.getpid(), signal.SIGINT)
            answers.append(self.stream.readline())
            return answers[-1]

    def send_command(connection: Any, command: str) -> Any:
        if asked and not answers and threading.current_thread() is threading.main_thread():
            monkeypatch.setattr(ClientServerConnection, "send_command", send)
            stream, connection.stream = connection.stream, Interrupted(connection.stream)
            try:
                return send(connection, command)
            finally:
                connection.stream = stream
        return send(connection, command)

    def task_cores(context: Any) -> int:
        if rows_are_packed := [name for name in found_in(MARK.encode()) if name.startswith("rdd")]:
            asked.extend(rows_are_packed)
        return find_cores(context)

    monkeypatch.setattr(ClientServerConnection, "send_command", send_command)
    monkeypatch.setattr(frame, "task_cores", task_cores)
    with pytest.raises(KeyboardInterrupt) as raised:
        dipriv.privatize(rows, 1.0)
    assert asked  # control
    assert answers
    assert raised.value.__suppress_context__
    assert not [name for name in found_in(MARK.encode()) if name.startswith("rdd")]
    assert rows.count() == N  # the session goes on


def test_an_interrupt_at_the_end_of_the_first_pass(
    rows: Any, found_in: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has the packed rows yet, who could remove them."""
    fingerprint_of = frame.fingerprint_of

    def interrupted(*given: Any) -> Any:
        assert [name for name in found_in(MARK.encode()) if name.startswith("rdd")]  # control
        os.kill(os.getpid(), signal.SIGINT)
        return fingerprint_of(*given)

    monkeypatch.setattr(frame, "fingerprint_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        dipriv.privatize(rows, 1.0)
    assert not [name for name in found_in(MARK.encode()) if name.startswith("rdd")]


def test_a_hold_out_and_rows_that_are_read_half(rows: Any, found_in: Search, tmp_path: Path) -> None:
    """The broadcast of a hold-out release has the hold-out; it is gone when the rows are written, or are not."""
    release = dipriv.privatize(rows, 1.0, reference="holdout", seed=4)
    key = source(4).child("noise")._key
    assert found_in(key)  # control
    some = release.data.toLocalIterator()
    next(some)
    some.close()
    assert not [name for name in found_in(MARK.encode()) if name.startswith("rdd")]
    before = set(found_in(MARK.encode(), key))
    dipriv.privatize_file(rows, tmp_path / "out", 1.0, reference="holdout", seed=5)
    assert _without_shuffles(found_in(MARK.encode(), key)) <= before
    assert not found_in(source(5).child("noise")._key)


def test_writing_fails(rows: Any, found_in: Search, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(found_in(MARK.encode()))
    key = source(6).child("noise")._key
    during: list[str] = []

    def breaks(*_: Any) -> None:
        during.extend(found_in(key))
        raise RuntimeError

    monkeypatch.setattr("dipriv._sinks.folder.FolderSink.check_written", breaks)
    with pytest.raises(RuntimeError):
        dipriv.privatize_file(rows, tmp_path / "out", 1.0, reference="holdout", seed=6)
    assert during  # control
    assert _without_shuffles(found_in(MARK.encode())) <= before
    assert not found_in(key)
    assert not list(tmp_path.iterdir())
