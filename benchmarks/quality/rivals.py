"""OpenDP's MST and AIM on every table, each run in a process of its own within an hour; their rows are kept and scored.

What the peers make depends on no line of dipriv, and takes hours: it is measured on request (`PARTS=peers`) and stays
on record. The rows are kept in a folder, so that new scores need no new runs.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import resource
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.measure import say
from benchmarks.quality import peers
from benchmarks.quality.contest import Setting
from benchmarks.quality.settings import scores
from benchmarks.quality.tables import TABLES

LIMIT = 300
"""Seconds of processor time that a run may take."""
FOLDER = Path("build/peers")
PYTHON = Path(".venv/peers/bin/python")
"""The peers have an environment of their own: they pin older versions of what development uses."""
RUNS = {
    "MST": {"bank": 5, "adult": 2, "national": 2, "ma2019": 2, "pums": 5},
    "AIM": {"bank": 2, "adult": 1, "national": 1, "ma2019": 1, "pums": 5},
}
LABELS = {"delta": "", "pure": ", delta=0", "weaker": " (weaker)"}
"""How the promises are marked; the weaker one is for MST, once."""
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


@dataclass(frozen=True)
class Run:
    """One run of a peer on a table under a promise."""

    table: str
    algorithm: str
    promise: str
    number: int

    @property
    def label(self) -> str:
        return f"OpenDP {self.algorithm}{LABELS[self.promise]}"

    @property
    def words(self) -> list[str]:
        return [self.table, self.algorithm, self.promise, str(self.number)]

    def file(self, folder: Path, ending: str) -> Path:
        return folder / f"{'-'.join(self.words)}.{ending}"


def runs(setting: Setting) -> Iterator[Run]:
    """The quick ones first."""
    for algorithm, tables in RUNS.items():
        for table, times in tables.items():
            for promise in ("delta", "pure"):
                yield from (Run(table, algorithm, promise, number) for number in range(setting.runs(times)))
    yield from (Run(table, "MST", "weaker", 0) for table in RUNS["MST"])


def run(setting: Setting, folder: Path = FOLDER) -> dict[str, Any]:
    """Scores, findings and seconds by table and method, of the runs in the folder and of those still to do.

    After a run beyond the limit there is no second one.
    """
    found: dict[str, Any] = {}
    last: dict[str, Any] = {}
    for one in runs(setting):
        method = found.get(one.table, {}).get(one.label, {"promise": peers.PROMISES[one.promise], "seconds": []})
        if "limit" in method or (told := done(one, folder)) is None:
            continue
        found.setdefault(one.table, {})[one.label] = method
        if "limit" in told:
            method["limit"] = told["limit"]
            continue
        last = {"date": told["date"], "versions": told["versions"]}
        measured = scores(TABLES[one.table], pd.read_parquet(one.file(folder, "parquet")))
        for name, value in (measured | {"seconds": told["seconds"], "wall": told["wall"]}).items():
            method.setdefault(name, []).append(value)
        say(f"peers: {' '.join(one.words)}: {told['seconds']:.0f} s")
    return {"tables": found, **last}


def done(one: Run, folder: Path) -> dict[str, Any] | None:
    """What is known of a run, made now unless it is in the folder; a run beyond the limit leaves the limit.

    Without the peers' environment, only what is in the folder is known.
    """
    folder.mkdir(parents=True, exist_ok=True)
    note = one.file(folder, "json")
    if not note.exists():
        if not PYTHON.exists():
            return None
        asked = [str(PYTHON), "-m", "benchmarks.quality.rivals", *one.words, str(folder)]
        ended = subprocess.run(asked, check=False, env=os.environ | ONE_THREAD).returncode
        if ended == -signal.SIGXCPU:
            note.write_text(json.dumps({"limit": LIMIT}), encoding="utf-8")
        elif ended:
            raise RuntimeError(f"{' '.join(one.words)} ended with {ended}")
    told: dict[str, Any] = json.loads(note.read_text(encoding="utf-8"))
    return told


def main() -> None:
    """One run: the synthetic rows, and a note of what they took. Seconds are processor time of one thread."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("table", "algorithm", "promise"):
        parser.add_argument(name)
    parser.add_argument("number", type=int)
    parser.add_argument("folder", type=Path)
    asked = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT + 60))
    one, table = Run(asked.table, asked.algorithm, asked.promise, asked.number), TABLES[asked.table]
    frame, book = table.frame, table.book
    start, used = time.perf_counter(), time.process_time()
    made = peers.synthesize(frame, book, one.algorithm, peers.LOSSES[one.promise], one.number)
    note = {
        "seconds": time.process_time() - used,
        "wall": time.perf_counter() - start,
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "versions": {"Python": platform.python_version()}
        | {name: importlib.metadata.version(name) for name in peers.PACKAGES},
    }
    made.to_parquet(one.file(asked.folder, "parquet"))
    one.file(asked.folder, "json").write_text(json.dumps(note), encoding="utf-8")


if __name__ == "__main__":
    main()
