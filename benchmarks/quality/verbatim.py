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

import dipriv
from benchmarks.measure import say
from benchmarks.quality.contest import Setting, ours
from benchmarks.quality.measures import excess_bound
from benchmarks.quality.tables import TABLES, bank_matrix
from research.experiments import bank

SEEDS, ALARM, HOLDOUT = 5, 1e-4, 0.25
Mask = npt.NDArray[np.bool_]


def run(setting: Setting) -> dict[str, Any]:
    """Shares by seed: all rows; halves; and the paper's hold-out, where the attack must succeed."""
    frame = TABLES["bank"].frame
    people = bank.as_text(bank_matrix(frame))
    values, counts = np.unique(people, return_counts=True)
    unique: Mask = np.isin(people, values[counts == 1])
    every, halves, control = [], [], []
    for seed in range(setting.runs(SEEDS)):
        whole = ours(frame)(seed)
        every.append(float(np.isin(people[unique], bank.as_text(bank_matrix(whole))).mean()))
        a = np.random.default_rng(seed).permutation(len(frame)) < len(frame) // 2
        halves.append(compare(people, unique, a, ours(frame[a].reset_index(drop=True))(seed)))
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
    there = np.isin(people, bank.as_text(bank_matrix(released)))
    mine, others = there[unique & seen], there[unique & ~seen]
    excess = float(mine.mean() - others.mean())
    bound = excess_bound(len(mine), len(others), int(mine.sum() + others.sum()), ALARM)
    return {
        "seen": float(mine.mean()),
        "unseen": float(others.mean()),
        "excess": excess,
        "bound": bound,
        "beyond": excess > bound,
    }
