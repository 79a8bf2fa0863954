"""The recorded reproduction: every cell of the paper, enough repetitions, and the orders that the guide relies on."""

from __future__ import annotations

from typing import Any

import pytest

from research import catalogue, pages
from research.experiments import movielens, row_fidelity
from research.protocol import Drawing

AT_LEAST = {
    "discrete-means": 200,
    "sample-size": 200,
    "continuous-ks": 200,
    "linear-regression": 100,
    "graphs": 50,
    "graphs-highdim": 10,
    "uc-salary": 100,
    "bank-logistic": 50,
    "bank-exposure": 20,
    "movielens": 5,
    "row-fidelity": 3,
    "joint-kernels": 5,
}


def on_record(name: str) -> Any:
    return pages.record(f"reproduction/{name}")


def all_below(name: str, first: str, second: str, setting: str) -> set[float]:
    """The ε at which the first method is below the second in every repetition of the setting."""
    (pair,) = (
        pair for pair in on_record(name)["comparison"]["ordered"] if (pair["first"], pair["second"]) == (first, second)
    )
    counts = [count for count in pair["counts"] if count["setting"] == setting]
    assert all(count["of"] >= AT_LEAST[name] for count in counts)
    return {count["epsilon"] for count in counts if count["below"] == count["of"]}


@pytest.mark.parametrize("name", AT_LEAST)
def test_every_cell_of_the_paper_is_on_record_with_enough_repetitions(name: str) -> None:
    found, paper = on_record(name), catalogue.experiment(name).paper
    cells = {(row["setting"], row["method"], row["epsilon"]): row for row in found["rows"]}
    assert found["reps"] >= AT_LEAST[name]
    assert all(row["reps"] == found["reps"] for row in found["rows"])
    assert {cell: float(cells[cell]["paper_mean"]) for cell in paper} == {cell: paper[cell].mean for cell in paper}


@pytest.mark.parametrize("pair", movielens.MOVIES.ordered)
def test_the_optimal_kernel_and_the_correction_predict_better_in_every_split(pair: tuple[str, str]) -> None:
    assert all_below("movielens", *pair, "MovieLens 1M") >= {1.0, 2.0, 4.0}


def test_the_optimal_kernel_keeps_what_the_trial_kept_and_never_less_than_the_papers() -> None:
    experiment = row_fidelity.ROW_FIDELITY
    assert on_record("row-fidelity")["comparison"]["cells"] == {"reaches": len(experiment.trial)}
    for setting in experiment.settings:
        epsilons = {row["epsilon"] for row in on_record("row-fidelity")["rows"] if row["setting"] == setting}
        assert all_below("row-fidelity", row_fidelity.DIP, row_fidelity.OPTIMAL, setting) == epsilons


def test_many_columns_keep_what_the_trial_of_caps_kept() -> None:
    trial = {1.0: {2: 0.269, 5: 0.174, 10: 0.121, 30: 0.070}, 4.0: {2: 0.752, 5: 0.591, 10: 0.442, 30: 0.262}}
    rows = on_record("row-fidelity")["rows"]
    cells = {(row["setting"], row["method"], row["epsilon"]): row["measured_mean"] for row in rows}
    for epsilon, kept in trial.items():
        for count, wanted in kept.items():
            assert cells[f"p = {count}", row_fidelity.OPTIMAL, epsilon] == pytest.approx(wanted, rel=0.02)
            assert cells[f"p = {count}", row_fidelity.JOINT, epsilon] < wanted  # control: the other is below


def test_every_name_is_on_record() -> None:
    for name in catalogue.WHERE:
        suffix = ".svg" if isinstance(catalogue.find(name), Drawing) else ".json"
        assert (pages.DOCS / "reproduction" / f"{name}{suffix}").exists()
