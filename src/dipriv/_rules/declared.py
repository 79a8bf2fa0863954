"""All rules of a schema together: functions and combinations beside the statements of the grammar, and what must hold
among them. Every problem is reported, all at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dipriv._rules.grammar import Constant, Formula, Implication, Order, RuleSyntaxError, Statement, columns_of, parse
from dipriv.errors import SchemaError

MAX_RULES = 1000
MAX_ENTRIES = 1 << 20
"""The most lines of a function's map, and of a list of combinations."""
MAX_SHOWN = 20
"""How many problems are shown."""


@dataclass(frozen=True)
class Function:
    """A column whose value follows from that of another by a public map; `other` is for values that it does not list.

    A key is a value of the column `of`, or a range of numbers or dates such as "0..14" or "15..", ends included.
    """

    column: str
    of: str
    map: tuple[tuple[str, Constant], ...] = field(repr=False)
    other: Constant | None = None

    @property
    def text(self) -> str:
        return f"{self.column} is a function of {self.of} ({len(self.map)} values)"


@dataclass(frozen=True)
class Combination:
    """Columns that have only the listed combinations of values."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Constant, ...], ...] = field(repr=False)

    @property
    def text(self) -> str:
        return f"{', '.join(self.columns)}: {len(self.rows)} combinations"


@dataclass(frozen=True)
class Rules:
    """What a schema states about several columns together."""

    statements: tuple[Statement, ...] = ()
    functions: tuple[Function, ...] = ()
    combinations: tuple[Combination, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.statements or self.functions or self.combinations)

    @property
    def formulas(self) -> tuple[Formula, ...]:
        return tuple(rule for rule in self.statements if isinstance(rule, Formula))

    @property
    def orders(self) -> tuple[Order, ...]:
        return tuple(rule for rule in self.statements if isinstance(rule, Order))

    @property
    def implications(self) -> tuple[Implication, ...]:
        return tuple(rule for rule in self.statements if isinstance(rule, Implication))

    @property
    def all(self) -> tuple[Statement | Function | Combination, ...]:
        return (*self.statements, *self.functions, *self.combinations)

    @property
    def texts(self) -> tuple[str, ...]:
        """Each rule in words."""
        return tuple(rule.text for rule in self.all)

    @property
    def derived(self) -> dict[str, str]:
        """{column: what it is computed from}, of all columns that are not released as they are."""
        found = {rule.column: rule.text.partition("=")[2].strip() for rule in self.formulas}
        found |= {rule.column: f"a function of {rule.of}" for rule in self.functions}
        found |= {rule.upper: f"{rule.lower} plus a difference" for rule in self.orders}
        return found | {
            column: f"a combination of {', '.join(rule.columns)}"
            for rule in self.combinations
            for column in rule.columns
        }

    def within(self, names: Collection[str]) -> Rules:
        """The rules that name no other columns."""
        return Rules(
            *(
                tuple(rule for rule in some if {*columns_in(rule)} <= {*names})  # type: ignore[arg-type]
                for some in (self.statements, self.functions, self.combinations)
            )
        )

    def columns(self) -> tuple[str, ...]:
        """All columns that rules name."""
        return tuple(dict.fromkeys(column for rule in self.all for column in columns_in(rule)))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as it stands in a schema; keys without content are left out."""
        plain: dict[str, Any] = {}
        if self.statements:
            plain["rules"] = [rule.text for rule in self.statements]
        if self.functions:
            plain["functions"] = {
                one.column: {"of": one.of, "map": dict(one.map)} | ({} if one.other is None else {"other": one.other})
                for one in self.functions
            }
        if self.combinations:
            plain["combinations"] = [
                {"columns": list(one.columns), "rows": [list(row) for row in one.rows]} for one in self.combinations
            ]
        return plain


NO_RULES = Rules()


def columns_in(rule: Statement | Function | Combination) -> tuple[str, ...]:
    """The columns of a rule: the defined one first."""
    if isinstance(rule, Formula):
        return (rule.column, *columns_of(rule.expression))
    if isinstance(rule, Order):
        return (rule.upper, rule.lower)
    if isinstance(rule, Implication):
        return (rule.condition.column, rule.consequence.column)
    return (rule.column, rule.of) if isinstance(rule, Function) else rule.columns


@dataclass
class _Problems:
    found: list[tuple[str, str]] = field(default_factory=list)

    def add(self, place: str, fault: str, remedy: str) -> None:
        self.found.append((f"{place}: {fault}", remedy))


def refuse(problems: Sequence[tuple[str, str]]) -> None:
    """Raise one error about all problems (fault, remedy)."""
    if not problems:
        return
    if len(problems) == 1:
        fault, remedy = problems[0]
        raise SchemaError(f"{fault}.", f"{remedy}.")
    shown = problems[:MAX_SHOWN]
    more = f" (the first {MAX_SHOWN} are shown)" if len(problems) > MAX_SHOWN else ""
    lines = "".join(f"\n  {fault}. {remedy}." for fault, remedy in shown)
    raise SchemaError(f"the schema has {len(problems)} problems with rules{more}:{lines}", "Correct them all.")


def rules_of(statements: Any = (), functions: Any = None, combinations: Any = ()) -> Rules:
    """The rules of a schema, checked.

    Parameters
    ----------
    statements : texts of the grammar.
    functions : {column: {"of": column, "map": {value: value}, "other": value}}.
    combinations : [{"columns": [...], "rows": [[...], ...]}].

    Raises
    ------
    SchemaError : with every problem that was found.
    """
    problems = _Problems()
    rules = Rules(
        tuple(_statements(statements, problems)),
        tuple(_functions(functions, problems)),
        tuple(_combinations(combinations, problems)),
    )
    if len(rules.all) > MAX_RULES:
        raise SchemaError(f"the schema has {len(rules.all):,} rules; {MAX_RULES:,} are the most.", "State fewer.")
    _check(rules, problems)
    refuse(problems.found)
    return rules


def _statements(given: Any, problems: _Problems) -> Iterator[Statement]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        return problems.add("rules", f"expected a list of texts, got {type(given).__name__}", 'Write rules = ["..."]')
    for number, text in enumerate(given, 1):
        if not isinstance(text, str):
            problems.add(f"rule {number}", f"expected text, got {type(text).__name__}", 'Write "start <= end"')
            continue
        try:
            yield parse(text)
        except RuleSyntaxError as error:
            problems.add(f"rule {number} ({text!r:.80})", error.fault, error.remedy)
    return None


def _functions(given: Any, problems: _Problems) -> Iterator[Function]:
    if given is None:
        return
    if not isinstance(given, Mapping):
        problems.add("functions", f"expected a table, got {type(given).__name__}", "Write [functions.COLUMN]")
        return
    for column, entry in given.items():
        place = f"function {column!r:.80}"
        if not isinstance(column, str) or not isinstance(entry, Mapping) or not isinstance(entry.get("of"), str):
            problems.add(place, "it does not say of which column it is a function", 'Write of = "..."')
            continue
        if unknown := sorted({*map(str, entry)} - {"of", "map", "other"}):
            problems.add(place, f"it has no field {unknown[0]!r:.40}", "It takes of, map and other")
            continue
        listed, other = entry.get("map"), entry.get("other")
        if not isinstance(listed, Mapping) or not listed or len(listed) > MAX_ENTRIES:
            problems.add(place, "its map has no entries, or too many", 'Write map = { "value" = "value", ... }')
            continue
        values = [*listed.values(), *([] if other is None else [other])]
        if not all(map(_is_constant, values)) or not all(map(_is_constant, listed)):
            problems.add(place, "its map has entries that are no values", "Use texts, numbers, true and false")
            continue
        if len({type(value) is str for value in values}) > 1:
            problems.add(place, "its map gives texts and other values", "Use values of one type")
            continue
        yield Function(column, entry["of"], tuple((_written(key), value) for key, value in listed.items()), other)


def _combinations(given: Any, problems: _Problems) -> Iterator[Combination]:
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence):
        problems.add("combinations", f"expected a list, got {type(given).__name__}", "Write [[combinations]]")
        return
    for number, entry in enumerate(given, 1):
        place = f"combination {number}"
        columns: Any = entry.get("columns") if isinstance(entry, Mapping) else None
        rows: Any = entry.get("rows") if isinstance(entry, Mapping) else None
        if not _is_list(columns) or not _is_list(rows) or len(entry) != 2:
            problems.add(
                place, "it needs columns and rows, and nothing else", 'Write columns = ["a", "b"] and rows = [[...]]'
            )
            continue
        if len(columns) < 2 or len({*map(str, columns)}) < len(columns) or not all(type(c) is str for c in columns):
            problems.add(place, "its columns are not two or more different names", 'Write columns = ["a", "b"]')
            continue
        if not 0 < len(rows) <= MAX_ENTRIES:
            problems.add(place, f"it has {len(rows):,} rows; 1 to {MAX_ENTRIES:,} are allowed", "List what occurs")
            continue
        fitting = all(_is_list(row) and len(row) == len(columns) and all(map(_is_constant, row)) for row in rows)
        if not fitting or len({tuple((type(one), one) for one in row) for row in rows}) < len(rows):
            problems.add(place, f"its rows are not different lists of {len(columns)} values", "Correct the rows")
            continue
        yield Combination(tuple(columns), tuple(tuple(row) for row in rows))


def _check(rules: Rules, problems: _Problems) -> None:
    """What must hold among rules for every table: one definition a column, no cycle, consequences that can be set."""
    needs: dict[str, tuple[str, ...]] = {}
    owner: dict[str, str] = {}
    defining: tuple[Statement | Function | Combination, ...] = (
        *rules.combinations,
        *rules.functions,
        *rules.formulas,
        *rules.orders,
    )
    for rule in defining:
        defined = rule.columns if isinstance(rule, Combination) else columns_in(rule)[:1]
        for column in defined:
            if column in owner:
                problems.add(
                    f"rule ({rule.text!r:.120})",
                    f"column {column!r} is already defined by {owner[column]!r:.120}",
                    "Define each column once, and leave one of them out",
                )
            owner.setdefault(column, rule.text)
        if not isinstance(rule, Combination):
            needs.setdefault(defined[0], columns_in(rule)[1:])
    if cycle := _cycle(needs):
        problems.add("rules", f"{' needs '.join(map(repr, cycle))}, which is a cycle", "Leave one of these rules out")
    follows: dict[str, tuple[str, ...]] = {}
    for implication in rules.implications:
        _check_implication(implication, owner, rules, problems)
        test, then = implication.condition, implication.consequence
        follows[then.column] = (*follows.get(then.column, ()), test.column)
    if cycle := _cycle({name: tuple(dict.fromkeys(of)) for name, of in follows.items()}):
        problems.add(
            "rules", f"implications lead from {' to '.join(map(repr, cycle[::-1]))}, a cycle", "Leave one of them out"
        )


def _check_implication(rule: Implication, owner: Mapping[str, str], rules: Rules, problems: _Problems) -> None:
    place = f"rule ({rule.text!r:.120})"
    if rule.condition.column == rule.consequence.column:
        problems.add(place, "both sides are about one column", "Declare what a column may be with its kind")
    for column in columns_in(rule):
        if column in owner:
            problems.add(
                place,
                f"column {column!r} is defined by {owner[column]!r:.120}",
                "State implications about columns that are not computed from others",
            )
    if rule.consequence.operator in ("!=", "not in", "not missing"):
        problems.add(
            place,
            f"its consequence ({rule.consequence.operator}) does not say what a cell is",
            "Use is missing, =, <, <=, >, >= or in",
        )


def _cycle(needs: Mapping[str, Sequence[str]]) -> list[str]:
    """A cycle of names, the first one again at its end; [] if there is none."""
    done: set[str] = set()
    for start in needs:
        path: list[str] = []
        stack: list[tuple[str, Iterator[str]]] = [(start, iter(needs.get(start, ())))] if start not in done else []
        path += [start] if stack else []
        while stack:
            name, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                done.add(name)
                stack.pop()
                path.pop()
            elif following in path:
                return [*path[path.index(following) :], following]
            elif following not in done:
                stack.append((following, iter(needs.get(following, ()))))
                path.append(following)
    return []


def _is_list(thing: Any) -> bool:
    return isinstance(thing, list | tuple)


def _is_constant(value: Any) -> bool:
    if isinstance(value, bool | int):
        return abs(value) < 1 << 64
    return isinstance(value, str) or (isinstance(value, float) and abs(value) < float("inf"))


def _written(key: Constant) -> str:
    """A key of a map as TOML and JSON have it: text."""
    return str(key).lower() if isinstance(key, bool) else str(key)
