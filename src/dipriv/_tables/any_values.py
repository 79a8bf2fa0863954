"""Values of any kind as cells of a given Arrow type: rounded, saturated at the ends of the type, or else null.

Whoever privatizes a record must get an answer for every record: in local use "no answer" is an output, too, and which
records have none would be up to the author of the reference. So this conversion is a total function, value by value.

The type that a column of a batch has may be due to the cell of another row, where a reader guesses it. So a value has
the same cell in every type, as far as that keeps it: `7`, `7.0` and the text "7" are a number, `true`, `1`
and the text "True" a truth value, a date and its text in ISO 8601 a day, in UTC if it has a zone; NaT and the usual
marks in text are missing. Doubles that are not a number stay so, where doubles are wanted.
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
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from dipriv._tables.arrow import is_text
from dipriv._tables.cell_classes import CellClass, Cells, classify
from dipriv.schema import MISSING_MARKS

_SURROGATES = re.compile("[\ud800-\udfff]")
_DIGITS = re.compile(r"[+-]?[0-9]{1,30}")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?")
_ZEROS = r"^(\s*[+-]?)0+([0-9])"
_EPOCH = dt.datetime(1970, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)
_SECONDS = 86_400
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_MAX_TICKS = (1 << 63) - 1
_EXACT = 2.0**53
"""Below this, a double has all whole numbers."""
_DECIMAL_DIGITS = 400
"""Of a double that is written out: 309 before the point, and more than enough after it for 38 decimals."""
_MOMENTS = (CellClass.DATE, CellClass.UTC_MICROSECONDS)
_NO_MARKS: tuple[str, ...] = ()


def array_of_any(values: Sequence[Any], arrow_type: pa.DataType, marks: Sequence[str] = _NO_MARKS) -> pa.Array:
    """An array of this type, or a dictionary of these values; never an error about a value.

    Cells that are one of `marks`, or the same number, are missing, unless they are wanted as text.

    >>> array_of_any([300, 1.6, "many", None, "2.0", float("nan")], pa.int8()).to_pylist()
    [127, 2, None, None, 2, None]
    """
    if pt.is_dictionary(arrow_type):
        return _dictionary(array_of_any(values, arrow_type.value_type, marks), arrow_type)
    if is_text(arrow_type):
        try:
            return pa.array(values, arrow_type, from_pandas=True)  # at once where all are text or null
        except (pa.ArrowException, TypeError, ValueError):
            return pa.array([_cell(value, arrow_type) for value in values], arrow_type)
    values = [_text(value) if isinstance(value, str | bytes) else _real(value) for value in values]
    found = _without_marked([_cell(value, arrow_type) for value in values], values, arrow_type, marks)
    if not any(isinstance(value, str) for value in values):
        return found
    texts = [value if isinstance(value, str) else None for value in values]
    return pc.coalesce(found, read_texts(pa.array(texts, pa.large_string()), arrow_type, marks))


def _real(value: Any) -> Any:
    """A complex number that is a real one as that: one cell makes all of its column complex in numpy."""
    return value.real if isinstance(value, complex | np.complexfloating) and value.imag == 0 else value


def array_from_any(array: pa.Array, arrow_type: pa.DataType, marks: Sequence[str] = _NO_MARKS) -> pa.Array:
    """The same for an Arrow array of any type."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return array_from_any(array.storage, arrow_type, marks)
    if pt.is_run_end_encoded(kind):
        return _taken(array_from_any(array.values, arrow_type, marks), pa.array(run_places(array)))
    if pt.is_dictionary(arrow_type) and pt.is_dictionary(kind):
        labels = array_from_any(array.dictionary, arrow_type.value_type, marks)
        return pa.DictionaryArray.from_arrays(array.indices.cast(pa.int32()), labels, ordered=arrow_type.ordered)
    if pt.is_dictionary(arrow_type):
        return _dictionary(array_from_any(array, arrow_type.value_type, marks), arrow_type)
    if kind == arrow_type and not (_is_number(kind) or marks):
        return array
    if pt.is_dictionary(kind):
        return _taken(array_from_any(array.dictionary, arrow_type, marks), array.indices)
    if is_text(kind):
        return read_texts(array, arrow_type, marks)
    if (_is_number(kind) or pt.is_boolean(kind)) and not is_text(arrow_type) and not pt.is_temporal(arrow_type):
        whole = array.cast(pa.uint8()) if pt.is_boolean(kind) else array
        return _numbers(*_filled(whole), arrow_type, marks)
    if _family(kind) is not None and _family(kind) == _family(arrow_type):
        ticks, absent = _filled(array.cast(pa.int32() if _is_narrow(kind) else pa.int64()))
        return _times(ticks.astype(np.int64), absent, _per_day(kind), arrow_type)
    return array_of_any([_object(cell) for cell in array], arrow_type, marks)


def run_places(array: pa.RunEndEncodedArray) -> NDArray[np.intp]:
    """Where each cell's value is among the values of runs; Arrow cannot decode runs of all types."""
    cells = np.arange(array.offset, array.offset + len(array))
    return np.searchsorted(array.run_ends.to_numpy(), cells, side="right")


def read_texts(texts: pa.Array, arrow_type: pa.DataType, marks: Sequence[str] = _NO_MARKS) -> pa.Array:
    """Text cells as they would be read from a file; text as it is."""
    if is_text(arrow_type):
        return texts.cast(arrow_type)
    family = _family(arrow_type)
    if family in ("span", "other"):
        return pa.nulls(len(texts), arrow_type)
    texts = texts.cast(pa.large_string())
    if family is None:  # where numbers are wanted, 007 is one, as for a reader that guesses types
        texts = pc.replace_substring_regex(texts, _ZEROS, r"\1\2")
    cells = classify(texts, (*MISSING_MARKS, *marks))
    if family is None:
        return _numbers_of_texts(texts, cells, arrow_type, marks)
    low, high = (CellClass.TIME, CellClass.TIME) if family == "time" else _MOMENTS
    absent = (cells.classes < low) | (cells.classes > high)
    return _times(cells.values, absent, _SECONDS * _PER_SECOND["us"], arrow_type)


def as_labels(texts: pa.Array, labels: pa.Array) -> pa.Array:
    """Cells of text that are no label, but the same number, date or truth value as one, as the first such label.

    A reader that guesses types makes 1 of the label "01", and `True` of "TRUE".
    """
    if pt.is_dictionary(texts.type):
        found = as_labels(texts.dictionary, labels)
        return pa.DictionaryArray.from_arrays(texts.indices, found, ordered=texts.type.ordered)
    plain, labels = texts.cast(pa.large_string()), labels.cast(pa.large_string()).drop_null()
    meant = {key: label for key, label in reversed([*zip(_keys(labels), labels.to_pylist(), strict=True)]) if key}
    if not meant:
        return texts
    others = plain.filter(pc.invert(pc.is_in(plain, value_set=labels))).unique().drop_null()
    label_of = {text: meant[key] for text, key in zip(others.to_pylist(), _keys(others), strict=True) if key in meant}
    if not label_of:
        return texts
    places = pc.index_in(plain, value_set=pa.array([*label_of], pa.large_string()))
    return pc.coalesce(pa.array([*label_of.values()], pa.large_string()).take(places), plain).cast(texts.type)


def valid_text(text: Any) -> Any:
    """The same text, but that lone surrogates, which UTF-8 does not have, are replacement characters."""
    return _SURROGATES.sub("\ufffd", text) if isinstance(text, str) else text


def written(value: Any) -> Any:
    """Numbers, truth values and times as text, alike for any type that a column may have had; text as it is."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float | Decimal) and value == value // 1:
        value = int(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float | Decimal):
        return None if math.isnan(value) else repr(float(value))
    if isinstance(value, dt.date | dt.time):
        return value.isoformat() if value == value else None  # noqa: PLR0124 (NaT)
    return valid_text(value)


def _text(text: str | bytes) -> str:
    return str(text.decode(errors="replace") if isinstance(text, bytes) else valid_text(text))


def _object(cell: pa.Scalar) -> Any:
    """The Python object of a cell; None if there is none, such as for a day after the year 9999."""
    try:
        return cell.as_py()
    except Exception:  # Arrow puts the cell into its messages
        return None


def _keys(texts: pa.Array) -> list[tuple[str, float] | None]:
    """What each text says beside its letters: a number, truth value, day or time; None if nothing."""
    cells = classify(texts, _NO_MARKS)
    found: list[tuple[str, float] | None] = []
    for text, of, value in zip(texts.to_pylist(), cells.classes.tolist(), cells.values.tolist(), strict=True):
        plain = text.strip().lower()
        if of == CellClass.WHOLE:
            found.append(("number", value))
        elif len(plain) <= _DECIMAL_DIGITS and _NUMBER.fullmatch(plain):  # those that begin with zeros, too
            found.append(("number", float(plain)))
        elif of == CellClass.BOOLEAN:
            found.append(("truth", value))
        elif _MOMENTS[0] <= of <= _MOMENTS[1]:
            found.append(("moment", value))
        else:
            found.append(("time", value) if of == CellClass.TIME else None)
    return found


def _dictionary(values: pa.Array, arrow_type: pa.DataType) -> pa.DictionaryArray:
    numbers = pa.array(range(len(values)), pa.int32())
    return pa.DictionaryArray.from_arrays(numbers, values, ordered=arrow_type.ordered)


def _taken(labels: pa.Array, indices: pa.Array) -> pa.Array:
    """Arrow cannot take from views."""
    if pt.is_string_view(labels.type):
        return labels.cast(pa.large_string()).take(indices).cast(labels.type)
    return labels.take(indices)


def _filled(array: pa.Array) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The values of an array of numbers, 0 for nulls, and which are null."""
    absent: NDArray[np.bool_] = array.is_null().to_numpy(zero_copy_only=False)
    filled = array.fill_null(pa.scalar(0, array.type)) if array.null_count else array
    return filled.to_numpy(zero_copy_only=False), absent


def _is_number(arrow_type: pa.DataType) -> bool:
    return bool(pt.is_integer(arrow_type) or pt.is_floating(arrow_type))


def _numbers_of_texts(texts: pa.Array, cells: Cells, arrow_type: pa.DataType, marks: Sequence[str]) -> pa.Array:
    classes = cells.classes
    absent = (classes != CellClass.WHOLE) & (classes != CellClass.DECIMAL) & (classes != CellClass.BOOLEAN)
    rows = np.flatnonzero(classes == CellClass.DECIMAL)
    if not len(rows):
        return _numbers(cells.values, absent, arrow_type, marks)
    some = pc.utf8_trim_whitespace(texts.take(pa.array(rows)))
    reals = some.cast(pa.float64()).to_numpy()
    if not pt.is_integer(arrow_type):
        values = cells.values.astype(np.float64)
        values[rows] = reals
        return _numbers(values, absent, arrow_type, marks)
    absent[rows] = True  # separate from the whole numbers, which doubles do not have all of
    found = [*_numbers(reals, np.zeros(len(rows), dtype=bool), arrow_type, marks)]
    for place in np.flatnonzero(np.abs(reals) >= _EXACT):
        if _DIGITS.fullmatch(text := some[int(place)].as_py()):
            found[place] = _cell(int(text), arrow_type)
    whole = _numbers(cells.values, absent, arrow_type, marks)
    places = np.full(len(texts), -1)
    places[rows] = np.arange(len(rows))
    return pc.coalesce(whole, pa.array(found, arrow_type).take(pa.array(places, mask=places < 0)))


def _numbers(
    values: NDArray[Any], absent: NDArray[np.bool_], arrow_type: pa.DataType, marks: Sequence[str]
) -> pa.Array:
    """Numbers as the nearest ones of another type; truth values are 0 and 1."""
    values = values.astype(np.float64) if values.dtype.kind == "f" else values
    if values.dtype.kind == "f" and not pt.is_floating(arrow_type):
        absent = absent | np.isnan(values)
        values = np.where(absent, 0.0, values)
    for mark in _marked(marks):
        absent = absent | (values == mark)
    if pt.is_integer(arrow_type):
        return pa.array(_whole(values, np.dtype(arrow_type.to_pandas_dtype())), mask=absent)
    if pt.is_boolean(arrow_type):
        return pa.array(values == 1, mask=absent | ((values != 0) & (values != 1)))
    if pt.is_floating(arrow_type):
        dtype = np.dtype(arrow_type.to_pandas_dtype())
        most = float(np.finfo(dtype).max)
        return pa.array(np.clip(values.astype(np.float64), -most, most).astype(dtype), mask=absent, from_pandas=False)
    pairs = zip(values.tolist(), absent.tolist(), strict=True)
    return pa.array([None if missing else _cell(value, arrow_type) for value, missing in pairs], arrow_type)


def _whole(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Numbers rounded to whole ones and saturated at the ends of the type."""
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    if values.dtype.kind != "f":
        ends = np.iinfo(values.dtype)
        inside_both = np.clip(values, max(low, int(ends.min)), min(high, int(ends.max)))
        return np.asarray(inside_both, dtype=dtype)
    rounded = np.rint(values)
    inside = (rounded > float(low)) & (rounded < float(high))
    found = np.where(inside, rounded, 0.0).astype(dtype)
    found[rounded <= float(low)], found[rounded >= float(high)] = low, high
    return found


def _marked(marks: Sequence[str]) -> list[float]:
    """The marks of missing cells that are numbers."""
    plain = [mark.strip().lower() for mark in marks]
    return [float(mark) for mark in plain if _NUMBER.fullmatch(mark)]


def _without_marked(
    cells: list[pa.Scalar], values: Sequence[Any], arrow_type: pa.DataType, marks: Sequence[str]
) -> pa.Array:
    numbers = _marked(marks)
    odd = [isinstance(value, int | float | Decimal | np.number) and value in numbers for value in values if numbers]
    return pa.array([None if odd and odd[place] else cell for place, cell in enumerate(cells)], arrow_type)


def _family(arrow_type: pa.DataType) -> str | None:
    """What kind of time a type has; None for types that have none."""
    if pt.is_date(arrow_type) or pt.is_timestamp(arrow_type):
        return "moment"
    if pt.is_time(arrow_type):
        return "time"
    if pt.is_duration(arrow_type):
        return "span"
    return "other" if pt.is_temporal(arrow_type) else None


def _is_narrow(arrow_type: pa.DataType) -> bool:
    return bool(pt.is_date32(arrow_type) or pt.is_time32(arrow_type))


def _per_day(arrow_type: pa.DataType) -> int:
    """How many ticks a day has."""
    if pt.is_date32(arrow_type):
        return 1
    return _SECONDS * _PER_SECOND["ms" if pt.is_date64(arrow_type) else arrow_type.unit]


def _times(ticks: NDArray[np.int64], absent: NDArray[np.bool_], per_day: int, arrow_type: pa.DataType) -> pa.Array:
    """Ticks as those of a type, cut to whole ones, and saturated at the ends."""
    if pt.is_date64(arrow_type):
        return _times(ticks, absent, per_day, pa.date32()).cast(arrow_type)
    scaled = _scaled(np.where(absent, 0, ticks), per_day, _per_day(arrow_type))
    if _is_narrow(arrow_type):
        ends = np.iinfo(np.int32)
        scaled = np.clip(scaled, ends.min, ends.max).astype(np.int32)
    return pa.array(scaled, mask=absent).cast(arrow_type)


def _scaled(ticks: NDArray[np.int64], old: int, new: int) -> NDArray[np.int64]:
    if new <= old:
        return ticks // (old // new)
    factor = new // old
    most = _MAX_TICKS // factor
    is_beyond = (ticks > most) | (ticks < -most)
    return np.where(is_beyond, np.sign(ticks) * _MAX_TICKS, np.clip(ticks, -most, most) * factor)


def _cell(value: Any, kind: pa.DataType) -> pa.Scalar:
    try:
        return pa.scalar(_nearest(value, kind), kind)
    except Exception:  # an object may raise anything when it is asked for its value
        return pa.scalar(None, kind)


def _nearest(value: Any, kind: pa.DataType) -> Any:
    """The value of this type that is nearest; None where there is none."""
    if is_text(kind):
        return _text(value) if isinstance(value, bytes) else written(value)
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
        return dtype(float(min(max(value, -most), most)))
    if pt.is_decimal(kind):
        return _nearest_decimal(value, kind)
    return bool(value) if value in (0, 1) else None


def _nearest_decimal(value: int | float | Decimal, kind: pa.DataType) -> Decimal:
    with localcontext(prec=_DECIMAL_DIGITS):
        most = Decimal(10**kind.precision - 1).scaleb(-kind.scale)
        if not -most < value < most:
            return most if value > 0 else -most
        exact = value if isinstance(value, Decimal) else Decimal(float(value))  # whole numbers may come as doubles
        return exact.quantize(Decimal(1).scaleb(-kind.scale))


def _nearest_time(value: Any, kind: pa.DataType) -> Any:
    """A date, time or duration: as it is where the type has it, else its ticks, saturated at the ends of 64 bits."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        value = value.astype(f"{value.dtype.kind}8[us]").item()
    if not isinstance(value, dt.date | dt.time | dt.timedelta) or value != value:  # noqa: PLR0124 (NaT)
        return None
    if isinstance(value, dt.datetime) and pt.is_date(kind):
        days = _since(value) // dt.timedelta(days=1)  # in UTC
        return days if pt.is_date32(kind) else pa.scalar(days, pa.date32()).cast(kind)
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
    return _ticks(_since(value), kind.unit)


def _since(value: dt.datetime) -> dt.timedelta:
    return value.replace(tzinfo=None) - _EPOCH - (value.utcoffset() or dt.timedelta())


def _ticks(since: dt.timedelta, unit: str) -> int:
    ticks = (since // _MICROSECOND) * _PER_SECOND[unit] // _PER_SECOND["us"]
    return min(max(ticks, -_MAX_TICKS), _MAX_TICKS)
