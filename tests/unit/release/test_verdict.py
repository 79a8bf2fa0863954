"""The verdict of a release: where it is shown, and that nothing but private output and public facts makes it."""

from __future__ import annotations

import json
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dipriv
from dipriv.guarantee.sidecar import Sidecar, read_sidecar
from dipriv.references._learning.measurements import LATTICE
from dipriv.release.evidence import evidence_of
from dipriv.release.options import ReleaseOptions
from dipriv.release.plan import prepare
from dipriv.release.result import Release
from dipriv.sources import open_source
from dipriv.utility.expected_error import MEAN_SIZE
from dipriv.utility.judging import judge
from dipriv.utility.total_variation import number_variation
from dipriv.utility.verdict import AdviceKind, Grade, ReasonKind, Verdict

pytestmark = pytest.mark.filterwarnings("ignore::dipriv.PrivacyWarning")


def table(rows: int = 4000) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    kind = rng.choice(["a", "b", "c"], rows, p=[0.6, 0.3, 0.1])
    return pd.DataFrame(
        {
            "kind": kind,
            "age": rng.integers(18, 80, rows),
            "pay": np.where(rng.random(rows) < 0.9, 0.0, rng.lognormal(8, 1, rows)),
            "yes": kind == "a",
        }
    )


def test_it_is_a_function_of_measurements_guarantee_and_fidelity() -> None:
    frame = table()
    release = dipriv.privatize(frame, 2.0, seed=3)
    mechanism = release.secrets.mechanism
    fitted = pickle.loads(pickle.dumps(mechanism))
    assert release.verdict == judge(
        mechanism.names, len(frame), release.guarantee, release.fidelity, evidence_of(fitted)
    )
    # other rows that have the same counts, and thus the same noisy counts, get the same verdict to the last digit
    other = dipriv.privatize(frame.sample(frac=1, random_state=1).reset_index(drop=True), 2.0, seed=3)
    assert not other.data.equals(release.data)
    assert other.verdict == release.verdict
    assert dipriv.privatize(frame, 2.0, seed=4).verdict != release.verdict  # the control: other noise


@pytest.mark.parametrize("options", [{"target": "yes"}, {"pairs": [("kind", "age")]}, {}])
def test_a_target_or_pairs_are_advised_only_to_those_who_named_none(options: dict[str, Any]) -> None:
    frame = table().assign(**{f"x{place}": np.arange(4000) % 7 for place in range(6)})
    verdict = dipriv.privatize(frame, 0.5, seed=3, **options).verdict
    assert verdict is not None
    assert len(verdict.pairs) < (verdict.all_pairs or 0)
    assert ("Name a target" in str(verdict)) == (not options)


def test_it_is_shown_and_kept(tmp_path: Path) -> None:
    release = dipriv.privatize(table(), 1.0)
    verdict = release.verdict
    assert verdict is not None
    assert str(verdict) in str(release) == release.summary()
    assert "\n" not in repr(release)
    copied: Release[pd.DataFrame] = pickle.loads(pickle.dumps(release))
    assert copied.verdict == verdict
    assert str(copied) == str(release)
    release.write(tmp_path / "out.csv")
    note = read_sidecar(tmp_path / "out.csv")
    assert note is not None
    assert Verdict.from_dict(note.verdict) == verdict


def test_a_pickle_without_a_verdict_has_none() -> None:
    release = dipriv.privatize(table(500), 1.0)
    state = release.__getstate__()
    del state["verdict"]
    old = object.__new__(Release)
    old.__dict__.update(state)
    assert old.verdict is None
    assert str(old).startswith("Released 500 of 500 rows")


def test_a_note_of_format_2_loads(tmp_path: Path) -> None:
    release = dipriv.privatize(table(500), 1.0)
    release.write(tmp_path / "out.csv")
    plain = json.loads((tmp_path / "out.csv.dipriv.json").read_text(encoding="utf-8"))
    del plain["verdict"]
    assert Sidecar.from_dict(plain | {"format": 2}).verdict is None


@pytest.mark.parametrize("rows", [12, 100])
def test_tables_that_are_too_small_are_warned_of(rows: int) -> None:
    verdict = dipriv.privatize(table(rows), 1.0).verdict
    assert verdict is not None
    assert verdict.too_small is not None
    assert verdict.grade is Grade.LOST
    assert not verdict.good
    assert "Warning" in str(verdict)


BOUNDS = {"age": dipriv.Discrete(tuple(range(120))), "pay": dipriv.Continuous(0, 1e6)}


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("rows", [100, 1500, 20_000])
@pytest.mark.parametrize("schema", [None, BOUNDS])
def test_noise_is_known_before_anything_is_spent(rows: int, epsilon: float, schema: Any) -> None:
    """So the warning comes before, and if and only if the verdict says the same."""
    frame = table(rows)
    plan = prepare(open_source(frame), ReleaseOptions(epsilon, schema=schema))
    foreseen = plan.fit_plan.count_noises(rows)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        release = dipriv.privatize(frame, epsilon, schema=schema)
    measured = release.secrets.mechanism.measurements
    assert measured is not None
    step = 2.0**-LATTICE  # the scale of noise is rounded up to a multiple of it
    assert np.multiply(foreseen, rows) == pytest.approx([one.deviation for one in measured.columns], abs=2 * step)
    warned = [str(one.message) for one in caught if one.category is dipriv.UtilityWarning]
    assert release.verdict is not None
    assert len(warned) == (release.verdict.too_small is not None)
    assert all(one in str(release) for one in warned)


def test_the_warning_and_the_verdict_name_one_factor_for_dates() -> None:
    """The noise of dates depends on how far their periods are divided, which the warning cannot know."""
    rng = np.random.default_rng(6)
    days = {name: pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 700, 300), unit="D") for name in "abc"}
    with pytest.warns(dipriv.UtilityWarning, match="too few") as caught:
        release = dipriv.privatize(pd.DataFrame(days), 0.2, seed=1)
    (warned,) = [str(one.message) for one in caught if one.category is dipriv.UtilityWarning]
    assert release.verdict is not None
    assert warned in str(release.verdict)
    measured = release.secrets.mechanism.measurements
    assert measured is not None
    assert measured.foreseen != pytest.approx([one.deviation for one in measured.columns])  # control


def test_dates_in_one_period_are_not_called_constant() -> None:
    days = pd.Timestamp("2023-01-01") + pd.to_timedelta(np.arange(300) % 300, unit="D")
    for seed in range(8):
        release = dipriv.privatize(pd.DataFrame({"day": days, "x": np.arange(300) % 2}), 0.3, seed=seed)
        assert release.verdict is not None
        reasons = [reason.kind for reason in release.verdict.columns[0].reasons]
        assert release.data["day"].nunique() > 1
        assert ReasonKind.CONSTANT not in reasons


def test_declared_bounds_are_not_advised() -> None:
    frame = pd.DataFrame({"age": np.arange(400) % 90, "w": 1.0 + np.arange(400) % 7, "open": np.arange(400) % 50})
    schema: Any = {"age": dipriv.Discrete(step=1, lower=0, upper=120), "w": dipriv.Weight(total=1e6)}
    verdict = dipriv.privatize(frame, 1.0, schema=schema, seed=1).verdict
    assert verdict is not None
    assert not {"age", "w"} & set(verdict.good)
    (advice,) = [one for one in verdict.advice if one.kind is AdviceKind.DECLARE_RANGE]
    assert advice.columns == ("open",)


def test_a_warning_that_is_an_error_spends_nothing(tmp_path: Path) -> None:
    ledger = dipriv.Ledger.create(tmp_path / "ledger.db")
    with warnings.catch_warnings():
        warnings.simplefilter("error", dipriv.UtilityWarning)
        with pytest.raises(dipriv.UtilityWarning, match="50 rows at ε = 1 are too few for 4 columns"):
            dipriv.privatize(table(50), 1.0, ledger=ledger, dataset="few")
    assert not [one for one in ledger.datasets() if one.spent]
    dipriv.privatize(table(50), 1.0, ledger=ledger, dataset="few")  # the control
    assert [one.spent for one in ledger.datasets()] == [1.0]


def test_a_transformer_warns_at_its_fit() -> None:
    with pytest.warns(dipriv.UtilityWarning, match="too few") as caught:
        dipriv.DIP(1.0).fit(table(50))
    assert Path(caught[0].filename).name == Path(__file__).name


def test_a_clear_table_is_good() -> None:
    verdict = dipriv.privatize(table(50_000), 4.0, seed=0).verdict
    assert verdict is not None
    assert verdict.grade is Grade.GOOD
    assert {"kind", "yes", "age"} <= set(verdict.good)


def test_vanished_labels_are_named() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"surname": rng.integers(0, 900, 3000).astype(str), "code": ["a"] * 2990 + ["b"] * 10})
    frame["surname"] = "n" + frame["surname"]
    verdict = dipriv.privatize(frame, 1.0).verdict
    assert verdict is not None
    surname, code = verdict.columns
    assert surname.grade is Grade.LOST
    assert surname.reasons[0].kind is ReasonKind.ONLY_OTHER
    assert code.reasons[0].kind in (ReasonKind.CONSTANT, ReasonKind.LABELS)
    alone = dipriv.privatize(frame[["surname"]], 1.0).verdict
    assert alone is not None
    assert alone.lost == ("surname",)
    assert alone.columns[0].reasons[0].kind in (
        ReasonKind.ONLY_OTHER,
        ReasonKind.MERGED,
    )  # one may be left


def test_a_declared_label_that_is_called_other_is_not_taken_for_merged() -> None:
    frame = pd.DataFrame({"x": ["(other)"] * 3000 + ["a"] * 3000, "y": np.arange(6000) % 2 == 0})
    declared = {"x": dipriv.Categorical(levels=("(other)", "a"))}
    verdict = dipriv.privatize(frame, 2.0, schema=declared, seed=0).verdict
    assert verdict is not None
    assert verdict.good == ("x", "y")


@pytest.mark.parametrize("reference", ["holdout", "public"])
def test_other_references_say_what_they_can(reference: str) -> None:
    options = {"public": table(1000)} if reference == "public" else {"reference": "holdout"}
    verdict = dipriv.privatize(table(2000), 1.0, **options).verdict
    assert verdict is not None
    assert verdict.grade is Grade.UNKNOWN
    assert verdict.all_pairs is None


def test_many_listed_numbers_are_judged_as_numbers() -> None:
    rows, rng = 4000, np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.binomial(200, 0.5, rows), "y": rng.integers(0, 2, rows)})
    declared = {"x": dipriv.Discrete(levels=tuple(range(201))), "y": dipriv.Discrete(levels=(0, 1))}
    release = dipriv.privatize(frame, 1.0, schema=declared, seed=0)
    assert release.verdict is not None
    evidence = evidence_of(release.secrets.mechanism)
    assert evidence is not None
    one_by_one = 0.5 * MEAN_SIZE * 201 * evidence.columns[0].noise  # the control: what labels would get
    x = release.verdict.columns[0]
    assert x.error is not None
    assert x.error < one_by_one / 2
    assert x.grade is not Grade.LOST
    assert number_variation(frame["x"].to_numpy(np.float64), release.data["x"].to_numpy(np.float64)) < (x.most or 0.0)
