"""The English of a guarantee: the only place where facts become sentences. Nothing is read back from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from dipriv._base.decimals import exact, in_full, in_short
from dipriv.guarantee.guarantee import (
    Assumption,
    AssumptionKind,
    Guarantee,
    LegacyField,
    Model,
    Neighbouring,
    PrivacyUnit,
    ReferenceFacts,
    ReferenceSource,
    UnitKind,
    Unprotected,
    UnprotectedKind,
)

HELD_OUT = "Rows that were held out have no formal protection."
COMPUTATIONAL = "no attacker can distinguish AES-256 keystream, which the noise is drawn from, from random bits"
SYNTHETIC = 0.1
"""Rows whose values have a smaller correlation with the true ones say next to nothing about a person."""
SEEDED = "NOT PRIVATE: SEEDED. Anyone who knows the seed can undo the noise; use a seed for experiments only."
PRIVATE = "Contains statistics of the private data; do not publish."
"""Of a report or an audit, which look at the private table."""


def statement(guarantee: Guarantee) -> str:
    """The whole guarantee in several lines, for printing."""
    if guarantee.model is Model.NONE:
        return f"No guarantee: {guarantee.kernel} is not differentially private. It protects {protects(guarantee)}."
    name = "local differential privacy" if guarantee.model is Model.LOCAL else "differential privacy"
    tested, one, two = true_value(guarantee.unit), guarantee.power(), guarantee.power(releases=2)
    lines = [
        *([] if guarantee.secure_randomness else [SEEDED]),
        f"Guarantee: {privacy_loss(guarantee.epsilon, guarantee.delta)} {name}{'' if guarantee.delta else ' (δ = 0)'}"
        f"{_public_labels(guarantee)}.",
        f"  Protects:   {protects(guarantee)}.",
        f"  Means:      for {_neighbours(guarantee)}, {_ratio(guarantee)}.",
        f"  Attacker:   a test of {tested} at level 5% has power at most {percent(one)} after this release, "
        f"{percent(two)} after two.",
        f"  Method:     {guarantee.kernel} kernel, reference: {reference(guarantee.reference)}.",
    ]
    if is_synthetic(guarantee):
        lines.append(
            "  Rows:       as good as synthetic: the expected correlation of released with true values of privatized "
            f"columns is at most {in_short(largest_correlation(guarantee) or 0.0, 2)}. What can be kept is the "
            "distribution; the verdict says how well."
        )
    conditions = assumptions(guarantee)
    if conditions:
        lines.append("  Provided that:")
        lines.extend(f"    - {condition}." for condition in conditions)
    return "\n".join(lines)


def is_synthetic(guarantee: Guarantee) -> bool:
    """Whether the noise on rows leaves next to nothing of each."""
    most = largest_correlation(guarantee)
    return most is not None and most < SYNTHETIC


def largest_correlation(guarantee: Guarantee) -> float | None:
    """The largest expected correlation of released with true values that the noise on rows allows: tanh(ε/2).

    The squared maximal correlation of an ε-differentially private channel is at most the contraction coefficient of its
    χ² divergence, which is at most ((e^ε - 1) / (e^ε + 1))² (Asoodeh and Zhang 2022). It is None where rows have
    different references, or are not the privacy unit.

    >>> known = ReferenceFacts(ReferenceSource.KNOWN, "known distribution")
    >>> f"{largest_correlation(Guarantee(0.1, 'laplace', known)):.3f}"
    '0.050'
    """
    facts, unit = guarantee.reference, guarantee.unit
    same = facts.source not in (ReferenceSource.GROUPS, ReferenceSource.NONE, ReferenceSource.UNKNOWN)
    if not same or unit.kind not in (UnitKind.ROW, UnitKind.ROWS_OF_ONE_VALUE):
        return None
    return math.tanh((guarantee.epsilon / (unit.max_rows or 1) if facts.row_epsilon is None else facts.row_epsilon) / 2)


def claim(guarantee: Guarantee) -> str:
    """ε and δ, and what they do not hold for: all of them, if a seed is known, which labels occur, rows or columns."""
    loss = privacy_loss(guarantee.epsilon, guarantee.delta) + _public_labels(guarantee)
    loss = "; ".join([loss, *map(_unprotected, guarantee.unprotected)])
    return loss if guarantee.secure_randomness else f"{loss}; NOT PRIVATE: seeded"


def public_labels(guarantee: Guarantee) -> list[str]:
    """The columns whose labels are called public, though they were read from the rows."""
    return [name for one in guarantee.assumptions if one.kind is AssumptionKind.LABELS_PUBLIC for name in one.names]


def unchanged_columns(guarantee: Guarantee) -> list[str]:
    """The columns that are released as they are."""
    parts = (part for part in guarantee.unprotected if part.kind is UnprotectedKind.UNCHANGED_COLUMNS)
    return [name for part in parts for name in part.columns]


def but_not_about(unchanged: Sequence[str]) -> str:
    """What is said behind an attacker's power, where some columns are released as they are."""
    return f"That is about columns that were privatized, not about those released unchanged: {_listed(unchanged)}."


def _public_labels(guarantee: Guarantee) -> str:
    """What the first line says where labels are not protected."""
    names = public_labels(guarantee)
    return f", but not for which labels occur in {_listed(names)}: they are called public" if names else ""


def privacy_loss(epsilon: float, delta: float = 0.0) -> str:
    """ε, and δ where it is not 0.

    >>> privacy_loss(1.0, 1e-9), privacy_loss(0.5)
    ('ε = 1, δ = 1e-9', 'ε = 0.5')
    """
    return f"ε = {in_full(epsilon)}" + (f", δ = {in_full(delta)}" if delta else "")


def spent(epsilon: float, delta: float = 0.0) -> str:
    """That a privacy loss is spent.

    >>> spent(1.0, 1e-9), spent(0.5)
    ('ε = 1 and δ = 1e-9 are spent', 'ε = 0.5 is spent')
    """
    if not delta:
        return f"{privacy_loss(epsilon)} is spent"
    return f"{privacy_loss(epsilon)} and δ = {in_full(delta)} are spent"


def percent(share: float) -> str:
    """A bound in percent with one decimal, rounded up.

    >>> percent(0.13591), percent(1.0)
    ('13.6%', '100.0%')
    """
    return f"{math.ceil(share * 1000) / 10:.1f}%"


def protects(guarantee: Guarantee) -> str:
    """Whom the guarantee protects, and whom not.

    >>> from dipriv.guarantee.guarantee import Guarantee
    >>> known = ReferenceFacts(ReferenceSource.KNOWN, "known distribution")
    >>> protects(Guarantee(1.0, "laplace", known))
    'every row'
    """
    said = _legacy(guarantee, LegacyField.PROTECTS)
    if said:
        return said[0]
    if guarantee.model is Model.NONE:
        return "nobody"
    labels = public_labels(guarantee)
    called_public = (
        [f"which labels occur in {_listed(labels)} is called public, and has no protection"] if labels else []
    )
    return "; ".join([_protected(guarantee), *map(_unprotected, guarantee.unprotected), *called_public])


def unit_name(unit: PrivacyUnit) -> str:
    """The privacy unit as a noun.

    >>> unit_name(PrivacyUnit.rows_of("person", 3))
    "a person, by 'person' (at most 3 rows)"
    """
    if unit.kind is UnitKind.ROWS_OF_ONE_VALUE:
        return f"a person, by {unit.column!r} (at most {unit.max_rows} row{'s' * (unit.max_rows != 1)})"
    return _UNITS[unit.kind]


def true_value(unit: PrivacyUnit | None) -> str:
    """What an attacker tests: the true value of a privacy unit, of several different ones if None."""
    if unit is None:
        return "the true values of one privacy unit"
    if unit.kind is UnitKind.ROWS_OF_ONE_VALUE:
        return "the true values of all rows of a person"
    return _TESTED[unit.kind]


def reference(facts: ReferenceFacts) -> str:
    """Where the reference distribution comes from, and what it cost."""
    if facts.source is ReferenceSource.NONE:
        return "none"
    if facts.rows is not None:
        return f"{facts.description} from {facts.rows} other rows under the same ε" + (" and δ" if facts.delta else "")
    if facts.epsilon is not None and facts.row_epsilon is not None:
        delta = f", δ = {in_short(facts.delta)}" if facts.delta else ""
        return (
            f"{facts.description}, learned with ε = {in_short(facts.epsilon)}{delta} of each row; the kernel spends "
            f"ε = {in_short(facts.row_epsilon)} of each row"
        )
    return facts.description + (", fitted to a public table" if facts.source is ReferenceSource.PUBLIC else "")


def assumptions(guarantee: Guarantee) -> list[str]:
    """What must hold for the guarantee to hold, one clause each."""
    kinds = {one.kind for one in guarantee.assumptions}
    by_aes = guarantee.secure_randomness and AssumptionKind.FLOATING_POINT_NOISE not in kinds
    computational = [COMPUTATIONAL] if by_aes and guarantee.model is not Model.NONE else []
    stated = [_assumption(one, guarantee.unit) for one in guarantee.assumptions]
    return [*stated, *_legacy(guarantee, LegacyField.CONDITION), *computational]


def _protected(guarantee: Guarantee) -> str:
    kinds = {part.kind for part in guarantee.unprotected}
    count = "" if guarantee.released_rows is None else f"{guarantee.released_rows} "
    unit = guarantee.unit
    if unit.kind is UnitKind.ROWS_OF_ONE_VALUE:
        who = "every person who is not held out" if guarantee.has_unprotected_rows else "every person"
        rows = f", {guarantee.released_rows} in all" if count else ""
        return (
            f"{who}, with all of their rows together (column {unit.column!r} says whose a row is; at most "
            f"{unit.max_rows} rows of a person are released{rows}, further ones are not)"
        )
    if UnprotectedKind.FIT_ROWS in kinds:
        said = "the rows passed to transform"
    elif unit.kind is UnitKind.ROW and guarantee.has_unprotected_rows:
        said = f"the {count}released rows"
    else:
        said = _EVERYONE[unit.kind]
    return said + (", from everyone else, the collector included" if guarantee.model is Model.LOCAL else "")


def _unprotected(part: Unprotected) -> str:
    count = "" if part.rows is None else f"{part.rows} "
    if part.kind is UnprotectedKind.UNCHANGED_COLUMNS:
        return f"the columns released unchanged have no protection: {_listed(part.columns)}"
    rows = {
        UnprotectedKind.HOLDOUT_ROWS: f"{count}hold-out rows",
        UnprotectedKind.GROUP_ROWS: f"{count}held-out rows of the groups",
        UnprotectedKind.FIT_ROWS: f"{count}rows passed to fit",
    }
    return f"the {rows[part.kind]} have no formal protection"


def _ratio(guarantee: Guarantee) -> str:
    factor = f"e^ε = {_factor(guarantee.epsilon)}"
    if not guarantee.delta:
        return f"the probability of any release differs by a factor of at most {factor}"
    return (
        f"the probability of any set of releases is at most {factor} times that under the other, plus "
        f"δ = {in_full(guarantee.delta)}"
    )


def _neighbours(guarantee: Guarantee) -> str:
    said = _legacy(guarantee, LegacyField.NEIGHBOURS)
    if said:
        return f"neighbouring inputs ({said[0]})"
    unit = guarantee.unit
    if guarantee.neighbouring is Neighbouring.ANY_TWO:
        return f"any two {_PLURALS[unit.kind]}"
    if unit.kind is UnitKind.ROWS_OF_ONE_VALUE:
        change = "all rows of one person are replaced by any others"
    else:
        change = f"{(_legacy(guarantee, LegacyField.UNIT) or [_UNITS[unit.kind]])[0]} is replaced by any other"
    return f"substitute-one (bounded) neighbouring datasets, where {change}"


def _assumption(assumption: Assumption, unit: PrivacyUnit) -> str:
    if assumption.kind is AssumptionKind.FILE_TYPES_PUBLIC and unit.kind is UnitKind.ROWS_OF_ONE_VALUE:
        return _TYPES_BY_PERSONS
    return _ASSUMPTIONS[assumption.kind](assumption)


def _always(text: str) -> Callable[[Assumption], str]:
    return lambda assumption: text


def _about(text: str) -> Callable[[Assumption], str]:
    return lambda assumption: text.replace("NAMES", _listed(assumption.names))


def _about_parameters(text: str) -> Callable[[Assumption], str]:
    """Parameters are words, which are shown without quotes."""
    return lambda assumption: f"{text}: {', '.join(repr(name)[1:-1] for name in assumption.names)}"


_UNITS = {
    UnitKind.ROW: "one row",
    UnitKind.RECORD: "one record",
    UnitKind.VALUE: "one value",
    UnitKind.VECTOR: "the whole vector",
    UnitKind.TABLE: "the whole table",
}
_TESTED = {
    UnitKind.ROW: "one row's true value",
    UnitKind.RECORD: "one record's true value",
    UnitKind.VALUE: "one true value",
    UnitKind.VECTOR: "the true values of the whole vector",
    UnitKind.TABLE: "the true values of the whole table",
}
_EVERYONE = {
    UnitKind.ROW: "every row",
    UnitKind.RECORD: "the owner of a record",
    UnitKind.VALUE: "every value",
    UnitKind.VECTOR: "the vector as a whole",
    UnitKind.TABLE: "the table as a whole",
}
_PLURALS = {
    UnitKind.ROW: "rows",
    UnitKind.ROWS_OF_ONE_VALUE: "sets of rows",
    UnitKind.RECORD: "records",
    UnitKind.VALUE: "values",
    UnitKind.VECTOR: "vectors",
    UnitKind.TABLE: "tables",
}
_ASSUMPTIONS: dict[AssumptionKind, Callable[[Assumption], str]] = {
    AssumptionKind.LABELS_PUBLIC: _about("the set of labels occurring in NAMES is treated as public"),
    AssumptionKind.DISTRIBUTION_DATA_INDEPENDENT: _always("the distribution was stated without looking at these rows"),
    AssumptionKind.TABLE_PUBLIC: _always("the table passed as `public` is public and was not derived from these rows"),
    AssumptionKind.REFERENCE_ROWS_FIXED: _always(
        "reference rows are never released, and any further release holds out the same rows"
    ),
    AssumptionKind.REFERENCE_ROWS_EXPOSED: _always(
        "it is accepted that released rows lie close to single reference rows, which are thereby published nearly "
        "verbatim"
    ),
    AssumptionKind.UNDECLARED_FACTS_READ: _always(
        "levels, atoms, steps and nulls not declared in a schema were read from the reference rows"
    ),
    AssumptionKind.SHAPE_PUBLIC: _always(
        "column names and types, the number and order of the rows (of a Spark DataFrame their number), and any index "
        "are public"
    ),
    AssumptionKind.SCHEMA_PUBLIC: _about("what the schema declares is public, for NAMES"),
    AssumptionKind.RULES_PUBLIC: _about(
        "the rules that the schema states about NAMES are public; columns that follow from others are computed from "
        "the released ones"
    ),
    AssumptionKind.DRAFT_PUBLIC: _about(
        "the levels, atoms, bounds, steps or resolutions of NAMES, in a schema drafted from the private rows, are "
        "public"
    ),
    AssumptionKind.CATEGORIES_PUBLIC: _always("the categories listed in the types of columns are public"),
    AssumptionKind.CODES_PUBLIC: _about(
        "where labels are written with their codes (Stata, SPSS), which code a label of NAMES has is public"
    ),
    AssumptionKind.SPLIT_COLUMN_PUBLIC: _about("column NAMES, which decides which rows are held out, is public"),
    AssumptionKind.UNIT_SIZES_PUBLIC: _about(
        "it is public which rows have the same value of NAMES; all rows of a person have the same value there, and "
        "which of them are released is random"
    ),
    AssumptionKind.UNIT_RENUMBERED: _about(
        "the release shows which rows belong to one person: NAMES has new keys, 1, 2, 3, ... in the order of the rows, "
        "and none of its own values"
    ),
    AssumptionKind.UNIT_CONSTANTS: _about(
        "a person's rows have the same released values of NAMES: those of the first released row"
    ),
    AssumptionKind.GROUP_COLUMN_PUBLIC: _about(
        "column NAMES, which decides whose reference a row uses, is public; rows are protected one by one, several "
        "rows of one group not together"
    ),
    AssumptionKind.ONE_ROW_PER_PERSON: _always(
        "each person has one row: several rows of one person are protected one by one, not together"
    ),
    AssumptionKind.FILE_TYPES_PUBLIC: _always(
        "what the table does not state about its columns, and was settled from all rows so that no single row changes "
        "it, is public: types, how numbers and dates are written, whether values are labels or codes, which keys of "
        "JSON lines are columns"
    ),
    AssumptionKind.TRANSFORMED_ONCE: lambda one: (
        f"a row is transformed once: each further time adds ε = {in_short(one.epsilon or 0.0)}"
    ),
    AssumptionKind.RECORD_NOT_LEARNED_FROM: _always(
        "the record is not among the rows that the reference was learned from, or their ε and δ are added"
    ),
    AssumptionKind.RECORD_RELEASED_ONCE: _always(
        "the record is privatized once, by its owner: each further release of it adds its ε"
    ),
    AssumptionKind.PARAMETER_PUBLIC: _about_parameters("these parameters are public"),
    AssumptionKind.PARAMETER_READ_FROM_ROWS: _about_parameters(
        "these parameters were computed from the private values, and the guarantee does not cover what they reveal"
    ),
    AssumptionKind.FLOATING_POINT_NOISE: _always(
        "the noise is sampled in floating point, which an attacker with enough draws could exploit: for comparisons, "
        "not for publication"
    ),
    AssumptionKind.AUTHORS_PROOF: _about("ε rests on the proof of the author of NAMES, which is not part of dipriv"),
}
_TYPES_BY_PERSONS = (
    "what the table does not state about its columns is public: types, how numbers and dates are written, whether "
    "values are labels or codes, which keys of JSON lines are columns; it was settled from all rows of all persons, "
    "and nothing is claimed about what it discloses; declare exact types (such as whole, decimal or text) to leave out "
    "types"
)


def _legacy(guarantee: Guarantee, field: LegacyField) -> list[str]:
    return [statement.text for statement in guarantee.legacy if statement.field is field]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def _factor(epsilon: float) -> str:
    """e^ε, rounded up to three digits of e^ε - 1.

    >>> _factor(1.0), _factor(0.1), _factor(0.001), _factor(8.0)
    ('2.72', '1.106', '1.00101', '2981')
    """
    if epsilon >= 700:
        return "a number too large to print"
    return in_full(float(1 + exact(float(in_short(math.expm1(epsilon), 3)))))
