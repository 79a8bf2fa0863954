"""Run random cases against every reader of dipriv, and put on record what became of them."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

from fuzz import seeds, targets
from fuzz.children import fuzz
from fuzz.coverage import guided

SHARES = {
    "csv": 0.167,
    "csv in a dialect": 0.06,
    "excel": 0.01,
    "stata": 0.001,
    "spss": 0.001,
    "xport": 0.001,
    "jsonl": 0.01,
    "orc": 0.01,
    "parquet": 0.06,
    "parquet folder": 0.02,
    "arrow": 0.12,
    "schema in TOML": 0.16,
    "schema in JSON": 0.15,
    "exported reference": 0.10,
    "note": 0.095,
    "saved split": 0.02,
    "ledger": 0.01,
    "privatize": 0.005,
}
"""The part of all cases that each target gets: slow ones get few."""
PACKAGES = ("dipriv", "numpy", "scipy", "pyarrow", "sqlalchemy", "numba")


def main() -> None:
    """Parse, run, record."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000, help="in all, over all targets")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--targets", nargs="*", default=list(targets.NAMES), choices=targets.NAMES, metavar="TARGET")
    parser.add_argument(
        "--again", type=int, metavar="CASE", help="run one case of one target again, and show its error"
    )
    parser.add_argument("--coverage", type=int, metavar="RUNS", help="so many runs a target, guided by atheris")
    parser.add_argument("--out", type=Path, help="where to write the summary, as JSON")
    asked = parser.parse_args()
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        seeds.write(Path(folder))
        if asked.again is not None:
            case = Random(f"{asked.seed}/{asked.targets[0]}/{asked.again}")
            target = targets.make(asked.targets[0], Path(folder))
            target.run(target.case(case))
            return
        parts = sum(SHARES[name] for name in asked.targets)
        found = {}
        for name in asked.targets:
            if asked.coverage is not None:
                found[name] = show(name, guided(Path(folder), name, asked.coverage, asked.seed))
            else:
                cases = max(1, round(asked.cases * SHARES[name] / parts))
                found[name] = show(name, fuzz(Path(folder), name, asked.seed, cases))
    faults = sum(one["uncaught"] + one["crashes"] for one in found.values())
    record = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "seed": asked.seed,
        "guided by coverage": asked.coverage is not None,
        "cases": sum(one["cases"] for one in found.values()),
        "uncaught": faults,
        "minutes": sum(one["seconds"] for one in found.values()) / 60,
        "versions": {"Python": platform.python_version(), **{name: _version(name) for name in PACKAGES}},
        "targets": found,
    }
    if asked.out is not None:
        asked.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(
        f"{record['cases']:,} cases in {record['minutes']:.1f} minutes, {faults} of them neither accepted nor refused"
    )
    sys.exit(1 if faults else 0)


def show(name: str, found: dict[str, Any]) -> dict[str, Any]:
    """Print what became of a target's cases."""
    print(f"{name}: " + ", ".join(f"{key} {value}" for key, value in found.items() if key != "told"), flush=True)
    for one in found["told"]:
        print(f"  case {one['case']}: {one['what']}", flush=True)
    return found


def _version(name: str) -> str:
    return importlib.metadata.version(name)


if __name__ == "__main__":
    main()
