"""The rows that a private reference is learned from: only sums over all of them are asked for, and listed labels.

A pass is one call with a counter, a pure function of some rows that can be pickled, so it can run where the rows are:
in this process, or on the machines of a cluster. Noise is added afterwards, by the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import pyarrow as pa

from dipriv._arrays import Counts
from dipriv._tables.arrow import distinct_labels
from dipriv._tables.frames import Table

Counter: TypeAlias = Callable[[Table], list[Counts]]
"""Exact counts of some rows, in arrays whose shapes do not depend on the rows. A counter holds public things only."""
Labels: TypeAlias = dict[str, pa.Array]


class CountableRows(Protocol):
    """Rows that can be read again and again, the same ones each time. How many they are is public.

    Every table that a counter is given holds infinities (`Table.clip_infinities`): no row may make an error.
    """

    @property
    def n_rows(self) -> int: ...

    def count(self, counter: Counter) -> list[Counts]:
        """The sums over all rows of what `counter` gives for parts of them, array by array: private."""
        ...

    def labels(self, names: Sequence[str]) -> Labels:
        """All distinct labels of these columns, as `distinct_labels` sorts them; nulls are left out."""
        ...


@dataclass(frozen=True)
class CountedTables:
    """Rows in tables on this machine, some at a time."""

    n_rows: int
    tables: Callable[[], Iterable[Table]] = field(repr=False)

    def count(self, counter: Counter) -> list[Counts]:
        sums: list[Counts] = []
        for table in self.tables():
            sums = added(sums, counter(table))
        return sums

    def labels(self, names: Sequence[str]) -> Labels:
        seen: Labels = {}
        for table in self.tables():
            seen = merged(seen, labels_in(table, names))
        return seen


def added(sums: list[Counts], counts: list[Counts]) -> list[Counts]:
    """The counts of two parts of the rows together, in any order; [] stands for no rows."""
    if not sums or not counts:
        return sums or counts
    return [one + other for one, other in zip(sums, counts, strict=True)]


def labels_in(table: Table, names: Sequence[str]) -> Labels:
    """The distinct labels of some columns in these rows, sorted."""
    return {name: distinct_labels(table.array(name)) for name in names}


def merged(one: Labels, other: Labels) -> Labels:
    """The labels of two parts of the rows together, in any order; {} stands for no rows."""
    if not one or not other:
        return one or other
    return {name: distinct_labels(pa.concat_arrays([seen, other[name].cast(seen.type)])) for name, seen in one.items()}
