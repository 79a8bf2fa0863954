"""How much kernels of all columns together keep of each, and how much any kernel could. Not in the paper.

Columns are independent: numbers, whose ranks are uniform, and flags of two levels. The correlation is the mean over
columns, by their weights. "Columns", "XOR" and "cap" are `OptimalColumns`, `OptimalJoint` and `OptimalCap`, by their
own laws. "Blocks" turns the directions of numbers of equal weight, block by block, and flips the bits of all other
columns, with one threshold for the sum of all; it is not built in. "Program" is the linear program for the k x k cells
of two columns. "No kernel more than" is the second proposition of docs/theory/kernels.md. Blocks and this bound are
simulated: `DRAWS` rows for the one, `CENTRES` released rows with `ROWS` true ones each for the other. A maximum over
thresholds of simulated means is estimated a little too large, so both err upwards.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import roots_legendre, stdtr

from dipriv._base.arrays import FloatArray
from dipriv._base.coordinates import Partition, UniformCoordinate, equal_parts
from dipriv.kernels import KernelSpec, OptimalCap, OptimalColumns, OptimalJoint
from dipriv.kernels._per_column.linear_program import best_excess
from research.protocol import Experiment, Values, child

EPSILONS = (1.0, 2.0, 4.0)
DRAWS, CENTRES, ROWS = 1_000_000, 1500, 20_000
BITS, NODES, PLACES = 3, 64, 201
CELLS = (4, 6, 8)


@dataclass(frozen=True)
class Columns:
    """So many numbers of the same weight, or flags, of which the ones have this share."""

    count: int
    weight: float = 1.0
    ones: float | None = None


SETTINGS = {
    **{f"{count} numbers": (Columns(count),) for count in (2, 3, 5, 10, 30)},
    "10 numbers, one of weight 3": (Columns(1, 3.0), Columns(9)),
    "10 numbers, five of weight 3": (Columns(5, 3.0), Columns(5)),
    "8 numbers and 2 flags": (Columns(8), Columns(2, ones=0.5)),
    "5 numbers and 5 flags": (Columns(5), Columns(5, ones=0.5)),
    "5 flags, 10% ones": (Columns(5, ones=0.1),),
}


def best_of(scores: FloatArray, epsilon: float) -> float:
    """The largest E(h s) over densities h that differ by a factor of e^ε at most, for a sample of s with mean 0.

    It is q E[s; s >= τ]/(1 + q P(s >= τ)) for the best τ, q = e^ε - 1.
    """
    q, n = np.expm1(epsilon), len(scores)
    above = np.cumsum(np.sort(scores)[::-1])
    return float(np.max(q * above / (n + q * np.arange(1, n + 1))))


@cache
def kept_at(width: int) -> FloatArray:
    """(PLACES,): the correlation of ranks, given the cosine of both directions, at cosines from -1 to 1.

    With s a coordinate of a direction, a rank is on average Student's distribution function at s √width. The same
    coordinate of a direction at the cosine t is s t + w √(1 - s²) √(1 - t²), w a coordinate in one dimension fewer.
    """
    s, of_s = coordinate(width)
    w, of_w = coordinate(width - 1)
    t = np.linspace(-1.0, 1.0, PLACES)[:, np.newaxis, np.newaxis]
    turned = s[:, np.newaxis] * t + w * np.sqrt((1 - s**2)[:, np.newaxis] * (1 - t**2))
    before, after = (np.sqrt(12.0) * (stdtr(width, x * np.sqrt(width)) - 0.5) for x in (s, turned))
    return np.asarray(np.einsum("i,i,tij,j->t", of_s, before, after, of_w))


def coordinate(width: int) -> tuple[FloatArray, FloatArray]:
    """Places in [-1, 1] and weights for means over a coordinate of a uniform direction."""
    if width == 1:
        return np.array([-1.0, 1.0]), np.array([0.5, 0.5])
    x, weights = roots_legendre(NODES)
    angle = (x + 1) * (np.pi / 2)
    weights = weights * np.sin(angle) ** (width - 2)
    return np.cos(angle), weights / weights.sum()


def of_blocks(columns: tuple[Columns, ...], epsilon: float, rng: np.random.Generator) -> float:
    """Blocks of numbers are turned, all else is flipped: the law of the sum of all does not depend on the row."""
    scores = np.zeros(DRAWS)
    for some in columns:
        if some.ones is not None or some.count == 1:
            parts = [1.0] if some.ones else [3 * 4.0**-bit for bit in range(1, BITS + 1)]
            for part in parts * some.count:
                scores += some.weight * part * rng.choice([-1.0, 1.0], DRAWS)
        else:
            half = (some.count - 1) / 2
            cosines = 2 * rng.beta(half, half, DRAWS) - 1
            kept = np.interp(cosines, np.linspace(-1.0, 1.0, PLACES), kept_at(some.count))
            scores += some.weight * some.count * kept
    return best_of(scores, epsilon) / total(columns)


def of_any_kernel(columns: tuple[Columns, ...], epsilon: float, rng: np.random.Generator) -> float:
    """E M(a f(v)) over the sum of the weights a."""
    weights = np.repeat([some.weight for some in columns], [some.count for some in columns])

    def standardized(rows: int) -> FloatArray:
        parts = []
        for some in columns:
            u = rng.random((rows, some.count))
            mean, variance = (0.5, 1 / 12) if some.ones is None else (some.ones, some.ones * (1 - some.ones))
            parts.append(((u if some.ones is None else u < some.ones) - mean) / np.sqrt(variance))
        return np.concatenate(parts, axis=1)

    u = standardized(ROWS)
    return float(np.mean([best_of(u @ (weights * v), epsilon) for v in standardized(CENTRES)])) / total(columns)


def of_kernel(recipe: KernelSpec, margins: list[UniformCoordinate], weights: list[float], epsilon: float) -> float:
    """By the kernel's own law."""
    kernel = recipe.build(epsilon, [margin.name for margin in margins], margins)
    kept = 0.0
    for number, (margin, weight) in enumerate(zip(margins, weights, strict=True)):
        part = equal_parts(256) if margin.probabilities is None else margin.partition(2)
        kept += weight * part.fidelity(kernel.joint_probabilities(number, part.cuts))
    return kept / sum(weights)


def of_program(cells: int, epsilon: float) -> float:
    """Of the best kernel of two columns whose cells are squares of this many a side."""
    middle = (np.arange(cells) + 0.5) / cells - 0.5
    points = np.array(list(itertools.product(middle, middle)))
    pi = np.full(len(points), 1 / len(points))
    part = Partition(pi, ((points[:, np.newaxis] - points) ** 2).sum(axis=2))
    joint = np.outer(pi, pi) * (1 + best_excess(pi, part.cost, epsilon))
    return float(6 * np.einsum("ia,ij,ja->", points, joint, points))


def total(columns: tuple[Columns, ...]) -> float:
    return sum(some.count * some.weight for some in columns)


def _run(setting: str, seed: np.random.SeedSequence) -> Values:
    columns = SETTINGS[setting]
    weights = [some.weight for some in columns for _ in range(some.count)]
    shares = [some.ones for some in columns for _ in range(some.count)]
    margins = [
        UniformCoordinate(f"c{number}")
        if ones is None
        else UniformCoordinate(f"c{number}", np.array([1 - ones, ones]), np.array([0.0, 1.0]))
        for number, ones in enumerate(shares)
    ]
    of_names = {margin.name: weight for margin, weight in zip(margins, weights, strict=True)}
    recipes: dict[str, KernelSpec] = {
        "columns": OptimalColumns(of_names),
        "XOR": OptimalJoint(of_names),
        "cap": OptimalCap(),
    }
    measured = {}
    for epsilon in EPSILONS:
        for name, recipe in recipes.items():
            measured[name, epsilon] = of_kernel(recipe, margins, weights, epsilon)
        if len(columns) > 1:
            rng = np.random.default_rng(child(seed, "blocks", epsilon))
            measured["blocks", epsilon] = of_blocks(columns, epsilon, rng)
        if len(weights) == 2:
            for cells in CELLS:
                measured[f"program, {cells} x {cells} cells", epsilon] = of_program(cells, epsilon)
        rng = np.random.default_rng(child(seed, "any kernel", epsilon))
        measured["no kernel more than", epsilon] = of_any_kernel(columns, epsilon, rng)
    return measured


JOINT_KERNELS = Experiment(
    name="joint-kernels",
    title="Kernels of all columns together, and how much any kernel could keep",
    source="ours",
    measure="mean correlation of released with true values over columns, by their weights",
    settings=tuple(SETTINGS),
    epsilons=EPSILONS,
    reps=5,
    run=_run,
    ordered=(("XOR", "no kernel more than"), ("cap", "no kernel more than"), ("blocks", "no kernel more than")),
)
