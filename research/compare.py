"""Measured beside printed numbers: the difference in standard errors, and what counts as agreement."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from research.protocol import Experiment, Row

REACH, TRIAL_ROUNDING = 0.97, 0.0005
"""A cell reaches the trial's number from 97% of it on; the trial's numbers are printed with three digits."""
SHARE, STANDARD_ERRORS, ORDER = 0.15, 4.0, 3.0
"""Agreement is within 15% or four combined standard errors; a factor of 3 where the paper is vague."""


def comparison(experiment: Experiment, rows: Sequence[Row]) -> dict[str, Any]:
    """What the measurements say about the paper's claims, as plain data."""
    return {
        "cells": Counter(kind for row in rows if (kind := verdict(row, experiment))),
        "rivals": sorted(experiment.rivals),
        "not beaten": [_place(row) for row in lost(rows, experiment.rivals)] if experiment.rivals else [],
        "sensitivity": _spread(sensitivity(rows)) if experiment.insensitive else None,
        "below the trial": [_place(row) for row in rows if verdict(row, experiment) == "below"],
        "ordered": [ordered(rows, *pair) for pair in experiment.ordered],
    }


def difference(row: Row, paper_reps: int) -> float | None:
    """(ours - paper) / combined standard error; None where the paper has no finite number."""
    if row.paper is None or not math.isfinite(row.paper.mean + row.mean):
        return None
    error = math.sqrt(row.sd**2 / row.reps + row.paper.sd**2 / paper_reps + row.paper.rounding**2 / 3)
    return (row.mean - row.paper.mean) / error


def verdict(row: Row, experiment: Experiment) -> str:
    """Beside the paper: agrees or differs (same or other order); beside a trial: reaches or below; else empty."""
    wanted = experiment.trial.get((row.setting, row.method, row.epsilon))
    if wanted is not None:
        return "reaches" if row.mean >= REACH * (wanted - TRIAL_ROUNDING) else "below"
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


def ordered(rows: Sequence[Row], first: str, second: str) -> dict[str, Any]:
    """In how many repetitions `first` is below `second`, for each setting and ε at which both are on record."""
    cells = {(row.setting, row.epsilon, row.method): row.values for row in rows if row.values}
    counts = [
        {"setting": setting, "epsilon": epsilon, "below": _below(values, other), "of": len(values)}
        for (setting, epsilon, method), values in cells.items()
        if method == first and (other := cells.get((setting, epsilon, second)))
    ]
    return {"first": first, "second": second, "counts": counts}


def _below(values: Sequence[float], others: Sequence[float]) -> int:
    return sum(value < other for value, other in zip(values, others, strict=True))


def lost(rows: Sequence[Row], rivals: frozenset[str]) -> list[Row]:
    """The cells of DIP that some rival beats or equals, at the same setting and ε."""
    beaten = []
    for _, cells in groupby(sorted(rows, key=_cell), key=_cell):
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


def _spread(pairs: Sequence[tuple[Row, Row, float]]) -> dict[str, float]:
    low, high, _ = pairs[0]
    return {
        "smallest": low.epsilon,
        "largest": high.epsilon,
        "settings": len(pairs),
        "within one standard deviation": sum(abs(a.mean - b.mean) < min(a.sd, b.sd) for a, b, _ in pairs),
        "within one standard error": sum(abs(z) < 1 for *_, z in pairs),
        "most standard errors": max(abs(z) for *_, z in pairs),
    }


def _place(row: Row) -> str:
    return f"{row.setting}, {row.method}, ε = {row.epsilon:g}"


def _cell(row: Row) -> tuple[str, float]:
    return row.setting, row.epsilon


def _line(row: Row) -> tuple[str, str]:
    return row.setting, row.method
