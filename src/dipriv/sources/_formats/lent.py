"""A stream that Arrow's threads read ahead from: they have let go of it before its reader is left.

Python ends such a thread where it next needs Python, and C++ then aborts the process: a refused file would end with
SIGABRT instead of an error.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Generator
from typing import Any

import pyarrow as pa

MAX_WAIT_SECONDS = 2.0
_PAUSE_SECONDS = 0.0005


class _Lent:
    """The stream for Arrow, which has the only reference to this. A fault is kept: its traceback would be another."""

    closed = False

    def __init__(self, stream: Any, faults: list[Exception]) -> None:
        self._stream, self._faults = stream, faults

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        try:
            found: bytes = self._stream.read(size)
        except Exception as fault:
            self._faults.append(fault.with_traceback(None))
            return b""
        return found

    def close(self) -> None:
        self.closed = True


def read_ahead(stream: Any, open_reader: Callable[[Any], Any]) -> Generator[pa.Schema | pa.RecordBatch, None, None]:
    """The schema, then the batches of the reader that this opens; what the stream raises takes precedence."""
    faults = list[Exception]()
    lent: Any = _Lent(stream, faults)
    is_lent, reader = weakref.ref(lent), None
    try:
        reader = open_reader(lent)
        lent = None
        yield reader.schema
        yield from reader
    except Exception:
        if faults:
            raise faults[0] from None
        raise
    finally:
        lent = reader = None
        end = time.monotonic() + MAX_WAIT_SECONDS
        while is_lent() is not None and time.monotonic() < end:
            time.sleep(_PAUSE_SECONDS)
    if faults:
        raise faults[0]
