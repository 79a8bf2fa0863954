"""From recipes and reference rows to a mechanism that is ready to release tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dipriv._columns import ColumnValues
from dipriv._coordinates import UniformCoordinate
from dipriv._jit import announce_compilation
from dipriv._parallel import in_chunks
from dipriv._progress import Progress, no_progress
from dipriv._random.bits import Bits, Draws
from dipriv._tables.arrow import distinct_labels, group_codes
from dipriv._tables.fitted_columns import FittedColumn, fit_columns, refuse_nulls
from dipriv._tables.frames import Column, Table, check_names, read
from dipriv.codecs import Codec, LevelsCodec
from dipriv.errors import InputError, InternalError, ReferenceDataError
from dipriv.kernels import Kernel, KernelSpec
from dipriv.mechanism import Chain, Mechanism, compose, encode
from dipriv.references import (
    Boxes,
    Distribution,
    FittableSpec,
    Grouped,
    GroupedBoxes,
    Independent,
    IntegerDistribution,
    LevelsDistribution,
    Order,
    Private,
    ReferenceRows,
    ReferenceSpec,
    draw_order,
)
from dipriv.references._learning.domain import Domain, domains
from dipriv.references._learning.learn import learn
from dipriv.schema import Categorical, Schema
from dipriv.sources.protocol import CountableRows


@dataclass(frozen=True, eq=False)
class FittedMechanism:
    """All that is needed to release rows. `order` lists the columns of V in the order of the chain rule."""

    columns: tuple[FittedColumn, ...]
    reference: Any = field(repr=False)
    kernel: Kernel = field(repr=False)
    order: tuple[int, ...] = field(repr=False)
    nulls_have_mass: bool = True
    by: str | None = None
    groups: pa.Array | None = field(repr=False, default=None)
    declared: tuple[str, ...] = ()
    clips_infinities: bool = False
    """Whether infinite numbers are held to finite ones: a refusal would tell of a row that is protected."""

    def __post_init__(self) -> None:
        width = sum(column.codec.dims for column in self.columns)
        if self.kernel.width != width or sorted(self.order) != list(range(width)):
            raise InputError("the kernel and the order do not fit the columns, each of them once.", "Fit anew.")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def schema(self) -> Schema:
        """What each column was taken as."""
        return Schema({column.name: column.kind for column in self.columns})

    @cached_property
    def mechanism(self) -> Mechanism:
        """The arrows composed, once for all tables: exact matrices take long to build."""
        return compose(self._codecs, self.reference, self.kernel, self.order)

    @property
    def _codecs(self) -> tuple[Codec, ...]:
        return tuple(column.codec for column in self.columns)

    def release(
        self, table: Table, keep: Sequence[str], bits: Bits, first: int = 0, progress: Progress = no_progress
    ) -> Any:
        """Release every row of the table, in its own library and dtypes; `first` is the first row's number."""
        table = table.clip_infinities() if self.clips_infinities else table
        self.check(table)
        cells = [column.all_cells(table) for column in self.columns]
        if not self.nulls_have_mass:
            refuse_nulls(list(zip(self.names, cells, strict=True)))
        groups = self._groups_of(table)

        def privatize(rows: slice, number: int) -> list[ColumnValues]:
            """Release the selected ones of these rows, the first of which is the number-th."""
            here = [column.take(rows) for column in cells]
            if table.selected is not None:
                here = [column.take(table.selected[rows]) for column in here]
            if groups is None:
                return self.mechanism.privatize(here, bits, first + number)
            reference = self.reference.at(groups[number : number + len(here[0])])
            return Chain(self._codecs, reference, self.kernel, self.order).privatize(here, bits, first + number)

        released = in_chunks(privatize, len(cells[0]), table.selected, len(self.order), progress)
        labelled = {column.name: (part, column.labels) for column, part in zip(self.columns, released, strict=True)}
        return table.rebuild(labelled, keep)

    def release_batches(
        self, batches: Iterable[pa.RecordBatch], keep: Sequence[str], bits: Bits
    ) -> Iterator[pa.RecordBatch]:
        """Release a stream of Arrow batches, one after the other, with no more than a batch in memory."""
        first = 0
        for batch in batches:
            if batch.num_rows:
                yield from self.release(read(batch), keep, bits, first=first).to_batches()
                first += batch.num_rows

    def check(self, table: Table) -> None:
        """The table must have the columns that the reference has, with the same types."""
        for column in self.columns:
            column.check(table)

    def _groups_of(self, table: Table) -> NDArray[np.intp] | None:
        if self.by is None:
            return None
        check_names([self.by], table.names, "by")
        codes = group_codes(table.array(self.by), self.groups)
        if np.any(codes < 0):
            raise ReferenceDataError(
                f"column {self.by!r}: some rows belong to groups that have no reference rows.",
                "Fit on the first rows of every group, or leave these rows out.",
            )
        return codes


SMALLEST_FOR_COLUMN = Fraction(1, 10**9)
"""With less ε than that for a column the noise of a private reference would not fit its integers."""


@dataclass(frozen=True, eq=False)
class FitPlan:
    """All that is fixed before ε is spent, and how the reference is then fitted.

    A reference that is fitted on a hold-out, on a public table or on no rows is fitted already: that reads nothing of
    the rows that are released. A private one is learned when `fit` is called, and nothing here depends on the rows but
    labels that are taken as public.
    """

    spec: ReferenceSpec
    columns: tuple[Column, ...]
    declared: tuple[str, ...]
    labels_read: tuple[str, ...]
    reference_epsilon: Fraction
    """What each row that a private reference is learned from pays for it; 0 for other references."""
    row_epsilon: float
    """What a released row pays for its own noise."""
    by: str | None = None
    width: int = 1
    """How many columns U has, where that is known."""
    _kernel: KernelSpec | None = field(repr=False, default=None)
    _domains: tuple[Domain, ...] = field(repr=False, default=())
    _fitted: FittedMechanism | None = field(repr=False, default=None)

    @property
    def lists_categories(self) -> bool:
        """Whether the type of a column lists categories."""
        return any(column.labels is not None for column in self.columns)

    def fit(self, rows: CountableRows | None, bits: Bits) -> FittedMechanism:
        """The fitted mechanism; a private reference is learned from these rows."""
        if self._fitted is not None:
            return self._fitted
        if rows is None or self._kernel is None or not isinstance(self.spec, Private):
            raise InternalError("a reference is to be learned from no rows.", "This is a fault in dipriv: report it.")
        announce_compilation()
        learned = learn(self._domains, rows, self.reference_epsilon, self.spec.target, bits)
        chained = [self._domains[position].name for position in learned.order]
        coordinates = coordinates_of(learned.columns, learned.reference, learned.order)
        kernel = self._kernel.build(self.row_epsilon, chained, coordinates)
        return FittedMechanism(
            learned.columns, learned.reference, kernel, learned.order, declared=self.declared, clips_infinities=True
        )


def plan_fit(
    spec: ReferenceSpec,
    kernel: KernelSpec,
    epsilon: float,
    columns: Sequence[Column],
    schema: Schema,
    *,
    rows: CountableRows | None = None,
    reference: Table | None = None,
    disjoint: bool = False,
    bits: Bits,
) -> FitPlan:
    """Plan how the reference is fitted, with ε for each released row; every refusal comes here, before ε is spent.

    `rows` are what a private reference is learned from, `reference` is the table that others are fitted on. Rows that
    are `disjoint` from the released ones leave all of ε to both.
    """
    if isinstance(spec, Private):
        if rows is None:
            raise InternalError("a private reference needs rows.", "This is a fault in dipriv: please report it.")
        return _plan_private(spec, kernel, epsilon, columns, schema, rows, disjoint=disjoint)
    if not hasattr(spec, "fit"):
        raise InputError(f"a {type(spec).__name__} has no way to be fitted.", "Give it a fit method.")
    fitted = fit(cast(FittableSpec, spec), kernel, epsilon, columns, schema, reference, bits)
    return FitPlan(
        spec,
        tuple(columns),
        tuple(schema),
        (),
        Fraction(0),
        epsilon,
        by=fitted.by,
        width=len(fitted.order),
        _fitted=fitted,
    )


def _plan_private(
    spec: Private,
    kernel: KernelSpec,
    epsilon: float,
    columns: Sequence[Column],
    schema: Schema,
    rows: CountableRows,
    *,
    disjoint: bool,
) -> FitPlan:
    """Divide ε between reference and rows; both have all of it where they are disjoint."""
    names = [column.name for column in columns]
    if spec.target is not None:
        check_names([spec.target], names, "target")
    found = tuple(domains(columns, schema, rows, strict=spec.strict))
    of_rows = epsilon if disjoint else float(Fraction(epsilon) * (1 - spec.share(len(found))))
    of_reference = Fraction(epsilon) if disjoint else Fraction(epsilon) - Fraction(of_rows)
    if of_reference < SMALLEST_FOR_COLUMN * len(names):
        raise InputError(
            f"the reference's part of epsilon is {float(of_reference):.3g} for {len(names)} columns; it needs at least "
            f"{float(SMALLEST_FOR_COLUMN):g} for each.",
            "Use a larger epsilon or reference_share, or fewer columns.",
        )
    kernel.check(of_rows, [_public_coordinate(domain, alone=len(found) == 1) for domain in found])
    return FitPlan(
        spec,
        tuple(columns),
        tuple(schema),
        tuple(domain.name for domain in found if domain.has_read_labels),
        of_reference,
        of_rows,
        width=len(found),
        _kernel=kernel,
        _domains=found,
    )


def fit(
    recipe: FittableSpec,
    kernel: KernelSpec,
    epsilon: float,
    facts: Sequence[Column],
    schema: Schema,
    reference: Table | None,
    bits: Bits,
) -> FittedMechanism:
    """Fit codecs and reference on the reference rows (None where the recipe reads none), and build the kernel."""
    announce_compilation()
    names = [column.name for column in facts]
    lawful = recipe.kinds(names)
    columns = fit_columns(facts, schema, lawful, reference)
    codecs = [column.codec for column in columns]
    order = _order_of_v(codecs, draw_order(_checked(recipe.order, names), names, bits.child("order")))
    of_v = [column.name for column in columns for _ in range(column.codec.dims)]
    chained = tuple(of_v[position] for position in order)
    lower = np.array([low for codec in codecs for low in codec.lower])[list(order)]
    v, counts, by, groups, codes = np.empty((0, len(order))), None, None, None, None
    alone = codecs[0] if len(codecs) == 1 and recipe.source == "rows" else None
    if reference is not None and isinstance(alone, LevelsCodec):
        counts = np.bincount(alone.to_states(columns[0].cells(reference)), minlength=alone.states)
    elif reference is not None:
        draws = Draws(bits.child("reference"), 0, reference.rows)
        v = encode(codecs, [column.cells(reference) for column in columns], draws)[:, order]
    if isinstance(recipe, Grouped) and reference is not None:
        by, groups = recipe.by, distinct_labels(reference.array(recipe.by))
        codes = group_codes(reference.array(by), groups)
    fitted = recipe.fit(ReferenceRows(v, lower, chained, codes, counts))
    noise = kernel.build(epsilon, chained, coordinates_of(columns, fitted, order))
    return FittedMechanism(tuple(columns), fitted, noise, order, not lawful, by, groups, tuple(schema))


def coordinates_of(columns: Sequence[FittedColumn], reference: Any, order: Sequence[int]) -> list[UniformCoordinate]:
    """What the reference tells of each column of U, in the order of the chain rule: its levels where they are fixed.

    In a chain the levels fill [0, 1] differently from row to row, so there every column counts as a number. Boxes
    around single reference rows are picked by the first column alone: the others only tell the place inside a box.
    """
    of_v = [column for column in columns for _ in range(column.codec.dims)]
    chained = [of_v[position] for position in order]
    if isinstance(reference, Independent):
        return [_margin(column, law) for column, law in zip(chained, reference.laws, strict=True)]
    boxes = isinstance(reference, Boxes | GroupedBoxes)
    return [UniformCoordinate(column.name, matters=not boxes or number == 0) for number, column in enumerate(chained)]


def _margin(column: FittedColumn, law: Distribution) -> UniformCoordinate:
    if isinstance(law, IntegerDistribution):
        probabilities = np.trim_zeros(np.diff(law.cumulative), "b")
        return UniformCoordinate(
            column.name, probabilities, law.start + np.arange(len(probabilities), dtype=np.float64)
        )
    if not isinstance(law, LevelsDistribution) or not isinstance(column.codec, LevelsCodec):
        return UniformCoordinate(column.name)
    missing = len(column.codec.missing)
    values = np.concatenate([np.zeros(missing), column.codec.levels.astype(np.float64)])
    categories = isinstance(column.kind, Categorical)
    return UniformCoordinate(
        column.name, law.probabilities, None if categories else values, missing, _declared_places(column)
    )


def _declared_places(column: FittedColumn) -> tuple[int, ...] | None:
    """Where the schema lists each level, smallest first; None where that is how they are listed, as labels are."""
    declared = getattr(column.kind, "levels", None)
    if column.labels is not None or declared is None:
        return None
    return tuple(sorted(range(len(declared)), key=lambda place: declared[place]))


def _public_coordinate(domain: Domain, *, alone: bool) -> UniformCoordinate:
    """What is known of a column before its law is learned: how many levels it has, if it is released by itself."""
    if domain.levels is None or not alone:
        return UniformCoordinate(domain.name)
    states = len(domain.levels) + len(domain.missing)
    return UniformCoordinate(domain.name, np.full(states, 1 / states), missing=len(domain.missing))


def _checked(order: Order, names: Sequence[str]) -> Order:
    if order is not None and order != "random":
        if isinstance(order, str):
            raise InputError(f"order={order!r} is unknown.", 'Use "random" or a list of column names.')
        check_names(order, names, "order")
    return order


def _order_of_v(codecs: Sequence[Codec], positions: Sequence[int]) -> tuple[int, ...]:
    ends = np.cumsum([codec.dims for codec in codecs])
    starts = ends - [codec.dims for codec in codecs]
    return tuple(int(v) for position in positions for v in range(starts[position], ends[position]))
