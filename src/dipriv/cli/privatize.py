"""`dipriv privatize`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from dipriv.cli.terminal import Progress, load_schema, refuse_existing, refuse_same_file, say, warn

if TYPE_CHECKING:
    from dipriv.release.publish import ReleasedTable, Request

Release: TypeAlias = "Callable[[Request], ReleasedTable]"


class Engine(StrEnum):
    """Where the work is done."""

    local = "local"
    spark = "spark"


def privatize(
    table: Annotated[
        str,
        typer.Argument(
            metavar="IN", help="CSV, TSV, Parquet or Arrow file, or - for a pipe; with Spark a folder or pattern, too."
        ),
    ],
    output: Annotated[str, typer.Option("-o", "--output", metavar="OUT", help="Where to write, or - for a pipe.")],
    epsilon: Annotated[float, typer.Option("-e", "--epsilon", help="Privacy budget of a row, or person (--unit).")],
    reference: Annotated[
        str, typer.Option(help="private (every row protected) or holdout (the paper's: hold-out rows exposed).")
    ] = "private",
    target: Annotated[
        str | None, typer.Option(help="Column of interest: its dependence on others is kept best.")
    ] = None,
    reference_share: Annotated[
        float | None, typer.Option(help="Part of ε for the private reference [default: p/(p+1) for p columns].")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse text columns whose labels are not declared.")
    ] = False,
    kernel: Annotated[
        str, typer.Option(help="optimal (keeps most of each row) or laplace (the paper's noise).")
    ] = "optimal",
    schema: Annotated[Path | None, typer.Option(help="Public facts about columns, TOML or JSON.")] = None,
    keep: Annotated[list[str] | None, typer.Option(help="Column to pass through unprotected (repeatable).")] = None,
    drop: Annotated[list[str] | None, typer.Option(help="Column to leave out (repeatable).")] = None,
    holdout: Annotated[
        float | None, typer.Option(help="Share of rows to hold out [default: none if private, else 0.25].")
    ] = None,
    public: Annotated[Path | None, typer.Option(help="Public table to fit the reference on.")] = None,
    unit: Annotated[str | None, typer.Option(help="Column that says whose a row is: a person's rows share ε.")] = None,
    rows_per_unit: Annotated[
        int | None, typer.Option(help="With --unit: most rows of one person that are released [default: 10].")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="For experiments only: NOT PRIVATE.")] = None,
    report: Annotated[Path | None, typer.Option(help="Also write an HTML comparison: do not publish it.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Name of the data set in the ledger.")] = None,
    ledger: Annotated[
        str | None, typer.Option(envvar="DIPRIV_LEDGER", help="Ledger: a file or database URL [default: yours].")
    ] = None,
    no_ledger: Annotated[bool, typer.Option("--no-ledger", help="Do not count this release.")] = False,
    format_: Annotated[
        str | None, typer.Option("--format", help="csv, tsv, parquet or arrow, if no name tells.")
    ] = None,
    engine: Annotated[
        Engine, typer.Option(help="local, or spark: many files in, a folder of Parquet files out.")
    ] = Engine.local,
    escape_formulas: Annotated[
        bool, typer.Option("--escape-formulas", help="In CSV, put ' before texts that a spreadsheet would run.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace OUT if it exists.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress bar, no summary.")] = False,
) -> None:
    """Release a table row by row under differential privacy.

    OUT appears whole or not at all, with OUT.dipriv.json beside it: what is promised, to whom. ε is spent in the
    ledger before anything is written, and stays spent if writing fails.
    """
    from dipriv.ledger import Ledger
    from dipriv.release.publish import Request
    from dipriv.sources.files import Source

    _check_options(public=public, reference=reference, holdout=holdout, unit=unit, rows_per_unit=rows_per_unit)
    _check_ledger_options(no_ledger=no_ledger, dataset=dataset, ledger=ledger)
    if engine == Engine.spark:
        _check_spark_options(unit=unit, report=report, dataset=dataset, no_ledger=no_ledger, escaped=escape_formulas)
    refuse_same_file(IN=table, OUT=output, **{"--report": report, "--public": public, "--schema": schema})
    if report is not None:
        refuse_existing(report, force=force)
        from dipriv.report import check_extras

        check_extras()
    most = 10 if rows_per_unit is None else rows_per_unit
    release = (
        _on_spark(table, output, format_, force=force)
        if engine == Engine.spark
        else _here(
            table, output, format_, force=force, escaped=escape_formulas, quiet=quiet, sampled=report is not None
        )
    )
    request = Request(
        epsilon=epsilon,
        reference=reference,
        kernel=kernel,
        schema=load_schema(schema),
        keep=tuple(keep or ()),
        drop=tuple(drop or ()),
        holdout=holdout,
        public=None if public is None else Source.open(public).read(),
        unit=unit,
        rows_per_unit=most,
        target=target,
        reference_share=reference_share,
        strict=strict,
        ledger=None if no_ledger else Ledger.open(ledger),
        dataset=dataset,
        seed=seed,
    )
    done = release(request)
    if done.formulas and not escape_formulas:
        _warn_of(done.formulas)
    if report is not None and done.sample is not None:
        from dipriv.report import compare, write_report

        compared = compare(*done.sample, schema=request.schema, guarantee=done.guarantee, fidelity=done.fidelity)
        write_report(compared, report)
    account = None
    if request.ledger is not None and done.dataset is not None:
        account = request.ledger.dataset(done.dataset)
    if as_json:
        told = done.to_dict() | {"output": output, "report": None if report is None else str(report), "ledger": None}
        if account is not None:
            told["ledger"] = {"releases": account.releases, "spent": account.spent, "budget": account.budget}
        print(json.dumps(told, indent=2, ensure_ascii=False), file=sys.stderr if output == "-" else sys.stdout)
        return
    if quiet:
        return
    tell = warn if output == "-" else say
    name = "standard output" if output == "-" else Path(output).name
    tell(f"Released {done.released:,} of {done.rows:,} rows to {name}.")
    if unit is not None:
        tell(f"Of each {unit!r} at most {most} rows were used, with ε/{most} each: {done.cut:,} rows cut.")
    tell(f"\n{done.guarantee}\n")
    if account is not None:
        left = "no budget is set" if account.left is None else f"{account.left:g} of {account.budget:g} left"
        tell(f"Ledger: data set {account.name!r}, release {account.releases}, ε spent {account.spent:g}, {left}.")
    if report is not None:
        tell(f"Report: {report} (contains statistics of the private data; do not publish).")
    if no_ledger and reference == "holdout":
        warn("Not counted in a ledger: a further release without one would hold out other rows, and expose these.")


def _here(
    table: str, output: str, format_: str | None, *, force: bool, escaped: bool, quiet: bool, sampled: bool
) -> Release:
    """A file into a file, in this process."""
    from dipriv.release.publish import publish
    from dipriv.sources.files import Sink, Source

    source = Source.open(table, format_)
    sink = Sink.open(output, format_, force=force, escape_formulas=escaped)
    if escaped and sink.format not in ("csv", "tsv"):
        raise typer.BadParameter("--escape-formulas has no meaning for a format that spreadsheets do not open as text")

    def release(request: Request) -> ReleasedTable:
        with Progress("reading", unit="rows", quiet=quiet) as bar:
            return publish(request, source, sink, bar.update, sampled=sampled)

    return release


def _on_spark(table: str, output: str, format_: str | None, *, force: bool) -> Release:
    """Files into a folder, by the workers of a cluster."""
    from dipriv.sources.spark.files import Files, Folder, publish

    files, folder = Files.find(table, format_), Folder.open(output, force=force)
    return lambda request: publish(request, files, folder)


def _check_ledger_options(*, no_ledger: bool, dataset: str | None, ledger: str | None) -> None:
    if no_ledger and (dataset is not None or (ledger is not None and "DIPRIV_LEDGER" not in os.environ)):
        raise typer.BadParameter("--dataset and --ledger have no meaning with --no-ledger")


def _warn_of(formulas: dict[str, int]) -> None:
    """A count of released texts is a fact about the release."""
    name, count = max(formulas.items(), key=lambda item: item[1])
    others = f" (and {len(formulas) - 1} more columns)" if len(formulas) > 1 else ""
    warn(
        f"Column {name!r}{others}: {count:,} texts begin like formulas, which a spreadsheet runs when it opens them. "
        "Import the file as text, or write it with --escape-formulas."
    )


def _check_spark_options(
    *, unit: str | None, report: Path | None, dataset: str | None, no_ledger: bool, escaped: bool
) -> None:
    """What Spark does not do yet is wrong usage."""
    if escaped:
        raise typer.BadParameter("--escape-formulas has no meaning for Parquet, which Spark writes")
    if unit is not None:
        raise typer.BadParameter("--unit needs the local engine")
    if report is not None:
        raise typer.BadParameter("--report needs the local engine: use dipriv compare on some of the files")
    if dataset is None and not no_ledger:
        raise typer.BadParameter("with --engine spark the ledger needs the data set's name: --dataset, or --no-ledger")


def _check_options(
    *, public: Path | None, reference: str, holdout: float | None, unit: str | None, rows_per_unit: int | None
) -> None:
    """Options that would have no effect are wrong usage."""
    if public is not None and (holdout is not None or reference == "holdout"):
        raise typer.BadParameter("with --public nothing is held out: leave --holdout and --reference out")
    if unit is None and rows_per_unit is not None:
        raise typer.BadParameter("--rows-per-unit has no meaning without --unit")
