"""Persons of several rows: the canaries are persons, and what breaks the promise to a person is caught."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import dipriv
from dipriv._base.arrays import Mask
from dipriv.auditing.labels import attack_labels
from dipriv.auditing.persons import (
    add_up,
    audit_label_of_a_person,
    audit_persons,
    one_row_each,
    owners,
    sample_persons,
)
from dipriv.auditing.procedure import Privatize
from dipriv.auditing.results import Audit, Bound, Check, Exact
from dipriv.references import Known
from dipriv.sources.contribution_bound import ContributionBound
from dipriv.sources.protocol import Persons
from tests.support import ALARM
from tests.unit.refusal import refused

SURE = 1 - ALARM
PERSONS, EACH, MAX_ROWS = 800, 24, 3
RNG = np.random.default_rng(8)
VISITS = pa.table(
    {
        "person": RNG.permutation(np.repeat(np.arange(PERSONS), EACH)),
        "pressure": RNG.normal(size=PERSONS * EACH),
    }
)
ASKED: dict[str, Any] = {"reference": Known(stats.norm()), "unit": "person", "rows_per_unit": MAX_ROWS}


def found(**options: Any) -> tuple[Bound, Check]:
    procedure = Privatize(1.0, ASKED | {"kernel": "laplace"} | options)
    assert procedure.unit is not None
    return audit_persons(procedure, VISITS, procedure.unit, 1.0, canaries=PERSONS, confidence=SURE, seed=3)


def added_up(epsilon: float, delta: float = 1e-6) -> tuple[Exact, ...]:
    """What is computed without sampling, for the default reference."""
    procedure = Privatize(epsilon, {"unit": "person", "rows_per_unit": MAX_ROWS, "delta": delta, "kernel": "laplace"})
    unit = procedure.unit
    assert unit is not None
    kernel = procedure.release(VISITS, 1).secrets.mechanism.kernel.epsilon
    total = add_up(unit, kernel, procedure.budget_of_a_row(VISITS)[0], epsilon, disjoint=False)
    all_of_it = Fraction(unit.row_epsilon(epsilon))
    return total, *audit_label_of_a_person(unit, all_of_it, unit.row_delta(epsilon, delta), epsilon, delta)


@pytest.mark.parametrize("kernel", ["laplace", "optimal"])
def test_what_holds_is_not_refuted(kernel: str) -> None:
    bound, check = found(kernel=kernel)
    assert not bound.exceeded
    assert check.passed
    assert bound.draws >= 10


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_what_is_computed_holds(epsilon: float) -> None:
    exact = added_up(epsilon)
    assert [one.verdict for one in exact] == ["holds"] * 3
    assert epsilon * (1 - 1e-9) < exact[0].epsilon <= epsilon


def no_bound(patch: pytest.MonkeyPatch) -> None:
    """All rows of a person are released, each with the ε of one of a few."""

    def every(self: ContributionBound, keys: Any, scores: Any) -> Mask:
        return np.ones(len(keys), dtype=np.bool_)

    patch.setattr(ContributionBound, "kept", every)


def not_divided(patch: pytest.MonkeyPatch) -> None:
    """Each row of a person has all of ε."""
    patch.setattr(ContributionBound, "row_epsilon", lambda self, epsilon: epsilon)


@pytest.mark.parametrize("plant", [no_bound, not_divided])
def test_a_planted_bug_is_caught_by_persons_as_canaries(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    bound, check = found()
    assert bound.exceeded
    assert check.passed is (plant is not no_bound)


@pytest.mark.parametrize("once", [True, False], ids=["once", "in every row"])
def test_a_constant_column_may_have_all_of_epsilon_if_it_is_released_once(
    once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With all of ε for each row, a column that is released once keeps the promise, and one in every row breaks it."""
    not_divided(monkeypatch)
    if not once:
        monkeypatch.setattr(Persons, "share", lambda self, values, first: values)
    of_person = np.random.default_rng(2).normal(size=PERSONS)
    table = VISITS.set_column(1, "pressure", pa.array(of_person[VISITS["person"].to_numpy()]))
    procedure = Privatize(1.0, ASKED | {"kernel": "laplace", "constant": ["pressure"]})
    assert procedure.unit is not None
    bound, check = audit_persons(procedure, table, procedure.unit, 1.0, canaries=PERSONS, confidence=SURE, seed=3)
    assert bound.exceeded is not once
    assert check.passed


def test_an_epsilon_that_is_not_divided_is_caught_without_sampling(monkeypatch: pytest.MonkeyPatch) -> None:
    not_divided(monkeypatch)
    assert added_up(1.0)[0].exceeded


def test_a_delta_that_is_not_divided_is_caught_without_sampling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ContributionBound, "row_delta", lambda self, epsilon, delta: delta)
    assert [one.exceeded for one in added_up(1.0)] == [False, True, True]


def test_rows_of_persons() -> None:
    table = pa.table({"who": pa.array(["b", None, "a", "b", None]), "x": range(5)})
    assert owners(table, "who").tolist() == [1, 0, 2, 1, 0]
    single = one_row_each(table, "who", np.random.default_rng(0))
    assert sorted(map(str, single["who"].to_pylist())) == ["None", "a", "b"]
    assert sample_persons(table, "who", np.random.default_rng(0)) is table
    some = sample_persons(VISITS, "person", np.random.default_rng(0))
    assert 2000 - EACH < some.num_rows <= 2000
    assert set(np.bincount(some["person"].to_numpy()).tolist()) == {0, EACH}


def test_too_few_persons() -> None:
    few = VISITS.filter(np.asarray(VISITS["person"]) < 5)
    procedure = Privatize(1.0, ASKED)
    assert procedure.unit is not None
    unit = procedure.unit
    refused(dipriv.InputError, "5 canaries among 5 persons", call=lambda: audit_persons(procedure, few, unit, 1.0))


def test_a_label_of_all_rows_of_a_person_does_not_show() -> None:
    table = VISITS.append_column("job", pa.array(RNG.choice(["nurse", "cook"], VISITS.num_rows)))
    table = table.filter(np.asarray(table["person"]) < 80)
    asked: dict[str, Any] = {"unit": "person", "rows_per_unit": EACH, "kernel": "laplace"}
    rates = [
        attack_labels(
            Privatize(1.0, asked | {"labels": labels}),
            table,
            ["job"],
            1e-9,
            unit="person",
            tries=6,
            rng=np.random.default_rng(2),
        )
        for labels in ("private", "public")
    ]
    assert [rate is not None and rate.targets.hits for rate in rates] == [0, 6]
    assert [rate is not None and rate.exceeded for rate in rates] == [False, True]


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"holdout": 0.3}, {"reference": "holdout"}], ids=str)
def test_the_whole_audit_of_the_promise_to_a_person(options: dict[str, Any]) -> None:
    people = VISITS.filter(np.asarray(VISITS["person"]) < 400)
    asked: dict[str, Any] = {"unit": "person", "rows_per_unit": MAX_ROWS, "kernel": "laplace", "draws": 20_000}
    result: Audit = dipriv.audit(people, 3.0, seed=1, **asked, **options)
    assert result.passed
    assert "person" in result.protects
    assert {bound.what: bound.claimed for bound in result.bounds}["release, person canaries"] == 3.0
    assert "at most 3 rows of one 'person' are released" in {check.what for check in result.checks}
