"""Algorithm 1 on estimated references: the released sample follows the reference, and fidelity follows ε."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dipriv
from dipriv.kernels import Laplace
from dipriv.references import Empirical, Grouped, Parametric
from research.experiments.linear_regression import Setting
from tests.support import dkw


def two_sample_bound(n: int, m: int) -> float:
    """Both empirical distributions lie within dkw of the law they share."""
    return dkw(n, 5e-7) + dkw(m, 5e-7)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_a_hold_out_release_follows_the_distribution_of_the_table(epsilon: float) -> None:
    rng = np.random.default_rng(1)
    n = 60_000
    table = pd.DataFrame({"z": rng.lognormal(size=n), "y": rng.poisson(3, n)})
    release = dipriv.privatize(table, epsilon, reference="holdout", holdout=0.5, seed=2)
    held = len(table) - len(release.data)
    for name in table:
        bound = two_sample_bound(n, len(release.data)) + dkw(held, 5e-7) + 2 / held
        distance = stats.ks_2samp(table[name], release.data[name]).statistic
        assert distance < bound
        assert stats.ks_2samp(1.1 * table[name] + 0.1, release.data[name]).statistic > bound  # control


@pytest.mark.parametrize(("epsilon", "trial"), [(0.1, 0.025), (0.5, 0.123), (1.0, 0.238), (2.0, 0.430), (4.0, 0.675)])
def test_rank_correlation_of_rows_is_the_kernels(epsilon: float, trial: float) -> None:
    """Correlation of u and G(u + e) from quadrature; the design notes' trial figures agree to their digits."""
    n = 200_000
    table = pd.DataFrame({"z": np.random.default_rng(3).normal(size=n)})
    law = dipriv.references.Known(stats.norm())
    released = dipriv.privatize(table, epsilon, reference=law, kernel="laplace", seed=4).data
    u = stats.norm.cdf(table["z"])
    v = stats.norm.cdf(released["z"])
    kept = np.corrcoef(u, v)[0, 1]
    standard_error = 1 / np.sqrt(n)
    assert abs(kept - trial) < 5e-4 + 4.9 * standard_error


def test_a_larger_share_keeps_more_of_its_column() -> None:
    n = 100_000
    z = np.random.default_rng(5).normal(size=(n, 2))
    law = dipriv.references.Known({"x0": stats.norm(), "x1": stats.norm()})
    even = dipriv.privatize(z, 2.0, reference=law, kernel="laplace", seed=6).data
    tilted = dipriv.privatize(z, 2.0, reference=law, kernel=Laplace({"x0": 3.0}), seed=6).data
    limit = 4.9 * np.sqrt(2 / n)
    kept = [stats.spearmanr(z[:, c], out[:, c]).statistic for out in (even, tilted) for c in (0, 1)]
    assert kept[2] - kept[0] > limit
    assert kept[1] - kept[3] > limit
    assert abs(kept[0] - kept[1]) < limit


def test_each_group_follows_its_own_distribution() -> None:
    rng = np.random.default_rng(7)
    groups, repeats, first = 2000, 60, 30
    who = np.repeat(np.arange(groups), repeats)
    table = pd.DataFrame({"who": who, "z": rng.normal(10.0 * who, 1.0)})
    release = dipriv.privatize(table, 1.0, reference=Grouped(by="who", first=first), keep=["who"], seed=8)
    released = release.data
    assert released["who"].value_counts().eq(repeats - first).all()
    held = table.drop(released.index)["z"].to_numpy().reshape(groups, first)
    low, high = held.min(axis=1), held.max(axis=1)
    reach = high - low + (high - low) / (first - 1)  # the boxes reach one mean gap below the minimum
    expected = (held.mean(axis=1) - reach / (2 * first) - 10.0 * np.arange(groups)).mean()
    spread = released["z"] - 10.0 * released["who"]
    tolerance = 4.9 * spread.std() / np.sqrt(len(spread))
    assert abs(spread.mean() - expected) < tolerance
    assert abs(spread.mean() - 1.0) > tolerance  # control
    assert spread.abs().max() < 8  # a shared reference would be off by thousands
    pooled = dipriv.privatize(table[["z"]], 1.0, reference="holdout", seed=8)
    assert (pooled.data["z"] - 10.0 * who[pooled.secrets.row_positions]).abs().max() > 1000  # control


def test_a_parametric_reference_uses_the_hold_outs_estimate() -> None:
    n = 40_000
    table = pd.DataFrame({"z": np.random.default_rng(9).normal(5.0, 1.0, n)})
    recipe = Parametric("norm", fixed={"scale": 1.0})
    release = dipriv.privatize(table, 1.0, reference=recipe, holdout=0.5, seed=10)
    estimate = table["z"].to_numpy()[np.setdiff1d(np.arange(n), release.secrets.row_positions)].mean()
    law = stats.norm(estimate, 1.0)
    distance = stats.kstest(release.data["z"], law.cdf).statistic
    assert distance < dkw(len(release.data))
    assert stats.kstest(release.data["z"], stats.norm(estimate + 0.05, 1.0).cdf).statistic > dkw(len(release.data))


@pytest.mark.slow
def test_regression_does_not_depend_on_epsilon_or_order() -> None:
    """The paper's linear design in small: ε = 1, ε = 4 and a random order give the same mean error."""
    runs = 150
    settings = [Setting(400, 6, 0.15, 1.0), Setting(400, 6, 0.15, 4.0), Setting(400, 6, 0.15, 1.0, "random")]
    errors = [setting.errors(runs, seed) for seed, setting in enumerate(settings)]
    for other in errors[1:]:
        difference = errors[0].mean() - other.mean()
        assert abs(difference) < 4.9 * np.sqrt((errors[0].var() + other.var()) / runs)
    more = Setting(400, 6, 0.6, 1.0).errors(runs, 9)
    assert errors[0].mean() - more.mean() > 4.9 * np.sqrt((errors[0].var() + more.var()) / runs)  # control


def test_the_order_of_the_chain_rule_is_the_recipes() -> None:
    """With a huge ε on the first column of the chain and empirical boxes, that column is the one that is kept."""
    n = 4000
    rng = np.random.default_rng(11)
    table = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n)})
    for order, first, last in ((["a", "b"], "a", "b"), (["b"], "b", "a")):
        release = dipriv.privatize(table, 1e4, reference=Empirical(order=order), seed=12)
        origin = table.loc[release.data.index]
        assert list(release.data.columns) == ["a", "b"]
        assert np.corrcoef(origin[first], release.data[first])[0, 1] > 0.99
        assert abs(np.corrcoef(origin[last], release.data[last])[0, 1]) < 4.9 / np.sqrt(len(origin))
