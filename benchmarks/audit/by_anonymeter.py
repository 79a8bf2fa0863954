"""Anonymeter's three attacks on every case: singling out, linkability, inference.

`python -m benchmarks.audit.by_anonymeter FOLDER` runs in an environment of its own, without dipriv: anonymeter needs a
numpy before 2. It reads what `cases` wrote and leaves anonymeter.json. Two faults of version 1.1.0 are avoided here:

* Singling out corrects for a control table of another size, but its fit counts all queries instead of those that
  single out. So both tables get the same number of distinct rows, and nothing is corrected.
* Inference aligns the naive guesses with the targets by row number and loses nearly all of them. So the naive attack,
  a value of a random released row, is run through its interface for models.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from anonymeter.evaluators import InferenceEvaluator, LinkabilityEvaluator, SinglingOutEvaluator
from anonymeter.evaluators.singling_out_evaluator import (
    multivariate_singling_out_queries,
    univariate_singling_out_queries,
)
from anonymeter.stats.confidence import EvaluationResults

from benchmarks.audit.versions import versions
from benchmarks.measure import say

ATTACKS = {"singling out": 500, "linkability": 500, "inference": 500}
COLUMNS_OF_QUERIES, MAX_ATTEMPTS, NEIGHBOURS = (3, 8), 20_000, 10
PACKAGES = ("anonymeter", "numpy", "pandas", "polars", "scikit-learn", "numba")
Counts = dict[str, int]


def main(folder: Path) -> None:
    """Attack, add up over the seeds, write."""
    logging.disable(logging.WARNING)
    told = json.loads((folder / "cases.json").read_text(encoding="utf-8"))
    runs: dict[str, dict[str, dict[str, list[Counts]]]] = {}
    for case in told["cases"]:
        start = time.perf_counter()
        attacks = runs.setdefault(case["table"], {}).setdefault(case["label"], {})
        for name, counts in judge(case, told["tables"][case["table"]], folder):
            attacks.setdefault(name, []).append(counts)
        say(f"anonymeter: {case['table']}, seed {case['seed']}: {case['label']}, {time.perf_counter() - start:.0f} s")
    found = {
        table: {label: {name: pooled(counts) for name, counts in attacks.items()} for label, attacks in labels.items()}
        for table, labels in runs.items()
    }
    settings = {"columns of queries": COLUMNS_OF_QUERIES, "neighbours": NEIGHBOURS, "attacks": ATTACKS}
    record = {"found": found, "settings": settings, "versions": versions(PACKAGES)}
    (folder / "anonymeter.json").write_text(json.dumps(record, indent=1), encoding="utf-8")


def judge(case: dict[str, Any], told: dict[str, Any], folder: Path) -> Iterator[tuple[str, Counts]]:
    """Each attack's counts: attacks made, successes on targets and on control rows, successes of the naive attack."""
    targets, control, release = (pd.read_parquet(folder / case[what]) for what in ("targets", "control", "release"))
    control = control.iloc[: len(targets)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of weak attacks run by run; the sums say that better
        yield "singling out, 1 column", singling_out(targets, control, release, 1, case["seed"])
        for columns in COLUMNS_OF_QUERIES:
            name = f"singling out, {columns} columns"
            yield name, singling_out(targets, control, release, columns, case["seed"])
        np.random.seed(case["seed"])  # noqa: NPY002 (the judge draws its targets from the global generator)
        yield "linkability", linkability(targets, control, release, told["link"])
        for secret in told["secrets"]:
            numeric = secret in told["numeric"]
            yield f"inference of {secret}", inference(targets, control, release, secret, numeric, case["seed"])


def singling_out(
    targets: pd.DataFrame, control: pd.DataFrame, release: pd.DataFrame, columns: int, seed: int
) -> Counts:
    """Descriptions that fit one released row: how many fit one target, or one control row.

    No more attacks are asked for than the release has such descriptions, for anonymeter counts those it could not make
    as failures.
    """
    targets, control = (table.drop_duplicates() for table in (targets, control))
    size = min(len(targets), len(control))
    queries = _queries(pl.from_pandas(release).unique(maintain_order=True), columns, seed)
    if queries == 0:
        return {"attacks": 0, "success": 0, "control": 0, "naive": 0}
    evaluator = SinglingOutEvaluator(
        targets.iloc[:size],
        release,
        n_attacks=queries,
        n_cols=columns,
        control=control.iloc[:size],
        max_attempts=MAX_ATTEMPTS,
        seed=seed,
    )
    return _counts(evaluator.evaluate(mode="univariate" if columns == 1 else "multivariate").results(), queries)


def _queries(release: pl.DataFrame, columns: int, seed: int) -> int:
    """How many descriptions can be made, at most those asked for."""
    rng, most = np.random.default_rng(seed), ATTACKS["singling out"]
    if columns == 1:
        return len(univariate_singling_out_queries(release, most, rng))
    return len(multivariate_singling_out_queries(release, most, columns, MAX_ATTEMPTS, rng))


def linkability(targets: pd.DataFrame, control: pd.DataFrame, release: pd.DataFrame, link: list[list[str]]) -> Counts:
    """Two parts of a person's columns lead to the same released row, among the nearest of each."""
    attacks = min(ATTACKS["linkability"], len(targets))
    aux = tuple(list(columns) for columns in link)
    evaluator = LinkabilityEvaluator(targets, release, aux, attacks, n_neighbors=NEIGHBOURS, control=control)
    return _counts(evaluator.evaluate().results(), attacks)


def inference(
    targets: pd.DataFrame, control: pd.DataFrame, release: pd.DataFrame, secret: str, numeric: bool, seed: int
) -> Counts:
    """The secret is read from the released row that is nearest in all other columns; numbers count within 5%."""
    attacks = min(ATTACKS["inference"], len(targets))
    aux = [name for name in targets.columns if name != secret]
    evaluator = InferenceEvaluator(targets, release, aux, secret, numeric, attacks, control)
    counts = _counts(evaluator.evaluate().results(), attacks)
    guess = AnyRow(release[secret], seed)
    naive = InferenceEvaluator(targets, release, aux, secret, numeric, attacks, inference_model=guess)
    return counts | {"naive": int(naive.evaluate().results().n_success)}


class AnyRow:
    """Guesses the value of a random released row, whatever is known of the target."""

    def __init__(self, values: pd.Series[Any], seed: int) -> None:
        self.values, self.rng = values, np.random.default_rng(seed)

    def predict(self, targets: pd.DataFrame) -> pd.Series[Any]:
        return self.values.sample(len(targets), replace=True, random_state=self.rng).set_axis(targets.index)


def _counts(results: Any, attacks: int) -> Counts:
    found = {"success": results.n_success, "control": results.n_control, "naive": results.n_baseline}
    return {"attacks": attacks, **{name: int(count) for name, count in found.items()}}


def pooled(runs: list[Counts]) -> dict[str, Any]:
    """The runs added up, and what anonymeter says of the sums: the risk with its 95% interval, and its warnings."""
    total = {name: sum(run[name] for run in runs) for name in runs[0]}
    found: dict[str, Any] = {**total, "runs": runs}
    if total["attacks"] == 0:
        return found
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        results = EvaluationResults(total["attacks"], total["success"], total["naive"], total["control"])
    risk = results.risk()
    texts = [str(warning.message) for warning in said]
    return found | {
        "risk": risk.value,
        "interval": risk.ci,
        "weaker than naive": _any_has("as good or worse as baseline", texts),
        "control always succeeds": _any_has("control attack is 100%", texts),
    }


def _any_has(part: str, texts: Iterable[str]) -> bool:
    return any(part in text for text in texts)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
