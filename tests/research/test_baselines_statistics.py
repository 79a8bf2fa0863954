"""Baselines: each releases what its law says, and is as private as its ε says, no more and no less."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dipriv._base.arrays import FloatArray
from dipriv._random.bits import source
from dipriv.guarantee import Model
from dipriv.kernels.laplace import lattice_of
from research.baselines import Ball, BoundedMoment, Exponential, FrequencyResampling, Laplace, PrivateLogistic, naive
from research.baselines.checks import uniforms
from research.baselines.glm import descend
from tests.support import ALARM, chi_square_tail, dkw, ks

N = 40_000


def agree(epsilon: float) -> float:
    """e^ε/(1 + e^ε), the chance of the true side."""
    return 1 / (1 + math.exp(-epsilon))


def bernstein(n: int, variance: float, reach: float, alarm: float = ALARM) -> float:
    """P(|mean of n - μ| > bound) <= alarm for independent X with this variance and |X - μ| <= reach."""
    log = math.log(2 / alarm)
    tail = reach * log / (3 * n)
    return tail + math.sqrt(tail**2 + 2 * variance * log / n)


def may_be(successes: int, trials: int, chance: float) -> bool:
    """Whether the chance lies in the Clopper-Pearson interval, which misses the true one with probability ALARM."""
    interval = stats.binomtest(successes, trials).proportion_ci(1 - ALARM, method="exact")
    return bool(interval.low <= chance <= interval.high)


def test_uniforms_are_uniform_on_odd_steps() -> None:
    """Odd multiples of 2^-53, as likely to be 1 as 3 modulo 4; columns are streams of their own."""
    u, other = (uniforms(source(1), N, column) for column in (0, 1))
    assert ks(u, stats.uniform()) < dkw(N)
    assert ks(0.95 * u, stats.uniform()) > dkw(N)  # control
    steps = u * 2.0**53
    assert np.array_equal(steps % 2, np.ones(N))
    assert may_be(int(np.count_nonzero(steps % 4 == 1)), N, 0.5)
    assert may_be(int(np.count_nonzero(u > other)), N, 0.5)
    assert not may_be(int(np.count_nonzero(u > other**2)), N, 0.5)  # control


# Laplace noise


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize(("lower", "upper"), [(0.0, 1.0), (-3.0, 7.0)])
def test_laplace_noise_has_the_scale_of_the_range(lower: float, upper: float, epsilon: float) -> None:
    """Rounding to the lattice moves a value by less than 2^-20 of the noise's scale: far below the bound."""
    for value in (lower, 0.3 * lower + 0.7 * upper, upper + 5):
        noise = Laplace(epsilon, lower, upper).privatize(np.full(N, value), seed=1) - min(value, upper)
        scale = (upper - lower) / epsilon
        assert ks(noise, stats.laplace(scale=scale)) < dkw(N)
        assert ks(noise, stats.laplace(scale=1.2 * scale)) > dkw(N)  # control
        assert ks(noise, stats.laplace(0.1 * scale, scale)) > dkw(N)  # control


@given(epsilon=st.floats(1e-9, 1e12))
def test_the_lattice_keeps_to_epsilon_exactly(epsilon: float) -> None:
    """Two values differ by at most 2^K steps, and exp(-|z|/t) changes by at most 2^K/t in its exponent over these."""
    bits, scale = lattice_of(Fraction(epsilon))
    assert Fraction(1 << bits, scale) <= Fraction(epsilon)
    assert Fraction(1 << bits, scale - 1) > Fraction(epsilon)  # control: any smaller scale would overspend


@pytest.mark.parametrize("epsilon", [1e-3, 0.7, 30.0])
def test_what_is_released_lies_on_that_lattice(epsilon: float) -> None:
    """On [0, 1], 2^K times a release is a whole number, and values differ by 2^K at most: the same noise tells."""
    mechanism, n = Laplace(epsilon, 0.0, 1.0), 1000
    bits, _ = lattice_of(Fraction(epsilon))
    values = np.random.default_rng(0).uniform(-1, 2, n)
    steps, lowest, highest = (mechanism.privatize(z, seed=1) * 2.0**bits for z in (values, np.zeros(n), np.ones(n)))
    assert np.array_equal(steps, np.rint(steps))
    assert not np.array_equal(steps / 2, np.rint(steps / 2))  # control: on no coarser lattice
    assert np.array_equal(highest - lowest, np.full(n, 2.0**bits))
    assert np.all((lowest <= steps) & (steps <= highest))


@pytest.mark.parametrize("k", [2.0, 3.0, 20.0, math.inf])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_bounded_moments_give_laplace_noise_on_the_limited_range(k: float, nonnegative: bool) -> None:
    epsilon, radius = 0.5, 2.0
    limit = radius if k == math.inf else radius * (N * epsilon**2) ** (1 / (2 * k))
    mechanism = BoundedMoment(epsilon, radius, k, nonnegative)
    assert mechanism.limit(N) == pytest.approx(limit)
    scale = (1 if nonnegative else 2) * limit / epsilon
    for value, held in ((1e9, limit), (0.5, 0.5), (-1e9, 0.0 if nonnegative else -limit)):
        released = mechanism.privatize(np.full(N, value), seed=2)
        assert ks(released, stats.laplace(held, scale)) < dkw(N)
        assert ks(released, stats.laplace(held, 1.2 * scale)) > dkw(N)  # control
        assert ks(released, stats.laplace(held + 0.1 * scale, scale)) > dkw(N)  # control


# the ball

DRAWS, EPSILON, RADIUS, SIZE = 2000, 2.0, 1.5, 1.2
DIMENSIONS = pytest.mark.parametrize("dimension", [1, 2, 3, 4, 5])


def vector_of(dimension: int, size: float) -> FloatArray:
    v = np.arange(1.0, dimension + 1) * (-1.0) ** np.arange(dimension)
    return np.asarray(v * size / np.linalg.norm(v))


@cache
def ball_draws(dimension: int, size: float) -> FloatArray:
    ball, vector = Ball(EPSILON, RADIUS), vector_of(dimension, size)
    return np.stack([ball.privatize(vector, seed=seed) for seed in range(DRAWS)])


@DIMENSIONS
def test_the_ball_has_no_bias(dimension: int) -> None:
    """Z is of length B, and Z and -Z have the same square: E ZZ' = (B²/d) I, so var Z_j = B²/d - v_j²."""
    vector, length = vector_of(dimension, SIZE), Ball(EPSILON, RADIUS).length(dimension)
    draws = ball_draws(dimension, SIZE)
    for j, mean in enumerate(draws.mean(axis=0)):
        variance, reach = length**2 / dimension - vector[j] ** 2, length + abs(vector[j])
        assert abs(mean - vector[j]) < bernstein(DRAWS, variance, reach, ALARM / dimension)
    along = draws @ (vector / SIZE)
    bound = bernstein(DRAWS, length**2 / dimension - SIZE**2, length + SIZE)
    assert abs(along.mean() - SIZE) < bound
    other = Ball(EPSILON / 2, RADIUS).length(dimension) / length
    assert abs(other * along.mean() - SIZE) > bound  # control: the length that another ε asks for


@pytest.mark.parametrize(
    ("dimension", "size"), [*((d, SIZE) for d in (1, 2, 3, 4, 5)), *((d, 4 * RADIUS) for d in (1, 2, 5))]
)
def test_the_ball_takes_the_true_side_as_often_as_epsilon_says(dimension: int, size: float) -> None:
    """A vector at the radius or beyond has the odds e^ε : 1; one within is first rounded to either end."""
    up = 0.5 + min(size, RADIUS) / (2 * RADIUS)

    def chance(epsilon: float) -> float:
        return up * agree(epsilon) + (1 - up) * (1 - agree(epsilon))

    true_side = int(np.count_nonzero(ball_draws(dimension, size) @ vector_of(dimension, 1.0) > 0))
    assert may_be(true_side, DRAWS, chance(EPSILON))
    assert not may_be(true_side, DRAWS, chance(EPSILON / 2))  # control
    assert not may_be(true_side, DRAWS, chance(2 * EPSILON))  # control


@pytest.mark.parametrize("dimension", [2, 3, 4, 5])
def test_the_ball_is_uniform_on_either_side(dimension: int) -> None:
    """The square of a coordinate of a uniform point of the unit sphere is Beta(1/2, (d - 1)/2), on either half."""
    draws = ball_draws(dimension, SIZE) / Ball(EPSILON, RADIUS).length(dimension)
    assert np.allclose(np.linalg.norm(draws, axis=1), 1, rtol=1e-12)
    across = np.roll(vector_of(dimension, 1.0), 1)
    for direction in (vector_of(dimension, 1.0), across, np.eye(dimension)[0]):
        squares = (draws @ direction) ** 2
        assert ks(squares, stats.beta(0.5, (dimension - 1) / 2)) < dkw(DRAWS)
        assert ks(squares, stats.beta(0.5, (dimension + 3) / 2)) > dkw(DRAWS)  # control: four dimensions more


def test_the_zero_vector_has_no_side() -> None:
    ball = Ball(EPSILON, RADIUS)
    first = np.array([ball.privatize(np.zeros(3), seed=seed)[0] for seed in range(DRAWS)])
    assert may_be(int(np.count_nonzero(first > 0)), DRAWS, 0.5)
    assert not may_be(int(np.count_nonzero(ball_draws(3, SIZE)[:, 0] > 0)), DRAWS, 0.5)  # control


# drawing from the sample's counts


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_exponential_draws_follow_their_probabilities(epsilon: float) -> None:
    levels, shares = (0.0, 1.0, 2.5, 4.0), np.array([0.55, 0.3, 0.15, 0.0])
    values = np.repeat(levels, (shares * N).round().astype(int))
    odds = np.exp(epsilon * shares / 2)
    mechanism = Exponential(epsilon, levels)
    assert mechanism.probabilities(values) == pytest.approx(odds / odds.sum(), rel=1e-12)
    counts = np.array([np.count_nonzero(mechanism.privatize(values, seed=3) == level) for level in levels])
    assert counts.sum() == N
    assert chi_square_tail(counts, odds) > ALARM
    assert chi_square_tail(counts, np.exp(epsilon * shares)) < ALARM  # control: twice the ε


def worst_exponent(law: Callable[[tuple[int, ...]], FloatArray], levels: int, rows: int) -> float:
    """The largest log P(release)/P'(release) of n draws over all samples and neighbours: n times that of a draw."""
    samples = [*itertools.combinations_with_replacement(range(levels), rows)]
    logs = {sample: np.log(law(sample)) for sample in samples}
    return max(
        rows * float(np.max(logs[sample] - logs[tuple(sorted((*sample[:i], new, *sample[i + 1 :])))]))
        for sample in samples
        for i in range(rows)
        for new in range(levels)
    )


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("rows", [2, 3, 5])
def test_exponential_draws_keep_to_epsilon_for_all_neighbours(rows: int, epsilon: float) -> None:
    """All samples of a few rows; each of 2n logarithms is off by at most ε + 8 roundings."""
    levels, rounding = 3, 2 * rows * (epsilon + 8) * 2.0**-52
    worst = worst_exponent(Exponential(epsilon, range(levels)).probabilities, levels, rows)
    assert epsilon / 2 < worst <= epsilon + rounding
    halved = worst_exponent(Exponential(2 * epsilon, range(levels)).probabilities, levels, rows)
    assert halved > epsilon + rounding  # control: the sensitivity taken as 1/2


def test_resampling_tells_neighbours_apart_for_certain() -> None:
    """A level that no row has is never released, one that a single row has in 1 - (1 - 1/n)^n of the releases."""
    n, releases = 10, 800
    alike, neighbour = np.zeros(n), np.append(np.zeros(n - 1), 1.0)

    def seen(mechanism: Exponential | FrequencyResampling, values: FloatArray) -> int:
        return sum(bool(mechanism.privatize(values, seed=seed).any()) for seed in range(releases))

    resampling, private = FrequencyResampling((0, 1)), Exponential(1.0, (0, 1))
    assert seen(resampling, alike) == 0
    told = seen(resampling, neighbour)
    assert may_be(told, releases, 1 - (1 - 1 / n) ** n)
    assert not may_be(told, releases, 0.0)  # so the ratio is infinite
    assert resampling.guarantee().epsilon == math.inf
    assert resampling.guarantee().model is Model.NONE
    for values in (alike, neighbour):  # control: the exponential mechanism releases it either way
        hidden = seen(private, values)
        assert may_be(hidden, releases, 1 - private.probabilities(values)[0] ** n)
        assert not may_be(hidden, releases, 0.0)


def test_resampling_follows_the_frequencies() -> None:
    shares = np.array([0.5, 0.0, 0.3, 0.2])
    values = np.repeat(np.arange(4.0), (shares * N).astype(int))
    counts = np.bincount(FrequencyResampling(range(4)).privatize(values, seed=4).astype(int), minlength=4)
    assert chi_square_tail(counts, shares) > ALARM
    assert chi_square_tail(counts, np.array([0.53, 0.0, 0.27, 0.2])) < ALARM  # control


# logistic regression


def descend_in_numpy(
    x: FloatArray, y: FloatArray, gauss: FloatArray, coins: FloatArray, radius: float, length: float, agree: float
) -> FloatArray:
    """Each θ by the words of the method: round the gradient, draw a point of the sphere, turn it, step."""
    theta, all_thetas = np.zeros(x.shape[1]), []
    for i, (row, response) in enumerate(zip(x, y, strict=True), start=1):
        gradient = row / (1 + np.exp(-row @ theta)) - response * row
        size = np.linalg.norm(gradient)
        direction = gradient / size if size else np.eye(len(row))[0]
        rounded = direction if coins[i - 1, 0] <= (1 + size / radius) / 2 else -direction
        point = gauss[i - 1] / np.linalg.norm(gauss[i - 1])
        with_it = point if point @ rounded > 0 else -point
        z = length * (with_it if coins[i - 1, 1] <= agree else -with_it)
        theta = theta - z / radius / math.sqrt(i)
        all_thetas.append(theta)
    return np.asarray(np.mean(all_thetas, axis=0))


@pytest.mark.parametrize("columns", [1, 2, 7])
def test_the_compiled_descent_is_the_plain_one(columns: int) -> None:
    """Sums of 500 terms in another order: 500 roundings of 2^-53 each, far below 1e-12."""
    rng = np.random.default_rng(columns)
    n, radius = 500, 1.7
    x = rng.normal(size=(n, columns)) / columns
    x[::50] = 0.0  # a gradient without direction
    y, gauss, coins = (rng.random(n) < 0.4).astype(np.float64), rng.normal(size=(n, columns)), rng.random((n, 2))
    length = Ball(1.0, radius).length(columns)
    compiled = descend(x, y, gauss, coins, radius, length, agree(1.0))
    plain = descend_in_numpy(x, y, gauss, coins, radius, length, agree(1.0))
    assert np.linalg.norm(compiled - plain) <= 1e-12 * np.linalg.norm(plain)
    other = descend_in_numpy(x, y, gauss, coins, radius, length, agree(1.5))
    assert np.linalg.norm(compiled - other) > 1e-12 * np.linalg.norm(plain)  # control


@pytest.mark.parametrize("response", [0.0, 1.0])
def test_one_row_is_told_by_its_side_only_as_epsilon_allows(response: float) -> None:
    """At θ = 0 the gradient is (1/2 - y) x: half as long as its row. The first step is -Z/r, of length B/r."""
    row, epsilon, fits = np.array([[1.2, -1.6, 0.0]]), 1.0, 1500
    mechanism = PrivateLogistic(epsilon, radius=2.0)
    steps = np.stack([mechanism.fit(row, [response], seed=seed) for seed in range(fits)])
    assert np.allclose(np.linalg.norm(steps, axis=1), Ball(epsilon, 1.0).length(3), rtol=1e-12)
    true_side = int(np.count_nonzero(steps @ row[0] * (response - 0.5) > 0))
    assert may_be(true_side, fits, 0.75 * agree(epsilon) + 0.25 * (1 - agree(epsilon)))
    assert not may_be(true_side, fits, agree(epsilon))  # control: were the gradient not rounded at random
    assert not may_be(true_side, fits, 0.75)  # control: were the rounded side released as it is


def test_at_large_epsilon_the_coefficients_point_to_the_truth() -> None:
    """Rows uniform on a sphere and responses that ignore them give coefficients of uniform direction, whose squared
    cosine with any vector is Beta(1/2, (d - 1)/2): its quantile at ALARM, 0.85, is the least that shows the truth.
    In the limit a mean of iterates has variance B²/d / (n h²) in each direction, h = E p(1-p) r²/d the curvature: a
    cosine of 0.97 for this n.
    """
    n, d = 100_000, 20
    rng = np.random.default_rng(5)
    x = rng.normal(size=(n, d))
    x *= 4 / np.linalg.norm(x, axis=1)[:, None]
    truth = vector_of(d, 3.0)
    y = rng.random(n) < 1 / (1 + np.exp(-x @ truth))
    mechanism = PrivateLogistic(10.0, radius=4.0)

    def cosine(responses: object) -> float:
        fitted = mechanism.fit(x, responses, seed=6)
        return float(fitted @ truth / np.linalg.norm(fitted) / np.linalg.norm(truth))

    least = math.sqrt(stats.beta(0.5, (d - 1) / 2).isf(ALARM))
    assert cosine(y) > least
    assert cosine(~y) < -least
    assert abs(cosine(rng.random(n) < 0.5)) < least  # control: responses that know nothing


# tables


def test_every_column_has_laplace_noise_of_its_own() -> None:
    epsilon, bounds = 3.0, {"x0": (0.0, 1.0), "x1": (-5.0, 5.0), "x2": (2.0, 2.5)}
    rng = np.random.default_rng(0)
    private = np.stack([rng.uniform(low, high, N) for low, high in bounds.values()], axis=1)
    noise = naive(private, epsilon, bounds=bounds, seed=1).data - private
    for column, (low, high) in enumerate(bounds.values()):
        scale = 3 * (high - low) / epsilon
        assert ks(noise[:, column], stats.laplace(scale=scale)) < dkw(N)
        assert ks(noise[:, column], stats.laplace(scale=scale / 3)) > dkw(N)  # control: the whole ε for each
        before = (column - 1) % 3
        assert may_be(int(np.count_nonzero(noise[:, column] * noise[:, before] > 0)), N, 0.5)
    assert not may_be(int(np.count_nonzero(noise[:, 0] * (noise[:, 0] + noise[:, 1]) > 0)), N, 0.5)  # control


def test_the_sample_gives_the_range() -> None:
    private = np.stack([np.linspace(0, 8, N), np.linspace(-2, 4, N)], axis=1)
    noise = naive(private, 2.0, bounds="sample", seed=2).data - private
    for column in range(2):
        assert ks(noise[:, column], stats.laplace(scale=8)) < dkw(N)
        assert ks(noise[:, column], stats.laplace(scale=6)) > dkw(N)  # control: the second column's bare range


def test_every_column_is_a_vector_in_a_ball_of_its_own() -> None:
    """All cells at the ends of the bounds: the columns have the ball's radius, and each half of ε."""
    epsilon, tables = 3.0, 1000
    private = np.array([[1.0, -2.0], [1.0, 2.0], [-1.0, 2.0]])
    bounds = {"x0": (-1.0, 1.0), "x1": (0.0, 2.0)}
    released = np.stack([naive(private, epsilon, method="opm", bounds=bounds, seed=s).data for s in range(tables)])
    for column, reach in enumerate((1, 2)):
        lengths = np.linalg.norm(released[:, :, column], axis=1)
        assert np.allclose(lengths, Ball(epsilon / 2, math.sqrt(3) * reach).length(3), rtol=1e-12)
        squares = (released[:, 0, column] / lengths) ** 2
        assert ks(squares, stats.beta(0.5, 1)) < dkw(tables)
        assert ks(squares, stats.beta(0.5, 2)) > dkw(tables)  # control
    sides = np.einsum("trc,rc->tc", released, private) > 0
    chance = agree(epsilon / 2)
    for column in range(2):
        assert may_be(int(sides[:, column].sum()), tables, chance)
        assert not may_be(int(sides[:, column].sum()), tables, agree(epsilon))  # control: the whole ε for each
    assert may_be(int(sides.all(axis=1).sum()), tables, chance**2)
    assert not may_be(int(sides.all(axis=1).sum()), tables, chance)  # control: one coin for both
