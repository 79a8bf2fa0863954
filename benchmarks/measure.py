"""Timing that a noisy machine disturbs least: contestants take turns, and each one's best time counts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

Contestant = Callable[[], Any]


def side_by_side(contestants: dict[str, Contestant], rounds: int = 3) -> dict[str, float]:
    """Seconds of each contestant: the best of some rounds in which all take turns."""
    best = dict.fromkeys(contestants, float("inf"))
    for _ in range(rounds):
        for name, run in contestants.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
