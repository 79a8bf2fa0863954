"""How ε is best divided between the reference and the rows: the default share beside others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata

import dipriv
from benchmarks.quality.bank import load, matrix
from benchmarks.quality.contest import Setting, say
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
