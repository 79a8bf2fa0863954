"""Work on many rows: in chunks that fit the processor's cache, side by side on all its cores."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from itertools import chain, islice, pairwise
from threading import Lock, local
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dipriv._base.columns import ColumnValues
from dipriv._base.progress import Progress, no_progress
from dipriv.errors import InputError

Item = TypeVar("Item")
Result = TypeVar("Result")
Work: TypeAlias = Callable[[slice, int], list[ColumnValues]]

CHUNK_CELLS = 1 << 19
MIN_CHUNK_ROWS = 1 << 13
_here = local()


def in_chunks(
    work: Work, rows: int, selected: NDArray[np.bool_] | None, columns: int, progress: Progress = no_progress
) -> list[ColumnValues]:
    """The columns that `work` gives for all selected rows, put together, the same for any number of threads.

    `work(chunk, number)` gets a slice of the rows and the number of its first selected row among all selected ones.
    """
    size = max(MIN_CHUNK_ROWS, min(CHUNK_CELLS // columns, rows // (4 * threads())))
    starts = [
        0,
        *range(min(MIN_CHUNK_ROWS, rows), rows, size),
        rows,
    ]  # a short one first, which compiles what all share
    slices = [slice(start, stop) for start, stop in pairwise(starts) if stop > start]
    counts = [chunk.stop - chunk.start if selected is None else int(selected[chunk].sum()) for chunk in slices]
    ends = np.cumsum(counts).tolist()
    jobs = [(chunk, end - count, end) for chunk, count, end in zip(slices, counts, ends, strict=True) if count]
    done = 0
    lock = Lock()

    def advance(rows: int) -> None:
        nonlocal done
        with lock:
            done += rows
            progress("releasing", done, ends[-1])

    chunk, number, end = jobs[0]
    first = work(chunk, number)
    advance(end)
    if len(jobs) == 1:
        return first
    whole = [_room_for(part, ends[-1]) for part in first]
    _put(whole, slice(number, end), first)

    def one(job: tuple[slice, int, int]) -> None:
        chunk, number, end = job
        _put(whole, slice(number, end), work(chunk, number))
        advance(end - number)

    in_parallel(one, jobs[1:])
    return whole


def pieces(rows: slice, size: int) -> Iterator[slice]:
    """A range of rows in pieces of at most `size` rows, at least one piece."""
    yield slice(rows.start, min(rows.start + size, rows.stop))
    for start in range(rows.start + size, rows.stop, size):
        yield slice(start, min(start + size, rows.stop))


def threads() -> int:
    """How many threads to use: DIPRIV_THREADS, else the cores this process may run on."""
    threads = os.environ.get("DIPRIV_THREADS")
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not threads.isdecimal() or int(threads) < 1:
        raise InputError(f"DIPRIV_THREADS={threads!r} is not a whole number >= 1.", "Correct it, or unset it.")
    return int(threads)


def _room_for(part: ColumnValues, rows: int) -> ColumnValues:
    missing = None if part.missing is None else np.empty(rows, dtype=np.uint8)
    return ColumnValues(np.empty(rows, dtype=part.values.dtype), missing)


def _put(whole: Sequence[ColumnValues], rows: slice, parts: Sequence[ColumnValues]) -> None:
    for column, part in zip(whole, parts, strict=True):
        column.values[rows] = part.values
        if column.missing is not None and part.missing is not None:
            column.missing[rows] = part.missing


def in_parallel(work: Any, items: Iterable[Any]) -> list[Any]:
    """The work on each item, in order, on all cores; what a thread of these does is not divided again."""
    items = list(items)
    if len(items) < 2 or threads() == 1 or getattr(_here, "works", False):
        return [work(item) for item in items]
    pool = _pool(threads())
    parts = [pool.submit(work, item) for item in items]
    try:
        return [part.result() for part in parts]
    finally:  # where one fails, none goes on
        for part in parts:
            part.cancel()
        wait(parts)


def each_in_parallel(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """The work on each of many items, in order, on all cores; items are taken as they are needed, few at a time.

    What a thread does is not divided again, unless there is only one item.
    """
    source = iter(items)
    first = list(islice(source, 2))
    if len(first) < 2 or threads() == 1 or getattr(_here, "works", False):
        yield from map(work, chain(first, source))
        return
    with ThreadPoolExecutor(threads(), initializer=_begin) as pool:
        waiting: deque[Future[Result]] = deque()
        rest, failure, end = chain(first, source), None, object()
        while True:
            try:
                item = next(rest, end)
            except Exception as error:  # after the results of earlier items
                item, failure = end, error
            if item is end:
                break
            waiting.append(pool.submit(work, cast(Item, item)))
            if len(waiting) > threads():
                yield waiting.popleft().result()
        for result in waiting:
            yield result.result()
        if failure is not None:
            raise failure


def _begin() -> None:
    """What a thread does is not divided again."""
    _here.works = True
    _quieten()


def _quieten() -> None:
    """What numpy would say of a value is not said, as in the main thread."""
    np.seterr(all="ignore")


@cache
def _pool(size: int) -> ThreadPoolExecutor:
    """Threads that `in_parallel` shares among its calls: starting some for each batch takes longer than small work."""
    return ThreadPoolExecutor(size, initializer=_begin)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork


def ahead(items: Iterable[Item], depth: int = 1) -> Iterator[Item]:
    """The same items, the next ones of which, up to `depth`, are made on a thread of their own meanwhile."""
    if threads() == 1:
        yield from items
        return
    source, end = iter(items), object()
    with ThreadPoolExecutor(1, initializer=_quieten) as pool:
        following = deque(pool.submit(next, source, end) for _ in range(depth))
        while (item := following.popleft().result()) is not end:
            following.append(pool.submit(next, source, end))
            yield item  # type: ignore[misc]
