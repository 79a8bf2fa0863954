"""Statistics as values: the same numbers as pandas, numpy and statsmodels find."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dipriv
from dipriv.statistics import (
    Difference,
    GroupMean,
    LinearRegression,
    LogisticRegression,
    Mean,
    Quantile,
    Share,
    Slope,
)

RNG = np.random.default_rng(5)
N = 400
FRAME = pd.DataFrame(
    {
        "x": RNG.normal(size=N),
        "n": RNG.integers(0, 9, N),
        "sex": RNG.choice(["F", "M"], N),
        "smokes": RNG.random(N) < 0.3,
        "gaps": np.where(RNG.random(N) < 0.1, np.nan, RNG.normal(size=N)),
    }
)


@pytest.mark.parametrize("frame", [FRAME, pl.from_pandas(FRAME), pa.Table.from_pandas(FRAME)], ids=["pd", "pl", "pa"])
def test_they_are_what_pandas_finds_in_every_library(frame: object) -> None:
    assert Mean("x").of(frame) == pytest.approx(FRAME["x"].mean())
    assert Mean("smokes").of(frame) == pytest.approx(FRAME["smokes"].mean())
    assert Mean("gaps").of(frame) == pytest.approx(FRAME["gaps"].mean())
    assert Share("sex", "F").of(frame) == pytest.approx((FRAME["sex"] == "F").mean())
    assert Share("gaps", None).of(frame) == pytest.approx(FRAME["gaps"].isna().mean())
    assert Share("sex", "X").of(frame) == 0
    assert Quantile("n", 0.75).of(frame) == FRAME["n"].quantile(0.75, interpolation="lower")
    assert GroupMean("x", "sex", "F").of(frame) == pytest.approx(FRAME["x"][FRAME["sex"] == "F"].mean())
    difference = Difference(GroupMean("x", "sex", "F"), GroupMean("x", "sex", "M"))
    assert difference.of(frame) == pytest.approx(-np.diff(FRAME.groupby("sex")["x"].mean())[0])
    assert Slope("x", "n").of(frame) == pytest.approx(np.polyfit(FRAME["n"], FRAME["x"], 1)[0])


def test_regressions_are_those_of_statsmodels() -> None:
    sm = pytest.importorskip("statsmodels.api")
    design = sm.add_constant(np.column_stack([FRAME["n"], FRAME["sex"] == "F"]).astype(float))
    linear = LinearRegression("x", ("n", ("sex", "F"))).of(FRAME)
    assert list(linear.values()) == pytest.approx(sm.OLS(FRAME["x"], design).fit().params.tolist())
    logistic = LogisticRegression("smokes", ["n", ("sex", "F")]).of(FRAME)
    expected = sm.Logit(FRAME["smokes"].astype(float), design).fit(disp=0).params.tolist()
    assert list(logistic.values()) == pytest.approx(expected, abs=1e-6)
    assert next(iter(linear)).endswith("intercept")


def test_what_rows_do_not_determine_is_nan() -> None:
    assert np.isnan(GroupMean("x", "sex", "X").of(FRAME))
    assert np.isnan(list(LinearRegression("x", ("n", "n")).of(FRAME).values())).all()
    assert np.isnan(list(LogisticRegression("smokes", ["smokes"]).of(FRAME).values())).all()


def test_refusals_say_what_is_wrong() -> None:
    with pytest.raises(dipriv.InputError, match="holds labels, not numbers"):
        Mean("sex").of(FRAME)
    with pytest.raises(dipriv.InputError, match="not 0 or 1"):
        LogisticRegression("n", ["x"]).of(FRAME)
    with pytest.raises(dipriv.InputError, match="between 0 and 1"):
        Quantile("x", 1.5)
    with pytest.raises(dipriv.InputError, match="the statistic"):
        Mean("nobody").of(FRAME)
