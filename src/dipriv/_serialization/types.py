"""Arrow types of columns <-> plain data: by name, from a list. Arrow's own form could name types that run code."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.types as pt

_UNITS = ("s", "ms", "us", "ns")
_NAMED: dict[str, pa.DataType] = {
    str(known): known
    for known in (
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        *(pa.float16(), pa.float32(), pa.float64(), pa.bool_(), pa.string(), pa.large_string(), pa.string_view()),
        *(pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
        *(pa.duration(unit) for unit in _UNITS),
        *(pa.timestamp(unit) for unit in _UNITS),
    )
}
_MAX_ZONE = 64
"""The longest name of a time zone."""
_MAX_DIGITS = 38
"""The largest precision of a decimal number."""


def type_to_plain(arrow_type: pa.DataType) -> dict[str, Any]:
    """Raises ValueError for a type that no column of dipriv has."""
    if pt.is_dictionary(arrow_type):
        inner = type_to_plain(arrow_type.index_type), type_to_plain(arrow_type.value_type)
        return {"arrow": "dictionary", "index": inner[0], "values": inner[1], "ordered": arrow_type.ordered}
    if pt.is_decimal(arrow_type):
        name = str(arrow_type).partition("(")[0]
        return {"arrow": name, "precision": arrow_type.precision, "scale": arrow_type.scale}
    if pt.is_timestamp(arrow_type) and arrow_type.tz is not None:
        return {"arrow": str(pa.timestamp(arrow_type.unit)), "zone": arrow_type.tz}
    if str(arrow_type) not in _NAMED:
        raise ValueError("not a type of columns")
    return {"arrow": str(arrow_type)}


def type_from_plain(plain: dict[str, Any]) -> pa.DataType:
    """The inverse; raises for anything else."""
    name, keys = plain["arrow"], plain.keys() - {"arrow"}
    if name == "dictionary" and keys == {"index", "values", "ordered"}:
        index, values = type_from_plain(plain["index"]), type_from_plain(plain["values"])
        if pt.is_integer(index) and not pt.is_dictionary(values) and isinstance(plain["ordered"], bool):
            return pa.dictionary(index, values, plain["ordered"])
    elif name in ("decimal32", "decimal64", "decimal128", "decimal256") and keys == {"precision", "scale"}:
        precision, scale = plain["precision"], plain["scale"]
        if type(precision) is type(scale) is int and max(precision, abs(scale)) <= _MAX_DIGITS:
            return getattr(pa, name)(precision, scale)
    elif keys == {"zone"} and pt.is_timestamp(_NAMED[name]):
        return _zoned(_NAMED[name].unit, plain["zone"])
    elif not keys:
        return _NAMED[name]
    raise ValueError("not a type of columns")


def _zoned(unit: str, zone: object) -> pa.DataType:
    """A timestamp of a zone that there is."""
    if not isinstance(zone, str) or not 0 < len(zone) <= _MAX_ZONE or not zone.isascii():
        raise ValueError("not a time zone")
    zoned = pa.timestamp(unit, zone)
    pa.scalar(0, zoned).as_py()
    return zoned
