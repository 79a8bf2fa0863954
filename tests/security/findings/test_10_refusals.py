"""Finding 10: nulls and infinities in protected rows were refused after ε was spent, which disclosed them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dipriv
from dipriv._random import bits
from dipriv._tables import frames
from dipriv.references import Known, Parametric

ROWS = 400
VALUES = np.random.default_rng(0).normal(size=ROWS)
SPLIT = dipriv.Split.new(0.4, bits=bits.source(1))
RELEASED = int(np.flatnonzero(~SPLIT.held_out(frames.read(pd.DataFrame({"x": VALUES}))))[-1])
WAYS: dict[str, dict[str, Any]] = {
    "private": {},
    "known": {"reference": Known(stats.norm())},
    "parametric": {"reference": Parametric("norm"), "split": SPLIT},
    "hold-out": {"reference": "holdout", "split": SPLIT},
    "public": {"public": pd.DataFrame({"x": VALUES[:100]})},
}


def with_cell(value: float) -> pd.DataFrame:
    frame = pd.DataFrame({"x": VALUES.copy()})
    frame.loc[RELEASED, "x"] = value
    return frame


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_neighbours_are_released_alike(way: str, tmp_path: Path) -> None:
    promises, spent, rows = set(), set(), set()
    for number, value in enumerate((0.1, np.nan, np.inf, -np.inf, 1e308)):
        options = {name: option for name, option in WAYS[way].items() if name != "split"}  # a ledger has its own split
        with dipriv.Ledger.create(tmp_path / f"{number}.db") as ledger:
            if "split" not in WAYS[way]:
                dipriv.privatize(with_cell(value), 1.0, ledger=ledger, dataset="x", **options)
                spent.add(ledger.dataset("x").spent)
        release = dipriv.privatize(with_cell(value), 1.0, seed=1, **WAYS[way])
        promises.add(str(release.guarantee))
        rows.add(len(release.data))
        assert way == "private" or np.all(np.isfinite(release.data["x"]))
    assert len(promises) == len(rows) == 1
    assert len(spent) <= 1


def test_a_null_without_an_atom_is_released_as_a_draw() -> None:
    """Not as a null, and not as the smallest value: 300 nulls under N(0, 1) have about its median."""
    frame = pd.DataFrame({"x": np.full(300, np.nan)})
    released = dipriv.privatize(frame, 1.0, reference=Known(stats.norm()), seed=1).data["x"]
    assert released.notna().all()
    assert stats.binomtest(int((released > 0).sum()), 300).pvalue > 1e-6


ODD_OBJECTS = {
    "no date": np.datetime64("NaT"),
    "no duration": np.timedelta64("NaT"),
    "a duration": np.timedelta64(3, "D"),
    "half precision": np.float16("nan"),
    "pandas' own null": pd.NA,
    "a huge number": 10**5000,
}


@pytest.mark.parametrize("odd", ODD_OBJECTS.values(), ids=ODD_OBJECTS.keys())
@pytest.mark.parametrize(
    "cells", [["a", "b", "c"] * 20, [1.5, 2.5, 3.5] * 20, [1, 2, 3] * 20], ids=["text", "real", "whole"]
)
def test_one_odd_object_is_missing(cells: list[Any], odd: Any) -> None:
    plain, changed = (pd.Series([*cells[:-1], last], dtype=object) for last in (cells[0], odd))
    one, other = (dipriv.privatize(pd.DataFrame({"x": x, "y": range(60)}), 1.0) for x in (plain, changed))
    assert other.n_rows == 60
    assert str(one.guarantee) == str(other.guarantee)
    assert one.data["x"].dtype == other.data["x"].dtype
