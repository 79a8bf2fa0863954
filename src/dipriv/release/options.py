"""Every option of a release, with every default and every refusal, in one place.

An option that would have no effect is an error: the caller believes that it has one.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, get_args

from dipriv._base.decimals import in_full
from dipriv._random.bits import Bits, Seed, source
from dipriv._tables.column_types import TypeRules
from dipriv._tables.frames import check_names
from dipriv.errors import InputError, PrivacyWarning
from dipriv.guarantee import check_delta, check_epsilon
from dipriv.kernels import KernelSpec
from dipriv.kernels import by_name as kernel_named
from dipriv.references import ReferenceSpec
from dipriv.references.protocol import LabelPolicy, as_spec, by_name
from dipriv.schema import ColumnType, Kind, Schema
from dipriv.sources.contribution_bound import ContributionBound
from dipriv.sources.holdout import GroupHoldout, Split, check_holdout

if TYPE_CHECKING:
    from dipriv.ledger import Ledger

DEFAULT_HOLDOUT = 0.25
"""The share of rows that is held out by default, where a hold-out is used."""
DEFAULT_ROWS_PER_UNIT = 10
DEFAULT_DELTA = 1e-9
"""δ by default, where the reference is learned privately."""
LARGE_EPSILON = 10.0
"""Beyond that a release protects little: e^10 is 22,026."""
LARGE_DELTA = 1e-5
"""Beyond that a δ is larger than one divided by the number of rows of most tables."""
ReferenceLike = str | ReferenceSpec | None
KernelLike = str | KernelSpec
SchemaLike = Schema | Mapping[str, Kind] | None


class OptionTypes(TypedDict, total=False):
    """The types of the options of `dipriv.privatize`, for editors and type checkers."""

    delta: float | None
    reference: ReferenceLike
    kernel: KernelLike
    schema: SchemaLike
    types: Mapping[str, ColumnType] | None
    missing: Sequence[str]
    columns: Sequence[str] | None
    drop: Sequence[str]
    keep: Sequence[str]
    holdout: float | None
    split: Split | None
    public: Any
    unit: str | None
    rows_per_unit: int | None
    target: str | None
    reference_share: float | None
    labels: LabelPolicy | None
    pairs: Sequence[tuple[str, str]]
    ledger: Ledger | str | Path | None
    dataset: str | None
    new_dataset: str | None
    seed: Seed


@dataclass(frozen=True, eq=False)
class ReleaseOptions:
    """The options of a release; the meaning of each option is that of `dipriv.privatize`.

    >>> ReleaseOptions(1.0, public=[], holdout=0.3)
    Traceback (most recent call last):
    ...
    dipriv.errors.InputError: holdout is given with a public table, where nothing is held out.
    Leave holdout out.
    """

    epsilon: float
    delta: float | None = None
    reference: ReferenceLike = None
    kernel: KernelLike = "optimal"
    schema: SchemaLike = field(default=None, repr=False)
    types: Mapping[str, ColumnType] | None = None
    missing: Sequence[str] = field(default=(), repr=False)
    columns: Sequence[str] | None = None
    drop: Sequence[str] = ()
    keep: Sequence[str] = ()
    holdout: float | None = None
    split: Split | None = None
    public: Any = field(default=None, repr=False)
    unit: str | None = None
    rows_per_unit: int | None = None
    target: str | None = None
    reference_share: float | None = None
    labels: LabelPolicy | None = None
    pairs: Sequence[tuple[str, str]] = ()
    ledger: Ledger | str | Path | None = field(default=None, repr=False)
    dataset: str | None = None
    new_dataset: str | None = None
    seed: Seed = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        if self.delta is not None:
            object.__setattr__(self, "delta", check_delta(self.delta))
        source(self.seed)
        self._check_labels_and_pairs()
        self._check_reference()
        self._check_holdout()
        self._check_columns()
        self._check_types()
        if self.unit is None and self.rows_per_unit is not None:
            raise InputError("rows_per_unit is given without a unit.", "Give unit, too, or leave rows_per_unit out.")
        if self.unit is not None and self.spec.source == "groups":
            raise InputError("a unit is given with a reference per group.", "Use one of them.")
        _ = self.contribution_bound, self.kernel_spec
        if self.dataset is not None and self.new_dataset is not None:
            raise InputError("dataset and new_dataset are both given.", "Give the one that the table belongs to.")
        if self.is_counted and (self.split is not None or self.spec.source == "groups"):
            raise InputError(
                "a ledger keeps the hold-out of its data sets itself.", "Leave split and references per group out."
            )

    @cached_property
    def spec(self) -> ReferenceSpec:
        """The requested reference: a public table has the empirical one, else it is learned privately."""
        if self.reference is not None and not isinstance(self.reference, str):
            return as_spec(self.reference)
        default = "private" if self.public is None else "holdout"
        found: Any = by_name(default if self.reference is None else self.reference)
        given = self._of_private_reference()
        spec: ReferenceSpec = replace(found, **given) if given and found.source == "private" else found
        return spec

    @cached_property
    def kernel_spec(self) -> KernelSpec:
        """The requested kernel."""
        if isinstance(self.kernel, str):
            return kernel_named(self.kernel)
        if isinstance(self.kernel, type) or not hasattr(self.kernel, "build"):
            raise InputError(
                f"expected a kernel, got {type(self.kernel).__name__}.",
                'Use "optimal" or "laplace", or Optimal(...) or Laplace(...) from dipriv.kernels.',
            )
        return self.kernel

    @cached_property
    def contribution_bound(self) -> ContributionBound | None:
        """Whose rows share ε, if not each row has its own."""
        if self.unit is None:
            return None
        most = DEFAULT_ROWS_PER_UNIT if self.rows_per_unit is None else self.rows_per_unit
        return ContributionBound(self.unit, most)

    @property
    def is_counted(self) -> bool:
        """Whether a ledger counts the release: the given one, or the default one for a data set that is named."""
        return not (self.ledger is None and self.dataset is None and self.new_dataset is None)

    @property
    def row_epsilon(self) -> float:
        """The ε of one row: all of it, or its part of the unit's."""
        return self.epsilon if self.contribution_bound is None else self.contribution_bound.row_epsilon(self.epsilon)

    @property
    def total_delta(self) -> float:
        """The largest δ of the guarantee: as given, else 1e-9 for a private reference; others are pure."""
        if self.delta is not None:
            return self.delta
        return DEFAULT_DELTA if self.spec.source == "private" else 0.0

    @property
    def row_delta(self) -> float:
        """The largest δ of one row: all of it, or its part of the unit's.

        It is rounded down, so that its exact value is below the decimal number that the guarantee states.
        """
        bound, delta = self.contribution_bound, self.total_delta
        return math.nextafter(delta if bound is None else bound.row_delta(self.epsilon, delta), 0.0)

    @property
    def uses_holdout(self) -> bool:
        """Whether the reference comes from rows that are held out: a private one only on request."""
        if self.public is not None or self.spec.source == "nothing":
            return False
        return self.spec.source != "private" or self.holdout is not None or self.split is not None

    @property
    def groups(self) -> GroupHoldout | None:
        """The hold-out of a reference per group."""
        spec: Any = self.spec
        return GroupHoldout(spec.by, spec.first, spec.pick) if spec.source == "groups" else None

    @property
    def split_by(self) -> str | None:
        """The column that decides which rows are held out together."""
        return self.split.by if self.split is not None else self.unit

    @property
    def keys(self) -> tuple[str, ...]:
        """Columns that decide which rows are selected; they are not privatized."""
        by = self.groups.by if self.groups is not None else None
        keys = (self.unit, self.split.by if self.split is not None else None, by)
        return tuple(dict.fromkeys(name for name in keys if name is not None))

    def bits(self) -> Bits:
        """The random bits of one release: secure ones, or those of the seed."""
        return source(self.seed)

    def privatized(self, names: Sequence[str]) -> tuple[str, ...]:
        """The columns to privatize among those of a table, in the order of `columns`, else of the table."""
        for where in ("columns", "drop", "keep"):
            check_names(getattr(self, where) or (), names, where)
        check_names([name for name in (self.unit,) if name is not None], names, "unit")
        if self.split is not None and self.split.by is not None:
            check_names([self.split.by], names, "the split")
        excluded = {*self.keep, *self.drop, *self.keys}
        found = tuple(name for name in self.columns or names if name not in excluded)
        if not found:
            raise InputError(
                "no column is left to privatize.", "Name fewer columns in keep or drop, or more in columns."
            )
        check_pairs(getattr(self.spec, "pairs", ()), found)
        return found

    def declared(self, privatized: Sequence[str], names: Sequence[str]) -> Schema:
        """The declared kinds of the privatized columns; a schema may describe other columns of the table as well."""
        schema = self.schema if isinstance(self.schema, Schema) else Schema(self.schema or {})
        check_names(schema, names, "the schema")
        return Schema({name: kind for name, kind in schema.items() if name in privatized})

    def type_rules(self, privatized: Sequence[str], declared: Schema) -> TypeRules:
        """What the schema and `types` say about the types of columns of text."""
        if unused := [name for name in self.types or () if name not in privatized]:
            raise InputError(
                f"types names {unused[0]!r}, which is not a column that is privatized.",
                "Correct the name, or remove it.",
            )
        asks = getattr(self.spec, "labels", None) != "declared"
        return TypeRules.of(declared, self.types or {}, self.missing, asks=asks)

    def concerns(self) -> list[str]:
        """What takes protection away, in words."""
        found = []
        if self.seed is not None:
            found.append("the release is seeded and NOT PRIVATE: whoever knows the seed can undo the noise.")
        if self.keep:
            found.append(f"columns passed through unprotected: {', '.join(map(repr, self.keep))}.")
        if self.epsilon > LARGE_EPSILON:
            found.append(f"ε = {self.epsilon:g} is beyond {LARGE_EPSILON:g} and protects little.")
        if self.total_delta > LARGE_DELTA:
            found.append(
                f"δ = {in_full(self.total_delta)} is beyond {in_full(LARGE_DELTA)}: it allows a release without any "
                f"protection for one row in {math.floor(1 / self.total_delta):,}."
            )
        return found

    def warn(self) -> None:
        """Issue a `PrivacyWarning` for each concern."""
        for text in self.concerns():
            warnings.warn(text, PrivacyWarning, stacklevel=3)

    def _of_private_reference(self) -> dict[str, Any]:
        """The options that only a private reference has, where they are given."""
        given = {
            "target": self.target,
            "reference_share": self.reference_share,
            "labels": self.labels,
            "pairs": self.pairs or None,
        }
        return {name: value for name, value in given.items() if value is not None}

    def _check_labels_and_pairs(self) -> None:
        if self.labels is not None and self.labels not in get_args(LabelPolicy):
            raise InputError(
                f"labels={self.labels!r:.40} is unknown.", f"Use one of {', '.join(map(repr, get_args(LabelPolicy)))}."
            )
        pairs: Any = self.pairs
        well_formed = isinstance(pairs, Iterable) and not isinstance(pairs, str)
        object.__setattr__(self, "pairs", tuple(map(_pair, pairs)) if well_formed else (_pair(pairs),))

    def _check_reference(self) -> None:
        given = list(self._of_private_reference())
        own = self.reference is not None and not isinstance(self.reference, str)
        if given and (own or self.spec.source != "private"):
            raise InputError(
                f"{given[0]} is given, but the reference is not {'made from options' if own else 'private'}.",
                "Leave it out, or use the private reference: reference=Private(...) takes it, too."
                if own
                else "Leave it out, or use the private reference.",
            )
        if self.delta and self.spec.source != "private":
            raise InputError(
                f"delta={self.delta!r} is given, but with this reference ({self.spec.describe()}) a release is pure: "
                "its δ is 0.",
                "Leave delta out, or use the private reference.",
            )
        if self.public is None:
            return
        if self.reference in ("private", "holdout") or self.spec.source in ("private", "groups"):
            raise InputError(
                "a public table is given with a reference that is not fitted on it.",
                "Leave reference out, or use Empirical() or Parametric(...); or leave public out.",
            )
        if self.spec.source != "rows":
            raise InputError(
                f"a public table is given, but the reference ({self.spec.describe()}) is not fitted on one.",
                "Leave public out, or use the Empirical or Parametric reference.",
            )

    def _check_holdout(self) -> None:
        if self.holdout is not None:
            check_holdout(self.holdout)
        if self.split is not None and not isinstance(self.split, Split):
            raise InputError(
                f"expected a split, got {type(self.split).__name__}.",
                "Give the split of an earlier release, or Split.new().",
            )
        if self.holdout is not None and self.split is not None:
            raise InputError("holdout and split are both given.", "A split has its own share: leave holdout out.")
        for name in ("holdout", "split"):
            if getattr(self, name) is None:
                continue
            if self.public is not None:
                raise InputError(
                    f"{name} is given with a public table, where nothing is held out.", f"Leave {name} out."
                )
            if name == "holdout" and self.spec.source == "groups":
                raise InputError(
                    "holdout is given, but a reference per group holds out rows of each group.", "Leave holdout out."
                )
            if self.spec.source == "nothing":
                raise InputError(
                    f"{name} is given, but nothing is held out with this reference ({self.spec.describe()}).",
                    f"Leave {name} out.",
                )
        if self.unit is not None and self.split is not None and self.split.by != self.unit:
            raise InputError(
                f"the split does not keep the rows of one {self.unit!r} on one side.",
                f"Use Split.new(by={self.unit!r}), or leave split out.",
            )

    def _check_types(self) -> None:
        types: Any = self.types
        if types is not None and not isinstance(types, Mapping):
            raise InputError(
                f"expected types as a mapping, got {type(types).__name__}.", 'Write types={"income": "number", ...}.'
            )
        for name, column_type in (types or {}).items():
            if column_type not in get_args(ColumnType):
                raise InputError(
                    f"the type of column {name!r} is unknown: {column_type!r:.40}.",
                    f"Use one of {', '.join(get_args(ColumnType))}.",
                )
        marks: Any = self.missing
        if isinstance(marks, str) or not isinstance(marks, Iterable):
            raise InputError(
                f"expected missing as a list of texts, got {type(marks).__name__}.", "Write missing=[...]."
            )
        object.__setattr__(self, "missing", tuple(marks))
        if not all(isinstance(mark, str) for mark in self.missing):
            raise InputError("some of missing are not text.", 'Write missing=["-9", ...], as the cells are written.')

    def _check_columns(self) -> None:
        for where in ("columns", "drop", "keep"):
            names: Any = getattr(self, where)
            if isinstance(names, str):
                raise InputError(f"expected {where} as a list of names, got one name.", f"Write {where}=[{names!r}].")
            if names is None and where == "columns":
                continue
            if not isinstance(names, Iterable):
                got = type(names).__name__
                raise InputError(f"expected {where} as a list of names, got {got}.", f"Write {where}=[...].")
            object.__setattr__(self, where, tuple(names))
        if self.columns is not None and self.drop:
            raise InputError("columns and drop are both given.", "Name the columns to release, or those to leave out.")
        if both := set(self.columns or ()) & set(self.keep):
            raise InputError(f"column {min(both)!r} is in columns and in keep.", "Privatize it or pass it through.")
        if self.columns is not None and (both := set(self.columns) & set(self.keys)):
            raise InputError(
                f"column {min(both)!r} is in columns, but it decides which rows are selected.",
                "Leave it out of columns, or pass it through with keep.",
            )
        if both := set(self.drop) & {*self.keep, *self.keys}:
            raise InputError(f"column {min(both)!r} is in drop, but it is used.", "Leave it out of drop.")


def check_pairs(pairs: Iterable[tuple[str, str]], names: Sequence[str]) -> None:
    """Refuse pairs that are not two different privatized columns; all of them at once."""
    wrong = [_wrong_name(name, names) for pair in pairs for name in pair if name not in names]
    wrong += [f"{one!r} is paired with itself" for one, other in pairs if one == other and one in names]
    if wrong:
        raise InputError(
            f"pairs: {'; '.join(dict.fromkeys(wrong))}.", "Give pairs of two different columns that are privatized."
        )


def _wrong_name(name: str, names: Sequence[str]) -> str:
    close = get_close_matches(name, names, 1)
    return f"{name!r} is not a privatized column" + (f" (did you mean {close[0]!r}?)" if close else "")


def _pair(pair: Any) -> tuple[str, str]:
    names = (pair,) if isinstance(pair, str) or not isinstance(pair, Iterable) else tuple(pair)
    if len(names) != 2 or not all(isinstance(name, str) for name in names):
        raise InputError(
            f"expected each of pairs as two column names, got {len(names)} of type {type(names[0]).__name__}."
            if names
            else "expected each of pairs as two column names, got none.",
            'Write pairs=[("age", "income"), ...].',
        )
    return names[0], names[1]
