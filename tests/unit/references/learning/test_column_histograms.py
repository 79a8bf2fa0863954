"""Histograms of single columns: what must survive, whatever the noise: digits, nulls, atoms, ranges, rare labels."""

from __future__ import annotations

import datetime as dt
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy import stats

from dipriv._tables import frames as tables
from dipriv._tables.fitted_columns import label_of_others
from dipriv.codecs.binned import BinnedCodec, RankedLevelsCodec
from dipriv.references._learning import column_histograms as module
from dipriv.references._learning.column_histograms import MIN_VALUE_ROWS, _Numbers, learn_columns
from dipriv.references._learning.domain import domain_of
from dipriv.references._learning.estimates import ColumnEstimate
from dipriv.references._learning.learn import plan_shares
from dipriv.references._learning.measurements import Accountant
from dipriv.references._learning.postprocess import CLEAR, quantile
from dipriv.references.protocol import Frequencies
from dipriv.release.labels import TableValues
from dipriv.schema import Categorical, Kind
from dipriv.sources.protocol import CountedTables
from tests.support import ALARM, bits

NINE = Fraction(1, 10**9)
CUTS = stats.norm.isf(ALARM / 2)


def estimates(
    frame: Any,
    epsilon: float = 1.0,
    delta: Fraction = NINE,
    seed: int = 1,
    declared: dict[str, Kind] | None = None,
    labels: dict[str, list[str]] | None = None,
) -> dict[str, ColumnEstimate]:
    """As a release learns columns, with all of ε for the reference."""
    table = tables.read(frame)
    kinds, listed = declared or {}, {name: pa.array(found) for name, found in (labels or {}).items()}
    columns = [table.column(name) for name in table.names]
    domains = [
        domain_of(column.numeric(listed.get(column.name)), kinds.get(column.name), delta > 0) for column in columns
    ]
    others = {domain.name: label_of_others(table.column(domain.name)) for domain in domains if domain.finds_labels}
    rows = TableValues(CountedTables(table.rows, lambda: [table]), columns, {**listed, **others})
    settled, shares = plan_shares(domains, table.rows, Fraction(epsilon), delta, 0)
    accountant = Accountant(shares.kind, shares.budget, bits(seed))
    found = learn_columns(settled, rows, shares, accountant)
    assert accountant.spent <= sum(shares.columns)
    for estimate in found:
        assert estimate.histogram.sum() == pytest.approx(table.rows)
        assert np.all(estimate.histogram >= 0)
        assert len(estimate.histogram) == estimate.codec.states
    return {estimate.domain.name: estimate for estimate in found}


def drawn(estimate: ColumnEstimate, n: int = 20_000, seed: int = 1) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Values of a sample from the histogram, and which of them are missing."""
    rng = np.random.default_rng(seed)
    states = rng.choice(estimate.codec.states, n, p=estimate.histogram / estimate.histogram.sum())
    cells = estimate.codec.decode((states + 1.0 - rng.random(n))[:, np.newaxis])
    missing = np.zeros(n, dtype=bool) if cells.missing is None else cells.missing != 0
    return cells.values, np.asarray(missing)


def share_of(estimate: ColumnEstimate, value: float) -> float:
    """The histogram's share of one value that has a bin of its own."""
    codec = estimate.codec
    assert isinstance(codec, BinnedCodec)
    code = codec.line.to_codes(np.array([value], dtype=codec.dtype))[0]
    place = int(np.searchsorted(codec.starts, code))
    if place == len(codec.starts) or codec.starts[place] != code or codec.sizes[place] != 1:
        return 0.0
    return float(estimate.histogram[len(codec.missing) + place] / estimate.histogram.sum())


def six(rows: int, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 91, rows)
    return pd.DataFrame(
        {
            "age": age,
            "code": rng.choice([1, 2, 3, 4, 7, 9], rows, p=[0.4, 0.2, 0.2, 0.1, 0.05, 0.05]),
            "income": np.where(rng.random(rows) < 0.2, 0.0, np.round(rng.lognormal(10, 1, rows))),
            "sex": rng.choice(["f", "m"], rows),
            "born": pd.Timestamp("1950-01-01") + pd.to_timedelta(rng.integers(0, 18_000, rows), unit="D"),
            "ok": rng.random(rows) < 0.3,
        }
    )


# ---- what survives ----


@pytest.mark.parametrize("dtype", ["i8", "u1", "f8"])
@pytest.mark.parametrize("delta", [NINE, Fraction(0)], ids=["approximate", "pure"])
def test_whole_numbers_of_a_small_range_keep_each_value(dtype: str, delta: Fraction) -> None:
    """Six codes of 20,000 rows: each share within five deviations of its noise, and no other number has more."""
    rows, codes = 20_000, np.array([1, 2, 3, 4, 7, 9])
    weights = np.array([0.4, 0.2, 0.2, 0.1, 0.05, 0.05])
    x = np.random.default_rng(1).choice(codes, rows, p=weights).astype(dtype)
    for seed in range(3):
        found = estimates(pd.DataFrame({"x": x}), 1.0, delta, seed)["x"]
        noise = 2 * CUTS * found.spread.deviation / rows
        for code in codes:
            assert abs(share_of(found, code) - np.mean(x == code)) < noise
        assert share_of(found, 5) < noise < 0.04
        values, _ = drawn(found)
        assert np.array_equal(values, np.rint(values))


@pytest.mark.parametrize("rows", [1000, 30_000])
def test_whole_numbers_stored_as_floats_stay_whole(rows: int) -> None:
    x = np.random.default_rng(2).integers(0, 5000, rows).astype(np.float64)
    for seed in range(5):
        found = estimates(pd.DataFrame({"x": x}), 1.0, seed=seed)["x"]
        values, _ = drawn(found)
        assert np.array_equal(values, np.rint(values))
    halves = estimates(pd.DataFrame({"x": x + 0.5}), 1.0)["x"]
    assert not np.array_equal(drawn(halves)[0], np.rint(drawn(halves)[0]))  # control


@pytest.mark.parametrize(("digits", "rows"), [(1, 5000), (2, 5000), (3, 20_000)])
def test_decimals_keep_their_digits(digits: int, rows: int) -> None:
    x = np.round(np.random.default_rng(3).lognormal(3, 1, rows), digits)
    for seed in range(3):
        values, _ = drawn(estimates(pd.DataFrame({"x": x}), 1.0, seed=seed)["x"])
        assert np.array_equal(values, np.round(values, digits))
        assert not np.array_equal(values, np.round(values, digits - 1))  # control: and no fewer


@pytest.mark.parametrize("rows", [1000, 30_000])
def test_nulls_survive(rows: int) -> None:
    rng = np.random.default_rng(4)
    gone = rng.random(rows) < 0.3
    table = pa.table(
        {
            "real": pa.array(rng.normal(size=rows), mask=gone),
            "whole": pa.array(rng.integers(0, 90, rows), mask=gone),
            "text": pa.array(rng.choice(["a", "b"], rows), mask=gone),
            "day": pa.array(rng.integers(0, 9000, rows).astype("datetime64[D]"), mask=gone),
            "none": pa.array(rng.integers(0, 90, rows)),
        }
    )
    for name, found in estimates(table, 60_000 / rows).items():
        missing = drawn(found)[1].mean()
        allowed = CUTS * (2 * found.spread.deviation / rows + math.sqrt(0.25 / 20_000))
        assert abs(missing - (0.0 if name == "none" else gone.mean())) < allowed
        assert allowed < 0.25  # control: not a useless bound


def test_a_frequent_float_value_becomes_an_atom() -> None:
    """A value with far more rows than the threshold, 6 to 7 deviations; one with far fewer rows does not."""
    rng, rows = np.random.default_rng(5), 20_000
    x = np.where(rng.random(rows) < 0.2, 1234.5678901, rng.lognormal(6, 1, rows))
    for seed in range(3):
        found = estimates(pd.DataFrame({"x": x}), 1.0, seed=seed)["x"]
        share = share_of(found, 1234.5678901)
        assert abs(share - 0.2) < 0.02 + 2 * CUTS * found.spread.deviation / rows
        assert share_of(found, float(x[x != 1234.5678901][0])) == 0.0  # control: a value of one row


def test_a_value_needs_its_threshold_beside_the_rows_that_are_not_looked_at() -> None:
    """Values of fewer than ten rows are not counted, so the tenth row alone must not show one; noise is tiny here."""
    domain = domain_of(tables.read(pd.DataFrame({"x": [0.5]})).column("x").numeric(None), None, True)
    learner = _Numbers(domain, Fraction(10**6), Accountant("gaussian", Fraction(10**6), bits(1)), rows=1000)
    found = Frequencies(np.array([1.25, 2.25]), np.array([MIN_VALUE_ROWS, MIN_VALUE_ROWS + 5]), others=985)
    learner.find_values(found, NINE)
    assert learner.values.tolist() == [2.25]


def test_bins_beyond_the_values_are_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """The octave of 70 to 79 begins at 64 and ends at 127; noise would put values where there are none."""
    frame = six(5000).assign(age=np.random.default_rng(3).integers(70, 80, 5000))

    def outside() -> NDArray[np.float64]:
        found = [drawn(estimates(frame, 1.0, seed=seed)["age"], 5000)[0] for seed in range(40)]
        return np.array([np.mean((values < 68) | (values > 81)) for values in found])

    trimmed = outside()
    monkeypatch.setattr(module, "without_empty_ends", lambda octaves, of, histogram, *_: np.ones(len(histogram), bool))
    plain = outside()  # under the same noise
    fewer, different = int(np.sum(trimmed < plain)), int(np.sum(trimmed != plain))
    assert fewer > stats.binom.isf(ALARM, different, 0.5)  # a sign test: by chance, half of them are


def test_dates_stay_in_their_years() -> None:
    """And days: the noise of finer steps exceeds what is allowed for, 4 deviations of all of them, in less than
    one of a hundred columns.
    """
    rng = np.random.default_rng(6)
    whole_days = []
    for rows in (1000, 30_000):
        days = pd.Timestamp("1985-06-01") + pd.to_timedelta(rng.integers(0, 3650, rows), unit="D")
        for seed in range(4):
            found = estimates(pd.DataFrame({"x": days}), 1.0, seed=seed)["x"]
            ticks = (drawn(found)[0] * found.domain.column.storage.tick_ns).astype("datetime64[ns]")
            years = ticks.astype("datetime64[Y]").astype(int) + 1970
            # octaves of years since 1970 end at 1986 and 2002: bins there may reach over the ends of the data
            assert np.mean((years >= 1982) & (years <= 1999)) > 0.9
            whole_days.append(np.array_equal(ticks, ticks.astype("datetime64[D]")))
    assert whole_days.count(False) <= stats.binom.isf(ALARM, len(whole_days), 0.01)


@pytest.mark.parametrize("rows", [1000, 30_000])
def test_ages_stay_between_plausible_bounds_beside_five_other_columns(rows: int) -> None:
    """18 to 90 years: an octave lower or higher is the least that noise may add, twice in a hundred columns."""
    beyond = []
    for seed in range(10 if rows == 1000 else 4):
        found = estimates(six(rows), 1.0, seed=seed)
        values, _ = drawn(found["age"])
        assert np.array_equal(values, np.rint(values))
        beyond.append(np.mean((values < 8) | (values > 127)))
        if rows == 30_000:
            assert np.mean((values < 16) | (values > 95)) < 0.02
    assert np.mean(np.array(beyond) > 0.05) <= 0.3
    assert np.median(beyond) < 0.05


# ---- odd columns ----


@pytest.mark.parametrize("rows", [1, 30, 5000])
def test_odd_columns_are_learned(rows: int) -> None:
    rng = np.random.default_rng(7)
    frame = pa.table(
        {
            "huge": np.full(rows, 1e300),
            "tiny": np.full(rows, 5e-324),
            "constant": np.full(rows, 42),
            "nothing": pa.array([None] * rows, pa.float64()),
            "no_text": pa.array([None] * rows, pa.string()),
            "zero": np.zeros(rows),
            "bottom": np.full(rows, -(2**63)),
            "infinite": np.where(rng.random(rows) < 0.5, np.inf, -np.inf),
            "nan": np.full(rows, np.nan),
        }
    )
    for name, found in estimates(frame, 5.0).items():
        values, missing = drawn(found, 500)
        if values.dtype.kind == "f":
            assert np.all(np.isfinite(values[~missing]))
        if rows == 5000:
            allowed = 2 * CLEAR * found.spread.scale / rows
            if name in ("nothing", "no_text", "nan"):
                assert missing.mean() > 1 - allowed
            elif name in ("constant", "zero"):
                assert np.mean(values[~missing] == (42 if name == "constant" else 0)) > 1 - allowed
            elif name == "huge":
                assert np.mean((values > 1e299) & (values < 1e301)) > 1 - allowed


def test_no_label_of_one_row_gets_more_than_noise_explains() -> None:
    """2,000 declared labels, one common. A rare label has at most what passes BY_CHANCE/2000, and all but a few of them
    what is left of noise after shrinking: five standard errors of an even share.
    """
    rows = 20_000
    names = [f"k{number:04}" for number in range(2000)]
    cells = names + names[:1] * (rows - 2000)
    for seed in range(5):
        found = estimates(pd.DataFrame({"x": cells}), 1.0, Fraction(0), seed, labels={"x": names})["x"]
        codec = found.codec
        assert isinstance(codec, RankedLevelsCodec)
        counts = np.empty(2000)
        counts[codec.order] = found.histogram[len(codec.missing) :]
        rare = np.sort(counts[1:])[::-1]
        assert counts[0] > 0.85 * rows
        explained = quantile(found.spread, 0.01 / 2000)
        assert rare[1] <= explained  # one in a hundred histograms has one that is more
        assert rare.sum() < 2000 + CUTS * found.spread.deviation * math.sqrt(2000)
        even = 1 + CUTS * found.spread.deviation * (1 / math.sqrt(2000) + 2 * math.sqrt(5 / 2000))
        assert np.mean(rare > even) < 0.01
    plain = np.maximum(1 + np.random.default_rng(1).laplace(scale=found.spread.scale, size=1999), 0)
    assert np.mean(plain > even) > 0.01 or plain.sum() > 2000 + CUTS * found.spread.deviation * math.sqrt(
        2000
    )  # control


@pytest.mark.parametrize("seed", range(3))
def test_labels_found_privately_are_the_frequent_ones(seed: int) -> None:
    rng, rows = np.random.default_rng(8), 10_000
    cells = np.where(
        rng.random(rows) < 0.02, [f"name {number}" for number in range(rows)], rng.choice(["a", "b"], rows)
    )
    found = estimates(pd.DataFrame({"x": cells}), 1.0, seed=seed)["x"]
    assert found.codec.states == 3  # and all others
    assert isinstance(found.codec, RankedLevelsCodec)
    counts = np.empty(3)
    counts[found.codec.order] = found.histogram[len(found.codec.missing) :]
    other, a, b = counts
    noise = 2 * CUTS * found.spread.deviation
    assert abs(a - (cells == "a").sum()) < noise
    assert abs(b - (cells == "b").sum()) < noise
    assert abs(other - 0.02 * rows) < 2 * noise


def test_thresholds_and_values_are_looked_for_only_under_delta() -> None:
    frame = six(5000)
    pure = estimates(frame.drop(columns="sex"), 1.0, Fraction(0))
    assert not any(found.domain.has_thresholds for found in pure.values())
    assert estimates(frame, 1.0)["income"].domain.finds_values
    assert not estimates(frame[["income"]], 8.0)["income"].domain.finds_values  # a tree finds them


def test_declared_levels_are_all_that_comes_out() -> None:
    x = np.random.default_rng(9).integers(1, 6, 3000)
    found = estimates(pd.DataFrame({"x": x}), 1.0, declared={"x": Categorical((1, 2, 3, 8))})["x"]
    assert {*drawn(found)[0].tolist()} <= {1, 2, 3, 8}


def test_times_of_day_and_durations_keep_their_step() -> None:
    rng = np.random.default_rng(10)
    table = pa.table(
        {
            "lasts": pa.array([dt.timedelta(minutes=int(m)) for m in rng.integers(0, 500, 4000)]),
            "at": pa.array([dt.time(int(h), 30) for h in rng.integers(0, 24, 4000)]),
        }
    )
    for found in estimates(table, 2.0).values():
        values, _ = drawn(found)
        assert np.all(values.astype(np.int64) % 60_000_000 == 0)


# ---- rare states ----


def codes_with_a_rare_one(rows: int, codes: tuple[int, ...], rare: int) -> NDArray[np.int64]:
    x = np.random.default_rng(4).choice([code for code in codes if code != rare], rows)
    x[:2] = rare
    return x


@pytest.mark.parametrize("rows", [2000, 20_000])
def test_a_rare_code_among_found_ones_has_a_few_rows(rows: int) -> None:
    frame = six(rows).assign(code=codes_with_a_rare_one(rows, (1, 2, 3, 4, 5, 6, 7), 4))
    for seed in range(3):
        found = estimates(frame, 2.0, seed=seed)["code"]
        assert share_of(found, 4) > 0
        values, _ = drawn(found)
        assert {*np.unique(values)} <= {*range(1, 8)}  # none beyond the range


def test_numbers_between_the_ends_of_brackets_are_not_codes() -> None:
    """Brackets in a wide range and in a small one: few numbers of the range occur, so the gaps are no rare codes."""
    rng, rows = np.random.default_rng(5), 20_000
    small = np.array([1, 5, 9, 14])
    frame = six(rows).assign(age=rng.choice([1, 18, 25, 35, 45, 50, 56], rows), code=rng.choice(small, rows))
    gaps = np.setdiff1d(np.arange(1, 15), small)

    def floored() -> int:
        found = [estimates(frame, 4.0, seed=seed) for seed in range(3)]
        assert all(one["age"].floor == 0.0 for one in found)
        return sum(one["code"].floor > 0.0 for one in found)

    assert floored() == 0
    filled = frame.assign(code=np.where(rng.random(rows) < 0.5, rng.choice(gaps[:-2], rows), frame["code"]))
    assert any(estimates(filled, 4.0, seed=seed)["code"].floor > 0.0 for seed in range(3))  # control: two gaps


@pytest.mark.parametrize("count", [5, 2000])
def test_declared_labels_that_nobody_has_get_few_rows(count: int) -> None:
    """A label that the schema lists may be rare, but thousands of them have at most 0.5% of the rows together."""
    rows, labels = 5000, [f"l{number:04}" for number in range(count)]
    frame = six(rows).assign(sex=np.random.default_rng(6).choice(labels[:3], rows))
    found = estimates(frame, 1.0, labels={"sex": labels}, declared={"sex": Categorical(levels=tuple(labels))})["sex"]
    low = found.histogram[found.histogram <= found.floor]
    assert np.all(found.histogram > 0)
    assert low.sum() <= rows / 200
    private = estimates(frame, 1.0)["sex"]
    assert private.floor == 0.0  # control: labels that are found have none
