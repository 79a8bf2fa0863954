"""One progress callback for everything that takes long."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[str, float, float | None], None]
"""Called with what is being done, how much of it is done, and how much there is (None where that is not known)."""


def no_progress(what: str, done: float, total: float | None) -> None:
    """Show nothing."""
