"""Expected fidelity: what reference and kernel promise is what releases keep, and what undoes attenuation."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats

import dipriv
from dipriv._base.columns import PRESENT, ColumnValues
from dipriv._random.bits import source
from dipriv.guarantee.wording import largest_correlation
from dipriv.kernels import Optimal, OptimalJoint
from dipriv.kernels._cap.kernel import CapKernel
from dipriv.mechanism import Chain, compose, decode
from dipriv.references import Grouped, Known, Mixture
from dipriv.references._models.distributions import LevelsDistribution
from dipriv.references._models.independent import Independent
from dipriv.references.grouped import GroupedBoxes
from dipriv.release import fidelity
from dipriv.release.fidelity import _drawn, correlation_of, expected_fidelity, kappa_of
from dipriv.release.fitting import FittedMechanism
from dipriv.schema import Categorical, Discrete
from tests.support import ALARM, uniform_rows

N = 100_000
Z = stats.norm.isf(ALARM / 2)
EVERY_KERNEL = pytest.mark.parametrize("kernel", ["laplace", "optimal"])


@pytest.fixture(autouse=True)
def fewer_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """An eighth of the rows that fidelity draws otherwise: the bounds below know how many there are."""
    monkeypatch.setattr(fidelity, "MAX_CELLS", fidelity.MAX_CELLS // 8)
    monkeypatch.setattr(fidelity, "MAX_ROWS", fidelity.MAX_ROWS // 8)


def correlation(x: NDArray[Any], y: NDArray[Any]) -> tuple[float, float]:
    """(r, sd): r is off by about sd/sqrt(n), from its influence function xy - r (x² + y²)/2 in standard units."""
    a, b = ((side - side.mean()) / side.std() for side in (x.astype(np.float64), y.astype(np.float64)))
    r = float(np.mean(a * b))
    return r, float(np.std(a * b - r * (a**2 + b**2) / 2))


def kappa(x: NDArray[Any], y: NDArray[Any]) -> tuple[float, float]:
    """(κ, sd), by the influence function of κ = (A - C)/(1 - C), C = p'q."""
    labels, codes = np.unique(np.concatenate([x, y]), return_inverse=True)
    one, two = codes[: len(x)], codes[len(x) :]
    p, q = (np.bincount(side, minlength=len(labels)) / len(x) for side in (one, two))
    agree, chance = float(np.mean(one == two)), float(p @ q)
    found = (agree - chance) / (1 - chance)
    influence = (one == two) / (1 - chance) - (1 - agree) / (1 - chance) ** 2 * (q[one] + p[two])
    return found, float(np.std(influence))


def rows_drawn(width: int) -> int:
    """How many rows an expected fidelity is measured on, where it is not summed up."""
    return int(np.clip(fidelity.MAX_CELLS // width, fidelity.MIN_ROWS, fidelity.MAX_ROWS))


def bound(sd: float, n: int, drawn: int | None, tests: int = 1) -> float:
    """The difference between a mean over n rows and the expected one, itself exact or a mean over rows drawn."""
    return float(stats.norm.isf(ALARM / 2 / tests)) * sd * math.sqrt(1 / n + (1 / drawn if drawn else 0))


def fitted_of(release: dipriv.Release[Any]) -> FittedMechanism:
    assert release.secrets.mechanism is not None
    return release.secrets.mechanism


# known laws: the table is drawn from the law itself

LEVELS = stats.rv_discrete(values=([-3, 0, 1, 40], [0.2, 0.5, 0.25, 0.05]))


class Zeros:
    """30% zeros, else exponential."""

    def rvs(self, size: int, random_state: int) -> NDArray[Any]:
        rng = np.random.default_rng(random_state)
        return np.where(rng.random(size) < 0.3, 0.0, rng.exponential(size=size))


LAWS: dict[str, tuple[Any, Any, bool]] = {
    "normal": (stats.norm(5, 2), stats.norm(5, 2), False),
    "exponential": (stats.expon(), stats.expon(), False),
    "levels": (LEVELS, LEVELS, True),
    "Bernoulli": (stats.bernoulli(0.1), stats.bernoulli(0.1), True),
    "Poisson": (stats.poisson(3), stats.poisson(3), True),
    "wide Poisson": (stats.poisson(900), stats.poisson(900), True),
    "mixture": (Mixture({0.0: 0.3}, stats.expon()), Zeros(), False),
}
"""What is given, what is drawn from, and whether the expected fidelity is summed up, not drawn."""


@pytest.mark.slow
@EVERY_KERNEL
@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_a_known_law_keeps_what_is_expected(name: str, kernel: str, epsilon: float) -> None:
    given, law, summed = LAWS[name]
    z = law.rvs(size=N, random_state=1)
    release, other = (
        dipriv.privatize(pd.DataFrame({"z": z}), e, reference=Known(given), kernel=kernel, seed=2)
        for e in (epsilon, 3 * epsilon)
    )
    found, sd = correlation(z, release.data["z"].to_numpy())
    allowed = bound(sd, N, None if summed else rows_drawn(1))
    assert abs(release.fidelity["z"] - found) < allowed
    assert abs(release.fidelity["z"] - correlation(z, other.data["z"].to_numpy())[0]) > allowed  # control: another ε
    assert correlation_of(ColumnValues(z), ColumnValues(release.data["z"].to_numpy())) == pytest.approx(
        found, abs=1e-12
    )


@EVERY_KERNEL
def test_two_dependent_columns_keep_what_is_expected(kernel: str) -> None:
    law = stats.multivariate_normal([1, -2], [[4.0, 1.5], [1.5, 1.0]])
    frame = pd.DataFrame(law.rvs(N, random_state=3), columns=["a", "b"])
    release, other = (
        dipriv.privatize(frame, epsilon, reference=Known(law), kernel=kernel, seed=4) for epsilon in (3.0, 5.0)
    )
    for name in ("a", "b"):
        found, sd = correlation(frame[name].to_numpy(), release.data[name].to_numpy())
        allowed = bound(sd, N, rows_drawn(2), tests=2)
        assert abs(release.fidelity[name] - found) < allowed
        off, _ = correlation(frame[name].to_numpy(), other.data[name].to_numpy())
        assert abs(release.fidelity[name] - off) > allowed  # control: another ε


@pytest.mark.parametrize(
    "kernel",
    ["laplace", Optimal(), OptimalJoint(), OptimalJoint({"a": 4.0})],
    ids=["laplace", "optimal", "joint", "joint with weights"],
)
def test_the_sums_are_the_limit_of_the_draws(kernel: Any) -> None:
    """Columns of levels, summed up exactly, against rows drawn through the same reference and kernel."""
    law = Known({"a": stats.poisson(3), "b": LEVELS, "c": stats.bernoulli(0.3)})
    frame = pd.DataFrame({"a": [1, 2], "b": [0, 1], "c": [0, 1]})
    fitted = fitted_of(dipriv.privatize(frame, 3.0, reference=law, kernel=kernel, seed=1))
    exact = expected_fidelity(fitted)
    assert list(exact) == ["a", "b", "c"]
    before, after = _drawn(fitted)
    for name, one, two in zip(exact, before, after, strict=True):
        found, sd = correlation(one.values, two.values)
        allowed = bound(sd, rows_drawn(3), None, tests=3)
        assert abs(exact[name] - found) < allowed
        assert abs(exact[name] - correlation(one.values, np.roll(two.values, 1))[0]) > allowed  # control
    assert fitted.kernel.epsilon == 3.0


def test_the_drawn_numbers_are_the_same_each_time() -> None:
    frame = pd.DataFrame(np.random.default_rng(5).normal(size=(300, 2)), columns=["a", "b"])
    release = dipriv.privatize(frame, 2.0, kernel="optimal", seed=None)
    assert expected_fidelity(fitted_of(release)) == expected_fidelity(fitted_of(release)) == release.fidelity


# learned references: rows are drawn from the reference itself, where the promise is exact


@EVERY_KERNEL
def test_a_drawn_fidelity_stays_within_what_is_proven(kernel: str) -> None:
    """The kernel has 1% of ε here, so that the error of the draws is larger than any fidelity."""
    release = dipriv.privatize(FRAME[["real", "count", "zero"]], 0.1, kernel=kernel, seed=1)
    most = largest_correlation(release.guarantee)
    assert most is not None
    assert all(0.0 <= kept <= most for kept in release.fidelity.values())
    before, after = _drawn(fitted_of(release))
    drawn = [correlation_of(one, two) for one, two in zip(before, after, strict=True)]
    assert not all(0.0 <= kept <= most for kept in drawn)  # control
    assert "(expected correlation below 0.01 in the best column)" in str(release.verdict)


def through(fitted: FittedMechanism, n: int, seed: int) -> tuple[list[ColumnValues], list[ColumnValues]]:
    """Rows of the fitted reference, and what the mechanism makes of them: from cells to cells, as in a release."""
    u = np.clip(uniform_rows(n, len(fitted.order), seed), 2.0**-53, 1 - 2.0**-53)
    codecs, reference = tuple(column.codec for column in fitted.columns), fitted.reference
    mechanism = compose(codecs, reference, fitted.kernel, fitted.order)
    if isinstance(reference, GroupedBoxes):
        reference = reference.at(np.arange(n) % (len(reference.boxes.starts) - 1))
        mechanism = Chain(codecs, reference, fitted.kernel, fitted.order)
    v = np.empty_like(u)
    v[:, list(fitted.order)] = reference.from_uniform(u)
    before = decode(codecs, v)
    return before, mechanism.privatize(before, source(seed + 1))


def present(cells: ColumnValues) -> NDArray[np.bool_]:
    return np.ones(len(cells), dtype=bool) if cells.missing is None else np.asarray(cells.missing == PRESENT)


def codes(cells: ColumnValues) -> NDArray[Any]:
    missing = cells.missing
    return cells.values if missing is None else np.where(present(cells), cells.values, -1.0 - missing)


def check_on_reference(fitted: FittedMechanism, summed: bool = False, n: int = N) -> None:
    """Every column's expected fidelity is the one measured."""
    before, after = through(fitted, n, seed=10)
    drawn = None if summed else rows_drawn(len(fitted.order))
    told = expected_fidelity(fitted)
    for column, one, two in zip(fitted.columns, before, after, strict=True):
        if isinstance(column.kind, Categorical):
            (found, sd), rows = kappa(codes(one), codes(two)), n
        else:
            both = present(one) & present(two)
            scale = np.abs(one.values[both].astype(np.float64)).max()
            (found, sd), rows = correlation(one.values[both] / scale, two.values[both] / scale), int(both.sum())
            drawn = drawn and drawn * rows // n
        assert abs(told[column.name] - found) < bound(sd, rows, drawn, tests=len(before))


def table(rng: np.random.Generator, n: int) -> pd.DataFrame:
    x = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "real": x,
            "count": rng.poisson(np.exp(0.5 * x)),
            "label": np.where(x + rng.normal(size=n) > 0.5, "a", rng.choice(["b", "c"], n)),
            "day": pd.Timestamp("1990-01-01") + pd.to_timedelta(rng.integers(0, 9000, n), unit="D"),
            "zero": np.where(rng.random(n) < 0.4, 0.0, rng.lognormal(size=n)),
            "gap": pd.Series(rng.choice([1.0, 2.0, 4.0], n)).where(rng.random(n) < 0.8),
            "hole": pd.Series(rng.normal(size=n)).where(x < 0.7),
            "huge": 1e300 * rng.normal(size=n),
        }
    )
    frame["null"] = pd.Series(rng.choice(["u", "v"], n)).where(rng.random(n) < 0.7, None)
    return frame


ALL = ["real", "count", "label", "day", "zero", "gap", "hole", "huge", "null"]
FRAME = table(np.random.default_rng(6), 4000)


@EVERY_KERNEL
@pytest.mark.parametrize("name", ALL)
def test_a_private_reference_of_one_column_keeps_what_is_expected(name: str, kernel: str) -> None:
    fitted = fitted_of(dipriv.privatize(FRAME[[name]], 4.0, kernel=kernel, seed=1))
    check_on_reference(fitted, summed=name in ("label", "null"))
    told, doubled = (
        expected_fidelity(fitted_of(dipriv.privatize(FRAME[[name]], e, kernel=kernel, reference_share=0.5, seed=1)))[
            name
        ]
        for e in (4.0, 8.0)
    )
    assert doubled > told > 0.05


@EVERY_KERNEL
@pytest.mark.parametrize("reference", ["private", "holdout"])
def test_a_reference_of_many_columns_keeps_what_is_expected(reference: str, kernel: str) -> None:
    """Hold-outs are the paper's boxes, which keep the first column alone."""
    fitted = fitted_of(dipriv.privatize(FRAME, 8.0, reference=reference, kernel=kernel, seed=1))
    check_on_reference(fitted, n=50_000)
    told = expected_fidelity(fitted)
    assert list(told) == list(FRAME.columns)
    if kernel == "optimal" and reference == "private":
        assert isinstance(fitted.kernel, CapKernel)
        assert min(told.values()) > 0.02
    if reference == "holdout":
        assert max(told.items(), key=lambda item: item[1])[0] == "real"


@EVERY_KERNEL
def test_groups_keep_what_is_expected(kernel: str) -> None:
    """Over all groups together: what tells groups apart is known, and stays."""
    rng = np.random.default_rng(7)
    who = np.repeat(np.arange(40), 30)
    frame = pd.DataFrame({"who": who, "z": rng.normal(who / 20, 1.0)})
    release = dipriv.privatize(frame, 2.0, reference=Grouped(by="who", first=15), kernel=kernel, keep=["who"], seed=1)
    check_on_reference(fitted_of(release))
    assert release.fidelity.keys() == {"z"}
    alone = dipriv.privatize(frame[["z"]], 2.0, reference="holdout", kernel=kernel, seed=1)
    assert release.fidelity["z"] > alone.fidelity["z"]  # control


@EVERY_KERNEL
def test_the_private_promise_is_kept_on_the_rows_themselves(kernel: str) -> None:
    """200,000 binary rows: the learned law is within 1e-3 of theirs but with a chance below ALARM, so is fidelity's
    slope in it, e^ε - 1 at most: κ is (e^ε - 1) q/(1 + (e^ε - 1) q) for the optimal kernel, and less for the other.
    """
    n = 200_000
    z = np.where(np.random.default_rng(8).random(n) < 0.3, "yes", "no")
    schema = {"z": Categorical(levels=("no", "yes"))}
    release = dipriv.privatize(pd.DataFrame({"z": z}), 2.0, kernel=kernel, schema=schema, seed=9)
    found, sd = kappa(z, release.data["z"].to_numpy())
    share = fitted_of(release).reference.laws[0].probabilities
    assert abs(share[-1] - np.mean(z == "yes")) < 1e-3
    assert abs(release.fidelity["z"] - found) < bound(sd, n, None) + 1e-3 * math.expm1(2.0)
    assert release.fidelity["z"] > 0.1


# odd columns


@EVERY_KERNEL
@pytest.mark.parametrize(
    ("frame", "schema"),
    [
        (pd.DataFrame({"z": [3] * 400}), {"z": Discrete(levels=(3,))}),
        (pd.DataFrame({"z": ["a"] * 400}), {"z": Categorical()}),
        (pd.DataFrame({"z": [3.5] * 400, "w": np.arange(400.0)}), None),
    ],
    ids=["one level", "one label", "one number beside others"],
)
def test_a_column_that_is_always_the_same_has_no_fidelity(frame: pd.DataFrame, schema: Any, kernel: str) -> None:
    release = dipriv.privatize(frame, 1.0, reference="holdout", kernel=kernel, schema=schema, seed=1)
    assert math.isnan(release.fidelity["z"])
    assert all(math.isfinite(value) for name, value in release.fidelity.items() if name != "z")


@EVERY_KERNEL
@pytest.mark.parametrize("reference", ["private", "holdout"])
def test_huge_levels_are_levels(reference: str, kernel: str) -> None:
    """Fidelity does not depend on the unit."""
    found = []
    for unit in (1.0, 1e300):
        frame = pd.DataFrame({"z": np.repeat([0.0, unit, -unit], 400)})
        schema = {"z": Discrete(levels=(-unit, 0.0, unit))}
        found.append(
            dipriv.privatize(frame, 4.0, reference=reference, kernel=kernel, schema=schema, seed=1).fidelity["z"]
        )
    assert found[0] > 0.4
    assert found[1] == pytest.approx(found[0], rel=1e-6)


def test_cells_without_a_pair_have_no_correlation() -> None:
    gap = np.array([1, 1, 0], dtype=np.uint8)
    assert math.isnan(correlation_of(ColumnValues(np.arange(3), gap), ColumnValues(np.arange(3), 1 - gap)))


@EVERY_KERNEL
def test_nothing_but_nulls_has_no_fidelity(kernel: str) -> None:
    """A table with nulls alone has such a law, learned privately, about every third time."""
    frame = pd.DataFrame({"z": pd.array([1, 2, None] * 300, dtype="Int64")})
    schema = {"z": Discrete(levels=(1, 2))}
    fitted = fitted_of(dipriv.privatize(frame, 4.0, reference="holdout", kernel=kernel, schema=schema, seed=1))
    nulls = Independent((LevelsDistribution(np.array([1.0, 0.0, 0.0]), -1.0),))
    assert expected_fidelity(fitted)["z"] > 0.1
    assert math.isnan(expected_fidelity(replace(fitted, reference=nulls))["z"])


def test_measures_of_cells() -> None:
    gap = np.array([0, 0, 1, 0, 0], dtype=np.uint8)
    x, y = np.array([1, 2, 900, 4, 5]), np.array([2, 4, 7, 8, 10])
    assert correlation_of(ColumnValues(x, gap), ColumnValues(y)) == pytest.approx(1.0)
    assert correlation_of(ColumnValues(x), ColumnValues(y, gap)) == pytest.approx(1.0)
    assert correlation_of(ColumnValues(x), ColumnValues(y)) < 0.9
    assert correlation_of(ColumnValues(x * 1e305), ColumnValues(y * -1e-305)) == pytest.approx(
        -correlation_of(ColumnValues(x), ColumnValues(y))
    )
    assert math.isnan(correlation_of(ColumnValues(np.ones(5)), ColumnValues(y)))
    labels = np.array([0, 0, 1, 1])
    assert kappa_of(ColumnValues(labels), ColumnValues(labels)) == 1.0
    assert kappa_of(ColumnValues(labels), ColumnValues(1 - labels)) == -1.0
    assert kappa_of(ColumnValues(labels), ColumnValues(np.array([0, 1, 0, 1]))) == 0.0
    null = np.array([0, 0, 0, 1], dtype=np.uint8)
    assert kappa_of(ColumnValues(labels, null), ColumnValues(labels, null)) == 1.0
    assert kappa_of(ColumnValues(labels, null), ColumnValues(labels)) == pytest.approx((0.75 - 3 / 8) / (1 - 3 / 8))
    assert math.isnan(kappa_of(ColumnValues(np.zeros(3)), ColumnValues(np.zeros(3))))


def test_a_release_without_a_mechanism_promises_nothing() -> None:
    release = dipriv.privatize(FRAME[["real"]], 1.0, kernel="laplace", seed=1)
    assert dipriv.Release(release.data, release.guarantee, release.schema, release.row_counts).fidelity == {}


# attenuation


@EVERY_KERNEL
@pytest.mark.parametrize(
    ("law", "draw"),
    [
        (stats.norm(), lambda rng, n: rng.normal(size=n)),
        (stats.expon(), lambda rng, n: rng.exponential(size=n)),
        (LEVELS, lambda rng, n: LEVELS.rvs(size=n, random_state=rng)),
    ],
    ids=["normal", "exponential", "levels"],
)
def test_fidelity_undoes_attenuation(law: Any, draw: Callable[..., Any], kernel: str) -> None:
    """Where E[y|x] = a + b x, the slope of y on the released x is ρ b: cov(y, x̃) = b cov(x, x̃), and var x̃ = var x.

    A slope is off by sd((x̃ - mean)(y - fit))/(var x̃ sqrt(n)).
    """
    rng = np.random.default_rng(11)
    x = draw(rng, N)
    y = 1 + 2.0 * x + rng.normal(size=N) * (1 + 0.3 * np.cos(x))
    release = dipriv.privatize(
        pd.DataFrame({"x": x, "y": y}), 2.0, reference=Known(law), kernel=kernel, keep=["y"], seed=12
    )
    seen = release.data["x"].to_numpy().astype(np.float64)
    centred = seen - seen.mean()
    slope = float(centred @ release.data["y"] / (centred @ centred))
    noise = centred * (y - y.mean() - slope * centred)
    allowed = Z * float(noise.std()) / float(seen.var()) / math.sqrt(N)
    _, sd = correlation(x, seen)
    rho = release.fidelity["x"]
    allowed += 2.0 * (0.0 if law is LEVELS else bound(sd, rows_drawn(1), None))  # fidelity's own draws
    assert abs(slope - 2.0 * rho) < allowed
    assert abs(slope / rho - 2.0) < allowed / rho
    assert abs(slope - 2.0) > allowed  # control: not corrected


def test_fidelity_undoes_attenuation_by_the_cap_kernel() -> None:
    """As above, for one of three independent columns that are drawn together."""
    rng = np.random.default_rng(13)
    frame = pd.DataFrame({"x": rng.exponential(size=N), "w": rng.normal(size=N), "v": rng.normal(size=N)})
    frame["y"] = 1 + 2.0 * frame["x"] + rng.normal(size=N)
    law = Known({"x": stats.expon(), "w": stats.norm(), "v": stats.norm()})
    release = dipriv.privatize(frame, 2.0, reference=law, kernel="optimal", keep=["y"], seed=14)
    assert isinstance(fitted_of(release).kernel, CapKernel)
    seen = release.data["x"].to_numpy().astype(np.float64)
    centred, y = seen - seen.mean(), frame["y"].to_numpy()
    slope = float(centred @ y / (centred @ centred))
    noise = centred * (y - y.mean() - slope * centred)
    allowed = Z * float(noise.std()) / float(seen.var()) / math.sqrt(N)
    assert abs(slope - 2.0 * release.fidelity["x"]) < allowed
    assert abs(slope - 2.0) > allowed  # control: not corrected
    assert abs(slope - 2.0 * dipriv.privatize(frame, 2.2, reference=law, keep=["y"], seed=14).fidelity["x"]) > allowed
