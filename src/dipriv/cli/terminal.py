"""What commands share of the terminal: two consoles, a progress bar that keeps quiet elsewhere, plain errors."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.markup import escape

from dipriv.errors import DiprivError

out, err = Console(soft_wrap=True, highlight=False), Console(stderr=True, soft_wrap=True, highlight=False)


def say(text: str) -> None:
    """A line on standard output, as it is."""
    out.print(escape(text))


def warn(text: str) -> None:
    """A line on standard error, as it is."""
    err.print(escape(text))


def fail(error: DiprivError) -> None:
    """The fault and the remedy on standard error."""
    err.print(f"[bold red]Error:[/bold red] {escape(error.fault)}")
    err.print(escape(error.remedy))
    sys.exit(1)


class Progress:
    """A bar on a terminal, nothing elsewhere: what is done, how much of it, how fast, how long still."""

    def __init__(self, what: str, *, unit: str, quiet: bool = False) -> None:
        from rich import progress

        columns = (
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.TextColumn("{task.completed:,.0f} " + unit),
            progress.TextColumn("{task.fields[speed_text]}"),
            progress.TimeRemainingColumn(),
        )
        off = quiet or not err.is_terminal
        self._bar = progress.Progress(*columns, console=err, transient=True, disable=off)
        self._unit = unit
        self._task = self._bar.add_task(what, total=None, speed_text="")
        self._what = what

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def update(self, what: str, done: int, total: int | None) -> None:
        """So much is done of so much; another `what` starts the bar anew."""
        if what != self._what:
            self._what = what
            self._bar.reset(self._task, description=what)
        speed = self._bar.tasks[0].speed
        text = f"{speed:,.0f} {self._unit}/s" if speed else ""
        self._bar.update(self._task, completed=done, total=total, speed_text=text)
