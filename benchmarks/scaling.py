"""How the cost of a release grows with rows and with columns, with fitted exponents."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import dipriv
from benchmarks.measure import side_by_side

ROWS = [10_000, 31_623, 100_000, 200_000, 400_000, 800_000, 1_600_000, 3_200_000, 6_400_000, 10_000_000]
COLUMNS = [1, 2, 5, 10, 20, 50, 100]
ROWS_FOR_COLUMNS = 100_000


def run() -> dict[str, Any]:
    """Seconds by rows (one column), by columns (100,000 rows), and of 1,000,000 x 10."""
    rng = np.random.default_rng(2)
    table = rng.normal(size=(max(ROWS), 1))
    by_rows = side_by_side({str(n): _release(table[:n]) for n in ROWS}, rounds=4)
    wide = rng.normal(size=(ROWS_FOR_COLUMNS, max(COLUMNS)))
    by_columns = side_by_side({str(p): _release(np.ascontiguousarray(wide[:, :p])) for p in COLUMNS}, rounds=3)
    ten = side_by_side({"1000000 x 10": _release(rng.normal(size=(1_000_000, 10)))}, rounds=2)
    return {
        "seconds by rows": by_rows,
        "exponent in rows, 1e5 to 1e7": _exponent({n: s for n, s in by_rows.items() if int(n) >= 100_000}),
        "cost of doubling the rows, 1e5 to 1e7": _doubling(by_rows),
        "seconds by columns": by_columns,
        "exponent in columns": _exponent(by_columns),
        "seconds of 1,000,000 x 10": ten["1000000 x 10"],
        "nanoseconds a cell of 1,000,000 x 10": 1e9 * ten["1000000 x 10"] / 1e7,
    }


def draw(result: dict[str, Any], path: Path) -> None:
    """Both curves, on logarithmic scales."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "dipriv"
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), constrained_layout=True)
    for axis, key, label in zip(
        axes, ("rows", "columns"), ("rows (one column)", "columns (100,000 rows)"), strict=True
    ):
        points = result[f"seconds by {key}"]
        exponent = result["exponent in rows, 1e5 to 1e7" if key == "rows" else "exponent in columns"]
        axis.loglog([int(x) for x in points], list(points.values()), "o-", color="#4c72b0")
        axis.set(xlabel=label, ylabel="seconds", title=f"exponent {exponent:.2f}")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _release(table: np.ndarray) -> Any:
    return lambda: dipriv.privatize(table, 1.0, reference="holdout")


def _exponent(seconds: dict[str, float]) -> float:
    x, y = np.log([float(n) for n in seconds]), np.log(list(seconds.values()))
    return float(np.polyfit(x, y, 1)[0])


def _doubling(seconds: dict[str, float]) -> dict[str, float]:
    """The cost of each doubling in between, the last step of 1.56 extended to a doubling."""
    sizes = [n for n in seconds if int(n) >= 100_000]
    return {
        f"{low} to {high}": (seconds[high] / seconds[low]) ** (np.log(2) / np.log(int(high) / int(low)))
        for low, high in pairwise(sizes)
    }
