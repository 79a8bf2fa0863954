"""Intervals: what they rest on, what they refuse, and how often they hold the truth."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import binom

import dipriv
from dipriv.release.intervals import Replicates, intervals_of
from dipriv.release.unseen import _with_longer_tails, unseen
from dipriv.statistics import Cells, Difference, GroupMean, LinearRegression, Mean, Quantile, Share, Slope

KINDS: dict[str, Any] = {
    "grade": dipriv.Discrete(levels=(1, 2, 3, 4, 5)),
    "hours": dipriv.Discrete(levels=tuple(range(11))),
    "passed": dipriv.Categorical(levels=("no", "yes")),
    "alone": dipriv.Discrete(levels=(0, 1, 2)),
}


def population(n: int, seed: int) -> pd.DataFrame:
    """Hours raise grades, grades decide who passes; `alone` has nothing to do with them."""
    rng = np.random.default_rng(seed)
    hours = rng.binomial(10, 0.4, n)
    grade = np.clip(np.rint(0.4 * hours + rng.normal(1.2, 0.8, n)), 1, 5).astype(int)
    passed = np.where(rng.random(n) < grade / 6, "yes", "no")
    return pd.DataFrame({"grade": grade, "hours": hours, "passed": passed, "alone": rng.integers(0, 3, n)})


@pytest.fixture(scope="module")
def release() -> dipriv.Release[pd.DataFrame]:
    pairs = [("grade", "hours"), ("grade", "passed")]
    return dipriv.privatize(population(4000, 1), 1.0, schema=KINDS, pairs=pairs, seed=1)


def test_an_interval_surrounds_its_estimate_and_is_wider_than_sampling(release: dipriv.Release[pd.DataFrame]) -> None:
    interval = release.interval(Mean("hours"), replicates=20)
    assert interval.low < interval.estimate < interval.high
    assert interval.released == pytest.approx(release.data["hours"].mean())
    assert interval.error > release.data["hours"].std() / math.sqrt(4000)
    assert interval.reason is None
    assert "95% interval" in str(interval)


def test_the_same_call_gives_the_same_interval(release: dipriv.Release[pd.DataFrame]) -> None:
    once = release.intervals([Mean("hours"), Slope("grade", "hours")], replicates=12)
    assert once == release.intervals([Mean("hours"), Slope("grade", "hours")], replicates=12)
    wider = release.interval(Mean("hours"), level=0.99, replicates=12)
    assert wider.low < once[0].low
    assert wider.high > once[0].high


def test_what_rests_on_a_pair_that_was_not_measured_has_no_interval() -> None:
    release = dipriv.privatize(population(600, 2), 0.3, schema=KINDS, pairs=[("grade", "hours")], seed=2)
    assert release._model is not None
    assert ("grade", "hours") in release._model.pairs
    refused = release.interval(Slope("alone", "hours"), replicates=10)
    assert math.isnan(refused.low)
    assert refused.reason == "this rests on alone x hours, which was not measured."
    assert "no interval" in str(refused)
    forced = release.interval(Slope("alone", "hours"), replicates=10, force=True)
    assert forced.low < forced.high
    assert "Forced" in str(forced)
    assert forced.unmeasured == (("alone", "hours"),)
    several = release.intervals([LinearRegression("grade", ("hours", "alone"))], replicates=10)
    assert len(several) == 3
    assert all("alone" in str(one.reason) for one in several)


def test_a_function_rests_on_the_columns_that_it_picks(release: dipriv.Release[pd.DataFrame]) -> None:
    assert release._model is not None
    mean = release.interval(lambda table: table["hours"].mean(), replicates=12)
    built_in = release.interval(Mean("hours"), replicates=12)
    assert (mean.low, mean.high) == pytest.approx((built_in.low, built_in.high))
    picked = release.interval(lambda t: t[["grade", "hours"]].corr().iloc[0, 1], replicates=10)
    assert picked.reason is None
    everything = release.interval(lambda table: table.corr(numeric_only=True).iloc[0, 1], replicates=10)
    measured = {frozenset(pair) for pair in release._model.pairs}
    assert (everything.reason is None) == (len(measured) == 6)


def test_a_function_gets_the_library_of_the_release() -> None:
    release = dipriv.privatize(pl.from_pandas(population(500, 3)), 1.0, schema=KINDS, seed=3)
    interval = release.interval(lambda table: table["hours"].mean(), replicates=10)
    assert isinstance(release.data, pl.DataFrame)
    assert interval.low < interval.high


def test_values_that_were_not_counted_by_themselves_are_refused(release: dipriv.Release[pd.DataFrame]) -> None:
    open_ended = dipriv.privatize(
        pd.DataFrame({"pay": np.random.default_rng(4).lognormal(8, 1, 3000).round(2), "x": np.arange(3000) % 7}),
        1.0,
        seed=4,
    )
    assert "not counted by itself" in str(open_ended.interval(Share("pay", 3000.0), replicates=10).reason)
    assert "not a label" in str(release.interval(Share("passed", "perhaps"), replicates=10).reason)
    nested = Difference(GroupMean("grade", "passed", "perhaps"), GroupMean("grade", "passed", "yes"))
    assert "not a label" in str(release.interval(nested, replicates=10).reason)


def test_a_label_is_known_by_itself_beside_an_empty_one_for_others() -> None:
    rng = np.random.default_rng(11)
    table = pd.DataFrame({"town": rng.choice(["A", "B"], 3000), "n": rng.integers(0, 5, 3000)})
    release = dipriv.privatize(table, 1.0, schema={"n": KINDS["alone"]}, pairs=[("town", "n")], seed=11)
    assert release.interval(GroupMean("n", "town", "B"), replicates=10).reason is None


def test_a_rare_value_may_have_the_rows_that_noise_hides() -> None:
    table = population(2000, 5).assign(alone=0)
    release = dipriv.privatize(table, 0.5, schema=KINDS, seed=5)
    interval = release.interval(Share("alone", 2), replicates=10)
    assert release._model is not None
    assert interval.high >= 2 * release._model.deviations["alone"] / 2000


def test_an_open_end_widens_the_interval_of_a_mean_and_a_declared_one_does_not() -> None:
    pay = np.random.default_rng(6).integers(0, 100, 2000)
    frame = pd.DataFrame({"pay": pay, "grade": population(2000, 6)["grade"]})
    schema = {"grade": KINDS["grade"]}
    bounded = dipriv.privatize(frame, 1.0, schema={**schema, "pay": dipriv.Continuous(0, 99)}, seed=6)
    unbounded = dipriv.privatize(frame, 1.0, schema=schema, seed=6)
    widths = [(one.high - one.low) for one in (r.interval(Mean("pay"), replicates=12) for r in (bounded, unbounded))]
    assert widths[0] < widths[1]


def test_rows_that_noise_hides_in_a_tail_may_be_in_any_group_of_another_column() -> None:
    """20 of 3,000 rows beyond the end that noise leaves have grade 5: the slope of the release does not show them."""
    rng = np.random.default_rng(8)
    short = pd.DataFrame({"pay": rng.uniform(1.0, 8.0, 3000).round(1), "grade": rng.integers(1, 6, 3000)})
    frame = short.copy()
    frame.loc[frame.index[frame["grade"] == 5][:20], "pay"] = 14.0
    release = dipriv.privatize(frame, 0.7, schema={"grade": KINDS["grade"]}, pairs=[("pay", "grade")], seed=8)
    assert release._model is not None
    assert release.data["pay"].max() < 14
    slope, cells = Slope("pay", "grade"), Cells.of(release.data, ["pay", "grade"])
    (down,), (up,) = unseen(slope, cells, release.data, release._model)
    lacking = slope.of(frame) - slope.of(short)
    assert down < 0 < lacking < up
    same_rows = max(slope.values(one.table)[0] for one in _with_longer_tails("pay", (), cells, release._model))
    assert same_rows - slope.of(release.data) < lacking  # the control: a longer tail in the same rows is not enough
    bounded = dipriv.privatize(
        frame, 0.7, schema={"grade": KINDS["grade"], "pay": dipriv.Continuous(1, 8)}, pairs=[("pay", "grade")], seed=8
    )
    assert bounded._model is not None
    narrow = unseen(slope, Cells.of(bounded.data, ["pay", "grade"]), bounded.data, bounded._model)
    assert narrow[1][0] - narrow[0][0] < 0.5 * (up - down)  # a declared bound hides nothing beyond it


def test_references_that_are_not_private_and_persons_are_refused() -> None:
    table = population(800, 7)
    with pytest.raises(dipriv.InputError, match="the reference is not private"):
        dipriv.privatize(table, 1.0, reference="holdout", seed=7).interval(Mean("hours"))
    table["person"] = np.arange(800) // 2
    with pytest.raises(dipriv.InputError, match="rows of one person are alike"):
        dipriv.privatize(table, 1.0, unit="person", schema=KINDS, seed=7).interval(Mean("hours"))


def test_refusals_say_what_is_wrong(release: dipriv.Release[pd.DataFrame]) -> None:
    with pytest.raises(dipriv.InputError, match="level=95"):
        release.interval(Mean("hours"), level=95)
    with pytest.raises(dipriv.InputError, match="replicates=2"):
        release.interval(Mean("hours"), replicates=2)
    with pytest.raises(dipriv.InputError, match="not a column of the private reference"):
        release.interval(Mean("nobody"))
    with pytest.raises(dipriv.InputError, match="expected a statistic"):
        release.interval("hours")  # type: ignore[arg-type]
    with pytest.raises(dipriv.InputError, match="has 2 numbers"):
        release.interval(LinearRegression("grade", "hours"))


@pytest.mark.slow
def test_intervals_hold_the_truth_and_ordinary_ones_do_not() -> None:
    """Coverage over releases of fresh tables: not below 90% as far as 40 releases show; sampling error alone fails."""
    asked = [
        Mean("hours"),
        Share("passed", "yes"),
        Quantile("hours"),
        GroupMean("grade", "passed", "yes"),
        Slope("grade", "hours"),
    ]
    truth = [statistic.of(population(1_000_000, 99)) for statistic in asked]
    runs, hits, plain_hits = 40, np.zeros(len(asked)), 0
    for seed in range(runs):
        pairs = [("grade", "hours"), ("grade", "passed")]
        release = dipriv.privatize(population(2000, 100 + seed), 0.7, schema=KINDS, pairs=pairs, seed=seed)
        assert release._model is not None
        found = intervals_of(asked, release.data, Replicates(release._model), count=16)
        hits += [one.low <= true <= one.high for one, true in zip(found, truth, strict=True)]
        hours = release.data["hours"]
        plain_hits += abs(hours.mean() - truth[0]) <= 1.96 * hours.std() / math.sqrt(len(hours))
    alarm = 1e-4 / len(asked)
    least = binom.ppf(alarm, runs, 0.93)  # fewer hits than this have probability below the alarm
    assert (hits >= least).all(), hits
    assert plain_hits < binom.ppf(0.05, runs, 0.93)  # the control: noise is not in the ordinary interval
