"""The second and fourth arrow: V <-> U through the conditional CDFs of a distribution (Rosenblatt transform)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dipriv._arrays import FloatArray
from dipriv._random.bits import Bits
from dipriv.schema import Kind

Order: TypeAlias = Sequence[str] | Literal["random"] | None
"""In which order the chain rule takes the columns: as given, as listed, or drawn at random."""


class Reference(Protocol):
    """A fitted distribution on R^p, used column by column through the chain rule.

    Law: if V follows the reference, to_uniform(V) is uniform on the cube; from_uniform inverts it.
    Column l uses the row's own earlier columns in both directions, so that applied to released U the
    conditioning is on released columns: eq. (cond_priv). Both are total: any real row has a U in [0, 1]^p.
    """

    def to_uniform(self, v: FloatArray) -> FloatArray:
        """(n, p) reals -> (n, p) in [0, 1]: the conditional CDFs."""
        ...

    def from_uniform(self, u: FloatArray) -> FloatArray:
        """(n, p) in [0, 1] -> (n, p) reals: the conditional quantile functions."""
        ...


class PortableReference(Reference, Protocol):
    """A fitted reference that may be exported, which `@serializable(PortableReference)` says."""

    def accepts(self, states: Sequence[int | None]) -> bool:
        """Whether columns with these numbers of states, in the chain's order, are its own; None: no states."""
        ...


@dataclass(frozen=True, eq=False)
class ReferenceRows:
    """What a recipe may learn from: encoded reference rows, and the low end of each column's line."""

    v: FloatArray
    lower: FloatArray
    names: tuple[str, ...]
    groups: NDArray[np.intp] | None = None
    counts: NDArray[np.intp] | None = None
    """For a single column of levels, in place of `v`: how often each unit interval of its line is hit."""

    def __repr__(self) -> str:
        return f"ReferenceRows({self.v.shape[0]} x {self.v.shape[1]})"


class ReferenceSpec(Protocol):
    """A description of how to come by a `Reference`: what users write."""

    @property
    def source(self) -> Literal["nothing", "rows", "groups", "private"]:
        """What it reads: no rows at all, reference rows, the first rows of each group, or all rows, under ε."""
        ...

    @property
    def order(self) -> Order: ...

    def kinds(self, names: Sequence[str]) -> Mapping[str, Kind]:
        """The kinds that the recipe itself dictates for these columns (a given law does)."""
        ...

    def exposes(self, columns: int) -> bool:
        """Whether released rows with so many columns come close to single reference rows."""
        ...

    def describe(self) -> str:
        """A few words for the guarantee."""
        ...


class FittableSpec(ReferenceSpec, Protocol):
    """A recipe that is fitted on encoded rows; one whose source is "nothing" gets none."""

    def fit(self, rows: ReferenceRows) -> Any:
        """The fitted reference; for groups, an object with `at(groups)`."""
        ...


def draw_order(order: Order, names: Sequence[str], bits: Bits) -> list[int]:
    """The positions of the columns in the order the chain rule takes them; columns not listed come last."""
    if order is None:
        return list(range(len(names)))
    if isinstance(order, str):
        return [int(position) for position in np.argsort(bits.words(len(names)), kind="stable")]
    listed = [names.index(name) for name in order]
    return listed + [position for position in range(len(names)) if position not in listed]
