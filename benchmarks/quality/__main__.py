"""Measure the parts asked for, one after another, each put on record as soon as it is done; then write the page."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import time
import traceback
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.measure import cores
from benchmarks.quality import edges, figures, movielens, rivals, rows, salary, settings, shares, verbatim
from benchmarks.quality.contest import Setting, say, warm_up
from benchmarks.quality.tables import TABLES
from benchmarks.quality.verdict import verdict
from dipriv.errors import PrivacyWarning
from research import pages
from research.files import whole_file
from research.pages import DOCS

PEERS = "peers"
PARTS: dict[str, Callable[[Setting], dict[str, Any]]] = {
    **{name: partial(settings.run, table) for name, table in TABLES.items()},
    "rows": rows.run,
    "salary": salary.run,
    "movielens": movielens.run,
    "verbatim": verbatim.run,
    "edges": edges.run,
    "shares": shares.run,
    PEERS: rivals.run,
}
"""The peers are measured only if they are named: what they make does not depend on dipriv."""
PACKAGES = ("dipriv", "numpy", "pandas", "statsmodels")


def main() -> None:
    """Parse, measure, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=__doc__)
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all but {PEERS} if none is named"
    )
    parser.add_argument("--runs", type=int, help="the most runs of each method, for trials")
    parser.add_argument("--out", type=Path, default=DOCS, help="folder to write to (default: docs)")
    asked = parser.parse_args()
    if unknown := [name for name in asked.parts if name not in PARTS]:
        parser.error(f"no part {unknown[0]}; there are {', '.join(PARTS)}")
    setting = Setting(asked.runs)
    if asked.out == DOCS and setting != Setting():
        parser.error("a trial does not belong on record: name another folder with --out")
    warnings.simplefilter("ignore", PrivacyWarning)  # every release here has a seed
    warm_up()
    parts = asked.parts or [name for name in PARTS if name != PEERS]
    failed = [name for name in parts if not measure(name, setting, asked.out)]
    if failed:
        raise SystemExit(f"not measured: {', '.join(failed)}")


def measure(name: str, setting: Setting, out: Path) -> bool:
    """One part: run, merge into the record, write the page and the figures; a part that fails leaves all as it was."""
    start = time.perf_counter()
    try:
        result = PARTS[name](setting)
    except Exception:
        say(f"{name}: {traceback.format_exc()}")
        return False
    result = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "minutes": (time.perf_counter() - start) / 60,
        "machine": {"cores": cores(), "memory in GB": _memory(), "kind": platform.machine()},
        "versions": {"Python": platform.python_version(), **_versions()},
        **result,
    }
    file = out / "private-reference.json"
    record = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    record = {part: (record | {name: result})[part] for part in PARTS if part in record or part == name}
    record["verdict"] = verdict(record)
    out.mkdir(parents=True, exist_ok=True)
    with whole_file(file) as written:
        written.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    pages.write("private-reference", out)
    figures.draw(record, out / "images")
    say(f"{name}: on record after {result['minutes']:.1f} minutes")
    return True


def _memory() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


if __name__ == "__main__":
    main()
