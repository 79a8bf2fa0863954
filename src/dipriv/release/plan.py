"""The one path of every release, for every source of rows.

    options = ReleaseOptions(...)          every default and every refusal
    plan    = prepare(source, options)     public facts and the guarantee; no ε is spent
    release = plan.run()                   reserve ε, learn, build the kernel, release; commit when rows are written

`Plan.run` is the only function that spends, learns and releases.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from dipriv._base.jit import announce_compilation
from dipriv._base.progress import Progress, no_progress
from dipriv._random.bits import Bits
from dipriv._random.streams import Stream
from dipriv._rules import Rules
from dipriv._tables.codes import Recoding, recoded
from dipriv._tables.frames import Column, Table
from dipriv._tables.identifiers import is_named_identifier, is_named_person, refuse_free_text
from dipriv._tables.presentation import Presentation
from dipriv._tables.typed_tables import conform
from dipriv.codecs.fit import kind_of_type
from dipriv.errors import InputError, ReferenceDataError, UtilityWarning
from dipriv.guarantee import Guarantee
from dipriv.references import Private
from dipriv.release.accounting import LedgerSession, Receipt, fingerprint_request, open_ledger
from dipriv.release.bootstrap import BootstrapModel
from dipriv.release.columns import check_anew, columns_of
from dipriv.release.fitting import FitPlan, FittedMechanism, plan_fit
from dipriv.release.make_guarantee import Origin, make_guarantee
from dipriv.release.options import DEFAULT_HOLDOUT, ReleaseOptions
from dipriv.release.result import Release, ReleaseSecrets, RowCounts
from dipriv.release.rules import Rewriting, bind
from dipriv.release.rules.broken import warn_of_broken_rules, warn_of_differing_rows
from dipriv.release.weights import check_totals, totals_of
from dipriv.schema import Schema, without_values
from dipriv.sources import read_table
from dipriv.sources.holdout import Split
from dipriv.sources.protocol import CountableRows, ReleaseJob, Rows, RowSelection, RowSource, Scan
from dipriv.utility.judging import factor_needed
from dipriv.utility.wording import identifiers_released, people_released, too_small

Data = TypeVar("Data")


@dataclass(frozen=True, eq=False)
class Plan(Generic[Data]):
    """A release before ε is spent: public facts and the guarantee, for the keeper of the table."""

    options: ReleaseOptions
    guarantee: Guarantee
    row_counts: RowCounts
    privatized: tuple[str, ...]
    origin: Origin
    fit_plan: FitPlan = field(repr=False)
    session: LedgerSession | None = field(repr=False)
    _rows: Rows[Data] = field(repr=False)
    _learned_from: CountableRows | None = field(repr=False)
    _selection: RowSelection = field(repr=False)
    _bits: Bits = field(repr=False)
    _progress: Progress = field(repr=False)
    anew: tuple[str, ...] = ()
    """Columns of identifiers that are released with new ones."""

    @property
    def output_schema(self) -> pa.Schema:
        """The columns of the released table, with their Arrow types."""
        names, keys = {*self.privatized, *self.options.keep, *self.anew}, self.options.renumbered
        empty = self._rows.empty
        return pa.schema(
            [
                pa.field(name, pa.int64() if name == keys else empty.array(name).type)
                for name in empty.names
                if name in names or name == keys
            ]
        )

    @property
    def presentation(self) -> Presentation:
        """How the source presents its table, for a release in kind."""
        return self._rows.presentation.without(self.options.renumbered)

    def warn_if_too_small(self, stacklevel: int = 3) -> None:
        """Issue a `UtilityWarning` if rows times ε are too small for the columns: before ε is spent.

        And for columns that are called identifiers, or names of people, by their names alone.
        """
        undeclared = [name for name in self.privatized if name not in self.fit_plan.stated]
        named = [name for name in undeclared if is_named_identifier(name)]
        people = [name for name in undeclared if is_named_person(name) and name not in named]
        texts = [identifiers_released(named)] if named else []
        texts += [people_released(people)] if people else []
        if (learned_from := self._learned_from) is not None:
            factor = factor_needed(self.fit_plan.count_noises(learned_from.n_rows))
            if factor is not None:
                texts.append(too_small(learned_from.n_rows, len(self.privatized), self.options.epsilon, factor))
        with ExitStack() as if_it_is_an_error:
            if_it_is_an_error.callback(self.close)
            for text in texts:
                warnings.warn(text, UtilityWarning, stacklevel=stacklevel)
            if_it_is_an_error.pop_all()

    @np.errstate(all="ignore")  # it may raise otherwise, by a value
    def run(self, output: str | None = None) -> Release[Data]:
        """Reserve ε in the ledger, learn the reference, build the kernel and release; `output` names the file.

        The release is committed once its rows exist: immediately for a table in memory, when they are read to the end
        or written for others. A failure on the way leaves ε spent.
        """
        with ExitStack() as unless_released:
            unless_released.callback(self.close)
            receipt = Receipt(self.guarantee) if self.session is None else self.session.reserve(self.guarantee, output)
            with receipt.failing():
                self._progress("learning", 0, self.row_counts.read)
                mechanism = self.fit_plan.fit(self._learned_from, self._bits.child(Stream.FIT))
                mechanism = replace(mechanism, anew=self.anew)
                self._progress("learning", self.row_counts.read, self.row_counts.read)
                self._rows.end_learning()
                noise = self._bits.child(Stream.NOISE)
                kept = (*self.options.keep, *self.anew)
                job = ReleaseJob(
                    mechanism,
                    kept,
                    noise,
                    self._selection,
                    self._progress,
                    self.options.renumbered,
                )
                release = Release(
                    self._rows.release(job),
                    self.guarantee,
                    self._publishable(mechanism.schema),
                    self.row_counts,
                    self.fit_plan.stated,
                    None if self.session is None else self.session.name,
                    _secrets=ReleaseSecrets(self._selection.split, mechanism, self._selection),
                    _receipt=receipt,
                    _model=self._model(mechanism),
                )
                if output is None:
                    release._settle()
            unless_released.pop_all()
        return release

    def close(self) -> None:
        """Remove what is on disks of a plan that is not run, or whose rows are written."""
        self._rows.close()

    def _model(self, mechanism: FittedMechanism) -> BootstrapModel | None:
        """What intervals are computed from: of a private reference, all of it may be published."""
        spec = self.options.spec
        if not isinstance(spec, Private) or spec.exclusions or mechanism.measurements is None or self.options.unit:
            return None
        return BootstrapModel.of(mechanism, self.fit_plan, self.options, self._selection.n_released)

    def _publishable(self, schema: Schema) -> Schema:
        """What each column was taken as; levels and atoms that were read from unprotected rows are left out."""
        if self.origin.is_public:
            return schema
        declared = self.fit_plan.stated
        kinds = {name: kind if name in declared else without_values(kind) for name, kind in schema.items()}
        return Schema(kinds, **schema.rules.to_dict())


def prepare(
    source: RowSource[Data], options: ReleaseOptions, progress: Progress = no_progress, *, sample: bool = False
) -> Plan[Data]:
    """All that comes before ε is spent: every refusal, the hold-out, the guarantee.

    Raises
    ------
    InputError, SchemaError, ReferenceDataError : the options do not fit the table, or each other.
    DisclosureError, BudgetError, LedgerError : the ledger forbids the release.
    SourceChangedError, StorageError : the rows cannot be read, or are not the same in every pass.
    """
    _check_limits(source, options, sample)
    bits = options.bits()
    names = options.privatized(source.column_names)
    declared = options.declared(names)
    stated = options.rules(names, source.column_names)
    _check_limits(source, options, sample, totals_of(declared))
    if ruled := [name for name in totals_of(declared) if name in stated.columns()]:
        raise InputError(
            f"column {ruled[0]!r} has a total, and a rule of the schema is about it, which rescaling would break.",
            "Leave out one of them.",
        )
    rules = options.type_rules(names, declared)
    anew = () if source.releases_later else options.anew
    ledger = open_ledger(options)
    announce_compilation()
    progress("reading", 0, None)
    rows = source.scan(
        Scan(
            names,
            tuple(options.keep),
            options.keys,
            anew,
            counted=options.spec.source == "private" or bool(stated),
            fingerprint=fingerprint_request(ledger),
            learns_from_all=_learns_from_all(options),
            labels_of=_countable_labels(_counted(names, stated), declared) if _learns_from_all(options) else (),
            types=rules,
            progress=progress,
        )
    )
    try:
        progress("reading", rows.n_rows, rows.n_rows)
        columns, declared = columns_of(rows, names, declared)
        check_anew(rows, anew)
        table_columns, rewriting = tuple(columns), None
        if stated:
            rewriting = bind(stated, columns, declared)
            columns, declared = rewriting.learned(), rewriting.learned_schema()
            warn_of_broken_rules(rewriting, rows)
        spec = options.spec_for(rewriting)
        session = None
        if ledger is not None and rows.fingerprint is not None:
            session = LedgerSession.identify(ledger, options, rows.fingerprint, source.suggested_dataset)
        uses_holdout = options.uses_holdout and not source.releases_later
        split = _split(options, session, bits) if uses_holdout else None
        selection = rows.select(split, options.contribution_bound, options.groups if uses_holdout else None, bits)
        if session is not None:
            session.holds_out(selection.keys_digest)
        check_totals(columns, totals_of(declared), selection.n_released)
        warn_of_differing_rows(selection)
        if uses_holdout:
            _check_sides(selection)
        learned_from, reference = _reference_rows(rows, selection, options, table_columns, declared, rewriting)
        fit_plan = plan_fit(
            spec,
            options.kernel_spec,
            options.row_epsilon,
            columns,
            declared,
            delta=options.row_delta,
            rows=learned_from,
            reference=reference,
            disjoint=uses_holdout,
            rewriting=rewriting,
            constant=options.learned_constant(rewriting),
            bits=bits.child(Stream.FIT),
        )
        if spec.source != "private":
            fit_plan.fit(None, bits).check(rows.empty)
        origin = _origin(source, options, selection)
        guarantee = make_guarantee(
            spec,
            options.kernel_spec,
            fit_plan,
            origin,
            options.keep,
            epsilon=options.epsilon,
            delta=options.total_delta,
            secure=bits.secure,
            unit=options.contribution_bound,
            renumbered=options.renumbered is not None,
            types_inferred=source.infers_types(names, rules),
            coded=[name for name in names if name in rows.presentation.value_labels],
            fitted_once=source.releases_later,
            drafted=_drafted(options, table_columns),
        )
    except BaseException:
        rows.close()
        raise
    counts = RowCounts(rows.n_rows, selection.n_held_out, selection.n_dropped, selection.n_released)
    return Plan(
        options,
        guarantee,
        counts,
        names,
        origin,
        fit_plan,
        session,
        rows,
        learned_from,
        selection,
        bits,
        progress,
        anew,
    )


def _learns_from_all(options: ReleaseOptions) -> bool:
    """Whether a private reference is learned from all rows, so that their labels may be collected on the way."""
    return options.spec.source == "private" and not options.uses_holdout and options.unit is None


def _counted(names: tuple[str, ...], stated: Rules) -> tuple[str, ...]:
    """The columns that are learned as they are."""
    return tuple(name for name in names if name not in stated.derived)


def _countable_labels(names: tuple[str, ...], declared: Schema) -> tuple[str, ...]:
    """The columns whose labels the schema does not list, and are those of the cells as they are."""
    listed = {name for name in names if getattr(declared.get(name), "levels", None) is not None}
    cut = {name for name, of in declared.meanings.items() if getattr(of, "prefix", 0)}
    return tuple(name for name in names if name not in listed | cut)


def _check_limits(source: RowSource[Any], options: ReleaseOptions, sample: bool, totals: Iterable[str] = ()) -> None:
    """Refuse, with the source's own reason, what it cannot serve."""
    requested = {
        "groups": options.groups is not None,
        "unit": options.unit is not None,
        "sample": sample,
        "totals": bool(totals),
    }
    for what, is_requested in requested.items():
        if is_requested and what in source.limits:
            fault, _, remedy = source.limits[what].partition(". ")
            raise InputError(f"{fault}.", remedy)
    if source.releases_later and options.unit is not None:
        raise InputError("a unit is given where rows are released later.", "Use dipriv.privatize.")
    if source.releases_later and totals:
        raise InputError(
            "a total is declared where rows are released later.", "Use dipriv.privatize, or leave total out."
        )
    fitted_on_rows = options.public is None and options.spec.source in ("rows", "groups")
    if source.releases_later and options.is_counted and fitted_on_rows:
        raise InputError(
            "a ledger keeps the hold-out of its data sets itself.",
            "Use dipriv.privatize, which splits the table, or a private, public or known reference.",
        )


def _drafted(options: ReleaseOptions, columns: Sequence[Column]) -> list[str]:
    """The columns about which a draft of the schema declares more than their type says."""
    declared = options.declared(options.read_from_rows)
    return [of.name for of in columns if of.name in declared and declared[of.name] != kind_of_type(of.storage)]


def _split(options: ReleaseOptions, session: LedgerSession | None, bits: Bits) -> Split:
    """The given split, else that of the ledger's data set, fixed for ever, else a fresh one.

    A private reference needs none of the ledger: its hold-out is as protected as the rows that are released.
    """
    if options.split is not None:
        return options.split
    if session is not None and options.spec.source != "private":
        return session.split(options.holdout, options.split_by, DEFAULT_HOLDOUT)
    share = DEFAULT_HOLDOUT if options.holdout is None else options.holdout
    return Split.new(share, options.split_by, bits.child(Stream.SPLIT))


def _check_sides(selection: RowSelection) -> None:
    """A hold-out must leave some rows on both sides."""
    for held in (selection.n_held_out, selection.n_reference):
        if not 0 < held < selection.n_rows:
            raise ReferenceDataError(
                f"the hold-out has {held} of {selection.n_rows} rows; both sides need some.",
                "Use a larger table or another holdout=..., give a public table, or state a known distribution.",
                command="Use a larger table or another --holdout, or give a table with --public.",
            )


def _reference_rows(
    rows: Rows[Any],
    selection: RowSelection,
    options: ReleaseOptions,
    columns: Sequence[Column],
    declared: Schema,
    rewriting: Rewriting | None,
) -> tuple[CountableRows | None, Table | None]:
    """What a private reference is learned from, or the table that others are fitted on."""
    before = None if rewriting is None else rewriting.before
    if options.spec.source == "private":
        recodes = any(column.prefix is not None for column in columns)
        return rows.countable(selection, Recoding(tuple(columns), before) if recodes else before), None
    if options.public is not None:
        said = [of for of in columns if of.name in (options.types or declared) or pt.is_dictionary(of.arrow_type)]
        dialect = options.file_dialect
        public = recoded(conform(read_table(options.public, columns, dialect), said, dialect.missing), columns)
        return None, public if rewriting is None else rewriting.rewritten(public)
    if options.spec.source == "nothing":
        return None, None
    reference = recoded(rows.gather(selection), columns)
    reference = reference if rewriting is None else rewriting.rewritten(reference)
    learned = columns if rewriting is None else rewriting.learned()
    refuse_free_text(reference, [column.name for column in learned], declared, options.keep)
    return None, reference


def _origin(source: RowSource[Any], options: ReleaseOptions, selection: RowSelection) -> Origin:
    """Where the reference comes from."""
    if options.public is not None:
        return Origin("public", 0, selection.n_released)
    kinds = {"private": "private", "nothing": "known", "groups": "groups", "rows": "holdout"}
    kind: Any = kinds[options.spec.source]
    if source.releases_later and kind in ("groups", "holdout"):
        return Origin("fit")
    by = None if selection.split is None else selection.split.by
    return Origin(kind, selection.n_held_out, selection.n_released, by, selection.n_reference)
