"""Dependencies are stated once: what conda, the image and continuous integration install follows pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import dipriv

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]


def needed(*extras: str) -> dict[str, Requirement]:
    """{package: requirement} of dipriv with these extras, and those that they contain."""
    lines = list(PROJECT["dependencies"])
    open_extras, seen = list(extras), set()
    while open_extras:
        extra = open_extras.pop()
        if extra not in seen:
            seen.add(extra)
            lines += EXTRAS[extra]
            open_extras += [name for line in EXTRAS[extra] for name in Requirement(line).extras if "dipriv[" in line]
    found = [Requirement(line) for line in lines]
    return {canonicalize_name(one.name): one for one in found if one.name != "dipriv"}


def locked(name: str) -> dict[str, str]:
    """{package: version} of a lock file."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return {
        canonicalize_name(one): version for one, version in re.findall(r"^([\w.-]+)(?:\[\w+\])?==(\S+)", text, re.M)
    }


def test_a_release_needs_no_more_than_this() -> None:
    assert needed().keys() == {
        *("numpy", "scipy", "numba", "pyarrow", "narwhals", "lazy-loader", "cryptography", "tomli-w")
    }


def test_all_extras_are_in_all_but_those_for_developers_and_spark() -> None:
    inside = set(Requirement(EXTRAS["all"][0]).extras)
    assert inside == EXTRAS.keys() - {"all", "dev", "docs", "package", "spark"}


def test_conda_installs_the_command_line_with_the_same_versions() -> None:
    text = (ROOT / "conda" / "meta.yaml").read_text(encoding="utf-8")
    run = text.partition("  run:\n")[2].partition("\n\n")[0]
    lines = [line.strip("- ").replace(" ", "") for line in run.splitlines()]
    found = {canonicalize_name(one.name): one.specifier for one in map(Requirement, lines)}
    assert found.pop(canonicalize_name("python")) == Requirement(f"python{PROJECT['requires-python']}").specifier
    assert found == {name: one.specifier for name, one in needed("cli").items()}
    assert f'version = "{dipriv.__version__}"' in text
    assert f"- dipriv = {PROJECT['scripts']['dipriv']}" in text


@pytest.mark.parametrize(
    ("name", "extras"), [("requirements.lock", ("dev",)), ("requirements-image.lock", ("cli", "report"))]
)
def test_locks_have_a_version_that_is_allowed_and_hashes(name: str, extras: tuple[str, ...]) -> None:
    versions = locked(name)
    for package, requirement in needed(*extras).items():
        if requirement.marker is None or requirement.marker.evaluate({"python_version": "3.11"}):
            assert requirement.specifier.contains(versions[package]), package
    text = (ROOT / name).read_text(encoding="utf-8")
    pinned = re.split(r"^(?=[\w.-]+(?:\[\w+\])?==)", text, flags=re.MULTILINE)[1:]
    assert len(pinned) == len(versions)
    assert all("--hash=sha256:" in one for one in pinned)
    assert "://" not in text


def test_the_image_is_pinned_and_runs_without_rights() -> None:
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", "").splitlines()
    bases = [line.split()[1] for line in lines if line.startswith("FROM ")]
    assert bases
    assert all(re.fullmatch(r"python:3\.\d+\.\d+-slim-[a-z]+", base) for base in bases)
    copied = [line.split()[1:-1] for line in lines if line.startswith("COPY ") and "--from=" not in line]
    allowed = (ROOT / ".dockerignore").read_text(encoding="utf-8")
    for source in (one for sources in copied for one in sources):
        assert (ROOT / source).exists(), source
        assert f"!{source}\n" in allowed, source
    (user,) = (line.split()[1] for line in lines if line.startswith("USER "))
    assert int(user) > 0
    assert lines.index(f"USER {user}") > max(n for n, line in enumerate(lines) if line.startswith("RUN "))
    assert 'ENTRYPOINT ["dipriv"]' in lines
    assert "dipriv" in PROJECT["scripts"]
    installs = [line for line in lines if "pip install" in line]
    assert all("--require-hashes" in line or "--no-deps" in line for line in installs)


def test_the_changelog_has_this_version_and_fragments_have_a_kind() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["towncrier"]
    assert text.count(settings["start_string"]) == 1
    assert f"\n## {dipriv.__version__} (" in text.partition(settings["start_string"])[2]
    (released,) = re.findall(rf"^## {re.escape(dipriv.__version__)} \((.+)\)$", text, re.MULTILINE)
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {dipriv.__version__}\ndate-released: {released}\n" in citation
    kinds = "|".join(kind["directory"] for kind in settings["type"])
    for fragment in (ROOT / settings["directory"]).iterdir():
        assert fragment.name == "README.md" or re.fullmatch(rf"\+[\w-]+\.({kinds})\.md", fragment.name), fragment.name
