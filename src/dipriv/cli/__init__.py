"""The command line: each command parses, calls one function, and prints."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from dipriv._version import __version__
from dipriv.cli import audit, interval, ledger, look, plan, privatize, studio
from dipriv.cli.terminal import Command, ending_when_terminated, errors_exit_with, say

app = typer.Typer(
    name="dipriv",
    help="Publish a private table row by row, with nearly the same distribution, under differential privacy.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(cls=Command)(privatize.privatize)
app.command(cls=Command)(look.inspect)
app.command(cls=Command)(plan.plan)
app.command(cls=Command)(look.compare)
app.command(cls=Command)(interval.interval)
app.command(cls=Command)(audit.audit)
app.command(cls=Command)(studio.studio)
app.add_typer(ledger.app, name="ledger")


def _print_version(requested: bool) -> None:
    if requested:
        say(f"dipriv {__version__}")
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


def main() -> None:
    """Run; refusals and failures become a message and exit code 1, wrong usage 2."""
    with ending_when_terminated(), errors_exit_with(1):
        app(prog_name="dipriv")
