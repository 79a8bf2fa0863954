"""What a row keeps by default: rank correlations of generated columns, and `release.fidelity` of real tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata

import dipriv
from benchmarks.measure import say
from benchmarks.quality.contest import EPSILON, Setting
from benchmarks.quality.tables import TABLES
from benchmarks.quality.targets import ROWS_ONE, ROWS_TEN

SEEDS = 5
REAL = ("salaries", "pums", "bank", "adult", "national")
SIZES = {ROWS_ONE: (100_000, 1), ROWS_TEN: (1_000_000, 10)}


def kept(name: str, seed: int) -> dict[str, float]:
    """The mean over independent normal columns, and the part of ε that is the reference's."""
    rows, columns = SIZES[name]
    drawn = np.random.default_rng(columns).normal(size=(rows, columns))
    frame = pd.DataFrame(drawn, columns=[f"x{number}" for number in range(columns)])
    release = dipriv.privatize(frame, EPSILON, seed=seed)
    found = [rank_correlation(frame[name], release.data[name]) for name in frame.columns]
    return {"correlation": float(np.mean(found)), "share": reference_share(release)}


def expected(name: str, seed: int) -> dict[str, float]:
    """`release.fidelity` of a real table, nothing declared: the mean over columns, the largest, and the share."""
    release = dipriv.privatize(TABLES[name].frame, EPSILON, types=TABLES[name].types, seed=seed)
    known = [kept for kept in release.fidelity.values() if not np.isnan(kept)]
    return {"mean": float(np.mean(known)), "largest": float(np.max(known)), "share": reference_share(release)}


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
    tables: dict[str, Any] = {}
    for name in REAL:
        measured = [expected(name, seed) for seed in range(setting.runs(SEEDS))]
        rows, columns = TABLES[name].frame.shape
        tables[name] = {"title": TABLES[name].title, "rows": rows, "columns": columns}
        tables[name] |= {key: [one[key] for one in measured] for key in measured[0]}
        say(f"rows: {name}: {tables[name]}")
    return {"sizes": found, "tables": tables, "seeds": list(range(setting.runs(SEEDS)))}
