"""Hostile files: `python -m fuzz` with a million cases, then guided by coverage where atheris installs."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.audit.setting import Setting
from fuzz import targets

CASES, GUIDED_RUNS = 1_000_000, 20_000
READERS = tuple(name for name in targets.NAMES if name != "privatize")
"""What is fuzzed by coverage: whole releases take seconds there, because no loop is compiled."""


def run(setting: Setting) -> dict[str, Any]:
    """As on record; a thousand for trials."""
    trial = setting.rows is not None
    found = _fuzz("--cases", str(1000 if trial else CASES))
    versions = {"fuzzed": found["versions"]}
    guided: dict[str, Any] = {"left out": "atheris is not installed"}
    if importlib.util.find_spec("atheris") is not None:
        guided = _fuzz("--coverage", str(100 if trial else GUIDED_RUNS), "--targets", *READERS)
        versions |= {"guided": {"atheris": importlib.metadata.version("atheris")}}
    return {**found, "guided": guided, "seeds": [found["seed"]], "versions": versions}


def _fuzz(*options: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "fuzz.json"
        done = subprocess.run([sys.executable, "-m", "fuzz", *options, "--out", str(out)], check=False)
        if not out.exists():
            raise RuntimeError(f"no record of fuzzing; exit code {done.returncode}")
        found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return found
