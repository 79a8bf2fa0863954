"""Cells in one canonical form, hashed with a key: equal cells have equal hashes, however a library or file stores them.

The canonical form of a cell is that of the text in a CSV file, read by fixed rules:

* missing: null, NaN, NaT, an empty text, and the usual marks for missing values (NA, n/a, null, None, -, ?);
* numbers by value, whole numbers exactly and others to 24 significant bits, the precision of float32, so that `0.1` as
  text, float32, float64 and decimal are the same cell; a comma in a text is a decimal mark, as in `0,1` and `1.234,5`,
  unless a point follows it, as in `1,234.5`;
* dates and times as microseconds since 1970 in UTC, a date as its midnight, also from texts that begin with the year
  (2024-03-05, 2024/3/5);
* times of day, durations and truth values (true, False); all other texts as they are, without spaces at the ends;
* all texts without a pair of quotes around them, which an option can make a part of the cells.

The hash is SipHash-1-3 with 128 bits, a keyed pseudorandom function (Aumasson and Bernstein, 2012), of the canonical
form and its kind.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from dipriv._base.jit import jit
from dipriv._tables.any_values import run_places

Words: TypeAlias = NDArray[np.uint64]
MISSING, NUMBER, REAL, BOOLEAN, MOMENT, TIME, DURATION, TEXT, ROW = range(9)
"""Kinds of cells: the last byte of what is hashed. A whole number is a NUMBER; a REAL is given by its bits."""

_MARKS = (
    *("na", "n/a", "#n/a", "#na", "#n/a n/a", "<na>", "nan", "nat", "null", "none", "-", "--", ".", "?"),
    *("-nan", "1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan"),
)
_HARD, _INFINITE = 20, 21
"""What `_read` gives besides kinds: a number that needs exact arithmetic, and an infinite REAL by its bits."""
_SAMPLE = 1024
"""The number of texts to look at first: if most of them are repeated, each distinct one is hashed once."""
_DAY = 86_400_000_000
_MAX_INT = (1 << 63) - 1
_LOW_BITS = 29
"""The bits of a float64 beyond the 24 significant ones of a float32."""


class Hashes(NamedTuple):
    """128 bits for each cell, in two words."""

    high: Words
    low: Words

    @classmethod
    def empty(cls, count: int) -> Hashes:
        return cls(np.empty(count, np.uint64), np.empty(count, np.uint64))


def _packed(word: str) -> int:
    return int.from_bytes(word.encode(), "little")


_MARK_WORDS = np.array([_packed(mark) for mark in _MARKS], dtype=np.uint64)
_TRUE, _FALSE, _INF, _INFINITY, _NAN = (
    np.uint64(_packed(word)) for word in ("true", "false", "inf", "infinity", "nan")
)
_POWERS = np.array([float(f"1e{exponent}") for exponent in range(309)])
_NO_BYTES = np.zeros(1, np.uint8)
_BLANK = bytes(range(33))
"""The bytes at the ends of a text that are no part of its canonical form: spaces and control characters."""


def cell_hashes(array: pa.Array, key: Words) -> Hashes:
    """The keyed hashes of the cells of an Arrow array of any type; `key` is two words."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return cell_hashes(array.storage, key)
    if pt.is_dictionary(kind):
        few = len(array.dictionary) <= len(array)
        return _of_dictionary(array, key) if few else cell_hashes(array.dictionary_decode(), key)
    if pt.is_run_end_encoded(kind):
        values, places = cell_hashes(array.values, key), run_places(array)
        return Hashes(values.high[places], values.low[places])
    if _is_text(kind) or _is_binary(kind):
        first = array[:_SAMPLE]
        repeats = len(array) > _SAMPLE and not pt.is_string_view(kind) and len(first.unique()) < _SAMPLE // 8
        return _of_dictionary(array.dictionary_encode(), key) if repeats else _of_texts(array, key)
    if pt.is_decimal(kind):
        return _of_texts(array.cast(pa.string()), key)
    if pt.is_null(kind):
        return hash_words(np.zeros(len(array), np.int64), np.full(len(array), MISSING, np.uint8), key)
    if pt.is_floating(kind) or pt.is_uint64(kind):
        return hash_words(*_words_of_floats(array), key)
    if pt.is_integer(kind) or pt.is_boolean(kind) or (pt.is_temporal(kind) and not pt.is_interval(kind)):
        return hash_words(*_words_of_integers(array), key)
    return _of_objects(array, key)


def value_hashes(array: pa.Array, key: Words) -> Hashes:
    """The keyed hashes of the values of a column, without nulls: texts are equal that are written alike, but for spaces
    at their ends; others by their exact values.
    """
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return value_hashes(array.storage, key)
    if pt.is_dictionary(kind):
        labels, places = value_hashes(array.dictionary, key), array.indices.to_numpy(zero_copy_only=False)
        return Hashes(labels.high[places], labels.low[places])
    if pt.is_run_end_encoded(kind):
        labels, places = value_hashes(array.values, key), run_places(array)
        return Hashes(labels.high[places], labels.low[places])
    if pt.is_floating(kind):
        values = array.to_numpy(zero_copy_only=False).astype(np.float64) + 0.0  # -0.0 is 0.0
        return hash_words(values.view(np.int64), np.full(len(array), REAL, np.uint8), key)
    if pt.is_integer(kind) or (pt.is_temporal(kind) and not pt.is_interval(kind)):
        if pt.is_temporal(kind):
            array = array.view(pa.int32() if kind.bit_width == 32 else pa.int64())
        words = array.to_numpy(zero_copy_only=False).astype(np.int64)
        return hash_words(words, np.full(len(array), NUMBER, np.uint8), key)
    if not (_is_text(kind) or _is_binary(kind)):
        array = array.cast(pa.string()) if pt.is_decimal(kind) or pt.is_boolean(kind) else _all_written(array)
    text, ends = _bytes_of(array)
    found = Hashes.empty(len(array))
    _hash_trimmed(text, ends, key[0], key[1], found.high, found.low)
    return found


def canonical_cells(array: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """The words and kinds of keys of persons, of an array without nulls that is no dictionary.

    They are the canonical forms, but that texts are dates in ISO 8601 alone: who is held out by them must not change.
    """
    kind = array.type
    if pt.is_floating(kind) or pt.is_uint64(kind):
        return _words_of_floats(array)
    if pt.is_integer(kind) or pt.is_boolean(kind) or (pt.is_temporal(kind) and not pt.is_interval(kind)):
        return _words_of_integers(array)
    if not (_is_text(kind) or _is_binary(kind)):
        array = array.cast(pa.string()) if pt.is_decimal(kind) else _all_written(array)
    _, words, kinds, _ = _read_all(array, of_keys=True)
    return words, kinds


def row_hashes(sums: Hashes, key: Words) -> Hashes:
    """Keyed hashes of rows, of the sums of their cells' hashes: rows of the same cells have the same one."""
    found = Hashes.empty(len(sums.high))
    _hash_rows(sums.high, sums.low, key[0], key[1], found.high, found.low)
    return found


def hash_words(values: NDArray[np.int64], kinds: NDArray[np.uint8], key: Words) -> Hashes:
    """The keyed hashes of cells that are no TEXT, by their words and kinds."""
    found = Hashes.empty(len(values))
    _hash_words(values, kinds, key[0], key[1], found.high, found.low)
    return found


def _of_dictionary(array: pa.DictionaryArray, key: Words) -> Hashes:
    """Each label is hashed once; an index that is null is a missing cell."""
    labels = cell_hashes(pa.concat_arrays([array.dictionary, pa.nulls(1, array.dictionary.type)]), key)
    places = array.indices.cast(pa.int64()).fill_null(len(array.dictionary)).to_numpy(zero_copy_only=False)
    return Hashes(labels.high[places], labels.low[places])


def _words_of_floats(array: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    if pt.is_uint64(array.type):
        exact = _filled(array)
        kinds = np.full(len(exact), NUMBER, np.uint8)
        words = exact.astype(np.int64)
        large = exact >= 1 << 63
        words[large], kinds[large] = _canonical_numbers(exact[large].astype(np.float64))
    else:
        words, kinds = _canonical_numbers(_filled(array).astype(np.float64, copy=False))
    return words, _with_missing(kinds, array)


def _canonical_numbers(values: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    words, kinds = np.empty(len(values), np.int64), np.empty(len(values), np.uint8)
    _numbers(np.ascontiguousarray(values), words, kinds)
    return words, kinds


def _words_of_integers(array: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    arrow_type = array.type
    kind, words = NUMBER, None
    if pt.is_boolean(arrow_type):
        kind, array = BOOLEAN, array.cast(pa.int8())
    elif pt.is_date(arrow_type):
        kind = MOMENT
        words = _filled(array.cast(pa.date32(), safe=False).cast(pa.int32())).astype(np.int64) * _DAY
    elif pt.is_temporal(arrow_type):
        kind = MOMENT if pt.is_timestamp(arrow_type) else TIME if pt.is_time(arrow_type) else DURATION
        ticks = _filled(array.cast(pa.int32() if pt.is_time32(arrow_type) else pa.int64())).astype(np.int64)
        factors = {"s": 1_000_000, "ms": 1000, "us": 1}
        words = ticks // 1000 if arrow_type.unit == "ns" else ticks * factors[arrow_type.unit]
    if words is None:
        words = _filled(array).astype(np.int64, copy=False)
    return words, _with_missing(np.full(len(words), kind, np.uint8), array)


def _with_missing(kinds: NDArray[np.uint8], array: pa.Array) -> NDArray[np.uint8]:
    if array.null_count:
        kinds[array.is_null().to_numpy(zero_copy_only=False)] = MISSING
    return kinds


def _filled(array: pa.Array) -> NDArray[Any]:
    values: NDArray[Any] = (array.fill_null(0) if array.null_count else array).to_numpy(zero_copy_only=False)
    return values


def _bytes_of(array: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """All texts one after the other, nulls as empty ones, and where each ends."""
    if not (pt.is_large_string(array.type) or pt.is_large_binary(array.type)):
        array = array.cast(pa.large_string() if _is_text(array.type) else pa.large_binary())
    if array.null_count:
        array = array.fill_null("" if pt.is_large_string(array.type) else b"")
    _, offsets, content = array.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    return _NO_BYTES if content is None or not content.size else np.frombuffer(content, dtype=np.uint8), ends


def _of_texts(array: pa.Array, key: Words) -> Hashes:
    text, words, kinds, places = _read_all(array)
    found = Hashes.empty(len(array))
    _hash_texts(text, words, kinds, places, key[0], key[1], found.high, found.low)
    return found


def _read_all(
    array: pa.Array, *, of_keys: bool = False
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64]]:
    """All texts one after the other; the word and kind of each, and where its canonical form starts and stops."""
    text, ends = _bytes_of(array)
    words, kinds = np.empty(len(array), np.int64), np.empty(len(array), np.uint8)
    places = np.empty((len(array), 2), np.int64)
    _read_texts(text, ends, _MARK_WORDS, _POWERS, not of_keys, words, kinds, places)
    hard = kinds == _HARD
    if hard.any():  # `_decimal` has read them to their ends, so that Python reads them, too
        numbers = np.array([_number(bytes(text[start:stop])) for start, stop in places[hard]])
        words[hard], kinds[hard] = _canonical_numbers(numbers)
    return text, words, kinds, places


def _number(text: bytes) -> float:
    """A text that `_decimal` has read to its end, by Python's own arithmetic."""
    text = text.strip(_BLANK)
    text = text[1:-1].strip(_BLANK) if text[:1] in (b'"', b"'") else text
    decimal = max(b",", b".", key=text.rfind)
    whole, mark, behind = text.rpartition(decimal) if text.count(decimal) == 1 else (text, b"", b"")
    return float(whole.replace(b",", b"").replace(b".", b"") + mark.replace(b",", b".") + behind)


def _of_objects(array: pa.Array, key: Words) -> Hashes:
    """Nested cells and intervals, written by Python, one by one and slowly."""
    return _of_texts(_all_written(array), key)


def _all_written(array: pa.Array) -> pa.Array:
    return pa.array([_written(cell) for cell in array], pa.large_string())


def _written(cell: pa.Scalar) -> str | None:
    """A cell as Python writes it; all those that Python does not have, such as a list with the year 10000, alike."""
    try:
        value = cell.as_py()
        return None if value is None else repr(value)
    except Exception:  # the message may hold the cell
        return "(object)"


def _is_text(arrow_type: pa.DataType) -> bool:
    return bool(pt.is_string(arrow_type) or pt.is_large_string(arrow_type) or pt.is_string_view(arrow_type))


def _is_binary(arrow_type: pa.DataType) -> bool:
    plain = pt.is_binary(arrow_type) or pt.is_large_binary(arrow_type) or pt.is_fixed_size_binary(arrow_type)
    return bool(plain or pt.is_binary_view(arrow_type))


# SipHash-1-3 with 128 bits


@jit
def _turned(word: np.uint64, by: int) -> np.uint64:
    return (word << np.uint64(by)) | (word >> np.uint64(64 - by))


@jit
def _mixed(a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    a += b
    c += d
    b = _turned(b, 13) ^ a
    d = _turned(d, 16) ^ c
    a = _turned(a, 32)
    c += b
    a += d
    b = _turned(b, 17) ^ c
    d = _turned(d, 21) ^ a
    c = _turned(c, 32)
    return a, b, c, d


@jit
def _started(k0: np.uint64, k1: np.uint64) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    return (
        k0 ^ np.uint64(0x736F6D6570736575),
        k1 ^ np.uint64(0x646F72616E646F6D ^ 0xEE),
        k0 ^ np.uint64(0x6C7967656E657261),
        k1 ^ np.uint64(0x7465646279746573),
    )


@jit
def _absorbed(
    a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64, word: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    d ^= word
    a, b, c, d = _mixed(a, b, c, d)
    return a ^ word, b, c, d


@jit
def _finished(a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64) -> tuple[np.uint64, np.uint64]:
    c ^= np.uint64(0xEE)
    a, b, c, d = _mixed(a, b, c, d)
    a, b, c, d = _mixed(a, b, c, d)
    a, b, c, d = _mixed(a, b, c, d)
    high = a ^ b ^ c ^ d
    b ^= np.uint64(0xDD)
    a, b, c, d = _mixed(a, b, c, d)
    a, b, c, d = _mixed(a, b, c, d)
    a, b, c, d = _mixed(a, b, c, d)
    return high, a ^ b ^ c ^ d


@jit
def _hash_word(value: np.uint64, kind: np.uint64, k0: np.uint64, k1: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Of nine bytes: the value and its kind."""
    a, b, c, d = _started(k0, k1)
    a, b, c, d = _absorbed(a, b, c, d, value)
    a, b, c, d = _absorbed(a, b, c, d, (np.uint64(9) << np.uint64(56)) | kind)
    return _finished(a, b, c, d)


@jit
def _hash_words(
    values: NDArray[np.int64], kinds: NDArray[np.uint8], k0: np.uint64, k1: np.uint64, high: Words, low: Words
) -> None:
    for i in range(len(values)):
        value = np.uint64(0) if kinds[i] == MISSING else np.uint64(values[i])
        high[i], low[i] = _hash_word(value, np.uint64(kinds[i]), k0, k1)


@jit
def _hash_rows(one: Words, other: Words, k0: np.uint64, k1: np.uint64, high: Words, low: Words) -> None:
    """Of 17 bytes: two words and the kind."""
    for i in range(len(one)):
        a, b, c, d = _started(k0, k1)
        a, b, c, d = _absorbed(a, b, c, d, one[i])
        a, b, c, d = _absorbed(a, b, c, d, other[i])
        a, b, c, d = _absorbed(a, b, c, d, (np.uint64(17) << np.uint64(56)) | np.uint64(ROW))
        high[i], low[i] = _finished(a, b, c, d)


@jit
def hash_shortly(value: np.uint64, kind: np.uint64, k0: np.uint64, k1: np.uint64) -> np.uint64:
    """The first 64 bits of `_hash_word`."""
    a, b, c, d = _started(k0, k1)
    a, b, c, d = _absorbed(a, b, c, d, value)
    a, b, c, d = _absorbed(a, b, c, d, (np.uint64(9) << np.uint64(56)) | kind)
    c ^= np.uint64(0xEE)
    a, b, c, d = _mixed(a, b, c, d)
    a, b, c, d = _mixed(a, b, c, d)
    a, b, c, d = _mixed(a, b, c, d)
    return a ^ b ^ c ^ d


@jit
def _hash_bytes(
    text: NDArray[np.uint8], start: int, stop: int, kind: int, k0: np.uint64, k1: np.uint64
) -> tuple[np.uint64, np.uint64]:
    """Of the text and its kind, which is the last byte."""
    a, b, c, d = _started(k0, k1)
    place = start
    while stop - place >= 8:
        word = np.uint64(0)
        for j in range(8):
            word |= np.uint64(text[place + j]) << np.uint64(8 * j)
        a, b, c, d = _absorbed(a, b, c, d, word)
        place += 8
    word = np.uint64(0)
    left = stop - place
    for j in range(left):
        word |= np.uint64(text[place + j]) << np.uint64(8 * j)
    word |= np.uint64(kind) << np.uint64(8 * left)
    size = np.uint64((stop - start + 1) & 255) << np.uint64(56)
    if left == 7:
        a, b, c, d = _absorbed(a, b, c, d, word)
        word = np.uint64(0)
    a, b, c, d = _absorbed(a, b, c, d, word | size)
    return _finished(a, b, c, d)


# Canonical forms


@jit
def _numbers(values: NDArray[np.float64], words: NDArray[np.int64], kinds: NDArray[np.uint8]) -> None:
    """Whole numbers exactly, others rounded to 24 significant bits; those that are whole then are whole numbers."""
    bits, rounded = values.view(np.int64), words.view(np.float64)
    for i in range(len(values)):
        value = values[i]
        if np.isnan(value):
            words[i], kinds[i] = 0, MISSING
            continue
        if np.floor(value) != value or abs(value) >= 2.0**63:
            words[i] = bits[i] if abs(value) == np.inf else (bits[i] + (1 << 28)) >> _LOW_BITS << _LOW_BITS
            value = rounded[i]
            if np.floor(value) != value or abs(value) >= 2.0**63:
                kinds[i] = REAL
                continue
        words[i], kinds[i] = np.int64(value), NUMBER


@jit
def _trimmed(text: NDArray[np.uint8], start: int, stop: int) -> tuple[int, int]:
    """Without spaces and control characters at the ends."""
    while start < stop and text[start] <= 32:
        start += 1
    while start < stop and text[stop - 1] <= 32:
        stop -= 1
    return start, stop


@jit
def _hash_trimmed(
    text: NDArray[np.uint8], ends: NDArray[np.int64], k0: np.uint64, k1: np.uint64, high: Words, low: Words
) -> None:
    for i in range(len(high)):
        start, stop = _trimmed(text, ends[i], ends[i + 1])
        high[i], low[i] = _hash_bytes(text, start, stop, TEXT, k0, k1)


@jit
def _hash_texts(
    text: NDArray[np.uint8],
    words: NDArray[np.int64],
    kinds: NDArray[np.uint8],
    places: NDArray[np.int64],
    k0: np.uint64,
    k1: np.uint64,
    high: Words,
    low: Words,
) -> None:
    """Hash what `_read_texts` found."""
    for i in range(len(words)):
        if kinds[i] == TEXT:
            high[i], low[i] = _hash_bytes(text, places[i, 0], places[i, 1], TEXT, k0, k1)
        else:
            high[i], low[i] = _hash_word(np.uint64(words[i]), np.uint64(kinds[i]), k0, k1)


@jit
def _read_texts(  # noqa: PLR0912 (a call with arrays takes longer than to read a number)
    text: NDArray[np.uint8],
    ends: NDArray[np.int64],
    marks: Words,
    powers: NDArray[np.float64],
    all_dates: bool,
    found: NDArray[np.int64],
    kind_of: NDArray[np.uint8],
    places: NDArray[np.int64],
) -> None:
    """The word and kind of each text, and where its canonical form starts and stops.

    Numbers that need exact arithmetic are marked as hard instead.
    """
    value = np.empty(1, np.float64)
    bits = value.view(np.int64)
    for i in range(len(ends) - 1):
        start, stop = ends[i], ends[i + 1]
        # [-] digits [. digits], up to 15 of them, as most numbers are written: what `_read` finds, without calls
        place, dot, digits, is_plain = start, -1, np.int64(0), 0 < stop - start <= 17
        if is_plain and text[start] == 45:
            place += 1
        first = place
        while is_plain and place < stop:
            byte = text[place]
            if 48 <= byte <= 57:
                digits = digits * 10 + np.int64(byte - 48)
            elif byte == 46 and dot < 0 and first < place < stop - 1:
                dot = place
            else:
                is_plain = False
            place += 1
        if is_plain and 0 < stop - first - (dot >= 0) <= 15:
            behind = 0 if dot < 0 else stop - 1 - dot
            while behind and digits % 10 == 0:
                digits //= 10
                behind -= 1
            kind, word = NUMBER, (digits if first == start else -digits)
            if behind:
                kind, value[0] = REAL, word / powers[behind]
        else:
            start, stop = _trimmed(text, start, stop)
            if stop - start > 1 and text[start] == text[stop - 1] and text[start] in (34, 39):  # quotes
                start, stop = _trimmed(text, start + 1, stop - 1)
            kind, word = _read(text, start, stop, marks, powers, all_dates, value)
        if kind == REAL:
            x = value[0]
            if abs(x - np.rint(x)) <= abs(x) * 2.0**-49 or abs((bits[0] & ((1 << _LOW_BITS) - 1)) - (1 << 28)) <= 16:
                kind = _HARD
            else:  # as `_numbers` does
                bits[0] = word = (bits[0] + (1 << 28)) >> _LOW_BITS << _LOW_BITS
                if np.floor(value[0]) == value[0]:
                    kind, word = NUMBER, np.int64(value[0])
        if kind == _INFINITE:
            kind = REAL
        found[i], kind_of[i], places[i, 0], places[i, 1] = word, kind, start, stop


@jit
def _read(  # noqa: PLR0912 (the forms of a cell, one after the other)
    text: NDArray[np.uint8],
    start: int,
    stop: int,
    marks: Words,
    powers: NDArray[np.float64],
    all_dates: bool,
    value: NDArray[np.float64],
) -> tuple[int, Any]:
    """The kind and the word of a text without spaces at its ends; of a REAL, `value` within some units of the last.

    Dates and times are those of ISO 8601, or all that `dipriv._tables` reads as they are, with the year first.
    """
    size = stop - start
    if size == 0:
        return MISSING, 0
    first = text[start]
    if 43 <= first <= 57:  # + , - . / and digits
        sign = text[start + 4] if size >= 8 else np.uint8(0)
        is_date = 45 <= sign <= 47 and (text[start + 6] == sign or text[start + 7] == sign)
        if is_date and (all_dates or sign == 45):
            kind, word = _moment(text, start, stop, all_dates)
        elif size >= 4 and (text[start + 1] == 58 or text[start + 2] == 58):
            kind, word = _time(text, start, stop, all_dates)
        else:
            kind, word = _decimal(text, start, stop, powers, value)
        if kind != TEXT:
            return kind, word
    if size > 9:
        return TEXT, 0
    signed = size > 3 and first in (43, 45) and text[start + 1] > 64
    packed, place = np.uint64(0), start + signed
    if stop - place > 8:
        return TEXT, 0
    for j in range(stop - place):
        byte = text[place + j]
        byte = byte + 32 if 65 <= byte <= 90 else byte
        packed |= np.uint64(byte) << np.uint64(8 * j)
    if packed in (_INF, _INFINITY):
        words = value.view(np.int64)
        value[0] = -np.inf if first == 45 else np.inf
        return _INFINITE, words[0]
    if signed:
        return (MISSING, 0) if packed == _NAN else (TEXT, 0)
    if packed in (_TRUE, _FALSE):
        return BOOLEAN, (1 if packed == _TRUE else 0)
    for mark in marks:
        if packed == mark:
            return MISSING, 0
    return TEXT, 0


@jit
def _decimal(  # noqa: PLR0912, PLR0915 (one pass over the characters)
    text: NDArray[np.uint8], start: int, stop: int, powers: NDArray[np.float64], value: NDArray[np.float64]
) -> tuple[int, Any]:
    """[+-] digits [. digits] [e [+-] digits], as a whole NUMBER, a REAL, a hard number, or no number.

    A comma may be the decimal mark, and the other mark may separate groups of three digits.
    """
    place, negative = start, text[start] == 45
    if text[place] == 43 or negative:
        place += 1
    digits, exponent, count, seen, dot = np.int64(0), 0, 0, 0, False
    mark, groups, decided = 0, False, False
    while place < stop:
        byte = text[place]
        if 48 <= byte <= 57:
            seen += 1
            if count < 18:
                digits = digits * 10 + np.int64(byte - 48)
            if digits or count:
                count += 1
            if dot:
                exponent -= 1
        elif byte in (44, 46) and not dot:
            dot, mark = True, int(byte)
        elif byte in (44, 46) and exponent == -3 and not decided:  # the mark before separates groups
            groups, decided = byte == mark, byte != mark
            exponent = 0
        else:
            break
        place += 1
    if seen == 0 or (groups and exponent != -3):
        return TEXT, 0
    if groups:
        exponent = 0
    plain = place == stop and not dot  # else it was a float, which has 53 bits
    if place < stop:
        if text[place] != 101 and text[place] != 69:
            return TEXT, 0
        place += 1
        down = place < stop and text[place] == 45
        if place < stop and (text[place] == 43 or down):
            place += 1
        if place == stop or stop - place > 4:
            return TEXT, 0
        shift = 0
        while place < stop:
            if not 48 <= text[place] <= 57:
                return TEXT, 0
            shift = shift * 10 + int(text[place] - 48)
            place += 1
        exponent += -shift if down else shift
    if count == 19 and plain:
        last = np.int64(text[stop - 1]) - 48
        if digits < _MAX_INT // 10 or (digits == _MAX_INT // 10 and last <= _MAX_INT % 10 + negative):
            return NUMBER, (-10 * digits - last if negative else 10 * digits + last)
    if count > 18:
        return _HARD, 0
    if digits == 0:
        return NUMBER, 0
    while exponent < 0 and digits % 10 == 0:
        digits //= 10
        exponent += 1
    while exponent > 0 and digits < 10**17:
        digits *= 10
        exponent -= 1
    if exponent == 0 and digits >= 1 << 53 and not plain:
        return _HARD, 0
    if exponent == 0:
        return NUMBER, (-digits if negative else digits)
    if exponent > 0 or exponent < -290:
        return _HARD, 0
    value[0] = (-digits if negative else digits) / powers[-exponent]
    return REAL, 0


@jit
def _two(text: NDArray[np.uint8], place: int) -> Any:
    """Two digits as a number; a large one if they are none."""
    if not (48 <= text[place] <= 57 and 48 <= text[place + 1] <= 57):
        return 1 << 20
    return (np.int64(text[place]) - 48) * 10 + np.int64(text[place + 1]) - 48


@jit
def _one_or_two(text: NDArray[np.uint8], place: int, stop: int) -> tuple[Any, int]:
    """One or two digits as a number, a large one if there are none, and where they end."""
    if place + 1 < stop and 48 <= text[place + 1] <= 57:
        return _two(text, place), place + 2
    is_digit = place < stop and 48 <= text[place] <= 57
    return (np.int64(text[place]) - 48 if is_digit else 1 << 20), place + 1


@jit
def _moment(  # noqa: PLR0912 (one grammar)
    text: NDArray[np.uint8], start: int, stop: int, all_dates: bool
) -> tuple[int, Any]:
    """YYYY-MM-DD, and a time behind T or a space, with Z or an offset from UTC: microseconds since 1970.

    With `all_dates`, also slashes or points, one digit of a month, a day or an hour, and small letters.
    """
    year, sign = _two(text, start) * 100 + _two(text, start + 2), text[start + 4]
    month, behind = _one_or_two(text, start + 5, stop)
    if behind >= stop or text[behind] != sign:
        return TEXT, 0
    day, place = _one_or_two(text, behind + 1, stop)
    if not all_dates and place != start + 10:
        return TEXT, 0
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if year > 9999 or not 1 <= month <= 12:
        return TEXT, 0
    longest = 30 + (month + month // 8) % 2 if month != 2 else 28 + leap
    if not 1 <= day <= longest:
        return TEXT, 0
    shifted = year - (month <= 2)  # days since 1970-01-01: years start in March, eras have 400 years
    era = shifted // 400
    of_era = shifted - era * 400
    of_year = (153 * (month + (9 if month <= 2 else -3)) + 2) // 5 + day - 1
    days = era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468
    if place == stop:
        return MOMENT, days * _DAY
    if stop - place < 5 or not (text[place] in (84, 32) or (all_dates and text[place] == 116)):
        return TEXT, 0
    end, offset = stop, 0
    if text[end - 1] == 90 or (all_dates and text[end - 1] == 122):
        end -= 1
    else:
        sign_at = end - 1
        while sign_at > place + 4 and text[sign_at] != 43 and text[sign_at] != 45:
            sign_at -= 1
        if sign_at > place + 4:
            size = end - sign_at - 1
            if not (size in (2, 4) or (size == 5 and text[sign_at + 3] == 58)):
                return TEXT, 0
            hours, minutes = _two(text, sign_at + 1), (0 if size == 2 else _two(text, end - 2))
            if hours > 23 or minutes > 59:
                return TEXT, 0
            offset = (hours * 60 + minutes) * 60_000_000 * (-1 if text[sign_at] == 45 else 1)
            end = sign_at
    if end > start and text[end - 1] == 32:
        end -= 1
    kind, of_day = _time(text, place + 1, end, all_dates)
    return (TEXT, 0) if kind == TEXT else (MOMENT, days * _DAY + of_day - offset)


@jit
def _time(  # noqa: PLR0912 (one grammar)
    text: NDArray[np.uint8], start: int, stop: int, all_dates: bool
) -> tuple[int, Any]:
    """HH:MM, HH:MM:SS or HH:MM:SS.ffffff: microseconds since midnight, further digits left out.

    With `all_dates`, also one digit for the hour.
    """
    if stop - start < 4:
        return TEXT, 0
    hours, place = _one_or_two(text, start, stop)
    if place == start + 1:
        if not all_dates:
            return TEXT, 0
        start -= 1  # as if there were two
    size = stop - start
    if not (size in (5, 8) or 10 <= size <= 18) or text[start + 2] != 58:
        return TEXT, 0
    minutes, seconds, fraction = _two(text, start + 3), 0, np.int64(0)
    if size > 5:
        seconds = _two(text, start + 6)
        if text[start + 5] != 58:
            return TEXT, 0
    if size > 8:
        if text[start + 8] != 46:
            return TEXT, 0
        for j in range(9, 15):
            digit = 48 if start + j >= stop else np.int64(text[start + j])
            if not 48 <= digit <= 57:
                return TEXT, 0
            fraction = fraction * 10 + digit - 48
        for j in range(15, size):
            if not 48 <= text[start + j] <= 57:
                return TEXT, 0
    if hours > 23 or minutes > 59 or seconds > 59:
        return TEXT, 0
    return TIME, ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + fraction
