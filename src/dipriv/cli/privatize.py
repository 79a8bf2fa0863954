"""`dipriv privatize`."""

from __future__ import annotations

import csv
import json
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dipriv.cli.terminal import (
    MissingOption,
    Progress,
    TypeOption,
    given_types,
    load_schema,
    refuse_existing,
    refuse_same_file,
    say,
    warn,
)

if TYPE_CHECKING:
    from dipriv.ledger import Dataset
    from dipriv.release.options import ReleaseOptions
    from dipriv.release.result import Release


class Engine(StrEnum):
    """Where the work is done."""

    local = "local"
    spark = "spark"


class Labels(StrEnum):
    """Where labels come from that the schema does not list."""

    private = "private"
    declared = "declared"
    public = "public"


def privatize(
    table: Annotated[
        str,
        typer.Argument(
            metavar="IN", help="CSV, TSV, Parquet or Arrow file, or - for a pipe; with Spark a folder or pattern, too."
        ),
    ],
    output: Annotated[str, typer.Option("-o", "--output", metavar="OUT", help="Where to write, or - for a pipe.")],
    epsilon: Annotated[float, typer.Option("-e", "--epsilon", help="Privacy budget of a row, or person (--unit).")],
    delta: Annotated[
        float | None, typer.Option(help="δ beside ε; 0 for pure ε [default: 1e-9 if the reference is private, else 0].")
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(help="private (every row protected) or holdout (the paper's: hold-out rows exposed)."),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Column of interest: its dependence on others is kept best.")
    ] = None,
    reference_share: Annotated[
        float | None, typer.Option(help="Part of ε for the private reference [default: p/(p+1) for p columns].")
    ] = None,
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
    kernel: Annotated[
        str, typer.Option(help="optimal (keeps most of each row) or laplace (the paper's noise).")
    ] = "optimal",
    schema: Annotated[Path | None, typer.Option(help="Public facts about columns, TOML or JSON.")] = None,
    type_: TypeOption = None,
    missing: MissingOption = None,
    keep: Annotated[list[str] | None, typer.Option(help="Column to pass through unprotected (repeatable).")] = None,
    drop: Annotated[list[str] | None, typer.Option(help="Column to leave out (repeatable).")] = None,
    holdout: Annotated[
        float | None, typer.Option(help="Share of rows to hold out [default: none if private, else 0.25].")
    ] = None,
    public: Annotated[Path | None, typer.Option(help="Public table to fit the reference on.")] = None,
    unit: Annotated[
        str | None, typer.Option(help="Protect persons, not rows: the column that says whose a row is.")
    ] = None,
    rows_per_unit: Annotated[
        int | None, typer.Option(help="With --unit: how many rows of a person are released at most [default: 10].")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="For experiments only: NOT PRIVATE.")] = None,
    report: Annotated[Path | None, typer.Option(help="Also write an HTML comparison: do not publish it.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Name of the data set in the ledger.")] = None,
    new_dataset: Annotated[
        str | None,
        typer.Option(help="Name instead of --dataset: the table has other people than the data sets it resembles."),
    ] = None,
    ledger: Annotated[
        str | None, typer.Option(envvar="DIPRIV_LEDGER", help="Ledger: a file or database URL [default: yours].")
    ] = None,
    no_ledger: Annotated[bool, typer.Option("--no-ledger", help="Do not count this release.")] = False,
    format_: Annotated[
        str | None, typer.Option("--format", help="csv, tsv, parquet or arrow, if no file name ends in it.")
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

    OUT appears whole or not at all, with OUT.dipriv.json beside it: what is guaranteed, to whom. ε and δ are spent in
    the ledger before anything is written, and stay spent if writing fails.
    """
    from dipriv.ledger import Ledger
    from dipriv.release.options import ReleaseOptions
    from dipriv.release.privatize import release_file
    from dipriv.sources.files import File

    named = dataset is not None or new_dataset is not None
    if no_ledger and (named or (ledger is not None and "DIPRIV_LEDGER" not in os.environ)):
        raise typer.BadParameter("--dataset, --new-dataset and --ledger have no meaning with --no-ledger")
    refuse_same_file(IN=table, OUT=output, **{"--report": report, "--public": public, "--schema": schema})
    if report is not None:
        refuse_existing(report, force=force)
        from dipriv.report import check_extras

        check_extras()
    found: Any
    sink: Any
    if engine == Engine.spark:
        from dipriv._sinks import FolderSink
        from dipriv.sources.spark.files import SparkFiles

        files = SparkFiles.find(table, format_)
        sink = FolderSink.at(output, force=force, escape_formulas=escape_formulas)
    else:
        from dipriv._sinks import FileSink
        from dipriv.sources.stream import open_file

        found = open_file(File.at(table, format_))
        sink = FileSink.at(output, format_, force=force, escape_formulas=escape_formulas)
    options = ReleaseOptions(
        epsilon,
        delta=delta,
        reference=reference,
        kernel=kernel,
        schema=load_schema(schema),
        types=given_types(type_),
        missing=tuple(missing or ()),
        keep=tuple(keep or ()),
        drop=tuple(drop or ()),
        holdout=holdout,
        public=public,
        unit=unit,
        rows_per_unit=rows_per_unit,
        target=target,
        reference_share=reference_share,
        labels=None if labels is None else labels.value,
        pairs=tuple(map(_two_names, pair or ())),
        ledger=None if no_ledger else Ledger.open(ledger),
        dataset=dataset,
        new_dataset=new_dataset,
        seed=seed,
    )
    if engine == Engine.spark:
        found = files.open()
    for concern in options.concerns():
        warn(f"Warning: {concern}")
    with Progress("reading", unit="rows", quiet=quiet) as bar:
        release = release_file(found, sink, options, sample=report is not None, progress=bar.update)
    written = release.written
    if written is not None and written.formulas and not escape_formulas:
        _warn_of_formulas(written.formulas)
    if report is not None:
        _write_report(release, options, report, output)
    account = None
    if isinstance(options.ledger, Ledger) and release.dataset is not None:
        account = options.ledger.dataset(release.dataset)
    if as_json:
        _print_json(release, output, report, account)
    elif not quiet:
        _print_summary(release, output, report, account)
    if no_ledger and reference == "holdout" and not quiet:
        warn("Not counted in a ledger: a further release without one would hold out other rows, and expose these.")


def _two_names(pair: str) -> tuple[str, str]:
    """Column names on both sides of a comma; a name that contains one is in double quotes, as in CSV."""
    names = next(csv.reader([pair], skipinitialspace=True), [])
    if len(names) != 2:
        raise typer.BadParameter(f"--pair {pair} names {len(names)} columns, not two; quote names that contain a comma")
    return names[0], names[1]


def _write_report(release: Release[Any], options: ReleaseOptions, report: Path, output: str) -> None:
    """A comparison of matching rows; if it fails, the release is complete all the same, and the error says so."""
    from dipriv.guarantee.wording import spent
    from dipriv.report import compare, write_report
    from dipriv.schema import Schema

    written, schema = release.written, options.schema
    if written is None or written.sample is None:
        return
    declared = schema if isinstance(schema, Schema) else None
    try:
        compared = compare(*written.sample, schema=declared, guarantee=release.guarantee, fidelity=release.fidelity)
        write_report(compared, report)
    except BaseException as error:
        loss = spent(release.guarantee.epsilon, release.guarantee.delta)
        error.add_note(f"The release itself is complete: {output} is written, and {loss}.")
        raise


def _print_json(release: Release[Any], output: str, report: Path | None, account: Dataset | None) -> None:
    from dipriv.release.writing import sidecar_of

    written = release.written
    plain = sidecar_of(release, *((written.formulas, written.escaped) if written else ())).to_dict()
    plain |= {"output": output, "report": None if report is None else str(report), "ledger": None}
    reservation = release.receipt.reservation
    if account is not None:
        plain["ledger"] = {
            "release": None if reservation is None else reservation.number,
            "releases": account.releases,
            "spent": account.spent,
            "budget": account.budget,
            "delta_spent": account.delta_spent,
            "delta_budget": account.delta_budget,
        }
    print(json.dumps(plain, indent=2, ensure_ascii=False), file=sys.stderr if output == "-" else sys.stdout)


def _print_summary(release: Release[Any], output: str, report: Path | None, account: Dataset | None) -> None:
    from dipriv.guarantee.sidecar import sidecar_path

    echo = warn if output == "-" else say
    name = "standard output" if output == "-" else Path(output).name
    rows = release.row_counts
    echo(f"Released {rows.released:,} of {rows.read:,} rows to {name}.")
    if rows.dropped:
        echo(f"Contribution bounding dropped {rows.dropped:,} rows.")
    echo(f"\n{release.guarantee}\n")
    if release.verdict is not None:
        more = report if report is not None else None if output == "-" else sidecar_path(output)
        echo(str(release.verdict) + ("" if more is None else f"\n  Details: {more}") + "\n")
    if account is not None and release.receipt.reservation is not None:
        echo(f"Ledger: data set {account.name!r}, release {release.receipt.reservation.number}, {account}.")
    if report is not None:
        echo(f"Report: {report} (contains statistics of the private data; do not publish).")


def _warn_of_formulas(formulas: dict[str, int]) -> None:
    """A count of released texts is a fact about the release."""
    name, count = max(formulas.items(), key=lambda item: item[1])
    others = f" (and {len(formulas) - 1} more columns)" if len(formulas) > 1 else ""
    warn(
        f"Column {name!r}{others}: {count:,} texts begin like formulas, which a spreadsheet runs when it opens them. "
        "Import the file as text, or write it with --escape-formulas."
    )
