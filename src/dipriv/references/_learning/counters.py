"""Exact counts of some rows, side by side for many columns. What they return is private.

The counters are sent to the workers that read the rows. They contain domains, lines, boundaries, codecs and groups,
which are public or were measured under differential privacy, and never future noise or its key.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import Counts
from dipriv._base.columns import PRESENT, ColumnValues, ValuesOf
from dipriv._base.jit import jit
from dipriv._base.parallel import in_parallel, pieces, threads
from dipriv.codecs.binned import BinnedCodec, RankedLevelsCodec
from dipriv.codecs.code_index import CodeIndex
from dipriv.codecs.ordered_codes import Codes, OrderedCodes
from dipriv.references._learning.domain import Domain
from dipriv.references._models.network import Groups

StatesCodec: TypeAlias = BinnedCodec | RankedLevelsCodec

PIECE_ROWS = 1 << 15
"""Rows that are counted at once: what is computed from them stays in the processor's cache."""
BLOCK_ROWS = 1 << 18
"""Rows whose groups are in memory at a time when pairs are counted."""


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

    @cached_property
    def _index(self) -> CodeIndex:
        return self.line.index(self.boundaries)

    def of_cells(self, cells: ColumnValues) -> Counts:
        kinds = [0 if cells.missing is None else int((cells.missing == kind).sum()) for kind in self.domain.missing]
        absent = 0 if cells.missing is None else int((cells.missing != PRESENT).sum())
        counts = self._index.below(self.line.to_codes(cells.present))
        return np.concatenate([counts, [len(cells) - absent], np.array(kinds, dtype=np.int64)])


@dataclass(frozen=True, eq=False)
class ColumnsCounter:
    """A pass over the rows: one array a column."""

    columns: tuple[ColumnCounter, ...]

    def __call__(self, values_of: ValuesOf) -> list[Counts]:
        cells = in_parallel(lambda column: column.domain.values(values_of), self.columns)
        rows = len(cells[0])

        def count(part: slice) -> list[Counts]:
            return [
                _total(column.of_cells(own.take(piece)) for piece in pieces(part, PIECE_ROWS))
                for column, own in zip(self.columns, cells, strict=True)
            ]

        parts = in_parallel(count, pieces(slice(0, rows), max(PIECE_ROWS, -(-rows // threads()))))
        return [_total(counts) for counts in zip(*parts, strict=True)]


def _total(counts: Iterable[Counts]) -> Counts:
    return reduce(np.add, counts)


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
        cells = in_parallel(lambda domain: domain.values(values_of), self.domains)
        sizes = [int(groups.max()) + 1 for groups in self.group_of]
        narrow = np.min_scalar_type(max(sizes) - 1)
        group_of = [groups.astype(narrow) for groups in self.group_of]
        counts = {(i, j): np.zeros((sizes[i], sizes[j]), dtype=np.int64) for i, j in self.pairs}
        columns = range(len(self.domains))
        for block in pieces(slice(0, len(cells[0])), BLOCK_ROWS):
            groups = np.empty((len(columns), block.stop - block.start), dtype=narrow)

            def encode(part: tuple[int, slice], start: int = block.start, groups: NDArray[Any] = groups) -> None:
                number, piece = part
                states = self.codecs[number].to_states(cells[number].take(piece))
                groups[number, piece.start - start : piece.stop - start] = group_of[number][states]

            def count(first: int, groups: NDArray[Any] = groups) -> None:
                for other in range(first + 1, len(columns)):
                    count_joint(groups[first], groups[other], sizes[other], counts[first, other].reshape(-1))

            in_parallel(encode, [(number, piece) for number in columns for piece in pieces(block, PIECE_ROWS)])
            in_parallel(count, columns)
        return list(counts.values())


@jit
def count_joint(first: NDArray[Any], second: NDArray[Any], width: int, counts: Counts) -> None:
    for i in range(len(first)):
        counts[np.int64(first[i]) * width + np.int64(second[i])] += 1
