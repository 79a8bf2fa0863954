"""Benchmarks of several parts: those asked for are measured one after another, each on record as soon as it is done."""

from __future__ import annotations

import argparse
import json
import os
import time
import traceback
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, TypeVar

from benchmarks.measure import machine, say
from research import pages
from research.files import whole_file
from research.pages import DOCS

S = TypeVar("S")
Found = dict[str, Any]
Write = Callable[[Mapping[str, Found], Path], None]
"""Puts what parts found on record in a folder and writes the page; the page alone if nothing is found."""


@dataclass(frozen=True)
class Asked(Generic[S]):
    """The names of parts, how they are measured, and the folder to write to."""

    parts: Collection[str]
    setting: S
    out: Path


def asked(
    benchmark: str,
    parts: Collection[str],
    setting: Callable[..., S],
    trials: Mapping[str, str],
    left_out: Collection[str] = (),
) -> Asked[S]:
    """Parse the command line: names of parts, numbers for trials with their help, and a folder.

    `benchmark` is the name of its package, or empty for that of all. The parts left out are measured only if they are
    named. A setting is made from the numbers that are given.
    """
    about = "Measure the parts asked for, one after another, each put on record as soon as it is done; write the page."
    program = ".".join(["benchmarks", *filter(None, [benchmark])])
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=about)
    every = f"all but {', '.join(left_out)}" if left_out else "all"
    names = ", ".join(parts)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{names}; {every} if none is named, or: page")
    for name, text in trials.items():
        parser.add_argument(f"--{name}", type=int, help=f"{text}, for trials")
    parser.add_argument("--out", type=Path, default=DOCS, help="folder to write to (default: docs)")
    given = parser.parse_args()
    if unknown := [name for name in given.parts if name not in {*parts, "page"}]:
        parser.error(f"no part {unknown[0]}; there are {names} and page")
    made = setting(**{name: value for name in trials if (value := getattr(given, name)) is not None})
    if given.out == DOCS and made != setting():
        parser.error("a trial does not belong on record: name another folder with --out")
    named = [name for name in given.parts if name != "page"]
    return Asked(named if given.parts else [name for name in parts if name not in left_out], made, given.out)


def measure(parts: Mapping[str, Callable[[S], Found]], asked: Asked[S], write: Write) -> None:
    """Measure and write; a part that fails leaves everything as it was, and is named at the end."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # the modules that programs import are compiled once, as users' are
    asked.out.mkdir(parents=True, exist_ok=True)
    if not asked.parts:
        write({}, asked.out)
    failed = []
    for name in asked.parts:
        start = time.perf_counter()
        try:
            found = parts[name](asked.setting)
        except Exception:
            say(f"{name}: {traceback.format_exc()}")
            failed.append(name)
            continue
        minutes = (time.perf_counter() - start) / 60
        dated = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "minutes": minutes, "machine": machine()}
        write({name: dated | found}, asked.out)
        say(f"{name}: on record after {minutes:.1f} minutes")
    if failed:
        raise SystemExit(f"not measured: {', '.join(failed)}")


def write_folder(page: str, found: Mapping[str, Found], out: Path) -> None:
    """A file for each part, in the folder of the page."""
    (out / page).mkdir(parents=True, exist_ok=True)
    for name, one in found.items():
        write_record(out / page / f"{name}.json", one)
    pages.write(page, out)


def write_record(file: Path, record: Mapping[str, Any]) -> None:
    """A file that appears whole or not at all."""
    with whole_file(file) as written:
        written.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
