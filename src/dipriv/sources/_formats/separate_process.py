"""Start the process that reads a file whose damage could end the process that reads it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dipriv.sources import _reader_process
from dipriv.sources._formats.registry import TableFile
from dipriv.sources._untrusted import memory

PIECE = 1 << 20


@contextmanager
def reader_process(file: TableFile, reader: str, *options: object) -> Iterator[subprocess.Popen[bytes]]:
    """The process, once it has got the file; at the end of the context it has ended, and has a return code.

    What it says on standard error is thrown away: it may hold cells.
    """
    command = [sys.executable, "-P", _reader_process.__file__, reader, str(memory()), *map(str, options)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env=environment, **pipes) as process:  # noqa: S603 - our own program
        try:
            _give(file, process.stdin)
            process.stdin = None
            yield process
        except BaseException:
            process.kill()
            raise


def _give(file: TableFile, pipe: Any) -> None:
    with file.open() as stream:
        try:
            while piece := stream.read(PIECE):
                pipe.write(piece)
            pipe.close()
        except BrokenPipeError:  # it has ended, and its return code tells why
            pass
