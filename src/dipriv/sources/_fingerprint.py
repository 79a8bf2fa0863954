"""A keyed fingerprint of a table's content: equal tables have equal ones, however they are stored or cut into batches.

Without the key a fingerprint says nothing about the table: a plain hash of a small table could be found by trying all
tables. Each column is turned into streams of bytes in one canonical form (the values; for text their lengths too; the
positions of nulls), each stream into a keyed BLAKE2b, and these with names and types into the fingerprint.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from dipriv.errors import InputError
from dipriv.sources.protocol import FingerprintRequest, TableFingerprint

_DIGEST_BYTES = 16
_KEY_BYTES = range(16, 65)


class Fingerprint:
    """The fingerprint of a table that comes in batches.

    It depends on the key, the columns' names and types, and all cells in their order, nulls included. It does not
    depend on how the rows are cut into batches, on slices, on what lies under a null, or on how a type is stored:
    numbers of any type are alike, as are dates and times to the microsecond, nulls and what is not a number, texts and
    texts in a dictionary. The types of a table without rows do not count. Lists, structs and other nested cells are
    hashed one by one in Python, slowly.

    >>> table = pa.table({"age": [31, None, 47], "name": ["Ann", "Bo", "Cy"]})
    >>> def digest(batches):
    ...     fingerprint = Fingerprint(bytes(32), table.column_names)
    ...     for batch in batches:
    ...         fingerprint.update(batch)
    ...     return fingerprint.digest()
    >>> digest(table.to_batches(max_chunksize=1)) == digest(table.to_batches())
    True
    """

    def __init__(self, key: bytes, names: Sequence[str]) -> None:
        if len(key) not in _KEY_BYTES:
            raise InputError(f"the fingerprint's key has {len(key)} bytes.", "Use a ledger's fingerprint_key().")
        self._key = key
        self._columns = [_Column(key, name) for name in names]
        self._rows = 0

    def update(self, batch: pa.RecordBatch) -> None:
        """Add the next rows."""
        names = [column.name for column in self._columns]
        if batch.schema.names != names:
            raise InputError(
                f"a batch has {batch.num_columns} columns that are not the table's {len(names)} in their order.",
                "Give batches of one table.",
            )
        if batch.num_rows:
            for column, array in zip(self._columns, batch.columns, strict=True):
                column.update(array, self._rows)
            self._rows += batch.num_rows

    def digest(self) -> bytes:
        """16 bytes for all rows so far."""
        facts = json.dumps([self._rows, [column.facts() for column in self._columns]])
        return _hash(self._key, "table", facts.encode()).digest()


def fingerprint_of(batch: pa.RecordBatch, key: bytes) -> bytes:
    """The fingerprint of a table that is one batch."""
    fingerprint = Fingerprint(key, batch.schema.names)
    fingerprint.update(batch)
    return fingerprint.digest()


class PrefixFingerprints:
    """The fingerprint of a table that comes in batches, and of its beginnings of given numbers of rows."""

    def __init__(self, request: FingerprintRequest) -> None:
        self._request = request
        self._fingerprint: Fingerprint | None = None
        self._rows = 0
        self._met: set[bytes] = set()

    def update(self, batch: pa.RecordBatch) -> None:
        """Add the next rows."""
        if self._fingerprint is None:
            self._fingerprint = Fingerprint(self._request.key, batch.schema.names)
        sizes = self._request.prefix_sizes
        for end in sorted(end for end in sizes if self._rows < end <= self._rows + batch.num_rows):
            self._fingerprint.update(batch.slice(0, end - self._rows))
            self._met.add(self._fingerprint.digest())
            batch, self._rows = batch.slice(end - self._rows), end
        self._fingerprint.update(batch)
        self._rows += batch.num_rows

    def result(self) -> TableFingerprint:
        """The fingerprints of all rows so far."""
        if self._fingerprint is None:
            raise InputError("the table has no rows.", "Give a table with at least one row.")
        return TableFingerprint(self._fingerprint.digest(), frozenset(self._met))


class _Column:
    """The streams of one column."""

    def __init__(self, key: bytes, name: str) -> None:
        self.name = name
        self._family: str | None = None
        self._values, self._lengths, self._nulls = (_hash(key, use) for use in ("values", "lengths", "nulls"))

    def facts(self) -> list[Any]:
        streams = (self._values, self._lengths, self._nulls)
        return [self.name, self._family, *(stream.hexdigest() for stream in streams)]

    def update(self, array: pa.Array, first: int) -> None:
        """Add cells, the first of which is in row `first`."""
        array = _plain(array)
        family = _family(array.type)
        if self._family not in (None, family):
            raise InputError(
                f"column {self.name!r} changes its type between batches.", "Give batches of one table, of one type."
            )
        self._family = family
        values = None if family in ("text", "binary", "nested", "nothing") else _fixed_width(array)
        if (missing := _missing(array)) is not None:
            self._nulls.update((first + np.flatnonzero(missing)).astype("<i8").data)
            values = None if values is None else np.where(missing, 0, values)
        if values is not None:
            self._values.update(values.data)
        elif family != "nothing":
            lengths, content = _pieces(array)
            self._lengths.update(lengths.data)
            self._values.update(content.data)


def _hash(key: bytes, use: str, data: bytes = b"") -> hashlib.blake2b:
    return hashlib.blake2b(data, key=key, digest_size=_DIGEST_BYTES, person=f"dipriv {use}".encode())


def _plain(array: pa.Array) -> pa.Array:
    """The array without extension type and dictionary."""
    if isinstance(array.type, pa.BaseExtensionType):
        return _plain(array.storage)
    if pt.is_dictionary(array.type):
        labels = _plain(array.dictionary)
        return (labels.cast(pa.large_string()) if _is_text(labels.type) else labels).take(array.indices)
    if pt.is_run_end_encoded(array.type):
        return _plain(pc.run_end_decode(array))
    return array


def _family(arrow_type: pa.DataType) -> str:
    """What types have in common that may hold the same cells."""
    if pt.is_integer(arrow_type) or pt.is_floating(arrow_type) or pt.is_decimal(arrow_type):
        return "number"
    if pt.is_boolean(arrow_type):
        return "boolean"
    if _is_text(arrow_type):
        return "text"
    if _is_binary(arrow_type):
        return "binary"
    if pt.is_date(arrow_type) or pt.is_timestamp(arrow_type):
        return "time"
    if pt.is_time(arrow_type) or pt.is_duration(arrow_type):
        return "time of day" if pt.is_time(arrow_type) else "duration"
    return "nothing" if pt.is_null(arrow_type) else "nested"


def _missing(array: pa.Array) -> NDArray[np.bool_] | None:
    """Which cells are null or not a number, if any: files and libraries write the one as the other."""
    missing = array.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    return missing if missing.any() else None


def _fixed_width(array: pa.Array) -> NDArray[np.int64]:
    """Numbers, times and truth values, 8 bytes each: whole numbers as such, others by their bits; times in µs."""
    kind = array.type
    if pt.is_boolean(kind):
        return _filled(array.cast(pa.int8())).astype("<i8")
    if pt.is_temporal(kind):
        return _microseconds(array)
    if pt.is_integer(kind) and not pt.is_uint64(kind):
        return _filled(array).astype("<i8", copy=False)
    values = _filled(array.cast(pa.float64(), safe=False) if pt.is_decimal(kind) else array)
    with np.errstate(invalid="ignore"):
        whole = (values == np.floor(values)) & (np.abs(values.astype("<f8")) < 2.0**63)
        numbers = np.where(whole, values, 0).astype("<i8")
    return numbers if whole.all() else np.where(whole, numbers, values.astype("<f8").view("<i8"))


def _filled(array: pa.Array) -> NDArray[Any]:
    filled = array.fill_null(0) if array.null_count else array
    values: NDArray[Any] = filled.to_numpy(zero_copy_only=False)
    return values


def _microseconds(array: pa.Array) -> NDArray[np.int64]:
    kind = array.type
    if pt.is_date(kind):
        return _filled(array.cast(pa.date32(), safe=False).cast(pa.int32())).astype("<i8") * 86_400_000_000
    ticks = _filled(array.cast(pa.int32() if pt.is_time32(kind) else pa.int64())).astype("<i8")
    return ticks // 1000 if kind.unit == "ns" else ticks * {"s": 1_000_000, "ms": 1000, "us": 1}[kind.unit]


def _pieces(array: pa.Array) -> tuple[NDArray[Any], NDArray[Any]]:
    """The lengths of texts, and all texts one after the other; nothing for nulls."""
    if not (_is_text(array.type) or _is_binary(array.type)):
        array = pa.array([None if cell is None else repr(cell) for cell in array.to_pylist()], pa.large_string())
    if not (pt.is_large_string(array.type) or pt.is_large_binary(array.type)):
        array = array.cast(pa.large_string() if _is_text(array.type) else pa.large_binary())
    if array.null_count:
        array = array.fill_null("" if pt.is_large_string(array.type) else b"")
    _, offsets, content = array.buffers()
    ends = np.frombuffer(offsets, dtype="<i8")[array.offset : array.offset + len(array) + 1]
    if content is None:
        return np.diff(ends), np.empty(0, dtype=np.uint8)
    return np.diff(ends), np.frombuffer(content, dtype=np.uint8)[ends[0] : ends[-1]]


def _is_text(arrow_type: pa.DataType) -> bool:
    return bool(pt.is_string(arrow_type) or pt.is_large_string(arrow_type) or pt.is_string_view(arrow_type))


def _is_binary(arrow_type: pa.DataType) -> bool:
    plain = pt.is_binary(arrow_type) or pt.is_large_binary(arrow_type) or pt.is_fixed_size_binary(arrow_type)
    return bool(plain or pt.is_binary_view(arrow_type))
