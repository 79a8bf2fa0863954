"""A child that runs the cases of one target, with a limit on its memory and on the time of a case.

    python -m fuzz.worker FOLDER TARGET SEED FIRST COUNT

It keeps the number of the case at hand in a file, for whoever has to find out what it died of, and prints its counts.
"""

from __future__ import annotations

import json
import mmap
import os
import resource
import signal
import struct
import sys
import time
import traceback
import warnings
from pathlib import Path
from random import Random
from typing import Any

MEMORY = 4 << 30
"""Bytes of address space, on top of what is taken when the first case starts."""
PATIENCE = 10.0
"""Seconds of processor time for a case: how busy the machine is does not count."""
SETTLED = 100
"""The first cases import and compile: they do not count as slow."""
MOST_TOLD = 5
PROGRESS = "progress"


class TooSlowError(BaseException):
    """Not an `Exception`: nothing on the way may catch it."""


def run(folder: Path, name: str, seed: int, first: int, count: int) -> dict[str, Any]:
    """What became of cases first, ..., first + count - 1."""
    from dipriv.errors import DiprivError
    from fuzz import targets

    warnings.simplefilter("ignore")
    target = targets.make(name, folder)
    found: dict[str, Any] = {"cases": 0, "accepted": 0, "refused": 0, "uncaught": 0, "slowest": 0.0, "told": []}
    signal.signal(signal.SIGPROF, _too_slow)
    _limit_memory()
    before = _peak_memory(reset=True)
    with progress(folder) as place:
        for number in range(first, first + count):
            place[:] = struct.pack("<q", number)
            case = target.case(Random(f"{seed}/{name}/{number}"))
            signal.setitimer(signal.ITIMER_PROF, PATIENCE)
            start = time.process_time()
            try:
                target.run(case)
                found["accepted"] += 1
            except DiprivError:
                found["refused"] += 1
            except (Exception, TooSlowError) as error:
                found["uncaught"] += 1
                found["told"].append({"case": number, "what": _where(error)})
            signal.setitimer(signal.ITIMER_PROF, 0)
            seconds = time.process_time() - start
            if seconds > found["slowest"] and number >= first + SETTLED:
                found |= {"slowest": seconds, "slowest_case": number}
            found["cases"] += 1
    peak = _peak_memory()
    found["told"] = found["told"][:MOST_TOLD]
    return found | {"peak_mb": peak / 1e6, "grown_mb": max(0.0, (peak - before) / 1e6)}


def progress(folder: Path) -> mmap.mmap:
    """The number of the case at hand, eight bytes that outlive the process."""
    file = folder / PROGRESS
    if not file.exists():
        file.write_bytes(struct.pack("<q", -1))
    with file.open("r+b") as handle:
        return mmap.mmap(handle.fileno(), 8)


def _limit_memory() -> None:
    taken = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, taken + MEMORY))


def _peak_memory(*, reset: bool = False) -> int:
    """The most that was resident, in bytes; `reset` counts from now on."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def _where(error: BaseException) -> str:
    """The error and the line of dipriv, or of what it calls, that it comes from."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "dipriv" in frame.filename] or frames
    return f"{type(error).__name__}: {str(error)[:200]} ({Path(own[-1].filename).name}:{own[-1].lineno})"


def _too_slow(*_: object) -> None:
    raise TooSlowError(f"more than {PATIENCE:g} seconds")


def main() -> None:
    folder, name, *numbers = sys.argv[1:]
    print(json.dumps(run(Path(folder), name, *map(int, numbers))))


if __name__ == "__main__":
    main()
