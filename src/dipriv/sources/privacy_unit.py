"""Privacy per person: all rows that share a key share ε, and each key has at most so many rows.

With at most K rows a key and ε/K a row, the rows of one person together are ε-private (basic composition). Which K rows
of a key stay is decided by a keyed hash of their positions: by nothing that the rows contain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dipriv._arrays import Mask
from dipriv.errors import InputError


@dataclass(frozen=True)
class Unit:
    """The column that says whose a row is, and how many rows of each are released at most.

    >>> Unit("person", 4).row_epsilon(1.0) * 4 <= 1.0
    True
    """

    column: str
    rows: int = 10

    def __post_init__(self) -> None:
        if isinstance(self.rows, bool) or not isinstance(self.rows, int) or not 1 <= self.rows <= 1_000_000:
            raise InputError(
                f"rows_per_unit={self.rows!r} is not a whole number from 1 to 1,000,000.",
                "Give the largest number of rows of one person that are released.",
            )

    def row_epsilon(self, epsilon: float) -> float:
        """The budget of one row: K of them add up to no more than ε."""
        return epsilon if self.rows == 1 else math.nextafter(epsilon / self.rows, 0.0)

    def describe(self) -> str:
        return f"the rows of one {self.column!r} (at most {self.rows})"

    def kept(self, keys: NDArray[np.uint64], scores: NDArray[np.uint64]) -> Mask:
        """True for the rows of each key with the lowest scores, at most so many."""
        order = np.lexsort((scores, keys))
        ordered = keys[order]
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        sizes = np.diff(np.append(starts, len(keys)))
        rank = np.arange(len(keys)) - np.repeat(starts, sizes)
        kept = np.empty(len(keys), dtype=bool)
        kept[order] = rank < self.rows
        return kept
