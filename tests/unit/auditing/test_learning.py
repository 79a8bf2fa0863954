"""What is learned from rows, and fresh noise: planted bugs are caught, and the same code without them passes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import dipriv
from dipriv._random.bits import source
from dipriv.auditing.intervals import epsilon_of_draws, epsilon_of_rho, rho_of_draws
from dipriv.auditing.learning import audit_independence, audit_learning
from dipriv.auditing.noise_reuse import audit_noise_reuse
from dipriv.auditing.primitives import audit_primitives
from dipriv.auditing.procedure import Privatize
from dipriv.auditing.results import Bound
from dipriv.references._learning import measurements
from dipriv.references._learning.zcdp import largest_rho
from dipriv.release import options
from tests.unit.auditing.test_mutants import (
    ATOMS,
    LEVELS,
    REALS,
    ROWS,
    SURE,
    Plant,
    atoms_of_released_rows,
    leaky,
    reference_of_released_rows,
)

RNG = np.random.default_rng(7)
N = 2000
LABELS = pa.table(
    {"a": RNG.choice(list("abcd"), N), "b": pa.array(RNG.choice(list("xyz"), N), mask=RNG.random(N) < 0.2)}
)
TIMES = pa.table({"t": pa.array(RNG.integers(0, 10**9, N), pa.timestamp("s")), "n": pa.array([None, 1.5] * (N // 2))})
ODD = pa.table({"x": RNG.choice([0.1, 0.25, 1.7, 3.33, 5.0, 8.1], N)})
TABLES = {"reals": REALS, "rows": ROWS, "levels": LEVELS, "atoms": ATOMS, "labels": LABELS, "times": TIMES}


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("how", ["holdout", "private, from a hold-out", "public"])
def test_released_rows_have_no_say_in_what_is_learned_apart_from_them(name: str, how: str) -> None:
    table = TABLES[name]
    asked: dict[str, Any] = {"holdout": {"reference": "holdout"}, "public": {"public": table}}.get(
        how, {"holdout": 0.2}
    )
    found = audit_independence(Privatize(1.0, asked), table, 1.0, rng())
    assert found.epsilon == 0
    assert not found.exceeded


@pytest.mark.parametrize(
    ("table", "plant"),
    [
        *((table, reference_of_released_rows) for table in TABLES.values()),
        *((table, atoms_of_released_rows) for table in (ATOMS, ODD, ROWS)),
    ],
    ids=[*TABLES, *(f"atoms of {name}" for name in ("atoms", "odd levels", "rows"))],
)
def test_what_is_read_from_released_rows_is_found_for_certain(table: pa.Table, plant: Plant) -> None:
    assert audit_independence(leaky(plant, reference="holdout"), table, 1.0, rng()).exceeded


def test_a_private_reference_depends_on_its_rows() -> None:
    """The control: what is learned from all rows under noise moves when all of them do."""
    assert audit_independence(Privatize(1.0), REALS, 1.0, rng()).exceeded


SAMPLERS = ("discrete_laplace", "discrete_gaussian")


def scale_noise(patch: pytest.MonkeyPatch, share: float) -> None:
    """Only a share of the noise that is paid for."""
    for name in SAMPLERS:
        sound = getattr(measurements, name)
        patch.setattr(
            measurements, name, lambda draws, scale, sound=sound: np.round(share * sound(draws, scale)).astype(np.int64)
        )


def learned(table: pa.Table, **asked: Any) -> Bound | None:
    publish = Privatize(1.0, {"kernel": "laplace", **asked})
    return audit_learning(publish, table, 0.5, confidence=SURE, fits=80, rng=rng())


@pytest.mark.slow
@pytest.mark.parametrize("table", [REALS, LABELS], ids=["reals", "labels"])
def test_learning_without_noise_is_caught(table: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = learned(table)
    assert sound is not None
    assert not sound.exceeded
    scale_noise(monkeypatch, 0.0)
    found = learned(table)
    assert found is not None
    assert found.lower == epsilon_of_draws(40, 40, 0, 40, SURE)  # always distinguished
    assert found.exceeded


@pytest.mark.slow
def test_learning_from_a_hold_out_without_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    scale_noise(monkeypatch, 0.0)
    split = dipriv.Split.new(0.5, bits=source(3))
    found = learned(LABELS, split=split)
    assert found is not None
    assert found.exceeded


def test_no_row_is_replaced_whose_label_would_vanish() -> None:
    place = np.arange(60)
    labels = np.array([f"label {number}" for number in range(100)])
    alone = pa.table({f"x{i}": labels[np.where(place % 3 == i, place, 99)] for i in range(3)})
    assert audit_learning(Privatize(1.0), alone, 0.5, rng=rng()) is None
    assert audit_learning(Privatize(1.0), alone.select(["x0", "x1"]), 0.5, fits=4, rng=rng()) is not None


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_primitives_cost_what_is_spent_and_little_less(epsilon: float) -> None:
    (counts, gaussian), exact = audit_primitives(epsilon, 1e-9, draws=1_000_000, confidence=SURE, seed=2)
    assert 0.9 * epsilon < counts.lower < epsilon
    assert 0.9 * epsilon < gaussian.lower < epsilon
    assert (gaussian.delta, counts.delta) == (1e-9, 0.0)
    assert [one.epsilon for one in exact[:2]] == pytest.approx([epsilon] * 2, rel=1e-8)
    assert not any(one.exceeded for one in exact)


@pytest.mark.parametrize("share", [0.0, *(pytest.param(share, marks=pytest.mark.slow) for share in (0.5, 0.75))])
def test_too_little_noise_of_primitives_is_caught(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    scale_noise(monkeypatch, share)
    for found in audit_primitives(1.0, 1e-9, draws=1_000_000, confidence=SURE, seed=2)[0]:
        assert found.exceeded


def test_a_bound_on_rho_is_below_the_truth_and_near_it() -> None:
    """Two normal distributions at a distance of 1.5 in a few bins: ρ = 1.5²/2, as their Rényi divergences have it."""
    edges = np.linspace(-2.5, 2.5, 11)
    chances = [np.diff(stats.norm.cdf(edges + move), prepend=0, append=1) for move in (-0.75, 0.75)]
    hits = [np.round(100_000_000 * law).astype(np.intp) for law in chances]
    tries = [int(counts.sum()) for counts in hits]
    bound = rho_of_draws(hits[0], tries[0], hits[1], tries[1], 0.95)
    assert 0.95 * 1.125 < bound < 1.125
    assert rho_of_draws(hits[0], tries[0], hits[0], tries[0], 0.95) == 0


@pytest.mark.parametrize("rho", [1e-9, 1e-4, 0.1, 3.0, 40.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.01])
def test_epsilon_of_rho_is_the_inverse_of_what_budgets_are_planned_by(rho: float, delta: float) -> None:
    epsilon = epsilon_of_rho(rho, delta)
    most = float(largest_rho(Fraction(epsilon), Fraction(delta)))
    assert most == pytest.approx(rho, rel=1e-9) if epsilon else most > rho


@pytest.mark.parametrize("kernel", ["laplace", "optimal"])
def test_noise_that_is_used_for_a_second_release_is_caught(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not audit_noise_reuse(1.0, kernel).exceeded
    monkeypatch.setattr(options, "source", lambda seed: source(7))
    assert audit_noise_reuse(1.0, kernel).exceeded


@pytest.mark.slow
@pytest.mark.parametrize(
    "table",
    [
        pa.table({"x": np.full(300, 7)}),
        pa.table({"x": ["one"] * 300, "y": RNG.normal(size=300)}),
        pa.table({"Größe 📏": np.where(np.arange(300) == 0, 1e308, RNG.normal(size=300))}),
    ],
    ids=["one number", "one label", "unicode and 1e308"],
)
def test_odd_tables_are_audited(table: pa.Table) -> None:
    for seed in range(2):  # a private reference may be independent in one run, and not in the next
        assert dipriv.audit(table, 1.0, draws=20_000, seed=seed).passed


@pytest.mark.slow
def test_the_whole_audit_says_what_it_cannot_do() -> None:
    found = dipriv.audit(LABELS, 1.0, draws=20_000, seed=1)
    assert found.passed
    assert any("no distinct canaries" in remark for remark in found.remarks)
    few = dipriv.audit(LABELS[:120], 1.0, draws=20_000, seed=1)
    assert any("no canaries" in remark for remark in few.remarks)
    assert few.attacks
