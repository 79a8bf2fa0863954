"""docs/private-reference.md and its figures, from the record alone: no number is written here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from benchmarks.quality.contest import Setting

Numbers = Sequence[float] | None
NONE = "not measured"
COLOURS = ("#4c72b0", "#55a868", "#c44e52", "#8172b2", "#ccb974", "#64b5cd")


@dataclass(frozen=True)
class Goal:
    """A line of the table at the top."""

    what: str
    measured: str
    target: str
    peer: str = ""


class Part(Protocol):
    """A module that measures one thing: what it finds, its targets, its section."""

    def run(self, setting: Setting) -> dict[str, Any]: ...
    def goals(self, result: dict[str, Any]) -> list[Goal]: ...
    def render(self, result: dict[str, Any]) -> str: ...


def render(record: dict[str, Any], parts: Mapping[str, Part]) -> str:
    """The page: every part on record, in the order of the parts."""
    there = [name for name in parts if name in record]
    goals = [(name, goal) for name in there for goal in parts[name].goals(record[name])]
    lines = [[name, goal.what, goal.measured, goal.target, goal.peer] for name, goal in goals]
    sections = "\n".join(parts[name].render(record[name]) for name in there)
    absent = ", ".join(name for name in parts if name not in there)
    return f"""# The private reference, measured

`reference="private"` protects every row and releases every row; this page says how good the released tables are, beside
peers under the same promise. Neighbours of dipriv are tables that differ in one row *replaced*. OpenDP's differ in one
row *added or removed*, and replacing is one of each: so the peers run at half the ε, which implies the promise of
dipriv. Their rows are synthetic; row i of dipriv's table is row i of the original, privatized. The noise on rows was
the paper's, `kernel="laplace"`: these numbers are the reference's, and every kernel keeps it. All numbers are in
[private-reference.json](private-reference.json).

{table(["part", "what", "measured", "target", "OpenDP"], lines)}
{f"{chr(10)}Not on record yet: {absent}.{chr(10)}" if absent else ""}
{sections}
## How this page is made

`make quality` measures everything and writes this page; `make quality PARTS="bank adult"` measures some parts again and
keeps the others. Peers run in the same process, taking turns with dipriv run by run. OpenDP draws its noise from the
operating system, so its runs have no seed. The mbi that OpenDP requires has two errors in drawing synthetic rows
([mbi, pull request 145](https://github.com/ryan112358/mbi/pull/145)), which `benchmarks/quality/peers.py` avoids in the
peers' favour.

{_origins({name: record[name] for name in there})}
"""


def _origins(results: dict[str, dict[str, Any]]) -> str:
    """When, on what and with what the parts were measured; those measured alike on one line."""
    alike: dict[str, list[str]] = {}
    for name, result in results.items():
        machine = f"{result['machine']['cores']} cores, {result['machine']['memory in GB']:.0f} GB memory"
        versions = ", ".join(f"{package} {number}" for package, number in result["versions"].items())
        stand_in = "" if result["reference"] == "private" else f" **Stand-in reference: {result['reference']}.**"
        lacking = ", ".join(result["peers left out for lack of"])
        without = f" **OpenDP is left out: {lacking} not installed.**" if lacking else ""
        line = f"{result['date']}, {machine}, {versions}.{stand_in}{without}"
        alike.setdefault(line, []).append(f"{name} ({result['minutes']:.1f} minutes)")
    return "\n".join(f"* {', '.join(names)}: {line}" for line, names in alike.items())


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rows = ["| " + " | ".join(line) + " |" for line in (head, ["---"] * len(head), *lines)]
    return "\n".join(rows)


def code(label: str) -> str:
    """A label with its arguments as code: dipriv, `target="y"`."""
    name, comma, argument = label.partition(", ")
    return f"{name}, `{argument}`" if comma and "=" in argument else label


def named(label: str, found: dict[str, Any]) -> str:
    """The label, and the error's name if the method failed."""
    return f"{code(label)} (failed: {found['failed']})" if "failed" in found else code(label)


def mean(values: Numbers, form: str) -> str:
    return format(float(np.mean(values)), form) if values else NONE


def most(values: Numbers, form: str) -> str:
    return format(max(values), form) if values else NONE


def least(values: Numbers, form: str) -> str:
    return format(min(values), form) if values else NONE


def spread(values: Numbers, form: str) -> str:
    if not values:
        return NONE
    return f"{mean(values, form)} ({least(values, form)} to {most(values, form)})"


def time(seconds: float) -> str:
    return f"{seconds:.0f}" if seconds >= 10 else f"{seconds:.2g}"


def median(seconds: Numbers) -> str:
    return time(float(np.median(seconds))) if seconds else NONE


def met(fulfilled: bool) -> str:
    return "met" if fulfilled else "**not met**"


def verdict(values: Numbers, target: float | None, sense: str, summary: Callable[..., Any] = np.mean) -> str:
    """The target and whether the summary of the values meets it; empty without a target."""
    if target is None:
        return ""
    sign = {"<=": "≤", ">=": "≥"}[sense]
    if not values:
        return f"{sign} {target:g}"
    value = float(summary(values))
    return f"{sign} {target:g} ({met(value <= target if sense == '<=' else value >= target)})"


def draw(record: dict[str, Any], folder: Path) -> None:
    """The figures of the parts on record."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "dipriv"
    from matplotlib import pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    for name, paint, size in (("bank", _dots, (8, 3)), ("salary", _histograms, (8, 3.2))):
        if name in record:
            figure, axis = plt.subplots(figsize=size, constrained_layout=True)
            paint(axis, record[name])
            figure.savefig(folder / f"private-{name}.svg", metadata={"Date": None})
            plt.close(figure)


def _dots(axis: Any, result: dict[str, Any]) -> None:
    """One dot a run, one line a method, the mean as a bar."""
    methods = {label: found["KL"] for label, found in result["methods"].items() if found.get("KL")}
    for height, (label, values) in enumerate(methods.items()):
        finite = [value for value in values if np.isfinite(value)]
        axis.plot(finite, [height] * len(finite), "o", color=COLOURS[height % len(COLOURS)], alpha=0.6, label=label)
        axis.plot([np.mean(finite)], [height], "|", color="black", markersize=16)
    nothing = result["no predictors"]
    axis.axvline(nothing, color="grey", linestyle=":")
    axis.text(nothing, len(methods) - 0.6, "no predictors ", color="grey", ha="right", va="bottom", rotation=90)
    axis.set_yticks(range(len(methods)), list(methods))
    axis.set(xscale="log", xlabel="KL divergence (bar: mean)", ylim=(len(methods) - 0.5, -0.5))


def _histograms(axis: Any, result: dict[str, Any]) -> None:
    """Shares in bins of equal width on the logarithmic axis."""
    for colour, (name, shares) in zip(COLOURS[::2], result["histograms"].items(), strict=False):
        axis.stairs(
            shares,
            result["grid"],
            color=colour,
            label=name,
            fill=name == "original",
            alpha=0.5 if name == "original" else 1,
        )
    axis.set(xscale="log", xlabel="gross pay, dollars", ylabel="share of people")
    axis.legend(frameon=False)
