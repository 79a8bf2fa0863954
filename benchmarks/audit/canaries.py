"""Lower bounds on ε for whole releases: canaries through the whole path."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import stats

from benchmarks.audit.bounds import CONFIDENCE, SEED
from benchmarks.audit.setting import Setting
from benchmarks.measure import say
from dipriv.auditing.one_run import audit_release
from dipriv.auditing.procedure import Privatize
from dipriv.references import Known
from research.audit_standard import KERNELS

ROWS = 20_000


def run(setting: Setting) -> dict[str, Any]:
    """One run each of whole paths, with canary rows; fewer rows for trials."""
    rows = ROWS if setting.rows is None else ROWS // 10
    rng = np.random.default_rng(SEED)
    table = pa.table({"x": rng.normal(size=rows), "y": rng.choice(list("abcde"), rows)})
    one = table.select(["x"])
    ways: dict[str, tuple[pa.Table, dict[str, Any]]] = {
        "one column, known law": (one, {"reference": Known(stats.norm())}),
        "one column, private reference": (one, {}),
        "two columns, private reference": (table, {}),
        "two columns, private reference from a hold-out": (table, {"holdout": 0.25}),
    }
    found = []
    for way, (rows_of, options) in ways.items():
        for kernel in KERNELS:
            release = Privatize(1.0, {"kernel": kernel, **options})
            claim: dict[str, Any] = {"epsilon": 1.0, "delta": release.delta(rows_of)}
            for bound in audit_release(release, rows_of, **claim, confidence=CONFIDENCE, seed=SEED):
                found.append({"way": way, "kernel": kernel, **asdict(bound)})
                say(f"canaries: {way}, {kernel}: {bound.what} {bound.lower:.3f}")
    return {"confidence": CONFIDENCE, "rows": rows, "seeds": [SEED], "canaries": found}
