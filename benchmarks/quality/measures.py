"""Distances between a table and its release; each is 0 (or a score of 1,000) for the table itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import hypergeom

from benchmarks.quality.bins import Bins, Codebook, Codes, Levels
from dipriv._base.arrays import FloatArray
from dipriv.utility.total_variation import number_variation, total_variation
from research.experiments import bank

RANK_BINS, TRIPLES = 20, 300
MANY = 1 << 20
"""Cells of a table beyond which only those that occur are counted."""
Triple = tuple[str, str, str]


def logistic_kl(original: FloatArray, released: FloatArray) -> float:
    """Mean KL of the probabilities that logistic regression on a release gives the original rows, in whole units."""
    truth = bank.probabilities(original, bank.logistic(original))
    return bank.divergence(truth, bank.probabilities(original, bank.logistic(released))) / 100


def ks(x: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """Largest difference of the two empirical distribution functions; NaN counts as the largest value."""
    x, y = np.sort(np.asarray(x)), np.sort(np.asarray(y))
    both = np.concatenate([x, y])
    above = np.searchsorted(x, both, side="right") / len(x) - np.searchsorted(y, both, side="right") / len(y)
    return float(np.abs(above).max())


def label_variation(x: pd.Series[Any], y: pd.Series[Any]) -> float:
    """The total variation of columns of labels; nulls are one more label."""
    codes = pd.factorize(pd.concat([x.astype(object), y.astype(object)], ignore_index=True))[0] + 1
    return _variation(codes, len(x))


def column_variation(x: pd.Series[Any], y: pd.Series[Any]) -> float:
    """The total variation of a column, as reports measure it; nulls are one more value."""
    if not pd.api.types.is_numeric_dtype(x) or x.dtype == np.bool_:
        return label_variation(x, y)
    a, b = (side.to_numpy(np.float64, na_value=np.nan) for side in (x, y))
    nulls = float(np.isnan(a).mean()), float(np.isnan(b).mean())
    return number_variation(a[~np.isnan(a)], b[~np.isnan(b)], nulls)


def triples(columns: Sequence[str], count: int = TRIPLES, seed: int = 0) -> list[Triple]:
    """A fixed random choice among all sets of three columns, or all of them."""
    every = list(combinations(columns, 3))
    if len(every) <= count:
        return every
    chosen = np.random.default_rng(seed).choice(len(every), count, replace=False)
    return [every[number] for number in sorted(chosen)]


def on_bins(original: pd.DataFrame, released: pd.DataFrame, book: Codebook, count: int = TRIPLES) -> dict[str, float]:
    """Scores of all margins, all pairs and some triples of columns on public bins; other values share one cell."""
    names = list(book)
    cells = {
        name: np.concatenate([_coded(book[name], frame[name]) for frame in (original, released)]) for name in names
    }
    sets: dict[str, list[Any]] = {
        "margins": [(name,) for name in names],
        "pairs": list(combinations(names, 2)),
        "triples": triples(names, count),
    }
    return {kind: score(cells, chosen, len(original)) for kind, chosen in sets.items() if chosen}


def label_margins(original: pd.DataFrame, released: pd.DataFrame, labels: Sequence[str]) -> float:
    """Mean total variation of columns of labels."""
    return float(np.mean([label_variation(original[name], released[name]) for name in labels]))


def k_marginal(
    original: pd.DataFrame, released: pd.DataFrame, chosen: Sequence[Triple], numeric: Sequence[str]
) -> float:
    """NIST's score: 1000 (1 - mean total variation of three-way tables).

    As in SDNist, numeric columns fall into 20 bins of equal rank in the original; text among their numbers, and nulls,
    are cells of their own.
    """
    cells = {name: _cells(original[name], released[name], name in numeric) for name in original.columns}
    return score(cells, chosen, len(original))


def score(cells: Mapping[str, Codes], sets: Sequence[tuple[str, ...]], n: int) -> float:
    """1000 (1 - mean total variation) over tables of sets of columns; the first n codes are the original's."""
    apart = []
    for names in sets:
        key = np.zeros(len(cells[names[0]]), dtype=np.int64)
        for name in names:
            key = key * (cells[name].max() + 1) + cells[name]
        place = np.unique(key, return_inverse=True)[1] if key.max() > MANY else key
        apart.append(_variation(place, n))
    return float(1000 * (1 - np.mean(apart)))


def _variation(codes: npt.NDArray[np.intp], n: int) -> float:
    """The total variation of the first n codes and the others."""
    p, q = (np.bincount(part, minlength=codes.max() + 1) / len(part) for part in (codes[:n], codes[n:]))
    return total_variation(p, q)


def _coded(code: Levels | Bins, column: pd.Series[Any]) -> Codes:
    codes = code.encode(column)
    return np.where(codes < 0, code.size, codes)


def _cells(original: pd.Series[Any], released: pd.Series[Any], numeric: bool) -> Codes:
    """Codes of both columns, one after the other."""
    both = pd.concat([original, released], ignore_index=True)
    if numeric:
        number = pd.to_numeric(both, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        known = np.sort(number[: len(original)][~np.isnan(number[: len(original)])])
        edges = np.unique(known[-(-np.arange(1, RANK_BINS) * len(known) // RANK_BINS) - 1])
        binned = pd.Series(np.searchsorted(edges, number)).astype(str)
        both = binned.where(~np.isnan(number), "not a number: " + both.astype(str))
    return np.asarray(pd.factorize(both, use_na_sentinel=False)[0], dtype=np.int64)


def excess_bound(seen: int, unseen: int, published: int, alarm: float) -> float:
    """What the share of seen people published may exceed that of unseen people by, with probability 1 - alarm.

    Two binomial samples of one rate, given their total: which of the people are "seen" was drawn at random, so the
    number of seen among the published is hypergeometric if the release knows nothing of who was seen.
    """
    most = int(hypergeom.isf(alarm, seen + unseen, seen, published))  # P(more than this many) <= alarm
    return most / seen - (published - most) / unseen
