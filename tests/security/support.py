"""Tools of the security tests: a small table, options to fit it, and a limit on memory and time."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from dipriv.kernels import OptimalCap, OptimalJoint
from dipriv.references import Known, Mixture

RNG = np.random.default_rng(0)
PEOPLE = pd.DataFrame(
    {
        "age": RNG.integers(18, 22, 60),
        "pay": RNG.choice([0.0, np.nan, 1.0], 60, p=[0.3, 0.2, 0.5]) * RNG.lognormal(size=60),
        "city": RNG.choice(["Bonn", "Köln", "Ulm"], 60),
    }
)
FITS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "boxes": (["age", "pay"], {"public": PEOPLE, "kernel": "laplace"}),
    "network": (["age", "city"], {"epsilon": 10.0, "seed": 1, "kernel": "laplace", "labels": "public"}),  # several bins
    "joint": (["age", "city"], {"seed": 1, "labels": "public", "kernel": OptimalJoint()}),
    "cap": (["age", "city"], {"seed": 1, "labels": "public", "kernel": OptimalCap()}),
    "labels": (["city"], {"public": PEOPLE}),
    "gamma": (["pay"], {"reference": Known(stats.gamma(2.0, scale=3.0)), "kernel": "laplace"}),
    "counts": (["age"], {"reference": Known(stats.poisson(2)), "kernel": "laplace"}),
    "mixture": (["pay"], {"reference": Known(Mixture({0.0: 0.5}, stats.norm())), "kernel": "laplace"}),
    "normal": (["age", "pay"], {"reference": Known(stats.multivariate_normal([0, 0], [[2, 1], [1, 2]]))}),
}


@contextmanager
def little(megabytes: float = 40.0, seconds: float = 30.0) -> Iterator[None]:
    """What happens inside takes little memory and time: a refusal takes milliseconds, what it prevents hours or GBs."""
    start = time.perf_counter()
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < megabytes * 1e6
    assert time.perf_counter() - start < seconds
