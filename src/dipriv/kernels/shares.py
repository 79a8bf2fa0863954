"""How much columns matter: {column: a positive number}, 1 for those not named."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from numbers import Real

from dipriv._base.near_names import did_you_mean
from dipriv.errors import InputError


def check_shares(given: object, what: str) -> None:
    """Every share is a finite number above 0."""
    if not isinstance(given, Mapping):
        raise InputError(
            f"expected {what}s as a mapping, got {type(given).__name__}.", f"Write {{column: {what}, ...}}."
        )
    for name, share in given.items():
        if isinstance(share, bool) or not isinstance(share, Real) or not 0 < _as_float(share) < math.inf:
            raise InputError(
                f"the {what} of column {name!r} is {share!r}, not a finite number above 0.",
                f"Give each column a positive {what}; drop columns that are not needed.",
            )


def shares_of(given: Mapping[str, float], names: Sequence[str], what: str) -> list[Fraction]:
    """One for each column of U; a column that takes several divides its own among them."""
    if unknown := [name for name in given if name not in names]:
        raise InputError(
            f"a {what} is given for {unknown[0]!r}, which is not a column{did_you_mean(unknown[0], names)}.",
            "Remove or rename it.",
        )
    return [Fraction(float(given.get(name, 1))) / names.count(name) for name in names]


def _as_float(number: Real) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf
