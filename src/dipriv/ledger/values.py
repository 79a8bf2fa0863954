"""Data sets and releases as frozen values without secrets; sums of ε and of δ are exact or rounded up."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from shlex import quote
from typing import Literal, TypeAlias

from dipriv._base.decimals import exact, in_full, round_down
from dipriv.errors import BudgetError, InputError
from dipriv.guarantee.guarantee import MIN_EPSILON, Guarantee, Model, PrivacyUnit, UnitKind
from dipriv.guarantee.trade_off import largest_probability
from dipriv.guarantee.wording import HELD_OUT, public_labels, unit_name

State: TypeAlias = Literal["reserved", "done", "failed"]
DEFAULT_BUDGET, DEFAULT_DELTA_BUDGET = 10.0, 1e-6
"""What all releases of a data set may spend together unless another budget is set."""

_MAX_NAME = 100
_NAME_RESERVE = 10
"""Characters of a suggested name that are left for a number behind it."""


@dataclass(frozen=True)
class Dataset:
    """A data set with its privacy budget. `str` gives what is spent and what is left, in words.

    `budget` is the limit of ε and `delta_budget` that of δ: 10 and 1e-6 unless others are set. `spent` and
    `delta_spent` are the sums of ε and of δ over all releases (reserved, done and failed), rounded up: basic
    composition. `releases` is their number. `created` is in UTC. `unbounded` says why the sums do not bound what an
    attacker learns about one privacy unit, if they do not; `unchanged` are the columns that a release has as they are,
    about which they bound nothing.

    >>> from datetime import UTC
    >>> dataset = Dataset("people", budget=3.0, spent=1.0, releases=2, created=datetime(2026, 1, 1, tzinfo=UTC))
    >>> dataset.left, round(dataset.power(), 3)
    (2.0, 0.136)
    >>> str(dataset)
    'ε spent 1, 2 of 3 left; δ spent 0, 1e-6 of 1e-6 left'
    """

    name: str
    budget: float
    spent: float
    releases: int
    created: datetime
    delta_budget: float = DEFAULT_DELTA_BUDGET
    delta_spent: float = 0.0
    budget_is_default: bool = False
    unbounded: str | None = None
    unchanged: tuple[str, ...] = ()

    @property
    def left(self) -> float:
        """What is left of the budget of ε, rounded down and at least 0."""
        return _left(self.budget, self.spent)

    @property
    def delta_left(self) -> float:
        """What is left of the budget of δ, rounded down and at least 0."""
        return _left(self.delta_budget, self.delta_spent)

    def power(self, level: float = 0.05) -> float | None:
        """The largest power of a test about one privacy unit at this level, after all releases; rounded up (Lemma 1).

        None where nothing bounds it: see `unbounded`.
        """
        if not 0 < level < 1:
            raise InputError(f"level={level!r} is not between 0 and 1.", "Use a significance level such as 0.05.")
        return None if self.unbounded else largest_probability(level, self.spent, self.delta_spent)

    def __str__(self) -> str:
        of = f"{self.left:g} of {self.budget:g} left" + (", the default budget" if self.budget_is_default else "")
        delta = f"{in_full(self.delta_left)} of {in_full(self.delta_budget)} left"
        if self.spent > self.budget or self.delta_spent > self.delta_budget:
            delta += "; more is spent than the budget allows, and nothing more can be released"
        return f"ε spent {self.spent:g}, {of}; δ spent {in_full(self.delta_spent)}, {delta}"


@dataclass(frozen=True)
class Record:
    """One release. Its ε and δ are spent from the reservation on, in every state. Times are in UTC.

    `number` counts the releases of the data set from 1; `id` identifies the release in the ledger. `rows` is the number
    of rows written, set when the release is done. `output` is a file name without its folder.
    """

    id: int
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


@dataclass(frozen=True)
class Reservation:
    """A release that is reserved: `id` identifies it in the ledger, `number` counts those of its data set from 1.

    `also` is the same release in the other data sets whose rows it has: its ε and δ are spent in each of them.
    `is_own` is false for those that were found after rows had left: what they protect may be other units.
    """

    id: int
    number: int
    dataset: str = ""
    also: tuple[Reservation, ...] = ()
    is_own: bool = True


def overspent(dataset: Dataset, epsilon: float, option: str = "") -> BudgetError:
    """The error for a release that requests more ε than is left; `option` names the ledger in a command."""
    command = (
        f"raise its budget, if those whom it protects agree: dipriv ledger budget {quote(dataset.name)} EPSILON{option}"
    )
    whose = f"the {'default ' if dataset.budget_is_default else ''}budget ε = {dataset.budget!r} of data set"
    if dataset.left < MIN_EPSILON:
        return BudgetError(
            f"the release asks for ε = {epsilon!r}, but nothing is left of {whose} {dataset.name!r}.",
            f"Release nothing more of this data set, or {command}.",
        )
    return BudgetError(
        f"the release asks for ε = {epsilon!r}, but only {dataset.left!r} is left of {whose} {dataset.name!r}.",
        f"Ask for at most ε = {dataset.left!r}, or {command}.",
    )


def overspent_delta(dataset: Dataset, delta: float, option: str = "") -> BudgetError:
    """The error for a release that requests more δ than is left; `option` names the ledger in a command."""
    raised = (
        "the budget, if those whom it protects agree: dipriv ledger budget "
        f"{quote(dataset.name)} EPSILON --delta DELTA{option}."
    )
    less = "Ask for less ({}), for pure differential privacy ({}), or raise" if delta else "Raise"
    return BudgetError(
        f"the release asks for δ = {in_full(delta)}, but only {in_full(dataset.delta_left)} is left of the budget "
        f"δ = {in_full(dataset.delta_budget)} of data set {dataset.name!r}.",
        f"{less.format('delta=...', 'delta=0')} {raised}",
        command=f"{less.format('--delta', '--delta 0')} {raised}",
    )


def check_unit(name: str, unit: PrivacyUnit, earlier: Iterable[Guarantee]) -> None:
    """Raise BudgetError if earlier releases of a data set protect another privacy unit: their ε would not add up.

    What protects a person with all of their rows protects each of these rows, too: after releases that protect rows,
    one that protects persons adds up for a row. The other way round, persons would lose what they were promised.
    """
    for guarantee in earlier:
        before = guarantee.unit
        is_stronger = before.kind is UnitKind.ROW and unit.kind is UnitKind.ROWS_OF_ONE_VALUE
        if guarantee.model is Model.NONE or _who(before) == _who(unit) or is_stronger:
            continue
        person = before.kind is UnitKind.ROWS_OF_ONE_VALUE
        raise BudgetError(
            f"earlier releases of data set {name!r} protect {unit_name(before)}, and this one would protect "
            f"{unit_name(unit)}: their ε do not add up.",
            f"Use the unit of the earlier releases: unit={before.column!r}." if person else "Release it as before.",
            command=f"Use the unit of the earlier releases: --unit {quote(str(before.column))}."
            if person
            else "Release it as before.",
        )


def counted_for(units: Iterable[PrivacyUnit]) -> PrivacyUnit | None:
    """Whom the sums of ε and δ over releases with these units protect: a row, if some protect rows and some persons.

    None if there is no such unit.
    """
    found = {_who(unit): unit for unit in units}
    if len(found) > 1 and {unit.kind for unit in found.values()} == {UnitKind.ROW, UnitKind.ROWS_OF_ONE_VALUE}:
        return PrivacyUnit()
    return next(iter(found.values())) if len(found) == 1 else None


def why_unbounded(guarantees: Sequence[Guarantee], has_holdout: bool) -> str | None:
    """Why the ε and δ of these releases together do not bound what an attacker learns, in a sentence, or None."""
    if any(guarantee.model is Model.NONE for guarantee in guarantees):
        return "The guarantee of a release cannot be read: nothing is known of what an attacker learns."
    if not all(guarantee.secure_randomness for guarantee in guarantees):
        return "A seeded release is not private: nothing bounds what an attacker learns."
    if has_holdout or any(guarantee.has_unprotected_rows for guarantee in guarantees):
        return f"{HELD_OUT} Nothing bounds what an attacker learns about them."
    if labels := sorted({name for guarantee in guarantees for name in public_labels(guarantee)}):
        names = ", ".join(map(repr, labels))
        return f"Which labels occur in {names} was called public: nothing bounds what an attacker learns about that."
    if guarantees and counted_for(guarantee.unit for guarantee in guarantees) is None:
        return "The releases protect different privacy units: their ε do not add up."
    return None


def _who(unit: PrivacyUnit) -> tuple[UnitKind, str | None]:
    """Whom a unit protects; the bound on a person's rows does not matter, as ε is that of all of them."""
    return unit.kind, unit.column


def _left(budget: float, spent: float) -> float:
    return max(0.0, round_down(exact(budget) - exact(spent)))


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
