"""NLRM and NOPM: a table's columns one by one, each with ε/p, their dependence ignored."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from dipriv._base.arrays import FloatArray
from dipriv._random.bits import Seed, source
from dipriv._tables import frames as tables
from dipriv._tables.fitted_columns import holds_infinities
from dipriv.errors import InputError
from dipriv.guarantee import Guarantee, Neighbouring, PrivacyUnit, UnitKind
from dipriv.guarantee.guarantee import MIN_EPSILON, check_epsilon
from dipriv.release.result import Release, RowCounts
from dipriv.schema import Continuous, Schema
from research.baselines.checks import FLOATING, NO_REFERENCE, about, as_vector, check_bounds
from research.baselines.laplace import Laplace
from research.baselines.minimax import Ball

Bounds = Mapping[str, tuple[float, float]]


def naive(
    frame: Any,
    epsilon: float,
    *,
    method: Literal["lrm", "opm"] = "lrm",
    bounds: Bounds | Literal["sample"],
    seed: Seed = None,
) -> Release[Any]:
    """Every row of a table of numbers, each column privatized on its own with an equal share of ε.

    `bounds` gives each column's public (lower, upper); `"sample"` reads them from the private rows as the paper does
    ([0, max] for columns without a negative number, else [-max|z|, max|z|]), and the guarantee says so. The released
    columns are float64.

    >>> import numpy as np
    >>> naive(np.ones((3, 2)), 1.0, bounds={"x0": (0, 2), "x1": (0, 2)}, seed=1).data.shape
    (3, 2)
    """
    epsilon = check_epsilon(epsilon)
    if method not in ("lrm", "opm"):
        raise InputError(f"method={method!r} is unknown.", 'Use "lrm" or "opm".')
    table = tables.read(frame)
    values = {name: _numbers(table, name) for name in table.names}
    ranges = _ranges(bounds, values)
    share = math.nextafter(epsilon / len(values), 0.0)  # the shares add up to no more than ε
    if share < MIN_EPSILON:
        raise InputError(f"ε/{len(values)} is below {MIN_EPSILON:g}.", "Use a larger epsilon, or fewer columns.")
    seeds = source(seed).child("naive").words(len(values))
    released: dict[str, FloatArray] = {}
    for (name, x), own in zip(values.items(), seeds, strict=True):
        low, high = ranges[name]
        radius = float(np.sqrt(len(x))) * max(abs(low), abs(high))
        mechanism = Laplace(share, low, high) if method == "lrm" else Ball(share, radius)
        released[name] = mechanism.privatize(x, None if seed is None else int(own))
    said = _guarantee(method, epsilon, bounds == "sample", seed, len(values))
    schema = Schema({name: Continuous() for name in values})
    return Release(table.with_numbers(released), said, schema, RowCounts(table.rows, released=table.rows))


def sample_range(x: FloatArray) -> tuple[float, float]:
    """The paper's stand-in for the bounds of a column: read from the private values."""
    top = float(np.abs(x).max()) or 1.0
    return (-top if x.min() < 0 else 0.0), top


def _ranges(bounds: object, values: Mapping[str, FloatArray]) -> dict[str, tuple[float, float]]:
    if bounds == "sample":
        return {name: sample_range(x) for name, x in values.items()}
    remedy = 'Give {column: (lower, upper)}, or bounds="sample" (not private).'
    if not isinstance(bounds, Mapping):
        raise InputError(f"expected bounds as a mapping of columns, got {type(bounds).__name__}.", remedy)
    tables.check_names(bounds, tuple(values), "bounds")
    if lacking := [name for name in values if name not in bounds]:
        raise InputError(f"column {lacking[0]!r} has no bounds.", remedy)
    if odd := [name for name, pair in bounds.items() if not isinstance(pair, Sequence) or len(pair) != 2]:
        raise InputError(f"the bounds of column {odd[0]!r} are not a pair.", remedy)
    return {name: check_bounds(pair[0], pair[1], f"column {name!r}") for name, pair in bounds.items()}


def _numbers(table: tables.Table, name: str) -> FloatArray:
    column = table.column(name)
    if column.labels is not None or column.storage.family not in ("real", "integer", "boolean"):
        raise InputError(f"column {name!r} does not hold numbers.", "Encode it as numbers, or leave it out.")
    cells = table.cells(name)
    if cells.missing is not None and cells.missing.any():
        raise InputError(f"column {name!r} has nulls.", "Leave these rows out: this mechanism needs numbers.")
    if holds_infinities(name, table):
        raise InputError(f"column {name!r} holds infinite numbers.", "Leave these rows out: they have no bounds.")
    return as_vector(cells.values, f"column {name!r}")


def _guarantee(method: str, epsilon: float, of_rows: bool, seed: Seed, columns: int) -> Guarantee:
    noise = "Laplace noise on each column's range" if method == "lrm" else "a random half of a sphere for each column"
    rows = method == "lrm"
    return Guarantee(
        epsilon=epsilon,
        kernel=f"{noise}, ε/{columns} each",
        reference=NO_REFERENCE,
        unit=PrivacyUnit(UnitKind.ROW if rows else UnitKind.TABLE),
        neighbouring=Neighbouring.SUBSTITUTE_ONE if rows else Neighbouring.ANY_TWO,
        assumptions=(about("bounds", read_from_rows=of_rows), *([] if rows else [FLOATING])),
        secure_randomness=seed is None,
    )
