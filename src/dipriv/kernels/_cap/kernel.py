"""The cap kernel: with probability λ the row is drawn from those whose direction is near its own, else from all.

x_l = Φ⁻¹(u_l) makes a uniform row a normal one, whose direction is uniform on the sphere. Words of 64 bits a column are
drawn without looking at the row. They are in the row's cap C(u) if the angle between the two directions is small, by a
computation in double precision that the bounds allow for. With probability 1 - λ the first words are released, else
the first that are in C(u). So, with α(u) the share of all words that are in C(u),

    P(v | u) = P(v) ((1 - λ) + λ [v in C(u)]/α(u)),

which is at least (1 - λ) P(v) and at most (1 - λ + λ/α) P(v) for any α that is not larger than all α(u): the ratio
is at most 1 + λ/((1 - λ) α). λ is a fraction, and so is the α that `bounds` has.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray
from dipriv._base.decimals import at_most
from dipriv._base.registry import serializable
from dipriv._random.bits import Draws
from dipriv.errors import InputError
from dipriv.kernels._cap.bounds import error_of_share, least_share
from dipriv.kernels._cap.expectation import best_cosine, joint_within, share_beyond
from dipriv.kernels._cap.sampler import draw_rows
from dipriv.kernels.protocol import ExactRatio, Kernel
from dipriv.kernels.transition import Transition, exp_below

COSINE_STEPS = 1 << 32
"""The cosine of a cap is a multiple of 2^-32."""
COINS = 1 << 64
"""λ is a multiple of 2^-64."""
MIN_SHARE = Fraction(1, 64)
"""A cap has at least this share of all rows, so that a row in it is found in 32 trials on average."""
MAX_COLUMNS = 1 << 13
"""Columns, at most."""
SLACK = Fraction(1, 10**9)
"""The part of ε that is left unspent, so that an audit may compute the share of a cap in double precision."""
_REMEDY = "Build the kernel with CapKernel.best(epsilon, takes_part)."


@serializable(Kernel)
@dataclass(frozen=True, eq=False)
class CapKernel:
    """A v in the cap of cosine/2^32 with probability mixing/2^64, else any v; columns that take no part are fresh.

    >>> kernel = CapKernel.best(1.0, np.array([1, 1, 0]))
    >>> round(kernel.mixing / 2**64, 3), round(kernel.cosine / 2**32, 3)
    (0.407, 0.308)
    """

    epsilon: float
    takes_part: NDArray[np.int64]
    cosine: int
    mixing: int
    _least_share: Fraction = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _check_epsilon(self.epsilon)
        takes_part = _checked_parts(self.takes_part)
        if not 0 < self.cosine < COSINE_STEPS or not 0 <= self.mixing < COINS:
            raise InputError("CapKernel: the cosine or the probability of a cap is outside its limits.", _REMEDY)
        least = least_share(Fraction(self.cosine, COSINE_STEPS), int(takes_part.sum()))
        if least < MIN_SHARE / 2:
            raise InputError("CapKernel: the cap is too small to draw from.", _REMEDY)
        object.__setattr__(self, "takes_part", takes_part)
        object.__setattr__(self, "_least_share", least)
        if self.largest_ratio > exp_below(min(Fraction(self.epsilon), Fraction(1000))):
            raise InputError(f"CapKernel: the kernel spends more than epsilon={self.epsilon!r}.", _REMEDY)

    @staticmethod
    def is_cheap_to_build(fields: Mapping[str, Any]) -> bool:
        takes_part = fields["takes_part"]
        return takes_part.ndim == 1 and 1 <= len(takes_part) <= MAX_COLUMNS

    @classmethod
    def best(cls, epsilon: float, takes_part: NDArray[np.int64]) -> CapKernel:
        """The kernel whose cap gives the largest expected cosine, and the largest λ that the bounds allow."""
        _check_epsilon(epsilon)
        takes_part = _checked_parts(takes_part)
        width = int(takes_part.sum())
        cosine = best_cosine(epsilon, width, float(MIN_SHARE), COSINE_STEPS)
        odds = (exp_below(min(at_most(epsilon), Fraction(64)) * (1 - SLACK)) - 1) * least_share(
            Fraction(cosine, COSINE_STEPS), width
        )
        return cls(epsilon, takes_part, cosine, min(int(COINS * odds / (1 + odds)), COINS - 1))

    @property
    def width(self) -> int:
        return len(self.takes_part)

    @property
    def largest_ratio(self) -> Fraction:
        """The exact bound on P(v|u) / P(v|u')."""
        return _ratio(self.mixing, self._least_share)

    @property
    def distance_from_uniform(self) -> Fraction:
        """How far the density of v is from 1 at most, where u is uniform: λ · 2η/(α - η)."""
        cosine, columns = Fraction(self.cosine, COSINE_STEPS), int(self.takes_part.sum())
        return Fraction(self.mixing, COINS) * 2 * error_of_share(cosine, columns) / self._least_share

    def perturb(self, u: FloatArray, draws: Draws) -> FloatArray:
        parts = np.flatnonzero(self.takes_part)
        trials = math.ceil(1 / (4 * self._least_share))  # half of those that a row needs on average
        own = draws.of_column(self.width)
        if len(parts) == self.width:
            return draw_rows(np.ascontiguousarray(u), own, self._cosine, self.mixing, trials)
        v = np.empty_like(u)
        v[:, parts] = draw_rows(np.ascontiguousarray(u[:, parts]), own, self._cosine, self.mixing, trials)
        for column in np.flatnonzero(self.takes_part == 0):
            words = draws.of_column(int(column)).words()
            v[:, column] = ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
        return v

    def of_column(self, column: int) -> None:
        """No column has a kernel of its own: all columns are drawn together."""

    def on_levels(self, probabilities: FloatArray) -> Transition:
        raise InputError(
            "a column of the cap kernel is perturbed together with others, not by a matrix of its own.",
            "Perturb all columns at once, or use the laplace kernel.",
        )

    def joint_probabilities(self, column: int, cuts: FloatArray) -> FloatArray:
        """(k, k): P(u_l in bin i, v_l in bin j) for uniform u and the bins between cuts 0 < ... < 1."""
        sizes = np.diff(np.asarray(cuts, dtype=np.float64))
        if not self.takes_part[column]:
            return np.outer(sizes, sizes)
        columns = int(self.takes_part.sum())
        mixing = self.mixing / COINS
        within = _joint_within(self._cosine, columns, tuple(np.asarray(cuts, dtype=np.float64).tolist()))
        return (1 - mixing) * np.outer(sizes, sizes) + mixing / share_beyond(self._cosine, columns) * within

    def exact_ratios(self) -> tuple[ExactRatio, ...]:
        """An upper bound for the whole row: the share of the cap in double precision, less 10^-11 of it."""
        columns = int(self.takes_part.sum())
        cosine = Fraction(self.cosine, COSINE_STEPS)
        share = Fraction(share_beyond(self._cosine, columns)) * (1 - Fraction(1, 10**11))
        return (ExactRatio(_ratio(self.mixing, share - error_of_share(cosine, columns)), Fraction(self.epsilon)),)

    @property
    def _cosine(self) -> float:
        return self.cosine / COSINE_STEPS


@lru_cache(maxsize=32)
def _joint_within(cosine: float, columns: int, cuts: tuple[float, ...]) -> FloatArray:
    return joint_within(cosine, columns, np.array(cuts))


def _ratio(mixing: int, least: Fraction) -> Fraction:
    """1 + λ/((1 - λ) α)."""
    return 1 + Fraction(mixing, COINS - mixing) / least


def _check_epsilon(epsilon: float) -> None:
    if not 0 < epsilon < np.inf:
        raise InputError(f"epsilon is {epsilon!r}, not a finite number above 0.", "Choose a privacy budget.")


def _checked_parts(takes_part: NDArray[np.int64]) -> NDArray[np.int64]:
    given = np.array(takes_part)
    fits = given.ndim == 1 and given.dtype.kind in "iu" and np.all((given == 0) | (given == 1))
    if not fits or not given.any() or len(given) > MAX_COLUMNS:
        raise InputError(
            f"CapKernel: which columns take part is not 0 or 1 for each of at most {MAX_COLUMNS}, with one of them 1.",
            _REMEDY,
        )
    return given.astype(np.int64)
