"""Run random cases against every reader of dipriv, and put on record what became of them."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import signal
import struct
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

from fuzz import seeds, targets
from fuzz.worker import PROGRESS, progress

SHARES = {
    "csv": 0.26,
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
PER_CHILD = {"ledger": 2000, "privatize": 500, "exported reference": 10_000}
MOST_PER_CHILD = 40_000
STUCK = 300.0
"""Seconds without a new case after which a child is ended: it hangs in compiled code, where no alarm reaches it."""
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
        if asked.coverage is not None:
            from fuzz.coverage import guided

            found = {name: guided(Path(folder), name, asked.coverage, asked.seed) for name in asked.targets}
        else:
            parts = sum(SHARES[name] for name in asked.targets)
            found = {
                name: fuzz(Path(folder), name, asked.seed, max(1, round(asked.cases * SHARES[name] / parts)))
                for name in asked.targets
            }
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


def fuzz(folder: Path, name: str, seed: int, cases: int) -> dict[str, Any]:
    """All cases of a target, child after child; a child that dies costs the case that it died of."""
    found: dict[str, Any] = {
        "cases": 0, "accepted": 0, "refused": 0, "uncaught": 0, "crashes": 0, "slowest_ms": 0.0, "peak_mb": 0.0,
        "grown_mb": 0.0, "seconds": 0.0, "told": [],
    }  # fmt: skip
    start, first = time.perf_counter(), 0
    while first < cases:
        count = min(PER_CHILD.get(name, MOST_PER_CHILD), cases - first)
        part, died = child(folder, name, seed, first, count)
        if part is None:
            at = struct.unpack("<q", (folder / PROGRESS).read_bytes())[0]
            found["crashes"] += 1
            found["cases"] += at + 1 - first  # those before it were neither counted as accepted nor as refused
            found["told"].append({"case": at, "what": died})
            first = at + 1
            continue
        for key in ("cases", "accepted", "refused", "uncaught", "told"):
            found[key] += part[key]
        for key, value in (
            ("slowest_ms", part["slowest"] * 1000), ("peak_mb", part["peak_mb"]), ("grown_mb", part["grown_mb"])
        ):  # fmt: skip
            found[key] = round(max(found[key], value), 1)
        first += count
    found["seconds"] = round(time.perf_counter() - start, 1)
    print(f"{name}: " + ", ".join(f"{key} {value}" for key, value in found.items() if key != "told"), flush=True)
    for one in found["told"]:
        print(f"  case {one['case']}: {one['what']}", flush=True)
    return found


def child(folder: Path, name: str, seed: int, first: int, count: int) -> tuple[dict[str, Any] | None, str]:
    """What a child found, or what it died of."""
    command = [sys.executable, "-m", "fuzz.worker", str(folder), name, str(seed), str(first), str(count)]
    with progress(folder) as place:
        place[:] = struct.pack("<q", first)
    with tempfile.TemporaryFile() as out, subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL) as running:
        last, since = first, time.monotonic()
        while running.poll() is None:
            time.sleep(0.1)
            at = struct.unpack("<q", (folder / PROGRESS).read_bytes())[0]
            if at != last:
                last, since = at, time.monotonic()
            elif time.monotonic() - since > STUCK:
                running.kill()
                running.wait()
                return None, f"no end after {STUCK:g} seconds"
        out.seek(0)
        told = out.read()
    if running.returncode:
        name_of = signal.Signals(-running.returncode).name if running.returncode < 0 else f"exit {running.returncode}"
        return None, f"the process ended: {name_of}"
    result: dict[str, Any] = json.loads(told)
    return result, ""


def _version(name: str) -> str:
    return importlib.metadata.version(name)


if __name__ == "__main__":
    main()
