"""The whole audit: the call, the command, its files, and a claim that is refuted."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dipriv
from dipriv.audit import Attack, Audit, Bound, Exact
from dipriv.audit.intervals import Estimate, Rate
from dipriv.cli import app
from dipriv.kernels import Laplace
from dipriv.report import compare
from dipriv.report.page import render
from tests.unit.refusal import refused

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
QUICK: dict[str, Any] = {"draws": 40_000, "rng": 3}


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


@pytest.mark.parametrize("asked", [{}, {"reference": "holdout", "kernel": "laplace"}, {"holdout": 0.3}], ids=str)
def test_what_holds_is_not_refuted(asked: dict[str, Any]) -> None:
    found = dipriv.audit.audit(PEOPLE, 1.0, keep=["id"], **asked, **QUICK)
    assert found.passed
    assert found.claimed == 1.0
    assert {bound.claimed for bound in found.bounds} <= {1.0, 1 / 3}  # two columns: two thirds of ε for the reference
    assert len(found.bounds) >= 2
    assert found.attacks
    said = json.dumps(found.to_json())
    assert MARKER not in said + repr(found)
    assert json.loads(said)["passed"] is True


def test_a_planted_bug_is_found_and_the_command_says_so(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    PEOPLE.to_csv(public := tmp_path / "public.csv", index=False)
    asked = [table, "-e", 1, "--public", public, "--drop", "id", "--drop", "sex", "--kernel", "laplace"]
    asked += ["--draws", 40_000, "--seed", 1]
    said = command(*asked)
    assert "claimed ε 1.00; audited lower bound 0." in said
    assert "refuted" not in said
    less_noise(monkeypatch)
    out = tmp_path / "found.json"
    said = command(*asked, "-o", out, "-q", code=1)
    assert "refuted" in said
    found = json.loads(out.read_text())
    assert found["passed"] is False
    assert 1.0 < found["lower"] < 2.0
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_the_command_writes_a_report_and_json(table: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    asked = [table, "--epsilon", 2, "--drop", "id", "--draws", 20_000, "--seed", 1, "--report", report]
    said = command(*asked, "--json")
    found = json.loads(said)
    assert found["claimed"] == 2.0
    assert {"bounds", "exact", "attacks", "guarantee", "passed"} <= set(found)
    page = report.read_text(encoding="utf-8")
    assert '<h2 id="audit">Audit</h2>' in page
    assert "audited lower bound" in page
    assert "exists" in str(CliRunner().invoke(app, ["audit", *map(str, asked)]).exception)  # nothing is replaced


def test_the_reports_section_shows_what_was_found() -> None:
    rate = Rate(30, 100)
    attack = Attack("exposure", "finds <rows>", rate, Rate(10, 100), Estimate(0.2, 0.1, 0.3), None)
    exact = Exact("column 'age'", 1.0, 0.999)
    bound = Bound("released rows", 1.0, 1.25, 0.999, 1000, "lowest against highest")
    found = Audit(1.0, "", 100, (bound,), (exact,), (attack,), ("50 of 100 rows were audited.",))
    page = render(compare(PEOPLE, PEOPLE, audit=found))
    for needle in ("The claim is refuted", "finds &lt;rows&gt;", "nothing promised", "1.25", "50 of 100 rows"):
        assert needle in page
    assert "Audit" not in render(compare(PEOPLE, PEOPLE))


def test_large_tables_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dipriv.audit.whole.MOST_ROWS", 1000)
    found = dipriv.audit.audit(PEOPLE, 1.0, columns=["age"], **QUICK)
    assert found.rows == 1000
    assert found.notes == ("1,000 of 1,500 rows were audited, picked at random.",)


def test_bad_options() -> None:
    audit = dipriv.audit.audit
    refused(dipriv.InputError, "'unit'", "reference", call=lambda: audit(PEOPLE, 1.0, unit="id"))
    refused(dipriv.InputError, "confidence=1.5", call=lambda: audit(PEOPLE, 1.0, confidence=1.5))
    refused(dipriv.InputError, "epsilon", call=lambda: audit(PEOPLE, 0.0))
    refused(dipriv.InputError, "secret", call=lambda: audit(PEOPLE, 1.0, columns=["age"], secret="x", **QUICK))
    with pytest.raises(dipriv.InputError, match="rows"):
        audit(PEOPLE[:10], 1.0, **QUICK)
