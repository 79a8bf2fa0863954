"""δ from the option to the guarantee, the sidecar and the ledger: never more than asked, never less than needed."""

from __future__ import annotations

import json
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import dipriv
from dipriv._base.decimals import exact, in_short
from dipriv.errors import InputError, PrivacyWarning
from dipriv.guarantee.sidecar import read_sidecar
from dipriv.references import Known
from dipriv.release.options import DEFAULT_DELTA, ReleaseOptions
from dipriv.sources.contribution_bound import ContributionBound
from tests.unit.refusal import refused
from tests.unit.release.approximate import Approximate

ROWS = 400
FRAME = pd.DataFrame({"who": np.arange(ROWS) // 4, "pay": np.random.default_rng(1).normal(size=ROWS)})
PAY = FRAME[["pay"]]
NEEDED: Any = Approximate()


# ---- the option ----


def test_the_default_is_1e_9_for_a_private_reference_and_0_for_others() -> None:
    assert ReleaseOptions(1.0).total_delta == DEFAULT_DELTA == 1e-9
    assert ReleaseOptions(1.0, holdout=0.2).total_delta == 1e-9
    assert ReleaseOptions(1.0, delta=0).total_delta == 0.0
    assert ReleaseOptions(1.0, delta=1e-7).total_delta == 1e-7
    pure: list[dict[str, Any]] = [{"reference": "holdout"}, {"public": PAY}, {"reference": Known(stats.norm())}]
    for options in pure:
        assert ReleaseOptions(1.0, **options).total_delta == 0.0
        assert ReleaseOptions(1.0, delta=0.0, **options).row_delta == 0.0
        refused(InputError, "delta=1e-09", "pure", call=partial(ReleaseOptions, 1.0, delta=1e-9, **options))


@pytest.mark.parametrize("wrong", [-1e-9, 0.1, 1, 1e-31, math.nan, math.inf, "1e-9", True])
def test_what_is_no_delta_is_refused(wrong: Any) -> None:
    refused(InputError, "delta", call=lambda: dipriv.privatize(PAY, 1.0, delta=wrong))


def test_a_large_delta_is_warned_of() -> None:
    with pytest.warns(PrivacyWarning, match="δ = 0.0001 is beyond 1e-5: .* one row in 10,000"):
        dipriv.privatize(PAY, 1.0, delta=1e-4)
    assert ReleaseOptions(1.0, delta=1e-5).concerns() == []


@given(st.integers(1, 60), st.floats(1e-9, 50), st.floats(1e-30, 0.09))
def test_the_rows_of_a_unit_have_no_more_than_its_delta(rows: int, epsilon: float, delta: float) -> None:
    """δ' (1 + e^ε' + ... + e^((K-1) ε')) <= δ, summed term by term."""
    options = ReleaseOptions(epsilon, delta=delta, unit="who", rows_per_unit=rows)
    with localcontext(prec=80):
        one = Decimal(options.row_epsilon)
        total = Decimal(options.row_delta) * sum((k * one).exp() for k in range(rows))
        assert total <= Decimal(repr(delta))
        assert total >= Decimal(repr(delta)) * (1 - Decimal("1e-14"))


def test_a_row_delta_that_no_float_holds_is_0() -> None:
    bound = ContributionBound("who", 1_000_000)
    assert bound.row_delta(1e12, 1e-9) == 0.0
    assert 0 < bound.row_delta(1.0, 1e-9) < 1e-15
    assert ContributionBound("who", 1).row_delta(1.0, 1e-9) == 1e-9


# ---- the guarantee ----


def test_the_guarantee_has_the_delta_that_is_asked_for_if_the_plan_needs_some() -> None:
    for part in (Fraction(1), Fraction(1, 3)):
        said = dipriv.privatize(PAY, 1.0, reference=Approximate(part), delta=1e-7).guarantee
        assert (said.epsilon, said.delta, said.reference.delta) == (1.0, 1e-7, 1e-7)
    assert dipriv.privatize(PAY, 1.0, reference=NEEDED).guarantee.delta == 1e-9
    assert "ε = 1, δ = 1e-9" in str(dipriv.privatize(PAY, 1.0, reference=NEEDED).guarantee)


def test_a_plan_that_needs_none_makes_a_pure_guarantee() -> None:
    none: Any = Approximate(Fraction(0))
    for options in ({"reference": none}, {"reference": NEEDED, "delta": 0}):
        said = dipriv.privatize(PAY, 1.0, **options).guarantee
        assert (said.delta, said.reference.delta) == (0.0, None)
        assert "(δ = 0)" in str(said)


def test_the_plan_gets_less_than_the_decimal_number_that_is_printed() -> None:
    """The float 1e-9 exceeds the number 1e-9."""
    assert Fraction(1e-9) > exact(1e-9)
    assert Fraction(ReleaseOptions(1.0).row_delta) < exact(1e-9)


def test_a_plan_that_needs_more_than_it_is_given_is_a_fault_of_dipriv() -> None:
    more: Any = Approximate(Fraction(11, 10))
    refused(dipriv.InternalError, "more δ", call=lambda: dipriv.privatize(PAY, 1.0, reference=more))


def test_a_unit_has_delta_as_a_whole_and_its_rows_a_part() -> None:
    said = dipriv.privatize(FRAME, 1.0, reference=NEEDED, unit="who", rows_per_unit=4).guarantee
    row = said.reference.delta
    assert said.delta == 1e-9
    assert row is not None
    assert row * sum(math.exp(k / 4) for k in range(4)) == pytest.approx(1e-9)
    assert f"δ = {in_short(row)} of each row" in str(said)


def test_rows_that_a_reference_is_learned_from_apart_have_the_same_delta() -> None:
    said = dipriv.privatize(PAY, 1.0, reference=NEEDED, holdout=0.3).guarantee
    assert said.delta == said.reference.delta == 1e-9
    assert "other rows under the same ε and δ" in str(said)


def test_the_sidecar_and_the_ledger_have_it(tmp_path: Path) -> None:
    PAY.to_csv(tmp_path / "in.csv", index=False)
    options: dict[str, Any] = {"ledger": tmp_path / "ledger.db", "dataset": "people", "reference": NEEDED}
    dipriv.Ledger.create(tmp_path / "ledger.db").close()
    dipriv.privatize_file(tmp_path / "in.csv", tmp_path / "out.csv", 0.5, **options)
    plain = json.loads((tmp_path / "out.csv.dipriv.json").read_text(encoding="utf-8"))
    assert plain["guarantee"]["delta"] == plain["guarantee"]["reference"]["delta"] == 1e-9
    assert plain["statement"][0] == "Guarantee: ε = 0.5, δ = 1e-9 differential privacy."
    found = read_sidecar(tmp_path / "out.csv")
    assert found is not None
    assert found.guarantee.delta == 1e-9
    with dipriv.Ledger.open(tmp_path / "ledger.db") as ledger:
        assert ledger.dataset("people").delta_spent == 1e-9
        ledger.set_budget("people", 9.0, 1e-9)
    refused(
        dipriv.BudgetError,
        "δ = 1e-9",
        call=lambda: dipriv.privatize_file(tmp_path / "in.csv", tmp_path / "two.csv", 0.5, **options),
    )
    assert not (tmp_path / "two.csv").exists()


def test_each_further_transform_adds_no_delta(tmp_path: Path) -> None:
    with dipriv.Ledger.create(tmp_path / "ledger.db") as ledger:
        dip = dipriv.DIP(1.0, reference=NEEDED, delta=1e-8, ledger=ledger, dataset="people").fit(PAY)
        assert dip.guarantee_.delta == 1e-8
        assert dip.local_guarantee_.delta == 0.0
        for _ in range(2):
            dip.transform(PAY)
        assert [record.delta for record in ledger.records("people")] == [1e-8, 0.0]


def test_a_failure_says_that_delta_is_spent() -> None:
    def learn(*_: Any) -> Any:
        raise RuntimeError("out of memory")

    class Failing(Approximate):
        def plan(self, *args: Any, **how: Any) -> Any:
            plan = super().plan(*args, **how)
            object.__setattr__(plan, "learn", learn)
            return plan

    with pytest.raises(RuntimeError) as caught:
        dipriv.privatize(PAY, 0.5, reference=Failing())
    assert caught.value.__notes__[0].startswith("ε = 0.5 and δ = 1e-9 are spent: ")
