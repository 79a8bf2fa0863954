"""Checks of single facts. A guarantee may come from a file of unknown origin, so no message shows what was found."""

from __future__ import annotations

import math
from collections.abc import Collection
from enum import StrEnum
from typing import Any, NoReturn, TypeVar

from dipriv.errors import InputError

MIN_EPSILON, MAX_EPSILON = 1e-9, 1e12
"""Beyond these a release is pure noise or no privacy at all, and the arithmetic of the noise would degrade."""
MIN_DELTA, MAX_DELTA = 1e-30, 0.1
"""A δ below has no effect that could be observed, and one of a tenth or more protects nobody."""
LONGEST_TEXT, MAX_ITEMS, MAX_COUNT = 1 << 16, 1 << 16, 1 << 62
_Enum = TypeVar("_Enum", bound=StrEnum)


def check_epsilon(epsilon: object) -> float:
    """`epsilon` as a float: a finite number above zero.

    Raises
    ------
    InputError
        If it is not a number from 1e-9 to 1e12.

    >>> check_epsilon(1)
    1.0
    """
    remedy = "Use a finite number above 0, for example 1.0; smaller is more private."
    value = _as_float(epsilon, "epsilon", remedy)
    if not (value > 0 and math.isfinite(value)):
        raise InputError(f"epsilon={value!r} is not a finite number above 0.", remedy)
    if not MIN_EPSILON <= value <= MAX_EPSILON:
        raise InputError(f"epsilon={value!r} is outside [{MIN_EPSILON:g}, {MAX_EPSILON:g}].", remedy)
    return value


def check_delta(delta: object) -> float:
    """`delta` as a float: 0, for pure ε-differential privacy, or a small number.

    Raises
    ------
    InputError
        If it is not 0, or a number from 1e-30 to less than 0.1.

    >>> check_delta(0), check_delta(1e-9)
    (0.0, 1e-09)
    """
    remedy = "Use 0 for pure differential privacy, or a small number such as 1e-9."
    value = _as_float(delta, "delta", remedy)
    if value != 0 and not MIN_DELTA <= value < MAX_DELTA:
        raise InputError(f"delta={value!r} is neither 0 nor in [{MIN_DELTA:g}, {MAX_DELTA:g}).", remedy)
    return abs(value)


def _as_float(value: object, name: str, remedy: str) -> float:
    fault = InputError(f"expected {name} as a number, got {type(value).__name__}.", remedy)
    if isinstance(value, (bool, str, bytes)) or not hasattr(value, "__float__"):
        raise fault
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise fault from None


def refuse(what: str, fault: str) -> NoReturn:
    """Raise the error of a fact that is not as dipriv writes it."""
    raise InputError(f"the guarantee's {what} {fault}.", "Give what Guarantee.to_dict() returned, unchanged.")


def set_field(of: Any, name: str, value: Any) -> None:
    """Set a field of a frozen dataclass to its checked value."""
    object.__setattr__(of, name, value)


def as_enum(of: type[_Enum], value: Any, what: str) -> _Enum:
    """The member of an enum with this value."""
    if not isinstance(value, str) or value not in of._value2member_map_:
        refuse(what, f"is none of the {len(of)} that are known")
    return of(value)


def as_list(value: Any, what: str) -> Collection[Any]:
    """A list or tuple that is not too long."""
    if not isinstance(value, (list, tuple)) or len(value) > MAX_ITEMS:
        refuse(what, f"is not a list of at most {MAX_ITEMS:,} items")
    return value


def as_items(values: Any, of: type[Any], what: str) -> tuple[Any, ...]:
    """A tuple of instances of a class."""
    items = tuple(as_list(values, what))
    if not all(isinstance(item, of) for item in items):
        refuse(what, f"has an item that is not a {of.__name__}")
    return items


def as_names(values: Any, what: str) -> tuple[str, ...]:
    """A tuple of names of columns."""
    names = tuple(as_list(values, what))
    for name in names:
        check_name(name, what)
    return names


def check_name(name: Any, what: str) -> None:
    """Any text may name a column; it is shown with its special characters escaped."""
    if not isinstance(name, str) or len(name) > LONGEST_TEXT:
        refuse(what, f"has a name that is not a text of at most {LONGEST_TEXT:,} characters")


def check_text(text: Any, what: str) -> str:
    """One line of printable text."""
    if not isinstance(text, str) or len(text) > LONGEST_TEXT or not text.isprintable():
        refuse(what, f"is not one printable line of at most {LONGEST_TEXT:,} characters")
    return text


def check_count(value: Any, what: str, least: int = 0) -> None:
    """A whole number, or None."""
    if value is not None and (type(value) is not int or not least <= value <= MAX_COUNT):
        refuse(what, f"has a count that is not a whole number from {least} to 2^62")


def as_cost(value: Any, what: str) -> float | None:
    """Part of an ε, or None; it may be smaller than the smallest ε of a release."""
    if value is None:
        return None
    if not is_number(value) or not 0 < value <= MAX_EPSILON:
        refuse(what, f"has an ε that is not above 0 and at most {MAX_EPSILON:g}")
    return float(value)


def as_delta(value: Any, what: str) -> float:
    """A δ, which is a probability."""
    if not is_number(value) or not 0 <= value <= 1:
        refuse(what, "is not a number from 0 to 1")
    return float(value)


def is_number(value: Any) -> bool:
    """Whether a value is a real number, and not a boolean."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)
