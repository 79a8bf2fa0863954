"""`dipriv audit`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from dipriv._base.decimals import in_short
from dipriv.cli import complete
from dipriv.cli import options as opt
from dipriv.cli.terminal import (
    Checks,
    Progress,
    errors_exit_with,
    out,
    plain,
    refuse_existing,
    refuse_same_file,
    say,
    warn,
)

if TYPE_CHECKING:
    from dipriv.auditing import AttackResult, Audit, Bound, Exact

MAX_WIDTH = 10_000
"""Of a table that is written to a file or a pipe, in characters."""


@errors_exit_with(2)
def audit(
    table: opt.Table,
    epsilon: Annotated[
        float,
        typer.Option(
            "-e", "--epsilon", parser=opt.number, metavar="NUMBER", help="The claim: privacy budget of a row."
        ),
    ],
    delta: Annotated[
        float | None,
        typer.Option(
            parser=opt.number,
            metavar="NUMBER",
            help="The claimed δ [default: 1e-9 if the reference is private, else 0].",
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="REFERENCE",
            autocompletion=complete.references,
            help="private or holdout [default: private, or the table of --public].",
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", autocompletion=complete.columns, help="Column of interest of a private reference."
        ),
    ] = None,
    reference_share: opt.ReferenceShare = None,
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
    unit: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            autocompletion=complete.columns,
            help="Audit the promise to a person: the column that says whose a row is.",
        ),
    ] = None,
    rows_per_unit: opt.RowsPerUnit = None,
    constant: opt.Constant = None,
    secret: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            autocompletion=complete.columns,
            help="Column that an attacker wants to know [default: each in turn].",
        ),
    ] = None,
    draws: Annotated[int, typer.Option(metavar="N", help="Rows to draw for the bound on ε.")] = 2_000_000,
    confidence: Annotated[
        float, typer.Option(parser=opt.number, metavar="SHARE", help="Of each bound and interval.")
    ] = 0.999,
    control: Annotated[
        float,
        typer.Option(parser=opt.number, metavar="SHARE", help="Share of the rows in the control group of the attacks."),
    ] = 0.3,
    seed: Annotated[int | None, typer.Option(min=0, metavar="N", help="Make the audit repeatable.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Also write the results, as JSON.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write an HTML report: do not publish it.")
    ] = None,
    format_: opt.Format = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress bar.")] = False,
) -> None:
    """Audit a release of this table: lower bounds on ε beside the claim, and attacks with a control group.

    Nothing is published, and no ε is spent. With --unit the guarantee of a person with several rows is audited.

    Exit code: 0 if nothing refutes the claim, 1 if something does, 2 after an error.
    """
    from dipriv._base.atomic_write import write_text
    from dipriv._tables.arrow import is_text
    from dipriv._tables.column_types import TypeRules
    from dipriv.auditing.run import audit as run_audit
    from dipriv.dialect import DETECTED
    from dipriv.sources.files import File

    checks = Checks()
    checks(refuse_same_file, IN=table, OUT=output, **{"--report": report, "--public": public, "--schema": schema})
    for path in (output, report):
        checks(refuse_existing, path, force=force)
    if report is not None:
        from dipriv.report import check_extras

        checks(check_extras)
    declared = checks(opt.load_schema, schema)
    given = checks(opt.given_dialect, sep, decimal, encoding, missing, dates, skip, sheet) or DETECTED
    of_schema = None if declared is None else declared.dialect
    types, dialect = opt.given_types(type_), given.over(of_schema)
    file = checks(File.at, table, format_, given, of_schema)
    rows = checks.done(file).read(TypeRules.of(declared or {}, types, dialect))
    options: dict[str, Any] = {
        "delta": delta,
        "reference": reference,
        "kernel": kernel,
        "schema": declared,
        "types": {name: of for name, of in types.items() if name not in rows.column_names or is_text(rows[name].type)},
        "missing": dialect.missing,
        "keep": opt.given_columns(keep, rows.column_names),
        "drop": opt.given_columns(drop, rows.column_names),
        "holdout": holdout,
        "public": None
        if public is None
        else File.at(public, otherwise=dialect).read(TypeRules.like(rows.schema, dialect)),
        "target": target,
        "reference_share": reference_share,
        "unit": unit,
        "rows_per_unit": rows_per_unit,
        "constant": opt.given_columns(constant, rows.column_names),
    }
    with Progress("auditing", unit="%", quiet=quiet) as bar:

        def progress(what: str, done: float, total: float | None) -> None:
            bar.update(what, round(100 * done / (total or 1)), 100)

        found = run_audit(
            rows,
            epsilon,
            secret=secret,
            draws=draws,
            confidence=confidence,
            control=control,
            seed=seed,
            progress=progress,
            **options,
        )
    text = json.dumps(found.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)
    if output is not None:
        write_text(output, text + "\n", 0o600)
    if report is not None:
        _write_report(rows, epsilon, found, report, options, seed)
    if as_json:
        typer.echo(text)
    else:
        _show(found)
        for what, path in (("Results", output), ("Report", report)):
            if path is not None:
                say(f"{what}: {path}")
        from dipriv.guarantee.wording import PRIVATE

        say(f"\n{PRIVATE}")
    if not found.passed:
        if as_json:
            warn(found.conclusion)
        raise typer.Exit(1)


def _write_report(
    rows: Any, epsilon: float, found: Audit, path: Path, options: dict[str, Any], seed: int | None
) -> None:
    """A comparison of the table with a release that is not published, and the results of the audit."""
    import numpy as np

    from dipriv.auditing.procedure import Privatize
    from dipriv.report import compare

    sequence = None if seed is None else np.random.SeedSequence([seed, 1])  # the audit uses [seed]
    release = Privatize(epsilon, options).release(rows, sequence)
    compare(rows.select(release.data.column_names), release, audit=found).write(path)


def _show(found: Audit) -> None:
    """Print the results as tables: folded to the width of a terminal, elsewhere one line for each entry."""
    from dipriv.auditing.results import Scope, as_percent

    bounds = _table("ε of", "verdict", "claimed", "bound", "confidence", "draws")
    rows: list[tuple[Bound | Exact, str, str, str]] = [
        *((one, f"{one.lower:.3g}", as_percent(one.confidence), f"{one.draws:,}") for one in found.bounds),
        *((one, f"{one.epsilon:.3g}", "exact", "") for one in found.exact),
    ]
    for scope in Scope:
        of_scope = [row for row in rows if row[0].scope is scope]
        if of_scope:
            bounds.add_row(f"[bold]{scope}[/bold]")
        for one, *numbers in of_scope:
            bounds.add_row(plain(one.what), _verdict(one), _claim(one), *numbers)
    attacks = _table("attack", "verdict", "people", "control", "gain", "interval", "claim allows")
    for attack in found.attacks:
        gain = attack.advantage
        attacks.add_row(
            plain(attack.name),
            _verdict(attack),
            f"{attack.targets.value:.3f}",
            f"{attack.control.value:.3f}",
            f"{gain.value:+.3f}",
            f"{gain.lower:+.3f} to {gain.upper:+.3f}",
            "" if attack.allowed is None else f"{attack.allowed:.3f}",
        )
    for shown in (bounds, attacks):
        if not out.is_terminal:
            shown.width = out.measure(shown, options=out.options.update(width=MAX_WIDTH)).maximum
        out.print(shown)
        out.print()
    if found.checks:
        say(f"{sum(check.passed for check in found.checks)} of {len(found.checks)} checks hold.")
    for remark in found.remarks:
        say(remark)
    say(f"\n{found.headline[0].upper()}{found.headline[1:]}.")
    (say if found.passed else warn)(found.conclusion)


def _table(*names: str) -> Table:
    """A table whose cells are never cut: long ones are folded, the widest column first."""
    shown = Table(*names, box=None, pad_edge=False, collapse_padding=True)
    for column in shown.columns:
        column.overflow = "fold"
    return shown


def _claim(finding: Bound | Exact) -> str:
    """The claimed ε, and δ where it is not 0; the bound is at this δ."""
    return f"{finding.claimed:.3g}" + (f", δ {in_short(finding.delta)}" if finding.delta else "")


def _verdict(finding: Bound | Exact | AttackResult) -> str:
    return f"[bold red]{finding.verdict}[/bold red]" if finding.exceeded else finding.verdict
