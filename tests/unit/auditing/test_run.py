"""The whole audit: the call, the command, its files, and a claim that is refuted."""

from __future__ import annotations

import io
import json
import math
import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from rich.console import Console
from typer.testing import CliRunner

import dipriv
from dipriv.auditing import AttackResult, Audit, Bound, Exact
from dipriv.auditing.intervals import Estimate, Rate, at_least, epsilon_of_draws
from dipriv.auditing.procedure import Privatize
from dipriv.auditing.results import Check, Scope
from dipriv.cli import app
from dipriv.cli.audit import _show
from dipriv.kernels import Laplace
from dipriv.references import Private
from dipriv.report import compare
from dipriv.report.page import render
from tests.unit.refusal import refused
from tests.unit.release.approximate import Approximate

MARKER = "zq7-marker-xv"
RNG = np.random.default_rng(5)
ROWS = 1500
PEOPLE = pd.DataFrame(
    {
        "id": np.arange(ROWS),
        "age": RNG.integers(18, 90, ROWS),
        "sex": RNG.choice(["f", "m", MARKER], ROWS),
    }
)
QUICK: dict[str, Any] = {"draws": 40_000, "seed": 3}


def command(*arguments: object, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["audit", *map(str, arguments)], env={"COLUMNS": "200"})
    assert done.exit_code == code, (done.output, done.exception)
    return str(done.output)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    return tmp_path / "people.csv"


def less_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: the kernel takes twice its ε, and says nothing."""
    build = Laplace.build
    monkeypatch.setattr(Laplace, "build", lambda self, epsilon, *more: build(self, 2 * epsilon, *more))


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param({}, marks=pytest.mark.slow),
        {"reference": "holdout", "kernel": "laplace"},
        pytest.param({"holdout": 0.3}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_what_holds_is_not_refuted(asked: dict[str, Any]) -> None:
    found = dipriv.audit(PEOPLE, 1.0, keep=["id"], **asked, **QUICK)
    assert found.passed
    assert found.claimed == 1.0
    of_rows = Privatize(1.0, {"keep": ["id"], **asked}).row_epsilon(pa.Table.from_pandas(PEOPLE))
    assert {bound.claimed for bound in found.bounds} <= {1.0, of_rows, 1 - of_rows}
    assert len(found.bounds) >= 2
    assert found.attacks
    said = json.dumps(found.to_dict())
    assert MARKER not in said + repr(found)
    assert json.loads(said)["passed"] is True


@pytest.mark.slow
def test_a_planted_bug_is_found_and_the_command_says_so(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    PEOPLE.to_csv(public := tmp_path / "public.csv", index=False)
    asked = [table, "-e", 1, "--public", public, "--drop", "id", "--drop", "sex", "--kernel", "laplace"]
    asked += ["--draws", 40_000, "--seed", 1]
    said = command(*asked)
    assert "; nothing speaks against the promise." in said
    assert "Claimed ε 1.00; audited lower bound 0." in said
    assert "not refuted" in said
    assert "more than promised" not in said
    less_noise(monkeypatch)
    out = tmp_path / "found.json"
    said = command(*asked, "-o", out, "-q", code=1)
    assert "The attack on released rows found a loss of at least ε = 1." in said
    assert ", more than promised: ε = 1." in said
    assert "Do not publish a release that is made this way." in said
    found = json.loads(out.read_text())
    assert found["passed"] is False
    assert 1.0 < found["lower"] < 2.0
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


@pytest.mark.slow
def test_the_command_writes_a_report_and_json(table: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    asked = [table, "--epsilon", 2, "--drop", "id", "--draws", 20_000, "--seed", 1, "--report", report]
    said = command(*asked, "--json")
    found = json.loads(said)
    assert found["claimed"] == 2.0
    assert {"bounds", "exact", "attacks", "guarantee", "passed"} <= set(found)
    page = report.read_text(encoding="utf-8")
    assert '<h2 id="audit">Audit</h2>' in page
    assert "udited lower bound" in page
    assert "nothing speaks against the promise." in page
    command(*asked, "--json", "--force")
    assert report.read_text(encoding="utf-8") == page  # the same seed, the same report


def bound(claimed: float, lower: float, confidence: float = 0.999, what: str = "released rows") -> Bound:
    scope = Scope.ROW if what == "released rows" else Scope.RELEASE
    return Bound(what, claimed, lower, confidence, 2_000_000, "lowest against highest", scope=scope)


def attack(name: str, allowed: float | None = None, limit: float | None = None) -> AttackResult:
    return AttackResult(name, "finds <rows>", Rate(30, 100), Rate(10, 100), Estimate(0.2, 0.125, 0.275), allowed, limit)


def found_all(lower: float, epsilon: float = 0.999) -> Audit:
    """Every kind of finding, with names as long as they come."""
    bounds = bound(1.0, lower), bound(1.0, 0.0, what="release, distinct canaries")
    exact = Exact("a row, all columns together", 1.0, epsilon)
    attacks = attack("exposure, nearly verbatim"), attack("attribute education of the head, nearest row", 0.1718, 0.25)
    return Audit(1.0, "", 100, bounds, (exact,), attacks, ("50 of 100 rows were audited.",))


@pytest.mark.slow
def test_the_reports_section_shows_what_was_found() -> None:
    page = render(compare(PEOPLE, PEOPLE, audit=found_all(1.25, math.inf)))
    for needle in (
        "more than promised: ε = 1.",
        "whole release, from table",
        "finds &lt;rows&gt;",
        "no promise",
        "1.25",
        "50 of 100 rows",
        "∞",
        "0.172",
    ):
        assert needle in page
    assert ">not refuted<" in page
    assert ">holds<" not in page
    assert ">holds<" in render(compare(PEOPLE, PEOPLE, audit=found_all(0.9)))  # computed, so known
    assert "Audit" not in render(compare(PEOPLE, PEOPLE))
    approximate = Audit(
        1.0, "", 100, (replace(bound(1.0, 0.5), delta=1e-9),), (Exact("x", 1.0, 0.9, 1e-8),), delta=1e-9
    )
    page = render(compare(PEOPLE, PEOPLE, audit=approximate))
    assert "<td>1, δ 1e-9</td>" in page
    assert "<td>1, δ 1e-8</td>" in page


@pytest.mark.parametrize(
    ("claimed", "found", "said"),
    [
        (1.0, bound(1.0, 0.93), "claimed ε 1.00; audited lower bound 0.93 (99.9%)"),
        (1.0, bound(0.2, 0.18), "claimed ε 1.00 (0.20 of it for the rows); audited lower bound 0.18 (99.9%)"),
        (
            1.0,
            bound(0.8, 0.9, what="noise on counts"),
            "claimed ε 1.00 (0.80 of it for noise on counts); audited lower bound 0.90 (99.9%)",
        ),
        (0.001, bound(0.001, 0.0004, 0.95), "claimed ε 0.0010; audited lower bound 0.0004 (95%)"),
        (0.5, bound(0.05, 0.031), "claimed ε 0.500 (0.050 of it for the rows); audited lower bound 0.031 (99.9%)"),
        (1.0, bound(1.0, 1.0004, 0.99999999), "claimed ε 1.0000; audited lower bound 1.0004 (99.999999%)"),
    ],
)
def test_the_headline(claimed: float, found: Bound, said: str) -> None:
    assert Audit(claimed, "", 100, (bound(claimed, 0.0), found)).headline == said


def test_the_headline_is_of_the_rows_or_the_release_unless_a_step_is_refuted() -> None:
    rows, step = bound(0.2, 0.1), bound(0.8, 0.799, what="noise on counts")
    assert "0.20 of it for the rows" in Audit(1.0, "", 100, (rows, step)).headline
    assert "0.800 of it for noise on counts" in Audit(1.0, "", 100, (step,)).headline


def test_the_conclusion_says_what_was_found_in_plain_words() -> None:
    nothing = AttackResult("linkage", "", Rate(3, 100), Rate(3, 100), Estimate(0.0, -0.1, 0.1), 0.05, 0.1)
    assert found_by(nothing) == "No attack did better than guessing; nothing speaks against the promise."
    gained = attack("membership", 0.4, 0.45)
    assert found_by(nothing, gained) == (
        "Attacks did better than guessing, but not more than the promise allows (membership: 20% more often, "
        "40% allowed); nothing speaks against the promise."
    )
    assert found_by(attack("exposure")).endswith(" Rows that have no promise were found by: exposure.")
    refuting = attack("membership", 0.05, 0.1)
    assert found_by(nothing, refuting).splitlines() == [
        "The attack 'membership' succeeds 12% more often than guessing, more than promised: 10%.",
        "Do not publish a release that is made this way.",
    ]
    canaries = bound(1.0, 0.27, what="release, extreme canaries")
    assert "release, extreme canaries: ε at least 0.27, 1 allowed" in Audit(1.0, "", 100, (canaries,)).conclusion
    assert "found a loss without any limit" in Audit(1.0, "", 9, (), (Exact("noise", 1.0, math.inf),)).conclusion
    broken = Check("rows are bounded", False, "Rows are not bounded.", Scope.PERSON)
    said = Audit(1.0, "", 100, checks=(broken,))
    assert said.conclusion.startswith("Rows are not bounded.\n")
    assert not said.passed
    said = Audit(1.0, "", 100, checks=(Check("a ledger knows it", False, "A ledger does not know it."),))
    assert said.conclusion.endswith("nothing speaks against the promise.\nA ledger does not know it.")
    assert said.passed


def found_by(*attacks: AttackResult) -> str:
    return Audit(1.0, "", 100, attacks=attacks).conclusion


def test_an_audit_prints_its_conclusion_and_a_small_table() -> None:
    lines = str(replace(found_all(0.9), delta=1e-9)).splitlines()
    assert lines[0].endswith(
        "nothing speaks against the promise. Rows that have no promise were found by: exposure, nearly verbatim."
    )
    assert lines[2] == "Promised: ε = 1, δ = 1e-9 to every row. 100 rows were audited."
    assert lines[4].split() == ["found", "promised"]
    assert lines[5].startswith("noise on one row, for the fitted reference")
    assert lines[5].endswith("ε at least 0.9        ε = 1")
    assert lines[-3] == "50 of 100 rows were audited."
    assert lines[-1].endswith("do not publish.")
    assert len(lines) < 17
    assert max(map(len, lines[4:])) <= 120
    refuted = str(found_all(0.9, math.inf)).splitlines()
    assert "noise on one row, for the fitted reference" in refuted[6]
    assert "ε = inf" in refuted[6]


def test_the_headline_without_bounds() -> None:
    assert Audit(0.001, "", 100).headline == "claimed ε 0.0010; no lower bound was measured"
    assert Audit(0.5, "", 100, delta=1e-9).headline == "claimed ε 0.50, δ 1e-9; no lower bound was measured"


def test_the_headline_names_the_delta() -> None:
    rows, release = bound(0.2, 0.1), replace(bound(1.0, 0.9, what="release"), delta=1e-9)
    said = Audit(1.0, "", 100, (rows, release), delta=1e-9)
    assert said.headline == "claimed ε 1.00, δ 1e-9; audited lower bound 0.90 at this δ (99.9%)"
    assert [found["delta"] for found in said.to_dict()["bounds"]] == [0.0, 1e-9]
    assert said.to_dict()["delta"] == 1e-9


def test_the_command_shows_the_delta_of_each_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    approximate = Audit(1.0, "", 100, (replace(bound(1.0, 0.5), delta=1e-9), bound(0.2, 0.1)), delta=1e-9)
    lines = shown(monkeypatch, approximate, force_terminal=False)
    first, second = (line for line in lines if line.startswith("released rows"))
    assert " 1, δ 1e-9 0.5 " in first
    assert "δ" not in second


def test_a_bound_from_draws_is_at_the_delta() -> None:
    """An event that happens with probability 0.05 under one dataset only: unbounded ε, or δ = 0.05."""
    counts = 500, 10_000, 0, 10_000
    assert epsilon_of_draws(*counts, 0.999) > 3
    assert epsilon_of_draws(*counts, 0.999, delta=0.05) == 0.0
    half, lower = (1 + 0.999) / 2, epsilon_of_draws(*counts, 0.999, delta=0.01)
    likely, rare = at_least(500, 10_000, half), 1 - at_least(10_000, 10_000, half)
    assert lower == pytest.approx(math.log((likely - 0.01) / rare))


@pytest.mark.slow
def test_an_audit_compares_with_the_delta_of_the_guarantee() -> None:
    """The rows' noise is pure; what is learned, canaries and attacks are judged at (ε, δ)."""
    table = pa.table({"x": np.random.default_rng(1).normal(size=400)})
    reference: Any = Approximate()
    found = dipriv.audit(table, 1.0, delta=1e-6, reference=reference, draws=10_000, seed=1)
    assert found.delta == 1e-6
    assert "ε = 1, δ = 1e-6" in found.guarantee
    assert {each.what: each.delta for each in found.bounds if each.delta} == {
        "Gaussian noise on counts": 1e-6,
        "what is learned from a row": 1e-6,
        "release, extreme canaries": 1e-6,
        "release, distinct canaries": 1e-6,
    }
    assert found.passed
    assert json.loads(json.dumps(found.to_dict()))["delta"] == 1e-6


def test_what_was_found_is_strict_json() -> None:
    found = json.loads(json.dumps(found_all(0.9, math.inf).to_dict(), allow_nan=False))
    assert found["format"] == 4
    assert found["headline"] == "claimed ε 1.00; audited lower bound 0.90 (99.9%)"
    assert found["passed"] is False
    assert found["exact"] == [
        {"what": "a row, all columns together", "claimed": 1.0, "epsilon": "inf", "delta": 0.0, "exceeded": True}
        | {"scope": "noise on one row, for the fitted reference", "is_lower_bound": False}
    ]
    assert [one["exceeded"] for one in found["bounds"] + found["attacks"]] == [False] * 4
    rate = Rate(30, 100)
    as_dict = {
        "hits": 30,
        "tries": 100,
        "confidence": 0.95,
        "value": 0.3,
        "lower": rate.lower,
        "upper": rate.upper,
    }
    assert found["attacks"][0]["targets"] == as_dict
    assert found["attacks"][1]["allowed"] == 0.1718
    assert found["attacks"][1]["limit"] == 0.25


def shown(monkeypatch: pytest.MonkeyPatch, found: Audit, **console: Any) -> list[str]:
    """The lines that the command prints, on a console of 80 columns."""
    screen = Console(soft_wrap=True, highlight=False, file=io.StringIO(), width=80, color_system=None, **console)
    monkeypatch.setattr("dipriv.cli.audit.out", screen)
    monkeypatch.setattr("dipriv.cli.terminal.out", screen)
    _show(found)
    return str(screen.file.getvalue()).splitlines()  # type: ignore[attr-defined]


def test_tables_are_whole_at_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, found_all(1.25), force_terminal=True)
    assert max(map(len, lines)) <= 80
    assert "…" not in "".join(lines)
    assert lines[0].split() == ["ε", "of", "verdict", "claimed", "bound", "confidence", "draws"]
    assert lines[1].startswith("noise on one row, for the fitted")
    assert next(line for line in lines if line.startswith("released rows")).split() == [
        "released",
        "rows",
        "refuted",
        "1",
        "1.25",
        "99.9%",
        "2,000,000",
    ]
    row = next(line for line in lines if line.startswith("attribute"))
    assert row.split()[-9:] == ["not", "refuted", "0.300", "0.100", "+0.200", "+0.125", "to", "+0.275", "0.172"]
    narrow = "".join("".join(line.split()) for line in lines)
    assert "nearestrow" in narrow  # the name goes on in the next line


def test_elsewhere_each_entry_has_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, found_all(0.9), force_terminal=False)
    row = next(line for line in lines if line.startswith("attribute education of the head, nearest row"))
    assert len(row) > 80
    assert row.rstrip().endswith("0.172")
    assert "not refuted" in row
    assert "+0.125 to +0.275" in row


@pytest.mark.slow
def test_the_command_in_a_pipe_of_80_columns(table: Path, tmp_path: Path) -> None:
    """A process of its own: exit codes are those of a shell, and nothing that it prints is cut."""

    def run(*asked: object, code: int) -> str:
        line = [sys.executable, "-m", "dipriv", *map(str, asked)]
        done = subprocess.run(
            line, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "80"}, timeout=300
        )
        assert done.returncode == code, (done.stdout, done.stderr)
        return done.stdout + done.stderr

    asked = [table, "-e", 1, "--drop", "id", "--draws", 20_000, "--seed", 1]
    said = run("audit", *asked, code=0)
    assert "…" not in said
    assert "..." not in said
    assert "not refuted" in said
    help_ = " ".join(run("audit", "--help", code=0).replace("│", " ").split())
    assert "wants to know [default: each in turn]." in help_
    assert "2 after an error" in help_
    assert "the guarantee of a person with several rows" in help_
    assert "--control" in help_
    there = tmp_path / "there.json"
    there.write_text("{}")
    assert "is not a file" in run("audit", tmp_path / "nowhere.csv", "-e", 1, code=2)
    assert "exists" in run("audit", *asked, "-o", there, code=2)
    assert "epsilon=-1.0" in run("--debug", "audit", table, "-e", -1, code=2)
    assert "is not a file" in run("inspect", tmp_path / "nowhere.csv", code=1)  # other commands keep theirs


@pytest.mark.parametrize("fault", [ValueError(MARKER), OSError(28, MARKER), dipriv.InputError("odd.", "Mend it.")])
def test_an_error_is_no_verdict(table: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception) -> None:
    def failing(*_: object, **__: object) -> Audit:
        raise fault

    monkeypatch.setattr("dipriv.auditing.run.audit", failing)
    assert MARKER not in command(table, "-e", 1, code=2)


@pytest.mark.slow
def test_large_tables_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dipriv.auditing.run.MAX_ROWS", 1000)
    found = dipriv.audit(PEOPLE, 1.0, columns=["age"], **QUICK)
    assert found.rows == 1000
    assert found.remarks[0] == "1,000 of 1,500 rows were audited, picked at random."


@pytest.mark.slow
def test_some_columns_of_wide_tables_are_audited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dipriv.auditing.run.MAX_COLUMNS", 6)
    monkeypatch.setattr("dipriv.auditing.run.SAMPLED_COLUMNS", 2)
    rng = np.random.default_rng(0)
    wide = pd.DataFrame({f"c{number}": rng.integers(0, 4, 300) for number in range(7)})
    schema = dipriv.Schema({str(name): dipriv.Discrete(levels=(0, 1, 2, 3)) for name in wide})
    asked: dict[str, Any] = {"draws": 10_000, "seed": 1, "secret": "c5", "schema": schema}
    found = dipriv.audit(wide, 1.0, **asked, reference=Private(target="c6"), keep=["c0"])
    assert found.passed
    assert any("5 of 7 columns were audited" in remark for remark in found.remarks)
    assert {one.what for one in found.exact} >= {f"column 'c{number}'" for number in range(1, 7)} or any(
        "all columns together" in one.what for one in found.exact
    )
    narrow = dipriv.audit(wide.iloc[:, :6], 1.0, draws=10_000, seed=1)
    assert not any("columns were audited" in remark for remark in narrow.remarks)  # control


def test_bad_options() -> None:
    audit = dipriv.audit
    refused(dipriv.InputError, "'seeds'", "reference", call=lambda: audit(PEOPLE, 1.0, seeds=3))
    refused(dipriv.InputError, "rows_per_unit", call=lambda: audit(PEOPLE, 1.0, rows_per_unit=3))
    refused(dipriv.InputError, "confidence=1.5", call=lambda: audit(PEOPLE, 1.0, confidence=1.5))
    refused(dipriv.InputError, "epsilon", call=lambda: audit(PEOPLE, 0.0))
    refused(dipriv.InputError, "secret", call=lambda: audit(PEOPLE, 1.0, columns=["age"], secret="x", **QUICK))
    with pytest.raises(dipriv.InputError, match="rows"):
        audit(PEOPLE[:10], 1.0, **QUICK)
