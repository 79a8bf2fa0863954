"""A process that does one job after another, says how far it is, and can be stopped in the middle of one.

Jobs run in a process of their own so that the page answers while they compute, and so that one can be stopped anywhere:
as on Ctrl-C, an exception cleans up on the way out, and its notes say what was spent.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import connection as connections
from multiprocessing import get_context, parent_process
from typing import Any, NoReturn, TypeAlias

from dipriv._base.endings import MAY_BE_SPENT, NOTHING_IS_SPENT
from dipriv._base.progress import Progress
from dipriv.errors import DiprivError

PATIENCE = 20.0
"""Seconds that a job has to clean up before its process is ended by force."""
PAUSE = 0.1
"""Seconds between two messages about progress, at least."""
Job: TypeAlias = Callable[..., Any]
"""Called with a progress callback and its arguments; a function that a process can import."""
_SPENDING: set[Job] = set()


def spends(job: Job) -> Job:
    """Mark a job that may have spent ε when it is stopped and does not say more."""
    _SPENDING.add(job)
    return job


@dataclass(frozen=True)
class Failure:
    """Why there is no result: in words without cells, and what was spent on the way."""

    fault: str
    remedy: str
    notes: tuple[str, ...] = ()
    is_stop: bool = False


@dataclass(frozen=True)
class State:
    """How far a job is."""

    what: str = "starting"
    done: float = 0.0
    total: float | None = None


class Stopped(BaseException):
    """The job was asked to end."""


@dataclass
class Worker:
    """One process, started with its first job.

    `finished` is called in a thread, with the result or the `Failure`, while `lock` is held: who has the lock sees a
    job that runs, or all that came of it.
    """

    finished: Callable[[Any], None]
    state: State | None = None
    """Of the job that runs; None if there is none."""
    lock: Any = field(default_factory=threading.RLock, repr=False)
    _listener: Any = field(default=None, repr=False)
    _process: Any = field(default=None, repr=False)
    _pipe: Any = field(default=None, repr=False)
    _stopping: bool = False

    def start(self, job: Job, *arguments: Any) -> None:
        """Start a job; there must be none."""
        if self.state is not None:
            raise RuntimeError("a job is running")
        if self._process is None or not self._process.is_alive():
            context = get_context("spawn")
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=serve, args=(theirs,), daemon=True)
            self._process.start()
            theirs.close()
        self.state, self._stopping = State(), False
        self._pipe.send((job, arguments))
        self._listener = threading.Thread(target=self._listen, args=(self._process, self._pipe), daemon=True)
        self._listener.start()

    def stop(self) -> None:
        """Ask the job to end; what it spent is said when it has."""
        process = self._process
        if self.state is None or process is None or self._stopping:
            return
        self._stopping = True
        process.terminate()
        threading.Thread(target=self._end, args=(process,), daemon=True).start()

    def close(self) -> None:
        """End the process, and wait until its job has cleaned up and `finished` was called."""
        process, self._stopping = self._process, True
        if process is None:
            return
        process.terminate()
        self._end(process)
        self._listener.join(PATIENCE)

    @staticmethod
    def _end(process: Any) -> None:
        process.join(PATIENCE)
        if process.is_alive():
            process.kill()

    def _listen(self, process: Any, pipe: Any) -> None:
        outcome: Any
        while True:
            try:
                kind, content = pipe.recv()
            except Exception:  # the process has ended, in the middle of a message perhaps
                outcome = _ended(self._stopping)
                break
            if kind == "result":
                outcome = content
                break
            self.state = State("stopping" if self._stopping else content[0], *content[1:])
        if isinstance(outcome, Failure) and outcome.is_stop:
            process.join(PATIENCE)
            pipe.close()
            self._process = None
        with self.lock:
            self.state = None
            self.finished(outcome)


def _ended(was_stopped: bool) -> Failure:
    said = "If a release was running, the ledger says whether its ε is spent."
    fault = "The work was ended by force." if was_stopped else "The worker process ended unexpectedly."
    return Failure(fault, "See the ledger, then try again.", (said,), is_stop=True)


def serve(pipe: Any) -> None:
    """Do jobs until the studio ends: the main function of the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the studio, which then stops its workers
    signal.signal(signal.SIGTERM, _stop)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    otherwise = NOTHING_IS_SPENT
    try:
        while True:
            job, arguments = pipe.recv()
            otherwise = MAY_BE_SPENT if job in _SPENDING else NOTHING_IS_SPENT
            pipe.send(("result", _outcome(job, arguments, _reporting(pipe))))
    except Stopped as stop:
        notes = tuple(getattr(stop, "__notes__", ())) or (otherwise,)
        with contextlib.suppress(OSError):
            pipe.send(("result", Failure("The work was stopped.", "", notes, is_stop=True)))
    except (EOFError, OSError):  # the studio has ended
        pass


def _outcome(job: Job, arguments: tuple[Any, ...], progress: Progress) -> Any:
    """The result of a job, or why there is none; the message of an unforeseen error may hold a cell."""
    try:
        return job(progress, *arguments)
    except Exception as error:
        notes = tuple(getattr(error, "__notes__", ()))
        if isinstance(error, DiprivError):
            return Failure(error.fault, error.command, notes)
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else type(error).__name__
        return Failure(f"the work failed: {reason}.", "Try it on the command line, with dipriv --debug.", notes)


def _reporting(pipe: Any) -> Progress:
    lock, said, when = threading.Lock(), "", 0.0

    def report(what: str, done: float, total: float | None) -> None:
        nonlocal said, when
        with lock:
            now = time.monotonic()
            if what != said or now - when > PAUSE:
                said, when = what, now
                pipe.send(("state", (what, done, total)))

    return report


def _stop(number: int, frame: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # cleaning up is not interrupted
    raise Stopped


def _end_with_parent() -> None:
    """A studio that was killed leaves no job behind."""
    parent = parent_process()
    if parent is None:
        return
    connections.wait([parent.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(PATIENCE)
    sys.stderr.flush()
    os._exit(1)
