"""What the jobs of a release put into the memory and on the disks of driver and workers, and its removal.

Spark itself removes broadcasts, persisted blocks and shuffle files when its session ends, or at some time after the
driver no longer refers to them. They hold private rows, labels, counts and keys, so they are removed here as soon as
they are not needed: after success, after an error and after an interrupt.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dipriv.errors import StorageError
from dipriv.sources.spark.interrupts import after_spark, running

LEVEL = "MEMORY_AND_DISK_DESER"
"""Where persisted blocks are: in memory as far as Spark has room for them there, else on disks."""
MAX_WAIT_SECONDS = 60.0
"""How long to wait for tasks that were cancelled; Spark itself ends their Python processes after two seconds."""
_PAUSE_SECONDS = 0.005


@dataclass(frozen=True, eq=False)
class Workspace:
    """Broadcasts, persisted blocks and shuffle files of a Spark context, until `close` removes them from all disks."""

    context: Any = field(repr=False)
    _removals: ExitStack = field(repr=False, default_factory=ExitStack)

    def broadcast(self, thing: Any) -> Any:
        """A broadcast variable with this content."""
        shared = self.context.broadcast(thing)
        if path := getattr(shared, "_path", None):  # which a session that ends leaves there
            self._removals.callback(Path(path).unlink, missing_ok=True)
        self._removals.callback(self._remove, shared.destroy)
        return shared

    def persist(self, rdd: Any) -> Any:
        """The RDD, whose blocks stay with the workers once they are computed."""
        from pyspark import StorageLevel

        self._removals.callback(self._remove, rdd.unpersist)
        return rdd.persist(getattr(StorageLevel, LEVEL))

    def shuffle(self, rdd: Any) -> Any:
        """An RDD that a shuffle makes, of an RDD that is persisted: earlier shuffles are not touched."""
        self._removals.callback(self._remove, lambda blocking: rdd._jrdd.rdd().cleanShuffleDependencies(blocking))
        return rdd

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Close it unless what is done inside ends well; an interrupt meanwhile is a failure."""
        try:
            with after_spark():
                yield
        except BaseException:
            self.close()
            raise

    @after_spark()
    def close(self) -> None:
        """Remove everything, the newest first. It can be used again afterwards.

        Raises
        ------
        StorageError : Spark could not remove something.
        """
        self._removals.close()

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _remove(self, remove: Callable[[bool], Any]) -> None:
        """Remove one thing, and wait until it is gone. A session that ended has removed blocks and shuffles already."""
        from py4j.protocol import Py4JError, Py4JNetworkError

        if self.context._jsc is None:
            return
        try:
            with suppress(Py4JNetworkError, ConnectionError):
                remove(True)
        except Py4JError:
            raise StorageError(
                "Spark could not remove all that this release put on its disks.",
                "End this Python, and with it Spark's Java process, which removes it.",
            ) from None


@contextmanager
def jobs(context: Any) -> Iterator[None]:
    """Run jobs inside, no task of which runs on after the end: it might put rows on a disk that was cleared."""
    from py4j.protocol import Py4JNetworkError

    tag = f"dipriv-{secrets.token_hex(8)}"
    with after_spark(), running(context, tag):
        context.addJobTag(tag)
        try:
            yield
        except BaseException:
            with suppress(Py4JNetworkError, ConnectionError):  # without its Java process, no task is left
                context.cancelJobsWithTag(tag)
                time.sleep(40 * _PAUSE_SECONDS)  # Spark lists a job a moment after it started
            raise
        finally:
            with suppress(Py4JNetworkError, ConnectionError):
                _await_tasks(context, tag)
                context.removeJobTag(tag)


def _await_tasks(context: Any, tag: str) -> None:
    """Wait for the tasks of all jobs of a tag."""
    status, end = context.statusTracker(), time.monotonic() + MAX_WAIT_SECONDS

    def is_running(job: int) -> bool:
        found = status.getJobInfo(job)
        steps = map(status.getStageInfo, [] if found is None else found.stageIds)
        return any(step is not None and step.numActiveTasks for step in steps)

    started = list(context._jsc.sc().statusTracker().getJobIdsForTag(tag))
    while any(map(is_running, started)) and time.monotonic() < end:
        time.sleep(_PAUSE_SECONDS)
