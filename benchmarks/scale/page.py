"""docs/scale.md from what was measured."""

from __future__ import annotations

from pathlib import Path
from string import Template
from typing import Any

from dipriv.sources.spark.tasks import BLOCK_ROWS, DIGEST_BYTES

PLANNED_ROWS = 10_000_000_000
PLANNED_CORES = (16, 128)
GROUPS = {
    "read": "read by Spark, kept blocks included",
    "sent to Python": "handed to Python workers, rows",
    "returned from Python": "handed back by Python workers",
    "shuffled": "between workers",
    "sent to the driver": "to the driver, in all",
    "written": "written",
}


TEMPLATE = Path(__file__).parents[2] / "docs" / "templates" / "scale.md"


def render(found: dict[str, Any]) -> str:
    """The page."""
    sides, rows, loss, clients = found["sides"], found["rows"], found["loss"], found["clients"]
    spark = sides["spark 2"]
    peaks = {kind: max(sizes) for kind, sizes in spark["peak MB"].items()}
    planned = PLANNED_ROWS / rows
    core_hours = 2 * spark["seconds"] * planned / 3600
    moved = {what: size * planned for what, size in spark["MB moved"].items()}
    text = {
        "date": found["date"],
        "machine": found["machine"],
        "rows": f"{rows:,}",
        "columns": found["columns"],
        "gigabytes": f"{found['bytes'] / 1e9:.1f}",
        "speeds": _speeds(sides, rows),
        "ratio_one": f"{sides['stream 1']['seconds'] / sides['spark 1']['seconds']:.2f}",
        "ratio_two": f"{sides['stream 2']['seconds'] / spark['seconds']:.2f}",
        "moved": _moved(spark["MB moved"], rows),
        "stream_memory": f"{max(sides['stream 2']['peak MB']['python driver']):,}",
        "java_memory": f"{peaks['java driver']:,}",
        "worker_memory": f"{peaks['python worker']:,}",
        "driver_memory": f"{peaks['python driver']:,}",
        "per_row": f"{2e6 * spark['seconds'] / rows:.1f}",
        "notes_memory": f"{PLANNED_ROWS / BLOCK_ROWS * DIGEST_BYTES / 1e6:.1f}",
        "core_hours": f"{core_hours:,.0f}",
        "times": " or ".join(f"{60 * core_hours / cores:.0f} minutes on {cores:,} cores" for cores in PLANNED_CORES),
        "python_terabytes": f"{(moved['sent to Python'] + moved['returned from Python']) / 1e6:.1f}",
        "shuffled_gigabytes": f"{moved['shuffled'] / 1e3:.1f}",
        "written_terabytes": f"{moved['written'] / 1e6:.2f}",
        "loss_rows": f"{loss['rows']:,}",
        "killed": loss["executors killed"],
        "again": loss["tasks that were lost and done again"],
        "written_first": f"{loss['rows written'][0]:,}",
        "written_second": f"{loss['rows written'][1]:,}",
        "hash_first": loss["sha256"][0][:16],
        "hash_second": loss["sha256"][1][:16],
        "verdict": "the same" if loss["the same rows"] else "NOT the same",
        "clients": f"{clients['clients']:,}",
        "client_milliseconds": f"{1e3 * clients['seconds'] / clients['clients']:.1f}",
        "client_table": _shares(clients["shares"]),
    }
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(text)


def _speeds(sides: dict[str, Any], rows: int) -> str:
    lines = ["| | seconds | learning | releasing | rows a second |", "|---|--:|--:|--:|--:|"]
    for side, told in sides.items():
        engine, used = side.split()
        name = f"{engine}, {used} core{'s' if used != '1' else ''}"
        times = " | ".join(f"{told[what]:.0f}" for what in ("seconds", "learning", "releasing"))
        lines.append(f"| {name} | {times} | {rows / told['seconds']:,.0f} |")
    return "\n".join(lines)


def _moved(moved: dict[str, float], rows: int) -> str:
    lines = ["| | MB | bytes a row |", "|---|--:|--:|"]
    lines += [f"| {GROUPS[what]} | {size:,.1f} | {size * 1e6 / rows:,.2f} |" for what, size in moved.items()]
    return "\n".join(lines)


def _shares(shares: dict[str, Any]) -> str:
    lines = ["| shares | far from the truth | strongly religious |", "|---|--:|--:|"]
    for name, told in shares.items():
        lines.append(f"| {name} | {told['far from the truth']:.3f} | {told['strongly religious']:.3f} |")
    return "\n".join(lines)
