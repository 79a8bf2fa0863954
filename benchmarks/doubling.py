"""What doubling the rows costs: sizes N and 2N take turns, and each doubling is the median of their ratios.

It runs in a process of its own in which every large array is fresh memory at every size, as for a program that
releases one table. glibc would otherwise keep arrays below a limit that it moves up to 32 MB, and the doubling
that crosses the limit would pay for pages that all smaller sizes had got for nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from itertools import pairwise

import numpy as np
import pyarrow as pa

import dipriv

ROWS = [100_000 * 2**k for k in range(8)]
SECONDS, ROUNDS = 6.0, 9
FRESH = {"MALLOC_MMAP_THRESHOLD_": "131072"}


def run() -> dict[str, float]:
    """The cost of each doubling from 100,000 to 12,800,000 rows of one continuous column."""
    command = [sys.executable, "-m", "benchmarks.doubling"]
    done = subprocess.run(command, env={**os.environ, **FRESH}, check=True, capture_output=True, text=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def measure() -> dict[str, float]:
    """As `run`, in this process."""
    rng = np.random.default_rng(2)
    tables = {n: pa.table({"value": rng.normal(size=n)}) for n in ROWS}
    for table in tables.values():
        _seconds(table)
    return {f"{n} to {m}": _ratio(tables[n], tables[m]) for n, m in pairwise(ROWS)}


def _ratio(smaller: pa.Table, larger: pa.Table) -> float:
    ratios: list[float] = []
    start = time.perf_counter()
    while time.perf_counter() - start < SECONDS or len(ratios) < ROUNDS:
        before = _seconds(smaller)
        ratios.append(_seconds(larger) / before)
    return float(np.median(ratios))


def _seconds(table: pa.Table) -> float:
    start = time.perf_counter()
    dipriv.privatize(table, 1.0, reference="holdout", kernel="laplace")
    return time.perf_counter() - start


if __name__ == "__main__":
    json.dump(measure(), sys.stdout)
