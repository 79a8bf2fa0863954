"""From a fitted mechanism and where its reference came from to the guarantee: said no more strongly than proved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dipriv.guarantee.guarantee import Guarantee
from dipriv.kernels import KernelSpec
from dipriv.references import ReferenceSpec
from dipriv.release.fitting import FitPlan
from dipriv.sources.privacy_unit import PrivacyUnit

TYPES_READ = "the types of the file's columns, which were read from all its rows, are public"


@dataclass(frozen=True)
class Origin:
    """Where the reference came from, and how many rows were held out for it and released."""

    source: Literal["law", "public", "private", "holdout", "groups", "fit"]
    held: int = 0
    released: int = 0
    split_by: str | None = None

    @property
    def is_public(self) -> bool:
        """Whether the reference may be published: it is public, or was learned under differential privacy."""
        return self.source in ("law", "public", "private")

    @property
    def protects(self) -> str:
        """Whom the guarantee protects."""
        if self.is_public:
            return "every row"
        if self.source == "fit":
            return "the rows passed to transform; the rows passed to fit have no formal protection"
        rows = "hold-out rows" if self.source == "holdout" else "held-out rows of the groups"
        return f"the {self.released} released rows; the {self.held} {rows} have no formal protection"


def promise(
    recipe: ReferenceSpec,
    kernel: KernelSpec,
    basis: FitPlan,
    origin: Origin,
    keep: Sequence[str],
    *,
    epsilon: float,
    secure: bool,
    unit: PrivacyUnit | None = None,
    types_inferred: bool = False,
    fitted_once: bool = False,
) -> Guarantee:
    """The guarantee of a release from one table; with a unit, of all rows of a person, which share ε."""
    row = Guarantee(
        epsilon=epsilon,
        protects=origin.protects,
        kernel=kernel.describe(),
        reference=_reference(recipe, basis, origin),
        conditions=(*_reference_conditions(recipe, basis, origin), *_table_conditions(basis, origin, keep, unit)),
        secure_randomness=secure,
    )
    if types_inferred:
        row = replace(row, conditions=(*row.conditions, TYPES_READ))
    if fitted_once:
        once = f"a row is transformed once: each further time adds ε = {basis.row_epsilon:.4g}"
        row = replace(row, conditions=(*row.conditions, once))
    if unit is None:
        return row
    return replace(row, unit=unit.describe(), neighbours=f"replace the rows of one {unit.column!r}")


def local_promise(recipe: ReferenceSpec, kernel: KernelSpec, basis: FitPlan, origin: Origin) -> Guarantee:
    """The guarantee of an exported reference that owners apply to their own records (Definition S1)."""
    learned = recipe.source == "private"
    return Guarantee(
        epsilon=basis.row_epsilon,
        protects="the owner of a record, from everyone else, the collector included",
        kernel=kernel.describe(),
        reference=recipe.describe() if learned else _reference(recipe, basis, origin),
        conditions=(
            *_reference_conditions(recipe, basis, origin),
            *(
                [f"what the schema declares is public, for {', '.join(map(repr, basis.declared))}"]
                * bool(basis.declared)
            ),
            *(["the categories listed in the types of columns are public"] * basis.lists_categories),
            *(["the record is not among the rows that the reference was learned from, or their ε is added"] * learned),
            "the record is privatized once, where it is: each further release of it adds its ε",
        ),
        model="local",
        unit="one record",
        neighbours="any two records",
    )


def _reference(recipe: ReferenceSpec, basis: FitPlan, origin: Origin) -> str:
    if recipe.source == "private":
        if origin.held:
            return f"{recipe.describe()} from {origin.held} other rows under the same ε"
        of_reference = float(basis.reference_epsilon)
        return f"{recipe.describe()}, ε = {of_reference:.4g} of each row; the kernel has ε = {basis.row_epsilon:.4g}"
    return recipe.describe() + (", a public table" if origin.source == "public" else "")


def _reference_conditions(recipe: ReferenceSpec, basis: FitPlan, origin: Origin) -> list[str]:
    if recipe.source == "private":
        return [f"the labels met in {', '.join(map(repr, basis.labels_read))} are public"] * bool(basis.labels_read)
    if origin.source == "law":
        return ["the law was stated without looking at these rows"]
    if origin.source == "public":
        return ["the public table is public indeed, and was not made from these rows"]
    said = ["reference rows are never released, and any further release holds out the same rows"]
    if recipe.exposes(basis.width):
        said.append(
            "it is accepted that released rows lie close to single reference rows, which may so be published nearly "
            "verbatim"
        )
    said.append("levels, atoms, steps and nulls not declared in a schema were read from the reference rows")
    return said


def _table_conditions(basis: FitPlan, origin: Origin, keep: Sequence[str], unit: PrivacyUnit | None) -> list[str]:
    said = ["column names and types, the number and order of the rows, and any index are public"]
    if basis.declared:
        said.append(f"what the schema declares is public, for {', '.join(map(repr, basis.declared))}")
    if basis.lists_categories:
        said.append("the categories listed in the types of columns are public")
    if keep:
        said.append(f"columns passed through unchanged have no protection: {', '.join(map(repr, keep))}")
    if origin.split_by is not None:
        said.append(f"column {origin.split_by!r}, which decides which rows are held out, is public")
    if unit is not None:
        said.append(
            f"which rows belong together in {unit.column!r}, and how many, is public; of each only {unit.max_rows} rows, "
            "picked at random, are released"
        )
    elif basis.by is not None:
        said.append(
            f"column {basis.by!r}, which says whose reference a row uses, is public; rows are protected one by one, "
            "several rows of one group not together"
        )
    else:
        said.append("each person has one row: several rows of a person are protected one by one, not together")
    return said
