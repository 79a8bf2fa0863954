"""Format 1 of guarantees, which was English: sentences that dipriv wrote become facts, any other stays as it was.

The patterns below are those of files that exist. They do not follow changes in `wording`.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dipriv.guarantee._checks import as_list, check_text, refuse
from dipriv.guarantee.guarantee import (
    Assumption,
    AssumptionKind,
    Guarantee,
    LegacyField,
    LegacyStatement,
    Model,
    Neighbouring,
    PrivacyUnit,
    ReferenceFacts,
    ReferenceSource,
    UnitKind,
    Unprotected,
    UnprotectedKind,
)

_ESCAPE = r"\\(?:[\\'\"nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U00[01][0-9a-f]{5})"
_NAME = rf"(?:'(?:[^'\\]|{_ESCAPE})*'|\"(?:[^\"\\]|{_ESCAPE})*\")"
"""A column as `repr` writes it."""
_NAMES = rf"({_NAME}(?:, {_NAME})*)"
_NUMBER = r"(\d[\d.]*(?:e[+-]\d+)?)"
_COUNT = r"(\d{1,18})"
_COLLECTOR = ", from everyone else, the collector included"

_UNITS = {
    "one row": UnitKind.ROW,
    "one record": UnitKind.RECORD,
    "one value": UnitKind.VALUE,
    "the whole vector": UnitKind.VECTOR,
    "the whole table": UnitKind.TABLE,
}
_EVERYONE = {
    UnitKind.ROW: "every row",
    UnitKind.ROWS_OF_ONE_VALUE: "every row",
    UnitKind.RECORD: "the owner of a record",
    UnitKind.VALUE: "every value",
    UnitKind.VECTOR: "the vector as a whole",
    UnitKind.TABLE: "the table as a whole",
}
_ANY_TWO = {
    UnitKind.RECORD: "any two records",
    UnitKind.VECTOR: "any two vectors",
    UnitKind.TABLE: "any two tables",
}
_UNPROTECTED = {
    "hold-out rows": UnprotectedKind.HOLDOUT_ROWS,
    "held-out rows of the groups": UnprotectedKind.GROUP_ROWS,
}
_UNIT = re.compile(rf"the rows of one ({_NAME}) \(at most {_COUNT}\)")
_SPLIT = re.compile(
    rf"the {_COUNT} released rows; the {_COUNT} ({'|'.join(_UNPROTECTED)}) have no (?:formal )?protection"
)
_FIT = re.compile("the rows passed to transform; the rows passed to fit have no (?:formal )?protection")
_UNCHANGED = re.compile(rf"columns passed through unchanged have no protection: {_NAMES}")
_FROM_OTHERS = re.compile(rf"(private \(.*\)) from {_COUNT} other rows under the same ε")
_SHARED = re.compile(rf"(private \(.*\)), ε = {_NUMBER} of each row; the kernel has ε = {_NUMBER}")
_PUBLIC = ", a public table"
_PARAMETER = "bounds|bound of the moment|bound of the rows' lengths|radius|levels|moment"

_CONDITIONS = {
    "the law was stated without looking at these rows": AssumptionKind.DISTRIBUTION_DATA_INDEPENDENT,
    "the public table is public indeed, and was not made from these rows": AssumptionKind.TABLE_PUBLIC,
    "reference rows are never released, and any further release holds out the same rows": (
        AssumptionKind.REFERENCE_ROWS_FIXED
    ),
    "it is accepted that released rows lie close to single reference rows, which may so be published nearly verbatim": (
        AssumptionKind.REFERENCE_ROWS_EXPOSED
    ),
    "levels, atoms, steps and nulls not declared in a schema were read from the reference rows": (
        AssumptionKind.UNDECLARED_FACTS_READ
    ),
    "column names and types, the number and order of the rows, and any index are public": AssumptionKind.SHAPE_PUBLIC,
    "the categories listed in the types of columns are public": AssumptionKind.CATEGORIES_PUBLIC,
    "each person has one row: several rows of a person are protected one by one, not together": (
        AssumptionKind.ONE_ROW_PER_PERSON
    ),
    "the types of the file's columns, which were read from all its rows, are public": AssumptionKind.FILE_TYPES_PUBLIC,
    "the record is not among the rows that the reference was learned from, or their ε is added": (
        AssumptionKind.RECORD_NOT_LEARNED_FROM
    ),
    "the record is privatized once, where it is: each further release of it adds its ε": (
        AssumptionKind.RECORD_RELEASED_ONCE
    ),
    "the noise is sampled in floating point, which an attacker with enough draws could exploit: for comparisons, not "
    "for publication": AssumptionKind.FLOATING_POINT_NOISE,
}
_NAMING_CONDITIONS = {
    re.compile(rf"the labels met in {_NAMES} are public"): AssumptionKind.LABELS_PUBLIC,
    re.compile(rf"what the schema declares is public, for {_NAMES}"): AssumptionKind.SCHEMA_PUBLIC,
    re.compile(rf"column ({_NAME}), which decides which rows are held out, is public"): (
        AssumptionKind.SPLIT_COLUMN_PUBLIC
    ),
    re.compile(
        rf"which rows belong together in ({_NAME}), and how many, is public; of each only \d+ rows, picked at random, "
        "are released"
    ): AssumptionKind.UNIT_SIZES_PUBLIC,
    re.compile(
        rf"column ({_NAME}), which says whose reference a row uses, is public; rows are protected one by one, several "
        "rows of one group not together"
    ): AssumptionKind.GROUP_COLUMN_PUBLIC,
}
_PARAMETER_CONDITIONS = {
    re.compile(rf"the ({_PARAMETER}) (?:is|are) public"): AssumptionKind.PARAMETER_PUBLIC,
    re.compile(
        rf"the ({_PARAMETER}) (?:was|were) (?:read|computed) from the private (?:values|rows): "
        "nothing is promised about what (?:it tells|they tell)"
    ): AssumptionKind.PARAMETER_READ_FROM_ROWS,
}
_ONCE = re.compile(rf"a row is transformed once: each further time adds ε = {_NUMBER}")


@dataclass
class _Facts:
    """What is recognised so far."""

    unprotected: list[Unprotected] = field(default_factory=list)
    assumptions: list[Assumption] = field(default_factory=list)
    statements: list[LegacyStatement] = field(default_factory=list)
    released_rows: int | None = None

    def keep(self, of: LegacyField, text: str) -> None:
        self.statements.append(LegacyStatement(of, text))

    def assumes(self, kind: AssumptionKind) -> bool:
        return any(assumption.kind is kind for assumption in self.assumptions)


def from_sentences(plain: Mapping[str, Any]) -> Guarantee:
    """A guarantee in format 1: {"epsilon", "protects", "kernel", "reference", "conditions", "unit", ...}.

    Raises
    ------
    InputError
        If a field is missing or has another type, or a text is not one printable line.
    """
    epsilon: Any = math.inf if plain.get("epsilon") == "inf" else plain.get("epsilon")
    secure = plain.get("secure_randomness", True)
    if not isinstance(secure, bool):
        refuse("secure_randomness", "is neither true nor false")
    model = _model(_text(plain, "model", "central"), epsilon)
    found = _Facts()
    unit = _unit(_text(plain, "unit", "one row"), found)
    neighbouring = _neighbouring(_text(plain, "neighbours", "replace one row"), unit, found)
    for condition in as_list(plain.get("conditions", ()), "list of conditions"):
        _condition(check_text(condition, "condition"), found)
    _protects(_text(plain, "protects"), unit, model, found)
    return Guarantee(
        epsilon=epsilon,
        kernel=_text(plain, "kernel"),
        reference=_reference(_text(plain, "reference"), found),
        model=model,
        delta=plain.get("delta", 0.0),
        unit=unit,
        neighbouring=neighbouring,
        unprotected=tuple(found.unprotected),
        released_rows=found.released_rows,
        assumptions=tuple(found.assumptions),
        secure_randomness=secure,
        legacy=tuple(found.statements),
    )


def _model(text: str, epsilon: Any) -> Model:
    if text not in (Model.CENTRAL, Model.LOCAL):
        refuse("model", "is neither central nor local")
    return Model.NONE if epsilon == math.inf else Model(text)


def _unit(text: str, found: _Facts) -> PrivacyUnit:
    if text in _UNITS:
        return PrivacyUnit(_UNITS[text])
    bounded = _UNIT.fullmatch(text)
    names = _names(bounded[1]) if bounded else ()
    if bounded and names and int(bounded[2]):
        return PrivacyUnit.rows_of(names[0], int(bounded[2]))
    found.keep(LegacyField.UNIT, text)
    return PrivacyUnit()


def _neighbouring(text: str, unit: PrivacyUnit, found: _Facts) -> Neighbouring:
    if text == _ANY_TWO.get(unit.kind):
        return Neighbouring.ANY_TWO
    bounded = unit.kind is UnitKind.ROWS_OF_ONE_VALUE
    if text != (f"replace the rows of one {unit.column!r}" if bounded else "replace one row"):
        found.keep(LegacyField.NEIGHBOURS, text)
    return Neighbouring.SUBSTITUTE_ONE


def _protects(text: str, unit: PrivacyUnit, model: Model, found: _Facts) -> None:
    everyone = _EVERYONE[unit.kind] + (_COLLECTOR if unit.kind is UnitKind.RECORD else "")
    local = (_EVERYONE[unit.kind] + _COLLECTOR,) if model is Model.LOCAL else ()
    if text in (everyone, *local) or (text == "nobody" and model is Model.NONE):
        return
    if split := _SPLIT.fullmatch(text):
        found.released_rows = int(split[1])
        found.unprotected.insert(0, Unprotected(_UNPROTECTED[split[3]], int(split[2])))
    elif _FIT.fullmatch(text):
        found.unprotected.insert(0, Unprotected(UnprotectedKind.FIT_ROWS))
    else:
        found.keep(LegacyField.PROTECTS, text)


def _condition(text: str, found: _Facts) -> None:
    if text in _CONDITIONS:
        found.assumptions.append(Assumption(_CONDITIONS[text]))
        return
    for pattern, kind in _NAMING_CONDITIONS.items():
        if (match := pattern.fullmatch(text)) and (names := _names(match[1])):
            found.assumptions.append(Assumption(kind, names))
            return
    for pattern, kind in _PARAMETER_CONDITIONS.items():
        if match := pattern.fullmatch(text):
            found.assumptions.append(Assumption(kind, (match[1],)))
            return
    if (match := _UNCHANGED.fullmatch(text)) and (names := _names(match[1])):
        found.unprotected.append(Unprotected(UnprotectedKind.UNCHANGED_COLUMNS, columns=names))
    elif (match := _ONCE.fullmatch(text)) and (epsilon := _number(match[1])):
        found.assumptions.append(Assumption(AssumptionKind.TRANSFORMED_ONCE, epsilon=epsilon))
    else:
        found.keep(LegacyField.CONDITION, text)


def _reference(text: str, found: _Facts) -> ReferenceFacts:
    if text == "none":
        return ReferenceFacts(ReferenceSource.NONE)
    if match := _FROM_OTHERS.fullmatch(text):
        return ReferenceFacts(ReferenceSource.PRIVATE, match[1], rows=int(match[2]))
    if match := _SHARED.fullmatch(text):
        epsilon, row_epsilon = _number(match[2]), _number(match[3])
        if epsilon and row_epsilon:
            return ReferenceFacts(ReferenceSource.PRIVATE, match[1], epsilon, row_epsilon)
    if text.endswith(_PUBLIC):
        return ReferenceFacts(ReferenceSource.PUBLIC, text.removesuffix(_PUBLIC))
    return ReferenceFacts(_source(text, found), text)


def _source(text: str, found: _Facts) -> ReferenceSource:
    rows = {
        UnprotectedKind.HOLDOUT_ROWS: ReferenceSource.HOLDOUT,
        UnprotectedKind.GROUP_ROWS: ReferenceSource.GROUPS,
        UnprotectedKind.FIT_ROWS: ReferenceSource.FIT_ROWS,
    }
    for part in found.unprotected:
        if part.kind in rows:
            return rows[part.kind]
    if found.assumes(AssumptionKind.DISTRIBUTION_DATA_INDEPENDENT):
        return ReferenceSource.KNOWN
    return ReferenceSource.PRIVATE if text.startswith("private (") else ReferenceSource.UNKNOWN


def _names(text: str) -> tuple[str, ...]:
    """The names that `repr` and a comma between them wrote; none if it did not."""
    try:
        names = tuple(ast.literal_eval(name) for name in re.findall(_NAME, text))
    except (SyntaxError, ValueError):  # an escaped character that does not exist
        return ()
    return names if ", ".join(map(repr, names)) == text else ()


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value < 1e12 else None


def _text(plain: Mapping[str, Any], name: str, default: str | None = None) -> str:
    return check_text(plain.get(name, default), name)
