"""Answers of the reference: the sums that its own rows approach, with errors of the size that they have."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dipriv
from dipriv._random.bits import source
from dipriv.release.bootstrap import cells_of
from dipriv.statistics import GroupMean, Mean, Share
from tests.unit.release.test_intervals import KINDS, population

ROWS = 200_000
ALARM = 5.0
"""In standard errors: no more than one in a million draws is as far from its mean."""


@pytest.fixture(scope="module")
def release() -> dipriv.Release[pd.DataFrame]:
    rng = np.random.default_rng(8)
    table = population(3000, 8).assign(pay=rng.lognormal(7, 1, 3000).round(2))
    table.loc[rng.random(3000) < 0.2, "pay"] = np.nan
    return dipriv.privatize(table, 2.0, schema=KINDS, pairs=[("grade", "hours"), ("grade", "pay")], seed=8)


def test_answers_are_what_rows_of_the_reference_approach(release: dipriv.Release[pd.DataFrame]) -> None:
    model, ask = release._model, release.reference
    assert model is not None
    rows = cells_of(model.columns, model.draw(ROWS, source(1)))

    def near(answer: float, drawn: float, deviation: float, count: float = ROWS) -> None:
        assert abs(answer - drawn) < ALARM * deviation / np.sqrt(count)

    share = Share("passed", "yes").of(rows)
    near(ask.probability({"passed": "yes"}, replicates=0).value, share, 0.5)
    both = rows.has("passed", "yes") & (rows.numbers("hours") >= 3) & (rows.numbers("hours") <= 5)
    near(ask.probability({"passed": "yes", "hours": (3, 5)}, replicates=0).value, both.mean(), 0.5)
    near(ask.probability({"pay": None}, replicates=0).value, Share("pay", None).of(rows), 0.5)
    pay = rows.numbers("pay")
    inside = np.nan_to_num(pay, nan=-1.0)
    near(ask.probability({"pay": (500, 1500)}, replicates=0).value, ((inside >= 500) & (inside <= 1500)).mean(), 0.5)
    near(ask.mean("hours", replicates=0).value, Mean("hours").of(rows), 2.0)
    near(ask.mean("pay", replicates=0).value, Mean("pay").of(rows), float(np.nanstd(pay)), 0.7 * ROWS)
    near(
        ask.mean("grade", {"passed": "yes"}, replicates=0).value,
        GroupMean("grade", "passed", "yes").of(rows),
        1.5,
        share * ROWS,
    )
    wrong = ask.mean("grade", {"passed": "no"}, replicates=0).value  # the control: another group
    assert abs(wrong - GroupMean("grade", "passed", "yes").of(rows)) > ALARM * 1.5 / np.sqrt(share * ROWS)


def test_a_crosstab_adds_up_and_has_errors(release: dipriv.Release[pd.DataFrame]) -> None:
    table = release.reference.crosstab("grade", "passed", replicates=10)
    assert table.rows == (1, 2, 3, 4, 5)
    assert set(table.columns) == {"yes", "no"}
    assert table.probabilities.sum() == pytest.approx(1.0)
    assert (table.errors > 0).all()
    one = release.reference.probability({"grade": 2, "passed": "yes"}, replicates=10)
    assert one.value == pytest.approx(table.probabilities[1, table.columns.index("yes")])
    assert one.error == pytest.approx(table.errors[1, table.columns.index("yes")])
    ranges = release.reference.crosstab("passed", "pay", replicates=0)
    assert ranges.columns[0] is None
    assert ranges.probabilities.sum() == pytest.approx(1.0)


def test_an_answer_on_pairs_that_were_not_measured_says_so() -> None:
    release = dipriv.privatize(population(600, 9), 0.3, schema=KINDS, pairs=[("grade", "hours")], seed=9)
    answer = release.reference.probability({"alone": 1, "hours": 4}, replicates=0)
    assert "alone x hours" in answer.caution
    assert not release.reference.probability({"grade": 1, "hours": 4}, replicates=0).caution
    assert np.isnan(answer.error)


def test_a_reference_of_one_column_answers() -> None:
    frame = pd.DataFrame({"grade": population(2000, 10)["grade"]})
    ask = dipriv.privatize(frame, 1.0, schema={"grade": KINDS["grade"]}, seed=10).reference
    whole = sum(ask.probability({"grade": grade}, replicates=0).value for grade in range(1, 6))
    assert whole == pytest.approx(1.0)
    assert ask.mean("grade", replicates=0).value == pytest.approx(frame["grade"].mean(), abs=0.2)


def test_questions_about_other_columns_are_refused(release: dipriv.Release[pd.DataFrame]) -> None:
    with pytest.raises(dipriv.InputError, match="the question"):
        release.reference.probability({"nobody": 1})
    with pytest.raises(dipriv.InputError, match="labels, not numbers"):
        release.reference.mean("passed", replicates=0)
    with pytest.raises(dipriv.InputError, match="given twice"):
        release.reference.crosstab("grade", "grade")
