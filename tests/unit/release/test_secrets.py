"""A release can be pickled, copied and printed without what must not be published; its secrets only when asked."""

from __future__ import annotations

import copy
import io
import pickle
import struct
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import dipriv
from dipriv._random.bits import source
from dipriv.errors import InputError
from dipriv.references import Grouped
from dipriv.release.result import Release
from dipriv.sources import stream
from dipriv.sources.files import File

N, SEED = 240, 31
RNG = np.random.default_rng(8)
VALUES = RNG.normal(1000, 50, N)
TAGS = [f"tag-of-row-{RNG.integers(1 << 60):016x}" for _ in range(N)]
"""In each row a number with all its bits, and a text that is too long to be stored in place."""
TABLE = pa.table({"who": np.arange(N) // 6, "tag": TAGS, "value": VALUES, "age": RNG.integers(20, 60, N)})
PUBLIC = pa.table({"value": RNG.normal(1000, 50, N), "age": RNG.integers(20, 60, N)})

FRAMES: dict[str, Callable[[pa.Table], Any]] = {
    "pandas": lambda table: table.to_pandas(),
    "polars": pl.DataFrame,
    "pyarrow": lambda table: table,
    "pyarrow, dictionaries": lambda table: table.set_column(1, "tag", table["tag"].dictionary_encode()),
    "polars, categories": lambda table: pl.DataFrame(table).with_columns(pl.col("tag").cast(pl.Categorical)),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "holdout": {"reference": "holdout", "drop": ["who"]},
    "private": {"drop": ["who"]},
    "private, from a hold-out": {"holdout": 0.3, "drop": ["who"]},
    "public": {"public": PUBLIC, "drop": ["who"]},
    "unit": {"reference": "holdout", "unit": "who", "rows_per_unit": 2},
    "groups": {"reference": Grouped("who", 2)},
}
HOLDS_ROWS = ("holdout", "unit", "groups")
"""With these the fitted reference holds values of rows that are not released."""


def pickled(thing: Any) -> bytes:
    return pickle.dumps(thing)


def joblib_dumped(thing: Any) -> bytes:
    file = io.BytesIO()
    joblib.dump(thing, file)
    return file.getvalue()


def copied(thing: Any) -> bytes:
    """All that a deep copy holds."""
    return pickle.dumps(vars(copy.deepcopy(thing)))


WAYS = {"pickle": pickled, "joblib": joblib_dumped, "deepcopy": copied}


def forms(number: float) -> tuple[bytes, ...]:
    """A number as it may be in a file: its bytes in either order, and as text."""
    return struct.pack("<d", number), struct.pack(">d", number), repr(float(number)).encode()


def keys(release: Release[Any]) -> list[bytes]:
    """The key of the split, and those of the noise and of the fit, which the seed tells here."""
    bits = source(SEED)
    found = [bits.child("noise")._key, bits.child("fit")._key, bits._key]
    return found if release.secrets.split is None else [*found, release.secrets.split.key]


def contains(data: bytes, secret: bytes) -> bool:
    return secret in data or secret.hex().encode() in data


@cache
def released(asked: str, library: str) -> Release[Any]:
    return dipriv.privatize(FRAMES[library](TABLE), 1.0, keep=["tag"], seed=SEED, **OPTIONS[asked])


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
@pytest.mark.parametrize("library", FRAMES)
@pytest.mark.parametrize("asked", OPTIONS)
def test_what_is_stored_of_a_release_has_no_row_that_was_not_released(
    asked: str, library: str, way: Callable[[Any], bytes]
) -> None:
    release = released(asked, library)
    stored = way(release)
    out = set(release.secrets.row_positions.tolist())
    rest = [row for row in range(N) if row not in out]
    assert bool(rest) == (asked not in ("private", "public"))
    assert all(TAGS[row].encode() in stored for row in out)  # control: what is kept is found
    assert not [row for row in rest if TAGS[row].encode() in stored]
    assert not any(contains(stored, key) for key in keys(release))
    without_rows = way(replace(release, data=None))  # released values may be equal to values of the hold-out
    assert not [row for row in range(N) if any(form in without_rows for form in forms(VALUES[row]))]


@pytest.mark.parametrize("asked", OPTIONS)
def test_secrets_are_stored_when_asked(asked: str) -> None:
    """The control of the test above: the same search finds them."""
    release = released(asked, "pyarrow")
    stored = pickle.dumps(release.secrets.picklable())
    rest = set(range(N)) - set(release.secrets.row_positions.tolist())
    found = {row for row in range(N) if any(form in stored for form in forms(VALUES[row]))}
    assert bool(found & rest) == (asked in HOLDS_ROWS)
    assert not found - rest  # no row that is released is in the reference
    if release.secrets.split is not None:
        assert release.secrets.split.key in stored
    again = pickle.loads(stored)
    assert again.split == release.secrets.split
    assert np.array_equal(again.released, release.secrets.released)
    assert copy.deepcopy(release.secrets.picklable()).split == release.secrets.split


def test_secrets_refuse_to_be_stored_unasked() -> None:
    release = dipriv.privatize(TABLE, 1.0, keep=["tag"], reference="holdout", drop=["who"])
    for store in (*WAYS.values(), copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="picklable"):
            store(release.secrets)


def test_released_batches_refuse_to_be_stored() -> None:
    release: Any = dipriv.privatize(TABLE.to_batches, 1.0, keep=["tag"], reference="holdout", drop=["who"])
    for store in (*WAYS.values(), copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="not pickled or copied"):
            store(release.data)
    with pytest.raises(TypeError, match="not pickled or copied"):
        pickle.dumps(release)


@pytest.mark.parametrize("way", [lambda release: pickle.loads(pickle.dumps(release)), copy.deepcopy, copy.copy])
def test_a_copy_has_all_that_may_be_published_and_no_secrets(way: Callable[[Any], Any]) -> None:
    release = dipriv.privatize(TABLE, 1.0, keep=["tag"], reference="holdout", drop=["who"])
    again = way(release)
    assert again.data.equals(release.data)
    assert again.guarantee == release.guarantee
    assert again.schema == release.schema
    assert again.row_counts == release.row_counts
    assert again.fidelity == release.fidelity
    assert again.fidelity
    with pytest.raises(InputError, match="no secrets"):
        _ = again.secrets
    assert release.secrets.split is not None  # the original keeps them


@pytest.mark.parametrize("asked", OPTIONS)
def test_nothing_of_a_row_or_key_is_printed(asked: str) -> None:
    release = dipriv.privatize(TABLE, 1.0, keep=["tag"], seed=SEED, **OPTIONS[asked])
    assert repr(release.secrets) == "ReleaseSecrets(not shown)"
    assert str(release.secrets) == "ReleaseSecrets(not shown)"
    assert repr(release.secrets.picklable()) == "ReleaseSecrets(not shown)"
    assert (
        repr(release)
        == f"Release({release.n_rows} rows, {len(release.schema)} columns, epsilon=1, NOT PRIVATE: seeded)"
    )
    shown = f"{release!r} {release} {release.secrets!r} {release.row_counts!r} {release.guarantee!r}".encode()
    shown += repr(release.secrets.split).encode()
    assert not any(contains(shown, key) or repr(key).encode() in shown for key in keys(release))
    assert not any(tag.encode() in shown for tag in TAGS)
    assert not any(repr(float(value)).encode() in shown for value in VALUES)


def test_which_rows_were_released_is_known_in_memory() -> None:
    release: Any = dipriv.privatize(TABLE, 1.0, keep=["tag"], unit="who", rows_per_unit=2, reference="holdout")
    assert release.secrets.released.sum() == release.n_rows == len(release.secrets.row_positions)
    assert release.data["tag"].to_pylist() == [TAGS[row] for row in release.secrets.row_positions]
    streamed = dipriv.privatize(TABLE.to_batches, 1.0, keep=["tag"], reference="holdout", drop=["who"])
    with pytest.raises(InputError, match="not known here"):
        _ = streamed.secrets.released


def test_the_dictionary_of_a_kept_column_has_labels_of_released_rows_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In memory, in blocks of a stream, and in a file of all of them."""
    monkeypatch.setattr(stream, "MIN_BLOCK_ROWS", 100)
    monkeypatch.setattr(stream, "MAX_BLOCK_ROWS", 100)
    table = TABLE.set_column(1, "tag", TABLE["tag"].dictionary_encode()).drop_columns("who")
    split = dipriv.Split(0.25, bytes(range(32)))
    options: dict[str, Any] = {"keep": ["tag"], "reference": "holdout", "split": split}
    for source_of_rows in (table, table.to_batches):
        release: Any = dipriv.privatize(source_of_rows, 1.0, **options)
        data = release.data if isinstance(release.data, pa.Table) else release.data.to_table()
        assert data.schema.equals(table.schema)
        for chunk in data["tag"].chunks:
            assert {*chunk.dictionary.to_pylist()} == {*chunk.to_pylist()} < {*TAGS}
        path = release.write(tmp_path / "out.arrow", force=True).path
        stored = path.read_bytes()
        assert File.at(path).read()["tag"].to_pylist() == data["tag"].to_pylist()
        kept = {*data["tag"].to_pylist()}
        assert all((tag.encode() in stored) == (tag in kept) for tag in TAGS)
