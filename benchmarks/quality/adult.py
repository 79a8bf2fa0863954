"""Adult, 14 columns, scored by SDMetrics: the shapes of columns and the trends of pairs."""

from __future__ import annotations

import importlib.util
from typing import Any

import pandas as pd

import dipriv
from benchmarks.quality import peers
from benchmarks.quality.contest import ONE_ROW, SAME, Method, Setting, contest, ours
from research.data import data_file

SEEDS, PEER_RUNS = 3, 1
BINS = {
    "age": peers.Bins(tuple(range(17, 92))),
    "capital_gain": peers.Bins((0, 1, 1000, 2000, 3000, 4000, 5000, 7500, 10000, 15000, 20000, 50000, 99999, 100000)),
    "capital_loss": peers.Bins((0, 1, 1000, 1400, 1500, 1600, 1700, 1800, 1900, 2000, 2200, 2500, 3000, 4357)),
    "hours_per_week": peers.Bins((1, 10, 20, 21, 25, 30, 31, 35, 36, 40, 41, 45, 46, 50, 51, 55, 60, 61, 70, 80, 100)),
}
CODEBOOK = {
    "age": dipriv.Continuous(17, 90),
    "education_num": dipriv.Discrete(levels=tuple(range(1, 17))),
    "capital_gain": dipriv.Continuous(0, 99999),
    "capital_loss": dipriv.Continuous(0, 4356),
    "hours_per_week": dipriv.Continuous(1, 99),
}
"""The ranges that the peer is given, too."""


def load() -> pd.DataFrame:
    """Train and test, all columns but the survey weight."""
    files = [data_file(f"adult/adult-{part}.parquet") for part in ("train", "test")]
    return pd.concat([pd.read_parquet(file) for file in files], ignore_index=True).drop(columns="fnlwgt")


def quality(original: pd.DataFrame, released: pd.DataFrame) -> dict[str, float]:
    """SDMetrics' QualityReport as it comes, where pairs count that are strong in the original; and over all pairs."""
    from sdmetrics.reports import QualityReport

    kinds = {
        name: {"sdtype": "numerical" if pd.api.types.is_numeric_dtype(original[name]) else "categorical"}
        for name in original.columns
    }
    usual, every = QualityReport(), QualityReport()
    every.real_correlation_threshold = every.real_association_threshold = 0.0
    for report in (usual, every):
        tables = ({"table": frame} for frame in (original, released))
        report.generate(*tables, {"tables": {"table": {"columns": kinds}}}, verbose=False)
    scores, all_pairs = (report.get_properties().set_index("Property")["Score"] for report in (usual, every))
    return {
        "overall": float(usual.get_score()),
        "column shapes": float(scores["Column Shapes"]),
        "pair trends": float(scores["Column Pair Trends"]),
        "all pairs": float(all_pairs["Column Pair Trends"]),
    }


def run(setting: Setting) -> dict[str, Any]:
    """Scores and seconds; a resample of the original shows what its own sampling error costs."""
    if importlib.util.find_spec("sdmetrics") is None:
        return {"left out": "the package sdmetrics is not installed"}
    frame = load()
    book = peers.codebook(frame, BINS)
    methods = [
        Method("dipriv", ONE_ROW, ours(frame, setting, schema=CODEBOOK), SEEDS),
        Method('dipriv, target="income"', ONE_ROW, ours(frame, setting, target="income", schema=CODEBOOK), SEEDS),
        Method("dipriv, no range declared", ONE_ROW, ours(frame, setting), SEEDS),
    ]
    if not peers.lacking():
        methods += [Method("OpenDP MST", SAME, lambda seed: peers.synthesize(frame, book, "MST", 0.5, seed), PEER_RUNS)]
    methods += [
        Method("the rows drawn again", "none", lambda seed: frame.sample(frac=1, replace=True, random_state=seed), 1)
    ]
    found = contest("adult", methods, lambda made: quality(frame, made.reset_index(drop=True)), setting)
    return {"rows": len(frame), "columns": frame.shape[1], "methods": found}
