"""Public facts about a table: the kind of each column, which of its properties are known, and rules between columns.

A field left `None` is read from the *reference rows* (a hold-out or a public table), never from the rows
that are released. What a schema states is assumed public and is printed as a condition of the guarantee.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import date, datetime, time
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from dipriv._base.atomic_write import OWNER_ONLY, write_atomic
from dipriv._base.near_names import did_you_mean
from dipriv._base.registry import serializable
from dipriv._rules import NO_RULES, Rules, rules_of
from dipriv.dialect import DETECTED, Dialect
from dipriv.errors import DiprivError, InputError, SchemaError, refuse_all

Level: TypeAlias = str | int | float | bool
Encoding: TypeAlias = Literal["codes", "onehot"]
Resolution: TypeAlias = Literal["day", "hour", "minute", "second", "millisecond", "microsecond", "nanosecond"]
RESOLUTIONS: tuple[Resolution, ...] = (
    "day",
    "hour",
    "minute",
    "second",
    "millisecond",
    "microsecond",
    "nanosecond",
)
ColumnType: TypeAlias = Literal[
    "text", "number", "whole", "decimal", "boolean", "date", "datetime", "seconds", "microseconds", "time"
]
"""What cells of text can be read as: "number" is whole or decimal, and "datetime" has seconds or microseconds."""
MISSING_MARKS: tuple[str, ...] = (
    *("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NaT", "null", "NULL", "None", "-", "--", "?", "."),
)
"""Cells that are missing in columns of numbers, booleans, dates and times; in columns of text only the empty one is."""
FILE_SECTION = "file"
"""Of a schema's file: how the table's file is written, unless it has a `kind`, as a column has."""
DRAFT_SECTION = "draft"
"""Of a schema's file that dipriv drafted from private rows: an empty section, until its keeper has checked the file."""
MAX_FILE = 1 << 24
"""Of a schema, in bytes."""
_MAX_DIGITS = 1000
_MAX_MULTIPLES = 1024
_MAX_NUMBER, _WHOLE_NUMBERS = sys.float_info.max, (-(1 << 63), (1 << 64) - 1)
_MANY_DOTS = re.compile(r"""(?<![\w-])(?:(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){16}""", re.ASCII)
"""A dotted key with 16 or more parts: the parser's time is quadratic in their number."""


class _Described:
    """Shows how many levels or atoms a kind has, never which: they may come from private rows."""

    name: ClassVar[str]

    def __repr__(self: Any) -> str:
        shown = []
        for one in fields(self):
            value = getattr(self, one.name)
            if value is not None and value != one.default:
                shown.append(f"{one.name}={len(value) if isinstance(value, tuple) else value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"


@serializable()
@dataclass(frozen=True, repr=False)
class Continuous(_Described):
    """A real number without atoms.

    Parameters
    ----------
    lower, upper : the range of its values, if it is public.

    Raises
    ------
    SchemaError : the bounds are not finite numbers in this order.

    Examples
    --------
    >>> Continuous(lower=0.0)
    Continuous(lower=0.0)
    """

    lower: float | None = None
    upper: float | None = None
    name: ClassVar[str] = "continuous"

    def __post_init__(self) -> None:
        _check_bounds(self.lower, self.upper)


@serializable()
@dataclass(frozen=True, repr=False)
class Weight(Continuous):
    """The weight of a row: how many persons, or other units of a population, it stands for.

    Parameters
    ----------
    lower, upper : the range of its values, if it is public.
    total : the sum of all weights, such as the size of the population, if it is public: released weights are rescaled
        to it. Whole weights are then rounded at random, up or down by less than 1, so that their mean is kept. A total
        that the released rows cannot have in the type of their column is refused; no weight exceeds that type.

    Raises
    ------
    SchemaError : the bounds are not finite numbers in this order, or the total is not a positive number.

    Examples
    --------
    >>> Weight(total=2848507)
    Weight(total=2848507)
    """

    lower: float | None = 0.0
    total: int | float | None = None
    name: ClassVar[str] = "weight"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.total is not None and not (_is_finite(self.total) and self.total > 0):
            raise SchemaError(
                f"Weight(total={_shown(self.total)}) is not a positive number.", "Leave it out if it is not public."
            )


@serializable()
@dataclass(frozen=True, repr=False)
class Discrete(_Described):
    """A number with a countable support: listed levels, or all multiples of a step.

    With neither, the levels are those of the reference rows.

    Parameters
    ----------
    levels : all values that it takes.
    step : a positive number with at most nine decimals; all values are multiples of it.
    lower, upper : the range of its values, if it is public and no levels are listed.

    Raises
    ------
    SchemaError : both levels and a step or bounds are given, or one of them cannot be used.

    Examples
    --------
    >>> Discrete(levels=(0, 1, 2.5)), Discrete(step=0.01)
    (Discrete(levels=3), Discrete(step=0.01))
    """

    levels: tuple[int | float, ...] | None = None
    step: int | float | None = None
    lower: int | float | None = None
    upper: int | float | None = None
    name: ClassVar[str] = "discrete"

    def __post_init__(self) -> None:
        _check_bounds(self.lower, self.upper)
        if self.levels is not None:
            object.__setattr__(self, "levels", _check_levels(self.levels, (int, float)))
            if self.step is not None:
                raise SchemaError("Discrete has both levels and step.", "Give one of them.")
            if self.lower is not None or self.upper is not None:
                raise SchemaError("Discrete has both levels and bounds.", "Give one of them.")
        if self.step is not None and lattice(self.step) is None:
            raise SchemaError(
                f"Discrete(step={_shown(self.step)}) is not a positive number with at most nine decimals.",
                "Use a step such as 1, 5 or 0.25, or list the levels.",
            )

    def multiples(self) -> tuple[int | float, ...] | None:
        """All multiples of the step within the bounds, if both are declared and they are not too many to list.

        >>> Discrete(step=0.5, lower=0, upper=1).multiples()
        (0.0, 0.5, 1.0)
        """
        if self.step is None or self.lower is None or self.upper is None:
            return None
        whole, per_unit = lattice(self.step) or (1, 1)
        first = math.ceil(Fraction(self.lower) * per_unit / whole)
        last = math.floor(Fraction(self.upper) * per_unit / whole)
        if not 0 <= last - first < _MAX_MULTIPLES:
            return None
        return tuple(n * whole if per_unit == 1 else n * whole / per_unit for n in range(first, last + 1))


@serializable()
@dataclass(frozen=True, repr=False)
class Mixed(_Described):
    """A real number that takes some values with positive probability: zero income, a top code.

    Parameters
    ----------
    atoms : these values; by default read from the reference rows.
    lower, upper : the range of its values, if it is public.
    unit : the length of the interval that stands for an atom on the line; by default the column's scale.

    Raises
    ------
    SchemaError : an argument cannot be used.

    Examples
    --------
    >>> Mixed(atoms=(0.0,))
    Mixed(atoms=1)
    """

    atoms: tuple[float, ...] | None = None
    lower: float | None = None
    upper: float | None = None
    unit: float | None = None
    name: ClassVar[str] = "mixed"

    def __post_init__(self) -> None:
        _check_bounds(self.lower, self.upper)
        if self.atoms is not None:
            object.__setattr__(self, "atoms", _check_levels(self.atoms, (int, float)))
        if self.unit is not None and not (_is_finite(self.unit) and 0 < self.unit < 2.0**1000):
            raise SchemaError(
                f"Mixed(unit={_shown(self.unit)}) is not a positive number.", "Leave it out for the column's scale."
            )


@serializable()
@dataclass(frozen=True, repr=False)
class Categorical(_Described):
    """A label from a finite list.

    Parameters
    ----------
    levels : all labels: text, numbers or booleans; by default read from the reference rows.
    encoding : "codes", or "onehot" for the paper's s-1 dummies, each with its share of ε.

    Raises
    ------
    SchemaError : the encoding is unknown, or a level cannot be used.

    Examples
    --------
    >>> Categorical(levels=("no", "yes"))
    Categorical(levels=2)
    """

    levels: tuple[Level, ...] | None = None
    encoding: Encoding = "codes"
    name: ClassVar[str] = "categorical"

    def __post_init__(self) -> None:
        if self.encoding not in ("codes", "onehot"):
            raise SchemaError(f"Categorical(encoding={_shown(self.encoding)}) is unknown.", 'Use "codes" or "onehot".')
        if self.levels is not None:
            object.__setattr__(self, "levels", _check_levels(self.levels, (str, int, float, bool)))


@serializable()
@dataclass(frozen=True, repr=False)
class Datetime(_Described):
    """A date, a date with time (with or without zone), a time of day, or a duration.

    Parameters
    ----------
    resolution : released values are whole multiples of it, "day" to "nanosecond"; by default the coarsest unit that
        all reference rows are multiples of.
    lower, upper : the first and the last date, time or time of day, if they are public: text such as "2025-12-31" or
        "2025-12-31 18:00", or a `date`, `datetime` or `time`. A date as `upper` includes that day. Without a zone they
        are in the column's zone. Durations have none.

    Raises
    ------
    SchemaError : the resolution is unknown, or the bounds are not dates or times in this order.

    Examples
    --------
    >>> Datetime(resolution="day", lower="2025-01-01")
    Datetime(resolution='day', lower='2025-01-01')
    """

    resolution: Resolution | None = None
    lower: str | date | time | None = None
    upper: str | date | time | None = None
    name: ClassVar[str] = "datetime"

    def __post_init__(self) -> None:
        if self.resolution is not None and self.resolution not in RESOLUTIONS:
            raise SchemaError(
                f"Datetime(resolution={_shown(self.resolution)}) is unknown.", f"Use one of {', '.join(RESOLUTIONS)}."
            )
        for bound in ("lower", "upper"):
            if (value := getattr(self, bound)) is not None:
                object.__setattr__(self, bound, moment(value).isoformat())
        if self.lower is not None and self.upper is not None and not _in_order(moment(self.lower), moment(self.upper)):
            raise SchemaError(
                f"lower={_shown(self.lower)} does not come before upper={_shown(self.upper)}.",
                "Swap or correct the bounds; both are dates or times, or both are times of day.",
            )


Kind: TypeAlias = Continuous | Discrete | Mixed | Categorical | Datetime


@dataclass(frozen=True, repr=False)
class Code(_Described):
    """A label that may look like a number, as industries and diagnoses have: zeros are kept, and none is invented.

    Cells of text files are kept as they are written, "01" as "01". Whole numbers of a typed table are labels, too.

    Parameters
    ----------
    levels : all codes, if they are public; else the private reference finds those that enough rows have.

    Raises
    ------
    SchemaError : a level cannot be used.

    Examples
    --------
    >>> Code(levels=("01", "02")).released_as
    Categorical(levels=2)
    """

    levels: tuple[Level, ...] | None = None
    name: ClassVar[str] = "code"

    def __post_init__(self) -> None:
        if self.levels is not None:
            object.__setattr__(self, "levels", self.released_as.levels)

    @property
    def released_as(self) -> Categorical:
        """The kind that it is learned and released as."""
        return Categorical(self.levels)

    @property
    def prefix(self) -> int:
        """How many leading characters are kept; 0 for all."""
        return 0


@dataclass(frozen=True, repr=False)
class Postal(_Described):
    """A postal code, or another code of a place: a `Code` that may be cut to the level that is declared.

    Parameters
    ----------
    digits : how many leading characters are kept, before anything is learned: 3 makes "012" of "01234".
    levels : all codes, cut, if they are public.

    Raises
    ------
    SchemaError : digits is not a whole number from 1 on, or a level is longer, or cannot be used.

    Examples
    --------
    >>> Postal(digits=3)
    Postal(digits=3)
    """

    digits: int | None = None
    levels: tuple[str, ...] | None = None
    name: ClassVar[str] = "postal"

    def __post_init__(self) -> None:
        if self.digits is not None and (type(self.digits) is not int or not 1 <= self.digits <= _MAX_DIGITS):
            raise SchemaError(
                f"Postal(digits={_shown(self.digits)}) is not a whole number from 1 to {_MAX_DIGITS}.",
                "Say how many leading characters are kept, such as 3.",
            )
        if self.levels is not None:
            object.__setattr__(self, "levels", _check_levels(self.levels, (str,)))
            if self.digits is not None and any(len(level) > self.digits for level in self.levels):
                raise SchemaError(
                    f"some levels of a postal code have more than its {self.digits} characters.", "Cut them, too."
                )

    @property
    def released_as(self) -> Categorical:
        """The kind that it is learned and released as."""
        return Categorical(self.levels)

    @property
    def prefix(self) -> int:
        """How many leading characters are kept; 0 for all."""
        return self.digits or 0


@dataclass(frozen=True, repr=False)
class Identifier(_Described):
    """What stands for a person or a row: left out, and never released as a number.

    Parameters
    ----------
    anew : release the column with new identifiers, 1, 2, 3 ... in the order of the released rows, in its type. They
        say nothing but a row's place.

    Raises
    ------
    SchemaError : anew is not true or false.

    Examples
    --------
    >>> Identifier(anew=True)
    Identifier(anew=True)
    """

    anew: bool = False
    name: ClassVar[str] = "identifier"
    released_as: ClassVar[None] = None

    def __post_init__(self) -> None:
        if not isinstance(self.anew, bool):
            raise SchemaError(
                f"Identifier(anew={_shown(self.anew)}) is not true or false.", "Use True, or leave it out."
            )


@dataclass(frozen=True, repr=False)
class Text(_Described):
    """Names of people and free text: left out, unless its labels are declared.

    Parameters
    ----------
    levels : all texts that are released, if they are public.

    Raises
    ------
    SchemaError : a level cannot be used.

    Examples
    --------
    >>> Text().released_as is None
    True
    """

    levels: tuple[str, ...] | None = None
    name: ClassVar[str] = "text"

    def __post_init__(self) -> None:
        if self.levels is not None:
            object.__setattr__(self, "levels", _check_levels(self.levels, (str,)))

    @property
    def released_as(self) -> Categorical | None:
        """The kind that it is learned and released as; None for a column that is left out."""
        return None if self.levels is None else Categorical(self.levels)


class _Number(_Described):
    """What is released as a number on a lattice, perhaps within bounds; the step is 1 for kinds without one."""

    lower: Any
    upper: Any

    def __post_init__(self) -> None:
        _ = self.released_as

    @property
    def released_as(self) -> Discrete:
        """The kind that it is learned and released as."""
        return Discrete(step=getattr(self, "step", 1), lower=self.lower, upper=self.upper)


@dataclass(frozen=True, repr=False)
class Money(_Number):
    """An amount of money: a number with cents, or without them if the column has whole numbers.

    Parameters
    ----------
    step : the smallest coin, a positive number with at most nine decimals.
    lower, upper : the range of the amounts, if it is public.

    Raises
    ------
    SchemaError : an argument cannot be used.

    Examples
    --------
    >>> Money(lower=0).released_as
    Discrete(step=0.01, lower=0)
    """

    step: int | float = 0.01
    lower: int | float | None = None
    upper: int | float | None = None
    name: ClassVar[str] = "money"


@dataclass(frozen=True, repr=False)
class Percent(_Number):
    """A percentage, from 0 to 100 unless other bounds are given; 12.5% in a text file is 12.5.

    Parameters
    ----------
    step : a positive number with at most nine decimals; by default it is found.
    lower, upper : the range of the numbers.

    Raises
    ------
    SchemaError : an argument cannot be used.

    Examples
    --------
    >>> Percent(step=0.1).released_as
    Discrete(step=0.1, lower=0, upper=100)
    """

    step: int | float | None = None
    lower: int | float | None = 0
    upper: int | float | None = 100
    name: ClassVar[str] = "percent"


@dataclass(frozen=True, repr=False)
class Year(_Number):
    """A year: a whole number, from 1800 to 2199 unless other bounds are given.

    Parameters
    ----------
    lower, upper : the first and the last year.

    Raises
    ------
    SchemaError : the bounds are not finite numbers in this order.

    Examples
    --------
    >>> Year(lower=1900).released_as
    Discrete(step=1, lower=1900, upper=2199)
    """

    lower: int | float | None = 1800
    upper: int | float | None = 2199
    name: ClassVar[str] = "year"


Meaning: TypeAlias = Code | Postal | Identifier | Text | Money | Percent | Year
"""What a column is beyond its type. Each is released as one of the kinds, or left out."""


def without_values(kind: Kind) -> Kind:
    """The kind without the levels or atoms that it lists.

    >>> without_values(Categorical(levels=("no", "yes")))
    Categorical()
    """
    if isinstance(kind, Discrete | Categorical):
        return replace(kind, levels=None)
    return replace(kind, atoms=None) if isinstance(kind, Mixed) else kind


_RULES = ("rules", "functions", "combinations")
_VALUES = ("levels", "atoms", "lower", "upper", "step", "resolution")
_MEANINGS = (Code, Postal, Identifier, Text, Money, Percent, Year)
_KINDS: dict[str, Any] = {
    kind.name: kind for kind in (Continuous, Discrete, Mixed, Categorical, Datetime, Weight, *_MEANINGS)
} | {"name": Text}
"""What `kind` may be in a file; names of people are text."""
_KINDS_OF_TYPES = {
    "number": ("continuous", "discrete"),
    "decimal": ("continuous", "discrete"),
    "whole": ("discrete",),
    "boolean": ("categorical",),
    "date": ("datetime",),
    "time": ("datetime",),
    "seconds": ("datetime",),
    "microseconds": ("datetime",),
}
"""The kinds of columns of these types: `kind` may have been mistaken for a type."""


class Schema(Mapping[str, Kind]):
    """The kinds of some or all columns of a table, by name; a frozen mapping. And rules between columns.

    A column that is declared as a `Code`, `Money` and such is here as the kind that it is released as, and in
    `meanings` as it was declared; columns that are left out are in `meanings` alone.

    Parameters
    ----------
    kinds : {column: kind}.
    dialect : how the file is written that the table is in; the section [file] of a TOML file.
    rules : texts such as "gross = regular + overtime", "start <= end" and "age < 15 => income is missing", which hold
        in every released row (docs/howto/rules.md).
    functions : {column: {"of": column, "map": {value: value}, "other": value}}: columns whose values follow from
        those of others; keys may be ranges such as "0..14", and `other` is for values that the map does not list.
    combinations : [{"columns": [column, ...], "rows": [[value, ...], ...]}]: columns that have only these
        combinations of values.

    Raises
    ------
    SchemaError : it is not a mapping of column names to kinds, or rules have problems: all of them are reported.

    Examples
    --------
    >>> schema = Schema({"age": Discrete(step=1), "pay": Continuous(lower=0.0)}, rules=["age < 15 => pay is missing"])
    >>> Schema.from_toml(schema.to_toml()) == schema
    True
    """

    _rules: Rules = NO_RULES
    is_draft: bool = False
    """Whether dipriv drafted it from private rows, and its keeper has not removed the section [draft]."""

    def __init__(
        self,
        kinds: Mapping[str, Kind | Meaning] | None = None,
        dialect: Dialect = DETECTED,
        *,
        rules: Sequence[str] = (),
        functions: Mapping[str, Mapping[str, Any]] | None = None,
        combinations: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        kinds = {} if kinds is None else kinds
        if not isinstance(kinds, Mapping):
            raise SchemaError(
                f"expected the schema as a mapping, got {type(kinds).__name__}.",
                "Write {column: kind, ...}; Schema.load(path) reads a file.",
            )
        for column, kind in kinds.items():
            if not isinstance(column, str) or not _is_text(column):
                raise SchemaError(
                    f"expected a column name in the schema as text, got {type(column).__name__}.", "Use text names."
                )
            if not isinstance(kind, tuple(_KINDS.values())):
                raise SchemaError(
                    f"column {column!r}: expected a kind, got {type(kind).__name__}.",
                    f"Use one of {', '.join(dict.fromkeys(of.__name__ for of in _KINDS.values()))}.",
                )
        if not isinstance(dialect, Dialect):
            raise SchemaError(f"expected a dialect, got {type(dialect).__name__}.", "Use dipriv.Dialect(...).")
        if dialect and FILE_SECTION in kinds:
            raise SchemaError(
                f"the schema has a column and a section that are both called {FILE_SECTION!r}.",
                "Rename the column, or say how the file is written by options.",
            )
        self._declared = dict(kinds)
        self._kinds = {name: of for name, kind in kinds.items() if (of := _released_as(kind)) is not None}
        self.dialect = dialect
        if rules or functions or combinations:
            self._rules = rules_of(rules, functions, combinations)

    @property
    def rules(self) -> Rules:
        """What is stated about several columns together; `rules.texts` has each rule in words."""
        return self._rules

    @property
    def meanings(self) -> dict[str, Meaning]:
        """The columns that are declared as more than a kind: codes, identifiers, money and such."""
        return {name: kind for name, kind in self._declared.items() if isinstance(kind, _MEANINGS)}

    @property
    def left_out(self) -> tuple[str, ...]:
        """The columns that are not privatized: identifiers, and text without labels."""
        return tuple(name for name in self._declared if name not in self._kinds)

    def only(self, names: Collection[str]) -> Schema:
        """What is declared about some columns, without dialect and rules.

        Parameters
        ----------
        names : of the columns; those that nothing is declared about do not matter.

        Returns
        -------
        The schema.
        """
        return Schema({name: kind for name, kind in self._declared.items() if name in names})

    def __getitem__(self, column: str) -> Kind:
        return self._kinds[column]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)

    def __hash__(self) -> int:
        return hash(tuple(self._declared.items()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        rules = other._rules if isinstance(other, Schema) else NO_RULES
        dialect = other.dialect if isinstance(other, Schema) else DETECTED
        declared = other._declared if isinstance(other, Schema) else dict(other)
        return self._declared == declared and self._rules == rules and self.dialect == dialect

    def __repr__(self) -> str:
        rules = f", {len(self._rules.all)} rule{'s' * (len(self._rules.all) != 1)}" if self._rules else ""
        return f"Schema({self._declared!r}{f', {self.dialect!r}' if self.dialect else ''}{rules})"

    def _repr_html_(self) -> str:
        """The kinds as a table, and the rules; of levels and atoms it has the number, as `repr`."""
        from dipriv._base.html import table

        rules = table(("rule",), [(text,) for text in self._rules.texts]) if self._rules else ""
        return table(("column", "kind"), list(self._declared.items())) + rules

    def to_dict(self) -> dict[str, Any]:
        """Plain data: {column: {"kind": ..., field: value}}, fields that are None left out.

        The dialect and the rules stand beside the columns, as "file", "rules", "functions" and "combinations". A schema
        without them may have columns of these names: their entries have a "kind".
        """
        kinds = {
            column: {"kind": kind.name}
            | {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(kind).items() if v is not None}
            for column, kind in self._declared.items()
        }
        rules = self._rules.to_dict() | ({DRAFT_SECTION: {}} if self.is_draft else {})
        if taken := [name for name in rules if name in kinds]:
            raise SchemaError(
                f"a schema with rules, or of a draft, that has a column {taken[0]!r} cannot be written.",
                "Rename the column.",
            )
        return ({FILE_SECTION: self.dialect.to_dict()} if self.dialect else {}) | rules | kinds

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Schema:
        """The schema that `to_dict` wrote.

        Parameters
        ----------
        plain : {column: {"kind": ..., field: value}}, {"file": {field: value}} for a `Dialect`, and rules; it may come
            from anybody.

        Returns
        -------
        The schema.

        Raises
        ------
        SchemaError : it is not of this form.
        """
        if not isinstance(plain, Mapping):
            raise SchemaError(
                f"expected the schema as a mapping, got {type(plain).__name__}.", 'Write {column: {"kind": ...}, ...}.'
            )
        beside = {name: plain[name] for name in _RULES if name in plain and not _has_kind(plain[name])}
        if isinstance(file := plain.get(FILE_SECTION), Mapping) and not _has_kind(file):
            beside[FILE_SECTION] = file
        if isinstance(draft := plain.get(DRAFT_SECTION), Mapping) and not _has_kind(draft):
            if draft:
                raise SchemaError(
                    f"the section [{DRAFT_SECTION}] of the schema is not as dipriv wrote it: empty.",
                    "Check what the schema declares, then remove the section.",
                )
            beside[DRAFT_SECTION] = draft
        faults: list[DiprivError] = []

        def checked(build: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
            try:
                return build(*arguments, **options)
            except DiprivError as fault:
                faults.append(fault)
                return None

        columns = {column: entry for column, entry in plain.items() if column not in beside}
        kinds = {column: checked(_kind_from_dict, column, entry) for column, entry in columns.items()}
        file, is_draft = beside.pop(FILE_SECTION, None), beside.pop(DRAFT_SECTION, None) is not None
        dialect = DETECTED if file is None else checked(Dialect.from_dict, file) or DETECTED
        schema: Schema = checked(cls, {name: kind for name, kind in kinds.items() if kind}, dialect, **beside)
        refuse_all(faults)
        schema.is_draft = is_draft
        return schema

    @property
    def read_from_rows(self) -> tuple[str, ...]:
        """The columns of a draft for which levels, atoms, bounds, steps or resolutions are declared."""
        return tuple(name for name, kind in self._declared.items() if _states_values(kind)) if self.is_draft else ()

    def to_json(self) -> str:
        """The text of `to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Schema:
        """The schema that `to_json` wrote.

        Parameters
        ----------
        text : a JSON document; it may come from anybody.

        Returns
        -------
        The schema.

        Raises
        ------
        SchemaError : it is not JSON, or not a schema.
        """
        return cls.from_dict(_parsed(json.loads, text))

    def to_toml(self) -> str:
        """The text of `to_dict` as TOML."""
        import tomli_w

        return tomli_w.dumps(self.to_dict())

    @classmethod
    def from_toml(cls, text: str) -> Schema:
        """The schema that `to_toml` wrote.

        Parameters
        ----------
        text : a TOML document; it may come from anybody.

        Returns
        -------
        The schema.

        Raises
        ------
        SchemaError : it is not TOML, or not a schema.
        """
        import tomllib

        if _MANY_DOTS.search(text):
            raise SchemaError("the schema has a key of many parts.", "Quote the names of columns that have dots.")
        return cls.from_dict(_parsed(tomllib.loads, text))

    def save(self, path: str | Path) -> None:
        """Write a TOML or JSON file, readable by the owner only: a draft may contain private values.

        Parameters
        ----------
        path : of the file: JSON if it ends in .json, else TOML.

        Raises
        ------
        StorageError : the file cannot be written.
        """
        path = Path(path)
        write_atomic(path, (self.to_json() if path.suffix == ".json" else self.to_toml()).encode(), OWNER_ONLY)

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a TOML or JSON file written by `save` or by hand.

        Parameters
        ----------
        path : of the file: JSON if it ends in .json, else TOML.

        Returns
        -------
        The schema.

        Raises
        ------
        InputError : there is no such file.
        SchemaError : the file is too large, or not a schema.
        """
        path = Path(path)
        if not os.path.isfile(path):
            raise InputError(f"{path!s:.300} is not a file.", "Check the path of the schema.")
        if path.stat().st_size > MAX_FILE:
            raise SchemaError(f"the schema file {path.name} has more than {MAX_FILE:,} bytes.", "Declare less.")
        try:
            text = path.read_text(encoding="utf-8")
            return cls.from_json(text) if path.suffix == ".json" else cls.from_toml(text)
        except UnicodeDecodeError:
            raise SchemaError(f"the schema file {path.name} is not in UTF-8.", "Convert it.") from None
        except SchemaError as error:
            raise SchemaError(
                f"the schema file {path.name}: {error.fault}", error.remedy, command=error.command
            ) from None


SchemaLike: TypeAlias = Schema | Mapping[str, Kind | Meaning] | str | os.PathLike[str] | None
"""A schema as options take it: itself, a mapping, or the path of a TOML or JSON file."""


def as_schema(given: SchemaLike) -> Schema:
    """The schema that an option says; an empty one for None.

    Raises
    ------
    InputError : it is the path of a file that does not exist.
    SchemaError : it is neither a schema nor the path of one.
    """
    if isinstance(given, str | os.PathLike):
        return Schema.load(Path(given))
    return given if isinstance(given, Schema) else Schema(given)


def _states_values(kind: Kind | Meaning) -> bool:
    """Whether it states more than its defaults about the values of a column."""
    return any(getattr(kind, one.name) != one.default for one in fields(kind) if one.name in _VALUES)


def _released_as(kind: Kind | Meaning) -> Kind | None:
    return kind.released_as if isinstance(kind, _MEANINGS) else kind


def lattice(step: int | float) -> tuple[int, int] | None:
    """`step` as a pair (whole, per_unit), step = whole / per_unit, per_unit a power of ten up to 1e9; else None.

    >>> lattice(5), lattice(0.25), lattice(1 / 3)
    ((5, 1), (25, 100), None)
    """
    if isinstance(step, bool) or not isinstance(step, (int, float)) or not (0 < step < 2**53):
        return None
    for digits in range(10):
        whole = round(step * 10**digits)
        if whole >= 1 and whole / 10**digits == step:
            return whole, 10**digits
    return None


def _check_bounds(lower: float | None, upper: float | None) -> None:
    for bound in (lower, upper):
        if bound is not None and not _is_finite(bound):
            raise SchemaError(f"a bound is {_shown(bound)}, not a finite number.", "Leave it out if there is none.")
    if lower is not None and upper is not None and lower >= upper:
        raise SchemaError(f"lower={_shown(lower)} is not below upper={_shown(upper)}.", "Swap or correct the bounds.")


def moment(bound: object) -> date | time:
    """A bound of dates or times, from text or as it is: a date, a date with time, or a time of day.

    >>> moment("2025-12-31"), moment("18:00")
    (datetime.date(2025, 12, 31), datetime.time(18, 0))
    """
    written: Any = bound.isoformat() if isinstance(bound, date | time) else bound
    for read in (date.fromisoformat, datetime.fromisoformat, _time_with_colon):
        try:
            return read(written)
        except (TypeError, ValueError):
            continue
    raise SchemaError(
        f"a bound is {_shown(bound)}, not a date or a time.", 'Write it as "2025-12-31", "2025-12-31 18:00" or "18:00".'
    )


def _time_with_colon(text: str) -> time:
    """A time of day; without a colon "2025" would be one."""
    if ":" not in text:
        raise ValueError
    return time.fromisoformat(text)


def _in_order(lower: date | time, upper: date | time) -> bool:
    """Whether two bounds can be compared, and the first is not after the second."""
    if isinstance(lower, time) and isinstance(upper, time):
        return lower.replace(tzinfo=None) <= upper.replace(tzinfo=None)
    if isinstance(lower, time) or isinstance(upper, time):
        return False
    ends = [
        bound if isinstance(bound, datetime) else datetime.combine(bound, moment_of_day)
        for bound, moment_of_day in ((lower, time.min), (upper, time.max))
    ]
    if (ends[0].tzinfo is None) != (ends[1].tzinfo is None):
        ends = [end.replace(tzinfo=None) for end in ends]
    return ends[0] <= ends[1]


def _is_finite(number: object) -> bool:
    """Whether it is a number that a double can hold; a whole number may have any length."""
    real = isinstance(number, (int, float)) and not isinstance(number, bool)
    return real and -_MAX_NUMBER <= number <= _MAX_NUMBER  # type: ignore[operator]


def _shown(value: object) -> str:
    """A value for a message: what is long is cut, and a very long number is not even written out."""
    return "a very long number" if isinstance(value, int) and abs(value) > 10**40 else f"{value!r:.60}"


def _is_text(text: str) -> bool:
    """Whether a text can be written in UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_levels(levels: Any, types: tuple[type, ...]) -> tuple[Any, ...]:
    if isinstance(levels, str) or not hasattr(levels, "__iter__"):
        raise SchemaError(
            f"expected levels as a list, got {type(levels).__name__}.",
            "Write levels=(..., ...).",
            command='Write levels = ["...", "..."].',
        )
    unique = tuple(level.item() if isinstance(level, np.generic) else level for level in levels)
    if not unique:
        raise SchemaError("levels is empty.", "List at least one level, or leave levels out.")
    for level in unique:
        if type(level) not in types or not _may_be_level(level):
            raise SchemaError(
                f"a level of type {type(level).__name__} cannot be used here.",
                f"Use finite values of type {', '.join(t.__name__ for t in types)}.",
            )
    if len(set(unique)) < len(unique):
        raise SchemaError(f"{len(unique) - len(set(unique))} of {len(unique)} levels repeat.", "List each once.")
    return unique


def _may_be_level(level: Level) -> bool:
    if isinstance(level, str):
        return _is_text(level)
    return math.isfinite(level) if isinstance(level, float) else _WHOLE_NUMBERS[0] <= level <= _WHOLE_NUMBERS[1]


def _parsed(parse: Callable[[str], Any], text: str) -> Any:
    try:
        return parse(text)
    except (ValueError, RecursionError) as fault:  # tomllib and json both raise subclasses of ValueError
        reason = "it is nested too deeply" if isinstance(fault, RecursionError) else f"{fault!s:.200}"
        raise SchemaError(f"the schema cannot be read: {reason}.", "Fix its syntax.") from None


def _has_kind(entry: Any) -> bool:
    """Whether this is the entry of a column."""
    return isinstance(entry, Mapping) and isinstance(entry.get("kind"), str)


def _kind_from_dict(column: str, entry: Mapping[str, Any]) -> Kind | Meaning:
    named = entry.get("kind") if isinstance(entry, Mapping) else None
    kind = _KINDS.get(named) if isinstance(named, str) else None
    if isinstance(named, str) and kind is None and named in _KINDS_OF_TYPES:
        of = " or ".join(f'kind = "{name}"' for name in _KINDS_OF_TYPES[named])
        raise SchemaError(
            f"column {_shown(column)} in the schema has no known kind: {named} is a type.",
            f"Write {of}; types={{...}} says how cells of text are read.",
            command=f"Write {of}; --type says how cells of text are read.",
        )
    if kind is None:
        raise SchemaError(
            f"column {_shown(column)} in the schema has no known kind{did_you_mean(named, _KINDS)}.",
            f'Write kind = "..." with one of {", ".join(_KINDS)}.',
        )
    options = {key: tuple(v) if isinstance(v, list) else v for key, v in entry.items() if key != "kind"}
    known = {one.name for one in fields(kind)}
    if unknown := sorted(set(options) - known):
        raise SchemaError(
            f"column {_shown(column)}: {kind.__name__} has no field "
            f"{', '.join(f'{_shown(name)}{did_you_mean(name, known)}' for name in unknown)}.",
            f"{kind.__name__} takes {', '.join(sorted(known))}.",
        )
    try:
        built: Kind | Meaning = kind(**options)
    except SchemaError as fault:
        raise SchemaError(f"column {_shown(column)}: {fault.fault}", fault.remedy, command=fault.command) from None
    return built
