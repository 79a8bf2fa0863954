"""Whole releases with the optimal kernel: rows of the reference stay rows of it, and no event tells two rows apart."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats

import dipriv
from dipriv._base.arrays import FloatArray
from dipriv._base.columns import PRESENT, ColumnValues
from dipriv._random.bits import source
from dipriv.kernels import OptimalJoint
from dipriv.kernels._cap.kernel import CapKernel
from dipriv.kernels._joint.kernel import JointKernel
from dipriv.mechanism import compose, decode
from dipriv.references import Known
from dipriv.release.fitting import FittedMechanism
from tests.support import ALARM, dkw, draws, ks, uniform_rows

N = 100_000


def shuffled(columns: FloatArray, seed: int) -> FloatArray:
    """Each column in an order of its own: the same columns, independent of each other."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.permutation(column) for column in columns.T], axis=1)


# a known normal law

MEAN, COV = np.array([1.0, -2.0, 0.5]), np.array([[4.0, 1.2, 0.3], [1.2, 1.0, -0.4], [0.3, -0.4, 2.0]])
PAIRS = np.triu_indices(3, 1)


def scores(columns: FloatArray) -> FloatArray:
    """Fisher's z of all pairs: normal about that of the law, with variance 1/(n - 3)."""
    return np.arctanh(np.asarray(np.corrcoef(columns, rowvar=False))[PAIRS])


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0, 200.0])
def test_a_normal_sample_stays_one(epsilon: float) -> None:
    """Each column by its distance to its law, each pair by Fisher's z; and jointly, as independent standard scores."""
    law = stats.multivariate_normal(MEAN, COV)
    private = law.rvs(N, random_state=1)
    frame = pd.DataFrame(private, columns=["a", "b", "c"])
    release = dipriv.privatize(frame, epsilon, reference=Known(law), kernel="optimal", seed=2)
    released = release.data.to_numpy()
    deviations = np.sqrt(np.diag(COV))
    for column in range(3):
        assert ks(released[:, column], stats.norm(MEAN[column], deviations[column])) < dkw(N, ALARM / 3)
        assert ks(1.05 * released[:, column], stats.norm(MEAN[column], deviations[column])) > dkw(
            N, ALARM / 3
        )  # control
    expected = np.arctanh((COV / np.outer(deviations, deviations))[PAIRS])
    limit = stats.norm.isf(ALARM / 2 / 3) / math.sqrt(N - 3)
    assert np.all(np.abs(scores(released) - expected) < limit)
    assert np.all(np.abs(scores(shuffled(released, 3)) - expected) > limit)  # control
    white = np.linalg.solve(np.linalg.cholesky(COV), (released - MEAN).T)
    spread = np.sum(white**2, axis=0)
    assert ks(spread, stats.chi2(3)) < dkw(N)
    assert ks(1.05 * spread, stats.chi2(3)) > dkw(N)  # control
    if epsilon < 200:
        assert isinstance(release.secrets.mechanism and release.secrets.mechanism.kernel, CapKernel | JointKernel)


# a private reference

TABLE = np.random.default_rng(4)
X = TABLE.normal(size=8000)
FRAME = pd.DataFrame(
    {
        "x": X,
        "y": 2 * X + TABLE.normal(size=8000),
        "count": TABLE.poisson(np.exp(0.7 * X)),
        "label": np.where(X + TABLE.normal(size=8000) > 0.3, "a", TABLE.choice(["b", "c"], 8000)),
        "gap": pd.Series(X + TABLE.normal(size=8000)).where(X < 0.8),
    }
)


def from_reference(fitted: FittedMechanism, seed: int) -> list[ColumnValues]:
    u = np.clip(uniform_rows(N, len(fitted.order), seed), 2.0**-53, 1 - 2.0**-53)
    v = np.empty_like(u)
    v[:, list(fitted.order)] = fitted.reference.from_uniform(u)
    return decode([column.codec for column in fitted.columns], v)


def as_numbers(cells: ColumnValues) -> NDArray[Any]:
    """Values, with missing ones below all others."""
    values = cells.values.astype(np.float64)
    return values if cells.missing is None else np.where(cells.missing == PRESENT, values, -1e9)


def ranks(columns: FloatArray, among: FloatArray) -> FloatArray:
    """Places in the columns of another sample: bounded, so that normal approximations are good."""
    return np.stack(
        [np.searchsorted(np.sort(other), one, side="right") for one, other in zip(columns.T, among.T, strict=True)],
        axis=1,
    ) / len(among)


def products(columns: FloatArray) -> FloatArray:
    """(rows, pairs): the products of centred places; their means are the pairs' covariances."""
    first, second = np.triu_indices(columns.shape[1], 1)
    centred = columns - 0.5
    return np.asarray(centred[:, first] * centred[:, second])


@pytest.mark.parametrize("epsilon", [1.0, 20.0])
def test_rows_of_a_private_reference_stay_rows_of_it(epsilon: float) -> None:
    """Rows drawn from the learned reference, released by the mechanism, against other rows drawn from it.

    Columns by two DKW bounds; pairs by the mean products of their places among a third sample, with standard errors.
    """
    found = dipriv.privatize(FRAME, epsilon, kernel="optimal", reference_share=0.5, seed=5).secrets.mechanism
    assert found is not None
    mechanism = compose([column.codec for column in found.columns], found.reference, found.kernel, found.order)
    private = from_reference(found, 6)
    released = mechanism.privatize(private, source(7))
    fresh, third = from_reference(found, 8), from_reference(found, 9)
    out, law, among = (np.stack([as_numbers(c) for c in cells], axis=1) for cells in (released, fresh, third))
    columns = out.shape[1]
    limit = 2 * dkw(N, ALARM / 2 / columns)
    for column in range(columns):
        assert stats.ks_2samp(out[:, column], law[:, column]).statistic < limit
        moved = np.where(np.arange(N) % 25 == 0, law[:, column].max(), out[:, column])
        assert stats.ks_2samp(moved, law[:, column]).statistic > limit  # control: one row in 25 at the top

    one, two, apart = (products(ranks(side, among)) for side in (out, law, shuffled(out, 10)))
    quantile = stats.norm.isf(ALARM / 2 / one.shape[1])
    allowed = quantile * np.sqrt((one.var(axis=0) + two.var(axis=0)) / N)
    assert np.all(np.abs(one.mean(axis=0) - two.mean(axis=0)) < allowed)
    dependent = np.abs(two.mean(axis=0)) > 2 * allowed
    assert dependent.sum() >= 4
    assert np.all(np.abs(apart.mean(axis=0) - two.mean(axis=0))[dependent] > allowed[dependent])  # control
    kept = np.corrcoef(as_numbers(private[0]), out[:, 0])[0, 1]
    assert kept > stats.norm.isf(ALARM) / math.sqrt(N)  # and yet each row tells of its own


# an audit


def largest_exponent(kernel: JointKernel, n: int, seed: int) -> float:
    """A lower bound, wrong with a chance of ALARM, on the ε that tells the rows (0, 0, 0) and (1, 1, 1) apart.

    Events are {score of the released cells >= threshold}, all thresholds at once, by Clopper-Pearson.
    """
    cells = 1 << kernel.bits
    values = np.array(
        [sum(4 ** (kernel.bits - k) * (-1) ** (b >> (kernel.bits - k) & 1) for k in range(1, kernel.bits + 1))
         for b in range(cells)]
    )  # fmt: skip
    sampled = []
    for number, corner in enumerate((0.0, 1.0)):
        v = kernel.perturb(np.full((n, 3), corner), draws(seed + number, n))
        sampled.append(values[np.floor(v * cells).astype(np.int64)] @ kernel.weights)
    thresholds = np.unique(sampled[0])
    alarm = ALARM / 2 / len(thresholds)
    inside, outside = (np.array([np.count_nonzero(s >= t) for t in thresholds]) for s in sampled)
    at_least = stats.beta.ppf(alarm, inside, n - inside + 1)
    at_most = np.where(outside == n, 1.0, stats.beta.isf(alarm, outside + 1, np.maximum(n - outside, 1)))
    return float(np.max(np.log(at_least / at_most)))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_no_score_tells_two_rows_apart_beyond_epsilon(epsilon: float) -> None:
    n, names = 300_000, ["a", "b", "c"]
    kernel, mutant = OptimalJoint().build(epsilon, names), OptimalJoint().build(1.5 * epsilon, names)
    assert 0.8 * epsilon < largest_exponent(kernel, n, 20) <= epsilon  # the bound is tight, and holds
    assert largest_exponent(mutant, n, 20) > epsilon  # control: a kernel that spends half as much again
