"""Transition matrices: the paper's law, exact in integers, and the same as the direct path."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import dipriv
from dipriv._base.columns import NULL, PRESENT, ColumnValues
from dipriv._random.bits import source
from dipriv.codecs.levels import LevelsCodec
from dipriv.kernels import Laplace, Transition
from dipriv.kernels.transition import TOTAL, exp_below, laplace_matrix
from dipriv.mechanism import Chain, Levels, Mechanism, Separate, compose
from dipriv.references._models.distributions import LevelsDistribution
from dipriv.references._models.independent import Independent
from tests.support import ALARM, chi_square_tail, draws, vectors


def transition(pi: np.ndarray, epsilon: float) -> Transition:
    return Laplace().build(epsilon, ["z"]).on_levels(pi / pi.sum())


@pytest.mark.parametrize("number", range(12))
def test_matrices_agree_with_high_precision_integrals(number: int) -> None:
    case = vectors("discrete_transition.json")["cases"][number]
    pi, exact = np.array(case["pi"], dtype=float), np.array(case["P"], dtype=float)
    matrix = transition(pi, float(case["epsilon"]))
    ours = np.array([[float(Fraction(w, TOTAL)) for w in row] for row in matrix.weights])
    np.testing.assert_allclose(ours, exact, rtol=0, atol=1e-9 if float(case["epsilon"]) > 2**-10 else 0)
    assert float(matrix.largest_ratio) == pytest.approx(float(case["max_ratio"]), rel=1e-8)


@settings(max_examples=60)
@given(st.lists(st.floats(1e-4, 1.0), min_size=1, max_size=40), st.sampled_from([0.01, 0.1, 1.0, 3.0, 8.0]))
def test_privacy_and_invariance_hold_in_integers(raw: list[float], epsilon: float) -> None:
    pi = np.array(raw) / np.sum(raw)
    try:
        matrix = transition(pi, epsilon)
    except dipriv.InputError:
        # areas of size 1/ε have an error of up to 16 times 2^-52/ε, and mixing with π forgives one of ε/100 in the
        # smallest cell, π_min²: rarer levels are left to the chain, which has no such limit
        assert pi.min() < 40 * 2.0**-26 / epsilon
        return
    for row in matrix.weights:
        assert sum(row) == TOTAL
    columns: list[tuple[int, ...]] = list(zip(*matrix.weights, strict=True))
    for column in columns:
        assert Fraction(max(column), min(column)) <= exp_below(Fraction(epsilon))
    after = [sum(Fraction(p) * row[j] for p, row in zip(pi, matrix.weights, strict=True)) for j in range(len(pi))]
    drift = [abs(float(Fraction(w) / TOTAL - Fraction(p))) for w, p in zip(after, pi, strict=True)]
    assert max(drift) < 1e-12  # π is a fixed point to the rounding of doubles


@settings(max_examples=60)
@given(st.lists(st.floats(1e-4, 1.0), min_size=1, max_size=40))
def test_alias_tables_hold_exactly_the_weights(raw: list[float]) -> None:
    matrix = transition(np.array(raw), 1.0)
    bins = matrix.thresholds.shape[1]
    for row, weights in enumerate(matrix.weights):
        held = [0] * bins
        for b in range(bins):
            held[b] += int(matrix.thresholds[row, b])
            held[int(matrix.aliases[row, b])] += TOTAL // bins - int(matrix.thresholds[row, b])
        assert held == [*weights, *[0] * (bins - len(weights))]


def test_a_matrix_that_breaks_the_bound_is_not_built() -> None:
    pi = np.array([0.3, 0.7])
    with pytest.raises(dipriv.InputError, match="above e"):
        Transition.of(np.eye(2), pi, Fraction(1))
    with pytest.raises(dipriv.InputError, match="above e"):
        Transition.of(laplace_matrix(pi, 1.0), pi, Fraction(1, 100))


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_direct_path_has_the_same_law(epsilon: float) -> None:
    """Codec, CDF, Laplace noise, quantile and codec against one look-up in the matrix: same counts by level."""
    n = 120_000
    codec = LevelsCodec(np.array([-5, 0, 7, 100]), missing=(NULL,))
    law = LevelsDistribution(np.array([0.1, 0.2, 0.4, 0.25, 0.05]), low=-1.0)
    kernel = Laplace().build(epsilon, ["z"])
    direct = Chain((codec,), Independent((law,)), kernel, (0,))
    matrix = compose([codec], Independent((law,)), kernel, [0])
    assert isinstance(matrix, Separate)
    assert isinstance(matrix.parts[0], Levels)
    for value, missing in ((-5, PRESENT), (7, PRESENT), (100, PRESENT), (0, NULL)):
        cells = [ColumnValues(np.full(n, value), np.full(n, missing, dtype=np.uint8))]
        counts = []
        mechanisms: list[Mechanism] = [direct, matrix]
        for number, mechanism in enumerate(mechanisms):
            released = mechanism.privatize(cells, source(10 + number))[0]
            counts.append(np.bincount(codec.to_states(released), minlength=5))
        assert stats.chi2_contingency(counts).pvalue > ALARM
    other = Chain((codec,), Independent((law,)), Laplace().build(1.5 * epsilon, ["z"]), (0,))
    wrong = np.bincount(codec.to_states(other.privatize(cells, source(12))[0]), minlength=5)
    assert stats.chi2_contingency([counts[0], wrong]).pvalue < ALARM  # control: another ε


def test_probabilities_too_small_for_integers_go_the_direct_way() -> None:
    codec = LevelsCodec(np.arange(3))
    law = LevelsDistribution(np.array([1e-17, 1 - 2e-17, 1e-17]))
    mechanism = compose([codec], Independent((law,)), Laplace().build(1e-6, ["z"]), [0])
    assert isinstance(mechanism, Separate)
    assert isinstance(mechanism.parts[0], Chain)


def test_words_are_used_up_evenly() -> None:
    """An identity-free check of the sampler: equal weights give equal counts, whatever the number of bins."""
    n = 200_000
    for size in (1, 2, 3, 5, 8, 9):
        matrix = Transition.of(np.full((size, size), 1 / size), np.full(size, 1 / size), Fraction(1))
        counts = np.bincount(matrix.perturb(np.zeros(n, dtype=np.int64), draws(size, n)), minlength=size)
        assert chi_square_tail(counts, np.ones(size)) > ALARM


@pytest.mark.parametrize("digits", [4, 8, 63])
def test_ties_are_decided_by_further_digits(digits: int) -> None:
    """Rows that add up to 7 and 11 fit no binary fraction: with few digits most draws hang on further ones."""
    n = 40_000
    weights = ((1, 2, 4), (2, 3, 6), (3, 4, 4))
    matrix = Transition(Fraction(2), weights, digits)
    for level, row in enumerate(weights):
        counts = np.bincount(matrix.perturb(np.full(n, level), draws(30 + level, n)), minlength=3)
        assert chi_square_tail(counts, np.array(row)) > ALARM
        assert chi_square_tail(counts, np.array(weights[(level + 1) % 3])) < ALARM  # control: another row
    codec = LevelsCodec(np.array([5, 6, 9]))
    values = np.full(n, 6)
    levels = Levels(codec, matrix).privatize([ColumnValues(values)], source(3))[0].values
    nullable = Levels(LevelsCodec(np.array([5, 6, 9]), ()), matrix)
    states = nullable.privatize([ColumnValues(values, np.zeros(n, dtype=np.uint8))], source(3))[0].values
    assert np.array_equal(levels, states)
    assert chi_square_tail(np.bincount(codec.to_states(ColumnValues(levels))), np.array(weights[1])) > ALARM


def test_a_level_that_one_row_alone_releases_is_refused() -> None:
    with pytest.raises(dipriv.InputError, match="above e"):
        Transition(Fraction(900), ((1, 0), (1, 1)))
    assert Transition(Fraction(1), ((1, 0), (1, 0))).perturb(np.array([0, 1]), draws(1, 2)).tolist() == [0, 0]
    with pytest.raises(dipriv.InputError, match="square matrix"):
        Transition(Fraction(1), ((1, 1),))


def test_independent_columns_use_bits_of_their_own() -> None:
    law = dipriv.references.Known({"a": stats.rv_discrete(values=([0, 1], [0.5, 0.5])), "b": stats.bernoulli(0.5)})
    frame = pd.DataFrame({"a": np.zeros(20_000, dtype=int), "b": np.zeros(20_000, dtype=int)})
    released = dipriv.privatize(frame, 1.0, reference=law, kernel="laplace", seed=1).data
    assert abs(np.corrcoef(released["a"], released["b"])[0, 1]) < 4.9 / np.sqrt(20_000)
