"""Planted bugs in the private reference: each is caught by an audit that is named here; without the bug it passes."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from dipriv._base.arrays import Counts, FloatArray, Words
from dipriv._random.bits import Draws
from dipriv._random.discrete_gaussian import discrete_gaussian
from dipriv.auditing.primitives import audit_primitives
from dipriv.references._learning import adaptive, measurements
from dipriv.references._learning import learn as learning
from dipriv.references._learning.exponential_mechanism import exponential_choice
from dipriv.references._learning.max_entropy import MarkovModel, NoisyTable
from dipriv.references._learning.measurements import LATTICE, Accountant, NoiseKind, Spread
from tests.support import ALARM
from tests.unit.auditing.broken import remove_thresholds
from tests.unit.auditing.replay import faults, learned, plan_of, same

SURE = 1 - ALARM
N = 3000


def people(neighbour: int = 0) -> pa.Table:
    """Labels, numbers with frequent values and without, nulls; a neighbour has another first row."""
    rng = np.random.default_rng(3)
    base = rng.integers(0, 4, N)
    columns: dict[str, Any] = {
        "job": np.array(["nurse", "cook", "clerk", "pilot"])[base],
        "town": np.where(rng.random(N) < 0.8, np.array(["A", "B", "C", "D"])[base], "E"),
        "member": (base + rng.integers(0, 2, N)) % 2 == 0,
        "age": 20 + 10 * base + rng.integers(0, 10, N),
        "income": np.where(rng.random(N) < 0.3, 0.0, np.round(rng.lognormal(9, 1, N), 2)),
        "height": rng.normal(170, 10, N),
    }
    others: list[dict[str, Any]] = [
        {"job": "astronaut", "town": "Z", "member": True, "age": 99, "income": 1e6, "height": -1.0},
        {"job": "cook", "town": "B", "member": False, "age": 31, "income": 0.0, "height": 171.5},
        {"job": None, "town": "E", "member": True, "age": 20, "income": float("nan"), "height": 1e300},
    ]
    if neighbour:
        columns["job"] = columns["job"].astype(object)
        columns["town"] = columns["town"].astype(object)
        for name, value in others[neighbour - 1].items():
            columns[name][0] = value
    return pa.table({name: pa.array(values, from_pandas=False) for name, values in columns.items()})


COLUMNS = people().column_names
MEASUREMENTS = {"counts", "frequent", "choice"}
KINDS: tuple[NoiseKind, ...] = ("laplace", "gaussian")


def found(kind: NoiseKind, *names: str) -> set[str]:
    """All that a run and its repetitions on three neighbouring tables show, with these columns or all."""
    tables = [people(neighbour).select(list(names) or COLUMNS) for neighbour in range(4)]
    plan = plan_of(tables[0], kind, 8.0 if names else 2.0)  # enough for a tree, or not
    assert all(same(plan, plan_of(table, kind, float(plan.reference_epsilon))) for table in tables)
    run = learned(tables[0], plan)
    assert run.found is not None
    assert {call.what for call in run.calls} == ({"counts", "tree"} if names else MEASUREMENTS)
    said = {"the noise costs more than the budget"} if run.price > plan.shares.budget else set()
    said |= set() if run.price == run.found.spent else {"the noise costs not what is accounted for"}
    return said.union(*(faults(run, learned(neighbour, plan, run)) for neighbour in tables[1:]))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_learned_is_a_function_of_measurements_that_are_paid_for(kind: NoiseKind) -> None:
    assert found(kind) == set()
    assert found(kind, "height") == set()


def measured_twice(patch: pytest.MonkeyPatch) -> None:
    sound = Accountant.noisy_counts

    def twice(self: Accountant, counts: Counts, cost: Fraction) -> tuple[FloatArray, Spread]:
        before = self.spent
        one, _ = sound(self, counts, cost)
        self.spent = before
        other, spread = sound(self, counts, cost)
        return (one + other) / 2, spread

    patch.setattr(Accountant, "noisy_counts", twice)


def half_the_sensitivity(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(adaptive, "SENSITIVITY", adaptive.SENSITIVITY // 2)


def fitted_to_exact_counts(patch: pytest.MonkeyPatch) -> None:
    sound = adaptive.measure_pairs

    def exact(model: MarkovModel, counts: Any, *more: Any) -> Any:
        add = model.add
        patch.setattr(model, "add", lambda table: add(NoisyTable(table.columns, counts[table.columns], table.variance)))
        return sound(model, counts, *more)

    patch.setattr(learning, "measure_pairs", exact)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("plant", "fault"),
    [
        (measured_twice, "the noise costs more than the budget"),
        (half_the_sensitivity, "choice: sensitivity"),
        (fitted_to_exact_counts, "the reference depends on more than measurements"),
    ],
)
def test_a_planted_bug_is_caught_by_a_replay(
    plant: Callable[[pytest.MonkeyPatch], None], fault: str, kind: NoiseKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert fault in found(kind)


def refuted(epsilon: float = 1.0, delta: float = 1e-9) -> set[str]:
    """What an audit of the primitives refutes."""
    bounds, exact = audit_primitives(epsilon, delta, draws=200_000, confidence=SURE, seed=2)
    return {bound.what for bound in bounds if bound.exceeded} | {one.what for one in exact if one.exceeded}


def test_sound_primitives_are_not_refuted() -> None:
    assert refuted() == set()
    assert refuted(0.1, 1e-6) == set()


def test_a_sigma_that_is_a_fifth_too_small_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def narrow(draws: Draws, variance: Fraction) -> NDArray[np.int64]:
        return discrete_gaussian(draws, variance * Fraction(16, 25))

    monkeypatch.setattr(measurements, "discrete_gaussian", narrow)
    assert refuted() == {"Gaussian noise on counts"}


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 0.1])
def test_a_threshold_that_is_one_row_too_low_is_caught(epsilon: float, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("gaussian_threshold", "laplace_threshold"):
        sound = getattr(measurements, name)
        monkeypatch.setattr(
            measurements, name, lambda scale, chance, sound=sound: sound(scale, chance) - (1 << LATTICE)
        )
    assert refuted(epsilon) == {"label of one row, Laplace noise", "label of one row, Gaussian noise"}


def test_no_threshold_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    remove_thresholds(monkeypatch)
    assert refuted() == {"label of one row, Laplace noise", "label of one row, Gaussian noise"}


def test_a_choice_with_one_percent_too_little_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def steeper(scores: NDArray[np.int64], scale: Fraction, words: Callable[[int], Words]) -> int:
        return exponential_choice(scores, scale * Fraction(99, 100), words)

    monkeypatch.setattr(measurements, "exponential_choice", steeper)
    assert refuted() == {"exponential mechanism", "exponential mechanism, zCDP"}
