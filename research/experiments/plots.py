"""Figures that come out the same, byte for byte, whenever they are drawn from the same numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

BLUE, ORANGE, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#666666"
SKY, PINK, BLACK = "#56b4e9", "#cc79a7", "#000000"
"""Colours that colour-blind readers can tell apart (Okabe and Ito)."""


def canvas(rows: int, columns: int, *, width: float, height: float) -> tuple[Any, Any]:
    """A figure and its axes, always a two-dimensional array."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "dipriv"
    from cycler import cycler
    from matplotlib import pyplot as plt

    mpl.rcParams["axes.prop_cycle"] = cycler(color=[BLUE, ORANGE, GREEN, PINK, SKY, "#e69f00"])

    return plt.subplots(rows, columns, figsize=(width, height), constrained_layout=True, squeeze=False)


def save(figure: Any, file: Path) -> None:
    """As SVG, without the date."""
    from matplotlib import pyplot as plt

    figure.savefig(file, format="svg", metadata={"Date": None})
    plt.close(figure)
