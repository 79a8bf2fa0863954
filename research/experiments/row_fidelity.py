"""How much of each row survives: the correlation of released with true values, all laws known. Not in the paper.

One column: LRM and OPM as in the paper's experiments with such columns. LRM's range is the law's, the sample's own
maximum for Poisson, and its ratings are rounded to the nearest; OPM puts Laplace noise on the range of counts, and
sends a continuous column and ratings as one vector through the l2 ball mechanism. Their released values do not have
the true distribution, which leaves them free to keep more of rare values; DIP's have it by any kernel.

Many columns: independent uniforms, the mean over columns. "Column by column" is the best noise for each with ε/p,
"joint" that for all together; "DIP optimal" is what `kernel="optimal"` takes. LRM and OPM have ε/p for each column.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy import stats

from dipriv._base.arrays import FloatArray
from dipriv.kernels import KernelSpec, OptimalColumns, OptimalJoint
from dipriv.references import Known
from dipriv.release.privatize import privatize
from research.baselines import Ball, BoundedMoment, Laplace, naive
from research.data import data_file
from research.experiments.plots import BLACK, BLUE, GREEN, GREY, ORANGE, PINK, SKY, canvas, save
from research.protocol import Experiment, Row, Values, child

ROWS, CELLS = 1_000_000, 3_000_000
"""Rows of every cell, and how many values at most are released by one call."""
EPSILONS, TOTAL_EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0), (1.0, 4.0, 8.0)
COLUMNS = (1, 2, 5, 10, 30)
COUNTS = "movielens/ml-25m-rating-counts.csv"
RATINGS = "MovieLens 25M ratings"
DIP, OPTIMAL, BY_COLUMN, JOINT = "DIP", "DIP optimal", "optimal, column by column", "optimal, joint"
KERNELS: dict[str, str | KernelSpec] = {DIP: "laplace", OPTIMAL: "optimal"}
BOTH: dict[str, str | KernelSpec] = {BY_COLUMN: OptimalColumns(), JOINT: OptimalJoint()}
NAIVE: dict[str, Literal["lrm", "opm"]] = {"LRM": "lrm", "OPM": "opm"}
ONE = ("continuous", "Bernoulli(0.1)", "Bernoulli(0.5)", RATINGS, "Poisson(3)")
MANY = tuple(f"p = {count}" for count in COLUMNS)
STYLES = {
    OPTIMAL: ("o-", SKY, 5.0),
    DIP: ("s-", ORANGE, 1.5),
    BY_COLUMN: ("v:", BLUE, 1.5),
    JOINT: ("^--", PINK, 1.5),
    "LRM": ("D-", GREEN, 1.5),
    "OPM": ("x--", BLACK, 1.0),
}
"""Marker and line, colour, width: what "DIP optimal" takes lies on its broad line."""
LOWEST, LOG_TICKS = 0.004, (0.01, 0.03, 0.1, 0.3, 1.0)
OFF = f"Logarithmic panels begin at {LOWEST}:\nwhat is missing there is below."
Mechanism = Callable[[FloatArray, float, np.random.SeedSequence], FloatArray]

TRIAL_OF_ONE = """
continuous | 0.5 1 2 4 8 | 0.123 0.238 0.430 0.675 0.871 | 0.185 0.354 0.623 0.892 0.992
Bernoulli(0.1) | 1 2 4 | 0.056 0.122 0.261 | 0.147 0.390 0.843
Bernoulli(0.5) | 1 2 4 | 0.213 0.368 0.567 | 0.462 0.762 0.964
MovieLens 25M ratings | 1 2 4 | 0.205 0.373 0.604 | 0.301 0.539 0.858
Poisson(3) | 1 2 4 | 0.208 0.379 0.608 | 0.305 0.550 0.850
"""
"""Setting | ε | DIP | DIP optimal, by the prototype of the optimal kernel."""
TRIAL_OF_MANY = """
p = 1 | 1 4 8 | 0.238 0.676 0.871 | 0.354 0.891 0.991 | 0.347 0.873 0.982
p = 2 | 1 4 8 | 0.123 0.431 0.676 | 0.185 0.623 0.891 | 0.226 0.746 0.964
p = 5 | 1 4 8 | 0.050 0.193 0.360 | 0.075 0.289 0.527 | 0.139 0.510 0.827
p = 10 | 1 4 8 | 0.025 0.099 0.193 | 0.038 0.149 0.289 | 0.098 0.367 0.635
p = 30 | 1 4 8 | 0.008 0.033 0.066 | 0.013 0.050 0.100 | 0.056 0.213 0.383
"""
"""Setting | ε | DIP | column by column | joint; DIP optimal is to reach the better of both."""


@dataclass(frozen=True)
class Column:
    """A law with the paper's LRM and OPM for it."""

    law: Any
    lrm: Mechanism
    opm: Mechanism

    def draw(self, rows: int, rng: np.random.Generator) -> FloatArray:
        return np.asarray(self.law.rvs(size=rows, random_state=rng), dtype=np.float64)


def laplace_on(low: float, high: float) -> Mechanism:
    """LRM with a known range."""
    return lambda z, epsilon, rng: Laplace(epsilon, low, high).privatize(z, rng)


def laplace_up_to_largest(z: FloatArray, epsilon: float, seed: np.random.SeedSequence) -> FloatArray:
    """LRM on [0, max], the maximum read from the private values."""
    return Laplace(epsilon, 0.0, float(z.max()), read_from_rows=True).privatize(z, seed)


def moment_up_to_largest(z: FloatArray, epsilon: float, seed: np.random.SeedSequence) -> FloatArray:
    """OPM for counts: all moments bounded by the private maximum."""
    return BoundedMoment(epsilon, float(z.max()), nonnegative=True, read_from_rows=True).privatize(z, seed)


def ball_of(size: float) -> Mechanism:
    """OPM for a whole sample as one vector, each value of at most this size."""
    return lambda z, epsilon, rng: Ball(epsilon, size * float(np.sqrt(len(z)))).privatize(z, rng)


def rounded(release: Mechanism, levels: FloatArray) -> Mechanism:
    """What is released, brought to the nearest of equally spaced levels."""
    low, high, step = levels[0], levels[-1], levels[1] - levels[0]
    return lambda z, epsilon, rng: np.clip(low + step * np.rint((release(z, epsilon, rng) - low) / step), low, high)


COLUMN_KINDS = {
    "continuous": Column(stats.uniform(), laplace_on(0.0, 1.0), ball_of(1.0)),
    "Bernoulli(0.1)": Column(stats.bernoulli(0.1), laplace_on(0.0, 1.0), moment_up_to_largest),
    "Bernoulli(0.5)": Column(stats.bernoulli(0.5), laplace_on(0.0, 1.0), moment_up_to_largest),
    "Poisson(3)": Column(stats.poisson(3), laplace_up_to_largest, moment_up_to_largest),
}


@cache
def ratings() -> Column:
    """The law of all 25 million ratings."""
    with data_file(COUNTS).open(encoding="utf-8") as lines:
        levels, counts = np.array([(row["rating"], row["count"]) for row in csv.DictReader(lines)], dtype=np.float64).T
    low, high = float(levels[0]), float(levels[-1])
    law = stats.rv_discrete(values=(levels, counts / counts.sum()))
    return Column(law, rounded(laplace_on(low, high), levels), ball_of(high - low))


def sums(x: FloatArray, y: FloatArray) -> FloatArray:
    """(5, p): what correlations are made of; sums of parts add up to those of the whole."""
    squares = (np.einsum("ij,ij->j", a, b) for a, b in ((x, x), (y, y), (x, y)))
    return np.stack([x.sum(axis=0), y.sum(axis=0), *squares])


def correlations(found: FloatArray, rows: int) -> FloatArray:
    """(p,): from the sums over so many rows."""
    x, y, xx, yy, xy = found / rows
    return np.asarray((xy - x * y) / np.sqrt((xx - x**2) * (yy - y**2)))


def of_one_column(setting: str, rows: int, seed: np.random.SeedSequence) -> Values:
    """By every method and ε, on one sample."""
    column = ratings() if setting == RATINGS else COLUMN_KINDS[setting]
    z = column.draw(rows, np.random.default_rng(seed))
    measured = {}
    for epsilon in EPSILONS:
        for method in (*KERNELS, "LRM", "OPM"):
            rng = child(seed, method, epsilon)
            if method in KERNELS:
                law, kernel = Known(column.law), KERNELS[method]
                released = privatize(z[:, np.newaxis], epsilon, reference=law, kernel=kernel, seed=rng).data
            else:
                released = (column.lrm if method == "LRM" else column.opm)(z, epsilon, rng)[:, np.newaxis]
            measured[method, epsilon] = float(correlations(sums(z[:, np.newaxis], released), rows)[0])
    return measured


def of_many_columns(count: int, rows: int, seed: np.random.SeedSequence) -> Values:
    """The mean over columns; rows are released in parts, each by a call of its own."""
    names = [f"x{number}" for number in range(count)]
    law, bounds = Known({name: stats.uniform() for name in names}), dict.fromkeys(names, (0.0, 1.0))
    kernels = {**KERNELS, **BOTH}
    found = {(method, epsilon): np.zeros((5, count)) for epsilon in TOTAL_EPSILONS for method in (*kernels, *NAIVE)}
    for first in range(0, rows, CELLS // count):
        part = child(seed, "rows from", first)
        z = np.random.default_rng(part).uniform(size=(min(rows - first, CELLS // count), count))
        for method, epsilon in found:
            rng = child(part, method, epsilon)
            if method in kernels:
                release = privatize(z, epsilon, reference=law, kernel=kernels[method], seed=rng)
            else:
                release = naive(z, epsilon, method=NAIVE[method], bounds=bounds, seed=rng)
            found[method, epsilon] += sums(z, release.data)
    return {cell: float(correlations(total, rows).mean()) for cell, total in found.items()}


def _run(setting: str, seed: np.random.SeedSequence) -> Values:
    _, several, count = setting.rpartition("p = ")
    return of_many_columns(int(count), ROWS, seed) if several else of_one_column(setting, ROWS, seed)


def _draw(rows: Sequence[Row], file: Path) -> None:
    """Above: one column, against ε. Below: many columns, against their number, both axes logarithmic."""
    figure, axes = canvas(2, 5, width=14, height=6.4)
    for axis, name in zip(axes[0], ONE, strict=True):
        here = [row for row in rows if row.setting == name]
        _lines(axis, [(row.method, row.epsilon, row.mean) for row in here])
        axis.set(
            title=name, xscale="log", xticks=EPSILONS, xticklabels=[f"{e:g}" for e in EPSILONS], ylim=(-0.04, 1.04)
        )
        axis.set_xlabel("ε")
        axis.minorticks_off()
    for axis, epsilon in zip(axes[1], TOTAL_EPSILONS, strict=False):
        here = [row for row in rows if row.setting in MANY and row.epsilon == epsilon]
        _lines(axis, [(row.method, int(row.setting.rpartition(" ")[2]), row.mean) for row in here])
        axis.set(title=f"p columns, ε = {epsilon:g} in all", xscale="log", yscale="log", ylim=(LOWEST, 1.2))
        axis.set(xticks=COLUMNS, xticklabels=COLUMNS, xlabel="number of columns p")
        axis.set_yticks(LOG_TICKS, labels=[f"{tick:g}" for tick in LOG_TICKS])
        axis.minorticks_off()
    for axis in axes[:, 0]:
        axis.set_ylabel("correlation kept")
    handles, labels = axes[1, 0].get_legend_handles_labels()
    for axis in axes[1, len(TOTAL_EPSILONS) :]:
        axis.axis("off")
    axes[1, 3].legend(handles, labels, loc="upper left", frameon=False, fontsize=11)
    axes[1, 3].text(0.0, 0.2, OFF, color=GREY, transform=axes[1, 3].transAxes)
    save(figure, file)


def _lines(axis: Any, points: Sequence[tuple[str, float, float]]) -> None:
    for method, (style, colour, width) in STYLES.items():
        here = [(x, y) for which, x, y in points if which == method]
        if here:
            axis.plot(*zip(*here, strict=True), style, color=colour, linewidth=width, markersize=5, label=method)
    axis.grid(alpha=0.25)


def _trial() -> Iterator[tuple[tuple[str, str, float], float]]:
    for text, methods in ((TRIAL_OF_ONE, (DIP, OPTIMAL)), (TRIAL_OF_MANY, (DIP, BY_COLUMN, JOINT))):
        for line in text.strip().splitlines():
            setting, *parts = (part.strip() for part in line.split("|"))
            epsilons, *numbers = ([float(number) for number in part.split()] for part in parts)
            for method, cells in zip(methods, numbers, strict=True):
                yield from (((setting, method, e), cell) for e, cell in zip(epsilons, cells, strict=True))
            if JOINT in methods:
                yield from (((setting, OPTIMAL, e), max(cells)) for e, *cells in zip(epsilons, *numbers, strict=True))


ROW_FIDELITY = Experiment(
    name="row-fidelity",
    title="How much of each row survives",
    source="ours",
    measure="correlation of released with true values, 1,000,000 rows",
    settings=(*ONE, *MANY),
    epsilons=EPSILONS,
    reps=3,
    run=_run,
    ordered=((DIP, OPTIMAL), ("LRM", OPTIMAL)),
    trial=dict(_trial()),
    needs=(COUNTS,),
    draw=_draw,
)
