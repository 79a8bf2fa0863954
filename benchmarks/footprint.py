"""What `pip install dipriv` brings: the size of each installed package, and the time of `import dipriv`.

    python -m benchmarks.footprint                    # this tree; writes docs/footprint.json and docs/footprint.md
    python -m benchmarks.footprint --before REVISION  # and an earlier revision beside it

Each wheel is installed into an environment of its own, without extras; this tree's with everything in `all`, too. Times
are seconds of the processor, which other programs on the machine disturb least.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import venv
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.measure import machine, say
from research import pages
from research.files import whole_file

ROOT = Path(__file__).parents[1]
BASE = {"numpy", "scipy", "pyarrow", "numba", "llvmlite"}
"""The packages that any such library needs: numbers, tables, compiled loops."""
TOOLS = {"pip", "setuptools"}
ROUNDS = 7

SIZES = """
import json, importlib.metadata as metadata
sizes = {}
for found in metadata.distributions():
    files = [found.locate_file(file) for file in found.files or []]
    sizes[found.metadata["Name"].lower()] = sum(f.stat().st_size for f in files if f.suffix != ".pyc" and f.exists())
print(json.dumps(sizes))
"""
IMPORT = """
import time
start = time.process_time()
import dipriv
first = time.process_time()
dipriv.privatize
print(first - start, time.process_time() - start)
"""


def measured(wheel: Path, extra: str = "") -> dict[str, Any]:
    """Sizes in MB and seconds, in a fresh environment."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        _run(python, "-m", "pip", "install", "--quiet", f"{wheel}{extra}")
        found = json.loads(_run(python, "-c", SIZES))
        megabytes = {name: round(size / 1e6, 2) for name, size in found.items() if name not in TOOLS}
        times = [[float(word) for word in _run(python, "-c", IMPORT).split()] for _ in range(ROUNDS + 1)][1:]
        return {
            "megabytes": dict(sorted(megabytes.items(), key=lambda item: -item[1])),
            "beyond the base": round(sum(size for name, size in megabytes.items() if name not in BASE), 1),
            "in all": round(sum(megabytes.values()), 1),
            "import dipriv, processor s": round(min(first for first, _ in times), 3),
            "dipriv.privatize, processor s": round(min(second for _, second in times), 3),
        }


def built(tree: Path, folder: Path) -> Path:
    """The wheel of a source tree."""
    _run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, tree)
    (wheel,) = folder.glob("*.whl")
    return wheel


def checked_out(revision: str, folder: Path) -> Path:
    """The files of a revision."""
    archive = folder / "tree.tar"
    _run("git", "-C", ROOT, "archive", "--output", archive, revision)
    (tree := folder / "tree").mkdir()
    _run("tar", "-xf", archive, "-C", tree)
    return tree


def version(wheel: Path) -> str:
    """Return what the name of a wheel says.

    >>> version(Path("dipriv-0.2.0-py3-none-any.whl"))
    '0.2.0'
    """
    found = re.match(r"dipriv-([^-]+)-", wheel.name)
    if found is None:
        raise SystemExit(f"{wheel.name} is not a wheel of dipriv")
    return found[1]


def main() -> None:
    """Measure, and write the record and its page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.footprint", description=__doc__)
    parser.add_argument("--before", help="an earlier revision to measure, too")
    asked = parser.parse_args()
    runs = []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        trees = [] if asked.before is None else [("before", checked_out(asked.before, folder))]
        for label, tree in [*trees, ("now", ROOT)]:
            (wheels := folder / label).mkdir()
            wheel = built(tree, wheels)
            for extra in ("", "[all]") if label == "now" else ("",):
                say(f"{label}: {wheel.name}{extra}")
                runs.append({"label": label, "version": version(wheel), "extra": extra} | measured(wheel, extra))
    record = {"date": f"{date.today()}", "machine": machine(), "python": sys.version.split()[0], "runs": runs}
    with whole_file(pages.DOCS / "footprint.json") as file:
        file.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    say(str(pages.write("footprint")))


def _run(*command: object) -> str:
    words = [str(word) for word in command]
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, cwd=tempfile.gettempdir()).stdout


if __name__ == "__main__":
    main()
