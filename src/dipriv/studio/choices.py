"""What was chosen so far, and the options of `dipriv.privatize` that it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dipriv.dialect import DETECTED, Dialect
from dipriv.schema import ColumnType, Schema

NOTHING = Schema({})


@dataclass(frozen=True)
class Choices:
    """A table, what is public about it, the question, and the budget; the meaning of each is that of an option."""

    path: Path
    name: str
    """Of the table's file, as the user has it: uploads have other names here."""
    is_upload: bool = False
    dialect: Dialect = DETECTED
    types: Mapping[str, ColumnType] = field(default_factory=dict)
    schema: Schema = NOTHING
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    unit: str | None = None
    rows_per_unit: int | None = None
    target: str | None = None
    pairs: tuple[tuple[str, str], ...] = ()
    epsilon: float = 1.0
    delta: float | None = None
    seed: int | None = None
    dataset: str | None = None
    is_new: bool = False
    """Whether the table has other people than all data sets that it resembles: `new_dataset`."""
    output: str = ""

    def of_plan(self) -> dict[str, Any]:
        """The options that a forecast depends on, where they are given."""
        given: dict[str, Any] = {
            "delta": self.delta,
            "schema": self.schema if self.schema != NOTHING or self.schema.is_draft else None,
            "types": dict(self.types) or None,
            "dialect": self.dialect or None,
            "keep": self.keep or None,
            "drop": self.drop or None,
            "unit": self.unit,
            "rows_per_unit": self.rows_per_unit,
            "target": self.target,
            "pairs": self.pairs or None,
        }
        return {name: value for name, value in given.items() if value is not None}

    def of_release(self) -> dict[str, Any]:
        """All options of a release but for ε and the ledger, where they are given."""
        given = {"new_dataset" if self.is_new else "dataset": self.dataset, "seed": self.seed}
        return self.of_plan() | {name: value for name, value in given.items() if value is not None}
