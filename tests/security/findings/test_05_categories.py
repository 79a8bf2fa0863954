"""Finding 5: categories of pandas published people who are not in the table, and names passed as categories."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dipriv

RNG = np.random.default_rng(0)
NAMES = [f"Person {number:04}" for number in range(1000)]
DOCTORS = ["A", "B", "C"]
ABSENT = [f"Doctor {number}" for number in range(300)]


def part() -> pd.DataFrame:
    """A part of a larger table: its type lists 300 doctors whom no row has."""
    doctor = pd.Categorical(RNG.choice(DOCTORS, 400), categories=[*ABSENT[:150], *DOCTORS, *ABSENT[150:]])
    return pd.DataFrame({"doctor": doctor, "age": RNG.integers(20, 80, 400)})


PUBLIC = pd.DataFrame({"doctor": DOCTORS * 20, "age": range(60)})
WAYS: dict[str, dict[str, Any]] = {
    "private": {},
    "labels read": {"labels": "public"},
    "hold-out": {"reference": "holdout"},
    "public": {"public": PUBLIC},
    "kept": {"keep": ["doctor"]},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_categories_without_rows_do_not_appear(way: str, library: str) -> None:
    frame: Any = part()
    if library == "polars":
        categories = pl.Enum(frame["doctor"].cat.categories.tolist())
        frame = pl.DataFrame({"doctor": pl.Series(frame["doctor"].tolist(), dtype=categories), "age": frame["age"]})
    release = dipriv.privatize(frame, 5.0, seed=1, **WAYS[way])
    column = release.data["doctor"]
    listed = column.cat.categories.tolist() if library == "pandas" else column.dtype.categories.to_list()
    kind = release.schema.get("doctor")
    assert {*column.to_list()} <= {*listed} <= {*DOCTORS, "(other)"}
    assert {*(getattr(kind, "levels", None) or ())} <= {*DOCTORS, "(other)"}
    assert "Doctor 7" not in str(release.guarantee) + repr(release)


def test_names_as_categories_become_others() -> None:
    frame = pd.DataFrame({"name": pd.Categorical(NAMES)})
    for seed in range(5):
        release = dipriv.privatize(frame, 1.0, seed=seed)
        assert {*release.data["name"]} == {"(other)"}
        assert release.data["name"].cat.categories.tolist() == ["(other)"]


@pytest.mark.parametrize("way", ["labels read", "hold-out"])
def test_names_as_categories_are_free_text_for_other_references(way: str) -> None:
    with pytest.raises(dipriv.SchemaError, match="looks like free text"):
        dipriv.privatize(pd.DataFrame({"name": pd.Categorical(NAMES)}), 1.0, **WAYS[way])
