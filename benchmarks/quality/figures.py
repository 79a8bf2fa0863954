"""The figures of docs/private-reference.md, drawn from the record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

COLOURS = ("#4c72b0", "#55a868", "#c44e52", "#8172b2", "#ccb974", "#64b5cd")


def draw(record: dict[str, Any], folder: Path) -> None:
    """The figures of the parts on record."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "dipriv"
    from matplotlib import pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    peers = record.get("peers", {}).get("tables", {}).get("bank", {})
    pictures = {"bank": (_dots, (8, 4)), "salary": (_histograms, (8, 3.2))}
    for name, (paint, size) in pictures.items():
        if name in record:
            figure, axis = plt.subplots(figsize=size, constrained_layout=True)
            paint(axis, record["bank"]["methods"] | peers if name == "bank" else record[name])
            figure.savefig(folder / f"private-{name}.svg", metadata={"Date": None})
            plt.close(figure)


def _dots(axis: Any, result: dict[str, Any]) -> None:
    """One dot a run, one line a method, the mean as a bar."""
    methods = {label: found["KL"] for label, found in result.items() if found.get("KL")}
    for height, (label, values) in enumerate(methods.items()):
        finite = [value for value in values if np.isfinite(value)]
        axis.plot(finite, [height] * len(finite), "o", color=COLOURS[height % len(COLOURS)], alpha=0.6, label=label)
        axis.plot([np.mean(finite)], [height], "|", color="black", markersize=16)
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
