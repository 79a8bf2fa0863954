"""Repeated measurements (appendix S4): rows of a group share a distribution, estimated from its first rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dipriv._base.arrays import FloatArray
from dipriv._base.coordinates import EncodedColumn, UniformCoordinate
from dipriv.errors import InputError
from dipriv.references._models.boxes import Boxes, Edge, Groups
from dipriv.references.empirical import check_edge
from dipriv.references.protocol import Order, ReferenceRows
from dipriv.schema import Kind


@dataclass(frozen=True)
class Grouped:
    """One empirical reference for each group of rows, fitted on some of its rows; the others are released.

    All groups are stored in the same arrays: thousands of them cost no more than one.

    Parameters
    ----------
    by : the column that names the group of a row.
    first : how many rows of each group are reference rows; every group needs more.
    pick : "first" (the first rows in table order) or "random".
    edge, order : as for `Empirical`.

    Raises
    ------
    InputError : an argument is not one of these.

    Examples
    --------
    >>> Grouped(by="patient", first=3).describe()
    "empirical distribution of the reference rows of each group of 'patient'"
    """

    by: str
    first: int = 1
    pick: Literal["first", "random"] = "first"
    edge: Edge = "unit-free"
    order: Order = None
    uses_counts: ClassVar[bool] = False
    source: ClassVar[Literal["groups"]] = "groups"

    def __post_init__(self) -> None:
        check_edge(self.edge)
        if self.pick not in ("first", "random"):
            raise InputError(f"pick={self.pick!r} is unknown.", 'Use "first" or "random".')
        if isinstance(self.first, bool) or not isinstance(self.first, int) or self.first < 1:
            raise InputError(f"first={self.first!r} is not a whole number >= 1.", "Use the number of rows to hold out.")

    def kinds(self, names: Sequence[str]) -> Mapping[str, Kind]:
        return {}

    def fit(self, rows: ReferenceRows) -> GroupedBoxes:
        groups = np.zeros(len(rows.v), dtype=np.intp) if rows.groups is None else rows.groups
        return GroupedBoxes(Boxes.build(rows.v, rows.lower, self.edge, groups))

    def exposes(self, columns: int) -> bool:
        return True

    def describe(self) -> str:
        return f"empirical distribution of the reference rows of each group of {self.by!r}"


@dataclass(frozen=True, eq=False)
class GroupedBoxes:
    """Fitted references of all groups; `at(groups)` is the reference of rows whose groups are known."""

    boxes: Boxes

    def at(self, groups: Groups) -> AtGroups:
        return AtGroups(self.boxes, groups)

    def coordinates(self, columns: Sequence[EncodedColumn]) -> list[UniformCoordinate]:
        return self.boxes.coordinates(columns)


@dataclass(frozen=True, eq=False)
class AtGroups:
    """A `Reference` for rows of given groups: each row uses the boxes of its own group."""

    boxes: Boxes
    groups: Groups

    def to_uniform(self, v: FloatArray) -> FloatArray:
        return self.boxes.to_uniform(v, self.groups)

    def from_uniform(self, u: FloatArray) -> FloatArray:
        return self.boxes.from_uniform(u, self.groups)

    def coordinates(self, columns: Sequence[EncodedColumn]) -> list[UniformCoordinate]:
        return self.boxes.coordinates(columns)
