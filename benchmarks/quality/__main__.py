"""`make quality`: the private reference beside other methods; writes docs/private-reference.md, record and figures."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from benchmarks.parts import Found, asked, measure, write_record
from benchmarks.quality import edges, figures, movielens, rivals, rows, salary, settings, shares, verbatim
from benchmarks.quality.contest import Setting, warm_up
from benchmarks.quality.tables import TABLES
from benchmarks.quality.verdict import verdict
from dipriv.errors import PrivacyWarning
from research import pages

PEERS = "peers"
PARTS: dict[str, Callable[[Setting], Found]] = {
    **{name: partial(settings.run, table) for name, table in TABLES.items()},
    "rows": rows.run,
    "salary": salary.run,
    "movielens": movielens.run,
    "verbatim": verbatim.run,
    "edges": edges.run,
    "shares": shares.run,
    PEERS: rivals.run,
}
"""The peers are measured only if they are named: what they make does not depend on dipriv."""
PACKAGES = ("dipriv", "numpy", "pandas", "statsmodels")


def _setting(runs: int | None = None) -> Setting:
    return Setting(at_most=runs)


def main() -> None:
    """Parse, measure, write."""
    found = asked("quality", PARTS, _setting, {"runs": "the most runs of each method"}, left_out=[PEERS])
    warnings.simplefilter("ignore", PrivacyWarning)  # every release here has a seed
    warm_up()
    measure(PARTS, found, write)


def write(found: Mapping[str, Found], out: Path) -> None:
    """One record of all parts, with a verdict on them; the page and the figures are made from it."""
    file = out / "private-reference.json"
    record = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    versions = {"versions": {"Python": platform.python_version(), **_versions()}}
    record |= {name: versions | one for name, one in found.items()}
    record = {name: record[name] for name in PARTS if name in record}
    record["verdict"] = verdict(record)
    write_record(file, record)
    pages.write("private-reference", out)
    figures.draw(record, out / "images")


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


if __name__ == "__main__":
    main()
