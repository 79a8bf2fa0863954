"""Numbers and dates as people write them, such as 1.234,56 € and 12.5% and 31/12/2024, and how to write them plainly.

A comma and a point can each be the decimal mark, or group thousands. Cells such as 12,5 tell which; cells such as 1,234
do not. `count_shapes` counts both readings of all cells of a column and what speaks for each, `dipriv._tables.notation`
decides, and `write_plainly` rewrites the cells as `dipriv._tables.cell_classes` reads them: 1234.56 and 2024-12-31.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from dipriv._base.jit import jit
from dipriv._tables.cell_classes import (
    CellClass,
    after_digits,
    classify,
    clock,
    days_in,
    digit,
    is_space,
)
from dipriv._tables.repeated import distinct

SYMBOLS: Final = ("$", "€", "£", "¥", "₹", "%", "EUR", "USD", "GBP", "CHF", "JPY")
"""What may stand before or behind a number: signs and codes of currencies, and percent."""
GROUP_MARKS: Final = ("", ",", ".", " ", "\u00a0", "\u202f", "'", "\u2019")
"""What may stand between groups of three digits; the first is for none."""
POINT, COMMA = 0, 1
"""Readings: which of the two is the decimal mark."""
YEAR_FIRST, DAY_FIRST, MONTH_FIRST = 0, 1, 2
"""Readings of dates that are not written as 2024-12-31: only 2024/12/31, or 31/12/2024, or 12/31/2024, too."""
MAX_PLACES = 10

Shapes: TypeAlias = NDArray[np.int64]
"""Counts of cells, at the places below. Counts of parts of the rows add up."""
_CLASSES, _GROUPS, _PLACES = len(CellClass), len(GROUP_MARKS), MAX_PLACES + 1
_READING = _CLASSES + _GROUPS + _PLACES
_EVIDENCE = 2 * _READING
_REWRITTEN = _EVIDENCE + 8
_DECORATIONS = _REWRITTEN + 1
N_DECORATIONS: Final = 1 + 4 * len(SYMBOLS)
"""None, and for each symbol: before the number, before it and a space, behind, behind a space."""
N_SHAPES: Final = _DECORATIONS + N_DECORATIONS

_SYMBOL_BYTES = [symbol.encode() for symbol in SYMBOLS]
_SYMBOLS = np.frombuffer(b"".join(_SYMBOL_BYTES), dtype=np.uint8)
_SYMBOL_ENDS = np.cumsum([0, *map(len, _SYMBOL_BYTES)], dtype=np.int64)
_BEGINS_SYMBOL = np.isin(np.arange(256), [symbol[0] for symbol in _SYMBOL_BYTES])
_ENDS_SYMBOL = np.isin(np.arange(256), [symbol[-1] for symbol in _SYMBOL_BYTES])
_MARK_BYTES = [mark.encode() for mark in GROUP_MARKS]
_MARKS = np.frombuffer(b"".join(_MARK_BYTES), dtype=np.uint8)
_MARK_ENDS = np.cumsum([0, *map(len, _MARK_BYTES)], dtype=np.int64)
_OTHER, _WHOLE, _DECIMAL, _DATE, _SECONDS = (
    int(of) for of in (CellClass.OTHER, CellClass.WHOLE, CellClass.DECIMAL, CellClass.DATE, CellClass.SECONDS)
)
_OTHER_DATE, _COUNTED = int(CellClass.OTHER_DATE), 255
_ZERO, _NINE, _PLUS, _MINUS, _POINT, _SLASH = 48, 57, 43, 45, 46, 47
_COMMA_MARK, _POINT_MARK = 1, 2
_DIGITS = 18
"""Whole numbers of more digits may exceed 64 bits."""
_DATE_GROWTH = 4
"""By how many bytes a date may grow when it is written plainly: 1/2/2024 as 2024-01-02, and 1:02 as 01:02."""


def no_shapes() -> Shapes:
    """The counts of no cell."""
    return np.zeros(N_SHAPES, dtype=np.int64)


def class_counts(shapes: Shapes, reading: int) -> Shapes:
    """How many cells of each `CellClass` there are in a reading; dates with the day or month first are `OTHER_DATE`."""
    return shapes[reading * _READING :][:_CLASSES]


def group_counts(shapes: Shapes, reading: int) -> Shapes:
    """How many numbers have each of `GROUP_MARKS`; the first is for those of four and more digits that have none."""
    return shapes[reading * _READING + _CLASSES :][:_GROUPS]


def place_counts(shapes: Shapes, reading: int) -> Shapes:
    """How many numbers have 0, 1, ... decimals."""
    return shapes[reading * _READING + _CLASSES + _GROUPS :][:_PLACES]


def decimal_evidence(shapes: Shapes) -> tuple[int, int, int]:
    """How many cells are numbers with a decimal point only, with a decimal comma only, and different ones with both."""
    point, comma, both = (int(count) for count in shapes[_EVIDENCE:][:3])
    return point, comma, both


def date_evidence(shapes: Shapes) -> tuple[int, int, int]:
    """How many cells are dates with the day first only, with the month first only, and different ones with both."""
    day, month, both = (int(count) for count in shapes[_EVIDENCE + 3 :][:3])
    return day, month, both


def ordered_dates(shapes: Shapes) -> tuple[int, int]:
    """How many cells are dates with the day or the month first, without and with a time of day."""
    return int(shapes[_EVIDENCE + 6]), int(shapes[_EVIDENCE + 7])


def rewritten_cells(shapes: Shapes) -> int:
    """How many cells are numbers or dates that are not written plainly, in a reading with a decimal point."""
    return int(shapes[_REWRITTEN])


def decoration_counts(shapes: Shapes) -> Shapes:
    """How many numbers have each decoration; see `N_DECORATIONS`."""
    return shapes[_DECORATIONS:]


def count_shapes(texts: pa.Array, marks: Sequence[str]) -> Shapes:
    """The shapes of text cells, which may be coded; nulls, empty cells and `marks` are missing."""
    texts, times = distinct(texts)
    texts = _large(texts)
    counts = no_shapes()
    if len(texts):
        letters, ends = _buffers(texts)
        classes = classify(texts, marks).classes
        _count_plain(letters, ends, classes, times, counts)
        _count(letters, ends, classes, times, counts)
    return counts


def write_plainly(
    texts: pa.Array, marks: Sequence[str], reading: int, decoration: int | None, order: int
) -> pa.LargeStringArray:
    """The cells as plain numbers and dates; what cannot be read like that is empty.

    Parameters
    ----------
    texts, marks : as for `count_shapes`.
    reading : `POINT` or `COMMA`.
    decoration : numbers that have another one are empty; None reads numbers with any.
    order : `YEAR_FIRST`, `DAY_FIRST` or `MONTH_FIRST`.

    Returns
    -------
    Texts for `dipriv._tables.column_types.parse`.
    """
    texts = _large(texts)
    if not len(texts):
        return texts
    letters, ends = _buffers(texts)
    written = np.empty(int(ends[-1] - ends[0]) + _DATE_GROWTH * len(texts), dtype=np.uint8)
    new_ends = np.zeros(len(texts) + 1, dtype=np.int64)
    classes = classify(texts, marks).classes
    size = _write(letters, ends, classes, reading, -1 if decoration is None else decoration, order, written, new_ends)
    return pa.LargeStringArray.from_buffers(len(texts), pa.py_buffer(new_ends), pa.py_buffer(written[:size]))


def _large(texts: pa.Array) -> pa.Array:
    return texts if pt.is_large_string(texts.type) else texts.cast(pa.large_string())


def _buffers(texts: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return np.frombuffer(data if data is not None and data.size else b"\0", dtype=np.uint8), ends


@jit
def _count(
    letters: NDArray[np.uint8],
    ends: NDArray[np.int64],
    classes: NDArray[np.uint8],
    times: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> None:
    for row in range(len(ends) - 1):
        kind, n = classes[row], times[row]
        if kind == _COUNTED:
            continue
        if kind not in (_OTHER, _OTHER_DATE, _DECIMAL, _WHOLE):
            counts[kind] += n
            counts[_READING + kind] += n
            continue
        i, end = _trimmed(letters, ends[row], ends[row + 1])
        if kind == _WHOLE:  # a sign at most, and digits
            _count_whole(counts, n, end - _after_sign(letters, i, end))
            continue
        found, decoration, whole, point, comma, point_group, comma_group, point_places, comma_places, _, _ = _number(
            letters, i, end
        )
        if found:
            plainly = kind if kind == _DECIMAL else 0
            groups, places = (point_group, comma_group), (point_places, comma_places)
            _count_number(counts, n, plainly, decoration, whole, (point, comma), groups, places)
        elif kind == _DECIMAL:  # with an exponent, infinite
            if _has(letters, i, end, _POINT):
                counts[_EVIDENCE] += n
                counts[_READING + _OTHER] += n
            else:
                counts[_READING + kind] += n
            counts[kind] += n
            counts[_DECORATIONS] += n
        else:
            order, _, _, _, time = _date(letters, i, end)
            if order == 0:  # no date, or one with a year of two digits
                counts[kind] += n
                counts[_READING + kind] += n
            elif order == 1:
                counts[_REWRITTEN] += n
                of = _DATE if time < 0 else _SECONDS
                counts[of] += n
                counts[_READING + of] += n
            else:
                counts[_REWRITTEN] += n
                counts[_OTHER_DATE] += n
                counts[_READING + _OTHER_DATE] += n
                counts[_EVIDENCE + 3] += n * (order == 2)
                counts[_EVIDENCE + 4] += n * (order == 3)
                counts[_EVIDENCE + 5] += n * (order == 4)
                counts[_EVIDENCE + (6 if time < 0 else 7)] += n


@jit
def _count_plain(
    letters: NDArray[np.uint8],
    ends: NDArray[np.int64],
    classes: NDArray[np.uint8],
    times: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> None:
    """Numbers of digits [. digits], as most are written: without calls, which take longer. They become `_COUNTED`."""
    plain = np.zeros((_DIGITS + 1, _PLACES), dtype=np.int64)
    for row in range(len(ends) - 1):
        if classes[row] not in (_WHOLE, _DECIMAL):
            continue
        i, end = ends[row], ends[row + 1]
        place, dot = i, end
        while place < end and (_ZERO <= letters[place] <= _NINE or (letters[place] == _POINT and dot == end)):
            if letters[place] == _POINT:
                dot = place
            place += 1
        digits, places = dot - i, max(0, end - dot - 1)
        if place == end and 0 < digits <= _DIGITS and classes[row] == (_DECIMAL if places else _WHOLE):
            plain[0 if letters[i] == _ZERO else digits, min(places, MAX_PLACES)] += times[row]
            classes[row] = _COUNTED
    for digits in range(_DIGITS + 1):  # 0 for the digit 0
        for places in range(_PLACES):
            n = plain[digits, places]
            if n and places == 0:
                _count_whole(counts, n, max(1, digits))
            elif n:
                grouped = places == 3 and 1 <= digits <= 3
                _count_number(counts, n, _DECIMAL, 0, max(1, digits), (True, grouped), (0, _POINT_MARK), (places, 0))


@jit
def _count_whole(counts: NDArray[np.int64], n: int, digits: int) -> None:
    """A number of digits alone, in both readings."""
    counts[_DECORATIONS] += n
    _count_reading(counts, n, 0, True, _WHOLE, 0, 0, digits)
    _count_reading(counts, n, _READING, True, _WHOLE, 0, 0, digits)


@jit
def _count_number(
    counts: NDArray[np.int64],
    n: int,
    kind: int,
    decoration: int,
    whole: int,
    readable: tuple[bool, bool],
    groups: tuple[int, int],
    places: tuple[int, int],
) -> None:
    """What `_number` finds in a cell, in a reading with a decimal point and in one with a comma."""
    point, comma = readable
    counts[_DECORATIONS + decoration] += n
    counts[_EVIDENCE] += n * (point and not comma)
    counts[_EVIDENCE + 1] += n * (comma and not point)
    counts[_EVIDENCE + 2] += n * (point and comma and places[0] != places[1])
    counts[_REWRITTEN] += n * (kind == 0)
    _count_reading(counts, n, 0, point, kind, groups[0], places[0], whole)
    _count_reading(counts, n, _READING, comma, 0, groups[1], places[1], whole)


@jit
def _count_reading(
    counts: NDArray[np.int64], n: int, start: int, readable: bool, kind: int, group: int, places: int, whole: int
) -> None:
    if not readable:
        counts[start + _OTHER] += n
        return
    counts[start + (kind or (_WHOLE if places == 0 and whole <= _DIGITS else _DECIMAL))] += n
    if group or whole >= 4:
        counts[start + _CLASSES + group] += n
    counts[start + _CLASSES + _GROUPS + min(places, MAX_PLACES)] += n


@jit
def _write(
    letters: NDArray[np.uint8],
    ends: NDArray[np.int64],
    classes: NDArray[np.uint8],
    reading: int,
    wanted: int,
    order: int,
    written: NDArray[np.uint8],
    new_ends: NDArray[np.int64],
) -> int:
    place = 0
    for row in range(len(ends) - 1):
        kind = classes[row]
        i, end = _trimmed(letters, ends[row], ends[row + 1])
        if kind not in (_OTHER, _OTHER_DATE, _DECIMAL, _WHOLE):
            if kind != 0:
                place = _copy(letters, i, end, written, place)
            new_ends[row + 1] = place
            continue
        found, decoration, _, point, comma, _, _, point_places, comma_places, start, stop = _number(letters, i, end)
        if found:
            readable = comma if reading == COMMA else point
            if readable and (decoration == 0 or wanted < 0 or decoration == wanted):
                places = comma_places if reading == COMMA else point_places
                if _is_negative(letters, i, start):
                    written[place] = _MINUS
                    place += 1
                place = _copy_digits(letters, start, stop, places, written, place)
        elif kind in (_DECIMAL, _WHOLE):
            if reading == POINT or not _has(letters, i, end, _POINT):
                place = _copy(letters, i, end, written, place)
        else:
            found_order, year, one, two, time = _date(letters, i, end)
            if found_order == 1 or (found_order and order == MONTH_FIRST and found_order != 2):
                place = _copy_date(letters, year, one, two, time, end, written, place)
            elif found_order and order == DAY_FIRST and found_order != 3:
                place = _copy_date(letters, year, two, one, time, end, written, place)
        new_ends[row + 1] = place
    return place


@jit
def _trimmed(letters: NDArray[np.uint8], i: int, end: int) -> tuple[int, int]:
    while i < end and is_space(letters[i]):
        i += 1
    while end > i and is_space(letters[end - 1]):
        end -= 1
    return i, end


@jit
def _has(letters: NDArray[np.uint8], i: int, end: int, letter: int) -> bool:
    found = False
    for j in range(i, end):
        found = found or letters[j] == letter
    return found


@jit
def _copy(letters: NDArray[np.uint8], i: int, end: int, written: NDArray[np.uint8], place: int) -> int:
    for j in range(i, end):
        written[place] = letters[j]
        place += 1
    return place


@jit
def _copy_digits(
    letters: NDArray[np.uint8], i: int, end: int, places: int, written: NDArray[np.uint8], place: int
) -> int:
    """The digits alone, with a point before the last `places` of them."""
    digits = 0
    for j in range(i, end):
        digits += _ZERO <= letters[j] <= _NINE
    if digits == places:
        written[place] = _ZERO
        place += 1
    for j in range(i, end):
        if _ZERO <= letters[j] <= _NINE:
            if digits == places and places:
                written[place] = _POINT
                place += 1
            written[place] = letters[j]
            place += 1
            digits -= 1
    return place


@jit
def _copy_date(
    letters: NDArray[np.uint8],
    year: int,
    month: int,
    day: int,
    time: int,
    end: int,
    written: NDArray[np.uint8],
    place: int,
) -> int:
    """YYYY-MM-DD, and the time of day behind a space, if `time` is where one begins."""
    for value, size in ((year, 4), (month, 2), (day, 2)):
        if size == 2:
            written[place] = _MINUS
            place += 1
        for j in range(size):
            written[place + size - 1 - j] = _ZERO + value % 10
            value //= 10  # noqa: PLW2901
        place += size
    if time < 0:
        return place
    written[place] = 32
    place += 1
    if after_digits(letters, time, end) - time == 1:
        written[place] = _ZERO
        place += 1
    return _copy(letters, time, end, written, place)


@jit
def _is_negative(letters: NDArray[np.uint8], i: int, start: int) -> bool:
    """Whether a minus is among the letters before the digits."""
    return _has(letters, i, start, _MINUS) or _has(letters, i, start, 0x88)  # the second byte of U+2212


@jit
def _after_sign(letters: NDArray[np.uint8], i: int, end: int) -> int:
    if i < end and (letters[i] == _MINUS or letters[i] == _PLUS):
        return i + 1
    if i + 2 < end and letters[i] == 0xE2 and letters[i + 1] == 0x88 and letters[i + 2] == 0x92:
        return i + 3
    return i


@jit
def _space_at(letters: NDArray[np.uint8], i: int, end: int) -> int:
    """How many bytes a space at this place has: 0 if there is none."""
    if i < end and letters[i] == 32:
        return 1
    if i + 1 < end and letters[i] == 0xC2 and letters[i + 1] == 0xA0:
        return 2
    return 3 if i + 2 < end and letters[i] == 0xE2 and letters[i + 1] == 0x80 and letters[i + 2] == 0xAF else 0


@jit
def _symbol_at(letters: NDArray[np.uint8], i: int, end: int) -> int:
    """The symbol that begins here, counted from 1; 0 for none."""
    if not 0 <= i < end or not _BEGINS_SYMBOL[letters[i]]:
        return 0
    for symbol in range(len(_SYMBOL_ENDS) - 1):
        start, size = _SYMBOL_ENDS[symbol], _SYMBOL_ENDS[symbol + 1] - _SYMBOL_ENDS[symbol]
        if i + size > end:
            continue
        same = True
        for j in range(size):
            same = same and letters[i + j] == _SYMBOLS[start + j]
        if same:
            return symbol + 1
    return 0


@jit
def _mark_at(letters: NDArray[np.uint8], i: int, end: int) -> int:
    """The number of the group mark that begins here; 0 for none."""
    if letters[i] == _POINT:
        return _POINT_MARK
    for mark in range(1, len(_MARK_ENDS) - 1):
        start, size = _MARK_ENDS[mark], _MARK_ENDS[mark + 1] - _MARK_ENDS[mark]
        if i + size > end:
            continue
        same = True
        for j in range(size):
            same = same and letters[i + j] == _MARKS[start + j]
        if same:
            return mark
    return 0


@jit
def _core(letters: NDArray[np.uint8], i: int, end: int) -> tuple[int, int, int]:
    """Where the digits of a number begin and end, and its decoration; -1 as its beginning if it is none."""
    i = _after_sign(letters, i, end)
    decoration = 0
    symbol = _symbol_at(letters, i, end)
    if symbol:
        i += _SYMBOL_ENDS[symbol] - _SYMBOL_ENDS[symbol - 1]
        space = _space_at(letters, i, end)
        decoration = 4 * (symbol - 1) + 1 + (space > 0)
        i = _after_sign(letters, i + space, end)
    if end <= i:
        return -1, end, 0
    if _ENDS_SYMBOL[letters[end - 1]]:
        for behind in range(len(_SYMBOL_ENDS) - 1):
            size = _SYMBOL_ENDS[behind + 1] - _SYMBOL_ENDS[behind]
            if end - size > i and _symbol_at(letters, end - size, end) == behind + 1:
                if decoration:
                    return -1, end, 0
                end -= size
                space = 0
                for width in (1, 2, 3):
                    if end - width > i and _space_at(letters, end - width, end) == width:
                        space = width
                end -= space
                decoration = 4 * behind + 3 + (space > 0)
                break
    return i, end, decoration


@jit
def _number(  # noqa: PLR0912 - one grammar
    letters: NDArray[np.uint8], i: int, end: int
) -> tuple[bool, int, int, bool, bool, int, int, int, int, int, int]:
    """A number without exponent, in both readings.

    Returns
    -------
    Whether it is one; its decoration; how many digits it has before the decimal mark, at least; whether it can be read
    with a decimal point and with a decimal comma; its group mark in each reading; its decimals in each; and where its
    digits begin and end.
    """
    begin, stop, decoration = _core(letters, i, end)
    no = (False, 0, 0, False, False, 0, 0, 0, 0, 0, 0)
    if begin < 0:
        return no
    first, last, n_marks, run, first_run, middle_is_three = 0, 0, 0, 0, 0, True
    j = begin
    while j < stop:
        if _ZERO <= letters[j] <= _NINE:
            run += 1
            j += 1
            continue
        mark = _mark_at(letters, j, stop)
        if mark == 0 or (n_marks and last != first):  # a second mark is the decimal mark, and the last one
            return no
        if n_marks == 0:
            first, first_run = mark, run
        elif run != 3:
            middle_is_three = False
        last, n_marks, run = mark, n_marks + 1, 0
        j += _MARK_ENDS[mark + 1] - _MARK_ENDS[mark]
    if n_marks == 0:
        first_run = run
    if first_run >= 2 and letters[begin] == _ZERO:
        return no
    if n_marks == 0:
        return (run > 0), decoration, run, True, True, 0, 0, 0, 0, begin, stop
    groups = 1 <= first_run <= 3 and letters[begin] != _ZERO and middle_is_three
    if last != first:
        if not groups or run == 0 or last > _POINT_MARK:
            return no
        point = last == _POINT_MARK
        return True, decoration, first_run, point, not point, first, first, run, run, begin, stop
    groups = groups and run == 3
    can_be_decimal = n_marks == 1 and first <= _POINT_MARK and (run > 0 or (first_run > 0 and first == _POINT_MARK))
    if first > _POINT_MARK:
        return groups, decoration, first_run, groups, groups, first, first, 0, 0, begin, stop
    if first == _COMMA_MARK:
        return groups or can_be_decimal, decoration, first_run, groups, can_be_decimal, first, 0, 0, run, begin, stop
    return groups or can_be_decimal, decoration, first_run, can_be_decimal, groups, 0, first, run, 0, begin, stop


@jit
def _date(  # noqa: PLR0912 - one grammar
    letters: NDArray[np.uint8], i: int, end: int
) -> tuple[int, int, int, int, int]:
    """A date with a year of four digits, and perhaps a time of day.

    Returns
    -------
    0 for no date, 1 for the year first, 2 for the day, 3 for the month, 4 for dates that are different ones with the
    day and with the month first, 5 for those that are the same; the year, the first and the second of the other two
    numbers (month and day where the year is first); and where the time begins, or -1.
    """
    no = (0, 0, 0, 0, -1)
    if i >= end or not _ZERO <= letters[i] <= _NINE:  # before there is room for numbers, which takes longer
        return no
    parts, sizes, part, sign, j = np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.int64), 0, np.uint8(0), i
    while j < end:
        letter = letters[j]
        if _ZERO <= letter <= _NINE:
            sizes[part] += 1
            if sizes[part] > 4:
                return no
            parts[part] = parts[part] * 10 + digit(letter)
        elif letter in (_MINUS, _POINT, _SLASH) and part < 2 and (part == 0 or letter == sign):
            sign, part = letter, part + 1
        else:
            break
        j += 1
    if part < 2 or not 1 <= sizes[1] <= 2:
        return no
    time = -1
    if j < end:
        if letters[j] != 32 and letters[j] | 32 != 116:  # a space or T
            return no
        time = j + 1
        _, stop = clock(letters, time, end)
        if stop != end:
            return no
    if sizes[0] == 4 and 1 <= sizes[2] <= 2:
        year, month, day = parts[0], parts[1], parts[2]
        return (1, year, month, day, time) if _is_day(year, month, day) else no
    if sizes[2] != 4 or not 1 <= sizes[0] <= 2:
        return no
    one, two, year = parts[0], parts[1], parts[2]
    day_first, month_first = _is_day(year, two, one), _is_day(year, one, two)
    if day_first and month_first:
        return (5 if one == two else 4), year, one, two, time
    return (2 if day_first else 3 if month_first else 0), year, one, two, time


@jit
def _is_day(year: int, month: int, day: int) -> bool:
    return year >= 1 and 1 <= month <= 12 and 1 <= day <= days_in(year, month)


def decoration(number: int) -> tuple[str, str]:
    """What stands before and behind a number with this decoration.

    >>> decoration(0), decoration(1), decoration(8)
    (('', ''), ('$', ''), ('', ' €'))
    """
    if number == 0:
        return "", ""
    symbol, way = SYMBOLS[(number - 1) // 4], (number - 1) % 4
    return [(symbol, ""), (f"{symbol} ", ""), ("", symbol), ("", f" {symbol}")][way]
