"""Data sets and releases as frozen values without secrets; sums of ε and of δ are exact or rounded up."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from dipriv._base.decimals import exact, in_full, round_down
from dipriv.errors import BudgetError, InputError
from dipriv.guarantee.guarantee import MIN_EPSILON, Guarantee
from dipriv.guarantee.trade_off import largest_probability

State: TypeAlias = Literal["reserved", "done", "failed"]

_MAX_NAME = 100
_NAME_RESERVE = 10
"""Characters of a suggested name that are left for a number behind it."""


@dataclass(frozen=True)
class Dataset:
    """A data set with its privacy budget. `str` gives what is spent and what is left, in words.

    `budget` is the limit of ε and `delta_budget` that of δ; None if no limit is set. `spent` and `delta_spent` are the
    sums of ε and of δ over all releases (reserved, done and failed), rounded up: basic composition. `releases` is their
    number. `created` is in UTC.

    >>> from datetime import UTC
    >>> dataset = Dataset("people", budget=3.0, spent=1.0, releases=2, created=datetime(2026, 1, 1, tzinfo=UTC))
    >>> dataset.left, round(dataset.power(), 3)
    (2.0, 0.136)
    >>> str(dataset)
    'ε spent 1, 2 of 3 left; δ spent 0'
    """

    name: str
    budget: float | None
    spent: float
    releases: int
    created: datetime
    delta_budget: float | None = None
    delta_spent: float = 0.0

    @property
    def left(self) -> float | None:
        """What is left of the budget of ε, rounded down and at least 0; None if no limit is set."""
        return _left(self.budget, self.spent)

    @property
    def delta_left(self) -> float | None:
        """What is left of the budget of δ, rounded down and at least 0; None if no limit is set."""
        return _left(self.delta_budget, self.delta_spent)

    def power(self, level: float = 0.05) -> float:
        """The largest power of a test of one person's value at this level, after all releases; rounded up (Lemma 1)."""
        if not 0 < level < 1:
            raise InputError(f"level={level!r} is not between 0 and 1.", "Use a significance level such as 0.05.")
        return largest_probability(level, self.spent, self.delta_spent)

    def __str__(self) -> str:
        left = "no budget is set" if self.left is None else f"{self.left:g} of {self.budget:g} left"
        delta = f"δ spent {in_full(self.delta_spent)}"
        if self.delta_left is not None and self.delta_budget is not None:
            delta += f", {in_full(self.delta_left)} of {in_full(self.delta_budget)} left"
        return f"ε spent {self.spent:g}, {left}; {delta}"


@dataclass(frozen=True)
class Record:
    """One release. Its ε and δ are spent from the reservation on, in every state. Times are in UTC.

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
    delta: float = 0.0


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


def overspent_delta(dataset: Dataset, delta: float) -> BudgetError:
    """The error for a release that requests more δ than is left."""
    left, name = dataset.delta_left or 0.0, dataset.name
    return BudgetError(
        f"the release asks for δ = {in_full(delta)}, but only {in_full(left)} is left of the budget "
        f"δ = {in_full(dataset.delta_budget or 0.0)} of data set {name!r}.",
        "Ask for less (delta=...), for pure differential privacy (delta=0), or raise the budget, if those whom it "
        f"protects agree: dipriv ledger budget {name!r} EPSILON --delta DELTA.",
    )


def _left(budget: float | None, spent: float) -> float | None:
    return None if budget is None else max(0.0, round_down(exact(budget) - exact(spent)))


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
