"""One type of progress callback for everything that takes long."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[str, float], None]
"""Called with what is being done, and the share of it that is done, from 0 to 1."""


def no_progress(what: str, share: float) -> None:
    """Report nothing: the callback where none is given."""
