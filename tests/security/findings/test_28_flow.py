"""Cells of rows that are not released, types that one cell decides, and refusals by a cell after ε is spent."""

from __future__ import annotations

import datetime as dt
import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dipriv
from dipriv._tables.any_values import array_from_any
from dipriv._tables.fitted_columns import label_of_others
from dipriv._tables.frames import read
from dipriv.ledger import Ledger
from dipriv.references import Grouped
from dipriv.release.estimator import as_table
from tests.security.findings.test_03_second_budget import empty

__all__ = ["empty"]  # a fixture

ROWS = 200
NAMES = [f"the long name of person {number:03}" for number in range(ROWS)]
GONE = "the long name of somebody else"
CELLS = [*NAMES, *[GONE] * 5]
NUMBERS = np.random.default_rng(0).integers(0, 9, ROWS + 5)
PERSONS = np.arange(ROWS + 5) // 4
TEXTS, CODED = pa.array(CELLS), pa.array(CELLS).dictionary_encode()
ARROW: dict[str, pa.Array] = {
    "text": TEXTS,
    "view": TEXTS.cast(pa.string_view()),
    "list": pa.array([[cell] for cell in CELLS]),
    "list of views": pa.array([[cell] for cell in CELLS], pa.list_(pa.string_view())),
    "map": pa.array([[(cell, 1)] for cell in CELLS], pa.map_(pa.string(), pa.int8())),
    "pair": pa.array([[cell, cell] for cell in CELLS], pa.list_(pa.string(), 2)),
    "dictionary": CODED,
    "dictionary of views": pa.DictionaryArray.from_arrays(CODED.indices, CODED.dictionary.cast(pa.string_view())),
    "struct of a dictionary": pa.StructArray.from_arrays([CODED], ["a"]),
    "list of dictionaries": pa.ListArray.from_arrays(range(ROWS + 6), CODED),
    "dictionary of structs": pa.DictionaryArray.from_arrays(
        CODED.indices, pa.StructArray.from_arrays([CODED[: ROWS + 1]], ["a"])
    ),
    "runs": pa.RunEndEncodedArray.from_arrays(pa.array(range(1, ROWS + 6), pa.int32()), CODED),
    "union": pa.UnionArray.from_dense(
        pa.array(np.zeros(ROWS + 5), pa.int8()), pa.array(range(ROWS + 5), pa.int32()), [TEXTS, pa.array([1])]
    ),
    "extension": pa.ExtensionArray.from_storage(pa.json_(pa.string()), TEXTS),
}
ENUM = pl.Enum([GONE, *NAMES[::-1]])
POLARS: dict[str, pl.Series] = {
    "text": pl.Series(CELLS),
    "bytes": pl.Series([cell.encode() for cell in CELLS]),
    "list": pl.Series([[cell] for cell in CELLS]),
    "struct": pl.Series([{"a": cell} for cell in CELLS]),
    "pairs": pl.Series([[[cell, cell]] for cell in CELLS], dtype=pl.Array(pl.String, (1, 2))),
    "category": pl.Series(CELLS, dtype=pl.Categorical),
    "list of categories": pl.Series([[cell] for cell in CELLS], dtype=pl.List(pl.Categorical)),
    "enum": pl.Series(CELLS, dtype=ENUM),
    "struct of an enum": pl.Series([{"a": cell} for cell in CELLS], dtype=pl.Struct({"a": ENUM})),
    "list of enums": pl.Series([[cell] for cell in CELLS], dtype=pl.List(ENUM)),
    "wide integers": pl.Series(
        [{"a": number, "b": cell} for number, cell in enumerate(CELLS)],
        dtype=pl.Struct({"a": pl.Int128, "b": pl.String}),
    ),
}


WAYS: dict[str, dict[str, Any]] = {
    "slice": {},
    "hold-out": {"reference": "holdout"},
    "unit": {"unit": "person", "rows_per_unit": 2},
}


@pytest.mark.parametrize("way", WAYS)
def test_kept_cells_of_arrow_have_no_buffers_of_other_rows(way: str) -> None:
    table = pa.table({"x": NUMBERS, "person": PERSONS, **ARROW})
    for name in ARROW:  # control
        assert GONE.encode() in pickle.dumps(table[:ROWS].column(name)), name
    release = dipriv.privatize(table[:ROWS], 1.0, keep=[*ARROW], seed=1, **options(way))
    rows = positions(release)
    for name, cells in ARROW.items():
        found = release.data.column(name)
        assert found.type == cells.type
        assert found.to_pylist() == [cells[row].as_py() for row in rows]
        check(pickle.dumps(found), rows, name)


@pytest.mark.parametrize("way", WAYS)
def test_kept_cells_of_polars_have_no_buffers_of_other_rows(way: str) -> None:
    """Those of a pickle, or an Arrow file, had the names of persons who were held out, or never in the table."""
    table = pl.DataFrame({"x": NUMBERS, "person": PERSONS, **POLARS})
    assert GONE.encode() in pickle.dumps(table[:ROWS])  # control
    release = dipriv.privatize(table[:ROWS], 1.0, keep=[*POLARS], seed=1, **options(way))
    rows = positions(release)
    for name, cells in POLARS.items():
        found, file = release.data[name], io.BytesIO()
        assert found.to_list() == cells[rows].to_list()
        lists_labels = "enum" in name or "categor" in name  # those of the released rows
        assert found.dtype.base_type() == cells.dtype.base_type()
        assert lists_labels or found.dtype == cells.dtype
        found.to_frame().write_ipc(file)
        check(pickle.dumps(found) + file.getvalue(), rows, name)
    assert release.data["enum"].dtype == pl.Enum([NAMES[row] for row in reversed(rows)])


def test_kept_cells_of_pandas_have_no_labels_of_other_rows() -> None:
    names = ["dictionary", "struct of a dictionary", "list of dictionaries", "dictionary of views"]
    table = pa.table({"x": NUMBERS, **{name: ARROW[name] for name in names}}).to_pandas(types_mapper=pd.ArrowDtype)
    assert GONE.encode() in pickle.dumps(table[:ROWS])  # control
    release = dipriv.privatize(table[:ROWS], 1.0, keep=names, seed=1)
    assert (release.data.dtypes[names] == table.dtypes[names]).all()
    assert GONE.encode() not in pickle.dumps(release)


def options(way: str) -> dict[str, Any]:
    return WAYS[way] if way == "unit" else {"drop": ["person"], **WAYS[way]}


def positions(release: Any) -> list[int]:
    rows = release.secrets.row_positions
    return [*range(ROWS)] if rows is None else rows.tolist()


def check(written: bytes, rows: list[int], name: str) -> None:
    """Nothing but the names of these rows is written."""
    assert GONE.encode() not in written, name
    assert not [row for row in {*range(ROWS)} - {*rows} if NAMES[row].encode() in written], name
    assert NAMES[rows[0]].encode() in written, name  # control


@pytest.mark.parametrize(("given", "later"), [("whole", False), ("text", False), ("whole", True)])
def test_no_row_changes_the_order_of_categories(given: Any, later: bool) -> None:
    """The label that 1 and "1" are was where the first of the cells, not of the categories, was."""
    categories = pd.Index([1, "3", "2", "1"], dtype=object)
    found = []
    for last in (1, "1"):
        cells = [*["1"] * 200, *["2"] * 200, *["3"] * 100, last]
        table = pd.DataFrame({"c": pd.Categorical(cells, categories=categories, ordered=True)})
        if later:
            dip = dipriv.DIP(2.0, seed=1, types={"c": given}).fit(table)
            found.append(dip._typed(as_table(table)).whole_array("c"))
        else:
            found.append(dipriv.privatize(table, 2.0, seed=1, types={"c": given}).data["c"].cat.categories.to_list())
    if later:
        found = [[label for label in array.dictionary.to_pylist() if label is not None] for array in found]
    assert found[0] == found[1]
    order = [int(label) for label in found[0] if label != "(other)"]
    assert order == [1, 3, 2]


@pytest.mark.parametrize("odd", [2.5, "secret", None, True, 2**70, dt.date(2020, 1, 1)], ids=repr)
def test_one_cell_of_a_list_changes_no_type(odd: Any) -> None:
    """numpy finds one type for all cells: numbers with a fraction made all columns doubles, text was refused."""
    rows = np.random.default_rng(1).integers(0, 50, (ROWS, 2)).tolist()
    other = [[odd, 1], *rows[1:]]
    fitted = [dipriv.DIP(1.0, seed=1).fit(of) for of in (rows, other)]
    assert {column.facts.arrow_type for dip in fitted for column in dip.mechanism_.columns} == {pa.float64()}
    assert [dip.transform(of).dtype for dip in fitted for of in (rows, other)] == [np.dtype(float)] * 4
    released = [fitted[0].transform(of) for of in (rows, other)]
    assert np.array_equal(released[0][1:], released[1][1:], equal_nan=True)


def test_a_null_label_in_one_part_is_a_missing_cell() -> None:
    """Arrow does not unify dictionaries with null labels: the transform failed after ε was spent."""
    full = pa.array(["a", "b"] * 100).dictionary_encode(null_encoding="encode")
    some = pa.array([*["a", "b"] * 100, None]).dictionary_encode(null_encoding="encode")
    assert some.dictionary.null_count  # control
    dip = dipriv.DIP(1.0).fit(pa.table({"c": pa.chunked_array([full, full])}))
    assert dip.transform(pa.table({"c": pa.chunked_array([full, some])})).num_rows == 401
    batches = [pa.record_batch({"c": of}) for of in (full, some)]
    assert dipriv.privatize(lambda: iter(batches), 1.0).data.to_table().num_rows == 401


@pytest.mark.parametrize("fitted", [range(ROWS), [f"t{n % 3}" for n in range(ROWS)]], ids=["numbers", "labels"])
@pytest.mark.parametrize("counted", [True, False])
def test_runs_of_dictionaries_do_not_end_a_stream(fitted: Any, counted: bool, empty: Ledger) -> None:
    table = pa.table({"x": pa.array(fitted)})
    more: dict[str, Any] = {"ledger": empty, "dataset": "people"} if counted else {}
    dip = dipriv.DIP(1.0, **more).fit(table)
    runs = pa.RunEndEncodedArray.from_arrays([2, 3, 4], pa.array(["1", "t1", None]).dictionary_encode())
    later = [pa.record_batch({"x": of}) for of in (runs, runs[1:])]
    assert [batch.num_rows for batch in dip.transform_batches([*table.to_batches(), *later])] == [ROWS, 4, 3]


def test_messages_show_no_names_of_fields(tmp_path: Path) -> None:
    """They may come from cells, as those of JSON documents do."""
    fields = pa.array([{"somebody@example.org": "ill"}] * ROWS)
    one, other = (pa.record_batch({"x": NUMBERS[:ROWS], "m": of}) for of in (NAMES, fields))
    for name, batch in (("a", one), ("b", other)):
        pq.write_table(pa.Table.from_batches([batch]), tmp_path / f"{name}.parquet")
    coded = pa.DictionaryArray.from_arrays(pa.array([0] * ROWS), fields[:1])
    typed: dict[str, Any] = {"types": {"m": "text"}}
    tries: list[tuple[Any, dict[str, Any]]] = [
        (lambda: iter([one, other]), {}),
        (lambda: iter([other, one]), {"keep": ["m"]}),
        (pa.Table.from_batches([other]), typed),
        (pa.table({"x": NUMBERS[:ROWS], "m": coded}), typed),
        (lambda: iter([other]), typed),
        (tmp_path, {}),
    ]
    for data, more in tries:
        with pytest.raises(dipriv.DiprivError, match=r"struct|dictionary") as caught:
            dipriv.privatize(data, 1.0, **more).data.to_table()
        assert "somebody" not in str(caught.value)


@pytest.mark.parametrize("odd", ["somebody", "9", None])
def test_a_group_that_does_not_exist_is_not_shown(odd: str | None) -> None:
    table = pd.DataFrame({"g": np.arange(ROWS) % 2, "x": NUMBERS[:ROWS] / 7})
    dip = dipriv.DIP(1.0, reference=Grouped("g")).fit(table)
    assert len(dip.transform(pd.DataFrame({"g": ["0", "1"], "x": [0.5, 0.25]}))) == 2
    with pytest.raises(dipriv.ReferenceDataError, match="no reference rows"):
        dip.transform(pd.DataFrame({"g": ["0", "1", odd], "x": [0.5, 0.25, 0.1]}))


def test_numbers_may_begin_with_zeros_where_numbers_are_wanted() -> None:
    """A reader that guesses types makes 7 of 007; beside a cell that is text, it was missing."""
    cells = ["007", "7", " 07", "-07.50", "00", "0", "0x1", "+0010", "0.5", "00e1", "001-01-01"]
    found = array_from_any(pa.array(cells), pa.float64()).to_pylist()
    assert found == [7, 7, 7, -7.5, 0, 0, None, 10, 0.5, 0, None]
    assert array_from_any(pa.array(cells), pa.int8()).to_pylist()[:3] == [7, 7, 7]
    assert array_from_any(pa.array(["007", "7"]), pa.float64(), ["7"]).to_pylist() == [None, None]


@pytest.mark.parametrize("kind", ["interval", "period"])
def test_the_label_of_others_follows_from_the_type(kind: str) -> None:
    """Without categories it was a text, with one a null."""
    values: Any = pd.IntervalIndex.from_breaks([0, 1]) if kind == "interval" else pd.PeriodIndex(["2020-01"], freq="M")
    codes = np.full(ROWS, -1)
    tables = [pd.DataFrame({"c": pd.Categorical.from_codes(codes, categories=of)}) for of in (values[:0], values)]
    found = [label_of_others(read(table).column("c")).to_pylist() for table in tables]
    assert found == [[None], [None]]
    enum = pl.DataFrame({"c": pl.Series([None], dtype=pl.Enum([]))})
    assert label_of_others(read(enum).column("c")).to_pylist() == ["(other)"]


def test_times_of_day_of_later_rows_have_their_fractions() -> None:
    cells = [dt.time(hour % 24, 1, 2, 345) for hour in range(ROWS)]
    for column in (pd.Series(cells, dtype=object), pd.Series(cells, dtype="category")):
        table = pd.DataFrame({"at": column})
        dip = dipriv.DIP(1.0, seed=1).fit(table)
        assert dip._typed(as_table(table)).whole_array("at").to_pylist() == cells


def test_further_columns_of_a_table_are_not_read_where_the_data_is(tmp_path: Path) -> None:
    table = pd.DataFrame({"x": NUMBERS})
    dipriv.DIP(1.0).fit(table).export_local(tmp_path / "reference")
    local = dipriv.load_local(tmp_path / "reference")
    assert local.privatize(table.assign(more=1)).columns.to_list() == ["x"]
    with pytest.raises(dipriv.InputError, match="does not have"):
        local.privatize({"x": 1, "more": 1})
