"""Exported references: the manifest and the arrays are mutated one by one, so that what is wrong lies deep inside."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from dipriv.release import local
from fuzz import seeds
from fuzz.mutate import mutate_bytes, mutate_plain

DTYPES = ("<f8", "<f4", "<i8", "<i4", "<u8", "|u1", "|b1", "<f2", "<c16", "|S3", ">f8")
SPECIAL = (np.nan, np.inf, -np.inf, -1, 0, 1, 2, 1e300, -1e300, 2.0**63, 0.5)
Arrays = dict[str, np.ndarray]


class Reference:
    """Loads what is made, and privatizes a record with it."""

    def __init__(self, folder: Path) -> None:
        self.files = [_taken_apart(content) for content in seeds.read(folder, "references")]

    def case(self, rng: Random) -> bytes:
        plain, arrays = rng.choice(self.files)
        chance = rng.random()
        if chance < 0.55:
            plain = mutate_plain(rng, plain)
        if chance > 0.45 and arrays:
            arrays = _mutate_arrays(rng, arrays)
        try:
            manifest = json.dumps(plain).encode()
        except (ValueError, RecursionError):
            manifest = b"[" * 100_000
        content = put_together(manifest, arrays)
        return mutate_bytes(rng, content) if rng.random() < 0.1 else content

    def run(self, case: bytes) -> None:
        loaded = local.read(case)
        str(loaded.guarantee), repr(loaded)
        columns = [column.facts for column in loaded.fitted.columns]
        values = {column.name: [None, None] if column.nullable else _zeros(column.arrow_type) for column in columns}
        rows = [pa.array(values[column.name], column.arrow_type) for column in columns]
        types = pa.schema([pa.field(column.name, column.arrow_type, column.nullable) for column in columns])
        loaded.privatize(pa.Table.from_arrays(rows, schema=types))
        loaded.privatize(
            pa.Table.from_arrays([pa.array(_zeros(c.arrow_type), c.arrow_type) for c in columns], types.names)
        )


def put_together(manifest: bytes, arrays: Arrays) -> bytes:
    """An .npz file, not compressed; what numpy would not write is written, too."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in {"manifest": np.frombuffer(manifest, dtype=np.uint8), **arrays}.items():
            shape = ", ".join(map(str, array.shape)) + ("," if array.ndim == 1 else "")
            text = f"{{'descr': '{array.dtype.str}', 'fortran_order': False, 'shape': ({shape}), }}".encode()
            header = text + b" " * (-(len(text) + 11) % 64) + b"\n"
            content = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + array.tobytes()
            archive.writestr(f"{name}.npy", content)
    return buffer.getvalue()


def _taken_apart(content: bytes) -> tuple[Any, Arrays]:
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    return json.loads(arrays.pop("manifest").tobytes()), arrays


def _mutate_arrays(rng: Random, arrays: Arrays) -> Arrays:
    found = dict(arrays)
    for _ in range(rng.randint(1, 2)):
        name = rng.choice(list(found))
        with np.errstate(all="ignore"):
            found[name] = _changed(rng, found[name], found)
    return found


def _changed(rng: Random, array: np.ndarray, others: Arrays) -> np.ndarray:
    chance = rng.random()
    if chance < 0.55 and array.size and array.dtype.kind in "iuf":
        copy = array.copy()
        flat = copy.reshape(-1)
        for _ in range(rng.randint(1, 3)):
            place = rng.randrange(flat.size)
            special = rng.choice((*SPECIAL, flat[rng.randrange(flat.size)], flat[place] + 1, flat[place] - 1))
            flat[place] = special if flat.dtype.kind == "f" else _as_whole(special, flat.dtype)
        return copy
    if chance < 0.65:
        return array[: rng.randrange(len(array) + 1)] if array.ndim else array
    if chance < 0.72:
        return np.concatenate([array, array[-1:]]) if array.ndim and len(array) else array
    if chance < 0.8:
        return array.reshape(rng.choice(((-1,), (1, -1), (-1, 1), (1, -1, 1)))) if array.size else array
    if chance < 0.9:
        try:
            return array.astype(rng.choice(DTYPES))
        except ValueError:  # an array that was changed to texts, of which some are no whole numbers
            return array
    if chance < 0.95:
        return others[rng.choice(list(others))]
    return np.zeros(rng.choice(((0,), (1,), (3,), (2, 2), (4, 1, 2), (0, 5))), dtype=array.dtype)


def _as_whole(number: Any, dtype: Any) -> int:
    info = np.iinfo(dtype)
    return int(min(max(float(number) if np.isfinite(number) else 0.0, float(info.min)), float(info.max) / 2))


def _zeros(arrow_type: Any) -> list[Any]:
    """Two cells of a type."""
    if pa.types.is_dictionary(arrow_type):
        return _zeros(arrow_type.value_type)
    if pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type) or pa.types.is_string_view(arrow_type):
        return ["", "Bonn"]
    if pa.types.is_boolean(arrow_type):
        return [True, False]
    return pa.array([0, 1], pa.int32()).cast(pa.int64()).cast(arrow_type, safe=False).to_pylist()  # type: ignore[no-any-return]
