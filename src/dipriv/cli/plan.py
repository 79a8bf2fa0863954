"""`dipriv plan`: what a release will be good for, before ε is spent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.table import Column, Table

from dipriv.cli import complete
from dipriv.cli import options as opt
from dipriv.cli.terminal import Checks, Progress, out, plain, refuse_existing, refuse_same_file, say

if TYPE_CHECKING:
    from dipriv.utility.plan import Forecast


def plan(
    table: opt.Table,
    epsilon: Annotated[
        list[float] | None,
        typer.Option(
            "-e",
            "--epsilon",
            parser=opt.number,
            metavar="NUMBER",
            help="ε to compare (repeatable) [default: 0.5 1 2 4 8].",
        ),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(parser=opt.number, metavar="NUMBER", help="δ beside ε; 0 for pure ε [default: 1e-9]."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            autocompletion=complete.columns,
            help="Column of interest: its pairs are measured first.",
        ),
    ] = None,
    reference_share: opt.ReferenceShare = None,
    labels: opt.Labels = None,
    pair: opt.Pair = None,
    kernel: opt.Kernel = "optimal",
    schema: opt.Schema = None,
    type_: opt.Type = None,
    missing: opt.Missing = None,
    sep: opt.Separator = None,
    decimal: opt.Decimal = None,
    encoding: opt.Encoding = None,
    dates: opt.Dates = None,
    skip: opt.Skip = None,
    sheet: opt.Sheet = None,
    keep: opt.Keep = None,
    drop: opt.Drop = None,
    holdout: Annotated[
        float | None,
        typer.Option(parser=opt.number, metavar="SHARE", help="Share of rows to hold out [default: none]."),
    ] = None,
    unit: opt.Unit = None,
    rows_per_unit: opt.RowsPerUnit = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Also write a page with a picture.")
    ] = None,
    format_: opt.Format = None,
    force: opt.Force = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the forecast as JSON.")] = False,
) -> None:
    """Say what a release will be good for at several ε, before anything is spent.

    Only public facts are used: the number of rows, names and types of columns, the schema and the options. The
    forecast may be published.
    """
    from dipriv._base.atomic_write import write_text
    from dipriv.dialect import DETECTED
    from dipriv.release.forecast import EPSILONS, plan_source
    from dipriv.sources.files import File
    from dipriv.sources.stream import open_file

    checks = Checks()
    checks(refuse_same_file, IN=table, OUT=output, **{"--schema": schema})
    checks(refuse_existing, output, force=force)
    given = checks(opt.given_dialect, sep, decimal, encoding, missing, dates, skip, sheet) or DETECTED
    declared = checks(opt.load_schema, schema)
    file = checks(File.at, table, format_, given, None if declared is None else declared.dialect)
    source = checks.done(None if file is None else checks(open_file, file))
    names = source.column_names
    with Progress("reading", unit="rows", quiet=as_json) as bar:
        found = plan_source(
            source,
            epsilon or EPSILONS,
            bar.update,
            delta=delta,
            target=target,
            reference_share=reference_share,
            labels=cast("Any", labels),
            pairs=opt.given_pairs(pair, names),
            kernel=kernel,
            schema=declared,
            types=opt.given_types(type_),
            dialect=given,
            keep=opt.given_columns(keep, names),
            drop=opt.given_columns(drop, names),
            holdout=holdout,
            unit=unit,
            rows_per_unit=rows_per_unit,
        )
    if output is not None:
        from dipriv.utility.plan_html import page

        write_text(output, page(found), 0o644)
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
        return
    _print(found)
    if output is not None:
        say(f"\nPage: {output}.")


def _print(found: Forecast) -> None:
    """The columns' errors, what each ε buys, what other options would change, and the recommendation."""
    from dipriv._base.decimals import in_full
    from dipriv.utility.plan_wording import error_range, grouped, pairs, percent, rows

    names = [f"ε = {in_full(one.epsilon)}" for one in found.epsilons]
    say(f"Expected error (total variation) of each column's distribution, {found.rows:,} rows:\n")
    shown = Table(Column("column", overflow="fold"), *names, box=None)
    for name, column in grouped(found):
        shown.add_row(plain(name), *map(error_range, column))
    shown.add_section()
    shown.add_row("[bold]median error[/bold]", *(percent(one.error) for one in found.epsilons))
    shown.add_row("[bold]pairs measured[/bold]", *map(pairs, found.epsilons))
    shown.add_row("[bold]correlation of rows[/bold]", *map(rows, found.epsilons))
    out.print(shown)
    say("\nIn brackets: for few and for many labels or values, where nothing declares how many there are.")
    say(f"\nAt ε = {in_full(found.chosen.epsilon)}, other options would change:")
    for change in found.changes:
        say(f"  {change.text}")
    say(f"\n{found.recommendation}")
