"""What the experiment row-fidelity measures is what the kernels' laws say, and the figure of kernels shows them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from dipriv._base.arrays import FloatArray
from dipriv._base.coordinates import UniformCoordinate
from dipriv.errors import InputError
from dipriv.kernels import Kernel, KernelSpec, Laplace, Optimal, OptimalColumns, OptimalJoint
from dipriv.references import Known
from dipriv.release.privatize import privatize
from research.data import data_file
from research.experiments import kernel_figures, row_fidelity
from research.experiments.row_fidelity import BY_COLUMN, DIP, JOINT, OPTIMAL, RATINGS
from research.protocol import seed_of
from research.runner import reproduce

QUANTILE = 4.9
"""Standard errors that a normal variable exceeds, either way, once in a million."""
FINE = 512
RECIPES: dict[str, KernelSpec] = {
    DIP: Laplace(),
    OPTIMAL: Optimal(),
    BY_COLUMN: OptimalColumns(),
    JOINT: OptimalJoint(),
}


def expected(kernel: Kernel, margin: UniformCoordinate) -> tuple[float, float]:
    """Correlation ρ of the first column before and after, and the sd of a row's part in its estimate.

    The sample correlation of standardized x, y is ρ plus the mean of xy - ρ(x² + y²)/2, up to terms of order 1/n.
    """
    if margin.probabilities is None:
        pi, x, spread = np.full(FINE, 1 / FINE), (np.arange(FINE) + 0.5) / FINE, np.sqrt(1 / 12)
    else:
        assert margin.values is not None
        pi, x, spread = margin.probabilities, margin.values, np.inf
    x = x - pi @ x
    x = x / min(spread, np.sqrt(pi @ x**2))
    law = kernel.joint_probabilities(0, np.concatenate([[0.0], np.cumsum(pi)[:-1], [1.0]]))
    rho = float(x @ law @ x)
    part = np.outer(x, x) - rho * (x[:, np.newaxis] ** 2 + x**2) / 2
    return rho, float(np.sqrt((law * part**2).sum()))


def margin_of(setting: str) -> UniformCoordinate:
    """As the reference tells it, but written anew here."""
    if setting == "continuous":
        return UniformCoordinate("x0")
    if setting == RATINGS:
        _need_counts()
        law = row_fidelity.ratings().law
        return UniformCoordinate("x0", np.asarray(law.pk), np.asarray(law.xk))
    x = np.arange(2 if setting.startswith("Bernoulli") else 21)  # beyond 20 there is 1e-11 of Poisson(3)
    pi = row_fidelity.COLUMN_KINDS[setting].law.pmf(x)
    return UniformCoordinate("x0", pi / pi.sum(), x.astype(np.float64))


@pytest.mark.parametrize("setting", row_fidelity.ONE)
def test_one_column_keeps_what_its_kernel_says(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_fidelity, "EPSILONS", (1.0, 4.0))
    margin, rows = margin_of(setting), 100_000
    measured = row_fidelity.of_one_column(setting, rows, seed_of(1, setting))
    for epsilon in (1.0, 4.0):
        laws = {method: expected(RECIPES[method].build(epsilon, ["x0"], [margin]), margin) for method in (DIP, OPTIMAL)}
        for method, (rho, sd) in laws.items():
            assert abs(measured[method, epsilon] - rho) < QUANTILE * sd / np.sqrt(rows)
        assert abs(measured[OPTIMAL, epsilon] - laws[DIP][0]) > QUANTILE * laws[OPTIMAL][1] / np.sqrt(rows)  # control


@pytest.mark.parametrize("setting", row_fidelity.ONE)
def test_a_release_says_how_much_it_keeps(setting: str) -> None:
    margin = margin_of(setting)
    column = row_fidelity.ratings() if setting == RATINGS else row_fidelity.COLUMN_KINDS[setting]
    z = column.draw(50, np.random.default_rng(1))[:, np.newaxis]
    release = privatize(z, 1.0, reference=Known(column.law), kernel="optimal", seed=1)
    (said,) = release.fidelity.values()
    rho, sd = expected(Optimal().build(1.0, ["x0"], [margin]), margin)
    bound = QUANTILE * sd / np.sqrt(1 << 20) if setting == "continuous" else 1e-6  # 2^20 draws, else exact sums
    assert abs(said - rho) < bound
    assert abs(said - expected(Laplace().build(1.0, ["x0"]), margin)[0]) > bound  # control


def test_many_columns_keep_what_their_kernels_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean over columns has at most the standard error of one, however they depend on each other."""
    count, rows, names = 3, 30_000, ["x0", "x1", "x2"]
    monkeypatch.setattr(row_fidelity, "CELLS", 36_000)  # three calls
    monkeypatch.setattr(row_fidelity, "TOTAL_EPSILONS", (4.0,))
    measured = row_fidelity.of_many_columns(count, rows, seed_of(1))
    laws = {method: expected(recipe.build(4.0, names), UniformCoordinate("x0")) for method, recipe in RECIPES.items()}
    for method, (rho, sd) in laws.items():
        assert abs(measured[method, 4.0] - rho) < QUANTILE * sd / np.sqrt(rows)
    assert laws[OPTIMAL][0] > 1.04 * laws[JOINT][0] > 1.04 * laws[BY_COLUMN][0]
    for other in (DIP, BY_COLUMN):  # controls
        assert abs(measured[JOINT, 4.0] - laws[other][0]) > QUANTILE * laws[JOINT][1] / np.sqrt(rows)
    noise = 2 * (count / 4.0) ** 2
    assert measured["LRM", 4.0] == pytest.approx((1 + 12 * noise) ** -0.5, abs=QUANTILE / np.sqrt(rows))
    assert abs(measured["OPM", 4.0]) < QUANTILE / np.sqrt(rows)


def test_sums_of_parts_give_the_correlations_of_the_whole() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(3, 2, (1000, 2))
    y = x + rng.normal(size=x.shape)
    parts = row_fidelity.sums(x[:300], y[:300]) + row_fidelity.sums(x[300:], y[300:])
    wanted = [stats.pearsonr(x[:, column], y[:, column]).statistic for column in range(2)]
    assert row_fidelity.correlations(parts, 1000) == pytest.approx(wanted)


def test_ratings_of_lrm_are_ratings() -> None:
    _need_counts()
    column = row_fidelity.ratings()
    z = column.draw(500, np.random.default_rng(1))
    assert set(column.lrm(z, 1.0, seed_of(1))) == set(column.law.xk)


def test_the_trial_asks_the_better_of_both_kernels() -> None:
    trial = row_fidelity.ROW_FIDELITY.trial
    assert (trial["p = 1", OPTIMAL, 1.0], trial["p = 10", OPTIMAL, 8.0]) == (0.354, 0.635)
    assert (trial["continuous", DIP, 0.5], trial["Poisson(3)", OPTIMAL, 4.0]) == (0.123, 0.850)
    assert {setting for setting, *_ in trial} == set(row_fidelity.ROW_FIDELITY.settings)


@pytest.mark.slow
def test_the_experiment_is_drawn_at_tiny_scale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _need_counts()
    for name, value in (("ROWS", 2000), ("EPSILONS", (1.0, 4.0)), ("TOTAL_EPSILONS", (4.0,))):
        monkeypatch.setattr(row_fidelity, name, value)
    files = reproduce("row-fidelity", out=tmp_path, reps=1, jobs=1)
    assert [file.suffix for file in files] == [".json", ".md", ".svg"]


@pytest.mark.slow
def test_kernels_in_the_figure_are_invariant_and_private(tmp_path: Path) -> None:
    one, ratings, many = kernel_figures.panels()
    for panel in (*one, *ratings, *many):
        for margin in (panel.law.sum(axis=0), panel.law.sum(axis=1)):
            assert margin == pytest.approx(np.diff(panel.cuts), abs=1e-9)
    for panel in (*one, *ratings):
        assert _ratio(panel.density) <= np.exp(panel.epsilon) * (1 + 1e-9)
    assert _ratio(one[3].density) > np.exp(one[1].epsilon)  # control: ε = 4 against the bound of ε = 1
    for papers, optimal in (one[:2], one[2:], ratings[:2], ratings[2:], many[:2], many[1:3]):
        assert papers.correlation < optimal.correlation
    (file,) = reproduce("kernels", out=tmp_path)
    assert file.stat().st_size < 300_000


def _ratio(density: FloatArray) -> float:
    """The largest of one released place over all true ones."""
    return float((density.max(axis=0) / density.min(axis=0)).max())


def _need_counts() -> None:
    try:
        data_file(row_fidelity.COUNTS)
    except InputError as error:
        pytest.skip(str(error))
