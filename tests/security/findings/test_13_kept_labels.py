"""Finding 13: kept columns with categories listed the labels of rows that are not released."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dipriv

ROWS = 400
KEYS = [f"key {number:03}" for number in range(ROWS)]
AGES = np.random.default_rng(0).integers(20, 80, ROWS)
WAYS: dict[str, dict[str, Any]] = {
    "hold-out": {"reference": "holdout"},
    "unit": {"unit": "person", "rows_per_unit": 2},
}


def frame(library: str) -> Any:
    columns = {"age": AGES, "person": np.arange(ROWS) // 5}
    if library == "arrow":
        return pa.table({**columns, "k": pa.array(KEYS).dictionary_encode()})
    if library == "polars":
        return pl.DataFrame({**columns, "k": pl.Series(KEYS, dtype=pl.Enum(KEYS))})
    table = pd.DataFrame({**columns, "k": pd.Categorical(KEYS)})
    if library == "pandas, index":
        return table.assign(k="same").set_index(pd.CategoricalIndex(KEYS))
    if library == "pandas, levels":
        return table.assign(k="same").set_index(pd.MultiIndex.from_arrays([KEYS, AGES]))
    return table


def listed(library: str, data: Any) -> list[str]:
    if library == "arrow":
        return [label for chunk in data["k"].chunks for label in chunk.dictionary.to_pylist()]
    if library == "polars":
        return list(data["k"].dtype.categories)
    if library == "pandas, index":
        return list(data.index.categories)
    return list(data.index.levels[0]) if library == "pandas, levels" else list(data["k"].cat.categories)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("library", ["pandas", "pandas, index", "pandas, levels", "polars", "arrow"])
def test_labels_of_rows_that_are_not_released_are_gone(library: str, way: str) -> None:
    release = dipriv.privatize(frame(library), 1.0, columns=["age"], keep=["k"], seed=1, **WAYS[way])
    rows = release.secrets.row_positions
    assert 0 < len(rows) < ROWS
    assert listed(library, release.data) == [KEYS[row] for row in rows]
