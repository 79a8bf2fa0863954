"""Rows that can be read again and again, always the same ones: in memory, in files, in a stream, on a cluster.

A release reads its rows in passes. The first pass (`RowSource.scan`) counts the rows, settles their types, digests them
block by block and fingerprints them for the ledger. What it returns, `Rows`, serves the later passes: exact counts for
a private reference, the hold-out, the release itself. A new source is one file that registers itself with `row_source`
and passes tests/contracts/test_sources.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import Counts, FloatArray, Mask
from dipriv._base.parallel import each_in_parallel
from dipriv._base.progress import Progress, no_progress
from dipriv._base.table_fingerprint import TableFingerprint
from dipriv._random.bits import Bits
from dipriv._tables.column_types import TypeRules
from dipriv._tables.frames import Column, Table
from dipriv._tables.presentation import Presentation
from dipriv._tables.value_counts import RunningCounts, ValueCounts, count_values, frequent
from dipriv.sources.contribution_bound import ContributionBound
from dipriv.sources.holdout import GroupHoldout, Split

Counter: TypeAlias = Callable[[Table], list[Counts]]
"""Exact counts of some rows, in arrays whose shapes do not depend on the rows. A counter contains public data only."""
View: TypeAlias = Callable[[Table], Table]
"""The same rows with further columns, each row by itself. It contains public data only, and can be pickled."""
Data = TypeVar("Data")
Data_co = TypeVar("Data_co", covariant=True)


class CountableRows(Protocol):
    """Rows that only sums are asked of. How many they are is public.

    A pass is one call with a counter, a pure function of some rows that can be pickled, so it can run where the rows
    are. Noise is added afterwards, by the caller. No row may raise an error.
    """

    @property
    def n_rows(self) -> int: ...

    def count(self, counter: Counter) -> list[Counts]:
        """The sums over all rows of what `counter` gives for parts of them, array by array: private."""
        ...

    def value_counts(self, names: Sequence[str], at_least: int = 1) -> dict[str, ValueCounts]:
        """The values of these columns that at least `at_least` cells have, in order, and how many have each: private.

        Labels are as the table holds them, other values the numbers of `Table.cells`. Nulls and NaN are left out.
        """
        ...


@dataclass(frozen=True)
class CountedTables:
    """Rows in tables on this machine, some at a time; the values of some columns may have been counted."""

    n_rows: int
    tables: Callable[[], Iterable[Table]] = field(repr=False)
    known_counts: Mapping[str, ValueCounts] = field(repr=False, default_factory=dict)

    def count(self, counter: Counter) -> list[Counts]:
        counts: list[Counts] = []
        return reduce(added, each_in_parallel(counter, self.tables()), counts)

    def value_counts(self, names: Sequence[str], at_least: int = 1) -> dict[str, ValueCounts]:
        rest = [name for name in names if name not in self.known_counts]
        running = RunningCounts()
        for table in self.tables() if rest else ():
            running.add(count_values(table, rest))
        found = {**self.known_counts, **running.total()}
        return frequent({name: found[name] for name in names}, at_least)


def added(sums: list[Counts], counts: list[Counts]) -> list[Counts]:
    """The counts of two parts of the rows together, in any order; [] stands for no rows."""
    if not sums or not counts:
        return sums or counts
    return [one + other for one, other in zip(sums, counts, strict=True)]


@dataclass(frozen=True)
class FingerprintRequest:
    """A key for fingerprints that a ledger knows again, and how many rows the tables have that it knows."""

    key: bytes = field(repr=False)
    prefix_sizes: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Scan:
    """What the first pass needs to know."""

    privatized: tuple[str, ...]
    keep: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    """Columns that decide which rows are selected: the privacy unit, the key of a split."""
    anew: tuple[str, ...] = ()
    """Columns whose cells are replaced by new identifiers: their type must not depend on cells."""
    counted: bool = True
    """Whether a private reference is learned from the rows, in many passes."""
    fingerprint: FingerprintRequest | None = None
    learns_from_all: bool = False
    """Whether a private reference is learned from all rows, and all of them are released."""
    labels_of: tuple[str, ...] = ()
    """Columns whose labels will be counted, if they are text: one pass less where that is done in this one."""
    types: TypeRules = field(default_factory=TypeRules)
    """What is said about the types of columns of text."""
    progress: Progress = field(repr=False, default=no_progress)

    @property
    def verified(self) -> tuple[str, ...]:
        """The columns whose content must be the same in every pass."""
        return tuple(dict.fromkeys((*self.privatized, *self.keys)))

    @property
    def passed_through(self) -> tuple[str, ...]:
        """The columns that are used as they are written."""
        return tuple(dict.fromkeys((*self.keep, *self.anew, *self.keys)))

    @property
    def used(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.privatized, *self.passed_through)))


@dataclass(frozen=True, eq=False)
class RowSelection:
    """Which rows are held out and which are released; the rest is dropped by contribution bounding."""

    n_rows: int
    n_held_out: int = 0
    n_reference: int = 0
    """Rows of the hold-out that the reference is fitted on: those within the contribution bound."""
    n_released: int = 0
    split: Split | None = field(repr=False, default=None)
    within_bound: Mask | None = field(repr=False, default=None)
    """Rows that contribution bounding keeps; None for all."""
    held_out: Mask | None = field(repr=False, default=None)
    """The hold-out, where it is not the split's own."""
    persons: NDArray[np.int64] | None = field(repr=False, default=None)
    """With a privacy unit: whose each released row is, numbered 1, 2, ... in the order of their first released rows."""
    differing: Mapping[str, int] = field(repr=False, default_factory=dict)
    """{constant column: how many persons have rows that differ there}: private."""
    keys_digest: bytes | None = field(repr=False, default=None)
    """`Split.digest_of` the keys of all rows, where they decide who is held out."""

    @property
    def n_dropped(self) -> int:
        return self.n_rows - self.n_held_out - self.n_released

    def reference_rows(self, table: Table, first: int) -> Mask | None:
        """The rows of a block, the first of which has this number, that the reference is fitted on; None for all."""
        return _both(self._held(table, first), self._bounded(table, first))

    def released_rows(self, table: Table, first: int) -> Mask | None:
        """The rows of a block that are released; None for all."""
        held = self._held(table, first)
        return _both(None if held is None else ~held, self._bounded(table, first))

    def _held(self, table: Table, first: int) -> Mask | None:
        if self.held_out is not None:
            return self.held_out[first : first + table.rows]
        return None if self.split is None else self.split.held_out(table, first)

    def _bounded(self, table: Table, first: int) -> Mask | None:
        return None if self.within_bound is None else self.within_bound[first : first + table.rows]


def _both(one: Mask | None, other: Mask | None) -> Mask | None:
    if one is None or other is None:
        return one if other is None else other
    return one & other


class Persons:
    """Whose the rows are that are released one table after the other, and what was released of a person before.

    Parameters
    ----------
    numbers : the person of each released row: 1, 2, ....
    column : the column that shows these numbers; None where none does.
    """

    def __init__(self, numbers: NDArray[np.int64], column: str | None = None) -> None:
        self.numbers, self.column = numbers, column
        self._once: FloatArray | None = None

    def share(self, values: FloatArray, first: int) -> FloatArray:
        """For consecutive rows of (n, d) values, from number `first` on, those of their persons' first rows.

        Tables have to come in the order of their rows.
        """
        persons = self.numbers[first : first + len(values)] - 1
        if self._once is None:
            self._once = np.full((int(self.numbers.max()), values.shape[1]), np.nan)
        new, places = np.unique(persons, return_index=True)
        unknown = np.isnan(self._once[new]).all(axis=1)
        self._once[new[unknown]] = values[places[unknown]]
        shared: FloatArray = self._once[persons]
        return shared


class ReleasesTables(Protocol):
    """A fitted mechanism, as sources use it."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def anew(self) -> tuple[str, ...]:
        """The columns of new identifiers, 1, 2, 3, ... in the order of the released rows."""
        ...

    def typed(self, table: Table) -> Table:
        """The table with the types and codes that the mechanism has; doing it again changes nothing."""
        ...

    def release(
        self,
        table: Table,
        keep: Sequence[str],
        bits: Bits,
        first: int = 0,
        progress: Progress = no_progress,
        *,
        persons: Persons | None = None,
        sums: Mapping[str, Fraction] | None = None,
    ) -> Any:
        """Release every row of the table; `first` is the number of the first one among all released rows."""
        ...

    @property
    def totals(self) -> Mapping[str, float]:
        """{column: the public total of its weights}; where there are any, `release` needs the sums of all tables."""
        ...

    def weight_sums(
        self, table: Table, bits: Bits, first: int = 0, *, persons: Persons | None = None
    ) -> Mapping[str, Fraction]:
        """The sums of what is released of these columns, before it is rescaled."""
        ...


@dataclass(frozen=True, eq=False)
class ReleaseJob:
    """Everything that is needed to release the selected rows."""

    mechanism: ReleasesTables = field(repr=False)
    keep: tuple[str, ...]
    noise: Bits = field(repr=False)
    selection: RowSelection
    progress: Progress = field(repr=False, default=no_progress)
    keys: str | None = None
    """The column of the privacy unit, which is released with new keys; None where it is not."""

    def persons(self) -> Persons | None:
        """For a pass over the released rows: whose they are."""
        numbers = self.selection.persons
        return None if numbers is None else Persons(numbers, self.keys)


class Rows(Protocol[Data_co]):
    """Rows after the first pass. Every later pass gives the same ones, or raises `SourceChangedError`."""

    @property
    def n_rows(self) -> int: ...

    @property
    def fingerprint(self) -> TableFingerprint | None: ...

    @property
    def empty(self) -> Table:
        """A table of these columns, whose rows do not matter: names and types."""
        ...

    @property
    def presentation(self) -> Presentation:
        """How the source presents its table, for a release in kind."""
        ...

    def columns(self, names: Sequence[str]) -> list[Column]:
        """The public facts of some columns."""
        ...

    def select(
        self, split: Split | None, unit: ContributionBound | None, groups: GroupHoldout | None, bits: Bits
    ) -> RowSelection:
        """Who is held out and released, by the split, the privacy unit or the groups."""
        ...

    def countable(self, selection: RowSelection, view: View | None = None) -> CountableRows:
        """The rows that a private reference is learned from: the hold-out if there is one, else the released rows.

        With a view, they have its columns, too.
        """
        ...

    def gather(self, selection: RowSelection) -> Table:
        """The hold-out, in memory."""
        ...

    def release(self, job: ReleaseJob) -> Data_co:
        """The released rows, at once or when they are read."""
        ...

    def end_learning(self) -> None:
        """Remove what the release does not need of what the passes left behind."""
        ...

    def close(self) -> None:
        """Remove what the passes left behind."""
        ...


class RowSource(Protocol[Data_co]):
    """Where rows come from."""

    @property
    def name(self) -> str:
        """For messages."""
        ...

    @property
    def column_names(self) -> tuple[str, ...]: ...

    @property
    def limits(self) -> Mapping[str, str]:
        """{option: why this source cannot serve it}: "groups", "unit", "sample", "totals"."""
        ...

    @property
    def writes_folder(self) -> bool:
        """Whether released rows are written as a folder of files rather than as one file."""
        ...

    @property
    def suggested_dataset(self) -> str | None:
        """A name for the data set in the ledger."""
        ...

    @property
    def releases_later(self) -> bool:
        """Whether these rows are for fitting only, and other rows are released with the result."""
        ...

    def infers_types(self, names: Sequence[str], rules: TypeRules) -> bool:
        """Whether the cells of one of these columns settle its type."""
        ...

    def scan(self, request: Scan) -> Rows[Data_co]:
        """The first pass."""
        ...


_SOURCES: list[tuple[Callable[[Any], bool], Callable[[Any], RowSource[Any]]]] = []


def row_source(
    accepts: Callable[[Any], bool],
) -> Callable[[Callable[[Any], RowSource[Data]]], Callable[[Any], RowSource[Data]]]:
    """Register a function that opens every object that `accepts` recognizes."""

    def register(opener: Callable[[Any], RowSource[Data]]) -> Callable[[Any], RowSource[Data]]:
        _SOURCES.append((accepts, opener))
        return opener

    return register


def registered_source(thing: Any) -> RowSource[Any] | None:
    """The source that the newest registration opens, if one accepts the thing."""
    for accepts, opener in reversed(_SOURCES):
        if accepts(thing):
            found: RowSource[Any] = opener(thing)
            return found
    return None
