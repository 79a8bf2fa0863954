"""What an audit found, as plain data: bounds on ε, attacks, and whether a bound exceeds what is claimed."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from dipriv.auditing.intervals import Estimate, Rate

FORMAT = 2
"""Of the JSON file: raised when a field changes its name or its meaning."""
ROWS = "released rows"
"""What a bound is of that takes the reference as it is."""
REFUTED, NOT_REFUTED, HOLDS, NO_PROMISE = "refuted", "not refuted", "holds", "no promise"


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

    @property
    def verdict(self) -> str:
        """A bound below the claim does not show that the claim holds."""
        return REFUTED if self.exceeded else NOT_REFUTED

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"exceeded": self.exceeded}


@dataclass(frozen=True)
class Exact:
    """The largest log ratio of a finite kernel's chances, computed from its integers rather than drawn."""

    what: str
    claimed: float
    epsilon: float

    @property
    def exceeded(self) -> bool:
        return self.epsilon > self.claimed

    @property
    def verdict(self) -> str:
        """Nothing is left to chance, so the kernel keeps its claim or does not."""
        return REFUTED if self.exceeded else HOLDS

    def to_json(self) -> dict[str, Any]:
        epsilon = "inf" if math.isinf(self.epsilon) else self.epsilon  # JSON has no infinity
        return asdict(self) | {"epsilon": epsilon, "exceeded": self.exceeded}


@dataclass(frozen=True)
class Attack:
    """How often an attack succeeds on people of the table, and on a control group that the release cannot tell of.

    `advantage` is the first less the second. `allowed` is the largest advantage that ε lets any attack have on one
    person, at the control group's rate. `limit` is the same at the upper end of that rate's interval: the claim is
    refuted if the lower end of the advantage exceeds it. Both are None where nothing is promised, as for rows that are
    held out.
    """

    name: str
    what: str
    targets: Rate
    control: Rate
    advantage: Estimate
    allowed: float | None
    limit: float | None

    @property
    def exceeded(self) -> bool:
        return self.limit is not None and self.advantage.lower > self.limit

    @property
    def verdict(self) -> str:
        """Whether the attack gets more than ε allows, where ε is promised."""
        return NO_PROMISE if self.limit is None else REFUTED if self.exceeded else NOT_REFUTED

    def to_json(self) -> dict[str, Any]:
        """Plain data, with the rates and their intervals beside the counts."""
        rates = {"targets": _rate(self.targets), "control": _rate(self.control)}
        return asdict(self) | rates | {"exceeded": self.exceeded}


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
        """The claim, and the bound that refutes it or comes nearest to it.

        Bounds of single steps are often sharp, and say little about a release: unless they refute their claim, those of
        the rows and of the whole release go before them.

        >>> rows = Bound(ROWS, 0.2, 0.18, 0.999, 1000, "")
        >>> Audit(1.0, "", 100, (rows,)).headline
        'claimed ε 1.00 (0.20 of it for the rows); audited lower bound 0.18 (99.9%)'
        """
        if not self.bounds:
            return f"claimed ε {self.claimed:.{_decimals(self.claimed, 0.0)}f}; no lower bound was measured"
        whole = [bound for bound in self.bounds if bound.what == ROWS or bound.claimed == self.claimed]
        refuted = [bound for bound in self.bounds if bound.exceeded]
        nearest = max(refuted or whole or self.bounds, key=lambda bound: bound.lower / bound.claimed)
        decimals = _decimals(nearest.claimed, nearest.lower)
        claimed, part, lower = (f"{one:.{decimals}f}" for one in (self.claimed, nearest.claimed, nearest.lower))
        whose = "the rows" if nearest.what == ROWS else nearest.what
        of_it = "" if nearest.claimed == self.claimed else f" ({part} of it for {whose})"
        return f"claimed ε {claimed}{of_it}; audited lower bound {lower} ({as_percent(nearest.confidence)})"

    def to_json(self) -> dict[str, Any]:
        """Plain data for a file, in strict JSON."""
        found = {
            "bounds": [one.to_json() for one in self.bounds],
            "exact": [one.to_json() for one in self.exact],
            "attacks": [one.to_json() for one in self.attacks],
        }
        verdict = {"headline": self.headline, "passed": self.passed, "lower": self.lower}
        return {"format": FORMAT, **verdict, **asdict(self), **found}


def as_percent(confidence: float) -> str:
    """With all of its digits: rounding would make it larger than it is.

    >>> as_percent(0.95), as_percent(0.999), as_percent(1 - 1e-7)
    ('95%', '99.9%', '99.99999%')
    """
    return f"{100 * confidence:.10g}%"


def _rate(rate: Rate) -> dict[str, Any]:
    value = rate.value if rate.tries else None
    return asdict(rate) | {"value": value, "lower": rate.lower, "upper": rate.upper}


def _decimals(claimed: float, lower: float) -> int:
    """Two, or as many as show a small claim with two digits, and a bound beside it as another number.

    >>> _decimals(1.0, 0.93), _decimals(0.001, 0.0004), _decimals(1.0, 1.0004)
    (2, 4, 4)
    """
    decimals = max(2, 1 - math.floor(math.log10(claimed)))
    most = decimals + 4
    while decimals < most and claimed != lower and f"{claimed:.{decimals}f}" == f"{lower:.{decimals}f}":
        decimals += 1
    return decimals
