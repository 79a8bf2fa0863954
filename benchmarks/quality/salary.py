"""UC pay, one column of floats, no bounds given: the mean, the tail, the whole distribution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from research import uc_salary

from benchmarks.quality import page
from benchmarks.quality.contest import ONE_ROW, Method, Setting, contest, ours
from benchmarks.quality.measures import ks

SEEDS = 100
ERROR, TOP, LEAST = 1.0, 4.0, 0.0
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

    release = ours(frame, setting)
    found = contest("salary", [Method("dipriv", ONE_ROW, release, SEEDS)], score, setting)
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


def goals(result: dict[str, Any]) -> list[page.Goal]:
    """Targets beside what was measured."""
    found = result["methods"]["dipriv"]
    error, top, least = (found.get(name) for name in ("error of the mean, %", "largest / true maximum", "smallest"))
    return [
        page.Goal("error of the mean, %", page.mean(error, ".2f"), page.verdict(error, ERROR, "<=")),
        page.Goal("largest value / true maximum", page.most(top, ".2f"), page.verdict(top, TOP, "<=", max)),
        page.Goal("smallest value", page.least(least, ",.2f"), page.verdict(least, LEAST, ">=", min)),
    ]


def render(result: dict[str, Any]) -> str:
    """The section."""
    found = result["methods"]["dipriv"]
    lines = [[name, page.spread(found.get(name), ",.4g")] for name in found if name not in ("promise", "failed")]
    return f"""## Salary: one heavy-tailed column, no bounds

{result["rows"]:,} salaries of the University of California, one float column, nothing declared; {found["promise"]};
{len(found["seconds"])} seeds. True mean {result["mean"]:,.2f}, true maximum {result["maximum"]:,.2f}. KS is the
Kolmogorov-Smirnov distance of the two tables. The figure shows the first seed.

![Original and released salaries on a logarithmic axis](images/private-salary.svg)

{page.table(["", "mean (least to largest)"], lines)}
"""
