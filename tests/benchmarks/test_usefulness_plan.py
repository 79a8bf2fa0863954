"""Plans against truth: the comparison measures what it says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.quality.measures import column_variation
from benchmarks.usefulness.plan import NOTHING, Outcome, _most_close, _totals, cell_shares
from dipriv.utility.forecast import ColumnForecast
from dipriv.utility.total_variation import total_variation

RNG = np.random.default_rng(0)
COLUMNS: dict[str, tuple[pd.Series[Any], pd.Series[Any]]] = {
    "numbers": (pd.Series(RNG.normal(size=500)), pd.Series(RNG.normal(0.3, 1.0, size=500))),
    "nulls": (pd.Series([0.0, np.nan, 1.0, 2.0] * 50), pd.Series([0.0, 1.0, np.nan, np.nan] * 50)),
    "text": (pd.Series(["a", "b", None, "c"] * 50), pd.Series(["a", "(other)", "b", None] * 50)),
    "booleans": (pd.Series([True, False] * 100), pd.Series([True] * 200)),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_shares_of_cells_have_the_total_variation_that_verdicts_are_measured_by(name: str) -> None:
    true, released = COLUMNS[name]
    assert total_variation(*cell_shares(true, released)) == pytest.approx(column_variation(true, released))
    assert total_variation(*cell_shares(true, true)) == 0


def test_one_number_can_be_close_to_errors_in_one_window_only() -> None:
    assert _most_close([0.01, 0.0224, 0.03]) == 2  # 0.0224 is below 2.25 times 0.01
    assert _most_close([0.01, 0.1, 1.0]) == 1


def test_totals_count_close_forecasts() -> None:
    column = ColumnForecast("x", 0.01, 0.005, 0.02, (), 8, False, 0.0, 1.0)
    outcomes = [
        Outcome("bank", NOTHING, 1.0, column, at_shares=0.04, measured=measured, share=(1.0, 1.4))
        for measured in (0.0099, 0.0151, 0.03, 0.031)
    ]
    found = _totals(outcomes)
    assert found["close"] == 1
    assert found["inside"] == 3  # up to 0.02 times 1.5
    assert found["close at shares"] == 2
    assert found["share close"] == 4
    assert found["possible"] == 3  # 0.0151 to 0.031, or 0.0099 to 0.0151
