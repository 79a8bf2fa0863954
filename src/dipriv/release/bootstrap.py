"""The parametric bootstrap: tables drawn from a private reference, learned and released again with fresh noise.

What is needed for it is private output and public options, so a replicate is post-processing: it costs no ε and anyone
who has the model may make it. How far released statistics of replicates are from those of the reference shows how far
the released statistic is from the truth (Räisä, Jälkö, Kaski, Honkela 2023, NAPSU-MQ; Efron 1979).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dipriv._base.arrays import Counts
from dipriv._base.columns import ColumnValues, NumericColumn
from dipriv._base.coordinates import UniformCoordinate
from dipriv._base.parallel import in_chunks
from dipriv._random.bits import Bits, Draws, source
from dipriv._random.streams import Stream
from dipriv._tables.fitted_columns import FittedColumn
from dipriv._tables.frames import Column
from dipriv.errors import InputError, InternalError
from dipriv.kernels import Kernel, KernelSpec
from dipriv.mechanism import decode, fill_missing
from dipriv.references._learning.adaptive import RoundCost
from dipriv.references._learning.learn import MarkovPlan
from dipriv.references._learning.measurements import Spread
from dipriv.references._learning.shares import Shares
from dipriv.references.private import Private
from dipriv.references.protocol import Frequencies, Reference, ValuesCounter
from dipriv.release.fitting import FitPlan, FittedMechanism, learn_mechanism
from dipriv.release.labels import label_numbers
from dipriv.release.options import ReleaseOptions
from dipriv.release.rules import Rewriting
from dipriv.schema import Schema
from dipriv.statistics import Cells

MAX_CELLS = 1 << 25
"""The most cells of a replicate: about 70 bytes each, so two gigabytes."""


@dataclass(frozen=True, eq=False)
class BootstrapModel:
    """The reference of a release, and the options under which it was learned: all of it may be published."""

    columns: tuple[FittedColumn, ...]
    reference: Reference = field(repr=False)
    order: tuple[int, ...]
    spec: Private
    kernel: KernelSpec
    declared: Schema
    epsilon: float
    """The ε of one row, for the reference and its own noise."""
    delta: float
    n_learned: int
    """How many rows the reference was learned from."""
    n_released: int
    disjoint: bool
    """Whether these are other rows than the released ones."""
    found: tuple[str, ...]
    """Columns whose labels were found under differential privacy."""
    pairs: tuple[tuple[str, str], ...]
    """The pairs of columns that were measured."""
    deviations: Mapping[str, float]
    """The standard deviation of the noise in each count of a column."""
    rewriting: Rewriting | None = None
    """The rules of the schema, by which released columns follow from those of the reference."""

    @classmethod
    def of(cls, fitted: FittedMechanism, plan: FitPlan, options: ReleaseOptions, n_released: int) -> BootstrapModel:
        """The model of a release with a private reference."""
        measured = fitted.measurements
        if measured is None:
            raise InternalError("the reference was not measured.", "This is a fault in dipriv: report it.")
        return cls(
            fitted.columns,
            fitted.reference,
            fitted.order,
            cast(Private, options.spec if fitted.rewriting is None else options.spec_for(fitted.rewriting)),
            options.kernel_spec,
            plan.schema,
            options.row_epsilon,
            options.row_delta,
            measured.n_rows,
            n_released,
            options.uses_holdout,
            plan.labels_found,
            tuple(pair.names for pair in measured.pairs),
            {column.name: column.deviation for column in measured.columns},
            fitted.rewriting,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the reference."""
        return tuple(column.name for column in self.columns)

    @property
    def facts(self) -> tuple[Column, ...]:
        """The public facts of the columns that are released; by the rules of a schema, they follow from the others."""
        return tuple(column.facts for column in self.columns) if self.rewriting is None else self.rewriting.columns

    @property
    def released_names(self) -> tuple[str, ...]:
        """The columns that are released."""
        return tuple(column.name for column in self.facts)

    def rests_on(self, names: Sequence[str]) -> tuple[str, ...]:
        """The columns of the reference that released columns follow from."""
        return tuple(names) if self.rewriting is None else self.rewriting.about(names).learned_names

    def numeric(self, column: FittedColumn, labels: pa.Array | None) -> NumericColumn:
        """What learning knows about a column beforehand."""
        numeric = column.facts.numeric(labels)
        return numeric if self.rewriting is None else self.rewriting.bounded(numeric)

    @property
    def deviation_of_pairs(self) -> float | None:
        """The standard deviation of the noise in a count of a pair of columns; None where no pairs were measured."""
        cost = self.learning.shares.round
        return None if cost is None else Spread.of(self.learning.shares.kind, float(cost.table)).deviation

    def column(self, name: str) -> FittedColumn:
        """A column of the reference."""
        return self.columns[self.names.index(name)]

    def draw(self, n_rows: int, bits: Bits) -> list[ColumnValues]:
        """Rows of the reference, column by column."""
        draws = Draws(bits, 0, n_rows)
        u = np.stack([draws.of_column(number).uniforms() for number in range(len(self.order))], axis=1)
        v = np.empty_like(u)
        v[:, self.order] = self.reference.from_uniform(np.maximum(u, 2.0**-53))
        return decode([column.codec for column in self.columns], v)

    def check_size(self) -> None:
        """Refuse tables that are too large to be drawn again and again.

        Raises
        ------
        InputError : a table of the release's size does not fit the memory that a replicate may use.
        """
        cells = max(self.n_learned, self.n_released) * len(self.columns)
        if cells > MAX_CELLS:
            raise InputError(
                f"a replicate would have {cells:,} cells; {MAX_CELLS:,} are the most.",
                "The noise of such a large table is small: use release.reference without errors (replicates=0).",
            )

    def replicate(self, number: int, seed: int, known: FittedMechanism | None = None) -> Replicate:
        """A table of the reference and its release, with random bits of their own; `known` was learned before."""
        bits = source(np.random.SeedSequence((seed, number)))
        drawn = self.draw(self.n_learned, bits.child(Stream.ROWS))
        rows = self.draw(self.n_released, bits.child(Stream.SPLIT)) if self.disjoint else drawn
        fitted = known
        if fitted is None:
            values = DrawnValues(self.n_learned, dict(zip(self.names, drawn, strict=True)), self._labels())
            fitted = self._learn(values, bits.child(Stream.FIT))
        given = [_renumbered(*columns) for columns in zip(rows, self.columns, fitted.columns, strict=True)]
        released = _released(fitted, given, bits)
        before, after = (
            cells_of(columns, cells, self.rewriting)
            for columns, cells in ((self.columns, rows), (fitted.columns, released))
        )
        return Replicate(before, after, fitted)

    def _learn(self, values: DrawnValues, bits: Bits) -> FittedMechanism:
        facts = [column.facts for column in self.columns]
        return learn_mechanism(self.learning, self._kernels, facts, tuple(self.declared), values, bits)

    @cached_property
    def _kernels(self) -> KnownKernels:
        return KnownKernels(self.kernel)

    @cached_property
    def learning(self) -> MarkovPlan:
        """The plan of the release with the pairs that were measured, none chosen anew: intervals are given these pairs.

        What the choices cost is left out, and the rest of the budget is divided evenly among the tables.
        """
        numeric = [
            self.numeric(column, None if column.name in self.found else column.labels) for column in self.columns
        ]
        plan = self.spec.plan(numeric, self.declared, self.epsilon, self.delta, self.n_learned, disjoint=self.disjoint)
        shares, cost = plan.shares, plan.shares.round
        if cost is None or not self.pairs:
            return plan
        place = {name: number for number, name in enumerate(self.names)}
        numbers = [(place[one], place[two]) for one, two in self.pairs]
        of_columns = sum(shares.columns, Fraction(0))
        of_tables = (shares.budget - of_columns) * cost.table / cost.total
        again = SharesAgain(
            shares.kind,
            of_columns + of_tables,
            shares.delta,
            shares.chance,
            shares.columns,
            shares.cells,
            RoundCost(Fraction(0), of_tables / len(numbers)),
            shares,
        )
        return replace(plan, first=tuple((min(pair), max(pair)) for pair in numbers), shares=again)

    def _labels(self) -> dict[str, pa.Array]:
        return {column.name: column.labels for column in self.columns if column.labels is not None}


@dataclass(frozen=True)
class SharesAgain(Shares):
    """A division of the budget among known pairs, with the groups of the release that is repeated."""

    original: Shares | None = None

    def groups(self, rows: int) -> int:
        return super().groups(rows) if self.original is None else self.original.groups(rows)

    @property
    def clear(self) -> float:
        return super().clear if self.original is None else self.original.clear


@dataclass(frozen=True, eq=False)
class KnownKernels:
    """A kernel's spec that builds the kernel of coordinates without levels once: all replicates have the same."""

    spec: KernelSpec
    _built: dict[tuple[float, tuple[str, ...]], Kernel] = field(repr=False, default_factory=dict)

    def check(self, epsilon: float, margins: Sequence[UniformCoordinate]) -> None:
        self.spec.check(epsilon, margins)

    def build(self, epsilon: float, names: Sequence[str], margins: Sequence[UniformCoordinate] | None = None) -> Kernel:
        if margins is None or any(margin.probabilities is not None for margin in margins):
            return self.spec.build(epsilon, names, margins)
        key = epsilon, tuple(names)
        if key not in self._built:
            self._built[key] = self.spec.build(epsilon, names, margins)
        return self._built[key]

    def describe(self) -> str:
        return self.spec.describe()


@dataclass(frozen=True, eq=False)
class Replicate:
    """A table that was drawn from the reference, and its release."""

    drawn: Cells
    released: Cells
    fitted: FittedMechanism = field(repr=False)


def cells_of(
    columns: Sequence[FittedColumn], cells: Sequence[ColumnValues], rewriting: Rewriting | None = None
) -> Cells:
    """The released columns with their labels, for statistics, from those of the reference."""
    labelled = {column.name: (of, column.labels) for column, of in zip(columns, cells, strict=True)}
    return Cells(labelled if rewriting is None else rewriting.after(labelled, columns), len(cells[0]))


def _released(fitted: FittedMechanism, cells: Sequence[ColumnValues], bits: Bits) -> list[ColumnValues]:
    """The rows after the mechanism, in chunks that fit the processor's cache."""
    codecs = [column.codec for column in fitted.columns]

    def privatize(rows: slice, first: int) -> list[ColumnValues]:
        here = [column.take(rows) for column in cells]
        draws = Draws(bits.child(Stream.MISSING), first, len(here[0]))
        here = fill_missing(here, codecs, fitted.reference, fitted.order, draws)
        return fitted.mechanism.privatize(here, bits, first)

    return in_chunks(privatize, len(cells[0]), None, len(fitted.order))


@dataclass(eq=False)
class DrawnValues:
    """Drawn rows as a `CountableValues`, in arrays: learning counts them without a table."""

    n_rows: int
    cells: dict[str, ColumnValues] = field(repr=False)
    labels: dict[str, pa.Array] = field(repr=False)
    _found: dict[str, NDArray[np.intp]] = field(repr=False, default_factory=dict)

    def count(self, counter: ValuesCounter) -> list[Counts]:
        return counter(lambda name: self.cells[name])

    def frequencies(self, names: Sequence[str], at_least: int = 1) -> dict[str, Frequencies]:
        return {name: self._frequencies(name, at_least) for name in names}

    def _frequencies(self, name: str, at_least: int) -> Frequencies:
        present = self.cells[name].present
        if name not in self.labels:
            values, counts = np.unique(present, return_counts=True)
            return Frequencies(values[counts >= at_least], counts[counts >= at_least])
        counts = np.bincount(present, minlength=len(self.labels[name]))
        self._found[name] = found = 1 + np.flatnonzero(counts[1:] >= at_least)  # number 0 stands for all others
        return Frequencies(np.arange(len(found)), counts[found], int(counts[0]))

    def keep_labels(self, kept: Mapping[str, NDArray[np.intp]]) -> None:
        for name, positions in kept.items():
            places = np.append(0, self._found[name][positions])
            number = np.zeros(len(self.labels[name]), dtype=np.intp)
            number[places] = np.arange(len(places))
            self.labels[name] = self.labels[name].take(pa.array(places))
            self.cells[name] = _with_numbers(self.cells[name], number)

    def label_numbers(self, name: str, labels: Sequence[Any]) -> list[int]:
        return label_numbers(self.labels[name], labels)


def _renumbered(cells: ColumnValues, before: FittedColumn, after: FittedColumn) -> ColumnValues:
    """Cells with the numbers that learning gave the labels; labels that were not kept are number 0."""
    if before.labels is None or after.labels is None or before.labels.equals(after.labels):
        return cells
    places = {label: number for number, label in enumerate(after.labels.to_pylist())}
    number = np.array([places.get(label, 0) for label in before.labels.to_pylist()], dtype=np.intp)
    return _with_numbers(cells, number)


def _with_numbers(cells: ColumnValues, number: NDArray[np.intp]) -> ColumnValues:
    return ColumnValues(number[cells.values].astype(cells.values.dtype), cells.missing)
