"""Results of an audit as plain data: bounds on ε, attacks, and whether any of them refutes the claim."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from dipriv._base.decimals import in_full
from dipriv.auditing.intervals import Estimate, Rate

FORMAT = 3
"""Version of `Audit.to_dict`: raised when a field changes its name or its meaning."""
ROWS = "released rows"
"""`Bound.what` of a bound for the noise on rows alone, given the fitted reference."""
REFUTED, NOT_REFUTED, HOLDS, NOT_COVERED = "refuted", "not refuted", "holds", "no promise"
NOTHING_FOUND = "No attack did better than chance allows; nothing speaks against the guarantee."


@dataclass(frozen=True)
class Bound:
    """A measured lower bound on ε, at the δ of the claim: no smaller ε is compatible with what was measured.

    `what` and `event` may be published: they name columns, never a cell.
    """

    what: str
    claimed: float
    lower: float
    confidence: float
    draws: int
    event: str
    delta: float = 0.0

    @property
    def exceeded(self) -> bool:
        """Whether the claim is refuted, at this confidence."""
        return self.lower > self.claimed

    @property
    def verdict(self) -> str:
        """A bound below the claim does not show that the claim holds."""
        return REFUTED if self.exceeded else NOT_REFUTED

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"exceeded": self.exceeded}


@dataclass(frozen=True)
class Exact:
    """The smallest ε of a finite mechanism at the δ of the claim, computed from its integer weights without sampling.

    For δ = 0 it is the largest log ratio of two probabilities of one outcome.
    """

    what: str
    claimed: float
    epsilon: float
    delta: float = 0.0

    @property
    def exceeded(self) -> bool:
        """Whether the claim is refuted."""
        return self.epsilon > self.claimed

    @property
    def verdict(self) -> str:
        """The value is exact, so the claim is either refuted or proved."""
        return REFUTED if self.exceeded else HOLDS

    def to_dict(self) -> dict[str, Any]:
        epsilon = "inf" if math.isinf(self.epsilon) else self.epsilon  # JSON has no infinity
        return asdict(self) | {"epsilon": epsilon, "exceeded": self.exceeded}


@dataclass(frozen=True)
class AttackResult:
    """Success rates of an attack on people of the table and on a control group of non-members.

    `advantage` is the difference of the two rates. `allowed` is the largest advantage that the claim, ε and δ, allows
    any attack on one person, at the control group's rate. `limit` is the same at the upper end of that rate's interval:
    the claim is refuted if the lower end of the advantage exceeds it. Both are None for people whom the guarantee does
    not cover, such as rows that are held out without protection.
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
        """Whether the attack has a larger advantage than the claim allows, for people whom the guarantee covers."""
        return NOT_COVERED if self.limit is None else REFUTED if self.exceeded else NOT_REFUTED

    def to_dict(self) -> dict[str, Any]:
        """Plain data, including the rates and their intervals."""
        rates = {"targets": _rate(self.targets), "control": _rate(self.control)}
        return asdict(self) | rates | {"exceeded": self.exceeded}


@dataclass(frozen=True)
class Audit:
    """Everything that an audit of one release procedure on one table found.

    Attributes
    ----------
    claimed, delta : the ε and the δ of the guarantee.
    guarantee : the guarantee in words.
    rows : how many rows were audited.
    bounds : measured lower bounds on ε.
    exact : the exact ε of finite kernels.
    attacks : success rates of attacks, on people of the table and on a control group.
    remarks : what was left out, and why.
    """

    claimed: float
    guarantee: str
    rows: int
    bounds: tuple[Bound, ...] = ()
    exact: tuple[Exact, ...] = ()
    attacks: tuple[AttackResult, ...] = ()
    remarks: tuple[str, ...] = field(default=())
    delta: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether nothing refutes the claim."""
        findings: tuple[Bound | Exact | AttackResult, ...] = (*self.bounds, *self.exact, *self.attacks)
        return not any(finding.exceeded for finding in findings)

    @property
    def lower(self) -> float:
        """The largest of the measured lower bounds on ε."""
        return max((bound.lower for bound in self.bounds), default=0.0)

    @property
    def headline(self) -> str:
        """The claim, and the bound that refutes it or comes closest to it.

        Bounds for single steps are often tight and say little about a release. Bounds for the rows and for the whole
        release are preferred, unless a step refutes its claim.

        >>> rows = Bound(ROWS, 0.2, 0.18, 0.999, 1000, "")
        >>> Audit(1.0, "", 100, (rows,)).headline
        'claimed ε 1.00 (0.20 of it for the rows); audited lower bound 0.18 (99.9%)'
        >>> whole = Bound("release", 1.0, 0.91, 0.999, 1000, "", delta=1e-9)
        >>> Audit(1.0, "", 100, (whole,), delta=1e-9).headline
        'claimed ε 1.00, δ 1e-9; audited lower bound 0.91 at this δ (99.9%)'
        """
        beside = f", δ {in_full(self.delta)}" if self.delta else ""
        if not self.bounds:
            return f"claimed ε {self.claimed:.{_decimals(self.claimed, 0.0)}f}{beside}; no lower bound was measured"
        whole = [bound for bound in self.bounds if bound.what == ROWS or bound.claimed == self.claimed]
        refuted = [bound for bound in self.bounds if bound.exceeded]
        nearest = max(refuted or whole or self.bounds, key=lambda bound: (bound.lower / bound.claimed, bound.claimed))
        decimals = _decimals(nearest.claimed, nearest.lower)
        claimed, part, lower = (f"{value:.{decimals}f}" for value in (self.claimed, nearest.claimed, nearest.lower))
        whose = "the rows" if nearest.what == ROWS else nearest.what
        of_it = "" if nearest.claimed == self.claimed else f" ({part} of it for {whose})"
        at = " at this δ" if nearest.delta else ""
        return f"claimed ε {claimed}{beside}{of_it}; audited lower bound {lower}{at} ({as_percent(nearest.confidence)})"

    @property
    def conclusion(self) -> str:
        """The result in one sentence for readers who do not know what a lower bound on ε is.

        >>> Audit(1.0, "", 100).conclusion
        'No attack did better than chance allows; nothing speaks against the guarantee.'
        """
        return NOTHING_FOUND if self.passed else "The claim is refuted: do not publish a release that is made this way."

    def to_dict(self) -> dict[str, Any]:
        """Plain data that strict JSON can hold."""
        found = {
            "bounds": [bound.to_dict() for bound in self.bounds],
            "exact": [exact.to_dict() for exact in self.exact],
            "attacks": [attack.to_dict() for attack in self.attacks],
        }
        verdict = {"headline": self.headline, "passed": self.passed, "lower": self.lower}
        return {"format": FORMAT, **verdict, **asdict(self), **found}


def as_percent(confidence: float) -> str:
    """A confidence with all of its digits: rounding could make it larger.

    >>> as_percent(0.95), as_percent(0.999), as_percent(1 - 1e-7)
    ('95%', '99.9%', '99.99999%')
    """
    return f"{100 * confidence:.10g}%"


def _rate(rate: Rate) -> dict[str, Any]:
    value = rate.value if rate.tries else None
    return asdict(rate) | {"value": value, "lower": rate.lower, "upper": rate.upper}


def _decimals(claimed: float, lower: float) -> int:
    """Two decimals, or as many as show two digits of a small claim and distinguish it from the bound.

    >>> _decimals(1.0, 0.93), _decimals(0.001, 0.0004), _decimals(1.0, 1.0004)
    (2, 4, 4)
    """
    decimals = max(2, 1 - math.floor(math.log10(claimed)))
    limit = decimals + 4
    while decimals < limit and claimed != lower and f"{claimed:.{decimals}f}" == f"{lower:.{decimals}f}":
        decimals += 1
    return decimals
