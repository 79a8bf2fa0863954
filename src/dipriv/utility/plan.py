"""A forecast for several ε, what other options would change, and one recommendation in plain words.

Everything here is a function of public facts, and may be published.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from dipriv._base.decimals import in_full
from dipriv.errors import DiprivError
from dipriv.references.private import Private
from dipriv.schema import Schema
from dipriv.utility.forecast import FOUND, EpsilonForecast, PublicFacts, Setting, forecast
from dipriv.utility.verdict import GOOD, LOST

FORMAT = 1
"""Of `Forecast.to_dict`."""
MOSTLY = 0.75
"""A release is good if this part of its columns is, and none is lost."""
SYNTHETIC = 0.1
"""With a lower fidelity a released row says next to nothing about the true one."""
HOLDOUT, LARGER_DELTA = 0.25, 1e-6
"""What is tried in place of no hold-out and of the δ of the options."""
MATTERS = 0.05
"""Errors that change by a smaller part than this are about the same."""


@dataclass(frozen=True)
class Change:
    """What another option would change, at the recommended ε.

    Attributes
    ----------
    option : the option, in the words of `dipriv.privatize`.
    columns : the columns that it concerns.
    errors : the columns' errors as a multiple of those without it, the geometric mean; below 1 is better.
    forecast : with the option.
    many : the largest error of these columns if they have many labels, without the option and with it; None where the
        option is not about labels.
    """

    option: str
    columns: tuple[str, ...]
    errors: float
    forecast: EpsilonForecast
    many: tuple[float, float] | None = None

    @property
    def text(self) -> str:
        """What it would change, in words."""
        from dipriv.utility.plan_wording import change

        return change(self)


@dataclass(frozen=True)
class Forecast:
    """What a release will be good for, by public facts alone: `dipriv.plan` makes it.

    Attributes
    ----------
    rows : how many rows the table has.
    delta : δ of the release.
    epsilons : a forecast for each ε, in increasing order.
    recommended : the smallest of these ε at which three in four columns are good, none is lost, and pairs are measured
        well; None if there is none.
    changes : what other options would change at the recommended ε, or at the largest.
    labels_read : columns whose labels were read from the rows and are called public (`labels="public"`).

    Examples
    --------
    >>> import pandas as pd
    >>> import dipriv
    >>> table = pd.DataFrame({"age": range(20, 70), "smokes": [True, False] * 25})
    >>> found = dipriv.plan(table, [1, 8])
    >>> [(one.epsilon, one.pairs.possible) for one in found.epsilons]
    [(1.0, 1), (8.0, 1)]
    """

    rows: int
    delta: float
    epsilons: tuple[EpsilonForecast, ...]
    recommended: float | None
    changes: tuple[Change, ...] = ()
    labels_read: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in the order of the table."""
        return tuple(column.name for column in self.epsilons[0].columns)

    @property
    def chosen(self) -> EpsilonForecast:
        """The forecast for the recommended ε, or for the largest."""
        return next((one for one in self.epsilons if one.epsilon == self.recommended), self.epsilons[-1])

    @property
    def recommendation(self) -> str:
        """Which ε, what it buys, and what would help, in plain words."""
        from dipriv.utility.plan_wording import recommendation

        return recommendation(self)

    def to_dict(self) -> dict[str, Any]:
        """The forecast as plain data, for JSON.

        Returns
        -------
        A dictionary of numbers, texts and lists.
        """
        return {
            "format": FORMAT,
            "rows": self.rows,
            "delta": self.delta,
            "recommended": self.recommended,
            "recommendation": self.recommendation,
            "labels_read": list(self.labels_read),
            "epsilons": [_plain(one) for one in self.epsilons],
            "changes": [
                {
                    "option": one.option,
                    "columns": list(one.columns),
                    "errors": one.errors,
                    "many": None if one.many is None else list(one.many),
                    "text": one.text,
                    "forecast": _plain(one.forecast),
                }
                for one in self.changes
            ],
        }

    def __str__(self) -> str:
        from dipriv.utility.plan_wording import summary

        return summary(self)

    def _repr_html_(self) -> str:
        from dipriv.utility.plan_html import forecast_html

        return forecast_html(self)


def plan_release(facts: PublicFacts, settings: Sequence[Setting], delta: float) -> Forecast:
    """A forecast for each setting, which differ in ε only; `delta` is that of the release."""
    found = tuple(forecast(facts, setting) for setting in settings)
    good = [number for number, one in enumerate(found) if is_good(one)]
    chosen = good[0] if good else len(found) - 1
    changes = tuple(_changes(facts, settings[chosen], found[chosen]))
    return Forecast(facts.rows, delta, found, found[chosen].epsilon if good else None, changes, facts.labels_read)


def is_good(found: EpsilonForecast) -> bool:
    """Whether three in four columns are expected to be good and none to be lost, and pairs are measured well.

    Pairs: at least half as many as columns are measured, with an error of at most twice that of a good column.
    """
    if not found.pairs.possible:
        return columns_are_good(found)
    some = 2 * found.pairs.measured >= len(found.columns) - 1
    return columns_are_good(found) and some and found.pairs.error is not None and found.pairs.error <= 2 * GOOD


def columns_are_good(found: EpsilonForecast) -> bool:
    """Whether three in four columns are expected to be good and none to be lost."""
    good = sum(column.error <= GOOD for column in found.columns) >= MOSTLY * len(found.columns)
    return good and not any(column.most > LOST for column in found.columns)


def _changes(facts: PublicFacts, setting: Setting, before: EpsilonForecast) -> Iterator[Change]:
    """What each option would change; one that the release would refuse is left out."""
    for option, columns, other_facts, other in _alternatives(facts, setting, before):
        try:
            after = forecast(other_facts, other)
        except DiprivError:
            continue
        many = _many(facts, setting, before, columns) if option == "schema" else None
        yield Change(option, columns, _ratio(before, after), replace(after, epsilon=before.epsilon), many)


def _alternatives(
    facts: PublicFacts, setting: Setting, before: EpsilonForecast
) -> Iterator[tuple[str, tuple[str, ...], PublicFacts, Setting]]:
    """Options to try, the columns that they concern, and what would be released how."""
    labelled = tuple(column.name for column in facts.columns if _is_open(column.n_labels, column.storage.family))
    if labelled:
        yield "schema", labelled, _listing(facts, labelled, FOUND[0]), setting
    if len(facts.columns) > 1:
        heaviest = max(before.columns, key=lambda column: column.budget).name
        yield "drop", (heaviest,), _without(facts, heaviest), _not_asking_for(setting, heaviest)
    spec = setting.spec
    if isinstance(spec, Private) and len(facts.columns) > 2:
        if spec.target is None:
            last = facts.columns[-1].name
            yield "target", (last,), facts, replace(setting, spec=replace(spec, target=last))
        else:
            yield "no target", (spec.target,), facts, replace(setting, spec=replace(spec, target=None))
    if setting.holdout is None:
        yield f"holdout={HOLDOUT}", (), facts, replace(setting, holdout=HOLDOUT)
    else:
        yield "no holdout", (), facts, replace(setting, holdout=None)
    if setting.delta < LARGER_DELTA:
        delta = math.nextafter(LARGER_DELTA, 0.0)
        yield f"delta={in_full(LARGER_DELTA)}", (), facts, replace(setting, delta=delta)
    if setting.delta and not labelled:
        yield "delta=0", (), facts, replace(setting, delta=0.0)


def _listing(facts: PublicFacts, names: Sequence[str], labels: int) -> PublicFacts:
    """The facts if this many labels of each of these columns were declared."""
    columns = (replace(column, n_labels=labels) if column.name in names else column for column in facts.columns)
    return replace(facts, columns=tuple(columns))


def _many(facts: PublicFacts, setting: Setting, before: EpsilonForecast, names: Sequence[str]) -> tuple[float, float]:
    """The largest error of columns of many labels, found and declared."""
    after = forecast(_listing(facts, names, FOUND[2]), setting)
    found = max(column.most for column in before.columns if column.name in names)
    return found, max(column.error for column in after.columns if column.name in names)


def _is_open(labels: int | None, family: str) -> bool:
    """Whether a column's labels are to be found."""
    return family == "label" and labels is None


def _without(facts: PublicFacts, name: str) -> PublicFacts:
    columns = tuple(column for column in facts.columns if column.name != name)
    return replace(
        facts, columns=columns, schema=Schema({key: kind for key, kind in facts.schema.items() if key != name})
    )


def _not_asking_for(setting: Setting, name: str) -> Setting:
    """The setting without this column among those to be measured first."""
    spec = setting.spec
    if not isinstance(spec, Private):
        return setting
    target = None if spec.target == name else spec.target
    return replace(setting, spec=replace(spec, target=target, pairs=tuple(p for p in spec.pairs if name not in p)))


def _ratio(before: EpsilonForecast, after: EpsilonForecast) -> float:
    """The errors after as a multiple of those before: the geometric mean over the columns of both."""
    errors = {column.name: column.error for column in after.columns}
    ratios = [errors[column.name] / column.error for column in before.columns if column.name in errors and column.error]
    return float(np.exp(np.mean(np.log(np.maximum(ratios, 1e-12))))) if ratios else 1.0


def _plain(found: EpsilonForecast) -> dict[str, Any]:
    plain = asdict(found)
    return plain | {"columns": list(plain["columns"]), "error": found.error, "fidelity": found.fidelity}
