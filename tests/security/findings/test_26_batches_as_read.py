"""Batches whose types and columns follow from their cells: a cell has one answer in whatever type it comes."""

from __future__ import annotations

import datetime as dt
import io
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dipriv
from dipriv.ledger import Ledger
from tests.security.findings.test_03_second_budget import empty

__all__ = ["empty"]  # a fixture

DAYS = [f"2020-01-{1 + day % 28:02d}" for day in range(300)]
CODES = ["01", "02", "003"] * 100
GUESSED: dict[str, tuple[list[str], str, dict[str, Any]]] = {
    "codes": (CODES, "K", {"dtype": str}),
    "codes that are missing": (CODES, "", {"dtype": str}),
    "words": (["TRUE", "FALSE", "TRUE"] * 100, "maybe", {"dtype": str}),
    "prices": (["1.50", "2.00", "3.25"] * 100, "?", {"dtype": str}),
    "flags": (["1", "0", "1"] * 100, "unknown", {"dtype": bool, "true_values": ["1"], "false_values": ["0"]}),
    "truth values as numbers": (
        ["True", "False", "True"] * 100,
        "unknown",
        {"converters": {"x": lambda x: x == "True"}},
    ),
    "large numbers": ([str(2**53 - number) for number in range(300)], "K", {}),
}


def read(cells: list[str], **options: Any) -> pd.DataFrame:
    frame: pd.DataFrame = pd.read_csv(io.StringIO("x\n" + "\n".join(f'"{cell}"' for cell in cells)), **options)
    return frame


@pytest.mark.parametrize("case", GUESSED)
def test_a_reader_that_guesses_types_changes_no_other_row(case: str, tmp_path: Any) -> None:
    """Codes, truth values and numbers had other answers in the chunk that an odd cell made a text."""
    cells, odd, options = GUESSED[case]
    stated = read(cells, **options)
    if case == "truth values as numbers":
        stated["x"] = stated["x"].astype(int)
    of_text = pd.api.types.is_string_dtype(stated["x"])
    dip = dipriv.DIP(20.0, seed=1, public=stated, types={"x": "text"} if of_text else None).fit(stated)
    dip.export_local(tmp_path / "reference")
    local = dipriv.load_local(tmp_path / "reference", seed=1)
    found, types = [], set()
    for last in (cells[-1], odd):
        chunk = read([*cells[:-1], last])
        types.add(str(chunk["x"].dtype))
        (batch,) = dip.transform_batches([pa.RecordBatch.from_pandas(chunk, preserve_index=False)])
        found.append((batch["x"].to_pylist()[:-1], local.privatize(chunk)["x"].to_list()[:-1]))
    assert len(types) == 2  # control: the chunk's type follows from the cell
    assert found[0] == found[1]
    assert len({*found[0][0]}) > 1
    if case == "codes":  # control: they were recognized
        assert np.mean([one == other for one, other in zip(found[0][0], cells, strict=False)]) > 0.9


def test_numbers_that_mark_missing_cells_do_so_in_any_type() -> None:
    """-9 was a number in chunks of numbers, and missing in chunks of text."""
    cells = [*map(str, np.random.default_rng(1).integers(20, 60, 600)), *["-9"] * 300]
    table = pd.DataFrame({"x": cells})
    dip = dipriv.DIP(50.0, seed=1, types={"x": "whole"}, missing=["-9"]).fit(table)
    batches = [pa.record_batch({"x": of}) for of in (cells, [int(cell) for cell in cells], [float(c) for c in cells])]
    found = [next(iter(dip.transform_batches([batch])))["x"].to_pylist() for batch in batches]
    assert found[0] == found[1] == found[2]
    assert found[0][600:].count(None) > 200


def people(first: int = 0) -> dict[str, Any]:
    numbers = np.arange(first, first + 100)
    return {
        "age": numbers % 70,
        "town": pa.array([f"t{n % 3}" for n in numbers]),
        "note": numbers,
        "spare": numbers / 7,
    }


@pytest.mark.parametrize("lacking", ["age", "town", "note", "spare"])
@pytest.mark.parametrize("counted", [True, False])
def test_columns_that_a_part_lacks_or_has_besides_do_not_end_a_stream(
    lacking: str, counted: bool, empty: Ledger
) -> None:
    """Parts of JSON lines have the columns that their rows have: the stream failed after rows had left."""
    options: dict[str, Any] = {"ledger": empty, "dataset": "people"} if counted else {"seed": 1}
    whole = pa.table(people())
    dip = dipriv.DIP(1.0, keep=["note"], drop=["spare"], **options).fit(whole)
    first, later = pa.record_batch(people()), people(100)
    some = pa.record_batch(
        {name: of for name, of in reversed(later.items()) if name != lacking} | {"more": later["age"]}
    )
    twice = pa.RecordBatch.from_arrays([*some.columns, some.column("more")], names=[*some.schema.names, "more"])
    released = list(dip.transform_batches([first, some, twice, first]))
    assert [batch.num_rows for batch in released] == [100] * 4
    assert {batch.schema for batch in released} == {released[0].schema}
    assert released[0].schema.names == ["age", "town", "note"]
    assert released[1]["note"].null_count == (100 if lacking == "note" else 0)
    if counted:
        assert [record.state for record in empty.records("people")] == ["done"]
    if lacking != "spare":
        with pytest.raises(dipriv.DiprivError, match=lacking):  # before a row leaves
            next(dip.transform_batches([some, first]))


def test_a_field_that_may_not_be_null_does_not_end_a_stream() -> None:
    table = pa.table({"age": [*range(50), None] * 8})
    dip = dipriv.DIP(1.0, seed=1, public=table).fit(table)
    strict = pa.RecordBatch.from_arrays([pa.array([1, 2])], schema=pa.schema([pa.field("age", pa.int64(), False)]))
    assert [batch.num_rows for batch in dip.transform_batches([table.to_batches()[0], strict])] == [408, 2]


NUMBERS = [7, 0, 1, 99, 40]
CELLS: dict[str, list[pa.Array]] = {
    "numbers": [
        *(pa.array(NUMBERS, of) for of in (pa.int8(), pa.uint64(), pa.float16(), pa.float64())),
        pa.array(list(map(Decimal, NUMBERS)), pa.decimal128(10, 2)),
        *(pa.array(list(map(str, NUMBERS)), of) for of in (pa.string(), pa.large_string(), pa.string_view())),
        *(pa.array([str(n).encode() for n in NUMBERS], of) for of in (pa.binary(), pa.binary_view())),
        pa.array(NUMBERS).dictionary_encode(),
        pa.array([f"{number}.0" for number in NUMBERS]).dictionary_encode(),
        pa.RunEndEncodedArray.from_arrays(range(1, 6), NUMBERS),
    ],
    "truth": [
        pa.array([True, False, True]),
        pa.array([1, 0, 1]),
        pa.array([1.0, 0.0, 1.0]),
        pa.array(["true", "False", " TRUE "]),
        pa.array(["1", "0", "1.0"], pa.string_view()),
        pa.array([True, False, True]).dictionary_encode(),
    ],
    "moments": [
        *(pa.array([dt.datetime(2020, 1, 2, 3), None], pa.timestamp(of)) for of in ("s", "ms", "us", "ns")),
        pa.array([dt.datetime(2020, 1, 2, 3), None], pa.timestamp("us", "Asia/Tokyo")),
        pa.array(["2020-01-02 03:00:00", "NaT"]),
        pa.array(["2020-01-02T12:00:00+09:00", "soon"]),
    ],
}
WANTED = {
    "numbers": (
        pa.int8(),
        pa.uint64(),
        pa.float32(),
        pa.float64(),
        pa.decimal128(9, 1),
        pa.dictionary(pa.int8(), pa.int16()),
    ),
    "truth": (pa.bool_(), pa.int64(), pa.float64(), pa.decimal128(9, 1)),
    "moments": (pa.date32(), pa.date64(), pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("us", "UTC")),
}
ODD: list[Any] = [None, "K", float("nan"), b"\xff", object(), [1], 2**70, dt.time(1), pd.NaT, Decimal("sNaN")]


@pytest.mark.parametrize("kind", CELLS)
def test_a_cell_is_the_same_in_whatever_type_it_comes(kind: str) -> None:
    from dipriv._tables.any_values import array_from_any, array_of_any

    for wanted in WANTED[kind]:
        plain = wanted.value_type if pa.types.is_dictionary(wanted) else wanted
        found = [array_from_any(cells, wanted) for cells in CELLS[kind]]
        found += [array_of_any([*cells.to_pylist(), odd], wanted)[:-1] for cells in CELLS[kind] for odd in ODD]
        cells = [array_from_any(of, plain).to_pylist() for of in found]
        assert all(of == cells[0] for of in cells), wanted
        assert cells[0].count(None) == (1 if kind == "moments" else 0)


EVERY: list[pa.Array] = [
    *(of for arrays in CELLS.values() for of in arrays),
    pa.nulls(3),
    pa.array([[1], [2]]),
    pa.array([{"a": 1}, {"a": 2}]),
    pa.array([dt.time(1), dt.time(2)]),
    pa.array([dt.timedelta(1)]),
    pa.array([pa.MonthDayNano([1, 2, 3])]),
    pa.array([2**62], pa.timestamp("s")),
    pa.array([2**31 - 1], pa.int32()).cast(pa.date32()),
    pa.array([b"\xff", None], pa.binary_view()),
    pa.array([Decimal(10) ** 60], pa.decimal256(70, 2)),
    pa.array(["1e400", "99999999999999999999", "0x1f", "", "\0", "9999-12-31 23:59:59"]),
    pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16)], pa.binary(16))),
    pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])]),
]
FITTED: dict[str, pa.Array] = {
    "int8": pa.array(np.arange(300) % 90, pa.int8()),
    "float": pa.array(np.arange(300) / 7),
    "truth": pa.array(np.arange(300) % 3 == 0),
    "text": pa.array([f"t{number % 3}" for number in range(300)], pa.string_view()),
    "labels": pa.array([f"t{number % 3}" for number in range(300)]).dictionary_encode(),
    "codes": pa.array(np.arange(300) % 5).dictionary_encode(),
    "day": pa.array(np.arange(300, dtype=np.int32)).cast(pa.date32()),
    "time": pa.array(np.arange(300, dtype=np.int64) * 10**9).cast(pa.timestamp("ns")),
    "clock": pa.array(np.arange(300, dtype=np.int32)).cast(pa.time32("s")),
    "span": pa.array(np.arange(300, dtype=np.int64)).cast(pa.duration("us")),
    "decimal": pa.array(list(map(Decimal, range(300))), pa.decimal128(5, 2)),
}


@pytest.mark.parametrize("name", FITTED)
def test_no_type_of_a_later_batch_ends_a_stream_or_changes_its_types(name: str) -> None:
    table = pa.table({"x": FITTED[name]})
    dip = dipriv.DIP(1.0, seed=1, public=table).fit(table)
    batches = [pa.record_batch({"x": of}) for of in (FITTED[name], *EVERY)]
    released = list(dip.transform_batches(batches))
    assert [batch.num_rows for batch in released] == [batch.num_rows for batch in batches]
    assert {batch.schema for batch in released} == {pa.schema({"x": FITTED[name].type})}


def test_numbers_in_text_that_are_too_large_are_the_ends_of_the_type() -> None:
    """They were missing, and as numbers they were the ends."""
    table = pa.table({"x": pa.array(np.arange(300) % 120, pa.int8()), "at": FITTED["time"]})
    dip = dipriv.DIP(200.0, seed=1, public=table).fit(table)
    far = [["300"] * 300, [300] * 300, ["1e30"] * 300]
    late = [["9999-12-31 00:00:00"] * 300, [dt.datetime(9999, 12, 31)] * 300, ["9999-12-31"] * 300]
    batches = [pa.record_batch({"x": x, "at": at}) for x, at in zip(far, late, strict=True)]
    found = [next(iter(dip.transform_batches([batch]))) for batch in batches]
    assert found[0].equals(found[1])
    assert found[0].equals(found[2])
    assert np.mean(found[0]["x"].to_numpy() > 100) > 0.9


@pytest.mark.parametrize("missing", [pd.NaT, pd.NA, float("nan"), None, np.datetime64("NaT"), Decimal("NaN")], ids=repr)
def test_what_is_missing_among_texts_is_so_beside_any_object(missing: Any, tmp_path: Any) -> None:
    """Beside a number, NaT was the text "NaT"."""
    labels = pd.DataFrame({"x": ["a", "b", None] * 200})
    dipriv.DIP(50.0, public=labels).fit(labels).export_local(tmp_path / "reference")
    found = [
        dipriv.load_local(tmp_path / "reference", seed=1)
        .privatize(pd.DataFrame({"x": pd.Series([*["a", missing] * 20, odd], dtype=object)}))["x"]
        .isna()
        .to_list()[:-1]
        for odd in ("b", 7)
    ]
    assert found[0] == found[1]
    assert np.mean(found[0][1::2]) > 0.8


def test_views_are_released_however_rows_are_selected() -> None:
    """Arrow has few functions of views: some releases failed, after ε was spent."""
    rows = 400
    table = pa.table(
        {
            "label": pa.array([f"l{row % 5}" for row in range(rows)], pa.string_view()),
            "number": pa.array([str(row % 20) for row in range(rows)], pa.string_view()),
            "blob": pa.array([b"%d" % (row % 5) for row in range(rows)], pa.binary_view()),
            "coded": pa.DictionaryArray.from_arrays(
                pa.array(np.arange(rows) % 3, pa.int8()), pa.array(["a", "b", "c"], pa.string_view())
            ),
        }
    )
    choices: list[dict[str, Any]] = [
        {"keep": ["blob", "label"], "reference": "holdout"},
        {"drop": ["blob"], "unit": "label"},
        {"drop": ["blob"], "public": table},
    ]
    for options in choices:
        for number in ("text", "whole"):
            for data in (table, lambda: iter(table.to_batches(100))):
                release = dipriv.privatize(data, 1.0, types={"number": number}, **options)
                assert release.n_rows > 10
                if callable(data):
                    assert release.data.to_table().num_rows == release.n_rows


def test_labels_of_all_parts_may_exceed_the_indices_of_each(tmp_path: Any) -> None:
    """Dictionaries with narrow indices could not be put together, depending on which labels rows have."""
    narrow = pa.dictionary(pa.int8(), pa.string())
    parts = [
        pa.record_batch({"c": pa.array([f"c{n}" for n in range(*ends)] * 3).dictionary_encode().cast(narrow)})
        for ends in ((0, 100), (100, 200))
    ]
    parts = [part.append_column("x", pa.array(np.arange(300.0))) for part in parts]
    table, one = pa.Table.from_batches(parts), pa.Table.from_batches(parts[:1])
    released = [
        dipriv.privatize(table, 1.0).data,
        dipriv.privatize(table, 1.0, keep=["c"], reference="holdout").data,
        dipriv.privatize(lambda: iter(parts), 1.0).data.to_table(),
        dipriv.DIP(1.0).fit(one).transform(table),
        dipriv.DIP(1.0).fit(table).transform(one),
    ]
    assert {found.schema.field("c").type for found in released} == {narrow}
    kept = dipriv.privatize(lambda: iter(parts), 1.0, keep=["c"]).data.to_table()
    assert kept.schema.field("c").type == pa.dictionary(pa.int32(), pa.string())  # room for the labels of all parts
    with pytest.raises(dipriv.SchemaError, match="room for 128"):  # before ε is spent
        dipriv.privatize(table, 1.0, labels="public")
    dipriv.DIP(1.0).fit(one).export_local(tmp_path / "reference")
    assert len(dipriv.load_local(tmp_path / "reference").privatize(table)) == 600


@pytest.mark.parametrize("form", ["record", "array"])
def test_a_record_has_the_label_that_means_the_same(form: str, tmp_path: Any) -> None:
    """The number 1 in a record was missing where a table of records had the label "01"."""
    table = pd.DataFrame({"x0": CODES})
    dipriv.DIP(50.0).fit(table).export_local(tmp_path / "reference")

    def answers(cell: Any) -> list[Any]:
        local = dipriv.load_local(tmp_path / "reference", seed=3)
        if form == "array":
            return [*np.asarray(local.privatize(np.array([[cell]] * 40, dtype=object)))[:, 0]]
        return [local.privatize({"x0": cell})["x0"]]

    assert answers(1) == answers("01")
    assert answers(1) != answers("02")  # control
