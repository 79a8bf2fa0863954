"""`dipriv inspect` and `dipriv compare`: look at a table, and at a release beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dipriv.cli import complete
from dipriv.cli import options as opt
from dipriv.cli.terminal import plain, refuse_existing, refuse_same_file, say

if TYPE_CHECKING:
    from dipriv.dialect import Dialect
    from dipriv.schema import Schema
    from dipriv.sources.files import File
    from dipriv.utility.verdict import Verdict


def inspect(
    table: opt.Table,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write a draft schema (TOML) to edit.")
    ] = None,
    type_: opt.Type = None,
    missing: opt.Missing = None,
    schema: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Check this schema, rules included, against the table.")
    ] = None,
    sep: opt.Separator = None,
    decimal: opt.Decimal = None,
    encoding: opt.Encoding = None,
    dates: opt.Dates = None,
    skip: opt.Skip = None,
    sheet: opt.Sheet = None,
    format_: opt.Format = None,
    force: opt.Force = False,
) -> None:
    """Show what each column looks like to dipriv: range, frequent values, problems, and what to declare. It is private.

    The draft schema declares what the types of columns say, and what columns seem to be; what else was read from the
    rows is in comments. Edit it.
    """
    from dipriv._base.atomic_write import write_text
    from dipriv.inspection import inspect_file
    from dipriv.sources.files import File

    refuse_same_file(IN=table, OUT=output)
    refuse_existing(output, force=force)
    stated = opt.load_schema(schema)
    given = opt.given_dialect(sep, decimal, encoding, missing, dates, skip, sheet)
    given = given.over(None if stated is None else stated.dialect)
    file, types = File.at(table, format_, given), opt.given_types(type_)
    found = inspect_file(file, types, given, stated)
    say(found.summary())
    if stated is not None:
        _check_schema(file, stated, types, given)
    if output is not None:
        write_text(output, found.schema_toml(), 0o600)
        say(f"Draft schema: {output} (made from the private rows: edit it, and do not publish it as it is).")


def _check_schema(file: File, schema: Schema, types: dict[str, Any], given: Dialect) -> None:
    from dipriv.release.schema_check import check_schema
    from dipriv.sources.stream import open_file

    broken = check_schema(open_file(file), schema, types=types, dialect=given)
    gone = f", {len(schema.left_out)} of them left out" if schema.left_out else ""
    declared = _number(len(schema) + len(schema.left_out), "column")
    say(f"\nThe schema fits the table: {declared} declared{gone}, {_number(len(broken), 'rule')}.")
    for text, count in broken.items():
        breaks = f"{count:,} rows break" if count > 1 else "1 row breaks"
        said = "holds in all rows" if not count else f"{breaks} it (private: do not publish this number)"
        say(f"  {plain(text)}: {said}")


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def compare(
    original: Annotated[str, typer.Argument(metavar="ORIGINAL", help="The private table.")],
    released: Annotated[str, typer.Argument(metavar="RELEASED", help="The released table.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The report.")] = Path("report.html"),
    target: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            autocompletion=complete.columns,
            help="Also run the same regression of this column on both.",
        ),
    ] = None,
    schema: opt.Schema = None,
    type_: opt.Type = None,
    missing: opt.Missing = None,
    sep: opt.Separator = None,
    decimal: opt.Decimal = None,
    encoding: opt.Encoding = None,
    dates: opt.Dates = None,
    skip: opt.Skip = None,
    sheet: opt.Sheet = None,
    force: opt.Force = False,
) -> None:
    """Compare a release with its original: one HTML file, which is private itself.

    Rows are matched where both tables have equally many, as with a private or public reference.
    """
    from dipriv.guarantee.sidecar import read_sidecar
    from dipriv.report import compare as summarize
    from dipriv.sources.files import File, read_alike

    refuse_same_file(ORIGINAL=original, RELEASED=released, OUT=output, **{"--schema": schema})
    refuse_existing(output, force=force)
    declared = opt.load_schema(schema)
    given = opt.given_dialect(sep, decimal, encoding, missing, dates, skip, sheet)
    of_schema = None if declared is None else declared.dialect
    source = File.at(original, None, given, of_schema)
    tables = read_alike(source, File.at(released), declared, opt.given_types(type_), given.over(of_schema))
    sidecar = read_sidecar(released)
    stated: dict[str, Any] = (
        {}
        if sidecar is None
        else {"guarantee": sidecar.guarantee, "fidelity": sidecar.fidelity, "verdict": _verdict(sidecar.verdict)}
    )
    weights = None if sidecar is None else _weights(sidecar.schema)
    comparison = summarize(*tables, schema=declared or weights, target=target, **stated)
    comparison.write(output)
    if comparison.verdict is not None:
        say(f"As the release says of itself, without the private table:\n{comparison.verdict}\n")
        say("As the private table shows:")
    say(f"{comparison}\n")
    say(f"Report: {output} (contains statistics of the private data; do not publish).")


def _weights(plain: Any) -> Schema | None:
    """Of the schema of a sidecar the weights, which were rescaled; None if dipriv could not have written it."""
    from dipriv.errors import DiprivError
    from dipriv.schema import Schema, Weight

    try:
        found = {} if plain is None else Schema.from_dict(plain)
    except DiprivError:
        return None
    return Schema({name: kind for name, kind in found.items() if isinstance(kind, Weight)})


def _verdict(plain: Any) -> Verdict | None:
    """The verdict of a sidecar; None if it is not one that dipriv could have written: anybody may have written it."""
    from dipriv.errors import InputError
    from dipriv.utility.verdict import Verdict

    try:
        return None if plain is None else Verdict.from_dict(plain)
    except InputError:
        return None
