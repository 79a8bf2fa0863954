"""A private reference whose plan needs some of the δ that it is given: what (ε, δ) releases are tested with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dipriv.references import Private
from dipriv.references.protocol import LearningPlan


@dataclass(frozen=True)
class Approximate:
    """The reference learned as by `Private` under pure ε, whose plan asks for this part of δ all the same."""

    part: Fraction = Fraction(1)
    inner: Any = field(default=Private(), repr=False)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.inner, name)

    def plan(self, columns: Sequence[Any], schema: Any, epsilon: float, delta: float, rows: int, **how: Any) -> Any:
        plan = self.inner.plan(columns, schema, epsilon, 0.0, rows, **how)
        return ApproximatePlan(plan, self.part * Fraction(delta))


@dataclass(frozen=True, eq=False)
class ApproximatePlan:
    inner: LearningPlan
    delta: Fraction

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)
