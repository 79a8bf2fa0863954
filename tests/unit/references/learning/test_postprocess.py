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
from dipriv.codecs.ordered_codes import FloatBitCodes, GridCodes, Octaves
from dipriv.references._learning import postprocess as margins
from dipriv.references._learning.postprocess import (
    CERTAIN,
    CLEAR,
    MISSING,
    NEXT,
    WINDOWS,
    ZERO,
    finest_step,
    log_chance,
    missing_found,
    occupied,
    shortest_between,
    single_values,
    to_total,
)
from tests.support import ALARM

F64 = np.dtype(np.float64)
counts_of_cells = st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=30).map(lambda z: np.array(z) / 1024)


def at_least(seen: int, n: int) -> float:
    """Clopper-Pearson: with this many of n, the chance is above this but once in a million."""
    return float(stats.beta.ppf(ALARM, seen, n - seen + 1)) if seen else 0.0


def reached(octaves: Octaves, true: int, noise: float, n: int, seed: int) -> NDArray[np.int64]:
    """How many octaves beyond the one true octave are taken, on both sides, where `occupied` is told of unit noise."""
    rng = np.random.default_rng(seed)
    cells = np.resize([1, 3, 1, 2], len(octaves.starts))
    octave_of = np.repeat(np.arange(len(cells)), cells)
    far = np.empty((n, 2), dtype=np.int64)
    for row in range(n):
        noisy = rng.laplace(scale=noise, size=len(octave_of))
        noisy[np.flatnonzero(octave_of == true)[0]] += 1000
        taken = np.flatnonzero(occupied(octaves, octave_of, noisy, 1.0))
        far[row] = true - taken[0], taken[-1] - true
    return far


@pytest.mark.slow
def test_noise_makes_no_far_octaves() -> None:
    """A run that ends d octaves off has a chance of at most NEXT/2^d on each side: a factor of two in value, one of two
    in chance.
    """
    octaves = FloatBitCodes.of(F64, 2.0**-8, 2.0**9 - 1).octaves
    n = 20_000
    far = reached(octaves, 8, 1.0, n, 1)
    thin = reached(octaves, 8, 2.0, 1500, 2)  # control: twice the noise, that is half the threshold
    for distance, side in product(range(1, 6), (0, 1)):
        assert at_least(int((far[:, side] >= distance).sum()), n) <= NEXT * 2.0**-distance
        assert at_least(int((thin[:, side] >= distance).sum()), 1500) > NEXT * 2.0**-distance


@pytest.mark.parametrize("cells", [1, 2, 3, 10, 100])
def test_the_bound_on_sums_of_noise_is_a_bound(cells: int) -> None:
    """The difference of two gamma variables; by quadrature."""
    totals = np.array([0.0, 0.5, 3.0, 10.0, 25.0, 60.0]) * math.sqrt(cells)
    bounds = log_chance(totals, np.full(6, cells))
    for total, bound in zip(totals.tolist(), bounds.tolist(), strict=True):
        z = np.linspace(0, 200 + 4 * cells, 200_001)
        tail = np.trapezoid(stats.gamma.pdf(z, cells) * stats.gamma.sf(total + z, cells), z)
        assert math.log(tail) - 1e-3 <= bound <= 0
        assert bound <= 0.9 * math.log(tail) + 3  # control: not a useless one


def test_what_is_certain_is_taken_anywhere_and_what_is_not_nowhere_far() -> None:
    octaves = FloatBitCodes.of(F64).octaves
    everywhere = np.arange(len(octaves.starts))
    quiet = np.zeros(len(everywhere))
    here, far = (
        int(np.searchsorted(octaves.starts, FloatBitCodes.of(F64).to_codes(np.array([x]))[0])) for x in (256.0, 1e300)
    )
    needed = -math.log(CERTAIN / len(everywhere))
    for height, is_taken in ((needed + 10, True), (needed - 3, False)):
        noisy = quiet.copy()
        noisy[here], noisy[far] = 1e6, height
        taken = occupied(octaves, everywhere, noisy, 1.0)
        assert taken[here]
        assert taken[far] == is_taken
        assert taken[(here + far) // 2] == is_taken  # what lies between is taken, too
        assert np.count_nonzero(taken) == (far - here + 1 if is_taken else 1)


def test_both_signs_and_zero_are_judged_by_themselves() -> None:
    octaves = GridCodes.of(np.dtype(np.int16)).octaves
    everywhere = np.arange(len(octaves.starts))
    zero = int(np.flatnonzero(octaves.signs == 0)[0])
    noisy = np.zeros(len(everywhere))
    noisy[zero + 5] = 500.0
    assert np.flatnonzero(occupied(octaves, everywhere, noisy, 1.0)).tolist() == [zero + 5]
    noisy[zero] = -math.log(ZERO) + 1
    assert np.flatnonzero(occupied(octaves, everywhere, noisy, 1.0)).tolist() == [zero, zero + 5]
    noisy[zero - 3 : zero - 1] = 30.0
    taken = np.flatnonzero(occupied(octaves, everywhere, noisy, 1.0)).tolist()
    assert taken == [zero - 3, zero - 2, zero, zero + 5]


def test_a_tail_is_followed_octave_by_octave() -> None:
    """Counts too small for certainty, each beside the one before."""
    octaves = FloatBitCodes.of(F64, 1.0).octaves
    everywhere = np.arange(len(octaves.starts))
    noisy = np.where(everywhere < 15, 4000.0 * 2.0 ** -everywhere.astype(float), 0.0)
    certain = int((noisy > -math.log(CERTAIN / len(everywhere)) + 10).sum())
    taken = np.flatnonzero(occupied(octaves, everywhere, noisy, 1.0))
    assert taken.tolist() == list(range(len(taken)))
    assert len(taken) > certain
    assert noisy[taken[-1]] > 2  # what is as small as the noise is not taken


def test_where_nothing_stands_out_ordinary_octaves_are_taken_if_they_are_needed() -> None:
    octaves = FloatBitCodes.of(F64).octaves
    everywhere = np.arange(len(octaves.starts))
    rng = np.random.default_rng(3)
    for _ in range(8):
        noisy = rng.laplace(size=len(everywhere))
        taken = np.flatnonzero(occupied(octaves, everywhere, noisy, 1.0))
        assert taken.tolist() == list(range(taken[0], taken[0] + len(taken)))
        assert 1 <= len(taken) <= max(WINDOWS)
        assert np.all(np.abs(octaves.exponents[taken]) < 60)
        assert not np.any(occupied(octaves, everywhere, noisy, 1.0, needed=False))


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


def test_nulls_are_not_made_of_noise() -> None:
    n = 200_000
    noise = np.random.default_rng(5).laplace(scale=7.0, size=n)
    false = int((missing_found(noise, 7.0) > 0).sum())
    assert at_least(false, n) <= MISSING
    assert at_least(int((missing_found(noise, 3.5) > 0).sum()), n) > MISSING  # control: half the threshold
    assert missing_found(np.array([500.0, 3.0, -9.0]), 7.0).tolist() == [500.0, 0.0, 0.0]


@pytest.mark.parametrize("step", range(6))
def test_the_coarsest_step_of_nearly_all_values_is_found(step: int) -> None:
    """Whole numbers stay whole although noise is in every count; a few values off the step do not matter."""
    rows, scale = 100_000, 10.0
    exact = np.zeros(6)
    exact[: step + 1] = rows / (step + 1)
    found = [
        finest_step(exact + rng.laplace(scale=scale, size=6), scale, rows)
        for rng in (np.random.default_rng(seed) for seed in range(50))
    ]
    assert set(found) <= {max(0, step - 1), step}
    assert np.mean(np.array(found) == step) > 0.9
    assert finest_step(exact, scale, rows) == step


def test_where_noise_hides_the_step_values_are_taken_as_they_are() -> None:
    assert finest_step(np.array([20.0, 0, 0, 0, 0, 0]), 10.0, 20) == 5
    assert finest_step(np.array([5000.0, 0, 0, 0, 0, 0]), 10.0, 5000) == 0


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
    found, widths = single_values(line, starts, sizes, heavy, 1.0)
    assert widths.tolist() == [sizes[0], 1, sizes[2]]
    assert line.to_values(found[1:2])[0] == dtype.type(value)
    assert found[0] == starts[0]
    assert found[2] == starts[2]
    for masses, scale in (
        (heavy, 5000.0 / CLEAR + 1),  # noise could have made it
        (np.array([5e6, 5000.0, 1.0]), 1.0),  # not far denser than what is beside it
    ):
        same, widths = single_values(line, starts, sizes, masses, scale)
        assert np.array_equal(same, starts)
        assert np.array_equal(widths, sizes)


def test_a_wide_cell_is_not_one_value() -> None:
    line = FloatBitCodes.of(F64)
    octaves = line.octaves.starts[3000:3003]
    sizes = np.diff(line.octaves.starts[3000:3004]).astype(np.uint64)
    found, widths = single_values(line, octaves, sizes, np.array([1.0, 1e6, 1.0]), 1.0)
    assert np.array_equal(found, octaves)
    assert np.array_equal(widths, sizes)


def _whole_line() -> tuple[Octaves, NDArray[np.intp]]:
    """Octaves of whole numbers, one cell an octave, and the octave of each cell."""
    octaves = GridCodes.of(np.dtype(np.int64)).octaves
    return octaves, np.arange(len(octaves.starts))


def test_noise_does_not_open_a_new_side_of_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """Positive values are certain; the chance of negative ones is at most NEW_SIDE times a sum over runs of octaves."""
    octaves, octave_of = _whole_line()
    rng = np.random.default_rng(11)
    certain = (octaves.signs == 1) & (octaves.exponents == 12)

    def opened(runs: int) -> int:
        noise = [rng.laplace(size=len(octave_of)) + 1000.0 * certain for _ in range(runs)]
        return sum(bool(np.any(margins.occupied(octaves, octave_of, noisy, 1.0)[octaves.signs < 0])) for noisy in noise)

    away = np.abs(np.arange(64) - 12.0)
    bound = margins.NEW_SIDE * len(margins.WINDOWS) * float(np.exp2(-away).sum())  # each run begins at one octave
    runs = 2000
    assert opened(runs) <= stats.binom.isf(1e-6, runs, min(1.0, bound))
    monkeypatch.setattr(margins, "NEW_SIDE", 0.5)
    assert opened(runs // 4) > stats.binom.isf(1e-6, runs // 4, bound)  # control


def test_a_trimmed_tail_keeps_its_rows() -> None:
    """What is cut off stands in the last cell; a side with a declared bound is not cut."""
    octaves, _ = _whole_line()
    taken = (octaves.signs == 1) & (octaves.exponents <= 6)
    octave = int(np.flatnonzero((octaves.signs == 1) & (octaves.exponents == 6))[0])
    octave_of = np.array([octave - 1, octave, octave, octave, octave, octave + 1])
    noisy = np.array([5000.0, 4000.0, 900.0, 3.0, -2.0, 9.0])
    kept, counts = margins.trimmed(octaves, octave_of, noisy, taken, 1.0, frozenset())
    assert kept.tolist() == [True, True, True, False, False, False]
    assert counts[kept].sum() == noisy.sum()
    whole, same = margins.trimmed(octaves, octave_of, noisy, taken, 1.0, frozenset({1}))
    assert whole.tolist() == [True] * 5 + [False]
    assert np.array_equal(same, noisy)


def test_bounds_extend_what_is_taken() -> None:
    octaves = GridCodes.of(np.dtype(np.int64), lower=0, upper=99_999).octaves
    taken = (octaves.signs == 1) & (octaves.exponents == 5)
    assert margins.up_to_bounds(octaves, taken.copy(), frozenset()).sum() == 1
    extended = margins.up_to_bounds(octaves, taken.copy(), frozenset({1}))
    assert octaves.exponents[extended].tolist() == list(range(5, 17))


def test_specks_beside_a_heavy_value_are_dropped_and_tails_are_not() -> None:
    sizes = np.array([1, 1, 100, 100], dtype=np.uint64)
    noisy = np.array([1e6, 4.0, 6.0, 5.0])
    same = margins.without_isolated_bins(np.array([0, 0, 1, 1]), noisy, sizes, 1.0)
    assert same.tolist() == [1e6, 0.0, 6.0, 5.0]
    clear = margins.without_isolated_bins(np.array([0, 0, 1, 1]), np.array([1e6, 40.0, 6.0, 5.0]), sizes, 1.0)
    assert clear[1] == 40.0  # control: too many for noise


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=30), st.floats(0, 100))
def test_the_least_mass_keeps_the_total(masses: list[float], least: float) -> None:
    found = margins.with_minimum(np.array(masses), least)
    assert np.isclose(found.sum(), sum(masses))
    if sum(masses) > 0:
        share = sum(masses) / max(sum(masses), np.maximum(masses, least).sum())
        assert np.all(found >= least * share * (1 - 1e-9))
