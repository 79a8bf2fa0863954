"""The paper's explanatory figures, drawn with the library's own codecs, references and kernels.

As in the paper one colour is for what is private and another for what may be released. Seeds are such that the single
rows shown come to lie where they can be told apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dipriv._base.arrays import FloatArray
from dipriv._base.atoms_line import AtomsLine
from dipriv._random.bits import Bits, Draws, source
from dipriv._random.discrete_laplace import discrete_laplace
from dipriv.codecs import Codec
from dipriv.codecs.levels import LatticeCodec
from dipriv.codecs.real import RealCodec
from dipriv.kernels import Laplace
from dipriv.kernels.noisy_uniform import noisy_uniform_cdf
from dipriv.references import Mixture
from dipriv.references._models.boxes import Boxes
from dipriv.references._models.distributions import ContinuousDistribution, Distribution, IntegerDistribution
from dipriv.references._models.independent import Independent
from research.experiments.plots import BLUE, GREEN, GREY, ORANGE, canvas, save
from research.protocol import Drawing

ROWS = 20_000
PRIVATE, RELEASED = ORANGE, GREEN
AT_OR_BELOW = "probability at or below"
Curve: TypeAlias = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class Steps:
    """One continuous column at each step of eq. (ptb_c)."""

    z: FloatArray
    u: FloatArray
    noisy: FloatArray
    flat: FloatArray
    released: FloatArray


def steps(z: FloatArray, law: ContinuousDistribution, bits: Bits) -> Steps:
    """Z, U = F(Z), U + e, G(U + e) and F⁻¹(G(U + e)) at ε = 1, with the noise that a mechanism draws from `bits`."""
    reference, kernel = Independent((law,)), Laplace().build(1.0, ["Z"])
    noise = Draws(bits.child("noise"), 0, len(z))
    u = reference.to_uniform(z[:, np.newaxis])
    e = np.ldexp(discrete_laplace(noise, int(kernel.scales[0])).astype(np.float64), -int(kernel.lattice_bits[0]))
    flat = kernel.perturb(u, noise)
    return Steps(z, u[:, 0], u[:, 0] + e, flat[:, 0], reference.from_uniform(flat)[:, 0])


def _flowchart(file: Path) -> None:
    law = ContinuousDistribution(stats.lognorm(0.6))
    at = steps(law.ppf(np.random.default_rng(1).uniform(size=ROWS)), law, source(1))
    figure, ((first, second, third), (last, flat, curve)) = canvas(2, 3, width=10.5, height=6.6)
    figure.get_layout_engine().set(hspace=0.16)

    values, units, sums = np.linspace(0, 5, 101), np.linspace(0, 1, 26), np.linspace(-4, 5, 91)
    _density(first, at.z, values, law.cdf, PRIVATE)
    _density(second, at.u, units, stats.uniform().cdf, PRIVATE)
    _density(third, at.noisy, sums, _g, RELEASED)
    _density(flat, at.flat, units, stats.uniform().cdf, RELEASED)
    _density(last, at.released, values, law.cdf, RELEASED)
    last.hist(at.z, bins=values, density=True, histtype="step", color=PRIVATE)
    last.legend(["released values", "exact law", "private values"], fontsize=9, frameon=False)
    curve.plot(sums, _g(sums), color=BLUE)
    curve.plot([at.noisy[0], at.noisy[0], sums[0]], [0, at.flat[0], at.flat[0]], "k:")
    curve.set(xlim=(sums[0], sums[-1]), ylim=(0, 1.05), xlabel=f"one row: G({at.noisy[0]:.2f}) = {at.flat[0]:.2f}")
    curve.set_title("G: distribution function of U + e", fontsize=11)

    for axis, title, column in (
        (first, "1  Private values Z", at.z),
        (second, "2  U = F(Z) is uniform", at.u),
        (third, "3  U + e: Laplace noise, ε = 1", at.noisy),
        (flat, "4  G(U + e) is uniform", at.flat),
        (last, "5  Released: same law as Z", at.released),
    ):
        axis.axvline(column[0], linestyle=":", color="k")
        axis.set_title(title, fontsize=11)
        axis.set_xlabel(f"one row: {column[0]:.2f}")
    for axis in (first, last):
        axis.set_ylabel("density")
    _arrow(first, (1.06, 0.5), (1.26, 0.5), "F")
    _arrow(second, (1.06, 0.5), (1.26, 0.5), "+ e")
    _arrow(third, (0.5, -0.22), (0.5, -0.36), "")
    _arrow(flat, (1.26, 0.5), (1.06, 0.5), "G")
    _arrow(last, (1.26, 0.5), (1.06, 0.5), "F⁻¹")
    save(figure, file)


def _g(x: FloatArray) -> FloatArray:
    return noisy_uniform_cdf(x, 1.0)


def _density(axis: Any, values: FloatArray, edges: FloatArray, cdf: Curve, colour: str) -> None:
    """The values' histogram, and the exact density as differences of their distribution function."""
    axis.hist(values, bins=edges, density=True, histtype="stepfilled", color=colour, alpha=0.4)
    axis.stairs(np.diff(cdf(edges)) / np.diff(edges), edges, color=BLUE, baseline=None)
    axis.set(xlim=(edges[0], edges[-1]), ylim=(0, None), yticks=[])


def _arrow(axis: Any, start: tuple[float, float], end: tuple[float, float], text: str) -> None:
    """An arrow from place to place, in units of the panel, with a label above it."""
    style = {"arrowstyle": "-|>", "color": GREY, "linewidth": 2, "mutation_scale": 18, "shrinkA": 0, "shrinkB": 0}
    axis.annotate("", end, start, xycoords="axes fraction", textcoords="axes fraction", arrowprops=style)
    middle = (start[0] + end[0]) / 2, start[1] + 0.06
    axis.annotate(text, middle, xycoords="axes fraction", ha="center", fontsize=13)


def encoded_sample(law: Distribution, codec: Codec, rows: int) -> tuple[NDArray[Any], FloatArray]:
    """Z from a law on the codec's line, and V: the same rows encoded anew."""
    z = codec.decode(law.ppf(np.random.default_rng(1).uniform(size=(rows, 1))))
    return z.values, codec.encode(z, Draws(source(1), 0, rows))[:, 0]


def _continualization(file: Path) -> None:
    """A Bernoulli variable: masses, the density of V, F with its jumps, F_V without (Lemma S1)."""
    chance, points = 0.6, np.array([0.0, 1.0])
    law = IntegerDistribution.of(stats.bernoulli(chance))
    _, v = encoded_sample(law, LatticeCodec(1, 1, np.dtype(np.int64)), ROWS)
    below, above = law.cdf(points - 1), law.cdf(points)
    figure, ((mass, density), (jumps, line)) = canvas(2, 2, width=8.5, height=6.2)
    figure.get_layout_engine().set(hspace=0.08, wspace=0.06)

    mass.vlines(points, 0, above - below, color=GREY, linestyle=":")
    mass.plot(points, above - below, "o", color=ORANGE, markersize=9)
    _density(density, v, np.linspace(-1, 1, 41), law.cdf, ORANGE)
    density.legend(["encoded sample", "exact density"], loc="upper left", fontsize=9, frameon=False)
    jumps.hlines([0, *above], [-1.5, *points], [*points, 1.5], color=BLUE)
    _jumps(jumps, points, below, above)
    line.hlines([0, 1], [-1.5, 1], [-1, 1.5], color=BLUE)
    line.plot([points - 1, points], [below, above], color=ORANGE, linewidth=2.5)
    line.plot(points, above, "o", color=ORANGE)

    for axis, title, xlabel, ylabel in (
        (mass, "(a) Z is 0 or 1", "value of Z", "probability"),
        (density, "(b) Each mass is spread over an interval", "value of V = Z − U", "density"),
        (jumps, "(c) F jumps", "value of Z", AT_OR_BELOW),
        (line, "(d) F of V does not, and equals F at 0 and 1", "value of V = Z − U", AT_OR_BELOW),
    ):
        axis.set_title(title, fontsize=11)
        axis.set(xlabel=xlabel, ylabel=ylabel, xlim=(-1.5, 1.5), xticks=[-1, 0, 1])
    for axis in (mass, density):
        axis.set(ylim=(0, 0.85), yticks=[0, 1 - chance, chance])
    for axis in (jumps, line):
        axis.set(ylim=(-0.05, 1.05), yticks=[0, 1 - chance, 1])
    save(figure, file)


def _jumps(axis: Any, points: FloatArray, below: FloatArray, above: FloatArray) -> None:
    """Jumps of a distribution function, whose value is at the filled end."""
    axis.vlines(points, below, above, color=ORANGE, linewidth=2.5)
    axis.plot(points, below, "o", markerfacecolor="white", markeredgecolor=ORANGE)
    axis.plot(points, above, "o", color=ORANGE)


def _mixed(file: Path) -> None:
    """A normal law with two atoms: F jumps at them, F_V climbs over the intervals squeezed in for them."""
    law = Mixture({0.0: 0.25, 1.5: 0.15}, stats.norm(0.3, 0.9))
    atoms = np.array(law.kind.atoms)
    line = AtomsLine.around(atoms, law.kind.unit or 1.0)
    z, v = encoded_sample(law, RealCodec(line, np.dtype(np.float64)), 150)
    below, above = line.place(atoms, np.zeros(2)), line.place(atoms, np.ones(2))
    figure, ((left, right),) = canvas(1, 2, width=10.5, height=4.2)

    ends = np.array([-2.0, *atoms, 3.0])
    for start, end in pairwise(ends):
        x = np.linspace(np.nextafter(start, end), np.nextafter(end, start), 101)
        placed = line.place(x, np.ones(101))
        left.plot(x, law.cdf(placed), color=BLUE)
        right.plot(placed, law.cdf(placed), color=BLUE)
        moved = placed[50] - x[50]
        right.text(placed[50], 1.04, f"V = Z + {moved:g}" if moved else "V = Z", ha="center", color=BLUE)
    _jumps(left, atoms, law.cdf(below), law.cdf(above))
    right.plot([below, above], [law.cdf(below), law.cdf(above)], color=ORANGE, linewidth=2.5)
    for atom, start, end in zip(atoms, below, above, strict=True):
        right.axvspan(start, end, color=ORANGE, alpha=0.12, linewidth=0)
        right.text((start + end) / 2, 1.04, f"Z = {atom:g}", ha="center", color=ORANGE)
    is_atom = np.isin(z, atoms)
    for axis, values in ((left, z), (right, v)):
        groups = [values[~is_atom], values[is_atom]]
        axis.eventplot(groups, lineoffsets=[-0.06, -0.11], linelengths=0.03, linewidths=1, colors=[BLUE, ORANGE])
        axis.set(ylim=(-0.15, 1.12), ylabel=AT_OR_BELOW)
    left.set(xlabel=f"value of Z (ticks: {len(z)} rows)", xlim=(ends[0], ends[-1]))
    right.set(xlabel="value of V (ticks: the same rows)", xlim=(ends[0], ends[-1] + line.shifts[-1]))
    left.set_title("F jumps at the atoms", fontsize=11)
    right.set_title("F of V: an interval squeezed in for each atom", fontsize=11)
    save(figure, file)


@dataclass(frozen=True, eq=False)
class Journey:
    """One row of two columns on its way: V, U, Ũ and Ṽ."""

    v: FloatArray
    u: FloatArray
    perturbed: FloatArray
    released: FloatArray


def journey(cubes: Boxes, v: FloatArray, bits: Bits) -> Journey:
    """A row through the boxes of an empirical reference and back, at ε = 4 for both columns together."""
    u = cubes.to_uniform(v[np.newaxis])
    perturbed = Laplace().build(4.0, ["first", "second"]).perturb(u, Draws(bits, 0, 1))
    return Journey(v, u[0], perturbed[0], cubes.from_uniform(perturbed)[0])


def _grid(file: Path) -> None:
    """Five reference rows in the order of the paper's example, their boxes, and a row's way, column by column."""
    points = np.array([[1.0, 3.1], [2.2, 1.0], [3.6, 5.2], [4.5, 1.9], [5.6, 4.1]])
    cubes = Boxes.build(points, np.full(2, -np.inf), edge="paper")
    way = journey(cubes, np.array([0.6, 2.3]), source(18))
    figure, ((boxes, first, second),) = canvas(1, 3, width=12.5, height=4.3)

    _boxes(boxes, cubes, points, way)
    x = np.linspace(-0.5, 6.2, 336)
    first.plot(x, cubes.to_uniform(np.column_stack([x, x]))[:, 0], color=BLUE)
    for given, colour, name in ((way.v[0], PRIVATE, "private"), (way.released[0], RELEASED, "released")):
        conditional = cubes.to_uniform(np.column_stack([np.full(len(x), given), x]))[:, 1]
        second.plot(x, conditional, color=colour, label=f"{name} first value")
    second.legend(title="given the", alignment="left", fontsize=9, loc="upper left", frameon=False)
    for column, axis in enumerate((first, second)):
        _way(axis, x[0], *(stage[column] for stage in (way.v, way.u, way.perturbed, way.released)))
        axis.set(ylim=(-0.03, 1.05), ylabel="uniform scale")
    for axis, column, title in (
        (boxes, 1, "Each reference row's mass fills a box"),
        (first, 1, "First column: its distribution function"),
        (second, 2, "Second column, given the first"),
    ):
        _edge_ticks(axis.xaxis, column, cubes)
        axis.set_xlim(x[0], x[-1])
        axis.set_title(title, fontsize=11)
    save(figure, file)


def _boxes(axis: Any, cubes: Boxes, points: FloatArray, way: Journey) -> None:
    """Boxes, reference rows and the grid of their values; the row and where its second column may be released."""
    left, right = np.append(cubes.edges, cubes.top[:-1]), cubes.top
    bottom, top = cubes.rest[:, 0].T
    axis.bar(left, top - bottom, right - left, bottom, align="edge", color=BLUE, alpha=0.25)
    axis.vlines([left[0], *right], bottom.min(), top.max(), color=GREY, linewidth=0.5)
    axis.hlines([bottom.min(), *top], left[0], right[-1], color=GREY, linewidth=0.5)
    axis.plot(*points.T, "o", color=BLUE, label="reference rows")
    for x, colour, name in ((way.v, PRIVATE, "private row"), (way.released, RELEASED, "released row")):
        box = np.searchsorted(right, x[0])
        axis.vlines(x[0], bottom.min(), top.max(), color=colour, linestyle="--")
        axis.vlines(x[0], bottom[box], top[box], color=colour, linewidth=3)
        axis.plot(*x, "D", color=colour, label=name)
    axis.legend(fontsize=9, loc="upper center", ncols=3, columnspacing=0.8, handletextpad=0.1, frameon=False)
    axis.set_ylim(-0.4, 6.3)
    _edge_ticks(axis.yaxis, 2, cubes)


def _edge_ticks(side: Any, column: int, cubes: Boxes) -> None:
    """Ticks at the paper's d_{l0} < d_{l1} < ..., the edges of a column's cells."""
    edges = np.append(cubes.edges, cubes.top) if column == 1 else np.unique(cubes.rest)
    side.set_ticks(edges, labels=[f"$d_{{{column}{number}}}$" for number in range(len(edges))])
    side.set_label_text("first column" if column == 1 else "second column")


def _way(axis: Any, edge: float, v: float, u: float, perturbed: float, released: float) -> None:
    """From the private value up to its curve and left to U; noise along the scale; from Ũ right and down again."""
    axis.plot([v, v, edge], [-0.03, u, u], "--", color=PRIVATE)
    axis.plot([edge, released, released], [perturbed, perturbed, -0.03], "--", color=RELEASED)
    axis.plot([v], [u], "D", color=PRIVATE)
    axis.plot([released], [perturbed], "D", color=RELEASED)
    style = {"arrowstyle": "-|>", "color": GREY, "linewidth": 2, "shrinkA": 0, "shrinkB": 0}
    axis.annotate("", (edge + 0.2, perturbed), (edge + 0.2, u), arrowprops=style)
    axis.text(edge + 0.35, (u + perturbed) / 2, "noise", va="center", color=GREY)


FLOWCHART = Drawing("flowchart", "One continuous column, step by step", "Figure flowchart", _flowchart)
CONTINUALIZATION = Drawing(
    "continualization", "A Bernoulli variable made continuous", "Figure pdf_continualization", _continualization
)
MIXED = Drawing("mixed", "A variable with atoms made continuous", "Figure mixed_figure", _mixed)
GRID = Drawing("grid-2d", "Boxes of an empirical reference in two columns", "Figure new_2d_continualization", _grid)
