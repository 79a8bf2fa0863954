"""Lower bounds on ε for whole rows of several columns, with the optimal kernel."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from benchmarks.audit.bounds import CONFIDENCE, EPSILONS, SEED
from benchmarks.audit.setting import Setting
from benchmarks.measure import say
from research.audit_standard import KERNELS, measure, several_columns

WIDTHS = {2: ("independent", "private network"), 10: ("independent", "private network"), 3: ("",)}
"""How many columns, and the references: all of them for three."""
DRAWS = 250_000
"""Of an audit: fewer than for one column, as rows of ten columns take long."""


def run(setting: Setting) -> dict[str, Any]:
    """Fewer draws for trials."""
    draws = DRAWS if setting.rows is None else 50_000
    made = {
        kind: make
        for width, references in WIDTHS.items()
        for kind, make in several_columns(width).items()
        if kind.endswith(references)
    }
    optimal, measured = {"optimal": KERNELS["optimal"]}, []
    for one in measure(made, EPSILONS, kernels=optimal, draws=draws, confidence=CONFIDENCE, seed=SEED):
        measured.append(asdict(one))
        say(f"rows: {one.kind}, {one.epsilon:g}: {one.bound:.3f}")
    return {"confidence": CONFIDENCE, "draws": draws, "seeds": [SEED], "several columns": measured}
