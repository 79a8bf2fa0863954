"""The processes that descend from one: their peak memory by what they are, and which are Spark's executors."""

from __future__ import annotations

import os
import threading
from pathlib import Path


def memory() -> float:
    """The machine's memory in GB."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def descendants(root: int) -> dict[int, str]:
    """{process: its command line} of a process and all that it started, directly or not."""
    parents, commands = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                stat = (entry / "stat").read_text()
                commands[int(entry.name)] = (
                    (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                )
            except OSError:
                continue
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    found = {root}
    while more := {process for process, parent in parents.items() if parent in found} - found:
        found |= more
    return {process: commands[process] for process in found if process in commands}


def executors(root: int) -> list[int]:
    """The processes that run tasks in a cluster of several on this machine."""
    return [process for process, command in descendants(root).items() if "CoarseGrainedExecutorBackend" in command]


class Watch:
    """Looks at the processes while they run: the most memory that each kind held, the sum over its processes."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._peaks: dict[int, tuple[str, float]] = {}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def peaks(self) -> dict[str, list[int]]:
        """{kind: peak of each process, largest first}, in MB."""
        kinds: dict[str, list[int]] = {}
        for kind, peak in self._peaks.values():
            kinds.setdefault(kind, []).append(round(peak))
        return {kind: sorted(peaks, reverse=True) for kind, peaks in kinds.items()}

    def _look(self) -> None:
        while not self._done.wait(0.25):
            for process, command in descendants(self._root).items():
                try:
                    status = Path(f"/proc/{process}/status").read_text()
                except OSError:
                    continue
                line = next((line for line in status.splitlines() if line.startswith("VmHWM")), None)
                if line is not None:
                    self._peaks[process] = (self._kind(process, command), int(line.split()[1]) / 1024)

    def _kind(self, process: int, command: str) -> str:
        if process == self._root:
            return "python driver"
        if "java" in command.partition(" ")[0]:
            return "java executor" if "CoarseGrainedExecutorBackend" in command else "java driver"
        return "python worker" if "pyspark" in command else "other"
