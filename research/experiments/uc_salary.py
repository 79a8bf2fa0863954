"""Table real1_mean: the mean salary at the University of California, 2010, from a release.

LRM: Laplace noise on [0, max], the maximum read from the private rows. OPM: the private mean under a bounded third
moment (DJW 3.2.1), values held to [0, T] with T = (E z³)^(1/3) (N ε²)^(1/6), the moment computed from the private rows.
The paper writes of "k = 20" moments and "the one closest to 3"; its printed errors are those of k = 3 on [0, T].
"""

from __future__ import annotations

from functools import cache

import numpy as np

from dipriv._base.arrays import FloatArray
from dipriv.release.privatize import privatize
from research.baselines import BoundedMoment, Laplace
from research.data import data_file
from research.protocol import Experiment, Values, child, printed

FILE = "uc_salary/uc-salary-2010-nine-locations.parquet"
SETTING = "9 of 12 locations"
EPSILONS = (1.0, 2.0, 3.0, 4.0)
HOLDOUTS = (0.15, 0.25, 0.35)
MOMENT = 3
PAPER = """
9 of 12 locations | DIP (hold 15%) | 0.50 (0.38) | 0.44 (0.34) | 0.40 (0.31) | 0.37 (0.28)
9 of 12 locations | DIP (hold 25%) | 0.40 (0.31) | 0.36 (0.28) | 0.33 (0.25) | 0.30 (0.24)
9 of 12 locations | DIP (hold 35%) | 0.36 (0.28) | 0.33 (0.26) | 0.31 (0.24) | 0.29 (0.22)
9 of 12 locations | LRM | 13.08 (9.95) | 6.65 (5.04) | 4.62 (3.43) | 3.37 (2.58)
9 of 12 locations | OPM | 4.69 (3.44) | 3.03 (2.31) | 2.34 (1.80) | 1.87 (1.39)
"""


@cache
def salaries() -> FloatArray:
    import pyarrow.parquet as pq

    return np.asarray(pq.read_table(data_file(FILE), columns=["gross_pay"])["gross_pay"].to_numpy())


def _run(setting: str, seed: np.random.SeedSequence) -> Values:
    z = salaries()
    truth, top = float(z.mean()), float(z.max())
    moment = float(np.mean(z**MOMENT) ** (1 / MOMENT))

    def error(values: FloatArray) -> float:
        return 100 * abs(float(values.mean()) / truth - 1)

    measured = {}
    for epsilon in EPSILONS:
        for share in HOLDOUTS:
            rng = child(seed, "DIP", share, epsilon)
            dip = privatize(z[:, None], epsilon, reference="holdout", kernel="laplace", holdout=share, seed=rng).data
            measured[f"DIP (hold {share:.0%})", epsilon] = error(dip)
        lrm = Laplace(epsilon, 0.0, top, read_from_rows=True)
        opm = BoundedMoment(epsilon, moment, MOMENT, nonnegative=True, read_from_rows=True)
        measured["LRM", epsilon] = error(lrm.privatize(z, child(seed, "LRM", epsilon)))
        measured["OPM", epsilon] = error(opm.privatize(z, child(seed, "OPM", epsilon)))
    return measured


SALARY = Experiment(
    name="uc-salary",
    title="Mean salary at the University of California, 2010",
    source="Tables real1_mean and real_logistic",
    measure="relative error of the mean, in percent",
    settings=(SETTING,),
    epsilons=EPSILONS,
    reps=200,
    run=_run,
    paper=printed(PAPER, EPSILONS),
    order_only=frozenset({"OPM"}),
    rivals=frozenset({"LRM", "OPM"}),
    needs=(FILE,),
)
