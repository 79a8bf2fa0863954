"""Options that several commands share, each stated once, and what their values mean."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dipriv.cli import complete

if TYPE_CHECKING:
    from dipriv import dialect, schema


def number(text: str) -> float:
    """A number with a decimal point, as all options take it."""
    try:
        return float(text)
    except ValueError:
        point = text.replace(",", ".", 1)
        hint = f"; write {point}" if "," in text and _is_number(point) else ", such as 0.5"
        raise typer.BadParameter(f"{text!r} is not a number{hint}.") from None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


TABLE_HELP = "CSV, TSV, Excel, Stata, SPSS, SAS, JSON lines, Parquet, ORC or Arrow file, or - for a pipe."
Table = Annotated[str, typer.Argument(metavar="IN", help=TABLE_HELP)]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        autocompletion=complete.formats,
        help="csv, parquet, arrow and others, for pipes.",
    ),
]
Schema = Annotated[Path | None, typer.Option(metavar="FILE", help="Public facts about columns, TOML or JSON.")]
Type = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        metavar="NAME=TYPE",
        autocompletion=complete.types,
        help="A text column is text, number (whole or decimal), boolean, date, datetime or time (repeatable).",
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        "--na", "--missing", metavar="MARK", help="Text that marks a missing cell, beside NA, - and such (repeatable)."
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(
        "--sep",
        metavar="SIGN",
        autocompletion=complete.separators,
        help="What separates the cells of a text file; tab for a tab [default: found in its first line].",
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option(
        "--decimal",
        metavar="SIGN",
        autocompletion=complete.decimals,
        help="The decimal mark of numbers in text: . or a comma [default: found in the cells].",
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        metavar="NAME",
        autocompletion=complete.encodings,
        help="Of a text file: latin-1, cp1252, utf-16 ... [default: utf-8, or as its first bytes say].",
    ),
]
Dates = Annotated[
    str | None,
    typer.Option(
        "--dates",
        metavar="ORDER",
        autocompletion=complete.orders,
        help="dmy for 31/12/2024, mdy for 12/31/2024, ymd for neither [default: found in the cells].",
    ),
]
Skip = Annotated[
    int | None,
    typer.Option("--skip", metavar="N", min=0, help="Lines before that with the columns' names [default: 0]."),
]
Sheet = Annotated[str | None, typer.Option("--sheet", metavar="NAME", help="The sheet of a workbook.")]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMNS",
        autocompletion=complete.column_lists,
        help="Columns to pass through unprotected: a,b or repeated.",
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMNS", autocompletion=complete.column_lists, help="Columns to leave out: a,b or repeated."
    ),
]
Labels = Annotated[
    str | None,
    typer.Option(
        metavar="POLICY",
        autocompletion=complete.labels,
        help="For labels that the schema does not list: private (found under δ), declared (refuse) or public "
        "[default: private if the reference is].",
    ),
]
Pair = Annotated[
    list[str] | None,
    typer.Option(
        metavar="A,B", autocompletion=complete.column_lists, help="Columns to measure together first (repeatable)."
    ),
]
Kernel = Annotated[
    str,
    typer.Option(
        metavar="KERNEL",
        autocompletion=complete.kernels,
        help="optimal (keeps most of each row) or laplace (the paper's noise).",
    ),
]
Public = Annotated[Path | None, typer.Option(metavar="FILE", help="Public table to fit the reference on.")]
Unit = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        autocompletion=complete.columns,
        help="Protect persons, not rows: the column that says whose a row is, released with new keys.",
    ),
]
RowsPerUnit = Annotated[
    int | None,
    typer.Option(metavar="N", help="With --unit: how many rows of a person are released at most [default: 10]."),
]
Constant = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMNS",
        autocompletion=complete.column_lists,
        help="With --unit: columns that are constant in a person, released once: a,b or repeated.",
    ),
]
ReferenceShare = Annotated[
    float | None,
    typer.Option(
        parser=number,
        metavar="SHARE",
        help="Part of ε for the private reference [default: the least that a good reference needs].",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def given_types(types: list[str] | None) -> dict[str, Any]:
    """What --type NAME=TYPE says, each time it is given."""
    pairs = [text.rpartition("=") for text in types or ()]
    if wrong := [text for text, (name, _, _) in zip(types or (), pairs, strict=True) if not name]:
        raise typer.BadParameter(f"--type {wrong[0]} has no =; write --type NAME=TYPE, such as --type income=number")
    return {name: column_type for name, _, column_type in pairs}


def given_dialect(
    sep: str | None,
    decimal: str | None,
    encoding: str | None,
    missing: list[str] | None,
    dates: str | None,
    skip: int | None,
    sheet: str | None,
) -> dialect.Dialect:
    """What the options say about how a file is written."""
    from dipriv.dialect import Dialect

    given: dict[str, Any] = {
        "separator": sep,
        "decimal": decimal,
        "encoding": encoding,
        "missing": tuple(missing or ()),
        "dates": dates,
        "skip": skip,
        "sheet": sheet,
    }
    return Dialect(**given)


def given_columns(given: list[str] | None, known: Sequence[str]) -> tuple[str, ...]:
    """What --drop a,b and the like say, each time it is given.

    A column whose name contains a comma is taken as that; else such a name is in double quotes, as in CSV.
    """
    return tuple(name for text in given or () for name in ([text] if text in known else _names(text)))


def given_pairs(pairs: list[str] | None, known: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """What --pair A,B says, each time it is given; with names that contain commas as for `given_columns`."""
    return tuple(_two_names(pair, known) for pair in pairs or ())


def _two_names(pair: str, known: Sequence[str]) -> tuple[str, str]:
    for place, sign in enumerate(pair):
        one, other = pair[:place].strip(), pair[place + 1 :].strip()
        if sign == "," and one in known and other in known:
            return one, other
    names = _names(pair)
    if len(names) != 2:
        raise typer.BadParameter(f"--pair {pair} names {len(names)} columns, not two; quote names that contain a comma")
    return names[0], names[1]


def _names(text: str) -> list[str]:
    """The names in a list with commas; spaces around them do not count."""
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]


def load_schema(path: Path | None) -> schema.Schema | None:
    """The schema in a file, if one is given."""
    from dipriv.schema import Schema

    return None if path is None else Schema.load(path)
