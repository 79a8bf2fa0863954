"""The command line in this process: quick, and with any part of it replaced."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from dipriv.cli import main


class Ended(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str


def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: object) -> Ended:
    """`dipriv` with these arguments."""
    monkeypatch.setattr(sys, "argv", ["dipriv", *map(str, arguments)])
    monkeypatch.setenv("COLUMNS", "80")
    capfd.readouterr()
    with pytest.raises(SystemExit) as ended:
        main()
    code = ended.value.code
    return Ended(code if isinstance(code, int) else 0, *capfd.readouterr())


def write_table(path: Path, rows: int = 300) -> Path:
    """A table with a column whose name has a comma."""
    lines = [f"{row % 60 + 18},{'abc'[row % 3]},{row % 4},{row % 7}" for row in range(rows)]
    path.write_text("\n".join(['age,city,affairs,"a,b"', *lines, ""]), encoding="utf-8")
    return path
