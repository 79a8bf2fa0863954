"""One table under every setting of dipriv, beside noisy histograms and the rows drawn again."""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd

from benchmarks.quality import findings, histograms
from benchmarks.quality.contest import APPROXIMATE, DELTA, EPSILON, PURE, Method, Setting, contest, ours
from benchmarks.quality.measures import k_marginal, label_margins, logistic_kl, on_bins, triples
from benchmarks.quality.tables import Table, bank_matrix
from benchmarks.quality.targets import DECLARED, DEFAULT, HISTOGRAMS, LABEL_RATIO, PUBLIC, at_epsilon, targeting
from benchmarks.quality.targets import PURE as DECLARED_PURE

SEEDS = 10
AGAIN = "the rows drawn again"


def methods(table: Table) -> list[Method]:
    """Nothing declared; labels public; the codebook declared, with the default δ and pure; the rivals."""
    frame = table.frame

    def histogram(delta: float) -> Any:
        return lambda seed: histograms.synthesize(frame, table.book, EPSILON, delta, seed)

    default = partial(ours, frame, types=table.types)
    found = [Method(DEFAULT, APPROXIMATE, default(), SEEDS)]
    if table.labels:
        found += [Method(PUBLIC, f"{APPROXIMATE}; labels are public", default(labels="public"), SEEDS)]
    found += [
        Method(DECLARED, APPROXIMATE, ours(frame, schema=table.declared), SEEDS),
        Method(DECLARED_PURE, PURE, ours(frame, schema=table.declared, delta=0.0), SEEDS),
    ]
    if table.target is not None:
        found += [Method(targeting(table.target), APPROXIMATE, default(target=table.target), SEEDS)]
    for epsilon in table.epsilons:
        promise = APPROXIMATE.replace("ε = 1", f"ε = {epsilon:g}")
        found += [Method(at_epsilon(epsilon), promise, default(epsilon), SEEDS)]
    return [
        *found,
        Method(HISTOGRAMS[DECLARED], APPROXIMATE, histogram(DELTA), SEEDS),
        Method(HISTOGRAMS[DECLARED_PURE], PURE, histogram(0.0), SEEDS),
        Method(AGAIN, "none", lambda seed: frame.sample(frac=1, replace=True, random_state=seed), SEEDS),
    ]


def scores(table: Table, made: pd.DataFrame) -> dict[str, float]:
    """The scores of a release, and its findings."""
    made = made.reset_index(drop=True)
    found = on_bins(table.frame, made, table.book)
    if table.ranked:
        found["k-marginal"] = k_marginal(table.frame, made, triples(table.columns), table.ranked)
    if table.labels:
        found["label margins"] = label_margins(table.frame, made, table.labels)
    if table.name == "bank":
        found["KL"] = logistic_kl(bank_matrix(table.frame), bank_matrix(made))
    return found | findings.found(table.name, made)


def run(table: Table, setting: Setting) -> dict[str, Any]:
    """Every method's scores and findings by run, and the true values of the findings."""
    measured = contest(table.name, methods(table), lambda made: scores(table, made), setting)
    compare_labels(measured)
    return {
        "title": table.title,
        "rows": len(table.frame),
        "columns": table.frame.shape[1],
        "true": findings.found(table.name, table.frame),
        "methods": measured,
    }


def compare_labels(measured: dict[str, Any]) -> None:
    """The label margins of the declared settings, run by run, as multiples of the histograms' mean."""
    for setting, rival in HISTOGRAMS.items():
        ours, theirs = (measured.get(name, {}).get("label margins") for name in (setting, rival))
        if ours and theirs:
            mean = sum(theirs) / len(theirs)
            measured[setting][LABEL_RATIO] = [value / mean for value in ours]
