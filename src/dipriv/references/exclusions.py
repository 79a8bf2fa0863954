"""Cells of two columns that no row has together: a public fact, which a schema states as an implication."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Comparison: TypeAlias = Literal["<", "<=", ">", ">=", "in", "not in", "all", "none"]


@dataclass(frozen=True)
class Region:
    """Some cells of a column: the present ones that compare in this way with `values`, and the missing ones if said.

    Values are numbers as the column has them, or labels.
    """

    column: str
    comparison: Comparison
    values: tuple[str | int | float | bool, ...] = ()
    missing: bool = False
    is_label: bool = False


@dataclass(frozen=True)
class Exclusion:
    """No row has a cell of the one region and a cell of the other."""

    one: Region
    other: Region
    is_measured: bool = True
    """Whether the table of the two columns is measured before others, where tables are measured."""
