"""The best noise for one column: against another program and closed forms, exact in integers, drawn as stated."""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import brentq, linprog

from dipriv._base.arrays import FloatArray, first_not_below
from dipriv._base.coordinates import Partition, UniformCoordinate, equal_parts
from dipriv.errors import InputError
from dipriv.kernels import Laplace, Optimal, OptimalColumns, Transition
from dipriv.kernels._per_column.integer_channel import WHOLE, InvariantChannel, best_swap, masses_of
from dipriv.kernels._per_column.kernel import ColumnsKernel, place_in
from dipriv.kernels._per_column.linear_program import best_excess
from dipriv.kernels.transition import _alias_table, bin_shift, exp_below, sample_alias
from tests.support import ALARM, chi_square_tail, data_folder, dkw, draws, ks_uniform, uniform_rows

EPSILONS = [0.1, 0.5, 1.0, 2.0, 4.0, 6.0]


def categories(pi: Sequence[float] | FloatArray) -> Partition:
    return UniformCoordinate("z", np.asarray(pi, dtype=np.float64)).partition(64)


def numbers(pi: Sequence[float] | FloatArray, values: Sequence[float] | FloatArray | None = None) -> Partition:
    """Squared differences in standard units: 1 - E cost/2 is the correlation."""
    p = np.asarray(pi, dtype=np.float64) / np.sum(pi)
    x = np.arange(len(p), dtype=np.float64) if values is None else np.asarray(values, dtype=np.float64)
    x = x - p @ x
    spread = math.sqrt(p @ x**2)
    x = x / spread if np.count_nonzero(p) > 1 else np.zeros(len(p))
    return Partition(p, (x[:, np.newaxis] - x) ** 2)


def swap_for(part: Partition, epsilon: float) -> InvariantChannel:
    return best_swap(masses_of(part.probabilities), part.cost, Fraction(epsilon))


def kept(part: Partition, epsilon: float) -> float:
    """The exact expected fidelity of the best swap."""
    return part.fidelity(swap_for(part, epsilon).joint_probabilities)


def a_problem(kind: str, seed: int) -> Partition:
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 9))
    pi = rng.dirichlet(np.ones(k))
    if kind == "categories":
        return categories(pi)
    if kind == "numbers":
        return numbers(pi, np.sort(rng.normal(size=k)))
    return Partition(pi, rng.random((k, k)) * rng.choice([0.0, 1.0, 5.0], (k, k)))  # neither symmetric nor 0 for i = j


def by_another_program(part: Partition, epsilon: float) -> tuple[float, float]:
    """(least expected cost, what no feasible P undercuts): over P_ij and m_j as they stand, by interior points.

    The second number is a proof, not a computation to trust: for all α and β,
    Σ α_i + Σ β_j π_j + Σ_j min{Σ_i r_ij P_ij: m_j <= P_ij <= e^ε m_j}, r_ij = π_i c_ij - α_i - π_i β_j, is at most the
    cost of every feasible P. The minimum is m_j Σ_i min(r_ij, e^ε r_ij): 0, once β_j is low enough to make that >= 0.
    """
    pi, k, ratio = part.probabilities, len(part.probabilities), math.exp(epsilon)
    rows, columns = np.kron(np.eye(k), np.ones(k)), np.kron(pi, np.eye(k))
    lows = np.kron(np.ones((k, 1)), np.eye(k))
    objective = np.append((pi[:, np.newaxis] * part.cost).ravel(), np.zeros(k))
    found: Any = linprog(
        objective,
        A_ub=np.block([[-np.eye(k * k), lows], [np.eye(k * k), -ratio * lows]]),
        b_ub=np.zeros(2 * k * k),
        A_eq=np.block([[rows, np.zeros((k, k))], [columns, np.zeros((k, k))]]),
        b_eq=np.append(np.ones(k), pi),
        method="highs-ipm",
    )
    assert found.success
    alpha, beta = found.eqlin.marginals[:k], found.eqlin.marginals[k:].copy()

    def least(b: float, j: int) -> float:
        r = pi * part.cost[:, j] - alpha - pi * b
        return float(np.minimum(r, ratio * r).sum())

    for j in range(k):
        if least(beta[j], j) < 0:
            beta[j] = brentq(least, beta[j] - 1e6, beta[j], args=(j,), xtol=1e-13) - 1e-12
    return float(found.fun), float(alpha.sum() + beta @ pi)


def expected_cost(part: Partition, law: FloatArray) -> float:
    return float((law * part.cost).sum())


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", ["categories", "numbers", "user costs"])
def test_the_program_agrees_with_another_formulation_and_solver(kind: str, epsilon: float) -> None:
    for seed in range(4):
        part = a_problem(kind, seed)
        unrelated = float(part.probabilities @ part.cost @ part.probabilities)
        least, proved = by_another_program(part, epsilon)
        ours = expected_cost(part, swap_for(part, epsilon).joint_probabilities)
        assert abs(ours - least) < 1e-6 * unrelated
        assert ours > proved - 1e-9 * unrelated  # our integers are feasible, so they cannot beat the proof
        assert ours < proved + 1e-6 * unrelated
        excess = best_excess(part.probabilities, part.cost, epsilon)
        law = np.outer(part.probabilities, part.probabilities) * (1 + excess)
        assert abs(expected_cost(part, law) - least) < 1e-6 * unrelated
        weaker = expected_cost(part, swap_for(part, 0.9 * epsilon).joint_probabilities)
        assert weaker > proved + 1e-5 * unrelated  # control: nine tenths of ε are told apart


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", ["categories", "numbers", "user costs"])
def test_no_feasible_matrix_keeps_more(kind: str, epsilon: float) -> None:
    """Random laws with both margins π, mixed with ππ' until their ratios hold; also mixed too little (control)."""
    rng = np.random.default_rng(99)
    part = a_problem(kind, 5)
    pi, k = part.probabilities, len(part.probabilities)
    best, beaten = expected_cost(part, swap_for(part, epsilon).joint_probabilities), 0
    for trial in range(30):
        law = np.exp(-part.cost * rng.exponential(20) / part.cost.max() + rng.normal(size=(k, k)) * (trial % 3))
        for _ in range(200):
            law *= (pi / law.sum(axis=1))[:, np.newaxis]
            law *= pi / law.sum(axis=0)
        excess = law / np.outer(pi, pi) - 1

        def fits(share: float, excess: FloatArray = excess) -> bool:
            column = 1 + share * excess
            return bool(np.all(column.max(axis=0) <= math.exp(epsilon) * column.min(axis=0)))

        low, high = 0.0, 1.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        assert expected_cost(part, np.outer(pi, pi) * (1 + low * excess)) > best - 1e-6 * part.cost.max()
        beaten += expected_cost(part, law) < best - 1e-3 * part.cost.max()
    assert beaten  # control: without the bound on ratios the same laws do keep more


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("rarer", [0.5, 0.4, 0.1, 0.01, 1e-4])
def test_two_levels_have_a_closed_form(epsilon: float, rarer: float) -> None:
    """ρ/(1 - ρ) = (e^ε - 1) q with q = min π.

    With r = q/(1 - q) <= 1, P_01 = a and P_10 = r a, the correlation is 1 - a/(1 - q), and the columns' ratios ask for
    a (1 + e^ε r) >= 1 and a (e^ε + r) >= 1. The first is the stricter: e^ε + r - (1 + e^ε r) = (e^ε - 1)(1 - r) >= 0.
    """
    odds = math.expm1(epsilon) * rarer
    for pi in ([rarer, 1 - rarer], [1 - rarer, rarer]):
        for part in (numbers(pi), numbers(pi, [-7.0, 1e9]), categories(pi)):
            assert kept(part, epsilon) == pytest.approx(odds / (1 + odds), abs=1e-6)
    least, _ = by_another_program(numbers(pi), epsilon)
    assert 1 - least / 2 == pytest.approx(odds / (1 + odds), abs=1e-6)  # in standard units two draws differ by 2


@pytest.mark.parametrize("epsilon", [*EPSILONS, 12.0])
@pytest.mark.parametrize("k", [2, 3, 7, 40])
def test_uniform_categories_are_randomized_response(epsilon: float, k: int) -> None:
    response = math.expm1(epsilon) / (math.exp(epsilon) + k - 1)
    assert kept(categories(np.full(k, 1 / k)), epsilon) == pytest.approx(response, abs=1e-6)
    matrix = swap_for(categories(np.full(k, 1 / k)), epsilon).transition.matrix
    keeps = math.exp(epsilon) / (math.exp(epsilon) + k - 1)
    if k > 2:
        assert np.diag(matrix) == pytest.approx(np.full(k, keeps), abs=1e-5)


SLOPES: dict[str, tuple[Partition, float]] = {
    "uniform ranks": (equal_parts(32), 3 / 8),
    "three numbers": (numbers([0.25, 0.5, 0.25]), 0.25),
    "five numbers": (numbers([0.1, 0.2, 0.4, 0.2, 0.1]), 0.8**2 / (2 * 1.2)),
    "two numbers": (numbers([0.2, 0.8]), 0.2),
    "three categories": (categories([1 / 3] * 3), 1 / 3),
    "ten categories": (categories([0.1] * 10), 1 / 10),
}


@pytest.mark.parametrize("name", SLOPES)
def test_small_budgets_have_a_known_slope(name: str) -> None:
    """s (1 - e^-ε) <= fidelity <= s (e^ε - 1) at every ε, where s is the slope at 0.

    The program's t, with t_ij <= 1 + d g_j and d = 1 - e^-ε, contains all t <= 1 and lies in t <= 1 + d g <= e^ε; over
    t <= 1 it gives d s. For numbers symmetric about 0 the best t <= 1 is 1 where x_i and x_j have opposite signs and
    0 where they have the same: s = (E|x|)²/(2 Var x).
    """
    part, slope = SLOPES[name]
    for epsilon in (1e-6, 1e-3, 0.1, 1.0):
        lowest, highest = -slope * math.expm1(-epsilon), slope * math.expm1(epsilon)
        assert lowest - 1e-7 * epsilon <= kept(part, epsilon) <= highest + 1e-7 * epsilon
        assert kept(part, 1.1 * epsilon) > lowest * 1.05  # control
        if epsilon < 0.01:
            assert kept(part, 1.1 * epsilon) > highest


@pytest.mark.parametrize("epsilon", [1e-6, *EPSILONS, 9.0, 12.0])
def test_nothing_exceeds_the_hyperbolic_tangent(epsilon: float) -> None:
    """ε-private noise with π as fixed point leaves at most tanh(ε/2), which two equal levels reach."""
    most = math.tanh(epsilon / 2)
    for kind, seed in itertools.product(["categories", "numbers"], range(6)):
        assert kept(a_problem(kind, seed), epsilon) <= most + 1e-12
    assert kept(equal_parts(32), epsilon) <= most
    for part in (numbers([0.5, 0.5]), categories([0.5, 0.5])):
        assert most * (1 - 1e-6) <= kept(part, epsilon) <= most + 1e-12


# in integers


@st.composite
def levels(draw: st.DrawFn) -> tuple[Partition, float]:
    """Up to 40 levels, some impossible, some very rare, and ε from 1e-6 to 1000."""
    common = st.floats(1e-4, 1.0)
    masses = draw(st.lists(common | st.sampled_from([0.0, 1e-12]) | common, min_size=0, max_size=39))
    masses.insert(draw(st.integers(0, len(masses))), draw(st.floats(0.5, 1.0)))
    pi = np.array(masses) / np.sum(masses)
    epsilon = math.exp(draw(st.floats(math.log(1e-6), math.log(1000.0))))
    return (categories(pi) if draw(st.booleans()) else numbers(pi)), epsilon


def check_in_integers(swap: InvariantChannel, epsilon: float) -> None:
    """Masses that add up, rows and columns that keep them, ratios within the bound, nothing impossible."""
    weights, there = swap.transition.weights, [i for i, mass in enumerate(swap.masses) if mass]
    assert sum(swap.masses) == WHOLE
    assert [sum(weights[i]) for i in there] == [WHOLE * swap.masses[i] for i in there]
    assert [sum(weights[i][j] for i in there) for j in range(len(weights))] == [WHOLE * mass for mass in swap.masses]
    limit = exp_below(Fraction(epsilon))
    assert limit < Fraction(math.exp(min(epsilon, 700.0))) * (1 + Fraction(1, 10**12)) or epsilon > 700
    for j in range(len(weights)):
        column = [Fraction(row[j], sum(row)) for row in weights]
        if swap.masses[j]:
            assert min(column) > 0
            assert max(column) / min(column) <= limit
        else:
            assert max(column) == 0


@settings(max_examples=60)
@given(levels())
def test_privacy_and_invariance_hold_in_integers(problem: tuple[Partition, float]) -> None:
    part, epsilon = problem
    swap = swap_for(part, epsilon)
    assert all(abs(m / WHOLE - p) < 41 / WHOLE for m, p in zip(swap.masses, part.probabilities, strict=True))
    check_in_integers(swap, epsilon)


@pytest.mark.parametrize(
    "pi",
    [
        [1 - 1e-9, 1e-9],
        [1 - 1e-12, 1e-12],
        [1e-12, 0.6, 0.4 - 1e-12],
        [0.3, 0.7 - 1e-6, 1e-6],
    ],
    ids=["1e-9", "1e-12", "1e-12 of three", "1e-6 of three"],
)
def test_rare_levels_at_a_large_budget_are_solved_too(pi: list[float]) -> None:
    for epsilon, part in itertools.product((16.0, 20.0, 24.0, 60.0, 1000.0), (numbers(pi), categories(pi))):
        check_in_integers(swap_for(part, epsilon), epsilon)


@pytest.mark.parametrize(
    "part",
    [
        numbers(stats.poisson(3).pmf(np.arange(24))),
        numbers([0.3, 0.7 - 1e-9, 1e-9]),
    ],
    ids=["Poisson(3)", "1e-9 of three"],
)
def test_more_budget_never_keeps_less(part: Partition) -> None:
    """Up to the millionth that the solver is trusted with."""
    fidelity = [kept(part, epsilon) for epsilon in (0.1, 1.0, 4.0, 8.0, 12.0, 16.0, 20.0, 24.0, 100.0, 1000.0)]
    assert all(later > earlier - 1e-6 for earlier, later in itertools.pairwise(fidelity))


def test_one_level_and_no_gain_are_no_error() -> None:
    for part in (
        numbers([1.0]),
        categories([1.0]),
        numbers([0.0, 1.0, 0.0]),
        Partition(np.ones(2) / 2, np.ones((2, 2))),
    ):
        swap = swap_for(part, 1.0)
        check_in_integers(swap, 1.0)
        assert swap.transition.largest_ratio == 1  # nothing to gain: nothing is spent
    assert kept(numbers([1.0]), 1.0) == 0.0


def moved(weights: tuple[tuple[int, ...], ...], cells: dict[tuple[int, int], int]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(w + cells.get((i, j), 0) for j, w in enumerate(row)) for i, row in enumerate(weights))


def test_tampered_weights_are_refused() -> None:
    swap = swap_for(numbers([0.1, 0.4, 0.3, 0.2]), 1.0)
    budget, weights = Fraction(1), swap.transition.weights
    assert InvariantChannel(swap.masses, Transition(budget, weights)).joint_probabilities == pytest.approx(
        swap.joint_probabilities
    )
    for cells in ({(0, 1): 1}, {(0, 1): 1, (0, 2): -1}, {(1, 0): 1, (2, 0): -1}, {(3, 3): -1}):
        with pytest.raises(InputError, match="does not keep the masses"):
            InvariantChannel(swap.masses, Transition(budget, moved(weights, cells)))
    unit = {(0, 0): 1, (1, 1): 1, (0, 1): -1, (1, 0): -1}  # keeps the masses: refused only by the ratios
    much = {cell: sign * (weights[0][1] // 100) for cell, sign in unit.items()}
    with pytest.raises(InputError, match="ratio above"):
        Transition(budget, moved(weights, much))
    with pytest.raises(InputError, match="ratio above"):
        Transition(budget * Fraction(999, 1000), weights)
    with pytest.raises(InputError, match="square matrix"):
        Transition(budget, moved(weights, {(0, 1): -weights[0][1] - 1}))
    for masses in ((*swap.masses[:3], swap.masses[3] - 1), (*swap.masses[:2], swap.masses[3], swap.masses[2])):
        with pytest.raises(InputError, match="does not keep the masses"):
            InvariantChannel(masses, swap.transition)
    with pytest.raises(ValueError, match="each bin has a mass"):
        InvariantChannel(swap.masses[:3], swap.transition)


def test_budgets_beyond_epsilon_are_refused() -> None:
    swap = swap_for(equal_parts(4), 0.5)
    assert ColumnsKernel(1.0, (swap,), (0, 0)).spent == 1
    with pytest.raises(InputError, match="add up to"):
        ColumnsKernel(math.nextafter(1.0, 0.0), (swap,), (0, 0))
    with pytest.raises(InputError, match="add up to"):
        ColumnsKernel(1.0, (swap,), (0, 0, 0))
    for p, epsilon in itertools.product([1, 3, 7, 49], [0.1, 1.0, 3.7]):
        kernel = OptimalColumns({"c0": 0.3}).build(epsilon, [f"c{i}" for i in range(p)])
        assert kernel.spent <= Fraction(epsilon)
        assert float(kernel.spent) == pytest.approx(epsilon, rel=1e-12)


def test_the_same_problem_is_solved_once() -> None:
    part = numbers([0.3, 0.3, 0.4])
    assert swap_for(part, 1.0) is swap_for(numbers([0.3, 0.3, 0.4]), 1.0)
    assert swap_for(part, 1.0) is not swap_for(part, 2.0)
    assert swap_for(part, 1.0) is not swap_for(categories([0.3, 0.3, 0.4]), 1.0)
    kernel = OptimalColumns().build(3.0, ["a", "b", "c"])
    assert len(kernel.swaps) == 1
    assert kernel.which == (0, 0, 0)


# drawn as stated


def columns_kernel(swap: InvariantChannel) -> ColumnsKernel:
    return ColumnsKernel(math.nextafter(float(swap.transition.budget), math.inf), (swap,), (0,))


def with_digits(swap: InvariantChannel, digits: int) -> InvariantChannel:
    """The same law, looked up with so few random digits that many draws need further ones."""
    return InvariantChannel(swap.masses, Transition(swap.transition.budget, swap.transition.weights, digits))


GAPS = numbers([0.0, 0.05, 0.0, 0.35, 0.2, 0.0, 0.4, 0.0])


@pytest.mark.parametrize(("digits", "n"), [(63, 200_000), (8, 40_000), (5, 40_000)])
def test_cells_and_places_are_drawn_by_their_law(digits: int, n: int) -> None:
    """(cell, cell) by its law; inside its cell v is uniform and has nothing to do with u's place."""
    swap = with_digits(swap_for(GAPS, 2.0), digits)
    u = uniform_rows(n, 1, seed=1)
    v = columns_kernel(swap).perturb(u, draws(2, n))
    before, after = (np.searchsorted(swap.cuts[1:-1], side[:, 0], side="left") for side in (u, v))
    counts = np.bincount(8 * before + after, minlength=64)
    assert chi_square_tail(counts, swap.joint_probabilities.ravel()) > ALARM
    assert chi_square_tail(counts, swap_for(GAPS, 1.6).joint_probabilities.ravel()) < ALARM  # control: another ε
    assert ks_uniform(v[:, 0]) < dkw(n)
    low, high = swap.cuts[after], swap.cuts[after + 1]
    place = (v[:, 0] - low) / (high - low)
    assert np.all((v[:, 0] > low) & (v[:, 0] <= high))
    assert ks_uniform(place) < dkw(n)
    was = (u[:, 0] - swap.cuts[before]) / (swap.cuts[before + 1] - swap.cuts[before])
    limit = stats.norm.isf(ALARM / 2) / math.sqrt(n)
    assert abs(np.corrcoef(was, place)[0, 1]) < limit
    assert abs(np.corrcoef(u[:, 0], v[:, 0])[0, 1]) > limit  # control


@pytest.mark.parametrize("digits", [4, 5, 8])
def test_few_digits_have_the_exact_law(digits: int) -> None:
    """Every leading pattern of digits counts 2^-digits; an undecided one goes as its bin's threshold cuts it."""
    transition = with_digits(swap_for(GAPS, 2.0), digits).transition
    tables = transition.thresholds, transition.aliases
    bins = transition.thresholds.shape[1]
    shift, length = bin_shift(digits, bins), digits - bins.bit_length() + 1
    assert int(shift) == length
    for level, row in enumerate(transition.weights):
        thresholds, aliases = _alias_table(row)
        chances = [Fraction(0)] * bins
        open_patterns = 0
        for pattern in range(1 << digits):
            word = np.uint64(pattern << (64 - digits))
            found = int(sample_alias(level, word, np.uint64(64 - digits), shift, *tables))
            if found >= 0:
                chances[found] += Fraction(1, 1 << digits)
                continue
            open_patterns += 1
            b, rest = pattern >> length, pattern & ((1 << length) - 1)
            stays = Fraction(thresholds[b] << length, sum(row)) - rest
            assert 0 <= stays < 1
            chances[b] += stays / (1 << digits)
            chances[aliases[b]] += (1 - stays) / (1 << digits)
        assert chances[: len(row)] == [Fraction(weight, sum(row)) for weight in row]
        assert open_patterns > 0 or swap_for(GAPS, 2.0).masses[level] == 0


@pytest.mark.parametrize("digits", [63, 4])
def test_pieces_concatenate(digits: int) -> None:
    n = 1001
    kernel = columns_kernel(with_digits(swap_for(GAPS, 2.0), digits))
    u = uniform_rows(n, 1, seed=3)
    whole = kernel.perturb(u, draws(4, n))
    pieces = [kernel.perturb(u[a:b], draws(4, b - a, first=a)) for a, b in itertools.pairwise([0, 1, 300, 301, 777, n])]
    assert np.array_equal(whole, np.concatenate(pieces))
    assert not np.array_equal(whole[1:], kernel.perturb(u[1:], draws(4, n - 1)))  # control
    assert kernel.perturb(u[:0], draws(4, 0)).shape == (0, 1)


@pytest.mark.parametrize("digits", [63, 4])
def test_columns_use_bits_of_their_own(digits: int) -> None:
    n = 20_000
    swap = with_digits(swap_for(equal_parts(8), 1.0), digits)
    v = ColumnsKernel(2.0, (swap,), (0, 0)).perturb(np.full((n, 2), 0.5), draws(5, n))
    limit = stats.norm.isf(ALARM / 2) / math.sqrt(n)
    assert abs(np.corrcoef(v[:, 0], v[:, 1])[0, 1]) < limit
    same = columns_kernel(swap).perturb(np.full((n, 1), 0.5), draws(5, n))
    assert np.array_equal(same[:, 0], v[:, 0])  # control: the same bits do give the same numbers


@pytest.mark.parametrize(
    "part",
    [
        GAPS,
        numbers([0.0, 0.3, 0.7]),
        equal_parts(64),
        numbers(np.full(40, 1 / 40)),
        numbers([1.0]),
    ],
    ids=["last cell without mass", "first cell without mass", "64 cells", "40 levels", "one level"],
)
def test_any_input_is_held_to_the_unit_interval(part: Partition) -> None:
    kernel = columns_kernel(swap_for(part, 1.0))
    wild = np.array([-np.inf, np.nan, -3.0, -0.0, -5e-324, np.inf, 7.0, np.nextafter(1.0, 2.0), 1e308])[:, np.newaxis]
    tame = np.array([0.0] * 5 + [1.0] * 4)[:, np.newaxis]
    v = kernel.perturb(wild, draws(6, 9))
    assert np.array_equal(v, kernel.perturb(tame, draws(6, 9)))
    assert np.all((v > 0) & (v < 1))


def test_places_lie_inside_their_cells_however_narrow() -> None:
    """Cells of mass 2^-48 at both ends and in the middle; the extreme words and one between."""
    masses = (1, 1, WHOLE // 2, 1, 0, 3, WHOLE // 2 - 8, 1, 1)
    assert sum(masses) == WHOLE
    cuts = np.concatenate([[0], np.cumsum(masses)]) / WHOLE
    for cell, mass in enumerate(masses):
        for word in (0, 1 << 63, 2**64 - 1):
            if not mass:
                continue
            place = place_in(cuts, np.int64(cell), np.uint64(word))
            assert cuts[cell] < place <= cuts[cell + 1]
            assert 0 < place < 1
            assert first_not_below(place, cuts[1:-1], len(masses) - 1) == cell


def test_a_row_from_an_impossible_cell_is_released_by_the_masses_alone() -> None:
    swap, n = swap_for(GAPS, 2.0), 50_000
    weights = swap.transition.weights
    assert weights[0] == weights[2] == swap.masses
    counts = np.bincount(swap.transition.perturb(np.full(n, 2), draws(7, n)), minlength=8)
    assert chi_square_tail(counts, GAPS.probabilities) > ALARM
    assert chi_square_tail(counts, swap.transition.matrix[3]) < ALARM  # control: a row from another cell
    v = columns_kernel(swap).perturb(np.zeros((n, 1)), draws(8, n))  # u = 0 lies in the first cell, which has no mass
    assert ks_uniform(v[:, 0]) < dkw(n)


# what the trial of the design notes found


def movielens_margin() -> UniformCoordinate:
    path = data_folder() / "movielens" / "ml-25m-rating-counts.csv"
    if not path.exists():
        pytest.skip(f"{path.name} not found in {data_folder()}/movielens; set DIPRIV_DATA")
    with path.open() as file:
        rows = sorted((float(row["rating"]), int(row["count"])) for row in csv.DictReader(file))
    counts = np.array([count for _, count in rows])
    return UniformCoordinate("z", counts / counts.sum(), np.array([rating for rating, _ in rows]))


def poisson_margin() -> UniformCoordinate:
    law = stats.poisson(3).pmf(np.arange(24))
    return UniformCoordinate("z", law / law.sum(), np.arange(24.0))


def bernoulli(p: float) -> UniformCoordinate:
    return UniformCoordinate("z", np.array([1 - p, p]), np.array([0.0, 1.0]))


def margin_of(name: str) -> UniformCoordinate:
    if name == "MovieLens 25M":
        return movielens_margin()
    others = {
        "continuous": UniformCoordinate("z"),
        "Bernoulli(0.1)": bernoulli(0.1),
        "Bernoulli(0.5)": bernoulli(0.5),
        "Poisson(3)": poisson_margin(),
    }
    return others[name]


TRIAL = {
    "continuous": {0.5: 0.185, 1.0: 0.354, 2.0: 0.623, 4.0: 0.892, 8.0: 0.992},
    "Bernoulli(0.1)": {1.0: 0.147, 2.0: 0.390, 4.0: 0.843},
    "Bernoulli(0.5)": {1.0: 0.462, 2.0: 0.762, 4.0: 0.964},
    "MovieLens 25M": {1.0: 0.301, 2.0: 0.539, 4.0: 0.858},
    "Poisson(3)": {1.0: 0.305, 2.0: 0.550, 4.0: 0.850},
}
"""The optimal column of the table in design/kernels.md."""
PAPERS = {
    "continuous": {0.5: 0.123, 1.0: 0.238, 2.0: 0.430, 4.0: 0.675, 8.0: 0.871},
    "Bernoulli(0.1)": {1.0: 0.056, 2.0: 0.122, 4.0: 0.261},
    "Bernoulli(0.5)": {1.0: 0.213, 2.0: 0.368, 4.0: 0.567},
    "MovieLens 25M": {1.0: 0.205, 2.0: 0.373, 4.0: 0.604},
    "Poisson(3)": {1.0: 0.208, 2.0: 0.379, 4.0: 0.608},
}


def fine(margin: UniformCoordinate) -> Partition:
    """Cells in which fidelity is measured; the tail below 1e-12 belongs to the last level, for Laplace's integrals."""
    if margin.probabilities is None or margin.values is None:
        return equal_parts(256)
    there = margin.probabilities > 1e-12
    return numbers(margin.probabilities[there], margin.values[there])


@pytest.mark.parametrize("name", TRIAL)
def test_fidelities_reach_the_trial(name: str) -> None:
    margin = margin_of(name)
    part = fine(margin)
    for epsilon, optimal in TRIAL[name].items():
        kernel = Optimal().build(epsilon, ["z"], [margin])
        assert isinstance(kernel, ColumnsKernel)
        fidelity = part.fidelity(kernel.joint_probabilities(0, part.cuts))
        papers = part.fidelity(Laplace().build(epsilon, ["z"]).joint_probabilities(0, part.cuts))
        assert fidelity >= 0.97 * optimal
        assert fidelity <= optimal + 0.0015  # the trial solved the same program, to three digits
        assert papers == pytest.approx(PAPERS[name][epsilon], abs=0.0015)
        assert papers < 0.97 * optimal  # control


@pytest.mark.parametrize("name", TRIAL)
def test_nothing_is_lost_against_laplace_at_any_budget(name: str) -> None:
    margin = margin_of(name)
    part = fine(margin)
    for epsilon in (0.01, 0.1, 1.0, 4.0, 16.0, 100.0, 1000.0):
        best = part.fidelity(Optimal().build(epsilon, ["z"], [margin]).joint_probabilities(0, part.cuts))
        papers = part.fidelity(Laplace().build(epsilon, ["z"]).joint_probabilities(0, part.cuts))
        assert best >= papers - 1e-9
