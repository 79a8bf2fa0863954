"""The middle arrow: U -> Ũ, private, and uniform in means uniform out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from dipriv._base.arrays import FloatArray
from dipriv._base.coordinates import UniformCoordinate
from dipriv._base.registry import Names
from dipriv._random.bits import Draws
from dipriv.kernels.transition import Transition


@dataclass(frozen=True)
class ExactRatio:
    """The largest ratio of two probabilities of one outcome, over all inputs, from a kernel's own integers.

    It must be at most e^budget. None stands for an unbounded ratio: what one input can give, another cannot.
    """

    ratio: Fraction | None
    budget: Fraction


class Kernel(Protocol):
    """Noise on [0, 1]^p.

    Private: for all u, u' and every set B, P(v in B | u) <= e^ε P(v in B | u').
    Invariant: if u is uniform on the cube, so is v.
    Total: any u is taken as if clipped to [0, 1], so the bound needs no trust in what came before.

    A kernel is a frozen dataclass that proves its ε, in exact arithmetic, when it is built; `@serializable(Kernel)`
    lets it stand in an exported reference.
    """

    @property
    def epsilon(self) -> float: ...

    @property
    def width(self) -> int:
        """p, the number of columns."""
        ...

    def perturb(self, u: FloatArray, draws: Draws) -> FloatArray:
        """(n, p) -> (n, p), inside the open unit interval; column l draws from column l, by the uses in `NoiseUse`."""
        ...

    def of_column(self, column: int) -> Kernel | None:
        """The kernel of one column alone; None where columns are perturbed together."""
        ...

    def on_levels(self, probabilities: FloatArray) -> Transition:
        """The kernel on a single column of levels with these probabilities, as a transition matrix."""
        ...

    def joint_probabilities(self, column: int, cuts: FloatArray) -> FloatArray:
        """(k, k): the probability that u_l is in bin i and v_l in bin j, for uniform u and bins with these ends."""
        ...

    def exact_ratios(self) -> tuple[ExactRatio, ...] | None:
        """What an audit compares with ε: a ratio for each column, or one where columns are perturbed together.

        None where the outcomes have no finite table.
        """
        ...


class KernelSpec(Protocol):
    """A description of a kernel: what users write. `@kernel_spec("name")` gives it a name."""

    def check(self, epsilon: float, margins: Sequence[UniformCoordinate]) -> None:
        """Raises InputError for what cannot be built, before any ε is spent."""
        ...

    def build(self, epsilon: float, names: Sequence[str], margins: Sequence[UniformCoordinate] | None = None) -> Kernel:
        """The kernel for these columns of U; a column that takes several is named several times.

        `margins` are what the reference implies about them; left out, they are numbers with uniform ranks.
        """
        ...

    def describe(self) -> str: ...


KERNEL_SPECS: Names[KernelSpec] = Names("kernel")
"""The kernels that have a name."""
kernel_spec = KERNEL_SPECS.register
by_name = KERNEL_SPECS.make
