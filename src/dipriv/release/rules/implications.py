"""Implications: what a released cell must be, where another one meets a condition.

The private reference gives combinations that a rule excludes no probability (`Exclusion`). A released cell that breaks
a rule all the same is set to what the rule says, by post-processing: no row is dropped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from dipriv._base.arrays import Mask
from dipriv._base.columns import NAN, NULL, PRESENT, ColumnValues
from dipriv._rules import Constant, Implication, Test
from dipriv._tables.frames import Column
from dipriv.references.exclusions import Comparison, Exclusion, Region
from dipriv.release.rules.cells import Part, Parts, Say, label_array, may_be_missing, numbers_of, stored, with_labels
from dipriv.schema import lattice

_INVERSE: dict[str, Comparison] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "not in", "in": "not in"}


@dataclass(frozen=True, eq=False)
class Imply:
    """An implication, with its two columns."""

    rule: Implication
    condition: Column
    column: Column

    def check(self, columns: Mapping[str, Column], say: Say) -> None:
        for test, column in ((self.rule.condition, self.condition), (self.rule.consequence, self.column)):
            if not _check_test(test, column, say):
                return
        if self.rule.consequence.operator == "missing" and not may_be_missing(self.column):
            say(
                f"the type {self.column.storage.label} of column {self.column.name!r} has no missing cells",
                "Convert the column to a type that has, such as Int64 of pandas or float",
            )
            return
        made = _set(_with_values(_one_cell(self.column), self), np.ones(1, dtype=bool), self)
        if not agrees(self.rule.consequence, made, self.column).all():
            say(
                f"the type {self.column.storage.label} of column {self.column.name!r} has no value that its "
                "consequence allows",
                "Correct the value",
            )

    @property
    def exclusion(self) -> Exclusion:
        """The cells that do not occur together: those that meet the condition, and those that contradict."""
        return Exclusion(_region(self.rule.condition, self.condition), _violation(self.rule.consequence, self.column))

    def broken(self, parts: Parts) -> Mask:
        there = holds(self.rule.condition, parts[self.condition.name], self.condition)
        return there & ~agrees(self.rule.consequence, parts[self.column.name], self.column)


@dataclass(frozen=True, eq=False)
class Corrections:
    """All implications of a schema, those with one consequence column together, causes before consequences."""

    rules: tuple[Imply, ...]

    @cached_property
    def _targets(self) -> dict[str, list[Imply]]:
        """The rules about each consequence column, in an order in which conditions are settled first."""
        rules: dict[str, list[Imply]] = {}
        for rule in self.rules:
            rules.setdefault(rule.column.name, []).append(rule)
        ordered: dict[str, list[Imply]] = {}
        while rules:
            name = next(name for name, some in rules.items() if not any(one.condition.name in rules for one in some))
            ordered[name] = rules.pop(name)
        return ordered

    @property
    def labels(self) -> dict[str, pa.Array]:
        """{column of labels: the labels that rules may set}."""
        found = {
            name: [rule.rule.consequence.values[0] for rule in rules if rule.rule.consequence.values]
            for name, rules in self._targets.items()
            if rules[0].column.storage.family == "label"
        }
        return {name: label_array(self._targets[name][0].column, values) for name, values in found.items()}

    def check(self, say: Say) -> None:
        """Several rules about one column must leave it something to be."""
        for name, rules in self._targets.items():
            if len(rules) > 1 and not may_be_missing(rules[0].column) and self._fallback(rules) is None:
                say(
                    f"{len(rules)} implications about column {name!r} contradict each other, and its type "
                    f"{rules[0].column.storage.label} has no missing cells",
                    "Convert the column to a type that has, or correct the rules",
                )

    def after(self, parts: Parts) -> dict[str, Part]:
        """The columns, with cells that break rules set to what the rules say."""
        released = dict(parts)
        for name, rules in self._targets.items():
            part = released[name]
            for rule in rules:
                part = _with_values(part, rule)
            where = [holds(rule.rule.condition, released[rule.condition.name], rule.condition) for rule in rules]
            for rule, there in zip(rules, where, strict=True):
                part = _set(part, there & ~agrees(rule.rule.consequence, part, rule.column), rule)
            left = np.zeros(len(part), dtype=bool)
            for rule, there in zip(rules, where, strict=True):  # a later rule may have undone an earlier one
                left |= there & ~agrees(rule.rule.consequence, part, rule.column)
            if left.any():
                part = self._set_all(part, left, rules)
            released[name] = part
        return released

    def _set_all(self, part: Part, where: Mask, rules: Sequence[Imply]) -> Part:
        """Cells that several rules are about: missing, which contradicts none, or a value that all of them allow."""
        if may_be_missing(rules[0].column):
            return _missing(part, where, rules[0].column)
        fallback = self._fallback(rules)
        return part if fallback is None else _set(part, where, fallback)

    @staticmethod
    def _fallback(rules: Sequence[Imply]) -> Imply | None:
        """A rule whose own value agrees with all others."""
        for rule in rules:
            part = _with_values(_one_cell(rule.column), rule)
            for other in rules:
                part = _with_values(part, other)
            made = _set(part, np.ones(1, dtype=bool), rule)
            if all(agrees(other.rule.consequence, made, other.column).all() for other in rules):
                return rule
        return None


def holds(test: Test, part: Part, column: Column) -> Mask:
    """Where a condition is met: a missing cell meets none but "missing"."""
    if test.operator in ("missing", "not missing"):
        return part.missing if test.operator == "missing" else ~part.missing
    return ~part.missing & _compare(test, part, column)


def agrees(test: Test, part: Part, column: Column) -> Mask:
    """Where a consequence is not contradicted: a missing cell contradicts none."""
    return part.missing if test.operator == "missing" else part.missing | _compare(test, part, column)


def _compare(test: Test, part: Part, column: Column) -> Mask:
    values = part.cells.values
    if part.labels is not None:
        labels = label_array(column, test.values)
        places = np.empty(0, np.int64) if labels is None else numbers_of(part.labels, labels)
        among = np.isin(values, places[places >= 0])
        return ~among if test.operator in ("!=", "not in") else among
    numbers = [float("nan") if (number := _number(column, value)) is None else number for value in test.values]
    if test.operator in ("=", "in", "!=", "not in"):
        among = np.isin(values, numbers)
        return ~among if test.operator in ("!=", "not in") else among
    compare = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}[test.operator]
    found: Mask = compare(values, numbers[0])
    return found


def _number(column: Column, value: Constant) -> int | float | None:
    """A constant as a number to compare with; a whole column may be compared with 14.5."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if column.storage.family == "integer" and is_number:
        return value  # type: ignore[return-value]
    number = stored(column, value)
    return number if number is None or column.storage.family != "real" else float(column.storage.dtype.type(number))


def _check_test(test: Test, column: Column, say: Say) -> bool:
    if test.operator in ("missing", "not missing"):
        return True
    family = column.storage.family
    if test.operator in ("<", "<=", ">", ">=") and family in ("label", "boolean"):
        say(f"column {column.name!r} holds {column.storage.label}, which has no order", "Use =, != or in")
        return False
    if family == "label":
        fits = label_array(column, test.values) is not None
    else:
        fits = all(_number(column, value) is not None for value in test.values)
    if not fits:
        say(
            f"column {column.name!r} holds {column.storage.label}, and is compared with something else",
            "Write texts, dates and times in single quotes, numbers without, and true or false",
        )
    return fits


def _set(part: Part, where: Mask, rule: Imply) -> Part:
    """The cells with what the rule says in these places."""
    if not where.any():
        return part
    test, column = rule.rule.consequence, rule.column
    if test.operator == "missing":
        return _missing(part, where, column)
    if part.labels is not None:
        labels = label_array(column, test.values[:1])
        value: int | float = 0 if labels is None else int(numbers_of(part.labels, labels)[0])
    else:
        found = _nearest(test, part, column)
        if found is None:
            return _missing(part, where, column)
        value = found
    values = np.where(where, np.array(value).astype(part.cells.values.dtype), part.cells.values)
    kinds = part.cells.missing
    cells = ColumnValues(values, None if kinds is None else np.where(where, PRESENT, kinds))
    return Part(cells, part.labels, part.decimals)


def _finer(decimals: int | None, value: int | float) -> int | None:
    """How many decimals a column has that may also have this value."""
    unit = lattice(abs(value)) if value else (0, 1)
    return None if decimals is None or unit is None else max(decimals, len(str(unit[1])) - 1)


def _nearest(test: Test, part: Part, column: Column) -> int | float | None:
    """The value that a consequence sets: the first that is listed, or the nearest one on the right side of a bound."""
    value = _number(column, test.values[0])
    whole = column.storage.family != "real"
    if value is None or test.operator in ("=", "in", "<=", ">="):
        if value is None or not whole:
            return value
        return int(np.floor(value)) if test.operator != ">=" else int(np.ceil(value))
    up = test.operator == ">"
    if whole:
        return int(np.floor(value)) + 1 if up else int(np.ceil(value)) - 1
    if part.decimals is None:
        return float(
            np.nextafter(column.storage.dtype.type(value), column.storage.dtype.type(np.inf if up else -np.inf))
        )
    step = 10.0**-part.decimals
    steps = math.floor(value / step + 1e-9) + 1 if up else math.ceil(value / step - 1e-9) - 1
    return round(steps * step, part.decimals)


def _missing(part: Part, where: Mask, column: Column) -> Part:
    kinds = np.zeros(len(part), dtype=np.uint8) if part.cells.missing is None else part.cells.missing
    kind = NULL if column.nullable else NAN
    return Part(
        ColumnValues(part.cells.values, np.where(where, kind, kinds).astype(np.uint8)), part.labels, part.decimals
    )


def _with_values(part: Part, rule: Imply) -> Part:
    """Labels with the one, or decimals with those, that the rule may set, whether a row needs it or not."""
    test = rule.rule.consequence
    if test.operator == "missing":
        return part
    if part.labels is None:
        value = _number(rule.column, test.values[0])
        return part if value is None else Part(part.cells, None, _finer(part.decimals, value))
    labels = label_array(rule.column, test.values[:1])
    return part if labels is None else with_labels(part, labels)


def _one_cell(column: Column) -> Part:
    labels = pa.array([], pa.large_string()) if column.storage.family == "label" else None
    if labels is not None and pa.types.is_dictionary(column.arrow_type):
        labels = pa.array([], column.arrow_type.value_type)
    return Part(ColumnValues(np.zeros(1, dtype=column.storage.dtype)), labels)


def _region(test: Test, column: Column) -> Region:
    """The cells that meet a condition."""
    if test.operator == "missing":
        return Region(column.name, "none", (), missing=True)
    if test.operator == "not missing":
        return Region(column.name, "all")
    operator: Any = {"=": "in", "!=": "not in"}.get(test.operator, test.operator)
    return Region(column.name, operator, _constants(test, column), is_label=column.storage.family == "label")


def _violation(test: Test, column: Column) -> Region:
    """The cells that contradict a consequence: present ones."""
    if test.operator == "missing":
        return Region(column.name, "all")
    inverse = _INVERSE[test.operator]
    return Region(column.name, inverse, _constants(test, column), is_label=column.storage.family == "label")


def _constants(test: Test, column: Column) -> tuple[Constant, ...]:
    if column.storage.family == "label":
        return test.values
    return tuple(number for value in test.values if (number := _number(column, value)) is not None)
