"""What an audit found, as plain data: bounds on ε, attacks, and whether a bound exceeds what is claimed."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from dipriv.audit.intervals import Estimate, Rate


@dataclass(frozen=True)
class Bound:
    """A measured lower bound on ε. `what` and `event` are public words: they name columns, never a cell."""

    what: str
    claimed: float
    lower: float
    confidence: float
    draws: int
    event: str

    @property
    def exceeded(self) -> bool:
        """Whether the claim is refuted, at this confidence."""
        return self.lower > self.claimed


@dataclass(frozen=True)
class Exact:
    """The largest log ratio of a finite kernel's chances, computed from its integers rather than drawn."""

    what: str
    claimed: float
    epsilon: float

    @property
    def exceeded(self) -> bool:
        return self.epsilon > self.claimed


@dataclass(frozen=True)
class Attack:
    """How often an attack succeeds on people of the table, and on a control group that the release cannot tell of.

    `advantage` is the first less the second. `allowed` is the largest advantage that ε lets any attack have on one
    person, at the control group's rate; None where nothing is promised, as for rows that are held out.
    """

    name: str
    what: str
    targets: Rate
    control: Rate
    advantage: Estimate
    allowed: float | None

    @property
    def exceeded(self) -> bool:
        return self.allowed is not None and self.advantage.lower > self.allowed


@dataclass(frozen=True)
class Audit:
    """All that was found about one way to release one table."""

    claimed: float
    guarantee: str
    rows: int
    bounds: tuple[Bound, ...] = ()
    exact: tuple[Exact, ...] = ()
    attacks: tuple[Attack, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def passed(self) -> bool:
        """Whether nothing refutes the claim."""
        found: tuple[Bound | Exact | Attack, ...] = (*self.bounds, *self.exact, *self.attacks)
        return not any(one.exceeded for one in found)

    @property
    def lower(self) -> float:
        """The largest of the measured lower bounds on ε."""
        return max((bound.lower for bound in self.bounds), default=0.0)

    @property
    def headline(self) -> str:
        """The claim, and the bound that comes nearest to it."""
        if not self.bounds:
            return f"claimed ε {self.claimed:.2f}; no lower bound was measured"
        nearest = max(self.bounds, key=lambda bound: bound.lower / bound.claimed)
        of_rows = "" if nearest.claimed == self.claimed else f" for the rows, {nearest.claimed:.2f} of it"
        return (
            f"claimed ε {self.claimed:.2f}{of_rows}; audited lower bound {nearest.lower:.2f} ({nearest.confidence:.4g})"
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data for a file."""
        return {"format": 1, **asdict(self), "passed": self.passed, "lower": self.lower}
