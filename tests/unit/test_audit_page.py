"""The page of the audit renders from its record; what the judges get is split as it says."""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from benchmarks.audit import __main__ as command
from benchmarks.audit import attacks, cases, judges, page
from benchmarks.audit.judges_page import COPY, HELD, SCORES
from benchmarks.audit.setting import Setting

from dipriv.auditing.attacks.outcome import compare
from dipriv.auditing.intervals import Rate, difference

LABELS = ("dipriv", HELD, "OpenDP MST", COPY)


def attack(success: int, interval: tuple[float, float], weak: bool = False) -> dict[str, Any]:
    counts = {"attacks": 100, "success": success, "control": 20, "naive": 10}
    risk = {"risk": (success - 20) / 80, "interval": list(interval)}
    return counts | risk | {"weaker than naive": weak, "control always succeeds": False}


def record() -> dict[str, Any]:
    """As `judges.run` leaves it: dipriv is attacked in vain, the copy is caught, a release gives no description."""
    none = {"attacks": 0, "success": 0, "control": 0, "naive": 0}
    calm = {"singling out, 1 column": none, "linkability": attack(20, (0, 0.1), weak=True)}
    calm["inference of y"] = attack(24, (0.01, 0.09))
    bad = dict.fromkeys(calm, attack(92, (0.8, 1.0)))
    told = {
        "rows": 2000,
        "columns": 3,
        "distinct rows": 900,
        "numeric": ["x"],
        "link": [["x"], ["y"]],
        "secrets": ["y"],
        "known": ["x"],
        "sensitive": "y",
    }
    scores = {label: {name: [0.5, 0.6] for name in SCORES} for label in LABELS}
    scores["OpenDP MST"] = scores["OpenDP MST"] | {"pair trends": [0.9, 0.9]}
    return {
        "epsilon": 1.0,
        "seeds": [0, 1],
        "tables": {"bank": told},
        "methods": {"bank": {label: {"promise": "some", "runs": 2} for label in LABELS}},
        "peers left out for lack of": [],
        "versions": {"releases": {"dipriv": "0"}, "anonymeter": {"anonymeter": "1.1.0"}},
        "anonymeter": {
            "found": {"bank": {label: bad if label in (COPY, HELD) else calm for label in LABELS}},
            "settings": {"neighbours": 10, "attacks": {"singling out": 1000}},
        },
        "sdmetrics": {"found": {"bank": scores}, "settings": {"sample": 500, "people": 900, "looked up": 800}},
        "date": "2026-01-01",
        "minutes": 1.0,
        "machine": {"cores": 2, "memory in GB": 24.0, "kind": "any"},
    }


def test_the_page_says_what_the_record_holds() -> None:
    text = page.render({"judges": record()})
    assert f"Control, {COPY}: anonymeter finds a risk in 2 of 2 attacks, 90% to 90%." in text
    assert "dipriv: the interval of the risk excludes 0 in 1 of 2 attacks: inference of y (bank);" in text
    assert "The largest estimate is 5.0%: inference of y (bank), 100 attacks." in text
    assert "| linkability | dipriv | 100 | 20.0% | 20.0% | 10.0% | 0.0% (0.0% to 10.0%) † |" in text
    assert "| singling out, 1 column | dipriv | 0 |  |  |  | nothing to attack with |" in text
    assert "bank: dipriv is worse than OpenDP MST in pair trends 0.550 against 0.900." in text
    assert "Means over the seeds (bank 2);" in text
    assert "larger than 63%" in text  # 1 - 1/e
    assert "2 cores, 24 GB memory, seeds 0, 1; releases: dipriv 0; anonymeter: anonymeter 1.1.0." in text


def test_a_page_without_parts_and_one_without_judges() -> None:
    assert "Not on record yet: bounds, attacks, judges, fuzz." in page.render({})
    absent = {"left out": "its environment .venv/x is not installed"}
    text = page.render({"judges": record() | {"anonymeter": absent, "sdmetrics": absent}})
    assert text.count("Left out: its environment .venv/x is not installed.") == 2


def attacked(people: int, epsilon: float | None) -> dict[str, Any]:
    """As `attacks.run` leaves it: so many of 1,000 people, and 100 of 1,000 in the control group."""
    each = np.arange(1000)
    return attacks.as_record(compare("linkage", "", each < people, each < 100, 0.95, epsilon))


def test_attacks_have_intervals_and_what_epsilon_allows() -> None:
    ways = {
        "calm": [attacked(105, 1.0)],
        "bad": [attacked(900, 1.0)],
        "exposed": [attacked(300, None)],
    }
    found = {"epsilon": 1.0, "confidence": 0.95, "tables": {"bank": {"rows": 2000, "columns": 3, "ways": ways}}}
    about = {name: record()[name] for name in ("date", "minutes", "machine")}
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    text = page.render({"attacks": found | about})
    assert "| attack | release | people | control | difference (95%) | ε allows |" in text
    ends = difference(Rate(105, 1000), Rate(100, 1000))
    interval = f"({ends.lower:+.3f} to {ends.upper:+.3f})"
    assert f"| linkage | calm | 0.105 | 0.100 | +0.005 {interval} | 0.172 |" in text  # 0.1 (e - 1)
    assert "| linkage | bad | 0.900 | 0.100 | **+0.800 (" in text
    assert ")** **!** | 0.172 |" in text
    assert "| linkage | exposed | 0.300 | 0.100 | **+0.200 (" in text
    assert ")** | no promise |" in text
    assert "one to a person of several rows (`unit`) is not" in text


def fuzzed(**more: Any) -> dict[str, Any]:
    counts = {"cases": 1200, "refused": 1000, "accepted": 199, "uncaught": 1, "crashes": 0}
    told = {"csv": counts | {"slowest_ms": 7.2, "grown_mb": 50.0, "branches reached": 321}}
    return {"seed": 0, "seeds": [0], "cases": 1200, "uncaught": 1, "targets": told, "versions": {}} | more


def test_fuzzing_by_chance_and_by_coverage() -> None:
    about = {name: record()[name] for name in ("date", "minutes", "machine")}
    text = page.render({"fuzz": fuzzed(guided=fuzzed(cases=300, uncaught=0)) | about})
    assert "1,200\ncases 1 uncaught exceptions" in text
    assert "| csv | 1,200 | 1,000 | 199 | 1 | 7 | 50 |" in text
    assert "in 300 cases 0\nuncaught" in text
    assert "| csv | 1,200 | 1,000 | 199 | 1 | 321 |" in text
    without = page.render({"fuzz": fuzzed(guided={"left out": "atheris is not installed"}) | about})
    assert "Guided by coverage: left out, atheris is not installed." in without


def test_the_page_in_the_docs_is_that_of_its_records(tmp_path: Path) -> None:
    shutil.copytree(command.DOCS / "audit", tmp_path / "audit")
    command.write_page(tmp_path)
    assert (tmp_path / "audit.md").read_text(encoding="utf-8") == (command.DOCS / "audit.md").read_text(
        encoding="utf-8"
    )


def test_the_page_is_written_from_the_files_that_are_there(tmp_path: Path) -> None:
    (tmp_path / "audit").mkdir()
    (tmp_path / "audit" / "judges.json").write_text(json.dumps(record()), encoding="utf-8")
    command.write_page(tmp_path)
    assert (tmp_path / "audit.md").read_text(encoding="utf-8") == page.render({"judges": record()})


def test_a_judge_that_is_not_installed_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(judges, "ROOT", tmp_path)
    assert judges.ask("anonymeter", tmp_path) == {"left out": "its environment .venv/anonymeter is not installed"}
    assert "anonymeter is left out: its environment .venv/anonymeter is not installed." in capsys.readouterr().err


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
