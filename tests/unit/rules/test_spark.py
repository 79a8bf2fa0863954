"""Rules on Spark: the same rewriting on the workers, and the same rows as on one machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dipriv
from dipriv.errors import RuleWarning
from tests.spark_support import session
from tests.unit.rules.tables import NONE_BROKEN, broken, rows, schema

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from session(tmp_path_factory.mktemp("log"))


@pytest.mark.parametrize("reference", ["private", "holdout"])
def test_rules_hold_in_every_row_that_spark_releases(spark: Any, tmp_path: Path, reference: str) -> None:
    table = rows(500)
    table.loc[:9, "high"] = -1
    table.to_parquet(tmp_path / "t.parquet", coerce_timestamps="us")
    frame = spark.read.parquet(f"file://{tmp_path}/t.parquet")
    with pytest.warns(RuleWarning, match="10 of 500 private rows break the rule 'high >= low'"):
        release = dipriv.privatize(frame, 4.0, schema=schema(), reference=reference, seed=1)
    released = release.data.toPandas()
    assert broken(released) == NONE_BROKEN
    assert len(released) == release.n_rows
    assert list(released) == list(table)
