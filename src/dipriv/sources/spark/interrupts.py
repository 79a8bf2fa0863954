"""Interrupts (SIGINT, SIGTERM) wait until Spark's Java process has answered the driver.

PySpark's own handler cancels jobs and raises wherever the driver is: also in the middle of a command to the Java
process, whose connection cannot be used from then on. What lies on disks could then not be removed. So what talks to
Spark runs to its end; a thread, which has a connection of its own, cancels its jobs meanwhile, and the interrupt is
raised behind it.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_PAUSE_SECONDS = 0.2
_JOBS: dict[str, Any] = {}
"""{tag of jobs that are running: their Spark context}"""
_HOLDING = threading.Lock()
"""Locked while interrupts are held back."""


@contextmanager
def after_spark() -> Iterator[None]:
    """Hold back interrupts to the end of the context; only the main thread has them."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or not _HOLDING.acquire(blocking=False):
        yield
        return
    received, ended, before = list[int](), threading.Event(), dict[int, Callable[..., Any]]()

    def note(number: int, frame: object) -> None:
        received.append(number)
        if len(received) == 1:
            threading.Thread(target=_cancel_until, args=(ended,), daemon=True).start()

    try:
        for number in map(int, _SIGNALS):
            handler = signal.getsignal(number)
            if callable(handler):  # else the process ends at once, or takes no notice
                before[number] = handler
                signal.signal(number, note)
        yield
    finally:
        ended.set()
        _HOLDING.release()
        try:
            with ExitStack() as behind:  # handlers are restored, then called, also after one that raises
                for number, handler in before.items():
                    behind.callback(_pass_on, handler, number, received)
                for number, handler in before.items():
                    behind.callback(signal.signal, number, handler)
        except BaseException as interrupt:
            raise interrupt from None  # that jobs were cancelled is no news


@contextmanager
def running(context: Any, tag: str) -> Iterator[None]:
    """An interrupt cancels the jobs of this tag that run inside."""
    _JOBS[tag] = context
    try:
        yield
    finally:
        del _JOBS[tag]


def _pass_on(handler: Callable[..., Any], number: int, received: list[int]) -> None:
    if number in received:
        handler(number, None)


def _cancel_until(ended: threading.Event) -> None:
    """Cancel jobs again and again: one that is asked for may not have started yet."""
    while True:
        for tag, context in list(_JOBS.items()):
            with suppress(Exception):  # without its Java process, no job is left
                context.cancelJobsWithTag(tag)
        if ended.wait(_PAUSE_SECONDS):
            return
