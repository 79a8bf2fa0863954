"""How inner loops are compiled: numba, without the interpreter lock, cached beside the module."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Loop = TypeVar("Loop", bound=Callable[..., Any])

_loops: list[Any] = []


def jit(loop: Loop) -> Loop:
    """Compile a loop on first use; threads run it side by side."""
    compiled = numba.njit(cache=True, nogil=True, error_model="numpy")(loop)
    _loops.append(compiled)
    return cast(Loop, compiled)


def announce_compilation() -> None:
    """Say once, on a terminal and in the log, if the loops are about to be compiled: a pause that comes but once."""
    loops, _loops[:] = list(_loops), []
    if loops and not any(_is_ready(loop) for loop in loops):
        said = "dipriv compiles its inner loops on first use; this takes some seconds, once."
        logging.getLogger("dipriv").info(said)
        if sys.stderr.isatty():
            sys.stderr.write(f"{said}\n")


def _is_ready(loop: Any) -> bool:
    """Whether a loop was compiled in this process, or in an earlier one that left it in the cache."""
    if getattr(loop, "signatures", True):  # plain functions, where compiling is switched off
        return True
    source = Path(loop.py_func.__code__.co_filename)
    return any(Path(loop.stats.cache_path).glob(f"{source.stem}.{loop.py_func.__name__}-*.nbi"))
