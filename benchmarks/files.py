"""Parquet to Parquet, 25 million rows of four columns, one privatized: against a plain copy, with peak memory."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dipriv
from dipriv.references import Empirical

ROWS, BATCH = 25_000_000, 1_000_000
RATINGS = np.arange(1, 11, dtype=np.float32) / 2


def run() -> dict[str, Any]:
    """Each side in a process of its own, in turns; best of two."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "ratings.parquet"
        write(source)
        best: dict[str, dict[str, float]] = {}
        for _ in range(2):
            for name in ("copy", "privatize"):
                command = [sys.executable, "-m", "benchmarks.files", name, str(source), f"{folder}/out.parquet"]
                done = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                if name not in best or done["seconds"] < best[name]["seconds"]:
                    best[name] = done
    return {"rows": ROWS, **best, "ratio": best["privatize"]["seconds"] / best["copy"]["seconds"]}


def write(path: Path) -> None:
    """A table like MovieLens: user, movie, rating, time."""
    rng = np.random.default_rng(3)
    writer: pq.ParquetWriter | None = None
    for start in range(0, ROWS, BATCH):
        batch = pa.record_batch(
            {
                "user": np.arange(start, start + BATCH, dtype=np.int32) // 150,
                "movie": rng.integers(0, 59_047, BATCH, dtype=np.int32),
                "rating": RATINGS[np.minimum(rng.binomial(9, 0.65, BATCH), 9)],
                "time": rng.integers(789_652_009, 1_574_327_703, BATCH),
            }
        )
        writer = writer or pq.ParquetWriter(path, batch.schema)
        writer.write_batch(batch)
    if writer:
        writer.close()


def copy(source: Path, target: Path) -> None:
    """Read and write, batch by batch."""
    file = pq.ParquetFile(source)
    with pq.ParquetWriter(target, file.schema_arrow) as writer:
        for batch in file.iter_batches(BATCH):
            writer.write_batch(batch)


def privatize(source: Path, target: Path) -> None:
    """The same, with one column privatized by a reference from the first million ratings, taken as public."""
    file = pq.ParquetFile(source)
    keep = ["user", "movie", "time"]
    first = next(file.iter_batches(BATCH))
    dip = dipriv.DIP(1.0, reference=Empirical(), kernel="laplace", public=first, keep=keep).fit(first)
    with pq.ParquetWriter(target, file.schema_arrow) as writer:
        for batch in dip.transform_batches(file.iter_batches(BATCH)):
            writer.write_batch(batch)


def peak_memory() -> float:
    """MB of this program alone: what getrusage reports includes the process that started it."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return float(next(line for line in status.read_text().splitlines() if line.startswith("VmHWM")).split()[1]) / 1024


if __name__ == "__main__":
    work, files = sys.argv[1], [Path(name) for name in sys.argv[2:]]
    start = time.perf_counter()
    {"copy": copy, "privatize": privatize}[work](*files)
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "peak memory in MB": peak_memory()}))
