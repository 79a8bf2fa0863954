"""The examples in README and docs run, and what they say about guarantees is what the code says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dipriv.guarantee import Guarantee, ReferenceFacts, ReferenceSource
from dipriv.guarantee.wording import protects
from dipriv.release.make_guarantee import Origin

ROOT = Path(__file__).parents[2]
CLONE = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "src")))}
"""As in a clone, from another folder."""
DOCUMENTS = [ROOT / "README.md", ROOT / "examples" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def python_blocks(path: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=() if p.name == "README.md" else pytest.mark.slow) for p in DOCUMENTS if python_blocks(p)],
    ids=lambda p: p.name,
)
def test_the_examples_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile("\n".join(python_blocks(path)), path.name, "exec"), {"__name__": "example"})


def test_the_readmes_example_has_five_lines() -> None:
    lines = [line for line in python_blocks(ROOT / "README.md")[0].splitlines() if line]
    assert len(lines) == 5


def test_the_readme_says_whom_each_reference_protects() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for source in ("known", "public", "holdout", "groups", "fit"):
        parts = tuple(replace(part, rows=None) for part in Origin(source).unprotected)
        guarantee = Guarantee(1.0, "", ReferenceFacts(ReferenceSource.UNKNOWN), unprotected=parts)
        assert f"| {protects(guarantee)} |" in text
    assert "nearly verbatim" in text
    assert "12,248,613" in text


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: p.name)
def test_links_lead_somewhere(path: Path) -> None:
    folder = path.parent
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text(encoding="utf-8")):
        assert target.startswith("http") or (folder / target).exists(), target


def test_import_is_light() -> None:
    """`import dipriv` loads none of the heavy stacks, and using it none of the optional ones."""
    script = "import sys, dipriv; print(*sys.modules); dipriv.privatize; print(*sys.modules)"
    first, second = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    heavy = {
        "pandas",
        "polars",
        "sklearn",
        "scipy.stats",
        "matplotlib",
        "statsmodels",
        "sqlalchemy",
        "pyarrow",
        "narwhals",
    }
    assert not heavy & set(first.split())
    assert not (heavy - {"pyarrow", "narwhals"}) & set(second.split())


@pytest.mark.slow
def test_the_demo_writes_all_it_promises(tmp_path: Path) -> None:
    pytest.importorskip("statsmodels", reason="the demo's table is in statsmodels")
    command = [sys.executable, "-m", "examples.demo", "--out", str(tmp_path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    files = [
        "guarantee.txt",
        "ledger.db",
        "report.html",
        "schema.toml",
        "survey-released.csv",
        "survey-released.csv.dipriv.json",
        "survey-released.csv.sheet.html",
        "survey-released.csv.sheet.json",
    ]
    assert sorted(p.name for p in tmp_path.iterdir()) == [*files, "survey.csv"]
    assert "Protects:   every row." in done.stdout
    assert (tmp_path / "guarantee.txt").read_text(encoding="utf-8").strip() in done.stdout


@pytest.mark.slow
def test_the_tutorial_runs(tmp_path: Path) -> None:
    pytest.importorskip("statsmodels", reason="the demo's table is in statsmodels")
    text = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    commands = [line for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]
    assert len(commands) == 9
    for command in commands:
        program, *arguments = shlex.split(command.replace("dipriv ", "python -m dipriv ", 1))
        assert program == "python"
        done = subprocess.run(
            [sys.executable, *arguments], cwd=tmp_path, env=CLONE, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (command, done.stderr)
    assert "ε spent 1.5, 0.5 of 2 left; δ spent " in done.stdout
