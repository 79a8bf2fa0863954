"""The command line, ten million rows of six columns, CSV and Parquet: time against a plain copy, and peak memory.

With all options left out, and with the paper's hold-out and noise; each counted in a ledger of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from benchmarks.files import peak_memory
from benchmarks.measure import Sizes

ROWS, BATCH = 10_000_000, 500_000
ALWAYS = ["--keep", "number", "--force", "--quiet"]


def run(sizes: Sizes) -> dict[str, Any]:
    """Each side in a process of its own, in turns; best of two."""
    result: dict[str, Any] = {"rows": sizes.of(ROWS)}
    with tempfile.TemporaryDirectory() as folder:
        for extension in ("parquet", "csv"):
            source = Path(folder) / f"in.{extension}"
            write(source, sizes.of(ROWS))
            best: dict[str, dict[str, float]] = {}
            for _ in range(2):
                for side in SIDES:
                    files = [str(source), f"{folder}/out.{extension}"]
                    command = [sys.executable, "-m", "benchmarks.command", side, *files]
                    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                    done = json.loads(told.splitlines()[-1])
                    if side not in best or done["seconds"] < best[side]["seconds"]:
                        best[side] = done
            ratios = {side: best[side]["seconds"] / best["copy"]["seconds"] for side in SIDES}
            result[extension] = best | {"ratio": ratios["hold-out"], "ratio, default": ratios["default"]}
            source.unlink()
    return result


def write(path: Path, rows: int) -> None:
    """A table like a register: number, age, income, sex, region, day."""
    rng = np.random.default_rng(4)
    sexes, regions = np.array(["f", "m"]), np.array([f"region {number:02}" for number in range(50)])
    writer: Any = None
    for start in range(0, rows, BATCH):
        count = min(BATCH, rows - start)
        batch = pa.record_batch(
            {
                "number": np.arange(start, start + count),
                "age": rng.integers(0, 100, count),
                "income": rng.lognormal(10, 1, count).round(2),
                "sex": sexes[rng.integers(0, 2, count)],
                "region": regions[rng.integers(0, 50, count)],
                "day": rng.integers(0, 365, count).astype("datetime64[D]"),
            }
        )
        if writer is None:
            writer = (pq.ParquetWriter if path.suffix == ".parquet" else pacsv.CSVWriter)(path, batch.schema)
        writer.write_batch(batch)
    writer.close()


def copy(source: str, target: str) -> None:
    """Read and write with pyarrow, batch by batch; Parquet as dipriv writes it."""
    if source.endswith(".parquet"):
        file = pq.ParquetFile(source)
        with pq.ParquetWriter(target, file.schema_arrow, compression="zstd") as writer:
            for batch in file.iter_batches(BATCH):
                writer.write_batch(batch)
        return
    with pacsv.open_csv(source) as reader, pacsv.CSVWriter(target, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)


def default(source: str, target: str) -> None:
    """The command with all options left out."""
    _command(source, target)


def holdout(source: str, target: str) -> None:
    """The command as in the paper."""
    _command(source, target, "--reference", "holdout", "--kernel", "laplace")


def _command(source: str, target: str, *options: str) -> None:
    from dipriv.cli import app

    with tempfile.TemporaryDirectory() as folder:
        ledger = f"{folder}/ledger.db"  # not that of the user, where releases add up
        app(["ledger", "create", ledger], standalone_mode=False)
        asked = ["privatize", source, "-o", target, "--epsilon", "1", *options, *ALWAYS, "--ledger", ledger]
        app(asked, standalone_mode=False)


SIDES = {"copy": copy, "default": default, "hold-out": holdout}

if __name__ == "__main__":
    start, used = time.perf_counter(), time.process_time()
    SIDES[sys.argv[1]](*sys.argv[2:])
    took = {"seconds": time.perf_counter() - start, "processor seconds": time.process_time() - used}
    print(json.dumps({**took, "peak memory in MB": peak_memory()}))
