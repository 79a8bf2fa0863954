"""One column of 25 million rows, a quarter held out: ours beside a plain numpy version and beside a memory copy."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import dipriv
from benchmarks.measure import side_by_side
from dipriv._base.arrays import FloatArray
from dipriv.kernels.noisy_uniform import noisy_uniform_cdf

ROWS = 25_000_000
FALLBACK_COUNTS = {0.5: 16, 1.0: 31, 1.5: 16, 2.0: 66, 2.5: 51, 3.0: 196, 3.5: 127, 4.0: 266, 4.5: 88, 5.0: 144}


def straightforward(values: FloatArray, epsilon: float, rng: np.random.Generator) -> FloatArray:
    """Algorithm 1 for one continuous column as one would write it in numpy: searchsorted and numpy's Laplace noise."""
    held = rng.random(len(values)) < 0.25
    d, z = np.sort(values[held]), values[~held]
    m = len(d)
    edges = np.concatenate([[d[0] - (d[-1] - d[0]) / (m - 1)], d])
    k = np.clip(np.searchsorted(d, z), 0, m - 1)
    u = np.clip((k + (z - edges[k]) / (edges[k + 1] - edges[k])) / m, 0, 1)
    v = noisy_uniform_cdf(u + rng.laplace(scale=1 / epsilon, size=len(u)), 1 / epsilon)
    q = np.clip(np.ceil(v * m).astype(np.int64) - 1, 0, m - 1)
    released: FloatArray = edges[q] + (v * m - q) * (edges[q + 1] - edges[q])
    return released


def continuous(rows: int = ROWS) -> dict[str, Any]:
    """A lognormal column."""
    rng = np.random.default_rng(1)
    values = rng.lognormal(10, 1, rows)
    table, schema = pa.table({"pay": values}), {"pay": dipriv.Continuous()}
    return _report(
        {
            "dipriv (exact, secure)": lambda: dipriv.privatize(
                table, 1.0, reference="holdout", kernel="laplace", schema=schema
            ),
            "numpy (floating, not secure)": lambda: straightforward(values, 1.0, rng),
            "memory copy": values.copy,
        },
        rows,
    )


def discrete() -> dict[str, Any]:
    """The 25,000,095 ratings of MovieLens 25M, rebuilt from their counts, or like proportions without them."""
    folder = Path(os.environ.get("DIPRIV_DATA", Path(__file__).parents[2] / "shared" / "data"))
    path = folder / "movielens" / "ml-25m-rating-counts.csv"
    counts = {rating: count * ROWS // 1001 for rating, count in FALLBACK_COUNTS.items()}
    if path.exists():
        with path.open() as file:
            counts = {float(row["rating"]): int(row["count"]) for row in csv.DictReader(file)}
    ratings = np.repeat(np.array(list(counts), dtype=np.float32), list(counts.values()))
    np.random.default_rng(1).shuffle(ratings)
    table = pa.table({"rating": ratings})
    return _report(
        {
            "dipriv (exact, secure)": lambda: dipriv.privatize(table, 1.0, reference="holdout", kernel="laplace"),
            "memory copy": ratings.copy,
        },
        len(ratings),
    )


def _report(contestants: dict[str, Any], rows: int) -> dict[str, Any]:
    seconds = side_by_side(contestants, rounds=4)
    ours = next(iter(seconds.values()))
    return {
        "rows": rows,
        "nanoseconds": {name: 1e9 * s / rows for name, s in seconds.items()},
        "ratio": {name: s / ours for name, s in seconds.items()},
    }
