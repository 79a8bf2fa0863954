"""Table sim2:linear: regression coefficients estimated from a release (the paper's linear design).

The fit has an intercept, and the L2 error includes it (true value 0). DIP is Algorithm 1 with the columns in random
order. LRM and OPM privatize each column of X with ε/(p+1), then the residuals of y on the private X (intercept
included) with the same share; bounds are read from the private rows. DIP's split is the same at every ε, so that ε
alone makes the difference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dipriv._base.arrays import FloatArray
from dipriv.references import Empirical, Order
from dipriv.references._models.boxes import Edge
from dipriv.release.privatize import privatize
from dipriv.sources.holdout import Split
from research.baselines import Ball, Laplace
from research.baselines.naive import sample_range
from research.protocol import Experiment, Values, child, for_all, printed, split_of

EPSILONS = (1.0, 2.0, 3.0, 4.0)
HOLDOUTS = (0.15, 0.25, 0.35)
OTHER_LRM = "LRM (residuals without intercept)"
PAPER = """
N = 200, p = 6 | NP | 0.31 (0.16) | 0.31 (0.15) | 0.31 (0.16) | 0.31 (0.15)
N = 200, p = 6 | DIP (hold 15%) | 2.19 (1.15) | 2.16 (1.14) | 2.14 (1.13) | 2.14 (1.14)
N = 200, p = 6 | DIP (hold 25%) | 1.40 (0.77) | 1.40 (0.75) | 1.42 (0.79) | 1.40 (0.76)
N = 200, p = 6 | DIP (hold 35%) | 1.13 (0.59) | 1.13 (0.61) | 1.11 (0.62) | 1.12 (0.59)
N = 200, p = 6 | LRM | 62.80 (43.28) | 33.53 (21.43) | 24.53 (14.86) | 21.44 (11.91)
N = 200, p = 6 | OPM | 757.16 (558.17) | 378.68 (287.99) | 241.05 (190.85) | 184.72 (136.91)
N = 2000, p = 6 | NP | 0.09 (0.04) | 0.09 (0.04) | 0.09 (0.04) | 0.09 (0.04)
N = 2000, p = 6 | DIP (hold 15%) | 0.31 (0.15) | 0.32 (0.15) | 0.31 (0.15) | 0.32 (0.15)
N = 2000, p = 6 | DIP (hold 25%) | 0.24 (0.12) | 0.24 (0.12) | 0.24 (0.12) | 0.24 (0.11)
N = 2000, p = 6 | DIP (hold 35%) | 0.21 (0.10) | 0.21 (0.10) | 0.21 (0.10) | 0.20 (0.10)
N = 2000, p = 6 | LRM | 19.55 (13.66) | 13.67 (7.94) | 12.30 (6.00) | 11.83 (4.91)
N = 2000, p = 6 | OPM | 650.15 (489.16) | 315.75 (240.77) | 219.46 (167.75) | 165.44 (125.28)
N = 200, p = 30 | NP | 0.77 (0.30) | 0.74 (0.30) | 0.76 (0.32) | 0.77 (0.33)
N = 200, p = 30 | DIP (hold 15%) | 21.07 (10.64) | 20.91 (10.68) | 21.03 (10.84) | 21.05 (10.94)
N = 200, p = 30 | DIP (hold 25%) | 9.16 (4.41) | 9.17 (4.47) | 9.28 (4.45) | 9.21 (4.46)
N = 200, p = 30 | DIP (hold 35%) | 6.15 (2.84) | 6.24 (2.95) | 6.23 (2.95) | 6.21 (3.00)
N = 200, p = 30 | LRM | 489.43 (370.81) | 250.98 (182.24) | 179.74 (117.89) | 138.68 (90.79)
N = 200, p = 30 | OPM | 6044.5 (4611.4) | 2951.1 (2277.7) | 2021.9 (1492.6) | 1542.4 (1118.0)
N = 2000, p = 30 | NP | 0.21 (0.09) | 0.21 (0.08) | 0.21 (0.08) | 0.21 (0.08)
N = 2000, p = 30 | DIP (hold 15%) | 1.39 (0.59) | 1.39 (0.59) | 1.40 (0.60) | 1.39 (0.60)
N = 2000, p = 30 | DIP (hold 25%) | 0.88 (0.38) | 0.88 (0.39) | 0.89 (0.38) | 0.88 (0.39)
N = 2000, p = 30 | DIP (hold 35%) | 0.73 (0.32) | 0.71 (0.32) | 0.72 (0.31) | 0.72 (0.33)
N = 2000, p = 30 | LRM | 209.25 (147.50) | 116.93 (84.48) | 86.97 (57.60) | 74.07 (45.71)
N = 2000, p = 30 | OPM | 7822.7 (6055.5) | 4046.6 (3073.2) | 2595.7 (1944.0) | 2052.9 (1522.2)
"""


@dataclass(frozen=True)
class Setting:
    """One cell of DIP's."""

    rows: int
    predictors: int
    holdout: float
    epsilon: float
    order: Order = None
    edge: Edge = "unit-free"

    def errors(self, runs: int, seed: int) -> FloatArray:
        """The L2 error of intercept and coefficients (true: 0 and ones) in each of `runs` runs."""
        return np.array([self._error(child) for child in np.random.SeedSequence(seed).spawn(runs)])

    def error(self, table: FloatArray, seed: np.random.SeedSequence, split: Split | None = None) -> float:
        """The same on one table, with a split of its own or a given one."""
        reference = Empirical(order=self.order, edge=self.edge)
        release = privatize(
            table,
            self.epsilon,
            reference=reference,
            kernel="laplace",
            holdout=self.holdout if split is None else None,
            split=split,
            seed=seed,
        )
        return l2_error(np.asarray(release.data, dtype=np.float64))

    def _error(self, seed: np.random.SeedSequence) -> float:
        return self.error(draw(self.rows, self.predictors, np.random.default_rng(seed)), seed.spawn(1)[0])


def draw(rows: int, predictors: int, rng: np.random.Generator) -> FloatArray:
    """The design: a third each N(0, 10²), Poisson(5), Bernoulli(0.5); y is their sum plus N(0, 1), last column."""
    third = predictors // 3
    x = np.column_stack(
        [
            rng.normal(0, 10, (rows, third)),
            rng.poisson(5, (rows, third)),
            rng.integers(0, 2, (rows, predictors - 2 * third)),
        ]
    )
    return np.column_stack([x, x.sum(axis=1) + rng.normal(size=rows)])


def l2_error(table: FloatArray) -> float:
    """The distance of intercept and coefficients from 0 and ones."""
    estimate = _least_squares(table[:, :-1], table[:, -1])
    return float(np.linalg.norm(estimate - np.append(0.0, np.ones(len(estimate) - 1))))


def residual_release(
    table: FloatArray,
    mechanism: type[Laplace | Ball],
    epsilon: float,
    seed: np.random.SeedSequence,
    *,
    intercept: bool = True,
) -> FloatArray:
    """X column by column, then the residuals of y on the private X, each with ε/(p+1)."""
    share = epsilon / table.shape[1]

    def privatized(z: FloatArray, number: int) -> FloatArray:
        low, high = sample_range(z)
        rng = child(seed, number)
        if mechanism is Laplace:
            return Laplace(share, low, high, read_from_rows=True).privatize(z, rng)
        return Ball(share, float(np.sqrt(len(z)) * max(-low, high)), read_from_rows=True).privatize(z, rng)

    x = np.column_stack([privatized(z, number) for number, z in enumerate(table[:, :-1].T)])
    estimate = _least_squares(x, table[:, -1], intercept=intercept)
    fitted = estimate[0] + x @ estimate[1:]
    return np.column_stack([x, fitted + privatized(table[:, -1] - fitted, table.shape[1])])


def _least_squares(x: FloatArray, y: FloatArray, *, intercept: bool = True) -> FloatArray:
    """Intercept and coefficients; the intercept is 0 where none is asked for."""
    first = np.full(len(x), float(intercept))
    return np.asarray(np.linalg.lstsq(np.column_stack([first, x]), y, rcond=None)[0])


def _run(setting: str, seed: np.random.SeedSequence) -> Values:
    rows, predictors = (int(part.rpartition(" ")[2]) for part in setting.split(","))
    table = draw(rows, predictors, np.random.default_rng(seed))
    measured = for_all(EPSILONS, "NP", l2_error(table))
    for epsilon in EPSILONS:
        for share in HOLDOUTS:
            cell = Setting(rows, predictors, share, epsilon, "random", "paper")
            error = cell.error(table, child(seed, "DIP", share, epsilon), split_of(seed, share))
            measured[f"DIP (hold {share:.0%})", epsilon] = error
        for method, mechanism in (("LRM", Laplace), ("OPM", Ball)):
            released = residual_release(table, mechanism, epsilon, child(seed, method, epsilon))
            measured[method, epsilon] = l2_error(released)
        other = residual_release(table, Laplace, epsilon, child(seed, "LRM", epsilon), intercept=False)
        measured[OTHER_LRM, epsilon] = l2_error(other)
    return measured


LINEAR = Experiment(
    name="linear-regression",
    title="Linear regression",
    source="Table sim2:linear",
    measure="L2 error of intercept and coefficients",
    settings=("N = 200, p = 6", "N = 2000, p = 6", "N = 200, p = 30", "N = 2000, p = 30"),
    epsilons=EPSILONS,
    reps=300,
    run=_run,
    paper=printed(PAPER, EPSILONS),
    order_only=frozenset({"OPM"}),
    rivals=frozenset({"LRM", "OPM"}),
    insensitive=True,
)
