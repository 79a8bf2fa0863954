"""From noisy counts to a law: no far value made of noise, nothing negative, N rows in all, single values found."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from dipriv._base.arrays import FloatArray
from dipriv.codecs.ordered_codes import FloatBitCodes, GridCodes, OrderedCodes
from dipriv.references._learning.measurements import NoiseKind, Spread
from dipriv.references._learning.postprocess import (
    CLEAR,
    EDGE,
    EMPTY,
    MISSING,
    OF_OCTAVE,
    finest_step,
    missing_found,
    occupied,
    quantile,
    shortest_between,
    single_values,
    to_total,
    without_empty_ends,
)
from tests.support import ALARM

F64 = np.dtype(np.float64)
counts_of_cells = st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=30).map(lambda z: np.array(z) / 1024)


def at_least(seen: int, n: int) -> float:
    """Clopper-Pearson: with this many of n, the chance is above this but once in a million."""
    return float(stats.beta.ppf(ALARM, seen, n - seen + 1)) if seen else 0.0


SPREADS = [Spread("laplace", 7.0), Spread("gaussian", 7.0)]
each_spread = pytest.mark.parametrize("spread", SPREADS, ids=lambda spread: spread.kind)


def noise(spread: Spread, size: int | tuple[int, int], seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    draw = rng.laplace if spread.kind == "laplace" else rng.normal
    return np.asarray(draw(scale=spread.scale, size=size))


def taken_of(line: OrderedCodes, totals: FloatArray, spread: Spread, needed: bool = True) -> NDArray[np.intp]:
    deviations = np.full(len(totals), spread.deviation)
    return np.flatnonzero(occupied(line.octaves, totals, deviations, spread.kind, needed, 4.0))


def octaves_of(line: OrderedCodes, values: FloatArray) -> NDArray[np.intp]:
    return np.searchsorted(line.octaves.starts, line.to_codes(values), side="right") - 1


@each_spread
@pytest.mark.parametrize("name", ["ages", "normal", "incomes", "negative"])
def test_the_octaves_of_clean_data_are_found(spread: Spread, name: str) -> None:
    """Without noise all octaves with many rows are taken, and none beyond the outermost rows."""
    rng = np.random.default_rng(1)
    line = FloatBitCodes.of(F64)
    values = {
        "ages": rng.integers(18, 90, 5000).astype(float),
        "normal": rng.normal(size=5000),
        "incomes": rng.lognormal(10, 1, 5000),
        "negative": -rng.exponential(5.0, 5000),
    }[name]
    own = octaves_of(line, values)
    totals = np.bincount(own, minlength=len(line.octaves.starts)).astype(float)
    taken = taken_of(line, totals, spread)
    assert {*np.flatnonzero(totals > 5 * spread.deviation)} <= {*taken}
    assert {*taken} <= {*range(own.min(), own.max() + 1)}


def extension(kind: NoiseKind) -> float:
    """The least M with P(noise extends a run by d octaves or more) <= M^d/(1 - M): Chernoff's bound.

    An octave gains G = X/b - EMPTY for Laplace noise, X²/(2σ²) - EMPTY for Gaussian noise, where X is positive, else
    -EMPTY; E[e^(θG)] has a closed form.
    """
    thetas = np.linspace(0.01, 0.99, 197)
    above = 1 / (1 - thetas) if kind == "laplace" else 1 / np.sqrt(1 - thetas)
    return float(((1 + above) / 2 * np.exp(-thetas * EMPTY[kind])).min())


@each_spread
def test_noise_makes_no_far_octaves(spread: Spread) -> None:
    line = FloatBitCodes.of(F64, 2.0**-40, 2.0**41 - 1)
    runs, middle = 1500, len(line.octaves.starts) // 2
    ratio = extension(spread.kind)
    assert ratio < 0.71

    def beyond(real: Spread) -> NDArray[np.int64]:
        z = noise(real, (runs, len(line.octaves.starts)), 2)
        z[:, middle] += 1000 * spread.scale
        found = [taken_of(line, row, spread) for row in z]
        return np.array([[middle - taken[0], taken[-1] - middle] for taken in found])

    honest, loud = beyond(spread), beyond(Spread(spread.kind, 2 * spread.scale))
    for distance in (6, 9, 12):
        allowed = min(1.0, ratio**distance / (1 - ratio))
        for side in (0, 1):
            assert at_least(int((honest[:, side] >= distance).sum()), runs) <= allowed
        if distance == 12:
            assert at_least(int((loud >= distance).any(axis=1).sum()), runs) > allowed  # control: twice the noise


@each_spread
@pytest.mark.parametrize("value", [1e300, 1e-300, -5e200])
def test_clear_counts_are_found_anywhere(spread: Spread, value: float) -> None:
    line = FloatBitCodes.of(F64)
    (place,) = octaves_of(line, np.array([value]))
    for seed in range(20):
        totals = noise(spread, len(line.octaves.starts), seed)
        assert place not in taken_of(line, totals, spread)  # control
        totals[place] += 40 * spread.deviation
        assert place in taken_of(line, totals, spread)


@each_spread
def test_a_far_octave_must_stand_out_more(spread: Spread) -> None:
    line = FloatBitCodes.of(F64, 1.0)
    totals = np.zeros(len(line.octaves.starts))
    totals[8] = 1e4 * spread.deviation
    for distance, size, is_taken in ((1, 3.0, True), (1, 1.0, False), (5, 4.0, False), (5, 40.0, True)):
        more = totals.copy()
        more[8 + distance] = size * spread.deviation
        assert (8 + distance in taken_of(line, more, spread)) == is_taken


@each_spread
def test_both_signs_and_zero_are_judged_by_themselves(spread: Spread) -> None:
    line = GridCodes.of(np.dtype(np.int16))
    zero = int(np.flatnonzero(line.octaves.signs == 0)[0])
    totals = np.zeros(len(line.octaves.starts))
    totals[zero + 5] = 500.0 * spread.deviation
    assert taken_of(line, totals, spread).tolist() == [zero + 5]
    totals[zero] = 10.0 * spread.deviation
    assert taken_of(line, totals, spread).tolist() == [zero, zero + 5]
    totals[zero - 3 : zero - 1] = 30.0 * spread.deviation
    assert taken_of(line, totals, spread).tolist() == [zero - 3, zero - 2, zero, zero + 5]
    totals[zero - 3 : zero - 1] = 0.5 * spread.deviation
    assert taken_of(line, totals, spread).tolist() == [zero, zero + 5]  # too little for a side of its own


@each_spread
def test_where_nothing_stands_out_usual_octaves_are_taken_if_they_are_needed(spread: Spread) -> None:
    line = FloatBitCodes.of(F64)
    exponents = []
    for seed in range(20):
        totals = noise(spread, len(line.octaves.starts), seed)
        taken = taken_of(line, totals, spread)
        signs = line.octaves.signs[taken]
        assert len(taken) >= 1
        assert len({*signs.tolist()} - {0}) <= 2
        exponents.append(float(np.abs(line.octaves.exponents[taken] - 4.0).max()))
        assert len(taken_of(line, totals, spread, needed=False)) <= len(taken)
    assert np.median(exponents) < 60  # of a thousand; without a preference the median would be some 500
    quiet = np.zeros(len(line.octaves.starts))
    assert len(taken_of(line, quiet, spread, needed=False)) == 0
    assert len(taken_of(line, quiet, spread)) == 1


@settings(max_examples=150)
@given(counts_of_cells, st.floats(0.5, 1e6))
def test_counts_add_up_to_the_rows(noisy: FloatArray, total: float) -> None:
    settled = to_total(noisy, total)
    assert np.all(settled >= 0)
    slack = 1e-12 * (total + float(np.abs(noisy).sum()))
    assert abs(settled.sum() - total) <= slack
    np.testing.assert_allclose(to_total(settled, total), settled, atol=slack, rtol=1e-9)
    order = np.argsort(noisy, kind="stable")
    assert np.all(np.diff(settled[order]) >= -slack)
    positive = np.maximum(noisy, 0.0)
    if positive.sum() > total:  # least squares: all that stay are shortened alike, all that go are not above that
        cut = (noisy - settled)[settled > 0]
        assert np.ptp(cut) <= slack
        assert np.all(noisy[settled == 0] <= cut[0] + slack)
    elif positive.any():
        np.testing.assert_allclose(settled, positive * (total / positive.sum()))


def test_the_nearest_counts_are_nearer_than_any_others() -> None:
    rng = np.random.default_rng(4)
    noisy = np.array([50.0, 30.0, -20.0, 5.0, 60.0])
    settled = to_total(noisy, 100.0)
    others = 100 * rng.dirichlet(np.ones(5), 20_000)
    assert np.sum((settled - noisy) ** 2) <= np.min(np.sum((others - noisy) ** 2, axis=1))


@each_spread
def test_nulls_are_not_made_of_noise(spread: Spread) -> None:
    n = 200_000
    z = noise(spread, n, 5)
    half = Spread(spread.kind, spread.scale / 2)
    assert at_least(int((missing_found(z, spread) > 0).sum()), n) <= MISSING
    assert at_least(int((missing_found(z, half) > 0).sum()), n) > MISSING  # control: half the threshold
    assert missing_found(np.array([500.0, 3.0, -9.0]), spread).tolist() == [500.0, 0.0, 0.0]


@each_spread
@pytest.mark.parametrize("chance", [0.3, 1e-3, 1e-9])
def test_a_quantile_is_exceeded_with_its_chance_at_most(spread: Spread, chance: float) -> None:
    law = (stats.laplace if spread.kind == "laplace" else stats.norm)(scale=spread.scale)
    assert law.sf(quantile(spread, chance)) <= chance
    assert law.sf(quantile(spread, chance) / 3) > chance  # control


@each_spread
@pytest.mark.parametrize("step", range(6))
def test_the_coarsest_step_of_nearly_all_values_is_found(spread: Spread, step: int) -> None:
    """Whole numbers stay whole although noise is in every count. What is beyond the right step is a sum of at most
    five counts of noise, whose chance to exceed 4 √6 deviations is below 1e-2 by Bernstein's bound.
    """
    rows, runs = 100_000, 60
    exact = np.zeros(6)
    exact[: step + 1] = rows / (step + 1)
    found = np.array([finest_step(exact + noise(spread, 6, seed), spread, rows) for seed in range(runs)])
    assert (found != step).sum() <= stats.binom.isf(ALARM, runs, 0.01)
    assert finest_step(exact, spread, rows) == step
    wrong = np.array([finest_step(exact + 40 * noise(spread, 6, seed), spread, rows) for seed in range(runs)])
    assert (wrong != step).sum() > stats.binom.isf(ALARM, runs, 0.01) or step in (0, 5)  # control: far more noise


def test_noise_adds_no_digits_in_one_column_of_ten_thousand() -> None:
    """Gaussian noise of five counts has √5 deviations: more than 4 √6 of them are as rare as 4.38 of a normal law."""
    spread, rows, runs = Spread.of("gaussian", 1e-5), 100_000, 100_000
    chance = stats.norm.sf(4 * math.sqrt(6 / 5))
    draws = np.random.default_rng(3).normal(0, spread.deviation, (runs, 6))
    digits = sum(finest_step(each, spread, rows) > 0 for each in draws + np.array([rows, 0, 0, 0, 0, 0]))
    most = stats.binom.isf(ALARM, runs, chance)
    assert digits <= most
    wider = 1.5 * draws + np.array([rows, 0, 0, 0, 0, 0])
    assert sum(finest_step(each, spread, rows) > 0 for each in wider) > most  # control: half as much noise again


@each_spread
def test_a_few_values_off_the_step_do_not_matter(spread: Spread) -> None:
    exact = np.array([99_950.0, 0, 0, 0, 0, 50.0])
    assert finest_step(exact, spread, 100_000) == 0
    assert finest_step(np.array([50_000.0, 0, 0, 0, 0, 50_000.0]), spread, 100_000) == 5  # control
    assert finest_step(np.array([5.0, 15.0, 0, 0, 0, 0]), spread, 20) <= 1


@settings(max_examples=300)
@given(st.floats(-1e300, 1e300), st.floats(0, 1))
def test_the_shortest_number_is_inside(low: float, width: float) -> None:
    high = low + width * max(abs(low), 1e-300)
    short = shortest_between(low, high)
    assert low <= short <= high


@pytest.mark.parametrize("sign", [-1, 1])
def test_no_number_between_has_fewer_digits(sign: int) -> None:
    """Beside all numbers of one and two digits."""
    rng = np.random.default_rng(6)
    few = {digits: [] for digits in (1, 2)}  # type: dict[int, list[float]]
    for power, mantissa in product(range(-3, 3), range(1, 100)):
        few[1 if mantissa < 10 else 2].append(sign * mantissa * 10.0**power)
    for _ in range(300):
        low, high = np.sort(sign * 10 ** rng.uniform(-1, 1) * np.array([1.0, 1 + rng.exponential(0.1)]))
        short = shortest_between(float(low), float(high))
        fewest = next((digits for digits in (1, 2) if any(low <= x <= high for x in few[digits])), 3)
        digits = len(np.format_float_scientific(abs(short), trim="-").split("e")[0].replace(".", ""))
        assert digits == fewest if fewest < 3 else digits >= 3


def cells_at(line: FloatBitCodes, value: float, width: int) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Three cells, the middle one of so many codes around a value, the others a thousand times as wide."""
    code = int(line.to_codes(np.array([value]))[0])
    start = code - width // 3
    return (
        np.array([start - 1000 * width, start, start + width]),
        np.array([1000 * width, width, 1000 * width], dtype=np.uint64),
    )


@pytest.mark.parametrize("dtype", [F64, np.dtype(np.float32)], ids=str)
@pytest.mark.parametrize("value", [42.0, 0.1, -7.5, 1e30, 3.14])
def test_a_heavy_narrow_cell_is_one_value(dtype: np.dtype[np.float64], value: float) -> None:
    line = FloatBitCodes.of(dtype)
    starts, sizes = cells_at(line, value, 1000 if dtype == F64 else 30)
    heavy = np.array([1.0, 5000.0, 1.0])
    found, widths = single_values(line, starts, sizes, heavy, Spread("laplace", 1.0))
    assert widths.tolist() == [sizes[0], 1, sizes[2]]
    assert line.to_values(found[1:2])[0] == dtype.type(value)
    assert found[0] == starts[0]
    assert found[2] == starts[2]
    for masses, scale in (
        (heavy, 5000.0 / CLEAR + 1),  # noise could have made it
        (np.array([5e6, 5000.0, 1.0]), 1.0),  # not far denser than what is beside it
    ):
        same, widths = single_values(line, starts, sizes, masses, Spread("laplace", scale))
        assert np.array_equal(same, starts)
        assert np.array_equal(widths, sizes)


def test_a_wide_cell_is_not_one_value() -> None:
    line = FloatBitCodes.of(F64)
    octaves = line.octaves.starts[3000:3003]
    sizes = np.diff(line.octaves.starts[3000:3004]).astype(np.uint64)
    found, widths = single_values(line, octaves, sizes, np.array([1.0, 1e6, 1.0]), Spread("laplace", 1.0))
    assert np.array_equal(found, octaves)
    assert np.array_equal(widths, sizes)


@each_spread
def test_bins_at_the_ends_are_left_out_together_not_one_by_one(spread: Spread) -> None:
    """A density that falls has no segments; each bin alone is less than its noise, all of them are not."""
    octaves = GridCodes.of(np.dtype(np.int64)).octaves
    last = int(np.flatnonzero((octaves.signs == 1) & (octaves.exponents == 6))[0])
    falling = np.linspace(1.4, 0.6, 40) * spread.deviation
    assert np.all(falling < EDGE * spread.deviation)
    histogram = np.concatenate([np.full(8, 100.0 * spread.deviation), falling])  # an octave below it is full
    octave_of = np.repeat([last - 1, last], [8, 40])
    kept = without_empty_ends(octaves, octave_of, histogram, np.ones(48), spread.deviation)
    assert kept[:8].all()
    assert histogram[8:][kept[8:]].sum() >= (1 - OF_OCTAVE) * falling.sum()
    assert kept[8:].tolist() == sorted(kept[8:].tolist(), reverse=True)  # only the far end is left out


@each_spread
def test_segments_at_the_ends_that_noise_explains_are_left_out(spread: Spread) -> None:
    octaves = GridCodes.of(np.dtype(np.int64)).octaves
    last = int(np.flatnonzero((octaves.signs == 1) & (octaves.exponents == 6))[0])
    octave_of, widths = np.full(6, last), np.ones(6)
    clear, few = 100.0 * spread.deviation, 0.5 * spread.deviation
    for shape, expected in (
        ([clear, clear, clear, few, few, 0.0], [True, True, True, False, False, False]),
        ([0.0, few, clear, clear, few, few], [False, False, True, True, False, False]),
        ([clear] * 6, [True] * 6),
        ([few] * 6, [True] * 6),  # one segment: nothing says where values are
    ):
        kept = without_empty_ends(octaves, octave_of, np.array(shape), widths, spread.deviation)
        assert kept.tolist() == expected
