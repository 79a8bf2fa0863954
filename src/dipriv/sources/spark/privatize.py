"""The same call on a cluster: a Spark DataFrame in, a lazy DataFrame of released rows and its guarantee out.

One job counts the rows of each partition, so that every row has a number. A private reference is learned by jobs that
send counts to the driver; a hold-out is brought there, as it is the reference. Then the fitted mechanism goes to the
workers, and Spark releases partition by partition, through Arrow, when the result is used.

A task may run twice: it failed, a worker was lost, Spark tried a slow task elsewhere, or the result is used again. The
noise of a row is a function of the release's secret key and the row's number alone, so each run gives the same row
again. That is safe: whoever sees the same release twice has learned nothing that the first did not tell, whereas noise
drawn anew would be a second release, with an ε of its own. Different rows have different numbers and so bits that are
independent of each other. Other values under the same number would tell how they differ; so each block of rows is
compared with a keyed fingerprint from the first reading before it is released, and a task stops if it is not the same.
That all workers compute alike, bit for bit, needs the same versions of dipriv and numpy on processors of one kind.

The key goes to the workers, which hold the private rows anyway, in a broadcast, and is in no plan, log or name. Spark
keeps broadcasts in its local folders while the session lasts: as for all that Spark spills there, set
spark.io.encryption.enabled where these are not trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa

from dipriv._random.bits import Bits, Seed, source
from dipriv._tables.frames import Table
from dipriv._tables.identifiers import refuse_free_text
from dipriv.errors import InputError, SchemaError
from dipriv.guarantee.guarantee import Guarantee, check_epsilon
from dipriv.ledger import Ledger, ReleaseRequest
from dipriv.references import Grouped, Private, ReferenceSpec
from dipriv.release import fitting
from dipriv.release.accounting import Account
from dipriv.release.fidelity import expected_fidelity
from dipriv.release.privatize import (
    KernelLike,
    ReferenceLike,
    SchemaLike,
    as_kernel,
    as_reference_spec,
    as_schema,
    check_sides,
    check_split,
    new_split,
    public_rows,
    select,
    uses_holdout,
    where_from,
)
from dipriv.release.promise import Origin, make_guarantee
from dipriv.schema import Schema
from dipriv.sources.holdout import Split
from dipriv.sources.spark.frame import Numbered, SparkRows, mapped, quoted, told
from dipriv.sources.spark.tasks import Releasing


@dataclass(frozen=True, eq=False)
class SparkRelease:
    """A lazy DataFrame of released rows, and what is promised about it. ε is spent once, however often it is used."""

    data: Any = field(repr=False)
    guarantee: Guarantee
    rows: int
    fitted: fitting.FittedMechanism = field(repr=False)
    split: Split | None = field(repr=False, default=None)

    @property
    def schema(self) -> Schema:
        """What each column was taken as."""
        return self.fitted.schema

    @cached_property
    def fidelity(self) -> dict[str, float]:
        """{column: expected correlation of released with true values}, as `Release.fidelity`."""
        return expected_fidelity(self.fitted)


def privatize(
    frame: Any,
    epsilon: float,
    *,
    reference: ReferenceLike = "private",
    kernel: KernelLike = "optimal",
    schema: SchemaLike = None,
    columns: Sequence[str] | None = None,
    keep: Sequence[str] = (),
    holdout: float | None = None,
    split: Split | None = None,
    public: Any = None,
    ledger: Ledger | str | Path | None = None,
    dataset: str | None = None,
    seed: Seed = None,
) -> SparkRelease:
    """Release a Spark DataFrame row by row under ε-differential privacy; `data` is a DataFrame of the same schema.

    The parameters are those of `dipriv.privatize`, which gives the same rows with the same seed if it is given the
    partitions one after the other as one table. The DataFrame is read several times and must have the same rows in the
    same partitions and order each time, as files have; after a shuffle, write or checkpoint it first. `public` may be a
    DataFrame, too, and is brought to the driver, as is a hold-out. A ledger needs the data set's name. Columns lose
    their metadata, which may tell of the rows.
    """
    plan = prepare(
        frame,
        epsilon,
        reference=reference,
        kernel=kernel,
        schema=schema,
        columns=columns,
        keep=keep,
        holdout=holdout,
        split=split,
        public=public,
        ledger=ledger,
        dataset=dataset,
        seed=seed,
    )
    with plan.spending() as done:
        release = plan.release()
        done(release.rows)
    return release


@dataclass(frozen=True, eq=False)
class Plan:
    """A release before ε is spent."""

    guarantee: Guarantee
    origin: Origin
    keep: tuple[str, ...]
    split: Split | None = field(repr=False)
    account: Account | None = field(repr=False)
    _numbered: Numbered = field(repr=False)
    _basis: fitting.FitPlan = field(repr=False)
    _rows: SparkRows = field(repr=False)
    _free: dict[int, int] = field(repr=False)
    _bits: Bits = field(repr=False)

    def spending(self, output: str | None = None) -> AbstractContextManager[Callable[[int], None]]:
        """Spend ε in the ledger, then release inside; without a ledger, nothing is counted."""
        return nullcontext(lambda rows: None) if self.account is None else self.account.spending(self.guarantee, output)

    def release(self) -> SparkRelease:
        """Learn the reference, if it is private, and say how the rows are released."""
        fitted = self._fitted()
        numbered = self._numbered
        noise = self._bits.child("noise").repeatable()
        work = Releasing(numbered.layout, fitted, self.keep, noise, self.split, self._free)
        data, _ = mapped(numbered.frame, work, _bare_schema(numbered.frame, {*fitted.names, *self.keep}))
        return SparkRelease(data, self.guarantee, self.origin.released, fitted, self.split)

    def _fitted(self) -> fitting.FittedMechanism:
        try:
            return self._basis.fit(self._rows, self._bits.child("fit"))
        finally:
            self._numbered.forget()


def prepare(
    frame: Any,
    epsilon: float,
    *,
    reference: ReferenceLike = "private",
    kernel: KernelLike = "optimal",
    schema: SchemaLike = None,
    columns: Sequence[str] | None = None,
    keep: Sequence[str] = (),
    holdout: float | None = None,
    split: Split | None = None,
    public: Any = None,
    ledger: Ledger | str | Path | None = None,
    dataset: str | None = None,
    seed: Seed = None,
) -> Plan:
    """All that comes before ε is spent: rows are numbered, and a hold-out gathered."""
    epsilon = check_epsilon(epsilon)
    _check_frame(frame)
    recipe, noise = as_reference_spec(reference, public), as_kernel(kernel)
    is_private = isinstance(recipe, Private)
    apart = uses_holdout(recipe, public, holdout, split)
    check_split(split, apart)
    _check_supported(recipe, split, ledger, dataset)
    bits = source(seed)
    by = split.by if split else None
    empty = _empty(frame, columns, keep, by)
    names = select(empty, columns, keep, aside=(by,))
    declared = as_schema(schema, names)
    facts = [empty.column(name) for name in names]
    noted = tuple(dict.fromkeys((*names, *([by] if by else []))))
    read = frame.select(*(quoted(name) for name in frame.columns if name in {*noted, *keep}))
    book = None if ledger is None else ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    key = source(None).words(4).tobytes() if book is None else book.fingerprint_key()
    with ExitStack() as unless_planned:
        numbered = Numbered.read(read, noted, key, clips_infinities=is_private, packed=is_private)
        unless_planned.callback(numbered.forget)
        account = None if book is None else _account(book, dataset, numbered, key)
        held: dict[int, int] = {}
        if apart:
            split = split or new_split(None if is_private else account, holdout, None, bits)
            held = numbered.held_rows(split)
            check_sides(sum(held.values()), numbered.rows)
        out = sum(held.values())
        rows = SparkRows(numbered, out if apart else numbered.rows, split)
        fitted_on = None
        if not isinstance(recipe, Private):
            if public is not None:
                fitted_on = public_rows(_local(public), recipe)
            elif split is not None:
                fitted_on = numbered.hold_out(split, out, names)
                refuse_free_text(fitted_on, names, declared, keep)
        basis = fitting.plan_fit(
            recipe,
            noise,
            epsilon,
            facts,
            declared,
            rows=rows,
            reference=fitted_on,
            disjoint=apart,
            bits=bits.child("fit"),
        )
        if not isinstance(recipe, Private):
            basis.fit(None, bits).check(empty)
        origin = Origin(where_from(recipe, public, apart), out, numbered.rows - out, by)
        said = make_guarantee(recipe, noise, basis, origin, keep, epsilon=epsilon, secure=bits.secure)
        parts = numbered.layout.parts
        firsts = accumulate((part.rows - held.get(number, 0) for number, part in parts.items()), initial=0)
        free = dict(zip(parts, firsts, strict=False))
        unless_planned.pop_all()
        return Plan(said, origin, tuple(keep), split, account, numbered, basis, rows, free, bits)


def _check_frame(frame: Any) -> None:
    """A batch DataFrame of a classic session, with columns that Spark can tell apart."""
    kind = f"{type(frame).__module__}.{type(frame).__qualname__}"
    if kind.startswith("pyspark.sql.connect."):
        raise InputError(
            "the DataFrame belongs to a Spark Connect session, which has no broadcasts for the release's key.",
            "Run dipriv in a classic session, on the driver (spark-submit).",
        )
    if not kind.startswith("pyspark.sql."):
        raise InputError(
            f"a {type(frame).__name__} is not a Spark DataFrame.", "Use dipriv.privatize for tables on one machine."
        )
    if frame.isStreaming:
        raise InputError("the DataFrame is a stream without an end.", "Release its files one after the other.")
    lower = [name.lower() for name in frame.columns]
    if twice := [name for name in lower if lower.count(name) > 1]:
        raise InputError(
            f"column name {twice[0]!r} occurs {lower.count(twice[0])} times, but for upper and lower case.",
            "Rename the columns apart.",
        )
    if not lower:
        raise InputError("the table has no columns.", "Pass a table with at least one column.")


def _check_supported(recipe: ReferenceSpec, split: Split | None, ledger: Any, dataset: str | None) -> None:
    if isinstance(recipe, Grouped):
        raise InputError("a reference per group needs the table on one machine.", "Use one reference for all rows.")
    if ledger is not None and (dataset is None or split is not None):
        raise InputError(
            "a ledger does not recognize a Spark table by its rows, and keeps its hold-out itself.",
            "Name the data set (dataset=...), and leave split out.",
        )


def _empty(frame: Any, columns: Sequence[str] | None, keep: Sequence[str], by: str | None) -> Table:
    """A table without rows, of the DataFrame's names and types; what Arrow has no type for is refused if it is used."""
    used = {*(frame.columns if columns is None else columns), *keep, by}
    types = _arrow_types(frame.sparkSession, frame.schema.fields)
    for column in frame.schema.fields:
        if column.name in used and column.name not in types:
            raise SchemaError(
                f"column {column.name!r} has type {column.dataType.simpleString().partition('<')[0]}, for which Arrow "
                "has none.",
                "Convert it, or leave it out with columns=[...].",
            )
    fields = [
        pa.field(name, types[name], frame.schema[name].nullable) if name in types else pa.field(name, pa.null())
        for name in frame.columns
    ]
    return Table(pa.schema(fields).empty_table(), "pyarrow", tuple(frame.columns), 0)


def _arrow_types(session: Any, columns: Sequence[Any]) -> dict[str, pa.DataType]:
    """Arrow's types of Spark's columns, those that have one; all at once, else one by one."""
    from pyspark.sql.types import StructType

    try:
        found = session.createDataFrame([], StructType(list(columns))).toArrow().schema
    except Exception:
        if len(columns) == 1:
            return {}
        return {name: kind for column in columns for name, kind in _arrow_types(session, [column]).items()}
    return {column.name: column.type for column in found}


def _bare_schema(frame: Any, names: set[str]) -> Any:
    from pyspark.sql.types import StructField, StructType

    used = [column for column in frame.schema.fields if column.name in names]
    return StructType([StructField(column.name, column.dataType, column.nullable) for column in used])


def _account(book: Ledger, dataset: str | None, numbered: Numbered, key: bytes) -> Account:
    digest = numbered.fingerprint(key)
    known = book.preview(name=dataset, fingerprint=digest, suggestion=None)
    return Account(book, known, ReleaseRequest(known.name, digest, numbered.rows))


def _local(public: Any) -> Any:
    """A public table on this machine."""
    if not type(public).__module__.startswith("pyspark.sql."):
        return public
    with told():
        return public.toArrow()
