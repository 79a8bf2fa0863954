"""Columns as codes 0 to k - 1: levels, or bins between public edges; what the peers get and what scores compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Levels:
    """Labels or few numbers, in order; other values have the code -1."""

    values: tuple[Any, ...]

    @classmethod
    def of(cls, column: pd.Series[Any]) -> Levels:
        return cls(tuple(sorted(column.unique().tolist())))

    @property
    def size(self) -> int:
        return len(self.values)

    def encode(self, column: pd.Series[Any]) -> Codes:
        return np.asarray(pd.Index(self.values).get_indexer(pd.Index(column)), dtype=np.int64)

    def decode(self, codes: Codes, rng: np.random.Generator) -> pd.Series[Any]:
        return pd.Series(list(self.values)).take(codes).reset_index(drop=True)


@dataclass(frozen=True)
class Bins:
    """A wide numeric column: bins [a, b) between public edges, one more cell for `null`; whole numbers stay whole."""

    edges: tuple[float, ...]
    whole: bool = True
    null: Any = None

    @property
    def size(self) -> int:
        return len(self.edges) - 1 + (self.null is not None)

    def encode(self, column: pd.Series[Any]) -> Codes:
        numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        last = len(self.edges) - 2
        inside = np.clip(np.searchsorted(self.edges, numbers, side="right") - 1, 0, last)
        return np.where(np.isnan(numbers), last + 1, inside)

    def decode(self, codes: Codes, rng: np.random.Generator) -> pd.Series[Any]:
        last = len(self.edges) - 2
        left, right = (np.asarray(self.edges)[np.minimum(codes, last) + step] for step in (0, 1))
        drawn = rng.integers(left.astype(np.int64), right.astype(np.int64)) if self.whole else rng.uniform(left, right)
        if self.null is None:
            return pd.Series(drawn)
        if isinstance(self.null, str):  # numbers kept as text
            return pd.Series(np.where(codes > last, self.null, drawn.astype(str).astype(object)))
        return pd.Series(np.where(codes > last, np.nan, drawn))


Codebook = Mapping[str, Levels | Bins]


def codebook(frame: pd.DataFrame, bins: Mapping[str, Bins]) -> Codebook:
    """Bins where they are given, the levels of the column elsewhere."""
    return {name: bins[name] if name in bins else Levels.of(frame[name]) for name in map(str, frame.columns)}
