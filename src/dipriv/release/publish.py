"""From a file to a published file: the same path as `release.privatize`, in passes over batches.

First pass: CSV types settle, rows are counted, and the ledger recognizes the data set. Second pass: the hold-out rows
are gathered, where there are any. Then ε is spent in the ledger; a private reference is learned in a few passes; and a
last pass releases batch by batch into a file that appears whole or not at all, beside a note on what is promised.
Memory holds the hold-out and a batch.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from dipriv._arrays import Mask
from dipriv._random.bits import Bits, Seed, source
from dipriv._tables import frames as tables
from dipriv._tables.frames import Table
from dipriv._tables.identifiers import refuse_free_text
from dipriv.errors import InputError
from dipriv.guarantee.guarantee import Assumption, AssumptionKind, Guarantee, check_epsilon
from dipriv.guarantee.sidecar import NOTE, Sidecar
from dipriv.ledger import Ledger
from dipriv.references import Private, ReferenceSpec
from dipriv.release import fitting
from dipriv.release.accounting import Account, identify
from dipriv.release.fidelity import expected_fidelity
from dipriv.release.fitting import FittedMechanism
from dipriv.release.privatize import (
    as_kernel,
    as_reference_spec,
    as_schema,
    as_unit,
    check_sides,
    new_split,
    public_rows,
    select,
    unit_keys,
    uses_holdout,
    where_from,
)
from dipriv.release.promise import Origin, make_guarantee
from dipriv.schema import Schema
from dipriv.sources.files import CellTypeError, Sink, Source, write_text
from dipriv.sources.holdout import Split
from dipriv.sources.privacy_unit import Unit
from dipriv.sources.protocol import CountableRows, CountedTables

REPORT_ROWS = 200_000
TYPES_READ = Assumption(AssumptionKind.FILE_TYPES_PUBLIC)
Tick = Callable[[str, int, int | None], None]
"""Called with what is being done, rows done so far, and all rows where they are known."""


@dataclass(frozen=True)
class Request:
    """What is asked for; the meaning of each is that of `dipriv.privatize`."""

    epsilon: float
    reference: str = "private"
    kernel: str = "optimal"
    schema: Schema | None = None
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    holdout: float | None = None
    public: Any = field(default=None, repr=False)
    unit: str | None = None
    rows_per_unit: int = 10
    target: str | None = None
    reference_share: float | None = None
    strict: bool = False
    ledger: Ledger | None = None
    dataset: str | None = None
    seed: Seed = None


@dataclass(frozen=True)
class ReleasedTable:
    """What was published, and what it cost. `sample` has matching rows of the table and the release for a report."""

    guarantee: Guarantee
    rows: int
    released: int
    cut: int
    columns: dict[str, str]
    dataset: str | None = None
    fidelity: dict[str, float] = field(default_factory=dict)
    formulas: dict[str, int] = field(default_factory=dict)
    """How many released texts of a column a spreadsheet would take for formulas; a fact about the release."""
    escaped: bool = False
    """Whether these have an apostrophe before them."""
    sample: tuple[pa.Table, pa.Table] | None = field(default=None, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain data without a private value, as in the file beside the output."""
        return Sidecar(
            guarantee=self.guarantee,
            rows_read=self.rows,
            rows_dropped=self.cut,
            rows_released=self.released,
            columns=self.columns,
            fidelity=self.fidelity,
            dataset=self.dataset,
            formulas=self.formulas,
            formulas_escaped=self.escaped,
        ).to_dict()


class Output(Protocol):
    """What is written under a name of its own and appears whole: a file, or a folder of them."""

    @property
    def path(self) -> Path | None:
        """Its final name; None for a pipe."""
        ...

    def publish(self) -> None:
        """Give what is finished its name."""
        ...


def publish(request: Request, table: Source, sink: Sink, tick: Tick, *, sampled: bool = False) -> ReleasedTable:
    """Privatize a file into another; `sampled` keeps matching rows of both for a report."""
    epsilon = check_epsilon(request.epsilon)
    recipe, noise = recipe_of(request), as_kernel(request.kernel)
    who = as_unit(request.unit, request.rows_per_unit, recipe)
    bits = source(request.seed)
    aside = {*request.keep, *request.drop, request.unit}
    table = table.verbatim([*request.keep, *([request.unit] if request.unit else [])])
    stream, account = _first_pass(request, table, tick)
    names = select(stream.first, None, request.keep, aside=(request.unit,))
    declared = as_schema(None if request.schema is None else without_columns(request.schema, aside), names)
    facts = [stream.first.column(name) for name in names]
    sink.check(pa.schema([column for column in stream.first.native.schema if column.name in {*names, *request.keep}]))
    split = None
    is_private = isinstance(recipe, Private)
    if uses_holdout(recipe, request.public, request.holdout):
        split = new_split(None if is_private else account, request.holdout, request.unit, bits)
    chosen, held, reference = _second_pass(request, stream, recipe, split, who, bits, tick)
    row_epsilon = epsilon if who is None else who.row_epsilon(epsilon)
    rows = None
    if isinstance(recipe, Private):
        rows = _rows(stream, reference, chosen, tick)
    elif split is not None and reference is not None:
        refuse_free_text(reference, names, declared, request.keep)
    basis = fitting.plan_fit(
        recipe,
        noise,
        row_epsilon,
        facts,
        declared,
        rows=rows,
        reference=reference,
        disjoint=split is not None,
        bits=bits.child("fit"),
    )
    released = stream.rows - held if chosen is None else int(chosen.sum())
    origin = Origin(where_from(recipe, request.public, split is not None), held, released, split.by if split else None)
    said = make_guarantee(recipe, noise, basis, origin, request.keep, epsilon=epsilon, secure=bits.secure, unit=who)
    if table.format in ("csv", "tsv"):
        said = replace(said, assumptions=(*said.assumptions, TYPES_READ))
    done = ReleasedTable(
        said, stream.rows, released, stream.rows - held - released, {}, account.name if account else None
    )
    with sink, nullcontext(lambda rows: None) if account is None else account.spending(said, sink.name) as spent:
        fitted = basis.fit(rows, bits.child("fit"))
        schema = fitted.schema
        kinds = {name: schema[name].name + (" (declared)" if name in declared else "") for name in schema}
        done = replace(done, columns=kinds, fidelity=expected_fidelity(fitted))
        sample = _last_pass(request, stream, sink, fitted, split, chosen, bits, done, tick, sampled)
        done = replace(done, formulas=dict(sink.formulas), escaped=sink.escape_formulas)
        finish(sink, done)
        spent(released)
    return replace(done, sample=sample)


def recipe_of(request: Request) -> ReferenceSpec:
    """The reference that is asked for."""
    recipe = as_reference_spec(request.reference, request.public)
    if isinstance(recipe, Private):
        return Private(request.target, request.reference_share, request.strict)
    if request.target is not None or request.reference_share is not None or request.strict:
        raise InputError(
            "a target, a share of ε for the reference, or strict is given, but the reference is not private.",
            "Leave them out, or use the private reference.",
        )
    return recipe


def _rows(stream: _Stream, reference: Table | None, chosen: Mask | None, tick: Tick) -> CountableRows:
    """The rows that a private reference is learned from: the hold-out, else all that are released."""
    if reference is not None:
        held = reference.clip_infinities()
        return CountedTables(held.rows, lambda: [held])
    count = stream.rows if chosen is None else int(chosen.sum())

    def read() -> Iterator[Table]:
        for position, table in stream.tables():
            some = None if chosen is None else chosen[position : position + table.rows]
            if some is None or some.any():
                yield table if some is None or some.all() else table.take(some)
            tick("learning", position + table.rows, stream.rows)

    return CountedTables(count, read)


@dataclass(frozen=True)
class _Stream:
    """A source whose types are settled and whose rows are counted; columns that are dropped are gone."""

    source: Source
    rows: int
    first: Table
    drop: tuple[str, ...]
    clips_infinities: bool

    def tables(self) -> Iterator[tuple[int, Table]]:
        """Each batch with the position of its first row."""
        position = 0
        for batch in self.source.batches():
            if batch.num_rows:
                table = tables.read(_without(batch, self.drop))
                yield position, table.clip_infinities() if self.clips_infinities else table
                position += batch.num_rows


@dataclass
class _FirstPass:
    """Settles types and counts rows while somebody reads."""

    source: Source
    drop: tuple[str, ...]
    unreleased: tuple[str, ...]
    tick: Tick
    clips_infinities: bool
    rows: int = 0
    first: pa.RecordBatch | None = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        expected = self.source.rows()
        for batch in self.source.batches():
            if not self.rows:
                tables.check_names(self.drop, batch.schema.names, "drop")
                self.source = self.source.settled(batch)
            if batch.num_rows:
                self.first = self.first or _without(batch, self.drop)
                if not self.clips_infinities:
                    refuse_infinities(_without(batch, self.unreleased))
                self.rows += batch.num_rows
                self.tick("reading", self.rows, expected)
                yield batch


def _first_pass(request: Request, table: Source, tick: Tick) -> tuple[_Stream, Account | None]:
    """Settle types, count rows, recognize the data set; starts again when a CSV column turns out to be wider."""
    unreleased = (*request.drop, *request.keep)
    holds = request.reference == "private" and request.public is None
    seen, account = _FirstPass(table, request.drop, unreleased, tick, holds), None
    while True:
        try:
            if request.ledger is not None:
                account = identify(request.ledger, request.dataset, seen.batches(), Path(table.name).stem)
            else:
                for _ in seen.batches():
                    pass
        except CellTypeError as misfit:
            seen = _FirstPass(seen.source.widened(misfit.column), request.drop, unreleased, tick, holds)
            continue
        if seen.first is None or not seen.rows:
            raise InputError(f"{table.name} has no rows.", "Give a table with at least one row.")
        return _Stream(seen.source, seen.rows, tables.read(seen.first), request.drop, holds), account


def _second_pass(
    request: Request,
    stream: _Stream,
    recipe: ReferenceSpec,
    split: Split | None,
    who: Unit | None,
    bits: Bits,
    tick: Tick,
) -> tuple[Mask | None, int, Table | None]:
    """Which rows are released (None: those that are not held out), how many are held out, and the reference rows."""
    if request.public is not None:
        reference: Table | None = public_rows(request.public, recipe)
    else:
        reference = None
    if split is None and who is None:
        return None, 0, reference
    held_rows: list[pa.RecordBatch] = []
    masks: list[Mask] = []
    keys: list[tuple[NDArray[np.uint64], NDArray[np.uint64]]] = []
    for position, table in stream.tables():
        held = np.zeros(table.rows, dtype=bool) if split is None else split.held_out(table, position)
        masks.append(held)
        if who is not None:
            keys.append(unit_keys(who, table, bits, position))
        held_rows.append(table.native.filter(pa.array(held)))
        tick("holding out", position + table.rows, stream.rows)
    held = np.concatenate(masks)
    if split is not None:
        rows = pa.concat_tables(held_rows)
        check_sides(rows.num_rows, stream.rows)
        reference = tables.read(rows)
    if who is None:
        return None, int(held.sum()), reference
    kept = who.kept(*(np.concatenate(part) for part in zip(*keys, strict=True)))
    if split is not None and reference is not None:
        reference = reference.take(kept[held])
    return kept & ~held, int(held.sum()), reference


def _last_pass(
    request: Request,
    stream: _Stream,
    sink: Sink,
    fitted: FittedMechanism,
    split: Split | None,
    chosen: Mask | None,
    bits: Bits,
    done: ReleasedTable,
    tick: Tick,
    sampled: bool,
) -> tuple[pa.Table, pa.Table] | None:
    """Release batch by batch; matching rows of both sides, if they are asked for."""
    noise = bits.child("noise")
    rate = min(1.0, REPORT_ROWS / max(1, done.released))
    picks = np.random.default_rng(0)
    before: list[pa.Table] = []
    after: list[pa.Table] = []
    number = 0
    for position, table in stream.tables():
        free = _free(table, position, split, chosen)
        part = table if free is None else table.take(free)
        if part.rows:
            released = fitted.release(part, request.keep, noise, first=number)
            number += part.rows
            for batch in released.to_batches():
                sink.write(batch)
            if sampled:
                picked = pa.array(picks.random(part.rows) < rate)
                rows = table.native if free is None else table.native.filter(pa.array(free))
                before.append(rows.select(released.column_names).filter(picked))
                after.append(released.filter(picked))
        tick("releasing", position + table.rows, stream.rows)
    return (pa.concat_tables(before), pa.concat_tables(after)) if sampled else None


def finish(sink: Output, done: ReleasedTable) -> None:
    """Publish the output and the note on its promise; at no moment does a note lie beside an output of another one."""
    if sink.path is None:
        sink.publish()
        return
    note = sink.path.with_name(sink.path.name + NOTE)
    text = json.dumps(done.to_dict(), indent=2, ensure_ascii=False) + "\n"
    if os.path.lexists(sink.path):
        note.unlink(missing_ok=True)
        sink.publish()
        write_text(note, text)
        return
    write_text(note, text)
    try:
        sink.publish()
    except BaseException:
        if not os.path.lexists(sink.path):
            note.unlink(missing_ok=True)
        raise


def without_columns(schema: Schema, names: set[str | None]) -> Schema:
    """A schema is often drafted for all columns: those that are dropped, kept or the unit's are not asked for."""
    return Schema({name: kind for name, kind in schema.items() if name not in names})


def _free(table: Table, position: int, split: Split | None, chosen: Mask | None) -> Mask | None:
    """The rows of a batch that are released; None for all."""
    if chosen is not None:
        return chosen[position : position + table.rows]
    return None if split is None else ~split.held_out(table, position)


def refuse_infinities(batch: pa.RecordBatch) -> None:
    """Infinite numbers cannot be released; they are refused before anything is spent."""
    for name, array in zip(batch.schema.names, batch.columns, strict=True):
        if pa.types.is_floating(array.type) and pa.compute.any(pa.compute.is_inf(array)).as_py():
            raise InputError(f"column {name!r} has infinite numbers.", "Leave these rows or the column out.")


def _without(batch: pa.RecordBatch, drop: Sequence[str]) -> pa.RecordBatch:
    return batch.drop_columns([name for name in drop if name in batch.schema.names]) if drop else batch
