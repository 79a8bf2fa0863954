"""Columns with a fixed list of combinations: they are learned and released as one column of these combinations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dipriv._base.arrays import Mask
from dipriv._base.columns import Storage, cast
from dipriv._rules import Combination, Constant
from dipriv._tables.frames import Column, Table
from dipriv.release.rules.cells import (
    Part,
    Parts,
    Say,
    check_list,
    label_array,
    may_be_missing,
    numbers_of,
    part_of,
    stored,
    with_missing,
)
from dipriv.schema import Categorical


@dataclass(frozen=True, eq=False)
class JoinedColumns:
    """A list of combinations, with its columns. A combination that is not listed counts as missing, where the types of
    all columns have missing cells, and as the first of the list elsewhere.
    """

    rule: Combination
    columns: tuple[Column, ...]

    def check(self, columns: Mapping[str, Column], say: Say) -> None:
        for place, column in enumerate(self.columns):
            values = [row[place] for row in self.rule.rows]
            if column.storage.family == "label":
                labels = label_array(column, list(dict.fromkeys(values)))
                fits = labels is not None
                if labels is not None:
                    check_list(column, labels, say)
            else:
                fits = all(stored(column, value) is not None for value in values)
            if not fits:
                say(
                    f"some of its values for column {column.name!r} are not {column.storage.label}",
                    "Use values of the column's type; dates are texts such as '2024-12-31'",
                )

    @property
    def name(self) -> str:
        return ", ".join(self.rule.columns)

    @property
    def learned(self) -> Column:
        nullable = all(may_be_missing(column) for column in self.columns)
        return Column(self.name, Storage("label", np.dtype(np.int32), "text"), pa.string(), nullable)

    @property
    def learned_kind(self) -> Categorical:
        return Categorical(levels=tuple(json.dumps(row, ensure_ascii=False) for row in self.rule.rows))

    def before(self, table: Table) -> pa.Array:
        """The combination of each row."""
        parts = {column.name: part_of(table, column) for column in self.columns}
        found = self._places(parts)
        absent = found < 0 if self.learned.nullable else np.zeros(len(found), dtype=bool)
        return self._labels.take(pa.array(np.maximum(found, 0), mask=absent))

    def after(self, parts: Parts) -> dict[str, Part]:
        joint = parts[self.name]
        rows = numbers_of(self._labels, joint.labels)[np.where(joint.missing, 0, joint.cells.values)]
        released = {}
        for place, column in enumerate(self.columns):
            values: list[Constant] = [row[place] for row in self.rule.rows]
            place_of = {value: number for number, value in enumerate(dict.fromkeys(values))}
            labels = label_array(column, list(place_of)) if column.storage.family == "label" else None
            numbers = np.array([stored(column, value) if labels is None else place_of[value] for value in values])
            taken = cast(numbers[rows], column.storage.dtype)
            released[column.name] = Part(with_missing(taken, joint.missing, column), labels)
        return released

    def broken(self, parts: Parts) -> Mask:
        """Where a combination is not in the list; that all its cells are missing is not one."""
        nothing: Mask = np.logical_and.reduce([parts[column.name].missing for column in self.columns])
        return (self._places(parts) < 0) & ~nothing

    @cached_property
    def _labels(self) -> pa.Array:
        return pa.array(self.learned_kind.levels, pa.large_string())

    def _places(self, parts: Parts) -> NDArray[np.int64]:
        """The number of each row's combination in the list; -1 where it is not there."""
        keys = np.zeros(len(next(iter(parts.values()))), dtype=np.int64)
        listed_keys = np.zeros(len(self.rule.rows), dtype=np.int64)
        unknown = np.zeros(len(keys), dtype=bool)
        for place, column in enumerate(self.columns):
            cells, listed = self._codes(parts[column.name], column, [row[place] for row in self.rule.rows])
            unknown |= cells < 0
            pairs = np.concatenate([keys, listed_keys]) * (int(listed.max()) + 1)
            pairs += np.concatenate([np.maximum(cells, 0), listed])
            _, dense = np.unique(pairs, return_inverse=True)  # stays small, however many columns there are
            keys, listed_keys = dense[: len(keys)], dense[len(keys) :]
        order = np.argsort(listed_keys)
        at = np.minimum(np.searchsorted(listed_keys[order], keys), len(order) - 1)
        found = listed_keys[order][at] == keys
        return np.where(found & ~unknown, order[at], -1)

    @staticmethod
    def _codes(part: Part, column: Column, values: list[Constant]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Cells, and the values of the list, as numbers of distinct listed values; -1 for other cells."""
        if part.labels is not None:
            place_of = {value: number for number, value in enumerate(dict.fromkeys(values))}
            labels = label_array(column, list(place_of))
            own = numbers_of(labels, part.labels) if len(part.labels) else np.empty(0, np.int64)
            codes = np.append(own, -1)[np.where(part.missing, -1, part.cells.values)]
            return codes, np.array([place_of[value] for value in values])
        numbers = np.array([stored(column, value) for value in values])
        distinct, places = np.unique(numbers, return_inverse=True)
        at = np.minimum(np.searchsorted(distinct, part.cells.values), len(distinct) - 1)
        codes = np.where((distinct[at] == part.cells.values) & ~part.missing, at, -1)
        return codes, places
