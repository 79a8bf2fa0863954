"""The pages of docs/ that show measurements: Jinja templates filled with the JSON on record.

    python -m research.pages [NAME ...]     # every page, unless some are named

The page NAME shows docs/NAME.json, or all files of the folder docs/NAME. Sentences and tables are in
research/templates and benchmarks/templates; here are the ways to write a number.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from research.files import whole_file

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = (
    "reproduction",
    "benchmarks",
    "private-reference",
    "audit",
    "scale",
    "usefulness",
    "choosing-epsilon",
    "footprint",
    "peers",
)
NOT_MEASURED = "not measured"
Record = Mapping[str, Any]


def write(name: str, docs: Path = DOCS) -> Path:
    """Write the page from the record in the same folder."""
    page = docs / f"{name}.md"
    with whole_file(page) as part:
        part.write_text(render(name, docs), encoding="utf-8")
    return page


def render(name: str, docs: Path = DOCS) -> str:
    """The text of the page."""
    return fill(name, record(name, docs))


def record(name: str, docs: Path = DOCS) -> Record:
    """What is on record for the page; the files of a folder by their names. The peers' page shows three records."""
    if name == "peers":
        judges = record("audit", docs)["judges"]
        return {"quality": record("private-reference", docs), "speed": record("benchmarks", docs), "judges": judges}
    if (file := docs / f"{name}.json").exists():
        return _read(file)
    return {file.stem: _read(file) for file in sorted((docs / name).glob("*.json"))}


def fill(template: str, record: Record) -> str:
    """The template, filled with the record."""
    return _environment().get_template(f"{template}.md.j2").render(record=record)


def fmt(value: float | None, spec: str) -> str:
    """A number by a format specification; empty for None."""
    return "" if value is None else format(value, spec)


def number(value: float | str, digits: int | None = None) -> str:
    """So many decimal digits, else three below 1, two below 1000, one above; JSON has infinity as text."""
    if value in ("inf", math.inf):
        return "infinite"
    value = float(value)
    if digits is None:
        digits = 3 if value < 1 else 2 if value < 1000 else 1
    return f"{value:z.{digits}f}"


def with_sd(mean: float | str, sd: float, digits: int | None = None) -> str:
    """A mean with its standard deviation, in as many digits, or in one significant digit if it is smaller."""
    text = number(mean, digits)
    if text == "infinite":
        return text
    shown = len(text.partition(".")[2])
    return f"{text} ({sd:.{shown}f})" if sd >= 10.0**-shown else f"{text} ({sd:.1g})"


def average(values: Sequence[float] | None) -> float | None:
    return statistics.fmean(values) if values else None


def mean(values: Sequence[float] | None, spec: str) -> str:
    return format(statistics.fmean(values), spec) if values else NOT_MEASURED


def spread(values: Sequence[float] | None, spec: str) -> str:
    """Mean (smallest to largest)."""
    return f"{mean(values, spec)} ({min(values):{spec}} to {max(values):{spec}})" if values else NOT_MEASURED


def seconds(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def median_seconds(values: Sequence[float] | None) -> str:
    return seconds(statistics.median(values)) if values else NOT_MEASURED


def lines(rows: Iterable[Record]) -> dict[tuple[str, str], dict[float, Record]]:
    """The rows of an experiment by setting and method, then by ε."""
    found: dict[tuple[str, str], dict[float, Record]] = {}
    for row in rows:
        found.setdefault((row["setting"], row["method"]), {})[row["epsilon"]] = row
    return found


@cache
def _environment() -> Environment:
    folders = [ROOT / part / "templates" for part in ("research", "benchmarks")]
    made = Environment(  # noqa: S701 (Markdown, not HTML)
        loader=FileSystemLoader(folders),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    filters = (fmt, number, with_sd, average, mean, spread, seconds, median_seconds, lines)
    made.filters |= {function.__name__: function for function in filters}
    made.filters["median"] = statistics.median
    return made


def _read(file: Path) -> Record:
    found: Record = json.loads(file.read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    for asked in sys.argv[1:] or PAGES:
        print(write(asked))
