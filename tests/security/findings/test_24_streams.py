"""Finding 24: forked streams shared a reservation, and streams locked or charged data sets that had no part in them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dipriv
from dipriv._base.table_fingerprint import is_part
from dipriv.errors import BudgetError, PrivacyWarning
from dipriv.ledger import Ledger
from dipriv.sources._fingerprint import fingerprint_of
from tests.security.findings.test_03_second_budget import empty
from tests.security.findings.test_22_ledger_edges import people, spent

__all__ = ["empty"]  # a fixture


def batches(table: pd.DataFrame, size: int) -> list[pa.RecordBatch]:
    return [*pa.Table.from_pandas(table, preserve_index=False).to_batches(size)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_copy_does_not_use_the_reservation_of_fit(empty: Ledger) -> None:
    """Each process streamed the table with noise of its own, and one release was counted."""
    empty.set_budget("people", 1.0)
    table = people(300, 1)
    dip = dipriv.DIP(1.0, ledger=empty, dataset="people").fit(table)
    child = os.fork()
    if not child:
        n_rows = 0
        try:
            for batch in dip.transform_batches(batches(table, 100)):
                n_rows += batch.num_rows
        except BudgetError:
            os._exit(n_rows > 0)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0  # refused before a row left
    assert sum(batch.num_rows for batch in dip.transform_batches(batches(table, 100))) == 300
    assert spent(empty) == {"people": 1.0}


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{"unit": "person"}, {"reference": "holdout"}, {}], ids=["unit", "hold-out", "rows"]
)
@pytest.mark.parametrize("size", [5, 200])
def test_a_stream_of_another_data_set_leaves_it_as_it_is(options: dict[str, Any], size: int, empty: Ledger) -> None:
    """Its content was registered as one of the stream's data set, which every later release had to agree with."""
    visits = people(200, 9).assign(person=np.arange(200) // 2)
    dipriv.privatize(visits, 0.5, ledger=empty, dataset="visits", **options)
    others = people(200, 10).assign(person=-1 - np.arange(200))
    dip = dipriv.DIP(1.0, ledger=empty, dataset="others").fit(others)
    rows = visits if size == 5 else pd.concat([others, visits], ignore_index=True)
    with pytest.warns(PrivacyWarning, match="also in 'visits'"):
        assert sum(batch.num_rows for batch in dip.transform_batches(batches(rows, size))) == len(rows)
    assert spent(empty) == {"others": 1.0, "visits": 1.5}
    for name in ("visits", None):
        dipriv.privatize(visits, 0.5, ledger=empty, dataset=name, **options)
    grown = pd.concat([visits, people(20, 11).assign(person=1000 + np.arange(20))], ignore_index=True)
    dipriv.privatize(grown, 0.5, ledger=empty, dataset="visits", **options)
    assert sum(batch.num_rows for batch in dip.transform_batches(batches(others, 100))) == 200
    found = spent(empty)
    assert found["visits"] == 3.0
    assert found["others"] < 2.0  # another transform costs the noise of its rows alone
    with pytest.raises(BudgetError, match="this table has"):  # control: whose rows they are is still known
        dipriv.privatize(rows.sample(100, random_state=1), 0.5, ledger=empty, dataset="third")


def survey(n: int, seed: int, columns: int) -> pd.DataFrame:
    """Yes/no answers, and row numbers."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame({f"answer {i}": rng.integers(0, 2, n) for i in range(columns)} | {"row": range(n)})


@pytest.mark.parametrize("columns", [0, 1, 12])
def test_parts_are_recognized_with_every_key(columns: int) -> None:
    """Few columns, or columns of few labels, were no part of their own table with most keys."""
    whole, other = survey(300, 1, columns), survey(300, 2, columns).assign(row=range(300, 600))
    rng = np.random.default_rng(columns)

    def seen(rows: pd.DataFrame, key: bytes) -> Any:
        return fingerprint_of(pa.RecordBatch.from_pandas(rows, preserve_index=False), key).result()

    for _ in range(20):
        key = rng.bytes(32)
        table = seen(whole, key)
        assert is_part(seen(whole[:40], key), table)
        assert not is_part(seen(other[:40], key), table)
        assert not is_part(seen(pd.concat([whole[:40], other[:1]]), key), table)
        assert not is_part(seen(pd.concat([whole[:40], whole[:1]]), key), table)
        assert not is_part(seen(whole[:5], key), table)  # too few to tell


@pytest.mark.parametrize("size", [5, 100])
def test_what_was_affirmed_of_a_questionnaire_holds_for_its_stream(size: int, empty: Ledger) -> None:
    empty.set_budget("north", 1.0)
    dipriv.privatize(survey(300, 1, 12), 1.0, ledger=empty, dataset="north")
    south = survey(300, 2, 12)
    dip = dipriv.DIP(1.0, ledger=empty, new_dataset="south").fit(south)
    assert sum(batch.num_rows for batch in dip.transform_batches(batches(south, size))) == 300
    assert spent(empty) == {"north": 1.0, "south": 1.0}


def test_a_small_table_of_other_people_may_be_the_same(empty: Ledger) -> None:
    """Thirty answers of yes or no: nothing let the keeper say that they are those of another school."""
    school = pd.DataFrame({"passed": [True] * 28 + [False] * 2})
    dipriv.privatize(school, 1.0, ledger=empty, dataset="north")
    with pytest.raises(BudgetError, match="already known"):
        dipriv.privatize(school, 1.0, ledger=empty, dataset="elsewhere")
    dipriv.privatize(school, 1.0, ledger=empty, new_dataset="elsewhere")
    dipriv.privatize(school, 1.0, ledger=empty, dataset="elsewhere")
    assert spent(empty) == {"elsewhere": 2.0, "north": 1.0}
    dipriv.privatize(school, 1.0, ledger=empty, dataset="north")
    assert spent(empty) == {"elsewhere": 2.0, "north": 2.0}
    table = people(200, 1)  # control: the same two hundred rows are the same people
    dipriv.privatize(table, 1.0, ledger=empty, dataset="people")
    with pytest.raises(BudgetError, match="already known"):
        dipriv.privatize(table, 1.0, ledger=empty, new_dataset="others")


RECORD = {"text": "b", "number": 3, "truth": True}
ODD: list[dict[str, Any]] = [
    {"text": float("nan")},
    {"text": None},
    {"text": 7},
    {"number": "unknown"},
    {"number": 2.5},
    {"truth": None},
    {"truth": "yes"},
    {"text": [1]},
    {"number": b"q"},
]
LIBRARIES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "pandas": lambda record: pd.DataFrame([record]),
    "polars": lambda record: pl.DataFrame([record], strict=False),
    "pyarrow": lambda record: pa.Table.from_pylist([record]),
}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("odd", ODD, ids=str)
def test_an_exported_reference_answers_a_table_of_one_record(odd: dict[str, Any], library: str, tmp_path: Any) -> None:
    """The types of such a table follow from its cells: some records were refused."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {"text": rng.choice(["a", "b"], 400), "number": rng.integers(0, 9, 400), "truth": rng.random(400) < 0.5}
    )
    path = tmp_path / "reference.dipriv"
    dipriv.DIP(2.0).fit(table).export_local(path)
    released = dipriv.load_local(path).privatize(LIBRARIES[library](RECORD | odd))
    assert type(released).__module__.partition(".")[0] == library
    assert len(released) == 1


def test_marks_of_missing_cells_hold_for_transform_too() -> None:
    cells = np.random.default_rng(0).integers(20, 60, 2000).astype(str).astype(object)
    cells[:600] = "-9"
    table = pd.DataFrame({"age": cells})
    dip = dipriv.DIP(50.0, types={"age": "whole"}, missing=["-9"]).fit(table)
    assert dip.transform(table)["age"][:600].isna().mean() > 0.9


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_stream_that_is_forked_goes_on_in_one_process(empty: Ledger) -> None:
    table = people(300, 1)
    stream = dipriv.DIP(1.0, ledger=empty, dataset="people").fit(table).transform_batches(batches(table, 100))
    next(stream)
    child = os.fork()
    if not child:
        try:
            next(stream)
        except dipriv.InputError:
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert sum(batch.num_rows for batch in stream) == 200
    assert [record.state for record in empty.records("people")] == ["done"]


FAR = 253_402_300_799_000
"""The last second of the year 9999, in milliseconds: later than Python's last in zones east of Greenwich."""


def test_a_far_time_of_one_record_does_not_change_the_others(tmp_path: Any) -> None:
    """Columns of another unit or zone were converted at once, and were missing if Python has no such time."""
    near = np.datetime64("2020-01-06", "ms").astype(np.int64)
    times = pd.DataFrame({"until": pd.to_datetime(np.arange(0, 400) * 86_400_000 + near, unit="ms")})
    path = tmp_path / "reference.dipriv"
    dipriv.DIP(2.0).fit(times).export_local(path)
    found: list[list[Any]] = []
    for n_far in (0, 1):
        ticks = np.full(300, near)
        ticks[:n_far] = FAR
        table = pa.table({"until": pa.array(ticks, pa.timestamp("ms", "Europe/Berlin"))})
        for records in (table, table.to_pandas(), pl.from_arrow(table)):
            released = dipriv.load_local(path, seed=1).privatize(records)["until"]
            found.append((released.to_pylist() if isinstance(records, pa.Table) else released.to_list())[1:])
    assert all(cells == found[0] for cells in found)
    assert len({*found[0]}) > 10


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_type_of_a_released_record_is_that_of_the_reference(library: str, tmp_path: Any) -> None:
    """A table of one record has types that follow from its values, and the release had them, too."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"text": rng.choice(["a", "b"], 400), "number": rng.integers(0, 9, 400)})
    path = tmp_path / "reference.dipriv"
    dipriv.DIP(2.0, public=table).fit(table).export_local(path)
    records: list[dict[str, Any]] = [
        {"text": "b", "number": 3},
        {"text": None, "number": 2.5},
        {"text": "a", "number": None},
    ]
    local = dipriv.load_local(path, seed=1)
    found = [local.privatize(LIBRARIES[library](record)) for record in records]
    types = [list(one.schema.types if library == "pyarrow" else one.dtypes) for one in found]
    assert all(kinds == types[0] for kinds in types)


def test_a_missing_time_does_not_round_those_of_other_records(tmp_path: Any) -> None:
    """With a null among them, ticks went through doubles."""
    path = tmp_path / "reference.dipriv"
    public = pd.DataFrame({"at": pd.date_range("2000", "2300", 400).astype("datetime64[us]")})
    dipriv.DIP(50.0, public=public).fit(public).export_local(path)
    last = pd.Timestamp.max.as_unit("ns")
    found = [
        dipriv.load_local(path, seed=1).privatize(pd.DataFrame({"at": [last, other]}))["at"][0]
        for other in (pd.Timestamp("2020").as_unit("ns"), pd.NaT)
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize("affirmed", ["dataset", "new_dataset"])
def test_a_few_rows_do_not_tell_whose_a_stream_is(affirmed: str, empty: Ledger) -> None:
    """Batches of five yes/no answers are the same by chance: the stream was refused, or charged to other people."""
    rng = np.random.default_rng(2)
    tables = [pd.DataFrame(rng.random((400, 3)) < 0.9, columns=list("abc")) for _ in range(2)]
    for table in tables:
        table.iloc[:10] = [[True] * 3, [True, True, False]] * 5
    empty.set_budget("north", 1.0)
    for table, name in zip(tables, ("north", "east"), strict=True):
        dip = dipriv.DIP(1.0, ledger=empty, **{affirmed: name}).fit(table)  # type: ignore[arg-type]
        assert sum(batch.num_rows for batch in dip.transform_batches(batches(table, 5))) == 400
    assert spent(empty) == {"east": 1.0, "north": 1.0}
