"""Arrow arrays <-> cells: the exact mapping of each supported type to numbers and back."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from dipriv._base.columns import NAN, NULL, PRESENT, ColumnValues, Storage, cast
from dipriv._base.jit import jit
from dipriv._tables.repeated import room
from dipriv.errors import InputError, SchemaError

_TICKS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_DAY = 86_400_000_000_000
_MAX_DIGITS = 38
OTHER = "(other)"
"""The label that stands for all labels of a column that are not listed."""
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""The years 1 to 9999, in days since 1970: what the calendars of most programs hold."""


def shown_type(arrow_type: pa.DataType) -> str:
    """A type as messages show it: without the names of fields, which may come from cells."""
    of = arrow_type.value_type if pt.is_dictionary(arrow_type) else arrow_type
    hides = of.num_fields or isinstance(of, pa.BaseExtensionType)
    return str(arrow_type).partition("<")[0] if hides else str(arrow_type)


def storage_of(name: str, arrow_type: pa.DataType) -> Storage:
    """How dipriv sees an Arrow type; refuses nested, binary, empty and other types that are not data of a row."""
    label = str(arrow_type)
    if pt.is_integer(arrow_type):
        return Storage("integer", np.dtype(arrow_type.to_pandas_dtype()), label)
    if pt.is_float16(arrow_type) or pt.is_float32(arrow_type):
        return Storage("real", np.dtype(np.float32), label)
    if pt.is_float64(arrow_type) or _is_short_decimal(arrow_type):
        return Storage("real", np.dtype(np.float64), label)
    if pt.is_boolean(arrow_type):
        return Storage("boolean", np.dtype(np.uint8), label)
    if is_text(arrow_type):
        return Storage("label", np.dtype(np.int32), "text")
    if pt.is_dictionary(arrow_type) and not pt.is_float16(arrow_type.value_type):  # Arrow cannot look those up
        of = storage_of(name, arrow_type.value_type).label
        return Storage("label", np.dtype(np.int32), "labels" if of == "text" else f"labels of {of}")
    if pt.is_temporal(arrow_type) and not pt.is_interval(arrow_type):
        return Storage("temporal", np.dtype(np.int64), label, _tick(arrow_type))
    if pt.is_null(arrow_type):
        raise InputError(
            f"column {name!r} holds nothing but nulls.",
            "Leave it out with drop=[...], or pass it through with keep=[...].",
            command="Leave it out with --drop, or pass it through with --keep.",
        )
    raise SchemaError(
        f"column {name!r} has type {shown_type(arrow_type)}, which dipriv does not take.",
        "Convert it to numbers, text, dates or booleans, leave it out with drop=[...], or pass it through with "
        "keep=[...].",
        command="Convert it to numbers, text, dates or booleans, leave it out with --drop, or pass it through with "
        "--keep.",
    )


def value_range(arrow_type: pa.DataType) -> tuple[float | None, float | None]:
    """The smallest and largest value of a type, where its storage could hold more: a public fact."""
    if pt.is_time(arrow_type):
        return 0, _DAY // _tick(arrow_type) - 1
    if pt.is_date(arrow_type):
        return _FIRST_DAY, _LAST_DAY
    if pt.is_timestamp(arrow_type):
        ticks = _DAY // _tick(arrow_type)
        return _FIRST_DAY * ticks, (_LAST_DAY + 1) * ticks - 1
    if pt.is_decimal(arrow_type):
        largest = (10**arrow_type.precision - 1) / 10**arrow_type.scale
        return -largest, largest
    return (-65504.0, 65504.0) if pt.is_float16(arrow_type) else (None, None)


def times_of(arrow_type: pa.DataType) -> tuple[Literal["dates", "times of day"] | None, str | None]:
    """What the ticks of a type mean, and their zone, if they have one: public facts."""
    if pt.is_timestamp(arrow_type):
        return "dates", arrow_type.tz
    return ("dates" if pt.is_date(arrow_type) else "times of day" if pt.is_time(arrow_type) else None), None


def meaning(arrow_type: pa.DataType) -> str:
    """What cells of a type mean, independent of their width: cells of two types with one meaning can be compared."""
    if pt.is_integer(arrow_type) or pt.is_floating(arrow_type) or pt.is_decimal(arrow_type):
        return "number"
    if is_text(arrow_type):
        return "text"
    if pt.is_dictionary(arrow_type):
        return "text" if is_text(arrow_type.value_type) else f"label of {arrow_type.value_type}"
    if pt.is_timestamp(arrow_type):
        return f"{'local' if arrow_type.tz is None else 'absolute'} time in {arrow_type.unit}"
    return "date" if pt.is_date(arrow_type) else str(arrow_type)


def cells_from_arrow(array: pa.Array, labels: pa.Array | None) -> ColumnValues:
    """Numbers, ticks, 0/1, or positions in `labels`; infinities are clipped to the largest finite value.

    Total: an error about a cell would disclose a protected row.
    """
    nulls = _nulls(array)
    if labels is not None:
        return ColumnValues(_codes(array, labels), _missing(nulls))
    values = _numbers(array)
    if values.dtype.kind != "f":
        return ColumnValues(values, _missing(nulls))
    missing = _missing(nulls)
    has_nan, has_infinity = odd_numbers(values)
    if has_nan:
        not_a_number = np.isnan(values) if nulls is None else np.isnan(values) & ~nulls
        missing = np.zeros(len(values), dtype=np.uint8) if missing is None else missing
        missing[not_a_number] = NAN
        values = np.where(not_a_number, values.dtype.type(0), values)
    if has_infinity:
        values = np.clip(values, -np.finfo(values.dtype).max, np.finfo(values.dtype).max)
    return ColumnValues(values, missing)


@jit
def odd_numbers(values: NDArray[Any]) -> tuple[bool, bool]:
    """Whether there is a not-a-number, and whether there is an infinity: x - x is 0 for all other numbers."""
    nans, odd = 0, 0
    for i in range(len(values)):
        odd += 1 if values[i] - values[i] != 0 else 0
        nans += 1 if np.isnan(values[i]) else 0
    return nans > 0, odd > nans


def distinct_labels(array: pa.Array) -> pa.Array:
    """The sorted distinct labels of a column, nulls left out."""
    if pt.is_dictionary(array.type):  # those that are used, each once
        array = decoded(array.dictionary).take(pc.drop_null(pc.unique(array.indices)))
    distinct = pc.drop_null(pc.unique(decoded(array)))
    return distinct.take(pc.sort_indices(distinct))


def place_of_others(labels: pa.Array) -> int:
    """The position of the label that stands for all that are not listed, `OTHER` or a null; -1 where there is none."""
    if labels[:1].null_count:
        return 0
    return int(pc.index(labels, pa.scalar(OTHER, labels.type)).as_py()) if is_text(labels.type) else -1


def group_codes(array: pa.Array, labels: pa.Array) -> NDArray[np.intp]:
    """The position of each row's group in `labels`; -1 for rows whose group is not there."""
    found = pc.index_in(decoded(array).cast(labels.type), value_set=labels)
    codes: NDArray[np.intp] = found.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.intp)
    return codes


def cells_to_arrow(cells: ColumnValues, labels: pa.Array | None, arrow_type: pa.DataType) -> pa.Array:
    """The inverse: an Arrow array of `arrow_type`."""
    nulls = None if cells.missing is None else cells.missing == NULL
    if labels is not None:
        return labelled(pa.array(cells.values.astype(np.int32), mask=nulls), labels, arrow_type)
    if pt.is_boolean(arrow_type):
        return pa.array(cells.values.astype(bool), mask=nulls)
    if pt.is_decimal(arrow_type):
        return _decimals(cells.values, nulls, arrow_type)
    if pt.is_floating(arrow_type):
        values = cast(cells.values, np.dtype(arrow_type.to_pandas_dtype()))
        if cells.missing is not None:
            values = np.where(cells.missing == NAN, values.dtype.type(np.nan), values)
        return pa.array(values, mask=nulls, from_pandas=False)
    if pt.is_integer(arrow_type):
        return pa.array(cast(cells.values, np.dtype(arrow_type.to_pandas_dtype())), mask=nulls)
    ticks = cast(cells.values, np.dtype(np.int64))
    if pt.is_time(arrow_type):
        ticks = np.clip(ticks, 0, _DAY // _tick(arrow_type) - 1)
    stored = pa.array(cast(ticks, _tick_dtype(arrow_type)), mask=nulls)
    return stored.cast(pa.date32()).cast(arrow_type) if pt.is_date64(arrow_type) else stored.cast(arrow_type)


def _numbers(array: pa.Array) -> NDArray[Any]:
    kind = array.type
    if pt.is_decimal(kind):
        scaled: NDArray[np.float64] = _unscaled(array) / 10.0**kind.scale
        return scaled
    if pt.is_boolean(kind):
        array = array.cast(pa.uint8())
    elif pt.is_temporal(kind):
        if pt.is_date64(kind):
            days = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False) // 86_400_000
            return cast(days, np.dtype(np.int32)).astype(np.int64)
        array = array.cast(pa.from_numpy_dtype(_tick_dtype(kind)))
    elif pt.is_float16(kind):
        array = array.cast(pa.float32())
    if array.null_count:
        array = array.fill_null(pa.scalar(0, array.type))
    values: NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return values.astype(np.int64) if pt.is_temporal(kind) else values


def _codes(array: pa.Array, labels: pa.Array) -> NDArray[np.int32]:
    if pt.is_dictionary(array.type):
        places = np.append(_codes(array.dictionary, labels), np.int32(-1))
        numbers = array.indices.cast(pa.int64()).fill_null(len(places) - 1) if array.null_count else array.indices
        indices: NDArray[Any] = numbers.to_numpy(zero_copy_only=False)
        return np.asarray(places[indices], dtype=np.int32)
    found = pc.index_in(array.cast(labels.type), value_set=labels)
    codes: NDArray[np.int32] = found.fill_null(place_of_others(labels)).to_numpy(zero_copy_only=False).astype(np.int32)
    return codes


def room_for_labels(arrow_type: pa.DataType) -> int:
    """How many labels a column of this type may have: as many as the indices of a dictionary can number."""
    return room(arrow_type.index_type if pt.is_dictionary(arrow_type) else pa.int32())


def labelled(codes: pa.Array, labels: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    """The labels with these numbers, as text or as a dictionary."""
    if labels[:1].null_count:
        codes, labels = pc.if_else(pc.equal(codes, 0), None, pc.subtract(codes, 1)), labels[1:]
    if not len(labels):
        return pa.nulls(len(codes), arrow_type)
    if pt.is_dictionary(arrow_type):
        room, others = room_for_labels(arrow_type), place_of_others(labels)
        if len(labels) > room:  # one too many: all labels that the type has room for, and the one for others
            codes = pc.if_else(pc.less(codes, room), codes, pa.scalar(None if others < 0 else others, codes.type))
            labels = labels[:room]
        typed = labels.cast(arrow_type.value_type)
        indices = codes.cast(arrow_type.index_type)
        return pa.DictionaryArray.from_arrays(indices, typed, ordered=arrow_type.ordered)
    return labels.take(codes).cast(arrow_type)


def _nulls(array: pa.Array) -> NDArray[np.bool_] | None:
    nulls: NDArray[np.bool_] | None = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    if not pt.is_dictionary(array.type) or not array.dictionary.null_count:
        return nulls
    of_labels = array.dictionary.is_null().to_numpy(zero_copy_only=False)
    inside: NDArray[np.bool_] = of_labels[array.indices.fill_null(0).to_numpy(zero_copy_only=False)]
    return inside if nulls is None else inside | nulls


def _missing(nulls: NDArray[np.bool_] | None) -> NDArray[np.uint8] | None:
    return None if nulls is None else np.where(nulls, NULL, PRESENT).astype(np.uint8)


def is_text(arrow_type: pa.DataType) -> bool:
    """Whether cells of this type are text, each written out."""
    return bool(pt.is_string(arrow_type) or pt.is_large_string(arrow_type) or pt.is_string_view(arrow_type))


def _is_short_decimal(arrow_type: pa.DataType) -> bool:
    if not pt.is_decimal(arrow_type):
        return False
    return bool(arrow_type.precision <= _MAX_DIGITS and abs(arrow_type.scale) <= _MAX_DIGITS)


def _tick(arrow_type: pa.DataType) -> int:
    return _DAY if pt.is_date(arrow_type) else _TICKS[arrow_type.unit]


def _tick_dtype(arrow_type: pa.DataType) -> np.dtype[Any]:
    return np.dtype(np.int32 if pt.is_date(arrow_type) or pt.is_time32(arrow_type) else np.int64)


def _unscaled(array: pa.Array) -> NDArray[np.float64]:
    wide = array.cast(pa.decimal128(array.type.precision, array.type.scale))
    words = np.frombuffer(wide.buffers()[1], dtype="<i8")[2 * wide.offset : 2 * (wide.offset + len(wide))]
    low, high = words[::2], words[1::2]
    long = high * 2.0**64 + low.astype(np.uint64).astype(np.float64)
    whole = np.where(high == low >> 63, low.astype(np.float64), long)  # a short number's high word extends its sign
    return whole if not array.null_count else np.where(array.is_null().to_numpy(zero_copy_only=False), 0.0, whole)


def _decimals(values: NDArray[Any], nulls: NDArray[np.bool_] | None, arrow_type: pa.DataType) -> pa.Array:
    digits = arrow_type.precision
    most = 10.0**digits - 1 if digits <= 15 else np.nextafter(10.0**digits, 0.0)
    whole = np.rint(np.clip(values * 10.0**arrow_type.scale, -most, most))
    short = np.abs(whole) < 2.0**63
    high = np.where(short, 0.0, np.floor(whole / 2.0**64))
    low = np.where(short, 0.0, whole - high * 2.0**64).astype(np.uint64).view(np.int64)
    whole = np.where(short, whole, 0.0).astype(np.int64)
    words = np.stack([np.where(short, whole, low), np.where(short, whole >> 63, high.astype(np.int64))], axis=1)
    valid = None if nulls is None else pa.array(~nulls).buffers()[1]
    wide = pa.decimal128(digits, arrow_type.scale)
    data = pa.py_buffer(words.astype("<i8").tobytes())
    return pa.Array.from_buffers(wide, len(values), [valid, data]).cast(arrow_type)


def decoded(array: pa.Array) -> pa.Array:
    """Labels of a dictionary written out, and views as the text that Arrow's functions take."""
    if not pt.is_dictionary(array.type):
        return array.cast(pa.large_string()) if pt.is_string_view(array.type) else array
    return pa.DictionaryArray.from_arrays(array.indices, decoded(array.dictionary)).dictionary_decode()
