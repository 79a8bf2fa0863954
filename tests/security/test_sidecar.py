"""Guarantee files that somebody crafted say nothing; those that dipriv wrote are read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dipriv.release.publish import Request, publish

from dipriv.guarantee.sidecar import read_note
from dipriv.sources.files import NOTE, Sink, Source

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
]


@pytest.mark.parametrize("content", NOTES, ids=lambda content: content[:30].decode("latin-1"))
def test_notes_that_say_nothing(content: bytes, tmp_path: Path) -> None:
    (tmp_path / f"t.csv{NOTE}").write_bytes(content)
    assert read_note(tmp_path / "t.csv") == (None, {})


def test_a_note_is_read(tmp_path: Path) -> None:
    pq.write_table(pa.table({"age": np.arange(500) % 50}), tmp_path / "in.parquet")
    done = publish(Request(1.0), Source.open(tmp_path / "in.parquet"), Sink.open(tmp_path / "out.csv"), lambda *_: None)
    assert read_note(tmp_path / "out.csv") == (done.guarantee, done.fidelity)
    assert read_note(tmp_path / "other.csv") == (None, {})
