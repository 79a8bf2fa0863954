"""Benchmarks of several parts: what is asked for, what is measured, and what is on record when a part fails."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchmarks.parts import Asked, Found, asked, measure, write_folder
from research import pages


def trial(seeds: int = 3) -> int:
    return seeds


@pytest.mark.parametrize(
    ("given", "parts", "seeds"),
    [([], ["a", "b"], 3), (["c", "a"], ["c", "a"], 3), (["page"], [], 3), (["a", "--seeds", "1"], ["a"], 1)],
)
def test_the_parts_asked_for(
    given: list[str], parts: list[str], seeds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["audit", *given, "--out", str(tmp_path)])
    assert asked("audit", "abc", trial, {"seeds": "seeds"}, left_out="c") == Asked(parts, seeds, tmp_path)


@pytest.mark.parametrize(
    ("given", "fault"), [(["a", "x"], "no part x; there are a, b and page"), (["--seeds", "1"], "not belong on record")]
)
def test_other_requests_are_refused(
    given: list[str], fault: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["audit", *given])
    with pytest.raises(SystemExit):
        asked("audit", "ab", trial, {"seeds": "seeds"})
    assert fault in capsys.readouterr().err


def test_a_part_that_fails_leaves_its_record_and_the_others_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Any] = []
    monkeypatch.setattr(pages, "write", lambda *arguments: written.append(arguments))

    def fail(setting: int) -> Found:
        raise ValueError(setting)

    parts: dict[str, Callable[[int], Found]] = {"a": lambda seeds: {"seeds": seeds}, "b": fail, "c": lambda _: {}}
    write = partial(write_folder, "audit")
    (tmp_path / "audit").mkdir()
    (tmp_path / "audit" / "b.json").write_text("as it was")
    with pytest.raises(SystemExit, match=r"^not measured: b$"):
        measure(parts, Asked(["a", "b", "c"], 5, tmp_path), write)
    found = json.loads((tmp_path / "audit" / "a.json").read_text())
    assert found["seeds"] == 5
    assert {"date", "minutes", "machine"} < found.keys()
    assert (tmp_path / "audit" / "b.json").read_text() == "as it was"
    assert (tmp_path / "audit" / "c.json").exists()
    measure(parts, Asked([], 5, tmp_path), write)
    assert written == [("audit", tmp_path)] * 3
