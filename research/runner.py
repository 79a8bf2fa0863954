"""Runs an experiment: repetitions in parallel, a journal to go on from after an interruption, results whole or not.

Every repetition has a seed of its own, made of the run's seed, the experiment, the setting and its number. So results
do not depend on the number of jobs, nor on what was done before an interruption.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from dipriv import __version__
from dipriv.errors import InputError
from research import catalogue
from research.compare import comparison, difference, verdict
from research.data import data_file
from research.files import check_folder, whole_file
from research.pages import fill
from research.protocol import Experiment, Row, Values, seed_of

Tick = Callable[[int, int], None]
FEW = 20
"""Up to so many repetitions are on record one by one."""


@dataclass(frozen=True)
class Results:
    """All cells of an experiment, and how they were made."""

    experiment: Experiment
    rows: list[Row]
    seed: int
    reps: int
    seconds: float
    date: str
    jobs: int = 1

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.experiment.name,
            "title": self.experiment.title,
            "source": self.experiment.source,
            "measure": self.experiment.measure,
            "figure": self.experiment.draw is not None,
            "seed": self.seed,
            "reps": self.reps,
            "jobs": self.jobs,
            "seconds": round(self.seconds),
            "date": self.date,
            "version": __version__,
            "comparison": comparison(self.experiment, self.rows),
            "rows": [self._row(row) for row in self.rows],
        }

    def _row(self, row: Row) -> dict[str, Any]:
        found: dict[str, Any] = {
            "setting": row.setting,
            "method": row.method,
            "epsilon": row.epsilon,
            "measured_mean": _plain(row.mean),
            "measured_sd": _plain(row.sd),
            "reps": row.reps,
            "paper_mean": None,
            "paper_sd": None,
        }
        if row.paper is not None:
            found |= {"paper_mean": _plain(row.paper.mean), "paper_sd": row.paper.sd, "paper_digits": row.paper.digits}
            found |= {"difference": difference(row, self.experiment.paper_reps)}
        if (trial := self.experiment.trial.get((row.setting, row.method, row.epsilon))) is not None:
            found |= {"trial": trial}
        if told := verdict(row, self.experiment):
            found |= {"verdict": told}
        return found | ({"values": [_plain(value) for value in row.values]} if row.values else {})


@dataclass
class Journal:
    """One line for each finished repetition; the first line says what they belong to."""

    file: Path
    head: dict[str, Any]
    done: dict[tuple[str, int], Values] = field(default_factory=dict)
    seconds: float = 0.0

    @classmethod
    def open(cls, file: Path, head: dict[str, Any]) -> Journal:
        """The journal of an interrupted run with the same head, else an empty one."""
        journal = cls(file, head)
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        if not lines or _parse(lines[0]) != head:
            file.write_text(json.dumps(head) + "\n", encoding="utf-8")
            return journal
        for line in lines[1:]:
            if (found := _parse(line)) is not None:
                values = {(method, epsilon): float(value) for method, epsilon, value in found["values"]}
                journal.done[found["setting"], found["rep"]] = values
                journal.seconds += found["seconds"]
        return journal

    def add(self, setting: str, rep: int, values: Values, seconds: float) -> None:
        cells = [[method, epsilon, _plain(value)] for (method, epsilon), value in values.items()]
        line = json.dumps({"setting": setting, "rep": rep, "seconds": round(seconds, 3), "values": cells})
        with self.file.open("a", encoding="utf-8") as stream:
            stream.write("\n" + line + "\n" if not _ends_a_line(self.file) else line + "\n")
        self.done[setting, rep] = values
        self.seconds += seconds


def reproduce(
    name: str,
    *,
    out: Path,
    reps: int | None = None,
    seed: int = 2023,
    jobs: int | None = None,
    tick: Tick = lambda done, total: None,
) -> list[Path]:
    """Run an experiment or draw a figure; returns the files that were written."""
    if reps is not None and reps < 1:
        raise InputError(f"reps={reps} is below 1.", "Give at least one repetition.")
    if jobs is not None and jobs < 1:
        raise InputError(f"jobs={jobs} is below 1.", "Give at least one job.")
    what = catalogue.find(name)
    check_folder(out)
    if not isinstance(what, Experiment):
        with whole_file(out / f"{name}.svg") as part:
            what.draw(part)
        return [out / f"{name}.svg"]
    for path in what.needs:
        data_file(path)
    results, journal = run(what, out, reps or what.reps, seed, jobs, tick)
    files = write(results, out)
    journal.file.unlink(missing_ok=True)
    return files


def write(results: Results, out: Path) -> list[Path]:
    """NAME.svg where the experiment has a figure, NAME.md, NAME.json; each appears whole or not at all."""
    name, draw, record = results.experiment.name, results.experiment.draw, results.to_dict()
    files = [out / f"{name}.json", out / f"{name}.md"]
    if draw is not None:
        files.append(out / f"{name}.svg")
        with whole_file(files[-1]) as part:
            draw(results.rows, part)
    with whole_file(files[1]) as part:
        part.write_text(fill("experiment", record), encoding="utf-8")
    with whole_file(files[0]) as part:
        part.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return files


def run(
    experiment: Experiment, out: Path, reps: int, seed: int, jobs: int | None, tick: Tick
) -> tuple[Results, Journal]:
    """All repetitions that the journal lacks, then the summary of all."""
    jobs = jobs or os.cpu_count() or 1
    head = {"name": experiment.name, "seed": seed, "version": __version__}
    journal = Journal.open(out / f"{experiment.name}.seed-{seed}.journal", head)
    wanted = [(setting, rep) for rep in range(reps) for setting in experiment.settings]
    lacking = [work for work in wanted if work not in journal.done]
    before = len(wanted) - len(lacking)
    tick(before, len(wanted))
    for number, (setting, rep, values, seconds) in enumerate(_finished(experiment, lacking, seed, jobs), before + 1):
        journal.add(setting, rep, values, seconds)
        tick(number, len(wanted))
    rows = list(summarize(experiment, {work: journal.done[work] for work in wanted}))
    return Results(experiment, rows, seed, reps, journal.seconds, f"{datetime.now(UTC):%Y-%m-%d}", jobs), journal


def summarize(experiment: Experiment, done: dict[tuple[str, int], Values]) -> Iterator[Row]:
    """Mean and standard deviation of each cell, settings in order."""
    for setting in experiment.settings:
        runs = [values for (which, _), values in sorted(done.items(), key=lambda item: item[0][1]) if which == setting]
        for method, epsilon in runs[0]:
            x = np.array([values[method, epsilon] for values in runs])
            finite = bool(np.isfinite(x).all())
            mean, sd = (float(x.mean()), float(x.std(ddof=len(x) > 1))) if finite else (math.inf, math.nan)
            paper = experiment.paper.get((setting, method, epsilon))
            yield Row(setting, method, epsilon, mean, sd, len(x), paper, tuple(x.tolist()) if len(x) <= FEW else ())


def once(name: str, setting: str, rep: int, seed: int) -> tuple[str, int, Values, float]:
    """One repetition, on one thread: parallel work is done by jobs."""
    from threadpoolctl import threadpool_limits

    experiment = catalogue.experiment(name)
    start = time.perf_counter()
    with threadpool_limits(1):
        values = experiment.run(setting, seed_of(seed, name, setting, rep))
    return setting, rep, dict(values), time.perf_counter() - start


def _finished(
    experiment: Experiment, work: list[tuple[str, int]], seed: int, jobs: int
) -> Iterator[tuple[str, int, Values, float]]:
    if jobs == 1 or len(work) <= 1:
        for setting, rep in work:
            yield once(experiment.name, setting, rep, seed)
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(jobs, len(work)), mp_context=context, initializer=_one_thread)
    try:
        futures: list[Future[tuple[str, int, Values, float]]] = [
            pool.submit(once, experiment.name, setting, rep, seed) for setting, rep in work
        ]
        for future in as_completed(futures):
            yield future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _one_thread() -> None:
    os.environ["DIPRIV_THREADS"] = "1"


def _parse(line: str) -> Any:
    """A line of the journal; None for one that an interruption cut short."""
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None


def _ends_a_line(file: Path) -> bool:
    with file.open("rb") as stream:
        stream.seek(-1, os.SEEK_END)
        return stream.read(1) == b"\n"


def _plain(value: float) -> float | str | None:
    """JSON has no infinity and no not-a-number."""
    return value if math.isfinite(value) else "inf" if value > 0 else None
