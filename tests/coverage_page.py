"""Write the page of test coverage from coverage.py's JSON: in total and per package.

python -m tests.coverage_page .coverage.json docs/coverage.md
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path, PurePath
from typing import Any

COUNTS = ("num_statements", "covered_lines", "num_branches", "covered_branches")

HEAD = """# Coverage

Measured on {date} with coverage.py {version} over both test lanes (`make coverage`). Lines and branches of Python are
counted; the bodies of compiled loops are not, because coverage.py does not see them run. This is a record, not a goal.

| package | statements | run | branches | run |
|---|---:|---:|---:|---:|
"""


def main(source: Path, page: Path) -> None:
    """Turn a JSON report into the page."""
    found = json.loads(source.read_text(encoding="utf-8"))
    rows = by_package(found["files"])
    rows["**in total**"] = {count: found["totals"][count] for count in COUNTS}
    head = HEAD.format(date=found["meta"]["timestamp"][:10], version=found["meta"]["version"])
    page.write_text(head + "".join(map(table_row, rows, rows.values())), encoding="utf-8")


def by_package(files: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Add up the counts of the modules in each package; modules beside the packages are one row."""
    rows: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(COUNTS, 0))
    for file, facts in files.items():
        parts = PurePath(file).parts
        if "dipriv" not in parts:  # a module that a test puts into the package
            continue
        below = parts[len(parts) - 1 - parts[::-1].index("dipriv") + 1 :]
        name = f"`dipriv.{below[0]}`" if len(below) > 1 else "`dipriv`, modules"
        for count in COUNTS:
            rows[name][count] += facts["summary"][count]
    return dict(sorted(rows.items()))


def table_row(name: str, counts: dict[str, int]) -> str:
    """Return one line of the table."""
    lines, run, branches, taken = (counts[count] for count in COUNTS)
    return f"| {name} | {lines:,} | {share(run, lines)} | {branches:,} | {share(taken, branches)} |\n"


def share(part: int, whole: int) -> str:
    """Return a percentage, rounded down; a dash if there is nothing to count."""
    return f"{1000 * part // whole / 10:.1f}%" if whole else "-"


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
