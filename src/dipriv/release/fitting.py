"""From reference specs and rows to a mechanism that is ready to release tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dipriv._base.columns import ColumnValues
from dipriv._base.coordinates import EncodedColumn, UniformCoordinate
from dipriv._base.jit import announce_compilation
from dipriv._base.parallel import in_chunks
from dipriv._base.progress import Progress, no_progress
from dipriv._random.bits import Bits, Draws
from dipriv._random.streams import Stream
from dipriv._tables.arrow import distinct_labels, group_codes
from dipriv._tables.fitted_columns import (
    FittedColumn,
    fit_columns,
    label_of_others,
    with_levels,
)
from dipriv._tables.frames import Column, Table, check_names, read
from dipriv.codecs import Codec
from dipriv.codecs.levels import LevelsCodec
from dipriv.errors import InputError, InternalError, ReferenceDataError
from dipriv.kernels import Kernel, KernelSpec
from dipriv.mechanism import Chain, Mechanism, compose, encode, fill_missing
from dipriv.references import (
    FittableSpec,
    LearnableSpec,
    LearningPlan,
    Order,
    Reference,
    ReferenceRows,
    ReferenceSpec,
)
from dipriv.references.measured import Measurements
from dipriv.references.protocol import draw_order
from dipriv.release.labels import LabelledValues, Labels, TableValues, check_labels, labels_of, read_labels
from dipriv.schema import Categorical, Schema
from dipriv.sources.protocol import CountableRows


@dataclass(frozen=True, eq=False)
class FittedMechanism:
    """All that is needed to release rows. `order` lists the columns of V in the order of the chain rule."""

    columns: tuple[FittedColumn, ...]
    reference: Any = field(repr=False)
    kernel: Kernel = field(repr=False)
    order: tuple[int, ...] = field(repr=False)
    by: str | None = None
    groups: pa.Array | None = field(repr=False, default=None)
    declared: tuple[str, ...] = ()
    measurements: Measurements | None = field(repr=False, default=None)
    """What a private reference was learned from; None for other references."""

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
        """Release every row of the table, in its own library and dtypes; `first` is the first row's number.

        Total: columns and their types may be refused, by facts that are public, but no cell.
        """
        table = self.typed(table)
        self.check(table)
        cells = [column.all_cells(table) for column in self.columns]
        groups = self._groups_of(table)

        def privatize(rows: slice, number: int) -> list[ColumnValues]:
            """Release the selected rows of this chunk, whose first row has this number."""
            here = [column.take(rows) for column in cells]
            if table.selected is not None:
                here = [column.take(table.selected[rows]) for column in here]
            reference = self.reference
            if groups is not None:
                reference = reference.at(groups[number : number + len(here[0])])
            draws = Draws(bits.child(Stream.MISSING), first + number, len(here[0]))
            here = fill_missing(here, self._codecs, reference, self.order, draws)
            if groups is None:
                return self.mechanism.privatize(here, bits, first + number)
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

    def typed(self, table: Table) -> Table:
        """The table where columns whose type would follow from their cells have that of the reference."""
        return table.with_types({column.name: column.facts.arrow_type for column in self.columns})

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


@dataclass(frozen=True, eq=False)
class FitPlan:
    """All that is fixed before ε is spent, and how the reference is then fitted.

    A reference that is fitted on a hold-out, on a public table or on no rows is fitted already: that reads nothing of
    the rows that are released. A private one is learned when `fit` is called, and nothing here depends on the rows but
    labels that the user calls public.
    """

    spec: ReferenceSpec
    columns: tuple[Column, ...]
    schema: Schema
    """The kinds that are declared."""
    labels_read: tuple[str, ...]
    """Columns whose labels were read from the rows and are called public."""
    reference_epsilon: Fraction
    """What each row that a private reference is learned from pays for it; 0 for other references."""
    row_epsilon: float
    """What a released row pays for its own noise."""
    delta: Fraction = Fraction(0)
    """The δ of each row that a private reference is learned from; 0 where nothing needs it."""
    by: str | None = None
    width: int = 1
    """How many columns U has, where that is known."""
    labels_found: tuple[str, ...] = ()
    """Columns whose labels are found under differential privacy."""
    _kernel: KernelSpec | None = field(repr=False, default=None)
    _learning: LearningPlan | None = field(repr=False, default=None)
    _labels: Labels = field(repr=False, default_factory=dict)
    _fitted: FittedMechanism | None = field(repr=False, default=None)

    @property
    def declared(self) -> tuple[str, ...]:
        """The columns whose kinds are declared."""
        return tuple(self.schema)

    @property
    def lists_categories(self) -> bool:
        """Whether the types of columns list categories that a reference, not a private one, takes over."""
        return self._learning is None and any(column.labels is not None for column in self.columns)

    def fit(self, rows: CountableRows | None, bits: Bits) -> FittedMechanism:
        """The fitted mechanism; a private reference is learned from these rows."""
        if self._fitted is not None:
            return self._fitted
        if rows is None or self._kernel is None or self._learning is None:
            raise InternalError("a reference is to be learned from no rows.", "This is a fault in dipriv: report it.")
        announce_compilation()
        values = TableValues(rows, self.columns, dict(self._labels))
        return learn_mechanism(self._learning, self._kernel, self.columns, self.declared, values, bits)


def learn_mechanism(
    learning: LearningPlan,
    kernel: KernelSpec,
    facts: Sequence[Column],
    declared: tuple[str, ...],
    values: LabelledValues,
    bits: Bits,
) -> FittedMechanism:
    """Learn a private reference from rows that can be counted, and build the kernel."""
    learned = learning.learn(values, bits)
    labels = [values.labels.get(column.name) for column in facts]
    columns = tuple(
        FittedColumn(column.without_categories(), with_levels(kind, published), published, codec)
        for column, kind, published, codec in zip(facts, learned.kinds, labels, learned.codecs, strict=True)
    )
    coordinates = coordinates_of(columns, learned.reference, learned.order)
    noise = kernel.build(learning.row_epsilon, [coordinate.name for coordinate in coordinates], coordinates)
    return FittedMechanism(
        columns, learned.reference, noise, learned.order, declared=declared, measurements=learned.measurements
    )


def plan_fit(
    spec: ReferenceSpec,
    kernel: KernelSpec,
    epsilon: float,
    columns: Sequence[Column],
    schema: Schema,
    *,
    delta: float = 0.0,
    rows: CountableRows | None = None,
    reference: Table | None = None,
    disjoint: bool = False,
    bits: Bits,
) -> FitPlan:
    """Plan how the reference is fitted, with ε for each released row; every refusal comes here, before ε is spent.

    Parameters
    ----------
    delta
        At most this much δ of a row, for a private reference.
    rows
        What a private reference is learned from.
    reference
        The table that other references are fitted on; None where the spec reads no rows.
    disjoint
        Whether `rows` are not released: then reference and released rows have all of ε each.
    """
    if spec.source == "private":
        if rows is None:
            raise InternalError("a private reference needs rows.", "This is a fault in dipriv: please report it.")
        learnable = cast(LearnableSpec, spec)
        return _plan_learning(learnable, kernel, epsilon, columns, schema, rows, delta=delta, disjoint=disjoint)
    fitted = fit(cast(FittableSpec, spec), kernel, epsilon, columns, schema, reference, bits)
    return FitPlan(
        spec,
        tuple(columns),
        schema,
        (),
        Fraction(0),
        epsilon,
        by=fitted.by,
        width=len(fitted.order),
        _fitted=fitted,
    )


def _plan_learning(
    spec: LearnableSpec,
    kernel: KernelSpec,
    epsilon: float,
    columns: Sequence[Column],
    schema: Schema,
    rows: CountableRows,
    *,
    delta: float,
    disjoint: bool,
) -> FitPlan:
    spec.check([column.numeric(None) for column in columns], schema)
    labels, unlisted = labels_of(columns, schema)
    check_labels(unlisted, spec.labels, delta)
    read = tuple(column.name for column in unlisted) if spec.labels == "public" else ()
    labels |= read_labels(unlisted, rows) if read else {}
    numeric = [column.numeric(labels.get(column.name)) for column in columns]
    learning = spec.plan(numeric, schema, epsilon, delta, rows.n_rows, disjoint=disjoint)
    found = {column.name: label_of_others(column) for column in unlisted if column.name not in labels}
    if not 0 <= learning.delta <= Fraction(delta):
        raise InternalError("a reference needs more δ than it was given.", "This is a fault in dipriv: report it.")
    coordinates = learning.coordinates()
    kernel.check(learning.row_epsilon, coordinates)
    return FitPlan(
        spec,
        tuple(columns),
        schema,
        read,
        learning.reference_epsilon,
        learning.row_epsilon,
        learning.delta,
        width=len(coordinates),
        labels_found=tuple(found),
        _kernel=kernel,
        _learning=learning,
        _labels=labels | found,
    )


def fit(
    spec: FittableSpec,
    kernel: KernelSpec,
    epsilon: float,
    facts: Sequence[Column],
    schema: Schema,
    reference: Table | None,
    bits: Bits,
) -> FittedMechanism:
    """Fit codecs and reference on the reference rows (None where the spec reads none), and build the kernel."""
    announce_compilation()
    names = [column.name for column in facts]
    determined = spec.kinds(names)
    columns = fit_columns(facts, schema, determined, reference)
    codecs = [column.codec for column in columns]
    order = _order_of_v(codecs, draw_order(_checked(spec.order, names), names, bits.child(Stream.ORDER)))
    of_v = [column.name for column in columns for _ in range(column.codec.dims)]
    chained = tuple(of_v[position] for position in order)
    lower = np.array([low for codec in codecs for low in codec.lower])[list(order)]
    v, counts, groups, codes = np.empty((0, len(order))), None, None, None
    alone = codecs[0] if len(codecs) == 1 and spec.uses_counts else None
    if reference is not None and isinstance(alone, LevelsCodec):
        counts = np.bincount(alone.to_states(columns[0].cells(reference)), minlength=alone.states)
    elif reference is not None:
        draws = Draws(bits.child(Stream.REFERENCE), 0, reference.rows)
        v = encode(codecs, [column.cells(reference) for column in columns], draws)[:, order]
    by = spec.by if reference is not None else None
    if by is not None and reference is not None:
        groups = distinct_labels(reference.array(by))
        codes = group_codes(reference.array(by), groups)
    fitted = spec.fit(ReferenceRows(v, lower, chained, codes, counts))
    noise = kernel.build(epsilon, chained, coordinates_of(columns, fitted, order))
    return FittedMechanism(tuple(columns), fitted, noise, order, by, groups, tuple(schema))


def coordinates_of(
    columns: Sequence[FittedColumn], reference: Reference, order: Sequence[int]
) -> list[UniformCoordinate]:
    """What the reference implies about each column of U, in the order of the chain rule."""
    of_v = [encoded for column in columns for encoded in [_encoded(column)] * column.codec.dims]
    return reference.coordinates([of_v[position] for position in order])


def _encoded(column: FittedColumn) -> EncodedColumn:
    if not isinstance(column.codec, LevelsCodec):
        return EncodedColumn(column.name)
    missing = len(column.codec.missing)
    values = np.concatenate([np.zeros(missing), column.codec.levels.astype(np.float64)])
    return EncodedColumn(column.name, values, missing, isinstance(column.kind, Categorical), _declared_places(column))


def _declared_places(column: FittedColumn) -> tuple[int, ...] | None:
    """Where the schema lists each level, smallest first; None where that is how they are listed, as labels are."""
    declared = getattr(column.kind, "levels", None)
    if column.labels is not None or declared is None:
        return None
    return tuple(sorted(range(len(declared)), key=lambda place: declared[place]))


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
