"""Wheel and sdist hold what they should, and the wheel works in an environment that has only its dependencies."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel")]

ROOT = Path(__file__).parents[2]
UNREACHABLE = ("No matching distribution", "Could not find a version", "Failed to establish a new connection")
"""What pip says where it has no network and no local index."""

OPTIONAL = ("pandas", "polars", "matplotlib", "sklearn", "sqlalchemy", "pyspark", "statsmodels", "typer", "rich")
LEAN = f"""
import importlib.util, dipriv
print([name for name in {OPTIONAL} if importlib.util.find_spec(name)])
"""
SIZES = """
import importlib.metadata as metadata
sizes = {}
for found in metadata.distributions():
    files = [found.locate_file(file) for file in found.files or []]
    sizes[found.metadata["Name"].lower()] = sum(f.stat().st_size for f in files if f.suffix != ".pyc" and f.exists())
base = ("numpy", "scipy", "pyarrow", "numba", "llvmlite", "pip", "setuptools")
print(sum(size for name, size in sizes.items() if name not in base) / 1e6)
"""
RELEASE = """
import pyarrow as pa, dipriv
released = dipriv.privatize(pa.table({"age": [20, 30, 40] * 100, "sex": ["f", "m", "m"] * 100}), 1.0)
print(type(released.data).__module__, released.data.shape, released.guarantee.epsilon)
"""


def run(*command: object, folder: Path, code: int | None = 0) -> subprocess.CompletedProcess[str]:
    """Run a command that sees neither the sources nor the user's ledger."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=environment | {"DIPRIV_LEDGER": str(folder / "ledger.db"), "COLUMNS": "160"},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert code is None or done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done


def pip(python: Path, *arguments: object, folder: Path) -> None:
    """Run pip, or skip the test where packages cannot be fetched."""
    try:
        run(python, "-m", "pip", "--disable-pip-version-check", *arguments, folder=folder)
    except AssertionError as error:
        if any(words in str(error) for words in UNREACHABLE):
            pytest.skip("pip finds no packages here: no network and no local index")
        raise


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip(Path(sys.executable), "wheel", "--no-deps", "--wheel-dir", folder, ROOT, folder=folder)
    (built,) = folder.glob("dipriv-*.whl")
    return built


@pytest.fixture(scope="module")
def binaries(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with dipriv and its dependencies, without extras."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    pip(folder / "bin" / "python", "install", wheel, folder=folder)
    return folder / "bin"


def test_the_wheel_holds_the_package_alone(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"dipriv"}
    folders = {part for name in names for part in name.split("/")[:-1]}
    assert not folders & {"research", "experiments", "benchmarks", "examples", "tests", "__pycache__"}
    assert {"dipriv/__init__.pyi", "dipriv/py.typed"} <= set(names)
    assert any(name.startswith("dipriv/report/") and name.endswith(".html") for name in names)


@pytest.fixture(scope="module")
def command(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the command line."""
    folder = tmp_path_factory.mktemp("command")
    venv.create(folder, with_pip=True)
    pip(folder / "bin" / "python", "install", f"{wheel}[cli]", folder=folder)
    return folder / "bin"


def test_the_sdist_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    pytest.importorskip("build", reason="the sdist needs pip install build")
    pip_found = run(sys.executable, "-m", "build", "--sdist", "--outdir", tmp_path, ROOT, folder=tmp_path, code=None)
    if pip_found.returncode and any(words in pip_found.stdout + pip_found.stderr for words in UNREACHABLE):
        pytest.skip("pip finds no packages here: no network and no local index")
    assert pip_found.returncode == 0, pip_found.stderr
    (sdist,) = tmp_path.glob("dipriv-*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "Makefile", "LICENSE", "tests/conftest.py", "docs/index.md", "requirements.lock"} <= names
    assert not any(part in name.split("/") for name in names for part in (".venv", ".git", "build", "__pycache__"))
    pip(Path(sys.executable), "wheel", "--no-deps", "--wheel-dir", tmp_path, sdist, folder=tmp_path)
    (again,) = tmp_path.glob("*.whl")
    assert set(zipfile.ZipFile(again).namelist()) == set(zipfile.ZipFile(wheel).namelist())


def test_a_release_needs_less_than_200_mb_beyond_its_base(binaries: Path, tmp_path: Path) -> None:
    assert 1 < float(run(binaries / "python", "-c", SIZES, folder=tmp_path).stdout) < 200


def test_the_readmes_five_lines_run(binaries: Path, tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (lines,) = re.findall(r"```python\n(.*?)```", readme, flags=re.DOTALL)
    done = run(binaries / "python", "-c", lines, folder=tmp_path)
    assert "Protects:   every row." in done.stdout
    assert done.stderr == ""


def test_missing_extras_are_named(binaries: Path, tmp_path: Path) -> None:
    done = run(binaries / "dipriv", "--version", folder=tmp_path, code=1)
    assert done.stderr == (
        'Error: the command line needs the package typer, which is not installed.\nRun pip install "dipriv[cli]".\n'
    )
    for name, extra in (("Ledger", "ledger"), ("DIP", "sklearn")):
        done = run(binaries / "python", "-c", f"import dipriv; dipriv.{name}", folder=tmp_path, code=1)
        assert "MissingDependencyError: " in done.stderr
        assert done.stderr.endswith(f'Run pip install "dipriv[{extra}]".\n')


def test_the_command_runs(command: Path, tmp_path: Path) -> None:
    binaries = command
    assert run(binaries / "dipriv", "--version", folder=tmp_path).stdout.startswith("dipriv 0.")
    (tmp_path / "people.csv").write_text("age,sex\n" + "20,f\n30,m\n40,m\n" * 100, encoding="utf-8")
    run(binaries / "dipriv", "ledger", "create", folder=tmp_path)
    run(binaries / "dipriv", "privatize", "people.csv", "-o", "out.csv", "--epsilon", "1", folder=tmp_path)
    assert len((tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()) == 301
    assert (tmp_path / "out.csv.dipriv.json").exists()


def test_the_library_runs(binaries: Path, tmp_path: Path) -> None:
    assert run(binaries / "python", "-c", LEAN, folder=tmp_path).stdout == "[]\n"
    assert run(binaries / "python", "-c", RELEASE, folder=tmp_path).stdout == "pyarrow.lib (300, 2) 1.0\n"


def test_a_missing_extra_is_named_by_the_command(command: Path, tmp_path: Path) -> None:
    binaries = command
    (tmp_path / "people.csv").write_text("age\n" + "20\n30\n" * 50, encoding="utf-8")
    (tmp_path / "other.csv").write_text("age\n" + "30\n20\n" * 50, encoding="utf-8")
    done = run(binaries / "dipriv", "compare", "people.csv", "other.csv", "-o", "r.html", folder=tmp_path, code=1)
    assert 'pip install "dipriv[report]"' in done.stderr
    assert "Traceback" not in done.stderr
