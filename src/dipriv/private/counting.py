"""Exact counts over all rows, batch by batch, side by side for many columns. What they return is private."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dipriv.chunks import threads
from dipriv.codecs.lines import Codes
from dipriv.jit import jit
from dipriv.private.noise import Counts
from dipriv.private.structure import Pair


def in_parallel(work: Any, items: Iterable[Any]) -> list[Any]:
    """The work on each item, in order, on all cores."""
    with ThreadPoolExecutor(threads()) as pool:
        return list(pool.map(work, items))


def below(codes: Codes, boundaries: Codes) -> Counts:
    """How many codes are less than each of the sorted boundaries."""
    counts = np.zeros(len(boundaries) + 1, dtype=np.int64)
    tally(codes, boundaries, counts)
    return np.cumsum(counts)[:-1]


@jit
def tally(codes: Codes, boundaries: Codes, counts: Counts) -> None:
    """counts[k] grows by the codes that exactly k boundaries are not above."""
    for i in range(len(codes)):
        low, high = 0, len(boundaries)
        while low < high:
            middle = (low + high) >> 1
            if boundaries[middle] <= codes[i]:
                low = middle + 1
            else:
                high = middle
        counts[low] += 1


def count_pairs(
    groups: Sequence[NDArray[np.int32]], sizes: Sequence[int], pairs: Sequence[Pair], counts: list[Counts]
) -> None:
    """Add to counts[k] the joint groups of the columns pairs[k]; `groups` has one line a column."""

    def one(number: int) -> None:
        i, j = pairs[number]
        count_joint(groups[i], groups[j], sizes[j], counts[number].reshape(-1))

    in_parallel(one, range(len(pairs)))


@jit
def count_joint(first: NDArray[np.int32], second: NDArray[np.int32], width: int, counts: Counts) -> None:
    for i in range(len(first)):
        counts[first[i] * width + second[i]] += 1
