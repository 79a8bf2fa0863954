"""The registry of attacks: a module of this package registers its attack by the decorator `attack`.

@attack("membership inference")
def run(context: AttackContext) -> list[AttackResult]: ...
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules
from typing import TypeAlias

import numpy as np

import dipriv.auditing.attacks as package
from dipriv.auditing.attacks.setup import AttackSetup, Cohorts
from dipriv.auditing.results import AttackResult
from dipriv.errors import InternalError

LAST = 100
"""Attacks without an order of their own run after the others, so that they change no random draw of these."""


@dataclass(frozen=True, eq=False)
class AttackContext:
    """Everything an attack may use.

    Parameters
    ----------
    setup : the table, its release and the control group.
    cohorts : who is attacked, who is compared with, and whom the attacker knows.
    epsilon, delta : the claim for protected rows.
    confidence : of each interval.
    rng : randomness of the attacker.
    secret : the only column to infer; None for each in turn.
    """

    setup: AttackSetup
    cohorts: Cohorts
    epsilon: float
    confidence: float
    rng: np.random.Generator = field(repr=False)
    secret: str | None = None
    delta: float = 0.0


Run: TypeAlias = Callable[[AttackContext], list[AttackResult]]


@dataclass(frozen=True)
class RegisteredAttack:
    """An attack and its place in the order of attacks."""

    name: str
    run: Run = field(repr=False)
    order: int


_REGISTRY: dict[str, RegisteredAttack] = {}


def attack(name: str, order: int = LAST) -> Callable[[Run], Run]:
    """Register a function as the attack of this name. Attacks run by `order`, then by name."""

    def register(run: Run) -> Run:
        if name in _REGISTRY:
            raise InternalError(f"the attack {name!r} is registered twice.", "Give each attack a name of its own.")
        _REGISTRY[name] = RegisteredAttack(name, run, order)
        return run

    return register


def registered_attacks() -> tuple[RegisteredAttack, ...]:
    """All attacks, in the order in which they run; imports every module of the package first."""
    for module in iter_modules(package.__path__):
        import_module(f"{package.__name__}.{module.name}")
    return tuple(sorted(_REGISTRY.values(), key=lambda each: (each.order, each.name)))
