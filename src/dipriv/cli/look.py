"""`dipriv inspect` and `dipriv compare`: look at a table, and at a release beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from dipriv.cli.terminal import (
    MissingOption,
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
    from dipriv.utility.verdict import Verdict

ForceOption = Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")]
FormatOption = Annotated[str | None, typer.Option("--format", help="csv, tsv, parquet or arrow, for pipes.")]


def inspect(
    table: Annotated[str, typer.Argument(metavar="IN", help="CSV, TSV, Parquet or Arrow file, or - for a pipe.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write a draft schema (TOML) to edit.")] = None,
    type_: TypeOption = None,
    missing: MissingOption = None,
    format_: FormatOption = None,
    force: ForceOption = False,
) -> None:
    """Show what each column looks like to dipriv, and which facts would be read from the data.

    The draft schema is made from the private rows: what it declares is taken as public. Edit it before use.
    """
    from dipriv._base.atomic_write import write_text
    from dipriv.inspection import inspect_file
    from dipriv.sources.files import File

    refuse_same_file(IN=table, OUT=output)
    refuse_existing(output, force=force)
    found = inspect_file(File.at(table, format_), given_types(type_), missing or ())
    shown = Table("column", "type", "taken as", "nulls", "distinct", "warning", "would be read from the data", box=None)
    for column in found.columns:
        shown.add_row(
            plain(column.name),
            plain(column.storage),
            ("undecided" if column.undecided else "refused") if column.kind is None else column.kind.name,
            f"{column.nulls:,}",
            f"{column.distinct:,}",
            column.warning or "",
            ", ".join(column.facts),
        )
    out.print(shown)
    for column in found.columns:
        if column.undecided:
            say(f"\nUndecided {column.refused}: say so with --type.")
    say(f"\n{found.rows:,} rows.")
    if output is not None:
        write_text(output, found.schema_toml(), 0o600)
        say(f"Draft schema: {output} (made from the private rows: edit it, and do not publish it as it is).")


def compare(
    original: Annotated[str, typer.Argument(help="The private table.")],
    released: Annotated[str, typer.Argument(help="The released table.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The report.")] = Path("report.html"),
    target: Annotated[str | None, typer.Option(help="Also run the same regression of this column on both.")] = None,
    schema: Annotated[Path | None, typer.Option(help="Public facts about columns, TOML or JSON.")] = None,
    type_: TypeOption = None,
    missing: MissingOption = None,
    force: ForceOption = False,
) -> None:
    """Compare a release with its original: one HTML file, which is private itself.

    Rows are matched where both tables have equally many, as with a private or public reference.
    """
    from dipriv.guarantee.sidecar import read_sidecar
    from dipriv.report import compare as summarize
    from dipriv.sources.files import File, read_alike

    refuse_same_file(ORIGINAL=original, RELEASED=released, OUT=output, **{"--schema": schema})
    refuse_existing(output, force=force)
    declared = load_schema(schema)
    tables = read_alike(File.at(original), File.at(released), declared, given_types(type_), missing or ())
    sidecar = read_sidecar(released)
    stated: dict[str, Any] = (
        {}
        if sidecar is None
        else {"guarantee": sidecar.guarantee, "fidelity": sidecar.fidelity, "verdict": _verdict(sidecar.verdict)}
    )
    comparison = summarize(*tables, schema=declared, target=target, **stated)
    comparison.write(output)
    say(f"{comparison}\n")
    say(f"Report: {output} (contains statistics of the private data; do not publish).")


def _verdict(plain: Any) -> Verdict | None:
    """The verdict of a sidecar; None if it is not one that dipriv could have written: anybody may have written it."""
    from dipriv.errors import InputError
    from dipriv.utility.verdict import Verdict

    try:
        return None if plain is None else Verdict.from_dict(plain)
    except InputError:
        return None
