"""Our own attacks on releases of real tables: what each gains over a control group, and what ε allows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from benchmarks.audit.setting import Setting
from benchmarks.measure import say
from benchmarks.quality.tables import TABLES
from dipriv.auditing.attacks.run import run_attacks
from dipriv.auditing.attacks.setup import set_up
from dipriv.auditing.procedure import Privatize
from dipriv.auditing.results import AttackResult

EPSILON, CONFIDENCE, SEED = 1.0, 0.95, 1
WAYS: dict[str, dict[str, Any]] = {
    "dipriv": {},
    "dipriv, all of ε for the rows": {"holdout": 0.25},
    "dipriv hold-out (the paper's)": {"reference": "holdout", "schema": None},
}


def run(setting: Setting) -> dict[str, Any]:
    """Attack each way to release each table."""
    found: dict[str, Any] = {}
    for name, schema in {"bank": {}, "adult": dict(TABLES["adult"].ranges)}.items():
        frame = TABLES[name].frame[: setting.rows]
        table = pa.Table.from_pandas(frame, preserve_index=False)
        found[name] = {"rows": table.num_rows, "columns": table.num_columns, "ways": {}}
        for way, options in WAYS.items():
            release = Privatize(EPSILON, {"schema": schema, **options})
            setup = set_up(table, release, SEED)
            attacks = run_attacks(setup, EPSILON, delta=release.delta(table), confidence=CONFIDENCE, seed=SEED)
            found[name]["ways"][way] = [as_record(attack) for attack in attacks]
            say(f"attacks: {name}, {way}: {len(attacks)}")
    return {"epsilon": EPSILON, "confidence": CONFIDENCE, "seeds": [SEED], "tables": found}


def as_record(attack: AttackResult) -> dict[str, Any]:
    """An attack as plain data."""
    rates = {"people": attack.targets.value, "control": attack.control.value}
    return {**attack.to_dict(), **rates}
