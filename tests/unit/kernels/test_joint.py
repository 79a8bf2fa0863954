"""The joint kernel: exact in whole numbers, drawn exactly, and better than a split budget."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dipriv._base.arrays import FloatArray, Words
from dipriv._base.decimals import at_most
from dipriv._random.bits import Draws, source
from dipriv.errors import InputError
from dipriv.kernels._joint import sampler as joint_flips
from dipriv.kernels._joint.kernel import JointKernel, default_bits, integer_weights, move_bins
from dipriv.kernels._joint.sampler import FlipTables, draw_flips, draw_flips_exactly, flip_exactly, flip_rows, locate
from tests.support import ALARM, chi_square_tail, dkw, draws, ks_uniform, uniform_rows

LAWS = [
    (0.1, [1], 3),
    (1.0, [1, 1], 2),
    (2.5, [3, 1, 0], 2),
    (20.0, [2, 5], 3),
    (4.0, [1, 2, 4], 2),
    (4.0, [0, 4, 1, 1], 2),
    (1.0, [1, 1, 1], 3),
    (8.0, [7, 3, 2, 2, 1], 1),
]
every_law = pytest.mark.parametrize(("epsilon", "weights", "K"), LAWS)


def best(epsilon: float, weights: list[int], K: int | None = None) -> JointKernel:
    return JointKernel.best(epsilon, np.array(weights), K)


def all_z(kernel: JointKernel) -> Iterator[tuple[int, ...]]:
    """Every z of the columns that take part, as one number a column."""
    K = kernel.bits
    return itertools.product(*(range(1 << K) if a else range(1) for a in kernel.weights))


def score(kernel: JointKernel, z: tuple[int, ...]) -> int:
    K = kernel.bits
    return sum(
        int(a) * 4 ** (K - k) * (-1) ** (b >> (K - k) & 1)
        for a, b in zip(kernel.weights, z, strict=True)
        for k in range(1, K + 1)
    )


def stated_law(kernel: JointKernel) -> dict[tuple[int, ...], Fraction]:
    """P(z) = A/D or B/D, straight from the definition."""
    mass = {z: kernel.inside if score(kernel, z) >= kernel.threshold else kernel.outside for z in all_z(kernel)}
    return {z: Fraction(weight, sum(mass.values())) for z, weight in mass.items()}


def tables_of(kernel: JointKernel) -> FlipTables:
    return kernel._tables


def chance_by_the_tables(tables: FlipTables, z: tuple[int, ...]) -> Fraction:
    """The chain over the classes, and on the way: the words the loop reads are the digits of the exact numbers."""
    chance, cost = Fraction(1), 0
    for j, (size, weight, members, _, lowest, at, fair) in enumerate(tables.plan.tolist()):
        places = tables.places[members : members + size].tolist()
        flips = sum(bool(z[column] & value) for column, value in places)
        ends = tables.flips.ends(j, cost)
        row = int(tables.starts[at + cost - lowest]) if lowest <= cost <= tables.flips.limit else fair
        assert tables.ends[row : row + size].tolist() == [(end << 64) // ends[-1] for end in ends[:-1]]
        mass = ends[flips] - (ends[flips - 1] if flips else 0)
        chance *= Fraction(mass, ends[-1]) / math.comb(size, flips)
        cost += weight * flips
    return chance


@every_law
@pytest.mark.parametrize("shift", [0, -2, -5])
def test_the_tables_multiply_to_the_stated_law(epsilon: float, weights: list[int], K: int, shift: int) -> None:
    """At the best threshold and at others."""
    kernel = best(epsilon, weights, K)
    kernel = JointKernel(epsilon, kernel.weights, K, kernel.threshold + shift, kernel.inside, kernel.outside)
    law = stated_law(kernel)
    assert {z: chance_by_the_tables(tables_of(kernel), z) for z in law} == law
    assert sum(law.values()) == 1
    assert len(set(law.values())) == 2  # control: were all z inside, any chain of fair coins would pass


@every_law
def test_rows_differ_by_at_most_e_to_the_epsilon_and_uniform_stays_uniform(
    epsilon: float, weights: list[int], K: int
) -> None:
    """The matrix P(cells of v | cells of u), in whole numbers: ratios within columns, sums of rows and columns."""
    kernel = best(epsilon, weights, K)
    law = stated_law(kernel)
    with localcontext(prec=100):
        limit = Fraction(Decimal(epsilon).exp())
    largest = Fraction(0)
    for v in law:
        column = [law[tuple(i ^ j for i, j in zip(u, v, strict=True))] for u in law]  # also the row of u = v
        most, least = max(column), min(column)
        assert column.count(most) * most + column.count(least) * least == 1
        largest = max(largest, most / least)
    assert largest == kernel.largest_ratio
    assert limit * (1 - Fraction(1, 10**15)) < largest < limit


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 3.7, 50.0])
def test_a_kernel_that_overspends_cannot_be_built(epsilon: float) -> None:
    kernel = best(epsilon, [1] * 20)
    same = (kernel.weights, kernel.bits, kernel.threshold)
    assert JointKernel(epsilon, *same, kernel.inside, kernel.outside).largest_ratio == kernel.largest_ratio
    below = Fraction(epsilon) - at_most(epsilon)  # what the float has above the number that is printed
    more = 1 + math.ceil(kernel.inside * below * 2)
    with pytest.raises(InputError, match="more than epsilon"):
        JointKernel(epsilon, *same, kernel.inside + more, kernel.outside)
    with pytest.raises(InputError, match="more than epsilon"):
        JointKernel(epsilon, *same, kernel.inside, kernel.outside - more)
    with pytest.raises(InputError, match="at least as likely"):
        JointKernel(epsilon, *same, kernel.outside, kernel.inside)


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.1, 3.7])
def test_no_kernel_spends_more_than_is_printed(epsilon: float) -> None:
    with localcontext(prec=100):
        printed, of_float = Fraction(Decimal(repr(epsilon)).exp()), Fraction(Decimal(epsilon).exp())
        found = best(epsilon, [1] * 5).largest_ratio
    assert found < printed
    assert min(printed, of_float) * (1 - Fraction(1, 10**18)) < found  # a control: no more than that is given away


def test_what_cannot_be_a_kernel_is_refused() -> None:
    ok = best(1.0, [1, 1])
    for weights in ([], [0, 0], [-1, 2], [0.5, 1.0], [[1]]):
        with pytest.raises(InputError, match="whole numbers"):
            JointKernel.best(1.0, np.array(weights), 3)
    for K in (0, 9):
        with pytest.raises(InputError, match="bits a column"):
            best(1.0, [1], K)
    for epsilon in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(InputError):
            best(epsilon, [1])
        with pytest.raises(InputError):
            JointKernel(epsilon, ok.weights, ok.bits, ok.threshold, ok.inside, ok.outside)
    with pytest.raises(InputError, match="not among the scores"):
        JointKernel(1.0, ok.weights, ok.bits, 43, ok.inside, ok.outside)
    for weights in ([10**9], [10**8, 1]):
        with pytest.raises(InputError, match="too large tables"):
            best(1.0, weights)
    with pytest.raises(InputError, match="together with others"):
        ok.on_levels(np.array([0.5, 0.5]))
    of_column: Callable[[int], object] = ok.of_column
    assert of_column(0) is None


@every_law
def test_no_other_threshold_has_a_larger_expected_score(epsilon: float, weights: list[int], K: int) -> None:
    kernel = best(epsilon, weights, K)
    counts = Counter(score(kernel, z) for z in all_z(kernel))

    def expected(threshold: int) -> Fraction:
        mass = {s: n * (kernel.inside if s >= threshold else kernel.outside) for s, n in counts.items()}
        return Fraction(sum(s * m for s, m in mass.items()), sum(mass.values()))

    by_threshold = {threshold: expected(threshold) for threshold in counts}
    assert by_threshold[kernel.threshold] == max(by_threshold.values())
    assert by_threshold[kernel.threshold] > min(by_threshold.values())


@every_law
@pytest.mark.parametrize("shift", [0, -5])
def test_flips_are_the_margins_of_the_law(epsilon: float, weights: list[int], K: int, shift: int) -> None:
    kernel = best(epsilon, weights, K)
    kernel = JointKernel(epsilon, kernel.weights, K, kernel.threshold + shift, kernel.inside, kernel.outside)
    law = stated_law(kernel)
    for column, a in enumerate(weights):
        margin = tuple(sum(p for z, p in law.items() if z[column] == b) for b in range(1 << K))
        assert kernel.flips(column) == (margin if a else (Fraction(1, 1 << K),) * (1 << K))


def test_flips_below_the_middle_score_and_for_every_threshold() -> None:
    kernel = best(2.0, [2, 1], 2)
    for threshold in range(-15, 16):
        other = JointKernel(2.0, kernel.weights, 2, threshold, kernel.inside, kernel.outside)
        law = stated_law(other)
        assert other.flips(1) == tuple(sum(p for z, p in law.items() if z[1] == b) for b in range(4))
        assert {z: chance_by_the_tables(tables_of(other), z) for z in law} == law


def test_law_on_cuts_is_the_integral_over_cells_and_what_is_sampled() -> None:
    kernel, n = best(3.0, [2, 1, 0], 3), 400_000
    cuts = np.array([0.0, 0.07, 0.3, 0.5, 0.77, 1.0])
    v = kernel.perturb(u := uniform_rows(n, 3, seed=31), draws(32, n))
    for column in range(3):
        law = kernel.joint_probabilities(column, cuts)
        expected = np.zeros((5, 5))
        for i, j, c, b in itertools.product(range(5), range(5), range(8), range(8)):
            there = max(0.0, min(cuts[i + 1], (c + 1) / 8) - max(cuts[i], c / 8))
            here = max(0.0, min(cuts[j + 1], ((c ^ b) + 1) / 8) - max(cuts[j], (c ^ b) / 8))
            expected[i, j] += there * here * 8 * float(kernel.flips(column)[b])
        np.testing.assert_allclose(law, expected, rtol=1e-13, atol=1e-16)
        np.testing.assert_allclose(law.sum(axis=0), np.diff(cuts), rtol=1e-13)
        np.testing.assert_allclose(law.sum(axis=1), np.diff(cuts), rtol=1e-13)
        seen, *_ = np.histogram2d(u[:, column], v[:, column], bins=(cuts, cuts))
        assert chi_square_tail(seen.ravel(), law.ravel()) > ALARM
        other = best(3.3, [2, 1, 0], 3).joint_probabilities(1 - column if column < 2 else 0, cuts)
        assert chi_square_tail(seen.ravel(), other.ravel()) < ALARM  # control


def counted(z: NDArray[np.uint8], K: int) -> NDArray[np.int64]:
    """How often each z of two columns occurs."""
    return np.bincount(z[:, 0].astype(np.int64) << K | z[:, 1], minlength=1 << 2 * K)


def chances(kernel: JointKernel) -> FloatArray:
    return np.array([float(p) for p in stated_law(kernel).values()])


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
@pytest.mark.parametrize("weights", [[1, 1], [3, 1]])
def test_sampled_flips_have_the_stated_law(epsilon: float, weights: list[int]) -> None:
    n, kernel = 400_000, best(epsilon, weights, 2)
    u = uniform_rows(n, 2, seed=11)
    v = kernel.perturb(u, draws(12, n))
    seen = counted(((u * 4).astype(np.uint8) ^ (v * 4).astype(np.uint8)), 2)
    assert chi_square_tail(seen, chances(kernel)) > ALARM
    assert chi_square_tail(seen, chances(best(1.05 * epsilon, weights, 2))) < ALARM  # control
    for i in range(4):  # independent of the row
        at = (u[:, 0] * 4).astype(int) == i
        assert (
            chi_square_tail(counted((u[at] * 4).astype(np.uint8) ^ (v[at] * 4).astype(np.uint8), 2), chances(kernel))
            > ALARM
        )


@pytest.mark.parametrize("digits", [2, 5])
def test_forced_ties_keep_the_law(digits: int) -> None:
    """With few digits a word most rows need further ones; without these the law would be another."""
    n, kernel = 20_000, best(2.0, [1, 1], 2)
    tables, rows = tables_of(kernel), draws(21, n)
    z = draw_flips(tables, rows, digits)
    assert chi_square_tail(counted(z, 2), chances(kernel)) > ALARM
    careless, undecided = flips_by_the_loop(tables, joint_flips._words(tables, rows), digits)
    assert undecided.mean() > 0.05
    assert np.array_equal(z[~undecided], careless[~undecided])
    assert chi_square_tail(counted(careless, 2), chances(kernel)) < ALARM  # control


def flips_by_the_loop(
    tables: FlipTables, words: Words, digits: int = 64
) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """The compiled loop alone: z, and which rows it could not decide."""
    z, undecided = np.zeros((len(words), tables.columns), dtype=np.uint8), np.zeros(len(words), dtype=np.bool_)
    ends = tables.ends >> np.uint64(64 - digits)
    parts = (tables.plan, tables.last_pick, tables.starts, ends, tables.places)
    flip_rows(words, *parts, tables.flips.limit, digits, z, undecided)
    return z, undecided


@pytest.mark.parametrize("digits", [64, 50, 7])
@pytest.mark.parametrize(
    ("epsilon", "weights"), [(1.0, [1]), (4.0, [1] * 10), (2.0, [5, 3, 0, 3, 1, 1]), (9.0, [1] * 40), (1e3, [2, 1])]
)
def test_the_compiled_loop_is_the_readable_one(epsilon: float, weights: list[int], digits: int) -> None:
    tables, rows = tables_of(best(epsilon, weights)), draws(22, 400)
    z = draw_flips(tables, rows, digits)
    assert np.array_equal(z, draw_flips_exactly(tables, rows, digits))
    assert not np.array_equal(z, draw_flips_exactly(tables, draws(23, 400), digits)) or epsilon == 1e3


@pytest.mark.parametrize("p", [4, 7, 12])
def test_every_subset_of_a_class_is_picked_equally_often(p: int) -> None:
    """All numbers that the picks can be read from, in turn: by the loop and by its twin."""
    tables = tables_of(best(1.0, [1] * p, 1))
    ends = tables.flips.ends(0, 0)
    for flips in range(p + 1):
        picks = min(flips, p - flips)
        product = math.perm(p, picks)
        if picks > 3:
            continue
        words = np.zeros((product, len(tables.last_pick) + 1), dtype=np.uint64)
        low, high = (ends[flips - 1] if flips else 0), ends[flips]
        words[:, 0] = ((low + high) << 63) // ends[-1]
        words[:, 1] = [((2 * number + 1) << 63) // product for number in range(product)]
        z, undecided = flips_by_the_loop(tables, words)
        assert not undecided.any()
        often = Counter(map(tuple, z.tolist()))
        assert set(map(sum, often)) == {flips}
        assert len(often) == math.comb(p, flips)
        assert set(often.values()) == {math.factorial(picks)}
        some = range(0, product, 1 + product // 100)
        assert [flip_exactly(tables, words[row], iter(())).tolist() for row in some] == z[some].tolist()


def test_a_word_on_the_edge_is_decided_by_its_further_digits() -> None:
    tables = tables_of(best(1.0, [1] * 10))
    ends = tables.flips.ends(0, 0)
    for k, end in enumerate(ends[:-1]):
        word, rest = divmod(end << 64, ends[-1])
        words = np.full((3, len(tables.last_pick) + 1), 1 << 63, dtype=np.uint64)
        words[:, 0] = [word - 1, word, word + 1]
        assert flips_by_the_loop(tables, words)[1].tolist() == [False, True, False]
        digits, last = divmod(rest << 64, ends[-1])
        assert last
        assert locate(word, 64, ends, iter([digits - 1])) == k
        assert locate(word, 64, ends, iter([digits, 0])) == k
        assert locate(word, 64, ends, iter([digits, (1 << 64) - 1])) == k + 1
        assert locate(word, 64, ends, iter([digits + 1])) == k + 1


def test_a_pick_on_the_edge_is_left_undecided() -> None:
    """U times the product of the radices is within its unseen digits of a whole number."""
    tables = tables_of(best(1.0, [1] * 5, 1))
    ends = tables.flips.ends(0, 0)
    first = (ends[1] + ends[2] << 63) // ends[-1]  # two flips: radices 5 and 4
    edge = (7 << 64) // 20
    for word, undecided in ((edge, True), (edge - (1 << 17), False), (edge + (1 << 17), False)):
        words = np.array([[first, word, 0]], dtype=np.uint64)
        assert flips_by_the_loop(tables, words)[1].tolist() == [undecided]
    words = np.array([first, edge, 0], dtype=np.uint64)
    below, above = (flip_exactly(tables, words, iter([digits])).tolist() for digits in (0, (1 << 64) - 1))
    assert below != above


def test_batches_concatenate_and_chunks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, n = best(2.0, [2, 1, 0, 1]), 1001
    u = uniform_rows(n, 4, seed=41)
    whole = kernel.perturb(u, draws(42, n))
    ends = [0, 1, 300, 301, 777, n]
    pieces = [kernel.perturb(u[a:b], draws(42, b - a, first=a)) for a, b in itertools.pairwise(ends)]
    assert np.array_equal(whole, np.concatenate(pieces))
    assert not np.array_equal(whole[1:], kernel.perturb(u[1:], draws(42, n - 1)))
    monkeypatch.setattr(joint_flips, "MAX_WORDS", 100)
    assert np.array_equal(whole, kernel.perturb(u, draws(42, n)))
    digits = draw_flips(tables_of(kernel), draws(43, 200), digits=6)
    monkeypatch.undo()
    assert np.array_equal(digits, draw_flips(tables_of(kernel), draws(43, 200), digits=6))
    assert kernel.perturb(u[:0], draws(42, 0)).shape == (0, 4)


def test_a_kernel_is_what_its_fields_say() -> None:
    kernel = best(700.0, [3, 1, 0])
    parts = (kernel.weights.tolist(), kernel.bits, kernel.threshold, kernel.inside, kernel.outside)
    weights, *rest = json.loads(json.dumps(parts))
    again = JointKernel(700.0, np.array(weights), *rest)
    u = uniform_rows(100, 3, seed=44)
    assert np.array_equal(kernel.perturb(u, draws(45, 100)), again.perturb(u, draws(45, 100)))


def test_any_input_is_held_to_the_unit_cube() -> None:
    kernel = best(1.0, [1])
    wild = np.array([-np.inf, np.nan, -3.0, -0.0, np.inf, 7.0, 1.0])[:, np.newaxis]
    tame = np.array([0.0, 0.0, 0.0, 0.0, 0.99, 0.99, 0.99])[:, np.newaxis]
    assert np.array_equal(kernel.perturb(wild, draws(5, 7)), kernel.perturb(tame, draws(5, 7)))


def test_v_is_the_flipped_cell_with_fresh_digits() -> None:
    """The numpy twin of the loop over values, and the ends of the unit interval."""
    kernel, n = best(2.0, [1, 0]), 1000
    u, rows = uniform_rows(n, 2, seed=51), draws(52, n)
    v = kernel.perturb(u, rows)
    cell = np.floor(u[:, 0] * 8).astype(np.uint64) ^ draw_flips(tables_of(kernel), rows.of_column(2))[:, 0]
    low = rows.of_column(0).words() >> np.uint64(15)
    assert np.array_equal(v[:, 0], (cell + (low + 0.5) * 2.0**-49) / 8)
    assert np.array_equal(v[:, 1], ((rows.of_column(1).words() >> np.uint64(12)) + 0.5) * 2.0**-52)
    ends = np.empty(2)
    move_bins(np.array([0.0, 1.0]), np.zeros(2, np.uint8), np.array([0, 2**64 - 1], dtype=np.uint64), 3, ends)
    assert ends.tolist() == [2.0**-53, 1 - 2.0**-53]


@pytest.mark.parametrize("epsilon", [0.5, 4.0, 40.0])
def test_uniform_in_uniform_out(epsilon: float) -> None:
    n, kernel = 200_000, best(epsilon, [2, 1, 1, 0])
    u = uniform_rows(n, 4, seed=1)
    v = kernel.perturb(u, draws(2, n))
    assert v.shape == (n, 4)
    assert all(ks_uniform(v[:, column]) < dkw(n) for column in range(4))
    skewed = kernel.perturb(u**2, draws(2, n))
    assert [ks_uniform(skewed[:, column]) > dkw(n) for column in range(4)] == [True, True, True, False]  # control


@pytest.mark.parametrize("epsilon", [1e-6, 1e3, 1e300])
@pytest.mark.parametrize("p", [1, 2, 30, pytest.param(1000, marks=pytest.mark.slow)])
def test_extreme_budgets_and_many_columns_behave(epsilon: float, p: int) -> None:
    n = max(5, 4000 // p)
    kernel = best(epsilon, [1] * p)
    u = uniform_rows(n, p, seed=3)
    v = kernel.perturb(u, draws(4, n))
    assert np.all((v > 0) & (v < 1))
    assert ks_uniform(v.ravel()) < dkw(n * p)
    stays = float(kernel.flips(0)[0])
    kept = np.floor(v * 2**kernel.bits) == np.floor(u * 2**kernel.bits)
    if epsilon == 1e-6:
        assert stays == pytest.approx(2.0**-kernel.bits, rel=1e-5)
    elif p < 1000 or epsilon > 1e3:
        assert stays > 1 - 1e-12
        assert kept.all()


def test_a_tiny_budget_spends_what_it_may() -> None:
    for epsilon in (1e-6, 1e-15):
        spent = best(epsilon, [1] * 3).largest_ratio - 1
        assert epsilon * (1 - 1e-3) < float(spent) <= epsilon * (1 + epsilon)
    assert best(1e-60, [1] * 3).largest_ratio == 1


TRIAL = {
    1.0: {2: 0.226, 5: 0.139, 10: 0.098, 30: 0.056},
    4.0: {2: 0.746, 5: 0.510, 10: 0.367, 30: 0.213},
    8.0: {2: 0.964, 5: 0.827, 10: 0.635, 30: 0.383},
}
"""The mean correlation of a column in the trial (design: kernels.md)."""


def correlation(kernel: JointKernel, column: int) -> float:
    """corr(u, v) = 3 Σ 4^-k E (-1)^z_k: the k-th bit has the share 3·4^-k of a uniform's variance."""
    K = kernel.bits
    flips = kernel.flips(column)
    kept = [sum(p * (-1) ** (b >> (K - k) & 1) for b, p in enumerate(flips)) for k in range(1, K + 1)]
    return float(sum(3 * mean / 4**k for k, mean in enumerate(kept, start=1)))


@pytest.mark.parametrize("epsilon", TRIAL)
@pytest.mark.parametrize("p", [2, 5, 10, 30])
def test_correlations_reach_the_trial(epsilon: float, p: int) -> None:
    kernel = best(epsilon, [1] * p)
    assert correlation(kernel, 0) == correlation(kernel, p - 1)
    assert correlation(kernel, 0) >= 0.97 * TRIAL[epsilon][p]
    assert correlation(best(0.9 * epsilon, [1] * p), 0) < 0.99 * correlation(kernel, 0)  # control


@pytest.mark.parametrize(("epsilon", "weights"), [(4.0, [1, 1]), (8.0, [3, 3, 1, 1, 0]), (4.0, [1] * 10)])
def test_sampled_correlations_are_the_computed_ones(epsilon: float, weights: list[int]) -> None:
    """The variance of 12 (u - 1/2)(v - 1/2) is at most 144 E(u - 1/2)^4 = 1.8, by Cauchy and Schwarz."""
    n, p, kernel = 200_000, len(weights), best(epsilon, weights)
    bound = stats.norm.isf(ALARM / 2) * np.sqrt(1.8 / n)
    u = uniform_rows(n, p, seed=61)
    v = kernel.perturb(u, draws(62, n))
    sampled = 12 * np.mean((u - 0.5) * (v - 0.5), axis=0)
    expected = np.array([correlation(kernel, column) for column in range(p)])
    assert np.all(np.abs(sampled - expected) < bound)
    others = np.array([correlation(best(0.8 * epsilon, weights), column) for column in range(p)])
    assert np.all((np.abs(sampled - others) > bound) == (np.array(weights) > 0))  # control


def test_a_heavier_column_keeps_more() -> None:
    kernel = best(4.0, integer_weights([3.0, 1.0, 1.0]).tolist())
    assert correlation(kernel, 0) > correlation(kernel, 1) == correlation(kernel, 2)


def test_integer_weights() -> None:
    assert integer_weights([1.0] * 7).tolist() == [1] * 7
    assert integer_weights([0.3, 0.1, 0]).tolist() == [3, 1, 0]
    assert integer_weights([6, 4, 2]).tolist() == [3, 2, 1]
    assert integer_weights([1.0, 1e-9]).tolist() == [64, 1]
    assert integer_weights([1.0, math.pi / 4]).tolist() == [64, 50]
    assert integer_weights([3.0] * 500 + [1.0] * 500).tolist() == [3] * 500 + [1] * 500
    many = integer_weights((1 + uniform_rows(100, 1, seed=71)[:, 0]).tolist())
    assert many.min() >= many.max() // 2
    assert many.max() >= 8
    for bad in ([], [0.0], [-1.0, 1.0], [np.inf], [np.nan, 1.0]):
        with pytest.raises(InputError, match="weights are not"):
            integer_weights(bad)


def test_many_columns_have_fewer_bits() -> None:
    assert [default_bits(np.ones(p, dtype=np.int64)) for p in (1, 100, 1000, 5000)] == [3, 3, 2, 1]


def test_the_law_is_the_same_seeded_and_secure() -> None:
    n, kernel = 100_000, best(1.0, [1, 1])
    u = np.full((n, 2), 0.2)
    seeded = kernel.perturb(u, draws(6, n))
    secure = kernel.perturb(u, Draws(source(None), 0, n))
    bound = 2 * dkw(n, alarm=ALARM / 2)
    assert stats.ks_2samp(seeded[:, 0], secure[:, 0]).statistic < bound
    assert stats.ks_2samp(seeded[:, 0], kernel.perturb(u + 0.3, draws(6, n))[:, 0]).statistic > bound  # control
