"""Table sim2_para_est and the figure of error against sample size: parameters of discrete laws, all known.

The estimand is the parameter of the law: the mean (Bernoulli, Poisson), a fifth of it (Binomial), 1/(1 + mean)
(Geometric, counting failures). LRM and OPM put Laplace noise on the range: 1, 5, or the sample's own maximum, which
is read from private data. EXM is drawn from the sample's frequencies, as the paper's numbers show; "EXM (true ε)" is
the exponential mechanism with ε over all its draws. "DIP optimal" has the kernel that keeps most of each row: it
keeps the law, too, so that its error has the same distribution as DIP's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from dipriv._base.arrays import FloatArray
from dipriv.references import Known
from dipriv.release.privatize import privatize
from research.baselines import BoundedMoment, Exponential, FrequencyResampling, Laplace
from research.experiments.plots import canvas, save
from research.protocol import Experiment, Row, Values, child, for_all, printed

EPSILONS = (1.0, 2.0, 3.0, 4.0)
OPTIMAL = "DIP optimal"
SIZES = (100, 200, 500, 1000, 1500, 2000)
PAPER = """
Ber(0.1) | NP | 7.60 (5.67) | 7.47 (5.76) | 7.10 (5.59) | 7.93 (5.87)
Ber(0.1) | DIP | 7.46 (5.69) | 7.99 (6.04) | 7.46 (5.67) | 7.50 (5.66)
Ber(0.1) | LRM | 36.01 (28.78) | 19.56 (14.56) | 14.08 (11.01) | 11.94 (9.19)
Ber(0.1) | OPM | 35.44 (27.24) | 20.19 (15.04) | 14.32 (11.03) | 12.39 (9.33)
Ber(0.1) | EXM | 11.34 (8.16) | 10.43 (7.71) | 10.20 (7.76) | 11.05 (8.23)
Bin(5,0.5) | NP | 5.58 (4.20) | 5.68 (4.31) | 5.55 (4.20) | 5.56 (4.20)
Bin(5,0.5) | DIP | 5.61 (4.29) | 5.89 (4.41) | 5.67 (4.27) | 5.86 (4.30)
Bin(5,0.5) | LRM | 35.48 (28.46) | 19.00 (14.06) | 13.20 (10.08) | 10.70 (8.16)
Bin(5,0.5) | OPM | 36.19 (27.11) | 18.91 (14.10) | 13.14 (10.03) | 10.51 (8.18)
Bin(5,0.5) | EXM | 8.39 (6.26) | 7.83 (6.08) | 7.58 (5.93) | 7.90 (5.89)
Pois(3) | NP | 43.23 (33.17) | 44.18 (33.14) | 43.05 (31.81) | 43.06 (32.45)
Pois(3) | DIP | 43.99 (33.09) | 45.03 (34.32) | 44.36 (33.93) | 44.86 (33.23)
Pois(3) | LRM | 354.48 (289.6) | 187.38 (141.77) | 127.02 (98.89) | 100.60 (77.04)
Pois(3) | OPM | 352.31 (267.82) | 176.57 (133.99) | 123.39 (94.36) | 94.32 (75.18)
Pois(3) | EXM | 64.63 (47.94) | 61.95 (46.27) | 60.70 (45.12) | 60.86 (45.77)
Geom(0.2) | NP | 4.56 (3.36) | 4.58 (3.32) | 4.54 (3.44) | 4.44 (3.42)
Geom(0.2) | DIP | 4.39 (3.43) | 4.35 (3.33) | 4.51 (3.32) | 4.47 (3.41)
Geom(0.2) | LRM | 75.72 (300.3) | 25.52 (26.19) | 16.38 (13.81) | 13.03 (10.32)
Geom(0.2) | OPM | 86.69 (695.74) | 25.16 (23.07) | 17.25 (14.75) | 12.66 (10.69)
Geom(0.2) | EXM | 6.20 (4.79) | 6.47 (4.80) | 6.36 (4.75) | 6.30 (4.84)
"""


@dataclass(frozen=True)
class Case:
    """A law, the largest value it can take if that is known, and its parameter as a function of the mean."""

    law: Any
    top: float | None
    parameter: Callable[[float], float]

    def error(self, values: FloatArray) -> float:
        """In thousandths."""
        return 1e3 * abs(self.parameter(float(values.mean())) - self.parameter(float(self.law.mean())))


def _same(mean: float) -> float:
    return mean


CASES = {
    "Ber(0.1)": Case(stats.bernoulli(0.1), 1.0, _same),
    "Bin(5,0.5)": Case(stats.binom(5, 0.5), 5.0, lambda mean: mean / 5),
    "Pois(3)": Case(stats.poisson(3), None, _same),
    "Geom(0.2)": Case(stats.geom(0.2, loc=-1), None, lambda mean: 1 / (1 + mean)),
}


def errors(case: Case, rows: int, epsilons: Sequence[float], seed: np.random.SeedSequence) -> Values:
    """The error of every method on one sample."""
    z = case.law.rvs(rows, random_state=np.random.default_rng(seed)).astype(np.int64)
    top = float(max(z.max(), 1)) if case.top is None else case.top
    levels = range(int(top) + 1)
    measured = for_all(epsilons, "NP", case.error(z))
    for epsilon in epsilons:

        def rng(method: str, epsilon: float = epsilon) -> np.random.SeedSequence:
            return child(seed, method, epsilon)

        of_rows, law = case.top is None, Known(case.law)
        released = {
            "DIP": privatize(z[:, None], epsilon, reference=law, kernel="laplace", seed=rng("DIP")).data[:, 0],
            OPTIMAL: privatize(z[:, None], epsilon, reference=law, kernel="optimal", seed=rng(OPTIMAL)).data[:, 0],
            "LRM": Laplace(epsilon, 0.0, top, read_from_rows=of_rows).privatize(z, rng("LRM")),
            "OPM": BoundedMoment(epsilon, top, nonnegative=True, read_from_rows=of_rows).privatize(z, rng("OPM")),
            "EXM": FrequencyResampling(levels).privatize(z, rng("EXM")),
            "EXM (true ε)": Exponential(epsilon, levels).privatize(z, rng("EXM (true ε)")),
        }
        measured |= {(method, epsilon): case.error(values) for method, values in released.items()}
    return measured


def _means(setting: str, seed: np.random.SeedSequence) -> Values:
    return errors(CASES[setting], 1000, EPSILONS, seed)


def _sizes(setting: str, seed: np.random.SeedSequence) -> Values:
    name, _, size = setting.rpartition(", n = ")
    return errors(CASES[name], int(size), (1.0,), seed)


def _draw(rows: Sequence[Row], file: Path) -> None:
    """Mean error against sample size, one panel a law (the paper's Figure fig:ParaEst)."""
    figure, axes = canvas(1, 4, width=12, height=3.2)
    styles = {"NP": "k--", "DIP": "o-", OPTIMAL: "v:", "LRM": "s-", "OPM": "^-", "EXM": "d-"}
    for axis, name in zip(axes.flat, CASES, strict=True):
        for method, style in styles.items():
            points = [row for row in rows if row.method == method and row.setting.startswith(f"{name},")]
            sizes = [int(row.setting.rpartition(" ")[2]) for row in points]
            axis.plot(sizes, [row.mean for row in points], style, label=method, markersize=4)
        axis.set(title=name, xlabel="sample size", yscale="log")
    axes.flat[0].set_ylabel("mean error, thousandths (ε = 1)")
    axes.flat[0].legend(fontsize=8)
    save(figure, file)


_RIVALS = frozenset({"LRM", "OPM", "EXM"})
MEANS = Experiment(
    name="discrete-means",
    title="Parameters of discrete laws, n = 1000, law known",
    source="Table sim2_para_est",
    measure="mean absolute error of the parameter, in thousandths",
    settings=tuple(CASES),
    epsilons=EPSILONS,
    reps=1000,
    run=_means,
    paper=printed(PAPER, EPSILONS),
    order_only=frozenset({"OPM", "EXM"}),
    rivals=_RIVALS,
    insensitive=True,
)
SAMPLE_SIZE = Experiment(
    name="sample-size",
    title="The same against the sample size, ε = 1",
    source="Figure fig:ParaEst",
    measure="mean absolute error of the parameter, in thousandths",
    settings=tuple(f"{name}, n = {size}" for name in CASES for size in SIZES),
    epsilons=(1.0,),
    reps=500,
    run=_sizes,
    rivals=_RIVALS,
    draw=_draw,
)
