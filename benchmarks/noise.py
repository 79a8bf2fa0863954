"""What a value of Laplace or Gaussian noise costs: ours and OpenDP (secure, exact), diffprivlib, numpy (unsafe)."""

from __future__ import annotations

import importlib.util
import sys
import types
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.measure import side_by_side
from dipriv._random.bits import Draws, source
from dipriv._random.discrete_gaussian import discrete_gaussian
from dipriv._random.discrete_laplace import discrete_laplace

OURS, THEIRS, ONE_BY_ONE = 1 << 20, 20_000, 20_000
SIGMA = 100 << 10


def run() -> dict[str, Any]:
    """Nanoseconds a value, and how many times ours each peer takes."""
    import opendp.prelude as dp

    dp.enable_features("contrib", "floating-point")
    reals = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
    opendp = dp.m.make_laplace(*reals, scale=1.0)
    integers = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T=float)
    opendp_gaussian = dp.m.make_gaussian(*integers, scale=float(SIGMA))
    zeros, whole_zeros = [0.0] * THEIRS, [0] * THEIRS
    diffprivlib = _diffprivlib_laplace()
    generator = np.random.default_rng()
    seconds = side_by_side(
        {
            "dipriv (exact, secure)": lambda: discrete_laplace(Draws(source(None), 0, OURS), 1 << 40),
            "dipriv discrete Gaussian (exact, secure)": lambda: discrete_gaussian(
                Draws(source(None), 0, OURS), Fraction(SIGMA**2)
            ),
            "OpenDP vector Laplace (exact, secure)": lambda: opendp(zeros),
            "OpenDP vector discrete Gaussian (exact, secure)": lambda: opendp_gaussian(whole_zeros),
            "diffprivlib Laplace (secure)": lambda: [diffprivlib.randomise(0.0) for _ in range(ONE_BY_ONE)],
            "numpy (not secure, breakable)": lambda: generator.laplace(size=OURS),
        }
    )
    counts = [OURS, OURS, THEIRS, THEIRS, ONE_BY_ONE, OURS]
    cost = {name: 1e9 * s / n for (name, s), n in zip(seconds.items(), counts, strict=True)}
    ours = next(iter(cost.values()))
    return {"nanoseconds": cost, "ratio": {name: ns / ours for name, ns in cost.items()}}


def _diffprivlib_laplace() -> Any:
    """Its mechanism alone: the whole package imports models that need an older scikit-learn."""
    package = importlib.util.find_spec("diffprivlib")
    if package is None or package.submodule_search_locations is None:
        raise ModuleNotFoundError("diffprivlib is not installed; pip install -r benchmarks/requirements.txt")
    bare = types.ModuleType("diffprivlib")
    bare.__path__ = list(package.submodule_search_locations)
    sys.modules["diffprivlib"] = bare
    return importlib.import_module("diffprivlib.mechanisms.laplace").Laplace(epsilon=1.0, sensitivity=1.0)
