"""Workers whose Python cannot run dipriv are refused with what to do, before anything is read or spent."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dipriv
from dipriv.errors import InputError
from dipriv.ledger import Ledger
from dipriv.sources.spark import workers
from tests import spark_support
from tests.unit.refusal import refused

pytest.importorskip("pyspark", reason="pyspark is not installed; make test installs it, or pip install dipriv[spark]")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

PYTHONS = {
    "without packages": (f'exec "{sys.executable}" -S "$@"', "cannot import"),
    "without pyspark": (f'exec "{sys.executable}" -S -I "$@"', "cannot run a task: it ends at once, or has no pyspark"),
    "broken": ("exit 3", "cannot run a task: it ends at once, or has no pyspark"),
}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from spark_support.session(tmp_path_factory.mktemp("events"))


@pytest.mark.parametrize(("script", "needle"), PYTHONS.values(), ids=PYTHONS.keys())
def test_a_python_that_cannot_run_dipriv(
    session: Any, script: str, needle: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o700)
    _refuses(session, python, needle, tmp_path, monkeypatch)


def test_a_python_that_is_not_there(session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _refuses(session, tmp_path / "python", "there is no such program", tmp_path, monkeypatch)


def test_another_version(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "__version__", "0.0.0")
    refused(
        InputError, "the driver 0.0.0", "same version", call=lambda: dipriv.privatize(session.range(50), 1.0, seed=1)
    )
    monkeypatch.undo()
    workers.check_workers(session.sparkContext)  # control


def test_functions_of_pandas_give_the_same_on_workers_that_released(session: Any) -> None:
    import pandas as pd
    import pyspark.sql.functions as sf

    rows = session.range(300).select("id", (sf.col("id") % 7 * 1.5).alias("x"), sf.timestamp_seconds("id").alias("at"))
    with_null = sf.pandas_udf(lambda x: x.where(x > 3), "double")
    text = sf.pandas_udf(lambda x: x.astype("str") + "!", "string")
    later = sf.pandas_udf(lambda at: at + pd.Timedelta(days=1), "timestamp")

    def found() -> Any:
        return rows.select(with_null("x"), text("id"), later("at")).toPandas()

    before = found()
    assert dipriv.privatize(rows.select("id", "x"), 1.0, seed=1).data.count() == 300
    pd.testing.assert_frame_equal(before, found())
    assert before.isna().any(axis=None)  # control


def _refuses(session: Any, python: Path, needle: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session.sparkContext, "pythonExec", str(python))
    ledger = Ledger.create(tmp_path / "ledger.db")

    def call() -> Any:
        return dipriv.privatize(session.range(50), 1.0, ledger=ledger, dataset="people")

    refused(InputError, needle, str(python), "PYSPARK_PYTHON", "--archives", call=call)
    assert not ledger.datasets()
