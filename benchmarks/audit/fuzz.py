"""Hostile files: `python -m benchmarks.fuzz` with a million cases."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.audit.setting import Setting

CASES = 1_000_000


def run(setting: Setting) -> dict[str, Any]:
    """As on record; a thousand for trials."""
    cases = CASES if setting.rows is None else 1000
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "fuzz.json"
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.fuzz", "--cases", str(cases), "--out", str(out)], check=False
        )
        if not out.exists():
            raise RuntimeError(f"no record of fuzzing; exit code {done.returncode}")
        found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return {**found, "seeds": [found["seed"]], "versions": {"fuzzed": found["versions"]}}
