"""Results of an audit as plain data: bounds on ε, attacks, and whether any of them refutes the claim."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from dipriv._base.decimals import in_full, in_short
from dipriv.auditing.intervals import Estimate, Rate
from dipriv.guarantee.wording import PRIVATE, privacy_loss

FORMAT = 4
"""Version of `Audit.to_dict`: raised when a field changes its name or its meaning."""
REFUTED, NOT_REFUTED, HOLDS, NOT_COVERED = "refuted", "not refuted", "holds", "no promise"
DOES_NOT_HOLD = "does not hold"
NOTHING_FOUND = "nothing speaks against the promise"
DO_NOT_PUBLISH = "Do not publish a release that is made this way."


class Scope(StrEnum):
    """What a figure is about."""

    ROW = "noise on one row, for the fitted reference"
    LEARNING = "what is learned from one row"
    MEASUREMENT = "one measurement that has all of the reference's budget"
    RELEASE = "the whole release, from table to published rows"
    PERSON = "the whole release, all rows of one person"
    LEDGER = "the ledger's recognition of the table"


@dataclass(frozen=True)
class Bound:
    """A measured lower bound on ε, at the δ of the claim: no smaller ε is compatible with what was measured.

    For Gaussian noise the ρ of zCDP is bounded from below, and `lower` is the ε that the accountant charges for this ρ
    at δ. `what` and `event` may be published: they name columns, never a cell.
    """

    what: str
    claimed: float
    lower: float
    confidence: float
    draws: int
    event: str
    delta: float = 0.0
    scope: Scope = Scope.RELEASE

    @property
    def exceeded(self) -> bool:
        """Whether the claim is refuted, at this confidence."""
        return self.lower > self.claimed

    @property
    def verdict(self) -> str:
        """A bound below the claim does not show that the claim holds."""
        return REFUTED if self.exceeded else NOT_REFUTED

    @property
    def gain(self) -> str:
        """The bound in words, beside the claim."""
        return f"{self.what}: ε at least {self.lower:.2g}, {self.claimed:.4g} allowed"

    @property
    def accusation(self) -> str:
        """The sentence for a claim that is refuted."""
        found = f"a loss of at least {privacy_loss(_above(self.lower, self.claimed), self.delta)}"
        return f"The attack on {self.what} found {found}, more than promised: {_claim(self)}."

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"exceeded": self.exceeded}


@dataclass(frozen=True)
class Exact:
    """The smallest ε of a finite mechanism at the δ of the claim, computed from its integer weights without sampling.

    For δ = 0 it is the largest log ratio of two probabilities of one outcome. It is a lower bound if only some inputs,
    or some noisy counts, were looked at (`is_lower_bound`).
    """

    what: str
    claimed: float
    epsilon: float
    delta: float = 0.0
    scope: Scope = Scope.ROW
    is_lower_bound: bool = False

    @property
    def exceeded(self) -> bool:
        """Whether the claim is refuted."""
        return self.epsilon > self.claimed

    @property
    def verdict(self) -> str:
        """An exact value refutes the claim or proves it, a lower bound can refute it alone."""
        return REFUTED if self.exceeded else NOT_REFUTED if self.is_lower_bound else HOLDS

    @property
    def accusation(self) -> str:
        """The sentence for a claim that is refuted."""
        if math.isinf(self.epsilon):
            return f"The check of {self.what} found a loss without any limit, more than promised: {_claim(self)}."
        found = privacy_loss(_above(self.epsilon, self.claimed), self.delta)
        return f"The loss of {self.what} is {found}, computed without sampling, more than promised: {_claim(self)}."

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

    @property
    def gained(self) -> bool:
        """Whether the attack did better than guessing: its interval lies above 0."""
        return self.advantage.lower > 0

    @property
    def gain(self) -> str:
        """What a covered attack gained over guessing, beside what the claim allows; empty if it gained nothing."""
        if not self.gained or self.allowed is None:
            return ""
        return f"{self.name}: {_percent(self.advantage.value)} more often, {_percent(self.allowed)} allowed"

    @property
    def accusation(self) -> str:
        """The sentence for a claim that is refuted."""
        least, limit = _percent(self.advantage.lower), _percent(self.limit or 0.0)
        return f"The attack {self.name!r} succeeds {least} more often than guessing, more than promised: {limit}."

    def to_dict(self) -> dict[str, Any]:
        """Plain data, including the rates and their intervals."""
        rates = {"targets": _rate(self.targets), "control": _rate(self.control)}
        return asdict(self) | rates | {"exceeded": self.exceeded}


@dataclass(frozen=True)
class Check:
    """A protection that is either there or not: `passed`, and the sentence for the case that it is not.

    What a ledger recognizes is no part of the guarantee of a release: it is reported, and does not refute the claim.
    """

    what: str
    passed: bool
    accusation: str
    scope: Scope = Scope.LEDGER

    @property
    def exceeded(self) -> bool:
        """Whether the claim is refuted."""
        return not self.passed and self.scope is not Scope.LEDGER

    @property
    def verdict(self) -> str:
        return HOLDS if self.passed else REFUTED if self.exceeded else DOES_NOT_HOLD

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


Finding: TypeAlias = Bound | Exact | AttackResult | Check


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
    protects : whom the guarantee protects, in words.
    checks : protections that are either there or not, such as the ledger's recognition of this table.
    """

    claimed: float
    guarantee: str
    rows: int
    bounds: tuple[Bound, ...] = ()
    exact: tuple[Exact, ...] = ()
    attacks: tuple[AttackResult, ...] = ()
    remarks: tuple[str, ...] = field(default=())
    delta: float = 0.0
    protects: str = "every row"
    checks: tuple[Check, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All results: bounds, exact results, attacks and checks."""
        return (*self.bounds, *self.exact, *self.attacks, *self.checks)

    @property
    def passed(self) -> bool:
        """Whether nothing refutes the claim."""
        return not any(finding.exceeded for finding in self.findings)

    @property
    def lower(self) -> float:
        """The largest of the measured lower bounds on ε."""
        return max((bound.lower for bound in self.bounds), default=0.0)

    @property
    def headline(self) -> str:
        """The claim, and the bound that refutes it or comes closest to it, with what this bound is about.

        Bounds for single steps are often tight and say little about a release. Bounds for the rows and for the whole
        release are preferred, unless a step refutes its claim.

        >>> rows = Bound("released rows", 0.2, 0.18, 0.999, 1000, "", scope=Scope.ROW)
        >>> Audit(1.0, "", 100, (rows,)).headline
        'claimed ε 1.00 (0.20 of it for the rows); audited lower bound 0.18 (99.9%)'
        >>> whole = Bound("release, extreme canaries", 1.0, 0.91, 0.999, 1000, "", delta=1e-9)
        >>> Audit(1.0, "", 100, (whole,), delta=1e-9).headline
        'claimed ε 1.00, δ 1e-9; audited lower bound 0.91 at this δ (99.9%)'
        """
        beside = f", δ {in_full(self.delta)}" if self.delta else ""
        if not self.bounds:
            return f"claimed ε {self.claimed:.{_decimals(self.claimed, 0.0)}f}{beside}; no lower bound was measured"
        whole = [bound for bound in self.bounds if bound.scope is Scope.ROW or bound.claimed == self.claimed]
        refuted = [bound for bound in self.bounds if bound.exceeded]
        nearest = _nearest(refuted or whole or self.bounds)
        decimals = _decimals(nearest.claimed, nearest.lower)
        claimed, part, lower = (f"{value:.{decimals}f}" for value in (self.claimed, nearest.claimed, nearest.lower))
        whose = "the rows" if nearest.scope is Scope.ROW else nearest.what
        of_it = "" if nearest.claimed == self.claimed else f" ({part} of it for {whose})"
        at = " at this δ" if nearest.delta else ""
        return f"claimed ε {claimed}{beside}{of_it}; audited lower bound {lower}{at} ({as_percent(nearest.confidence)})"

    @property
    def conclusion(self) -> str:
        """The result in plain words, for readers who do not know what a lower bound on ε is.

        >>> Audit(1.0, "", 100).conclusion
        'No attack did better than guessing; nothing speaks against the promise.'
        >>> print(Audit(1.0, "", 100, (Bound("released rows", 1.0, 1.25, 0.999, 1000, ""),)).conclusion)
        The attack on released rows found a loss of at least ε = 1.25, more than promised: ε = 1.
        Do not publish a release that is made this way.
        """
        accusations = [finding.accusation for finding in self.findings if finding.exceeded]
        about_ledger = [check.accusation for check in self.checks if not (check.passed or check.exceeded)]
        if accusations:
            return "\n".join([*accusations, DO_NOT_PUBLISH, *about_ledger])
        exposed = [attack.name for attack in self.attacks if attack.limit is None and attack.gained]
        unprotected = f" Rows that have no promise were found by: {', '.join(exposed)}." if exposed else ""
        return "\n".join([f"{self._gains()}; {NOTHING_FOUND}.{unprotected}", *about_ledger])

    def _gains(self) -> str:
        """Whether an attack did better than guessing: one with a control group, or guesses of planted canaries."""
        gains = [
            (attack.advantage.lower / (attack.limit or 1.0), attack.gain) for attack in self.attacks if attack.gain
        ]
        whole = (bound for bound in self.bounds if bound.scope in (Scope.RELEASE, Scope.PERSON))
        gains += [(bound.lower / bound.claimed, bound.gain) for bound in whole if bound.lower > 0]
        if not gains:
            return "No attack did better than guessing"
        return f"Attacks did better than guessing, but not more than the promise allows ({max(gains)[1]})"

    def __str__(self) -> str:
        """The conclusion, the claim, and one line for each scope with the figure that comes closest to the claim."""
        claim = (
            f"Promised: {privacy_loss(self.claimed, self.delta)} to {self.protects}. {self.rows:,} rows were audited."
        )
        lines = _aligned([("", "found", "promised"), *self._summary()])
        remarks = ["", *self.remarks] if self.remarks else []
        return "\n".join([self.conclusion, "", claim, "", *lines, *remarks, "", PRIVATE])

    def _repr_html_(self) -> str:
        from dipriv._base.html import document, folded, lines, paragraph, table

        first, *more = self.conclusion.splitlines()
        loss = privacy_loss(self.claimed, self.delta)
        claim = f"Promised: {loss} to {self.protects}. {self.rows:,} rows were audited."
        return document(
            paragraph(first, strong=True),
            *map(paragraph, [*more, claim]),
            table(("", "found", "promised"), list(self._summary())),
            *map(paragraph, [*self.remarks, PRIVATE]),
            folded("Guarantee", lines(self.guarantee)),
        )

    def _summary(self) -> Iterable[tuple[str, str, str]]:
        for scope in Scope:
            bounds = [bound for bound in self.bounds if bound.scope is scope]
            exact = [one for one in self.exact if one.scope is scope]
            refuted = [one for one in exact if one.exceeded]
            if refuted or (exact and not bounds):
                worst = max(refuted or exact, key=lambda one: one.epsilon / one.claimed)
                yield str(scope), f"ε = {worst.epsilon:.3g}", _claim(worst)
            elif bounds:
                nearest = _nearest(bounds)
                yield str(scope), f"ε at least {nearest.lower:.3g}", _claim(nearest)
        covered = [attack for attack in self.attacks if attack.allowed is not None]
        if covered:
            best = max(covered, key=lambda attack: attack.advantage.value)
            of = f"best of {len(covered)} attacks: {best.name}"
            yield of, f"{best.advantage.value:+.3f} over guessing", f"{best.allowed:.3g}"
        if self.checks:
            held = sum(check.passed for check in self.checks)
            yield "checks, of the ledger's recognition for example", f"{held} of {len(self.checks)} hold", "all"

    def to_dict(self) -> dict[str, Any]:
        """Plain data that strict JSON can hold."""
        found = {
            "bounds": [bound.to_dict() for bound in self.bounds],
            "exact": [exact.to_dict() for exact in self.exact],
            "attacks": [attack.to_dict() for attack in self.attacks],
            "checks": [check.to_dict() for check in self.checks],
        }
        verdict = {
            "conclusion": self.conclusion,
            "headline": self.headline,
            "passed": self.passed,
            "lower": self.lower,
        }
        return {"format": FORMAT, **verdict, **asdict(self), **found}


def as_percent(confidence: float) -> str:
    """A confidence with all of its digits: rounding could make it larger.

    >>> as_percent(0.95), as_percent(0.999), as_percent(1 - 1e-7)
    ('95%', '99.9%', '99.99999%')
    """
    return f"{100 * confidence:.10g}%"


def _claim(finding: Bound | Exact) -> str:
    """The claimed ε and δ of a finding, with four digits."""
    return f"ε = {in_short(finding.claimed)}" + (f", δ = {in_short(finding.delta)}" if finding.delta else "")


def _above(value: float, claimed: float) -> float:
    """A value above a claim, rounded down to the digits that show that it is above.

    >>> _above(1.25678, 1.0), _above(1.000012, 1.0)
    (1.25, 1.00001)
    """
    for digits in range(2, 17):
        rounded = math.floor(value * 10.0**digits) / 10.0**digits
        if rounded > claimed:
            return rounded
    return value


def _percent(share: float) -> str:
    """A share in percent with two digits, but not as many as a δ has."""
    return f"{100 * share:.2g}%"


def _nearest(bounds: Sequence[Bound]) -> Bound:
    """The bound that comes closest to its claim, or exceeds it the most."""
    return max(bounds, key=lambda bound: (bound.lower / bound.claimed, bound.claimed))


def _aligned(rows: Iterable[tuple[str, str, str]]) -> list[str]:
    """Rows of a table with columns of the same width."""
    cells = list(rows)
    widths = [max(len(row[column]) for row in cells) for column in range(3)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]


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
