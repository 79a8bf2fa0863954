"""Values of any kind as cells of a given Arrow type: rounded, saturated at the ends of the type, or else null.

Whoever privatizes a record must get an answer for every record: in local use "no answer" is an output, too, and which
records have none would be up to the author of the reference. So this conversion is a total function, value by value.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Sequence
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

_SURROGATES = re.compile("[\ud800-\udfff]")
_EPOCH = dt.datetime(1970, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_MAX_TICKS = (1 << 63) - 1
_DECIMAL_DIGITS = 400
"""Of a double that is written out: 309 before the point, and more than enough after it for 38 decimals."""


def array_of_any(values: Sequence[Any], arrow_type: pa.DataType) -> pa.Array:
    """An array of this type, or a dictionary of these values; never an error about a value.

    >>> array_of_any([300, 1.6, "many", None], pa.int8()).to_pylist()
    [127, 2, None, None]
    """
    if pt.is_dictionary(arrow_type):
        labels = array_of_any(values, arrow_type.value_type)
        numbers = pa.array(range(len(labels)), pa.int32())
        return pa.DictionaryArray.from_arrays(numbers, labels, ordered=arrow_type.ordered)
    if _is_text(arrow_type):
        try:
            return pa.array(values, arrow_type, from_pandas=True)  # at once where all are text or null
        except (pa.ArrowException, TypeError, ValueError):
            pass
    return pa.array([_cell(value, arrow_type) for value in values], arrow_type)


def valid_text(text: Any) -> Any:
    """The same text, but that lone surrogates, which UTF-8 does not have, are replacement characters."""
    return _SURROGATES.sub("\ufffd", text) if isinstance(text, str) else text


def _cell(value: Any, kind: pa.DataType) -> pa.Scalar:
    try:
        return pa.scalar(_nearest(value, kind), kind)
    except Exception:  # an object may raise anything when it is asked for its value
        return pa.scalar(None, kind)


def _nearest(value: Any, kind: pa.DataType) -> Any:
    """The value of this type that is nearest; None where there is none."""
    if _is_text(kind):
        return value.decode(errors="replace") if isinstance(value, bytes) else valid_text(value)
    if pt.is_temporal(kind):
        return _nearest_time(value, kind)
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, (int, float, Decimal)):
        return None
    if not isinstance(value, int) and math.isnan(value):
        return math.nan if pt.is_floating(kind) else None
    if pt.is_integer(kind):
        info = np.iinfo(kind.to_pandas_dtype())
        low, high = int(info.min), int(info.max)
        return low if value <= low else high if value >= high else round(value)
    if pt.is_floating(kind):
        dtype = kind.to_pandas_dtype()
        most = float(np.finfo(dtype).max)
        return dtype(min(max(value, -most), most))
    if pt.is_decimal(kind):
        return _nearest_decimal(value, kind)
    return bool(value) if value in (0, 1) else None


def _nearest_decimal(value: int | float | Decimal, kind: pa.DataType) -> Decimal:
    with localcontext(prec=_DECIMAL_DIGITS):
        most = Decimal(10**kind.precision - 1).scaleb(-kind.scale)
        inside = most if value >= most else -most if value <= -most else Decimal(value)
        return inside.quantize(Decimal(1).scaleb(-kind.scale))


def _nearest_time(value: Any, kind: pa.DataType) -> Any:
    """A date, time or duration: as it is where the type has it, else its ticks, saturated at the ends of 64 bits."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        value = value.astype(f"{value.dtype.kind}8[us]").item()
    if not isinstance(value, dt.date | dt.time | dt.timedelta) or value != value:  # noqa: PLR0124 (NaT)
        return None
    try:
        return pa.scalar(value, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass
    if isinstance(value, dt.timedelta):
        return _ticks(value, kind.unit) if pt.is_duration(kind) else None
    if not isinstance(value, dt.date) or not pt.is_timestamp(kind):
        return None
    if not isinstance(value, dt.datetime):
        value = dt.datetime.combine(value, dt.time())
    since = value.replace(tzinfo=None) - _EPOCH - (value.utcoffset() or dt.timedelta())
    return _ticks(since, kind.unit)


def _ticks(since: dt.timedelta, unit: str) -> int:
    ticks = (since // _MICROSECOND) * _PER_SECOND[unit] // _PER_SECOND["us"]
    return min(max(ticks, -_MAX_TICKS), _MAX_TICKS)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind))
