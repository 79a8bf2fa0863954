"""Whether a value has the type that a field of a class declares; for a protocol, a class that registered as one."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pyarrow as pa

from dipriv._base.registry import implementations

_MAX_WHOLE = 1 << 64
"""A whole number that stands for a real one is no larger."""


def check_fields(of: type, values: Mapping[str, Any]) -> None:
    """Raises TypeError unless these are fields of the class, each of its type; those left out have their defaults."""
    declared = _declared(of)
    for name, value in values.items():
        if not has_type(value, declared[name]):
            raise TypeError(f"{of.__name__}.{name}")


def has_type(value: Any, hint: Any) -> bool:
    """Whether a value is what an annotation says; a whole number may stand for a real one, but not a boolean."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(has_type(value, one) for one in arguments)
    if origin is tuple:
        return isinstance(value, tuple) and all(has_type(item, arguments[0]) for item in value)
    if origin is Literal:
        return isinstance(value, str) and value in arguments
    if origin is np.ndarray:
        return isinstance(value, np.ndarray) and _holds(value, arguments[1])
    if origin is np.dtype:
        return isinstance(value, np.dtype)
    if origin is Mapping:
        return isinstance(value, dict) and all(map(_has_types(arguments), value.items()))
    if hint is float:
        return type(value) is float or (type(value) is int and abs(value) <= _MAX_WHOLE)
    if hint is Any:  # the frozen distributions of scipy
        return hasattr(value, "dist") and hasattr(value, "kwds")
    if hint in (int, bool, str, Fraction):
        return type(value) is hint
    if hint in (pa.DataType, pa.Array):
        return isinstance(value, hint)
    return isinstance(value, implementations(hint) or hint)


@cache
def _declared(of: type) -> dict[str, Any]:
    hints = get_type_hints(of)
    return {field.name: hints[field.name] for field in fields(of) if field.init}


def _holds(array: np.ndarray, of: Any) -> bool:
    """Whether an array has the dtype of an annotation `NDArray[...]`, or one of a kind of numbers."""
    number = get_origin(get_args(of)[0]) or get_args(of)[0]
    return array.dtype.kind in "iuf" if number is Any else bool(np.issubdtype(array.dtype, number))


def _has_types(hints: tuple[Any, ...]) -> Any:
    return lambda item: all(has_type(one, hint) for one, hint in zip(item, hints, strict=True))
