"""Every pandas dtype comes back as it went in."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import dipriv
from tests.unit.typed import CODES, NO_NOISE, SEED, check_round_trip, values

UNITS = ("s", "ms", "us", "ns")
WITHOUT_NULLS = [
    *((f"{sign}int{width}", "whole") for sign in ("", "u") for width in (8, 16, 32, 64)),
    ("bool", "boolean"),
]
WITH_NULLS = [
    *((f"{sign}{width}", "whole") for sign in ("Int", "UInt") for width in (8, 16, 32, 64)),
    *((f"{name}{width}", "real") for name in ("float", "Float") for width in (32, 64)),
    ("float16", "real"),
    ("boolean", "boolean"),
    *((name, "text") for name in ("str", "string[pyarrow]", "string[python]", "object", "category")),
    *(("object", sort) for sort in ("boolean", "date", "time of day")),
    *(("category", sort) for sort in ("whole", "real", "boolean", "date", "local time", "duration")),
    *((f"datetime64[{unit}]", "local time") for unit in UNITS),
    *((f"datetime64[{unit}, Europe/Paris]", "absolute time") for unit in UNITS),
    *((f"timedelta64[{unit}]", "duration") for unit in UNITS),
]
ARROW = [
    *((kind, "whole") for kind in (pa.int8(), pa.uint64())),
    *((kind, "real") for kind in (pa.float16(), pa.float32(), pa.float64())),
    *((kind, "text") for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string()))),
    *((kind, "date") for kind in (pa.date32(), pa.date64())),
    *((pa.timestamp(unit), "local time") for unit in UNITS),
    *((pa.timestamp(unit, "Europe/Paris"), "absolute time") for unit in UNITS),
    *((pa.duration(unit), "duration") for unit in UNITS),
    *((kind, "time of day") for kind in (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"))),
    (pa.bool_(), "boolean"),
    (pa.decimal128(9, 2), "decimal"),
]
HOLES = pytest.mark.parametrize("holes", [False, True], ids=["full", "nulls"])


def cells(frame: pd.DataFrame) -> list[Any]:
    return [None if pd.isna(cell) else cell for cell in frame.iloc[:, 0]]


def type_of(frame: pd.DataFrame) -> Any:
    dtype = frame.dtypes.iloc[0]
    categories = list(dtype.categories) if isinstance(dtype, pd.CategoricalDtype) else None
    return dtype, repr(dtype), categories


def check(series: Any) -> None:
    check_round_trip(pd.DataFrame({"x": series}), cells, type_of)


@pytest.mark.parametrize(("dtype", "sort"), WITHOUT_NULLS)
def test_plain_types(dtype: Any, sort: str) -> None:
    check(pd.Series(values(sort, holes=False), dtype=dtype))


@HOLES
@pytest.mark.parametrize(("dtype", "sort"), WITH_NULLS)
def test_types_with_room_for_nulls(dtype: Any, sort: str, holes: bool) -> None:
    check(pd.Series(values(sort, holes), dtype=dtype))


@HOLES
@pytest.mark.parametrize(("arrow_type", "sort"), ARROW, ids=str)
def test_arrow_types(arrow_type: pa.DataType, sort: str, holes: bool) -> None:
    check(pd.Series(values(sort, holes), dtype=pd.ArrowDtype(arrow_type)))


@HOLES
@pytest.mark.parametrize("ordered", [False, True])
def test_ordered_categories_keep_their_order_and_none_those_that_no_reference_row_has(
    ordered: bool, holes: bool
) -> None:
    """The order of others may be that in which private rows have them."""
    categories = ["x" * 50, "NaN", "7", "ä ☃", "a", "b", ""]
    expected = categories if ordered else sorted(categories)
    check(pd.Categorical(values("text", holes), categories=expected, ordered=ordered))
    more = ["unused first", *categories[:2], "unused between", *categories[2:], "unused last"]
    frame = pd.DataFrame({"x": pd.Categorical(values("text", holes), categories=more, ordered=ordered)})
    released = dipriv.privatize(frame, NO_NOISE, public=frame, seed=SEED).data["x"]
    assert released.cat.categories.to_list() == expected
    assert released.cat.ordered is ordered


@HOLES
def test_intervals_as_categories(holes: bool) -> None:
    check(pd.cut(pd.Series(values("whole", holes), dtype="Float64"), [0, 2, 3, 7]))


@pytest.mark.parametrize(
    ("odd", "words"),
    [(("1", 1), "of its cells are text"), ((("a", 1), ("b", 2)), "neither text, booleans, dates nor times")],
    ids=["mixed", "tuples"],
)
def test_categories_without_a_type_are_refused(odd: tuple[Any, Any], words: str) -> None:
    both: Any = pd.Index(pd.Series(odd, dtype=object))
    frame = pd.DataFrame({"x": pd.Categorical.from_codes([k % 2 for k in CODES], categories=both)})
    with pytest.raises(dipriv.SchemaError, match=words):
        dipriv.privatize(frame, 1.0)
