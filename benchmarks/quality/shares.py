"""How ε is best divided between the reference and the rows: the default share beside others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata

import dipriv
from benchmarks.quality import page
from benchmarks.quality.bank import load, matrix
from benchmarks.quality.contest import ONE_ROW, Setting, say
from benchmarks.quality.measures import ks, logistic_kl
from dipriv.references import Private

SEEDS, ROWS = 10, (500, 5_000, 50_000)
SHARES = (0.15, 0.3, 0.5, 0.7, 0.85)
BANK_SHARES = (0.5, 0.75, 11 / 12, 0.98)


def run(setting: Setting) -> dict[str, Any]:
    """One lognormal column of some sizes, and the bank table, by the reference's share of ε."""
    seeds = setting.runs(SEEDS)
    alone = {str(rows): {f"{share:.3g}": _alone(rows, share, seeds) for share in SHARES} for rows in ROWS}
    frame = load()
    rows = matrix(frame)
    many = {f"{share:.3g}": _mean([_bank(frame, rows, share, seed) for seed in range(seeds)]) for share in BANK_SHARES}
    return {"seeds": seeds, "one column": alone, "bank": many, "bank columns": frame.shape[1]}


def _alone(rows: int, share: float, seeds: int) -> dict[str, float]:
    column = pd.DataFrame({"x": np.random.default_rng(rows).lognormal(3, 1, rows)})
    found = []
    for seed in range(seeds):
        x = dipriv.privatize(column, 1.0, reference=Private(reference_share=share), kernel="laplace", seed=seed).data[
            "x"
        ]
        kept = float(np.corrcoef(rankdata(x), rankdata(column["x"]))[0, 1])
        found.append({"KS": ks(x, column["x"]), "rank correlation": kept})
    say(f"shares: {rows} rows, {share:.3g}: {_mean(found)}")
    return _mean(found)


def _bank(frame: pd.DataFrame, rows: Any, share: float, seed: int) -> dict[str, float]:
    released = dipriv.privatize(frame, 1.0, reference=Private(reference_share=share), kernel="laplace", seed=seed).data
    agree = np.mean([(released[name] == frame[name]).mean() for name in frame.columns])
    return {"KL": logistic_kl(rows, matrix(released)), "cells that agree": float(agree)}


def _mean(found: list[dict[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([one[name] for one in found])) for name in found[0]}


def goals(result: dict[str, Any]) -> list[page.Goal]:
    """No target."""
    return []


def render(result: dict[str, Any]) -> str:
    """The section."""
    alone = []
    for share in result["one column"][str(ROWS[0])]:
        found = [result["one column"][str(rows)][share] for rows in ROWS]
        alone.append([share, *(f"{one['KS']:.3f}" for one in found), f"{found[-1]['rank correlation']:.2f}"])
    many = [
        [share, f"{found['KL']:.4f}", f"{100 * found['cells that agree']:.2f}%"]
        for share, found in result["bank"].items()
    ]
    head = ["share of the reference", *(f"KS, {rows:,} rows" for rows in ROWS), "rank correlation of a value"]
    return f"""## Shares: how ε is divided

The reference has p/(p + 1) of ε by default: 0.5 for one column, 0.917 for {result["bank columns"]}. {ONE_ROW};
means of {result["seeds"]} seeds. One lognormal column: a smaller share keeps more of each value, but its distribution
is too coarse where rows are few.

{page.table(head, alone)}

The bank table ({result["bank columns"]} columns): the kernel's part is so thin that rows keep nothing either way.

{page.table(["share of the reference", "KL of the logistic regression", "cells equal to the original's"], many)}
"""
