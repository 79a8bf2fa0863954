"""Lower bounds on ε: both kernels on standard columns and rows, an audit 200 times, canaries through the whole path."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import stats

from benchmarks.audit.setting import Setting
from benchmarks.measure import say
from dipriv.auditing.mechanism import audit_rows
from dipriv.auditing.one_run import audit_release
from dipriv.auditing.primitives import audit_primitives
from dipriv.auditing.procedure import Privatize
from dipriv.references import Known
from research.audit_standard import KERNELS, measure, most_by_chance, one_column, several_columns

EPSILONS = (0.5, 1.0, 2.0)
DELTA = 1e-9
SEED, CONFIDENCE = 1, 0.95
REPEATED, STRICT, REPEATED_DRAWS = 200, 0.999, 200_000
CANARY_ROWS = 20_000


def run(setting: Setting) -> dict[str, Any]:
    """All of it; fewer draws and audits for trials."""
    trial = setting.rows is not None
    draws, audits = (50_000, 5) if trial else (2_000_000, REPEATED)
    found: dict[str, Any] = {"confidence": CONFIDENCE, "draws": draws, "seeds": [SEED]}
    several = several_columns(2) | several_columns(3) | several_columns(10)
    for name, made in (("one column", one_column()), ("several columns", several)):
        found[name] = []
        for one in measure(made, EPSILONS, draws=draws, confidence=CONFIDENCE, seed=SEED):
            found[name].append(asdict(one))
            say(f"bounds: {one.kind}, {one.kernel}, {one.epsilon:g}: {one.bound:.3f}")
    found["repeated"] = [_repeated(kernel, epsilon, audits) for kernel in KERNELS for epsilon in EPSILONS]
    found["measurements"], found["exact measurements"] = [], []
    for epsilon in EPSILONS:
        measured, exact = audit_primitives(epsilon, DELTA, draws=draws, confidence=CONFIDENCE, seed=SEED)
        found["measurements"] += [bound.to_dict() for bound in measured]
        found["exact measurements"] += [one.to_dict() for one in exact]
    found["canaries"] = _canaries(CANARY_ROWS // 10 if trial else CANARY_ROWS)
    return found


def _repeated(kernel: str, epsilon: float, audits: int) -> dict[str, Any]:
    """The same audit again and again, each with draws of its own: how often is a true claim refuted?"""
    fitted = one_column()["continuous, uniform"](KERNELS[kernel], epsilon)
    lower = [
        audit_rows(fitted, epsilon, draws=REPEATED_DRAWS, confidence=STRICT, seed=1000 + number).lower
        for number in range(audits)
    ]
    above = sum(bound > epsilon for bound in lower)
    say(f"bounds: {kernel}, {epsilon:g}, {audits} audits, {above} above")
    return {
        "kernel": kernel,
        "epsilon": epsilon,
        "audits": audits,
        "confidence": STRICT,
        "draws": REPEATED_DRAWS,
        "above": above,
        "above by chance at most": most_by_chance(audits, STRICT),
        "lowest": min(lower),
        "mean": float(np.mean(lower)),
        "highest": max(lower),
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
                say(f"bounds: {way}, {kernel}: {bound.what} {bound.lower:.3f}")
    return found
