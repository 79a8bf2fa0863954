"""Dates and times stay in the years, months and days that rows have, as far as the rows allow."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy import stats

from dipriv import Datetime, Schema, privatize
from dipriv.codecs.binned import BinnedCodec
from dipriv.references._learning import times as module
from dipriv.references._learning.estimates import ColumnEstimate
from dipriv.references._learning.measurements import NoiseKind, Spread
from dipriv.references._learning.times import occupied_periods
from tests.support import ALARM
from tests.unit.references.learning.test_column_histograms import drawn, estimates

SEEDS = 6
FALSE: dict[NoiseKind, float] = {"gaussian": 0.002, "laplace": 0.015}
"""How often noise alone makes a run of periods, at most."""
ALLOWED = stats.binom.isf(ALARM, SEEDS, FALSE["laplace"])
"""Seeds with such a run, of SEEDS."""
CUTS = stats.norm.isf(ALARM / 2)


def beside(when: NDArray[Any]) -> pd.DataFrame:
    """A table of three columns."""
    rng = np.random.default_rng(7)
    return pd.DataFrame({"when": when, "x": rng.normal(size=len(when)), "g": rng.choice(["a", "b"], len(when))})


def learned(when: NDArray[Any], seed: int, epsilon: float = 1.0) -> ColumnEstimate:
    return estimates(beside(when), epsilon, seed=seed)["when"]


def released(estimate: ColumnEstimate, unit: str) -> NDArray[Any]:
    """A sample, in units of numpy."""
    ticks, missing = drawn(estimate)
    tick = {1000: "us", 10**9: "s", 1: "ns", 86_400 * 10**9: "D"}[estimate.domain.column.storage.tick_ns]
    return ticks[~missing].astype(f"datetime64[{tick}]").astype(f"datetime64[{unit}]")


def seconds(first: str, length: int, rows: int, seed: int = 1) -> NDArray[Any]:
    offsets = np.random.default_rng(seed).integers(0, length, rows)
    return (np.datetime64(first, "s") + offsets.astype("timedelta64[s]")).astype("datetime64[us]")


def variation(one: NDArray[Any], other: NDArray[Any]) -> float:
    """The total variation distance of two samples."""
    values, of = np.unique(np.concatenate([one, other]), return_inverse=True)
    counts = [np.bincount(part, minlength=len(values)) for part in (of[: len(one)], of[len(one) :])]
    return float(np.abs(counts[0] / len(one) - counts[1] / len(other)).sum() / 2)


def noise_of(estimate: ColumnEstimate, cells: int, rows: int, sample: int = 20_000) -> float:
    """The total variation that noise and sampling make in so many cells: the mean plus CUTS deviations, both crude."""
    of_noise = math.sqrt(2.0) * estimate.spread.deviation * cells / (2 * rows)
    of_sampling = math.sqrt(cells * (1 / rows + 1 / sample)) / 2
    return (of_noise + of_sampling) * (1 + CUTS / math.sqrt(cells))


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("full", [0.0, 20.0, 1000.0])
def test_noise_seldom_makes_periods(kind: NoiseKind, full: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """400 periods, one of which may have rows: all others are empty, in nearly all columns."""
    runs, rng = 2000, np.random.default_rng(3)
    spread = Spread(kind, 1.0 if kind == "gaussian" else math.sqrt(0.5))

    def false_alarms() -> int:
        noise = rng.normal(size=(runs, 400)) if kind == "gaussian" else rng.laplace(0, math.sqrt(0.5), (runs, 400))
        noise[:, 300] += full
        there = np.array([occupied_periods(row, spread, np.zeros(400), needed=False) for row in noise])
        there[:, 300] = False
        return int(there.any(axis=1).sum())

    assert false_alarms() <= stats.binom.isf(ALARM, runs, FALSE[kind])
    monkeypatch.setattr(module, "RUN", 3.0)
    assert false_alarms() > stats.binom.isf(ALARM, runs, FALSE[kind])  # control: cheaper runs


def test_a_weak_run_of_many_periods_is_found_where_rows_must_be() -> None:
    """Half a deviation in each of 80 years: no year stands out, all of them together do."""
    rng, spread = np.random.default_rng(4), Spread("gaussian", 1.0)
    noise = rng.normal(size=400)
    noise[200:280] += 1.0
    there = occupied_periods(noise, spread, np.zeros(400), needed=True)
    assert np.mean(there[210:270]) == 1.0
    assert np.mean(there[np.r_[:180, 300:400]]) == 0.0
    assert not np.any(occupied_periods(rng.normal(size=400), spread, np.zeros(400), needed=False))  # control


@pytest.mark.parametrize("rows", [2000, 20_000])
@pytest.mark.parametrize(
    "of",
    [lambda ticks: ticks, lambda ticks: pl.Series(ticks).dt.date().to_numpy(), lambda ticks: ticks.astype("M8[ns]")],
    ids=["times", "dates", "nanoseconds"],
)
def test_dates_stay_in_their_year(
    rows: int, of: Callable[[NDArray[Any]], NDArray[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    when = of(seconds("2025-01-01", 365 * 86_400, rows))

    def outside() -> int:
        found = [released(learned(when, seed), "Y") for seed in range(SEEDS)]
        return sum(bool(np.any(years != np.datetime64("2025"))) for years in found)

    assert outside() <= ALLOWED
    monkeypatch.setattr(module, "occupied_periods", lambda noisy, *_, **__: np.ones(len(noisy), dtype=bool))
    assert outside() > ALLOWED  # control: noise is taken for rows


def test_margins_by_year_of_birth_dates_keep_their_shape() -> None:
    rows = 20_000
    offsets = (np.random.default_rng(5).beta(3, 2, rows) * 29_585).astype("timedelta64[D]")
    born = np.datetime64("1930-01-01") + offsets
    for seed in range(3):
        found = learned(born, seed)
        by_year = released(found, "Y")
        true = born.astype("datetime64[Y]")
        assert variation(by_year, true) < noise_of(found, 81, rows)
        assert variation(by_year, true + np.timedelta64(10, "Y")) > noise_of(found, 81, rows)  # control
        assert by_year.min() >= true.min()
        assert by_year.max() <= true.max()


def test_times_of_two_days_keep_their_hours_and_seconds() -> None:
    rows = 20_000
    when = seconds("2025-03-10T00:00:00", 2 * 86_400, rows)
    when = when[(when.astype("datetime64[h]").astype(int) % 24) >= 8]  # nobody comes at night
    found = learned(when, 1)
    hours = released(found, "h")
    assert variation(hours, when.astype("datetime64[h]")) < noise_of(found, 32, len(when))
    assert np.isin(hours.astype("datetime64[D]"), np.unique(when.astype("datetime64[D]"))).all()
    exact = released(found, "us")
    assert np.mean(exact == exact.astype("datetime64[m]")) < 0.05  # 1 of 60 by chance
    minutes = learned(when.astype("datetime64[m]").astype("datetime64[us]"), 1)
    assert np.all(released(minutes, "us") == released(minutes, "us").astype("datetime64[m]"))  # control


def test_nulls_among_dates_stay() -> None:
    rows = 5000
    when = pd.Series(seconds("2025-01-01", 365 * 86_400, rows)).mask(np.random.default_rng(2).random(rows) < 0.3)
    share = float(when.isna().mean())
    for seed in range(3):
        found = learned(when.to_numpy(), seed)
        _, missing = drawn(found)
        bound = CUTS * (found.spread.deviation / rows + math.sqrt(share * (1 - share) / 20_000))
        assert abs(np.mean(missing) - share) < bound < share  # so no nulls at all would fail
        assert np.all(released(found, "Y") == np.datetime64("2025"))
    nothing = beside(np.full(rows, np.datetime64("NaT", "us")))
    alone = estimates(nothing, 1.0)["when"]
    assert drawn(alone)[1].mean() == 1.0
    assert isinstance(alone.codec, BinnedCodec)
    stand_in = alone.codec.line.to_values(alone.codec.starts)
    assert stand_in.astype("datetime64[us]").tolist() == [dt.datetime(1990, 1, 1)]


def test_steps_without_a_value_between_the_bounds_are_not_considered() -> None:
    when = seconds("2025-06-01", 86_400, 5000)
    schema = Schema({"when": Datetime(lower="2025-06-01 08:00", upper="2025-06-01 18:00")})
    for seed in range(3):
        out = privatize(pl.DataFrame(beside(when)), epsilon=0.5, schema=schema, seed=seed).data["when"].to_numpy()
        assert np.all((out >= np.datetime64("2025-06-01T08:00")) & (out <= np.datetime64("2025-06-01T18:00")))


def test_far_dates_of_a_few_rows_vanish_and_those_of_many_stay() -> None:
    when = seconds("2025-01-01", 365 * 86_400, 20_000).astype("datetime64[D]")
    few, many = when.copy(), when.copy()
    few[:3], few[3:6] = np.datetime64("0001-01-01"), np.datetime64("9999-12-31")
    many[:4000] = np.datetime64("9999-12-31")
    for seed in range(3):
        assert np.all(released(learned(few, seed), "Y") == np.datetime64("2025"))
        found = released(learned(many, seed), "D")
        assert abs(np.mean(found > np.datetime64("9000-01-01")) - 0.2) < 0.05
        assert np.mean(found == np.datetime64("9999-12-31")) > 0.15


def test_times_of_day_stay_in_their_hours() -> None:
    minutes = 9 * 60 + np.random.default_rng(3).integers(0, 8 * 60, 20_000)
    clock = pa.array((minutes * 60).astype(np.int32), pa.time32("s"))
    table = pa.table({"clock": clock, "x": np.random.default_rng(1).normal(size=20_000)})
    found = estimates(table, 1.0)["clock"]
    seconds_of_day, _ = drawn(found)
    assert np.all((seconds_of_day >= 9 * 3600) & (seconds_of_day < 17 * 3600))
    assert np.all(seconds_of_day % 60 == 0)


def test_absolute_times_stay_in_the_years_of_their_zone() -> None:
    local = seconds("2025-01-01", 365 * 86_400, 20_000)
    when = pl.Series("when", local).dt.replace_time_zone("Asia/Tokyo")
    frame = pl.DataFrame({"when": when, "x": np.arange(20_000) % 100})
    years = privatize(frame, epsilon=1.0, seed=3).data["when"].dt.year()
    assert set(years) == {2025}


@pytest.mark.parametrize("rows", [50, 5000])
def test_declared_bounds_hold_and_need_no_finding(rows: int) -> None:
    when = seconds("2025-06-01", 30 * 86_400, rows)
    when[0] = np.datetime64("1950-01-01", "us")  # outside: it stands at the bound
    schema = Schema({"when": Datetime(lower="2025-06-01", upper="2025-06-30")})
    for seed in range(3):
        out = privatize(pl.DataFrame(beside(when)), epsilon=0.5, schema=schema, seed=seed).data["when"].to_numpy()
        assert np.all((out >= np.datetime64("2025-06-01")) & (out < np.datetime64("2025-07-01")))
