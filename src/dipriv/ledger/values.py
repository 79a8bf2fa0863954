"""Data sets and releases as frozen values without secrets; sums of ε are exact or rounded up."""

from __future__ import annotations

import math
import unicodedata
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Literal, TypeAlias

from dipriv.errors import BudgetError, InputError
from dipriv.guarantee.guarantee import MIN_EPSILON, Guarantee

State: TypeAlias = Literal["reserved", "done", "failed"]

_MAX_NAME = 100
_NAME_RESERVE = 10
"""Characters of a suggested name that are left for a number behind it."""
_SLACK = 1 + 2.0**-50
"""More than the rounding errors of one exponential and two products."""


@dataclass(frozen=True)
class Dataset:
    """A data set with its privacy budget.

    `budget` is None if no limit is set. `spent` is the sum of the ε of all releases (reserved, done and failed),
    rounded up, and `releases` is their number. `created` is in UTC.

    >>> from datetime import UTC
    >>> dataset = Dataset("people", budget=3.0, spent=1.0, releases=2, created=datetime(2026, 1, 1, tzinfo=UTC))
    >>> dataset.left, round(dataset.power(), 3)
    (2.0, 0.136)
    """

    name: str
    budget: float | None
    spent: float
    releases: int
    created: datetime

    @property
    def left(self) -> float | None:
        """What is left of the budget, rounded down and at least 0; None if no limit is set."""
        if self.budget is None:
            return None
        return max(0.0, round_down(exact(self.budget) - exact(self.spent)))

    def power(self, level: float = 0.05) -> float:
        """Lemma 1: no test of one person's value at this level has more power than level * e^spent; rounded up."""
        if not 0 < level < 1:
            raise InputError(f"level={level!r} is not between 0 and 1.", "Use a significance level such as 0.05.")
        if self.spent == 0:
            return level
        if self.spent >= 700:  # the exponential would overflow
            return 1.0
        return min(1.0, math.nextafter(level * (math.exp(self.spent) * _SLACK), math.inf))


@dataclass(frozen=True)
class Record:
    """One release. Its ε is spent from the reservation on, in every state. Times are in UTC.

    `rows` is the number of rows written, set when the release is done. `output` is a file name without its folder.
    """

    number: int
    dataset: str
    epsilon: float
    state: State
    started: datetime
    finished: datetime | None
    rows: int | None
    guarantee: Guarantee
    output: str | None


def overspent(dataset: Dataset, epsilon: float) -> BudgetError:
    """The error for a release that requests more ε than is left."""
    left = dataset.left or 0.0
    command = f"raise its budget, if those whom it protects agree: dipriv ledger budget {dataset.name!r} EPSILON"
    if left < MIN_EPSILON:
        return BudgetError(
            f"the release asks for ε = {epsilon!r}, but nothing is left of the budget ε = {dataset.budget!r} of data "
            f"set {dataset.name!r}.",
            f"Release nothing more of this data set, or {command}.",
        )
    return BudgetError(
        f"the release asks for ε = {epsilon!r}, but only {left!r} is left of the budget ε = {dataset.budget!r} of data "
        f"set {dataset.name!r}.",
        f"Ask for at most ε = {left!r}, or {command}.",
    )


def exact(epsilon: float) -> Fraction:
    """ε as the decimal number that it is written as, so that ten times 0.1 is 1.

    The float next to 0.1 exceeds it by 1 in 10^17, far less than the margin by which exact noise stays below its ε.

    >>> 10 * exact(0.1) == 1 < 10 * Fraction(0.1)
    True
    """
    return Fraction(repr(epsilon))


def round_up(number: Fraction) -> float:
    """The smallest float whose decimal form is at least `number`.

    >>> round_up(3 * exact(0.1)), exact(round_up(Fraction(1, 3))) > Fraction(1, 3)
    (0.3, True)
    """
    near = float(number)
    return near if exact(near) >= number else math.nextafter(near, math.inf)


def round_down(number: Fraction) -> float:
    """The largest float whose decimal form is at most `number`."""
    return -round_up(-number)


def check_name(name: object) -> str:
    """The name of a data set in Unicode's composed form (NFC), so that names that look the same are the same.

    >>> check_name("people 2026")
    'people 2026'
    """
    remedy = f"Use 1 to {_MAX_NAME} printable characters without / and \\, and no space at either end."
    if not isinstance(name, str):
        raise InputError(f"expected the name of a data set as text, got {type(name).__name__}.", remedy)
    name = unicodedata.normalize("NFC", name)
    if not 1 <= len(name) <= _MAX_NAME:
        raise InputError(f"the name of the data set has {len(name)} characters.", remedy)
    if name != name.strip() or not all(map(_may_name, name)):
        raise InputError("the name of the data set has characters that are not allowed, or spaces at an end.", remedy)
    return name


def as_name(suggestion: str) -> str:
    r"""A valid name similar to `suggestion`, such as a file name, with room for a number behind it.

    >>> as_name("data/people\n")
    'data-people-'
    """
    plain = "".join(c if _may_name(c) else "-" for c in unicodedata.normalize("NFC", suggestion))
    return plain.strip()[: _MAX_NAME - _NAME_RESERVE].strip() or "data"


def _may_name(character: str) -> bool:
    return character.isprintable() and character not in "/\\"
