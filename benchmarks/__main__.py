"""Run benchmarks and write docs/benchmarks.md, docs/benchmarks.json and docs/images/scaling.svg.

All parts, or those that are named: the others stay on record as they are. What users run comes first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks import columns, command, default, files, kernels, noise, peers, scaling, spark
from benchmarks.measure import Sizes
from benchmarks.parts import Found, asked, measure, write_record
from research import pages

PARTS: dict[str, Callable[[Sizes], Found]] = {
    "memory": default.in_memory,
    "command": command.run,
    "stream": default.stream,
    "spark": spark.run,
    "peers": peers.run,
    "noise": lambda _: noise.run(),
    "kernels": lambda _: kernels.run(),
    "continuous": lambda _: columns.continuous(),
    "discrete": lambda _: columns.discrete(),
    "scaling": lambda _: scaling.run(),
    "parquet": lambda _: files.run(),
}
ON_THE_PAGE = ("command", "noise", "kernels", "continuous", "discrete", "scaling", "parquet")
"""The parts without which there is no page, as after a trial."""


def main() -> None:
    """Measure, then write."""
    trials = {"divisor": "divide the numbers of rows of the first five parts by this"}
    measure(PARTS, asked("", PARTS, Sizes, trials), write)


def write(found: Mapping[str, Found], out: Path) -> None:
    """Put what was found on record beside the other parts, and write the page."""
    file = out / "benchmarks.json"
    record: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    record |= found
    write_record(file, {name: record[name] for name in PARTS if name in record})
    if "scaling" in record:
        (out / "images").mkdir(exist_ok=True)
        scaling.draw(record["scaling"], out / "images" / "scaling.svg")
    if all(name in record for name in ON_THE_PAGE):
        pages.write("benchmarks", out)


if __name__ == "__main__":
    main()
