"""The vectorized empirical reference against a naive transcription of the paper's formulas, and outside vectors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dipriv._base.arrays import FloatArray
from dipriv.references import Grouped, ReferenceRows
from dipriv.references._models.boxes import Boxes
from tests.support import vectors


def fit(v: FloatArray) -> Boxes:
    return Boxes.build(v, np.full(v.shape[1], -np.inf), "paper")


def order_statistics(v: FloatArray, column: int) -> list[float]:
    """d_0l, d_1l, ..., d_ml with d_0l one below the minimum (proof of Theorem 2)."""
    d = sorted(v[:, column].tolist())
    return [d[0] - 1.0, *d]


def holds(v: FloatArray, q: int, x: list[float]) -> bool:
    """Whether x is within the cube on the immediate bottom-left of the first coordinates of row q."""
    for column, value in enumerate(x):
        d = order_statistics(v, column)
        j = d.index(v[q, column], 1)
        if not d[j - 1] < value <= d[j]:
            return False
    return True


def naive_forward(v: FloatArray, x: list[float]) -> list[float]:
    """Eqs. (continualized_edf) and (multi_cond), one row at a time."""
    m = len(v)
    d = order_statistics(v, 0)
    u = [0.0 if x[0] <= d[0] else 1.0]
    for k in range(1, m + 1):
        if d[k - 1] < x[0] <= d[k]:
            u[0] = (x[0] - d[k - 1]) / (d[k] - d[k - 1]) / m + (k - 1) / m
    for column in range(1, v.shape[1]):
        found = [q for q in range(m) if holds(v, q, x[:column])]
        assert len(found) <= 1
        if not found:
            u.append(0.0)
            continue
        d = order_statistics(v, column)
        j = d.index(v[found[0], column], 1)
        u.append(min(1.0, max(0.0, (x[column] - d[j - 1]) / (d[j] - d[j - 1]))))
    return u


def naive_backward(v: FloatArray, u: list[float]) -> list[float]:
    """The inverse conditional CDFs of eq. (cond_priv), given the coordinates already made."""
    m = len(v)
    d = order_statistics(v, 0)
    k = max(1, int(np.ceil(u[0] * m)))
    x = [d[k - 1] + (u[0] * m - (k - 1)) * (d[k] - d[k - 1])]
    q = next(q for q in range(m) if v[q, 0] == d[k])
    for column in range(1, v.shape[1]):
        d = order_statistics(v, column)
        j = d.index(v[q, column], 1)
        x.append(d[j - 1] + u[column] * (d[j] - d[j - 1]))
    return x


@settings(max_examples=60)
@given(st.integers(2, 9), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_both_directions_equal_the_naive_loops(m: int, p: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    v = rng.normal(size=(m, p)) * rng.choice([0.1, 1.0, 10.0], p)
    cubes = fit(v)
    near = v[rng.integers(0, m, 30)] - rng.random((30, p)) * 0.02  # mostly inside some row's cube
    far = rng.normal(size=(30, p)) * 12
    rows = np.concatenate([v, near, far])
    forward = np.array([naive_forward(v, row.tolist()) for row in rows])
    np.testing.assert_allclose(cubes.to_uniform(rows), forward, rtol=0, atol=1e-12)
    u = rng.random((60, p))
    backward = np.array([naive_backward(v, row.tolist()) for row in u])
    np.testing.assert_allclose(cubes.from_uniform(u), backward, rtol=1e-9, atol=1e-12)


def test_one_column_agrees_with_the_vectors() -> None:
    given_ = vectors("empirical_one_column.json")
    cubes = fit(np.array(given_["reference"])[:, None])
    x, u = np.array(given_["cdf"]).T
    np.testing.assert_allclose(cubes.to_uniform(x[:, None])[:, 0], u, rtol=4e-16, atol=1e-16)
    u, x = np.array(given_["ppf"]).T
    np.testing.assert_allclose(cubes.from_uniform(u[:, None])[:, 0], x, rtol=1e-14, atol=1e-14)


def test_three_columns_agree_with_the_vectors() -> None:
    given_ = vectors("empirical_three_columns.json")
    cubes = fit(np.array(given_["reference"]))
    forward = given_["forward"]
    rows, u = np.array([case["row"] for case in forward]), np.array([case["u"] for case in forward])
    assert len(rows) > 50
    np.testing.assert_allclose(cubes.to_uniform(rows), u, rtol=4e-16, atol=2e-16)
    backward = given_["backward"]
    u, rows = np.array([case["u"] for case in backward]), np.array([case["row"] for case in backward])
    np.testing.assert_allclose(cubes.from_uniform(u), rows, rtol=1e-14, atol=1e-14)


def test_the_default_edge_does_not_depend_on_the_unit() -> None:
    rng = np.random.default_rng(3)
    v, u = rng.normal(size=(40, 2)), rng.random((100, 2))
    lower = np.full(2, -np.inf)
    metres = Boxes.build(v, lower, "unit-free").from_uniform(u)
    millimetres = Boxes.build(1000 * v, lower, "unit-free").from_uniform(u)
    np.testing.assert_allclose(millimetres, 1000 * metres, rtol=1e-12)
    paper = Boxes.build(v, lower, "paper").from_uniform(u)
    assert not np.allclose(Boxes.build(1000 * v, lower, "paper").from_uniform(u), 1000 * paper, rtol=1e-3)  # control


def test_the_default_edge_never_crosses_the_low_end() -> None:
    v = np.array([[0.01], [0.2], [0.9]])
    assert Boxes.build(v, np.array([0.0]), "unit-free").from_uniform(np.array([[0.0]]))[0, 0] == 0.0
    assert Boxes.build(v, np.array([0.0]), "paper").from_uniform(np.array([[0.0]]))[0, 0] == pytest.approx(-0.99)


def test_groups_are_the_single_references_side_by_side() -> None:
    rng = np.random.default_rng(4)
    sizes = rng.integers(2, 6, 50)
    groups = rng.permutation(np.repeat(np.arange(50), sizes))
    v = rng.normal(size=(len(groups), 2)) + groups[:, None]
    together = Grouped(by="g", edge="paper").fit(ReferenceRows(v, np.full(2, -np.inf), ("a", "b"), groups))
    rows = rng.integers(0, 50, 400)
    x = rng.normal(size=(400, 2)) + rows[:, None]
    u = rng.random((400, 2))
    forward, backward = together.at(rows).to_uniform(x), together.at(rows).from_uniform(u)
    for group in range(50):
        alone = fit(v[groups == group])
        here = rows == group
        np.testing.assert_allclose(alone.to_uniform(x[here]), forward[here], atol=1e-13)
        np.testing.assert_allclose(alone.from_uniform(u[here]), backward[here], atol=1e-13)


def test_ties_share_the_gap_below_them() -> None:
    cubes = Boxes.build(np.array([[1.0, 5.0], [2.0, 6.0], [2.0, 7.0]]), np.full(2, -np.inf), "paper")
    assert cubes.top.tolist() == [1.0, 1.5, 2.0]
    assert cubes.from_uniform(np.array([[0.5, 0.5], [0.9, 0.5]]))[:, 1].tolist() == [5.5, 6.5]
