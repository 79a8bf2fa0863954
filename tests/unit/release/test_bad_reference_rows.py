"""Reference rows that are too few or do not match, and schemas that contradict the rows, are refused clearly."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dipriv import Categorical, Continuous, Datetime, Discrete, InputError, Mixed, ReferenceDataError, SchemaError
from tests.support import TEXT_HAS_A_TYPE
from tests.unit.refusal import NUMBER, SECRET, privatize, refused

ROWS = 60
TEXT = [SECRET, "b", "c"] * 20
NUMBERS = [NUMBER, 1, 2] * 20
HOURS = pd.date_range("2020-01-01", periods=ROWS, freq="h")


def one(cells: Any, dtype: Any = None) -> pd.DataFrame:
    return pd.DataFrame({"x": pd.Series(cells, dtype=dtype)})


@pytest.mark.parametrize("rows", [1, 2])
def test_a_hold_out_needs_rows_on_both_sides(rows: int) -> None:
    frame = one([NUMBER, NUMBER + 1][:rows])
    words = f"of {rows} rows; both sides need some", "holdout=", "public table"
    refused(ReferenceDataError, "the hold-out has 0", *words, call=lambda: privatize(frame, holdout=1e-9))
    refused(ReferenceDataError, f"has {rows} {words[0]}", call=lambda: privatize(frame, holdout=0.999999))


def test_one_reference_row_is_too_few() -> None:
    words = "there are 1 reference rows", "at least 2"
    refused(ReferenceDataError, *words, call=lambda: privatize(one(NUMBERS), public=one([NUMBER])))
    assert privatize(one([NUMBER]), public=one([1, 2, 3]))["x"].isin([1, 2, 3]).all()


CONSTANTS: dict[str, Any] = {
    "whole": 7,
    "real": 0.1,
    "boolean": True,
    "text": "same",
    "date": dt.date(2020, 2, 29),
    "time": pd.Timestamp("2020-02-29 12:34:56.789"),
    "category": pd.Categorical(["same"], categories=["same"]),
}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("cell", CONSTANTS.values(), ids=CONSTANTS.keys())
def test_a_constant_column_releases_its_constant(cell: Any, seed: int) -> None:
    constant = pd.Series(cell.repeat(ROWS)) if isinstance(cell, pd.Categorical) else pd.Series([cell] * ROWS)
    frame = constant.to_frame("x")
    for options in ({}, {"public": frame}):
        released = privatize(frame, 0.1, seed=seed, **options)
        pd.testing.assert_frame_equal(released, frame.loc[released.index])


def test_a_constant_has_no_continuous_law() -> None:
    frame = one([float(NUMBER)] * ROWS)
    words = "column 'x' is declared Continuous()", "one distinct value", "Discrete"
    refused(ReferenceDataError, *words, call=lambda: privatize(frame, schema={"x": Continuous()}))
    public = frame.assign(x=[*range(ROWS)])
    refused(ReferenceDataError, *words, call=lambda: privatize(public, public=frame, schema={"x": Continuous()}))


UNTYPED_NULLS = [
    one([None] * ROWS, object),
    pl.DataFrame({"x": [None] * ROWS}),
    pa.table({"x": pa.nulls(ROWS)}),
]
TYPED_NULLS = [
    *(one([None] * ROWS, dtype) for dtype in ("float64", "Int8", "str", "boolean", "datetime64[ns]")),
    *(one(pd.Categorical([None] * ROWS, categories=some)) for some in ([], [SECRET])),
    *(pl.DataFrame({"x": pl.Series([None] * ROWS, dtype=dtype)}) for dtype in (pl.Float32, pl.Enum([SECRET]))),
    *(pa.table({"x": pa.nulls(ROWS, kind)}) for kind in (pa.int8(), pa.dictionary(pa.int8(), pa.string()))),
    pa.table({"x": [float("nan")] * ROWS}),
]


@pytest.mark.parametrize("table", UNTYPED_NULLS, ids=lambda table: type(table).__module__)
def test_columns_without_a_type(table: Any) -> None:
    words = "column 'x' holds nothing but nulls", "drop=[...]", "keep=[...]"
    refused(InputError, *words, call=lambda: privatize(table))
    refused(InputError, *words, call=lambda: privatize(table, public=table))


@TEXT_HAS_A_TYPE
@pytest.mark.parametrize("table", TYPED_NULLS, ids=lambda table: type(table).__module__)
def test_columns_of_nulls(table: Any) -> None:
    words = "column 'x' has no value but nulls", "reference rows", "drop=[...]", "keep=[...]"
    refused(ReferenceDataError, *words, call=lambda: privatize(table))
    refused(ReferenceDataError, *words, "60 reference rows", call=lambda: privatize(table, public=table))


OTHER_TYPES: dict[str, tuple[Any, Any, str, str]] = {
    "text and numbers": (one(NUMBERS), one(TEXT), "text", "int64"),
    "numbers and text": (one(TEXT), one(NUMBERS), "int64", "text"),
    "numbers and booleans": (one(NUMBERS), one([True, False] * 30), "bool", "int64"),
    "units": (one(HOURS, "datetime64[ns]"), one(HOURS, "datetime64[s]"), "timestamp[s]", "timestamp[ns]"),
    "zone and none": (one(HOURS), one(HOURS.tz_localize("UTC")), "timestamp[us, tz=UTC]", "timestamp[us]"),
    "days and times": (one(HOURS), one(HOURS.date), "date32[day]", "timestamp[us]"),
    "times and durations": (one(HOURS), one(HOURS - HOURS[0]), "duration[us]", "timestamp[us]"),
    "categories and text": (one(pd.Categorical(NUMBERS)), one(TEXT), "text", "labels of int64"),
    "categories and numbers": (one(pd.Categorical(NUMBERS)), one(NUMBERS), "int64", "labels of int64"),
    "categories": (one(pd.Categorical(NUMBERS)), one(pd.Categorical(TEXT)), "labels", "labels of int64"),
    "categories, other way": (one(pd.Categorical(TEXT)), one(pd.Categorical(NUMBERS)), "labels of int64", "labels"),
    "whole and real categories": (
        one(pd.Categorical(NUMBERS)),
        one(pd.Categorical([NUMBER + 0.5, 1, 2] * 20)),
        "labels of double",
        "labels of int64",
    ),
    "dictionaries": (
        pa.table({"x": pa.array(NUMBERS).dictionary_encode()}),
        pa.table({"x": pa.array(TEXT).dictionary_encode()}),
        "labels",
        "labels of int64",
    ),
    "times of day": (
        pa.table({"x": pa.array([dt.time(1), dt.time(2)] * 30, pa.time32("s"))}),
        pa.table({"x": pa.array([dt.time(1), dt.time(2)] * 30, pa.time64("us"))}),
        "time64[us]",
        "time32[s]",
    ),
}


@TEXT_HAS_A_TYPE
@pytest.mark.parametrize(("table", "public", "theirs", "mine"), OTHER_TYPES.values(), ids=OTHER_TYPES.keys())
def test_public_rows_of_another_type(table: Any, public: Any, theirs: str, mine: str) -> None:
    words = f"column 'x' is {theirs} in one table, {mine} in the other", "Convert one of them"
    refused(ReferenceDataError, *words, call=lambda: privatize(table, public=public))


def test_public_rows_that_lack_a_column() -> None:
    frame = one(NUMBERS).assign(y=TEXT, z=TEXT)
    words = "column 'y' is not in the reference rows", "2 columns differ", "columns=[...]"
    refused(ReferenceDataError, *words, call=lambda: privatize(frame, public=frame[["x"]]))
    assert privatize(frame, public=frame[["x"]], columns=["x"]).shape == (ROWS, 1)


OTHER_LABELS = {
    "categories": (one(pd.Categorical(["a", "b"] * 30)), one(pd.Categorical([SECRET, "b"] * 30))),
    "intervals": (one(pd.cut([1, 2] * 30, [0, 1, NUMBER])), one(pd.cut([1, 2] * 30, [0, 1.5, NUMBER]))),
    "category and text": (one(pd.Categorical(["a", "b"] * 30)), one([SECRET, "b"] * 30)),
    "enums": (
        pl.DataFrame({"x": pl.Series(["a", "b"] * 30, dtype=pl.Enum(["a", "b"]))}),
        pl.DataFrame({"x": pl.Series([SECRET, "b"] * 30, dtype=pl.Enum([SECRET, "b"]))}),
    ),
}


@pytest.mark.parametrize(("table", "public"), OTHER_LABELS.values(), ids=OTHER_LABELS.keys())
def test_public_rows_with_other_categories(table: Any, public: Any) -> None:
    """A refusal would depend on the categories of the private table: labels of the public one are released."""

    def text(label: Any) -> str:
        return label if isinstance(label, str) else repr(label)  # an interval that the type does not list is text

    labels = {*map(text, public["x"])}
    released = privatize(table, public=public)["x"]
    assert {*map(text, released)} <= labels
    listed = released.cat.categories if isinstance(released, pd.Series) else released.dtype.categories
    assert {*map(text, listed)} == labels


def test_categories_in_another_order_are_the_same_categories() -> None:
    frame = one(pd.Categorical(["a", "b", "b"] * 20, categories=["a", "b", "c"]))
    public = one(pd.Categorical(["a", "b", "b"] * 20, categories=["b", "a"]))
    pd.testing.assert_frame_equal(
        privatize(frame, 1e9, public=public), frame.assign(x=frame["x"].cat.remove_unused_categories())
    )


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [("int64", [0.5, NUMBER + 0.5]), ("int8", [1, NUMBER]), ("uint8", [1, -NUMBER]), ("int64", [1.0, NUMBER * 1e20])],
)
def test_public_numbers_that_do_not_fit(mine: str, theirs: list[Any]) -> None:
    words = "column 'x'", "some of the 60 reference rows", f"do not fit {mine}"
    refused(ReferenceDataError, *words, call=lambda: privatize(one([1, 2] * 30, mine), public=one(theirs * 30)))


NULLS_WITHOUT_ROOM: dict[str, tuple[Any, Any, str]] = {
    "whole": (one(NUMBERS), one([*NUMBERS, None], "Int64"), "int64"),
    "boolean": (one([True, False] * 30), one([True, False, None] * 20, "boolean"), "bool"),
    "numpy": (np.array(NUMBERS)[:, np.newaxis], np.array([*NUMBERS, np.nan])[:, np.newaxis], "int64"),
    "arrow": (
        pa.table({"x": NUMBERS}, schema=pa.schema([pa.field("x", pa.int64(), nullable=False)])),
        pa.table({"x": [*NUMBERS, None]}),
        "int64",
    ),
}


@pytest.mark.parametrize(("table", "public", "kind"), NULLS_WITHOUT_ROOM.values(), ids=NULLS_WITHOUT_ROOM.keys())
def test_public_nulls_where_the_table_has_no_room_for_them(table: Any, public: Any, kind: str) -> None:
    words = "has nulls in the reference rows", f"its type {kind} holds none", "nullable"
    refused(ReferenceDataError, *words, call=lambda: privatize(table, public=public))


CONTRADICTIONS: dict[str, tuple[Any, Any, str]] = {
    "Discrete on text": (TEXT, Discrete(), "declared Discrete() but holds text"),
    "Continuous on text": (TEXT, Continuous(lower=0.0), "declared Continuous(lower=0.0) but holds text"),
    "Mixed on booleans": ([True, False] * 30, Mixed(), "declared Mixed() but holds bool"),
    "Discrete on categories": (pd.Categorical(NUMBERS), Discrete(), "Discrete() but holds labels of int64"),
    "Datetime on numbers": (NUMBERS, Datetime(), "declared Datetime() but holds int64"),
    "Datetime on text": (TEXT, Datetime("day"), "declared Datetime(resolution='day') but holds text"),
    "Categorical on times": (HOURS, Categorical(), "declared Categorical() but holds timestamp[us]"),
    "fractions of whole numbers": (NUMBERS, Discrete(step=0.1), "Discrete(step=0.1) but holds int64"),
    "fractions of ticks": (HOURS, Discrete(step=0.1), "Discrete(step=0.1) but holds timestamp[us]"),
    "a step beyond the type": (
        pd.array([1, 2] * 30, "Int8"),
        Discrete(step=1000),
        "Discrete(step=1000) but holds int8",
    ),
    "levels of text": (TEXT, Categorical(("b", "c")), "reference rows hold labels outside its 2 levels"),
    "levels of numbers": (NUMBERS, Categorical((1, 2)), "reference rows hold values outside its 2 declared levels"),
    "discrete levels": (NUMBERS, Discrete((1, 2)), "reference rows hold values outside its 2 declared levels"),
    "text for numbers": (NUMBERS, Categorical(("b", "c")), "some declared levels cannot be stored as int64"),
    "text for booleans": ([True, False] * 30, Categorical(("b", "c")), "levels cannot be stored as bool"),
    "numbers for text": (TEXT, Categorical((1, 2)), "holds text but some declared levels are not"),
    "a half for whole numbers": (NUMBERS, Discrete((1, 2.5)), "some declared levels cannot be stored as int64"),
    "more than the type": (pd.array([1, 2] * 30, "UInt8"), Discrete((1, 300)), "levels cannot be stored as uint8"),
    "far more than the type": (NUMBERS, Discrete((1, 1e300)), "some declared levels cannot be stored as int64"),
    "more than a float": (pd.array([1, 2] * 30, "float32"), Discrete((1, 1e39)), "cannot be stored as float"),
    "other categories": (pd.Categorical(TEXT), Categorical(("b", "c")), "reference rows hold labels outside its 2"),
    "text for categories": (pd.Categorical(NUMBERS), Categorical(("b",)), "cannot be stored as labels of int64"),
    "lower bound": (NUMBERS, Continuous(lower=2.0), "reference rows lie outside the declared bounds [2, inf]"),
    "upper bound": (NUMBERS, Mixed(upper=2.0), "reference rows lie outside the declared bounds [-inf, 2]"),
}


@TEXT_HAS_A_TYPE
@pytest.mark.parametrize(("cells", "kind", "words"), CONTRADICTIONS.values(), ids=CONTRADICTIONS.keys())
def test_schemas_that_contradict_the_rows(cells: Any, kind: Any, words: str) -> None:
    frame = one(cells)
    refused(SchemaError, "column 'x'", words, call=lambda: privatize(frame, schema={"x": kind}))
    refused(SchemaError, "column 'x'", words, call=lambda: privatize(frame, public=frame, schema={"x": kind}))


@pytest.mark.parametrize("kind", [Continuous, Mixed])
@pytest.mark.parametrize(("lower", "upper"), [(2.0, 1.0), (1.0, 1.0)])
def test_bounds_must_be_in_order(kind: Any, lower: float, upper: float) -> None:
    refused(SchemaError, f"lower={lower} is not below upper={upper}", call=lambda: kind(lower=lower, upper=upper))


def test_schemas_are_made_of_kinds() -> None:
    frame = one(NUMBERS)
    refused(
        SchemaError, "column 'x': expected a kind, got str", "Use", call=lambda: privatize(frame, schema={"x": "int"})
    )
    refused(
        SchemaError,
        "expected a column name in the schema as text, got int",
        call=lambda: privatize(frame, schema={1: Discrete()}),
    )
