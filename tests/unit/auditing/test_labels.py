"""The label attack: a label that one person has stays hidden, or is found where labels are called public."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dipriv
from dipriv.auditing.labels import attack_labels, plant, shows
from dipriv.auditing.procedure import Privatize, ReleasedTable
from dipriv.auditing.results import AttackResult
from tests.unit.auditing.broken import remove_thresholds

RNG = np.random.default_rng(4)
N = 1000
PEOPLE = pa.table(
    {
        "job": RNG.choice(["nurse", "cook", "clerk"], N),
        "town": pa.array(RNG.choice(list("ABCDE"), N)).dictionary_encode(),
        "age": RNG.integers(18, 90, N),
    }
)


def attacked(epsilon: float = 0.1, tries: int = 8, **options: Any) -> AttackResult:
    publish = Privatize(epsilon, {"kernel": "laplace", **options})
    found = attack_labels(publish, PEOPLE, ("job", "town"), 1e-9, tries=tries, rng=np.random.default_rng(1))
    assert found is not None
    return found


@pytest.mark.parametrize("epsilon", [0.1, 5.0])
def test_a_label_of_one_row_does_not_show(epsilon: float) -> None:
    found = attacked(epsilon)
    assert found.targets.hits == 0  # each shows with probability 1e-9
    assert not found.exceeded
    assert found.allowed == 1e-9


def test_labels_that_are_called_public_show() -> None:
    found = attacked(labels="public")
    assert found.targets.hits == found.targets.tries
    assert found.exceeded


def test_a_missing_threshold_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    remove_thresholds(monkeypatch)
    assert attacked().exceeded


def test_labels_are_planted_in_one_row_and_seen_anywhere() -> None:
    planted, labels = plant(PEOPLE, ["job", "town"], np.arange(N) == 3)
    changed = [row for row in range(N) if planted.slice(row, 1).to_pylist() != PEOPLE.slice(row, 1).to_pylist()]
    assert changed == [3]
    assert planted.column("job")[3].as_py() == labels["job"]
    _, others = plant(planted, ["job"], np.arange(N) == 4)
    assert others["job"] != labels["job"]  # nobody else has it
    assert pa.types.is_dictionary(planted.column("town").type)
    for name in labels:
        assert shows(ReleasedTable(planted, np.arange(N)), {name: labels[name]})
        assert not shows(ReleasedTable(PEOPLE, np.arange(N)), {name: labels[name]})
    unused = planted.filter(np.arange(N) != 3)  # no cell has it, but the type lists it
    assert shows(ReleasedTable(unused, np.arange(N - 1)), {"town": labels["town"]})


@pytest.mark.slow
def test_the_attack_is_a_part_of_an_audit_where_labels_are_found() -> None:
    asked: dict[str, Any] = {"draws": 10_000, "seed": 1, "kernel": "laplace"}
    found = dipriv.audit(PEOPLE.select(["job"]), 1.0, **asked)
    assert found.passed
    assert [one.targets.hits for one in found.attacks if one.name == "label of one row"] == [0]
    declared = {"job": dipriv.Categorical(levels=("nurse", "cook", "clerk"))}
    found = dipriv.audit(PEOPLE.select(["job"]), 1.0, schema=declared, **asked)
    assert not any(one.name == "label of one row" for one in found.attacks)
    assert attack_labels(Privatize(1.0), PEOPLE, ("age",), 1e-9, rng=np.random.default_rng(1)) is None
