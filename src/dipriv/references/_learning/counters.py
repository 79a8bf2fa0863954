"""Exact counts of some rows, side by side for many columns. What they return is private.

The counters are sent to the workers that read the rows. They contain domains, lines, boundaries, codecs and groups,
which are public or were measured under differential privacy, and never future noise or its key.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import Counts
from dipriv._base.columns import PRESENT, ColumnValues, ValuesOf
from dipriv._base.jit import jit
from dipriv._base.parallel import in_parallel
from dipriv.codecs.binned import BinnedCodec, RankedLevelsCodec
from dipriv.codecs.ordered_codes import Codes, OrderedCodes
from dipriv.references._learning.domain import Domain
from dipriv.references._models.network import Groups

StatesCodec: TypeAlias = BinnedCodec | RankedLevelsCodec


class ColumnCounter(Protocol):
    """Counts the cells of one column."""

    @property
    def domain(self) -> Domain: ...

    def of_cells(self, cells: ColumnValues) -> Counts:
        """Exact counts of some cells; those of several parts add up."""
        ...


@dataclass(frozen=True, eq=False)
class LevelsCounter:
    """How many cells are in each state of a column of listed levels."""

    domain: Domain
    codec: RankedLevelsCodec = field(repr=False)

    def of_cells(self, cells: ColumnValues) -> Counts:
        return np.bincount(self.codec.to_states(cells), minlength=self.codec.states)


@dataclass(frozen=True, eq=False)
class StepsCounter:
    """How many values are multiples of each step of the domain, but of no coarser one."""

    domain: Domain

    def of_cells(self, cells: ColumnValues) -> Counts:
        return self.domain.step_classes(cells)


@dataclass(frozen=True, eq=False)
class LineCounter:
    """How many codes are below each boundary; then how many values are present, and of each kind of missing ones."""

    domain: Domain
    line: OrderedCodes = field(repr=False)
    boundaries: Codes = field(repr=False)

    def of_cells(self, cells: ColumnValues) -> Counts:
        kinds = [0 if cells.missing is None else int((cells.missing == kind).sum()) for kind in self.domain.missing]
        absent = 0 if cells.missing is None else int((cells.missing != PRESENT).sum())
        counts = below(self.line.to_codes(cells.present), self.boundaries)
        return np.concatenate([counts, [len(cells) - absent], np.array(kinds, dtype=np.int64)])


@dataclass(frozen=True, eq=False)
class ColumnsCounter:
    """A pass over the rows: one array a column."""

    columns: tuple[ColumnCounter, ...]

    def __call__(self, values_of: ValuesOf) -> list[Counts]:
        return in_parallel(lambda column: column.of_cells(column.domain.values(values_of)), self.columns)


@dataclass(frozen=True, eq=False)
class PairsCounter:
    """A pass over the rows: one table of joint groups for each pair of columns, in the order of `pairs`."""

    domains: tuple[Domain, ...]
    codecs: tuple[StatesCodec, ...] = field(repr=False)
    group_of: tuple[Groups, ...] = field(repr=False)
    """The group of each state, column by column."""

    @property
    def pairs(self) -> list[tuple[int, int]]:
        return [(i, j) for i in range(len(self.domains)) for j in range(i + 1, len(self.domains))]

    def __call__(self, values_of: ValuesOf) -> list[Counts]:
        def groups(number: int) -> NDArray[np.int32]:
            states = self.codecs[number].to_states(self.domains[number].values(values_of))
            return self.group_of[number][states].astype(np.int32)

        columns = in_parallel(groups, range(len(self.domains)))
        sizes = [int(groups.max()) + 1 for groups in self.group_of]

        def joint(pair: tuple[int, int]) -> Counts:
            i, j = pair
            counts = np.zeros((sizes[i], sizes[j]), dtype=np.int64)
            count_joint(columns[i], columns[j], sizes[j], counts.reshape(-1))
            return counts

        return in_parallel(joint, self.pairs)


def below(codes: Codes, boundaries: Codes) -> Counts:
    """How many codes are less than each of the sorted boundaries."""
    counts = np.zeros(len(boundaries) + 1, dtype=np.int64)
    tally(codes, boundaries, counts)
    return np.cumsum(counts)[:-1]


@jit
def tally(codes: Codes, boundaries: Codes, counts: Counts) -> None:
    """counts[k] grows by the codes that exactly k boundaries are not above."""
    for i in range(len(codes)):
        low, high = 0, len(boundaries)
        while low < high:
            middle = (low + high) >> 1
            if boundaries[middle] <= codes[i]:
                low = middle + 1
            else:
                high = middle
        counts[low] += 1


@jit
def count_joint(first: NDArray[np.int32], second: NDArray[np.int32], width: int, counts: Counts) -> None:
    for i in range(len(first)):
        counts[first[i] * width + second[i]] += 1
