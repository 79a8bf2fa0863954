"""Work on many rows: in chunks that fit the processor's cache, side by side on all its cores, with a progress bar."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np

from dipriv.codecs import Cells
from dipriv.errors import InputError

CHUNK_CELLS = 1 << 17
FEWEST_ROWS = 1 << 10


def in_chunks(work: Callable[[slice], list[Cells]], rows: int, columns: int, progress: bool = False) -> list[Cells]:
    """The columns that `work` gives for all rows, put together; the result does not depend on the number of threads."""
    size = max(FEWEST_ROWS, CHUNK_CELLS // columns)
    slices = [slice(start, min(start + size, rows)) for start in range(0, rows, size)]
    with _bar(rows, progress) as advance:
        first = work(slices[0])  # also compiles, once, what the threads then share
        advance(slices[0].stop)
        if len(slices) == 1:
            return first
        whole = [_room_for(part, rows) for part in first]
        _put(whole, slices[0], first)

        def one(part: slice) -> None:
            _put(whole, part, work(part))
            advance(part.stop - part.start)

        with ThreadPoolExecutor(threads()) as pool:
            for _ in pool.map(one, slices[1:]):
                pass
    return whole


def threads() -> int:
    """How many threads to use: DIPRIV_THREADS, else the cores this process may run on."""
    asked = os.environ.get("DIPRIV_THREADS")
    if asked is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not asked.isdecimal() or int(asked) < 1:
        raise InputError(f"DIPRIV_THREADS={asked!r} is not a whole number >= 1.", "Correct it, or unset it.")
    return int(asked)


def _room_for(part: Cells, rows: int) -> Cells:
    missing = None if part.missing is None else np.empty(rows, dtype=np.uint8)
    return Cells(np.empty(rows, dtype=part.values.dtype), missing)


def _put(whole: Sequence[Cells], rows: slice, parts: Sequence[Cells]) -> None:
    for column, part in zip(whole, parts, strict=True):
        column.values[rows] = part.values
        if column.missing is not None and part.missing is not None:
            column.missing[rows] = part.missing


@contextmanager
def _bar(rows: int, progress: bool) -> Iterator[Callable[[int], None]]:
    """A progress bar on the terminal, or nothing."""
    if not progress:
        yield lambda done: None
        return
    from rich.progress import Progress

    with Progress(transient=True) as bars:
        task = bars.add_task("privatizing rows", total=rows)
        yield lambda done: bars.advance(task, done)
