"""The paper's kernel: Laplace noise on the uniform scale, brought back to uniform by G (S1.1), exact on integers.

A column's u is put on the lattice 2^-K {0..2^K} and gets discrete Laplace noise of an integer scale t >= 2^K/ε_l. Two
rows differ by at most 2^K lattice steps, so the probabilities of any noisy integer differ by a factor of at most
exp(2^K/t) <= exp(ε_l): a fact about integers that no rounding can change. Floating point starts after the noise.

Noise beyond ±2^62 is drawn as ±2^62. Here that is post-processing: a noisy integer x with |x| >= 2^62 - 2^K has
G(x 2^-K) or 1 - G(x 2^-K) below exp(-(2^62 - 2^K)/t)/2 < 2^-53, as t <= 2^56, and is released as that end of [0, 1].
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray
from dipriv._base.coordinates import UniformCoordinate
from dipriv._base.decimals import at_most
from dipriv._base.jit import jit
from dipriv._base.registry import serializable
from dipriv._random.bits import Draws
from dipriv._random.discrete_laplace import MAX_SCALE, discrete_laplace
from dipriv.errors import InputError
from dipriv.kernels.noisy_uniform import cdf_at, slope_of, tail_of
from dipriv.kernels.protocol import Kernel, kernel_spec
from dipriv.kernels.shares import check_shares, shares_of
from dipriv.kernels.transition import Transition, laplace_joint_probabilities, laplace_matrix

MIN_UNIFORM = 2.0**-53
"""Released uniforms stay inside [MIN_UNIFORM, 1 - MIN_UNIFORM], so that unbounded distributions give finite values."""
_REMEDY = "Build the kernel with Laplace(...).build(epsilon, names)."
MAX_LATTICE_BITS = 40
"""The lattice has steps of 2^-40, unless the budget is tiny."""
MIN_LATTICE_BITS = 20
"""For tiny budgets steps are as coarse as 2^-20, which is far below the width of their noise."""


@kernel_spec("laplace")
@dataclass(frozen=True)
class Laplace:
    """v = G(u + e), e ~ Laplace(p/ε) in each of p columns.

    Parameters
    ----------
    shares : {column: share of ε}: column l gets ε_l in proportion to its share, and the ε_l add up to ε. Columns that
        are not named have share 1.

    Raises
    ------
    InputError : a share cannot be used.

    Examples
    --------
    >>> Laplace({"income": 3.0}).build(1.0, ["age", "income"]).noise_scales.round(3).tolist()
    [4.0, 1.333]
    """

    shares: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_shares(self.shares, "share")

    def check(self, epsilon: float, margins: Sequence[UniformCoordinate]) -> None:
        self.build(epsilon, [margin.name for margin in margins])

    def build(
        self, epsilon: float, names: Sequence[str], margins: Sequence[UniformCoordinate] | None = None
    ) -> LaplaceKernel:
        shares = shares_of(self.shares, names, "share")
        lattices = [lattice_of(at_most(epsilon) * share / sum(shares)) for share in shares]
        steps, scales = zip(*lattices, strict=True)
        return LaplaceKernel(epsilon, np.array(steps), np.array(scales))

    def describe(self) -> str:
        return "laplace" + (" (own budget shares)" if self.shares else "")


@serializable(Kernel)
@dataclass(frozen=True, eq=False)
class LaplaceKernel:
    """Column l: lattice steps of 2^-lattice_bits[l], discrete Laplace noise of scale scales[l] steps."""

    epsilon: float
    lattice_bits: NDArray[np.int64]
    scales: NDArray[np.int64]

    def __post_init__(self) -> None:
        scales, bits = np.asarray(self.scales), np.asarray(self.lattice_bits)
        whole = scales.dtype.kind in "iu" and bits.dtype.kind in "iu"
        if not whole or scales.ndim != 1 or not len(scales) or scales.shape != bits.shape:
            raise InputError("LaplaceKernel: scales and lattices are not whole numbers, one for each column.", _REMEDY)
        within = (scales >= 1) & (scales <= MAX_SCALE) & (bits >= MIN_LATTICE_BITS) & (bits <= MAX_LATTICE_BITS)
        if not np.all(within):
            raise InputError("LaplaceKernel: a scale or lattice of the noise is outside its limits.", _REMEDY)
        if self.spent > Fraction(self.epsilon):
            raise InputError(
                f"the columns' budgets add up to {float(self.spent)!r}, more than epsilon={self.epsilon!r}.",
                _REMEDY,
            )

    @property
    def width(self) -> int:
        return len(self.scales)

    @property
    def spent(self) -> Fraction:
        """The exact total of the columns' budgets, 2^K/t each."""
        pairs = zip(self.lattice_bits, self.scales, strict=True)
        return sum((Fraction(1 << int(bits), int(scale)) for bits, scale in pairs), Fraction(0))

    @property
    def noise_scales(self) -> FloatArray:
        """The scales on the unit interval, b = p/ε for even shares."""
        return np.ldexp(self.scales.astype(np.float64), -self.lattice_bits)

    def perturb(self, u: FloatArray, draws: Draws) -> FloatArray:
        v = np.empty_like(u)
        for column, b in enumerate(self.noise_scales):
            z = discrete_laplace(draws.of_column(column), int(self.scales[column]))
            steps = 2.0 ** int(self.lattice_bits[column])
            shift_and_flatten(u[:, column], z, steps, b, tail_of(b), slope_of(b), v[:, column])
        return v

    def on_levels(self, probabilities: FloatArray) -> Transition:
        pi = np.asarray(probabilities, dtype=np.float64)
        return Transition.of(laplace_matrix(pi, float(self.noise_scales[0])), pi, self.spent)

    def joint_probabilities(self, column: int, cuts: FloatArray) -> FloatArray:
        return laplace_joint_probabilities(np.diff(cuts), float(self.noise_scales[column]))

    def exact_ratios(self) -> None:
        """The noise has no finite table of outcomes: its ratio is e^(2^K/t) at most, by its formula."""

    def of_column(self, column: int) -> LaplaceKernel:
        """The kernel of one column alone."""
        bits, scales = self.lattice_bits[column : column + 1], self.scales[column : column + 1]
        budget = Fraction(1 << int(bits[0]), int(scales[0]))
        return LaplaceKernel(math.nextafter(float(budget), math.inf), bits, scales)


@jit
def shift_and_flatten(
    u: FloatArray, z: NDArray[np.int64], steps: float, b: float, tail: float, slope: float, v: FloatArray
) -> None:
    """V = G((round(u steps) + z) / steps). u is clipped to [0, 1], and not-a-number counts as 0."""
    for i in range(len(u)):
        clipped = min(max(u[i], 0.0), 1.0) if u[i] >= 0.0 else 0.0
        x = np.float64(np.int64(clipped * steps + 0.5) + z[i]) / steps
        v[i] = min(max(cdf_at(x, b, tail, slope), 2.0**-53), 1.0 - 2.0**-53)


def lattice_of(epsilon: Fraction) -> tuple[int, int]:
    """(K, t) of a column with this budget: the finest lattice for which t = ceil(2^K/ε) is small enough."""
    for bits in range(MAX_LATTICE_BITS, MIN_LATTICE_BITS - 1, -1):
        scale = math.ceil((1 << bits) / epsilon)
        if scale <= MAX_SCALE:
            return bits, scale
    least = 2.0**MIN_LATTICE_BITS / MAX_SCALE
    raise InputError(
        f"a column's budget is {float(epsilon):.3g}; exact noise needs at least {least:.3g}.",
        "Use a larger epsilon, or fewer columns.",
    )
