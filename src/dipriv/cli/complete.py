"""What a shell offers when a value is being typed: values of options, columns of the table, names of data sets.

Of a table only the names of its columns are read. Errors are silent: nothing is offered then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import get_args

import typer

Completion = Callable[[typer.Context, str], list[str]]

MAX_BYTES = 1 << 23
"""Of a file that can only be read whole, such as a workbook: larger ones would take too long."""


def _silent(find: Callable[[typer.Context, str], Iterable[str]]) -> Completion:
    """Those of the found values that begin as what is typed; none after an error."""

    def offered(context: typer.Context, incomplete: str) -> list[str]:
        try:
            return [value for value in find(context, incomplete) if value.startswith(incomplete)]
        except Exception:  # a shell shows what a completion prints or raises in the middle of a line
            return []

    return offered


def _one_of(*values: str) -> Completion:
    return _silent(lambda context, incomplete: values)


def _columns(context: typer.Context) -> list[str]:
    """The columns of the file that is typed already, as the options about files say that it is written."""
    from dipriv.cli.options import given_dialect
    from dipriv.sources._formats.whole import WholeFormat
    from dipriv.sources.files import File, FileBatches

    given = context.params
    typed = [given.get(name) for name in ("table", "original", "released")]
    typed += context.args  # an option that still lacks its value ends the parsing before the arguments
    place = next((each for each in typed if each is not None and Path(each).is_file()), None)  # never a pipe
    if place is None:
        return []
    about = ("sep", "decimal", "encoding", "missing", "dates", "skip", "sheet")
    file = File.at(place, given.get("format_"), given_dialect(*map(given.get, about)))
    if isinstance(file.format, WholeFormat) and Path(place).stat().st_size > MAX_BYTES:
        return []
    return list(FileBatches.of(file).schema.names)


@_silent
def columns(context: typer.Context, incomplete: str) -> Iterable[str]:
    """A column."""
    return _columns(context)


@_silent
def column_lists(context: typer.Context, incomplete: str) -> Iterable[str]:
    """A list of columns, with a comma between them: the next one."""
    before, comma, _ = incomplete.rpartition(",")
    listed = before.split(",")
    return [f"{before}{comma}{name}" for name in _columns(context) if name not in listed]


@_silent
def types(context: typer.Context, incomplete: str) -> Iterable[str]:
    """NAME=TYPE: a column, then a type."""
    from dipriv.schema import ColumnType

    name, sign, _ = incomplete.rpartition("=")
    return [f"{name}={of}" for of in get_args(ColumnType)] if sign else [f"{name}=" for name in _columns(context)]


@_silent
def datasets(context: typer.Context, incomplete: str) -> Iterable[str]:
    """A data set of the ledger that is typed already, or of the default one."""
    from dipriv.ledger.database import names_in_file

    above = context.parent.params.get("ledger") if context.parent is not None else None
    return names_in_file(context.params.get("ledger") or above)


@_silent
def formats(context: typer.Context, incomplete: str) -> Iterable[str]:
    """A file format."""
    from dipriv.sources._formats import FORMATS

    return FORMATS


@_silent
def kernels(context: typer.Context, incomplete: str) -> Iterable[str]:
    """A kernel."""
    from dipriv.kernels.protocol import KERNEL_SPECS

    return KERNEL_SPECS


@_silent
def references(context: typer.Context, incomplete: str) -> Iterable[str]:
    """A reference."""
    from dipriv.references.protocol import registered_names

    return registered_names()


@_silent
def labels(context: typer.Context, incomplete: str) -> Iterable[str]:
    """A policy for labels."""
    from dipriv.references.protocol import LabelPolicy

    return get_args(LabelPolicy)


separators = _one_of(",", ";", "tab", "|")
decimals = _one_of(".", ",")
orders = _one_of("dmy", "mdy", "ymd")
encodings = _one_of("utf-8", "latin-1", "cp1252", "utf-16", "utf-16-le", "utf-16-be")
