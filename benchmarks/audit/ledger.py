"""Whether a ledger recognizes the bank table after each change by which its budget could be evaded."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from benchmarks.audit.setting import Setting
from benchmarks.quality.tables import TABLES
from dipriv.auditing.recognition import audit_recognition

SEED = 0


def run(setting: Setting) -> dict[str, Any]:
    """All ways, those that are known to be open included."""
    table = pa.Table.from_pandas(TABLES["bank"].frame[: setting.rows], preserve_index=False)
    checks = audit_recognition(table, seed=SEED)
    return {"table": "bank", "seeds": [SEED], "checks": [check.to_dict() for check in checks]}
