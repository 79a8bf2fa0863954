"""Run all benchmarks and write docs/benchmarks.md, docs/benchmarks.json and docs/images/scaling.svg."""

from __future__ import annotations

import json
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import columns, command, files, kernels, noise, scaling
from benchmarks.measure import cores

DOCS = Path(__file__).parents[1] / "docs"


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
    (DOCS / "benchmarks.md").write_text(render(results), encoding="utf-8")


def render(results: dict[str, Any]) -> str:
    """The page."""
    grown, parquet = results["scaling"], results["parquet"]
    steps = grown["cost of doubling the rows, 1e5 to 1e7"]
    return f"""# Benchmarks

`make bench`, {results["date"]}, {results["machine"]}. Contestants take turns in one run and the best time of each
counts; machines differ and are noisy, so look at the ratios. All numbers are in [benchmarks.json](benchmarks.json).
Releases have the paper's noise, `kernel="laplace"`, but for the section on kernels.

## Laplace noise, a value

{_table(results["noise"])}

## Kernels

The optimal kernel beside the paper's, ε = 1, {results["kernels"]["rows"]:,} rows, on one core:

{_kernels(results["kernels"])}

## One continuous column, {results["continuous"]["rows"]:,} rows, a quarter held out

All in: split, sort, fit, search, noise, quantiles, the released table.

{_table(results["continuous"])}

## One discrete column, {results["discrete"]["rows"]:,} ratings, a quarter held out

{_table(results["discrete"])}

## Growth

![Seconds against rows and against columns](images/scaling.svg)

From 100,000 to 10,000,000 rows the fitted exponent is {grown["exponent in rows, 1e5 to 1e7"]:.2f}. What each
doubling costs, sizes taking turns and the median of their ratios counting, all memory fresh:

{_doublings(steps)}

The exponent in the number of columns is {grown["exponent in columns"]:.2f}.
1,000,000 rows of 10 columns take {grown["seconds of 1,000,000 x 10"]:.2f} s,
{grown["nanoseconds a cell of 1,000,000 x 10"]:.0f} ns a cell.

## Parquet to Parquet, {parquet["rows"]:,} rows of 4 columns, one privatized

| | seconds | peak memory |
|---|---|---|
| plain copy with pyarrow | {parquet["copy"]["seconds"]:.1f} | {parquet["copy"]["peak memory in MB"]:.0f} MB |
| dipriv, batch by batch | {parquet["privatize"]["seconds"]:.1f} | {parquet["privatize"]["peak memory in MB"]:.0f} MB |

{parquet["ratio"]:.2f} times the plain copy.

## The command line, {results["command line"]["rows"]:,} rows of 6 columns, one kept, five privatized

`dipriv privatize` with a quarter held out and a ledger, against a plain copy with pyarrow. It reads the file three
times: to settle types and recognize the data set, to gather the hold-out, and to release.

{_command(results["command line"])}
"""


def _table(result: dict[str, Any]) -> str:
    rows = [f"| {name} | {ns:,.1f} | {result['ratio'][name]:,.3g} |" for name, ns in result["nanoseconds"].items()]
    return "\n".join(["| | ns a value | times ours |", "|---|---|---|", *rows])


def _kernels(result: dict[str, Any]) -> str:
    names = ("one discrete column", "one continuous column", "ten columns, a row")
    rows = [
        f"| {name} | "
        + " | ".join(f"{ns:,.1f}" for ns in result[name]["nanoseconds"].values())
        + f" | {result[name]['ratio']:.2f} |"
        for name in names
    ]
    built = "; ".join(f"{name}: {seconds:.2f} s" for name, seconds in result["build"].items())
    table = "\n".join(["| | optimal, ns | the paper's, ns | ratio |", "|---|---|---|---|", *rows])
    return f"{table}\n\nTo build one, the slowest of ε = 0.5, 1, 2, 4, 8: {built}."


def _doublings(steps: dict[str, float]) -> str:
    rows = [f"| {int(step.split()[0]):,} | {cost:.2f} |" for step, cost in steps.items()]
    return "\n".join(["| rows doubled | times the cost |", "|---|---|", *rows])


def _command(result: dict[str, Any]) -> str:
    rows = [
        f"| {kind} | {result[kind]['copy']['seconds']:.1f} | {result[kind]['privatize']['seconds']:.1f} | "
        f"{result[kind]['ratio']:.2f} | {result[kind]['privatize']['peak memory in MB']:.0f} MB |"
        for kind in ("csv", "parquet")
    ]
    return "\n".join(["| | copy, s | dipriv, s | times the copy | peak memory |", "|---|---|---|---|---|", *rows])


if __name__ == "__main__":
    main()
