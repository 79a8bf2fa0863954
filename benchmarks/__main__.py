"""Run benchmarks and write docs/benchmarks.md, docs/benchmarks.json and docs/images/scaling.svg.

All parts, or those that are named: the others stay on record as they are. With `--against earlier.json` each number is
compared with that of an earlier record.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import columns, command, default, files, kernels, noise, scaling
from benchmarks.measure import cores
from research import pages
from research.pages import DOCS

PARTS = {
    "default": default.run,
    "command line": command.run,
    "noise": noise.run,
    "kernels": kernels.run,
    "continuous": columns.continuous,
    "discrete": columns.discrete,
    "scaling": scaling.run,
    "parquet": files.run,
}


def main() -> None:
    """Measure, then write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure speed, and write the page.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all if none is named")
    parser.add_argument("--against", type=Path, help="an earlier benchmarks.json to compare with")
    asked = parser.parse_args()
    if unknown := [name for name in asked.parts if name not in PARTS]:
        parser.error(f"no part {unknown[0]}; there are {', '.join(PARTS)}")
    record = DOCS / "benchmarks.json"
    results: dict[str, Any] = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    earlier = None if asked.against is None else json.loads(asked.against.read_text(encoding="utf-8"))
    made = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": f"{cores()} cores, {platform.machine()}, Python {platform.python_version()}",
    }
    if not asked.parts:
        results |= made
    for name in asked.parts or PARTS:
        print(f"{name} ...", flush=True)
        results[name] = made | PARTS[name]()
        print(json.dumps(results[name], indent=1), flush=True)
        record.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        for line in compared(results[name], {} if earlier is None else earlier.get(name, {})):
            print(line, flush=True)
    scaling.draw(results["scaling"], DOCS / "images" / "scaling.svg")
    pages.write("benchmarks")


def compared(now: Mapping[str, Any], earlier: Mapping[str, Any]) -> Iterator[str]:
    """Each number that both records have, and how many times the earlier one it is.

    >>> list(compared({"3 x 4": {"seconds": 2.0}, "new": 1.0}, {"3 x 4": {"seconds": 8.0}}))
    ['3 x 4, seconds: 2, 0.25 times 8']
    """
    for name in (name for name in now if name in earlier):
        if isinstance(now[name], Mapping):
            yield from (f"{name}, {line}" for line in compared(now[name], earlier[name]))
        elif isinstance(now[name], float | int) and earlier[name]:
            yield f"{name}: {now[name]:.4g}, {now[name] / earlier[name]:.2f} times {earlier[name]:.4g}"


if __name__ == "__main__":
    main()
