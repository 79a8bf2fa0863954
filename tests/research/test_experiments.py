"""`python -m research`: deterministic, resumable, atomic files, clear errors; each experiment at a tiny scale."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dipriv.errors import InputError
from research import catalogue, runner
from research.compare import comparison, difference, lost, ordered, sensitivity, verdict
from research.data import data_file
from research.experiments import bank, graphs, movielens, uc_salary
from research.protocol import Experiment, Printed, Row, Values, printed, seed_of

ROOT = Path(__file__).parents[2]


def toy(name: str = "toy", fail_at: int | None = None, calls: list[int] | None = None) -> Experiment:
    """Two settings, one method, values from the seed; interrupted at a call if asked."""
    made = [] if calls is None else calls

    def run(setting: str, seed: np.random.SeedSequence) -> Values:
        made.append(1)
        if len(made) == fail_at:
            raise KeyboardInterrupt
        return {("DIP", 1.0): float(np.random.default_rng(seed).normal()), ("LRM", 1.0): math.inf}

    paper = {("a", "DIP", 1.0): Printed(0.0, 1.0, 2)}
    return Experiment(name, "Toy", "Table toy", "a number", ("a", "b"), (1.0,), 3, run, paper)


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[[Experiment], None]:
    def put(experiment: Experiment) -> None:
        monkeypatch.setattr(catalogue, "find", lambda name: experiment)

    return put


def test_an_interrupted_run_leaves_no_result_and_goes_on(tmp_path: Path, install: Callable[[Experiment], None]) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    install(toy())
    runner.reproduce("toy", out=whole, seed=5, jobs=1)
    install(toy(fail_at=4))
    with pytest.raises(KeyboardInterrupt):
        runner.reproduce("toy", out=broken, seed=5, jobs=1)
    assert [file.suffix for file in broken.iterdir()] == [".journal"]
    with next(broken.iterdir()).open("a", encoding="utf-8") as journal:
        journal.write('{"setting": "a", "re')  # a line that a crash cut short
    calls: list[int] = []
    install(toy(calls=calls))
    files = runner.reproduce("toy", out=broken, seed=5, jobs=1)
    assert len(calls) == 3
    assert {file.name for file in files} == {file.name for file in broken.iterdir()} == {"toy.json", "toy.md"}
    assert _rows(broken / "toy.json") == _rows(whole / "toy.json")


def test_a_journal_of_another_seed_is_not_used(tmp_path: Path, install: Callable[[Experiment], None]) -> None:
    install(toy(fail_at=4))
    with pytest.raises(KeyboardInterrupt):
        runner.reproduce("toy", out=tmp_path, seed=5, jobs=1)
    calls: list[int] = []
    install(toy(calls=calls))
    runner.reproduce("toy", out=tmp_path, seed=6, jobs=1)
    assert len(calls) == 6


def test_results_hold_infinities_as_plain_json(tmp_path: Path, install: Callable[[Experiment], None]) -> None:
    install(toy())
    runner.reproduce("toy", out=tmp_path, jobs=1)
    found = json.loads((tmp_path / "toy.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)
    fields = {"setting", "method", "epsilon", "measured_mean", "measured_sd", "reps", "paper_mean", "paper_sd"}
    assert set(found["rows"][0]) == fields | {"values", "paper_digits", "difference", "verdict"}
    assert set(found["rows"][1]) == fields | {"values"}
    assert [row["measured_mean"] for row in found["rows"] if row["method"] == "LRM"] == ["inf", "inf"]
    assert found["rows"][1]["values"] == ["inf"] * 3


def test_single_repetitions_are_on_record_where_they_are_few(
    tmp_path: Path, install: Callable[[Experiment], None]
) -> None:
    install(toy())
    for reps in (3, runner.FEW + 1):
        runner.reproduce("toy", out=tmp_path / str(reps), reps=reps, jobs=1)
    few, many = (_rows(tmp_path / str(reps) / "toy.json") for reps in (3, runner.FEW + 1))
    assert [len(row["values"]) for row in few] == [3] * 4
    assert few[0]["measured_mean"] == pytest.approx(np.mean(few[0]["values"]))
    assert all("values" not in row for row in many)


@pytest.mark.slow
def test_jobs_do_not_change_results(tmp_path: Path) -> None:
    for jobs in (1, 2):
        runner.reproduce("continuous-ks", out=tmp_path / str(jobs), reps=2, seed=3, jobs=jobs)
    assert _rows(tmp_path / "1" / "continuous-ks.json") == _rows(tmp_path / "2" / "continuous-ks.json")
    runner.reproduce("continuous-ks", out=tmp_path / "other", reps=2, seed=4, jobs=1)
    assert _rows(tmp_path / "1" / "continuous-ks.json") != _rows(tmp_path / "other" / "continuous-ks.json")


@pytest.mark.slow
@pytest.mark.parametrize("signal_", [signal.SIGINT, signal.SIGTERM], ids=["interrupted", "terminated"])
def test_a_killed_command_goes_on_where_it_was(tmp_path: Path, signal_: signal.Signals) -> None:
    command = [sys.executable, "-m", "research", "discrete-means", "--reps", "30", "--jobs", "1", "--out"]
    folder = tmp_path / "killed"
    process = subprocess.Popen([*command, folder], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    journal = folder / "discrete-means.seed-2023.journal"
    deadline = time.monotonic() + 120
    while not (journal.exists() and journal.read_text(encoding="utf-8").count("\n") > 10):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal_)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Interrupted" in told
    assert "Traceback" not in told
    assert [file.name for file in folder.iterdir()] == [journal.name]
    before = journal.read_text(encoding="utf-8").splitlines()[1:5]
    subprocess.run([*command, folder], check=True, capture_output=True)
    subprocess.run([*command, tmp_path / "whole"], check=True, capture_output=True)
    assert _rows(folder / "discrete-means.json") == _rows(tmp_path / "whole" / "discrete-means.json")
    assert all(json.loads(line)["values"] for line in before)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["no-such-thing"], 1, "there is no experiment 'no-such-thing'"),
        (["discrete-means", "--reps", "0"], 1, "reps=0 is below 1"),
        (["discrete-means", "--jobs", "0"], 1, "jobs=0 is below 1"),
        (["discrete-means", "--out", "{file}/inside"], 1, "cannot be written to"),
        (["bank-logistic"], 1, "https://archive.ics.uci.edu/dataset/222"),
        (["uc-salary"], 1, "https://ucannualwage.ucop.edu"),
        (["movielens"], 1, "https://grouplens.org"),
        (["row-fidelity"], 1, "https://grouplens.org"),
        ([], 2, "name an experiment"),
        (["discrete-means", "--reps", "many"], 2, "a valid integer"),
    ],
)
def test_bad_input_is_told(arguments: list[str], code: int, told: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    filled = [argument.format(file=tmp_path / "file") for argument in arguments]
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    done = subprocess.run(
        [sys.executable, "-m", "research", *filled],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path, "DIPRIV_DATA": str(tmp_path / "nowhere"), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert not [file for file in tmp_path.rglob("*") if file.suffix in (".json", ".md", ".journal")]


@pytest.mark.slow
def test_all_names_are_listed() -> None:
    done = subprocess.run([sys.executable, "-m", "research", "--list"], capture_output=True, text=True, check=True)
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(catalogue.WHERE)


@pytest.mark.parametrize("name", ["discrete-means", "sample-size", "continuous-ks", "linear-regression", "graphs"])
def test_simulations_at_tiny_scale(name: str) -> None:
    experiment = catalogue.experiment(name)
    setting = experiment.settings[0]
    _check(experiment, setting, experiment.run(setting, seed_of(1, name)))


@pytest.mark.slow
def test_high_dimensional_graphs_at_tiny_scale() -> None:
    truth, x = graphs._sample("Exp Decay, p = 12", 80, seed_of(1))
    measured = graphs._dip(truth, x, (1.0,), graphs.HIGH_GRID, seed_of(2))
    assert set(measured) == {key[1:] for key in graphs.HIGH.paper if key[2] == 1 and key[0].startswith("Exp")}
    assert all(0 < value < math.inf for value in measured.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "module"), [("uc-salary", uc_salary), ("bank-logistic", bank), ("bank-exposure", bank)]
)
def test_real_data_at_tiny_scale(name: str, module: object, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = catalogue.experiment(name)
    _need(experiment)
    monkeypatch.setattr(module, "EPSILONS", (1.0,))
    measured = experiment.run(experiment.settings[0], seed_of(1, name))
    assert {method for method, _ in measured} >= {method for _, method, _ in experiment.paper}
    assert all(value >= 0 for value in measured.values())


def test_bank_data_is_the_papers() -> None:
    _need(bank.LOGISTIC)
    rows = bank.load()
    assert rows.shape == (30_488, 11)
    assert rows[:, -1].sum() == 3_859
    assert set(np.unique(rows[:, 4])) == set(range(7))


@pytest.mark.slow
def test_recommendations_at_tiny_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        movielens._cornac()
    except InputError as error:
        pytest.skip(str(error))
    monkeypatch.setattr(movielens, "GRID", ((4, 0.1),))
    monkeypatch.setattr(movielens, "EPSILONS", (1.0,))
    rng = np.random.default_rng(3)
    taste = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 100))
    pairs = np.argwhere(rng.random((300, 100)) < 0.8).astype(np.float64)
    ratings = np.clip(np.rint(3 + taste[tuple(pairs.astype(int).T)]), 1, 5)
    measured = movielens.errors(pairs, ratings, seed_of(1))
    methods = {method for method, _ in measured}
    assert methods >= {"NP", "DIP (hold 25%)", "LRM", "OPM", "EXM"}
    assert methods >= {method for pair in movielens.MOVIES.ordered for method in pair}
    assert measured["NP", 1.0] < ratings.std() < measured["OPM", 1.0]
    assert measured["DIP optimal (hold 25%)", 1.0] < measured["DIP (hold 25%)", 1.0]
    for method in ("DIP", "DIP optimal"):
        assert measured[f"{method}, corrected (hold 25%)", 1.0] < measured[f"{method} (hold 25%)", 1.0]
    assert measured == movielens.errors(pairs, ratings, seed_of(1))


def test_agreement_is_15_percent_or_four_standard_errors() -> None:
    experiment = toy()

    def row(mean: float, sd: float = 0.0, reps: int = 100, method: str = "DIP") -> Row:
        return Row("a", method, 1.0, mean, sd, reps, Printed(10.0, 0.0, 1))

    assert verdict(row(11.5), experiment) == "agrees"
    assert verdict(row(11.6), experiment) == "differs"
    assert verdict(row(13.9, sd=10.0), experiment) == "agrees"
    assert verdict(row(14.2, sd=10.0), experiment) == "differs"
    assert difference(row(11.0, sd=5.0), 1000) == pytest.approx(1 / math.sqrt(0.25 + 0.05**2 / 3))
    inf = Row("a", "OPM", 1.0, math.inf, math.nan, 5, Printed(math.inf, 0.0, 0))
    assert (verdict(inf, experiment), difference(inf, 1000)) == ("agrees", None)


def test_cells_that_dip_loses_and_its_sensitivity_are_found() -> None:
    rows = [
        Row("a", "DIP", 1.0, 2.0, 1.0, 4),
        Row("a", "LRM", 1.0, 1.0, 1.0, 4),
        Row("a", "DIP", 4.0, 0.5, 1.0, 4),
        Row("a", "LRM", 4.0, 1.0, 1.0, 4),
    ]
    assert lost(rows, frozenset({"LRM"})) == rows[:1]
    ((low, high, z),) = sensitivity(rows)
    assert (low.epsilon, high.epsilon) == (1.0, 4.0)
    assert z == pytest.approx(1.5 / math.sqrt(0.5))


def test_repetitions_in_order_are_counted() -> None:
    def row(setting: str, method: str, epsilon: float, *values: float) -> Row:
        return Row(setting, method, epsilon, 0.0, 0.0, len(values), None, values)

    rows = [
        *(row("a", "new", epsilon, 1.0, 2.0) for epsilon in (1.0, 2.0)),
        row("a", "old", 1.0, 1.5, 3.0),
        row("a", "old", 2.0, 1.5, 2.0),
        Row("b", "new", 1.0, 1.0, 0.0, 2),  # without single repetitions on record
        Row("b", "old", 1.0, 2.0, 0.0, 2),
    ]
    assert ordered(rows, "new", "old")["counts"] == [
        {"setting": "a", "epsilon": 1.0, "below": 2, "of": 2},
        {"setting": "a", "epsilon": 2.0, "below": 1, "of": 2},
    ]


def test_cells_reach_97_percent_of_the_trial() -> None:
    experiment = replace(toy(), paper={}, trial={("a", "DIP", 1.0): 0.5})
    rows = [Row("a", method, 1.0, mean, 0.0, 3) for method, mean in (("DIP", 0.485), ("DIP", 0.484), ("LRM", 0.1))]
    assert [verdict(row, experiment) for row in rows] == ["reaches", "below", ""]
    found = comparison(experiment, rows)
    assert found["cells"] == {"reaches": 1, "below": 1}
    assert found["below the trial"] == ["a, DIP, ε = 1"]


def test_cells_of_the_paper_are_read_with_their_rounding() -> None:
    assert printed("a | DIP | 1.03 (5.24e-4) | Inf", [1.0, 2.0]) == {
        ("a", "DIP", 1.0): Printed(1.03, 5.24e-4, 2),
        ("a", "DIP", 2.0): Printed(math.inf, 0.0, 0),
    }
    with pytest.raises(ValueError, match="not a cell"):
        printed("a | DIP | about 3", [1.0])


def _check(experiment: Experiment, setting: str, measured: Values) -> None:
    wanted = {(method, epsilon) for where, method, epsilon in experiment.paper if where == setting}
    assert set(measured) >= wanted
    assert all(0 <= value < math.inf for value in measured.values())


def _need(experiment: Experiment) -> None:
    for path in experiment.needs:
        try:
            data_file(path)
        except InputError as error:
            pytest.skip(str(error))


def _rows(file: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["rows"]
    return rows
