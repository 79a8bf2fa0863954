"""Releases through a private reference: the table's distribution within what the noise allows, whatever the column."""

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

import dipriv
from dipriv._tables import frames as tables
from dipriv.references import Private
from dipriv.references._learning.column_histograms import OF_GROUPS, OF_TREE, OF_VALUES
from dipriv.references._learning.estimates import OF_STEP
from dipriv.references._learning.postprocess import CLEAR
from tests.support import ALARM, dkw, draws, ks_uniform

N = 400_000
RNG = np.random.default_rng(0)
CONTINUOUS: dict[str, NDArray[np.float64]] = {
    "normal": RNG.normal(100, 15, N),
    "normal around 0": RNG.normal(size=N),
    "exponential": RNG.exponential(3.0, N),
    "lognormal": RNG.lognormal(10, 1, N),
}


HALF = Private(reference_share=0.5)
"""With the default share the bounds below are useless: where rows are many, the reference has a tenth of ε."""


def noise_scale(reference_epsilon: float) -> float:
    """At most, of each count of a single column of reals, whose reference has this ε."""
    return 2 / (reference_epsilon * float((1 - OF_STEP - OF_TREE - OF_VALUES) * (1 - OF_GROUPS)))


def reference_error(epsilon: float, cells: int) -> float:
    """The most, in rows, by which a distribution function learned with this ε is off, but once in a million.

    A leaf of PrivTree at depth d has more than dδ + λx rows with probability e^-x/2; inside it anything may be.
    A sum of m noisy counts is off by about sqrt(2m) scales, by Bernstein's bound; bringing counts to the right total
    adds as much again. On each side of zero, outward and inward, rows in octaves that do not stand out are dropped:
    less than CLEAR scales each, and halving from one octave to the next.
    """
    rate = 4 / (epsilon * float(OF_TREE))
    leaf = 64 * rate * math.log(2) + rate * math.log(cells / ALARM)
    scale, log = noise_scale(epsilon), math.log(2 * cells / ALARM)
    sums = scale * (math.sqrt(4 * cells * log) + 2 * log)
    return leaf + 2 * sums + 4 * 2 * CLEAR * scale


def spent_on_reference(release: dipriv.Release[Any]) -> float:
    epsilon = release.guarantee.reference.epsilon
    assert epsilon is not None
    return epsilon


@pytest.mark.parametrize("name", CONTINUOUS)
def test_a_continuous_column_keeps_its_distribution(name: str) -> None:
    """sup|F̂ - F_N| is within what the noise allows; the release is at most twice that and its sampling error away."""
    z = CONTINUOUS[name]
    frame = pd.DataFrame({"z": z})
    dip = dipriv.DIP(1.0, reference=HALF, seed=1).fit(frame)
    column = dip.mechanism_.columns[0]

    def error(values: NDArray[np.float64]) -> float:
        cells = column.cells(tables.read(pd.DataFrame({"z": values})))
        return ks_uniform(dip.mechanism_.reference.to_uniform(column.codec.encode(cells, draws(2, N)))[:, 0])

    assert dip.guarantee_.reference.epsilon is not None
    allowed = reference_error(dip.guarantee_.reference.epsilon, len(getattr(column.codec, "starts", ()))) / N
    assert error(z) < allowed
    assert error(1.1 * z + 0.1 * z.std()) > allowed  # control
    released = dip.transform(frame)["z"]
    bound = 2 * error(z) + 2 * dkw(N)
    assert stats.ks_2samp(z, released).statistic < bound
    assert stats.ks_2samp(1.1 * z + 0.1 * z.std(), released).statistic > bound  # control


@pytest.mark.parametrize("sigma", [1.0, 1.5])
def test_a_heavy_tail_keeps_its_mean(sigma: float) -> None:
    """Five standard errors of the counts of the last octaves, which weigh most; a hundredth for what cells blur."""
    z = np.random.default_rng(1).lognormal(10, sigma, N)
    for seed in range(2):
        release = dipriv.privatize(pd.DataFrame({"z": z}), 1.0, reference=HALF, seed=seed)
        released, scale = release.data["z"], noise_scale(spent_on_reference(release))
        last = 5 * math.sqrt(2) * scale * 2 * z.max() / N * 2  # octaves halve: all of them, twice the last
        allowed = last + 0.01 * z.mean() + 4.9 * z.std() / math.sqrt(N)
        assert abs(released.mean() - z.mean()) < allowed
        assert abs(np.clip(released, 0, np.median(z)).mean() - z.mean()) > allowed  # control: no upper half
        assert released.min() >= 0
        assert released.max() <= 4 * z.max()


def column(make: Callable[[np.random.Generator, int], Any], rows: int = 6000) -> Any:
    return make(np.random.default_rng(5), rows)


ODD: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "42.0 alone": lambda rng, n: np.full(n, 42.0),
    "0.1 alone": lambda rng, n: np.full(n, 0.1),
    "1/3 alone": lambda rng, n: np.full(n, 1 / 3),
    "1e300 alone": lambda rng, n: np.full(n, 1e300),
    "1e-300 alone": lambda rng, n: np.full(n, 1e-300),
    "-7 alone": lambda rng, n: np.full(n, -7),
    "0 alone": lambda rng, n: np.zeros(n),
    "99% zero": lambda rng, n: np.where(rng.random(n) < 0.99, 0.0, rng.lognormal(3, 1, n)),
    "two values": lambda rng, n: rng.choice([-1.5, 1e6], n),
    "1e300 and 1e-300": lambda rng, n: rng.choice([1e-300, 1e300, -1e300], n) * rng.uniform(0.5, 1, n),
    "subnormal": lambda rng, n: rng.integers(1, 1000, n) * 5e-324,
    "float32": lambda rng, n: rng.normal(size=n).astype(np.float32),
    "cauchy": lambda rng, n: rng.standard_cauchy(n),
    "int8": lambda rng, n: rng.integers(-128, 128, n).astype(np.int8),
    "uint64 at the top": lambda rng, n: np.uint64(2**64 - 1) - rng.integers(0, 1000, n).astype(np.uint64),
    "int64 at the bottom": lambda rng, n: np.int64(-(2**63)) + rng.integers(0, 1000, n),
    "cents": lambda rng, n: np.round(rng.lognormal(3, 1, n), 2),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_columns_stay_in_range(name: str) -> None:
    """Finite, of the same type, and no value beyond four times the largest: a spurious far value ruins every moment.

    Noise extends a run by d octaves with a chance of at most 0.53^d on each side: of three releases, two reach two
    octaves further in few columns, and none reaches twelve but once in a thousand.
    """
    z = column(ODD[name])
    most = np.max(np.abs(z.astype(np.longdouble)))
    most = np.maximum(most, np.finfo(np.float64).tiny) if name == "subnormal" else most  # these are one octave
    reach = []
    for seed in range(3):
        released = dipriv.privatize(pd.DataFrame({"z": z}), 1.0, seed=seed).data["z"].to_numpy()
        assert released.dtype == z.dtype
        assert np.all(np.isfinite(released))
        reach.append(np.max(np.abs(released.astype(np.longdouble))) / most if most > 0 else released.any())
    assert np.sort(reach)[1] <= 4
    assert np.max(reach) <= 2.0**12


@pytest.mark.parametrize("name", [name for name in ODD if "alone" in name])
def test_a_constant_stays_the_constant(name: str) -> None:
    """But for what noise alone can make beside it."""
    z = column(ODD[name])
    for seed in range(3):
        release = dipriv.privatize(pd.DataFrame({"z": z}), 1.0, seed=seed)
        assert np.mean(release.data["z"] == z[0]) > 1 - CLEAR * noise_scale(spent_on_reference(release)) / len(z)


@pytest.mark.parametrize(("name", "atom"), [("99% zero", 0.0), ("two values", 1e6), ("two values", -1.5)])
def test_an_atom_keeps_its_mass(name: str, atom: float) -> None:
    z = column(ODD[name])
    share = np.mean(z == atom)
    for seed in range(3):
        release = dipriv.privatize(pd.DataFrame({"z": z}), 1.0, seed=seed)
        released, scale = release.data["z"], noise_scale(spent_on_reference(release))
        allowed = 4.9 * math.sqrt(share * (1 - share) / len(z)) + 10 * scale / len(z)
        assert abs(np.mean(released == atom) - share) < allowed
        assert abs(np.mean(released == atom) - share**2) > (allowed if share < 0.9 else 0)  # control


@pytest.mark.parametrize(
    "arrow_type",
    [pa.float64(), pa.int64(), pa.string(), pa.bool_(), pa.timestamp("us"), pa.date32(), pa.decimal128(9, 2)],
    ids=str,
)
@pytest.mark.parametrize("rows", [1, 5000])
def test_nothing_but_nulls_is_no_error(arrow_type: pa.DataType, rows: int) -> None:
    table = pa.table({"z": pa.array([None] * rows, arrow_type)})
    for data in (table, table.append_column("other", pa.array(np.arange(rows)))):
        released = dipriv.privatize(data, 1.0, seed=1).data
        assert released.schema.equals(data.schema)
        if rows > 1 and data is table:
            assert released["z"].null_count > 0.99 * rows


TIMES: dict[str, Callable[[np.random.Generator, int], pl.Series]] = {
    "dates": lambda rng, n: pl.Series((rng.integers(0, 9000, n)).astype(np.int32)).cast(pl.Date),
    "milliseconds": lambda rng, n: pl.Series(rng.integers(10**12, 2 * 10**12, n)).cast(pl.Datetime("ms")),
    "zoned": lambda rng, n: pl.Series(rng.integers(10**15, 2 * 10**15, n)).cast(pl.Datetime("us", "Europe/Paris")),
    "nanoseconds": lambda rng, n: pl.Series(rng.integers(10**18, 2 * 10**18, n)).cast(pl.Datetime("ns")),
    "before 1970": lambda rng, n: pl.Series(-86_400_000_000 * rng.integers(1, 9000, n)).cast(pl.Datetime("us")),
    "durations": lambda rng, n: pl.Series(60_000_000 * rng.integers(-90, 900, n)).cast(pl.Duration("us")),
    "times of day": lambda rng, n: pl.Series(60_000_000_000 * rng.integers(0, 1440, n)).cast(pl.Time),
}


@pytest.mark.parametrize("name", TIMES)
@pytest.mark.parametrize("rows", [2, 100, 200_000])
def test_times_of_all_sorts_come_out_as_they_went_in(name: str, rows: int) -> None:
    series = column(TIMES[name], rows)
    release = dipriv.privatize(pl.DataFrame({"z": series}), 1.0, reference=HALF, seed=1)
    released = release.data["z"]
    assert released.dtype == series.dtype
    assert released.len() == rows
    ticks, before = released.to_physical().drop_nulls(), series.to_physical()
    if rows == 200_000:
        assert ticks.abs().max() <= 4 * before.abs().max()
        bound = 2 * reference_error(spent_on_reference(release), 500) / rows + 2 * dkw(rows)
        assert stats.ks_2samp(before, ticks).statistic < bound
        assert stats.ks_2samp(before + int(before.std() // 2), ticks).statistic > bound  # control
    if name == "times of day":
        assert ((ticks >= 0) & (ticks < 86_400 * 10**9)).all()


def test_ten_thousand_labels() -> None:
    rng = np.random.default_rng(6)
    n = 60_000
    weights = 1 / np.arange(1, 10_001)
    labels = np.char.add("k", rng.choice(10_000, n, p=weights / weights.sum()).astype(str))
    release = dipriv.privatize(pd.DataFrame({"z": labels}), 1.0, labels="public", seed=1)
    released = release.data["z"]
    assert set(released) <= set(labels)
    for common in ("k0", "k1", "k2"):
        share = np.mean(labels == common)
        noise = 2 / spent_on_reference(release)  # one histogram
        allowed = 4.9 * math.sqrt(share / n) + (noise * math.log(10_000 / ALARM) + 5 * noise) / n
        assert abs(np.mean(released == common) - share) < allowed
        assert abs(np.mean(released == "k9") - share) > allowed  # control


def test_a_hundred_columns_and_five_hundred_rows() -> None:
    rng = np.random.default_rng(7)
    frame = pd.DataFrame(
        {
            f"c{i}": [
                rng.normal(size=500),
                rng.integers(0, 9, 500),
                rng.choice(["a", "b"], 500),
                rng.random(500) < 0.5,
            ][i % 4]
            for i in range(100)
        }
    )
    released = dipriv.privatize(frame, 1.0, seed=1).data
    assert released.dtypes.equals(frame.dtypes)
    assert np.isfinite(released.select_dtypes("number")).all().all()


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 100.0])
def test_a_handful_of_rows(rows: int, epsilon: float) -> None:
    frame = pd.DataFrame(
        {
            "real": np.arange(rows) * 1e10,
            "count": np.arange(rows),
            "text": ["x"] * rows,
            "flag": [True] * rows,
            "day": [dt.datetime(2020, 1, 1)] * rows,
            "gap": [np.nan] * rows,
        }
    )
    for data in (frame, *(frame[[name]] for name in frame)):
        released = dipriv.privatize(data, epsilon, seed=1).data
        assert released.shape == data.shape
        assert released.dtypes.equals(data.dtypes)
        assert not np.isinf(released.select_dtypes("number")).any().any()


@pytest.mark.parametrize("target", [None, "y"])
def test_dependence_is_kept(target: str | None) -> None:
    n = 60_000
    rng = np.random.default_rng(8)
    x = rng.normal(size=n)
    frame = pd.DataFrame({"x": x, "y": (x + rng.normal(size=n) > 0), "w": 2 * x + rng.normal(size=n)})
    released = dipriv.privatize(frame, 2.0, reference=dipriv.references.Private(target), seed=1).data
    for one, other in (("x", "w"), ("x", "y"), ("w", "y")):
        kept, was = (stats.spearmanr(data[one], data[other]).statistic for data in (released, frame))
        assert abs(kept - was) < 0.1 * abs(was) + 4.9 / math.sqrt(n)
        alone = stats.spearmanr(released[one], rng.permutation(released[other])).statistic
        assert abs(alone - was) > 0.1 * abs(was) + 4.9 / math.sqrt(n)  # control
