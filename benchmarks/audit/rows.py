"""Lower bounds on ε for whole rows: both kernels on rows of several columns, and canaries through the whole path."""

from __future__ import annotations

from dataclasses import asdict
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import stats

from benchmarks.audit.bounds import CONFIDENCE, EPSILONS, SEED
from benchmarks.audit.setting import Setting
from benchmarks.measure import say
from dipriv.auditing.one_run import audit_release
from dipriv.auditing.procedure import Privatize
from dipriv.references import Known
from research.audit_standard import KERNELS, measure, several_columns

WIDTHS = (2, 10)
"""Beside three columns: with the optimal kernel alone, for a law that is known and for the default."""
CANARY_ROWS = 20_000


def run(setting: Setting) -> dict[str, Any]:
    """All of it; fewer draws and rows for trials."""
    trial = setting.rows is not None
    draws, rows = (50_000, CANARY_ROWS // 10) if trial else (2_000_000, CANARY_ROWS)
    asked: dict[str, Any] = {"epsilons": EPSILONS, "draws": draws, "confidence": CONFIDENCE, "seed": SEED}
    optimal = {"optimal": KERNELS["optimal"]}
    others = {
        kind: make
        for width in WIDTHS
        for kind, make in several_columns(width).items()
        if kind.endswith(("independent", "private network"))
    }
    measured = []
    for one in chain(measure(others, kernels=optimal, **asked), measure(several_columns(3), **asked)):
        measured.append(asdict(one))
        say(f"rows: {one.kind}, {one.kernel}, {one.epsilon:g}: {one.bound:.3f}")
    return {
        "confidence": CONFIDENCE,
        "draws": draws,
        "seeds": [SEED],
        "several columns": measured,
        "canaries": _canaries(rows),
    }


def _canaries(rows: int) -> list[dict[str, Any]]:
    """One run each of whole paths, with canary rows."""
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
                say(f"rows: {way}, {kernel}: {bound.what} {bound.lower:.3f}")
    return found
