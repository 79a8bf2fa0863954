"""The command line, ten million rows of six columns, CSV and Parquet: wall time against a plain copy, peak memory."""

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
from dipriv._sinks import FileSink
from dipriv.sources.files import File, FileBatches

ROWS, BATCH = 10_000_000, 500_000


def run() -> dict[str, Any]:
    """Each side in a process of its own, in turns; best of two."""
    result: dict[str, Any] = {"rows": ROWS}
    with tempfile.TemporaryDirectory() as folder:
        for extension in ("parquet", "csv"):
            source = Path(folder) / f"in.{extension}"
            write(source)
            best: dict[str, dict[str, float]] = {}
            for _ in range(2):
                for side in ("copy", "privatize"):
                    command = [
                        sys.executable,
                        "-m",
                        "benchmarks.command",
                        side,
                        str(source),
                        f"{folder}/out.{extension}",
                    ]
                    done = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                    if side not in best or done["seconds"] < best[side]["seconds"]:
                        best[side] = done
            result[extension] = best | {"ratio": best["privatize"]["seconds"] / best["copy"]["seconds"]}
            source.unlink()
    return result


def write(path: Path) -> None:
    """A table like a register: number, age, income, sex, region, day."""
    rng = np.random.default_rng(4)
    sexes, regions = np.array(["f", "m"]), np.array([f"region {number:02}" for number in range(50)])
    writer: Any = None
    for start in range(0, ROWS, BATCH):
        batch = pa.record_batch(
            {
                "number": np.arange(start, start + BATCH),
                "age": rng.integers(0, 100, BATCH),
                "income": rng.lognormal(10, 1, BATCH).round(2),
                "sex": sexes[rng.integers(0, 2, BATCH)],
                "region": regions[rng.integers(0, 50, BATCH)],
                "day": rng.integers(0, 365, BATCH).astype("datetime64[D]"),
            }
        )
        if writer is None:
            writer = (pq.ParquetWriter if path.suffix == ".parquet" else pacsv.CSVWriter)(path, batch.schema)
        writer.write_batch(batch)
    writer.close()


def copy(source: str, target: str) -> None:
    """Read and write with pyarrow, batch by batch."""
    with FileSink.at(target, force=True) as sink:
        rows = FileBatches.of(File.at(source))
        for batch in rows.batches(rows.schema.names):
            sink.write(batch)
        sink.commit()


def privatize(source: str, target: str) -> None:
    """The command, its ledger included."""
    from dipriv.cli import app

    asked = [
        "--epsilon",
        "1",
        "--reference",
        "holdout",
        "--kernel",
        "laplace",
        "--keep",
        "number",
        "--force",
        "--quiet",
    ]
    ledger = ["--ledger", f"{target}.db"]
    if not Path(f"{target}.db").exists():
        app(["ledger", "create", f"{target}.db"], standalone_mode=False)
    app(["privatize", source, "-o", target, *asked, *ledger], standalone_mode=False)


if __name__ == "__main__":
    start = time.perf_counter()
    {"copy": copy, "privatize": privatize}[sys.argv[1]](*sys.argv[2:])
    print(json.dumps({"seconds": time.perf_counter() - start, "peak memory in MB": peak_memory()}))
