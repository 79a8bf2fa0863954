"""Times are integers (ticks), released as whole multiples of a resolution: a `LatticeCodec` on ticks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dipriv.schema import RESOLUTIONS, Resolution

_NANOSECONDS: dict[Resolution, int] = {
    "day": 86_400_000_000_000,
    "hour": 3_600_000_000_000,
    "minute": 60_000_000_000,
    "second": 1_000_000_000,
    "millisecond": 1_000_000,
    "microsecond": 1_000,
    "nanosecond": 1,
}


def ticks_in(resolution: Resolution, tick_ns: int) -> int:
    """How many ticks of `tick_ns` nanoseconds make one unit of `resolution`, at least one.

    >>> ticks_in("day", 1_000_000_000), ticks_in("nanosecond", 1_000)
    (86400, 1)
    """
    return max(1, _NANOSECONDS[resolution] // tick_ns)


def coarsest_resolution(ticks: NDArray[Any], tick_ns: int) -> Resolution:
    """The coarsest resolution that all ticks are whole multiples of."""
    for resolution in RESOLUTIONS:
        whole = ticks_in(resolution, tick_ns)
        if whole == 1 or not np.any(ticks % whole):
            return resolution
    return "nanosecond"
