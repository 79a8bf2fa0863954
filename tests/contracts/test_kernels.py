"""The contract that every kernel passes: private, invariant, total, and the same law seeded and secure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dipriv
from dipriv import _serialization
from dipriv._base.arrays import FloatArray
from dipriv._base.coordinates import UniformCoordinate
from dipriv._random.bits import Draws, source
from dipriv._random.discrete_laplace import discrete_laplace
from dipriv.errors import InputError
from dipriv.kernels import Kernel, KernelSpec, Laplace, Optimal, OptimalCap, OptimalColumns, OptimalJoint, by_name
from dipriv.kernels.laplace import LaplaceKernel, shift_and_flatten
from dipriv.kernels.noisy_uniform import noisy_uniform_cdf, slope_of, tail_of
from dipriv.kernels.protocol import KERNEL_SPECS
from dipriv.kernels.transition import exp_below
from tests.contracts import contributions
from tests.support import ALARM, chi_square_tail, dkw, draws, ks_uniform, uniform_rows, vectors

Build = Callable[[float, int], Kernel]
contributions()
RECIPES: dict[str, KernelSpec] = {name: by_name(name) for name in KERNEL_SPECS} | {
    "laplace with shares": Laplace({"c0": 3.0}),
    "optimal with weights": Optimal({"c0": 3.0}),
    "optimal columns": OptimalColumns(),
    "optimal joint": OptimalJoint(),
    "optimal cap": OptimalCap(),
}
KERNELS: dict[str, Build] = {
    name: lambda epsilon, p, recipe=recipe: recipe.build(epsilon, [f"c{i}" for i in range(p)])  # type: ignore[misc]
    for name, recipe in RECIPES.items()
}
every_kernel = pytest.mark.parametrize("build", KERNELS.values(), ids=KERNELS.keys())
laplace_kernels = pytest.mark.parametrize("build", [KERNELS["laplace"], KERNELS["laplace with shares"]])


@every_kernel
@pytest.mark.parametrize(("epsilon", "p"), [(0.1, 1), (1.0, 1), (1.0, 3), (4.0, 2), (40.0, 2)])
def test_uniform_in_uniform_out(build: Build, epsilon: float, p: int) -> None:
    n = 200_000
    u = uniform_rows(n, p, seed=1)
    v = build(epsilon, p).perturb(u, draws(2, n))
    assert v.shape == (n, p)
    assert np.all((v > 0) & (v < 1))
    assert all(ks_uniform(v[:, column]) < dkw(n) for column in range(p))


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_a_wrong_scale_is_noticed(epsilon: float) -> None:
    """Control: G of a scale that is 10% off does not give uniforms back."""
    n = 200_000
    kernel = Laplace().build(epsilon, ["c0"])
    noise = discrete_laplace(draws(2, n), int(kernel.scales[0])) * 2.0 ** -int(kernel.lattice_bits[0])
    noisy = uniform_rows(n, 1, seed=1)[:, 0] + noise
    assert ks_uniform(noisy_uniform_cdf(noisy, kernel.noise_scales)) < dkw(n)
    assert ks_uniform(noisy_uniform_cdf(noisy, 1.1 * kernel.noise_scales)) > dkw(n)


@every_kernel
@pytest.mark.parametrize(("epsilon", "p"), [(0.5, 1), (2.0, 2), (4.0, 1), (12.0, 3)])
def test_the_stated_law_is_the_sampled_one(build: Build, epsilon: float, p: int) -> None:
    """`joint_probabilities` for uneven cells against counts of (cell before, cell after), first and last column."""
    n = 100_000
    cuts = np.array([0.0, 0.03, 0.25, 0.3, 0.77, 1.0])
    u = uniform_rows(n, p, seed=11)
    kernel, other = build(epsilon, p), build(1.5 * epsilon, p)
    v = kernel.perturb(u, draws(12, n))
    for column in {0, p - 1}:
        cells = [np.searchsorted(cuts[1:-1], side[:, column]) for side in (u, v)]
        counts = np.bincount(5 * cells[0] + cells[1], minlength=25)
        assert chi_square_tail(counts, kernel.joint_probabilities(column, cuts).ravel()) > ALARM
        assert chi_square_tail(counts, other.joint_probabilities(column, cuts).ravel()) < ALARM  # control: another ε
        assert kernel.joint_probabilities(column, cuts).sum(axis=0) == pytest.approx(np.diff(cuts), abs=1e-12)


@laplace_kernels
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 3.7, 1e3])
@pytest.mark.parametrize("p", [1, 2, 7, pytest.param(1000, marks=pytest.mark.slow)])
def test_budgets_of_the_columns_add_up_to_at_most_epsilon(
    build: Callable[[float, int], LaplaceKernel], epsilon: float, p: int
) -> None:
    """On 2^K lattice steps noise of scale t has ratio e^(2^K/t); the exact sum of 2^K/t must not exceed ε."""
    kernel = build(epsilon, p)
    lattices = zip(kernel.lattice_bits.tolist(), kernel.scales.tolist(), strict=True)
    spent = sum(Fraction(2**steps, scale) for steps, scale in lattices)
    assert spent == kernel.spent
    assert spent <= Fraction(epsilon)
    assert float(spent) == pytest.approx(epsilon, rel=1e-6)


@every_kernel
@pytest.mark.parametrize("epsilon", [1e-6, 1e3])
@pytest.mark.parametrize("p", [1, pytest.param(1000, marks=pytest.mark.slow)])
def test_extreme_budgets_and_many_columns_behave(build: Build, epsilon: float, p: int) -> None:
    n = max(2, 4000 // p)
    v = build(epsilon, p).perturb(uniform_rows(n, p, seed=3), draws(4, n))
    assert np.all(np.isfinite(v))
    assert np.all((v > 0) & (v < 1))
    assert ks_uniform(v.ravel()) < dkw(n * p)


@every_kernel
def test_any_input_is_held_to_the_unit_cube(build: Build) -> None:
    """Total: -inf, nan and -3 are as 0; inf and 7 as 1; so no input can escape the privacy bound."""
    kernel = build(1.0, 1)
    wild = np.array([-np.inf, np.nan, -3.0, np.inf, 7.0])[:, None]
    tame = np.array([0.0, 0.0, 0.0, 1.0, 1.0])[:, None]
    assert np.array_equal(kernel.perturb(wild, draws(5, 5)), kernel.perturb(tame, draws(5, 5)))


@every_kernel
def test_the_law_is_the_same_seeded_and_secure(build: Build) -> None:
    n = 100_000
    u = np.full((n, 1), 0.2)
    seeded = build(1.0, 1).perturb(u, draws(6, n))[:, 0]
    secure = build(1.0, 1).perturb(u, Draws(source(None), 0, n))[:, 0]
    bound = 2 * dkw(n, alarm=5e-7)  # both empirical distributions are within dkw of the same law
    assert stats.ks_2samp(seeded, secure).statistic < bound
    other = build(1.0, 1).perturb(u + 0.6, Draws(source(None), 0, n))[:, 0]
    assert stats.ks_2samp(seeded, other).statistic > bound


@every_kernel
@pytest.mark.parametrize("p", [1, 3])
def test_a_kernel_travels_in_a_file(build: Build, p: int) -> None:
    """Registered classes are rebuilt from plain data, prove their ε again, and draw the same noise from equal bits."""
    kernel, u = build(1.0, p), uniform_rows(100, p, seed=9)
    again = _serialization.load(_serialization.dump(kernel))
    assert (type(again), again.epsilon, again.width) == (type(kernel), kernel.epsilon, p)
    assert np.array_equal(again.perturb(u, draws(10, 100)), kernel.perturb(u, draws(10, 100)))


@every_kernel
@pytest.mark.parametrize(("epsilon", "p"), [(0.5, 1), (2.0, 3)])
def test_exact_ratios_keep_to_epsilon(build: Build, epsilon: float, p: int) -> None:
    """The product of the columns' largest ratios, by their integers, is at most e^ε; not at most e to half of it."""
    ratios = build(epsilon, p).exact_ratios()
    if ratios is None:  # noise on a lattice without end: by its formula
        return
    product = Fraction(1)
    for one in ratios:
        assert one.ratio is not None
        assert one.ratio <= exp_below(one.budget)
        product *= one.ratio
    assert sum(one.budget for one in ratios) <= Fraction(epsilon)
    assert exp_below(Fraction(epsilon) / 2) < product <= exp_below(Fraction(epsilon))  # the first is a control


MARGINS = {
    "real": UniformCoordinate("real"),
    "even": UniformCoordinate("even", np.array([0.5, 0.5]), np.array([0.0, 1.0])),
    "rare": UniformCoordinate("rare", np.array([0.9, 0.1]), np.array([0.0, 1.0])),
    "count": UniformCoordinate(
        "count", stats.poisson(3).pmf(np.arange(12)) / stats.poisson(3).cdf(11), np.arange(12.0)
    ),
    "label": UniformCoordinate("label", np.array([0.6, 0.2, 0.1, 0.1])),
    "nulls": UniformCoordinate("nulls", np.array([0.1, 0.4, 0.5]), np.array([0.0, 1.0, 2.0]), missing=1),
}
"""A column of each kind."""
MIXES = [*combinations_with_replacement(MARGINS, 2), *((kind,) * 6 for kind in MARGINS), tuple(MARGINS)]


def kept(recipe: KernelSpec, mix: tuple[str, ...], epsilon: float) -> float:
    """The mean over columns, each in its own units: ranks, or its levels."""
    margins = [replace(MARGINS[kind], name=f"c{number}") for number, kind in enumerate(mix)]
    kernel = recipe.build(epsilon, [margin.name for margin in margins], margins)
    parts = [margin.partition(256) for margin in margins]
    return float(np.mean([p.fidelity(kernel.joint_probabilities(c, p.cuts)) for c, p in enumerate(parts)]))


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_no_mix_of_kinds_keeps_less_than_by_any_one_noise(epsilon: float) -> None:
    """The optimal kernel has the best of all candidates; none of the others has, for some mix of two kinds or more."""
    recipes = (OptimalCap(), OptimalJoint(), OptimalColumns(), Laplace(), Optimal(directions=False))
    best = {mix: kept(Optimal(), mix, epsilon) for mix in MIXES}
    for recipe in recipes:
        others = {mix: kept(recipe, mix, epsilon) for mix in MIXES}
        assert all(best[mix] >= others[mix] - 1e-12 for mix in MIXES)
        assert any(best[mix] > 1.02 * others[mix] for mix in MIXES)  # control: each would lose somewhere


def test_a_registered_name_is_enough_for_a_release(tmp_path: Path) -> None:
    """`kernel="toy"` is a file beside this one: released with, exported and loaded without another edit."""
    people = pd.DataFrame({"x": np.arange(400) % 7, "y": np.random.default_rng(1).normal(size=400)})
    release = dipriv.privatize(people, 1.0, public=people, kernel="toy", seed=1)
    assert release.data.shape == people.shape
    assert "    - ε rests on the proof of the author of 'Toy', which is not part of dipriv." in str(release.guarantee)
    assert "rests on the proof" not in str(dipriv.privatize(people, 1.0, public=people).guarantee)  # control
    dipriv.DIP(1.0, public=people, kernel="toy").fit(people).export_local(tmp_path / "reference")
    local = dipriv.load_local(tmp_path / "reference", seed=2)
    assert type(local.fitted.kernel).__name__ == "ToyKernel"
    assert "rests on the proof of the author of 'Toy'" in str(local.guarantee)
    assert local.privatize(people).shape == people.shape


def test_an_unknown_name_is_answered_by_the_known_ones() -> None:
    with pytest.raises(InputError, match=r'kernel=.gauss. is unknown.\nUse one of "laplace", "optimal", "toy"'):
        by_name("gauss")


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_sampled_density_ratio_stays_below_the_promise(epsilon: float) -> None:
    """Two extreme inputs, the best threshold event: its probabilities differ by at most e^ε (within sampling error)."""
    n = 400_000
    kernel = Laplace().build(epsilon, ["c0"])
    low = kernel.perturb(np.zeros((n, 1)), draws(7, n))[:, 0]
    high = kernel.perturb(np.ones((n, 1)), draws(8, n))[:, 0]
    thinner = LaplaceKernel(1.6 * epsilon, kernel.lattice_bits, kernel.scales * 2 // 3)
    low_bad = thinner.perturb(np.zeros((n, 1)), draws(7, n))[:, 0]
    high_bad = thinner.perturb(np.ones((n, 1)), draws(8, n))[:, 0]
    event = float(noisy_uniform_cdf(np.array(0.0), kernel.noise_scales)[0])

    def audited(inside: int, outside: int) -> float:
        at_least = stats.beta.ppf(1e-6, inside, n - inside + 1)  # Clopper-Pearson
        at_most = stats.beta.ppf(1 - 1e-6, outside + 1, n - outside)
        return float(np.log(at_least / at_most))

    honest = audited(int((low <= event).sum()), int((high <= event).sum()))
    mutant = audited(int((low_bad <= event).sum()), int((high_bad <= event).sum()))
    assert honest <= epsilon
    assert mutant > epsilon  # control: two thirds of the noise breaks the promise


def test_a_kernel_that_overspends_cannot_be_built() -> None:
    kernel = Laplace().build(1.0, ["a", "b"])
    with pytest.raises(InputError, match="add up to"):
        LaplaceKernel(1.0, kernel.lattice_bits, kernel.scales - 1)
    with pytest.raises(InputError, match="needs at least"):
        Laplace().build(1e-9, ["a"] * 1000)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0])
def test_the_compiled_g_is_the_readable_one(epsilon: float) -> None:
    kernel = Laplace().build(epsilon, ["c0"])
    steps, b = 2.0 ** int(kernel.lattice_bits[0]), float(kernel.noise_scales[0])
    z = discrete_laplace(draws(3, 10_000), int(kernel.scales[0]))
    u, v = uniform_rows(10_000, 1, seed=4)[:, 0], np.empty(10_000)
    shift_and_flatten(u, z, steps, b, tail_of(b), slope_of(b), v)
    np.testing.assert_allclose(v, noisy_uniform_cdf((np.floor(u * steps + 0.5) + z) / steps, b), rtol=1e-14)


def test_g_agrees_with_high_precision_vectors_in_both_tails() -> None:
    for row in vectors("noisy_uniform_cdf.json")["rows"]:
        x, b = np.array(float(row["x"])), float(row["scale"])
        assert noisy_uniform_cdf(x, b) == pytest.approx(float(row["G"]), rel=4e-15, abs=0)
        assert noisy_uniform_cdf(1 - x, b) == pytest.approx(float(row["one_minus_G"]), rel=4e-14, abs=0)


@pytest.mark.parametrize("b", [0.01, 0.05, 0.5, 1.0, 3.0, 1e6])
def test_g_is_the_integral_of_the_laplace_cdf(b: float) -> None:
    """G(x) = ∫₀¹ Λ((x - u)/b) du, by quadrature."""
    from scipy.integrate import quad

    for x in (-2.0 * b, -0.1, 0.0, 0.3, 0.5, 0.999, 1.0, 1 + 2.0 * b):
        kinks = np.clip([x - 30 * b, x, x + 30 * b], 0, 1).tolist()
        expected, error = quad(lambda u, x=x: stats.laplace.cdf((x - u) / b), 0, 1, points=kinks, limit=400)
        assert float(noisy_uniform_cdf(np.array(x), b)) == pytest.approx(expected, abs=1e-12 + 10 * error)


def test_g_is_monotone_and_saturates() -> None:
    for b in (1e-3, 0.3, 1.0, 50.0, 1e6):
        x = np.linspace(-40 * b, 1 + 40 * b, 100_001)
        g: FloatArray = noisy_uniform_cdf(x, b)
        assert np.all(np.diff(g) >= 0)
        ends = noisy_uniform_cdf(np.array([-np.inf, np.inf]), b)
        assert ends.tolist() == [0.0, 1.0]
