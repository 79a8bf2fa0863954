"""Finding 21: one odd cell stopped a release with a ledger, after the budget was spent, or changed a published type."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dipriv
from dipriv._tables import frames
from dipriv._tables.column_types import TypeRules
from dipriv._tables.typed_tables import settle_table
from dipriv.ledger import Ledger
from dipriv.sources._cells import cell_hashes
from dipriv.sources._fingerprint import fingerprint_of
from tests.security.findings.test_01_odd_cell import promised

KEY = np.array([1, 2], np.uint64)
LONG = "1234567890123456789"
FAR = 2**62
NESTED: dict[str, pa.Array] = {
    "list": pa.array([[5], [FAR], None], pa.list_(pa.int64())).cast(pa.list_(pa.timestamp("s"))),
    "struct": pa.StructArray.from_arrays([pa.array([5, FAR, 6]).cast(pa.timestamp("ms"))], ["at"]),
    "same names": pa.StructArray.from_arrays([pa.array([1, 2, 3])] * 2, ["a", "a"]),
    "no text": pa.ListArray.from_arrays([0, 1, 2, 3], pa.array([b"a", b"\xff", b"b"]).view(pa.string())),
}


def hashes(array: pa.Array) -> list[tuple[int, int]]:
    return list(zip(*(lane.tolist() for lane in cell_hashes(array, KEY)), strict=True))


@pytest.mark.parametrize("number", [LONG, "-" + LONG, "0.1234567890123456789", "1e300", "9" * 5000, "1e-9999"])
def test_control_bytes_around_a_number_are_stripped_as_spaces_are(number: str) -> None:
    blanks = [chr(code) for code in range(33)]
    found = hashes(pa.array([number, *(blank + number + blank for blank in blanks)]))
    assert set(found) == {found[0]}
    hashes(pa.array([bytes([code]) + number.encode() + bytes([code]) for code in range(256)]))
    hashes(pa.array([number[:5] + chr(code) + number[5:] for code in range(256)]))


@pytest.mark.parametrize("name", NESTED)
def test_a_nested_cell_that_python_does_not_have_is_hashed(name: str) -> None:
    assert len(hashes(NESTED[name])) == 3


def test_nested_cells_that_python_has_keep_their_hashes() -> None:
    cells = [[1, 2], None, [], [None]]
    assert hashes(pa.array(cells, pa.list_(pa.int64()))) == hashes(pa.array(["[1, 2]", None, "[]", "[None]"]))


@pytest.mark.parametrize("cell", ["\x01" + LONG, LONG + "\0", "\x1c" + LONG])
def test_a_ledger_takes_a_long_number_with_a_control_byte(cell: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [cell, *["a", "b"] * 30], "y": np.arange(61)})
    with dipriv.Ledger.create(tmp_path / "ledger.db") as ledger:
        options: dict[str, Any] = {"ledger": ledger, "dataset": "people", "seed": 1}
        assert len(dipriv.privatize(frame, 1.0, **options).data) == len(frame)


ODD: dict[str, Any] = {
    "text": "q",
    "None": None,
    "NaN": np.nan,
    "numpy's NaN": np.float64("nan"),
    "NA": pd.NA,
    "NaT": pd.NaT,
    "whole": 5,
    "decimal": 1.5,
    "bytes": b"q",
    "object": object(),
    "surrogate": "\ud800",
}


@pytest.mark.parametrize("types", [None, {"t": "text"}], ids=["no types", "types"])
@pytest.mark.parametrize("missing", [(), ("a",)], ids=["no marks", "marks"])
def test_one_object_changes_no_type_of_a_column_of_text(types: Any, missing: Any, tmp_path: Path) -> None:
    """Neither the fitted columns nor, for a reference that is public, a byte of the exported file."""
    found: dict[str, Any] = {}
    public = pd.DataFrame({"t": pd.Series(["a", "b"] * 50, dtype=object)})
    for name, cell in ODD.items():
        frame = pd.DataFrame({"t": pd.Series([cell, *["a", "b"] * 50], dtype=object)})
        options: dict[str, Any] = {"types": types, "missing": missing, "seed": 1}
        plan = promised(frame, types=types, missing=missing)
        dipriv.DIP(1.0, public=public, **options).fit(frame).export_local(tmp_path / name)
        table, _ = settle_table(frames.read(frame), ["t"], TypeRules())
        content = (tmp_path / name).read_bytes()
        found[name] = str(plan), content, table.arrow_type("t")
    assert {name: of == found["text"] for name, of in found.items()} == dict.fromkeys(ODD, True)
    assert found["text"][2] == pa.string()


LISTED = pa.chunked_array([pa.DictionaryArray.from_arrays([0, 1, None], pa.array([[n], [2]])) for n in (1, 3)])
UNTYPED: dict[str, Any] = {
    "objects": lambda cells: pd.DataFrame({"t": pd.Series([object(), *cells], dtype=object)}),
    "bytes": lambda cells: pd.DataFrame({"t": pd.Series([b"q", *cells], dtype=object)}),
    "complex": lambda cells: pd.DataFrame({"t": np.array([1j] * (1 + len(cells)))}),
    "polars": lambda cells: pl.DataFrame({"t": pl.Series([object(), *cells], dtype=pl.Object)}),
    "longdouble": lambda cells: np.ones((1 + len(cells), 1), np.longdouble),
    "labels": lambda cells: pa.table({"t": LISTED}),
}


@pytest.mark.parametrize("name", UNTYPED)
def test_a_column_without_an_arrow_type_is_fingerprinted(name: str) -> None:
    table = frames.read(UNTYPED[name](["a", "b"]))
    batch = table.fingerprinted()
    assert tuple(batch.schema.names) == table.names
    assert fingerprint_of(batch, bytes(32)).result().rows == table.rows


def test_objects_are_fingerprinted_as_what_they_are() -> None:
    objects = pd.DataFrame({"a": pd.Series([1, 2.5, None], dtype=object), "b": pd.Series([b"", "x", "y"])})
    found = fingerprint_of(frames.read(objects).fingerprinted(), bytes(32)).result()
    typed = pa.record_batch({"a": [1, 2.5, None], "b": ["(object)", "x", "y"]})
    assert found == fingerprint_of(typed, bytes(32)).result()


@pytest.mark.parametrize("cell", [object(), b"q", (1, 2)], ids=["object", "bytes", "tuple"])
def test_a_ledger_takes_a_table_of_one_column_with_an_odd_object(cell: Any, tmp_path: Path) -> None:
    frame = pd.DataFrame({"t": pd.Series([cell, *["a", "b"] * 30], dtype=object)})
    with dipriv.Ledger.create(tmp_path / "ledger.db") as ledger:
        options: dict[str, Any] = {"ledger": ledger, "dataset": "people", "types": {"t": "text"}, "seed": 1}
        assert len(dipriv.privatize(frame, 1.0, **options).data) == len(frame)
        fitted = dipriv.DIP(1.0, **options).fit(frame)
        assert len(fitted.transform(frame)) == len(frame)


def test_objects_of_polars_are_recognized_by_their_cells(tmp_path: Path) -> None:
    """Arrow has the pointers of such cells, which differ between two equal tables."""

    def table() -> Any:
        cells = [Decimal(number) / 7 for number in range(300)]
        return pl.DataFrame({"n": [1, 2, 3] * 100, "o": pl.Series("o", cells, dtype=pl.Object)})

    with Ledger.create(tmp_path / "ledger.db") as ledger:
        dipriv.privatize(table(), 1.0, drop=["o"], ledger=ledger, dataset="first")
        with pytest.raises(dipriv.BudgetError):
            dipriv.privatize(table(), 1.0, drop=["o"], ledger=ledger, dataset="quite")
