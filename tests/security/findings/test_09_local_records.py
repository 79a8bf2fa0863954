"""Finding 9: an exported reference refused records by their values, although local privacy is about any two records."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats

import dipriv
from dipriv.references import Known
from tests.support import dkw, ks

ODD: tuple[Any, ...] = (
    *(None, np.nan, np.inf, -np.inf, 127, 128, -(10**30), 2.5, "many", b"x", []),
    *(dt.datetime(2300, 1, 1), dt.date.min),
)
LEVELS = stats.rv_discrete(values=([1, 2], [0.2, 0.8]))


def local(path: Path, column: pa.Array, **options: Any) -> dipriv.LocalReference:
    table = pa.table({"pay": column})
    dip = dipriv.DIP(1.0, public=None if "reference" in options else table, **options).fit(table)
    dip.export_local(path / "reference")
    return dipriv.load_local(path / "reference", seed=options.get("seed"))


COLUMNS: dict[str, pa.Array] = {
    "int8": pa.array([1, 2, 3] * 20, pa.int8()),
    "time": pa.array([dt.datetime(2020, 1, 1)] * 60, pa.timestamp("ns")),
    "text": pa.array(["a", "b"] * 30),
    "boolean": pa.array([True, False] * 30),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_every_record_has_an_answer(name: str, tmp_path: Path) -> None:
    reference = local(tmp_path, COLUMNS[name])
    for value in (*ODD, pd.NaT, pd.Timestamp("2262-04-11")):
        assert reference.privatize({"pay": value})["pay"] in COLUMNS[name].to_pylist()


@pytest.mark.parametrize("dist", [stats.norm(), stats.poisson(3), LEVELS], ids=["norm", "poisson", "levels"])
def test_a_known_distribution_answers_nulls_and_infinities(dist: Any, tmp_path: Path) -> None:
    reference = local(tmp_path, pa.array([1.0] * 10), reference=Known(dist))
    for value in ODD:
        assert np.isfinite(reference.privatize({"pay": value})["pay"])
    assert np.isfinite(reference.privatize({})["pay"])


def test_nulls_are_released_as_draws_from_the_reference(tmp_path: Path) -> None:
    n = 20_000
    reference = local(tmp_path, pa.array([1.0]), reference=Known(stats.norm()), seed=1)
    released = reference.privatize(pd.DataFrame({"pay": np.full(n, np.nan)}))["pay"].to_numpy()
    assert ks(released, stats.norm()) < dkw(n)
    assert ks(released, stats.norm(0.1)) > dkw(n)  # control


def test_nulls_among_levels_are_released_as_draws_too(tmp_path: Path) -> None:
    n = 20_000
    reference = local(tmp_path, pa.array([1.0]), reference=Known(LEVELS), seed=1)
    ones = int((reference.privatize(pd.DataFrame({"pay": np.full(n, np.nan)}))["pay"] == 1).sum())
    assert stats.binomtest(ones, n, 0.2).pvalue > 1e-6
    assert stats.binomtest(ones, n, 0.25).pvalue < 1e-6  # control
