"""Weights with a public total are released with that total."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dipriv
from dipriv._base.columns import ColumnValues
from dipriv._tables.arrow import is_text as is_text_type
from dipriv.errors import InputError, SchemaError
from dipriv.release.weights import rescaled, sum_of
from dipriv.schema import ColumnType, Schema, Weight
from dipriv.sources import stream
from dipriv.utility.verdict import Grade
from tests.support import ALARM, data_folder
from tests.unit.refusal import refused

RNG = np.random.default_rng(2)
SURVEY = pd.DataFrame(
    {
        "share": RNG.gamma(2.0, 40.0, 600),
        "age": RNG.integers(18, 90, 600),
        "people": RNG.integers(1, 400, 600),
    }
)
TOTALS = {"share": Weight(total=123456.5), "people": Weight(lower=1, total=99_000)}
ASKED: dict[str, Any] = {"schema": TOTALS, "kernel": "laplace", "seed": 3}


@pytest.mark.parametrize("options", [{}, {"reference": "holdout"}, {"unit": "age"}], ids=str)
def test_released_weights_have_the_total(options: dict[str, Any]) -> None:
    release = dipriv.privatize(SURVEY, 2.0, **ASKED, **options)
    assert release.data["share"].sum() == pytest.approx(123456.5, rel=1e-12)
    rows = len(release.data) * (10 if "unit" in options else 1)  # a person's rows are rounded alike
    allowed = np.sqrt(rows * np.log(2 / ALARM) / 2)  # Hoeffding: whole ones are rounded up or down at random
    assert abs(release.data["people"].sum() - 99_000) <= allowed
    assert release.data["people"].dtype == np.int64
    assert release.data["people"].min() >= 0
    assert release.schema["share"] == TOTALS["share"]
    no_totals = {name: replace(kind, total=None) for name, kind in TOTALS.items()}
    without = dipriv.privatize(SURVEY, 2.0, **ASKED | {"schema": no_totals}, **options).data
    factor = 123456.5 / without["share"].sum()  # control, and nothing but a factor
    assert factor != pytest.approx(1, abs=1e-3)
    np.testing.assert_allclose(release.data["share"], without["share"] * factor, rtol=1e-12, atol=1e-300)
    pd.testing.assert_series_equal(release.data["age"], without["age"])


def test_files_in_blocks_have_the_weights_of_the_table_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "MIN_BLOCK_ROWS", 77)
    monkeypatch.setattr(stream, "MAX_BLOCK_ROWS", 77)
    table = pa.Table.from_pandas(SURVEY, preserve_index=False)
    pq.write_table(table, tmp_path / "in.parquet")
    found = dipriv.privatize(tmp_path / "in.parquet", 2.0, **ASKED).data.to_table()
    assert found.to_pylist() == dipriv.privatize(table, 2.0, **ASKED).data.to_pylist()


def test_sums_are_exact() -> None:
    values = np.ldexp(RNG.normal(size=5000), RNG.integers(-300, 300, 5000))
    cells = ColumnValues(values)
    assert sum_of(cells) == sum(map(Fraction, values.tolist()))
    assert sum_of(ColumnValues(np.array([3, 4]), np.array([0, 1], dtype=np.uint8))) in (3, 4)
    some = sum_of(ColumnValues(values[:77])) + sum_of(ColumnValues(values[77:]))
    assert some == sum_of(cells)


def test_weights_are_compared_after_rescaling() -> None:
    release = dipriv.privatize(SURVEY, 20.0, schema=TOTALS, seed=3)
    columns = {facts.name: facts for facts in release.report(original=SURVEY).columns}
    assert "rescaled to the declared total" in columns["share"].note
    for name in TOTALS:
        assert not any("outside" in reason and "100" in reason for reason in columns[name].reasons)
        assert columns[name].grade is not Grade.LOST
    plain = {facts.name: facts for facts in dipriv.compare(SURVEY, release.data).columns}
    assert plain["share"].grade is Grade.LOST  # control: without the kind


def test_weights_without_a_positive_sum_stay() -> None:
    cells = ColumnValues(np.zeros(3))
    assert rescaled(cells, 5.0, sum_of(cells), np.zeros(3)) is cells


@pytest.mark.parametrize(
    ("values", "largest"),
    [
        (np.array([5e-324, 0.0]), 1e300),
        (np.array([1e-45, 0.0], dtype=np.float32), np.finfo(np.float32).max),
        (np.array([3, 4], dtype=np.int64), 2**63 - 1024),
        (np.array([3, 4], dtype=np.uint64), 2**64 - 2048),
        (np.array([3, 4], dtype=np.int32), 2**31 - 1),
        (np.array([2.0, 2.0, -4.0 + 1e-15]), np.finfo(np.float64).max),
    ],
)
def test_totals_beyond_the_type_are_cut(values: np.ndarray, largest: float) -> None:
    cells = ColumnValues(values)
    found = rescaled(cells, 1e300 if values.min() >= 0 else 1e308, sum_of(cells), np.zeros(len(values))).values
    assert np.isfinite(found).all()
    assert 0 < found.max() <= largest
    assert values.dtype.kind == "f" or found.max() == largest


def test_small_whole_weights_take_a_factor_near_one() -> None:
    cells = ColumnValues(np.ones(20_000, dtype=np.int64))
    uniforms = np.random.default_rng(1).random(20_000)
    found = rescaled(cells, 22_000.0, sum_of(cells), uniforms).values
    assert set(found.tolist()) == {1, 2}
    allowed = np.sqrt(20_000 * np.log(2 / ALARM) / 2)
    assert abs(found.sum() - 22_000) <= allowed < 22_000 - np.rint(cells.values * 1.1).sum()  # control: the nearest


def test_weights_that_are_constant_in_a_person_stay_equal() -> None:
    person = np.arange(600) // 3
    table = SURVEY.assign(person=person, people=SURVEY["people"].to_numpy()[person])[["person", "people", "age"]]
    schema = {"people": Weight(upper=400, total=99_000)}
    found = dipriv.privatize(table, 6.0, unit="person", rows_per_unit=3, constant=["people"], schema=schema).data
    assert (found.groupby("person")["people"].nunique() == 1).all()


def test_what_is_refused() -> None:
    for total in (0, -1.0, float("nan"), "many"):
        with pytest.raises(SchemaError, match="is not a positive number"):
            Weight(total=total)  # type: ignore[arg-type]
    schema = Schema(TOTALS, rules=["age < 20 => people = 1"])
    refused(InputError, "'people' has a total, and a rule", call=lambda: dipriv.privatize(SURVEY, 1.0, schema=schema))
    later = dipriv.DIP(1.0, schema=TOTALS)
    refused(InputError, "a total is declared where rows are released later", call=lambda: later.fit(SURVEY))


def test_a_schema_with_weights_is_read_as_it_was_written() -> None:
    schema = Schema({"w": Weight(total=2848507), "v": Weight()})
    assert Schema.from_toml(schema.to_toml()) == schema
    assert Schema.from_json(schema.to_json()) == schema


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_the_population_of_a_survey_is_kept(seed: int) -> None:
    path = data_folder() / "sdnist" / "national2019.parquet"
    if not path.exists():
        pytest.skip("national2019 is not in the folder of real data; set DIPRIV_DATA")
    table = pq.read_table(path)
    is_text = [field.name for field in table.schema if is_text_type(field.type)]
    texts: dict[str, ColumnType] = dict.fromkeys(is_text, "text")
    total = int(np.asarray(table["PWGTP"]).sum())
    found: Any = dipriv.privatize(table, 1.0, schema={"PWGTP": Weight(lower=1, total=total)}, types=texts, seed=seed)
    assert np.asarray(found.data["PWGTP"]).sum() == pytest.approx(total, rel=0.01)
