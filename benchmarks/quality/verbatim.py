"""The verbatim attack on the bank table: does a release show its unique people more often than people it never saw?

The people are split in random halves A and B, and A is released from a private reference fitted on A. People whose row
occurs once in the whole table are unique. If the release copied people, A's unique rows would be found in it more often
than B's, which are as rare; by chance alone they are with a share that differs by less than a derived bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from research import bank

import dipriv
from benchmarks.quality import page
from benchmarks.quality.bank import load, matrix
from benchmarks.quality.contest import ONE_ROW, Setting, ours, say
from benchmarks.quality.measures import excess_bound

SEEDS, ALARM, HOLDOUT = 5, 1e-4, 0.25
Mask = npt.NDArray[np.bool_]


def run(setting: Setting) -> dict[str, Any]:
    """Shares by seed: all rows; halves; and the paper's hold-out, where the attack must succeed."""
    frame = load()
    people = bank.as_text(matrix(frame))
    values, counts = np.unique(people, return_counts=True)
    unique: Mask = np.isin(people, values[counts == 1])
    every, halves, control = [], [], []
    for seed in range(setting.runs(SEEDS)):
        whole = ours(frame, setting)(seed)
        every.append(float(np.isin(people[unique], bank.as_text(matrix(whole))).mean()))
        a = np.random.default_rng(seed).permutation(len(frame)) < len(frame) // 2
        halves.append(compare(people, unique, a, ours(frame[a].reset_index(drop=True), setting)(seed)))
        held = dipriv.privatize(frame, 1.0, reference="holdout", holdout=HOLDOUT, kernel="laplace", seed=seed)
        control.append(compare(people, unique, ~np.asarray(held.secrets.released), held.data))
        say(f"verbatim: seed {seed}: all {every[-1]:.4f}, halves {halves[-1]}, hold-out {control[-1]}")
    return {
        "rows": len(frame),
        "unique": int(unique.sum()),
        "alarm": ALARM,
        "share of unique people found": every,
        "halves": halves,
        "hold-out": control,
        "hold-out share": HOLDOUT,
    }


def compare(people: Any, unique: Mask, seen: Mask, released: pd.DataFrame) -> dict[str, float]:
    """Shares of the unique people found in the release, among those the reference saw and those it did not."""
    there = np.isin(people, bank.as_text(matrix(released)))
    mine, others = there[unique & seen], there[unique & ~seen]
    return {
        "seen": float(mine.mean()),
        "unseen": float(others.mean()),
        "bound": excess_bound(len(mine), len(others), int(mine.sum() + others.sum()), ALARM),
    }


def caught(runs: list[dict[str, float]]) -> int:
    """In how many runs the seen people stand out."""
    return sum(run["seen"] - run["unseen"] > run["bound"] for run in runs)


def goals(result: dict[str, Any]) -> list[page.Goal]:
    """Targets beside what was measured."""
    halves, control = result["halves"], result["hold-out"]
    none, every = (page.met(good) for good in (caught(halves) == 0, caught(control) == len(control)))
    return [
        page.Goal("runs that show their people", f"{caught(halves)} of {len(halves)}", f"none ({none})"),
        page.Goal("control: the paper's hold-out", f"{caught(control)} of {len(control)}", f"all ({every})"),
    ]


def render(result: dict[str, Any]) -> str:
    """The section."""
    every, halves, control = (result[key] for key in ("share of unique people found", "halves", "hold-out"))
    head = ["reference", "its people found", "others found", "largest excess", "bound", "runs beyond", "must be"]
    lines = [_line("private, fitted on half A", halves, "none"), _line("the paper's hold-out", control, "all")]
    return f"""## Verbatim: are people copied?

{result["rows"]:,} people, {result["unique"]:,} of them unique in the eleven columns of the bank table; {ONE_ROW}.
Of the unique people {100 * np.mean(every):.1f}% have their exact row in a release of all rows (mean of {len(every)}
seeds), for rows of common values come up by chance. So the question is whether a release shows people it was made from
more often than people it never saw. The table is split in random halves, one is released, and the unique people of both
are looked for; the bound is that of two binomial samples of one rate, exceeded by chance with probability
{result["alarm"]:g} in a run. The paper's hold-out of {result["hold-out share"]:.0%}, which copies its rows, is the
control that must be caught.

{page.table(head, lines)}
"""


def _line(label: str, runs: list[dict[str, float]], must: str) -> list[str]:
    worst = max(runs, key=lambda run: run["seen"] - run["unseen"] - run["bound"])
    shares = [f"{100 * np.mean([run[key] for run in runs]):.2f}%" for key in ("seen", "unseen")]
    excess, bound = 100 * (worst["seen"] - worst["unseen"]), 100 * worst["bound"]
    return [label, *shares, f"{excess:+.2f}%", f"{bound:.2f}%", f"{caught(runs)} of {len(runs)}", must]
