"""Timing that a noisy machine disturbs least: contestants take turns, and each one's best time counts.

Only the standard library is imported: some benchmarks run in environments without dipriv.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Contestant = Callable[[], Any]


@dataclass(frozen=True)
class Sizes:
    """Numbers of rows, all divided by one number: more than 1 for a trial that takes minutes."""

    divisor: int = 1

    def of(self, rows: int) -> int:
        return rows // self.divisor


def side_by_side(contestants: dict[str, Contestant], rounds: int = 3) -> dict[str, float]:
    """Seconds of each contestant: the best of some rounds in which all take turns."""
    best = dict.fromkeys(contestants, float("inf"))
    for _ in range(rounds):
        for name, run in contestants.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def say(line: str) -> None:
    """What is done, on standard error."""
    print(line, file=sys.stderr, flush=True)


def machine() -> dict[str, Any]:
    """The size of this machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return {"cores": cores(), "memory in GB": memory, "kind": platform.machine()}


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
