"""The optimal kernels beside the paper's: time for a value, a row of ten columns, and to build them.

Noise is drawn on one core, so its time is that of the processor: other work on the machine does not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from benchmarks.measure import Contestant, side_by_side
from dipriv._base.columns import ColumnValues
from dipriv._base.coordinates import UniformCoordinate, equal_parts
from dipriv._random.bits import Draws, source
from dipriv.codecs.levels import LevelsCodec
from dipriv.kernels import Kernel, KernelSpec, Laplace, Optimal, OptimalCap, OptimalJoint
from dipriv.kernels._per_column.kernel import ColumnsKernel
from dipriv.mechanism import Levels

ROWS, ROUNDS = 2_000_000, 4
RECIPES: dict[str, KernelSpec] = {"optimal": Optimal(), "laplace (the paper's)": Laplace()}
TOGETHER: dict[str, KernelSpec] = {"cap": OptimalCap(), "XOR": OptimalJoint()}
TOGETHER_CELLS, TOGETHER_COLUMNS, TOGETHER_EPSILONS = 1_000_000, (2, 10, 30), (1.0, 2.0, 4.0, 6.0, 8.0)


def run() -> dict[str, Any]:
    """Nanoseconds, and their ratios to the paper's kernel in the same run; seconds to build."""
    return {
        "rows": ROWS,
        "one discrete column": _ratios(_discrete()),
        "one continuous column": _ratios(_columns(1)),
        "ten columns, a row": _ratios(_columns(10)),
        "all columns together": [
            _together(count, epsilon) for count in TOGETHER_COLUMNS for epsilon in TOGETHER_EPSILONS
        ],
        "build": {
            "linear program, 64 equal cells": _slowest(_program),
            "joint, 100 columns": _slowest(_joint),
            "choice, 100 columns": _slowest(lambda epsilon: Optimal().build(epsilon, _names(100))),
        },
    }


def _ratios(seconds: dict[str, float]) -> dict[str, Any]:
    paper = seconds["laplace (the paper's)"]
    return {
        "nanoseconds": {name: 1e9 * taken / ROWS for name, taken in seconds.items()},
        "ratio": seconds["optimal"] / paper,
    }


def _discrete() -> dict[str, float]:
    """Ten levels by their transition matrices."""
    pi = np.array([16, 31, 16, 66, 51, 196, 127, 266, 88, 144], dtype=np.float64)
    levels = np.arange(1, 11) / 2
    margin = UniformCoordinate("rating", pi / pi.sum(), levels)
    values = np.random.default_rng(1).choice(levels, ROWS, p=pi / pi.sum())
    bits, codec = source(None), LevelsCodec(levels)

    def release(recipe: KernelSpec) -> Callable[[], object]:
        mechanism = Levels(codec, recipe.build(1.0, ["rating"], [margin]).on_levels(pi / pi.sum()))
        return lambda: mechanism.privatize([ColumnValues(values)], bits)

    releases = {name: release(recipe) for name, recipe in RECIPES.items()}
    return side_by_side(releases, rounds=ROUNDS, clock=time.process_time)


def _columns(count: int) -> dict[str, float]:
    u = np.random.default_rng(1).random((ROWS // count, count))
    draws = Draws(source(None), 0, len(u))

    def perturb(kernel: Kernel) -> Callable[[], object]:
        return lambda: [kernel.perturb(u, draws) for _ in range(count)]  # ROWS rows in all

    built = {name: recipe.build(1.0, _names(count)) for name, recipe in RECIPES.items()}
    contestants = {name: perturb(kernel) for name, kernel in built.items()}
    return side_by_side(contestants, rounds=ROUNDS, clock=time.process_time)


def _together(count: int, epsilon: float) -> dict[str, Any]:
    """The kernels of all columns: nanoseconds a cell, what they keep of a rank, and which one is chosen."""
    u = np.random.default_rng(1).random((TOGETHER_CELLS // count, count))
    draws = Draws(source(None), 0, len(u))
    built = {name: recipe.build(epsilon, _names(count)) for name, recipe in TOGETHER.items()}
    contestants: dict[str, Contestant] = {name: partial(kernel.perturb, u, draws) for name, kernel in built.items()}
    seconds = side_by_side(contestants, rounds=ROUNDS, clock=time.process_time)
    ranks, chosen = equal_parts(256), Optimal().build(epsilon, _names(count))
    return {
        "columns": count,
        "epsilon": epsilon,
        "nanoseconds a cell": {name: 1e9 * taken / u.size for name, taken in seconds.items()},
        "correlation": {
            name: ranks.fidelity(kernel.joint_probabilities(0, ranks.cuts)) for name, kernel in built.items()
        },
        "chosen": next((name for name, kernel in built.items() if type(kernel) is type(chosen)), "by column"),
    }


def _slowest(build: Callable[[float], object]) -> float:
    """Seconds, for the ε out of 0.5, 1, ... 8 that takes longest."""
    taken = []
    for epsilon in (0.5, 1.0, 2.0, 4.0, 8.0):
        start = time.process_time()
        build(epsilon)
        taken.append(time.process_time() - start)
    return max(taken)


def _program(epsilon: float) -> ColumnsKernel:
    return ColumnsKernel.best(epsilon, [equal_parts(64)], [Fraction(1)])


def _joint(epsilon: float) -> Kernel:
    return OptimalJoint().build(epsilon, _names(100))


def _names(count: int) -> list[str]:
    return [f"c{number}" for number in range(count)]
