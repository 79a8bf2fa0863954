"""The paper's own reference: the continualized empirical distribution of reference rows (S1.5, S1.6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from dipriv.errors import InputError
from dipriv.references._models.boxes import Boxes, Edge
from dipriv.references._models.distributions import LevelsDistribution
from dipriv.references._models.independent import Independent
from dipriv.references.protocol import Order, ReferenceRows, reference_spec
from dipriv.schema import Kind


@reference_spec("holdout")
@dataclass(frozen=True)
class Empirical:
    """Reference rows spread over boxes; fitted on a hold-out, on a public table, or on rows of your own.

    A single column of levels has the distribution of their relative frequencies, spread as in Lemma S1. With several
    columns each released row is close to one reference row, so reference rows that are not public come out nearly
    verbatim: the guarantee says so.

    Parameters
    ----------
    edge : where the lowest box starts: "unit-free" (one mean gap below the minimum) or "paper" (one unit below).
    order : the order of the chain rule: None (as given), a list of column names, or "random".

    Raises
    ------
    InputError : the edge is unknown.

    Examples
    --------
    >>> Empirical(edge="paper", order="random").describe()
    'empirical distribution of the reference rows'
    """

    edge: Edge = "unit-free"
    order: Order = None
    by: ClassVar[None] = None
    uses_counts: ClassVar[bool] = True
    source: ClassVar[Literal["rows"]] = "rows"

    def __post_init__(self) -> None:
        check_edge(self.edge)

    def kinds(self, names: Sequence[str]) -> Mapping[str, Kind]:
        return {}

    def fit(self, rows: ReferenceRows) -> Boxes | Independent:
        if rows.counts is None:
            return Boxes.build(rows.v, rows.lower, self.edge)
        return Independent((LevelsDistribution.on_line(float(rows.lower[0]), rows.counts),))

    def exposes(self, columns: int) -> bool:
        return columns > 1

    def describe(self) -> str:
        return "empirical distribution of the reference rows"


def check_edge(edge: object) -> None:
    if edge not in ("unit-free", "paper"):
        raise InputError(f"edge={edge!r} is unknown.", 'Use "unit-free" or "paper".')
