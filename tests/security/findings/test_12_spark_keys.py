"""Finding 12: with a ledger, its permanent fingerprint key was broadcast to the workers, which keep it on disks."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import dipriv
from dipriv.ledger import Ledger
from dipriv.release.accounting import fingerprint_request
from tests import spark_support

pytest.importorskip("pyspark", reason="pyspark is not installed; make test installs it, or pip install dipriv[spark]")

N = 300
TABLE = pa.table({"label": ["abcd"[i % 4] for i in range(N)], "x": [float(i) for i in range(N)]})


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("reference", ["private", "holdout"])
def test_the_ledgers_keys_never_travel(
    session: Any, reference: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that is broadcast is recorded, as the bytes that Spark writes to files."""
    from pyspark.core.broadcast import Broadcast

    sent = b""
    plain = Broadcast.dump

    def dump(self: Any, value: Any, file: Any) -> None:
        nonlocal sent
        sent += pickle.dumps(value)
        plain(self, value, file)

    monkeypatch.setattr(Broadcast, "dump", dump)
    ledger = Ledger.create(tmp_path / "ledger.db")
    rows = spark_support.in_partitions(session, TABLE, [100, 200])
    for _ in range(2):
        release = dipriv.privatize(rows, 1.0, reference=reference, ledger=ledger, dataset="people")
        assert release.data.count() == release.n_rows
    assert ledger.dataset("people").spent == pytest.approx(2.0)
    request = fingerprint_request(ledger)
    assert request is not None
    assert request.key in sent  # control: keys are seen in what is sent
    assert ledger.fingerprint_key() not in sent


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from spark_support.session(tmp_path_factory.mktemp("events"))
