"""Tables keep their library, names, order and index, and row i of the release is the release of row i."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dipriv
from dipriv._tables import frames as tables
from dipriv.sources._fingerprint import fingerprint_of
from tests.unit.typed import CODES, NO_NOISE, ROWS, SEED, values

LIBRARIES = pytest.mark.parametrize(
    "library", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"]
)
COLUMNS = {
    "id": list(range(ROWS)),
    "größe ☃": values("real", holes=True),
    "": values("text", holes=False),
    "a\nb": values("whole", holes=False),
}


def columns_of(table: Any) -> dict[str, list[Any]]:
    if isinstance(table, pd.DataFrame):
        plain = table.astype(object).where(table.notna(), None)
        return {str(name): plain[name].tolist() for name in table.columns}
    return dict(table.to_pydict() if isinstance(table, pa.Table) else table.to_dict(as_series=False))


@LIBRARIES
def test_kept_columns_line_up_with_released_ones(library: Callable[..., Any]) -> None:
    table = library(COLUMNS)
    for name in ("größe ☃", "", "a\nb"):
        kept = [other for other in COLUMNS if other != name]
        release = dipriv.privatize(table, NO_NOISE, public=table, keep=kept, seed=SEED)
        assert type(release.data) is type(table)
        assert columns_of(release.data) == columns_of(table)
        assert release.secrets.row_positions.tolist() == list(range(ROWS))


@LIBRARIES
def test_the_hold_out_is_left_out_and_the_rest_stays_in_order(library: Callable[..., Any]) -> None:
    table = library(COLUMNS)
    release = dipriv.privatize(table, 1.0, reference="holdout", keep=["id", ""], seed=SEED)
    released = columns_of(release.data)
    assert list(released) == list(COLUMNS)
    assert released["id"] == release.secrets.row_positions.tolist() == sorted(release.secrets.row_positions.tolist())
    assert released[""] == [COLUMNS[""][row] for row in released["id"]]
    assert 0 < len(released["id"]) < ROWS
    assert columns_of(table) == columns_of(library(COLUMNS))


@LIBRARIES
def test_chosen_columns_come_in_the_order_of_the_table(library: Callable[..., Any]) -> None:
    release = dipriv.privatize(library(COLUMNS), 1.0, reference="holdout", columns=["a\nb", ""], keep=["id"], seed=SEED)
    assert list(columns_of(release.data)) == ["id", "", "a\nb"]


INDEXES = {
    "text": pd.Index([f"row {n}" for n in range(ROWS)], name="name"),
    "times": pd.date_range("2020-01-01", periods=ROWS, freq="h", tz="Europe/Paris"),
    "steps": pd.RangeIndex(10, 10 + 3 * ROWS, 3),
    "levels": pd.MultiIndex.from_arrays([CODES, range(ROWS)], names=["a", None]),
    "repeated": pd.Index(CODES),
    "shuffled": pd.Index(np.random.default_rng(SEED).permutation(ROWS)),
}


@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES.keys())
def test_pandas_keeps_its_index(index: pd.Index[Any]) -> None:
    frame = pd.DataFrame(COLUMNS).set_index(index)
    release = dipriv.privatize(frame, 1.0, reference="holdout", keep=["id"], seed=SEED)
    assert release.data.index.identical(index[release.secrets.row_positions])
    assert release.data["id"].tolist() == release.secrets.row_positions.tolist()
    pd.testing.assert_series_equal(release.data["id"], frame["id"].iloc[release.secrets.row_positions])


@pytest.mark.parametrize(
    "names",
    [
        pd.Index([7, 0, -3], name="number"),
        pd.Index([("a", 1), "a", 2.5], dtype=object),
        pd.MultiIndex.from_tuples([("a", "x"), ("a", "y"), ("b", "x")], names=["upper", "lower"]),
        pd.DatetimeIndex(["2020-01-01", "2020-01-02", "2020-05-01"]),
    ],
    ids=["whole numbers", "mixed", "levels", "times"],
)
def test_pandas_keeps_names_that_are_not_text(names: pd.Index[Any]) -> None:
    frame = pd.DataFrame({n: values("whole", holes=False) for n in range(3)})
    frame.columns = names
    release = dipriv.privatize(frame, 1.0, reference="holdout", keep=[str(names[1])], seed=SEED)
    assert release.data.columns.identical(names)
    assert release.data.iloc[:, 1].tolist() == frame.iloc[release.secrets.row_positions, 1].tolist()


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float16", "float32", "float64", "bool"])
def test_numpy_arrays_come_back_as_arrays(dtype: str) -> None:
    rows = np.array(CODES)[:, np.newaxis].astype(dtype)
    clear = dipriv.privatize(rows, NO_NOISE, public=rows, seed=SEED).data
    assert isinstance(clear, np.ndarray)
    assert clear.dtype == rows.dtype
    assert np.array_equal(clear, rows)
    wide = np.hstack([rows, rows[::-1]])
    release = dipriv.privatize(wide, 1.0, reference="holdout", keep=["x1"], seed=SEED)
    assert release.data.dtype == wide.dtype
    assert np.array_equal(release.data[:, 1], wide[release.secrets.row_positions, 1])
    assert not np.array_equal(release.data[:, 0], wide[release.secrets.row_positions, 0])


def test_numpy_keeps_nan() -> None:
    rows = np.array([np.nan if cell is None else cell for cell in values("real", holes=True)])[:, np.newaxis]
    clear = dipriv.privatize(rows, NO_NOISE, public=rows, seed=SEED).data
    assert np.array_equal(clear, rows, equal_nan=True)


def nan_and_null(cells: list[Any]) -> list[Any]:
    return ["NaN" if isinstance(cell, float) and math.isnan(cell) else cell for cell in cells]


@pytest.mark.parametrize("spread", [False, True], ids=["levels", "continuous"])
@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()], ids=str)
@pytest.mark.parametrize("library", ["arrow", "polars", "pandas"])
def test_nan_stays_nan_and_null_stays_null(library: str, kind: pa.DataType, spread: bool) -> None:
    noise = np.random.default_rng(SEED).normal(size=ROWS) if spread else np.zeros(ROWS)
    cells = [None if k == 0 else math.nan if k == 1 else k + x for k, x in zip(CODES, noise.tolist(), strict=True)]
    table: Any = pa.table({"x": pa.array(cells, pa.float64()).cast(kind)})
    if library == "polars":
        table = pl.from_arrow(table)
    if library == "pandas":
        table = pd.DataFrame({"x": pd.arrays.ArrowExtensionArray(table.column("x"))})

    def states(data: Any) -> list[str]:
        plain = pa.array(data["x"]) if isinstance(data, pd.DataFrame) else data["x"]
        listed = nan_and_null(plain.to_list() if isinstance(data, pl.DataFrame) else plain.to_pylist())
        return [str(cell) if cell in ("NaN", None) else "number" for cell in listed]

    clear = dipriv.privatize(table, NO_NOISE, public=table, seed=SEED).data
    noisy = dipriv.privatize(table, 1.0, reference="holdout", seed=SEED).data
    assert states(clear) == states(table)
    assert set(states(noisy)) == {"NaN", "None", "number"}


@LIBRARIES
@pytest.mark.parametrize("other", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_public_rows_may_come_from_another_library(library: Callable[..., Any], other: Callable[..., Any]) -> None:
    column = {"x": values("text", holes=True)}
    release = dipriv.privatize(library(column), NO_NOISE, public=other(column), seed=SEED)
    assert columns_of(release.data) == column


@pytest.mark.parametrize(
    ("mine", "theirs", "step"),
    [
        ("float32", "float64", 0.1),
        ("float64", "float32", 0.5),
        ("float64", "int64", 1),
        ("int8", "int64", 1),
        ("int64", "int8", 1),
        ("uint8", "float32", 1),
    ],
)
def test_public_rows_may_have_numbers_of_another_width(mine: str, theirs: str, step: float) -> None:
    frame = pd.DataFrame({"x": (np.array(CODES) * step).astype(mine)})
    public = pd.DataFrame({"x": (np.array(CODES) * step).astype(theirs)})
    release = dipriv.privatize(frame, NO_NOISE, public=public, seed=SEED)
    pd.testing.assert_frame_equal(release.data, frame)


def test_fingerprints_tell_slices_of_one_table_apart() -> None:
    table = pa.table({"x": values("whole", holes=True), "y": pa.array(values("text", holes=True)).dictionary_encode()})
    copy = pa.table({"x": values("whole", holes=True)[:100], "y": values("text", holes=True)[:100]})

    def fingerprint(rows: pa.Table, names: tuple[str, ...] = ("x", "y")) -> bytes:
        return fingerprint_of(tables.read(rows).batch().select(list(names)), bytes(32)).content()

    assert fingerprint(table.slice(0, 100)) == fingerprint(table.slice(0, 100))
    assert fingerprint(table.slice(0, 100)) != fingerprint(table.slice(100, 100))
    assert fingerprint(table.slice(0, 100), ("x",)) == fingerprint(copy, ("x",))
    dip = dipriv.DIP(1.0, reference="holdout", seed=SEED).fit(table.slice(0, 100))
    assert dip.transform(table.slice(100)).num_rows == ROWS - 100
    with pytest.raises(dipriv.DisclosureError):
        dip.transform(table.slice(0, 100))


def test_labels_looked_up_before_codes_are_cut_are_not_used_afterwards() -> None:
    table, labels = tables.read(pa.table({"zip": ["0123", "0199", "9999"]})), pa.array(["0123", "01"])
    assert table.all_cells("zip", labels).values.tolist() == [0, -1, -1]
    assert table.with_prefixes({"zip": 2}).all_cells("zip", labels).values.tolist() == [1, 1, -1]
