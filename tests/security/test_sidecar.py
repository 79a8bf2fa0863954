"""Guarantee files that somebody crafted say nothing; those that dipriv wrote are read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dipriv
from dipriv.guarantee.sidecar import SIDECAR_SUFFIX, read_sidecar

NOTES = [
    b"[" * 100_000,
    b"[]",
    b"null",
    b"\xff",
    b'{"guarantee": []}',
    b'{"guarantee": {"epsilon": "1"}}',
    b'{"guarantee": {"epsilon": NaN, "protects": "", "kernel": "", "reference": ""}}',
    b'{"guarantee": {"epsilon": 1.0, "protects": "a\\u001b[2J", "kernel": "", "reference": ""}}',
    b'{"guarantee": {"epsilon": 1.0, "protects": "", "kernel": "", "reference": "", "delta": "0"}}',
    b'{"guarantee": {"epsilon": 1.0, "protects": "", "kernel": "", "reference": "", "conditions": [[]]}}',
    b'{"fidelity": [1]}',
    b'{"format": 2, "guarantee": {}}',
    b'{"format": 3}',
    b'{"format": 4}',
    b'{"format": true}',
]


@pytest.mark.parametrize("content", NOTES, ids=lambda content: content[:30].decode("latin-1"))
def test_notes_that_say_nothing(content: bytes, tmp_path: Path) -> None:
    (tmp_path / f"t.csv{SIDECAR_SUFFIX}").write_bytes(content)
    assert read_sidecar(tmp_path / "t.csv") is None


def test_a_note_is_read(tmp_path: Path) -> None:
    pq.write_table(pa.table({"age": np.arange(500) % 50}), tmp_path / "in.parquet")
    release = dipriv.privatize_file(tmp_path / "in.parquet", tmp_path / "out.csv", 1.0)
    found = read_sidecar(tmp_path / "out.csv")
    assert found is not None
    assert (found.guarantee, found.fidelity) == (release.guarantee, release.fidelity)
    assert (found.rows_read, found.rows_dropped, found.rows_released) == (500, 0, 500)
    assert read_sidecar(tmp_path / "other.csv") is None
