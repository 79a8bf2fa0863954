"""Privacy units and contribution bounding: all rows of a person (or of a household) share ε.

With at most K rows per person and ε/K a row, the rows of one person together are ε-private (group privacy). If a row is
(ε', δ')-private, K rows together are (K ε', δ' (1 + e^ε' + ... + e^((K - 1) ε')))-private (Vadhan 2017, Lemma 2.2).
Which K rows of a person are kept is decided by a keyed hash of their positions: by nothing that the rows contain.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import Mask
from dipriv._base.decimals import at_most, round_down
from dipriv._random.bits import Bits
from dipriv._random.streams import Stream
from dipriv._tables.frames import Table, check_names
from dipriv.errors import InputError
from dipriv.sources._cells import cell_hashes, value_hashes
from dipriv.sources.holdout import Split, checked_keys

_NO_SECRET = np.zeros(2, dtype=np.uint64)
"""The key of hashes that do not leave a release: they are compared, and forgotten."""
_DIGITS = 60
"""Of the sum for group privacy; at most 15 of them cancel, for the smallest ε and the largest number of rows."""


@dataclass(frozen=True)
class ContributionBound:
    """The column that identifies the person (or other entity) a row belongs to, and the contribution bound.

    >>> ContributionBound("person", 4).row_epsilon(1.0) * 4 <= 1.0
    True
    """

    column: str
    max_rows: int = 10
    constant: tuple[str, ...] = ()
    """Columns that are taken as constant in a person."""

    def __post_init__(self) -> None:
        if isinstance(self.max_rows, bool) or not isinstance(self.max_rows, int) or not 1 <= self.max_rows <= 1_000_000:
            raise InputError(
                f"rows_per_unit={self.max_rows!r} is not a whole number from 1 to 1,000,000.",
                "Give the largest number of rows of a person that are released.",
            )

    def row_epsilon(self, epsilon: float) -> float:
        """The budget of one row: K of them add up to no more than ε."""
        if self.max_rows == 1:
            return epsilon
        return min(math.nextafter(epsilon / self.max_rows, 0.0), round_down(at_most(epsilon) / self.max_rows))

    def row_delta(self, epsilon: float, delta: float) -> float:
        """The δ of one row: with `row_epsilon(epsilon)`, K rows have no more than δ together.

        It is rounded down, and 0 where it is too small for a float.

        >>> f"{ContributionBound('person', 10).row_delta(1.0, 1e-9):.3g}"
        '6.12e-11'
        """
        if self.max_rows == 1 or not delta:
            return delta
        with localcontext(prec=_DIGITS, Emax=MAX_EMAX, Emin=MIN_EMIN):
            row_epsilon = Decimal(self.row_epsilon(epsilon))
            rows = ((self.max_rows * row_epsilon).exp() - 1) / (row_epsilon.exp() - 1)
            return math.nextafter(float(Decimal(repr(delta)) / rows), 0.0)

    def describe(self) -> str:
        return f"the rows of one {self.column!r} (at most {self.max_rows})"

    def kept(self, keys: NDArray[np.uint64], scores: NDArray[np.uint64]) -> Mask:
        """True for the rows of each key with the lowest scores, at most `max_rows` of them."""
        order = np.lexsort((scores, keys))
        ordered = keys[order]
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        sizes = np.diff(np.append(starts, len(keys)))
        rank = np.arange(len(keys)) - np.repeat(starts, sizes)
        kept = np.empty(len(keys), dtype=bool)
        kept[order] = rank < self.max_rows
        return kept


def unit_keys(unit: ContributionBound, table: Table, bits: Bits, first: int = 0) -> tuple[NDArray[np.uint64], ...]:
    """A keyed number for each row's unit, one for the row itself, and one for its cell in each constant column."""
    check_names([unit.column], table.names, "the split")
    keys = value_hashes(checked_keys(table, unit.column), bits.child(Stream.PERSONS).words(2)).high
    cells = [cell_hashes(table.array(name), _NO_SECRET).high for name in unit.constant]
    return keys, Split.new(bits=bits.child(Stream.ROWS_OF_PERSONS)).scores(table, first), *cells


@dataclass(frozen=True, eq=False)
class BoundedRows:
    """The rows that contribution bounding keeps, and whose they are."""

    kept: Mask = field(repr=False)
    keys: NDArray[np.uint64] = field(repr=False)
    differing: Mapping[str, int] = field(repr=False)
    """{constant column: how many persons have rows that differ there}: private."""

    @classmethod
    def of(cls, unit: ContributionBound, keys: Sequence[NDArray[np.uint64]]) -> BoundedRows:
        """From what `unit_keys` gives for all rows."""
        persons, scores, *cells = keys
        kept = unit.kept(persons, scores)
        numbers = numbers_of(persons[kept])
        firsts = np.unique(numbers, return_index=True)[1]
        differing = {
            name: len(np.unique(numbers[values[kept] != values[kept][firsts[numbers - 1]]]))
            for name, values in zip(unit.constant, cells, strict=True)
        }
        return cls(kept, persons, differing)


def numbers_of(keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """1, 2, 3, ... for the keys of rows, in the order in which keys appear first.

    >>> numbers_of(np.array([7, 3, 7, 9, 3], dtype=np.uint64)).tolist()
    [1, 2, 1, 3, 2]
    """
    firsts, places = np.unique(keys, return_index=True, return_inverse=True)[1:]
    ranks = np.empty(len(firsts), dtype=np.int64)
    ranks[np.argsort(firsts)] = np.arange(1, len(firsts) + 1)
    return ranks[places]
