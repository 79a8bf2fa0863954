"""Theorem 1: with a known law the released sample follows exactly that law, at every ε."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats

import dipriv
from dipriv.references import Known, Mixture
from tests.support import ALARM, chi_square_tail, dkw, ks, vectors

N = 200_000


class MixedLaw:
    """The CDF and a sampler of a mixture, written apart from dipriv."""

    def __init__(self, zero: float, top: float) -> None:
        self.zero, self.top = zero, top

    def cdf(self, x: NDArray[Any]) -> NDArray[Any]:
        rest = 1 - self.zero - self.top
        return np.asarray(rest * stats.expon.cdf(x) + self.zero * (x >= 0) + self.top * (x >= 3))

    def rvs(self, size: int, random_state: int) -> NDArray[Any]:
        rng = np.random.default_rng(random_state)
        which = rng.choice(3, size, p=[self.zero, self.top, 1 - self.zero - self.top])
        return np.select([which == 0, which == 1], [0.0, 3.0], rng.exponential(size=size))


@dataclass(frozen=True)
class Case:
    law: Any
    given: Any
    wrong: Any


CASES = {
    "Unif(0,1)": Case(stats.uniform(), stats.uniform(), stats.beta(1.03, 1)),
    "Beta(2,5)": Case(stats.beta(2, 5), stats.beta(2, 5), stats.beta(2, 5.15)),
    "N(0,1)": Case(stats.norm(), stats.norm(), stats.norm(0.03)),
    "Exp(1)": Case(stats.expon(), stats.expon(), stats.expon(scale=1.03)),
    "Bernoulli(0.1)": Case(stats.bernoulli(0.1), stats.bernoulli(0.1), stats.bernoulli(0.12)),
    "Binomial(5,0.5)": Case(stats.binom(5, 0.5), stats.binom(5, 0.5), stats.binom(5, 0.51)),
    "Poisson(3)": Case(stats.poisson(3), stats.poisson(3), stats.poisson(3.06)),
    "Geometric(0.2)": Case(stats.geom(0.2), stats.geom(0.2), stats.geom(0.205)),
    "mixed": Case(MixedLaw(0.3, 0.05), Mixture({0.0: 0.3, 3.0: 0.05}, stats.expon()), MixedLaw(0.31, 0.05)),
}


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_released_sample_follows_the_law(case: Case, epsilon: float) -> None:
    private = pd.DataFrame({"z": case.law.rvs(size=N, random_state=7)})
    release = dipriv.privatize(private, epsilon, reference=Known(case.given), seed=8)
    released = release.data["z"].to_numpy()
    assert len(released) == N
    assert release.data["z"].dtype == private["z"].dtype
    assert ks(released, case.law) < dkw(N)
    assert ks(released, case.wrong) > dkw(N)  # control: a law that is a little off is told apart
    if released.dtype.kind == "i":
        values, counts = np.unique(released, return_counts=True)
        p = case.law.pmf(values)
        seen, hoped = np.append(counts, 0), np.append(p, 1 - p.sum())
        assert chi_square_tail(seen, hoped) > ALARM
        assert chi_square_tail(seen, np.append(case.wrong.pmf(values), 1 - case.wrong.pmf(values).sum())) < ALARM


def test_a_multivariate_normal_keeps_its_dependence() -> None:
    mean, cov = np.array([1.0, -2.0, 0.5]), np.array([[4.0, 1.2, 0.3], [1.2, 1.0, -0.4], [0.3, -0.4, 2.0]])
    law = stats.multivariate_normal(mean, cov)
    private = pd.DataFrame(law.rvs(N, random_state=1), columns=["a", "b", "c"])
    released = dipriv.privatize(private, 1.0, reference=Known(law), seed=2).data.to_numpy()
    for column in range(3):
        assert ks(released[:, column], stats.norm(mean[column], np.sqrt(cov[column, column]))) < dkw(N)
    white = np.linalg.solve(np.linalg.cholesky(cov), (released - mean).T).T
    limit = stats.norm.isf(ALARM / 12) / np.sqrt(N)
    assert np.all(np.abs(np.corrcoef(white, rowvar=False) - np.eye(3)) < limit)
    assert np.abs(np.corrcoef(released, rowvar=False)[0, 1]) > limit  # control: the raw columns are dependent


@pytest.mark.parametrize("number", range(9))
def test_one_discrete_column_has_the_exact_transition_matrix(number: int) -> None:
    """P(released level | true level), against 50-digit integrals made elsewhere."""
    cases = vectors("discrete_transition.json")["cases"]
    case = cases[number % len(cases)]
    pi, exact = np.array(case["pi"], dtype=float), np.array(case["P"], dtype=float)
    levels = np.arange(len(pi))
    law = Known(stats.rv_discrete(values=(levels, pi / pi.sum())))
    n = 60_000
    for true in levels:
        private = pd.DataFrame({"z": np.full(n, true)})
        release = dipriv.privatize(
            private, float(case["epsilon"]), reference=law, kernel="laplace", seed=100 + int(true)
        )
        released = release.data["z"]
        counts = np.bincount(released, minlength=len(pi))
        assert chi_square_tail(counts, exact[true]) > ALARM / len(pi)
    others = [c for c in cases if c["name"] == case["name"] and c["epsilon"] != case["epsilon"]]
    wrong = np.array(others[0]["P"], dtype=float)[levels[-1]]
    assert chi_square_tail(counts, wrong) < ALARM  # control: another ε has another matrix
