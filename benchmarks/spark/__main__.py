"""`make spark`: writes docs/scale.json.

Speed: the same Parquet files released by one process (`dipriv.engines.stream`) and by Spark on one and two cores, each
in processes of its own, with what moves between Spark and its Python workers and the peak memory of each process.
Loss: a cluster of two workers on this machine, one of them killed in the middle of a job, beside an undisturbed run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.spark.processes import Watch
from benchmarks.spark.table import write

ROWS, LOSS_ROWS = 50_000_000, 2_000_000
SIDES = ("stream 1", "spark 1", "stream 2", "spark 2")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--out", type=Path, default=Path("docs/scale.json"))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("DIPRIV_SCRATCH")) as folder:
        place = Path(folder)
        write(place / "loss", min(asked.rows, LOSS_ROWS), group=1 << 16)
        found: dict[str, Any] = {"loss": _side(place, "loss", "2")}
        print(json.dumps(found), flush=True)
        write(place / "in", asked.rows)
        found |= {"rows": asked.rows, "columns": 4, "bytes": _size(place / "in"), "sides": {}}
        for side in SIDES:
            engine, cores = side.split()
            found["sides"][side] = _side(place, engine, cores)
            found["sides"][side]["rows a second"] = asked.rows / found["sides"][side]["seconds"]
            print(side, json.dumps(found["sides"][side]), flush=True)
    for cores in ("1", "2"):
        stream, spark = (found["sides"][f"{engine} {cores}"]["seconds"] for engine in ("stream", "spark"))
        found[f"spark's speed, of the stream's, on {cores} cores"] = stream / spark
    asked.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def _side(folder: Path, engine: str, cores: str) -> dict[str, Any]:
    """One side in processes of its own, which are watched."""
    environment = {**os.environ, "DIPRIV_THREADS": cores if engine == "stream" else "1"}
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.spark.side", engine, cores, str(folder)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    with process, Watch(process.pid) as watch:
        told, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"{engine} on {cores} cores failed")
    return {**json.loads(told.strip().splitlines()[-1]), "peak MB": watch.peaks()}


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


if __name__ == "__main__":
    main()
