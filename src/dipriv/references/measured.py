"""What a private reference was learned from: noisy counts and how large their noise is. All of it may be published."""

from __future__ import annotations

from dataclasses import dataclass, field

from dipriv._base.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class MeasuredColumn:
    """The reference's histogram of one column."""

    name: str
    counts: FloatArray = field(repr=False)
    """How many rows the reference gives each state, in the order of the codec; they add up to the number of rows."""
    deviation: float
    """The standard deviation of the noise that was added to each count."""


@dataclass(frozen=True, eq=False)
class MeasuredPair:
    """A pair of columns whose two-way table was measured."""

    names: tuple[str, str]
    counts: FloatArray = field(repr=False)
    """How many rows the reference gives each pair of groups of states."""
    deviation: float
    """The standard deviation of the noise in each cell of the measured table."""


@dataclass(frozen=True, eq=False)
class Measurements:
    """All columns, and the pairs that were measured; other pairs are independent given those."""

    n_rows: int
    columns: tuple[MeasuredColumn, ...]
    pairs: tuple[MeasuredPair, ...] = ()
    pairs_named: bool = False
    """Whether pairs, or a target, were named to be measured first."""
    foreseen: tuple[float, ...] = ()
    """For each column the standard deviation that public facts let expect: of dates it depends on the rows."""
