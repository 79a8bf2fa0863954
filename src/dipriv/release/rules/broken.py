"""How many private rows break rules, or what is said of persons: for their keeper alone."""

from __future__ import annotations

import warnings
from typing import Any

from dipriv.errors import RuleWarning
from dipriv.release.rules.rewriting import BrokenRules, Rewriting
from dipriv.sources.protocol import Rows, RowSelection


def broken_rules(rewriting: Rewriting, rows: Rows[Any]) -> dict[str, int]:
    """{rule: how many rows break it}: private."""
    every = rows.countable(RowSelection(rows.n_rows, n_released=rows.n_rows))
    (broken,) = every.count(BrokenRules(rewriting))
    return dict(zip(rewriting.rules.texts, broken.tolist(), strict=True))


def warn_of_broken_rules(rewriting: Rewriting, rows: Rows[Any]) -> None:
    """Tell the keeper, before anything is spent, how many private rows break rules. Nothing else depends on it.

    The number is a fact about private rows: it goes into a warning, and nowhere else.
    """
    for text, count in broken_rules(rewriting, rows).items():
        if count:
            warnings.warn(
                f"{count:,} of {rows.n_rows:,} private rows break the rule {text!r}; released rows do not. This is "
                "for you alone: do not publish the number.",
                RuleWarning,
                stacklevel=4,
            )


def warn_of_differing_rows(selection: RowSelection) -> None:
    """Tell the keeper, before anything is spent, how many persons have rows that differ in a constant column."""
    for name, persons in selection.differing.items():
        if persons:
            warnings.warn(
                f"column {name!r} is called constant, but rows of {persons:,} persons differ there; the first released "
                "row of a person counts. This is for you alone: do not publish the number.",
                RuleWarning,
                stacklevel=4,
            )
