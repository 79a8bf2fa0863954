"""Coverage of intervals: how often they hold the truth, over releases of tables that are drawn from a known population.

The real table is the population. Each private table is drawn from it with replacement, released, and asked for
intervals of many statistics, whose true values are those of the real table. Beside it: the ordinary interval on the
released rows, as if they were data. Each release is a file in build/usefulness as soon as it is done, so that a run
that was stopped goes on where it was; a file of another method, which its name shows, is not read.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import beta, binom

import dipriv
from benchmarks.measure import cores, say
from benchmarks.quality.tables import TABLES
from dipriv.errors import PrivacyWarning
from dipriv.statistics import Cells, GroupMean, Mean, Quantile, Share, Slope, Statistic
from examples.demo import QUESTIONNAIRE, load
from research.files import whole_file
from research.pages import ROOT

RELEASES, REPLICATES, EPSILON, LEVEL = 100, 30, 1.0, 0.95
FIRST_SEED = 40_000
"""Seeds below it were used to choose the constants of the method, and for four runs that changed it."""
WANTED = (0.90, 0.99)
LEAST = 10
"""A statistic that fewer releases accept is counted with its kind only."""
LEVELS, GROUPS = 12, 3
"""Shares of at most 12 values of a column, means of 3 groups: the most frequent."""
DONE = ROOT / "build" / "usefulness" / "coverage"
METHOD = ("release/bootstrap.py", "release/intervals.py", "release/unseen.py", "statistics.py", "references")
"""The parts of dipriv that decide what an interval is."""


@dataclass(frozen=True)
class Population:
    """A real table, and how it is released."""

    title: str
    read: Callable[[], pd.DataFrame]
    options: dict[str, Any]


def populations() -> dict[str, Population]:
    """The demo's survey with its questionnaire, the paper's bank columns, and Adult, with declared ranges."""
    found = {"survey": Population("Survey of the demo", lambda: load().to_pandas(), {"schema": QUESTIONNAIRE})}
    for name in ("bank", "adult"):
        table = TABLES[name]
        options = {"schema": table.ranges, "types": table.types}
        found[name] = Population(table.title, lambda table=table: table.frame, options)  # type: ignore[misc]
    return found


def statistics(frame: pd.DataFrame) -> list[Statistic]:
    """All means, shares and quantiles of the table, and group means and slopes of all pairs of its columns."""
    names = [str(name) for name in frame.columns]
    numbers = [name for name in names if pd.api.types.is_numeric_dtype(frame[name])]
    many = [name for name in numbers if frame[name].nunique() > 2]
    found: list[Statistic] = [Mean(name) for name in numbers]
    for name in names:
        if frame[name].nunique() <= 2 * LEVELS:
            found += [Share(name, value) for value in frame[name].value_counts().index[:LEVELS].tolist()]
    found += [Quantile(name, level) for name in many for level in (0.25, 0.5, 0.75, 0.9)]
    for one, two in permutations(names, 2):
        if one in numbers and frame[two].nunique() <= LEVELS:
            found += [GroupMean(one, two, value) for value in frame[two].value_counts().index[:GROUPS].tolist()]
        if one in many and two in numbers:
            found.append(Slope(one, two))
    return found


def run(releases: int | None = None) -> dict[str, Any]:
    """All populations."""
    count = releases or RELEASES
    _release_all([(name, FIRST_SEED + number) for name in populations() for number in range(count)])
    tables = {name: _summary(name, population, count) for name, population in populations().items()}
    return {
        "seeds": [f"{FIRST_SEED} to {FIRST_SEED + count - 1}"],
        "setting": {"replicates": REPLICATES, "epsilon": EPSILON, "level": LEVEL},
        "wanted": WANTED,
        "tables": tables,
        "example": _example(),
    }


def _summary(name: str, population: Population, releases: int) -> dict[str, Any]:
    """Coverage by kind of statistic, and the statistics whose coverage is not as wanted."""
    frame, asked = _asked(name)
    truth = _numbers(asked, Cells.of(frame, frame.columns))
    runs = [json.loads(_file(name, FIRST_SEED + number).read_bytes()) for number in range(releases)]
    kinds: dict[str, dict[str, Any]] = {}
    odd: list[dict[str, Any]] = []
    by_chance = 0.0
    for place, (statistic, true) in enumerate(zip(asked, truth, strict=True)):
        rows = [run[place] for run in runs]
        given = [row for row in rows if row["low"] is not None]
        kind = kinds.setdefault(type(statistic).__name__, _zeros())
        kind["asked"] += len(rows)
        kind["refused"] += sum(row["low"] is None for row in rows)
        kind["given"] += len(given)
        hits = sum(row["low"] <= true <= row["high"] for row in given)
        kind["covered"] += hits
        kind["plain covered"] += sum(row["plain"][0] <= true <= row["plain"][1] for row in given)
        widths = [(row["high"] - row["low"]) / (row["plain"][1] - row["plain"][0]) for row in given if _wide(row)]
        kind["widths"] += widths
        if len(given) >= LEAST:
            kind["statistics"] += 1
            kind["least"] = min(kind["least"], hits / len(given))
            by_chance += float(binom.cdf(math.ceil(WANTED[0] * len(given)) - 1, len(given), LEVEL))
            if not WANTED[0] <= hits / len(given) <= WANTED[1]:
                odd.append(
                    {"name": str(statistic), "kind": type(statistic).__name__, "given": len(given)}
                    | _range(hits, len(given))
                )
    for kind in kinds.values():
        widths = kind.pop("widths")
        kind["width"] = float(np.median(widths)) if widths else None
    return {
        "title": population.title,
        "rows": len(frame),
        "releases": releases,
        "kinds": kinds,
        "below": sorted((one for one in odd if one["coverage"] < WANTED[0]), key=lambda one: one["coverage"]),
        "by_chance": by_chance,
        "above": {kind: sum(one["kind"] == kind and one["coverage"] > WANTED[1] for one in odd) for kind in kinds},
        "reasons": _reasons(runs),
    }


def _zeros() -> dict[str, Any]:
    counts = dict.fromkeys(("asked", "refused", "given", "covered", "plain covered", "statistics"), 0)
    return counts | {"least": 1.0, "widths": []}


def _wide(row: dict[str, Any]) -> bool:
    return bool(row["plain"][1] > row["plain"][0])


def _range(hits: int, count: int) -> dict[str, float]:
    """The coverage with its Clopper-Pearson interval."""
    low = float(beta.ppf(0.025, hits, count - hits + 1)) if hits else 0.0
    high = float(beta.ppf(0.975, hits + 1, count - hits)) if hits < count else 1.0
    return {"coverage": hits / count, "low": low, "high": high}


def _reasons(runs: list[list[dict[str, Any]]]) -> dict[str, int]:
    """Why intervals were refused, and how often."""
    found: dict[str, int] = {}
    for row in (row for run in runs for row in run if row["reason"] is not None):
        kind = next((known for known in ("not measured", "counted", "not a label") if known in row["reason"]), "other")
        found[kind] = found.get(kind, 0) + 1
    return found


def _release_all(wanted: list[tuple[str, int]]) -> None:
    """The releases that are not done yet, on all cores: each in a process of its own, which has one thread."""
    waiting = [one for one in wanted if not _file(*one).is_file()]
    DONE.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(cores(), get_context("spawn"), _alone) as pool:
        for _ in pool.map(_release, waiting):
            pass


def _alone() -> None:
    os.environ["DIPRIV_THREADS"] = "1"
    warnings.simplefilter("ignore", PrivacyWarning)  # every release here has a seed


@cache
def _asked(name: str) -> tuple[pd.DataFrame, list[Statistic]]:
    frame = populations()[name].read()
    return frame, statistics(frame)


@cache
def _method() -> str:
    """A digest of the code that decides what an interval is."""
    found, package = hashlib.sha256(), Path(dipriv.__file__).parent
    for part in METHOD:
        for file in sorted((package / part).rglob("*.py")) or [package / part]:
            found.update(file.read_bytes())
    return found.hexdigest()[:12]


def _file(name: str, seed: int) -> Path:
    return DONE / f"{name}-{_method()}-{REPLICATES}-{seed}.json"


def _release(one: tuple[str, int]) -> None:
    """One release and all of its intervals."""
    name, seed = one
    frame, asked = _asked(name)
    private = frame.sample(len(frame), replace=True, random_state=seed).reset_index(drop=True)
    release = dipriv.privatize(private, EPSILON, seed=seed, **populations()[name].options)
    intervals = release.intervals(asked, LEVEL, replicates=REPLICATES)
    cells = Cells.of(release.data, frame.columns)
    rows = [
        {
            "low": None if interval.reason is not None else interval.low,
            "high": None if interval.reason is not None else interval.high,
            "plain": _plain(statistic, cells),
            "reason": interval.reason,
        }
        for statistic, interval in zip(asked, intervals, strict=True)
    ]
    with whole_file(_file(name, seed)) as written:
        written.write_text(json.dumps(rows), encoding="utf-8")
    say(f"coverage: {name}, release {seed}")


def _numbers(asked: list[Statistic], cells: Cells) -> list[float]:
    return [float(statistic.values(cells)[0]) for statistic in asked]


def _plain(statistic: Statistic, cells: Cells) -> tuple[float, float]:
    """The ordinary interval, as if released rows were data."""
    z = 1.96
    if isinstance(statistic, Quantile):
        half = z * math.sqrt(statistic.level * (1 - statistic.level) / cells.n_rows)
        return statistic.at(cells, statistic.level - half), statistic.at(cells, statistic.level + half)
    middle = float(statistic.values(cells)[0])
    half = z * _ordinary_error(statistic, cells)
    return middle - half, middle + half


def _ordinary_error(statistic: Statistic, cells: Cells) -> float:
    if isinstance(statistic, Slope):
        x, y = cells.term(statistic.x), cells.term(statistic.y)
        slope = float(statistic.values(cells)[0])
        left = (y - y.mean()) - slope * (x - x.mean())
        return float(np.sqrt((left @ left) / max(1, len(x) - 2) / max(float(np.sum((x - x.mean()) ** 2)), 1e-300)))
    if isinstance(statistic, Share):
        sample = cells.has(statistic.column, statistic.value).astype(np.float64)
    elif isinstance(statistic, GroupMean):
        sample = cells.term(statistic.value)[cells.has(statistic.by, statistic.group)]
    else:
        sample = cells.numbers(statistic.columns[0])
    return float(np.std(sample) / math.sqrt(len(sample))) if len(sample) else math.nan


def _example() -> list[dict[str, str]]:
    """Figures for the guide: the survey, released once, with true values beside intervals."""
    frame = load().to_pandas()
    release = dipriv.privatize(frame, EPSILON, seed=0, schema=QUESTIONNAIRE)
    return list(_rows_of_example(release, frame))


def _rows_of_example(release: dipriv.Release[Any], frame: pd.DataFrame) -> Iterator[dict[str, str]]:
    asked: list[Statistic] = [
        Mean("age"),
        Share("religious", 4),
        Quantile("yrs_married", 0.5),
        GroupMean("children", "yrs_married", 9.0),
        Slope("children", "yrs_married"),
        Slope("affairs", "educ"),
    ]
    true, cells = Cells.of(frame, frame.columns), Cells.of(release.data, frame.columns)
    for statistic, interval in zip(asked, release.intervals(asked), strict=True):
        low, high = _plain(statistic, cells)
        yield {
            "statistic": str(statistic),
            "truth": f"{float(statistic.values(true)[0]):.4g}",
            "released": f"{interval.released:.4g}",
            "interval": f"no interval: {interval.reason}"
            if interval.reason
            else f"{interval.low:.4g} to {interval.high:.4g}",
            "plain": f"{low:.4g} to {high:.4g}",
        }
