"""Finding 1: one odd cell turned a column of numbers into labels, and everybody's exact values were printed."""

from __future__ import annotations

import datetime as dt
import decimal
import fractions
import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dipriv
from dipriv._tables import frames
from dipriv._tables.column_types import TypeRules
from dipriv._tables.typed_tables import settle_table
from dipriv.errors import SchemaError
from dipriv.release.options import ReleaseOptions
from dipriv.release.plan import Plan, prepare
from dipriv.sources import open_source
from tests.unit.refusal import SECRET, refused

ROWS = 2000
SALARY = [str(100 * pay) for pay in np.random.default_rng(0).integers(300, 1000, ROWS)]
ODD = [*SALARY[:-1], SECRET]


def promise(plan: Plan[Any]) -> tuple[str, pa.Schema, list[Any]]:
    """The printed guarantee, the types of the release, and all that a private reference takes the columns by."""
    facts = [(of.name, str(of.storage), str(of.arrow_type), of.nullable) for of in plan.fit_plan.columns]
    return str(plan.guarantee), plan.output_schema, facts


def promised(data: Any, **options: Any) -> tuple[str, pa.Schema, list[Any]]:
    return promise(prepare(open_source(data), ReleaseOptions(1.0, **options)))


def csv(path: Path, cells: list[str]) -> Path:
    path.write_text("salary\n" + "\n".join(cells) + "\n", encoding="utf-8")
    return path


def parquet(path: Path, cells: list[str]) -> Path:
    pq.write_table(pa.table({"salary": cells}), path)
    return path


FRAMES: dict[str, Any] = {
    "pandas": lambda cells: pd.DataFrame({"salary": cells}),
    "pandas, as it is read": lambda cells: pd.read_csv(io.StringIO("salary\n" + "\n".join(cells)), dtype="str"),
    "polars": lambda cells: pl.DataFrame({"salary": cells}),
    "polars, lazy": lambda cells: pl.DataFrame({"salary": cells}).lazy(),
    "arrow": lambda cells: pa.table({"salary": cells}),
}


def test_an_odd_cell_of_a_csv_file_changes_neither_type_nor_promise(tmp_path: Path) -> None:
    plain, odd = (promised(csv(tmp_path / f"{n}.csv", cells)) for n, cells in enumerate((SALARY, ODD)))
    assert plain == odd
    assert plain[1].field("salary").type == pa.int64()


def test_an_odd_cell_of_a_csv_file_is_missing_and_releases_are_of_numbers(tmp_path: Path) -> None:
    release = dipriv.privatize(csv(tmp_path / "odd.csv", ODD), 1.0)
    released = release.data.to_table()["salary"]
    assert released.type == pa.int64()
    assert len(released) == ROWS
    assert len(set(released.drop_null().to_pylist()) - {int(pay) for pay in SALARY}) > 0


@pytest.mark.parametrize("frame", [*FRAMES, "parquet"])
def test_text_that_is_numbers_is_questioned_with_and_without_an_odd_cell(frame: str, tmp_path: Path) -> None:
    make = FRAMES.get(frame, lambda cells: parquet(tmp_path / f"{len(set(cells))}.parquet", cells))
    for cells in (SALARY, ODD):
        data = make(cells)
        words = ("column 'salary'", "of its cells are numbers (number or text?)", "--type salary=number", "types=")
        refused(SchemaError, *words, call=lambda: promised(data))  # noqa: B023 - called at once


@pytest.mark.parametrize("frame", [*FRAMES, "parquet"])
@pytest.mark.parametrize("said", ["number", "text", "Continuous", "Categorical"])
def test_an_answer_makes_both_the_same(frame: str, said: str, tmp_path: Path) -> None:
    make = FRAMES.get(frame, lambda cells: parquet(tmp_path / f"{len(set(cells))}.parquet", cells))
    kinds = {"Continuous": dipriv.Continuous(), "Categorical": dipriv.Categorical()}
    options = {"schema": {"salary": kinds[said]}} if said in kinds else {"types": {"salary": said}}
    plain, odd = (promised(make(cells), **options) for cells in (SALARY, ODD))
    assert plain == odd
    is_number = pa.types.is_integer(plain[1].field("salary").type)
    assert is_number == (said in ("number", "Continuous"))


def test_pandas_objects_with_an_odd_one_are_numbers() -> None:
    numbers: list[Any] = [int(pay) for pay in SALARY]
    plain, odd = (
        promised(pd.DataFrame({"salary": pd.Series(cells, dtype=object)}))
        for cells in (numbers, [*numbers[:-1], SECRET])
    )
    assert plain == odd
    assert plain[1].field("salary").type == pa.int64()


def test_nothing_is_asked_where_labels_must_be_declared() -> None:
    schema = {"salary": dipriv.Categorical(levels=tuple(sorted({*SALARY})))}
    assert promised(FRAMES["pandas"](SALARY), labels="declared", schema=schema)
    refused(
        SchemaError,
        "does not declare the labels",
        call=lambda: promised(FRAMES["pandas"](SALARY), labels="declared"),
    )


@pytest.mark.parametrize(
    "odd",
    [10**5000, decimal.Decimal("sNaN"), fractions.Fraction(10**400)],
    ids=["whole", "signaling NaN", "fraction"],
)
def test_numbers_that_python_cannot_write_are_missing(odd: Any) -> None:
    numbers: list[Any] = [int(pay) for pay in SALARY]
    plain, other = (
        pd.DataFrame({"salary": pd.Series(cells, dtype=object)}) for cells in (numbers, [*numbers[:-1], odd])
    )
    assert promised(plain) == promised(other)
    assert len(dipriv.privatize(other, 1.0).data) == ROWS
    assert len(dipriv.DIP(1.0).fit(plain).transform(other)) == ROWS


def visits(at: Path, whole_family: bool) -> Path:
    """100 persons with one row each; one further person has 100 rows, in which numbers have decimals, or have not."""
    rows = [f"{n},{n % 7},a" for n in range(100)]
    at.write_text("\n".join(["person,dose,sex", *rows, *["x,1.5,a" if whole_family else "x,1,a"] * 100]) + "\n")
    return at


@pytest.mark.filterwarnings("ignore")
def test_nothing_is_claimed_about_types_and_persons(tmp_path: Path) -> None:
    """One person with many rows changes a type, so the guarantee of a person says that types are public."""
    asked: dict[str, Any] = {"unit": "person", "rows_per_unit": 2}
    plain, odd = (promised(visits(tmp_path / f"{of}.csv", of), **asked) for of in (False, True))
    assert plain[1] != odd[1]
    for said, *_ in (plain, odd):
        assert "settled from all rows of all persons, and nothing is claimed" in said
        assert "no single row changes" not in said
    for types in ({"dose": "decimal", "sex": "text"}, {"dose": "whole", "sex": "text"}):
        plain, odd = (promised(visits(tmp_path / f"{of}.csv", of), **asked, types=types) for of in (False, True))
        assert plain == odd
        assert "settled from all rows" not in plain[0]
    undecided = {"dose": "number", "sex": "text"}  # whole or decimal
    assert "settled from all rows" in promised(tmp_path / "True.csv", **asked, types=undecided)[0]


def test_types_of_pandas_objects_are_said_to_be_read_from_cells() -> None:
    numbers = [int(pay) for pay in SALARY]
    objects = pd.DataFrame({"salary": pd.Series(numbers, dtype=object)})
    assert "settled from all rows so that no single row changes it" in promised(objects)[0]
    assert "settled from all rows" not in promised(objects, types={"salary": "whole"})[0]
    assert "settled from all rows" not in promised(pd.DataFrame({"salary": numbers}))[0]
    texts = pa.table({"salary": SALARY})
    assert "settled from all rows" in promised(texts, types={"salary": "number"})[0]
    assert "settled from all rows" not in promised(texts, types={"salary": "text"})[0]


COLUMNS: dict[str, Any] = {
    "age": lambda rng: str(rng.integers(0, 100)),
    "height": lambda rng: f"{rng.normal(170, 9):.1f}",
    "born": lambda rng: str(np.datetime64("1940-01-01") + rng.integers(0, 20_000)),
    "seen": lambda rng: str(np.datetime64("2020-01-01T00:00:00") + rng.integers(0, 10**8)),
    "smokes": lambda rng: str(rng.random() < 0.3),
    "zip": lambda rng: f"{rng.integers(0, 20_000):05}",
    "city": lambda rng: f"city {rng.integers(9)}",
    "income": lambda rng: "NA" if rng.random() < 0.4 else str(rng.integers(0, 10**6)),
    "notes": lambda rng: "",
}
CELLS = (
    *("", "NA", "-", "n/a", "?", "0", "-1", "12", "007", "1e6", "1e400", "-inf", "nan", "9" * 30, "3.14159", ",", '"'),
    *("2020-02-30", "2020-01-01", "2020-01-01 12:00", "2020-01-01T12:00:00.5Z", "9:30", "31/12/1999", "TRUE", "no"),
    *("x" * 5000, "a\nb", " 5 ", "=1+1", "Zürich", "(other)", "\t", "0x1F", "1_000", "1,5", "salary", "city 3"),
)


def written(rows: list[list[str]]) -> str:
    def line(cells: list[str]) -> str:
        return ",".join('"' + of.replace('"', '""') + '"' if set(of) & set(',"\n') else of for of in cells)

    return "\n".join(map(line, [[*COLUMNS], *rows])) + "\n"


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3))])
def test_200_changes_of_one_row_leave_types_and_guarantee_as_they_are(seed: int, tmp_path: Path) -> None:
    """In all columns at once, or in one. Marks, lengths, quotes and types of cells are all changed."""
    rng = np.random.default_rng(seed)
    rows = [[make(rng) for make in COLUMNS.values()] for _ in range(300)]
    file = tmp_path / "t.csv"
    options = {"types": {"zip": "text"}, "drop": ["notes"]} if seed % 2 else {"drop": ["notes", "zip"]}

    def found(rows: list[list[str]]) -> tuple[str, pa.Schema, list[Any]]:
        file.write_text(written(rows), encoding="utf-8")
        return promised(file, **options)

    before = found(rows)
    for _ in range(50):
        changed, row = [list(cells) for cells in rows], rng.integers(len(rows))
        places = range(len(COLUMNS)) if rng.random() < 0.5 else [rng.integers(len(COLUMNS))]
        for place in places:
            changed[row][place] = str(rng.choice(CELLS))
        assert found(changed) == before


@pytest.mark.parametrize("line", ["1,2", "1,2,3,4", '"1,2,3', ""])
def test_a_row_with_another_number_of_cells_is_refused_before_anything_is_spent(line: str, tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("a,b,c\n" + "1,2,3\n" * 50 + line + "\n" + "1,2,3\n" * 50, encoding="utf-8")
    ledger = dipriv.Ledger.create(tmp_path / "ledger.db")
    if not line:  # an empty line is no row, in any reader
        assert promised(file)[1].names == ["a", "b", "c"]
        return
    with pytest.raises(dipriv.errors.InputError) as caught:
        dipriv.privatize(file, 1.0, ledger=ledger, dataset="t")
    assert "t.csv" in caught.value.fault
    assert not ledger.datasets()


@pytest.mark.parametrize(
    "cell", [7, 1.5, True, dt.date(2024, 5, 1), dt.time(1, 2, 3, 400)], ids=lambda cell: type(cell).__name__
)
@pytest.mark.parametrize(
    "kind", [dipriv.Categorical(levels=("1", "2", "x")), dipriv.Datetime()], ids=["labels", "times"]
)
def test_a_kind_does_not_let_one_object_change_a_type(kind: Any, cell: Any) -> None:
    """Objects of one class in 95 of 100 cells have its type; in 94 their keeper is asked."""
    rules = TypeRules.of({"x": kind}, {})
    found = []
    for fitting in (95, 94):
        frame = pd.DataFrame({"x": pd.Series([cell] * fitting + ["x"] * (100 - fitting), dtype=object)})
        found.append(settle_table(frames.read(frame), ["x"], rules))
    assert not found[0][1]
    assert [question.column for question in found[1][1]] == ["x"]
