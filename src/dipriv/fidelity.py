"""How much of each row survives: each column's expected correlation with what it was, by reference and kernel alone.

No row is looked at: rows are drawn from the reference, or its levels are summed up, so the numbers may be published
wherever the release may. An analyst needs them to undo the attenuation of relations that the reference does not know.
"""

from __future__ import annotations

import numpy as np

from dipriv.codecs import Cells
from dipriv.codecs.protocol import PRESENT
from dipriv.fitting import Fitted, margins_of
from dipriv.kernels import Margin
from dipriv.mechanism import decode
from dipriv.randomness import Draws, FloatArray, source
from dipriv.references import GroupedCubes, Independent
from dipriv.schema import Categorical

MOST_CELLS, FEWEST_ROWS, MOST_ROWS = 1 << 22, 1 << 14, 1 << 20
"""How many cells and rows are drawn where sums would be too long: the error is about 1/sqrt(rows)."""
MOST_LEVELS = 512


def expected_fidelity(fitted: Fitted) -> dict[str, float]:
    """{column: expected correlation before and after}; for categories agreement beyond chance, Cohen's kappa.

    It is the correlation of numbers where both are present, and not-a-number for a column that is always the same.
    """
    margins = margins_of(fitted.columns, fitted.reference, fitted.order)
    alone = isinstance(fitted.reference, Independent)
    short = [margin.probabilities is not None and len(margin.probabilities) <= MOST_LEVELS for margin in margins]
    if alone and all(short):
        return {margin.name: _summed(margin, fitted, number) for number, margin in enumerate(margins)}
    before, after = _drawn(fitted)
    return {
        column.name: kappa_of(one, two) if isinstance(column.kind, Categorical) else correlation_of(one, two)
        for column, one, two in zip(fitted.columns, before, after, strict=True)
    }


def correlation_of(before: Cells, after: Cells) -> float:
    """The correlation of numbers, over the rows that have both."""
    there = np.ones(len(before), dtype=bool)
    for side in (before, after):
        there &= side.missing == PRESENT if side.missing is not None else True
    if not there.any():
        return float("nan")
    x, y = (_standard(side.values[there].astype(np.float64)) for side in (before, after))
    return float(np.mean(x * y))


def kappa_of(before: Cells, after: Cells) -> float:
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


def _summed(margin: Margin, fitted: Fitted, number: int) -> float:
    """Exactly, from the law of (level before, level after)."""
    pi = np.asarray(margin.probabilities, dtype=np.float64)
    cuts = np.concatenate([[0.0], np.minimum(np.cumsum(pi)[:-1], 1.0), [1.0]])
    law = fitted.kernel.law_on(number, cuts)
    if margin.values is None:
        chance = float(pi @ pi)
        return (float(np.trace(law)) - chance) / (1 - chance) if chance < 1 else float("nan")
    law = law[margin.missing :, margin.missing :]
    x = np.asarray(margin.values[margin.missing :], dtype=np.float64)
    if not law.sum() or not np.abs(x).max():
        return float("nan")
    law, x = law / law.sum(), x / np.abs(x).max()
    one, two = x - law.sum(axis=1) @ x, x - law.sum(axis=0) @ x
    spread = np.sqrt((law.sum(axis=1) @ one**2) * (law.sum(axis=0) @ two**2))
    return float(one @ law @ two / spread) if spread > 0 else float("nan")


def _drawn(fitted: Fitted) -> tuple[list[Cells], list[Cells]]:
    """Rows of the reference, and what becomes of them."""
    width = len(fitted.order)
    rows = int(np.clip(MOST_CELLS // width, FEWEST_ROWS, MOST_ROWS))
    bits = source(0)  # nothing private is drawn: the same numbers each time
    true = Draws(bits.child("rows"), 0, rows)
    u = np.stack([true.of_column(column).uniforms() for column in range(width)], axis=1)
    released = fitted.kernel.perturb(u, Draws(bits.child("noise"), 0, rows))
    reference = fitted.reference
    if isinstance(reference, GroupedCubes):
        reference = reference.at(np.arange(rows) % (len(reference.cubes.starts) - 1))
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
