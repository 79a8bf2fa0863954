"""The canonical form of a cell is that of a plain reading of its text, and its hash is SipHash."""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dipriv.sources import _cells
from dipriv.sources._cells import cell_hashes

KEY = np.array([0x0706050403020100, 0x0F0E0D0C0B0A0908], np.uint64)
MASK = 2**64 - 1
DIGITS = st.text("0123456789", max_size=22)
NUMBERS = st.builds(
    "{}{}{}{}{}".format,
    st.sampled_from(["", "+", "-", " "]),
    DIGITS,
    st.sampled_from(["", "."]),
    DIGITS,
    st.just("") | st.integers(-330, 330).map("e{}".format),
)
MOMENTS = st.builds(
    lambda day, sep, time, zone: f"{day}{sep}{time}{zone}",
    st.dates().map(dt.date.isoformat) | st.sampled_from(["2023-02-29", "2024-02-29", "2024-04-31", "0000-01-01"]),
    st.sampled_from(["", "T", " "]),
    st.just("") | st.times().map(dt.time.isoformat) | st.sampled_from(["10:30", "24:00:00"]),
    st.sampled_from(["", "Z", "+02:00", "-0530", " +01"]),
)
WORDS = st.sampled_from(
    ["", " ", "NA", "n/a", "-", "nan", "-NaN", "inf", "-Infinity", "+inf", "True", "FALSE", "#N/A N/A"]
)
MARKED = st.text("0123456789.,-+e'\"", max_size=14)
CELLS = WORDS | NUMBERS | MOMENTS | MARKED | st.text(max_size=20) | st.times().map(dt.time.isoformat)


def siphash(message: bytes, *, rounds: tuple[int, int] = (1, 3), wide: bool = True) -> tuple[int, ...]:
    """The paper's algorithm in Python integers; 128 bits as its authors' reference implementation makes them."""
    k = [int(word) for word in KEY]
    v = [
        k[0] ^ 0x736F6D6570736575,
        k[1] ^ 0x646F72616E646F6D ^ (0xEE if wide else 0),
        k[0] ^ 0x6C7967656E657261,
        k[1] ^ 0x7465646279746573,
    ]

    def turned(word: int, by: int) -> int:
        return (word << by | word >> (64 - by)) & MASK

    def mix(times: int) -> None:
        for _ in range(times):
            v[0] = (v[0] + v[1]) & MASK
            v[1] = turned(v[1], 13) ^ v[0]
            v[0] = turned(v[0], 32)
            v[2] = (v[2] + v[3]) & MASK
            v[3] = turned(v[3], 16) ^ v[2]
            v[0] = (v[0] + v[3]) & MASK
            v[3] = turned(v[3], 21) ^ v[0]
            v[2] = (v[2] + v[1]) & MASK
            v[1] = turned(v[1], 17) ^ v[2]
            v[2] = turned(v[2], 32)

    padded = message + bytes(-(len(message) + 1) % 8) + bytes([len(message) % 256])
    for (word,) in struct.iter_unpack("<Q", padded):
        v[3] ^= word
        mix(rounds[0])
        v[0] ^= word
    v[2] ^= 0xEE if wide else 0xFF
    mix(rounds[1])
    first = v[0] ^ v[1] ^ v[2] ^ v[3]
    if not wide:
        return (first,)
    v[1] ^= 0xDD
    mix(rounds[1])
    return first, v[0] ^ v[1] ^ v[2] ^ v[3]


def test_the_twin_is_siphash() -> None:
    """The example in appendix A of the paper, and the first vector of 128 bits of the reference implementation."""
    assert siphash(bytes(range(15)), rounds=(2, 4), wide=False) == (0xA129CA6149BE45E5,)
    first, second = siphash(b"", rounds=(2, 4))
    assert struct.pack("<QQ", first, second).hex() == "a3817f04ba25a8e66df67214c7550293"


def canonical(text: str) -> bytes:
    """What is hashed, by Python's own readers of numbers and dates."""
    blank = "".join(map(chr, range(33)))
    text = text.strip(blank)
    text = text[1:-1].strip(blank) if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text
    text = with_points(text)
    low = text.lower() if text.isascii() else text
    if low in ("", *_cells._MARKS) or low in ("+nan",):
        return struct.pack("<qB", 0, _cells.MISSING)
    if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,4})?", low, re.ASCII) or re.fullmatch(r"[+-]?inf(inity)?", low):
        return of_number(text)
    if low in ("true", "false"):
        return struct.pack("<qB", low == "true", _cells.BOOLEAN)
    if re.fullmatch(r"\d\d:\d\d(:\d\d(\.\d{1,9})?)?", text, re.ASCII) and (time := of_time(text)) is not None:
        return struct.pack("<qB", time, _cells.TIME)
    zone = r"(?P<zone>Z| ?[+-]\d\d(:?\d\d)?)?"
    found = re.fullmatch(
        rf"(?P<day>\d{{4}}-\d\d-\d\d)([T ](?P<time>\d\d:\d\d(:\d\d(\.\d{{1,9}})?)?){zone})?", text, re.ASCII
    )
    if found and (moment := of_moment(found)) is not None:
        return struct.pack("<qB", moment, _cells.MOMENT)
    return text.encode() + bytes([_cells.TEXT])


def with_points(text: str) -> str:
    """A number with a decimal point, and without marks between groups of three digits."""
    marks = re.fullmatch(r"([+-]?)(\d*)((?:[.,]\d*)*)((?:[eE][+-]?\d{1,4})?)", text, re.ASCII)
    if marks is None:
        return text
    sign, first, rest, exponent = marks.groups()
    for group, decimal in ((r"\.", ","), (",", r"\.")):
        if re.fullmatch(rf"({group}\d{{3}}){{2,}}", rest):
            return sign + first + re.sub(r"[.,]", "", rest) + exponent
        if found := re.fullmatch(rf"((?:{group}\d{{3}})+){decimal}(\d*)", rest):
            return f"{sign}{first}{re.sub('[.,]', '', found[1])}.{found[2]}{exponent}"
    return text.replace(",", ".") if len(re.findall("[.,]", rest)) == 1 and re.search(r"\d", first + rest) else text


def of_number(text: str) -> bytes:
    if math.isfinite(value := float(text)):
        exact = Decimal(text)
        least, most = (-(2**63), 2**63) if re.fullmatch(r"\s*[+-]?\d+", text) else (1 - 2**53, 2**53)
        if exact == exact.to_integral_value() and least <= exact < most:
            return struct.pack("<qB", int(exact), _cells.NUMBER)
    if value.is_integer() and abs(value) < 2.0**63:
        return struct.pack("<qB", int(value), _cells.NUMBER)
    (bits,) = struct.unpack("<q", struct.pack("<d", value))
    rounded = bits if math.isinf(value) else (bits + (1 << 28)) >> 29 << 29
    (value,) = struct.unpack("<d", struct.pack("<q", rounded))
    if math.isfinite(value) and value.is_integer() and abs(value) < 2.0**63:
        return struct.pack("<qB", int(value), _cells.NUMBER)
    return struct.pack("<qB", rounded, _cells.REAL)


def of_time(text: str) -> int | None:
    hours, minutes, seconds = [*text.split(":"), "0"][:3]
    whole, _, fraction = seconds.partition(".")
    if int(hours) > 23 or int(minutes) > 59 or int(whole) > 59:
        return None
    return ((int(hours) * 60 + int(minutes)) * 60 + int(whole)) * 1_000_000 + int(fraction.ljust(6, "0")[:6])


def of_moment(found: re.Match[str]) -> int | None:
    try:  # Python has no year 0, a leap year
        day = dt.date.fromisoformat(found["day"].replace("0000", "0400", 1)).toordinal()
    except ValueError:
        return None
    day -= 146_097 if found["day"].startswith("0000") else 0
    time = of_time(found["time"] or "00:00")
    offset = re.sub(r"[ :]", "", found["zone"] or "")
    minutes = 0 if offset in ("", "Z") else int(offset[:3]) * 60 + int(offset[0] + (offset[3:] or "0"))
    if time is None or (offset not in ("", "Z") and (int(offset[1:3]) > 23 or int(offset[3:] or 0) > 59)):
        return None
    return (day - dt.date(1970, 1, 1).toordinal()) * 86_400_000_000 + time - minutes * 60_000_000


def hashes(*cells: Any, kind: pa.DataType | None = None) -> list[tuple[int, int]]:
    found = cell_hashes(pa.array(cells, kind, from_pandas=False), KEY)
    return [(int(high), int(low)) for high, low in zip(*found, strict=True)]


@settings(max_examples=400)
@given(CELLS)
@example("0.1")
@example("1e-320")
@example("9007199254740993")
@example("9223372036854775808")
@example("123456789012345678")
@example("9223372036854775807")
@example("-9223372036854775808")
@example("-9223372036854775809")
@example("0001234567890123456789")
@example("16777216.5")
@example("0.30000000000000004441")
@example("31.000")
@example("1e400")
@example("0.99999999")
@example("4194304.9")
@example("-0.99999999")
@example("8388607.75")
@example("16777217.0")
@example("-0")
@example("-")
@example("-.5")
@example("5.")
@example("00012")
@example("000000000000001")
@example("0000000000000001")
@example("-123456789012345")
@example("1234567890.12345")
@example("12345678901.23456")
@example("1.50")
@example("-7.00")
@example("0.0")
@example("-0.0")
@example("1.2.3")
@example("--1")
@example("1-2")
@example("2024-02-29 23:59:59.9999999+01:00")
@example("1234567")
@example("12345678")
@example("\u0661")
@example("1,5")
@example("-0,25e3")
@example("1.234,56")
@example("1,234,567.5")
@example("1.234.567")
@example("1.234.56")
@example("01.02.2024")
@example(".123,5")
@example("12345678901234567890,5")
@example("'7 '")
@example('"1,5"')
@example('"')
@example("','")
def test_the_canonical_form_is_that_of_plain_readers(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    assert hashes(text, kind=pa.string()) == [siphash(canonical(text))]


def same(*arrays: pa.Array) -> bool:
    return len({tuple(map(tuple, np.transpose(cell_hashes(array, KEY)).tolist())) for array in arrays}) == 1


def test_numbers_are_the_same_in_every_type() -> None:
    texts = pa.array(["31", "0", "-7", None])
    numbers = pa.array([31, 0, -7, None])
    kinds = (
        pa.int8(),
        pa.int64(),
        pa.float16(),
        pa.float32(),
        pa.float64(),
        pa.decimal128(30, 3),
        pa.decimal256(40, 2),
    )
    assert same(texts, *(numbers.cast(kind) for kind in kinds))
    assert same(pa.array(["31.0", "+0", "-7e0", "NA"]), texts, texts.dictionary_encode(), texts.cast(pa.string_view()))
    assert same(pa.array(["18446744073709551615", "3"]), pa.array([2**64 - 1, 3], pa.uint64()))
    assert not same(pa.array([2**60]), pa.array([2**60 + 1]))  # control: whole numbers are exact


@given(st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=20))
def test_a_float32_is_the_same_as_its_text(values: list[float]) -> None:
    narrow = pa.array(values, pa.float32())
    texts = pa.array([str(value) for value in np.array(values, np.float32)])
    normal = [2.0**-126 <= abs(value) <= 2.0**24 or value in (0, math.inf, -math.inf) for value in values]
    picked = pa.array(normal)
    assert same(narrow.filter(picked), narrow.cast(pa.float64()).filter(picked), texts.filter(picked))


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=20))
def test_a_float64_is_the_same_as_its_text(values: list[float]) -> None:
    assert same(pa.array(values), pa.array([repr(value) for value in values]))


def test_moments_are_the_same_in_every_unit_and_as_text() -> None:
    moments = pa.array([0, -86_400, 951_782_400, None], pa.timestamp("s"))
    texts = pa.array(["1970-01-01", "1969-12-31T00:00:00", "2000-02-29 00:00:00.000Z", "NaT"])
    units = [moments.cast(pa.timestamp(unit)) for unit in ("ms", "us", "ns")]
    zoned = [moments.cast(pa.timestamp("us", zone)) for zone in ("UTC", "Europe/Zurich")]
    assert same(texts, moments, *units, *zoned, moments.cast(pa.date32()), moments.cast(pa.date64()))
    assert same(pa.array(["10:30:00", "00:00"]), pa.array([dt.time(10, 30), dt.time(0)], pa.time64("us")))
    assert not same(pa.array([0], pa.timestamp("s")), pa.array([0], pa.duration("s")))  # control


def test_missing_cells_are_the_same() -> None:
    marks = ["", " ", "NA", "n/a", "NULL", "None", "-", "?", "nan", "<NA>", "#N/A", "-1.#IND"]
    assert len({*hashes(*marks), *hashes(None, kind=pa.float64()), *hashes(math.nan), *hashes(None)}) == 1
    assert len({*hashes("0", "x", "")}) == 3  # control
    assert same(pa.array([True, False, None]), pa.array(["true", "False", ""]))


def test_what_lies_under_a_null_does_not_matter() -> None:
    valid = pa.array([True, False, True]).buffers()[1]
    for kind in (pa.int32(), pa.float64(), pa.uint64(), pa.timestamp("us")):
        hidden = [pa.array(cells, pa.int64()).cast(kind) for cells in ([1, 2, 3], [1, 9, 3])]
        assert same(*(pa.Array.from_buffers(kind, 3, [valid, array.buffers()[1]]) for array in hidden))
        assert not same(*hidden)  # control
    texts = [pa.array(cells) for cells in (["a", "b", "c"], ["a", "", "c"])]
    shown = [pa.Array.from_buffers(pa.string(), 3, [valid, *array.buffers()[1:]]) for array in texts]
    assert same(*shown, pa.array(["a", None, "c"]))


def test_how_cells_are_stored_does_not_matter() -> None:
    texts = pa.array(["ab", None, "c d", "ab"] * 600)  # so many that distinct ones are hashed once
    stored = [texts.cast(pa.large_string()), texts.dictionary_encode(), texts.cast(pa.binary())]
    assert same(texts, *stored, pa.concat_arrays([texts, texts]).slice(len(texts)))
    many = pa.array([f"{i}" for i in range(3000)])
    assert same(many, many.dictionary_encode(), pa.array(range(3000)))
    few = pa.DictionaryArray.from_arrays(pa.array([2, None, 0]), pa.array(["z", "unused", None]))
    assert same(few, pa.array([None, None, "z"]))
    assert same(pa.array([bytes(16)], pa.uuid()), pa.array([bytes(16)]))
    assert same(pa.array([[1, 2], None]), pa.array([[1, 2], None], pa.large_list(pa.int64())))


@pytest.mark.parametrize("kind", [pa.null(), pa.string(), pa.int64(), pa.float64(), pa.decimal128(5, 1)])
def test_no_cells_have_no_hashes(kind: pa.DataType) -> None:
    assert hashes(kind=kind) == []
