"""The wheel holds the package and nothing else, and works in an environment that has only its dependencies."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel")]

ROOT = Path(__file__).parents[2]
UNREACHABLE = ("No matching distribution", "Could not find a version", "Failed to establish a new connection")
"""What pip says where it has no network and no local index."""

LEAN = """
import sys, dipriv
heavy = {"pandas", "polars", "matplotlib", "sklearn", "sqlalchemy", "pyspark", "statsmodels"}
print(sorted(heavy & set(sys.modules)))
"""
RELEASE = """
import importlib.util, pyarrow as pa, dipriv
assert importlib.util.find_spec("pandas") is None, "control: the environment has extras"
released = dipriv.privatize(pa.table({"age": [20, 30, 40] * 100, "sex": ["f", "m", "m"] * 100}), 1.0)
print(type(released.data).__module__, released.data.shape, released.guarantee.epsilon)
"""


def run(*command: object, folder: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
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
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
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


def test_the_command_runs(binaries: Path, tmp_path: Path) -> None:
    assert run(binaries / "dipriv", "--version", folder=tmp_path).stdout.startswith("dipriv 0.")
    (tmp_path / "people.csv").write_text("age,sex\n" + "20,f\n30,m\n40,m\n" * 100, encoding="utf-8")
    run(binaries / "dipriv", "ledger", "create", folder=tmp_path)
    run(binaries / "dipriv", "privatize", "people.csv", "-o", "out.csv", "--epsilon", "1", folder=tmp_path)
    assert len((tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()) == 301
    assert (tmp_path / "out.csv.dipriv.json").exists()


def test_the_library_runs(binaries: Path, tmp_path: Path) -> None:
    assert run(binaries / "python", "-c", LEAN, folder=tmp_path).stdout == "[]\n"
    assert run(binaries / "python", "-c", RELEASE, folder=tmp_path).stdout == "pyarrow.lib (300, 2) 1.0\n"


def test_a_missing_extra_is_named(binaries: Path, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("age\n" + "20\n30\n" * 50, encoding="utf-8")
    (tmp_path / "other.csv").write_text("age\n" + "30\n20\n" * 50, encoding="utf-8")
    done = run(binaries / "dipriv", "compare", "people.csv", "other.csv", "-o", "r.html", folder=tmp_path, code=1)
    assert 'pip install "dipriv[report]"' in done.stderr
    assert "Traceback" not in done.stderr
