"""`dipriv studio`: a page in the browser from a file to a published table."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from dipriv.cli import options as opt
from dipriv.cli.terminal import say


def studio(
    table: Annotated[Path | None, typer.Argument(metavar="FILE", help="The table to begin with.")] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Where tables are opened and releases written [default: that of FILE, or .]."
        ),
    ] = None,
    schema: opt.Schema = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            metavar="PLACE",
            envvar="DIPRIV_LEDGER",
            help="Ledger: a file or database URL [default: ledger.db in your own folder for data].",
        ),
    ] = None,
    port: Annotated[
        int,
        typer.Option(metavar="PORT", min=0, max=65535, show_default=False, help="Of 127.0.0.1 [default: a free one]."),
    ] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the link.")] = False,
) -> None:
    """Open a page in the browser: look at a table, plan, release, and read the ledger, with clicks.

    It is for you alone: on this machine only, with a random token. It ends with Ctrl-C.
    """
    from dipriv.ledger import Ledger
    from dipriv.report.extra import needed
    from dipriv.studio.choices import NOTHING
    from dipriv.studio.files import UserFiles
    from dipriv.studio.run import run
    from dipriv.studio.tabs import Settings

    with needed():
        import jinja2  # noqa: F401
    with Ledger.open(ledger) as opened:
        shown = None if ledger in (None, os.environ.get("DIPRIV_LEDGER")) else opened.url
    declared = opt.load_schema(schema)
    settings = Settings(UserFiles.of(table, folder), ledger, shown, NOTHING if declared is None else declared)
    run(settings, port=port, browser=not no_browser, say=say)
