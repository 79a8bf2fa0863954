"""Text that is not what its encoding says: bytes that are no UTF-8, and UTF-8 that is read in another encoding."""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from dipriv.errors import InputError


def with_valid_text(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows; bytes that are not in UTF-8 are replacement characters: not all who hand over text check it."""
    columns = list(map(_valid, batch.columns))
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _valid(array: pa.Array) -> pa.Array:
    if not (pt.is_string(array.type) or pt.is_large_string(array.type)):
        return array
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        found = array.cast(pa.large_string()).cast(pa.large_binary()).to_pylist()
        return pa.array([None if text is None else text.decode("utf-8", "replace") for text in found], array.type)
    return array


@dataclass(eq=False)
class OtherEncoding:
    """A stream of bytes that are read in another encoding than UTF-8; refused at its end if they are in UTF-8.

    Read in two encodings, a table would be two: other labels, and other persons in a hold-out. Bytes of ASCII alone are
    the same in both, unless the other one has escapes, as utf-7.
    """

    stream: Any = field(repr=False)
    name: str
    encoding: str
    closed: bool = False
    _decoder: Any = field(repr=False, default_factory=codecs.getincrementaldecoder("utf-8"))
    _is_utf8: bool = True
    _is_ascii: bool = True

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        content: bytes = self.stream.read(size) if size >= 0 else self.stream.read()
        if self._is_utf8 and not (self._is_ascii and content.isascii()):
            self._is_ascii = False
            try:
                self._decoder.decode(content, final=not content)
            except UnicodeDecodeError:
                self._is_utf8 = False
        if not content and self._is_utf8 and not self._is_ascii:
            raise InputError(
                f"{self.name}: it is in UTF-8, not in {self.encoding}.",
                "Leave the encoding out. If its letters are wrong then, write the file in UTF-8, and give that.",
            )
        return content

    def close(self) -> None:
        self.closed = True
