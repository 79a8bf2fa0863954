"""Table sim1: how far the released values' distribution is from the true one (Kolmogorov-Smirnov), law known.

LRM's range is [0, 1] for the bounded laws, [0, max] and [-max|z|, max|z|] of the private sample for the others. OPM
sends the whole sample as one vector through the l2 ball mechanism, with radius sqrt(n) max|z| of the private sample.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from dipriv._base.arrays import FloatArray
from dipriv.references import Known
from dipriv.release.privatize import privatize
from research.baselines import Ball, Laplace
from research.baselines.naive import sample_range
from research.protocol import Experiment, Values, child, for_all, printed

ROWS = 1000
EPSILONS = (1.0, 2.0, 3.0, 4.0)
LAWS = {"Unif(0,1)": stats.uniform(), "Beta(2,5)": stats.beta(2, 5), "N(0,1)": stats.norm(), "Exp(1)": stats.expon()}
PAPER = """
Unif(0,1) | NP | 27.09 (8.40) | 28.01 (8.33) | 26.91 (8.14) | 27.13 (8.13)
Unif(0,1) | DIP | 27.03 (8.01) | 27.47 (8.15) | 27.39 (8.29) | 26.91 (7.85)
Unif(0,1) | LRM | 326.54 (11.40) | 224.93 (9.72) | 166.66 (9.49) | 129.55 (8.44)
Unif(0,1) | OPM | 510.39 (9.24) | 508.39 (9.80) | 507.61 (9.33) | 506.56 (9.15)
Beta(2,5) | NP | 27.70 (8.43) | 26.85 (8.08) | 27.13 (8.50) | 27.19 (8.21)
Beta(2,5) | DIP | 26.99 (7.94) | 27.59 (8.06) | 27.51 (7.95) | 27.42 (8.12)
Beta(2,5) | LRM | 384.62 (15.19) | 304.66 (14.76) | 248.44 (13.62) | 205.59 (13.22)
Beta(2,5) | OPM | 510.14 (9.13) | 508.38 (9.48) | 508.02 (9.72) | 507.38 (9.01)
N(0,1) | NP | 27.16 (8.28) | 27.08 (8.17) | 26.73 (7.89) | 27.86 (8.51)
N(0,1) | DIP | 27.10 (8.09) | 27.24 (8.00) | 27.06 (8.02) | 27.08 (8.22)
N(0,1) | LRM | 368.71 (14.58) | 285.12 (16.22) | 228.90 (17.14) | 188.22 (16.72)
N(0,1) | OPM | 507.85 (9.65) | 504.92 (9.27) | 504.17 (9.90) | 503.34 (9.47)
Exp(1) | NP | 27.37 (8.25) | 27.31 (8.06) | 27.51 (7.90) | 27.65 (8.13)
Exp(1) | DIP | 27.62 (8.71) | 26.97 (8.13) | 27.85 (8.46) | 27.92 (8.56)
Exp(1) | LRM | 439.61 (17.30) | 392.35 (20.23) | 355.79 (22.60) | 323.98 (23.83)
Exp(1) | OPM | 510.54 (9.73) | 508.62 (9.90) | 508.65 (9.79) | 508.29 (9.78)
"""


def _run(setting: str, seed: np.random.SeedSequence) -> Values:
    law = LAWS[setting]
    z = law.rvs(ROWS, random_state=np.random.default_rng(seed))

    def distance(values: FloatArray) -> float:
        return 1e3 * float(stats.ks_1samp(values, law.cdf, method="asymp").statistic)

    bounded = setting in ("Unif(0,1)", "Beta(2,5)")
    low, high = (0.0, 1.0) if bounded else sample_range(z)
    radius = float(np.sqrt(ROWS) * np.abs(z).max())
    measured = for_all(EPSILONS, "NP", distance(z))
    for epsilon in EPSILONS:
        rng = child(seed, "DIP", epsilon)
        dip = privatize(z[:, None], epsilon, reference=Known(law), kernel="laplace", seed=rng).data[:, 0]
        lrm = Laplace(epsilon, low, high, read_from_rows=not bounded).privatize(z, child(seed, "LRM", epsilon))
        opm = Ball(epsilon, radius, read_from_rows=True).privatize(z, child(seed, "OPM", epsilon))
        measured |= {("DIP", epsilon): distance(dip), ("LRM", epsilon): distance(lrm), ("OPM", epsilon): distance(opm)}
    return measured


KS = Experiment(
    name="continuous-ks",
    title="Distributions of continuous columns, n = 1000, law known",
    source="Table sim1",
    measure="Kolmogorov-Smirnov distance to the true law, in thousandths",
    settings=tuple(LAWS),
    epsilons=EPSILONS,
    reps=1000,
    run=_run,
    paper=printed(PAPER, EPSILONS),
    order_only=frozenset({"OPM"}),
    rivals=frozenset({"LRM", "OPM"}),
    insensitive=True,
)
