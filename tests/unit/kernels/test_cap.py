"""The cap kernel: its quantiles and shares are certified, its ratios enumerated, and its law is what it says."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import brentq
from scipy.special import betainc, ndtri

import dipriv
from dipriv._base.arrays import FloatArray, Words
from dipriv._base.jit import jit
from dipriv._random.bits import Draws, source
from dipriv.auditing.mechanism import audit_rows
from dipriv.errors import InputError
from dipriv.kernels import Optimal
from dipriv.kernels._cap import sampler
from dipriv.kernels._cap.bounds import error_of_share, least_share, share_of_cap
from dipriv.kernels._cap.expectation import best_cosine, joint_within
from dipriv.kernels._cap.kernel import COINS, COSINE_STEPS, CapKernel
from dipriv.kernels._cap.quantiles import (
    ERROR,
    MAX_QUANTILE,
    NODE_DIGITS,
    PIECES,
    TAIL,
    quantile,
    quantile_pieces,
    table_nodes,
    word_of,
)
from dipriv.kernels._cap.sampler import blocks_for, locate, side_of_cap
from dipriv.kernels.transition import exp_below
from dipriv.references import Known
from tests.support import ALARM, chi_square_tail, draws, uniform_rows

TABLE = quantile_pieces()


def best(epsilon: float, width: int) -> CapKernel:
    return CapKernel.best(epsilon, np.ones(width, dtype=np.int64))


# quantiles


def normal_cdf(x: Decimal) -> tuple[Decimal, Decimal]:
    """Φ and its density, to some 60 digits: 1/2 + φ(x) (x + x³/3 + x⁵/15 + ...)."""
    density = (-x * x / 2).exp() / (
        2 * Decimal("3.14159265358979323846264338327950288419716939937510582097494459")
    ).sqrt()
    term, total, k = x, Decimal(0), 1
    while abs(term) > Decimal(10) ** -60:
        total += term
        k += 2
        term *= x * x / k
    return Decimal("0.5") + density * total, density


@pytest.mark.parametrize("step", [61, pytest.param(1, marks=pytest.mark.slow)])
def test_nodes_are_within_2_to_the_minus_40_of_quantiles(step: int) -> None:
    """|Φ(node) - V| is at most 2^-40 times the smallest density on the way, in decimal arithmetic."""
    nodes = table_nodes()
    assert nodes.shape == (TAIL - 1, 2 * PIECES + 1)
    assert np.array_equal(nodes, np.ldexp(np.round(np.ldexp(nodes, NODE_DIGITS)), -NODE_DIGITS))
    allowed = Decimal(2) ** -NODE_DIGITS
    with localcontext(prec=70):
        for number in range(0, nodes.size, step):
            octave, place = divmod(number, nodes.shape[1])
            at = Decimal(2) ** (octave - TAIL) * (1 + Decimal(place) / (2 * PIECES))
            node = Decimal(float(nodes[octave, place]))
            found, _ = normal_cdf(node)
            least = normal_cdf(abs(node) + allowed)[1]
            assert abs(found - at) <= allowed * least
            assert abs(normal_cdf(node + 2 * allowed)[0] - at) > allowed * least  # control


def test_all_errors_of_an_octave_add_up_to_less_than_is_claimed() -> None:
    """At the lower end of each octave, where g' and g''' are largest: g''' = g'³ (1 + 2 g²)."""
    for octave in range(TAIL - 1):
        low = 2.0 ** (octave - TAIL)
        g = float(ndtri(low))
        slope = math.sqrt(2 * math.pi) * math.exp(g * g / 2)
        quadratic = math.sqrt(3) / 216 * (low / PIECES) ** 3 * slope**3 * (1 + 2 * g * g)
        words = 2.0**-64 * slope + 2.0**-52
        assert quadratic < 2.0**-31
        assert quadratic + words + 1.25 * 2.0**-NODE_DIGITS + 2.0**-48 < 0.99 * ERROR
    assert quadratic + words > 0.3 * ERROR  # control: the claim is not idle
    assert -ndtri(2.0**-TAIL) < MAX_QUANTILE


@jit
def quantiles(words: Words, table: FloatArray) -> FloatArray:
    found = np.empty(len(words))
    for i in range(len(words)):
        found[i] = quantile(words[i], table)
    return found


def test_quantiles_of_words() -> None:
    """Random words, those of every size, and their mirror images."""
    sizes = np.array([1 << k for k in range(28, 63)], dtype=np.uint64)
    words = np.concatenate([source(1).words(20_000) >> np.uint64(1), sizes, sizes - np.uint64(1)])
    words = words[words >= np.uint64(1 << 28)]
    found = quantiles(words, TABLE)
    assert np.max(np.abs(found - ndtri(words.astype(np.float64) * 2.0**-64))) < ERROR
    assert np.array_equal(quantiles(~words, TABLE), -found)
    ends = np.array([0, 1, 1 << 28, (1 << 63) - 1], dtype=np.uint64)
    assert quantiles(ends, TABLE)[:3] == pytest.approx(ndtri(2.0**-TAIL), abs=float(ERROR))
    assert abs(quantiles(ends, TABLE)[3]) < 1e-15
    middle = np.array([(1 << 63) - k for k in range(1, 5000)], dtype=np.uint64)  # every row has a direction
    assert np.all(quantiles(middle, TABLE) < -(2.0**-61))
    last = (1 << 64) - 1
    assert [int(word_of(u)) for u in (-1.0, math.nan, 0.0, 0.5, 1.0, 7.0)] == [0, 0, 0, 1 << 63, last, last]


# shares of caps


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 10, 31, 400, 1001])
def test_shares_of_caps(width: int) -> None:
    for cosine in (Fraction(1, 1000), Fraction(1, 40), Fraction(3, 10), Fraction(9, 10)):
        c = float(cosine)
        expected = 0.5 * betainc((width - 1) / 2, 0.5, 1 - c * c) if width > 1 else 0.5
        assert float(share_of_cap(cosine, width)) == pytest.approx(expected, rel=1e-9, abs=1e-15)
    assert abs(share_of_cap(Fraction(3, 10), 3) - Fraction(35, 100)) < Fraction(1, 10**60)
    assert abs(share_of_cap(Fraction(1, 2), 2) - Fraction(1, 3)) < Fraction(1, 10**60)


@pytest.mark.parametrize(
    ("epsilon", "width"), [(0.01, 2), (1.0, 1), (1.0, 2), (1.0, 10), (4.0, 3), (30.0, 7), (2.0, 900)]
)
def test_what_is_spent_is_at_most_epsilon_and_close_to_it(epsilon: float, width: int) -> None:
    """From the fields alone: 1 + λ/((1 - λ)(α - η))."""
    kernel = best(epsilon, width)
    cosine, mixing = Fraction(kernel.cosine, COSINE_STEPS), Fraction(kernel.mixing, COINS)
    share = share_of_cap(cosine, width) - error_of_share(cosine, width) - Fraction(1, 10**40)
    spent = 1 + mixing / (1 - mixing) / share
    assert spent <= exp_below(Fraction(epsilon))
    if epsilon < 30:
        assert spent > exp_below(Fraction(epsilon) * (1 - Fraction(2, 10**9)))
    one_more = CapKernel(epsilon * (1 + 1e-7), kernel.takes_part, kernel.cosine, kernel.mixing)
    assert one_more.largest_ratio == kernel.largest_ratio
    if epsilon < 30:
        with pytest.raises(InputError, match="spends more"):
            CapKernel(epsilon * (1 - 1e-8), kernel.takes_part, kernel.cosine, kernel.mixing)
    assert kernel.distance_from_uniform < 2e-6 if width < 900 else 1e-4


def test_kernels_that_cannot_be_are_refused() -> None:
    kernel = best(1.0, 3)
    for fields in (
        {"epsilon": 0.0},
        {"epsilon": math.nan},
        {"takes_part": np.zeros(3, dtype=np.int64)},
        {"takes_part": np.array([1, 2, 1])},
        {"takes_part": np.ones((3, 1), dtype=np.int64)},
        {"cosine": 0},
        {"cosine": COSINE_STEPS},
        {"cosine": COSINE_STEPS - 9},  # so small a cap would never be found
        {"mixing": COINS},
        {"mixing": -1},
        {"mixing": kernel.mixing + (1 << 40)},
    ):
        given: dict[str, Any] = {
            "epsilon": 1.0,
            "takes_part": kernel.takes_part,
            "cosine": kernel.cosine,
            "mixing": kernel.mixing,
        }
        with pytest.raises(InputError):
            CapKernel(**(given | fields))


# the ratio, by enumeration


@jit
def count_caps(u: Words, v: Words, cosine: float, uneven: float, table: FloatArray, inside: NDArray[np.int64]) -> None:
    """How many of all v are in the computed cap of each u; `uneven` makes the cap depend on the row."""
    x = np.empty(u.shape[1])
    scores = np.empty(u.shape[1])
    for i in range(len(u)):
        for k in range(u.shape[1]):
            scores[k] = np.float64(u[i, k] >> np.uint64(11)) * 2.0**-53
        reach = cosine * (1 + uneven * (scores[0] - 0.5)) * locate(scores, table, x)
        for j in range(len(v)):
            inside[i] += side_of_cap(v[j], 0, x, reach, table) == 1


@jit
def extremes_of_outcomes(
    u: Words,
    v: Words,
    cosine: float,
    uneven: float,
    table: FloatArray,
    inside: NDArray[np.int64],
    fewest: NDArray[np.int64],
    most: NDArray[np.int64],
    outside: NDArray[np.bool_],
) -> None:
    """For each v, over all u: the smallest and the largest cap that has it, and whether there is one without it."""
    x = np.empty(u.shape[1])
    scores = np.empty(u.shape[1])
    for i in range(len(u)):
        for k in range(u.shape[1]):
            scores[k] = np.float64(u[i, k] >> np.uint64(11)) * 2.0**-53
        reach = cosine * (1 + uneven * (scores[0] - 0.5)) * locate(scores, table, x)
        for j in range(len(v)):
            if side_of_cap(v[j], 0, x, reach, table) == 1:
                fewest[j] = min(fewest[j], inside[i])
                most[j] = max(most[j], inside[i])
            else:
                outside[j] = True


def grid(bits: int, width: int) -> Words:
    """All rows of words in the middle of 2^bits equal parts."""
    middles = (np.arange(1 << bits, dtype=np.uint64) << np.uint64(64 - bits)) | np.uint64(1 << (63 - bits))
    return np.stack(np.meshgrid(*[middles] * width, indexing="ij"), axis=-1).reshape(-1, width)


def enumerated(width: int, bits_u: int, bits_v: int, cosine: float, mixing: Fraction, uneven: float = 0.0) -> Fraction:
    """The largest P(v|u)/P(v|u') over all u, u' and v of two grids, as a fraction; P as if v were drawn on its grid."""
    u, v = grid(bits_u, width), grid(bits_v, width)
    inside = np.zeros(len(u), dtype=np.int64)
    count_caps(u, v, cosine, uneven, TABLE, inside)
    fewest, most = np.full(len(v), len(v) + 1), np.zeros(len(v), dtype=np.int64)
    outside = np.zeros(len(v), dtype=np.bool_)
    extremes_of_outcomes(u, v, cosine, uneven, TABLE, inside, fewest, most, outside)
    largest = Fraction(0)
    for few, many, out in set(zip(fewest.tolist(), most.tolist(), outside.tolist(), strict=True)):
        if few <= len(v):
            high = 1 - mixing + mixing * Fraction(len(v), few)
            low = 1 - mixing if out else 1 - mixing + mixing * Fraction(len(v), many)
            largest = max(largest, high / low)
    return largest


def coarse_error(bits: int, tail_cells: int) -> tuple[Fraction, Fraction]:
    """How far the quantile in the middle of a part is from any in it, between the tails; and the tails' probability."""
    edges = np.arange(tail_cells, (1 << bits - 1) + 1) / (1 << bits)
    middle = ndtri(edges[:-1] + 0.5 / (1 << bits))
    worst = max(np.max(middle - ndtri(edges[:-1])), np.max(ndtri(edges[1:]) - middle))
    return Fraction(1.001 * float(worst)), Fraction(2 * tail_cells, 1 << bits)


@pytest.mark.parametrize("width", [2, 3, 10, 100])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0])
def test_the_best_cosine_is_the_expected_one_unless_its_cap_is_too_small(epsilon: float, width: int) -> None:
    q = math.expm1(epsilon)
    law = stats.beta((width - 1) / 2, (width - 1) / 2, loc=-1, scale=2)  # of a coordinate of a uniform direction

    def excess(cosine: float) -> float:
        beyond = math.sqrt(1 - cosine**2) / math.pi  # of two columns
        if width > 2:
            beyond = law.expect(lambda t: t, lb=cosine, epsabs=1e-13, epsrel=1e-13)
        return float(q * beyond / (1 + q * law.sf(cosine)) - cosine)

    root = brentq(excess, 0.0, 0.999, xtol=1e-13)
    smallest = float(law.isf(1 / 64))
    assert best_cosine(epsilon, width, 1 / 64, 1 << 20) == pytest.approx(min(root, smallest) * (1 << 20), abs=1.5)
    assert abs(root - smallest) > 1e-4  # the other one would not do


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_the_ratio_on_a_grid_keeps_to_the_bound(epsilon: float) -> None:
    """Two columns of 7-bit words, all of them, for all rows of 4 bits, with the bound for quantiles that coarse."""
    cosine = best_cosine(epsilon, 2, 0.1, COSINE_STEPS) / COSINE_STEPS
    error, tail = coarse_error(7, 4)
    exact = Fraction(cosine)
    least = share_of_cap(exact, 2) - error_of_share(exact, 2, error, tail)
    assert least > 0.05
    odds = (exp_below(Fraction(epsilon)) - 1) * least
    mixing = odds / (1 + odds)
    assert enumerated(2, 4, 7, cosine, mixing) <= exp_below(Fraction(epsilon))
    assert enumerated(2, 4, 7, cosine, 2 * mixing / (1 + mixing)) > enumerated(2, 4, 7, cosine, mixing)


@pytest.mark.parametrize(("width", "bits_u", "bits_v"), [(2, 4, 7), (3, 2, 5)])
def test_a_cap_that_depends_on_the_row_is_caught_by_enumeration(width: int, bits_u: int, bits_v: int) -> None:
    """With λ for the smallest share of the grid's caps, the ratio is e^ε; that of the mutant is larger."""
    cosine = best_cosine(1.0, width, 0.1, COSINE_STEPS) / COSINE_STEPS
    u, v = grid(bits_u, width), grid(bits_v, width)
    inside = np.zeros(len(u), dtype=np.int64)
    count_caps(u, v, cosine, 0.0, TABLE, inside)
    shares = inside / len(v)
    assert shares.max() - shares.min() < 0.08
    assert abs(shares.mean() - float(share_of_cap(Fraction(cosine), width))) < 0.02
    odds = (exp_below(Fraction(1)) - 1) * Fraction(int(inside.min()), len(v))
    mixing = odds / (1 + odds)
    assert exp_below(Fraction(99, 100)) < enumerated(width, bits_u, bits_v, cosine, mixing) <= exp_below(Fraction(1))
    assert enumerated(width, bits_u, bits_v, cosine, mixing, uneven=1.5) > exp_below(Fraction(21, 20))  # mutant


# the sampler


def row_by_row(kernel: CapKernel, u: FloatArray, rows: Draws, keeps_last: bool = False) -> FloatArray:
    """The sampler in plain Python, row by row; a mutant keeps the last of some trials, whether in the cap or not."""
    width, cosine = u.shape[1], kernel.cosine / COSINE_STEPS
    trials = math.ceil(1 / (4 * least_share(Fraction(kernel.cosine, COSINE_STEPS), width)))
    own, v = rows.of_column(kernel.width), np.empty_like(u)
    first = own.runs(0, blocks_for(width + 1))
    for i in range(len(u)):
        x = np.array([quantile(np.uint64(word_of(value)), TABLE) for value in u[i]])
        length, words, use = math.sqrt(sum(value * value for value in x.tolist())), first[i, 1 : width + 1], 0
        if int(first[i, 0]) < kernel.mixing:
            tried = [words]
            while not (signs := [s for s in (in_cap(x, w, cosine * length) for w in tried) if s]):
                if keeps_last and use * trials >= 3:
                    signs = [1]
                    break
                use += 1
                more = own.runs_again(use, blocks_for(trials * width), np.array([i]))[0]
                tried = [more[k * width : (k + 1) * width] for k in range(trials)]
            found = [w for w in tried if in_cap(x, w, cosine * length)] or tried[-1:]
            words = found[0] if signs[0] > 0 else ~found[0]
        v[i] = ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
    return v


def in_cap(x: FloatArray, words: Words, reach: float) -> int:
    y = np.array([quantile(word, TABLE) for word in words])
    product, least = sum((x * y).tolist()), reach * math.sqrt(sum((y * y).tolist()))
    return 1 if product >= least else -1 if -product >= least else 0


@pytest.mark.parametrize(("epsilon", "width"), [(1.0, 1), (1.0, 3), (4.0, 4), (9.0, 2)])
def test_the_compiled_loop_is_the_readable_one(epsilon: float, width: int) -> None:
    kernel, u = best(epsilon, width), uniform_rows(150, width, seed=1)
    found = kernel.perturb(u, draws(2, 150))
    assert np.array_equal(found, row_by_row(kernel, u, draws(2, 150)))
    assert not np.array_equal(found, row_by_row(kernel, u, draws(3, 150)))


def test_batches_concatenate_and_chunks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, n = best(4.0, 3), 701
    u = uniform_rows(n, 3, seed=41)
    whole = kernel.perturb(u, draws(42, n))
    pieces = [kernel.perturb(u[a:b], draws(42, b - a, first=a)) for a, b in pairwise([0, 1, 300, 301, n])]
    assert np.array_equal(whole, np.concatenate(pieces))
    monkeypatch.setattr(sampler, "MAX_WORDS", 50)
    assert np.array_equal(whole, kernel.perturb(u, draws(42, n)))
    assert np.array_equal(whole, kernel.perturb(np.asfortranarray(u), draws(42, n)))
    assert kernel.perturb(u[:0], draws(42, 0)).shape == (0, 3)


def test_columns_that_take_no_part_are_fresh() -> None:
    kernel, n = CapKernel.best(4.0, np.array([1, 0, 1])), 2000
    u = uniform_rows(n, 3, seed=5)
    other = np.column_stack([u[:, 0], 1 - u[:, 1], u[:, 2]])
    v = kernel.perturb(u, draws(6, n))
    assert np.array_equal(v, kernel.perturb(other, draws(6, n)))
    assert not np.array_equal(v, kernel.perturb(1 - u, draws(6, n)))
    pair = best(4.0, 2)
    assert (kernel.cosine, kernel.mixing) == (pair.cosine, pair.mixing)
    cuts = np.array([0.0, 0.3, 1.0])
    assert kernel.joint_probabilities(1, cuts) == pytest.approx(np.outer(np.diff(cuts), np.diff(cuts)))
    assert np.array_equal(kernel.joint_probabilities(2, cuts), pair.joint_probabilities(0, cuts))


# the law


def cosines(u: FloatArray, v: FloatArray) -> FloatArray:
    x, y = ndtri(u), ndtri(v)
    return np.asarray((x * y).sum(axis=1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1))


def law_of_cosines(kernel: CapKernel, cuts: FloatArray) -> FloatArray:
    """In three columns the cosine is uniform on [-1, 1] but for the cap, where there is more."""
    mixing, cosine = kernel.mixing / COINS, kernel.cosine / COSINE_STEPS
    whole, cap = np.diff(cuts) / 2, np.diff(np.clip(cuts, cosine, 1.0)) / (1 - cosine)
    return np.asarray((1 - mixing) * whole + mixing * cap)


@pytest.mark.parametrize("row", [(0.5, 0.5, 0.7), (0.02, 0.6, 0.97), (1.0, 1.0, 1.0), (0.0, 0.3, 1.0)])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_cosines_have_two_densities(row: tuple[float, ...], epsilon: float) -> None:
    n, kernel = 60_000, best(epsilon, 3)
    inner = np.clip(np.tile(row, (n, 1)), 2.0**-TAIL, 1 - 2.0**-TAIL)
    v = kernel.perturb(np.tile(row, (n, 1)), draws(7, n))
    cuts = np.unique(np.append(np.linspace(-1, 1, 33), kernel.cosine / COSINE_STEPS))
    seen, _ = np.histogram(cosines(inner, v), cuts)
    assert chi_square_tail(seen, law_of_cosines(kernel, cuts)) > ALARM
    assert chi_square_tail(seen, law_of_cosines(best(1.2 * epsilon, 3), cuts)) < ALARM  # control


def test_a_sampler_that_keeps_its_last_trial_is_caught() -> None:
    n, kernel = 4000, best(4.0, 3)
    u = uniform_rows(n, 3, seed=8)
    cuts = np.array([-1.0, 0.0, kernel.cosine / COSINE_STEPS, 1.0])
    for keeps_last in (False, True):
        v = row_by_row(kernel, u, draws(9, n), keeps_last)
        seen, _ = np.histogram(cosines(u, v), cuts)
        assert (chi_square_tail(seen, law_of_cosines(kernel, cuts)) > ALARM) is not keeps_last


def cells_of(v: FloatArray, parts: int) -> NDArray[np.int64]:
    """How often each cell of a grid of the cube is hit."""
    number = np.zeros(len(v), dtype=np.int64)
    for column in (v * parts).astype(np.int64).T:
        number = number * parts + column
    return np.bincount(number, minlength=parts ** v.shape[1])


def without_norm(u: FloatArray, rows: Draws) -> FloatArray:
    """Mutant: the first of four candidates with a large score, which is not divided by the norm of the candidate."""
    n, width = u.shape
    x = ndtri(np.clip(u, 1e-9, 1 - 1e-9))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    v = np.empty_like(u)
    done = np.zeros(n, dtype=bool)
    for use in range(4):
        words = (rows.runs(use, blocks_for(width))[:, :width].astype(np.float64) + 0.5) * 2.0**-64
        found = ~done & ((ndtri(words) * x).sum(axis=1) >= 0.8)
        v[~done] = words[~done]
        done |= found
    return v


@pytest.mark.parametrize(("epsilon", "width", "parts"), [(1.0, 2, 16), (4.0, 2, 16), (4.0, 3, 6), (2.0, 5, 3)])
def test_uniform_in_uniform_out_jointly(epsilon: float, width: int, parts: int) -> None:
    n, kernel = 200_000, best(epsilon, width)
    u, even = uniform_rows(n, width, seed=10), np.full(parts**width, parts**-width)
    assert chi_square_tail(cells_of(kernel.perturb(u, draws(11, n)), parts), even) > ALARM
    assert chi_square_tail(cells_of(without_norm(u, draws(11, n)), parts), even) < ALARM  # control
    skewed = kernel.perturb(u**1.3, draws(11, n))
    assert chi_square_tail(cells_of(skewed, parts), even) < ALARM  # control


def test_every_bit_of_a_released_rank_is_fair() -> None:
    """One bit fewer would be noticed: 52 counts of ones, each within its tolerance."""
    n, kernel = 20_000, best(2.0, 2)
    v = kernel.perturb(uniform_rows(n, 2, seed=12), draws(13, n))
    steps = (v * 2.0**52).astype(np.uint64)
    allowed = stats.norm.isf(ALARM / 104) * math.sqrt(n / 4)
    for released, fair in ((steps, True), (steps & ~np.uint64(1), False)):
        off = [abs(float(np.sum(released >> np.uint64(k) & np.uint64(1), axis=0)[0]) - n / 2) for k in range(52)]
        assert bool(max(off) < allowed) is fair


# what is kept

TRIAL = {1.0: {2: 0.269, 5: 0.174, 10: 0.121, 30: 0.070}, 4.0: {2: 0.752, 5: 0.591, 10: 0.442, 30: 0.262}}
"""Correlations of ranks in the trial (design: kernels.md)."""


def correlation(kernel: CapKernel, bins: int = 512) -> float:
    cuts = np.linspace(0.0, 1.0, bins + 1)
    middle = (cuts[1:] + cuts[:-1]) / 2 - 0.5
    return float(12 * middle @ kernel.joint_probabilities(0, cuts) @ middle)


@pytest.mark.parametrize("epsilon", TRIAL)
@pytest.mark.parametrize("width", [2, 5, 10, 30])
def test_correlations_are_those_of_the_trial_and_of_draws(epsilon: float, width: int) -> None:
    """The variance of 12 (u - 1/2)(v - 1/2) is at most 1.8, by Cauchy and Schwarz, and so is that of a mean of them."""
    n, kernel = 100_000, best(epsilon, width)
    expected = correlation(kernel)
    assert expected == pytest.approx(TRIAL[epsilon][width], rel=0.02)
    u = uniform_rows(n, width, seed=14)
    sampled = 12 * np.mean((u - 0.5) * (kernel.perturb(u, draws(15, n)) - 0.5))
    assert abs(sampled - expected) < stats.norm.isf(ALARM / 2) * math.sqrt(1.8 / n)


@pytest.mark.parametrize("width", [1, 2, 3, 10])
def test_joint_probabilities_agree_with_quadrature(width: int) -> None:
    """P(u and v below the median, v in the cap): by the angle between the halves, for directions."""
    cosine, cuts = 0.4, np.array([0.0, 0.5, 1.0])
    found = joint_within(cosine, width, cuts)
    rng = np.random.default_rng(16)
    n = 400_000
    x, y = rng.normal(size=(2, n, width))
    inside = (x * y).sum(axis=1) >= cosine * np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1)
    seen = [np.mean(inside & (x[:, 0] < 0) & (y[:, 0] < 0)), np.mean(inside & (x[:, 0] < 0) & (y[:, 0] >= 0))]
    allowed = stats.norm.isf(ALARM / 4) * 0.5 / math.sqrt(n)
    assert np.all(np.abs(found[0] - seen) < allowed)
    assert abs(found[0, 0] - found[0, 1]) > allowed  # control
    assert found == pytest.approx(found.T)
    assert found.sum() == pytest.approx(0.5 * betainc((width - 1) / 2, 0.5, 1 - cosine**2) if width > 1 else 0.5)


# audits


def lower_bound(perturb: Callable[[FloatArray, Draws], FloatArray], width: int, cosine: float, n: int) -> float:
    """A bound on ε from below, wrong with a chance of ALARM: v in the cap of a row, against the opposite row."""
    row = np.full(width, 0.9)
    hits = []
    for number, side in enumerate((row, 1 - row)):
        v = perturb(np.tile(side, (n, 1)), draws(20 + number, n))
        hits.append(int(np.count_nonzero(cosines(np.tile(row, (n, 1)), v) >= cosine)))
    at_least = stats.beta.ppf(ALARM / 2, hits[0], n - hits[0] + 1)
    at_most = stats.beta.isf(ALARM / 2, hits[1] + 1, n - hits[1])
    return float(np.log(at_least / at_most))


@pytest.mark.parametrize("width", [2, 3, 10])
@pytest.mark.parametrize("epsilon", [1.0, 2.0])
def test_no_cap_tells_two_rows_apart_beyond_epsilon(width: int, epsilon: float) -> None:
    n, kernel = 100_000, best(epsilon, width)
    cosine = kernel.cosine / COSINE_STEPS
    assert 0.85 * epsilon < lower_bound(kernel.perturb, width, cosine, n) <= epsilon
    assert lower_bound(best(1.4 * epsilon, width).perturb, width, cosine, n) > epsilon  # control

    half = float(share_of_cap(Fraction(cosine), width)) / 2
    smaller = best_cosine(50.0, width, half, COSINE_STEPS) / COSINE_STEPS

    def uneven(u: FloatArray, rows: Draws) -> FloatArray:  # mutant: rows on one side have a cap of half the share
        return sampler.draw_rows(u, rows.of_column(width), smaller if u[0, 0] > 0.5 else cosine, kernel.mixing, 2)

    assert lower_bound(uneven, width, smaller, n) > epsilon


@pytest.mark.slow
@pytest.mark.parametrize("width", [2, 3, 10])
def test_the_audit_finds_nearly_all_of_epsilon(width: int) -> None:
    law = Known(stats.multivariate_normal(np.zeros(width), np.eye(width)))
    fitted = dipriv.privatize(
        np.random.default_rng(1).normal(size=(400, width)), 1.0, reference=law, kernel=Optimal(), seed=1
    ).secrets.mechanism
    assert fitted is not None
    assert isinstance(fitted.kernel, CapKernel)
    bound = audit_rows(fitted, 1.0, draws=1_000_000, confidence=0.999, seed=3)
    assert 0.85 < bound.lower <= 1.0
