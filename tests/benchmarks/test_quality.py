"""The measures of the private reference catch what they should, and each part is put on record when it is done."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.stats import binom, hypergeom, ks_2samp, norm

import dipriv
from benchmarks.parts import Asked, measure
from benchmarks.quality import __main__ as command
from benchmarks.quality import edges, findings, histograms, peers, rivals, scores, settings, targets, verbatim
from benchmarks.quality.bins import Bins, Levels, codebook
from benchmarks.quality.contest import Method, Setting, contest
from benchmarks.quality.measures import (
    excess_bound,
    k_marginal,
    ks,
    label_margins,
    label_variation,
    logistic_kl,
    on_bins,
    triples,
)
from benchmarks.quality.tables import TABLES, Table, bank_matrix
from benchmarks.quality.verdict import verdict
from dipriv.errors import InputError
from research.experiments.bank import COLUMNS, as_text

pytest.importorskip("statsmodels", reason="the bank regression needs research/requirements.txt")
pytest.importorskip("matplotlib", reason="the figures need matplotlib")

PROVENANCE: dict[str, Any] = {"date": "", "minutes": 0.0, "machine": {"cores": 1, "memory in GB": 1.0}, "versions": {}}


def rows_with_a_response(n: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    return np.column_stack([x, rng.random(n) < 1 / (1 + np.exp(1 - x[:, 0] + x[:, 1]))]).astype(np.float64)


def test_kl_is_nothing_for_the_table_itself_and_small_for_its_like() -> None:
    n, alarm = 4_000, 1e-6
    rows, like = rows_with_a_response(n, 1), rows_with_a_response(n, 2)
    assert logistic_kl(rows, rows) == 0.0
    # 2 n KL between two maximum-likelihood fits of 4 coefficients is about the sum of 4 squared normals, twice over
    bound = 2 * -2 * math.log(alarm) / n
    assert logistic_kl(rows, like) < bound
    shuffled = rows.copy()
    shuffled[:, -1] = np.random.default_rng(3).permutation(rows[:, -1])
    assert logistic_kl(rows, shuffled) > bound  # control: the dependence is gone


def test_ks_agrees_with_scipy() -> None:
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=500), np.round(rng.normal(0.2, 1, 700), 1)
    assert ks(x, y) == pytest.approx(ks_2samp(x, y).statistic)
    assert ks(x, x) == 0.0
    assert ks(x, x + 0.5) > 0.1  # control


def test_variation_of_labels_counts_nulls_and_new_values() -> None:
    x = pd.Series(["a", "a", "b", None])
    assert label_variation(x, x[::-1]) == 0.0
    assert label_variation(x, pd.Series(["a", "c", "b", None])) == 0.25
    assert label_variation(x, pd.Series(["a", "a", "b", "b"])) == 0.25  # control: a null is not nothing


def three_columns() -> pd.DataFrame:
    return pd.DataFrame({"a": ["x", "x", "y", "y"], "b": ["p", "q", "p", "q"], "c": ["1", "2", "N", "4"]})


def test_k_marginal_by_hand() -> None:
    frame = three_columns()
    chosen = triples(list(frame.columns), 300)
    assert chosen == [("a", "b", "c")]
    assert k_marginal(frame, frame.sample(frac=1, random_state=0), chosen, ["c"]) == 1000.0
    one_of_four = frame.assign(a=["x", "x", "y", "x"])
    assert k_marginal(frame, one_of_four, chosen, ["c"]) == 750.0
    assert k_marginal(frame, frame.assign(b="z"), chosen, ["c"]) == 0.0  # control


def test_k_marginal_bins_numbers_by_rank_and_keeps_text_among_them_apart() -> None:
    n = 400
    frame = pd.DataFrame({"a": ["x"] * n, "b": ["p"] * n, "c": [str(number) for number in range(n)]})
    chosen = triples(list(frame.columns), 1)
    within = frame.assign(c=[str(number // 20 * 20 + 1) for number in range(n)])
    assert k_marginal(frame, within, chosen, ["c"]) == 1000.0
    assert k_marginal(frame, within, chosen, []) == pytest.approx(50.0)  # control: as labels they are other values
    lost = frame.assign(c=["N", *frame["c"][1:]])
    assert k_marginal(frame, lost, chosen, ["c"]) == pytest.approx(1000 * (1 - 1 / n))


def test_triples_are_fixed_and_distinct() -> None:
    names = [f"c{number}" for number in range(12)]
    chosen = triples(names, 50)
    assert chosen == triples(names, 50) != triples(names, 50, seed=1)
    assert len(set(chosen)) == 50


def test_the_verbatim_bound_alarms_as_rarely_as_it_says_and_no_rarer() -> None:
    seen, unseen, published, alarm, runs = 600, 900, 150, 0.01, 20_000
    bound = excess_bound(seen, unseen, published, alarm)
    drawn = hypergeom.rvs(seen + unseen, seen, published, size=runs, random_state=5)
    beyond = int(np.sum(drawn / seen - (published - drawn) / unseen > bound))
    assert beyond <= binom.isf(1e-6, runs, alarm)
    step = 1 / seen + 1 / unseen
    nearer = int(np.sum(drawn / seen - (published - drawn) / unseen > bound - 1.5 * step))
    assert nearer > binom.ppf(1e-6, runs, alarm)  # control: a bound one person lower would alarm too often


@pytest.mark.parametrize(("copied", "alarms"), [(0, False), (100, True)])
def test_a_release_that_copies_people_is_caught(copied: int, alarms: bool) -> None:
    n, rng = 2_000, np.random.default_rng(6)
    people = pd.DataFrame({name: np.arange(n) if name == "age" else 0 for name in COLUMNS})
    seen = rng.permutation(n) < n // 2
    by_chance = rng.choice(n, 100, replace=False)
    released = people.iloc[[*by_chance, *np.flatnonzero(seen)[:copied]]]
    text = as_text(bank_matrix(people))
    found = verbatim.compare(text, np.ones(n, dtype=bool), seen, released)
    assert found["beyond"] == alarms


def test_codes_come_back() -> None:
    rng = np.random.default_rng(7)
    levels = Levels.of(pd.Series(["b", "a", "b"]))
    assert levels.decode(levels.encode(pd.Series(["b", "a"])), rng).tolist() == ["b", "a"]
    bins = Bins((0, 1, 10, 100), null="N")
    text = pd.Series(["0", "N", "5", "99", "1000"])
    codes = bins.encode(text)
    assert codes.tolist() == [0, 3, 1, 2, 2]
    back = bins.decode(codes, rng)
    assert back[0] == "0"
    assert back[1] == "N"
    assert bins.encode(back).tolist() == codes.tolist()
    assert Bins((0, 1, 2, 100), null="N").encode(back).tolist() != codes.tolist()  # control: other edges
    nullable = Bins((0.0, 1.0), whole=False, null=math.nan).decode(np.array([0, 1]), rng)
    assert 0 <= nullable[0] < 1
    assert math.isnan(nullable[1])


def test_the_peers_keep_a_dependence() -> None:
    if lacking := peers.lacking():
        pytest.skip(f"benchmarks/peers-requirements.txt is not installed: {', '.join(lacking)}")
    rng = np.random.default_rng(8)
    a = rng.integers(0, 3, 2_000)
    frame = pd.DataFrame({"a": a, "b": np.where(a == 2, "yes", "no"), "c": rng.integers(0, 2, 2_000).astype(bool)})
    made = peers.synthesize(frame, codebook(frame, {}), "MST", {"epsilon": 50.0}, 0)
    assert list(made.dtypes) == list(frame.dtypes)
    chosen = triples(list(frame.columns), 1)
    loose = frame.assign(b=frame["b"].sample(frac=1, random_state=0).to_numpy())
    # the multinomial's expected total variation of 2,000 draws over 12 cells, and McDiarmid at 1e-6
    bound = 1000 * (math.sqrt(12 / 2_000) / 2 + math.sqrt(math.log(1e6) / (2 * 2_000))) + 10
    assert k_marginal(frame, made, chosen, []) > 1000 - bound
    assert k_marginal(frame, loose, chosen, []) < 1000 - bound  # control


def test_methods_take_turns_within_their_budgets_and_a_failure_is_kept_by_name() -> None:
    turns: list[str] = []

    def make(name: str) -> Any:
        def release(seed: int) -> dict[str, float]:
            turns.append(f"{name}{seed}")
            return {"x": float(seed)}

        return release

    def fail(seed: int) -> Any:
        raise InputError("a person's cell.", "Do not print it.")

    methods = [
        Method("a", "p", make("a"), 3),
        Method("b", "p", make("b"), 3, budget=-1.0, least=2),
        Method("c", "p", fail, 3),
    ]
    found = contest("toy", methods, lambda made: made, Setting())
    assert turns == ["a0", "b0", "a1", "b1", "a2"]
    assert found["a"]["x"] == [0.0, 1.0, 2.0]
    assert found["c"] == {"promise": "p", "seconds": [], "failed": "InputError"}
    assert len(contest("toy", methods[:1], lambda made: made, Setting(at_most=1))["a"]["seconds"]) == 1


def test_what_is_not_finite_or_far_out_is_told() -> None:
    table = pa.table({"x": [0.0, 1.0, 2.0, 3.0], "t": ["a", "b", "a", "b"]})
    assert edges.judge(table, table) == {"finite": True, "outside": 0.0, "distance": 0.0}
    wild = pa.table({"x": [0.0, 1.0, 2.0, 1e9], "t": ["a", "b", "a", "new"]})
    assert edges.judge(table, wild) == {"finite": True, "outside": 0.25, "distance": 0.25}
    assert not edges.judge(table, pa.table({"x": [0.0, 1.0, 2.0, math.inf], "t": ["a", "b", "a", "b"]}))["finite"]


@pytest.mark.slow
def test_each_part_is_on_record_when_it_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(setting: Setting) -> dict[str, Any]:
        raise ValueError("no")

    def find(setting: Setting) -> dict[str, Any]:
        return {"number": 7}

    record = {"bank": settings.run(Table("toy", "Bank", two_columns, {}), Setting(at_most=1)) | PROVENANCE}
    record["bank"]["methods"]["default"]["KL"] = [0.01]
    file = tmp_path / "private-reference.json"
    file.write_text(json.dumps(record), encoding="utf-8")
    parts = {"first": find, "second": fail, "bank": fail}
    monkeypatch.setattr(command, "PARTS", parts)
    measure(parts, Asked(["first"], Setting(), tmp_path), command.write)
    before = file.read_text(encoding="utf-8")
    found = json.loads(before)
    assert list(found) == ["first", "bank", "verdict"]
    assert PROVENANCE.keys() < found["first"].keys()
    assert found["bank"] == record["bank"]
    with pytest.raises(SystemExit, match="not measured: second"):
        measure(parts, Asked(["second"], Setting(), tmp_path), command.write)
    assert file.read_text(encoding="utf-8") == before
    assert "## Bank" in (tmp_path / "private-reference.md").read_text(encoding="utf-8")
    assert (tmp_path / "images" / "private-bank.svg").read_text(encoding="utf-8").startswith("<?xml")


def test_a_trial_does_not_get_on_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["quality", "--runs", "1", "bank"])
    with pytest.raises(SystemExit):
        command.main()
    monkeypatch.setattr("sys.argv", ["quality", "banc"])
    with pytest.raises(SystemExit):
        command.main()


def two_columns(n: int = 4_000) -> pd.DataFrame:
    a = np.random.default_rng(11).integers(0, 3, n)
    return pd.DataFrame({"a": a, "b": np.where(a == 2, "yes", "no")})


def test_scores_on_bins_by_hand() -> None:
    frame = two_columns()
    book = codebook(frame, {})
    assert set(on_bins(frame, frame[::-1], book).values()) == {1000.0}
    loose = frame.assign(b=frame["b"].sample(frac=1, random_state=0).to_numpy())
    found = on_bins(frame, loose, book)
    assert found["margins"] == 1000.0
    assert found["pairs"] < 800  # control: the dependence is gone; 4/9 of the rows are in cells that were empty
    merged = frame.assign(b="(other)")
    assert on_bins(frame, merged, book)["margins"] == 500.0  # a label that is not in the codebook has its own cell


def test_label_margins_are_those_of_the_text() -> None:
    frame = two_columns()
    assert label_margins(frame, frame.assign(a=0), ["b"]) == 0.0
    no = float((frame["b"] == "no").mean())
    assert label_margins(frame, frame.assign(b="no"), ["b"]) == pytest.approx(1 - no)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-9), (0.1, 1e-6), (4.0, 1e-3)])
def test_rho_gives_epsilon_and_delta_and_no_larger_one_does(epsilon: float, delta: float) -> None:
    def exact(r: float) -> float:
        """The δ of the Gaussian mechanism with sensitivity 1 and ρ-zCDP (Balle, Wang 2018, Theorem 8)."""
        sigma = (2 * r) ** -0.5
        above, below = 0.5 / sigma - epsilon * sigma, -0.5 / sigma - epsilon * sigma
        return float(norm.cdf(above) - math.exp(epsilon) * norm.cdf(below))

    found = histograms.rho(epsilon, delta)
    assert exact(found) <= delta
    assert exact(2 * found) > delta  # control
    orders = np.linspace(1.001, 2_000, 400_000)
    logs = (orders - 1) * (orders * found - epsilon) + orders * np.log1p(-1 / orders) - np.log(orders - 1)
    assert math.exp(logs.min()) == pytest.approx(delta, rel=1e-2)


def test_projected_counts_are_the_nearest() -> None:
    rng = np.random.default_rng(12)
    counts = rng.normal(10, 20, 30)
    found = histograms.project(counts, 300.0)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(300)
    others = 300 * rng.dirichlet(np.ones(30), 1_000)
    assert np.linalg.norm(found - counts) < np.linalg.norm(others - counts, axis=1).min()
    clipped = np.maximum(counts, 0)
    assert np.linalg.norm(clipped * 300 / clipped.sum() - counts) > np.linalg.norm(found - counts)  # control


@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_noisy_histograms_keep_margins_and_nothing_else(delta: float) -> None:
    frame = two_columns()
    book, n, alarm = codebook(frame, {}), len(frame), 1e-6
    made = histograms.synthesize(frame, book, 1.0, delta, 0)
    assert list(made.dtypes) == list(frame.dtypes)
    # sampling by McDiarmid around the multinomial's expectation; noise: the largest of 5 draws of the wider law
    noise = math.log(5 / alarm) * 2 / 0.4 if delta == 0 else math.sqrt(2 * math.log(10 / alarm) / (0.4 * 0.0149))
    bound = 1000 * (math.sqrt(3 / n) / 2 + math.sqrt(math.log(1 / alarm) / (2 * n)) + 3 * noise / n)
    assert on_bins(frame, made, book)["margins"] > 1000 - bound
    assert on_bins(frame, made.assign(a=0), book)["margins"] < 1000 - bound  # control
    assert on_bins(frame, made, book)["pairs"] < 800


def test_findings_that_cannot_be_had_are_left_out() -> None:
    frame = pd.DataFrame(
        {"age": [20, 40], "sex": [0, 1], "educ": [1, 2], "race": [1, 1], "income": [0.0, 9.0], "married": [0, 0]}
    )
    found = findings.found("pums", frame)
    assert found["share of sex = 1"] == 0.5
    assert found["income of sex 0 less that of sex 1"] == -9.0
    assert "mean age of the married" not in found
    labels = pd.Series(["a", "b", "a", "c"])
    assert findings.cramers_v(labels, labels) == pytest.approx(1.0)
    assert findings.cramers_v(pd.Series(["a", "a", "b", "b"]), pd.Series(["x", "y", "x", "y"])) == 0.0  # control


def test_the_verdict_names_what_is_met_and_who_is_ahead() -> None:
    ours = {"k-marginal": [860.0, 854.0], "label margins": [0.02], "seconds": [2.0]}
    theirs = {"k-marginal": [850.0], "label margins": [0.01], "seconds": [200.0]}
    late: dict[str, Any] = {"seconds": [], "limit": 3600.0}
    record = {
        "national": {"methods": {targets.DECLARED: ours}},
        "edges": {"tables": {"500 rows": {"distance": 0.5}}},
        "peers": {"tables": {"national": {"OpenDP MST": theirs, "OpenDP AIM": late}}},
    }
    said = verdict(record)
    by_name = {(one["table"], one["setting"], one["score"]): one for one in said["targets"]}
    assert by_name["national", targets.DECLARED, "k-marginal"]["met"]
    assert not by_name["edges", "500 rows", "distance"]["met"]
    assert "met" not in by_name["adult", targets.DEFAULT, "pairs"]  # not measured
    ahead = {(one["rival"], one["score"]): one["ahead"] for one in said["peers"]}
    assert ahead["OpenDP MST", "k-marginal"]
    assert not ahead["OpenDP MST", "label margins"]  # less is better
    assert [one["times"] for one in said["peers"] if one["score"] == "seconds"] == [100.0, 1800.0]


def test_runs_of_peers_are_read_from_their_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = two_columns(100)
    table = Table("toy", "Two columns", lambda: frame, {})
    monkeypatch.setattr(rivals, "TABLES", {"pums": table})
    monkeypatch.setattr(rivals, "RUNS", {"MST": {"pums": 2}, "AIM": {"pums": 2}})
    monkeypatch.setattr(rivals, "PYTHON", tmp_path / "absent")
    note = {"seconds": 3.0, "wall": 5.0, "date": "2026-01-01", "versions": {"opendp": "0"}}
    for number in range(2):
        one = rivals.Run("pums", "MST", "delta", number)
        frame.to_parquet(one.file(tmp_path, "parquet"))
        one.file(tmp_path, "json").write_text(json.dumps(note), encoding="utf-8")
    rivals.Run("pums", "AIM", "pure", 0).file(tmp_path, "json").write_text('{"limit": 3600.0}', encoding="utf-8")
    found = rivals.run(Setting(), tmp_path)
    assert found["date"] == "2026-01-01"
    assert found["tables"]["pums"].keys() == {"OpenDP MST", "OpenDP AIM, delta=0"}
    assert found["tables"]["pums"]["OpenDP MST"]["seconds"] == [3.0, 3.0]
    assert found["tables"]["pums"]["OpenDP MST"]["pairs"] == [1000.0, 1000.0]
    assert found["tables"]["pums"]["OpenDP AIM, delta=0"]["limit"] == 3600.0


def test_a_line_of_scores_says_what_is_met() -> None:
    line = scores.line("bank", targets.DEFAULT, {"KL": [0.004, 0.005], "seconds": [2.0]})
    assert "KL 0.0045 [<= 0.005 met]" in line
    assert "seconds 2.00 [<= 1 NOT MET]" in line


def test_every_setting_is_released_and_scored() -> None:
    frame = two_columns(400).assign(c=lambda f: f["a"].astype(float))
    table = Table("toy", "Three columns", lambda: frame, {}, target="b")
    found = settings.run(table, Setting(at_most=1))
    assert not any("failed" in method for method in found["methods"].values())
    assert {"default", 'default, target="b"', *targets.HISTOGRAMS, *targets.HISTOGRAMS.values()} < found[
        "methods"
    ].keys()
    assert found["methods"][settings.AGAIN]["margins"][0] > 900


@pytest.mark.parametrize("name", TABLES)
def test_public_bins_and_declared_ranges_hold_the_data(name: str) -> None:
    table = TABLES[name]
    try:
        frame = table.frame
    except (InputError, KeyError):
        pytest.skip("the data set is not there; see research.data")
    for column, bins in table.bins.items():
        numbers = pd.to_numeric(frame[column], errors="coerce").dropna()
        assert bins.edges[0] <= numbers.min()
        assert numbers.max() < bins.edges[-1]
        assert (bins.null is not None) == (len(numbers) < len(frame))
    kind: Any
    for column, kind in table.ranges.items():
        numbers = frame[column].dropna()
        if isinstance(kind, dipriv.Discrete):
            assert numbers.isin(kind.levels or ()).all()
        else:
            assert kind.lower <= numbers.min() <= numbers.max() <= kind.upper


@pytest.mark.slow
def test_a_private_release_shows_no_more_of_its_people_than_of_others() -> None:
    """The verbatim attack on the real table: at chance with the private reference, caught with the paper's hold-out."""
    try:
        found = verbatim.run(Setting(at_most=2))
    except InputError as absent:
        pytest.skip(str(absent))
    assert [run["beyond"] for run in found["halves"]] == [False, False]
    assert [run["beyond"] for run in found["hold-out"]] == [True, True]  # control
