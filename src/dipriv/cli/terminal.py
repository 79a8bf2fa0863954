"""What commands share of the terminal: two consoles, a progress bar that keeps quiet elsewhere, plain errors."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape

from dipriv.errors import DiprivError, InputError

if TYPE_CHECKING:
    from dipriv.schema import Schema

TypeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        metavar="NAME=TYPE",
        help="A text column is text, number (whole or decimal), boolean, date, datetime or time (repeatable).",
    ),
]
MissingOption = Annotated[
    list[str] | None, typer.Option(metavar="MARK", help="Text that marks a missing cell, beside NA, - and such.")
]
out = Console(soft_wrap=True, highlight=False, emoji=False)
err = Console(stderr=True, soft_wrap=True, highlight=False, emoji=False)


def plain(text: str) -> str:
    """Text without control characters: names of columns and files may contain any character."""
    return escape("".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text))


def say(text: str) -> None:
    """Print a line on standard output, without markup."""
    out.print(plain(text))


def warn(text: str) -> None:
    """Print a line on standard error, without markup."""
    err.print(plain(text))


def fail(error: DiprivError, code: int = 1) -> NoReturn:
    """The fault and the remedy on standard error, and the end."""
    err.print(f"[bold red]Error:[/bold red] {plain(error.fault)}")
    err.print(plain(error.remedy))
    for note in getattr(error, "__notes__", ()):
        err.print(plain(note))
    sys.exit(code)


class Terminated(BaseException):
    """The process was asked to end (SIGTERM): unfinished files are removed, as after Ctrl-C."""


@contextmanager
def ending_when_terminated() -> Iterator[None]:
    """Raise `Terminated` where the process is asked to end, so that everything is cleaned up on the way out.

    The exit code says so even if cleaning up fails.
    """
    received: list[int] = []

    def stop(number: int, frame: object) -> NoReturn:
        received.append(number)
        raise Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        if received:
            sys.exit(128 + received[0])


@contextmanager
def errors_exit_with(code: int) -> Iterator[None]:
    """Refusals and failures become a message and this exit code, for a command whose exit code 1 says something else.

    The message of an unforeseen error may hold a cell: only its class is shown.
    """
    try:
        yield
    except (typer.Exit, typer.Abort):
        raise
    except (KeyboardInterrupt, Terminated) as error:
        terminated = isinstance(error, Terminated)
        err.print("Terminated." if terminated else "Interrupted.")
        for note in getattr(error, "__notes__", ()):
            err.print(plain(note))
        sys.exit(128 + (signal.SIGTERM if terminated else signal.SIGINT))
    except Exception as error:
        if os.environ.get("DIPRIV_DEBUG"):
            traceback.print_exc()
            sys.exit(code)
        if isinstance(error, DiprivError):
            fail(error, code)
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else type(error).__name__
        shown = DiprivError(f"the command failed: {reason}.", "See where with dipriv --debug ..., in private.")
        for note in getattr(error, "__notes__", ()):
            shown.add_note(note)
        fail(shown, code)


def refuse_same_file(**paths: str | Path | None) -> None:
    """No output may be an input or another output."""
    seen: dict[Path, str] = {}
    for name, path in paths.items():
        if path is None or str(path) == "-":
            continue
        place = Path(path).resolve()
        if place in seen:
            raise InputError(f"{seen[place]} and {name} are the same file, {path}.", "Give each its own name.")
        seen[place] = name


def given_types(types: list[str] | None) -> dict[str, Any]:
    """What --type NAME=TYPE says, each time it is given."""
    pairs = [text.rpartition("=") for text in types or ()]
    if wrong := [text for text, (name, _, _) in zip(types or (), pairs, strict=True) if not name]:
        raise typer.BadParameter(f"--type {wrong[0]} has no =; write --type NAME=TYPE, such as --type income=number")
    return {name: column_type for name, _, column_type in pairs}


def load_schema(path: Path | None) -> Schema | None:
    """The schema in a file, if one is given."""
    from dipriv.schema import Schema

    if path is None:
        return None
    if not path.is_file():
        raise InputError(f"{path} is not a file.", "Check the path of the schema.")
    return Schema.load(path)


def refuse_existing(path: Path | None, *, force: bool) -> None:
    """Refuse an output that exists, links included, unless `force`; its folder must exist."""
    if path is None:
        return
    if os.path.lexists(path) and (not force or (path.exists() and not path.is_file())):
        raise InputError(f"{path} exists.", "Choose another name, or replace it with --force.")
    if not path.parent.is_dir():
        raise InputError(f"the folder {path.parent} does not exist.", "Make it, or choose another.")


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

    def update(self, what: str, done: float, total: float | None) -> None:
        """So much is done of so much; another `what` starts the bar anew."""
        if what != self._what:
            self._what = what
            self._bar.reset(self._task, description=what)
        speed = self._bar.tasks[0].speed
        text = f"{speed:,.0f} {self._unit}/s" if speed else ""
        self._bar.update(self._task, completed=done, total=total, speed_text=text)
