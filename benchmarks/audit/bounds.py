"""Lower bounds on ε: both kernels on standard columns, the paper's on rows, an audit 200 times, and learning."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from benchmarks.audit.setting import Setting
from benchmarks.measure import say
from dipriv.auditing.mechanism import audit_rows
from dipriv.auditing.primitives import audit_primitives
from research.audit_standard import KERNELS, measure, most_by_chance, one_column, several_columns

EPSILONS = (0.5, 1.0, 2.0)
DELTA = 1e-9
SEED, CONFIDENCE = 1, 0.95
REPEATED, STRICT, REPEATED_DRAWS = 200, 0.999, 200_000


def run(setting: Setting) -> dict[str, Any]:
    """All of it; fewer draws and audits for trials."""
    trial = setting.rows is not None
    draws, audits = (50_000, 5) if trial else (2_000_000, REPEATED)
    found: dict[str, Any] = {"confidence": CONFIDENCE, "draws": draws, "seeds": [SEED]}
    paper = {"laplace": KERNELS["laplace"]}
    for name, made, kernels in (("one column", one_column(), KERNELS), ("three columns", several_columns(3), paper)):
        found[name] = []
        for one in measure(made, EPSILONS, kernels=kernels, draws=draws, confidence=CONFIDENCE, seed=SEED):
            found[name].append(asdict(one))
            say(f"bounds: {one.kind}, {one.kernel}, {one.epsilon:g}: {one.bound:.3f}")
    found["repeated"] = [_repeated(kernel, epsilon, audits) for kernel in KERNELS for epsilon in EPSILONS]
    found["measurements"], found["exact measurements"] = [], []
    for epsilon in EPSILONS:
        measured, exact = audit_primitives(epsilon, DELTA, draws=draws, confidence=CONFIDENCE, seed=SEED)
        found["measurements"] += [bound.to_dict() for bound in measured]
        found["exact measurements"] += [one.to_dict() for one in exact]
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
