"""The kernels as heat maps: how likely each released place is, given the true one, beside chance."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from dipriv._base.arrays import FloatArray
from dipriv._base.coordinates import UniformCoordinate
from dipriv.kernels import KernelSpec, Laplace, OptimalColumns, OptimalJoint
from research.experiments.plots import canvas, save
from research.protocol import Drawing

CELLS, COLUMNS = 64, 10
RATINGS = np.arange(1, 11) / 2
SHARES = np.array([16, 31, 16, 66, 50, 196, 127, 266, 88, 144]) / 1000
"""About those of half a star to five stars in MovieLens 25M."""
SHOWN_FROM = 0.06
"""Ratings of at least this share have a tick."""
BAR_TICKS = (0.01, 0.03, 0.1, 0.3, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 5.0, 10.0)


@dataclass(frozen=True, eq=False)
class Panel:
    """A kernel's law of one column on cells of the unit square."""

    title: str
    epsilon: float
    cuts: FloatArray
    values: FloatArray
    law: FloatArray

    @property
    def density(self) -> FloatArray:
        """Against the uniform law: 1 where the released place has nothing to do with the true one."""
        return np.asarray(self.law / np.outer(np.diff(self.cuts), np.diff(self.cuts)))

    @property
    def correlation(self) -> float:
        pi = np.diff(self.cuts)
        x = self.values - pi @ self.values
        return float(x @ self.law @ x / (pi @ x**2))


def panel(title: str, recipe: KernelSpec, epsilon: float, margin: UniformCoordinate, columns: int = 1) -> Panel:
    """The law of the first of so many columns alike, ε in all."""
    pi = np.full(CELLS, 1 / CELLS) if margin.probabilities is None else margin.probabilities
    cuts = np.concatenate([[0.0], np.cumsum(pi)[:-1], [1.0]])
    values = (cuts[1:] + cuts[:-1]) / 2 if margin.values is None else margin.values
    margins = [UniformCoordinate(f"x{number}", margin.probabilities, margin.values) for number in range(columns)]
    kernel = recipe.build(epsilon, [one.name for one in margins], margins)
    return Panel(title, epsilon, cuts, values, kernel.joint_probabilities(0, cuts))


def panels() -> list[list[Panel]]:
    """Rows of the figure: a continuous column, ratings, and one of ten columns that share ε."""
    number, rating = UniformCoordinate("x"), UniformCoordinate("rating", SHARES, RATINGS)
    one = [
        [
            panel(f"{what}: {name}", recipe, epsilon, margin)
            for epsilon in (1.0, 4.0)
            for name, recipe in (("paper's", Laplace()), ("optimal", OptimalColumns()))
        ]
        for what, margin in (("continuous", number), ("ratings", rating))
    ]
    many = (("paper's", Laplace(), 4.0), ("column by column", OptimalColumns(), 4.0), ("joint", OptimalJoint(), 4.0))
    shared = [
        panel(f"one of {COLUMNS}: {name}", recipe, epsilon, number, COLUMNS)
        for name, recipe, epsilon in (*many, ("joint", OptimalJoint(), 8.0))
    ]
    return [*one, shared]


def _draw(file: Path) -> None:
    """Panels of the same ε share a scale of colours."""
    figure, axes = canvas(3, 4, width=14, height=11)
    figure.get_layout_engine().set(h_pad=0.12)
    for line, found in zip(axes, panels(), strict=True):
        line[0].set_ylabel("released")
        for _, group in groupby(zip(line, found, strict=True), key=lambda pair: pair[1].epsilon):
            _group(figure, list(group))
    save(figure, file)


def _group(figure: Any, group: list[tuple[Any, Panel]]) -> None:
    from matplotlib.colors import LogNorm

    low, high = (end(end(one.density.flat) for _, one in group) for end in (min, max))
    for axis, one in group:
        drawn = axis.pcolormesh(
            one.cuts, one.cuts, one.density.T, norm=LogNorm(low, high), cmap="cividis", rasterized=True
        )
        axis.set_title(f"{one.title}, ε = {one.epsilon:g}\ncorrelation kept {one.correlation:.3f}", fontsize=10)
        axis.set(xlabel="true", box_aspect=1)
        _ticks(axis, one)
    bar = figure.colorbar(drawn, ax=[axis for axis, _ in group], pad=0.02)
    ticks = [tick for tick in BAR_TICKS if low <= tick <= high]
    bar.set_ticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    bar.minorticks_off()
    bar.set_label("times as likely as by chance", fontsize=8)


def _ticks(axis: Any, one: Panel) -> None:
    """Ranks, or ratings at the middle of their share."""
    if len(one.values) == CELLS:
        places, labels = np.array([0.0, 0.5, 1.0]), ["0", "½", "1"]
    else:
        shown = np.diff(one.cuts) >= SHOWN_FROM
        places, labels = ((one.cuts[1:] + one.cuts[:-1]) / 2)[shown], [f"{value:g}" for value in one.values[shown]]
    axis.set_xticks(places, labels=labels, fontsize=8)
    axis.set_yticks(places, labels=labels, fontsize=8)


KERNELS = Drawing("kernels", "The paper's noise and the optimal noise", "ours", _draw)
