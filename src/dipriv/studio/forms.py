"""From the fields of a form to choices: all problems of a form at once, each with its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar, get_args

from dipriv.dialect import Dialect
from dipriv.errors import DiprivError, InputError
from dipriv.inspection import ColumnFacts
from dipriv.release.options import ReleaseOptions
from dipriv.schema import ColumnType, Kind, Meaning, Schema
from dipriv.studio.choices import Choices
from dipriv.studio.wording import sentence

KINDS = ("continuous", "discrete", "mixed", "categorical", "datetime")
USES = ("release", "keep", "drop")
TYPES = get_args(ColumnType)
Found = TypeVar("Found")


class Form:
    """The fields of a form that was sent, and the problems that were found in them."""

    def __init__(self, fields: Mapping[str, Sequence[str]]) -> None:
        self.fields = fields
        self.problems: list[str] = []

    def text(self, name: str) -> str:
        """A field without blanks at its ends; empty if it was not sent."""
        return (self.fields.get(name) or [""])[-1].strip()

    def lines(self, name: str) -> list[str]:
        """The lines of a field that are not empty."""
        return _lines(self.text(name))

    def number(self, name: str, what: str) -> float | None:
        """A number, or None if the field is empty."""
        return self.read(float, self.text(name), f"{what} is not a number")

    def whole(self, name: str, what: str) -> int | None:
        """A whole number, or None if the field is empty."""
        return self.read(int, self.text(name), f"{what} is not a whole number")

    def read(self, as_: Callable[[str], Found], text: str, otherwise: str) -> Found | None:
        """The text as something else; a problem if it is not."""
        if not text:
            return None
        try:
            return as_(text)
        except ValueError:
            self.problems.append(f"{otherwise}.")
            return None

    def checked(self, make: Callable[[], Found]) -> Found | None:
        """What is made, or a problem."""
        try:
            return make()
        except DiprivError as error:
            self.problems.append(sentence(error.fault))
            return None

    def done(self, choices: Choices) -> Choices:
        """The choices, if there is no problem and the options fit each other."""
        if not self.problems:
            self.checked(lambda: ReleaseOptions(choices.epsilon, **choices.of_release()))
        if self.problems:
            raise InputError(" ".join(self.problems), "Nothing was changed: correct it below.")
        return choices


def of_table(form: Form, choices: Choices, columns: Sequence[ColumnFacts]) -> Choices:
    """Uses, types and declared kinds of columns, how the file is written, and the privacy unit."""
    uses: dict[str, list[str]] = {use: [] for use in USES}
    types: dict[str, Any] = {}
    kinds = declared(choices.schema)
    for number, column in enumerate(columns):
        use, column_type = form.text(f"use-{number}") or "release", form.text(f"type-{number}")
        if use not in USES or column_type not in ("", *TYPES):
            form.problems.append(f"Column {column.name!r}: the form has a value that is not offered.")
            continue
        uses[use].append(column.name)
        if use == "release":
            types |= {column.name: column_type} if column_type else {}
        kind = _kind(form, number, column, kinds.get(column.name)) if use == "release" else None
        if kind is not None:
            kinds[column.name] = kind
        else:
            kinds.pop(column.name, None)
    unit = form.text("unit") or None
    dialect = form.checked(lambda: _dialect(form, choices.dialect))
    is_draft = bool(form.text("drafted")) or (choices.schema.is_draft and not form.text("checked"))
    schema = form.checked(lambda: _schema(choices.schema, kinds, choices.schema.rules.to_dict(), is_draft))
    return form.done(
        replace(
            choices,
            keep=tuple(uses["keep"]),
            drop=tuple(name for name in uses["drop"] if name != unit),
            types=types,
            schema=choices.schema if schema is None else schema,
            dialect=choices.dialect if dialect is None else dialect,
            unit=unit,
            rows_per_unit=form.whole("rows_per_unit", "The number of rows of a person") if unit else None,
        )
    )


def of_question(form: Form, choices: Choices) -> Choices:
    """The target, pairs and rules."""
    pairs = list(choices.pairs)
    one, other = form.text("one"), form.text("other")
    if one and other and (one, other) not in pairs:
        pairs.append((one, other))
    if removed := form.text("remove"):
        pairs = [pair for number, pair in enumerate(pairs) if str(number) != removed]
    before = choices.schema
    rules = before.rules.to_dict() | {"rules": form.lines("rules")}
    schema = form.checked(lambda: _schema(before, declared(before), rules, before.is_draft))
    schema = before if schema is None else schema
    return form.done(replace(choices, target=form.text("target") or None, pairs=tuple(pairs), schema=schema))


def of_budget(form: Form, choices: Choices) -> Choices:
    """ε and δ."""
    epsilon = form.number("epsilon", "ε")
    if epsilon is None and not form.problems:
        form.problems.append("ε is missing.")
    delta = form.number("delta", "δ")
    return form.done(replace(choices, epsilon=choices.epsilon if epsilon is None else epsilon, delta=delta))


def of_release(form: Form, choices: Choices) -> Choices:
    """The data set, the output, and a seed for experiments."""
    dataset, same = form.text("dataset") or None, form.text("people")
    if same in ("same", "new") and dataset is None:
        form.problems.append("The name of the data set is missing.")
    return form.done(
        replace(
            choices,
            dataset=dataset if same in ("same", "new") else None,
            is_new=same == "new",
            seed=form.whole("seed", "The seed"),
            output=form.text("output"),
        )
    )


def _dialect(form: Form, before: Dialect) -> Dialect:
    given: dict[str, Any] = {
        name: form.text(name) or None for name in ("separator", "decimal", "encoding", "dates", "sheet")
    }
    skip = form.whole("skip", "The number of lines before the names")
    return replace(before, **given, skip=skip, missing=tuple(form.lines("missing")))


def declared(schema: Schema) -> dict[str, Kind | Meaning]:
    """What a schema declares of each column: a meaning stands for the kind that it is released as."""
    return {**schema, **schema.meanings}


def _schema(before: Schema, kinds: Mapping[str, Kind | Meaning], rules: Mapping[str, Any], is_draft: bool) -> Schema:
    """A schema with other kinds and rules."""
    schema = Schema(kinds, before.dialect, **rules)
    schema.is_draft = is_draft
    return schema


def _kind(form: Form, number: int, column: ColumnFacts, before: Kind | Meaning | None) -> Kind | Meaning | None:
    """What is declared for a column, if something is: what was before, if its fields are as they were shown."""
    if all(form.lines(f"{field}-{number}") == _lines(text) for field, text in shown(before).items()):
        return before
    name, where = form.text(f"kind-{number}"), f"Column {column.name!r}"
    if name not in ("", *KINDS, getattr(before, "name", "")):
        form.problems.append(f"{where}: the form has a value that is not offered.")
        return None
    values = form.lines(f"values-{number}")
    values_of: dict[str, Any] = {
        "lower": form.number(f"lower-{number}", f"{where}: the lowest value"),
        "upper": form.number(f"upper-{number}", f"{where}: the highest value"),
        "step": form.read(_number, form.text(f"step-{number}"), f"{where}: the step is not a number"),
        "resolution": form.text(f"resolution-{number}") or None,
    }
    given = {field: value for field, value in values_of.items() if value is not None}
    if not name:
        if given or values:
            form.problems.append(f"{where}: choose a kind for what is declared.")
        return None
    if values:
        of_text: dict[str, Callable[[str], Any]] = {
            "code": str,
            "postal": str,
            "text": str,
            "categorical": _reader(column.storage),
        }
        read = of_text.get(name, _number)
        levels = [
            form.read(read, text, f"{where}: line {line} of its values cannot be read")
            for line, text in enumerate(values, 1)
        ]
        given["atoms" if name == "mixed" else "levels"] = levels
    beside = not_shown(before) if name == getattr(before, "name", "") else {}
    found = form.checked(lambda: Schema.from_dict({column.name: {"kind": name} | beside | given}))
    return None if found is None else declared(found)[column.name]


def _reader(storage: str) -> Callable[[str], Any]:
    """How the levels of a column with this Arrow type are written."""
    plain = storage.removeprefix("dictionary of ")
    if plain == "bool":
        return _truth
    return _number if re.match(r"u?int|float|double|half|decimal", plain) else str


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError
    return text.lower() == "true"


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines() if line.strip()]


def shown(kind: Kind | Meaning | None) -> dict[str, str]:
    """The fields of a declaration as the form shows them and `of_table` reads them: values one a line."""
    values = getattr(kind, "levels", None) or getattr(kind, "atoms", None) or ()
    found = {field: getattr(kind, field, None) for field in ("lower", "upper", "step", "resolution")}
    return {
        "kind": getattr(kind, "name", ""),
        "values": "\n".join(str(value) for value in values),
    } | {field: "" if value is None else str(value) for field, value in found.items()}


def not_shown(kind: Kind | Meaning | None) -> dict[str, Any]:
    """The fields of a declaration that the form does not have: digits of postal codes, the total of weights."""
    found = [] if kind is None else [one for one in fields(kind) if one.name not in (*shown(None), "levels", "atoms")]
    return {one.name: value for one in found if (value := getattr(kind, one.name)) != one.default}
