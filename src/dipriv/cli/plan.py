"""`dipriv plan`: what a release will be good for, before ε is spent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from dipriv.cli.privatize import Labels, two_names
from dipriv.cli.terminal import (
    MissingOption,
    Progress,
    TypeOption,
    given_types,
    load_schema,
    out,
    plain,
    refuse_existing,
    refuse_same_file,
    say,
)

if TYPE_CHECKING:
    from dipriv.utility.plan import Forecast


def plan(
    table: Annotated[str, typer.Argument(metavar="IN", help="CSV, TSV, Parquet or Arrow file, or - for a pipe.")],
    epsilon: Annotated[
        list[float] | None, typer.Option("-e", "--epsilon", help="ε to compare (repeatable) [default: 0.5 1 2 4 8].")
    ] = None,
    delta: Annotated[float | None, typer.Option(help="δ beside ε; 0 for pure ε [default: 1e-9].")] = None,
    target: Annotated[str | None, typer.Option(help="Column of interest: its pairs are measured first.")] = None,
    reference_share: Annotated[float | None, typer.Option(help="Part of ε for the private reference.")] = None,
    labels: Annotated[
        Labels | None,
        typer.Option(
            metavar="POLICY",
            help="For labels that the schema does not list: private (found under δ), declared (refuse) or public.",
        ),
    ] = None,
    pair: Annotated[
        list[str] | None, typer.Option(metavar="A,B", help="Columns to measure together first (repeatable).")
    ] = None,
    kernel: Annotated[str, typer.Option(help="optimal or laplace.")] = "optimal",
    schema: Annotated[Path | None, typer.Option(help="Public facts about columns, TOML or JSON.")] = None,
    type_: TypeOption = None,
    missing: MissingOption = None,
    keep: Annotated[list[str] | None, typer.Option(help="Column to pass through unprotected (repeatable).")] = None,
    drop: Annotated[list[str] | None, typer.Option(help="Column to leave out (repeatable).")] = None,
    holdout: Annotated[float | None, typer.Option(help="Share of rows to hold out [default: none].")] = None,
    unit: Annotated[
        str | None, typer.Option(help="Protect persons, not rows: the column that says whose a row is.")
    ] = None,
    rows_per_unit: Annotated[
        int | None, typer.Option(help="With --unit: how many rows of a person are released at most [default: 10].")
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Also write a page with a picture.")] = None,
    format_: Annotated[str | None, typer.Option("--format", help="csv, tsv, parquet or arrow, for pipes.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the forecast as JSON.")] = False,
) -> None:
    """Say what a release will be good for at several ε, before anything is spent.

    Only public facts are used: the number of rows, names and types of columns, the schema and the options. The
    forecast may be published.
    """
    from dipriv._base.atomic_write import write_text
    from dipriv.release.forecast import EPSILONS, plan_source
    from dipriv.sources.files import File
    from dipriv.sources.stream import open_file

    refuse_same_file(IN=table, OUT=output, **{"--schema": schema})
    refuse_existing(output, force=force)
    with Progress("reading", unit="rows", quiet=as_json) as bar:
        found = plan_source(
            open_file(File.at(table, format_)),
            epsilon or EPSILONS,
            bar.update,
            delta=delta,
            target=target,
            reference_share=reference_share,
            labels=None if labels is None else labels.value,
            pairs=tuple(map(two_names, pair or ())),
            kernel=kernel,
            schema=load_schema(schema),
            types=given_types(type_),
            missing=tuple(missing or ()),
            keep=tuple(keep or ()),
            drop=tuple(drop or ()),
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
    shown = Table("column", *names, box=None)
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
