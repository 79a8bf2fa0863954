"""A forecast in words: plain sentences, for terminals, notebooks and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dipriv._base.decimals import in_full
from dipriv.utility.forecast import ColumnForecast, EpsilonForecast
from dipriv.utility.plan import MATTERS, SYNTHETIC, Change, Forecast, columns_are_good
from dipriv.utility.verdict import GOOD, LOST

MAX_NAMED = 4
"""How many columns a sentence names."""


def grade(error: float) -> str:
    """The word for an expected total variation; the limits are those of a verdict."""
    return "good" if error <= GOOD else "lost" if error > LOST else "usable"


def percent(share: float) -> str:
    """A share with two digits.

    >>> percent(0.0123), percent(0.5), percent(0.00004)
    ('1.2%', '50%', '0.0040%')
    """
    if share >= 0.0995:
        return f"{share:.0%}"
    digits = 1
    while digits < 4 and share < 0.0995 * 10.0**-digits:
        digits += 1
    return f"{share:.{digits}%}"


def error_range(column: ColumnForecast) -> str:
    """The expected total variation, and its range where the number of labels or values is not public."""
    if column.public:
        return percent(column.error)
    return f"{percent(column.error)} ({percent(column.least).removesuffix('%')}–{percent(column.most)})"


def grouped(plan: Forecast) -> list[tuple[str, tuple[ColumnForecast, ...]]]:
    """(names, forecasts at each ε): columns about which the same is public have the same forecast."""
    groups: dict[tuple[object, ...], list[tuple[ColumnForecast, ...]]] = {}
    for one in zip(*(found.columns for found in plan.epsilons), strict=True):
        groups.setdefault(tuple(replace(column, name="") for column in one), []).append(one)
    return [(_listed([one[0].name for one in group]), group[0]) for group in groups.values()]


def pairs(found: EpsilonForecast) -> str:
    """How many pairs are measured, and how well."""
    if not found.pairs.possible:
        return "there is one column"
    if not found.pairs.measured or found.pairs.error is None:
        return f"none of {found.pairs.possible:,}"
    return f"{found.pairs.measured:,} of {found.pairs.possible:,}, off by {percent(found.pairs.error)}"


def rows(found: EpsilonForecast) -> str:
    """What is left of a row."""
    if found.fidelity < SYNTHETIC:
        return f"{found.fidelity:.2f}, as good as synthetic"
    return f"{found.fidelity:.2f}"


def labels_read(plan: Forecast) -> str:
    """A sentence on labels that were read from the rows, and a blank; nothing where none were."""
    if not plan.labels_read:
        return ""
    return f"The labels of {_listed(plan.labels_read)} were read from the rows: you call them public. "


def recommendation(plan: Forecast) -> str:
    """One recommendation: ε, what it buys, and what would help most."""
    found = plan.chosen
    said = [labels_read(plan) + _which(plan)]
    unknown = [column for column in found.columns if not column.public]
    if unknown:
        worst = percent(max(column.most for column in unknown))
        said.append(
            f"Nothing declares how many labels or values {len(unknown)} of them have: with many, errors reach {worst}."
        )
    if found.pairs.possible:
        said.append(f"Pairs measured: {pairs(found)}; all others are as if independent given these.")
    if found.fidelity < SYNTHETIC:
        said.append(
            f"Rows are as good as synthetic data (correlation with the true values {found.fidelity:.2f}): use the "
            "release for distributions and for the pairs measured, not for single rows."
        )
    harmless = [change for change in plan.changes if not change.option.startswith("delta")]  # none that protects less
    best = min(harmless, key=lambda change: change.errors, default=None)
    if best is not None and best.errors < 1.0 - MATTERS:
        said.append(f"What would help most: {best.text}")
    return " ".join(said)


def _which(plan: Forecast) -> str:
    """The ε to use, and how many columns it keeps."""
    found, needed = plan.chosen, "It needs more rows, fewer columns, or a schema that declares them."
    if plan.recommended is not None:
        return f"Use ε = {in_full(plan.recommended)}: {_kept(found)}."
    enough = next((one for one in plan.epsilons if columns_are_good(one)), None)
    if enough is not None:
        return (
            f"For single columns ε = {in_full(enough.epsilon)} is enough: {_kept(enough)}. For pairs of columns no "
            f"ε up to {in_full(found.epsilon)} is enough: their tables are few, or mostly noise. {needed}"
        )
    lost = [column.name for column in found.columns if column.error > LOST]
    doubtful = [column.name for column in found.columns if column.error <= LOST < column.most]
    names = f", and {_named(lost)} to be lost" if lost else ""
    names += f", but with many labels or values {_named(doubtful)} may be lost" if doubtful else ""
    return f"No ε up to {in_full(found.epsilon)} is enough for this table: there, {_kept(found)}{names}. {needed}"


def _kept(found: EpsilonForecast) -> str:
    """How many columns are good."""
    good = sum(grade(column.error) == "good" for column in found.columns)
    return f"{good} of {len(found.columns)} columns are expected to be good (total variation at most {GOOD:g})"


def change(one: Change) -> str:
    """What an option would change."""
    after = one.forecast
    many = (
        "" if one.many is None else f" (of columns of many labels {percent(one.many[1])}, not {percent(one.many[0])})"
    )
    return (
        f"{_option(one)}: errors {_times(one.errors)}{many}; pairs measured: {pairs(after)}; correlation of rows "
        f"{after.fidelity:.2f}."
    )


def summary(plan: Forecast) -> str:
    """The forecast as text: the recommendation, and a line for each ε."""
    lines = [plan.recommendation, ""]
    for found in plan.epsilons:
        lost = sum(grade(column.error) == "lost" for column in found.columns)
        good = sum(grade(column.error) == "good" for column in found.columns)
        lines.append(
            f"ε = {in_full(found.epsilon)}: {good} good, {len(found.columns) - good - lost} usable, {lost} lost; "
            f"median error {percent(found.error)}; pairs: {pairs(found)}; rows: {rows(found)}."
        )
    return "\n".join(lines)


def _option(one: Change) -> str:
    """The option as an instruction."""
    if one.option == "schema":
        return f"Declaring the labels of {_named(one.columns)} in the schema, if they are public"
    if one.option == "drop":
        return f"Leaving out {_named(one.columns)}, which costs the most"
    if one.option == "target":
        pairs_of = len(one.forecast.columns) - 1
        return f"Naming a target, such as {_named(one.columns)}, whose {pairs_of} pairs are then measured first"
    if one.option == "no target":
        return f"Not naming {_named(one.columns)} as target"
    if one.option.startswith("holdout"):
        return f"{one.option} (the reference is learned from these rows, which are not released)"
    return {"no holdout": "Holding out no rows", "delta=0": "delta=0, pure ε-differential privacy"}.get(
        one.option, one.option
    )


def _times(ratio: float) -> str:
    """A ratio of errors in words.

    >>> _times(0.7), _times(1.01), _times(1.5)
    ('30% smaller', 'about the same', '1.5 times as large')
    """
    if abs(ratio - 1.0) < MATTERS:
        return "about the same"
    return f"{1.0 - ratio:.0%} smaller" if ratio < 1.0 else f"{ratio:.2g} times as large"


def _named(names: Sequence[str]) -> str:
    """The first few names, quoted, and how many more there are."""
    return _listed([repr(name) for name in names])


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:MAX_NAMED])
    return f"{shown} and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else shown
