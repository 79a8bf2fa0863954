"""Evidence that the promise holds, and attacks that show where it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dipriv.auditing.results import Attack, Audit, Bound, Exact

if TYPE_CHECKING:
    from dipriv.auditing.run import audit

__all__ = ["Attack", "Audit", "Bound", "Exact", "audit"]


def __getattr__(name: str) -> Any:
    """`audit` is loaded when it is asked for: it needs all that releases tables."""
    if name == "audit":
        from dipriv.auditing.run import audit

        return audit
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
