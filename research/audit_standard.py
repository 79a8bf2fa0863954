"""Standard columns and rows, on which the bounds of both kernels are measured side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from scipy import stats

from dipriv._random.bits import Seed, source
from dipriv._tables import frames as tables
from dipriv.auditing.exact import exact_epsilon
from dipriv.auditing.mechanism import audit_rows, plan_audit
from dipriv.auditing.results import Bound
from dipriv.kernels import KernelSpec, Laplace, Optimal
from dipriv.references import Empirical, FittableSpec, Known, Mixture, Parametric, Private
from dipriv.release import fitting
from dipriv.release.fitting import FittedMechanism
from dipriv.release.privatize import privatize
from dipriv.schema import Schema

Make: TypeAlias = Callable[[KernelSpec, float], FittedMechanism]
"""A mechanism whose rows have this kernel and all of this ε."""
KERNELS: Mapping[str, KernelSpec] = {"laplace": Laplace(), "optimal": Optimal()}
NOISES = {"LaplaceKernel": "Laplace", "ColumnsKernel": "columns", "JointKernel": "XOR", "CapKernel": "cap"}
ROWS, SEED, LABELS = 4000, 1, "abcdefghijkl"


@dataclass(frozen=True)
class Measured:
    """One audit: a kernel, what it was applied to, its ε, the measured bound, and what the matrix says if there is one.

    `exact` is the ε of the mechanism's integers: what it truly spends, where it is finite. `noise` is what a
    kernel that chooses has chosen.
    """

    kernel: str
    kind: str
    epsilon: float
    bound: float
    exact: float | None
    draws: int
    confidence: float
    seconds: float
    event: str
    noise: str


def measure(
    made: Mapping[str, Make],
    epsilons: Sequence[float] = (0.5, 1.0, 2.0),
    *,
    kernels: Mapping[str, KernelSpec] = KERNELS,
    draws: int = 2_000_000,
    confidence: float = 0.95,
    seed: Seed = None,
) -> Iterator[Measured]:
    """Bounds for each kernel, mechanism and ε, one after the other; the seconds are those of the audit alone."""
    for kind, make in made.items():
        for name, kernel in kernels.items():
            for epsilon in epsilons:
                fitted = make(kernel, epsilon)
                exact = exact_epsilon(fitted, epsilon)
                start = time.perf_counter()
                bound = audit_rows(fitted, epsilon, draws=draws, confidence=confidence, seed=seed)
                seconds = time.perf_counter() - start
                whole = exact[-1].epsilon if exact and (len(exact) == 1 or exact[-1].what.startswith("a row")) else None
                yield Measured(
                    *(name, kind, epsilon, bound.lower, whole, bound.draws, confidence, seconds, bound.event),
                    noise=NOISES[type(fitted.kernel).__name__],
                )


def repeated(
    fitted: FittedMechanism,
    epsilon: float,
    *,
    times: int = 200,
    pilots: int = 200,
    draws: int = 200_000,
    confidence: float = 0.95,
    seed: Seed = None,
) -> tuple[Bound, ...]:
    """Bounds of many audits, which share so many pilots: given its pilot, each is independent of the others."""
    bits = source(seed)
    plans = [plan_audit(fitted, draws, bits.child(f"pilot {number}")) for number in range(min(pilots, times))]
    return tuple(
        plans[number % len(plans)].measure(epsilon, draws, confidence, bits.child(f"measure {number}"))
        for number in range(times)
    )


def most_by_chance(times: int, confidence: float, alarm: float = 1e-3) -> int:
    """How many of so many bounds may exceed the truth at this confidence, but for a chance of `alarm` at most."""
    return int(stats.binom.ppf(1 - alarm, times, 1 - confidence))


def one_column() -> dict[str, Make]:
    """Columns of every kind."""
    rng = np.random.default_rng(SEED)
    labels = pa.table({"x": rng.choice(list(LABELS), ROWS)})
    nulls = pa.table({"x": pa.array(rng.normal(size=ROWS), mask=rng.random(ROWS) < 0.1)})
    reals, counts = pa.table({"x": [0.0]}), pa.table({"x": [0]})
    return {
        "continuous, uniform": _fit(Known(stats.uniform()), reals),
        "continuous, normal": _fit(Known(stats.norm()), reals),
        "two values, 10% ones": _fit(Known(stats.bernoulli(0.1)), counts),
        "counts, Poisson(3)": _fit(Known(stats.poisson(3)), counts),
        "mixed, 30% zeros": _fit(Known(Mixture({0.0: 0.3}, stats.expon())), reals),
        f"{len(LABELS)} categories": _fit(Empirical(), labels),
        "continuous, 10% nulls": _fit(Empirical(), nulls),
    }


def several_columns(width: int) -> dict[str, Make]:
    """Rows of correlated normal columns, by every reference."""
    rng = np.random.default_rng(SEED)
    v = rng.multivariate_normal(np.zeros(width), 0.5 * np.eye(width) + 0.5, ROWS)
    table = pa.table({f"x{column}": v[:, column] for column in range(width)})
    independent = Known({name: stats.norm() for name in table.column_names})
    return {
        f"{width} columns, independent": _fit(independent, table),
        f"{width} columns, normal copula": _fit(Parametric("multivariate_normal"), table),
        f"{width} columns, private network": lambda kernel, epsilon: _private(kernel, epsilon, table),
        f"{width} columns, boxes of a hold-out": _fit(Empirical(), table),
    }


def _fit(recipe: FittableSpec, table: pa.Table) -> Make:
    def make(kernel: KernelSpec, epsilon: float) -> FittedMechanism:
        rows = tables.read(table)
        facts = [rows.column(name) for name in rows.names]
        read = rows if recipe.source == "rows" else None
        return fitting.fit(recipe, kernel, epsilon, facts, Schema({}), read, source(SEED))

    return make


def _private(kernel: KernelSpec, epsilon: float, table: pa.Table) -> FittedMechanism:
    release = privatize(table, 2 * epsilon, reference=Private(reference_share=0.5), kernel=kernel, seed=SEED)
    if release.secrets.mechanism is None:
        raise AssertionError("a release by a private reference has one")
    return release.secrets.mechanism
