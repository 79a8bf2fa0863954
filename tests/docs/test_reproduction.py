"""The recorded reproduction: every cell of the paper, enough repetitions, and the page made of exactly that record."""

from __future__ import annotations

from pathlib import Path

import pytest
from research import catalogue, movielens, page, row_fidelity
from research.compare import below, reach
from research.protocol import Drawing
from research.runner import Results

DOCS = Path(__file__).parents[2] / "docs"
RECORD = DOCS / "reproduction"
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
}


@pytest.mark.parametrize("name", AT_LEAST)
def test_every_cell_of_the_paper_is_on_record_with_enough_repetitions(name: str) -> None:
    found = Results.read(RECORD / f"{name}.json")
    assert {(row.setting, row.method, row.epsilon) for row in found.rows} >= set(found.experiment.paper)
    assert found.reps >= AT_LEAST[name]
    assert all(row.reps == found.reps for row in found.rows)


def test_the_optimal_kernel_and_the_correction_predict_better_in_every_split() -> None:
    rows = [row for row in Results.read(RECORD / "movielens.json").rows if row.setting == "MovieLens 1M"]
    for first, second in movielens.MOVIES.ordered:
        counts = below(rows, first, second)
        assert {epsilon for _, epsilon in counts} >= {1.0, 2.0, 4.0}
        assert all(count == of >= AT_LEAST["movielens"] for count, of in counts.values()), (first, second)


def test_the_optimal_kernel_keeps_what_the_trial_kept_and_never_less_than_the_papers() -> None:
    found = Results.read(RECORD / "row-fidelity.json")
    kinds = [reach(row, found.experiment) for row in found.rows]
    assert kinds.count("reaches") == len(found.experiment.trial)
    assert "below" not in kinds
    counts = below(found.rows, row_fidelity.DIP, row_fidelity.OPTIMAL)
    assert {setting for setting, _ in counts} == set(found.experiment.settings)
    assert all(count == of for count, of in counts.values())


def test_every_name_is_on_record() -> None:
    for name in catalogue.WHERE:
        suffix = ".svg" if isinstance(catalogue.find(name), Drawing) else ".json"
        assert (RECORD / f"{name}{suffix}").exists()


def test_the_page_is_made_of_the_record(tmp_path: Path) -> None:
    made = tmp_path / "reproduction.md"
    copied = tmp_path / "reproduction"
    copied.mkdir()
    for file in RECORD.glob("*.json"):
        (copied / file.name).write_bytes(file.read_bytes())
    page.main(DOCS / "templates" / "reproduction.md", copied, made)
    assert made.read_text(encoding="utf-8") == (DOCS / "reproduction.md").read_text(encoding="utf-8")
