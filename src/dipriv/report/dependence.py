"""Dependence of all pairs of columns: Spearman's correlation of numbers, Cramér's V of everything in bins."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dipriv._base.arrays import FloatArray
from dipriv.report.columns import MAX_BARS
from dipriv.report.facts import MIN_ROWS_SHOWN, Change, Dependence, HeatMap, Matrix
from dipriv.report.pairing import Pair
from dipriv.utility.total_variation import cell_edges

MAX_CHANGES = 10
COARSE = 10
"""Numbers with many values are cut into about this many bins with equal shares of the original rows."""
MIN_STRENGTH = 0.1
"""Pairs with a weaker dependence in the original are not counted among those that are kept or lost."""

Codes = NDArray[np.intp]


def dependence(pairs: Sequence[Pair], others: Sequence[str] = ()) -> Dependence | None:
    """Heat maps and the largest changes; None where there are no two columns to compare.

    Parameters
    ----------
    pairs : the columns to compare.
    others : the names of columns that have no place here.

    Returns
    -------
    Dependence : Spearman's correlations of numbers, and Cramér's V of all columns if some have labels.
    """
    shown = [pair for pair in pairs if _some(pair)]
    numbers = [pair for pair in shown if pair.scale != "label"]
    maps = []
    if len(numbers) > 1:
        before, after = (spearman([_side(pair, side) for pair in numbers]) for side in (0, 1))
        maps.append(HeatMap("Spearman", tuple(pair.name for pair in numbers), before, after))
    if len(shown) > 1 and len(numbers) < len(shown):
        codes = [_codes(pair) for pair in shown]
        before, after = (cramer([both[side] for both in codes]) for side in (0, 1))
        maps.append(HeatMap("Cramér's V", tuple(pair.name for pair in shown), before, after))
    if not maps:
        return None
    placed = {name for chart in maps for name in chart.names}
    found = changes(maps)
    strong = [change for change in found if abs(change.before) >= MIN_STRENGTH]
    return Dependence(
        tuple(maps),
        tuple(sorted(found, key=lambda change: -abs(change.difference))[:MAX_CHANGES]),
        (*(pair.name for pair in pairs if pair.name not in placed), *others),
        len(strong),
        sum(change.is_lost for change in strong),
    )


def spearman(columns: Sequence[FloatArray]) -> Matrix:
    """Correlations of the ranks within each column, over the rows where neither of a pair is missing."""
    there = np.stack([~np.isnan(column) for column in columns], axis=1).astype(np.float64)
    ranks = np.zeros_like(there)
    for place, column in enumerate(columns):
        known = there[:, place] > 0
        ranks[known, place] = stats.rankdata(column[known])
        ranks[known, place] -= ranks[known, place].mean()
    n = there.T @ there
    sums, squares, products = ranks.T @ there, (ranks**2).T @ there, ranks.T @ ranks
    with np.errstate(all="ignore"):
        covariance = products - sums * sums.T / n
        spread = np.sqrt(np.maximum(squares - sums**2 / n, 0.0))
        matrix = np.clip(covariance / (spread * spread.T), -1.0, 1.0)
    matrix[(n < MIN_ROWS_SHOWN) | (spread <= 0) | (spread.T <= 0)] = np.nan
    return _plain(matrix)


def cramer(columns: Sequence[Codes]) -> Matrix:
    """Cramér's V of each pair of coded columns, corrected for its bias (Bergsma 2013)."""
    matrix = np.ones((len(columns), len(columns)))
    for one, two in combinations(range(len(columns)), 2):
        matrix[one, two] = matrix[two, one] = cramers_v(columns[one], columns[two])
    for place, column in enumerate(columns):
        if len(np.unique(column)) < 2:
            matrix[place, place] = np.nan
    return _plain(matrix)


def cramers_v(one: Codes, two: Codes) -> float:
    """The bias-corrected V of two coded columns; not-a-number where one is constant."""
    width = int(two.max()) + 1
    table = np.bincount(one * width + two, minlength=(int(one.max()) + 1) * width).reshape(-1, width)
    table = table[table.any(axis=1)][:, table.any(axis=0)]
    rows, columns = table.shape
    n = len(one)
    if min(rows, columns) < 2 or n < MIN_ROWS_SHOWN:
        return float("nan")
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
    excess = max(0.0, float(np.sum((table - expected) ** 2 / expected)) / n - (rows - 1) * (columns - 1) / (n - 1))
    fewer = min(side - (side - 1) ** 2 / (n - 1) for side in (rows, columns)) - 1
    return min(1.0, float(np.sqrt(excess / fewer))) if fewer > 0 else float("nan")


def changes(maps: Sequence[HeatMap]) -> list[Change]:
    """All pairs: two numbers by Spearman's correlation, the others by Cramér's V.

    A pair without a measure in the release, where one of its columns became constant, has no dependence left.
    """
    ranked = {name for chart in maps if chart.measure == "Spearman" for name in chart.names}
    found = []
    for chart in maps:
        for one, two in combinations(range(len(chart.names)), 2):
            names = chart.names[one], chart.names[two]
            before, after = chart.before[one][two], chart.after[one][two]
            if before is None or (chart.measure != "Spearman" and ranked.issuperset(names)):
                continue
            found.append(Change(*names, chart.measure, before, after or 0.0))
    return found


def _some(pair: Pair) -> bool:
    return min(len(pair.before.present), len(pair.after.present)) >= MIN_ROWS_SHOWN


def _side(pair: Pair, side: int) -> FloatArray:
    return (pair.before, pair.after)[side].all


def _codes(pair: Pair) -> tuple[Codes, Codes]:
    """Both sides in the same levels or bins, all of them taken from the original; a null is a level.

    Of labels the most frequent ones are levels, and the others one more. A value that many rows hold has a bin of its
    own.
    """
    known = pair.before.present
    if pair.scale == "label":
        counts = np.bincount(known.astype(np.intp), minlength=len(pair.labels))
        kept = np.argsort(-counts, kind="stable")[:MAX_BARS]
        kept = kept[counts[kept] >= MIN_ROWS_SHOWN]
        place = np.full(len(counts), len(kept))
        place[kept] = np.arange(len(kept))
        codes = [place[np.nan_to_num(_side(pair, side)).astype(np.intp)] for side in (0, 1)]
    else:
        edges = cell_edges(known, COARSE)
        codes = [np.searchsorted(edges, np.nan_to_num(_side(pair, side))) for side in (0, 1)]
    one, two = (np.where(np.isnan(_side(pair, side)), 0, code + 1).astype(np.intp) for side, code in enumerate(codes))
    return one, two


def _plain(matrix: FloatArray) -> Matrix:
    return tuple(tuple(None if np.isnan(cell) else float(cell) for cell in row) for row in matrix)
