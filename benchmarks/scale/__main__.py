"""`make scale`: writes docs/scale.json and docs/scale.md.

Speed: the same Parquet files released by one process (`dipriv.engines.stream`) and by Spark on one and two cores, each
in processes of its own, with what moves between Spark and its Python workers and the peak memory of each process.
Loss: a cluster of two workers on this machine, one of them killed in the middle of a job, beside an undisturbed run.
Clients: the example of examples/clients.py.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.measure import cores
from benchmarks.scale.processes import Watch, memory
from benchmarks.scale.table import COLUMNS, write
from research import pages

ROWS, LOSS_ROWS, CLIENTS = 50_000_000, 2_000_000, 100_000
SIDES = ("stream 1", "spark 1", "stream 2", "spark 2")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--clients", type=int, default=CLIENTS)
    parser.add_argument("--out", type=Path, default=Path("docs"), help="the folder for scale.json and scale.md")
    asked = parser.parse_args()
    found: dict[str, Any] = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": f"{cores()} cores, {memory():.0f} GB, {platform.machine()}, Python {platform.python_version()}",
        "rows": asked.rows,
        "columns": len(COLUMNS),
    }
    with tempfile.TemporaryDirectory(dir=os.environ.get("DIPRIV_SCRATCH")) as folder:
        place = Path(folder)
        write(place / "loss", min(asked.rows, LOSS_ROWS), group=1 << 16)
        found["loss"] = run_side(place, "loss", "2")
        print(json.dumps(found), flush=True)
        write(place / "in", asked.rows)
        found |= {"bytes": _size(place / "in"), "sides": {}}
        for side in SIDES:
            engine, used = side.split()
            found["sides"][side] = run_side(place, engine, used)
            print(side, json.dumps(found["sides"][side]), flush=True)
    found["clients"] = _clients(asked.clients)
    (asked.out / "scale.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    pages.write("scale", asked.out)


def _clients(clients: int) -> dict[str, Any]:
    from examples.clients import STRONGLY, far, run

    start = time.perf_counter()
    pictures = run(clients)
    seconds = time.perf_counter() - start
    told = {
        name: {"far from the truth": far(shares, pictures["true"]), "strongly religious": float(shares[STRONGLY].sum())}
        for name, shares in pictures.items()
    }
    return {"clients": clients, "seconds": seconds, "shares": told}


def run_side(folder: Path, engine: str, used: str) -> dict[str, Any]:
    """One side in processes of its own, which are watched."""
    environment = {**os.environ, "DIPRIV_THREADS": used if engine == "stream" else "1"}
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.scale.side", engine, used, str(folder)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    with process, Watch(process.pid) as watch:
        told, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"{engine} on {used} cores failed")
    return {**json.loads(told.strip().splitlines()[-1]), "peak MB": watch.peaks()}


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


if __name__ == "__main__":
    main()
