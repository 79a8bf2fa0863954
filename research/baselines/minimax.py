"""OPM, the minimax optimal procedures of Duchi, Jordan and Wainwright (JASA 2018; DJW)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.special import gammaln, ndtri

from dipriv._base.arrays import FloatArray
from dipriv._random.bits import Seed, source
from dipriv.errors import InputError
from dipriv.guarantee import Guarantee, Model, Neighbouring, PrivacyUnit, UnitKind
from research.baselines.checks import FLOATING, NO_REFERENCE, about, as_vector, check_positive, set_epsilon, uniforms
from research.baselines.laplace import Laplace


@dataclass(frozen=True)
class BoundedMoment:
    """DJW 3.2.1: values with E|Z|^k <= radius^k are held to [-T, T] and get Laplace noise on that range.

    T = radius (n ε²)^(1/2k) balances the bias of holding against the noise. With k = infinity, T = radius: the
    Laplace mechanism. `nonnegative` holds values to [0, T], half the range.

    >>> BoundedMoment(epsilon=1.0, radius=2.0).limit(rows=1000)
    2.0
    >>> round(BoundedMoment(epsilon=1.0, radius=2.0, k=3).limit(rows=1_000_000), 9)
    20.0
    """

    epsilon: float
    radius: float = field(repr=False)
    k: float = math.inf
    nonnegative: bool = False
    read_from_rows: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        set_epsilon(self, floating=False)
        object.__setattr__(self, "radius", check_positive("radius", self.radius))
        if not self.k > 1:
            raise InputError(f"k={self.k!r} is not above 1.", "Bound a moment of order above 1, up to math.inf.")

    def limit(self, rows: int) -> float:
        """T, to which values are held."""
        return self.radius * math.pow(rows * self.epsilon**2, 0.5 / self.k)

    def privatize(self, values: object, seed: Seed = None) -> FloatArray:
        """One noisy value for each value; their mean is DJW's estimate of the mean."""
        x = as_vector(values)
        return self._noise(len(x)).privatize(x, seed)

    def guarantee(self, seed: Seed = None) -> Guarantee:
        """ε for each value, whatever the others are."""
        return Guarantee(
            epsilon=self.epsilon,
            kernel=f"Laplace noise on a range from a bounded moment (k = {self.k:g})",
            reference=NO_REFERENCE,
            unit=PrivacyUnit(UnitKind.VALUE),
            assumptions=(about("bound of the moment", read_from_rows=self.read_from_rows),),
            secure_randomness=seed is None,
        )

    def _noise(self, rows: int) -> Laplace:
        limit = self.limit(rows)
        return Laplace(self.epsilon, 0.0 if self.nonnegative else -limit, limit)


@dataclass(frozen=True)
class Ball:
    """DJW 4.2.3: a vector in the l2 ball of this radius becomes one of length B in a random half space.

    The vector is rounded at random to ±radius times its direction, without bias; then a uniform point of the sphere
    of length B is drawn, with odds e^ε : 1 from the half space of that side. B is such that the mean is the vector.
    As the paper uses it, the vector is a whole sample: ε then covers all its values together.
    """

    epsilon: float
    radius: float = field(repr=False)
    read_from_rows: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        set_epsilon(self, floating=True)
        object.__setattr__(self, "radius", check_positive("radius", self.radius))

    def length(self, dimension: int) -> float:
        """B = radius (e^ε + 1)/(e^ε - 1) / E|s_1|, s uniform on the unit sphere.

        >>> round(Ball(epsilon=math.log(3), radius=1.0).length(1), 12)
        2.0
        """
        log_mean_size = gammaln(dimension / 2) - gammaln((dimension + 1) / 2) - math.log(math.pi) / 2
        return float(self.radius / math.tanh(self.epsilon / 2) / math.exp(log_mean_size))

    def privatize(self, values: object, seed: Seed = None) -> FloatArray:
        """A vector of the same dimension, with the given one as its mean."""
        vector, bits = as_vector(values), source(seed).child("ball")
        largest = float(np.abs(vector).max())
        direction = vector / largest if largest > 0 else np.eye(1, len(vector))[0]  # so that no square overflows
        share = min(1.0, largest * (float(np.linalg.norm(direction)) / self.radius))
        gauss = ndtri(uniforms(bits, len(vector)))
        point = gauss / np.linalg.norm(gauss)
        rounded_up, same_side = uniforms(bits, 2, column=1)
        side = 1.0 if rounded_up <= 0.5 + share / 2 else -1.0
        side = side if same_side <= 1 / (1 + math.exp(-self.epsilon)) else -side
        return np.asarray(self.length(len(vector)) * (point if (point @ direction) * side > 0 else -point))

    def guarantee(self, seed: Seed = None) -> Guarantee:
        """ε for the whole vector."""
        return Guarantee(
            epsilon=self.epsilon,
            kernel="a random half of a sphere",
            reference=NO_REFERENCE,
            model=Model.LOCAL,
            unit=PrivacyUnit(UnitKind.VECTOR),
            neighbouring=Neighbouring.ANY_TWO,
            assumptions=(about("radius", read_from_rows=self.read_from_rows), FLOATING),
            secure_randomness=seed is None,
        )
