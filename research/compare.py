"""Ours against the paper's, cell by cell: the difference in standard errors, and whether it is agreement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

from research.protocol import Experiment, Row

REACH, TRIAL_ROUNDING = 0.97, 0.0005
"""A cell reaches the trial's from 97% of it on; the trial's numbers have three digits."""
SHARE, STANDARD_ERRORS, ORDER = 0.15, 4.0, 3.0
"""Agreement is within 15% or four combined standard errors; for constructions left open, within a factor of three."""


def difference(row: Row, paper_reps: int) -> float | None:
    """(ours - paper) / combined standard error; None without a number of the paper's."""
    if row.paper is None or not math.isfinite(row.paper.mean + row.mean):
        return None
    error = math.sqrt(row.sd**2 / row.reps + row.paper.sd**2 / paper_reps + row.paper.rounding**2 / 3)
    return (row.mean - row.paper.mean) / error


def verdict(row: Row, experiment: Experiment) -> str:
    """Agrees, differs, or for constructions left open, same order or not."""
    if row.paper is None:
        return ""
    if math.isinf(row.paper.mean) or math.isinf(row.mean):
        return "agrees" if row.paper.mean == row.mean else "differs"
    if row.method in experiment.order_only:
        close = 1 / ORDER <= row.mean / row.paper.mean <= ORDER
        return "same order" if close else "other order"
    z = difference(row, experiment.paper_reps)
    gap = max(0.0, abs(row.mean - row.paper.mean) - row.paper.rounding)
    return "agrees" if gap <= SHARE * row.paper.mean or (z is not None and abs(z) <= STANDARD_ERRORS) else "differs"


def reach(row: Row, experiment: Experiment) -> str:
    """Reaches or below, for cells that the trial has, too."""
    wanted = experiment.trial.get((row.setting, row.method, row.epsilon))
    if wanted is None:
        return ""
    return "reaches" if row.mean >= REACH * (wanted - TRIAL_ROUNDING) else "below"


def below(rows: Sequence[Row], first: str, second: str) -> dict[tuple[str, float], tuple[int, int]]:
    """{(setting, ε): in how many repetitions the first method is below the second, of how many}, where on record."""
    cells = {(row.setting, row.epsilon, row.method): row.values for row in rows if row.values}
    return {
        (setting, epsilon): (sum(a < b for a, b in zip(values, other, strict=True)), len(values))
        for (setting, epsilon, method), values in cells.items()
        if method == first and (other := cells.get((setting, epsilon, second)))
    }


def lost(rows: Sequence[Row], rivals: frozenset[str]) -> list[Row]:
    """The cells of DIP that some rival beats or equals, at the same setting and ε."""
    beaten = []
    for _, cells in groupby(sorted(rows, key=_place), key=_place):
        here = list(cells)
        best = min((row.mean for row in here if row.method in rivals), default=math.inf)
        beaten += [row for row in here if row.method.startswith("DIP") and row.mean >= best]
    return beaten


def sensitivity(rows: Sequence[Row]) -> list[tuple[Row, Row, float]]:
    """DIP at the smallest and the largest ε of a setting, with the difference in standard errors."""
    pairs = []
    dip = [row for row in rows if row.method.startswith("DIP") and ", penalty" not in row.method]
    for _, cells in groupby(sorted(dip, key=_line), key=_line):
        here = list(cells)
        low, high = min(here, key=lambda row: row.epsilon), max(here, key=lambda row: row.epsilon)
        error = math.sqrt(low.sd**2 / low.reps + high.sd**2 / high.reps)
        pairs.append((low, high, (low.mean - high.mean) / error if error else 0.0))
    return pairs


def _place(row: Row) -> tuple[str, float]:
    return row.setting, row.epsilon


def _line(row: Row) -> tuple[str, str]:
    return row.setting, row.method
