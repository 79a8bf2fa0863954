"""A table in memory: pandas, polars, pyarrow or numpy. Its columns are converted once and kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dipriv._base.table_fingerprint import TableFingerprint
from dipriv._random.bits import Bits
from dipriv._tables import frames
from dipriv._tables.arrow import is_text
from dipriv._tables.column_types import TypeRules, ask
from dipriv._tables.frames import Column, Table
from dipriv._tables.presentation import Presentation
from dipriv._tables.typed_tables import is_objects, settle_table
from dipriv.errors import unusable
from dipriv.sources._fingerprint import PrefixFingerprints
from dipriv.sources.contribution_bound import BoundedRows, ContributionBound, numbers_of, unit_keys
from dipriv.sources.holdout import GroupHoldout, Split
from dipriv.sources.protocol import (
    CountableRows,
    CountedTables,
    ReleaseJob,
    RowSelection,
    Scan,
    View,
)


@dataclass(frozen=True, eq=False)
class TableSource:
    """A `RowSource` of a table in memory; releases a table of the same library."""

    table: Table = field(repr=False)
    name: str = "the table"
    limits: Mapping[str, str] = field(repr=False, default_factory=dict)
    writes_folder: bool = False
    suggested_dataset: str | None = None
    releases_later: bool = False

    @classmethod
    def open(cls, frame: Any) -> TableSource:
        """Any table that `dipriv._tables` reads."""
        return cls(frames.read(frame))

    @property
    def column_names(self) -> tuple[str, ...]:
        return self.table.names

    def infers_types(self, names: Sequence[str], rules: TypeRules) -> bool:
        """Objects of pandas have no type of their own; text is read as what its keeper says it is."""
        objects = {name for name in names if is_objects(self.table, name)}
        texts = [name for name in names if name not in objects and is_text(self.table.arrow_type(name))]
        return any(rules.is_settled_by_cells(name, is_text=False, is_objects=True) for name in objects) or any(
            rules.is_settled_by_cells(name, is_text=True) for name in texts
        )

    def scan(self, request: Scan) -> TableRows:
        """Fingerprint the table, and settle the types of text."""
        fingerprint = None
        if request.fingerprint is not None:
            batch = self.table.fingerprinted()
            seen = PrefixFingerprints(request.fingerprint, batch.schema.names)
            seen.update(batch)
            fingerprint = seen.result()
        table, questions = settle_table(self.table, request.privatized, request.types)
        asked = {question.column for question in questions}
        ask(questions, unusable([name for name in request.privatized if name not in asked], table.column))
        return TableRows(table, fingerprint)


@dataclass(frozen=True, eq=False)
class DeferredSource(TableSource):
    """Rows to fit on; what they are released as is a function for tables that come later."""

    releases_later: bool = True

    def scan(self, request: Scan) -> DeferredRows:
        return DeferredRows(*_fields(super().scan(request)))


@dataclass(frozen=True, eq=False)
class TableRows:
    """The rows of a table in memory."""

    table: Table = field(repr=False)
    fingerprint: TableFingerprint | None = None
    presentation: Presentation = field(repr=False, default_factory=Presentation)

    @property
    def n_rows(self) -> int:
        return self.table.rows

    @property
    def empty(self) -> Table:
        return self.table

    def columns(self, names: Sequence[str]) -> list[Column]:
        return [self.table.column(name) for name in names]

    def select(
        self, split: Split | None, unit: ContributionBound | None, groups: GroupHoldout | None, bits: Bits
    ) -> RowSelection:
        rows = self.table.rows
        held = np.zeros(rows, dtype=bool)
        if split is not None:
            held = split.held_out(self.table) if groups is None else groups.held_out(self.table, split)
        bound = None if unit is None else BoundedRows.of(unit, unit_keys(unit, self.table, bits))
        inside = np.ones(rows, dtype=bool) if bound is None else bound.kept
        return RowSelection(
            rows,
            int(held.sum()),
            int((held & inside).sum()),
            int((~held & inside).sum()),
            split,
            None if bound is None else bound.kept,
            None if split is None else held,
            None if bound is None else numbers_of(bound.keys[~held & inside]),
            {} if bound is None else bound.differing,
            None if split is None or split.by is None else split.digest_of(split.scores(self.table)),
        )

    def countable(self, selection: RowSelection, view: View | None = None) -> CountableRows:
        side = selection.released_rows if selection.split is None else selection.reference_rows
        some = _take(self.table, side(self.table, 0))
        some = some if view is None else view(some)
        return CountedTables(some.rows, lambda: [some])

    def gather(self, selection: RowSelection) -> Table:
        return _take(self.table, selection.reference_rows(self.table, 0))

    def release(self, job: ReleaseJob) -> Any:
        """A table of the caller's own library, with its dtypes, row order and index."""
        some = _take(self.table, job.selection.released_rows(self.table, 0))
        return job.mechanism.release(some, job.keep, job.noise, progress=job.progress, persons=job.persons())

    def end_learning(self) -> None:
        """Nothing was left behind."""

    def close(self) -> None:
        """Nothing was left behind."""


class DeferredRows(TableRows):
    """Rows to fit on; `release` gives the job itself, to be applied to other tables."""

    def gather(self, selection: RowSelection) -> Table:
        """All rows are reference rows."""
        return self.table

    def release(self, job: ReleaseJob) -> ReleaseJob:
        return replace(job)


def _fields(rows: TableRows) -> tuple[Table, TableFingerprint | None]:
    return rows.table, rows.fingerprint


def _take(table: Table, rows: Any) -> Table:
    return table if rows is None or rows.all() else table.take(rows)
