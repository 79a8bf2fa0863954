"""Python objects in a column without a type: what each is, and what it is as text. Every object has an answer."""

from __future__ import annotations

import datetime
import decimal
import numbers
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dipriv._tables.any_values import valid_text

ObjectClass: TypeAlias = Literal["text", "boolean", "number", "date", "time", "other"]


def class_of(of: type) -> ObjectClass:
    """What objects of a Python class are."""
    if issubclass(of, str):
        return "text"
    if issubclass(of, bool | np.bool_):
        return "boolean"
    if issubclass(of, numbers.Real | decimal.Decimal) and not issubclass(of, np.timedelta64):
        return "number"
    if issubclass(of, datetime.date):
        return "date"
    return "time" if issubclass(of, datetime.time) else "other"


def without_scalars(values: Any) -> Any:
    """Objects of pandas or numpy, where numpy's scalars are Python's: Arrow fails at some that come first."""
    if not any(isinstance(value, np.generic) for value in values):
        return values
    found = np.empty(len(values), dtype=object)
    found[:] = [_python(value) for value in values]
    return found


def _python(value: Any) -> Any:
    if isinstance(value, np.datetime64 | np.timedelta64):
        return value.astype(f"{value.dtype.kind}8[us]").item()
    return value.item() if isinstance(value, np.generic) else value


def as_text(series: Any) -> pa.Array:
    """Objects of pandas as they would be written in a CSV file; null where one is missing, "(object)" for others."""
    return texts_of(series.to_numpy(), is_absent(series))


def texts_of(cells: Iterable[Any], absent: Iterable[bool]) -> pa.Array:
    """The same for objects of any library, and which of them are missing."""
    pairs = zip(cells, absent, strict=True)
    return pa.array([None if missing else _text(cell) for cell, missing in pairs], pa.large_string())


def is_absent(series: Any) -> NDArray[np.bool_]:
    """Which objects are missing; the signaling NaN of decimal numbers is, too."""
    with decimal.localcontext() as context:
        context.traps[decimal.InvalidOperation] = False
        absent: NDArray[np.bool_] = series.isna().to_numpy()
        return absent


def _text(cell: Any) -> str | None:
    kind = class_of(type(cell))
    if kind == "text":
        return str(valid_text(cell))
    if kind == "boolean":
        return "true" if cell else "false"
    if kind == "number":
        try:
            return str(int(cell)) if isinstance(cell, numbers.Integral) else repr(float(cell))
        except Exception:  # Python writes no whole number of more than 4,300 digits, and classes may raise anything
            return None
    if kind in ("date", "time"):
        with suppress(Exception):  # of a class that is not ours
            return str(cell.isoformat())
    return "(object)"
