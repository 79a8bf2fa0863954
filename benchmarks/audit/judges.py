"""Judges that we did not write: anonymeter and SDMetrics on releases by dipriv, by peers, and on a copy.

Three programs, each in an environment that can hold what it needs, hand each other files in a private folder that is
removed at the end: it holds real rows. What they leave on record are counts and scores.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.audit.setting import Setting
from benchmarks.measure import say

ROOT = Path(__file__).parents[2]
EPSILON_OF_ALL = 1.0
JUDGES = {"anonymeter": "anonymeter", "sdmetrics": "peers"}
"""Each judge's environment, a folder of .venv; `make audit` sets them up."""


def run(setting: Setting) -> dict[str, Any]:
    """Releases, then the verdicts of the judges that are installed."""
    with tempfile.TemporaryDirectory(prefix="dipriv-audit-") as name:
        folder = Path(name)
        rows = [] if setting.rows is None else ["--rows", str(setting.rows)]
        step(environment("peers") or Path(sys.executable), "cases", folder, "--seeds", str(setting.seeds), *rows)
        told = _read(folder / "cases.json")
        verdicts = {judge: ask(judge, folder) for judge in JUDGES}
    return {
        "epsilon": EPSILON_OF_ALL,
        "seeds": list(range(setting.seeds)),
        "tables": told["tables"],
        "methods": methods(told["cases"]),
        "peers left out for lack of": told["peers left out for lack of"],
        "versions": {
            "releases": told["versions"],
            **{judge: found.pop("versions", {}) for judge, found in verdicts.items()},
        },
        **verdicts,
    }


def ask(judge: str, folder: Path) -> dict[str, Any]:
    """What a judge found, or why it was not asked."""
    python = environment(JUDGES[judge])
    if python is None:
        say(f"{judge} is left out: its environment .venv/{JUDGES[judge]} is not installed.")
        return {"left out": f"its environment .venv/{JUDGES[judge]} is not installed"}
    try:
        step(python, f"by_{judge}", folder)
    except subprocess.CalledProcessError:  # the other judge's work of an hour is kept
        say(f"{judge} is left out: it failed.")
        return {"left out": "it failed"}
    return _read(folder / f"{judge}.json")


def environment(name: str) -> Path | None:
    """The Python of an environment that `make` has finished setting up."""
    home = ROOT / ".venv" / name
    return home / "bin" / "python" if (home / ".installed").exists() else None


def step(python: Path, module: str, folder: Path, *options: str) -> None:
    """Run a program of this package; its own words go to the terminal."""
    subprocess.run([python, "-m", f"benchmarks.audit.{module}", folder, *options], cwd=ROOT, check=True)


def methods(cases: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """{table: {label: promise and number of runs}}, in the order of the cases."""
    found: dict[str, dict[str, Any]] = {}
    for case in cases:
        method = found.setdefault(case["table"], {}).setdefault(case["label"], {"promise": case["promise"], "runs": 0})
        method["runs"] += 1
    return found


def _read(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found
