"""The exact ε of finite kernels: against hand-made matrices, against enumeration, and to the last digit of e^ε."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dipriv
from dipriv.auditing.exact import exact_epsilon, is_at_most_exp, smallest_exponent
from dipriv.kernels import Laplace, Optimal
from dipriv.kernels._joint.kernel import JointKernel
from dipriv.kernels.transition import Transition, exact_ratio, exp_below
from research.audit_standard import KERNELS, one_column, several_columns


def test_ratios_of_matrices_that_are_written_out() -> None:
    assert exact_ratio([[3, 1], [1, 3]]) == 3
    assert exact_ratio([[3, 1], [2, 6]]) == 3  # rows with sums of their own
    assert exact_ratio([[1, 0], [1, 0]]) == 1  # what no row releases has no ratio
    assert exact_ratio([[1, 0], [1, 1]]) is None


@given(st.fractions(min_value=1, max_value=10**6))
def test_the_exponent_is_the_smallest_double(ratio: Fraction) -> None:
    f = smallest_exponent(ratio)
    assert is_at_most_exp(ratio, f)
    assert f == 0 or not is_at_most_exp(ratio, math.nextafter(f, 0.0))
    assert math.isclose(f, math.log(ratio), rel_tol=1e-12, abs_tol=1e-12)


@pytest.mark.parametrize("epsilon", [1e-9, 0.5, 1.0, 2.0, 20.0])
def test_a_ratio_just_above_the_claim_is_told_from_one_just_below(epsilon: float) -> None:
    below = exp_below(Fraction(epsilon))
    above = below * (1 + Fraction(1, 10**45))  # 40 times what rounding took away
    assert smallest_exponent(below) <= epsilon < smallest_exponent(above)
    assert smallest_exponent(None) == math.inf


@pytest.mark.parametrize("kind", one_column())
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_optimal_kernel_spends_its_budget_and_no_more(kind: str, epsilon: float) -> None:
    (found,) = exact_epsilon(one_column()[kind](Optimal(), epsilon))
    assert 0.999 * epsilon < found.epsilon <= epsilon == found.claimed
    assert not found.exceeded


def test_noise_on_reals_is_not_finite_and_levels_are() -> None:
    kinds = one_column()
    assert exact_epsilon(kinds["continuous, normal"](Laplace(), 1.0)) == ()
    (found,) = exact_epsilon(kinds["12 categories"](Laplace(), 1.0))
    assert 0.9 < found.epsilon < 1.0  # e^-ε(1 - 1/12): levels of a twelfth hide where in the level a row stands


@pytest.mark.parametrize("kind", several_columns(3))
def test_rows_of_several_columns(kind: str) -> None:
    found = exact_epsilon(several_columns(3)[kind](KERNELS["optimal"], 1.0))
    assert found[-1].what.startswith("a row")
    assert 0.999 < found[-1].epsilon <= 1.0
    assert not any(one.exceeded for one in found)


def test_columns_add_up_to_the_row() -> None:
    rng = np.random.default_rng(1)
    table = pa.table({"a": rng.choice(list("xyz"), 500), "b": rng.integers(0, 4, 500)})
    kernel = dipriv.kernels.OptimalColumns({"a": 3})
    fitted = dipriv.privatize(table, 1.0, reference="holdout", kernel=kernel, seed=2).secrets.mechanism
    assert fitted is not None
    *columns, row = exact_epsilon(replace(fitted, kernel=kernel.build(1.0, ["a", "b"])))
    assert [column.claimed for column in columns] == [0.75, 0.25]
    assert math.isclose(sum(column.epsilon for column in columns), row.epsilon, rel_tol=1e-12)
    assert row.claimed == 1.0
    doubled = replace(fitted, kernel=kernel.build(2.0, ["a", "b"]))
    assert exact_epsilon(doubled, 1.0)[-1].exceeded  # control


def test_a_matrix_with_more_than_its_budget_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = one_column()["12 categories"](Optimal(), 1.0)
    transition = fitted.kernel.on_levels(fitted.reference.laws[0].probabilities)
    assert isinstance(transition, Transition)
    assert not exact_epsilon(fitted)[0].exceeded
    diagonal_times_ten = [
        [weight * (10 if i == j else 1) for j, weight in enumerate(row)] for i, row in enumerate(transition.weights)
    ]
    monkeypatch.setitem(vars(transition), "weights", diagonal_times_ten)  # undone: all releases share built kernels
    assert exact_epsilon(fitted)[0].exceeded


@pytest.mark.parametrize("weights", [[1], [3], [2, 1]])
def test_the_joint_ratio_is_that_of_all_flips(weights: list[int]) -> None:
    kernel = JointKernel.best(1.0, np.array(weights), bits=2)
    (found,) = kernel.exact_ratios()
    ratio = found.ratio
    assert ratio is not None
    assert ratio <= exp_below(Fraction(1))
    if len(weights) == 1:
        chances = kernel.flips(0)
        assert ratio == max(chances) / min(chances)


def test_tables_that_draw_another_law_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = JointKernel.best(1.0, np.array([1, 2]))
    assert kernel.exact_ratios()[0].ratio is not None
    digits = kernel._tables.flips.open_digits[0]
    cost = next(iter(digits))
    monkeypatch.setitem(digits, cost, digits[cost] + np.uint64(1))
    assert kernel.exact_ratios()[0].ratio is None
