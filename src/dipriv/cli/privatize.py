"""`dipriv privatize`."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dipriv._base.endings import MAY_BE_SPENT, NOTHING_IS_SPENT, if_it_ends
from dipriv.cli import complete
from dipriv.cli import options as opt
from dipriv.cli.terminal import Checks, Progress, refuse_existing, refuse_same_file, say, warn, warnings_as_lines

if TYPE_CHECKING:
    from dipriv.ledger import Dataset, Reservation
    from dipriv.release.options import ReleaseOptions
    from dipriv.release.result import Release


class Engine(StrEnum):
    """Where the work is done."""

    local = "local"
    spark = "spark"


@if_it_ends(NOTHING_IS_SPENT)
def privatize(
    context: typer.Context,
    table: Annotated[
        str,
        typer.Argument(metavar="IN", help=opt.TABLE_HELP[:-1] + "; with Spark a folder or pattern, too."),
    ],
    output: Annotated[str, typer.Option("-o", "--output", metavar="OUT", help="Where to write, or - for a pipe.")],
    epsilon: Annotated[
        float,
        typer.Option(
            "-e", "--epsilon", parser=opt.number, metavar="NUMBER", help="Privacy budget of a row, or person (--unit)."
        ),
    ],
    delta: Annotated[
        float | None,
        typer.Option(
            parser=opt.number,
            metavar="NUMBER",
            help="δ beside ε; 0 for pure ε [default: 1e-9 if the reference is private, else 0].",
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="REFERENCE",
            autocompletion=complete.references,
            help="private (every row protected) or holdout (the paper's: hold-out rows exposed) [default: private, or "
            "the table of --public].",
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            autocompletion=complete.columns,
            help="Column of interest: its dependence on others is kept best.",
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
        typer.Option(
            parser=opt.number, metavar="SHARE", help="Share of rows to hold out [default: none if private, else 0.25]."
        ),
    ] = None,
    public: opt.Public = None,
    unit: opt.Unit = None,
    rows_per_unit: opt.RowsPerUnit = None,
    constant: opt.Constant = None,
    seed: Annotated[int | None, typer.Option(min=0, metavar="N", help="For experiments only: NOT PRIVATE.")] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write an HTML comparison: do not publish it.")
    ] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            autocompletion=complete.datasets,
            help="Name of the data set in the ledger (repeatable: a pooled table has several) [default: that which "
            "the ledger knows the table by, or IN's own name].",
        ),
    ] = None,
    new_dataset: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Name instead of --dataset: the table has other people than others it resembles."
        ),
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            metavar="PLACE",
            envvar="DIPRIV_LEDGER",
            help="Ledger: a file or database URL [default: ledger.db in your own folder for data].",
        ),
    ] = None,
    no_ledger: Annotated[bool, typer.Option("--no-ledger", help="Do not count this release.")] = False,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            autocompletion=complete.formats,
            help="csv, parquet, arrow and others, if IN or OUT does not end in it.",
        ),
    ] = None,
    engine: Annotated[
        Engine, typer.Option(metavar="ENGINE", help="local, or spark: many files in, a folder of Parquet files out.")
    ] = Engine.local,
    escape_formulas: Annotated[
        bool, typer.Option("--escape-formulas", help="In CSV, put ' before texts that a spreadsheet would run.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace OUT if it exists.")] = False,
    as_json: opt.Json = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress bar, no summary.")] = False,
) -> None:
    """Release a table row by row under differential privacy.

    OUT appears whole or not at all, with OUT.dipriv.json beside it: what is guaranteed, to whom. ε and δ are spent in
    the ledger before anything is written, and stay spent if writing fails.
    """
    from dipriv._tables.without_pandas import leave_pandas_out
    from dipriv.dialect import DETECTED
    from dipriv.ledger import Ledger
    from dipriv.release.options import ReleaseOptions
    from dipriv.release.privatize import release_file

    if report is None:
        leave_pandas_out()
    if no_ledger and (dataset or new_dataset or (ledger is not None and "DIPRIV_LEDGER" not in os.environ)):
        raise typer.BadParameter("--dataset, --new-dataset and --ledger have no meaning with --no-ledger")
    checks = Checks()
    checks(refuse_same_file, IN=table, OUT=output, **{"--report": report, "--public": public, "--schema": schema})
    if report is not None:
        from dipriv.report import check_extras

        checks(refuse_existing, report, force=force)
        checks(check_extras)
    declared = checks(opt.load_schema, schema)
    given = checks(opt.given_dialect, sep, decimal, encoding, missing, dates, skip, sheet) or DETECTED
    of_schema = None if declared is None else declared.dialect
    with_engine = _with_spark if engine == Engine.spark else _locally
    names, open_rows, sink = with_engine(
        checks, table, format_, (given, of_schema), output, {"force": force, "escape_formulas": escape_formulas}
    )
    budgets = None if no_ledger else checks(Ledger.open, ledger)
    options = checks(
        ReleaseOptions,
        epsilon,
        delta=delta,
        reference=reference,
        kernel=kernel,
        schema=declared,
        types=opt.given_types(type_),
        dialect=given,
        keep=opt.given_columns(keep, names),
        drop=opt.given_columns(drop, names),
        holdout=holdout,
        public=public,
        unit=unit,
        rows_per_unit=rows_per_unit,
        constant=opt.given_columns(constant, names),
        target=target,
        reference_share=reference_share,
        labels=labels,
        pairs=opt.given_pairs(pair, names),
        ledger=budgets,
        dataset=dataset or None,
        new_dataset=new_dataset or None,
        seed=seed,
    )
    if options is not None and names:
        checks(options.privatized, names)
    options, rows = checks.done(options), open_rows()
    asked = command_line(context)
    for concern in options.concerns():
        warn(f"Warning: {concern}")
    with if_it_ends(MAY_BE_SPENT):
        with warnings_as_lines(), Progress("reading", unit="rows", quiet=quiet) as bar:
            release = release_file(rows, sink, options, sample=report is not None, progress=bar.update, command=asked)
        with _complete(release, output):
            if report is not None:
                _write_report(release, options, report)
            _tell(release, asked, output, report, options, "json" if as_json else "nothing" if quiet else "summary")
    if no_ledger and reference == "holdout" and not quiet:
        warn("Not counted in a ledger: a further release without one would hold out other rows, and expose these.")


_PATHS = ("table", "output", "schema", "public", "report")


def command_line(context: typer.Context) -> str:
    """The command as it was given, for those who get the release: no folder, no seed, and not where a ledger is."""
    words = context.command_path.split()
    for option in context.command.params:
        value: Any = context.params.get(str(option.name))
        is_given = not (value is None or value is False or value in ((), []) or value == option.default)
        if not is_given or option.name == "ledger":
            continue
        for one in value if isinstance(value, list | tuple) else [value]:
            text = "SEED" if option.name == "seed" else Path(one).name if option.name in _PATHS else str(one)
            if option.param_type_name == "option":
                words.append(option.opts[-1])
            if one is not True:
                words.append(text)
    return shlex.join(words)


Opened = tuple[Sequence[str], Callable[[], Any], Any]
"""The names of a table's columns where they are known before it is opened, what opens it, and where rows go."""


def _locally(
    checks: Checks, table: str, format_: str | None, dialects: tuple[Any, Any], output: str, how: dict[str, bool]
) -> Opened:
    from dipriv._sinks import FileSink
    from dipriv.sources.files import File
    from dipriv.sources.stream import open_file

    file = checks(File.at, table, format_, *dialects)
    found = None if file is None else checks(open_file, file)
    names = () if found is None else found.column_names
    if output == "-" and format_ is None:
        format_ = "csv" if file is None else file.format.name
    return names, lambda: found, checks(FileSink.at, output, format_, **how)


def _with_spark(
    checks: Checks, table: str, format_: str | None, dialects: tuple[Any, Any], output: str, how: dict[str, bool]
) -> Opened:
    from dipriv._sinks import FolderSink
    from dipriv.sources.spark.files import SparkFiles

    files = checks(SparkFiles.find, table, format_, *dialects)
    return (), lambda: None if files is None else files.open(), checks(FolderSink.at, output, **how)


@contextmanager
def _complete(release: Release[Any], output: str) -> Iterator[None]:
    """What follows a release may fail; the release is complete all the same, and the error says so."""
    from dipriv.guarantee.wording import spent

    try:
        yield
    except BaseException as error:
        loss = spent(release.guarantee.epsilon, release.guarantee.delta)
        error.add_note(f"The release itself is complete: {_name(output)} is written, and {loss}.")
        raise


def _name(output: str) -> str:
    return "standard output" if output == "-" else Path(output).name


def _tell(
    release: Release[Any],
    command: str,
    output: str,
    report: Path | None,
    options: ReleaseOptions,
    how: Literal["json", "summary", "nothing"],
) -> None:
    """What was released, and what is left of the budget."""
    from dipriv.ledger import Ledger

    written = release.written
    if written is not None and written.formulas and not written.escaped:
        _warn_of_formulas(written.formulas)
    entries: list[tuple[Reservation, Dataset]] = []
    ledger = options.ledger
    if isinstance(ledger, Ledger) and (reservation := release.receipt.reservation) is not None:
        entries = [(one, ledger.dataset(one.dataset)) for one in (reservation, *reservation.also)]
    if how == "json":
        _print_json(release, command, output, report, entries)
    elif how == "summary":
        _print_summary(release, output, report, entries, options.left_out, options.anew)
    sys.stdout.flush()


def _write_report(release: Release[Any], options: ReleaseOptions, report: Path) -> None:
    """A comparison of matching rows."""
    from dipriv.report import compare

    written = release.written
    if written is None or written.sample is None:
        return
    compared = compare(
        *written.sample,
        schema=options.schema,
        guarantee=release.guarantee,
        fidelity=release.fidelity,
        verdict=release.verdict,
        forecast=release.forecast,
        target=options.target,
    )
    compared.write(report)


def _print_json(
    release: Release[Any], command: str, output: str, report: Path | None, entries: list[tuple[Reservation, Dataset]]
) -> None:
    from dipriv.release.writing import sidecar_of

    written = release.written
    formulas, escaped = ({}, False) if written is None else (written.formulas, written.escaped)
    plain = sidecar_of(release, formulas, escaped, command).to_dict()
    plain |= {"output": output, "report": None if report is None else str(report), "ledger": None}
    if entries:
        own, *also = [_as_json(*entry) for entry in entries]
        plain["ledger"] = own | ({"also": also} if also else {})
    print(
        json.dumps(plain, indent=2, ensure_ascii=False, default=str), file=sys.stderr if output == "-" else sys.stdout
    )


def _as_json(reservation: Reservation, account: Dataset) -> dict[str, Any]:
    return {
        "dataset": account.name,
        "release": reservation.number,
        "releases": account.releases,
        "spent": account.spent,
        "budget": account.budget,
        "delta_spent": account.delta_spent,
        "delta_budget": account.delta_budget,
    }


def _print_summary(
    release: Release[Any],
    output: str,
    report: Path | None,
    entries: list[tuple[Reservation, Dataset]],
    left_out: Mapping[str, str],
    anew: Sequence[str],
) -> None:
    from dipriv.guarantee.sidecar import PAGE_SUFFIX

    echo = warn if output == "-" else say
    rows = release.row_counts
    echo(f"Released {rows.released:,} of {rows.read:,} rows to {_name(output)}.")
    if left_out:
        echo(f"Left out, as the schema says: {', '.join(f'{name} ({of})' for name, of in left_out.items())}.")
    if anew:
        echo(f"New identifiers, 1, 2, 3 ... in the order of the rows: {', '.join(anew)}.")
    if rows.dropped:
        most, gone = release.guarantee.unit.max_rows, rows.dropped
        are = "row is" if gone == 1 else "rows are"
        echo(f"{gone:,} {are} left out: at most {most} {'row' if most == 1 else 'rows'} of a person are released.")
    echo(f"\n{release.guarantee}\n")
    if release.verdict is not None:
        echo(f"{release.verdict}\n")
    for reservation, account in entries:
        echo(f"Ledger: data set {account.name!r}, release {reservation.number}, {account}.")
    if output != "-":
        echo(f"Data sheet: {output}{PAGE_SUFFIX} (may be published with the table).")
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
