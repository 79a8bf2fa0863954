"""The middle arrow: U -> Ũ, private, and uniform in means uniform out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from dipriv._arrays import FloatArray
from dipriv._coordinates import UniformCoordinate
from dipriv._random.bits import Draws
from dipriv.kernels.transition import Transition


class Kernel(Protocol):
    """Noise on [0, 1]^p.

    Private: for all u, u' and every set B, P(v in B | u) <= e^ε P(v in B | u').
    Invariant: if u is uniform on the cube, so is v.
    Total: any u is taken as if held to [0, 1], so the bound needs no trust in what came before.
    """

    @property
    def epsilon(self) -> float: ...

    @property
    def width(self) -> int:
        """p, the number of columns."""
        ...

    def perturb(self, u: FloatArray, draws: Draws) -> FloatArray:
        """(n, p) -> (n, p), inside the open unit interval; column l draws from column l of the rows' bits."""
        ...

    def of_column(self, column: int) -> Kernel | None:
        """The kernel of one column alone; None where columns are perturbed together."""
        ...

    def on_levels(self, probabilities: FloatArray) -> Transition:
        """The kernel's law on a single column of levels with these probabilities, as a transition matrix."""
        ...

    def joint_probabilities(self, column: int, cuts: FloatArray) -> FloatArray:
        """(k, k): the chance that u_l lies in cell i and v_l in cell j, for uniform u and cells with these ends."""
        ...


class KernelSpec(Protocol):
    """A description of a kernel: what users write."""

    def check(self, epsilon: float, margins: Sequence[UniformCoordinate]) -> None:
        """Refuses what cannot be built, before any ε is spent."""
        ...

    def build(self, epsilon: float, names: Sequence[str], margins: Sequence[UniformCoordinate] | None = None) -> Kernel:
        """The kernel for these columns of U; a column that takes several is named several times.

        `margins` are what the reference tells of them; left out, they are numbers with uniform ranks.
        """
        ...

    def describe(self) -> str: ...
