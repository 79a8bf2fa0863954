"""`dipriv interval`: intervals for statistics of a released file, from its data sheet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dipriv.cli import complete
from dipriv.cli.options import number
from dipriv.cli.terminal import say


def interval(
    released: Annotated[Path, typer.Argument(metavar="OUT", help="A released file, with its data sheet beside it.")],
    mean: Annotated[
        list[str] | None,
        typer.Option("--mean", metavar="COLUMN", autocompletion=complete.columns, help="The mean of a column."),
    ] = None,
    share: Annotated[
        list[str] | None, typer.Option("--share", metavar="COLUMN=VALUE", help="The share of rows with a value.")
    ] = None,
    median: Annotated[
        list[str] | None,
        typer.Option("--median", metavar="COLUMN", autocompletion=complete.columns, help="The median of a column."),
    ] = None,
    slope: Annotated[
        list[str] | None, typer.Option("--slope", metavar="Y~X", help="The slope of one column on another.")
    ] = None,
    level: Annotated[
        float,
        typer.Option("--level", parser=number, metavar="SHARE", help="How often such intervals hold the true value."),
    ] = 0.95,
    force: Annotated[bool, typer.Option("--force", help="Also where pairs were not measured: not reliable.")] = False,
) -> None:
    """Give intervals that hold the noise, or say which pairs a statistic rests on that were not measured.

    It takes a minute or so: tables are drawn from the private reference in the data sheet, and released again.
    """
    from dipriv.release.sheet import load_sheet
    from dipriv.statistics import Mean, Quantile, Share, Slope

    asked: list[Any] = [Mean(name) for name in mean or ()]
    sheet = load_sheet(released)
    asked += [Share(name, sheet.value(name, text)) for name, text in (_two(one, "=", "--share") for one in share or ())]
    asked += [Quantile(name) for name in median or ()]
    asked += [Slope(y, x) for y, x in (_two(one, "~", "--slope") for one in slope or ())]
    if not asked:
        raise typer.BadParameter("name a statistic: --mean, --share, --median or --slope")
    for found in sheet.intervals(asked, level, force=force, progress=True):
        say(str(found))


def _two(text: str, between: str, option: str) -> tuple[str, str]:
    """The texts on both sides of a sign."""
    one, sign, two = text.partition(between)
    if not sign or not one or not two:
        raise typer.BadParameter(f"{option} {text} has no {between} between two names")
    return one, two
