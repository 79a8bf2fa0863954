"""What the judges of a release get: random halves, the hold-out apart, a judge that is missing left out."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.audit import __main__ as command
from benchmarks.audit import cases, judges
from benchmarks.audit.setting import Setting

HELD, COPY = "dipriv hold-out, held-out rows", "a verbatim copy"


def test_a_judge_that_is_not_installed_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(judges, "ROOT", tmp_path)
    assert judges.ask("anonymeter", tmp_path) == {"left out": "its environment .venv/anonymeter is not installed"}
    assert "anonymeter is left out: its environment .venv/anonymeter is not installed." in capsys.readouterr().err


@pytest.mark.slow
def test_cases_are_halves_and_the_hold_out_is_attacked_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pd.DataFrame({"x": np.arange(400.0), "y": np.arange(400) % 2 == 0})
    subject = cases.Subject(lambda: rows, {}, {}, (), (("x",), ("y",)), ("y",), ("x",), "y")
    monkeypatch.setitem(cases.SUBJECTS, "bank", subject)
    made = {case.label: case for case in cases.write("bank", 0, argparse.Namespace(folder=tmp_path, rows=None))}
    assert list(made) == ["dipriv", "dipriv hold-out, released rows", HELD, COPY]

    def people(file: str) -> set[float]:
        return set(pd.read_parquet(tmp_path / file)["x"])

    everyone = set(rows["x"])
    assert people(made["dipriv"].targets) | people(made["dipriv"].control) == everyone
    assert len(people(made["dipriv"].targets)) == len(people(made["dipriv"].control)) == 200
    free, held = people(made["dipriv hold-out, released rows"].targets), people(made[HELD].targets)
    assert not free & held
    assert free | held == people(made["dipriv"].targets)
    assert people(made[COPY].release) == people(made[COPY].targets)


def test_trials_do_not_go_on_record(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert Setting() == Setting(seeds=3, rows=None)
    monkeypatch.setattr("sys.argv", ["audit", "judges", "--seeds", "1"])
    with pytest.raises(SystemExit):
        command.main()
    assert "a trial does not belong on record" in capsys.readouterr().err
