"""How a caller sees progress: not at all, as a bar on the terminal, or by a function of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dipriv._base.extras import needs_extra
from dipriv._base.progress import Progress, no_progress


@contextmanager
def shown(progress: bool | Progress) -> Iterator[Progress]:
    """The callback that `progress` asks for: none, a bar on the terminal, or the caller's own."""
    if not isinstance(progress, bool):
        yield progress
        return
    if not progress:
        yield no_progress
        return
    with needs_extra("cli", "progress=True"):
        from rich.progress import Progress as Bar

    with Bar(transient=True) as bars:
        tasks: dict[str, Any] = {}

        def report(what: str, done: float, total: float | None) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done, total=total)

        yield report
