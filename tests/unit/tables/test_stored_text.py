"""Text that repeats few labels is stored as narrow codes between passes, and is the same text to all others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dipriv
from dipriv._tables import frames
from dipriv._tables.repeated import coded, compact, distinct, without_null_labels
from dipriv.sources import stream

ROWS = 5000
RNG = np.random.default_rng(5)
REGIONS = [f"region {number}" for number in range(300)]
TEXTS = {
    "sex": pa.array(RNG.choice(["f", "m"], ROWS), mask=RNG.random(ROWS) < 0.1),
    "region": pa.array(RNG.choice(REGIONS, ROWS), pa.large_string()),
    "name": pa.array([f"name {number}" for number in range(ROWS)]),
    "nothing": pa.nulls(ROWS, pa.string()),
}
TABLE = pa.table({**TEXTS, "age": RNG.integers(0, 90, ROWS)})


def stored() -> frames.Table:
    return frames.read(TABLE).stored(TEXTS)


def test_codes_are_as_narrow_as_the_labels_allow_and_only_where_they_repeat() -> None:
    types = dict(zip(TABLE.column_names, stored().native.schema.types, strict=True))
    assert types["sex"] == pa.dictionary(pa.int8(), pa.string())
    assert types["region"] == pa.dictionary(pa.int16(), pa.large_string())
    assert types["name"] == pa.string()
    assert types["age"] == pa.int64()


@pytest.mark.parametrize("name", TABLE.column_names)
@pytest.mark.parametrize("some", [False, True], ids=["all", "some"])
def test_stored_text_is_the_same_column(name: str, some: bool) -> None:
    plain, other = frames.read(TABLE), frames.read_stored(stored().native, TABLE.schema)
    if some:
        rows = np.arange(ROWS) % 3 == 0
        plain, other = plain.take(rows), other.take(rows)
    assert plain.column(name) == other.column(name) or repr(plain.column(name)) == repr(other.column(name))
    assert other.array(name).equals(plain.array(name))
    assert other.selected_rows().equals(plain.selected_rows())
    labels = pa.array(["m", "region 7", "name 5"], TABLE.schema.field(name).type) if name in TEXTS else None
    for one, two in zip(_parts(plain.cells(name, labels)), _parts(other.cells(name, labels)), strict=True):
        np.testing.assert_array_equal(one, two)
    kept = [table.rebuild({}, [name]) for table in (plain, other)]
    assert kept[0].equals(kept[1])
    assert kept[0].schema == kept[1].schema


def test_nulls_are_cells_not_labels() -> None:
    texts = pa.array([None, "a", "b", None, "a"] * 500)
    found = coded(texts)
    assert found.dictionary.null_count == 1
    for of in (without_null_labels(found), compact(found)):
        assert of.dictionary.null_count == 0
        assert of.to_pylist() == texts.to_pylist()
        values, times = distinct(of)
        assert dict(zip(values.to_pylist(), times.tolist(), strict=True)) == {None: 1000, "a": 1000, "b": 500}


@pytest.mark.parametrize("groups", [700, ROWS], ids=["row groups", "one"])
def test_a_release_does_not_depend_on_how_text_is_stored(
    groups: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a Parquet file whose text is plain in some row groups and a dictionary in others, as of a table."""
    monkeypatch.setattr(stream, "MAX_BLOCK_ROWS", 900)
    monkeypatch.setattr(stream, "MIN_BLOCK_ROWS", 900)
    some = TABLE.drop_columns(["nothing"])
    seeded: dict[str, Any] = {"seed": 3, "keep": ["name"]}
    for encoded in (True, False):
        pq.write_table(some, tmp_path / "in.parquet", row_group_size=groups, use_dictionary=encoded)
        read = dipriv.privatize(str(tmp_path / "in.parquet"), 2.0, **seeded).data.to_table()
        whole = dipriv.privatize(some, 2.0, **seeded).data
        assert read.schema == whole.schema
        assert read.equals(whole)
    changed = some.set_column(0, "sex", pa.array(["f"] * ROWS))
    assert not dipriv.privatize(changed, 2.0, **seeded).data.equals(whole)  # control


def test_views_of_repeated_labels_are_read_from_parquet(tmp_path: Path) -> None:
    """Whether the first cells repeat, which one row may decide, must not decide whether there is a release."""
    for distinct_texts in (512, 513):
        texts = [f"t{number % distinct_texts}" for number in range(1024)] + ["t1"] * 3000
        table = pa.table({"view": pa.array(texts, pa.string_view()), "x": np.arange(len(texts)) % 7})
        pq.write_table(table, tmp_path / "in.parquet")
        assert pq.read_schema(tmp_path / "in.parquet").field("view").type == pa.string_view()  # so it is one
        released = dipriv.privatize(str(tmp_path / "in.parquet"), 2.0, seed=1).data.to_table()
        assert released.schema.field("view").type == pa.string_view()
        assert released.num_rows == len(texts)


def _parts(cells: Any) -> list[Any]:
    return [cells.values, np.zeros(len(cells)) if cells.missing is None else cells.missing]
