"""How inner loops are compiled: numba, without the interpreter lock, cached beside the module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Loop = TypeVar("Loop", bound=Callable[..., Any])


def jit(loop: Loop) -> Loop:
    """Compile a loop on first use; threads run it side by side."""
    return cast(Loop, numba.njit(cache=True, nogil=True, error_model="numpy")(loop))
