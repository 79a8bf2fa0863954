"""No cell of a released row is refused, and none changes what is promised: all references, types and extremes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats

import dipriv
from dipriv._random import bits
from dipriv._tables import frames
from dipriv.references import Grouped, Known, Mixture, Parametric
from dipriv.schema import ColumnType

ROWS = 120
INT64 = (-(2**63), 2**63 - 1, 0, -1)
TEXTS = ("", "x" * 1_000_000, "a\0b", "\x011234567890123456789\0", "\N{SNOWMAN}\U0001f600", "(other)")
TYPES: dict[str, tuple[pa.DataType, Callable[[int], Any], tuple[Any, ...]]] = {
    "int64": (pa.int64(), lambda k: k % 9, INT64),
    "int8": (pa.int8(), lambda k: k % 9, (-128, 127)),
    "uint64": (pa.uint64(), lambda k: k % 9, (2**64 - 1, 2**63)),
    "float64": (pa.float64(), lambda k: k / 7, (np.nan, np.inf, -np.inf, 1.7e308, -1.7e308, 5e-324, -0.0)),
    "float32": (pa.float32(), lambda k: k / 7, (np.nan, np.inf, -np.inf, 3.4e38, 1e-45)),
    "float16": (pa.float16(), lambda k: np.float16(k / 7), tuple(np.array([np.nan, np.inf, -np.inf, 65504], "f2"))),
    "decimal": (pa.decimal128(9, 2), lambda k: Decimal(k) / 4, (Decimal("9999999.99"), Decimal("-9999999.99"))),
    "long decimal": (pa.decimal256(38, 4), lambda k: Decimal(k) / 4, (Decimal(10) ** 33, -(Decimal(10) ** 33))),
    "boolean": (pa.bool_(), lambda k: k % 2 == 0, (True,)),
    "text": (pa.string(), lambda k: "abc"[k % 3], TEXTS),
    "text view": (pa.string_view(), lambda k: "abc"[k % 3], TEXTS),
    "labels": (pa.dictionary(pa.int8(), pa.string()), lambda k: "abc"[k % 3], TEXTS),
    "labels of numbers": (pa.dictionary(pa.int16(), pa.float64()), lambda k: float(k % 3), (np.nan, np.inf, 1e308)),
    "labels of times": (pa.dictionary(pa.int32(), pa.timestamp("s")), lambda k: dt.datetime(2020, 1, 1 + k % 3), INT64),
    "date": (pa.date32(), lambda k: 18000 + k, (-(2**31), 2**31 - 1, -719_163, 2_932_897)),
    "date in ms": (pa.date64(), lambda k: (18000 + k) * 86_400_000, (-(2**63), 2**63 - 1, 86_399_999)),
    "time in s": (pa.timestamp("s"), lambda k: 1_600_000_000 + k, INT64),
    "time in ns": (pa.timestamp("ns", "UTC"), lambda k: 1_600_000_000_000_000_000 + k, INT64),
    "time of day": (pa.time64("us"), lambda k: k * 10**9, (0, 86_399_999_999)),
    "duration": (pa.duration("ns"), lambda k: k * 10**9, INT64),
}
NUMBERS = (
    "int64",
    "int8",
    "uint64",
    "float64",
    "float32",
    "float16",
    "decimal",
    "long decimal",
    "time in s",
    "duration",
)


def table(name: str, row: int, value: Any, rows: int = ROWS) -> pa.Table:
    """Ordinary rows of one type, but for one cell; and a column of whole numbers."""
    kind, ordinary, _ = TYPES[name]
    cells = [ordinary(k) for k in range(rows)]
    return pa.table({"x": with_cell(kind, cells, row, value), "y": np.arange(rows) % 5})


def with_cell(kind: pa.DataType, cells: list[Any], row: int, value: Any) -> pa.Array:
    if pa.types.is_dictionary(kind) and pa.types.is_temporal(kind.value_type):
        seconds = [int(cell.timestamp()) for cell in cells]
        return with_cell(kind.value_type, seconds, row, value).dictionary_encode().cast(kind)
    cells[row] = value
    if not pa.types.is_temporal(kind):
        return pa.array(cells, kind)
    return pa.array(cells, pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)


def plain(name: str) -> pa.Table:
    return table(name, 0, table_cell(name))


def table_cell(name: str) -> Any:
    cell = TYPES[name][1](0)
    return int(cell.timestamp()) if isinstance(cell, dt.datetime) else cell


def with_ledger(rows: pa.Table, _: str) -> Any:
    with TemporaryDirectory() as folder, dipriv.Ledger.create(Path(folder) / "ledger.db") as ledger:
        return dipriv.privatize(rows, 1.0, ledger=ledger, dataset="x", seed=1)


SPLIT = dipriv.Split.new(0.4, bits=bits.source(1))
RELEASED = int(np.flatnonzero(~SPLIT.held_out(frames.read(plain("int64"))))[5])
LAST = ROWS - 1
NORMAL = Known({"x": stats.norm(3, 2), "y": stats.poisson(2)})
SCHEMA = {"y": dipriv.Discrete(levels=(0, 1, 2, 3, 4))}
REFERENCES: dict[str, Callable[[pa.Table, str], Any]] = {
    "private": lambda rows, _: dipriv.privatize(rows, 1.0, seed=1),
    "private, pure": lambda rows, _: dipriv.privatize(rows, 1.0, delta=0, labels="public", seed=1),
    "private, hold-out": lambda rows, _: dipriv.privatize(rows, 1.0, reference="private", holdout=0.4, seed=1),
    "private, unit": lambda rows, _: dipriv.privatize(rows, 1.0, unit="y", rows_per_unit=3, seed=1),
    "hold-out": lambda rows, _: dipriv.privatize(rows, 1.0, reference="holdout", split=SPLIT, seed=1),
    "hold-out, one column": lambda rows, _: dipriv.privatize(
        rows, 1.0, reference="holdout", split=SPLIT, columns=["x"], seed=1
    ),
    "hold-out, paper's kernel": lambda rows, _: dipriv.privatize(
        rows, 1.0, reference="holdout", split=SPLIT, kernel="laplace", seed=1
    ),
    "public": lambda rows, name: dipriv.privatize(rows, 1.0, public=plain(name), seed=1),
    "public, declared": lambda rows, name: dipriv.privatize(rows, 1.0, public=plain(name), schema=SCHEMA, seed=1),
    "groups": lambda rows, _: dipriv.privatize(rows, 1.0, reference=Grouped("y", first=4), seed=1),
    "private, with a ledger": with_ledger,
    "stream": lambda rows, _: dipriv.privatize(lambda: iter(rows.to_batches(50)), 1.0, seed=1),
    "stream, hold-out": lambda rows, _: dipriv.privatize(
        lambda: iter(rows.to_batches(50)), 1.0, reference="holdout", split=SPLIT, seed=1
    ),
}
OF_NUMBERS: dict[str, Callable[[pa.Table, str], Any]] = {
    "known": lambda rows, _: dipriv.privatize(rows, 1.0, reference=NORMAL, seed=1),
    "known mixture": lambda rows, _: dipriv.privatize(
        rows, 1.0, reference=Known(Mixture({0.0: 0.5}, stats.expon())), columns=["x"], seed=1
    ),
    "known levels": lambda rows, _: dipriv.privatize(
        rows, 1.0, reference=Known(stats.rv_discrete(values=([1, 2], [0.2, 0.8]))), columns=["x"], seed=1
    ),
    "known normal": lambda rows, _: dipriv.privatize(
        rows, 1.0, reference=Known(stats.multivariate_normal([0, 1], [[2.0, 1.0], [1.0, 1e-9 + 0.5]])), seed=1
    ),
    "parametric": lambda rows, _: dipriv.privatize(
        rows, 1.0, reference=Parametric({"x": "norm", "y": "norm"}), split=SPLIT, seed=1
    ),
    "parametric normal": lambda rows, _: dipriv.privatize(
        rows, 1.0, reference=Parametric("multivariate_normal"), split=SPLIT, seed=1
    ),
}
VARIANTS = (
    *("private, pure", "private, hold-out", "private, unit", "private, with a ledger", "stream, hold-out"),
    *("hold-out, one column", "hold-out, paper's kernel", "public, declared", "known mixture", "parametric normal"),
)
CASES = [
    pytest.param(reference, name, marks=pytest.mark.slow if reference in VARIANTS else ())
    for references, names in ((REFERENCES, TYPES), (OF_NUMBERS, NUMBERS))
    for reference in references
    for name in names
]


@pytest.mark.slow
@pytest.mark.parametrize(("reference", "name"), CASES, ids=str)
def test_no_cell_is_refused_or_changes_the_promise(reference: str, name: str) -> None:
    release = {**REFERENCES, **OF_NUMBERS}[reference]
    row = LAST if reference == "groups" else RELEASED
    expected = release(plain(name), name)
    for value in (None, *TYPES[name][2]):
        found = release(table(name, row, value), name)
        assert str(found.guarantee) == str(expected.guarantee)
        assert found.guarantee == expected.guarantee
        assert found.row_counts == expected.row_counts
        assert as_table(found.data).schema == as_table(expected.data).schema
        as_table(found.data).validate(full=True)


EXACT: tuple[ColumnType, ...] = ("text", "whole", "decimal", "boolean", "time")
"""Those that need no further option in a file whose cells commas separate."""
ODD_TEXTS = ("", "5", "7.5", "1,234", "01/02/2024", "2024-05-06", "2024-05-06T07:08:09Z", "09:30", "true", "x")


def test_no_cell_of_another_type_is_refused_where_exact_types_are_given(tmp_path: Path) -> None:
    """In a text file whose columns have no cell beside the odd one."""
    found = []
    for odd in ODD_TEXTS:
        rows = [[""] * len(EXACT)] * ROWS + [[odd] * len(EXACT)]
        lines = [",".join(EXACT), *(",".join(f'"{cell}"' for cell in row) for row in rows)]
        (tmp_path / "t.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        release = dipriv.privatize(tmp_path / "t.csv", 1.0, types={of: of for of in EXACT}, seed=1)
        found.append((str(release.guarantee), release.guarantee, release.row_counts, release.data.to_table().schema))
    assert found == [found[0]] * len(ODD_TEXTS)


NARROW = {"int8": 128, "uint8": 256}
PUBLIC_CODES = pa.table({"x": pa.array(["00000", "00001"] * 30).dictionary_encode(), "y": np.arange(60) % 5})
CODED: dict[str, Callable[[pa.Table, Path, dict[str, Any]], Any]] = {
    "memory": lambda rows, _, options: dipriv.privatize(rows, 1.0, **options),
    "function": lambda rows, _, options: dipriv.privatize(lambda: iter(rows.to_batches()), 1.0, **options),
    "file": lambda rows, at, options: dipriv.privatize(str(written(rows, at)), 1.0, **options),
    "hold-out": lambda rows, _, options: dipriv.privatize(rows, 1.0, reference="holdout", split=SPLIT, **options),
    "stream, hold-out": lambda rows, _, options: dipriv.privatize(
        lambda: iter(rows.to_batches()), 1.0, reference="holdout", split=SPLIT, **options
    ),
    "public": lambda rows, _, options: dipriv.privatize(rows, 1.0, public=PUBLIC_CODES, **options),
    "stream, public": lambda rows, _, options: dipriv.privatize(
        lambda: iter(rows.to_batches()), 1.0, public=PUBLIC_CODES, **options
    ),
}


def written(rows: pa.Table, at: Path) -> Path:
    """An Arrow stream, whose batches have dictionaries of their own."""
    with pa.ipc.new_stream(at / "rows.arrow", rows.schema) as writer:
        writer.write_table(rows)
    return at / "rows.arrow"


def postal_codes(index_type: str, last: int) -> pa.Table:
    """As many postal codes as the dictionaries have room for, in several of these; but for the last cell."""
    n_codes = NARROW[index_type]
    parts = []
    for number in range(4):
        of_part = np.arange(number * n_codes // 4, (number + 1) * n_codes // 4)
        codes = np.tile(of_part, 5)
        codes[-1] = codes[-1] if number < 3 else last
        kind = pa.dictionary(getattr(pa, index_type)(), pa.string())
        cells = pa.array([f"{code:05d}" for code in codes]).dictionary_encode().cast(kind)
        parts.append(pa.record_batch({"x": cells, "y": np.arange(len(codes)) % 5}))
    return pa.Table.from_batches(parts)


@pytest.mark.slow
@pytest.mark.parametrize("digits", [5, 4])
@pytest.mark.parametrize("index_type", NARROW)
@pytest.mark.parametrize("way", CODED)
def test_no_postal_code_is_refused_or_changes_the_promise(
    way: str, index_type: str, digits: int, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"schema": {"x": dipriv.Postal(digits=digits)}, "seed": 1}
    found = [CODED[way](postal_codes(index_type, last), tmp_path, options) for last in (NARROW[index_type] - 1, 9999)]
    assert found[0].guarantee == found[1].guarantee
    assert found[0].row_counts == found[1].row_counts
    for release in found:
        data = as_table(release.data)
        data.validate(full=True)
        assert data.schema == postal_codes(index_type, 0).schema


@pytest.mark.slow
@pytest.mark.parametrize("index_type", NARROW)
def test_no_postal_code_is_refused_later(index_type: str, tmp_path: Path) -> None:
    plain, other = postal_codes(index_type, 0), postal_codes(index_type, 9999)
    texts = other.cast(pa.schema({"x": pa.string(), "y": pa.int64()})).combine_chunks()
    dip = dipriv.DIP(1.0, schema={"x": dipriv.Postal(digits=5)}, seed=1).fit(plain)
    assert dip.transform(other).schema == plain.schema
    for rows in (other, texts):
        released = pa.Table.from_batches(dip.transform_batches(rows.to_batches()))
        assert released.schema == plain.schema
    dip.export_local(tmp_path / "reference")
    assert dipriv.load_local(tmp_path / "reference").privatize(other).schema == plain.schema


class Unwilling:
    """An object that answers no question."""

    def __float__(self) -> float:
        raise RuntimeError

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    def __hash__(self) -> int:
        raise RuntimeError

    def __str__(self) -> str:
        raise RuntimeError


ANYTHING: tuple[Any, ...] = (
    *(None, True, 0, -1, 128, 2**63, 2**64, -(10**400), 0.5, np.nan, np.inf, -np.inf, 1e308, 1j, np.uint64(2**64 - 1)),
    *(Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), Decimal("1E+5000"), np.float16(1), np.array([1, 2])),
    *("", "x" * 1_000_000, "a\0b", "\ud800", "1", b"\xff", [], {}, object(), Unwilling(), ...),
    *(dt.date.min, dt.date.max, dt.datetime.min, dt.datetime.max, dt.time.max, dt.timedelta.max, dt.timedelta.min),
    *(
        dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=14))),
        np.datetime64("NaT"),
        np.datetime64(9, "ns"),
    ),
    *(pd.NaT, pd.NA, pd.Timestamp("2262-04-11"), np.timedelta64(2**62, "D")),
)


@pytest.mark.slow
@pytest.mark.parametrize("reference", ["private", "public", "known"])
@pytest.mark.parametrize("name", TYPES)
def test_an_exported_reference_answers_every_record(reference: str, name: str, tmp_path: Path) -> None:
    if reference == "known" and name not in NUMBERS:
        return
    options: dict[str, Any] = {"public": plain(name)} if reference == "public" else {}
    options |= {"reference": NORMAL} if reference == "known" else {}
    dip = dipriv.DIP(1.0, seed=1, **options).fit(plain(name))
    dip.export_local(tmp_path / "reference")
    local = dipriv.load_local(tmp_path / "reference")
    for value in ANYTHING:
        assert local.privatize({"x": value, "y": value}).keys() == {"x", "y"}
    objects = pd.DataFrame({"x": pd.Series([*ANYTHING], dtype=object), "y": pd.Series([*ANYTHING], dtype=object)})
    assert len(local.privatize(objects)) == len(dip.transform(objects)) == len(ANYTHING)
    for value in (None, *TYPES[name][2]):
        rows = table(name, RELEASED, value)
        assert dip.transform(rows).schema == local.privatize(rows).schema == rows.schema


def test_an_array_of_objects_is_transformed() -> None:
    dip = dipriv.DIP(1.0, seed=1).fit(np.arange(200.0).reshape(100, 2))
    rows = np.full((len(ANYTHING), 2), 3.0, dtype=object)
    for number, value in enumerate(ANYTHING):
        rows[number, 0] = value
    assert dip.transform(rows).shape == rows.shape


def as_table(data: Any) -> pa.Table:
    return data if isinstance(data, pa.Table) else pa.Table.from_batches(list(data), data.schema)
