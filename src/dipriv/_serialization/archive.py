"""Named numeric arrays <-> the bytes of an .npz file. Reading trusts no size that the file claims."""

from __future__ import annotations

import io
import math
import re
import zipfile
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dipriv.errors import InputError

Arrays: TypeAlias = dict[str, NDArray[Any]]

MAX_BYTES = 1 << 30
"""The largest size of all arrays of a file together, unless the caller allows more."""
MAX_ARRAYS = 1 << 17
"""The largest number of arrays in a file."""
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 1
_NAME = re.compile(r"(\w{1,20})\.npy")
_DTYPE = re.compile(r"<[iuf][248]|\|[iu]1")
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00([\s\S]{2})\{'descr': '([<|]\w{2})', 'fortran_order': False, "
    rb"'shape': \((\d{1,12}(?:, \d{1,12}){0,2}),?\), \} *\n"
)
"""The header that numpy writes for an array of numbers in C order; nothing else is read."""


def pack(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The arrays as an .npz file, which numpy reads, too."""
    buffer = io.BytesIO()
    rows: dict[str, Any] = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    np.savez_compressed(buffer, allow_pickle=False, **rows)
    return buffer.getvalue()


def unpack(data: bytes, largest: int = MAX_BYTES) -> Arrays:
    """The inverse of `pack`. Claimed sizes are added up first, and no more than was claimed is ever unpacked."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        claimed = sum(member.file_size for member in members)
        if claimed > largest:
            raise InputError(
                f"the file would unpack to {claimed:,} bytes; {largest:,} are allowed.",
                "Load it with a larger limit, largest=..., if you know where it comes from.",
            )
        if len(members) > MAX_ARRAYS or len({member.filename for member in members}) < len(members):
            raise ValueError("too many arrays, or two of one name")
        return dict(_member(archive, member) for member in members)


def as_dtype(text: object) -> np.dtype[Any]:
    """The dtype of whole or real numbers that a text such as "<f8" names."""
    if not isinstance(text, str) or not _DTYPE.fullmatch(text):
        raise ValueError("not a dtype of numbers")
    return np.dtype(text)


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> tuple[str, NDArray[Any]]:
    named = _NAME.fullmatch(member.filename)
    if named is None or member.compress_type not in _PACKED or member.flag_bits & _ENCRYPTED:
        raise ValueError("not an array that numpy packed")
    with archive.open(member) as file:
        content = file.read(member.file_size)  # with a size: else all that a bomb unpacks to is held at once
    return named[1], _array(content)


def _array(content: bytes) -> NDArray[Any]:
    header = _HEADER.match(content)
    if header is None or int.from_bytes(header[1], "little") != header.end() - 10:
        raise ValueError("not an array of numbers in rows")
    dtype = as_dtype(header[2].decode())
    shape = tuple(int(size) for size in header[3].split(b","))
    if math.prod(shape) * dtype.itemsize != len(content) - header.end():
        raise ValueError("an array has another size than it claims")
    return np.frombuffer(content, dtype, offset=header.end()).reshape(shape).copy()
