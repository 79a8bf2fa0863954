"""Privacy auditing: measured lower bounds on ε, exact checks of finite kernels, and attacks with a control group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dipriv.auditing.results import AttackResult, Audit, Bound, Exact

if TYPE_CHECKING:
    from dipriv.auditing.run import audit

__all__ = ["AttackResult", "Audit", "Bound", "Exact", "audit"]


def __getattr__(name: str) -> Any:
    """Import `audit` on first use: it needs everything that releases a table."""
    if name == "audit":
        from dipriv.auditing.run import audit

        return audit
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
