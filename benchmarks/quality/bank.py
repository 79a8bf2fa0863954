"""The paper's bank logistic regression: how far the fitted probabilities of a release are from the original's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from research import bank

from benchmarks.quality import page, peers
from benchmarks.quality.contest import ONE_ROW, SAME, WEAKER, Method, Setting, contest, ours
from benchmarks.quality.measures import logistic_kl
from dipriv._arrays import FloatArray

SEEDS, MST_RUNS, AIM_RUNS, WEAKER_RUNS = 20, 6, 2, 2
TARGETS = {"dipriv": 0.012, 'dipriv, target="y"': 0.006}
FASTER = 10
BINS = {
    "age": peers.Bins(tuple(range(15, 101, 5))),
    "campaign": peers.Bins((1, 2, 3, 4, 5, 6, 8, 11, 16, 26, 58)),
}


def load() -> pd.DataFrame:
    """The eleven columns with honest types: whole numbers, and yes or no."""
    frame = pd.DataFrame(bank.load(), columns=list(bank.COLUMNS))
    numbers = ("age", "education", "campaign")
    return frame.astype({name: np.int64 if name in numbers else np.bool_ for name in bank.COLUMNS})


def matrix(frame: pd.DataFrame) -> FloatArray:
    return frame[list(bank.COLUMNS)].to_numpy(dtype=np.float64)


def run(setting: Setting) -> dict[str, Any]:
    """KL and seconds of dipriv, MST and AIM."""
    frame = load()
    rows, book = matrix(frame), peers.codebook(frame, BINS)

    def peer(algorithm: str, epsilon: float) -> Any:
        return lambda seed: peers.synthesize(frame, book, algorithm, epsilon, seed)

    methods = [
        Method("dipriv", ONE_ROW, ours(frame, setting), SEEDS),
        Method('dipriv, target="y"', ONE_ROW, ours(frame, setting, target="y"), SEEDS),
    ]
    if not peers.lacking():
        methods += [
            Method("OpenDP MST", SAME, peer("MST", 0.5), MST_RUNS),
            Method("OpenDP AIM", SAME, peer("AIM", 0.5), AIM_RUNS),
            Method("OpenDP MST (weaker)", WEAKER, peer("MST", 1.0), WEAKER_RUNS),
        ]
    found = contest("bank", methods, lambda made: {"KL": logistic_kl(rows, matrix(made))}, setting)
    truth = bank.probabilities(rows, bank.logistic(rows))
    nothing = bank.divergence(truth, np.full(len(rows), rows[:, -1].mean())) / 100
    return {"rows": len(frame), "columns": frame.shape[1], "no predictors": nothing, "methods": found}


def goals(result: dict[str, Any]) -> list[page.Goal]:
    """Targets beside what was measured."""
    methods = result["methods"]
    peer = page.spread(methods.get("OpenDP MST", {}).get("KL"), ".4f")
    close = [
        page.Goal(
            f"KL of the logistic regression, {page.code(label)}",
            page.spread(methods[label].get("KL"), ".4f"),
            page.verdict(methods[label].get("KL"), target, "<="),
            f"MST: {peer}",
        )
        for label, target in TARGETS.items()
    ]
    mine, theirs = (methods.get(name, {}).get("seconds") for name in ("dipriv", "OpenDP MST"))
    ratio = [float(np.median(theirs) / np.median(mine))] if mine and theirs else None
    aim = methods.get("OpenDP AIM", {}).get("seconds")
    speed = f"seconds of MST: {page.median(theirs)}, of AIM: {page.median(aim)}"
    faster = page.Goal("times faster than MST", page.mean(ratio, ",.0f"), page.verdict(ratio, FASTER, ">="), speed)
    return [*close, faster]


def render(result: dict[str, Any]) -> str:
    """The section."""
    lines = [
        [
            page.named(label, found),
            page.spread(found.get("KL"), ".4f"),
            page.median(found["seconds"]),
            str(len(found["seconds"])),
            found["promise"],
        ]
        for label, found in result["methods"].items()
    ]
    table = page.table(["", "KL: mean (least to largest)", "seconds, median", "runs", "promise"], lines)
    return f"""## Bank: logistic regression

{result["rows"]:,} rows, {result["columns"]} columns. Mean Kullback-Leibler divergence of the fitted probabilities from
those of the original table; a model without predictors has {result["no predictors"]:.4f}. Seconds are all in: from the
table to the released table, as many synthetic rows on the peers' side. Peers get ages in {BINS["age"].size} bins and
calls in {BINS["campaign"].size}; their values come back uniform inside the bins.

![KL of every run, on a logarithmic axis](images/private-bank.svg)

{table}
"""
