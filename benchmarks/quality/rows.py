"""What a row keeps by default: the rank correlation of a value with its release."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata

import dipriv
from benchmarks.quality.contest import EPSILON, Setting, say
from benchmarks.quality.targets import ROWS_ONE, ROWS_TEN

SEEDS = 5
SIZES = {ROWS_ONE: (100_000, 1), ROWS_TEN: (1_000_000, 10)}


def kept(name: str, seed: int) -> dict[str, float]:
    """The mean over independent normal columns, and the part of ε that is the reference's."""
    rows, columns = SIZES[name]
    drawn = np.random.default_rng(columns).normal(size=(rows, columns))
    frame = pd.DataFrame(drawn, columns=[f"x{number}" for number in range(columns)])
    release = dipriv.privatize(frame, EPSILON, seed=seed)
    found = [rank_correlation(frame[name], release.data[name]) for name in frame.columns]
    return {"correlation": float(np.mean(found)), "share": reference_share(release)}


def rank_correlation(x: Any, y: Any) -> float:
    return float(np.corrcoef(rankdata(x), rankdata(y))[0, 1])


def reference_share(release: Any) -> float:
    """The part of ε that the reference was learned with."""
    return float(release.guarantee.reference.epsilon / release.guarantee.epsilon)


def run(setting: Setting) -> dict[str, Any]:
    """Correlations and the reference's share of ε, by size and seed."""
    found: dict[str, Any] = {}
    for name in SIZES:
        measured = [kept(name, seed) for seed in range(setting.runs(SEEDS))]
        found[name] = {key: [one[key] for one in measured] for key in measured[0]}
        say(f"rows: {name}: {found[name]}")
    return {"sizes": found}
