"""The path that users take: `dipriv.privatize(table, 1.0)` with all options left out, in memory (here) or as a stream.

Each side runs in a process of its own, in turns, after a small release that loads the compiled loops; the best of some
rounds counts. Seconds of the processor are of all threads together: other programs on the machine disturb them least.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import dipriv
from benchmarks.files import peak_memory
from benchmarks.measure import Sizes

ROUNDS = 2
BY_ROWS = [(100_000, 4), (300_000, 4), (1_000_000, 4), (3_000_000, 4), (10_000_000, 4)]
BY_COLUMNS = [(100_000, 1), (100_000, 3), (100_000, 10), (100_000, 30), (100_000, 100)]
OTHERS = [(1_000_000, 20)]
MIN_FITTED_ROWS, MIN_FITTED_COLUMNS = 1_000_000, 10
"""Below these sizes much of the time does not depend on the size."""
HOLDOUT = [(3_000_000, 4), (1_000_000, 20)]
STREAM, STREAM_PART, BATCH = (50_000_000, 4), 2_500_000, 1 << 17
"""A stream is this part of a table again and again: all of it would not fit the memory."""
WARM_UP = 20_000


def in_memory(sizes: Sizes) -> dict[str, Any]:
    """By size, beside a copy and the paper's hold-out, and how cost grows."""
    by_rows, by_columns, others, holdout = (
        [(sizes.of(rows), columns) for rows, columns in of] for of in (BY_ROWS, BY_COLUMNS, OTHERS, HOLDOUT)
    )
    every = list(dict.fromkeys([*by_rows, *by_columns, *others]))
    found = {_name(size): _best(("default", "copy"), size) for size in every}
    of_release = {size: found[_name(size)]["default"] for size in every}
    rows = [size for size in by_rows if size[0] >= sizes.of(MIN_FITTED_ROWS)]
    columns = [size for size in by_columns if size[1] >= MIN_FITTED_COLUMNS]
    return {
        "tables": found,
        "hold-out": {_name(size): _best(("hold-out",), size)["hold-out"] for size in holdout},
        "exponents": {
            "rows": _exponent({size[0]: of_release[size]["processor seconds"] for size in rows}),
            "columns, learning": _exponent({size[1]: of_release[size]["learning"] for size in columns}),
            "columns, releasing": _exponent({size[1]: of_release[size]["releasing"] for size in columns}),
        },
    }


def stream(sizes: Sizes) -> dict[str, Any]:
    """A function that gives batches, beside reading them."""
    size = sizes.of(STREAM[0]), STREAM[1]
    found = _best(("stream", "reading the stream"), size)
    return {"rows": size[0], "columns": size[1], **found, "rows a second": size[0] / found["stream"]["seconds"]}


def table(rows: int, columns: int) -> pd.DataFrame:
    """Whole numbers, amounts of money, labels and reals, in turns."""
    rng = np.random.default_rng(0)
    labels = np.array(["a", "b", "c", "dd", "e"], dtype=object)
    kinds: list[Callable[[], Any]] = [
        lambda: rng.normal(50, 15, rows).round().clip(0, 100).astype(np.int64),
        lambda: rng.lognormal(10, 1, rows).round(2),
        lambda: labels[rng.integers(0, 5, rows)],
        lambda: rng.normal(size=rows),
    ]
    return pd.DataFrame({f"c{number}": kinds[number % 4]() for number in range(columns)})


def measure(side: str, rows: int, columns: int) -> dict[str, float]:
    """One side, in this process."""
    warnings.simplefilter("ignore")
    _work(side, table(WARM_UP, columns), WARM_UP, {})
    data = table(min(rows, STREAM_PART) if "stream" in side else rows, columns)
    parts: dict[str, float] = {}
    start, used = time.perf_counter(), time.process_time()
    _work(side, data, rows, parts)
    took = {"seconds": time.perf_counter() - start, "processor seconds": time.process_time() - used}
    per_cell = {f"{name} in ns a cell": 1e9 * found / (rows * columns) for name, found in took.items()}
    return {**took, **per_cell, **parts, "peak memory in MB": peak_memory()}


def _work(side: str, data: pd.DataFrame, n_rows: int, parts: dict[str, float]) -> None:
    if side == "copy":
        data.copy()
    elif side == "hold-out":
        dipriv.privatize(data, 1.0, reference="holdout", kernel="laplace")
    elif side == "default":
        phases = _Phases()
        dipriv.privatize(data, 1.0, progress=phases)
        parts |= phases.ended()
    else:
        batches = pa.Table.from_pandas(data).to_batches(BATCH)

        def read() -> Iterator[pa.RecordBatch]:
            for _ in range(0, n_rows, len(data)):
                yield from batches

        for batch in dipriv.privatize(read, 1.0).data if side == "stream" else read():
            pa.concat_batches([batch, batch.slice(0, 1)])  # a consumer that takes each batch over


class _Phases:
    """Seconds of the processor by what was being done."""

    def __init__(self) -> None:
        self._what, self._since, self._spent = "reading", time.process_time(), dict[str, float]()

    def __call__(self, what: str, done: float, total: float | None) -> None:
        if what != self._what:
            self._spent = self.ended()
            self._what = what

    def ended(self) -> dict[str, float]:
        now = time.process_time()
        spent = self._spent | {self._what: self._spent.get(self._what, 0.0) + now - self._since}
        self._since = now
        return spent


def _best(sides: tuple[str, ...], size: tuple[int, int]) -> dict[str, dict[str, float]]:
    """The round of each side that took the processor least."""
    best: dict[str, dict[str, float]] = {}
    for _ in range(ROUNDS):
        for side in sides:
            command = [sys.executable, "-m", "benchmarks.default", side, *map(str, size)]
            done = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            if side not in best or done["processor seconds"] < best[side]["processor seconds"]:
                best[side] = done
    return best


def _name(size: tuple[int, int]) -> str:
    return f"{size[0]} x {size[1]}"


def _exponent(seconds: dict[int, float]) -> float:
    return float(np.polyfit(np.log(list(seconds)), np.log(list(seconds.values())), 1)[0])


if __name__ == "__main__":
    json.dump(measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])), sys.stdout)
