"""UC pay, one column of floats, no bounds given: the mean, the tail, the whole distribution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from benchmarks.quality.contest import APPROXIMATE, Method, Setting, contest, ours
from benchmarks.quality.measures import ks
from research.experiments import uc_salary

SEEDS = 100
GRID = np.logspace(0, 7, 71)


def run(setting: Setting) -> dict[str, Any]:
    """Errors by run, and two histograms to look at."""
    pay = np.array(uc_salary.salaries())
    frame = pd.DataFrame({"gross_pay": pay})

    def score(made: pd.DataFrame) -> dict[str, float]:
        z = made["gross_pay"].to_numpy()
        return {
            "error of the mean, %": 100 * abs(float(z.mean() / pay.mean()) - 1),
            "largest / true maximum": float(z.max() / pay.max()),
            "smallest": float(z.min()),
            "KS": ks(pay, z),
        }

    release = ours(frame)
    found = contest("salary", [Method("dipriv", APPROXIMATE, release, SEEDS)], score, setting)
    released = release(0)["gross_pay"].to_numpy()
    shares = {"original": pay, "released": released}
    return {
        "rows": len(frame),
        "mean": float(pay.mean()),
        "maximum": float(pay.max()),
        "methods": found,
        "grid": GRID.tolist(),
        "histograms": {name: (np.histogram(z, GRID)[0] / len(z)).tolist() for name, z in shares.items()},
    }
