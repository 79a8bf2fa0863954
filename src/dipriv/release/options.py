"""Every option of a release, with every default and every refusal, in one place.

An option that would have no effect is an error: the caller believes that it has one.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, cast, get_args

from dipriv._base.decimals import in_full
from dipriv._base.near_names import did_you_mean, listed, unknown_columns
from dipriv._random.bits import Bits, Seed, source
from dipriv._rules import NO_RULES, Rules
from dipriv._tables.column_types import TypeRules
from dipriv._tables.frames import check_names
from dipriv.dialect import DETECTED, Dialect
from dipriv.errors import InputError, PrivacyWarning
from dipriv.guarantee import check_delta, check_epsilon
from dipriv.kernels import KernelSpec, Optimal
from dipriv.kernels import by_name as kernel_named
from dipriv.references import ReferenceSpec
from dipriv.references.protocol import LabelPolicy, as_spec, by_name
from dipriv.release.rules import Rewriting, in_force
from dipriv.schema import ColumnType, Identifier, Schema, SchemaLike, as_schema
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
_OPTIONS = {"reference_share": "reference-share", "pairs": "pair"}
"""Options whose names on the command line are others."""
ReferenceLike = str | ReferenceSpec | None
KernelLike = str | KernelSpec


class OptionTypes(TypedDict, total=False):
    """The types of the options of `dipriv.privatize`, for editors and type checkers."""

    delta: float | None
    reference: ReferenceLike
    kernel: KernelLike
    schema: SchemaLike
    types: Mapping[str, ColumnType] | None
    missing: Sequence[str]
    dialect: Dialect | None
    columns: Sequence[str] | None
    drop: Sequence[str]
    keep: Sequence[str]
    holdout: float | None
    split: Split | None
    public: Any
    unit: str | None
    rows_per_unit: int | None
    constant: Sequence[str]
    target: str | None
    reference_share: float | None
    labels: LabelPolicy | None
    pairs: Sequence[tuple[str, str]]
    ledger: Ledger | str | Path | None
    dataset: str | Sequence[str] | None
    new_dataset: str | Sequence[str] | None
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
    dialect: Dialect | None = None
    columns: Sequence[str] | None = None
    drop: Sequence[str] = ()
    keep: Sequence[str] = ()
    holdout: float | None = None
    split: Split | None = None
    public: Any = field(default=None, repr=False)
    unit: str | None = None
    rows_per_unit: int | None = None
    constant: Sequence[str] = ()
    target: str | None = None
    reference_share: float | None = None
    labels: LabelPolicy | None = None
    pairs: Sequence[tuple[str, str]] = ()
    ledger: Ledger | str | Path | None = field(default=None, repr=False)
    dataset: str | Sequence[str] | None = None
    new_dataset: str | Sequence[str] | None = None
    seed: Seed = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        if self.delta is not None:
            object.__setattr__(self, "delta", check_delta(self.delta))
        object.__setattr__(self, "schema", as_schema(self.schema))
        source(self.seed)
        self._check_labels_and_pairs()
        self._check_reference()
        self._check_holdout()
        self._check_columns()
        self._check_types()
        if self.unit is None and self.rows_per_unit is not None:
            raise InputError(
                "rows_per_unit is given without a unit.",
                "Give unit, too, or leave rows_per_unit out.",
                command="Give --unit, too, or leave --rows-per-unit out.",
            )
        if self.unit is None and self.constant:
            raise InputError(
                "constant is given without a unit: it names columns that are constant in a person.",
                "Give unit, too, or leave constant out.",
                command="Give --unit, too, or leave --constant out.",
            )
        if self.constant and self.spec.source == "private" and not hasattr(self.spec, "leading"):
            raise InputError(
                f"the reference ({self.spec.describe()}) cannot take constant columns first.", "Leave constant out."
            )
        if self.constant and self.spec.source == "rows" and self.spec.exposes(2):
            raise InputError(
                f"constant is given with a reference ({self.spec.describe()}) where a person's constant columns would "
                "decide all others: it has them together in one reference row.",
                "Leave constant out, or use the private reference, Parametric or Known.",
                command="Leave --constant out, or use the private reference.",
            )
        if self.unit is not None and self.spec.source == "groups":
            raise InputError("a unit is given with a reference per group.", "Use one of them.")
        _ = self.contribution_bound, self.kernel_spec
        if self.dataset is not None and self.new_dataset is not None:
            raise InputError(
                "dataset and new_dataset are both given.",
                "Give the one that the table belongs to.",
                command="Give --dataset or --new-dataset.",
            )
        if not (self.dataset_names or self.dataset is self.new_dataset is None):
            raise InputError("the list of data sets is empty.", "Name those of the table, or leave it out.")
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
        """The requested kernel; with constant columns, one that perturbs them independently of the others."""
        if isinstance(self.kernel, str):
            found = kernel_named(self.kernel)
            return replace(found, directions=False) if self.constant and isinstance(found, Optimal) else found
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
        return ContributionBound(self.unit, most, tuple(self.constant))

    @cached_property
    def dialects(self) -> tuple[Dialect, Dialect]:
        """How the table's file is written: by options, and by the schema, which other tables may have, too."""
        own = DETECTED if self.dialect is None else self.dialect
        of_schema = self._schema.dialect
        return replace(own, missing=(*own.missing, *self.missing)), of_schema

    @cached_property
    def file_dialect(self) -> Dialect:
        """What both of them say: by options, else by the schema."""
        own, of_schema = self.dialects
        return own.over(of_schema)

    @property
    def is_counted(self) -> bool:
        """Whether a ledger counts the release: the given one, or the default one for a data set that is named."""
        return not (self.ledger is None and self.dataset is None and self.new_dataset is None)

    @property
    def dataset_names(self) -> tuple[str, ...]:
        """The names of the table's data sets: its own, and others that count it, too."""
        given = self.dataset if self.new_dataset is None else self.new_dataset
        if given is None or isinstance(given, str):
            return () if given is None else (given,)
        return tuple(given) if isinstance(given, Sequence) else (given,)

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
    def renumbered(self) -> str | None:
        """The column of the unit, where it is released with new keys: not if it is kept, dropped or not asked for."""
        asked = self.unit is not None and (self.columns is None or self.unit in self.columns)
        return self.unit if asked and self.unit not in (*self.keep, *self.drop) else None

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
        if wrong := unknown_columns(self._named(), names):
            raise InputError(*wrong)
        for where in ("columns", "drop", "keep", "constant"):
            check_names(getattr(self, where) or (), names, where)
        left_out = self._schema.left_out
        if both := [name for name in left_out if name in (self.columns or ())]:
            raise InputError(
                f"column {both[0]!r} is in columns, but the schema declares it {self._schema.meanings[both[0]]!r}, "
                "which is not privatized.",
                "Leave it out of columns, or declare another kind.",
            )
        excluded = {*self.keep, *self.drop, *self.keys, *left_out}
        found = tuple(name for name in self.columns or names if name not in excluded)
        if not found:
            raise InputError(
                "no column is left to privatize.",
                "Name fewer columns in keep or drop, or more in columns.",
                command="Name fewer columns with --keep or --drop.",
            )
        check_pairs(getattr(self.spec, "pairs", ()), found)
        if others := [name for name in self.constant if name not in found]:
            raise InputError(
                f"constant names {', '.join(map(repr, others))}, which {'is' if len(others) == 1 else 'are'} not "
                "privatized.",
                "Name columns that are privatized.",
            )
        return found

    def declared(self, privatized: Sequence[str]) -> Schema:
        """The declared kinds of the privatized columns; a schema may describe other columns of the table as well."""
        return self._schema.only(privatized)

    @property
    def _schema(self) -> Schema:
        return cast(Schema, self.schema)  # a file is read once

    @cached_property
    def anew(self) -> tuple[str, ...]:
        """The columns of identifiers that are released with new ones."""
        used = {*self.keep, *self.drop, *self.keys}
        found = [name for name, of in self._schema.meanings.items() if isinstance(of, Identifier) and of.anew]
        return tuple(name for name in found if name not in used)

    @property
    def read_from_rows(self) -> tuple[str, ...]:
        """The columns of a draft for which levels, atoms, bounds, steps or resolutions are declared."""
        return self._schema.read_from_rows

    @property
    def left_out(self) -> dict[str, str]:
        """{column: what it is} for the columns that the schema leaves out."""
        gone = [name for name in self._schema.left_out if name not in {*self.keep, *self.keys, *self.anew}]
        return {name: self._schema.meanings[name].name for name in gone}

    def rules(self, privatized: Sequence[str], names: Sequence[str]) -> Rules:
        """The rules of the schema about columns that are privatized."""
        stated = self._schema.rules
        return in_force(stated, names, privatized, self.keep) if stated else NO_RULES

    def learned_constant(self, rewriting: Rewriting | None) -> tuple[str, ...]:
        """The learned columns that are released once for a person.

        Raises
        ------
        InputError : by a rule of the schema, a constant column follows from one that is not.
        """
        return tuple(self.constant) if rewriting is None else rewriting.learned_constant(self.constant)

    def spec_for(self, rewriting: Rewriting | None) -> ReferenceSpec:
        """The requested reference for the columns that are learned: others may follow from them.

        Raises
        ------
        InputError : the target, or a column of `pairs`, is derived.
        """
        spec: Any = self.spec
        if spec.source != "private":
            return self.spec
        if self.constant:
            spec = replace(spec, leading=self.learned_constant(rewriting))
        if rewriting is None:
            return cast(ReferenceSpec, spec)
        wanted = {name for pair in spec.pairs for name in pair} | ({spec.target} - {None})
        if derived := sorted(name for name in wanted if rewriting.learned_name(name) is None):
            raise InputError(
                f"target or pairs name {derived[0]!r}, which is derived from other columns by a rule of the schema.",
                "Name the columns that it is derived from.",
            )
        pairs = [(rewriting.learned_name(one), rewriting.learned_name(other)) for one, other in spec.pairs]
        changed: ReferenceSpec = replace(
            spec,
            target=None if spec.target is None else rewriting.learned_name(spec.target),
            pairs=tuple((one, other) for one, other in pairs if one != other),
            exclusions=(*spec.exclusions, *rewriting.exclusions),
        )
        return changed

    def type_rules(self, privatized: Sequence[str], declared: Schema) -> TypeRules:
        """What the schema and `types` say about the types of columns of text."""
        if unused := [name for name in self.types or () if name not in privatized]:
            raise InputError(
                f"types names {listed(unused)}, but only columns that are privatized have one.",
                "Leave it out of types, or privatize it.",
                command="Leave --type out, or privatize the column.",
            )
        asks = getattr(self.spec, "labels", None) != "declared"
        return TypeRules.of(declared, self.types or {}, self.file_dialect, asks=asks)

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
        if self._schema.is_draft:
            found.append(
                "the schema is a draft that dipriv made from the private rows: what it declares is taken as public, "
                "and not protected. Check that, then remove its section [draft]."
            )
        return found

    def warn(self) -> None:
        """Issue a `PrivacyWarning` for each concern."""
        for text in self.concerns():
            warnings.warn(text, PrivacyWarning, stacklevel=3)

    def _named(self) -> list[tuple[str, Iterable[object]]]:
        """The columns that options and the schema name, and where; `check_pairs` has those of pairs."""
        split_by = None if self.split is None else self.split.by
        return [
            ("columns", self.columns or ()),
            ("drop", self.drop),
            ("keep", self.keep),
            ("constant", self.constant),
            *((where, [name]) for where, name in (("unit", self.unit), ("the split", split_by)) if name is not None),
            ("target", [name for name in (getattr(self.spec, "target", None),) if name is not None]),
            ("types", self.types or ()),
            ("the schema", (*self._schema, *self._schema.left_out)),
        ]

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
                f"labels={self.labels!r:.40} is unknown{did_you_mean(self.labels, get_args(LabelPolicy))}.",
                f"Use one of {', '.join(map(repr, get_args(LabelPolicy)))}.",
                command=f"Use one of {', '.join(get_args(LabelPolicy))}.",
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
                command=f"Leave --{_OPTIONS.get(given[0], given[0])} out, or use --reference private.",
            )
        if self.delta and self.spec.source != "private":
            raise InputError(
                f"delta={self.delta!r} is given, but with this reference ({self.spec.describe()}) a release is pure: "
                "its δ is 0.",
                "Leave delta out, or use the private reference.",
                command="Leave --delta out, or use --reference private.",
            )
        if self.public is None:
            return
        if self.reference in ("private", "holdout") or self.spec.source in ("private", "groups"):
            raise InputError(
                "a public table is given with a reference that is not fitted on it.",
                "Leave reference out, or use Empirical() or Parametric(...); or leave public out.",
                command="Leave --reference or --public out.",
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
                    f"{name} is given with a public table, where nothing is held out.",
                    f"Leave {name} out.",
                    command=f"Leave --{name} out.",
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
                    f"the type of column {name!r} is unknown: {column_type!r:.40}"
                    f"{did_you_mean(column_type, get_args(ColumnType))}.",
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

        if self.dialect is not None and not isinstance(self.dialect, Dialect):
            raise InputError(
                f"expected a dialect, got {type(self.dialect).__name__}.",
                'Write dialect=dipriv.Dialect(separator=";", ...).',
            )

    def _check_columns(self) -> None:
        for where in ("columns", "drop", "keep", "constant"):
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
        if self.columns is not None and (both := set(self.columns) & {*self.keys} - {self.unit}):
            raise InputError(
                f"column {min(both)!r} is in columns, but it decides which rows are selected.",
                "Leave it out of columns, or pass it through with keep.",
            )
        if both := set(self.drop) & {*self.keep, *({*self.keys} - {self.unit})}:
            raise InputError(
                f"column {min(both)!r} is in drop, but it is used.",
                "Leave it out of drop.",
                command="Leave it out of --drop.",
            )


def check_pairs(pairs: Iterable[tuple[str, str]], names: Sequence[str]) -> None:
    """Refuse pairs that are not two different privatized columns; all of them at once."""
    wrong = [_wrong_name(name, names) for pair in pairs for name in pair if name not in names]
    wrong += [f"{one!r} is paired with itself" for one, other in pairs if one == other and one in names]
    if wrong:
        raise InputError(
            f"pairs: {'; '.join(dict.fromkeys(wrong))}.", "Give pairs of two different columns that are privatized."
        )


def _wrong_name(name: str, names: Sequence[str]) -> str:
    return f"{name!r} is not a privatized column{did_you_mean(name, names)}"


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
