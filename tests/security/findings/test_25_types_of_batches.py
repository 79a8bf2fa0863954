"""Types of batches, of categories and of arrays that follow from cells; tables of few kinds of rows, in their order."""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dipriv
from dipriv.errors import BudgetError
from dipriv.ledger import Ledger
from tests.security.findings.test_03_second_budget import empty
from tests.security.findings.test_22_ledger_edges import spent

__all__ = ["empty"]  # a fixture


def chunks(text: str) -> Iterator[pa.RecordBatch]:
    """Each has the types that pandas reads from its cells."""
    for chunk in pd.read_csv(io.StringIO(text), chunksize=100):
        yield pa.RecordBatch.from_pandas(chunk, preserve_index=False)


@pytest.mark.parametrize("cell", ["", "40.5", "50k", "True"])
def test_one_cell_changes_neither_the_types_of_a_stream_nor_ends_it(cell: str, empty: Ledger) -> None:
    """The batch had another type, or the stream failed after rows had left."""
    cells = [str(age) for age in np.random.default_rng(1).integers(18, 90, 400)]
    fitted = pd.DataFrame({"age": list(map(int, cells)), "x": 0.5})
    dip = dipriv.DIP(1.0, ledger=empty, dataset="people").fit(fitted)
    cells[250] = cell
    lines = ["age,x", *(f"{age},0.5" for age in cells)]
    released = list(dip.transform_batches(chunks("\n".join(lines))))
    assert [batch.num_rows for batch in released] == [100] * 4
    assert {batch.schema for batch in released} == {pa.schema({"age": pa.int64(), "x": pa.float64()})}
    assert [record.state for record in empty.records("people")] == ["done"]


@pytest.mark.parametrize(
    ("column", "odd"),
    [
        ([*map(str, range(300))], "50k"),
        (["true", "false"] * 150, "maybe"),
        ([f"2020-01-{1 + day % 28:02d}" for day in range(300)], "soon"),
        (["1", "2", "3"] * 100, "K"),
        (["1.5", "2.25"] * 150, "-"),
    ],
    ids=["number", "boolean", "date", "code", "decimal"],
)
def test_an_odd_cell_does_not_change_the_other_rows_of_its_batch(column: list[str], odd: str, tmp_path: Any) -> None:
    """It made the chunk a text, and all other cells of it were missing."""
    kind = {"K": "text", "soon": "date"}.get(odd)
    frame = pd.read_csv(io.StringIO("x\n" + "\n".join(column)), dtype=str if kind == "text" else None)
    if kind == "date":
        frame["x"] = pd.to_datetime(frame["x"])
    dip = dipriv.DIP(20.0, seed=1, public=frame, types={"x": "text"} if kind == "text" else None).fit(frame)
    path = tmp_path / "reference"
    dip.export_local(path)
    found = []
    for last in (column[-1], odd):
        cells = [*column[:-1], last]
        chunk = pd.read_csv(io.StringIO("x\n" + "\n".join(cells)), keep_default_na=False)
        (batch,) = dip.transform_batches([pa.RecordBatch.from_pandas(chunk, preserve_index=False)])
        found.append(
            [batch["x"].to_pylist()[:-1], dipriv.load_local(path, seed=1).privatize(chunk)["x"].to_list()[:-1]]
        )
    assert found[0] == found[1]
    assert len({*found[0][0]}) > 1


def test_public_labels_that_a_type_has_no_room_for_are_refused_before_spending(empty: Ledger) -> None:
    """Indices were out of bounds after ε was spent, unless a row had one label more."""
    public = pd.DataFrame({"code": [f"{code:03d}" for code in range(200)] * 2})
    narrow = pa.table({"code": public["code"][:100].astype("category").tolist()})
    narrow = narrow.set_column(
        0, "code", narrow["code"].dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string()))
    )
    declared = dipriv.Schema({"code": dipriv.Categorical(levels=tuple(public["code"].unique()))})
    for options in ({"public": public}, {"schema": declared}):
        with pytest.raises(dipriv.SchemaError, match="room for 128"):
            dipriv.privatize(narrow, 1.0, ledger=empty, dataset="people", **options)
    assert not empty.datasets()
    enum = pl.DataFrame({"code": public["code"][:10].tolist()}).cast(pl.Enum(public["code"][:10].tolist()))
    assert len(dipriv.privatize(enum, 1.0, public=public).data) == 10


def test_batches_have_the_index_types_of_fit() -> None:
    """How wide indices are follows from how many categories occur."""
    table = pd.DataFrame({"c": pd.Categorical(np.random.default_rng(2).choice(["a", "b"], 400))})
    dip = dipriv.DIP(1.0).fit(table)
    wide = table.assign(c=pd.Categorical(table["c"], [*"ab", *map(str, range(200))]))
    types = {
        batch.schema.types[0]
        for frame in (table, wide)
        for batch in dip.transform_batches([pa.RecordBatch.from_pandas(frame)])
    }
    assert len(types) == 1


PERIODS = pd.period_range("2024-01", periods=6, freq="M")
INTERVALS = pd.interval_range(0, 60, freq=10)
DAYS = pd.interval_range(pd.Timestamp("2024-01-01"), periods=6)


@pytest.mark.parametrize("values", [PERIODS, INTERVALS, INTERVALS.map(lambda one: one), DAYS], ids=str)
def test_the_type_of_categories_does_not_tell_which_labels_occur(values: Any) -> None:
    """A period that no private row has was released as text, and the others were not."""
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 5, 600)
    train = pd.DataFrame({"m": pd.Series(values[rng.integers(0, 6, 600)]).astype("category")})
    found = []
    for sixth in (codes[0], 5):
        codes[0] = sixth
        private = pd.DataFrame({"m": pd.Series(values[codes]).astype("category")})
        released = [
            dipriv.DIP(1.0, seed=1).fit(train).transform(private),
            dipriv.privatize(private, 1.0, seed=1, public=train).data,
            dipriv.privatize(private, 1.0, seed=1, schema=dipriv.infer_schema(train)).data,
        ]
        found.append([frame["m"].cat.categories for frame in released])
    for one, other in zip(*found, strict=True):
        assert one.dtype == other.dtype == values.dtype
        assert list(one) == list(other) == list(values)


def test_a_known_table_of_yes_and_no_is_known_by_its_order(empty: Ledger) -> None:
    """Its counts may be those of other people by chance, its order not: transform released it without counting it."""
    rng = np.random.default_rng(4)
    clinic, ward = (pd.DataFrame({"ill": rng.random(n) < 0.1}) for n in (4000, 1000))
    dipriv.privatize(clinic, 1.0, ledger=empty, dataset="clinic")
    dip = dipriv.DIP(1.0, ledger=empty, dataset="ward").fit(ward)
    with pytest.raises(BudgetError, match="'clinic'"):
        dip.transform(clinic)
    other = clinic.sample(frac=1, random_state=5)  # other people may have the same counts
    dip.transform(other)
    assert spent(empty) == {"clinic": 1.0, "ward": 1.0}
    with pytest.raises(BudgetError, match="'ward'"):
        dipriv.privatize(other, 1.0, ledger=empty, dataset="other")


@pytest.mark.parametrize("value", [None, "x", 2**70, 2j, float("nan"), True, b"x", [1]])
def test_a_record_in_an_array_has_an_answer(value: Any, tmp_path: Any) -> None:
    """The array's type follows from the record, and types other than numbers were refused."""
    rng = np.random.default_rng(5)
    dipriv.DIP(1.0).fit(rng.normal(size=(400, 2))).export_local(tmp_path / "reference")
    local = dipriv.load_local(tmp_path / "reference")
    record = np.empty((1, 2), dtype=object)
    record[0, 0], record[0, 1] = 1.0, value
    arrays = [record] if isinstance(value, list) else [record, np.array([[1.0, value]])]
    for array in arrays:
        released = local.privatize(array)
        assert released.shape == (1, 2)
        assert released.dtype == np.float64
    with pytest.raises(dipriv.InputError, match="shape"):
        local.privatize(np.ones((1, 3)))


def test_an_odd_object_does_not_change_other_records(tmp_path: Any) -> None:
    """In a polars column of objects, all cells were missing if Arrow cannot have one of them."""
    dipriv.DIP(50.0).fit(pd.DataFrame({"x": np.arange(400.0)})).export_local(tmp_path / "reference")
    found = [
        dipriv.load_local(tmp_path / "reference", seed=1).privatize(
            pl.DataFrame({"x": pl.Series([*map(float, range(300)), odd], dtype=pl.Object)})
        )["x"][:300]
        for odd in (1.0, object())
    ]
    assert found[0].equals(found[1])
    assert np.corrcoef(found[0], np.arange(300.0))[0, 1] > 0.5  # control: they were read


def test_kept_columns_and_indexes_have_nothing_of_other_rows() -> None:
    """The pickle of a slice had the cells of the whole table, and levels of an index the categories of all."""
    names = [f"secret {number}" for number in range(600)]
    table = pa.table({"x": np.arange(600.0), "name": names}).slice(0, 300)
    released = dipriv.privatize(table, 1.0, keep=["name"]).data
    assert b"secret 1" in pickle.dumps(released)
    assert b"secret 500" not in pickle.dumps(released)
    index = pd.MultiIndex.from_arrays([pd.Categorical(names), range(600)])
    frame = pd.DataFrame({"x": np.arange(600.0)}, index=index).iloc[:300]
    released_index: Any = dipriv.privatize(frame, 1.0).data.index
    assert len(released_index.levels[0].categories) == 300


@pytest.mark.parametrize("public", [False, True])
def test_how_many_codes_a_batch_has_changes_no_other_row(public: bool) -> None:
    """One code more makes indices wider, and labels that had no room were others, or ended the stream."""
    codes = [f"{code:03d}" for code in range(200)]
    whole = pa.table({"code": pa.array(codes * 40).dictionary_encode()})
    dip = dipriv.DIP(8.0, seed=1, public=whole if public else None).fit(whole)
    found = []
    for last in (codes[0], "new"):
        some = pd.DataFrame({"code": pd.Categorical([*codes[:127] * 8, last])})
        table = pa.Table.from_pandas(some, preserve_index=False)
        streamed = pa.Table.from_batches(list(dip.transform_batches(table.to_batches())))
        found += [streamed["code"].to_pylist()[:-1], dip.transform(table)["code"].to_pylist()[:-1]]
    assert all(cells == found[0] for cells in found)
    assert {*found[0]} - {*codes[:128]}  # control: labels without room in the narrow type


@pytest.mark.parametrize("odd", ["123.45", "n/k"])
def test_one_cell_of_decimals_does_not_end_a_stream(odd: str) -> None:
    """Text was not read as decimal numbers, nor as durations."""
    prices = pa.array([f"{number}.25" for number in range(400)]).cast(pa.decimal128(10, 2))
    dip = dipriv.DIP(1.0, seed=1).fit(pa.table({"price": prices}))
    text = pa.record_batch({"price": [*(f"{number}.25" for number in range(99)), odd]})
    (batch,) = dip.transform_batches([text])
    assert batch.schema.types == [pa.decimal128(10, 2)]
    spans = pa.table({"span": pa.array(np.arange(400), pa.duration("ns"))})
    (batch,) = dipriv.DIP(1.0, seed=1).fit(spans).transform_batches([pa.record_batch({"span": ["1", odd]})])
    assert batch.num_rows == 2
