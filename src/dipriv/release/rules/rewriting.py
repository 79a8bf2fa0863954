"""Public rewriting of rows, by the rules of a schema.

Before anything is learned, each row is rewritten by itself: columns that follow from others are left out, the upper of
two ordered columns becomes a difference, and columns with a list of combinations become one. What is released is
rewritten back. Both are functions of one row and of public facts: neighbouring tables stay neighbours, and all that
comes after the release is post-processing (docs/theory/private-reference.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from dipriv._base.arrays import Counts
from dipriv._base.columns import ColumnValues, NumericColumn
from dipriv._base.near_names import did_you_mean
from dipriv._base.registry import serializable
from dipriv._rules import Combination, Formula, Function, Implication, Order, Rules
from dipriv._rules.declared import columns_in, refuse
from dipriv._tables.arrow import room_for_labels
from dipriv._tables.codes import recoded
from dipriv._tables.fitted_columns import FittedColumn, check_room, check_same_column
from dipriv._tables.frames import Column, Table
from dipriv.errors import InputError
from dipriv.references import Exclusion
from dipriv.release.rules.cells import Part, Parts, decimals_of, may_be_missing, part_of, with_labels
from dipriv.release.rules.combinations import JoinedColumns
from dipriv.release.rules.formulas import ComputedColumn, MappedColumn
from dipriv.release.rules.implications import Corrections, Imply
from dipriv.release.rules.orders import OrderedColumn
from dipriv.schema import Categorical, Continuous, Datetime, Discrete, Kind, Schema

Labelled: TypeAlias = dict[str, tuple[ColumnValues, pa.Array | None]]
"""Columns as numbers with their labels, by name."""
Rule: TypeAlias = Formula | Order | Implication | Function | Combination
Definition: TypeAlias = ComputedColumn | MappedColumn | OrderedColumn


@serializable()
@dataclass(frozen=True, eq=False)
class Rewriting:
    """The rules of a schema, bound to the columns of a table. `bind` checks them."""

    columns: tuple[Column, ...]
    """The columns that are privatized, as the table has them."""
    schema: str = field(repr=False)
    """Their declared kinds and the rules in force, as JSON."""

    @cached_property
    def declared(self) -> Schema:
        return Schema.from_json(self.schema)

    @property
    def rules(self) -> Rules:
        return self.declared.rules

    @property
    def names(self) -> tuple[str, ...]:
        """The released columns."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def _column(self) -> dict[str, Column]:
        return {column.name: column for column in self.columns}

    @cached_property
    def _joined(self) -> tuple[JoinedColumns, ...]:
        return tuple(
            JoinedColumns(rule, tuple(self._column[name] for name in rule.columns)) for rule in self.rules.combinations
        )

    @cached_property
    def _implications(self) -> tuple[Imply, ...]:
        column = self._column
        return tuple(
            Imply(rule, column[rule.condition.column], column[rule.consequence.column])
            for rule in self.rules.implications
        )

    @cached_property
    def _corrections(self) -> Corrections:
        return Corrections(self._implications)

    @cached_property
    def _definitions(self) -> dict[str, Definition]:
        """Columns that are computed after the release, each after those that it needs."""
        defining: tuple[Formula | Function | Order, ...] = (
            *self.rules.formulas,
            *self.rules.functions,
            *self.rules.orders,
        )
        rules = {columns_in(rule)[0]: rule for rule in defining}
        found: dict[str, Definition] = {}
        while left := [name for name in rules if name not in found]:
            name = next(name for name in left if not {*columns_in(rules[name])[1:]} & {*left})
            found[name] = self._definition(rules[name])
        return found

    def _definition(self, rule: Formula | Function | Order) -> Definition:
        if isinstance(rule, Formula):
            return ComputedColumn(rule, self._column[rule.column], self.declared.get(rule.column))
        if isinstance(rule, Function):
            return MappedColumn(rule, self._column[rule.column], self._column[rule.of])
        upper, lower = self._column[rule.upper], self._column[rule.lower]
        return OrderedColumn(rule, upper, lower, self.declared.get(rule.upper))

    @property
    def _bound(self) -> tuple[JoinedColumns | Definition | Imply, ...]:
        return (*self._joined, *self._definitions.values(), *self._implications)

    @cached_property
    def _ordered(self) -> dict[str, OrderedColumn]:
        return {name: one for name, one in self._definitions.items() if isinstance(one, OrderedColumn)}

    @property
    def derived(self) -> tuple[str, ...]:
        """The columns that are neither learned nor perturbed: formulas and functions of others."""
        return tuple(name for name in self._definitions if name not in self._ordered)

    @property
    def listed(self) -> frozenset[str]:
        """The columns whose values a rule lists: of combinations, and of functions."""
        joined = [name for rule in self.rules.combinations for name in rule.columns]
        return frozenset((*joined, *(rule.column for rule in self.rules.functions)))

    @property
    def stated(self) -> tuple[str, ...]:
        """The released columns whose kinds or values the schema states."""
        joined = [name for rule in self.rules.combinations for name in rule.columns]
        return tuple(dict.fromkeys((*self.declared, *joined, *self._listed_by_maps)))

    def check_invariants(self) -> None:
        """Of an exported rewriting: the rules fit the columns."""
        refuse(self.problems())

    def problems(self) -> list[tuple[str, str]]:
        """What the types of the columns have against the rules."""
        found: list[tuple[str, str]] = []
        for one in self._bound:
            one.check(self._column, partial(_note, found, f"rule ({one.rule.text!r:.120})"))
        for implied in self._implications:
            for test in (implied.rule.condition, implied.rule.consequence):
                levels = getattr(self.declared.get(test.column), "levels", None)
                if levels is not None and test.operator in ("=", "!=", "in", "not in") and {*test.values} - {*levels}:
                    _note(
                        found,
                        f"rule ({implied.rule.text!r:.120})",
                        f"it has a value that the schema does not list among the levels of column {test.column!r}",
                        "Correct the value, or complete the levels",
                    )
        set_by_rules = {name for rule in self.rules.all for name in _set_by(rule)}
        for one in self._ordered.values():
            if one.rule.strict and not may_be_missing(one.column) and one.lower.name in set_by_rules:
                _note(
                    found,
                    f"rule ({one.rule.text!r:.120})",
                    f"a rule sets column {one.lower.name!r}, which may leave nothing above it, and the type "
                    f"{one.column.storage.label} of column {one.column.name!r} has no missing cells",
                    "Convert the column to a type that has, such as Int64 of pandas or float",
                )
        if not found:
            self._corrections.check(partial(_note, found, "rules"))
        return found

    def learned(self) -> list[Column]:
        """The columns that are learned and perturbed."""
        joint = {one.rule.columns[0]: one.learned for one in self._joined}
        gone = {name for one in self._joined for name in one.rule.columns[1:]} | {*self.derived}
        return [
            joint[column.name]
            if column.name in joint
            else self._ordered[column.name].learned
            if column.name in self._ordered
            else column
            for column in self.columns
            if column.name not in gone
        ]

    def learns(self, columns: Sequence[Column]) -> bool:
        """Whether these are the columns that the rules leave to be learned."""
        expected = self.learned()
        return len(expected) == len(columns) and all(
            one.name == column.name and one.arrow_type == column.arrow_type
            for one, column in zip(expected, columns, strict=True)
        )

    @property
    def learned_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.learned())

    def learned_schema(self) -> Schema:
        """What is declared about the columns that are learned."""
        kinds: dict[str, Kind | None] = {}
        for column in self.learned():
            kinds[column.name] = self.declared.get(column.name, self._listed_by_maps.get(column.name))
        kinds |= {one.name: one.learned_kind for one in self._joined}
        kinds |= {name: one.learned_kind for name, one in self._ordered.items()}
        return Schema({name: kind for name, kind in kinds.items() if kind is not None})

    @cached_property
    def _listed_by_maps(self) -> dict[str, Kind]:
        """The values of columns that a map lists, one by one and completely: as good as declared."""
        maps = [one for one in self._definitions.values() if isinstance(one, MappedColumn)]
        found = {one.of.name: kind for one in maps if (kind := one.listed()) is not None}
        return {name: kind for name, kind in found.items() if name not in self.declared}

    def learned_name(self, name: str) -> str | None:
        """The learned column that a released column is in; None for a derived one."""
        joint = next((one.name for one in self._joined if name in one.rule.columns), None)
        return joint or (None if name in self.derived else name)

    def learned_constant(self, names: Sequence[str]) -> tuple[str, ...]:
        """The learned columns of released ones that are constant in a person.

        Raises
        ------
        InputError : a rule makes one of them follow from columns that are not constant; all such rules are reported.
        """
        wrong = [
            f"by the rule {rule.text!r:.120}, {_listed_names(set_here)} may differ where {_listed_names(others)} does"
            for rule in self.rules.all
            if (set_here := [name for name in _set_by(rule) if name in names])
            and (others := [name for name in columns_in(rule) if name not in names])
        ]
        if wrong:
            raise InputError(f"constant: {'; '.join(wrong)}.", "Name all columns of these rules as constant, or none.")
        learned = [self.learned_name(name) for name in names]
        return tuple(dict.fromkeys(name for name in learned if name is not None))

    def about(self, names: Iterable[str]) -> Rewriting:
        """The rules that some released columns follow from, with no other columns than these need."""
        needs: dict[str, list[str]] = {}
        for rule in self.rules.all:
            for column in _set_by(rule):
                needs.setdefault(column, []).extend(columns_in(rule))
        found: set[str] = set()
        waiting = [*names]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += needs.get(name, ())
        columns = tuple(column for column in self.columns if column.name in found)
        kinds = {name: kind for name, kind in self.declared.items() if name in found}
        stated = _rules_of(rule for rule in self.rules.all if {*_set_by(rule)} & found)
        return Rewriting(columns, Schema(kinds, **stated.to_dict()).to_json())

    def bounded(self, column: NumericColumn) -> NumericColumn:
        """A learned column, whose differences are not below the smallest one."""
        if column.name not in self._ordered:
            return column
        least, most = self._ordered[column.name].least_learned, column.value_range[1]
        return replace(column, value_range=(least, most))

    @property
    def exclusions(self) -> tuple[Exclusion, ...]:
        """Pairs of cells that do not occur together."""
        orders = [one for one in self._ordered.values() if self.learned_name(one.lower.name) == one.lower.name]
        return (*(one.exclusion for one in self._implications), *(one.exclusion for one in orders))

    def check(self, table: Table) -> None:
        """Rows to release must have the columns that rules are about, with the same types."""
        for column in self.columns:
            check_same_column(column, table)

    @property
    def computed(self) -> frozenset[str]:
        """The learned columns that are not the table's own."""
        return frozenset((*self._ordered, *(one.name for one in self._joined)))

    def rewritten(self, table: Table) -> Table:
        """The learned columns of a table whose columns are those of the rules."""
        self.check(table)
        return self.before(table)

    def before(self, table: Table) -> Table:
        """The table with the learned columns."""
        computed = {name: one.before(table) for name, one in self._ordered.items()}
        computed |= {one.name: one.before(table) for one in self._joined}
        return table.with_computed(computed)

    def after(self, released: Labelled, columns: Sequence[FittedColumn]) -> Labelled:
        """The columns of the table, from the released learned ones, which these are."""
        parts = {
            column.name: self._with_labels(column, Part(*released[column.name], decimals_of(column.facts, column.kind)))
            for column in columns
        }
        for one in self._ordered.values():
            if one.rule.strict and not may_be_missing(one.column):
                parts[one.lower.name] = one.with_room(parts[one.lower.name])
        done = self._completed(self._corrections.after(parts))
        return {name: (done[name].cells, done[name].labels) for name in self.names}

    def _with_labels(self, column: FittedColumn, part: Part) -> Part:
        """The column with the labels that rules may set, and no more of the others than its type has room for."""
        if part.labels is None:
            return part
        set_here = self._corrections.labels.get(column.name, part.labels[:0])
        return with_labels(part, set_here, room_for_labels(column.facts.arrow_type))

    def check_room(self, labels: Mapping[str, pa.Array]) -> None:
        """Refuse types that have no room for the labels that rules may set beside these, which are public.

        Raises
        ------
        SchemaError : with the first such column.
        """
        for name, set_here in self._corrections.labels.items():
            if name in labels:
                every = pa.concat_arrays([labels[name], set_here.cast(labels[name].type)]).unique()
                check_room(self._column[name], every, " with those that rules set")

    def _completed(self, parts: Parts) -> Parts:
        found = dict(parts)
        for joined in self._joined:
            found |= joined.after(found)
        for name, one in self._definitions.items():
            found[name] = one.after(found)
        return found

    def released_schema(self, learned: Mapping[str, Kind]) -> Schema:
        """What each released column was taken as, and the rules; what is not learned is taken by its type."""
        listed = {
            column.name: _listed(column, [row[place] for row in one.rule.rows])
            for one in self._joined
            for place, column in enumerate(one.columns)
        }
        times = {
            name: _as_times(learned[name])
            for name, one in self._ordered.items()
            if one.column.storage.family == "temporal"
        }
        own = {**listed, **learned, **times}
        kinds = {
            column.name: own[column.name] if column.name in own else self.declared.get(column.name, _by_type(column))
            for column in self.columns
        }
        return Schema(kinds, **self.rules.to_dict())

    def broken(self, table: Table) -> list[Counts]:
        """How many selected rows break each rule, as `rules.all` lists them: private."""
        table = recoded(table, self.columns)
        named = {*self.rules.columns()}
        parts = {column.name: part_of(table, column) for column in self.columns if column.name in named}
        bound = {id(one.rule): one for one in self._bound}
        broken = [bound[id(rule)].broken(parts) for rule in self.rules.all]
        counts = [np.count_nonzero(rows if table.selected is None else rows & table.selected) for rows in broken]
        return [np.array(counts, dtype=np.int64)]


@dataclass(frozen=True, eq=False)
class BrokenRules:
    """Counts, in a pass over the rows, those that break each rule."""

    rewriting: Rewriting

    def __call__(self, table: Table) -> list[Counts]:
        return self.rewriting.broken(table)


def in_force(rules: Rules, names: Sequence[str], released: Sequence[str], keep: Iterable[str]) -> Rules:
    """The rules about released columns, before their types are known.

    A rule whose defined column is not released, or that orders or implies something about one that is not, has no
    effect. Columns that pass through unprotected, and derived columns without their parts, are refused.

    Raises
    ------
    SchemaError : with every problem.
    """
    problems: list[tuple[str, str]] = []
    kept, taken = {*keep}, []
    for rule in rules.all:
        columns, place = columns_in(rule), f"rule ({rule.text!r:.120})"
        unknown = [name for name in columns if name not in names]
        if unknown:
            said = ", ".join(f"{name!r}{did_you_mean(name, names)}" for name in dict.fromkeys(unknown))
            problems.append((f"{place}: there is no column {said}", "Correct the name, or remove the rule"))
        elif passed := [name for name in columns if name in kept]:
            problems.append(
                (
                    f"{place}: column {passed[0]!r} passes through unprotected, and rules are about privatized columns",
                    "Leave it out of keep, or remove the rule",
                )
            )
        elif all(name in released for name in columns):
            taken.append(rule)
        elif isinstance(rule, Formula | Function) and rule.column in released:
            lacking = next(name for name in columns if name not in released)
            problems.append(
                (
                    f"{place}: column {rule.column!r} follows from {lacking!r}, which is not released",
                    f"Release {lacking!r}, too, leave {rule.column!r} out, or remove the rule",
                )
            )
        elif isinstance(rule, Combination) and len([name for name in columns if name in released]) > 1:
            lacking = next(name for name in columns if name not in released)
            problems.append(
                (
                    f"{place}: column {lacking!r} is not released",
                    f"Release it, or list combinations without {lacking!r}",
                )
            )
    refuse(problems)
    return _rules_of(taken)


def bind(rules: Rules, columns: Sequence[Column], declared: Schema) -> Rewriting:
    """The rules, bound to the columns of a table.

    Raises
    ------
    SchemaError : with every problem that types have.
    """
    schema = Schema(dict(declared), **rules.to_dict())
    bound = Rewriting(tuple(column.without_categories() for column in columns), schema.to_json())
    problems = bound.problems()
    if not problems and not bound.learned():
        problems = [("rules: every column follows from others", "Leave a rule out")]
    refuse(problems)
    return bound


def _rules_of(some: Iterable[Rule]) -> Rules:
    taken = tuple(some)
    return Rules(
        tuple(rule for rule in taken if isinstance(rule, Formula | Order | Implication)),
        tuple(rule for rule in taken if isinstance(rule, Function)),
        tuple(rule for rule in taken if isinstance(rule, Combination)),
    )


def _set_by(rule: Rule) -> tuple[str, ...]:
    """The columns whose released values a rule determines, or may change."""
    if isinstance(rule, Implication):
        return (rule.consequence.column,)
    return rule.columns if isinstance(rule, Combination) else columns_in(rule)[:1]


def _listed_names(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def _note(found: list[tuple[str, str]], place: str, fault: str, remedy: str) -> None:
    found.append((f"{place}: {fault}", remedy))


def _as_times(kind: Kind) -> Datetime:
    """Of differences of times; those of dates are whole numbers of days."""
    return kind if isinstance(kind, Datetime) else Datetime("day")


def _listed(column: Column, values: list[Any]) -> Kind:
    distinct = tuple(dict.fromkeys(values))
    family = column.storage.family
    if family == "temporal":
        return Datetime()
    return Discrete(levels=distinct) if family in ("integer", "real") else Categorical(levels=distinct)


def _by_type(column: Column) -> Kind:
    family = column.storage.family
    if family == "temporal":
        return Datetime()
    if family == "integer":
        return Discrete(step=1)
    return Continuous() if family == "real" else Categorical()
