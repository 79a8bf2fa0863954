"""A record of benchmarks beside an earlier one: `python -m benchmarks.compare EARLIER.json [NOW.json]`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from research.pages import DOCS


def main() -> None:
    """Print each number that both have."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    parser.add_argument("earlier", type=Path)
    parser.add_argument("now", type=Path, nargs="?", default=DOCS / "benchmarks.json")
    asked = parser.parse_args()
    now, earlier = (json.loads(path.read_text(encoding="utf-8")) for path in (asked.now, asked.earlier))
    for line in compared(now, earlier):
        print(line)


def compared(now: Mapping[str, Any], earlier: Mapping[str, Any]) -> Iterator[str]:
    """Each number that both records have, and how many times the earlier one it is.

    >>> list(compared({"3 x 4": {"seconds": 2.0}, "new": 1.0}, {"3 x 4": {"seconds": 8.0}}))
    ['3 x 4, seconds: 2, 0.25 times 8']
    """
    for name in (name for name in now if name in earlier):
        if isinstance(now[name], Mapping) and isinstance(earlier[name], Mapping):
            yield from (f"{name}, {line}" for line in compared(now[name], earlier[name]))
        elif isinstance(now[name], float | int) and isinstance(earlier[name], float | int) and earlier[name]:
            yield f"{name}: {now[name]:.4g}, {now[name] / earlier[name]:.2f} times {earlier[name]:.4g}"


if __name__ == "__main__":
    main()
