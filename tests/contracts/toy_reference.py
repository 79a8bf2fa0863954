"""A reference in one file: independent logistic columns. It registers itself, and needs no edit of the package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
from scipy.special import expit, logit

from dipriv._base.arrays import FloatArray
from dipriv._base.coordinates import EncodedColumn, UniformCoordinate, without_levels
from dipriv.references import Order, ReferenceRows, reference_spec
from dipriv.schema import Kind


@reference_spec("toy")
@dataclass(frozen=True)
class Toy:
    """Independent logistic columns with the means and standard deviations of the reference rows."""

    order: ClassVar[Order] = None
    by: ClassVar[None] = None
    uses_counts: ClassVar[bool] = False
    source: ClassVar[Literal["rows"]] = "rows"

    def kinds(self, names: Sequence[str]) -> Mapping[str, Kind]:
        return {}

    def exposes(self, columns: int) -> bool:
        return False

    def describe(self) -> str:
        return "independent logistic columns fitted to the reference rows"

    def fit(self, rows: ReferenceRows) -> Logistic:
        return Logistic(rows.v.mean(axis=0), rows.v.std(axis=0) * np.sqrt(3) / np.pi)


@dataclass(frozen=True, eq=False)
class Logistic:
    mean: FloatArray = field(repr=False)
    scale: FloatArray = field(repr=False)

    def to_uniform(self, v: FloatArray) -> FloatArray:
        return np.asarray(expit((np.clip(v, -1e300, 1e300) - self.mean) / self.scale))

    def from_uniform(self, u: FloatArray) -> FloatArray:
        return np.asarray(self.mean + self.scale * logit(u))

    def coordinates(self, columns: Sequence[EncodedColumn]) -> list[UniformCoordinate]:
        return without_levels(columns)
