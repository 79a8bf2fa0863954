"""LRM, the Laplace randomized mechanism (Dwork et al. 2006): each value gets noise of scale range/ε."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from dipriv._base.arrays import FloatArray
from dipriv._random.bits import Draws, Seed, source
from dipriv._random.discrete_laplace import discrete_laplace
from dipriv.errors import InputError
from dipriv.guarantee import Guarantee, PrivacyUnit, UnitKind
from dipriv.kernels.laplace import lattice_of
from research.baselines.checks import NO_REFERENCE, about, as_vector, check_bounds, set_epsilon

MAX_NOISE = 1e299


@dataclass(frozen=True)
class Laplace:
    """z + Laplace((upper - lower)/ε), z held to its bounds; exact noise on an integer lattice of the range.

    `read_from_rows` says that the bounds were read from the private values, as the paper does for unbounded laws:
    the guarantee then says so.

    >>> Laplace(epsilon=1.0, lower=0, upper=5).noise_scale
    5.0
    """

    epsilon: float
    lower: float = field(repr=False)
    upper: float = field(repr=False)
    read_from_rows: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        set_epsilon(self, floating=False)
        lower, upper = check_bounds(self.lower, self.upper)
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)
        if not self.noise_scale < MAX_NOISE:
            raise InputError("the range over ε is beyond floating point.", "Use closer bounds, or a larger epsilon.")

    @property
    def noise_scale(self) -> float:
        return (self.upper - self.lower) / self.epsilon

    def privatize(self, values: object, seed: Seed = None) -> FloatArray:
        """One noisy value for each value."""
        x = np.clip(as_vector(values), self.lower, self.upper)
        bits, scale = lattice_of(Fraction(self.epsilon))
        steps = 2.0**bits
        width = self.upper - self.lower
        on_lattice = np.rint((x - self.lower) / width * steps).astype(np.int64)
        noise = discrete_laplace(Draws(source(seed).child("laplace"), 0, len(x)), scale)
        return np.asarray(self.lower + width * ((on_lattice + noise) / steps))

    def guarantee(self, seed: Seed = None) -> Guarantee:
        """ε for each value, whatever the others are."""
        return Guarantee(
            epsilon=self.epsilon,
            kernel="Laplace noise on the range",
            reference=NO_REFERENCE,
            unit=PrivacyUnit(UnitKind.VALUE),
            assumptions=(about("bounds", read_from_rows=self.read_from_rows),),
            secure_randomness=seed is None,
        )
