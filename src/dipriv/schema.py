"""Public facts about a table: the kind of each column, and which of its properties are known.

A field left `None` is read from the *reference rows* (a hold-out or a public table), never from the rows
that are released. What a schema states is assumed public and is printed as a condition of the guarantee.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from dipriv._base.atomic_write import OWNER_ONLY, write_atomic
from dipriv._base.registry import serializable
from dipriv.errors import InputError, SchemaError

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
MAX_FILE = 1 << 24
"""Of a schema, in bytes."""
_MAX_NUMBER, _WHOLE_NUMBERS = sys.float_info.max, (-(1 << 63), (1 << 64) - 1)
_MANY_DOTS = re.compile(r"""(?<![\w-])(?:(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){16}""", re.ASCII)
"""A dotted key with 16 or more parts: the parser's time is quadratic in their number."""


class _Described:
    """Shows how many levels or atoms a kind has, never which: they may come from private rows."""

    name: ClassVar[str]

    def __repr__(self: Any) -> str:
        shown = []
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and value != field.default:
                shown.append(f"{field.name}={len(value) if isinstance(value, tuple) else value!r}")
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
class Discrete(_Described):
    """A number with a countable support: listed levels, or all multiples of a step.

    With neither, the levels are those of the reference rows.

    Parameters
    ----------
    levels : all values that it takes.
    step : a positive number with at most nine decimals; all values are multiples of it.

    Raises
    ------
    SchemaError : both are given, or one cannot be used.

    Examples
    --------
    >>> Discrete(levels=(0, 1, 2.5)), Discrete(step=0.01)
    (Discrete(levels=3), Discrete(step=0.01))
    """

    levels: tuple[int | float, ...] | None = None
    step: int | float | None = None
    name: ClassVar[str] = "discrete"

    def __post_init__(self) -> None:
        if self.levels is not None:
            object.__setattr__(self, "levels", _check_levels(self.levels, (int, float)))
            if self.step is not None:
                raise SchemaError("Discrete has both levels and step.", "Give one of them.")
        if self.step is not None and lattice(self.step) is None:
            raise SchemaError(
                f"Discrete(step={_shown(self.step)}) is not a positive number with at most nine decimals.",
                "Use a step such as 1, 5 or 0.25, or list the levels.",
            )


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

    Raises
    ------
    SchemaError : the resolution is unknown.

    Examples
    --------
    >>> Datetime(resolution="day")
    Datetime(resolution='day')
    """

    resolution: Resolution | None = None
    name: ClassVar[str] = "datetime"

    def __post_init__(self) -> None:
        if self.resolution is not None and self.resolution not in RESOLUTIONS:
            raise SchemaError(
                f"Datetime(resolution={_shown(self.resolution)}) is unknown.", f"Use one of {', '.join(RESOLUTIONS)}."
            )


Kind: TypeAlias = Continuous | Discrete | Mixed | Categorical | Datetime


def without_values(kind: Kind) -> Kind:
    """The kind without the levels or atoms that it lists.

    >>> without_values(Categorical(levels=("no", "yes")))
    Categorical()
    """
    if isinstance(kind, Discrete | Categorical):
        return replace(kind, levels=None)
    return replace(kind, atoms=None) if isinstance(kind, Mixed) else kind


_KINDS: dict[str, Any] = {kind.name: kind for kind in (Continuous, Discrete, Mixed, Categorical, Datetime)}


class Schema(Mapping[str, Kind]):
    """The kinds of some or all columns of a table, by name; a frozen mapping.

    Parameters
    ----------
    kinds : {column: kind}.

    Raises
    ------
    SchemaError : it is not a mapping of column names to kinds.

    Examples
    --------
    >>> schema = Schema({"age": Discrete(step=1), "pay": Continuous(lower=0.0)})
    >>> Schema.from_toml(schema.to_toml()) == schema
    True
    """

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        if not isinstance(kinds, Mapping):
            raise SchemaError(
                f"expected the schema as a mapping, got {type(kinds).__name__}.", "Write {column: kind, ...}."
            )
        for column, kind in kinds.items():
            if not isinstance(column, str) or not _is_text(column):
                raise SchemaError(
                    f"expected a column name in the schema as text, got {type(column).__name__}.", "Use text names."
                )
            if not isinstance(kind, tuple(_KINDS.values())):
                raise SchemaError(
                    f"column {column!r}: expected a kind, got {type(kind).__name__}.",
                    "Use Continuous, Discrete, Mixed, Categorical or Datetime.",
                )
        self._kinds = dict(kinds)

    def __getitem__(self, column: str) -> Kind:
        return self._kinds[column]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)

    def __hash__(self) -> int:
        return hash(tuple(self._kinds.items()))

    def __repr__(self) -> str:
        return f"Schema({self._kinds!r})"

    def _repr_html_(self) -> str:
        """The kinds as a table; of levels and atoms it has the number, as `repr`."""
        from dipriv._base.html import table

        return table(("column", "kind"), list(self._kinds.items()))

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Plain data: {column: {"kind": ..., field: value}}, fields that are None left out."""
        return {
            column: {"kind": kind.name}
            | {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(kind).items() if v is not None}
            for column, kind in self._kinds.items()
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Mapping[str, Any]]) -> Schema:
        """The schema that `to_dict` wrote.

        Parameters
        ----------
        plain : {column: {"kind": ..., field: value}}; it may come from anybody.

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
        return cls({column: _kind_from_dict(column, entry) for column, entry in plain.items()})

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
        if not path.is_file():
            raise InputError(f"{path} is not a file.", "Check the path of the schema.")
        if path.stat().st_size > MAX_FILE:
            raise SchemaError(f"the schema file {path.name} has more than {MAX_FILE:,} bytes.", "Declare less.")
        try:
            text = path.read_text(encoding="utf-8")
            return cls.from_json(text) if path.suffix == ".json" else cls.from_toml(text)
        except UnicodeDecodeError:
            raise SchemaError(f"the schema file {path.name} is not in UTF-8.", "Convert it.") from None
        except SchemaError as error:
            raise SchemaError(f"the schema file {path.name}: {error.fault}", error.remedy) from None


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
        raise SchemaError(f"expected levels as a list, got {type(levels).__name__}.", "Write levels=(..., ...).")
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


def _kind_from_dict(column: str, entry: Mapping[str, Any]) -> Kind:
    named = entry.get("kind") if isinstance(entry, Mapping) else None
    kind = _KINDS.get(named) if isinstance(named, str) else None
    if kind is None:
        raise SchemaError(
            f"column {_shown(column)} in the schema has no known kind.",
            f'Write kind = "..." with one of {", ".join(_KINDS)}.',
        )
    options = {key: tuple(v) if isinstance(v, list) else v for key, v in entry.items() if key != "kind"}
    known = {field.name for field in fields(kind)}
    if unknown := sorted(set(options) - known):
        raise SchemaError(
            f"column {_shown(column)}: {kind.__name__} has no field {_shown(unknown[0])}.",
            f"It takes {', '.join(sorted(known))}.",
        )
    built: Kind = kind(**options)
    return built
