"""Which rows are held out: a keyed hash of each row's position or key, fixed once assigned.

A shuffle would move rows between the sides whenever the table grows; here a row's side depends on the split's
secret key and on the row's own position (or its value in a key column), so appended rows disturb nobody, and a
second release of the same table reuses the same split.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dipriv._base.arrays import Mask
from dipriv._base.atomic_write import OWNER_ONLY, write_atomic
from dipriv._random.bits import Bits, Draws, source
from dipriv._random.streams import SplitLane
from dipriv._tables.arrow import decoded, distinct_labels, group_codes, is_text
from dipriv._tables.frames import Table, check_names
from dipriv.errors import DisclosureError, InputError, ReferenceDataError
from dipriv.sources._cells import BOOLEAN, DURATION, MOMENT, TIME, canonical_cells, hash_words

_KEY_BYTES = 32
_MAX_VALUE = 10**15
_MAX_FILE = 1 << 20
_BLANK = "".join(map(chr, range(33)))
_BYTES_OF = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
}
_BYTES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view)


@dataclass(frozen=True)
class Split:
    """A fixed, secret assignment of rows to hold-out and release.

    Parameters
    ----------
    holdout : the share of rows that are held out, between 0 and 1.
    key : the secret key, 32 bytes; `Split.new` draws one.
    by : the column whose value decides the side, so that rows of one person stay together; by default the position.
    as_written : whether the split is one of versions before 0.2, which distinguished keys as they are written: "007"
        and 7. It is used where that makes no difference to any row, and refused elsewhere.

    Raises
    ------
    InputError : the share or the key cannot be used.

    Examples
    --------
    >>> Split.new(0.25)
    Split(holdout=0.25, by=None)
    """

    holdout: float
    key: bytes = field(repr=False)
    by: str | None = None
    as_written: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        check_holdout(self.holdout)
        if len(self.key) != _KEY_BYTES:
            raise InputError(f"the split's key has {len(self.key)} bytes, not {_KEY_BYTES}.", "Use Split.new().")

    @classmethod
    def new(cls, holdout: float = 0.25, by: str | None = None, bits: Bits | None = None) -> Split:
        """A new split with a fresh key.

        Parameters
        ----------
        holdout, by : as for `Split`.
        bits : the source of the key; by default secure randomness.

        Returns
        -------
        The split.

        Raises
        ------
        InputError : the share is not between 0 and 1.
        """
        words = (bits or source(None)).words(_KEY_BYTES // 8)
        return cls(check_holdout(holdout), words.astype("<u8").tobytes(), by)

    def held_out(self, table: Table, first: int = 0) -> Mask:
        """Mark the rows that are held out.

        Parameters
        ----------
        table : the rows.
        first : the position of the table's first row in a stream.

        Returns
        -------
        True for each row that is held out.

        Raises
        ------
        InputError : the column `by` is absent or has nulls.
        """
        limit = np.uint64(round(self.holdout * 2**64))
        if self.by is not None:
            return self.settled(table, lambda scores: scores < limit)
        held, size = np.empty(table.rows, dtype=bool), 1 << 20  # piece by piece, in the processor's cache
        for start in range(0, table.rows, size):
            piece = held[start : start + size]
            np.less(Draws(self._bits, first + start, len(piece)).words(), limit, out=piece)
        return held

    def settled(self, table: Table, choose: Callable[[NDArray[np.uint64]], Mask]) -> Mask:
        """The rows that a choice by their scores holds out; refused if a split `as_written` chose others.

        Parameters
        ----------
        table : the rows.
        choose : from the scores of all rows to those that are held out.

        Returns
        -------
        True for each row that is held out.

        Raises
        ------
        DisclosureError : rows would change sides.
        InputError : the column `by` is absent or has nulls.
        """
        held = choose(self.scores(table))
        if self.as_written and self.by is not None:
            before = choose(self._as_written(table.array(self.by)))
            if (before != held).any():
                raise DisclosureError(
                    f"an earlier version of dipriv made the hold-out, by column {self.by!r} as it is written; now "
                    "'007', 7 and '7.0' are one person, and some rows would change sides.",
                    "Make no further release with this hold-out. Data sets that are new are not affected, nor are keys "
                    "that are plain whole numbers, or words that are no dates or truth values.",
                )
        return held

    def scores(self, table: Table, first: int = 0) -> NDArray[np.uint64]:
        """A uniform 64-bit number for each row, a pseudorandom function of its position or key.

        Parameters
        ----------
        table, first : as for `held_out`.

        Returns
        -------
        The numbers.

        Raises
        ------
        InputError : the column `by` is absent or has nulls.
        """
        if self.by is None:
            return Draws(self._bits, first, table.rows).words()
        check_names([self.by], table.names, "the split")
        return self._of_values(checked_keys(table, self.by))

    def digest_of(self, scores: NDArray[np.uint64]) -> bytes:
        """16 bytes for the scores of a table's rows, in any order: another digest means that rows may change sides.

        Parameters
        ----------
        scores : of all rows, as `scores` gives them.

        Returns
        -------
        The digest, which the split's key keys.
        """
        return hashlib.blake2b(np.sort(scores).astype("<u8").tobytes(), key=self.key, digest_size=16).digest()

    def save(self, path: str | Path) -> None:
        """Write the split, secret key included, readable by the owner only.

        Parameters
        ----------
        path : of the file; an existing one is replaced.

        Raises
        ------
        StorageError : the file cannot be written.
        """
        keys = "written" if self.as_written else "cells"
        text = json.dumps({"holdout": self.holdout, "key": self.key.hex(), "by": self.by, "keys": keys})
        write_atomic(Path(path), text.encode(), OWNER_ONLY)

    @classmethod
    def load(cls, path: str | Path) -> Split:
        """Read a split that `save` wrote.

        Parameters
        ----------
        path : of the file.

        Returns
        -------
        The split.

        Raises
        ------
        InputError : the file is not a saved split.
        OSError : the file cannot be read.
        """
        try:
            with Path(path).open("rb") as file:
                plain = json.loads(file.read(_MAX_FILE))
            by_cells = "keys" in plain and plain["keys"] == "cells"
            return cls(float(plain["holdout"]), bytes.fromhex(plain["key"]), plain["by"], not by_cells)
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
            raise InputError(f"{Path(path).name} is not a saved split.", "Use a file written by Split.save.") from None

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({"as_written": True} | state)  # pickles of versions before 0.2 do not say

    @property
    def _bits(self) -> Bits:
        return Bits(self.key, secure=False)  # secret, but the same whenever the split is used

    def _of_values(self, array: pa.Array) -> NDArray[np.uint64]:
        """A score for each key, the same for the plain forms of one number or moment, such as 7.0 and "007"."""
        array = _keys(array)
        if pa.types.is_dictionary(array.type):
            scores = self._of_values(array.dictionary)
            return np.asarray(scores[array.indices.to_numpy(zero_copy_only=False)])
        array = decoded(array)  # Arrow cannot select rows of views
        words, kinds = canonical_cells(array)
        scores = np.asarray(hash_words(words, kinds, self._words).high)
        whole, numbers = _whole_numbers(array)
        scores[whole] = self._bits.blocks_at(SplitLane.KEYS, numbers[whole])[:, 0]
        rest = ~whole & ~np.isin(kinds, (BOOLEAN, MOMENT, TIME, DURATION))
        forms = [_plain(value) for value in array.filter(pa.array(rest)).to_pylist()]
        few = np.array([isinstance(form, int) for form in forms], dtype=bool)
        places = np.flatnonzero(rest)
        own = np.array([form for form in forms if isinstance(form, int)], dtype=np.int64)
        scores[places[few]] = self._bits.blocks_at(SplitLane.KEYS, own)[:, 0]
        scores[places[~few]] = self._digests(form.encode() for form in forms if isinstance(form, str))
        return scores

    def _as_written(self, array: pa.Array) -> NDArray[np.uint64]:
        """The scores of versions before 0.2: only plain digits are numbers."""
        if pa.types.is_dictionary(array.type):
            scores = self._as_written(array.dictionary)
            return np.asarray(scores[array.indices.to_numpy(zero_copy_only=False)])
        array = decoded(array)  # Arrow cannot select rows of views
        whole, numbers = _whole_numbers(array)
        scores = np.empty(len(array), dtype=np.uint64)
        scores[whole] = self._bits.blocks_at(SplitLane.KEYS, numbers[whole])[:, 0]
        rest = array.filter(pa.array(~whole)).to_pylist()
        scores[~whole] = self._digests(_written(value).encode() for value in rest)
        return scores

    def _digests(self, texts: Iterable[bytes]) -> NDArray[np.uint64]:
        digests = [hashlib.blake2b(text, key=self.key, digest_size=8).digest() for text in texts]
        return np.frombuffer(b"".join(digests), dtype="<u8")

    @property
    def _words(self) -> NDArray[np.uint64]:
        """A key for hashes of canonical forms."""
        return np.frombuffer(hashlib.blake2b(b"cells", key=self.key, digest_size=16).digest(), dtype="<u8")


def checked_keys(table: Table, name: str) -> pa.Array:
    """The keys of a column, none of which is null."""
    array = _keys(table.array(name))
    if array.null_count or _has_nan(array):
        raise InputError(
            f"column {name!r} says whose a row is, but has nulls.",
            "Fill them, or leave out the unit, or by of the split.",
            command="Fill them, or leave --unit out.",
        )
    return array


def _keys(array: pa.Array) -> pa.Array:
    """The same keys in a type that Arrow's functions take; bytes are the text that they are in UTF-8."""
    if pa.types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    if pa.types.is_dictionary(array.type) and array.dictionary.null_count:
        array = array.dictionary_decode()
    if not any(is_of(array.type) for is_of in _BYTES):
        if not is_text(array.type) or _is_valid(array):
            return array
        array = array.cast(_BYTES_OF[array.type])
    return pa.array([_text(value) for value in array.to_pylist()], pa.large_string())


def _has_nan(array: pa.Array) -> bool:
    if pa.types.is_dictionary(array.type) and pa.types.is_floating(array.type.value_type):
        array = array.dictionary_decode()
    return bool(pa.types.is_floating(array.type) and pc.any(pc.is_nan(array)).as_py())


def _is_valid(array: pa.Array) -> bool:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "backslashreplace")


def _plain(key: Any) -> int | str:
    """A key without spaces and quotes around it; a number of one value in one form, and only those, as any other text.

    >>> [_plain(key) for key in ("007", 7.0, ' "7.00"', "+12.50", 12.5, "1e3", "A7")]
    [7, 7, 7, '12.5', '12.5', '1e3', 'A7']
    """
    if isinstance(key, float) and math.isfinite(key):
        key = int(key) if key.is_integer() else Decimal(repr(key))
    if isinstance(key, Decimal):
        key = format(key, "f")
    text = str(key).strip(_BLANK)
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        text = text[1:-1].strip(_BLANK)
    found = re.fullmatch(r"([-+]?)([0-9]+)(?:\.([0-9]+))?", text)
    if found is None:
        return text
    digits, behind = found[2].lstrip("0") or "0", (found[3] or "").rstrip("0")
    sign = "-" if found[1] == "-" and (digits != "0" or behind) else ""
    if behind:
        return f"{sign}{digits}.{behind}"
    return int(sign + digits) if len(digits) <= 15 else sign + digits


def _written(key: Any) -> str:
    """A key as text: whole numbers without a point, however large."""
    return str(int(key)) if isinstance(key, float) and key.is_integer() else str(key)


def _whole_numbers(array: pa.Array) -> tuple[Mask, NDArray[np.int64]]:
    """Which keys are whole numbers, as numbers or written in digits, and these numbers."""
    kind = array.type
    if pa.types.is_integer(kind) and kind != pa.uint64():
        values = array.cast(pa.int64()).to_numpy(zero_copy_only=False)
        return (values > -_MAX_VALUE) & (values < _MAX_VALUE), values
    if pa.types.is_floating(kind):
        values = array.to_numpy(zero_copy_only=False).astype(np.float64)
        whole = (np.abs(values) < _MAX_VALUE) & (values == np.floor(values))
        return whole, np.where(whole, values, 0).astype(np.int64)
    texts = array.cast(pa.large_string()) if pa.types.is_string_view(kind) or kind == pa.uint64() else array
    if not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)):
        return np.zeros(len(array), dtype=bool), np.zeros(len(array), dtype=np.int64)
    digits = pc.match_substring_regex(texts, r"^(0|-?[1-9][0-9]{0,14})$")
    numbers = pc.if_else(digits, texts, "0").cast(pa.int64())
    return digits.to_numpy(zero_copy_only=False), numbers.to_numpy(zero_copy_only=False)


@dataclass(frozen=True)
class GroupHoldout:
    """The hold-out of a reference per group: `first` rows of each value of column `by` (appendix S4)."""

    by: str
    first: int
    pick: str

    def held_out(self, table: Table, split: Split) -> Mask:
        """True for the rows of each group that its reference is fitted on."""
        check_names([self.by], table.names, "by")
        table.column(self.by)  # refuses nested and other types that cannot be compared
        array = table.array(self.by)
        if array.null_count:
            raise InputError(f"column {self.by!r} has nulls.", "Give every row a group, or leave these rows out.")
        codes = group_codes(array, distinct_labels(array))
        sizes = np.bincount(codes)
        if sizes.min() <= self.first:
            raise ReferenceDataError(
                f"{int((sizes <= self.first).sum())} of {len(sizes)} groups in column {self.by!r} have "
                f"{self.first} or fewer rows; each needs at least {self.first + 1}.",
                "Lower `first`, leave these groups out, or use one reference for all rows.",
            )
        positions = np.arange(table.rows)

        def first_by(priority: NDArray[Any]) -> Mask:
            order = np.lexsort((priority, codes))
            rank = np.empty(table.rows, dtype=np.intp)
            rank[order] = positions - np.repeat(np.cumsum(sizes) - sizes, sizes)
            return rank < self.first

        return split.settled(table, first_by) if self.pick == "random" else first_by(positions)


def check_holdout(holdout: float) -> float:
    """`holdout` as a share strictly between 0 and 1."""
    number = isinstance(holdout, (int, float, np.floating)) and not isinstance(holdout, bool)
    if not number or not (0 < holdout < 1 and math.isfinite(holdout)):
        raise InputError(
            f"holdout={holdout!r} is not a share between 0 and 1.",
            "Use for example holdout=0.25.",
            command="Use for example --holdout 0.25.",
        )
    return float(holdout)
