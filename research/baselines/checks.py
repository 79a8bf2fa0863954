"""What all baselines ask of their arguments."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dipriv._base.arrays import FloatArray
from dipriv._random.bits import Bits, Draws
from dipriv.errors import InputError
from dipriv.guarantee.guarantee import (
    Assumption,
    AssumptionKind,
    ReferenceFacts,
    ReferenceSource,
    check_epsilon,
)

NO_REFERENCE = ReferenceFacts(ReferenceSource.NONE)
FLOATING = Assumption(AssumptionKind.FLOATING_POINT_NOISE)
MAX_FLOATING_EPSILON = 30.0
"""Beyond it odds of e^ε : 1 are certainty in double precision, and nothing would be private at all."""


def about(parameter: str, *, read_from_rows: bool = False) -> Assumption:
    """That a parameter of a mechanism is public, or that it was read from the private rows."""
    kind = AssumptionKind.PARAMETER_READ_FROM_ROWS if read_from_rows else AssumptionKind.PARAMETER_PUBLIC
    return Assumption(kind, (parameter,))


def set_epsilon(mechanism: Any, *, floating: bool) -> None:
    """Keep the checked ε of a frozen mechanism as a float."""
    epsilon = check_epsilon(mechanism.epsilon)
    if floating and epsilon > MAX_FLOATING_EPSILON:
        raise InputError(
            f"epsilon={epsilon!r} is above {MAX_FLOATING_EPSILON:g}, which double precision cannot keep.",
            "Use a smaller epsilon.",
        )
    object.__setattr__(mechanism, "epsilon", epsilon)


def check_bounds(lower: object, upper: object, where: str = "") -> tuple[float, float]:
    """Both as floats: a finite interval of finite width. The values are not told: they may be private."""
    remedy = f"Give {where or 'the bounds'} as finite numbers, the lower one first."
    try:
        low, high = float(lower), float(upper)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"the bounds{where and f' of {where}'} are not two numbers.", remedy) from None
    if not (low < high and math.isfinite(high - low)):
        raise InputError(f"the bounds{where and f' of {where}'} are not a finite interval.", remedy)
    return low, high


def check_positive(what: str, value: object) -> float:
    """A finite number above 0; the value is not told: it may be private."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not (number > 0 and math.isfinite(number)):
        raise InputError(f"{what} is not a finite number above 0.", f"Give a positive {what}.")
    return number


def as_numbers(values: object, what: str) -> FloatArray:
    """Finite numbers, in C order; no message shows one."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError):
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "iufb":
        raise InputError(f"{what} does not hold plain numbers.", "Give an array of numbers.")
    array = np.asarray(array, dtype=np.float64, order="C")
    if not np.isfinite(array).all():
        raise InputError(
            f"{what} has nulls or infinite numbers.", "Leave these rows out: this mechanism needs numbers."
        )
    return array


def as_vector(values: object, what: str = "values") -> FloatArray:
    """One finite number a row."""
    array = as_numbers(values, what)
    if array.ndim != 1 or not len(array):
        raise InputError(f"{what} has shape {array.shape}.", "Give one number a row, and at least one row.")
    return array


def uniforms(bits: Bits, count: int, column: int = 0) -> FloatArray:
    """Uniforms inside (0, 1), never 1/2: odd multiples of 2^-53."""
    return np.asarray(((Draws(bits, 0, count, column).words() >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52)
