"""Finding 18: a type that its keeper gave was refused if half of the cells, or none, had it: one row decided that."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dipriv
from dipriv._tables.cell_classes import CellClass as C
from dipriv._tables.column_types import NO_CELLS, Given, Question, settle
from dipriv.schema import Categorical, ColumnType, Continuous, Datetime, Discrete
from tests.security.findings.test_01_odd_cell import promised

ROWS = 100
TYPES: tuple[ColumnType, ...] = get_args(ColumnType)
EXACT = {
    "text": pa.string(),
    "whole": pa.int64(),
    "decimal": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "time": pa.time32("s"),
}
KINDS: dict[str, Any] = {
    "Continuous": Continuous(),
    "Discrete": Discrete(step=1),
    "labels": Categorical(levels=("a", "b")),
    "Categorical": Categorical(),
    "Datetime": Datetime(),
}
NULLS: dict[str, Any] = {
    "pandas None": lambda: pd.DataFrame({"x": pd.Series([None] * ROWS, dtype=object)}),
    "pandas NaN": lambda: pd.DataFrame({"x": pd.Series([np.nan] * ROWS, dtype=object)}),
    "pandas NA": lambda: pd.DataFrame({"x": pd.Series([pd.NA] * ROWS, dtype=object)}),
    "pandas NaT": lambda: pd.DataFrame({"x": pd.Series([pd.NaT] * ROWS, dtype=object)}),
    "polars": lambda: pl.DataFrame({"x": [None] * ROWS}),
    "polars, lazy": lambda: pl.DataFrame({"x": [None] * ROWS}).lazy(),
    "arrow": lambda: pa.table({"x": pa.nulls(ROWS)}),
}


def file(at: Path, cells: list[str]) -> Path:
    at.write_text("x,y\n" + "".join(f"{cell},{n % 3}\n" for n, cell in enumerate(cells)), encoding="utf-8")
    return at


@pytest.mark.slow
@pytest.mark.parametrize("said", [*TYPES, *KINDS])
@pytest.mark.parametrize("table", [*NULLS, "parquet", "csv"])
def test_a_given_type_settles_a_column_of_nothing_but_nulls(table: str, said: Any, tmp_path: Path) -> None:
    options = {"schema": {"x": KINDS[said]}} if said in KINDS else {"types": {"x": said}}
    if table == "parquet":
        pq.write_table(pa.table({"x": pa.nulls(ROWS), "y": [*range(ROWS)]}), tmp_path / "t.parquet")
        data: Any = tmp_path / "t.parquet"
    else:
        data = file(tmp_path / "t.csv", [""] * ROWS) if table == "csv" else NULLS[table]()
    found = promised(data, **options)[1].field("x").type
    if said in EXACT and not table.startswith("polars"):  # whose types of text and times are wider
        assert found == EXACT[said]
    assert not pa.types.is_null(found)


@pytest.mark.parametrize("said", TYPES)
def test_a_column_of_nulls_is_released_as_what_it_is_said_to_be(said: ColumnType) -> None:
    frame = NULLS["pandas None"]()
    assert len(dipriv.privatize(frame, 1.0, types={"x": said}).data) == ROWS
    fitted = dipriv.DIP(1.0, types={"x": said}).fit(frame)
    assert len(fitted.transform(frame)) == len(fitted.transform(frame.assign(x=["7"] * ROWS))) == ROWS


@pytest.mark.parametrize("said", EXACT)
@pytest.mark.parametrize("cell", [uuid.UUID(int=7), (1, 2), "x"], ids=["uuid", "tuple", "text"])
def test_a_given_type_settles_a_column_of_other_objects(cell: Any, said: ColumnType) -> None:
    for cells in ([cell] * ROWS, [cell, *[None] * (ROWS - 1)]):
        frame = pd.DataFrame({"x": pd.Series(cells, dtype=object)})
        assert promised(frame, types={"x": said})[1].field("x").type == EXACT[said]


@pytest.mark.parametrize("said", EXACT)
def test_an_exact_type_is_the_same_for_all_cells(said: ColumnType, tmp_path: Path) -> None:
    """However many of the cells are something else, the type, what is printed and the number of rows are the same."""
    found = set()
    for misfits in (0, 49, 50, 51, 52, 99, 100):
        cells = ["?!"] * misfits + ["3"] * (ROWS - misfits)
        text, schema, facts = promised(file(tmp_path / "t.csv", cells), types={"x": said, "y": "whole"})
        frame = pd.DataFrame({"x": pd.Series(cells, dtype="str")})
        found.add((text, str(schema), str(facts), str(promised(frame, types={"x": said})[1])))
    assert len(found) == 1


@pytest.mark.parametrize("said", ["datetime", "seconds", "microseconds"])
def test_a_zone_is_settled_or_asked_for_and_no_row_flips_it(said: ColumnType) -> None:
    """Times have a zone if most of them do; the keeper is asked where one row could turn one type into the other."""
    outcomes = {}
    for plain in range(12):
        for zoned in range(12):
            counts = NO_CELLS.copy()
            counts[[C.SECONDS, C.UTC_SECONDS, C.OTHER]] = plain, zoned, 5
            of = settle("x", counts, Given.type(said))
            outcomes[plain, zoned] = "asked" if isinstance(of, Question) else str(of.tz)
    assert {*outcomes.values()} == {"asked", "UTC", "None"}
    steps = [(0, 1), (1, 0), (0, -1), (-1, 0), (1, -1), (-1, 1)]
    for (plain, zoned), of in outcomes.items():
        near = {outcomes.get((plain + a, zoned + b), of) for a, b in steps} - {"asked"}
        assert of == "asked" or near <= {of}
