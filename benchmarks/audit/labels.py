"""The label attack on neighbouring tables: one person has a label that nobody else has. In how many releases is it?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.audit.setting import Setting
from benchmarks.measure import say
from dipriv.auditing.intervals import at_least
from dipriv.auditing.labels import plant, shows
from dipriv.auditing.procedure import Privatize

EPSILON, PAIRS, ROWS, CONFIDENCE = 0.1, 40, 20_000, 0.95
POLICIES = ("private", "public")
NAMES = ("job", "town")


def run(setting: Setting) -> dict[str, Any]:
    """Each pair of tables under each policy for labels; a few pairs for trials."""
    pairs, rows = (PAIRS, ROWS) if setting.rows is None else (4, setting.rows)
    found = [_attack(policy, pairs, rows) for policy in POLICIES]
    return {"epsilon": EPSILON, "rows": rows, "confidence": CONFIDENCE, "seeds": [0], "policies": found}


def _attack(policy: str, pairs: int, rows: int) -> dict[str, Any]:
    """How many releases of tables with the label, and of their neighbours without it, show the label."""
    rng = np.random.default_rng(0)
    release = Privatize(EPSILON, {"labels": policy})
    hits, published = {"with": 0, "without": 0}, []
    for _ in range(pairs):
        table = people(rows, rng)
        neighbour, labels = plant(table, NAMES, np.arange(rows) == rng.integers(rows))
        for which, rows_of in (("with", neighbour), ("without", table)):
            released = release(rows_of, int(rng.integers(2**63)))
            hits[which] += shows(released, labels)
            published.append(len(pc.unique(released.data.column("job"))))
    say(f"labels: {policy}: {hits['with']} of {pairs}, {hits['without']} without the person")
    return {
        "policy": policy,
        "pairs": pairs,
        "delta": release.delta(table),
        **hits,
        "lower": at_least(hits["with"], pairs, CONFIDENCE),
        "jobs": float(np.mean(published)),
    }


def people(rows: int, rng: np.random.Generator) -> pa.Table:
    """Jobs of very different frequencies, towns, and numbers."""
    jobs, towns = [f"job {number}" for number in range(30)], list("ABCDEF")
    often = 1 / np.arange(1, len(jobs) + 1)
    job = rng.choice(len(jobs), rows, p=often / often.sum())
    columns = {
        "job": np.array(jobs)[job],
        "town": rng.choice(towns, rows),
        "age": rng.integers(18, 90, rows),
        "income": np.round(rng.lognormal(9 + 0.02 * job, 1), 2),
    }
    return pa.table(columns)
