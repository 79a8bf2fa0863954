"""SDMetrics' quality report and privacy metrics on every case.

`python -m benchmarks.audit.by_sdmetrics FOLDER` reads what `cases` wrote and leaves sdmetrics.json. Metrics that
compare a release with real rows are computed twice, against the targets and against as many control rows: a release
that knows nothing of single people scores the same on both. Labels are given as numbers, which changes no score and
saves hours. DCROverfittingProtection measures distances in ranges of each real table by itself, so the one with the
more extreme value seems nearer to everything; `on_one_scale` avoids that.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sdmetrics.reports import QualityReport
from sdmetrics.single_table import (
    DCRBaselineProtection,
    DCROverfittingProtection,
    DisclosureProtection,
    NewRowSynthesis,
)

from benchmarks.audit.versions import versions
from benchmarks.measure import say

SAMPLE, PEOPLE, LOOKED_UP = 150, 2000, 8000
"""So many released rows are looked for among all real rows; so many people are looked up in so many released rows."""
PACKAGES = ("sdmetrics", "numpy", "pandas", "scikit-learn")


def main(folder: Path) -> None:
    """Score, collect by seed, write."""
    warnings.simplefilter("ignore")
    told = json.loads((folder / "cases.json").read_text(encoding="utf-8"))
    found: dict[str, dict[str, dict[str, list[float]]]] = {}
    for case in told["cases"]:
        start = time.perf_counter()
        facts = told["tables"][case["table"]]
        targets, control, release = (pd.read_parquet(folder / case[what]) for what in ("targets", "control", "release"))
        control = control.iloc[: len(targets)]
        scores = judge(targets, control, release, facts, case["seed"])
        if case["seed"] == 0:
            scores |= judge_slowly(targets, control, release, facts)
        kept = found.setdefault(case["table"], {}).setdefault(case["label"], {})
        for name, score in scores.items():
            kept.setdefault(name, []).append(float(score))
        say(f"SDMetrics: {case['table']}, seed {case['seed']}: {case['label']}, {time.perf_counter() - start:.0f} s")
    record = {
        "found": found,
        "settings": {"sample": SAMPLE, "people": PEOPLE, "looked up": LOOKED_UP},
        "versions": versions(PACKAGES),
    }
    (folder / "sdmetrics.json").write_text(json.dumps(record, indent=1), encoding="utf-8")


def judge(
    targets: pd.DataFrame, control: pd.DataFrame, release: pd.DataFrame, facts: dict[str, Any], seed: int
) -> dict[str, float]:
    """The scores of one case that are taken for every seed."""
    targets, control, release = coded(targets, control, release)
    metadata = described(targets, facts)
    drawn = some(release, SAMPLE, seed)
    new = [NewRowSynthesis.compute(real, drawn.copy(), metadata["tables"]["table"]) for real in (targets, control)]
    wide = on_one_scale(targets, control, facts["numeric"])
    near = DCROverfittingProtection.compute_breakdown(wide[0], drawn, wide[1], metadata, "table")
    swapped = DCROverfittingProtection.compute_breakdown(wide[1], drawn, wide[0], metadata, "table")
    return {
        **quality(targets, release, metadata),
        "new rows, targets": new[0],
        "new rows, control": new[1],
        "overfitting protection": near["score"],
        "nearer to targets": near["synthetic_data_percentages"]["closer_to_training"],
        "nearer to control": swapped["synthetic_data_percentages"]["closer_to_training"],
    }


def judge_slowly(
    targets: pd.DataFrame, control: pd.DataFrame, release: pd.DataFrame, facts: dict[str, Any]
) -> dict[str, float]:
    """The scores of one case that take minutes, and are taken once."""
    secrets = {
        f"disclosure protection, {who}": disclosure(some(people, PEOPLE, 0), some(release, LOOKED_UP, 0), facts)
        for who, people in {"targets": targets, "control": control}.items()
    }
    targets, release = coded(targets, release)
    drawn = some(release, SAMPLE, 0)
    baseline = DCRBaselineProtection.compute(targets, drawn, described(targets, facts), "table")
    return {"baseline protection": baseline, **secrets}


def described(table: pd.DataFrame, facts: dict[str, Any]) -> dict[str, Any]:
    """What SDMetrics is told of the columns."""
    kinds = {name: {"sdtype": "numerical" if name in facts["numeric"] else "categorical"} for name in table}
    return {"tables": {"table": {"columns": kinds}}}


def some(table: pd.DataFrame, rows: int, seed: int) -> pd.DataFrame:
    """So many rows at random, or all."""
    return table.sample(min(rows, len(table)), random_state=seed)


def quality(targets: pd.DataFrame, release: pd.DataFrame, metadata: dict[str, Any]) -> dict[str, float]:
    """The report as it comes: 1 is perfect."""
    report = QualityReport()
    report.generate({"table": targets}, {"table": release}, metadata, verbose=False)
    scores = report.get_properties().set_index("Property")["Score"]
    return {"column shapes": scores["Column Shapes"], "pair trends": scores["Column Pair Trends"]}


def disclosure(people: pd.DataFrame, release: pd.DataFrame, facts: dict[str, Any]) -> float:
    """How badly the sensitive column is guessed from the known ones, by looking the known ones up in the release."""
    columns = [*facts["known"], facts["sensitive"]]
    numeric = [name for name in columns if name in facts["numeric"]]
    text = {name: str for name in columns if name not in numeric}
    tables = (table[columns].astype(text) for table in (people, release))
    known, sensitive = list(facts["known"]), [facts["sensitive"]]
    return float(DisclosureProtection.compute(*tables, known, sensitive, continuous_column_names=numeric))


def on_one_scale(targets: pd.DataFrame, control: pd.DataFrame, numeric: list[str]) -> list[pd.DataFrame]:
    """Both tables with the same two rows more, at the ends of all ranges and with labels that no row has."""
    both = pd.concat([targets, control])
    ends = pd.DataFrame({name: [both[name].min(), both[name].max()] if name in numeric else [-1, -1] for name in both})
    return [pd.concat([table, ends], ignore_index=True) for table in (targets, control)]


def coded(*tables: pd.DataFrame) -> list[pd.DataFrame]:
    """Labels as numbers, the same in all tables."""
    both = pd.concat(tables, ignore_index=True)
    for name in both.select_dtypes(exclude="number"):
        both[name] = pd.factorize(both[name], sort=True)[0]
    ends = np.cumsum([len(table) for table in tables])
    return [both.iloc[end - len(table) : end].reset_index(drop=True) for end, table in zip(ends, tables, strict=True)]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
