"""How much a released row says about its original row, beside what the noise of its budget leaves on average."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import stats

from dipriv.errors import InputError
from dipriv.guarantee import Guarantee
from dipriv.kernels import Laplace
from dipriv.kernels.transition import laplace_matrix
from dipriv.randomness import FloatArray
from dipriv.report.facts import FEWEST, Fidelity
from dipriv.report.pairing import Pair
from dipriv.schema import Categorical

FINE = 1000
"""A continuous column is seen as about this many equally likely levels."""
FEW_LEVELS = 200


@dataclass(frozen=True)
class Allowance:
    """The scale of the Laplace noise that each privatized column got, on the scale of its ranks."""

    noise: float
    privatized: tuple[str, ...]

    @classmethod
    def of(cls, guarantee: Guarantee | None, privatized: Sequence[str]) -> Allowance | None:
        """None where a column's share of the budget is not known: another kernel, own shares, other units than rows."""
        if guarantee is None or guarantee.kernel != "laplace" or guarantee.unit not in ("one row", "one record"):
            return None
        try:
            kernel = Laplace().build(guarantee.epsilon, privatized)
        except (InputError, ValueError, OverflowError):  # no budget that the kernel takes
            return None
        return cls(float(kernel.noise_scales[0]), tuple(privatized))

    def describe(self, epsilon: float) -> str:
        """What the numbers beside the row fidelity are."""
        columns = len(self.privatized)
        return (
            f"“ε allows” is what the Laplace noise of a column's share of the budget, {epsilon:g}/{columns} = "
            f"{epsilon / columns:.3g}, leaves on average of the order or the labels of its rows; columns that "
            "depend on others may keep less."
        )


def row_fidelity(pair: Pair, allowance: Allowance | None) -> tuple[Fidelity, ...]:
    """Rank correlation for numbers and times, agreement for labels; nothing where rows are not paired."""
    if pair.mates is None:
        return ()
    mates, after = pair.mates.all, pair.after.all
    noise = None
    if allowance is not None and pair.name in allowance.privatized:
        noise = allowance.noise
    return _agreement(pair, mates, after, noise) if pair.scale == "label" else _ranks(mates, after, noise)


def allowed(shares: FloatArray, noise: float) -> tuple[float, float]:
    """Rank correlation and agreement that the kernel alone leaves between levels with these shares.

    >>> rank, same = allowed(np.array([0.5, 0.5]), noise=1e-6)
    >>> round(rank, 3), round(same, 3)
    (1.0, 1.0)
    """
    return _allowed(tuple(float(share) for share in shares), noise)


@lru_cache(maxsize=256)
def _allowed(shares: tuple[float, ...], noise: float) -> tuple[float, float]:
    pi = np.array(shares)
    matrix = laplace_matrix(pi, noise)
    rank = np.cumsum(pi) - pi / 2 - 0.5  # centred mid-ranks; released levels have the same law
    spread = float(pi @ rank**2)
    correlation = float((pi * rank) @ matrix @ rank) / spread if spread > 0 else 1.0
    return correlation, float(pi @ np.diag(matrix))


def _ranks(mates: FloatArray, after: FloatArray, noise: float | None) -> tuple[Fidelity, ...]:
    both = ~np.isnan(mates) & ~np.isnan(after)
    one, two = mates[both], after[both]
    if len(one) < FEWEST or one.min() == one.max() or two.min() == two.max():
        return ()
    value = float(stats.spearmanr(one, two).statistic)
    return (Fidelity("rank correlation", value, None if noise is None else allowed(_shares(one), noise)[0], 0.0),)


def _shares(values: FloatArray) -> FloatArray:
    """Shares of the levels, neighbouring rare ones taken together so that there are at most about `FINE`."""
    shares = np.unique(values, return_counts=True)[1] / len(values)
    if len(shares) <= FEW_LEVELS:
        return shares
    groups = ((np.cumsum(shares) - shares / 2) * FINE).astype(np.intp)
    together = np.bincount(groups, shares).astype(np.float64)
    return together[together > 0]


def _agreement(pair: Pair, mates: FloatArray, after: FloatArray, noise: float | None) -> tuple[Fidelity, ...]:
    if len(after) < FEWEST:
        return ()
    missing = -1.0  # a null is below all labels, as it is to the mechanism
    one, two = (np.where(np.isnan(side), missing, side) for side in (mates, after))
    levels, places = np.unique(np.concatenate([one, two]), return_inverse=True)
    p, q = (np.bincount(side, minlength=len(levels)) / len(one) for side in (places[: len(one)], places[len(one) :]))
    in_one_step = not (isinstance(pair.kind, Categorical) and pair.kind.encoding == "onehot")
    known = noise is not None and in_one_step and len(levels) <= FEW_LEVELS
    best = allowed(p, noise)[1] if known and noise is not None else None
    return (Fidelity("agreement", float(np.mean(one == two)), best, float(p @ q)),)
