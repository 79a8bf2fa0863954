"""Spark beside the stream of one process, on the same cores and Parquet files; `make scale` has more of it."""

from __future__ import annotations

import os
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.measure import Sizes, cores
from benchmarks.scale.__main__ import run_side
from benchmarks.scale.table import COLUMNS, write

ROWS, TURNS = 50_000_000, 3


def run(sizes: Sizes) -> dict[str, Any]:
    """Seconds of both, and the share of the stream's rows a second that Spark has; its session's start is apart.

    They take turns, and the best run of each counts. Spark on files is what the command line does. Beside it a
    DataFrame, whose rows Spark hands to Python twice, and what Spark takes to hand all rows to Python once, take them
    back unchanged, and write them.
    """
    if find_spec("pyspark") is None:
        return {"left out": "pyspark is not installed"}
    rows, used = sizes.of(ROWS), str(cores())
    with tempfile.TemporaryDirectory(dir=os.environ.get("DIPRIV_SCRATCH")) as folder:
        place = Path(folder)
        write(place / "in", rows)
        turns = [{engine: run_side(place, engine, used) for engine in ("stream", "spark")} for _ in range(TURNS)]
        found = {engine: min((turn[engine] for turn in turns), key=_seconds) for engine in turns[0]}
        found |= {engine: run_side(place, engine, used) for engine in ("frame", "handed over")}
    every = [{engine: _seconds(side) for engine, side in turn.items()} for turn in turns]
    share = found["stream"]["seconds"] / found["spark"]["seconds"]
    return {"rows": rows, "columns": len(COLUMNS), **found, "turns": every, "share of the stream's speed": share}


def _seconds(side: dict[str, Any]) -> float:
    return float(side["seconds"])
