"""The labels of text and categorical columns, declared, read or found privately, and cells as positions among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dipriv._base.arrays import Counts
from dipriv._tables.fitted_columns import check_room, declared_labels, label_of_others, label_order
from dipriv._tables.frames import Column, Table
from dipriv._tables.identifiers import refuse_free_text_labels
from dipriv._tables.value_counts import ValueCounts
from dipriv.errors import SchemaError
from dipriv.references import ValuesCounter
from dipriv.references.protocol import CountableValues, Frequencies, LabelPolicy
from dipriv.schema import Schema
from dipriv.sources.protocol import CountableRows

Labels: TypeAlias = dict[str, pa.Array]
"""The labels of some columns, by name."""


def labels_of(columns: Sequence[Column], schema: Schema) -> tuple[Labels, list[Column]]:
    """The labels that the schema lists, by column, and the columns of labels for which it lists none."""
    labelled = [column for column in columns if column.storage.family == "label"]
    listed = {column.name: declared_labels(column, schema.get(column.name)) for column in labelled}
    labels = {name: found for name, found in listed.items() if found is not None}
    return labels, [column for column in labelled if column.name not in labels]


def check_labels(unlisted: Sequence[Column], policy: LabelPolicy, delta: float) -> None:
    """Refuse columns whose labels nothing declares and the policy has no way to find."""
    if not unlisted or policy == "public":
        return
    names = ", ".join(repr(column.name) for column in unlisted)
    if policy == "declared":
        raise SchemaError(
            f"the schema does not declare the labels of {names}, and with declared labels none are read from the rows.",
            "Declare them in the schema, Categorical(levels=...); leave the columns out with drop=[...]; or use "
            "labels='private', or 'public' if all their labels are public.",
            command="List them as levels in the schema; leave the columns out with --drop; or use --labels private, or "
            "public if all their labels are public.",
        )
    if delta == 0:
        raise SchemaError(
            f"pure ε-differential privacy (delta=0) cannot find the labels of {names}.",
            "Declare them in the schema, Categorical(levels=...); use labels='public' if all their labels are public; "
            "leave the columns out with drop=[...]; or leave delta at 1e-9.",
            command="List them as levels in the schema; use --labels public if all their labels are public; leave the "
            "columns out with --drop; or leave --delta at 1e-9.",
        )
    rigid = [column for column in unlisted if not column.nullable and label_of_others(column).null_count]
    if rigid:
        raise SchemaError(
            f"column {rigid[0].name!r} holds {rigid[0].storage.label} and no nulls, which rare labels would become "
            f"({len(rigid)} such columns).",
            "Make the column nullable, or text; or declare its labels in the schema, Categorical(levels=...).",
            command="Make the column nullable, or text; or list its labels as levels in the schema.",
        )


def read_labels(columns: Sequence[Column], rows: CountableRows) -> Labels:
    """The labels that these rows have, which are called public; refuses columns that look like free text."""
    counts = rows.value_counts([column.name for column in columns])
    found = [(column, counts[column.name].values) for column in columns]
    refuse_free_text_labels(found, rows.n_rows)  # judged by the labels alone
    for column, labels in found:
        check_room(column, labels)
    return {column.name: labels.take(pa.array(label_order(column, labels))) for column, labels in found}


@dataclass(frozen=True, eq=False)
class TableCounter:
    """A counter of column values, applied to tables. It is pickled for workers, and contains no secret."""

    counter: ValuesCounter
    labels: Labels = field(repr=False)

    def __call__(self, table: Table) -> list[Counts]:
        return self.counter(lambda name: table.cells(name, self.labels.get(name)))


def label_numbers(known: pa.Array, labels: Sequence[Any]) -> list[int]:
    """Where labels stand among the known ones of a column; -1 for others."""
    found: list[int] = pc.index_in(pa.array(labels, known.type), value_set=known).fill_null(-1).to_pylist()
    return found


class LabelledValues(CountableValues, Protocol):
    """Rows as columns of values, and the labels that their numbers stand for."""

    @property
    def labels(self) -> Labels: ...


@dataclass(frozen=True, eq=False)
class TableValues:
    """Rows of tables as columns of values: labels become their positions in `labels`, which learning may settle.

    Until it does, a column whose labels are to be found has only the one that stands for all others.
    """

    rows: CountableRows
    columns: Sequence[Column] = ()
    labels: Labels = field(repr=False, default_factory=dict)
    _candidates: Labels = field(repr=False, default_factory=dict)

    @property
    def n_rows(self) -> int:
        return self.rows.n_rows

    def count(self, counter: ValuesCounter) -> list[Counts]:
        return self.rows.count(TableCounter(counter, dict(self.labels)))

    def frequencies(self, names: Sequence[str], at_least: int = 1) -> dict[str, Frequencies]:
        column_of = {column.name: column for column in self.columns}
        counts = self.rows.value_counts(names, at_least) if names else {}
        return {name: self._frequencies(column_of[name], found) for name, found in counts.items()}

    def _frequencies(self, column: Column, found: ValueCounts) -> Frequencies:
        if column.storage.family != "label":
            return Frequencies(found.values.to_numpy(), found.counts)
        others = pc.is_in(found.values, value_set=label_of_others(column).cast(found.values.type))
        is_other = others.to_numpy(zero_copy_only=False)
        order = label_order(column, found.values)
        order = order[~is_other[order]]
        self._candidates[column.name] = found.values.take(pa.array(order))
        return Frequencies(np.arange(len(order)), found.counts[order], int(found.counts[is_other].sum()))

    def keep_labels(self, kept: Mapping[str, NDArray[np.intp]]) -> None:
        for name, positions in kept.items():
            labels = self._candidates.pop(name)
            others = self.labels[name][:1].cast(labels.type)
            self.labels[name] = pa.concat_arrays([others, labels.take(pa.array(positions, pa.int64()))])

    def label_numbers(self, name: str, labels: Sequence[Any]) -> list[int]:
        return label_numbers(self.labels[name], labels)
