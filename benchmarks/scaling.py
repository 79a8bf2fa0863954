"""How the cost of a release grows with rows and with columns, with fitted exponents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import dipriv
from benchmarks import doubling
from benchmarks.measure import side_by_side

ROWS = [10_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000]
MIN_FITTED_ROWS = 100_000
SECONDS_EACH = 3.0
COLUMNS = [1, 2, 5, 10, 20, 50, 100]
ROWS_FOR_COLUMNS = 100_000


def run() -> dict[str, Any]:
    """Seconds by rows (one column), by columns (100,000 rows), and of 1,000,000 x 10."""
    rng = np.random.default_rng(2)
    by_rows = {str(n): _seconds(rng.normal(size=(1, n))) for n in ROWS}
    by_columns = {str(p): _seconds(rng.normal(size=(p, ROWS_FOR_COLUMNS))) for p in COLUMNS}
    ten = _seconds(rng.normal(size=(10, 1_000_000)))
    return {
        "seconds by rows": by_rows,
        "exponent in rows, 1e5 to 1e7": _exponent({n: s for n, s in by_rows.items() if int(n) >= MIN_FITTED_ROWS}),
        "cost of doubling the rows, 1e5 to 1e7": doubling.run(),
        "seconds by columns": by_columns,
        "exponent in columns": _exponent(by_columns),
        "seconds of 1,000,000 x 10": ten,
        "nanoseconds a cell of 1,000,000 x 10": 1e9 * ten / 1e7,
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


def _seconds(columns: np.ndarray) -> float:
    """The best of some releases in a row: with other sizes in between, fresh memory would be what is measured."""
    table = pa.table({f"c{number}": column for number, column in enumerate(columns)})
    release = {"release": lambda: dipriv.privatize(table, 1.0, reference="holdout", kernel="laplace")}
    once = side_by_side(release, rounds=2)["release"]
    return side_by_side(release, rounds=max(5, int(SECONDS_EACH / once)))["release"]


def _exponent(seconds: dict[str, float]) -> float:
    x, y = np.log([float(n) for n in seconds]), np.log(list(seconds.values()))
    return float(np.polyfit(x, y, 1)[0])
