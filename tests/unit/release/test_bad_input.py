"""Arguments and tables that cannot be used are refused in words that name the place, the limit and a remedy."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats

import dipriv
from dipriv import InputError, ReferenceDataError, SchemaError
from dipriv.kernels import Laplace
from dipriv.references import Empirical, Grouped, Known, Parametric, Private
from tests.unit.refusal import NUMBER, SECRET, privatize, refused

ROWS = 60
FRAME = pd.DataFrame({"name": [SECRET, "b"] * 30, "pay": [NUMBER, *range(ROWS - 1)]})


@pytest.mark.parametrize("epsilon", [0, -1.5, float("nan"), float("inf"), -float("inf")])
def test_epsilon_must_be_finite_and_above_zero(epsilon: float) -> None:
    refused(InputError, f"epsilon={float(epsilon)!r}", "above 0", call=lambda: privatize(FRAME, epsilon))
    refused(InputError, f"epsilon={float(epsilon)!r}", call=lambda: dipriv.DIP(epsilon, reference="holdout").fit(FRAME))


@pytest.mark.parametrize("epsilon", ["1", True, None, [1.0], 1j, np.array([1.0, 2.0])], ids=repr)
def test_epsilon_must_be_a_number(epsilon: Any) -> None:
    refused(InputError, f"got {type(epsilon).__name__}", call=lambda: privatize(FRAME, epsilon))


NO_ROWS = [pd.DataFrame({"x": []}), pl.DataFrame({"x": []}), pa.table({"x": pa.array([], pa.int8())}), np.empty((0, 2))]
NO_COLUMNS = [pd.DataFrame(index=range(3)), pl.DataFrame(), pa.table({}), np.empty((3, 0))]


@pytest.mark.parametrize("table", NO_ROWS, ids=lambda table: type(table).__module__)
def test_a_table_needs_rows(table: Any) -> None:
    refused(InputError, "no rows", "at least one", call=lambda: privatize(table))
    refused(InputError, "no rows", call=lambda: privatize(FRAME, public=FRAME.iloc[:0]))


@pytest.mark.parametrize("table", NO_COLUMNS, ids=lambda table: type(table).__module__)
def test_a_table_needs_columns(table: Any) -> None:
    refused(InputError, "no columns", "at least one", call=lambda: privatize(table))


NOT_TABLES: list[Any] = [
    pd.Series([NUMBER], name=SECRET),
    pl.Series(SECRET, [NUMBER]),
    {"x": [SECRET]},
    [[NUMBER]],
    NUMBER,
    pa.array([NUMBER]),
    pa.chunked_array([[SECRET]]),
]


@pytest.mark.parametrize("thing", NOT_TABLES, ids=lambda thing: type(thing).__name__)
def test_what_is_no_table_is_named_by_its_type(thing: Any) -> None:
    words = f"expected a table, got {type(thing).__name__}", "pandas, polars or pyarrow"
    refused(InputError, *words, call=lambda: privatize(thing))
    refused(InputError, *words, call=lambda: privatize(FRAME, public=thing))
    refused(InputError, *words, call=lambda: dipriv.infer_schema(thing))


def test_none_is_no_table() -> None:
    refused(InputError, "NoneType", call=lambda: privatize(None))


def test_a_text_is_the_path_of_a_file() -> None:
    refused(InputError, "no file is at 'people.parquet'", "path", call=lambda: privatize("people.parquet"))
    refused(InputError, "people.parquet is not a file", call=lambda: privatize(FRAME, public="people.parquet"))
    refused(InputError, "str", "pandas, polars or pyarrow", call=lambda: dipriv.infer_schema(SECRET))


def test_a_lazy_frame_must_be_collected_where_a_table_in_memory_is_needed() -> None:
    lazy = pl.LazyFrame({"x": [NUMBER]})
    refused(InputError, "LazyFrame", ".collect()", call=lambda: privatize(FRAME, public=lazy))
    refused(InputError, "LazyFrame", ".collect()", call=lambda: dipriv.infer_schema(lazy))


@pytest.mark.parametrize(
    "array",
    [np.full(9, NUMBER), np.full((3, 3, 3), NUMBER), np.full((9, 2), NUMBER * 1j), np.full((9, 2), SECRET)],
    ids=["one dimension", "three dimensions", "complex", "text"],
)
def test_arrays_are_rows_by_columns_of_numbers(array: Any) -> None:
    refused(InputError, f"{array.ndim} dimensions of {array.dtype}", call=lambda: privatize(array))


REPEATED = [
    pd.DataFrame([[NUMBER, SECRET]] * ROWS, columns=["pay", "pay"]),
    pd.DataFrame([[NUMBER, SECRET]] * ROWS, columns=pd.Index([7, "7"], dtype=object)),
    pa.Table.from_arrays([pa.array([SECRET]), pa.array([NUMBER])], names=["pay", "pay"]),
]


@pytest.mark.parametrize("table", REPEATED, ids=["pandas", "alike as text", "arrow"])
def test_column_names_must_differ(table: Any) -> None:
    name = "7" if isinstance(table, pd.DataFrame) and 7 in table.columns else "pay"
    refused(InputError, f"column name '{name}' occurs 2 times", "Rename", call=lambda: privatize(table))
    refused(InputError, f"column name '{name}' occurs 2 times", call=lambda: privatize(FRAME, public=table))


NESTED = {
    "list": pa.array([[SECRET]] * ROWS),
    "struct": pa.array([{SECRET: NUMBER}] * ROWS),
    "map": pa.array([[(SECRET, NUMBER)]] * ROWS, pa.map_(pa.string(), pa.int64())),
    "binary": pa.array([SECRET.encode()] * ROWS),
    "month_day_nano_interval": pa.array([(1, 2, NUMBER)] * ROWS, pa.month_day_nano_interval()),
    "decimal256(50, 0)": pa.array([Decimal(NUMBER)] * ROWS, pa.decimal256(50, 0)),
}


@pytest.mark.parametrize(("shown", "array"), NESTED.items(), ids=NESTED.keys())
def test_arrow_types_that_are_not_one_value_a_row(shown: str, array: pa.Array) -> None:
    table = pa.table({"odd": array, "pay": range(ROWS)})
    words = f"column 'odd' has type {shown}", "drop=[...]", "keep=[...]"
    refused(SchemaError, *words, call=lambda: privatize(table))
    refused(SchemaError, *words, call=lambda: privatize(table, public=table))
    refused(SchemaError, *words, call=lambda: dipriv.infer_schema(table))
    assert privatize(table, keep=["odd"]).schema == table.schema
    assert privatize(table, columns=["pay"]).column_names == ["pay"]


def test_labels_must_be_of_a_type_that_a_column_could_have() -> None:
    labels = pa.DictionaryArray.from_arrays(pa.array([0] * ROWS), pa.array([[SECRET]]))
    refused(SchemaError, "column 'odd' has type list", call=lambda: privatize(pa.table({"odd": labels})))


OBJECTS: dict[str, list[Any]] = {
    "text and numbers": [SECRET, NUMBER] * 30,
    "booleans and numbers": [True, NUMBER] * 30,
    "lists": [[SECRET]] * ROWS,
    "dicts": [{SECRET: NUMBER}] * ROWS,
    "bytes": [SECRET.encode()] * ROWS,
    "tuples": [(SECRET, NUMBER)] * ROWS,
    "complex": [NUMBER * 1j] * ROWS,
    "other": [uuid.uuid5(uuid.NAMESPACE_OID, SECRET)] * ROWS,
}


@pytest.mark.parametrize("cells", OBJECTS.values(), ids=OBJECTS.keys())
def test_pandas_objects_that_are_not_of_one_type(cells: list[Any]) -> None:
    frame = pd.DataFrame({"odd": pd.Series(cells, dtype=object), "pay": range(ROWS)})
    refused(SchemaError, "column 'odd'", "drop=[...]", "keep=[...]", call=lambda: privatize(frame))
    refused(SchemaError, "column 'odd'", call=lambda: privatize(frame, public=frame))
    assert privatize(frame, keep=["odd"])["odd"].dtype == object


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([NUMBER * 1j] * ROWS),
        pd.period_range("2020-01-01", periods=ROWS, freq="D"),
        pd.interval_range(NUMBER, NUMBER + ROWS),
        pd.arrays.SparseArray([NUMBER] * ROWS),
    ],
    ids=["complex", "periods", "intervals", "sparse"],
)
def test_pandas_types_without_an_arrow_type(column: Any) -> None:
    refused(SchemaError, "column 'odd'", "keep=[...]", call=lambda: privatize(pd.DataFrame({"odd": column})))


@pytest.mark.parametrize(
    "column",
    [
        pl.Series([[SECRET]] * ROWS),
        pl.Series([{SECRET: NUMBER}] * ROWS),
        pl.Series([SECRET.encode()] * ROWS),
        pl.Series([object()] * ROWS, dtype=pl.Object),
        pl.Series([[NUMBER, 1]] * ROWS, dtype=pl.Array(pl.Int64, 2)),
        pl.Series([NUMBER] * ROWS, dtype=pl.Int128),
    ],
    ids=lambda column: str(column.dtype.base_type()),
)
def test_polars_types_that_are_not_one_value_a_row(column: pl.Series) -> None:
    refused(SchemaError, "column 'odd'", "keep=[...]", call=lambda: privatize(pl.DataFrame({"odd": column})))


@pytest.mark.parametrize("end", [np.inf, -np.inf])
@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_infinities(library: Callable[..., Any], end: float) -> None:
    table = library({"pay": [float(NUMBER), end] * 30})
    finite = library({"pay": [1.0, 2.0] * 30})
    words = "column 'pay' holds infinite values in the reference rows", "finite numbers and nulls", "Mixed(atoms="
    refused(InputError, *words, call=lambda: privatize(table))
    refused(InputError, *words, call=lambda: privatize(finite, public=table))
    assert set(privatize(table, public=finite)["pay"].to_numpy()) == {1.0, 2.0}


UNKNOWN: dict[str, dict[str, Any]] = {
    "keep": {"keep": ["nmae"]},
    "columns": {"columns": ["nmae", "pay"]},
    "the schema": {"schema": {"nmae": dipriv.Categorical()}},
    "order": {"reference": Empirical(order=["nmae"])},
    "by": {"reference": Grouped(by="nmae")},
}


@pytest.mark.parametrize(("where", "options"), UNKNOWN.items(), ids=UNKNOWN.keys())
def test_unknown_columns_are_named_with_the_place(where: str, options: dict[str, Any]) -> None:
    words = f"{where} names 'nmae'", "(2 columns)", "Correct the name"
    refused(InputError, *words, call=lambda: privatize(FRAME, **options))


def test_unknown_columns_in_shares_and_laws() -> None:
    pay, laws = FRAME[["pay"]], {"pay": stats.norm(0, 1), "nmae": stats.norm(0, 1)}
    refused(InputError, "'nmae'", "not a column", call=lambda: privatize(FRAME, kernel=Laplace({"nmae": 2.0})))
    refused(InputError, "a distribution is given for 'nmae'", call=lambda: privatize(pay, reference=Known(laws)))
    families = Parametric({"pay": "norm", "nmae": "norm"})
    refused(InputError, "a family is given for 'nmae'", call=lambda: privatize(pay, reference=families))
    both = FRAME.assign(more=1.0)[["pay", "more"]]
    words = "column 'more' has no distribution", "1 of 2 columns"
    refused(InputError, *words, call=lambda: privatize(both, reference=Known({"pay": stats.norm(0, 1)})))


@pytest.mark.parametrize("where", ["keep", "columns", "drop"])
def test_lists_of_columns(where: str) -> None:
    refused(
        InputError,
        f"expected {where} as a list",
        f"Write {where}=['pay']",
        call=lambda: privatize(FRAME, **{where: "pay"}),
    )
    refused(InputError, f"expected {where} as a list of names, got int", call=lambda: privatize(FRAME, **{where: 5}))
    refused(InputError, f"{where} names a column twice", call=lambda: privatize(FRAME, **{where: ["pay", "pay"]}))


def test_columns_and_keep_must_leave_something_to_do() -> None:
    refused(InputError, "no column is left", call=lambda: privatize(FRAME, keep=["name", "pay"]))
    words = "column 'pay' is in columns and in keep"
    refused(InputError, words, call=lambda: privatize(FRAME, keep=["pay"], columns=["pay"]))


@pytest.mark.parametrize("share", [0, 1, -0.5, float("nan"), True, "half"], ids=repr)
def test_the_reference_has_a_share_of_epsilon(share: Any) -> None:
    refused(InputError, "reference_share=", "between 0 and 1", call=lambda: Private(reference_share=share))


def test_a_target_is_a_column() -> None:
    refused(InputError, "expected target as text, got int", call=lambda: Private(target=3))  # type: ignore[arg-type]
    refused(
        InputError,
        "target names 'no such', which is not a column of the table",
        call=lambda: privatize(FRAME, reference=Private(target="no such")),
    )


@pytest.mark.parametrize("what", ["reference", "kernel"])
def test_unknown_references_and_kernels(what: str) -> None:
    refused(InputError, f"{what}='no such'", "Use", call=lambda: privatize(FRAME, **{what: "no such"}))
    refused(InputError, f"expected a {what}, got int", "Use", call=lambda: privatize(FRAME, **{what: NUMBER}))
    refused(InputError, "expected a kernel, got NoneType", call=lambda: privatize(FRAME, kernel=None))


@pytest.mark.parametrize("holdout", [0, 1, float("nan"), -0.5, 1.5, float("inf"), True, "half"], ids=repr)
def test_the_hold_out_is_a_share(holdout: Any) -> None:
    words = f"holdout={holdout!r}", "between 0 and 1"
    refused(InputError, *words, call=lambda: privatize(FRAME, holdout=holdout))


@pytest.mark.parametrize("rng", ["seed", 1.5, -1, True, np.random.default_rng(0), [1]], ids=lambda rng: str(type(rng)))
def test_the_seed_is_a_whole_number(rng: Any) -> None:
    refused(InputError, "seed", f"not {type(rng).__name__}", "experiments", call=lambda: privatize(FRAME, seed=rng))


def test_laws_that_are_not_frozen() -> None:
    refused(InputError, "norm_gen", "scipy.stats.norm(0, 1)", call=lambda: Known(stats.norm))
    refused(InputError, "int", call=lambda: Known({"pay": NUMBER}))


def test_a_family_is_not_fitted_to_nulls() -> None:
    frame = pd.DataFrame({"pay": [float(NUMBER), None, 1.0] * 20})
    words = "column 'pay' has nulls in the reference rows", "no probability", "empirical reference"
    refused(InputError, *words, call=lambda: privatize(frame, reference=Parametric("norm")))
    assert privatize(frame, reference=Known(stats.norm(0, 1)))["pay"].notna().all()


def test_groups_need_names_and_rows() -> None:
    groups = pd.DataFrame({"who": [SECRET, None] * 30, "pay": range(ROWS)})
    refused(InputError, "column 'who' has nulls", call=lambda: privatize(groups, reference=Grouped(by="who")))
    groups["who"] = [SECRET] * 3 + ["b"] * 57
    words = "1 of 2 groups in column 'who'", "3 or fewer rows", "at least 4", "Lower `first`"
    refused(ReferenceDataError, *words, call=lambda: privatize(groups, reference=Grouped(by="who", first=3)))
    assert len(privatize(groups, reference=Grouped(by="who", first=2))) == ROWS - 4


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"keep": None}, "expected keep as a list of names, got NoneType"),
        ({"split": 3}, "expected a split, got int"),
        ({"reference": Empirical}, "expected a reference, got type"),
        ({"kernel": Laplace}, "expected a kernel, got type"),
        ({"schema": [1]}, "expected the schema as a mapping, got list"),
        ({"epsilon": 10**400}, "expected epsilon as a number"),
        ({"epsilon": 1e-320}, "outside"),
        ({"epsilon": 1e300}, "outside"),
    ],
)
def test_arguments_of_the_wrong_make_are_refused(options: dict[str, Any], match: str) -> None:
    frame = pd.DataFrame({"a": np.arange(100.0)})
    given: dict[str, Any] = {"epsilon": 1.0, "reference": "holdout"} | options
    with pytest.raises(InputError, match=match):
        dipriv.privatize(frame, **given)


@pytest.mark.parametrize("scale", [400, -400])
def test_a_decimal_whose_scale_no_number_has_is_refused(scale: int) -> None:
    odd = pa.table({"pay": pa.array([1, 2] * 30).cast(pa.decimal128(19, 0)).view(pa.decimal128(19, scale))})
    refused(SchemaError, "'pay'", "decimal128", "drop=[...]", call=lambda: dipriv.privatize(odd, 1.0))


def test_labels_that_are_no_data_of_a_row_are_refused_in_parts_too() -> None:
    labels = pa.DictionaryArray.from_arrays(pa.array([0, 0] * 30), pa.array([{}], pa.struct([])))
    parts = pa.table({"pay": pa.chunked_array([labels, labels])})
    refused(SchemaError, "'pay'", "struct", call=lambda: dipriv.privatize(parts, 1.0))
