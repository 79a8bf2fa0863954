"""Adult, 14 columns, scored by SDMetrics: the shapes of columns and the trends of pairs."""

from __future__ import annotations

import importlib.util
from typing import Any

import pandas as pd
from research.data import data_file

import dipriv
from benchmarks.quality import page, peers
from benchmarks.quality.contest import ONE_ROW, SAME, Method, Setting, contest, ours

SEEDS, PEER_RUNS = 3, 1
TARGETS = {"overall": 0.95, "pair trends": 0.92}
SCORES = ("overall", "column shapes", "pair trends", "all pairs")
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


def goals(result: dict[str, Any]) -> list[page.Goal]:
    """Targets beside what was measured."""
    methods = result.get("methods", {})
    mine, theirs = (methods.get(label, {}) for label in ("dipriv", "OpenDP MST"))
    return [
        page.Goal(
            f"SDMetrics, {name}",
            page.mean(mine.get(name), ".3f"),
            page.verdict(mine.get(name), target, ">="),
            f"MST: {page.mean(theirs.get(name), '.3f')}",
        )
        for name, target in TARGETS.items()
    ]


def render(result: dict[str, Any]) -> str:
    """The section."""
    if "left out" in result:
        return f"## Adult: shapes and pairs\n\nLeft out: {result['left out']}.\n"
    lines = [
        [
            page.named(label, found),
            *(page.mean(found.get(name), ".3f") for name in SCORES),
            page.median(found["seconds"]),
            str(len(found["seconds"])),
            found["promise"],
        ]
        for label, found in result["methods"].items()
    ]
    head = ["", *SCORES, "seconds, median", "runs", "promise"]
    return f"""## Adult: shapes and pairs

{result["rows"]:,} rows, {result["columns"]} columns, without the survey weight. SDMetrics' QualityReport: 1 is perfect.
It counts the pairs that are strong in the original; "all pairs" counts every pair. It cuts the range of each table's
numbers into ten on its own, so a largest value that differs shifts all bins and costs much: without declared ranges,
which nobody can know exactly under differential privacy, the score is mostly about that. So dipriv is shown with the
ranges of the survey's codebook declared, as the peer has them, and without. Peers get ages by the year,
hours in {BINS["hours_per_week"].size} bins, gains and losses in {BINS["capital_gain"].size} and
{BINS["capital_loss"].size} (zero apart), over the true ranges. The rows drawn again with replacement show what sampling
error alone costs.

{page.table(head, lines)}
"""
