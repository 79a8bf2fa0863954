"""A table with rules of every kind, and rules checked without dipriv."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import dipriv

MAP = {"1..4": "low", "5..": "high"}
COMBINATIONS = [["x", 1], ["y", 2], ["y", 3], ["z", 5]]


def rows(n: int, seed: int = 0) -> pd.DataFrame:
    """Pay that adds up, stays that end after they begin, cities in their states, children without income."""
    rng = np.random.default_rng(seed)
    regular = np.round(rng.gamma(4, 8000, n), 2)
    overtime = np.where(rng.random(n) < 0.3, np.round(rng.gamma(2, 800, n), 2), 0.0)
    start = np.datetime64("2020-01-01", "s") + rng.integers(0, 1500, n).astype("timedelta64[D]")
    low = rng.integers(0, 50, n)
    pick = rng.integers(0, 4, n)
    group = rng.integers(1, 9, n)
    age = rng.integers(0, 90, n)
    return pd.DataFrame(
        {
            "gross": np.round(regular + overtime, 2),
            "regular": regular,
            "overtime": overtime,
            "rate": regular / np.where(low == 0, np.nan, low),
            "start": start,
            "end": start + rng.integers(0, 60, n).astype("timedelta64[D]"),
            "low": low,
            "high": low + rng.integers(0, 30, n),
            "state": np.array([row[0] for row in COMBINATIONS])[pick],
            "city": np.array([row[1] for row in COMBINATIONS])[pick],
            "group": group,
            "class": np.where(group <= 4, "low", "high"),
            "age": age,
            "income": np.where(age < 15, np.nan, np.round(rng.gamma(3, 10000, n))),
            "married": np.where((age >= 15) & (rng.random(n) < 0.5), "yes", "no"),
        }
    )


def schema(**kinds: Any) -> dipriv.Schema:
    return dipriv.Schema(
        {"group": dipriv.Discrete(levels=tuple(range(1, 9))), **kinds},
        rules=[
            "gross = regular + overtime",
            "rate = regular / low",
            "start <= end",
            "high >= low",
            "age < 15 => income is missing",
            "age < 15 => married = 'no'",
        ],
        functions={"class": {"of": "group", "map": MAP}},
        combinations=[{"columns": ["state", "city"], "rows": COMBINATIONS}],
    )


def broken(table: pd.DataFrame) -> dict[str, int]:
    """How many rows break each rule, counted without dipriv; a missing cell breaks none but those of its parts."""
    cents = (table[["gross", "regular", "overtime"]] * 100).round()
    parts = table[["regular", "overtime"]].notna().all(axis=1)
    rate = table["regular"] / table["low"].where(table["low"] != 0)
    near = (table["rate"] - rate).abs() <= 1e-9 * rate.abs() + 1e-9
    found = {
        "sum": parts & (cents["gross"] != cents["regular"] + cents["overtime"]),
        "sum missing": ~parts & table["gross"].notna(),
        "ratio": ~(near | (rate.isna() & table["rate"].isna())),
        "dates": table["end"].notna() & ~(table["start"] <= table["end"]),
        "numbers": table["high"].notna() & ~(table["low"] <= table["high"]),
        "function": table["group"].notna() & ((table["group"] <= 4) != (table["class"] == "low")),
        "income": (table["age"] < 15) & table["income"].notna(),
        "married": (table["age"] < 15) & table["married"].notna() & (table["married"] != "no"),
        "pairs": table["state"].notna()
        & ~pd.Series(list(zip(table["state"], table["city"], strict=True)), index=table.index).isin(
            [tuple(row) for row in COMBINATIONS]
        ),
    }
    return {name: int(rows.sum()) for name, rows in found.items()}


NONE_BROKEN = dict.fromkeys(broken(rows(5)), 0)
