"""Rules on real tables: salaries add up, children have no income, industries have their category."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

import dipriv
from dipriv import Schema
from tests.support import data_folder

pytestmark = pytest.mark.slow

CELLS = {
    "AGEP": [-1, 14, 29, 44, 59, 74, math.inf],
    "PINCP": [-math.inf, 0, 10_000, 30_000, 60_000, math.inf],
}
ALARM = 5.0
"""In standard deviations; 12 cells exceed that by chance once in 100,000 releases."""


def real(path: str) -> pd.DataFrame:
    file = data_folder() / path
    if not file.is_file():
        pytest.skip(f"{path} not found in the data folder {data_folder().name}; set DIPRIV_DATA")
    return pd.read_parquet(file)


def national() -> tuple[pd.DataFrame, dict[str, Any]]:
    table = real("sdnist/national2019.parquet")[["AGEP", "PINCP", "MSP", "SEX", "EDU", "INDP", "INDP_CAT"]]
    return table, {"types": dict.fromkeys(["MSP", "SEX", "EDU", "INDP", "INDP_CAT"], "text"), "seed": 3}


def test_salaries_add_up_in_every_row() -> None:
    table = real("uc_salary/uc-salary-2010-nine-locations.parquet")
    schema = Schema(rules=["gross_pay = regular_pay + overtime_pay + other_pay"])
    released = dipriv.privatize(table, 1.0, schema=schema, seed=1).data
    cents = (released.drop(columns="location") * 100).round()
    assert (cents["gross_pay"] == cents["regular_pay"] + cents["overtime_pay"] + cents["other_pay"]).all()
    assert released["gross_pay"].notna().all()
    assert len(released) == len(table)
    without = dipriv.privatize(table, 1.0, seed=1).data
    parts = without["regular_pay"] + without["overtime_pay"] + without["other_pay"]
    assert (parts - without["gross_pay"]).abs().gt(0.005).mean() > 0.5  # control


def test_industries_have_their_category_in_every_row() -> None:
    table, options = national()
    category = {str(code): str(of) for code, of in table.groupby("INDP")["INDP_CAT"].first().items()}
    schema = Schema(functions={"INDP_CAT": {"of": "INDP", "map": category}})
    released = dipriv.privatize(table, 1.0, schema=schema, **options).data
    assert (released["INDP_CAT"] == released["INDP"].map(category)).all()
    without = dipriv.privatize(table, 1.0, **options).data
    assert (without["INDP_CAT"] != without["INDP"].map(category)).mean() > 0.2  # control


def shares(release: Any, name: str) -> tuple[dict[str, float], dict[str, float]]:
    """The released shares of a column's cells, and their standard deviations: sampled rows, and noisy counts."""
    data, n = release.data[name], len(release.data)
    measured = {column.name: column for column in release.secrets.mechanism.measurements.columns}[name]
    cells = pd.cut(data, CELLS[name]).astype(str)
    found, deviations = {}, {}
    for cell, some in data.groupby(cells):
        share = len(some) / n
        states = min(max(1, some.nunique()), len(measured.counts))
        found[str(cell)] = share
        deviations[str(cell)] = math.sqrt(share * (1 - share) / n + states * (measured.deviation / n) ** 2)
    return found, deviations


def largest(one: Any, other: Any) -> float:
    """The largest difference of two releases' shares of income and age, in standard deviations."""
    worst = 0.0
    for name in CELLS:
        (left, first), (right, second) = shares(one, name), shares(other, name)
        for cell in {*left, *right}:
            noise = math.hypot(first.get(cell, 1 / 1000), second.get(cell, 1 / 1000))
            worst = max(worst, abs(left.get(cell, 0.0) - right.get(cell, 0.0)) / noise)
    return worst


def test_children_have_no_income_at_no_loss_of_margins(monkeypatch: pytest.MonkeyPatch) -> None:
    table, options = national()
    schema = Schema(rules=["AGEP < 15 => PINCP is missing", "AGEP < 15 => MSP = 'N'"])

    def release(declared: Schema) -> Any:
        made = dipriv.privatize(table, 1.0, schema=declared, **options)
        if declared.rules:
            children = made.data["AGEP"] < 15
            assert made.data["PINCP"][children].isna().all()
            assert (made.data["MSP"][children] == "N").all()
        return made

    without, with_rules = release(Schema()), release(schema)
    assert without.data["PINCP"][without.data["AGEP"] < 15].notna().any()  # control
    assert largest(without, with_rules) < ALARM
    monkeypatch.setattr("dipriv.references._learning.learn.measure_pairs", lambda *given: [])
    assert largest(without, release(schema)) < ALARM  # zeros alone keep the margins, where no table is measured
    monkeypatch.setattr("dipriv.references._learning.learn.zeros_of", lambda *given: [])
    assert largest(without, release(schema)) > ALARM  # control: correcting rows without zeros moves them
