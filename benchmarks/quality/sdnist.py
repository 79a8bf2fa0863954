"""NIST's national excerpt of the ACS, scored by three-way tables (k-marginal, k = 3)."""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmarks.quality import peers
from benchmarks.quality.contest import ONE_ROW, SAME, Method, Setting, contest, ours
from benchmarks.quality.measures import k_marginal, triples
from research.data import data_file

SEEDS, PEER_RUNS, TRIPLES = 3, 1, 300
NUMERIC = ("AGEP", "PINCP", "POVPIP")
WEIGHTS = ["PWGTP", "WGTP"]
INCOMES = (-20000, 0, 1, 2500, 5000, 7500, *range(10000, 60000, 5000), 60000, 70000, 80000, 100000)
BINS = {
    "AGEP": peers.Bins(tuple(range(0, 101, 5))),
    "PINCP": peers.Bins((*INCOMES, 125000, 150000, 200000, 300000, 500000, 1500000), null=float("nan")),
    "POVPIP": peers.Bins((0, 1, *range(25, 501, 25), 501, 502), null="N"),
}


def load() -> pd.DataFrame:
    """All columns but the two survey weights."""
    return pd.read_parquet(data_file("sdnist/national2019.parquet")).drop(columns=WEIGHTS)


def run(setting: Setting) -> dict[str, Any]:
    """Scores and seconds; a resample of the original shows what its own sampling error costs."""
    frame = load()
    book = peers.codebook(frame, BINS)
    chosen = triples([str(name) for name in frame.columns], TRIPLES)
    methods = [Method("dipriv", ONE_ROW, ours(frame, setting), SEEDS)]
    if not peers.lacking():
        methods += [Method("OpenDP MST", SAME, lambda seed: peers.synthesize(frame, book, "MST", 0.5, seed), PEER_RUNS)]
    methods += [
        Method("the rows drawn again", "none", lambda seed: frame.sample(frac=1, replace=True, random_state=seed), 1)
    ]
    found = contest("sdnist", methods, lambda made: {"score": k_marginal(frame, made, chosen, NUMERIC)}, setting)
    return {"rows": len(frame), "columns": frame.shape[1], "triples": len(chosen), "methods": found}
