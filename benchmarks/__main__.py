"""Run all benchmarks and write docs/benchmarks.md, docs/benchmarks.json and docs/images/scaling.svg."""

from __future__ import annotations

import json
import platform
from datetime import UTC, datetime
from typing import Any

from benchmarks import columns, command, files, kernels, noise, scaling
from benchmarks.measure import cores
from research import pages
from research.pages import DOCS


def main() -> None:
    """Measure, then write."""
    results: dict[str, Any] = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": f"{cores()} cores, {platform.machine()}, Python {platform.python_version()}",
    }
    for name, run in {
        "noise": noise.run,
        "kernels": kernels.run,
        "continuous": columns.continuous,
        "discrete": columns.discrete,
        "scaling": scaling.run,
        "parquet": files.run,
        "command line": command.run,
    }.items():
        print(f"{name} ...", flush=True)
        results[name] = run()
        print(json.dumps(results[name], indent=1), flush=True)
    scaling.draw(results["scaling"], DOCS / "images" / "scaling.svg")
    (DOCS / "benchmarks.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    pages.write("benchmarks")


if __name__ == "__main__":
    main()
