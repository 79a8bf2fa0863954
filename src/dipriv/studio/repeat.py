"""What was clicked, as a command line and as Python: either makes the same release."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import PurePath
from shlex import quote
from typing import Any

from dipriv._base.decimals import in_full
from dipriv.dialect import Dialect
from dipriv.studio.choices import Choices

_FLAGS = {"separator": "--sep", "missing": "--missing"}
"""Options of files whose name on the command line is not that of the field."""


def schema_name(choices: Choices) -> str:
    """The name under which the schema is downloaded."""
    return f"{PurePath(choices.name).stem.partition('.')[0]}-schema.toml"


def as_command(choices: Choices, table: str, ledger: str | None = None) -> str:
    """The command; `table` is the path of the table on the command line.

    >>> from pathlib import Path
    >>> as_command(Choices(Path("/x/a b.csv"), "a b.csv", drop=("id",), output="out.csv"), "a b.csv")
    "dipriv privatize 'a b.csv' -o out.csv -e 1 --drop id"
    """
    words = ["privatize", table, "-o", choices.output, "-e", in_full(choices.epsilon), *_words(choices)]
    if ledger is not None:
        words += ["--ledger", ledger]
    return " ".join(map(quote, ["dipriv", *words]))


def as_python(choices: Choices, table: str, ledger: str | None = None) -> str:
    """The same in Python."""
    given = choices.of_release()
    lines = [f"    {_text(table)}, {_text(choices.output)}, {in_full(choices.epsilon)},"]
    for name, value in given.items():
        shown = f"dipriv.Schema.load({_text(schema_name(choices))})" if name == "schema" else _shown(value)
        lines.append(f"    {name}={shown},")
    lines.append(f"    ledger=dipriv.Ledger.open({'' if ledger is None else _text(ledger)}),")
    call = "\n".join(["release = dipriv.privatize_file(", *lines, ")"])
    return f"import dipriv\n\n{call}\nprint(release)"


def _words(choices: Choices) -> Iterator[str]:
    for name, value in choices.of_release().items():
        flag = f"--{name.replace('_', '-')}"
        if name == "schema":
            yield from (flag, schema_name(choices))
        elif name == "dialect":
            yield from _of_dialect(value)
        elif name == "types":
            yield from (word for column, of in value.items() for word in ("--type", f"{column}={of}"))
        elif name == "pairs":
            yield from (word for pair in value for word in ("--pair", _csv(pair)))
        elif isinstance(value, tuple):
            yield from (word for one in value for word in (flag, one))
        else:
            yield from (flag, in_full(value) if isinstance(value, float) else str(value))


def _of_dialect(dialect: Dialect) -> Iterator[str]:
    for field, value in dialect.to_dict().items():
        for one in value if isinstance(value, list) else [value]:
            yield from (_FLAGS.get(field, f"--{field}"), "tab" if one == "\t" else str(one))


def _csv(pair: tuple[str, str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(pair)
    return text.getvalue()


def _shown(value: Any) -> str:
    if isinstance(value, Dialect):
        return f"dipriv.{value!r}"
    return _text(value) if isinstance(value, str) else repr(value)


def _text(text: str) -> str:
    """A text in double quotes, as one writes it in Python."""
    return json.dumps(text, ensure_ascii=False)
