"""What commands share of the terminal: two consoles, a progress bar that keeps quiet elsewhere, plain errors."""

from __future__ import annotations

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import typer
from rich.console import Console
from rich.markup import escape
from typer.core import TyperCommand

from dipriv.errors import DiprivError, InputError, PrivacyWarning, RuleWarning, UtilityWarning

Found = TypeVar("Found")
INTERRUPTED, TERMINATED, BROKEN_PIPE = (128 + each for each in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE))
"""Exit codes, as shells have them; else 0, 1 after a refusal or a failure (of an audit 2), 2 for wrong usage."""


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Standard error is for nobody then, and goes on; standard output ends the command."""
        if not self.stderr:
            raise BrokenPipeError


out = _Console(soft_wrap=True, highlight=False, emoji=False)
err = _Console(stderr=True, soft_wrap=True, highlight=False, emoji=False)


def plain(text: str) -> str:
    """Text without control characters: names of columns and files may contain any character."""
    return escape("".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text))


def say(text: str) -> None:
    """Print a line on standard output, without markup."""
    out.print(plain(text))


def warn(text: str) -> None:
    """Print a line on standard error, without markup."""
    err.print(plain(text))


def fail(*errors: DiprivError, code: int = 1) -> NoReturn:
    """Faults and remedies in the words of the command line, on standard error, and the end."""
    for error in errors:
        err.print(f"[bold red]Error:[/bold red] {plain(error.fault)}")
        err.print(plain(error.command))
        _print_notes(error)
    _end(code)


def _print_notes(error: BaseException) -> None:
    for note in getattr(error, "__notes__", ()):
        err.print(plain(note))


def _end(code: int) -> NoReturn:
    """Exit; what standard output cannot take any more is lost without a word of Python's about it."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


class RefusalsError(Exception):
    """Several refusals of one command, to be reported together."""

    def __init__(self, errors: list[DiprivError]) -> None:
        super().__init__(errors)
        self.errors = errors


class Checks:
    """What can be refused before the table is read is refused together."""

    def __init__(self) -> None:
        self.refusals: dict[str, DiprivError] = {}

    def __call__(self, check: Callable[..., Found], *arguments: Any, **options: Any) -> Found | None:
        """What the check returns; None if it refuses."""
        try:
            return check(*arguments, **options)
        except DiprivError as error:
            self.refusals.setdefault(str(error), error)
            return None

    def done(self, found: Found | None) -> Found:
        """What a check found; raises all that was refused, there or elsewhere."""
        if self.refusals or found is None:
            raise RefusalsError(list(self.refusals.values()))
        return found


class Command(TyperCommand):
    """A command whose refusals and failures are a message and an exit code, wherever it ends."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Arguments are shown by their names alone."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]

    def invoke(self, ctx: Any) -> Any:
        """Run it; what it printed must have reached its reader."""
        with errors_exit_with(1):
            found = super().invoke(ctx)
            sys.stdout.flush()
            return found


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Warnings of dipriv are lines on standard error, each of them once; those about private rows say so.

    Of others only the class is shown: what they say may hold a cell.
    """
    ours = (PrivacyWarning, UtilityWarning, RuleWarning)
    with warnings.catch_warnings():
        for category in ours:
            warnings.simplefilter("once", category)

        def show(
            message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any, **more: Any
        ) -> None:
            if issubclass(category, ours):
                warn(f"{'Private' if issubclass(category, RuleWarning) else 'Warning'}: {message}")
            else:
                warn(f"Warning: {category.__name__} at {Path(filename).name}, line {lineno}.")

        warnings.showwarning = show
        yield


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
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except (KeyboardInterrupt, Terminated) as error:
        terminated = isinstance(error, Terminated)
        err.print("Terminated." if terminated else "Interrupted.")
        _print_notes(error)
        _end(TERMINATED if terminated else INTERRUPTED)
    except BrokenPipeError as error:
        _print_notes(error)
        _end(BROKEN_PIPE)
    except Exception as error:
        if os.environ.get("DIPRIV_DEBUG"):
            traceback.print_exc()
            _end(code)
        if isinstance(error, RefusalsError):
            for note in getattr(error, "__notes__", ()):
                error.errors[-1].add_note(note)
            fail(*error.errors, code=code)
        if isinstance(error, DiprivError):
            fail(error, code=code)
        reason, remedy = type(error).__name__, "See where with dipriv --debug ..., in private."
        if isinstance(error, OSError) and error.errno:
            reason, remedy = os.strerror(error.errno), "Check what the command reads and writes."
        shown = DiprivError(f"the command failed: {reason}.", remedy)
        for note in getattr(error, "__notes__", ()):
            shown.add_note(note)
        fail(shown, code=code)


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
