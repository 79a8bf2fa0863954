"""Verdicts on made-up measurements, each of which must get a certain grade and reason."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from dipriv.errors import InputError
from dipriv.guarantee.guarantee import Guarantee, ReferenceFacts, ReferenceSource, Unprotected, UnprotectedKind
from dipriv.references.measured import MeasuredPair
from dipriv.utility.expected_error import ColumnEvidence, Line
from dipriv.utility.judging import Evidence, factor_needed, judge
from dipriv.utility.verdict import LOST, AdviceKind, ColumnVerdict, Grade, ReasonKind, Verdict
from dipriv.utility.wording import LINES, expected_error

GUARANTEE = Guarantee(1.0, "optimal", ReferenceFacts(ReferenceSource.PRIVATE, "private", 0.9, 0.1))
EVEN = np.full(4, 0.25)


def verdict_of(*columns: ColumnEvidence, rows: int = 50_000, pairs: tuple[MeasuredPair, ...] = ()) -> Verdict:
    names = [column.name for column in columns]
    return judge(names, rows, GUARANTEE, dict.fromkeys(names, 0.01), Evidence(rows, columns, pairs))


def kinds(verdict: Verdict, name: str = "x") -> list[ReasonKind]:
    (found,) = [column for column in verdict.columns if column.name == name]
    return [reason.kind for reason in found.reasons]


def test_clear_counts_are_good() -> None:
    verdict = verdict_of(ColumnEvidence("x", EVEN, 0.001))
    assert verdict.grade is Grade.GOOD
    assert verdict.good == ("x",)
    assert kinds(verdict) == []
    assert verdict.too_small is None


def test_the_same_counts_under_large_noise_are_lost() -> None:
    verdict = verdict_of(ColumnEvidence("x", EVEN, 0.5))
    assert verdict.lost == ("x",)
    assert kinds(verdict)[0] is ReasonKind.NOISE_ABOVE_COUNTS
    assert verdict.too_small == 50
    assert "too few" in str(verdict)
    assert verdict.advice[0].kind is AdviceKind.FEWER_COLUMNS


def test_merged_labels() -> None:
    some = verdict_of(ColumnEvidence("x", np.array([0.5, 0.4]), 0.001, found=True, merged=0.1))
    assert some.usable == ("x",)
    assert kinds(some)[0] is ReasonKind.MERGED
    most = verdict_of(ColumnEvidence("x", np.array([0.4]), 0.001, found=True, merged=0.6))
    assert most.lost == ("x",)
    assert next(advice.kind for advice in most.advice) is AdviceKind.DECLARE_LEVELS
    every = verdict_of(ColumnEvidence("x", np.array([]), 0.001, found=True, merged=1.0))
    assert every.lost == ("x",)
    assert kinds(every) == [ReasonKind.ONLY_OTHER]
    assert every.advice[0] == dataclasses.replace(every.advice[0], kind=AdviceKind.DROP, columns=("x",))


def test_a_constant_column_is_named_only_where_noise_could_have_made_it() -> None:
    hidden = verdict_of(ColumnEvidence("x", np.array([1.0, 0.0]), 0.01, found=True))
    assert kinds(hidden)[0] is ReasonKind.CONSTANT
    assert hidden.usable == ("x",)
    assert "constant" in str(hidden)
    known = verdict_of(ColumnEvidence("x", np.array([1.0, 0.0]), 0.0001, found=True))
    assert known.good == ("x",)
    assert kinds(known) == []


def test_a_bin_of_several_values_is_no_constant() -> None:
    line = Line(np.zeros(1, dtype=np.intp), np.array([1.0]), (0.0, 0.0), (True, True))
    one = ColumnEvidence("x", np.ones(1), 0.08, line=line)
    assert kinds(verdict_of(one))[0] is ReasonKind.CONSTANT  # control
    several = verdict_of(dataclasses.replace(one, several=True))
    assert ReasonKind.CONSTANT not in kinds(several)
    assert expected_error(several.columns[0]) == f"up to {several.columns[0].most:.3f}"


def test_declared_bounds_are_not_advised_again() -> None:
    line = Line(np.zeros(4, dtype=np.intp), np.array([4.0]), (0.0, 16.0), (True, True))
    column = ColumnEvidence("x", EVEN, 0.02, line=line)
    assert AdviceKind.DECLARE_RANGE in [one.kind for one in verdict_of(column).advice]
    stated = verdict_of(dataclasses.replace(column, bounded=True))
    assert AdviceKind.DECLARE_RANGE not in [one.kind for one in stated.advice]


def test_a_hold_out_is_advised_with_its_price_and_only_where_it_helps() -> None:
    good = verdict_of(ColumnEvidence("x", EVEN, 0.001))
    (advice,) = [one for one in good.advice if one.kind is AdviceKind.HOLDOUT]
    assert "4 times" in advice.text
    assert "dipriv plan" in advice.text
    poor = verdict_of(ColumnEvidence("x", EVEN, 0.02))
    assert poor.grade is not Grade.GOOD
    assert AdviceKind.HOLDOUT not in [one.kind for one in poor.advice]
    facts = ReferenceFacts(ReferenceSource.PRIVATE, "private", rows=500)
    held_out = Guarantee(1.0, "optimal", facts)
    again = judge(["x"], 1000, held_out, {"x": 0.01}, Evidence(50_000, (ColumnEvidence("x", EVEN, 0.001),)))
    assert again.grade is Grade.GOOD
    assert AdviceKind.HOLDOUT not in [one.kind for one in again.advice]


def test_one_factor_is_named_before_and_after() -> None:
    column = ColumnEvidence("x", EVEN, 0.2)
    evidence = Evidence(1000, (column,), foreseen=(0.3,))
    found = judge(["x"], 1000, GUARANTEE, {"x": 0.01}, evidence)
    assert found.too_small == factor_needed([0.3]) != factor_needed([0.2])


def test_the_headline_says_how_many_relations_there_are() -> None:
    dependent = np.array([[2000.0, 500.0], [500.0, 2000.0]])
    columns = [ColumnEvidence(name, EVEN, 0.001) for name in "abc"]
    pairs = tuple(MeasuredPair((one, two), dependent, 30.0) for one, two in ("ab", "ac"))
    none, some = (verdict_of(*columns, rows=5000, pairs=found) for found in ((), pairs))
    assert none.grade is some.grade is Grade.GOOD
    said = "Verdict: good for single columns; relations between columns: {} of 3 measured well. 3 of 3 columns good."
    assert str(none).startswith(said.format(0))
    assert "Not for how columns depend on each other." in str(none)
    assert str(some).startswith(said.format(2))
    assert "For how columns depend on each other, see Pairs." in str(some)
    assert "The other one is released as if independent" in str(some)
    assert str(verdict_of(columns[0])).startswith("Verdict: good. 1 of 1 column good.")


def test_columns_that_are_not_named_are_in_the_data_sheet() -> None:
    for width, merged in ((5, 0.0), (5, 0.5), (3, 0.5)):
        columns = [ColumnEvidence(f"x{place}", EVEN, 0.5, found=True, merged=merged) for place in range(width)]
        (line,) = [line for line in str(verdict_of(*columns, rows=1000)).splitlines() if "Lost:" in line]
        assert ("2 more (all in the data sheet)" in line) == (width > 3)


def test_nulls_and_ends_that_may_be_lost() -> None:
    line = Line(np.zeros(4, dtype=np.intp), np.array([4.0]), (0.0, 16.0), (True, True))
    verdict = verdict_of(ColumnEvidence("x", EVEN, 0.008, nullable=True, line=line))
    assert {ReasonKind.NULLS, ReasonKind.ENDS} <= set(kinds(verdict))
    closed = dataclasses.replace(line, cut=(0.0, 0.0), open=(False, False))
    control = verdict_of(
        ColumnEvidence(
            "x",
            EVEN,
            0.008,
            missing=1,
            nullable=True,
            line=dataclasses.replace(closed, octave_of=np.zeros(3, dtype=np.intp)),
        )
    )
    assert not {ReasonKind.NULLS, ReasonKind.ENDS} & set(kinds(control))


def test_what_may_be_lost_is_not_called_usable() -> None:
    line = Line(np.zeros(1, dtype=np.intp), np.array([1.0]), (0.0, 0.0), (True, True), without_positive=True)
    verdict = verdict_of(ColumnEvidence("x", np.ones(1), 0.08, line=line))
    assert verdict.named(Grade.UNKNOWN) == ("x",)
    assert "noise hides whether" in str(verdict)
    for noise in np.geomspace(1e-4, 1.0, 60):
        (column,) = verdict_of(ColumnEvidence("x", np.ones(1), float(noise), line=line)).columns
        assert column.most is not None
        assert (column.grade in (Grade.GOOD, Grade.USABLE)) == (column.most <= LOST)


def test_a_release_is_lost_if_half_of_its_columns_are_expected_to_be() -> None:
    def release(*errors: float) -> Verdict:
        columns = tuple(ColumnVerdict(f"x{place}", Grade.UNKNOWN, error) for place, error in enumerate(errors))
        return Verdict(1000, 1.0, ReferenceSource.PRIVATE, columns)

    assert release(0.3, 0.1).grade is Grade.LOST
    assert release(0.3, 0.1, 0.1).grade is Grade.UNKNOWN
    usable = ColumnVerdict("y", Grade.USABLE, 0.1)
    assert Verdict(1000, 1.0, ReferenceSource.PRIVATE, (*release(0.1).columns, usable)).grade is Grade.USABLE


def test_pairs_are_advised_unless_some_were_named() -> None:
    columns = [ColumnEvidence(name, EVEN, 0.001) for name in "abc"]
    names = [column.name for column in columns]
    for named in (False, True):
        evidence = Evidence(50_000, tuple(columns), pairs_named=named)
        verdict = judge(names, 50_000, GUARANTEE, dict.fromkeys(names, 0.01), evidence)
        assert (AdviceKind.PAIRS in [advice.kind for advice in verdict.advice]) is not named


def test_pairs_stand_against_their_noise() -> None:
    dependent = np.array([[2000.0, 500.0], [500.0, 2000.0]])
    independent = np.full((2, 2), 1250.0) + np.array([[20.0, -20.0], [-20.0, 20.0]])
    columns = [ColumnEvidence(name, EVEN, 0.001) for name in "abc"]
    pairs = (MeasuredPair(("a", "c"), independent, 30.0), MeasuredPair(("a", "b"), dependent, 30.0))
    verdict = verdict_of(*columns, rows=5000, pairs=pairs)
    assert [(pair.columns, pair.grade) for pair in verdict.pairs] == [
        (("a", "b"), Grade.GOOD),
        (("a", "c"), Grade.LOST),
    ]
    assert verdict.pairs[0].association == pytest.approx(0.6)
    assert verdict.all_pairs == 3
    assert "2 of 3 measured" in str(verdict)
    assert "as if independent given those" in str(verdict)
    assert "as if they were independent" in str(verdict_of(*columns))


def test_rows_that_mean_something() -> None:
    column = ColumnEvidence("x", EVEN, 0.001)
    kept = judge(["x"], 1000, GUARANTEE, {"x": 0.3}, Evidence(1000, (column,)))
    lost = judge(["x"], 1000, GUARANTEE, {"x": 0.049}, Evidence(1000, (column,)))
    none = judge(["x"], 1000, GUARANTEE, {"x": float("nan")}, Evidence(1000, (column,)))
    assert "true values is 0.3 in the best column" in str(kept)
    assert "synthetic" not in str(kept)
    assert "as good as synthetic data" in str(lost)
    assert none.fidelity is None
    assert "Rows:" not in str(none)


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        (ReferenceSource.KNOWN, ReasonKind.KNOWN),
        (ReferenceSource.PUBLIC, ReasonKind.PUBLIC),
        (ReferenceSource.HOLDOUT, ReasonKind.HELD_OUT),
        (ReferenceSource.FIT_ROWS, ReasonKind.NOT_MEASURED),
    ],
)
def test_other_references_are_not_judged(source: ReferenceSource, kind: ReasonKind) -> None:
    held = (Unprotected(UnprotectedKind.HOLDOUT_ROWS, 1000),) if source is ReferenceSource.HOLDOUT else ()
    guarantee = Guarantee(1.0, "optimal", ReferenceFacts(source, "some"), unprotected=held)
    verdict = judge(["x"], 3000, guarantee, {"x": 0.3}, None)
    assert verdict.grade is Grade.UNKNOWN
    assert kinds(verdict)[0] is kind
    assert (verdict.columns[0].error is None) == (not held)
    assert Verdict.from_dict(json.loads(json.dumps(verdict.to_dict()))) == verdict


def test_a_summary_is_short_and_the_worst_comes_first() -> None:
    noises = [0.001, 0.03, 0.06, 0.3] * 100
    columns = [ColumnEvidence(f"c{number}", EVEN, noise, found=True) for number, noise in enumerate(noises)]
    verdict = verdict_of(*columns)
    lines = str(verdict).splitlines()
    assert len(lines) <= LINES
    assert all(len(line) < 400 for line in lines)
    order = [column.grade for column in verdict.by_gravity]
    assert order[0] is Grade.LOST
    assert order[-1] is Grade.GOOD
    heads = [line.split()[0] for line in lines[1:]]
    assert heads.index("Lost:") < heads.index("Unknown:") < heads.index("Usable:") < heads.index("Pairs:")


def test_a_verdict_goes_through_json() -> None:
    pair = MeasuredPair(("x", "y"), np.array([[20.0, 5.0], [5.0, 20.0]]), 3.0)
    columns = ColumnEvidence("x", EVEN, 0.02, found=True), ColumnEvidence("y", EVEN, 0.2, found=True, merged=0.1)
    verdict = verdict_of(*columns, pairs=(pair,))
    plain = json.loads(json.dumps(verdict.to_dict(), allow_nan=False))
    assert Verdict.from_dict(plain) == verdict
    plain["columns"][0]["reasons"][0]["text"] = "all is well"
    assert str(Verdict.from_dict(plain)) == str(verdict)  # texts are made anew


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"rows": -1},
        {"rows": True},
        {"epsilon": "1"},
        {"epsilon": float("inf")},
        {"source": "somewhere"},
        {"columns": {}},
        {"columns": [{"name": "x"}]},
        {"columns": [{"name": 1, "grade": "good", "reasons": []}]},
        {"columns": [{"name": "x", "grade": "good", "reasons": [{"kind": "none"}]}]},
        {"pairs": [{"columns": ["x"], "grade": "good", "error": 0, "association": 0, "noise": 0}]},
        {"advice": [{"kind": "pray", "columns": []}]},
        {"advice": None},
    ],
    ids=str,
)
def test_what_is_not_a_verdict_is_refused(change: dict[str, Any]) -> None:
    plain = verdict_of(ColumnEvidence("x", EVEN, 0.001)).to_dict()
    with pytest.raises(InputError, match="unchanged"):
        Verdict.from_dict(plain | change)
    with pytest.raises(InputError):
        Verdict.from_dict([plain])
