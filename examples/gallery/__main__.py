"""Run the scripts of the gallery and record their pages: `python -m examples.gallery [NAME ...] [--out FOLDER]`."""

from __future__ import annotations

import argparse
import sys
import time
from datetime import date
from pathlib import Path

import dipriv
from benchmarks.measure import machine
from examples.gallery import NAMES, missing_data, page


def record(name: str, out: Path) -> None:
    """Run a script and write its page; without its data, say so and leave the page on record."""
    if reason := missing_data(name):
        print(f"{name}: not run. {reason}", file=sys.stderr)
        return
    start, size = time.perf_counter(), machine()
    made = (
        f"---\n\nMade by `python -m examples.gallery {name}` (`examples/gallery/{name}.py`), {date.today()}, dipriv "
        f"{dipriv.__version__}, {size['cores']} cores, {size['memory in GB']:.0f} GB memory. Seeds in the code make "
        "the page repeatable, and void the guarantee. Leave them out for a real release."
    )
    text = page(name, made)
    (out / f"{name}.md").write_text(text, encoding="utf-8")
    print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr)


def main() -> None:
    """Record the named scripts, or all."""
    parser = argparse.ArgumentParser(prog="python -m examples.gallery", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all by default")
    parser.add_argument("--out", type=Path, default=Path("docs/gallery"), help="folder of the pages")
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(NAMES):
        raise SystemExit(f"no such script: {', '.join(sorted(unknown))}. There are {', '.join(NAMES)}.")
    for name in asked.names or NAMES:
        record(name, asked.out)


if __name__ == "__main__":
    main()
