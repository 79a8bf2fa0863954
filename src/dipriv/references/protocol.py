"""The second and fourth arrow: V <-> U through the conditional CDFs of a distribution (Rosenblatt transform)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import Counts, FloatArray
from dipriv._base.columns import NumericColumn, ValuesOf
from dipriv._base.coordinates import EncodedColumn, UniformCoordinate
from dipriv._base.registry import Names
from dipriv._random.bits import Bits
from dipriv.errors import InputError
from dipriv.references.measured import Measurements
from dipriv.schema import Kind, Schema

Order: TypeAlias = Sequence[str] | Literal["random"] | None
"""In which order the chain rule takes the columns: as given, as listed, or drawn at random."""
Source: TypeAlias = Literal["nothing", "rows", "groups", "private"]
LabelPolicy: TypeAlias = Literal["private", "declared", "public"]
"""Labels that nothing declares: found under (ε, δ), refused, or read from the rows and called public."""
ValuesCounter: TypeAlias = Callable[[ValuesOf], list[Counts]]
"""Exact counts of some rows, in arrays whose shapes do not depend on the rows. A counter contains public data only."""


class Reference(Protocol):
    """A fitted distribution on R^p, used column by column through the chain rule.

    Invariant: if V follows the reference, to_uniform(V) is uniform on the cube; from_uniform inverts it.
    Column l uses the row's own earlier columns in both directions, so that applied to released U the
    conditioning is on released columns: eq. (cond_priv). Both are total: any real row has a U in [0, 1]^p.
    """

    def to_uniform(self, v: FloatArray) -> FloatArray:
        """(n, p) reals -> (n, p) in [0, 1]: the conditional CDFs."""
        ...

    def from_uniform(self, u: FloatArray) -> FloatArray:
        """(n, p) in [0, 1] -> (n, p) reals: the conditional quantile functions."""
        ...

    def coordinates(self, columns: Sequence[EncodedColumn]) -> list[UniformCoordinate]:
        """What kernels may know about each column of U, for the p columns of V in the order of the chain rule."""
        ...


class PortableReference(Reference, Protocol):
    """A fitted reference that may be exported, which `@serializable(PortableReference)` says."""

    def accepts(self, states: Sequence[int | None]) -> bool:
        """Whether columns with these numbers of states, in the chain's order, are its own; None: no states."""
        ...


@dataclass(frozen=True, eq=False)
class ReferenceRows:
    """The reference rows that a spec is fitted on: encoded, with the lower end of each column's line."""

    v: FloatArray
    lower: FloatArray
    names: tuple[str, ...]
    groups: NDArray[np.intp] | None = None
    counts: NDArray[np.intp] | None = None
    """For a single column of levels, in place of `v`: the number of rows in each unit interval of its line."""

    def __repr__(self) -> str:
        return f"ReferenceRows({self.v.shape[0]} x {self.v.shape[1]})"


class ReferenceSpec(Protocol):
    """A description of a reference before it is fitted: what users write."""

    @property
    def source(self) -> Source:
        """What it is fitted on: no rows, reference rows, the first rows of each group, or all rows under ε.

        A spec with source "private" is a `LearnableSpec`, any other one a `FittableSpec`.
        """
        ...

    @property
    def by(self) -> str | None:
        """The column that names the group of a row, where each group has a reference of its own."""
        ...

    @property
    def order(self) -> Order: ...

    def kinds(self, names: Sequence[str]) -> Mapping[str, Kind]:
        """The column kinds that the spec itself determines (a given distribution does)."""
        ...

    def exposes(self, columns: int) -> bool:
        """Whether released rows with this number of columns are close to single reference rows."""
        ...

    def describe(self) -> str:
        """A few words for the guarantee."""
        ...


class FittableSpec(ReferenceSpec, Protocol):
    """A spec that is fitted on encoded reference rows; one whose source is "nothing" gets no rows."""

    @property
    def uses_counts(self) -> bool:
        """Whether a single column of levels is given as `ReferenceRows.counts` instead of encoded rows."""
        ...

    def fit(self, rows: ReferenceRows) -> Any:
        """The fitted `Reference`; where `by` is a column, an object with `at(groups)` and `coordinates`."""
        ...


class CountableValues(Protocol):
    """Private rows that can be counted in repeated passes, always the same rows. Their number is public."""

    @property
    def n_rows(self) -> int: ...

    def count(self, counter: ValuesCounter) -> list[Counts]:
        """The sums over all rows of the counter's results for parts of them, array by array: private."""
        ...

    def frequencies(self, names: Sequence[str], at_least: int = 1) -> dict[str, Frequencies]:
        """The distinct values of some columns that this many cells have, and how many have each: private."""
        ...

    def keep_labels(self, kept: Mapping[str, NDArray[np.intp]]) -> None:
        """Settle the labels of some columns: the kept ones, given by their numbers in `Frequencies.values`, after one
        label for all others, which is number 0. Later counts see these labels.
        """
        ...

    def label_numbers(self, name: str, labels: Sequence[Any]) -> list[int]:
        """The numbers that some labels of a column have now; -1 for one that it does not have."""
        ...


@dataclass(frozen=True, eq=False)
class Frequencies:
    """The distinct values of one column, in order, nulls left out; private. Labels are numbered 0, 1, ...."""

    values: NDArray[Any] = field(repr=False)
    counts: Counts = field(repr=False)
    others: int = 0
    """How many cells already have the label that stands for all others."""


class Learned(Protocol):
    """A reference that was learned from private rows, with the kinds and codecs of the columns it was learned for."""

    @property
    def kinds(self) -> tuple[Kind, ...]: ...

    @property
    def codecs(self) -> tuple[Any, ...]:
        """A `Codec` for each column: learning chooses the bins."""
        ...

    @property
    def reference(self) -> Reference: ...

    @property
    def order(self) -> tuple[int, ...]:
        """The columns of V in the order of the chain rule."""
        ...

    @property
    def measurements(self) -> Measurements:
        """The noisy counts that it was learned from."""
        ...


class LearningPlan(Protocol):
    """All that is decided before the privacy budget is spent on a reference; it depends on public facts alone."""

    @property
    def reference_epsilon(self) -> Fraction:
        """The part of ε that each row pays for the reference."""
        ...

    @property
    def delta(self) -> Fraction:
        """δ: what labels and frequent values, and Gaussian noise, cost beside ε. 0 where nothing needs it."""
        ...

    @property
    def row_epsilon(self) -> float:
        """The part of ε that is left for a released row's own noise."""
        ...

    def count_noises(self, rows: int) -> list[float]:
        """The standard deviation of the noise of a count of each column, learned from this number of rows."""
        ...

    def coordinates(self) -> list[UniformCoordinate]:
        """What is public about the columns of U before the reference is learned."""
        ...

    def learn(self, rows: CountableValues, bits: Bits) -> Learned:
        """Spend `reference_epsilon` on these rows."""
        ...


class LearnableSpec(ReferenceSpec, Protocol):
    """A spec that is learned from all rows under differential privacy."""

    @property
    def labels(self) -> LabelPolicy:
        """Where the labels of text columns come from that the schema does not declare."""
        ...

    def check(self, columns: Sequence[NumericColumn], schema: Schema) -> None:
        """Refuse columns that cannot be learned, before any row is read: labels need not be known yet."""
        ...

    def plan(
        self,
        columns: Sequence[NumericColumn],
        schema: Schema,
        epsilon: float,
        delta: float,
        rows: int,
        *,
        disjoint: bool,
    ) -> LearningPlan:
        """Divide ε between reference and rows; where the rows learned from are `disjoint`, both have all of it.

        Parameters
        ----------
        delta
            At most this much δ; 0 for pure ε-differential privacy.
        rows
            How many rows it will be learned from: public.
        """
        ...


_specs: Names[ReferenceSpec] = Names("reference")
reference_spec = _specs.register
"""Register a spec class that needs no arguments: `@reference_spec("private")` makes `reference="private"` work."""


def registered_names() -> tuple[str, ...]:
    """The names that `by_name` knows."""
    return tuple(_specs)


def by_name(name: str) -> ReferenceSpec:
    """The spec that is registered under a name, with its default options.

    Raises
    ------
    InputError : there is none; the message lists the names.
    """
    return _specs.make(name)


def as_spec(reference: ReferenceSpec | str) -> ReferenceSpec:
    """A spec, or the one that is registered under this name.

    Raises
    ------
    InputError
        If it is neither.
    """
    if isinstance(reference, str):
        return by_name(reference)
    members = {"source", "by", "order", "kinds", "exposes", "describe"}
    members |= {"check", "plan"} if getattr(reference, "source", None) == "private" else {"fit"}
    if isinstance(reference, type) or not all(hasattr(reference, member) for member in members):
        raise InputError(f"expected a reference, got {type(reference).__name__}.", _remedy())
    return reference


def _remedy() -> str:
    names = ", ".join(f'"{name}"' for name in _specs)
    return f"Use {names}, or Private, Known, Empirical, Parametric or Grouped from dipriv.references."


def draw_order(order: Order, names: Sequence[str], bits: Bits) -> list[int]:
    """The positions of the columns in the order the chain rule takes them; columns not listed come last."""
    if order is None:
        return list(range(len(names)))
    if isinstance(order, str):
        return [int(position) for position in np.argsort(bits.words(len(names)), kind="stable")]
    listed = [names.index(name) for name in order]
    return listed + [position for position in range(len(names)) if position not in listed]
