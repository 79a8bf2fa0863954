"""One machine, more rows than its memory: the path of `dipriv.privatize`, in passes over blocks of rows.

First pass: rows are counted and noted, and the ledger recognizes the data set. A second pass gathers the hold-out, if
there is one. Then ε is spent; a private reference is learned in a few passes; and each call of `batches` is a pass that
releases block by block.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from dipriv._random import bits as randomness
from dipriv._random.bits import Bits, Seed
from dipriv._tables import frames as tables
from dipriv._tables.frames import Table
from dipriv._tables.identifiers import refuse_free_text
from dipriv.errors import InputError
from dipriv.guarantee.guarantee import Guarantee, check_epsilon
from dipriv.ledger import Ledger
from dipriv.references import Grouped, Private
from dipriv.release import fitting
from dipriv.release.accounting import Account, identify
from dipriv.release.fidelity import expected_fidelity
from dipriv.release.privatize import (
    KernelLike,
    ReferenceLike,
    SchemaLike,
    as_kernel,
    as_reference_spec,
    as_schema,
    check_sides,
    new_split,
    public_rows,
    select,
    uses_holdout,
    where_from,
)
from dipriv.release.promise import Origin, make_guarantee
from dipriv.schema import Schema
from dipriv.sources._blocks import Blocks, FirstReading
from dipriv.sources.batches import open_source
from dipriv.sources.files import Sink
from dipriv.sources.holdout import Split
from dipriv.sources.protocol import CountedTables


@dataclass(frozen=True, eq=False)
class StreamRelease:
    """A release that is made while it is read, and what is promised about it.

    `rows` is how many rows are released, `split` the hold-out's assignment. ε is spent already: once, however often
    the rows are read.
    """

    guarantee: Guarantee
    rows: int
    keep: tuple[str, ...]
    fitted: fitting.FittedMechanism = field(repr=False)
    split: Split | None = field(repr=False)
    _blocks: Blocks = field(repr=False)
    _noise: Bits = field(repr=False)
    _process: int = field(repr=False, default_factory=os.getpid)

    @property
    def schema(self) -> Schema:
        """What each column was taken as."""
        return self.fitted.schema

    @cached_property
    def fidelity(self) -> dict[str, float]:
        """{column: expected correlation of released with true values}, as `Release.fidelity`."""
        return expected_fidelity(self.fitted)

    def batches(self) -> pa.RecordBatchReader:
        """The released rows, block by block, in one pass over the source.

        A second call gives the same rows bit for bit, so it tells nothing that the first did not, and costs no ε: the
        noise of a row is a function of this release's secret key and of the row's number, not drawn anew. That is safe
        because the row is the same, too. Other values under the same noise would tell how they differ, so every block
        is compared with the first reading before it is released, and a source that changed is refused.
        """
        names = {*self.fitted.names, *self.keep}
        released = pa.schema([column for column in self._blocks.source.schema if column.name in names])
        return pa.RecordBatchReader.from_batches(released, self._released())

    def write_parquet(self, path: str | Path) -> None:
        """Write the released rows to a new Parquet file that appears whole or not at all."""
        if Path(path).exists():
            raise InputError(f"{path} exists.", "Choose another name, or remove it first.")
        sink = Sink.open(path, "parquet")
        if sink.format != "parquet" or sink.compression is not None or sink.path is None:
            raise InputError(f"{sink.name!r} is not the name of a Parquet file.", "Name it *.parquet.")
        with sink:
            for batch in self.batches():
                sink.write(batch)
            sink.publish()

    def _released(self) -> Iterator[pa.RecordBatch]:
        if os.getpid() != self._process:
            raise InputError(
                "this release was made by another process, whose noise is not known here.",
                "Read it where it was made: noise drawn anew would be a second release, with its own ε.",
            )
        number = 0
        for position, table in self._blocks.placed():
            part = table if self.split is None else table.take(~self.split.held_out(table, position))
            if part.rows:
                yield from self.fitted.release(part, self.keep, self._noise, first=number).to_batches()
                number += part.rows


def privatize(
    source: Any,
    epsilon: float,
    *,
    reference: ReferenceLike = "private",
    kernel: KernelLike = "optimal",
    schema: SchemaLike = None,
    columns: Sequence[str] | None = None,
    keep: Sequence[str] = (),
    holdout: float | None = None,
    public: Any = None,
    seed: Seed = None,
    ledger: Ledger | str | Path | None = None,
    dataset: str | None = None,
) -> StreamRelease:
    """Release a table that is larger than memory, row by row under ε-differential privacy.

    `source` is a polars LazyFrame; a pyarrow Dataset; the path of Parquet files (a file, a folder, or a pattern such as
    "people/*.parquet"); or a function that returns a fresh iterator of Arrow record batches each time. It is read
    several times and must give the same rows in the same order. Memory holds a block of rows, and all hold-out rows,
    where there are any. The other parameters are those of `dipriv.privatize`, which gives the same rows with the same
    seed.

    >>> import pyarrow as pa
    >>> def batches():
    ...     for start in range(0, 3000, 1000):
    ...         yield pa.record_batch({"age": [20 + i % 50 for i in range(start, start + 1000)]})
    >>> release = privatize(batches, epsilon=1.0)
    >>> release.batches().read_all().num_rows
    3000
    """
    epsilon = check_epsilon(epsilon)
    recipe, noise = as_reference_spec(reference, public), as_kernel(kernel)
    if isinstance(recipe, Grouped):
        raise InputError("a reference per group needs the table in memory.", "Use dipriv.privatize, or one reference.")
    bits = randomness.source(seed)
    found = open_source(source)
    names = select(found.empty, columns, keep, aside=())
    declared = as_schema(schema, names)
    facts = found.facts(names)
    apart = uses_holdout(recipe, public, holdout)
    first = FirstReading(found, names, clips_infinities=isinstance(recipe, Private))
    blocks, account = _first_pass(
        first, [name for name in found.schema.names if name in {*names, *keep}], ledger, dataset
    )
    split = new_split(None if isinstance(recipe, Private) else account, holdout, None, bits) if apart else None
    held = None if split is None else _held_out(blocks, split)
    rows, fitted_on = None, None
    if isinstance(recipe, Private):
        rows = CountedTables(blocks.rows, blocks.tables) if held is None else CountedTables(held.rows, lambda: [held])
    else:
        if held is not None:
            refuse_free_text(held, names, declared, keep)
        fitted_on = public_rows(public, recipe) if public is not None else held
    basis = fitting.plan_fit(
        recipe, noise, epsilon, facts, declared, rows=rows, reference=fitted_on, disjoint=apart, bits=bits.child("fit")
    )
    out = 0 if held is None else held.rows
    origin = Origin(where_from(recipe, public, apart), out, blocks.rows - out)
    said = make_guarantee(recipe, noise, basis, origin, keep, epsilon=epsilon, secure=bits.secure)
    with nullcontext(lambda rows: None) if account is None else account.spending(said) as done:
        fitted = basis.fit(rows, bits.child("fit"))
        done(origin.released)
    return StreamRelease(said, origin.released, tuple(keep), fitted, split, blocks, bits.child("noise"))


def _first_pass(
    reading: FirstReading, columns: Sequence[str], ledger: Ledger | str | Path | None, dataset: str | None
) -> tuple[Blocks, Account | None]:
    """Count and note the rows; a ledger recognizes the data set by all its columns, released or not."""
    if ledger is not None:
        account = identify(ledger, dataset, reading.batches(reading.source.schema.names), None)
        return reading.done(columns), account
    for _ in reading.batches(columns):
        pass
    return reading.done(columns), None


def _held_out(blocks: Blocks, split: Split) -> Table:
    """The rows that are held out, gathered."""
    parts = [table.native.filter(pa.array(split.held_out(table, position))) for position, table in blocks.placed()]
    rows = pa.concat_tables(parts)
    check_sides(rows.num_rows, blocks.rows)
    held = tables.read(rows)
    return held.clip_infinities() if blocks.clips_infinities else held
