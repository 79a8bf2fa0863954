"""Methods take turns, run by run, on the same machine in the same process: what each makes, and how long it takes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

import dipriv
from benchmarks.measure import say

EPSILON, DELTA = 1.0, 1e-9
PURE = "ε = 1, replace one row"
APPROXIMATE = "ε = 1, δ = 1e-9, replace one row"

Release = Callable[[int], Any]
Score = Callable[[Any], dict[str, float]]


@dataclass(frozen=True)
class Setting:
    """How a part is run: with how many runs of a method at most."""

    at_most: int | None = None

    def runs(self, asked: int) -> int:
        return asked if self.at_most is None else min(asked, self.at_most)


@dataclass(frozen=True)
class Method:
    """Something that makes a table from a seed, and how often; no further run starts after `budget` seconds."""

    label: str
    promise: str
    make: Release
    runs: int
    budget: float = math.inf
    least: int = 1


def ours(frame: Any, epsilon: float = EPSILON, **options: Any) -> Release:
    """The release of a frame by dipriv for each seed: the defaults, but for these options."""
    return lambda seed: dipriv.privatize(frame, epsilon, seed=seed, **options).data


def contest(part: str, methods: Sequence[Method], score: Score, setting: Setting) -> dict[str, Any]:
    """Each method's promise, seconds on the clock and of the processor, and scores by run.

    A method that fails is out, and its error's name is kept.
    """
    methods = [replace(method, runs=setting.runs(method.runs)) for method in methods]
    found: dict[str, Any] = {method.label: {"promise": method.promise, "seconds": []} for method in methods}
    for seed in range(max(method.runs for method in methods)):
        for method in methods:
            result = found[method.label]
            late = sum(result["seconds"]) > method.budget and seed >= method.least
            if seed >= method.runs or late or "failed" in result:
                continue
            start, used = time.perf_counter(), time.process_time()
            try:
                made = method.make(seed)
            except Exception as error:
                result["failed"] = type(error).__name__
                say(f"{part}: {method.label}, run {seed + 1}: {error!r}")
                continue
            result["seconds"].append(time.perf_counter() - start)
            result.setdefault("processor seconds", []).append(time.process_time() - used)
            for name, value in score(made).items():
                result.setdefault(name, []).append(value)
            say(f"{part}: {method.label}, run {seed + 1} of {method.runs}: {result['seconds'][-1]:.2f} s")
    return found


def warm_up() -> None:
    """Compile the loops of dipriv once, outside of all clocks."""
    small = pd.DataFrame({"x": [float(number) for number in range(400)], "y": [number % 3 for number in range(400)]})
    mixed = small.assign(
        text=small["y"].map(list("abc").__getitem__), yes=small["y"] == 1, missing=small["x"].where(small["y"] > 0)
    )
    for frame in (small, small[["x"]], small[["y"]], mixed):
        ours(frame)(0)
