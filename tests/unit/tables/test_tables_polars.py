"""Every polars dtype comes back as it went in."""

from __future__ import annotations

from typing import Any, Literal

import polars as pl
import pytest

import dipriv
from tests.unit.typed import NO_NOISE, OF_SORT, SEED, check_round_trip, values

UNITS: tuple[Literal["ms", "us", "ns"], ...] = ("ms", "us", "ns")
ENUM = pl.Enum([*map(OF_SORT["text"], reversed(range(7)))])
TYPES: list[tuple[Any, str]] = [
    *((kind, "whole") for kind in (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)),
    *((kind, "real") for kind in (pl.Float32, pl.Float64)),
    (pl.Boolean, "boolean"),
    (pl.String, "text"),
    (pl.Categorical(), "text"),
    (ENUM, "text"),
    (pl.Date, "date"),
    (pl.Time, "time of day"),
    *((pl.Decimal(digits, 2), "decimal") for digits in (5, 18, 38)),
    *((pl.Datetime(unit), "local time") for unit in UNITS),
    *((pl.Datetime(unit, "Europe/Paris"), "absolute time") for unit in UNITS),
    *((pl.Duration(unit), "duration") for unit in UNITS),
]


def cells(frame: pl.DataFrame) -> list[Any]:
    return frame.to_series().to_list()


@pytest.mark.parametrize("holes", [False, True], ids=["full", "nulls"])
@pytest.mark.parametrize(("dtype", "sort"), TYPES, ids=str)
def test_types(dtype: Any, sort: str, holes: bool) -> None:
    check_round_trip(pl.DataFrame({"x": pl.Series(values(sort, holes), dtype=dtype)}), cells, type_of)


def type_of(frame: pl.DataFrame) -> Any:
    """A type, but for the list of a Categorical's categories, which is that of the release alone."""
    dtype = frame.schema["x"]
    return pl.Categorical if isinstance(dtype, pl.Categorical) else dtype


def test_enum_keeps_the_order_of_its_categories() -> None:
    frame = pl.DataFrame({"x": pl.Series(values("text", holes=True), dtype=ENUM)})

    def type_of(table: pl.DataFrame) -> Any:
        dtype = table.schema["x"]
        assert isinstance(dtype, pl.Enum)
        return dtype.categories.to_list()

    check_round_trip(frame, cells, type_of)
    more = frame.cast(pl.Enum(["unused", *ENUM.categories]))
    assert dipriv.privatize(more, NO_NOISE, public=more, seed=SEED).data.schema["x"] == ENUM
