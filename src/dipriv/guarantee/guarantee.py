"""A differential-privacy guarantee as typed facts: what is guaranteed, for which privacy unit, on which assumptions.

Code reads these facts and never the English, which `wording` makes of them. Every value is checked when it is made, so
that what `from_dict` loads from a file of unknown origin is as sound as what dipriv makes itself.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from dipriv._base.decimals import in_short
from dipriv.errors import InputError
from dipriv.guarantee._checks import (
    MAX_EPSILON,
    MIN_EPSILON,
    as_cost,
    as_delta,
    as_enum,
    as_items,
    as_list,
    as_names,
    check_count,
    check_delta,
    check_epsilon,
    check_name,
    check_text,
    refuse,
    set_field,
)
from dipriv.guarantee.trade_off import largest_probability

__all__ = [
    "FORMAT",
    "MAX_EPSILON",
    "MIN_EPSILON",
    "NAMED_ASSUMPTIONS",
    "Assumption",
    "AssumptionKind",
    "Guarantee",
    "LegacyField",
    "LegacyStatement",
    "Model",
    "Neighbouring",
    "PrivacyUnit",
    "ReferenceFacts",
    "ReferenceSource",
    "UnitKind",
    "Unprotected",
    "UnprotectedKind",
    "check_delta",
    "check_epsilon",
    "unreadable",
]

FORMAT = 2
"""Of `Guarantee.to_dict`. Format 1, which had no number, held English sentences: see `legacy`."""
_DERIVED = frozenset({"format", "power_at_5_percent"})


class Model(StrEnum):
    """Who is trusted with the true values."""

    CENTRAL = "central"
    """Whoever runs the release sees the true table."""
    LOCAL = "local"
    """Nobody but the owner of a record sees it."""
    NONE = "none"
    """There is no differential privacy: ε is infinite."""


class Neighbouring(StrEnum):
    """Which two inputs the guarantee makes hard to distinguish."""

    SUBSTITUTE_ONE = "substitute-one"
    """Datasets that differ in one privacy unit, substituted by another: bounded differential privacy."""
    ANY_TWO = "any-two"
    """Any two inputs, as in local differential privacy."""


class UnitKind(StrEnum):
    """What one privacy unit is."""

    ROW = "row"
    ROWS_OF_ONE_VALUE = "rows-of-one-value"
    RECORD = "record"
    VALUE = "value"
    VECTOR = "vector"
    TABLE = "table"


class UnprotectedKind(StrEnum):
    """What the guarantee does not cover."""

    HOLDOUT_ROWS = "holdout-rows"
    GROUP_ROWS = "group-rows"
    FIT_ROWS = "fit-rows"
    UNCHANGED_COLUMNS = "unchanged-columns"


class ReferenceSource(StrEnum):
    """Where the reference distribution comes from."""

    KNOWN = "known"
    PUBLIC = "public"
    PRIVATE = "private"
    HOLDOUT = "holdout"
    GROUPS = "groups"
    FIT_ROWS = "fit-rows"
    NONE = "none"
    UNKNOWN = "unknown"
    """An older file does not say it in words that are recognised."""


class AssumptionKind(StrEnum):
    """What must hold for the guarantee to hold."""

    LABELS_PUBLIC = "labels-public"
    DISTRIBUTION_DATA_INDEPENDENT = "distribution-data-independent"
    TABLE_PUBLIC = "table-public"
    REFERENCE_ROWS_FIXED = "reference-rows-fixed"
    REFERENCE_ROWS_EXPOSED = "reference-rows-exposed"
    UNDECLARED_FACTS_READ = "undeclared-facts-read"
    SHAPE_PUBLIC = "shape-public"
    SCHEMA_PUBLIC = "schema-public"
    RULES_PUBLIC = "rules-public"
    DRAFT_PUBLIC = "draft-public"
    CATEGORIES_PUBLIC = "categories-public"
    CODES_PUBLIC = "codes-public"
    SPLIT_COLUMN_PUBLIC = "split-column-public"
    UNIT_SIZES_PUBLIC = "unit-sizes-public"
    UNIT_RENUMBERED = "unit-renumbered"
    UNIT_CONSTANTS = "unit-constants"
    GROUP_COLUMN_PUBLIC = "group-column-public"
    ONE_ROW_PER_PERSON = "one-row-per-person"
    FILE_TYPES_PUBLIC = "file-types-public"
    TRANSFORMED_ONCE = "transformed-once"
    RECORD_NOT_LEARNED_FROM = "record-not-learned-from"
    RECORD_RELEASED_ONCE = "record-released-once"
    PARAMETER_PUBLIC = "parameter-public"
    PARAMETER_READ_FROM_ROWS = "parameter-read-from-rows"
    FLOATING_POINT_NOISE = "floating-point-noise"
    AUTHORS_PROOF = "authors-proof"


NAMED_ASSUMPTIONS = frozenset(
    {
        AssumptionKind.LABELS_PUBLIC,
        AssumptionKind.SCHEMA_PUBLIC,
        AssumptionKind.RULES_PUBLIC,
        AssumptionKind.DRAFT_PUBLIC,
        AssumptionKind.CODES_PUBLIC,
        AssumptionKind.SPLIT_COLUMN_PUBLIC,
        AssumptionKind.UNIT_SIZES_PUBLIC,
        AssumptionKind.UNIT_RENUMBERED,
        AssumptionKind.UNIT_CONSTANTS,
        AssumptionKind.GROUP_COLUMN_PUBLIC,
        AssumptionKind.PARAMETER_PUBLIC,
        AssumptionKind.PARAMETER_READ_FROM_ROWS,
        AssumptionKind.AUTHORS_PROOF,
    }
)
"""Assumptions about columns or parameters, which they name; the others name none."""


class LegacyField(StrEnum):
    """The fields of format 1 whose sentences may not be recognised."""

    PROTECTS = "protects"
    UNIT = "unit"
    NEIGHBOURS = "neighbours"
    CONDITION = "condition"


@dataclass(frozen=True)
class PrivacyUnit:
    """What is protected as a whole: a row, or at most `max_rows` rows that share a value of `column`, or a record.

    >>> PrivacyUnit.rows_of("person", max_rows=3).max_rows
    3
    """

    kind: UnitKind = UnitKind.ROW
    column: str | None = None
    max_rows: int | None = None

    def __post_init__(self) -> None:
        set_field(self, "kind", as_enum(UnitKind, self.kind, "privacy unit"))
        bounded = self.kind is UnitKind.ROWS_OF_ONE_VALUE
        if (self.column is not None) != bounded or (self.max_rows is not None) != bounded:
            refuse("privacy unit", "needs a column and a bound if it is the rows of one value, and only then")
        if self.column is not None:
            check_name(self.column, "privacy unit")
        check_count(self.max_rows, "privacy unit", least=1)

    @classmethod
    def rows_of(cls, column: str, max_rows: int) -> PrivacyUnit:
        """All rows that share a value of a column, contribution bounded to `max_rows` of them."""
        return cls(UnitKind.ROWS_OF_ONE_VALUE, column, max_rows)


@dataclass(frozen=True)
class Unprotected:
    """Rows (how many, where that is known) or columns that the guarantee does not cover."""

    kind: UnprotectedKind
    rows: int | None = None
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        set_field(self, "kind", as_enum(UnprotectedKind, self.kind, "unprotected part"))
        set_field(self, "columns", as_names(self.columns, "unprotected part"))
        check_count(self.rows, "unprotected part")
        of_columns = self.kind is UnprotectedKind.UNCHANGED_COLUMNS
        if of_columns != bool(self.columns) or (of_columns and self.rows is not None):
            refuse("unprotected part", "is either columns by name or a number of rows")


@dataclass(frozen=True)
class ReferenceFacts:
    """The reference distribution: where it comes from, in a few words what it is, and what learning it cost.

    A private reference is learned from the released rows, each of which then spends `epsilon` on it and `row_epsilon`
    on its own noise; or from `rows` other rows, under the same ε. It spends all of the `delta` of a row, and the noise
    on rows spends none; None stands for 0.
    """

    source: ReferenceSource
    description: str = ""
    epsilon: float | None = None
    row_epsilon: float | None = None
    rows: int | None = None
    delta: float | None = None

    def __post_init__(self) -> None:
        set_field(self, "source", as_enum(ReferenceSource, self.source, "reference"))
        check_text(self.description, "reference")
        for name in ("epsilon", "row_epsilon"):
            set_field(self, name, as_cost(getattr(self, name), "reference"))
        set_field(self, "delta", None if self.delta is None else as_delta(self.delta, "reference's delta"))
        check_count(self.rows, "reference")


@dataclass(frozen=True)
class Assumption:
    """One assumption, the columns or parameters that it is about, and the ε that breaking it would add, if known."""

    kind: AssumptionKind
    names: tuple[str, ...] = ()
    epsilon: float | None = None

    def __post_init__(self) -> None:
        set_field(self, "kind", as_enum(AssumptionKind, self.kind, "assumption"))
        set_field(self, "names", as_names(self.names, "assumption"))
        set_field(self, "epsilon", as_cost(self.epsilon, "assumption"))
        if bool(self.names) != (self.kind in NAMED_ASSUMPTIONS):
            refuse("assumption", "names no columns, or columns that it is not about")
        if (self.epsilon is not None) != (self.kind is AssumptionKind.TRANSFORMED_ONCE):
            refuse("assumption", "has no ε, or one that it is not about")


@dataclass(frozen=True)
class LegacyStatement:
    """A sentence of format 1 that is none of those that dipriv wrote; it is shown as it was."""

    field: LegacyField
    text: str = ""

    def __post_init__(self) -> None:
        set_field(self, "field", as_enum(LegacyField, self.field, "legacy statement"))
        check_text(self.text, "legacy statement")


_LISTS: dict[str, type[Any]] = {
    "unprotected": Unprotected,
    "assumptions": Assumption,
    "legacy": LegacyStatement,
}
"""The fields of a guarantee that list facts, each with the class of its items."""


@dataclass(frozen=True, repr=False)
class Guarantee:
    """A differential-privacy guarantee (the paper's Definition 1) as typed facts. `str` gives it in words.

    It is computational: ε and δ hold as long as AES-256 keystream, which the noise is drawn from, cannot be
    distinguished from random bits.

    Parameters
    ----------
    epsilon, delta : the privacy loss, of the privacy unit; δ is 0 for pure differential privacy. ε is infinite if there
        is no guarantee (`Model.NONE`), and only then.
    kernel : a few words on the noise.
    reference : where the reference distribution comes from.
    model : central, local, or none.
    unit : the privacy unit, which ε and δ cover as a whole.
    neighbouring : which datasets are neighbours.
    unprotected : rows and columns that are not covered.
    released_rows : how many rows are covered, where some are not.
    assumptions : what must hold for the guarantee to hold.
    secure_randomness : False for a seeded release, which is not private.
    legacy : sentences of an older file that are not recognised.

    Raises
    ------
    InputError
        If a fact has another type than declared, or is outside its limits.

    Examples
    --------
    >>> guarantee = Guarantee(1.0, "laplace", ReferenceFacts(ReferenceSource.KNOWN, "known distribution"))
    >>> guarantee
    Guarantee(ε=1, central, substitute-one row)
    >>> round(guarantee.power(level=0.05), 4)
    0.1359
    >>> Guarantee.from_dict(guarantee.to_dict()) == guarantee
    True
    """

    epsilon: float
    kernel: str
    reference: ReferenceFacts
    model: Model = Model.CENTRAL
    delta: float = 0.0
    unit: PrivacyUnit = PrivacyUnit()
    neighbouring: Neighbouring = Neighbouring.SUBSTITUTE_ONE
    unprotected: tuple[Unprotected, ...] = ()
    released_rows: int | None = None
    assumptions: tuple[Assumption, ...] = ()
    secure_randomness: bool = True
    legacy: tuple[LegacyStatement, ...] = ()

    def __post_init__(self) -> None:
        set_field(self, "model", as_enum(Model, self.model, "model"))
        set_field(self, "neighbouring", as_enum(Neighbouring, self.neighbouring, "neighbouring relation"))
        if self.model is not Model.NONE:
            set_field(self, "epsilon", check_epsilon(self.epsilon))
        elif self.epsilon != math.inf:
            refuse("epsilon", "is finite although there is no differential privacy")
        set_field(self, "delta", as_delta(self.delta, "delta"))
        check_text(self.kernel, "kernel")
        for name, of in (("reference", ReferenceFacts), ("unit", PrivacyUnit), ("secure_randomness", bool)):
            if not isinstance(getattr(self, name), of):
                refuse(name, f"is not a {of.__name__}")
        for name, items in _LISTS.items():
            set_field(self, name, as_items(getattr(self, name), items, name))
        check_count(self.released_rows, "number of released rows")

    @property
    def has_unprotected_rows(self) -> bool:
        """Whether some rows are not covered."""
        return any(part.kind is not UnprotectedKind.UNCHANGED_COLUMNS for part in self.unprotected)

    def assumes(self, kind: AssumptionKind) -> bool:
        """Whether the guarantee rests on an assumption of this kind.

        Parameters
        ----------
        kind : of the assumption.

        Returns
        -------
        bool
        """
        return any(assumption.kind is kind for assumption in self.assumptions)

    def power(self, level: float = 0.05, releases: int = 1) -> float:
        """The largest power of a test about one privacy unit at this level, after M releases (Lemma 1).

        M releases are (M ε, M δ)-differentially private, and the power is at most
        min(1, e^(M ε) level + M δ, 1 - e^(-M ε) (1 - level - M δ)).

        Parameters
        ----------
        level : the significance level of the test, between 0 and 1.
        releases : how many releases with this guarantee the attacker has seen.

        Returns
        -------
        float
            The bound, rounded up, at most 1.

        Raises
        ------
        InputError
            If the level is not between 0 and 1.
        """
        if not 0 < level < 1:
            raise InputError(f"level={level!r} is not between 0 and 1.", "Use a significance level such as 0.05.")
        if releases == 1:
            return largest_probability(level, self.epsilon, self.delta)
        total = (math.nextafter(releases * loss, math.inf) if loss else 0.0 for loss in (self.epsilon, self.delta))
        return largest_probability(level, *total)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, which `from_dict` reads; it has no private value."""
        plain: dict[str, Any] = {"format": FORMAT}
        plain |= {item.name: _plain(getattr(self, item.name)) for item in fields(self)}
        if not self.legacy:
            del plain["legacy"]
        return plain | {"power_at_5_percent": self.power()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Guarantee:
        """The guarantee that `to_dict` wrote, in this format or in format 1, whose English becomes facts.

        Parameters
        ----------
        plain : anything; it may come from anybody.

        Returns
        -------
        The guarantee.

        Raises
        ------
        InputError
            If this is not what a version of dipriv writes.
        """
        if not isinstance(plain, Mapping) or not all(isinstance(name, str) for name in plain):
            refuse("content", "is not a JSON object")
        if "format" not in plain:
            from dipriv.guarantee.legacy import from_sentences

            return from_sentences(plain)
        if type(plain["format"]) is not int or plain["format"] != FORMAT:
            refuse("format", f"is unknown; this version reads 1 and {FORMAT}")
        values = {name: value for name, value in plain.items() if name not in _DERIVED}
        known = {item.name for item in fields(cls)}
        if not known - {"legacy"} <= values.keys() <= known:
            refuse("content", "lacks a field, or has an unknown one")
        if values["epsilon"] == "inf":
            values["epsilon"] = math.inf
        values["unit"] = _facts(PrivacyUnit, values["unit"], "privacy unit")
        values["reference"] = _facts(ReferenceFacts, values["reference"], "reference")
        for name, of in _LISTS.items():
            if name in values:
                values[name] = tuple(_facts(of, one, name) for one in as_list(values[name], name))
        return cls(**values)

    def to_json(self) -> str:
        """The text of `to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def _repr_html_(self) -> str:
        from dipriv._base.html import lines

        return lines(str(self))

    def __repr__(self) -> str:
        seeded = "" if self.secure_randomness else ", seeded"
        delta = f" δ={in_short(self.delta)}," if self.delta else ""
        return f"Guarantee(ε={self.epsilon:g},{delta} {self.model}, {self.neighbouring} {self.unit.kind}{seeded})"

    def __str__(self) -> str:
        from dipriv.guarantee.wording import statement

        return statement(self)


def unreadable() -> Guarantee:
    """The guarantee in place of a stored one that cannot be read: no protection."""
    return Guarantee(
        epsilon=math.inf,
        kernel="unknown",
        reference=ReferenceFacts(ReferenceSource.UNKNOWN),
        model=Model.NONE,
        legacy=(LegacyStatement(LegacyField.PROTECTS, "what is stored cannot be read"),),
    )


def _plain(value: Any) -> Any:
    """A fact as JSON has it: no infinity, no tuples, no classes."""
    if isinstance(value, float) and math.isinf(value):
        return "inf"
    if isinstance(value, StrEnum):
        return str(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, (PrivacyUnit, Unprotected, ReferenceFacts, Assumption, LegacyStatement)):
        stated = {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
        return {name: one for name, one in stated.items() if one is not None and one != []}
    return value


def _facts(of: type[Any], plain: Any, what: str) -> Any:
    if not isinstance(plain, Mapping):
        refuse(what, "is not a JSON object")
    kind, *known = (item.name for item in fields(of))
    if kind not in plain or not plain.keys() <= {kind, *known}:
        refuse(what, f"lacks its {kind}, or has an unknown field")
    return of(**plain)
