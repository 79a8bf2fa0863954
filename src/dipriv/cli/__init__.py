"""The command line: parse, call one function, print."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from dipriv import __version__
from dipriv.errors import DiprivError

app = typer.Typer(
    name="dipriv",
    help="Publish a private table row by row, with nearly the same distribution, under differential privacy.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
out, err = Console(soft_wrap=True), Console(stderr=True, soft_wrap=True)


def _print_version(asked: bool) -> None:
    if asked:
        out.print(f"dipriv {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def common(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options of all commands."""
    if debug:
        os.environ["DIPRIV_DEBUG"] = "1"


@app.command()
def reproduce(
    names: Annotated[list[str] | None, typer.Argument(help="Experiments and figures of the paper, or `all`.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the names and exit.")] = False,
    reps: Annotated[int | None, typer.Option(help="Repetitions of each setting [default: its own].")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all randomness.")] = 2023,
    jobs: Annotated[int | None, typer.Option(help="Processes [default: one a core].")] = None,
    out_: Annotated[Path, typer.Option("--out", help="Folder for the results.")] = Path("reproduction"),
) -> None:
    """Measure again what the paper reports, and show it beside the paper's numbers.

    Results are a function of the names, the repetitions and the seed. An interrupted run goes on where it was when the
    same command is given again.
    """
    from dipriv.experiments import catalogue
    from dipriv.experiments.runner import reproduce as run

    if list_:
        for name in catalogue.WHERE:
            found = catalogue.find(name)
            out.print(f"{name:<18} {found.title} [dim]({found.source})[/dim]", highlight=False)
        return
    if not names:
        raise typer.BadParameter("name an experiment, or `all`; --list shows the names", param_hint="NAMES")
    asked = list(catalogue.WHERE) if names == ["all"] else names
    for name in asked:
        catalogue.find(name)  # an unknown name is refused before anything is run
    for name in asked:
        try:
            with _progress(name) as tick:
                files = run(name, out=out_, reps=reps, seed=seed, jobs=jobs, tick=tick)
        except KeyboardInterrupt:
            err.print("Interrupted. What was finished is kept: give the same command to go on.", highlight=False)
            raise typer.Exit(130) from None
        out.print(f"{name}: " + ", ".join(str(file) for file in files), highlight=False)


class _progress:  # noqa: N801 (reads as a function)
    """A bar on a terminal, nothing elsewhere."""

    def __init__(self, name: str) -> None:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        columns = (TextColumn(name), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=err, transient=True, disable=not err.is_terminal)
        self._task = self._bar.add_task(name, total=None)

    def __enter__(self) -> _progress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, done: int, total: int) -> None:
        self._bar.update(self._task, completed=done, total=total)


def main() -> None:
    """Run; errors become a message and exit code 1, wrong usage 2."""
    try:
        app(standalone_mode=True)
    except DiprivError as error:
        if os.environ.get("DIPRIV_DEBUG"):
            raise
        err.print(f"[bold red]Error:[/bold red] {_escaped(error.fault)}", highlight=False)
        err.print(_escaped(error.remedy), highlight=False)
        sys.exit(1)


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)


if __name__ == "__main__":
    main()
