"""Whether each quote of a text file is closed where its cell ends.

Arrow reads on in a cell whose quote is not closed, to the next quote or to the end of the file, and the lines between
them are no rows: a cell of one person would remove the rows of others, without an error. So a file is refused that ends
inside of quotes, or that has text behind a closing quote in another line than the opening one. (A quote that the end of
a later cell closes looks like a cell of several lines; those have at most 100, in columns that nobody reads, too.) A
carriage return alone ends a line for Arrow, too: it is refused in files whose first line does not end with one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dipriv._base.jit import jit
from dipriv.errors import InputError

_START, _PLAIN, _QUOTED, _QUOTED_LINES, _CLOSED, _CLOSED_LINES, _SPACES_BEHIND, _AFTER_RETURN = range(8)
"""At the start of a cell; in one without quotes; in quotes, of one line so far or of several; behind a closing quote,
the same; in spaces behind the closing quote of several lines; behind a carriage return."""
_TEXT_BEHIND, _RETURN_INSIDE, _TOO_LONG = 8, 9, 10
"""Faults: text behind the closing quote of several lines, a carriage return inside of a line, a cell of many lines."""
_OTHER, _QUOTE, _SEPARATOR, _NEW_LINE, _RETURN, _SPACE = range(6)
_NEXT = {
    _START: (_PLAIN, _QUOTED, _START, _START, _AFTER_RETURN, _PLAIN),
    _PLAIN: (_PLAIN, _PLAIN, _START, _START, _AFTER_RETURN, _PLAIN),
    _QUOTED: (_QUOTED, _CLOSED, _QUOTED, _QUOTED_LINES, _QUOTED_LINES, _QUOTED),
    _QUOTED_LINES: (_QUOTED_LINES, _CLOSED_LINES, *[_QUOTED_LINES] * 4),
    _CLOSED: (_PLAIN, _QUOTED, _START, _START, _AFTER_RETURN, _PLAIN),
    _CLOSED_LINES: (_TEXT_BEHIND, _QUOTED_LINES, _START, _START, _AFTER_RETURN, _SPACES_BEHIND),
    _SPACES_BEHIND: (_TEXT_BEHIND, _TEXT_BEHIND, _START, _START, _AFTER_RETURN, _SPACES_BEHIND),
    _AFTER_RETURN: (*[_RETURN_INSIDE] * 3, _START, *[_RETURN_INSIDE] * 2),
}
"""The next state for each kind of byte."""
MAX_LINES = 100
"""Ends of lines in one cell of a text file."""
_LINE_FEED = 10
PLAINLY_QUOTED = (_START, _PLAIN, _QUOTED, _CLOSED)
"""The states of files without quotes or ends of lines inside of quotes."""
_FEED, _CARRIAGE, _BIT = np.uint8(_LINE_FEED), np.uint8(13), np.uint8(1)
_ONES, _GATHER = np.uint64(0x0101010101010101), np.uint64(0x0102040810204080)
_WORD_BITS, _PIECE = 64, 4096
_MARK = b"\xef\xbb\xbf"
_FAULTS = {
    _TEXT_BEHIND: "text follows a closing quote whose cell began in an earlier line: a quote is not closed",
    _RETURN_INSIDE: "a carriage return is in a cell without quotes",
    _TOO_LONG: f"up to here, a cell has more than {MAX_LINES} lines: a quote is not closed",
}


def no_ends() -> NDArray[np.int64]:
    """How many ends of lines a cell of several lines has so far, and whether the last letter is a carriage return."""
    return np.zeros(2, dtype=np.int64)


@dataclass(eq=False)
class CheckedQuotes:
    """A stream of bytes that are checked as they are read; in UTF-8, or another encoding with these bytes for ASCII."""

    stream: Any = field(repr=False)
    name: str
    quote: str
    separator: str
    skip: int = 0
    """Lines before that with the names, which are not read as cells."""
    ends_with_return: bool = False
    """Whether lines end with a carriage return alone."""
    closed: bool = False
    _state: int = _START
    _lines: int = 0
    _begun: bool = False
    _held: bytes = b""
    """A carriage return that the last bytes ended with."""
    _ends: NDArray[np.int64] = field(default_factory=no_ends, repr=False)

    def __post_init__(self) -> None:
        rows = _NEXT | ({_AFTER_RETURN: _NEXT[_START]} if self.ends_with_return else {})
        self._next = np.array([rows[state] for state in range(len(rows))], dtype=np.uint8)
        self._kinds = np.full(256, _OTHER, dtype=np.uint8)
        kinds = {" ": _SPACE, "\n": _NEW_LINE, "\r": _RETURN, self.separator: _SEPARATOR, self.quote: _QUOTE}
        for letter, kind in kinds.items():
            self._kinds[ord(letter)] = kind

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes; refuses the file at the place of its first fault.

        They end with a carriage return only at the end of the file: Arrow, which gets the bytes block by block, leaves
        out a new line at the start of one if the block before ends so, also in quotes.
        """
        more: bytes = self.stream.read(max(1, size - len(self._held) - 1)) if size >= 0 else self.stream.read()
        content, self._held = self._held + more, b""
        is_end = size < 0
        if content.endswith(b"\r") and len(content) < size:
            following = self.stream.read(1)
            content, more, is_end = content + following, more + following, not following
        if more:
            self._check(more)
            if content.endswith(b"\r") and not is_end:
                content, self._held = content[:-1], b"\r"
                return content or self.read(size)
        elif self._state in (_QUOTED, _QUOTED_LINES):
            raise self._fault("a quote is not closed before the end of the file")
        return content

    def close(self) -> None:
        self.closed = True

    def _check(self, content: bytes) -> None:
        start = 0 if self._begun or not content.startswith(_MARK) else len(_MARK)
        self._begun = True
        while self.skip and start < len(content):
            end = _line_end(content, start)
            start, self.skip = (len(content), self.skip) if end is None else (end, self.skip - 1)
        place = self._scanned(content, start)
        self._ends[1] = content.endswith(b"\r")
        feed = _CARRIAGE if self.ends_with_return else _FEED
        if place >= 0:
            line = self._lines + content.count(int(feed), 0, place) + 1
            raise self._fault(f"line {line}: {_FAULTS[self._state]}")
        self._lines += int(_times(np.frombuffer(content, dtype=np.uint8), feed))

    def _scanned(self, content: bytes, start: int) -> int:
        """The place of the first fault; -1 if there is none."""
        is_outside = self._state in (_START, _PLAIN) and start < len(content)
        if is_outside and content.find(self.quote.encode(), start) < 0 and content.find(b"\r", start) < 0:
            is_start = self._kinds[content[-1]] in (_SEPARATOR, _NEW_LINE)
            self._state = _START if is_start else _PLAIN
            return -1
        letters = np.frombuffer(content, dtype=np.uint8)
        quote, separator = np.uint8(ord(self.quote)), np.uint8(ord(self.separator))
        if self._state == _AFTER_RETURN or _has_lone_return(content):
            self._state, place = scan(letters, start, self._state, self._kinds, self._next, self._ends)
            return int(place)
        if self._state in PLAINLY_QUOTED:
            whole = start + (len(letters) - start) // _WORD_BITS * _WORD_BITS
            state = scan_plainly_quoted(letters[start:whole], self._state, quote, separator)
            if state >= 0:
                self._state, start = state, whole
        quotes = start + np.flatnonzero(letters[start:] == quote)
        self._state, place = scan_quotes(letters, start, quotes, self._state, int(separator), self._ends)
        return int(place)

    def _fault(self, what: str) -> InputError:
        remedy = 'Repair it: put cells with ends of lines in quotes, and write "" for a quote inside of them.'
        if self._state == _TOO_LONG:
            remedy = 'Close it; inside of quotes, write "" for a quote.'
        return InputError(f"{self.name}: {what}.", remedy)


def _line_end(content: bytes, start: int) -> int | None:
    """Behind the next end of a line."""
    ends = [place for place in (content.find(b"\n", start), content.find(b"\r", start)) if place >= 0]
    if not ends:
        return None
    end = min(ends) + 1
    return end + (content[end - 1 : end + 1] == b"\r\n")


def _has_lone_return(content: bytes) -> bool:
    """Whether a carriage return is not followed by the end of a line, as far as these bytes say."""
    return b"\r" in content and content.count(b"\r") != content.count(b"\r\n")


@jit
def _times(letters: NDArray[np.uint8], letter: np.uint8) -> int:
    """How often a letter occurs."""
    count = 0
    for i in range(len(letters)):
        count += letters[i] == letter
    return count


@jit
def _bits_of(bytes_of_one: np.uint64) -> np.uint64:
    """Eight bytes that are 0 or 1 as eight bits."""
    return (bytes_of_one * _GATHER) >> np.uint64(_WORD_BITS - 8)


@jit
def scan_plainly_quoted(letters: NDArray[np.uint8], state: int, quote: np.uint8, separator: np.uint8) -> int:
    """The state behind these bytes if quotes are at both ends of cells of one line and nowhere else; -1 if not.

    It is what `scan` gives, for whole blocks of 64 bytes, from a state of `PLAINLY_QUOTED`, where each carriage return
    is followed by a line feed. Bit i of a mask is about byte i of a block; bit 0 of what is carried, about the byte
    before.
    """
    carried = np.uint64(_WORD_BITS - 1)
    inside = np.uint64(0) - np.uint64(state == _QUOTED)
    after_end, after_closing = np.uint64(state == _START), np.uint64(state == _CLOSED)
    kinds = np.empty(_PIECE, dtype=np.uint8)
    words = kinds.view(np.uint64)
    for start in range(0, len(letters), _PIECE):
        piece = letters[start : start + _PIECE]
        for i in range(len(piece)):  # bit by bit, without a branch: many bytes at once
            letter = piece[i]
            is_quote = np.uint8(letter == quote) & _BIT
            is_separator = np.uint8(letter == separator) & _BIT
            is_break = (np.uint8(letter == _FEED) | np.uint8(letter == _CARRIAGE)) & _BIT
            kinds[i] = is_quote | is_separator << np.uint8(1) | is_break << np.uint8(2)
        for block in range(0, len(piece) // 8, 8):
            quotes, separators, breaks = np.uint64(0), np.uint64(0), np.uint64(0)
            for i in range(8):
                word, place = words[block + i], np.uint64(8 * i)
                quotes |= _bits_of(word & _ONES) << place
                separators |= _bits_of((word >> np.uint64(1)) & _ONES) << place
                breaks |= _bits_of((word >> np.uint64(2)) & _ONES) << place
            ends = separators | breaks
            within = quotes  # up to an odd number of quotes, each included
            for width in (1, 2, 4, 8, 16, 32):
                within ^= within << np.uint64(width)
            within ^= inside
            opening, closing = quotes & within, quotes & ~within
            fault = opening & ~(ends << np.uint64(1) | after_end)
            fault |= (closing << np.uint64(1) | after_closing) & ~ends
            fault |= breaks & within
            if fault:
                return -1
            inside = np.uint64(0) - (within >> carried)
            after_end, after_closing = ends >> carried, closing >> carried
    if inside:
        return _QUOTED
    return _CLOSED if after_closing else _START if after_end else _PLAIN


@jit
def _count_ends(letters: NDArray[np.uint8], start: int, end: int, ends: NDArray[np.int64]) -> int:
    """Count the ends of lines among these letters of a cell; where they become too many, or -1."""
    within = letters[start:end]
    found = _times(within, _FEED) + _times(within, _CARRIAGE)
    if not found:
        return -1
    for place in range(start, end):
        after_return = letters[place - 1] == _CARRIAGE if place else ends[1] == 1
        ends[0] += letters[place] == _CARRIAGE or (letters[place] == _FEED and not after_return)
        if ends[0] > MAX_LINES:
            return place
    return -1


@jit
def scan_quotes(  # noqa: PLR0912 (one pass over the quotes)
    letters: NDArray[np.uint8],
    start: int,
    quotes: NDArray[np.int64],
    state: int,
    separator: int,
    ends: NDArray[np.int64],
) -> tuple[int, int]:
    """What `scan` gives, from the places of all quotes, for bytes without a carriage return that is alone."""
    place, end, count, at = start, len(letters), len(quotes), 0
    while place < end:
        if state in (_START, _PLAIN):
            if at == count:
                return (_START if letters[end - 1] in (separator, _LINE_FEED) else _PLAIN), -1
            quote = quotes[at]
            at += 1
            is_first = state == _START if quote == place else letters[quote - 1] in (separator, _LINE_FEED)
            place, state = quote + 1, (_QUOTED if is_first else _PLAIN)
        elif state in (_QUOTED, _QUOTED_LINES):
            quote = quotes[at] if at < count else end
            while state == _QUOTED and place < quote:
                if letters[place] in (_LINE_FEED, 13):
                    state, ends[:] = _QUOTED_LINES, 0
                else:
                    place += 1
            if state == _QUOTED_LINES:
                place = _count_ends(letters, place, quote, ends)
                if place >= 0:
                    return _TOO_LONG, place
            place = quote + 1
            at += 1
            if quote < end:
                state = _CLOSED if state == _QUOTED else _CLOSED_LINES
        else:  # behind a closing quote
            letter = letters[place]
            if letter in (separator, _LINE_FEED, 13):
                state = _START
            elif at < count and quotes[at] == place:
                if state == _SPACES_BEHIND:
                    return _TEXT_BEHIND, place
                at, state = at + 1, (_QUOTED if state == _CLOSED else _QUOTED_LINES)
            elif state == _CLOSED:
                state = _PLAIN
            elif letter == 32:
                state = _SPACES_BEHIND
            else:
                return _TEXT_BEHIND, place
            place += 1
    return state, -1


@jit
def scan(
    letters: NDArray[np.uint8],
    start: int,
    state: int,
    kinds: NDArray[np.uint8],
    following: NDArray[np.uint8],
    ends: NDArray[np.int64],
) -> tuple[int, int]:
    """The state behind these bytes, and the place of the first fault, or -1; counts `no_ends` on."""
    for i in range(start, len(letters)):
        before, kind = state, kinds[letters[i]]
        state = int(following[state, kind])
        if state == _QUOTED_LINES and kind in (_NEW_LINE, _RETURN):
            if before == _QUOTED:
                ends[:] = 0
            if _count_ends(letters, i, i + 1, ends) >= 0:
                return _TOO_LONG, i
        if state >= _TEXT_BEHIND:
            return state, i
    return state, -1
