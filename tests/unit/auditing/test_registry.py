"""A new attack is one file: it registers itself, and every audit runs it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import dipriv
from dipriv.auditing import attacks
from dipriv.auditing.attacks import registry
from dipriv.errors import InternalError

TOY = """
import numpy as np

from dipriv.auditing.attacks.outcome import compare
from dipriv.auditing.attacks.registry import AttackContext, attack
from dipriv.auditing.results import AttackResult


@attack("coin toss")
def run(context: AttackContext) -> list[AttackResult]:
    sides = context.cohorts.members, context.cohorts.non_members
    targets, control = (context.rng.random(len(people)) < 0.5 for people in sides)
    return [compare("coin toss", "Tosses a coin.", targets, control, context.confidence, context.epsilon)]
"""
PEOPLE = pa.table({"age": np.random.default_rng(1).integers(18, 90, 150)})


def audit() -> dipriv.Audit:
    return dipriv.audit(PEOPLE, 1.0, draws=10_000, seed=1, reference="holdout", kernel="laplace")


def test_the_built_in_attacks_run_in_a_fixed_order() -> None:
    names = [each.name for each in registry.registered_attacks()]
    assert names == ["exposure", "linkage", "membership inference", "re-identification", "attribute inference"]


@pytest.mark.slow
def test_a_module_in_the_package_adds_an_attack_to_every_audit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = audit()
    (tmp_path / "coin_toss.py").write_text(TOY)
    monkeypatch.setattr(attacks, "__path__", [*attacks.__path__, str(tmp_path)])
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))
    try:
        after = audit()
    finally:
        sys.modules.pop("dipriv.auditing.attacks.coin_toss", None)
    assert [attack.name for attack in after.attacks[len(before.attacks) :]] == ["coin toss"]
    assert after.attacks[:-1] == before.attacks  # no random draw of the others has changed
    assert not after.attacks[-1].exceeded


def test_names_are_unique(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))
    with pytest.raises(InternalError, match="'exposure' is registered twice"):
        registry.attack("exposure")(lambda context: [])
