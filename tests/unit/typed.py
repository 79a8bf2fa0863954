"""Seven values of every sort, as lists to build columns from, and the law that each column's release obeys."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

import dipriv

ROWS = 300
SEED = 20
NO_NOISE = 1e9
"""With one column a row changes its level if its U is about 1e-9 from a boundary: one in 300 does with chance 1e-5."""

CODES = np.random.default_rng(SEED).integers(0, 7, ROWS).tolist()
HOLES = (np.random.default_rng(SEED + 1).random(ROWS) < 0.2).tolist()
PARIS = ZoneInfo("Europe/Paris")
START = dt.datetime(2020, 3, 28, 20)  # Paris loses an hour in the night that follows

OF_SORT: dict[str, Callable[[int], Any]] = {
    "whole": lambda k: k + 1,
    "real": lambda k: k + 0.25,
    "boolean": lambda k: k % 2 == 0,
    "text": lambda k: ("", "b", "a", "ä ☃", "7", "NaN", "x" * 50)[k],
    "date": lambda k: START.date() + dt.timedelta(days=k),
    "local time": lambda k: START + dt.timedelta(hours=k),
    "absolute time": lambda k: (START.replace(tzinfo=dt.UTC) + dt.timedelta(hours=k)).astimezone(PARIS),
    "duration": lambda k: dt.timedelta(seconds=k - 3),
    "time of day": lambda k: dt.time(17 + k),
    "decimal": lambda k: Decimal(7 * k - 20) / 4,
}


def values(sort: str, holes: bool) -> list[Any]:
    """A column of one sort; with holes, a fifth of it is None."""
    return [None if holes and hole else OF_SORT[sort](k) for k, hole in zip(CODES, HOLES, strict=True)]


def check_round_trip(table: Any, cells: Callable[[Any], list[Any]], type_of: Callable[[Any], Any]) -> None:
    """A one-column table keeps its type; without noise its cells, row by row; from a hold-out its levels."""
    before = cells(table)
    assert len(set(before)) > 1
    clear = dipriv.privatize(table, NO_NOISE, public=table, seed=SEED)
    assert type(clear.data) is type(table)
    assert type_of(clear.data) == type_of(table)
    assert [(type(cell), cell) for cell in cells(clear.data)] == [(type(cell), cell) for cell in before]

    noisy = dipriv.privatize(table, 1.0, reference="holdout", seed=SEED)
    after, rows = cells(noisy.data), noisy.secrets.row_positions.tolist()
    reference = [before[row] for row in sorted(set(range(ROWS)) - set(rows))]
    assert type_of(noisy.data) == type_of(table)
    assert len(after) == len(rows) < ROWS
    assert after != [before[row] for row in rows]
    assert set(after) == set(reference)
