"""From a fit plan and where its reference comes from to the guarantee: no more is claimed than is proved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from dipriv._base.decimals import round_up
from dipriv.guarantee.guarantee import (
    Assumption,
    AssumptionKind,
    Guarantee,
    Model,
    Neighbouring,
    PrivacyUnit,
    ReferenceFacts,
    ReferenceSource,
    UnitKind,
    Unprotected,
    UnprotectedKind,
)
from dipriv.kernels import KernelSpec
from dipriv.references import ReferenceSpec
from dipriv.release.fitting import FitPlan
from dipriv.sources.contribution_bound import ContributionBound

_SOURCES = {
    "known": ReferenceSource.KNOWN,
    "public": ReferenceSource.PUBLIC,
    "private": ReferenceSource.PRIVATE,
    "holdout": ReferenceSource.HOLDOUT,
    "groups": ReferenceSource.GROUPS,
    "fit": ReferenceSource.FIT_ROWS,
}


@dataclass(frozen=True)
class Origin:
    """Where the reference came from, and how many rows were held out for it and released."""

    source: Literal["known", "public", "private", "holdout", "groups", "fit"]
    held: int = 0
    released: int = 0
    split_by: str | None = None
    learned_from: int = 0
    """Rows of the hold-out within the contribution bound."""

    @property
    def is_public(self) -> bool:
        """Whether the reference may be published: it is public, or was learned under differential privacy."""
        return self.source in ("known", "public", "private")

    @property
    def unprotected(self) -> tuple[Unprotected, ...]:
        """The reference rows, where the guarantee does not cover them."""
        if self.is_public:
            return ()
        if self.source == "fit":
            return (Unprotected(UnprotectedKind.FIT_ROWS),)
        kind = UnprotectedKind.HOLDOUT_ROWS if self.source == "holdout" else UnprotectedKind.GROUP_ROWS
        return (Unprotected(kind, self.held),)


def make_guarantee(
    spec: ReferenceSpec,
    kernel: KernelSpec,
    plan: FitPlan,
    origin: Origin,
    keep: Sequence[str],
    *,
    epsilon: float,
    delta: float,
    secure: bool,
    unit: ContributionBound | None = None,
    renumbered: bool = False,
    types_inferred: bool = False,
    coded: Sequence[str] = (),
    fitted_once: bool = False,
    drafted: Sequence[str] = (),
) -> Guarantee:
    """The guarantee of a release from one table; with a unit, of all rows of one unit, which share ε and δ.

    `delta` is the largest δ that the plan was allowed; the guarantee is pure where the plan needs none.
    """
    delta = delta if plan.delta else 0.0
    unchanged = (Unprotected(UnprotectedKind.UNCHANGED_COLUMNS, columns=tuple(keep)),) if keep else ()
    counted = not origin.is_public and origin.source != "fit"
    return Guarantee(
        epsilon=epsilon,
        kernel=kernel.describe(),
        reference=_reference(spec, plan, origin, delta if unit is None else round_up(plan.delta)),
        delta=delta,
        unit=PrivacyUnit() if unit is None else PrivacyUnit.rows_of(unit.column, unit.max_rows),
        unprotected=(*origin.unprotected, *unchanged),
        released_rows=origin.released if counted else None,
        assumptions=(
            *_about_reference(spec, plan, origin),
            *_about_table(plan, origin, unit, renumbered),
            *([Assumption(AssumptionKind.DRAFT_PUBLIC, tuple(drafted))] if drafted else []),
            *([Assumption(AssumptionKind.FILE_TYPES_PUBLIC)] * types_inferred),
            *([Assumption(AssumptionKind.CODES_PUBLIC, tuple(coded))] if coded else []),
            *([Assumption(AssumptionKind.TRANSFORMED_ONCE, epsilon=plan.row_epsilon)] * fitted_once),
            *_about_authors(spec, kernel),
        ),
        secure_randomness=secure,
    )


def make_local_guarantee(spec: ReferenceSpec, kernel: KernelSpec, plan: FitPlan, origin: Origin) -> Guarantee:
    """The guarantee of an exported reference that owners apply to their own records (Definition S1)."""
    learned = spec.source == "private"
    found = ReferenceFacts(ReferenceSource.PRIVATE, _description(spec, plan))
    reference = found if learned else _reference(spec, plan, origin)
    not_learned_from = (Assumption(AssumptionKind.RECORD_NOT_LEARNED_FROM),) if learned else ()
    return Guarantee(
        epsilon=plan.row_epsilon,
        kernel=kernel.describe(),
        reference=reference,
        model=Model.LOCAL,
        unit=PrivacyUnit(UnitKind.RECORD),
        neighbouring=Neighbouring.ANY_TWO,
        assumptions=(
            *_about_reference(spec, plan, origin),
            *_about_columns(plan),
            *not_learned_from,
            Assumption(AssumptionKind.RECORD_RELEASED_ONCE),
            *_about_authors(spec, kernel),
        ),
    )


def _reference(spec: ReferenceSpec, plan: FitPlan, origin: Origin, delta: float = 0.0) -> ReferenceFacts:
    """With the δ of each row that a private reference is learned from."""
    source, description = _SOURCES[origin.source], _description(spec, plan)
    if spec.source != "private":
        return ReferenceFacts(source, description)
    if origin.held:
        return ReferenceFacts(source, description, rows=origin.learned_from, delta=delta or None)
    return ReferenceFacts(source, description, float(plan.reference_epsilon), plan.row_epsilon, delta=delta or None)


def _description(spec: ReferenceSpec, plan: FitPlan) -> str:
    """The reference in a few words, and what becomes of rare labels."""
    rare = " in which labels that few rows have are released as (other)" if plan.labels_found else ""
    return spec.describe() + rare


def _about_reference(spec: ReferenceSpec, plan: FitPlan, origin: Origin) -> Iterator[Assumption]:
    if spec.source == "private":
        if plan.labels_read:
            yield Assumption(AssumptionKind.LABELS_PUBLIC, plan.labels_read)
    elif origin.source == "known":
        yield Assumption(AssumptionKind.DISTRIBUTION_DATA_INDEPENDENT)
    elif origin.source == "public":
        yield Assumption(AssumptionKind.TABLE_PUBLIC)
    else:
        yield Assumption(AssumptionKind.REFERENCE_ROWS_FIXED)
        if spec.exposes(plan.width):
            yield Assumption(AssumptionKind.REFERENCE_ROWS_EXPOSED)
        yield Assumption(AssumptionKind.UNDECLARED_FACTS_READ)


def _about_table(
    plan: FitPlan, origin: Origin, unit: ContributionBound | None, renumbered: bool
) -> Iterator[Assumption]:
    yield Assumption(AssumptionKind.SHAPE_PUBLIC)
    yield from _about_columns(plan)
    if origin.split_by is not None:
        yield Assumption(AssumptionKind.SPLIT_COLUMN_PUBLIC, (origin.split_by,))
    if unit is not None:
        yield Assumption(AssumptionKind.UNIT_SIZES_PUBLIC, (unit.column,))
        if renumbered:
            yield Assumption(AssumptionKind.UNIT_RENUMBERED, (unit.column,))
        if unit.constant:
            yield Assumption(AssumptionKind.UNIT_CONSTANTS, unit.constant)
    elif plan.by is not None:
        yield Assumption(AssumptionKind.GROUP_COLUMN_PUBLIC, (plan.by,))
    else:
        yield Assumption(AssumptionKind.ONE_ROW_PER_PERSON)


def _about_authors(spec: ReferenceSpec, kernel: KernelSpec) -> Iterator[Assumption]:
    """Parts from elsewhere whose proofs ε rests on: a kernel, or a reference that is learned privately."""
    needed = [kernel, *([spec] if spec.source == "private" else [])]
    if names := tuple(type(part).__name__ for part in needed if not type(part).__module__.startswith("dipriv.")):
        yield Assumption(AssumptionKind.AUTHORS_PROOF, names)


def _about_columns(plan: FitPlan) -> Iterator[Assumption]:
    if plan.stated:
        yield Assumption(AssumptionKind.SCHEMA_PUBLIC, plan.stated)
    if plan.rewriting is not None:
        yield Assumption(AssumptionKind.RULES_PUBLIC, plan.rewriting.rules.columns())
    if plan.lists_categories:
        yield Assumption(AssumptionKind.CATEGORIES_PUBLIC)
