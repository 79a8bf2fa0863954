"""How much of each row survives: each column's expected correlation with what it was, by reference and kernel alone.

No row is looked at: rows are drawn from the reference, or its levels are summed up, so the numbers may be published
wherever the release may. An analyst needs them to undo the attenuation of relations that the reference does not know.
"""

from __future__ import annotations

import math

import numpy as np

from dipriv._base.arrays import FloatArray
from dipriv._base.columns import PRESENT, ColumnValues
from dipriv._base.coordinates import UniformCoordinate
from dipriv._random.bits import Draws, source
from dipriv._random.streams import Stream
from dipriv.mechanism import decode
from dipriv.references._models.distributions import ContinuousDistribution
from dipriv.references._models.independent import Independent
from dipriv.references.grouped import GroupedBoxes
from dipriv.release.fitting import FittedMechanism, coordinates_of
from dipriv.schema import Categorical

MAX_CELLS, MIN_ROWS, MAX_ROWS = 1 << 20, 1 << 12, 1 << 18
"""How many cells and rows are drawn where there are no sums: for bounded columns the error is about 1/sqrt(rows)."""
MAX_LEVELS = 512
"""More levels than that share cells with their neighbours."""
TAIL, LAST, MIDDLE, NODES = 52, 24, 1 / 128, 8
"""A real line is summed over ranks in steps of 1/128, and halves of them towards both ends: down to 2^-52 for means of
eight nodes, down to 2^-24 for what the kernel does there."""


def expected_fidelity(fitted: FittedMechanism) -> dict[str, float]:
    """{column: expected correlation before and after}; for categories agreement beyond chance, Cohen's kappa.

    It is the correlation of numbers where both are present, and not-a-number for a column that is always the same or
    whose distribution has no variance. What is drawn has an error, and so may lie outside of what is proven: it is cut
    off at 0 and, where all rows have one reference, at tanh(ε/2). By Hopf's theorem this bounds the correlation of any
    joint density with cross ratios of at most e^(2ε), which stay the same where both cells are present.
    """
    found = _summed(fitted) if isinstance(fitted.reference, Independent) else {}
    if len(found) < len(fitted.columns):
        most = 1.0 if isinstance(fitted.reference, GroupedBoxes) else math.tanh(fitted.kernel.epsilon / 2)
        for column, before, after in zip(fitted.columns, *_drawn(fitted), strict=True):
            measure = kappa_of if isinstance(column.kind, Categorical) else correlation_of
            found.setdefault(column.name, float(np.clip(measure(before, after), 0.0, most)))
    return {column.name: found[column.name] for column in fitted.columns}


def correlation_of(before: ColumnValues, after: ColumnValues) -> float:
    """The correlation of numbers, over the rows that have both."""
    there = np.ones(len(before), dtype=bool)
    for side in (before, after):
        there &= side.missing == PRESENT if side.missing is not None else True
    if not there.any():
        return float("nan")
    x, y = (_standard(side.values[there].astype(np.float64)) for side in (before, after))
    return float(np.mean(x * y))


def kappa_of(before: ColumnValues, after: ColumnValues) -> float:
    """Agreement of categories beyond chance; a kind of missing value is a category."""
    codes = [
        np.where(side.missing == PRESENT, side.values, -1.0 - side.missing) if side.missing is not None else side.values
        for side in (before, after)
    ]
    both = np.unique(np.concatenate(codes), return_inverse=True)[1]
    one, two = both[: len(before)], both[len(before) :]
    p, q = (np.bincount(side, minlength=int(both.max()) + 1) / len(before) for side in (one, two))
    chance = float(p @ q)
    return (float(np.mean(one == two)) - chance) / (1 - chance) if chance < 1 else float("nan")


def _summed(fitted: FittedMechanism) -> dict[str, float]:
    """By sums over the marginals of independent columns, as far as these are levels or real numbers without atoms."""
    found = {}
    margins = coordinates_of(fitted.columns, fitted.reference, fitted.order)
    for number, (margin, marginal) in enumerate(zip(margins, fitted.reference.laws, strict=True)):
        if isinstance(marginal, ContinuousDistribution):
            found[margin.name] = _of_reals(marginal, fitted, number)
        elif margin.probabilities is not None and (len(margin.probabilities) <= MAX_LEVELS or not margin.missing):
            found[margin.name] = _of_levels(margin, margin.probabilities, fitted, number)
    return found


def _of_levels(margin: UniformCoordinate, probabilities: FloatArray, fitted: FittedMechanism, number: int) -> float:
    """From the joint probabilities of (level before, level after); levels in one bin are independent inside it."""
    cell_of = margin.bin_of(MAX_LEVELS)
    pi = np.bincount(cell_of, weights=probabilities)
    shares = probabilities / np.where(pi > 0, pi, 1.0)[cell_of]
    joint = fitted.kernel.joint_probabilities(
        number, np.concatenate([[0.0], np.minimum(np.cumsum(pi)[:-1], 1.0), [1.0]])
    )
    if margin.values is None:
        chance = float(probabilities @ probabilities)
        same = float(np.diag(joint) @ np.bincount(cell_of, weights=shares**2))
        return (same - chance) / (1 - chance) if chance < 1 else float("nan")
    x = np.asarray(margin.values[margin.missing :], dtype=np.float64)
    joint = joint[margin.missing :, margin.missing :]
    if not joint.sum() or not np.abs(x).max():
        return float("nan")
    joint, x = joint / joint.sum(), x / np.abs(x).max()
    present = probabilities[margin.missing :] / probabilities[margin.missing :].sum()
    if not margin.missing:
        x = x - present @ x
        means = np.bincount(cell_of, weights=shares * x)
        variance = float(present @ x**2)
        return float(means @ joint @ means) / variance if variance > 0 else float("nan")
    one, two = x - joint.sum(axis=1) @ x, x - joint.sum(axis=0) @ x
    spread = np.sqrt((joint.sum(axis=1) @ one**2) * (joint.sum(axis=0) @ two**2))
    return float(one @ joint @ two / spread) if spread > 0 else float("nan")


def _of_reals(marginal: ContinuousDistribution, fitted: FittedMechanism, number: int) -> float:
    """From the means of small cells of ranks, the smaller the closer to an end."""
    mean, variance = float(marginal.dist.mean()), float(marginal.dist.var())
    if not 0 < variance < np.inf:
        return float("nan")
    half = np.concatenate([[0.0], 2.0 ** -np.arange(TAIL, 7, -1), np.arange(MIDDLE, 0.5 + MIDDLE / 2, MIDDLE)])
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    width = np.diff(half)[:, np.newaxis]
    places = half[:-1, np.newaxis] + width * (nodes + 1) / 2
    low, high = (quantile(places) @ weights / 2 - mean for quantile in (marginal.dist.ppf, marginal.dist.isf))
    ends = 1 + TAIL - LAST  # these cells count as one
    coarse = np.concatenate([[0.0], half[ends:]])
    sides = [np.append(np.average(side[:ends], weights=width[:ends, 0]), side[ends:]) for side in (low, high)]
    means = np.concatenate([sides[0], sides[1][::-1]])
    after = fitted.kernel.joint_probabilities(number, np.concatenate([coarse[:-1], 1.0 - coarse[::-1]]))
    return float(means @ after @ means) / variance


def _drawn(fitted: FittedMechanism) -> tuple[list[ColumnValues], list[ColumnValues]]:
    """Rows of the reference, and what becomes of them."""
    width = len(fitted.order)
    rows = int(np.clip(MAX_CELLS // width, MIN_ROWS, MAX_ROWS))
    bits = source(0)  # nothing private is drawn: the same numbers each time
    true = Draws(bits.child(Stream.ROWS), 0, rows)
    u = np.stack([true.of_column(column).uniforms() for column in range(width)], axis=1)
    released = fitted.kernel.perturb(u, Draws(bits.child(Stream.NOISE), 0, rows))
    reference = fitted.reference
    if isinstance(reference, GroupedBoxes):
        reference = reference.at(np.arange(rows) % (len(reference.boxes.starts) - 1))
    codecs = [column.codec for column in fitted.columns]
    sides = []
    for side in (np.clip(u, 2.0**-53, 1 - 2.0**-53), released):
        v = np.empty_like(side)
        v[:, fitted.order] = reference.from_uniform(side)
        sides.append(decode(codecs, v))
    return sides[0], sides[1]


def _standard(x: FloatArray) -> FloatArray:
    """Centred, with unit variance; not-a-number where all are the same."""
    x = x / max(np.abs(x).max(), np.finfo(np.float64).tiny)
    x = x - x.mean()
    spread = np.sqrt(np.mean(x**2))
    return np.asarray(x / spread if spread > 0 else np.full(len(x), np.nan))
