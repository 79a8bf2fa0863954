"""The private reference: learned from the rows themselves under a part of ε, so that every row is protected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

from dipriv._base.columns import NumericColumn
from dipriv.errors import InputError
from dipriv.references._learning.domain import check_column, domain_of
from dipriv.references._learning.learn import NetworkPlan
from dipriv.references.protocol import LabelPolicy, Order, reference_spec
from dipriv.schema import Kind, Schema


@reference_spec("private")
@dataclass(frozen=True)
class Private:
    """Bins for each column and a network of two-way tables, all estimated under differential privacy.

    Parameters
    ----------
    target : a column of interest: it becomes a parent of all others, so that their dependence on it is kept best.
    reference_share : the part of ε that is spent on the reference; the rest protects the rows. By default p/(p + 1)
        for p columns.
    labels : where the labels of text columns come from that the schema does not declare. "private": found under
        (ε, δ), all others become one label, `(other)`. "declared": such columns are refused. "public": read from the
        rows and called public.
    pairs : pairs of columns whose joint distribution is measured first.

    Raises
    ------
    InputError : the share is not between 0 and 1, or the target is not text.

    Examples
    --------
    >>> Private().share(columns=1), Private().share(columns=9)
    (Fraction(1, 2), Fraction(9, 10))
    """

    target: str | None = None
    reference_share: float | None = None
    labels: LabelPolicy = "private"
    pairs: tuple[tuple[str, str], ...] = ()
    order: ClassVar[Order] = None
    by: ClassVar[None] = None
    source: ClassVar[Literal["private"]] = "private"

    def __post_init__(self) -> None:
        share = self.reference_share
        if share is not None and (isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share < 1):
            raise InputError(
                f"reference_share={share!r} is not a share between 0 and 1.", "Use for example reference_share=0.5."
            )
        if self.target is not None and not isinstance(self.target, str):
            raise InputError(
                f"expected target as text, got {type(self.target).__name__}.", "Give the name of a column."
            )

    def share(self, columns: int) -> Fraction:
        """The reference's part of ε: the more columns there are, the less information a row's own noisy values keep."""
        return Fraction(columns, columns + 1) if self.reference_share is None else Fraction(self.reference_share)

    def check(self, columns: Sequence[NumericColumn], schema: Schema) -> None:
        if self.target not in (None, *(column.name for column in columns)):
            raise InputError(
                f"target names {self.target!r}, which is not a column of the table ({len(columns)} columns).",
                "Correct the name, or remove it.",
            )
        for column in columns:
            check_column(column, schema.get(column.name))

    def plan(
        self,
        columns: Sequence[NumericColumn],
        schema: Schema,
        epsilon: float,
        delta: float,
        rows: int,
        *,
        disjoint: bool,
    ) -> NetworkPlan:
        self.check(columns, schema)
        domains = tuple(domain_of(column, schema.get(column.name)) for column in columns)
        if disjoint:
            return NetworkPlan(domains, self.target, Fraction(epsilon), epsilon)
        row_epsilon = float(Fraction(epsilon) * (1 - self.share(len(columns))))
        return NetworkPlan(domains, self.target, Fraction(epsilon) - Fraction(row_epsilon), row_epsilon)

    def kinds(self, names: Sequence[str]) -> Mapping[str, Kind]:
        return {}

    def exposes(self, columns: int) -> bool:
        return False

    def describe(self) -> str:
        return "private (bins and two-way tables learned under differential privacy)"
