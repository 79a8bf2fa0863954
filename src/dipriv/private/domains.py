"""What is public about each column: its line or its levels, by its type and the schema, and labels taken as public."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dipriv.codecs import NAN, NULL, Cells
from dipriv.codecs.discrete import nearest_index
from dipriv.codecs.fit import check_family, stored_levels
from dipriv.codecs.lines import BitsLine, Codes, Line, StepsLine
from dipriv.codecs.protocol import cast
from dipriv.codecs.temporal import ticks_in
from dipriv.columns import declared_labels
from dipriv.errors import SchemaError
from dipriv.identifying import refuse_free_text_labels
from dipriv.schema import RESOLUTIONS, Categorical, Continuous, Datetime, Discrete, Kind, Mixed, Schema, lattice
from dipriv.tables import Column, Table, distinct_labels

MOST_DECIMALS = 4

Step = tuple[int, int, Any]
"""A candidate (whole, per_unit, what to call it) for the step that a column's values are multiples of."""


@dataclass(frozen=True)
class Rows:
    """Rows that can be read again and again, some at a time. How many they are is public."""

    count: int
    tables: Callable[[], Iterable[Table]] = field(repr=False)


@dataclass(frozen=True, eq=False)
class Domain:
    """One column: listed `levels`, or a line of numbers with one of `steps` or, where there is none, of bits."""

    facts: Column
    declared: Kind | None
    labels: pa.Array | None = field(repr=False, default=None)
    levels: NDArray[Any] | None = field(repr=False, default=None)
    ordered: bool = True
    steps: tuple[Step, ...] = ()

    @property
    def name(self) -> str:
        return self.facts.name

    @property
    def missing(self) -> tuple[int, ...]:
        """The kinds of missing cells that the type allows."""
        if not self.facts.nullable:
            return ()
        return (NULL, NAN) if self.facts.storage.family == "real" else (NULL,)

    @property
    def has_read_labels(self) -> bool:
        """Whether the labels were read from the rows, for lack of a declaration."""
        return self.labels is not None and declared_labels(self.facts, self.declared) is None

    @property
    def open_step(self) -> bool:
        """Whether the step is one of several, to be found from the rows."""
        several = len(self.steps) > (0 if self.facts.storage.family == "real" else 1)
        return several and not isinstance(self.declared, Discrete)

    def cells(self, table: Table) -> Cells:
        """The column as numbers of its own width."""
        found = table.cells(self.name, self.labels)
        return Cells(cast(found.values, self.facts.storage.dtype), found.missing)

    def line(self, step: int) -> Line:
        """The line, if values are taken as multiples of the step with this number."""
        lower, upper = getattr(self.declared, "lower", None), getattr(self.declared, "upper", None)
        if step < len(self.steps):
            whole, per_unit, _ = self.steps[step]
            return StepsLine.of(self.facts.storage.dtype, whole, per_unit, lower, upper)
        return BitsLine.of(self.facts.storage.dtype, lower, upper)

    def kind(self, step: int) -> Kind:
        """What the column is taken as, then."""
        storage = self.facts.storage
        if self.labels is not None or storage.family == "boolean":
            return self.declared or Categorical(_plain(self.labels))
        if self.declared is not None and not isinstance(self.declared, Datetime):
            return self.declared
        if step < len(self.steps):
            name = self.steps[step][2]
            return Datetime(name) if storage.family == "temporal" else Discrete(step=name)
        return Continuous()

    def atoms(self, line: Line) -> Codes:
        """Codes at which cells start because the schema declares atoms there."""
        if not isinstance(self.declared, Mixed) or self.declared.atoms is None:
            return np.empty(0, dtype=np.int64)
        codes = line.to_codes(np.array(self.declared.atoms, dtype=np.float64))
        return np.unique(np.concatenate([codes, codes[codes < line.last] + 1]))

    def step_classes(self, cells: Cells) -> NDArray[np.intp]:
        """How many values are multiples of each step but of no coarser one; the last number counts all others."""
        values = cells.present
        number = np.full(len(values), len(self.steps))
        for place, (whole, per_unit, _) in reversed(list(enumerate(self.steps))):
            if values.dtype.kind == "f":
                reals = values.astype(np.float64)
                fits = (np.abs(reals) < 2.0**50 / per_unit) & (nearest_index(reals, whole, per_unit)[1] == 0)
                fits &= np.rint(reals * per_unit / whole) * whole / per_unit == reals
            else:
                fits = values % whole == 0
            number[fits] = place
        return np.bincount(number, minlength=len(self.steps) + 1)


def domains(columns: Sequence[Column], schema: Schema, rows: Rows, *, strict: bool) -> list[Domain]:
    """The domains of all columns. Labels that nothing declares are read from the rows, and so taken as public."""
    found = [_domain(column, schema.get(column.name)) for column in columns]
    unlisted = [domain for domain in found if domain.facts.storage.family == "label" and domain.labels is None]
    if unlisted and strict:
        raise SchemaError(
            f"column {unlisted[0].name!r} has labels that are declared nowhere ({len(unlisted)} such columns), and "
            "strict refuses to read them from the rows.",
            "Declare them: Categorical(levels=...), or a categorical type; or drop the column.",
        )
    labels = {domain.name: _labels(domain, rows) for domain in unlisted}
    return [_labelled(domain, labels[domain.name]) if domain.name in labels else domain for domain in found]


def _domain(column: Column, declared: Kind | None) -> Domain:
    storage = column.storage
    if declared is not None:
        check_family(column.name, declared, storage, lawful=False)
    if isinstance(declared, Categorical) and declared.encoding == "onehot":
        raise SchemaError(
            f"column {column.name!r} is declared with dummies, which the private reference has no use for.",
            'Leave encoding="onehot" out, or use another reference.',
        )
    if storage.family == "label":
        labels = declared_labels(column, declared)
        return Domain(column, declared) if labels is None else _labelled(Domain(column, declared), labels)
    if storage.family == "boolean":
        return Domain(column, declared, levels=np.array([0, 1], dtype=storage.dtype), ordered=False)
    if isinstance(declared, Categorical | Discrete) and declared.levels is not None:
        levels = np.unique(stored_levels(column.name, declared.levels, storage))
        return Domain(column, declared, levels=levels, ordered=isinstance(declared, Discrete))
    return Domain(column, declared, steps=_steps(column, declared))


def _steps(column: Column, declared: Kind | None) -> tuple[Step, ...]:
    """The steps to choose from: one where it is declared or follows from the type, several where it does not."""
    storage = column.storage
    if isinstance(declared, Discrete) and declared.step is not None:
        return ((*(lattice(declared.step) or (1, 1)), declared.step),)
    if storage.family == "temporal":
        asked = declared.resolution if isinstance(declared, Datetime) else None
        names = [asked] if asked is not None else list(RESOLUTIONS)
        coarser = [(ticks_in(name, storage.tick_ns), 1, name) for name in names]
        last = next((place for place, step in enumerate(coarser) if step[0] == 1), len(coarser) - 1)
        return tuple(coarser[: last + 1])
    if storage.family == "integer":
        return ((1, 1, 1),)
    if isinstance(declared, Continuous | Mixed):
        return ()
    return tuple((1, 10**digits, 1 if digits == 0 else 1 / 10**digits) for digits in range(MOST_DECIMALS + 1))


def _labels(domain: Domain, rows: Rows) -> pa.Array:
    """All labels of a column, sorted; free text is refused by its labels alone, which are taken as public."""
    seen: pa.Array | None = None
    for table in rows.tables():
        here = distinct_labels(table.array(domain.name))
        seen = here if seen is None else distinct_labels(pa.concat_arrays([seen, here.cast(seen.type)]))
    refuse_free_text_labels(domain.facts, seen, rows.count)
    return seen


def _labelled(domain: Domain, labels: pa.Array) -> Domain:
    levels = np.arange(max(1, len(labels)), dtype=domain.facts.storage.dtype)
    return Domain(domain.facts, domain.declared, labels, levels, ordered=False)


def _plain(labels: pa.Array | None) -> tuple[Any, ...] | None:
    """The labels, where a schema can hold them."""
    listed = () if labels is None else tuple(labels.to_pylist())
    return listed if listed and all(isinstance(label, str | int | float) for label in listed) else None
