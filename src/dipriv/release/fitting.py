"""From reference specs and rows to a mechanism that is ready to release tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray
from dipriv._base.columns import ColumnValues
from dipriv._base.coordinates import EncodedColumn, UniformCoordinate
from dipriv._base.jit import announce_compilation
from dipriv._base.parallel import in_chunks
from dipriv._base.progress import Progress, no_progress
from dipriv._random.bits import Bits, Draws
from dipriv._random.streams import Stream
from dipriv._tables.any_values import array_from_any
from dipriv._tables.arrow import distinct_labels, group_codes
from dipriv._tables.codes import recoded
from dipriv._tables.fitted_columns import (
    FittedColumn,
    fit_columns,
    label_of_others,
    with_levels,
)
from dipriv._tables.frames import Column, Table, check_names, read, with_index_types
from dipriv.codecs import Codec
from dipriv.codecs.binned import BinnedCodec, RankedLevelsCodec
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
from dipriv.release.rules import Rewriting
from dipriv.release.weights import Sums, rescaled, sum_of, totals_of
from dipriv.schema import Categorical, Schema
from dipriv.sources.protocol import CountableRows, Persons


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
    rewriting: Rewriting | None = None
    """The rules of the schema, by which rows are rewritten before they are encoded and after they are released."""
    constant: tuple[str, ...] = ()
    """Columns that are released once for a person; they are first in the order."""
    anew: tuple[str, ...] = ()
    """Columns of identifiers that are released with new ones: a row's number among the released rows, from 1 on."""

    def __post_init__(self) -> None:
        width = sum(column.codec.dims for column in self.columns)
        if self.kernel.width != width or sorted(self.order) != list(range(width)):
            raise InputError("the kernel and the order do not fit the columns, each of them once.", "Fit anew.")
        of_v = [column.name for column in self.columns for _ in range(column.codec.dims)]
        if {of_v[place] for place in self.order[: self.n_constant]} != {*self.constant}:
            raise InternalError("constant columns are not first in the order.", "This is a fault in dipriv: report it.")

    @property
    def n_constant(self) -> int:
        """How many columns of V, and of U, the constant columns take."""
        return sum(column.codec.dims for column in self.columns if column.name in self.constant)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are released."""
        return self.learned_names if self.rewriting is None else self.rewriting.names

    @property
    def learned_names(self) -> tuple[str, ...]:
        """The columns that are perturbed; by the rules of a schema, others may follow from them."""
        return tuple(column.name for column in self.columns)

    @property
    def facts(self) -> tuple[Column, ...]:
        """The public facts of the columns that are released."""
        return tuple(column.facts for column in self.columns) if self.rewriting is None else self.rewriting.columns

    @property
    def schema(self) -> Schema:
        """What each released column was taken as, and the rules that hold."""
        kinds = {column.name: column.kind for column in self.columns}
        return Schema(kinds) if self.rewriting is None else self.rewriting.released_schema(kinds)

    @cached_property
    def mechanism(self) -> Mechanism:
        """The arrows composed, once for all tables: exact matrices take long to build."""
        return compose(self._codecs, self.reference, self.kernel, self.order)

    @property
    def chain(self) -> Chain:
        """The arrows in two parts, through Ũ."""
        return Chain(self._codecs, self.reference, self.kernel, self.order)

    @property
    def _codecs(self) -> tuple[Codec, ...]:
        return tuple(column.codec for column in self.columns)

    def release(
        self,
        table: Table,
        keep: Sequence[str],
        bits: Bits,
        first: int = 0,
        progress: Progress = no_progress,
        *,
        persons: Persons | None = None,
        sums: Sums | None = None,
    ) -> Any:
        """Release every row of the table, in its own library and dtypes; `first` is the first row's number.

        `sums` are those of released weights of all tables, where this is not the only one. Total: columns and their
        types may be refused, by facts that are public, but no cell.
        """
        table = self.typed(table)
        labelled = self._released(table, bits, first, progress, persons)
        for number, (name, total) in enumerate(self.totals.items()):
            cells, labels = labelled[name]
            released = sum_of(cells) if sums is None else sums[name]
            uniforms = _uniforms(bits.child(Stream.ROUNDING), number, first, table.rows, persons)
            labelled[name] = rescaled(cells, total, released, uniforms), labels
        keys = {}
        if persons is not None and persons.column is not None:
            keys[persons.column] = persons.numbers[first : first + table.rows]
        return table.rebuild(labelled, keep, keys, dict.fromkeys(self.anew, first + 1))

    def weight_sums(self, table: Table, bits: Bits, first: int = 0, *, persons: Persons | None = None) -> Sums:
        """The sums of the released weights of a table, before they are rescaled to their totals."""
        labelled = self._released(self.typed(table), bits, first, no_progress, persons)
        return {name: sum_of(labelled[name][0]) for name in self.totals}

    @cached_property
    def totals(self) -> dict[str, float]:
        """{column: the public total that its released weights are rescaled to}."""
        return totals_of(self.schema)

    @np.errstate(all="ignore")  # it may raise otherwise, by a value
    def _released(
        self, table: Table, bits: Bits, first: int, progress: Progress, persons: Persons | None
    ) -> dict[str, tuple[ColumnValues, pa.Array | None]]:
        """The released columns of a typed table, as numbers with their labels."""
        self.check(table)
        learned = table if self.rewriting is None else self.rewriting.before(table)
        cells = [column.all_cells(learned) for column in self.columns]
        groups = self._groups_of(table)

        def chosen(rows: slice, number: int, reference: Any) -> list[ColumnValues]:
            """The cells of the selected rows of this chunk, whose first row has this number."""
            here = [column.take(rows) for column in cells]
            if table.selected is not None:
                here = [column.take(table.selected[rows]) for column in here]
            draws = Draws(bits.child(Stream.MISSING), first + number, len(here[0]))
            return fill_missing(here, self._codecs, reference, self.order, draws)

        def privatize(rows: slice, number: int) -> list[ColumnValues]:
            """Release the selected rows of this chunk."""
            if groups is None:
                return self.mechanism.privatize(chosen(rows, number, self.reference), bits, first + number)
            count = rows.stop - rows.start if table.selected is None else int(table.selected[rows].sum())
            reference = self.reference.at(groups[number : number + count])
            chain = Chain(self._codecs, reference, self.kernel, self.order)
            return chain.privatize(chosen(rows, number, reference), bits, first + number)

        def perturb(rows: slice, number: int) -> list[ColumnValues]:
            """Ũ of the selected rows of this chunk, column by column."""
            u = self.chain.perturb(chosen(rows, number, self.reference), bits, first + number)
            return [ColumnValues(column) for column in u.T]

        width = len(self.order)
        if persons is None or not self.constant:
            released = in_chunks(privatize, len(cells[0]), table.selected, width, progress)
        else:
            u = np.stack([part.values for part in in_chunks(perturb, len(cells[0]), table.selected, width)], axis=1)
            u[:, : self.n_constant] = persons.share(u[:, : self.n_constant], first)
            released = in_chunks(lambda rows, _: self.chain.restore(u[rows]), len(u), None, width, progress)
        labelled = {column.name: (part, column.labels) for column, part in zip(self.columns, released, strict=True)}
        if self.rewriting is not None:
            labelled = self.rewriting.after(labelled, self.columns)
        return labelled

    def release_batches(
        self, batches: Iterable[pa.RecordBatch], keep: Sequence[str], bits: Bits
    ) -> Iterator[pa.RecordBatch]:
        """Release a stream of Arrow batches, one after the other, with no more than a batch in memory."""
        first = 0
        for batch in batches:
            if batch.num_rows:
                released = self.release(read(batch), keep, bits, first=first)
                yield from with_index_types(released, self.types).to_batches()
                first += batch.num_rows

    @property
    def types(self) -> dict[str, pa.DataType]:
        """The Arrow types of the columns."""
        return {column.name: column.arrow_type for column in self.facts}

    def typed(self, table: Table) -> Table:
        """The table where columns whose type would follow from their cells have that of the reference.

        And where codes are labels, as the reference has them.
        """
        return recoded(table.with_types(self.types), self.facts)

    def converted(self, table: Table, marks: Mapping[str, Sequence[str]] | None = None) -> pa.Table:
        """The columns of the reference that a table of any types has, in the reference's types, cell by cell.

        What cannot be converted is missing. `marks` are further marks of missing cells, of some columns.
        """
        marks = marks or {}
        names = [name for name in self.types if name in table.names]
        return self.as_learned({name: table.converted(name, self.types[name], marks.get(name, ())) for name in names})

    def as_learned(self, arrays: Mapping[str, pa.Array]) -> pa.Table:
        """Converted columns, where text is the label that means the same."""
        fitted = {column.name: column for column in self.columns}
        return pa.table(
            {name: fitted[name].as_learned(array) if name in fitted else array for name, array in arrays.items()}
        )

    def check(self, table: Table) -> None:
        """The table must have the columns that the reference has, with the same types."""
        table = recoded(table, self.facts)
        if self.rewriting is not None:
            self.rewriting.check(table)
            table = self.rewriting.before(table)
        for column in self.columns:
            column.check(table)

    def _groups_of(self, table: Table) -> NDArray[np.intp] | None:
        if self.by is None or self.groups is None:
            return None
        check_names([self.by], table.names, "by")
        array = table.array(self.by)
        typed = array_from_any(array, self.groups.type)
        absent, was_absent = (of.is_null().to_numpy(zero_copy_only=False) for of in (typed, array))
        codes = np.where(absent & ~was_absent, -1, group_codes(typed, self.groups))  # not what cannot be converted
        if np.any(codes < 0):
            raise ReferenceDataError(
                f"column {self.by!r}: some rows belong to groups that have no reference rows.",
                "Fit on the first rows of every group, or leave these rows out.",
            )
        return codes


def _uniforms(bits: Bits, column: int, first: int, rows: int, persons: Persons | None) -> FloatArray:
    """A uniform number for each row; with persons the same in all rows of one, where equal weights have to stay so."""
    if persons is None:
        return Draws(bits, first, rows).of_column(column).uniforms()
    of_persons = Draws(bits, 0, int(persons.numbers.max()) + 1).of_column(column).uniforms()
    return of_persons[persons.numbers[first : first + rows]]


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
    rewriting: Rewriting | None = None
    constant: tuple[str, ...] = ()
    """The learned columns that are released once for a person."""

    @property
    def declared(self) -> tuple[str, ...]:
        """The learned columns whose kinds are declared."""
        return tuple(self.schema)

    @property
    def stated(self) -> tuple[str, ...]:
        """The released columns whose kinds or values the schema states; rules may make others of them."""
        return self.declared if self.rewriting is None else self.rewriting.stated

    @property
    def lists_categories(self) -> bool:
        """Whether the types of columns list categories that a reference, not a private one, takes over."""
        return self._learning is None and any(column.labels is not None for column in self.columns)

    def count_noises(self, rows: int) -> list[float]:
        """The noise of a count of each column, as a share of the rows that a private reference is learned from."""
        return [] if self._learning is None else [noise / max(1, rows) for noise in self._learning.count_noises(rows)]

    def fit(self, rows: CountableRows | None, bits: Bits) -> FittedMechanism:
        """The fitted mechanism; a private reference is learned from these rows."""
        if self._fitted is not None:
            return self._fitted
        if rows is None or self._kernel is None or self._learning is None:
            raise InternalError("a reference is to be learned from no rows.", "This is a fault in dipriv: report it.")
        announce_compilation()
        values = TableValues(rows, self.columns, dict(self._labels))
        learned = learn_mechanism(self._learning, self._kernel, self.columns, self.declared, values, bits)
        return replace(learned, rewriting=self.rewriting, constant=self.constant)


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
    measured = learned.measurements
    measured = replace(measured, foreseen=tuple(learning.count_noises(measured.n_rows)))
    return FittedMechanism(columns, learned.reference, noise, learned.order, declared=declared, measurements=measured)


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
    rewriting: Rewriting | None = None,
    constant: tuple[str, ...] = (),
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
    rewriting
        The rules of the schema; columns, schema and rows are those that are learned.
    constant
        Learned columns that are released once for a person.
    """
    if spec.source == "private":
        if rows is None:
            raise InternalError("a private reference needs rows.", "This is a fault in dipriv: please report it.")
        learnable = cast(LearnableSpec, spec)
        planned = _plan_learning(
            learnable, kernel, epsilon, columns, schema, rows, rewriting, delta=delta, disjoint=disjoint
        )
        return replace(planned, rewriting=rewriting, constant=constant)
    fitted = fit(cast(FittableSpec, spec), kernel, epsilon, columns, schema, reference, bits, constant)
    fitted = replace(fitted, rewriting=rewriting, constant=constant)
    if rewriting is not None:
        rewriting.check_room({column.name: column.labels for column in fitted.columns if column.labels is not None})
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
        rewriting=rewriting,
        constant=constant,
    )


def _plan_learning(
    spec: LearnableSpec,
    kernel: KernelSpec,
    epsilon: float,
    columns: Sequence[Column],
    schema: Schema,
    rows: CountableRows,
    rewriting: Rewriting | None,
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
    if rewriting is not None:
        numeric = [rewriting.bounded(column) for column in numeric]
    learning = spec.plan(numeric, schema, epsilon, delta, rows.n_rows, disjoint=disjoint)
    found = {column.name: label_of_others(column) for column in unlisted if column.name not in labels}
    if not 0 <= learning.delta <= Fraction(delta):
        raise InternalError("a reference needs more δ than it was given.", "This is a fault in dipriv: report it.")
    if rewriting is not None:
        rewriting.check_room(labels | found)
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
    leading: Sequence[str] = (),
) -> FittedMechanism:
    """Fit codecs and reference on the reference rows (None where the spec reads none), and build the kernel.

    `leading` columns come first in the chain rule, for every order of the others.
    """
    announce_compilation()
    names = [column.name for column in facts]
    determined = spec.kinds(names)
    columns = fit_columns(facts, schema, determined, reference)
    codecs = [column.codec for column in columns]
    drawn = draw_order(_checked(spec.order, names), names, bits.child(Stream.ORDER))
    order = _order_of_v(codecs, sorted(drawn, key=lambda position: names[position] not in leading))
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
    is_categorical = isinstance(column.kind, Categorical)
    if isinstance(column.codec, BinnedCodec | RankedLevelsCodec):
        inside = column.codec.decode(np.arange(0.5, column.codec.states)[:, np.newaxis]).values
        points = np.zeros(len(inside)) if is_categorical else np.nan_to_num(inside.astype(np.float64))
        return EncodedColumn(column.name, None, len(column.codec.missing), is_categorical, points=points)
    if not isinstance(column.codec, LevelsCodec):
        return EncodedColumn(column.name)
    missing = len(column.codec.missing)
    values = np.concatenate([np.zeros(missing), column.codec.levels.astype(np.float64)])
    return EncodedColumn(column.name, values, missing, is_categorical, _declared_places(column))


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
