"""The paper's bank logistic regression: how far the fitted probabilities of a release are from the original's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from benchmarks.quality import peers
from benchmarks.quality.contest import ONE_ROW, SAME, WEAKER, Method, Setting, contest, ours
from benchmarks.quality.measures import logistic_kl
from dipriv._base.arrays import FloatArray
from research.experiments import bank

SEEDS, MST_RUNS, AIM_RUNS, WEAKER_RUNS = 20, 6, 2, 2
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
