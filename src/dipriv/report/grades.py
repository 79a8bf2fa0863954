"""What a release keeps of a column, measured: a grade with its reasons, and the columns in order of gravity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dipriv.report.distances import TOTAL_VARIATION
from dipriv.report.facts import GRADES, MIN_ROWS_SHOWN, ColumnFacts, Distance
from dipriv.report.formats import count, fixed, percent, text
from dipriv.report.pairing import Pair
from dipriv.utility.verdict import GOOD, LOST, Grade

MIN_SHARE = 0.01
"""Smaller shares of the rows are no reason worth a sentence."""
MAX_NAMED = 3


def grade(pair: Pair, distances: Sequence[Distance]) -> Grade:
    """By total variation, missing cells included; a column that became constant is lost."""
    before, after = pair.before, pair.after
    measured = [found.value for found in distances if found.name == TOTAL_VARIATION]
    if not measured and max(len(before.present), len(after.present)) < MIN_ROWS_SHOWN:
        return Grade.UNKNOWN
    if _became_constant(pair):
        return Grade.LOST
    moved = max([*measured, abs(before.nulls - after.nulls)])
    return Grade.GOOD if moved < GOOD else Grade.LOST if moved > LOST else Grade.USABLE


def reasons(pair: Pair, distances: Sequence[Distance]) -> tuple[str, ...]:
    """What is wrong with a column, in words; a label is named only if five original rows have it."""
    if _became_constant(pair):
        return ("every released row has the same value",)
    found = list(_reasons(pair))
    total = next((one for one in distances if one.name == TOTAL_VARIATION), None)
    if total is not None and total.value >= GOOD:
        moved = f"total variation {fixed(total.value, 2)}"
        found.append(moved if total.beyond else f"{moved}, which sampling alone may give")
    return tuple(found)


def in_order_of_gravity(columns: Sequence[ColumnFacts]) -> tuple[ColumnFacts, ...]:
    """The worst first; those without a grade last."""

    def gravity(facts: ColumnFacts) -> tuple[int, float]:
        total = facts.distance(TOTAL_VARIATION)
        place = GRADES.index(facts.grade) if facts.grade in GRADES else len(GRADES)
        return place, -(total.value if total else 0.0)

    return tuple(sorted(columns, key=gravity))


def _reasons(pair: Pair) -> Iterator[str]:
    before, after = pair.before.present, pair.after.present
    if abs(pair.before.nulls - pair.after.nulls) >= MIN_SHARE:
        yield f"missing cells {percent(pair.before.nulls)} before, {percent(pair.after.nulls)} after"
    if min(len(before), len(after)) < MIN_ROWS_SHOWN:
        return
    if pair.scale == "label":
        yield from _of_labels(pair)
        return
    low, high = after.min(), after.max()
    cut = float(np.mean((before < low) | (before > high)))
    if cut >= MIN_SHARE and cut * len(before) >= MIN_ROWS_SHOWN:
        yield f"{percent(cut)} of the original rows lie outside the released range"
    beyond = float(np.mean((after < before.min()) | (after > before.max())))
    if beyond >= MIN_SHARE:
        yield f"{percent(beyond)} of the released rows lie outside the original's range"


def _of_labels(pair: Pair) -> Iterator[str]:
    one, two = (
        np.bincount(side.present.astype(np.intp), minlength=len(pair.labels)) for side in (pair.before, pair.after)
    )
    known = one >= MIN_ROWS_SHOWN
    gone = np.flatnonzero(known & (two == 0))
    if len(gone):
        named = ", ".join(
            text(pair.labels[code], 30) for code in gone[np.argsort(-one[gone], kind="stable")][:MAX_NAMED]
        )
        more = ", …" if len(gone) > MAX_NAMED else ""
        of = f"{count(len(gone))} of {count(int(known.sum()))} labels that {MIN_ROWS_SHOWN} rows or more have"
        yield f"{of} {'is' if len(gone) == 1 else 'are'} gone ({named}{more})"
    new = int(np.count_nonzero((one == 0) & (two > 0)))
    if new:
        yield f"{count(new)} released {'label occurs' if new == 1 else 'labels occur'} in no original row"


def _became_constant(pair: Pair) -> bool:
    """Whether all released cells are the same, missing ones among them, although the original's are not."""
    return _is_constant(pair.after.all) and not _is_constant(pair.before.all)


def _is_constant(values: np.ndarray) -> bool:
    return bool(np.isnan(values).all()) or len(np.unique(values)) == 1
