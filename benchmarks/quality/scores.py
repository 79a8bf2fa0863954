"""The numbers to reach, quickly: `python -m benchmarks.quality.scores [TABLE ...] [--seeds N] [--only TEXT]`.

Prints a line for every setting of a table: the means of its scores, those with a target beside it. Nothing is put on
record.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.quality import findings, rows, targets
from benchmarks.quality.contest import Method, warm_up
from benchmarks.quality.settings import compare_labels, methods, scores
from benchmarks.quality.tables import TABLES, Table
from dipriv.errors import PrivacyWarning

SHOWN = ("margins", "pairs", "triples", "k-marginal", "KL", "label margins", targets.LABEL_RATIO, "seconds")
FORMATS = {"KL": ".4f", "label margins": ".4f", "seconds": ".2f"} | dict.fromkeys(SHOWN[:4], ".0f")
ROWS = "rows"


def main() -> None:
    """Parse, release, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality.scores", description=__doc__)
    parser.add_argument(
        "tables", nargs="*", metavar="TABLE", help=f"{', '.join([*TABLES, ROWS])}; all if none is named"
    )
    parser.add_argument("--seeds", type=int, default=1, help="releases for each setting")
    parser.add_argument("--only", default="", help="settings whose names begin with this")
    parser.add_argument("--findings", action="store_true", help="print true and released values of the findings, too")
    asked = parser.parse_args()
    if unknown := [name for name in asked.tables if name not in TABLES and name != ROWS]:
        parser.error(f"no table {unknown[0]}; there are {', '.join([*TABLES, ROWS])}")
    warnings.simplefilter("ignore", PrivacyWarning)
    warm_up()
    for name in asked.tables or [*TABLES, ROWS]:
        if name == ROWS:
            found = {size: [rows.kept(size, seed)["correlation"] for seed in range(asked.seeds)] for size in rows.SIZES}
            print(line(ROWS, targets.DEFAULT, found), flush=True)
        else:
            compete(TABLES[name], asked.seeds, asked.only, asked.findings)


def compete(table: Table, seeds: int, only: str, with_findings: bool) -> None:
    """Each method of the table in turn, the rivals first: the label margins are compared with theirs."""
    measured: dict[str, Any] = {}
    every = methods(table)
    rivals = [method for method in every if not method.label.startswith((targets.DEFAULT, "labels", "codebook"))]
    for method in [*rivals, *(method for method in every if method not in rivals and method.label.startswith(only))]:
        measured[method.label] = release(table, method, seeds)
        compare_labels(measured)
        print(line(table.name, method.label, measured[method.label]), flush=True)
    if with_findings:
        for name, value in findings.found(table.name, table.frame).items():
            released = "  ".join(f"{label}: {_mean(found.get(name)):.4g}" for label, found in measured.items())
            print(f"  {name}: {value:.4g} | {released}", flush=True)


def release(table: Table, method: Method, seeds: int) -> dict[str, list[float]]:
    """The scores and seconds of a method by run."""
    found: dict[str, list[float]] = {}
    for seed in range(seeds):
        start = time.perf_counter()
        try:
            made = method.make(seed)
        except Exception as error:
            print(f"{table.name}: {method.label}: {error!r}")
            return found
        took = time.perf_counter() - start
        for name, value in (scores(table, made) | {"seconds": took}).items():
            found.setdefault(name, []).append(value)
    return found


def line(table: str, setting: str, found: Mapping[str, Sequence[float]]) -> str:
    """The means of the scores; those with a target say whether it is met."""
    wanted = targets.of(table, setting)
    names = [name for name in dict.fromkeys((*SHOWN, *wanted)) if name in found]
    return f"{table:9} {setting:28} " + "  ".join(_shown(name, _mean(found[name]), wanted.get(name)) for name in names)


def _shown(name: str, value: float, target: targets.Target | None) -> str:
    spec = FORMATS.get(name, ".3f")
    text = f"{name} {value:{spec}}"
    if target is None:
        return text
    return f"{text} [{'<=' if target.less else '>='} {target.limit:g} {'met' if target.met(value) else 'NOT MET'}]"


def _mean(values: Iterable[float] | None) -> float:
    return statistics.fmean(values) if values else float("nan")


if __name__ == "__main__":
    main()
