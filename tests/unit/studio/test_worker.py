"""A job in a process: its result, its failure without cells, its progress, and being stopped."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from dipriv._base.endings import NOTHING_IS_SPENT
from dipriv._base.progress import Progress
from dipriv.errors import InputError
from dipriv.studio.worker import Failure, Worker

MARKER = "zq7-marker-xv"


def double(progress: Progress, number: int) -> int:
    return 2 * number


def refuse(progress: Progress) -> None:
    raise InputError("it is wrong.", "Correct it.", command="Correct --it.")


def break_down(progress: Progress) -> None:
    error = ValueError(MARKER)
    error.add_note("ε = 1 is spent.")
    raise error


def vanish(progress: Progress) -> None:
    os._exit(3)


def wait(progress: Progress, note: str, file: Path) -> None:
    progress("waiting", 1, 2)
    try:
        time.sleep(60)
    except BaseException as error:
        if note:
            error.add_note(note)
        file.write_text("cleaned up")
        raise


def test_jobs_one_after_another_and_one_that_is_stopped(tmp_path: Path) -> None:
    outcomes: queue.Queue[Any] = queue.Queue()
    worker = Worker(outcomes.put)
    try:
        worker.start(double, 21)
        assert worker.state is not None
        with pytest.raises(RuntimeError):
            worker.start(double, 1)
        assert outcomes.get(timeout=60) == 42
        assert worker.state is None
        first = worker._process.pid
        worker.start(refuse)
        assert outcomes.get(timeout=60) == Failure("it is wrong.", "Correct --it.")
        worker.start(break_down)
        broken = outcomes.get(timeout=60)
        assert broken.notes == ("ε = 1 is spent.",)
        assert "ValueError" in broken.fault
        assert MARKER not in str(broken)
        assert worker._process.pid == first
        for note in ("ε = 1 is spent.", ""):
            worker.start(wait, note, tmp_path / "file")
            while worker.state is None or worker.state.what != "waiting":
                time.sleep(0.01)
            worker.stop()
            stopped = outcomes.get(timeout=60)
            assert stopped == Failure("The work was stopped.", "", (note or NOTHING_IS_SPENT,), is_stop=True)
            assert (tmp_path / "file").read_text() == "cleaned up"
            (tmp_path / "file").unlink()
        worker.start(vanish)
        assert "ledger" in str(outcomes.get(timeout=60).notes)
        worker.start(double, 4)
        assert outcomes.get(timeout=60) == 8
        worker.start(wait, "ε = 2 is spent.", tmp_path / "file")
        while worker.state is None or worker.state.what != "waiting":
            time.sleep(0.01)
        worker.close()
        assert outcomes.get_nowait().notes == ("ε = 2 is spent.",)
    finally:
        worker.close()


def test_a_job_ends_with_the_studio_that_was_killed(tmp_path: Path) -> None:
    script = textwrap.dedent(
        f"""
        import time
        from pathlib import Path
        from dipriv.studio.worker import Worker
        from tests.unit.studio.test_worker import wait
        if __name__ == "__main__":
            worker = Worker(print)
            worker.start(wait, "", Path({str(tmp_path / "file")!r}))
            while worker.state.what != "waiting":
                time.sleep(0.01)
            print("ready", flush=True)
            time.sleep(60)
        """
    )
    (tmp_path / "main.py").write_text(script)
    root = Path(__file__).parents[3]
    paths = os.pathsep.join([str(root / "src"), str(root)])
    with subprocess.Popen(
        [sys.executable, str(tmp_path / "main.py")], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": paths}
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.kill()
    deadline = time.monotonic() + 20
    while not (tmp_path / "file").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert (tmp_path / "file").exists()
