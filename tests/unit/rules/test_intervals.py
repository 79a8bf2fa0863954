"""Intervals and answers of releases with rules: derived columns are computed in every replicate."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dipriv
from dipriv.errors import InputError
from dipriv.release.bootstrap import BootstrapModel
from dipriv.release.model_file import dump_model, load_model
from dipriv.statistics import Cells, GroupMean, Mean, Quantile, Share
from tests.unit.rules.tables import COMBINATIONS, rows, schema

FEW = 10
TABLE = rows(2500)
PAIRS = [("regular", "overtime"), ("low", "high"), ("state", "group")]


@pytest.fixture(scope="module")
def release() -> Any:
    return dipriv.privatize(TABLE, 8.0, schema=schema(), pairs=PAIRS, seed=1)


def held(cells: Cells) -> bool:
    """Whether rules hold in all rows, computed without dipriv."""
    columns, numbers = cells.columns, cells.numbers
    with np.errstate(invalid="ignore"):
        sums = np.abs(numbers("gross") - numbers("regular") - numbers("overtime")) < 0.006
        order = ~(numbers("high") < numbers("low"))
    listed = [tuple(row) for row in COMBINATIONS]
    state, city = columns["state"], columns["city"]
    pairs = zip(np.array(state[1].to_pylist())[state[0].values], city[0].values.tolist(), strict=True)  # type: ignore[union-attr]
    children = ~((numbers("age") < 15) & ~np.isnan(numbers("income")))
    return bool(sums.all() and order.all() and children.all() and all(pair in listed for pair in pairs))


def test_rules_hold_in_every_row_of_every_replicate(release: Any) -> None:
    model: BootstrapModel = release._model
    assert model.released_names == tuple(TABLE)
    replicate = model.replicate(0, 1)
    assert held(replicate.drawn)
    assert held(replicate.released)
    moved = dict(replicate.released.columns)
    moved["gross"] = moved["regular"]
    assert not held(Cells(moved, replicate.released.n_rows))  # control


@pytest.mark.slow
def test_a_derived_column_has_the_interval_of_what_it_is_derived_from(release: Any) -> None:
    """`gross` is regular + overtime, and `high` is not the difference that was learned under its name."""
    one = release.interval(Mean("gross"), replicates=FEW)
    other = release.interval(lambda t: (t["regular"] + t["overtime"]).mean(), replicates=FEW)
    assert (one.estimate, one.error) == pytest.approx((other.estimate, other.error), rel=1e-6)
    alone = release.interval(Mean("regular"), replicates=FEW)
    assert (alone.estimate, alone.error) != pytest.approx((one.estimate, one.error), rel=1e-3)  # control
    for statistic, truth in (
        (Mean("gross"), TABLE["gross"].mean()),
        (Mean("high"), TABLE["high"].mean()),
        (Quantile("gross", 0.5), TABLE["gross"].median()),
        (Share("class", "low"), (TABLE["class"] == "low").mean()),
        (Share("state", "y"), (TABLE["state"] == "y").mean()),
        (Mean("income"), TABLE["income"].mean()),
    ):
        found = release.interval(statistic, level=0.99, replicates=FEW)
        assert found.reason is None
        assert found.low <= truth <= found.high
    difference = (TABLE["high"] - TABLE["low"]).mean()
    found = release.interval(Mean("high"), level=0.99, replicates=FEW)
    assert not found.low <= difference <= found.high  # control


def test_what_was_not_counted_by_itself_has_no_interval(release: Any) -> None:
    assert "not counted by themselves" in release.interval(Share("gross", 10.0), replicates=FEW).reason
    assert "not counted by themselves" in release.interval(GroupMean("group", "state", "x"), replicates=FEW).reason
    unmeasured = release.interval(lambda t: t[["gross", "state"]]["gross"].mean(), replicates=FEW)
    assert any("state, city" in pair for pair in unmeasured.unmeasured)
    assert math.isnan(unmeasured.low)


def test_the_reference_answers_about_its_own_columns(release: Any) -> None:
    answers = release.reference
    assert {"regular", "low", "age", "income"} <= {*answers.columns}
    assert not {"gross", "high", "end", "state", "class"} & {*answers.columns}
    assert math.isfinite(answers.mean("regular", replicates=0).value)
    assert answers.probability({"age": (0, 14), "income": (-1e9, 1e9)}, replicates=0).value < 1e-9
    assert answers.probability({"age": (15, 99), "income": (-1e9, 1e9)}, replicates=0).value > 0.5  # control
    for name in ("gross", "high", "state", "class"):
        with pytest.raises(InputError, match=f"column '{name}' follows from others by a rule"):
            answers.mean(name)


@pytest.mark.slow
def test_a_data_sheet_has_the_rules(release: Any, tmp_path: Path) -> None:
    release.write(tmp_path / "out.csv")
    sheet = dipriv.load_sheet(tmp_path / "out.csv")
    assert sheet.no_model is None
    assert sheet.value("high", "3") == 3
    assert sheet.interval(Mean("gross"), replicates=FEW) == release.interval(Mean("gross"), replicates=FEW)
    again = load_model(dump_model(release._model))
    assert again.spec == release._model.spec
    assert release.forecast is not None


def test_a_model_whose_rules_are_not_its_own_is_refused(release: Any) -> None:
    from dataclasses import replace

    model: BootstrapModel = release._model
    assert model.rewriting is not None
    others = replace(model, rewriting=model.rewriting.about(["gross", "age"]))
    with pytest.raises(InputError, match="do not fit together"):
        load_model(dump_model(others))
