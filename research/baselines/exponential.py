"""EXM, the exponential mechanism (McSherry and Talwar 2007) with a value's frequency as its quality."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray
from dipriv._random.bits import Seed, source
from dipriv.errors import InputError
from dipriv.guarantee import Guarantee, Model
from research.baselines.checks import FLOATING, NO_REFERENCE, about, as_numbers, as_vector, set_epsilon, uniforms

Levels: TypeAlias = Sequence[float] | FloatArray


@dataclass(frozen=True)
class Exponential:
    """Every released value is drawn anew: level a with probability in proportion to exp(ε count(a) / 2n).

    The quality of a level is how often it occurs; replacing one row changes it by at most 1. A single draw with odds
    exp(ε' count/2) is ε'-private, and the n draws of a sample of n rows compose: for ε in all, each has ε' = ε/n.
    """

    epsilon: float
    levels: Levels

    def __post_init__(self) -> None:
        set_epsilon(self, floating=True)
        _check_levels(self.levels)

    def probabilities(self, values: object) -> FloatArray:
        """The law that every released value is drawn from."""
        x = as_vector(values)
        quality = np.bincount(_positions(x, self.levels), minlength=len(self.levels)) * (self.epsilon / (2 * len(x)))
        odds = np.exp(quality - quality.max())
        return np.asarray(odds / odds.sum())

    def privatize(self, values: object, seed: Seed = None) -> FloatArray:
        """As many levels as there are values."""
        return _draw(self.levels, self.probabilities(values), len(as_vector(values)), seed)

    def guarantee(self, seed: Seed = None) -> Guarantee:
        """ε for each row, over all draws."""
        return Guarantee(
            epsilon=self.epsilon,
            kernel="exponential mechanism, a value's count as its quality, ε/n a draw",
            reference=NO_REFERENCE,
            assumptions=(about("levels"), FLOATING),
            secure_randomness=seed is None,
        )


@dataclass(frozen=True)
class FrequencyResampling:
    """What the paper's EXM cells show: every released value is drawn from the sample's own frequencies.

    This is a bootstrap sample. It gives no differential privacy: a value that occurs once is released with probability
    1 - (1 - 1/n)^n, about 63%, and never if it does not occur.
    """

    levels: Levels

    def __post_init__(self) -> None:
        _check_levels(self.levels)

    def privatize(self, values: object, seed: Seed = None) -> FloatArray:
        """As many levels as there are values."""
        x = as_vector(values)
        counts = np.bincount(_positions(x, self.levels), minlength=len(self.levels))
        return _draw(self.levels, counts / counts.sum(), len(x), seed)

    def guarantee(self, seed: Seed = None) -> Guarantee:
        """None."""
        return Guarantee(
            epsilon=math.inf,
            kernel="resampling by the sample's frequencies",
            reference=NO_REFERENCE,
            model=Model.NONE,
            secure_randomness=seed is None,
        )


def _draw(levels: Levels, probabilities: FloatArray, rows: int, seed: Seed) -> FloatArray:
    upto = np.cumsum(probabilities)
    places = np.searchsorted(upto / upto[-1], uniforms(source(seed).child("exponential"), rows), side="left")
    return np.asarray(levels, dtype=np.float64)[places]


def _positions(x: FloatArray, levels: Levels) -> NDArray[np.intp]:
    """Each value's level: the lowest one not below it, else the last."""
    return np.minimum(np.searchsorted(np.asarray(levels, dtype=np.float64), x), len(levels) - 1)


def _check_levels(levels: Levels) -> None:
    array = as_numbers(levels, "levels")
    if array.ndim != 1 or not len(array) or not np.all(np.diff(array) > 0):
        raise InputError("the levels are not finite numbers in ascending order.", "Give levels=[a_1 < a_2 < ...].")
