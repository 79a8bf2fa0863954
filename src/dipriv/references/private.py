"""The private reference: learned from the rows themselves under a part of ε, so that every row is protected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal

from dipriv._base.columns import NumericColumn
from dipriv._base.decimals import at_most
from dipriv._base.near_names import did_you_mean
from dipriv.errors import InputError, refuse_all, unusable
from dipriv.references._learning.domain import Domain, check_column, domain_of
from dipriv.references._learning.learn import MarkovPlan, plan_shares
from dipriv.references.exclusions import Exclusion
from dipriv.references.protocol import LabelPolicy, Order, reference_spec
from dipriv.schema import Kind, Schema

SHARES = tuple(Fraction(percent, 100) for percent in (15, 20, 25, 30, 35, 40, 45, 50, 60, 70, 80, 90, 95, 99))
"""Parts of ε that the reference may have by default."""
ALLOWED_ERROR, ALLOWED_ERROR_ALONE = 2.5, 0.45
"""How large the noise in the reference's cells may be beside their sampling error, by default. It must be less for a
single column, whose cells must show single values."""
MIN_SHARE = Fraction(40, 100)
"""The least part of ε for a reference of several columns: their dependence shows in many small cells."""


@reference_spec("private")
@dataclass(frozen=True)
class Private:
    """A Markov network: histograms of columns and tables of the pairs that matter most, all measured under (ε, δ).

    Parameters
    ----------
    target : a column of interest: its pairs with all other columns are measured first.
    reference_share : the part of ε that is spent on the reference; the rest protects the rows. By default the least
        that a good reference needs for this number of rows and columns.
    labels : where the labels of text columns come from that the schema does not declare. "private": found under
        (ε, δ), all others become one label, `(other)`. "declared": such columns are refused. "public": read from the
        rows and called public.
    pairs : pairs of columns whose joint distribution is measured first.
    exclusions : cells of two columns that no row has together, a public fact; the rules of a schema state them.
    leading : columns that come first in the chain rule; those that are constant in a person do.

    Raises
    ------
    InputError : the share is not between 0 and 1, or the target is not text.

    Examples
    --------
    >>> Private(target="income", pairs=(("age", "sex"),)).labels
    'private'
    """

    target: str | None = None
    reference_share: float | None = None
    labels: LabelPolicy = "private"
    pairs: tuple[tuple[str, str], ...] = ()
    exclusions: tuple[Exclusion, ...] = ()
    leading: tuple[str, ...] = ()
    order: ClassVar[Order] = None
    by: ClassVar[None] = None
    source: ClassVar[Literal["private"]] = "private"

    def __post_init__(self) -> None:
        share = self.reference_share
        if share is not None and (isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share < 1):
            raise InputError(
                f"reference_share={share!r} is not a share between 0 and 1.",
                "Use for example reference_share=0.5.",
                command="Use for example --reference-share 0.5.",
            )
        if self.target is not None and not isinstance(self.target, str):
            raise InputError(
                f"expected target as text, got {type(self.target).__name__}.", "Give the name of a column."
            )

    def check(self, columns: Sequence[NumericColumn], schema: Schema) -> None:
        names = [column.name for column in columns]
        wanted = [] if self.target is None else [("target", self.target)]
        wanted += [("pairs", name) for pair in self.pairs for name in pair]
        if unknown := [
            f"{option}: {name!r}{did_you_mean(name, names)}" for option, name in wanted if name not in names
        ]:
            raise InputError(
                f"no such column among the {len(columns)} that are released: {', '.join(dict.fromkeys(unknown))}.",
                "Correct the name, or remove it.",
            )
        column_of = {column.name: column for column in columns}
        refuse_all(unusable(column_of, lambda name: check_column(column_of[name], schema.get(name))))

    def plan(
        self,
        columns: Sequence[NumericColumn],
        schema: Schema,
        epsilon: float,
        delta: float,
        rows: int,
        *,
        disjoint: bool,
    ) -> MarkovPlan:
        self.check(columns, schema)
        domains = tuple(
            replace(domain_of(column, schema.get(column.name), delta > 0), boundaries=self._boundaries(column.name))
            for column in columns
        )
        names = [column.name for column in columns]
        first = self._first(names)
        exclusions = self._about(names)
        leading = frozenset(names.index(name) for name in self.leading)
        measured = tuple(dict.fromkeys((*first, *_pairs(exclusions, names))))
        whole, most = at_most(epsilon), Fraction(delta)
        if disjoint:
            settled, shares = plan_shares(domains, rows, whole, most, len(first))
            return MarkovPlan(settled, measured, shares, whole, epsilon, exclusions, leading)
        row_epsilon = float(whole * (1 - self._share(domains, rows, whole, most, len(first))))
        left = whole - Fraction(row_epsilon)
        settled, shares = plan_shares(domains, rows, left, most, len(first))
        return MarkovPlan(settled, measured, shares, left, row_epsilon, exclusions, leading)

    def _share(self, domains: Sequence[Domain], rows: int, epsilon: Fraction, delta: Fraction, first: int) -> Fraction:
        """The reference's part of ε: what is given, else the least that makes its noise a small multiple of sampling
        error. The rows get what the reference does not need.
        """
        if self.reference_share is not None:
            return Fraction(self.reference_share)
        for share in SHARES if len(domains) == 1 else SHARES[SHARES.index(MIN_SHARE) :]:
            shares = plan_shares(domains, rows, epsilon * share, delta, first)[1]
            if shares.error(rows) <= (ALLOWED_ERROR_ALONE if len(domains) == 1 else ALLOWED_ERROR):
                return share
        return SHARES[-1]

    def _first(self, names: Sequence[str]) -> tuple[tuple[int, int], ...]:
        """The pairs to measure first: those listed, then the target with every other column."""
        listed = [(names.index(one), names.index(other)) for one, other in self.pairs]
        if self.target is not None:
            target = names.index(self.target)
            listed += [(target, other) for other in range(len(names)) if other != target]
        return tuple(dict.fromkeys((min(pair), max(pair)) for pair in listed))

    def _about(self, names: Sequence[str]) -> tuple[Exclusion, ...]:
        """The exclusions both of whose columns are there."""
        return tuple(each for each in self.exclusions if {each.one.column, each.other.column} <= {*names})

    def _boundaries(self, name: str) -> tuple[float, ...]:
        """The numbers that rules compare a column with."""
        regions = [region for each in self.exclusions for region in (each.one, each.other) if region.column == name]
        return tuple(float(value) for region in regions if not region.is_label for value in region.values)

    def kinds(self, names: Sequence[str]) -> Mapping[str, Kind]:
        return {}

    def exposes(self, columns: int) -> bool:
        return False

    def describe(self) -> str:
        return "private (a Markov network of two-way tables learned under differential privacy)"


def _pairs(exclusions: Sequence[Exclusion], names: Sequence[str]) -> list[tuple[int, int]]:
    """The pairs that implications are about. They are measured after those of the user, where tables are measured, and
    never for their own sake: zeros alone make the rules true.
    """
    pairs = [(names.index(each.one.column), names.index(each.other.column)) for each in exclusions if each.is_measured]
    return [(min(pair), max(pair)) for pair in pairs]
