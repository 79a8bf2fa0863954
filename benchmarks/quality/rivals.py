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
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.quality import peers
from benchmarks.quality.contest import Setting, say
from benchmarks.quality.settings import scores
from benchmarks.quality.tables import TABLES

LIMIT = 3600.0
FOLDER = Path("build/peers")
NAMES = ("bank", "adult", "national", "ma2019", "pums")
COMMAND = (sys.executable, "-m", "benchmarks.quality.rivals")
RUNS = {"MST": 5, "AIM": 2}
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

    def file(self, folder: Path, ending: str) -> Path:
        return folder / f"{self.table}-{self.algorithm}-{self.promise}-{self.number}.{ending}"


LABELS = {"delta": "", "pure": ", delta=0", "weaker": " (weaker)"}


def runs(setting: Setting) -> Iterator[Run]:
    """The quick ones first; after a run beyond the limit there is no second one."""
    for algorithm, promises in (("MST", LABELS), ("AIM", ("delta", "pure"))):
        for name in NAMES:
            for promise in promises:
                for number in range(setting.runs(1 if promise == "weaker" else RUNS[algorithm])):
                    yield Run(name, algorithm, promise, number)


def run(setting: Setting, folder: Path = FOLDER) -> dict[str, Any]:
    """Scores, findings and seconds by table and method, of the runs in the folder and of those still to do."""
    found: dict[str, Any] = {}
    for one in runs(setting):
        methods = found.setdefault(one.table, {})
        method = methods.setdefault(one.label, {"promise": peers.PROMISES[one.promise], "seconds": [], "wall": []})
        if "limit" in method:
            continue
        told = done(one, folder)
        if "limit" in told:
            method["limit"] = told["limit"]
            continue
        method |= {"date": told["date"], "versions": told["versions"]}
        measured = scores(TABLES[one.table], pd.read_parquet(one.file(folder, "parquet")))
        for name, value in (measured | {"seconds": told["seconds"], "wall": told["wall"]}).items():
            method.setdefault(name, []).append(value)
        say(f"peers: {one}: {told['seconds']:.0f} s")
    return {"tables": found, "minutes at most": LIMIT / 60}


def done(one: Run, folder: Path) -> dict[str, Any]:
    """What is known of a run, made now unless its file is there; a run beyond the limit leaves the limit."""
    folder.mkdir(parents=True, exist_ok=True)
    note = one.file(folder, "json")
    if not note.exists():
        asked = [*COMMAND, one.table, one.algorithm, one.promise, str(one.number), str(folder)]
        try:
            subprocess.run(asked, check=True, timeout=LIMIT, env=os.environ | ONE_THREAD)
        except subprocess.TimeoutExpired:
            note.write_text(json.dumps({"limit": LIMIT}), encoding="utf-8")
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
