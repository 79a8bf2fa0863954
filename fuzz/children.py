"""The cases of a target in child processes with limits on memory and time: a child that dies costs one case."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import time
import traceback
import warnings
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any

PER_CHILD = {"ledger": 2000, "privatize": 500, "exported reference": 10_000}
MAX_PER_CHILD = 40_000
STUCK = 300.0
"""Seconds without a new case after which a child is ended: it hangs in compiled code, where no alarm reaches it."""
MEMORY = 4 << 30
"""Bytes of address space, on top of what is taken when the first case starts."""
PATIENCE = 10.0
"""Seconds of processor time for a case: how busy the machine is does not count."""
SETTLED = 100
"""The first cases import and compile: they do not count as slow."""
MAX_REPORTED = 5


class TooSlowError(BaseException):
    """Not an `Exception`: nothing on the way may catch it."""


def fuzz(folder: Path, name: str, seed: int, cases: int) -> dict[str, Any]:
    """What became of all cases of a target, child after child."""
    found: dict[str, Any] = dict.fromkeys(("cases", "accepted", "refused", "uncaught", "crashes"), 0)
    found |= {"slowest_ms": 0.0, "peak_mb": 0.0, "grown_mb": 0.0, "told": []}
    start = time.perf_counter()
    while (first := found["cases"]) < cases:
        part, at, died = child(folder, name, seed, first, min(PER_CHILD.get(name, MAX_PER_CHILD), cases - first))
        if part is None:  # the cases before it are counted neither as accepted nor as refused
            found |= {"cases": at + 1, "crashes": found["crashes"] + 1}
            found["told"].append({"case": at, "what": died})
            continue
        for key in ("cases", "accepted", "refused", "uncaught", "told"):
            found[key] += part[key]
        for key in ("slowest_ms", "peak_mb", "grown_mb"):
            found[key] = max(found[key], round(part[key], 1))
    return found | {"seconds": round(time.perf_counter() - start, 1)}


def child(folder: Path, name: str, seed: int, first: int, count: int) -> tuple[dict[str, Any] | None, int, str]:
    """What a child found, its last case, and what it died of if it did."""
    context = multiprocessing.get_context("spawn")
    at = context.Value("q", first, lock=False)
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(there, at, folder, name, seed, first, count), daemon=True)
    process.start()
    there.close()
    last, since = first, time.monotonic()
    while process.is_alive():
        process.join(0.1)
        if at.value != last:
            last, since = at.value, time.monotonic()
        elif time.monotonic() - since > STUCK:
            process.kill()
            process.join()
            return None, at.value, f"no end after {STUCK:g} seconds"
    if process.exitcode:
        return None, at.value, f"the process ended with exit code {process.exitcode}"
    return here.recv(), at.value, ""


def _work(there: Connection, at: Any, folder: Path, name: str, seed: int, first: int, count: int) -> None:
    """In the child: run the cases, send what became of them."""
    from dipriv.errors import DiprivError
    from fuzz import targets

    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    warnings.simplefilter("ignore")
    target = targets.make(name, folder)
    found: dict[str, Any] = {"cases": count, "accepted": 0, "refused": 0, "uncaught": 0, "told": []}
    slowest = 0.0
    signal.signal(signal.SIGPROF, _too_slow)
    _limit_memory()
    before = _peak_memory(reset=True)
    for number in range(first, first + count):
        at.value = number
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
            found["told"] += [{"case": number, "what": _where(error)}] if len(found["told"]) < MAX_REPORTED else []
        signal.setitimer(signal.ITIMER_PROF, 0)
        if number >= first + SETTLED:
            slowest = max(slowest, time.process_time() - start)
    peak = _peak_memory()
    there.send(found | {"slowest_ms": 1e3 * slowest, "peak_mb": peak / 1e6, "grown_mb": max(0, peak - before) / 1e6})


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
