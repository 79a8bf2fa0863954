"""Finding 23: labels and types of pandas and polars categories came from the private list of categories."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.pipeline import make_pipeline

import dipriv

N = 2000
Cells = list[Any]


def category(cells: Cells) -> pd.Series:
    """Objects as a category, as a table from a database has them."""
    objects = pd.Series(cells, dtype=object)
    listed = [*dict.fromkeys(sorted(objects.dropna(), key=str))]
    return pd.Series(pd.Categorical(objects, categories=pd.Index(listed, dtype=object)))


def typed(cells: Cells) -> pd.Series:
    return pd.Series(cells).astype("category")


def released(column: pd.Series, **options: Any) -> tuple[list[str], str]:
    """The labels of a release, and their type."""
    table = pd.DataFrame({"c": column, "x": np.arange(N) / 7})
    categories = dipriv.privatize(table, 2.0, **options).data["c"].cat.categories
    return [ascii(label) for label in categories], str(categories.dtype)


TWINS: dict[str, tuple[Callable[[Cells], pd.Series], Any, Any, Any]] = {
    "decimals": (category, Decimal("1.1000"), Decimal("1.1"), Decimal("2.5")),
    "surrogates": (category, "Caf\udcea", "Caf\udce9", "Bar"),
    "nanoseconds": (typed, pd.Timestamp(2_000_000_002), pd.Timestamp(2_000_000_001), pd.Timestamp(5)),
    "zoned nanoseconds": (
        typed,
        pd.Timestamp(2_000_000_002, tz="UTC"),
        pd.Timestamp(2_000_000_001, tz="UTC"),
        pd.Timestamp(5, tz="UTC"),
    ),
    "durations": (typed, pd.Timedelta(2002), pd.Timedelta(2001), pd.Timedelta(9000)),
}


@pytest.mark.parametrize(("make", "common", "rare", "other"), TWINS.values(), ids=TWINS.keys())
def test_the_spelling_of_one_row_is_not_that_of_all(
    make: Callable[[Cells], pd.Series], common: Any, rare: Any, other: Any
) -> None:
    """A released label was printed as the first private category that is equal to it for Arrow."""
    cells = [common, other] * (N // 2)
    before = released(make(cells))
    assert released(make([rare, *cells[1:]])) == before
    assert ascii(rare) not in before[0] or (make is category and not isinstance(rare, str))


@pytest.mark.parametrize("odd", ["z", 2.5, 2**70, None], ids=["text", "a fraction", "huge", "nothing"])
@pytest.mark.parametrize("types", [None, {"c": "text"}], ids=["settled", "given"])
def test_one_object_does_not_change_the_type_of_a_category(odd: Any, types: Any) -> None:
    cells: Cells = [1, 2] * (N // 2)
    assert released(category([odd, *cells[1:]]), types=types) == released(category(cells), types=types)


def test_a_category_without_a_cell_is_released_if_one_with_a_cell_is() -> None:
    """Nothing but nulls was refused even if a schema lists the labels."""
    schema = {"c": dipriv.Categorical(levels=("x", "y"))}
    empty, one = category([None] * N), category(["x", *[None] * (N - 1)])
    for options in ({"schema": schema}, {"types": {"c": "text"}}):
        assert released(empty, **options) == released(one, **options)


def test_days_and_times_keep_their_type() -> None:
    days = [datetime.date(2020, 1, 1 + day) for day in range(2)]
    assert released(category(days * (N // 2))) == ([ascii(day) for day in days], "object")
    months = [*pd.period_range("2020", periods=2)]
    for column in (pd.Series(pd.cut(np.arange(N), [-1, N // 2, N])), typed(months * (N // 2))):
        assert released(column)[1] == str(column.cat.categories.dtype)


def test_polars_codes_do_not_count_labels_that_are_not_released() -> None:
    """Categories of polars are numbered in the order in which the process met them."""
    cells = ["met only here", *["common here"] * (N // 2), *["usual here"] * (N - N // 2 - 1)]
    data = dipriv.privatize(pl.DataFrame({"c": pl.Series(cells, dtype=pl.Categorical), "x": range(N)}), 2.0).data
    assert isinstance(data.schema["c"], pl.Categorical)
    assert data["c"].to_physical().unique().sort().to_list() == [0, 1]


@pytest.mark.parametrize("url", ["postgresql://user:s3cr3t@host/db", "postgresql://host/db?user=u&password=s3cr3t"])
def test_no_notebook_shows_the_password_of_a_ledger(url: str) -> None:
    dip = dipriv.DIP(1.0, ledger=url)
    assert dip.ledger == url
    pipeline = make_pipeline(dip)
    shown = [repr(dip), repr(pipeline), dip._repr_html_(), pipeline._repr_html_()]
    assert not any("s3cr3t" in text for text in shown)
    dip.set_params(ledger=url)
    assert "s3cr3t" not in repr(dip)


def test_the_smallest_delta_has_a_data_sheet_that_can_be_read(tmp_path: Any) -> None:
    table = pd.DataFrame({"x": np.arange(N) / 7})
    dipriv.privatize(table, 1.0, delta=1e-30).write(tmp_path / "out.csv")
    assert dipriv.load_sheet(tmp_path / "out.csv") is not None


@pytest.mark.parametrize("first", ["flu", "cold"])
def test_the_order_of_appearance_is_not_published(first: str) -> None:
    """Arrow numbers labels in the order in which rows have them, and pandas takes that for the order of categories."""
    cells = pa.array([first, *["flu", "cold"] * (N // 2)]).dictionary_encode()
    table = pa.table({"c": cells}).to_pandas()
    for options in ({"public": pd.DataFrame({"c": ["flu", "cold"] * 50})}, {"reference": "holdout"}):
        release = dipriv.privatize(table, 2.0, **options)
        assert release.data["c"].cat.categories.to_list() == ["cold", "flu"]


def test_categories_that_python_has_no_time_for_are_released() -> None:
    ticks = np.array([0, 253_402_300_799_000_000] * (N // 2)).astype("datetime64[us]")
    column = pd.Series(ticks).dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin").astype("category")
    table = pd.DataFrame({"c": column, "x": np.arange(N) / 7})
    assert len(dipriv.privatize(table, 2.0).data["c"].cat.categories) == 2
    dip = dipriv.DIP(2.0).fit(table[::2])
    assert len(dip.transform(table[1::2])) == N // 2
