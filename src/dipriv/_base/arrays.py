"""Array types, and a search that compiled loops share."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dipriv._base.jit import jit

FloatArray: TypeAlias = NDArray[np.float64]
Words: TypeAlias = NDArray[np.uint64]
Counts: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]


@jit
def first_not_below(value: float, levels: NDArray[Any], count: int) -> int:
    """The first of `count` sorted levels that is not below the value, or `count`."""
    if count <= 64:
        below = 0
        for k in range(count):  # many comparisons at once, and no branch to foresee
            below += 1 if levels[k] < value else 0
        return below
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if levels[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low
