"""One side of the comparison, in a process of its own: what it took, as a line of JSON."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.scale.java import use_small_java
from benchmarks.scale.processes import executors
from benchmarks.scale.table import COLUMNS

EPSILON = 2.0
MOVED = {
    "internal.metrics.input.bytesRead": "read",
    "data sent to Python workers": "sent to Python",
    "data returned from Python workers": "returned from Python",
    "internal.metrics.shuffle.write.bytesWritten": "shuffled",
    "internal.metrics.resultSize": "sent to the driver",
    "internal.metrics.output.bytesWritten": "written",
}


def stream(folder: Path) -> dict[str, Any]:
    """One process, all files, one file out."""
    from dipriv import privatize

    start = time.perf_counter()
    release = privatize(str(folder / "in"), EPSILON, columns=COLUMNS)
    fitted = time.perf_counter()
    out = folder / "out.parquet"
    release.write(out)
    done = time.perf_counter()
    out.unlink()
    return {"seconds": done - start, "learning": fitted - start, "releasing": done - fitted}


def spark(folder: Path, cores: str) -> dict[str, Any]:
    """Spark on this machine as the command line uses it, files in, a folder out; the session's start is told apart."""
    from dipriv._sinks import FolderSink
    from dipriv.release.options import ReleaseOptions
    from dipriv.release.privatize import release_file
    from dipriv.sources.spark.files import SparkFiles

    def work(session: Any, out: Path) -> float:
        learned = [0.0]

        def note(what: str, done: float, total: float | None) -> None:
            if what == "learning":
                learned[0] = time.perf_counter()

        files = SparkFiles.find(str(folder / "in")).open()
        release_file(files, FolderSink.at(out), ReleaseOptions(EPSILON, columns=COLUMNS), progress=note)
        return learned[0]

    return _on_spark(folder, cores, work)


def frame(folder: Path, cores: str) -> dict[str, Any]:
    """A DataFrame in, a lazy DataFrame out, which Spark writes: all rows pass between Java and Python."""
    from dipriv import privatize

    def work(session: Any, out: Path) -> float:
        release = privatize(session.read.parquet(f"file://{folder / 'in'}"), EPSILON, columns=COLUMNS)
        fitted = time.perf_counter()
        release.data.write.parquet(f"file://{out}")
        return fitted

    return _on_spark(folder, cores, work)


def _on_spark(folder: Path, cores: str, work: Callable[[Any, Path], float]) -> dict[str, Any]:
    place = Path(tempfile.mkdtemp(dir=folder))
    log, out = place / "log", place / "out"
    log.mkdir()
    before = time.perf_counter()
    session = _session(f"local[{cores}]", log)
    start = time.perf_counter()
    fitted = work(session, out)
    done = time.perf_counter()
    session.stop()
    times = {
        "starting": start - before,
        "seconds": done - start,
        "learning": fitted - start,
        "releasing": done - fitted,
    }
    moved = _moved(log)
    shutil.rmtree(place)
    return {**times, "MB moved": moved}


def handed_over(folder: Path, cores: str) -> dict[str, Any]:
    """Spark on this machine, all rows through Python and back, nothing done to them."""
    log = folder / f"handed{cores}"
    log.mkdir()
    session = _session(f"local[{cores}]", log)
    table = session.read.parquet(f"file://{folder / 'in'}").select(*COLUMNS)
    start = time.perf_counter()
    table.mapInArrow(lambda batches: batches, table.schema).write.parquet(f"file://{folder / 'same'}")
    done = time.perf_counter()
    session.stop()
    shutil.rmtree(folder / "same")
    return {"seconds": done - start}


def loss(folder: Path, cores: str) -> dict[str, Any]:
    """Two workers; one release used twice, and during the second use a worker is killed."""
    from dipriv import privatize

    log = folder / "log"
    log.mkdir()
    session = _session(f"local-cluster[{cores},1,1024]", log)
    table = session.read.parquet(f"file://{folder / 'loss'}")
    release = privatize(table, EPSILON, columns=COLUMNS, keep=["number"])
    outs = [folder / "calm", folder / "disturbed"]
    release.data.write.parquet(f"file://{outs[0]}")
    killed: list[int] = []
    thread = threading.Thread(target=_kill, args=(session, killed), daemon=True)
    thread.start()
    release.data.write.parquet(f"file://{outs[1]}")
    thread.join(30)
    session.stop()
    lost, tried = _failures(log)
    hashes, counts = zip(*(_hash(out) for out in outs), strict=True)
    told = {
        "rows": release.n_rows,
        "rows written": list(counts),
        "sha256": list(hashes),
        "the same rows": hashes[0] == hashes[1] and set(counts) == {release.n_rows},
        "executors killed": len(killed),
        "executors lost": lost,
        "tasks that were lost and done again": tried,
    }
    if not (told["the same rows"] and killed and lost and tried):
        raise SystemExit(f"the killed worker showed: {told}")
    return told


def _session(master: str, log: Path) -> Any:
    from dipriv.sources.spark.session import open_session

    use_small_java()
    return open_session(
        spark_master=master,
        spark_ui_enabled="false",
        spark_driver_memory="2g",
        spark_python_unix_domain_socket_enabled="true",  # the network of the machine can come to a standstill
        spark_sql_files_maxPartitionBytes=str(1 << 20 if "cluster" in master else 1 << 27),
        spark_sql_files_openCostInBytes="0",
        spark_eventLog_enabled="true",
        spark_eventLog_compress="false",
        spark_eventLog_rolling_enabled="false",
        spark_eventLog_dir=f"file://{log}",
    )


def _kill(session: Any, killed: list[int]) -> None:
    """Kill an executor as soon as some tasks of a job are done, and others are not."""
    tracker = session.sparkContext.statusTracker()
    for _ in range(6000):
        for stage in tracker.getActiveStageIds():
            found = tracker.getStageInfo(stage)
            if found is not None and 2 <= found.numCompletedTasks < found.numTasks - 2:
                victim = max(executors(os.getpid()))
                os.kill(victim, signal.SIGKILL)
                killed.append(victim)
                return
        time.sleep(0.01)


def _events(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in log.rglob("*") if path.is_file() for line in path.open(encoding="utf-8")]


def _failures(log: Path) -> tuple[int, int]:
    """Executors that were lost, and tasks that ended with them."""
    events = _events(log)
    lost = sum(event["Event"] == "SparkListenerExecutorRemoved" for event in events)
    ends = [event for event in events if event["Event"] == "SparkListenerTaskEnd"]
    return lost, sum(event["Task End Reason"]["Reason"] != "Success" for event in ends)


def _moved(log: Path) -> dict[str, float]:
    """MB in all jobs together, by Spark's own metrics."""
    sums = dict.fromkeys(MOVED.values(), 0.0)
    for event in _events(log):
        if event["Event"] == "SparkListenerStageCompleted":
            for metric in event["Stage Info"]["Accumulables"]:
                if metric.get("Name") in MOVED:
                    sums[MOVED[metric["Name"]]] += float(metric["Value"]) / 1e6
    return {name: round(value, 1) for name, value in sums.items()}


def _hash(folder: Path) -> tuple[str, int]:
    """Of all rows by their number; each number must be there once."""
    rows = pq.read_table(folder).sort_by("number").combine_chunks()
    if rows.column("number").to_numpy().tolist() != list(range(rows.num_rows)):
        raise SystemExit("some rows are doubled or missing")
    found = hashlib.sha256()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    found.update(sink.getvalue())
    return found.hexdigest(), rows.num_rows


if __name__ == "__main__":
    engine, cores, place = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    if engine == "stream":
        print(json.dumps(stream(place)))
    else:
        print(
            json.dumps({"spark": spark, "frame": frame, "handed over": handed_over, "loss": loss}[engine](place, cores))
        )
