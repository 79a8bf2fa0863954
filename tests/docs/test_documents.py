"""The examples in README and docs run, and what they say about guarantees is what the code says."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dipriv.guarantee import Guarantee, ReferenceFacts, ReferenceSource
from dipriv.guarantee.wording import protects
from dipriv.release.make_guarantee import Origin

ROOT = Path(__file__).parents[2]
CLONE = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "src")))}
"""As in a clone, from another folder."""
DOCUMENTS = [ROOT / "README.md", ROOT / "examples" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NOT_RUN = ("pip", "conda", "docker", "make", "Rscript")
"""Programs whose commands are checked against the files that they name: pyproject.toml, Makefile, Dockerfile."""


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(encoding="utf-8"), flags=re.DOTALL)


def commands(path: Path) -> list[str]:
    """The lines of all blocks of shell commands, without comments."""
    lines = [line.partition("  #")[0].strip() for block in blocks(path, "sh") for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(p, marks=() if p.name == "README.md" else pytest.mark.slow)
        for p in DOCUMENTS
        if blocks(p, "python")
    ],
    ids=name_of,
)
def test_the_examples_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with spark(path):
        exec(compile("\n".join(blocks(path, "python")), path.name, "exec"), {"__name__": "example"})


@contextmanager
def spark(path: Path) -> Iterator[None]:
    """A session for the page about Spark, which asks for the one that there is."""
    if path.name != "spark.md":
        yield
        return
    pytest.importorskip("pyspark", reason='the page about Spark needs pip install "dipriv[spark]"')
    from tests.spark_support import session

    log = Path(os.getcwd()) / "log"
    log.mkdir()
    yield from session(log)


def test_the_readmes_example_has_five_lines() -> None:
    lines = [line for line in blocks(ROOT / "README.md", "python")[0].splitlines() if line]
    assert len(lines) == 5


def test_the_readmes_real_example_has_the_numbers_on_record() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "gallery" / "bank.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [^|]+ \| ([\d.]+) \(([\d.]+) to ([\d.]+)\) \| ([\d.]+) \|$", readme, re.MULTILINE)
    assert len(rows) == 3
    for estimate, low, high, _ in rows:
        assert f"{estimate}, 95% interval {low} to {high}." in page
    assert f"true: {', '.join(true for *_, true in rows)}" in page
    assert "0.082 (0.014 to 0.149)" in readme
    assert "ε = 0.1: 0.082, 95% interval 0.014 to 0.149" in page


def test_the_documentation_says_whom_each_reference_protects() -> None:
    text = (ROOT / "docs" / "explanation" / "promise.md").read_text(encoding="utf-8")
    for source in ("known", "public", "holdout", "groups", "fit"):
        parts = tuple(replace(part, rows=None) for part in Origin(source).unprotected)
        guarantee = Guarantee(1.0, "", ReferenceFacts(ReferenceSource.UNKNOWN), unprotected=parts)
        assert f"| {protects(guarantee)} |" in text
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "nearly verbatim" in text
    assert "nearly verbatim" in readme
    assert "12,248,613" in readme


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
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


def run_commands(path: Path, folder: Path, environment: dict[str, str]) -> str:
    """Run all commands of a page in order, and return what the last one printed. `make demo` is its script."""
    printed = ""
    for command in to_run(path):
        program, *arguments = shlex.split(command.removeprefix(".venv/bin/"))
        if command == "make demo":
            program, arguments = "python", ["-m", "examples.demo", "--out", "demo", "--release"]
        module = ["-m", "dipriv"] if program == "dipriv" else []
        assert program in ("dipriv", "python"), command
        done = subprocess.run(
            [sys.executable, *module, *arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (command, done.stderr)
        printed = done.stdout
    return printed


def to_run(path: Path) -> list[str]:
    """The commands of a page that tests run."""
    return [command for command in commands(path) if shlex.split(command)[0] not in NOT_RUN or command == "make demo"]


def test_the_first_page_has_the_commands_of_the_readme() -> None:
    """They are run as those of the README."""
    assert to_run(ROOT / "docs" / "install.md") == to_run(ROOT / "README.md")


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [p for p in DOCUMENTS if to_run(p) and p.name not in ("postgresql.md", "install.md")],
    ids=name_of,
)
def test_the_commands_run(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("statsmodels", reason="the demo's table is in statsmodels")
    printed = run_commands(path, tmp_path, {**CLONE, "DIPRIV_LEDGER": ""})
    if path.name == "tutorial.md":
        assert len(commands(path)) == 9
        assert "ε spent 1.5, 0.5 of 2 left; δ spent " in printed


@pytest.mark.slow
def test_the_commands_run_with_postgresql(tmp_path: Path) -> None:
    pytest.importorskip("statsmodels", reason="the demo's table is in statsmodels")
    from tests.unit.postgres import NoServerError, server

    page = ROOT / "docs" / "howto" / "postgresql.md"
    try:
        with server() as started:
            printed = run_commands(page, tmp_path, {**CLONE, "DIPRIV_LEDGER": started.new_database()})
    except NoServerError as reason:
        pytest.skip(str(reason))
    assert "ε spent 1, 1 of 2 left" in printed


@pytest.mark.slow
def test_the_r_code_runs(tmp_path: Path) -> None:
    rscript = shutil.which("Rscript")
    if rscript is None:
        pytest.skip("there is no R here")
    if subprocess.run([rscript, "-e", "library(reticulate)"], capture_output=True, check=False).returncode:
        pytest.skip("R has no reticulate here")
    script = tmp_path / "page.R"
    script.write_text("\n".join(blocks(ROOT / "docs" / "howto" / "r.md", "r")), encoding="utf-8")
    environment = {**CLONE, "DIPRIV_PYTHON": sys.executable}
    done = subprocess.run([rscript, script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "mean of age: " in done.stdout


def test_blocks_are_of_languages_that_are_run_or_only_shown() -> None:
    found = {
        (name_of(path), language)
        for path in DOCUMENTS
        for language in re.findall(r"^```(\S*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        if language not in ("", "sh", "python", "toml", "text", "console", "{toctree}", "{eval-rst}")
    }
    assert {language for _, language in found} <= {"py", "r"}
    assert {name for name, language in found if language == "py"} <= {
        f"docs/gallery/{name}.md" for name in ("survey", "bank", "salaries", "ratings", "panel")
    }


def test_what_pip_make_and_docker_are_asked_for_is_there() -> None:
    extras = project()["optional-dependencies"]
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for path in DOCUMENTS:
        for command in commands(path):
            program, *words = shlex.split(command)
            if program == "make":
                assert words[0] in targets, command
            assert program != "docker" or words[0] != "build" or (ROOT / "Dockerfile").exists()
        text = path.read_text(encoding="utf-8")
        for asked in re.findall(r"dipriv\[([a-z,]+)\]", text):
            assert set(asked.split(",")) <= extras.keys(), (path, asked)
        for target in re.findall(r"`make ([a-z-]+)", text):
            assert target in targets, (path, target)


def test_the_table_of_extras_is_complete() -> None:
    text = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    rows = "".join(re.findall(r"^\| (`.*?) \|", text, re.MULTILINE))
    assert set(re.findall(r"`(\w+)`", rows)) == project()["optional-dependencies"].keys() - {"dev", "docs", "package"}


def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found
