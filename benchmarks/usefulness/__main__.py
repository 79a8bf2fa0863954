"""Measure the parts asked for, one after another, each put on record as soon as it is done; then write the page."""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
import traceback
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.measure import cores
from benchmarks.quality.contest import say, warm_up
from benchmarks.usefulness import coverage, plan, verdict
from dipriv.errors import PrivacyWarning
from research import pages
from research.files import whole_file
from research.pages import DOCS

PARTS: dict[str, Callable[[int | None], dict[str, Any]]] = {
    "plan": plan.run,
    "verdict": verdict.run,
    "coverage": coverage.run,
}
"""Each takes the number of seeds, None for its own, and returns what is on record."""


def main() -> None:
    """Parse, measure, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.usefulness", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all if none is named, or: page")
    parser.add_argument("--seeds", type=int, help="how many seeds, for trials")
    parser.add_argument("--out", type=Path, default=DOCS, help="folder to write to (default: docs)")
    asked = parser.parse_args()
    if unknown := [name for name in asked.parts if name not in {*PARTS, "page"}]:
        parser.error(f"no part {unknown[0]}; there are {', '.join(PARTS)} and page")
    if asked.out == DOCS and asked.seeds is not None:
        parser.error("a trial does not belong on record: name another folder with --out")
    warnings.simplefilter("ignore", PrivacyWarning)  # every release here has a seed
    warm_up()
    (asked.out / "usefulness").mkdir(parents=True, exist_ok=True)
    failed = [name for name in asked.parts or PARTS if name != "page" and not measure(name, asked.seeds, asked.out)]
    pages.write("usefulness", asked.out)
    if failed:
        raise SystemExit(f"not measured: {', '.join(failed)}")


def measure(name: str, seeds: int | None, out: Path) -> bool:
    """One part: run it and put it on record; a part that fails leaves the record as it was."""
    start = time.perf_counter()
    try:
        found = PARTS[name](seeds)
    except Exception:
        say(f"{name}: {traceback.format_exc()}")
        return False
    found |= {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "minutes": (time.perf_counter() - start) / 60,
        "machine": {
            "cores": cores(),
            "memory in GB": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9,
            "kind": platform.machine(),
        },
    }
    with whole_file(out / "usefulness" / f"{name}.json") as written:
        written.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    say(f"{name}: on record after {found['minutes']:.1f} minutes")
    return True


if __name__ == "__main__":
    main()
