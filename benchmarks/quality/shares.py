"""How ε is best divided between the reference and the rows: the default share beside others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import dipriv
from benchmarks.measure import say
from benchmarks.quality.contest import EPSILON, Setting
from benchmarks.quality.measures import ks, logistic_kl
from benchmarks.quality.rows import rank_correlation, reference_share
from benchmarks.quality.tables import TABLES, bank_matrix

SEEDS, ROWS = 10, (500, 5_000, 50_000)
SHARES = (None, 0.05, 0.15, 0.3, 0.5, 0.7, 0.85)
BANK_SHARES = (None, 0.5, 0.75, 0.9, 0.98)
"""None is the default."""
Measure = Callable[[float | None, int], dict[str, float]]


def run(setting: Setting) -> dict[str, Any]:
    """One lognormal column of some sizes, and the bank table, by the reference's share of ε."""
    seeds = range(setting.runs(SEEDS))
    return {
        "seeds": len(seeds),
        "one column": {str(rows): _by_share(SHARES, partial(_alone, rows), seeds) for rows in ROWS},
        "bank": _by_share(BANK_SHARES, _bank, seeds),
        "bank columns": TABLES["bank"].frame.shape[1],
    }


def _by_share(shares: Sequence[float | None], measure: Measure, seeds: range) -> dict[str, dict[str, float]]:
    found = {}
    for share in shares:
        runs = [measure(share, seed) for seed in seeds]
        name = "default" if share is None else f"{share:g}"
        found[name] = {key: float(np.mean([one[key] for one in runs])) for key in runs[0]}
        say(f"shares: {name}: {found[name]}")
    return found


def _alone(rows: int, share: float | None, seed: int) -> dict[str, float]:
    x = np.random.default_rng(rows).lognormal(3, 1, rows)
    release = dipriv.privatize(pd.DataFrame({"x": x}), EPSILON, reference_share=share, seed=seed)
    z = release.data["x"]
    return {"KS": ks(x, z), "rank correlation": rank_correlation(x, z), "share": reference_share(release)}


def _bank(share: float | None, seed: int) -> dict[str, float]:
    frame = TABLES["bank"].frame
    release = dipriv.privatize(frame, EPSILON, reference_share=share, seed=seed)
    return {
        "KL": logistic_kl(bank_matrix(frame), bank_matrix(release.data)),
        "cells that agree": float(np.mean([(release.data[name] == frame[name]).mean() for name in frame.columns])),
        "share": reference_share(release),
    }
