"""One column of both tables -> its facts: quantiles, moments, levels, histogram, tails; no single cell among them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dipriv._base.arrays import FloatArray
from dipriv.report.distances import distances
from dipriv.report.facts import MIN_ROWS_SHOWN, Axis, ColumnFacts, Distance, Histogram, Levels, TableRow, Tails
from dipriv.report.fidelity import row_fidelity
from dipriv.report.grades import grade, reasons
from dipriv.report.pairing import Pair
from dipriv.schema import Discrete

QUANTILES = (0.01, 0.05, 0.25, 0.50, 0.75, 0.95, 0.99)
MAX_BARS = 20
MAX_LABELS = 200
"""A text column with more labels is counted, not listed."""
OFTEN = 0.5
"""A number that this share of the rows holds is listed beside the histogram, not drawn into it."""
EDGE = 0.005
MAX_BINS = 40
TAIL_POINTS = 80
MAX_DRAWN = 1e200
"""matplotlib's arithmetic fails on numbers near the largest and the smallest."""
FAR = 30
"""Ranges over 30 times as wide as the interquartile range are drawn on a compressed (asinh) scale."""


def column_facts(
    pair: Pair, expected: Mapping[str, float], bound: float | None, rng: np.random.Generator, repeats: int
) -> ColumnFacts:
    """All that the report says about one column."""
    before, after = pair.before.present, pair.after.present
    parts = _Parts()
    note = ""
    if pair.unchanged:
        note = "The column was passed through: every released row has its original value. "
    if getattr(pair.kind, "total", None) is not None:
        note += "The original's weights are shown rescaled to the declared total, as the released ones are. "
    if min(len(before), len(after)) < MIN_ROWS_SHOWN:
        note += f"Fewer than {MIN_ROWS_SHOWN} values on one side: nothing more is shown."
    elif pair.scale == "label":
        parts = _of_labels(pair, before, after)
        if parts.levels is None:
            note += f"More than {MAX_LABELS} different labels: they are counted, not listed."
    else:
        parts = _of_numbers(pair, before, after)
    measured: tuple[Distance, ...] = ()
    if min(len(before), len(after)) >= MIN_ROWS_SHOWN:
        measured = distances(
            pair.before.all, pair.after.all, are_labels=pair.scale == "label", rng=rng, repeats=repeats
        )
    return ColumnFacts(
        name=pair.name,
        kind="empty" if pair.kind is None else pair.kind.name,
        scale=pair.scale,
        clock=pair.clock,
        present=(len(before), len(after)),
        nulls=(pair.before.nulls, pair.after.nulls),
        distinct=(len(np.unique(before)), len(np.unique(after))),
        grade=grade(pair, measured),
        reasons=reasons(pair, measured),
        unchanged=pair.unchanged,
        distances=measured,
        fidelity=row_fidelity(pair, expected.get(pair.name), bound),
        quantiles=parts.quantiles,
        moments=parts.moments,
        levels=parts.levels,
        frequent=parts.frequent,
        histogram=parts.histogram,
        tails=parts.tails,
        note=note,
    )


@dataclass(frozen=True, repr=False)
class _Parts:
    """What depends on whether a column holds labels or numbers."""

    quantiles: tuple[TableRow, ...] = ()
    moments: tuple[TableRow, ...] = ()
    levels: Levels | None = None
    frequent: tuple[TableRow, ...] = ()
    histogram: Histogram | None = None
    tails: Tails | None = None


def _of_labels(pair: Pair, before: FloatArray, after: FloatArray) -> _Parts:
    if len(pair.labels) > MAX_LABELS:
        return _Parts()
    counts = np.bincount(before.astype(np.intp), minlength=len(pair.labels))
    ordered = np.argsort(-counts, kind="stable")
    shown = ordered[counts[ordered] >= MIN_ROWS_SHOWN][:MAX_BARS]
    return _Parts(levels=level_shares(before, after, shown.astype(np.float64), [pair.labels[code] for code in shown]))


def _of_numbers(pair: Pair, before: FloatArray, after: FloatArray) -> _Parts:
    before, after = np.sort(before), np.sort(after)
    quantiles = tuple(
        TableRow(f"{share:.0%}", *(_finite(shown_quantile(side, share)) for side in (before, after)))
        for share in QUANTILES
    )
    moments = tuple(
        TableRow(name, one, two)
        for name, one, two in zip(
            ("mean", "standard deviation", "skewness"), shown_moments(before), shown_moments(after), strict=True
        )
    )
    values, counts = np.unique(before, return_counts=True)
    shown = values[counts >= MIN_ROWS_SHOWN]
    if pair.scale == "number" and len(values) <= MAX_BARS and len(shown):
        levels = level_shares(before, after, shown, [_written(value) for value in shown])
        return _Parts(quantiles, moments, levels)
    often = values[counts >= max(MIN_ROWS_SHOWN, OFTEN * len(before))]
    rest = [side[~np.isin(side, often)] for side in (before, after)]
    frequent = tuple(
        TableRow(_written(value), float(np.mean(before == value)), float(np.mean(after == value)))
        for value in (often if pair.scale == "number" else often[:0])
    )
    if not frequent:
        rest = [before, after]
    return _Parts(
        quantiles,
        moments,
        None,
        frequent,
        histogram(rest[0], rest[1], _lattice(pair, values), (len(before), len(after))),
        tails(before, after),
    )


def level_shares(before: FloatArray, after: FloatArray, shown: FloatArray, labels: list[str]) -> Levels:
    """The share that each of some levels has, and what is left to the others."""
    one, two = (tuple(float(np.mean(side == level)) for level in shown) for side in (before, after))
    others = tuple(int(np.count_nonzero(~np.isin(side, shown))) for side in (before, after))
    if not any(others):
        return Levels(tuple(labels), one, two, has_other=False)
    return Levels((*labels, "other"), (*one, others[0] / len(before)), (*two, others[1] / len(after)), has_other=True)


def shown_quantile(ordered: FloatArray, share: float) -> float | None:
    """A quantile of sorted values that is no single cell: one that five rows hold, else the mean of the five around it.

    None where fewer than five rows lie beyond it.
    """
    n, rank = len(ordered), round(len(ordered) * share, 9)
    if min(rank, n - rank) < MIN_ROWS_SHOWN:
        return None
    place = int(np.ceil(rank)) - 1
    value = float(ordered[place])
    held = np.searchsorted(ordered, value, side="right") - np.searchsorted(ordered, value, side="left")
    if held >= MIN_ROWS_SHOWN:
        return value
    return float(np.mean(ordered[place - MIN_ROWS_SHOWN // 2 : place + MIN_ROWS_SHOWN // 2 + 1]))


def shown_moments(values: FloatArray) -> tuple[float | None, float | None, float | None]:
    """Mean, standard deviation and skewness; None where they are not finite."""
    mean, sd = float(np.mean(values)), float(np.std(values))
    skewness = float(np.mean(((values - mean) / sd) ** 3)) if 0 < sd < np.inf else np.nan
    return _finite(mean), _finite(sd), _finite(skewness)


def histogram(before: FloatArray, after: FloatArray, step: float | None, sizes: tuple[int, int]) -> Histogram | None:
    """Shares (of `sizes` rows) of sorted values in common bins, from the 0.5% to the 99.5% quantile of both."""
    if (drawn := drawn_range(before, after, EDGE)) is None:
        return None
    low, high = drawn
    unit = _middle_spread(before)
    axis = axis_for(low, high, unit)
    bins = int(np.clip(np.sqrt(min(len(before), len(after))), 10, MAX_BINS))
    edges = even_points(low, high, axis, unit, bins + 1)
    if step and axis == "linear":
        width = step * max(1.0, np.ceil((high - low) / step / MAX_BINS))
        edges = np.arange(low - step / 2, high + width, width)
    elif step:
        edges = np.unique((np.floor(edges / step) + 0.5) * step)
    if len(edges) < 2 or np.any(np.diff(edges) <= 0):
        return None
    counts = np.histogram(before, edges)[0]
    one = np.where(counts < MIN_ROWS_SHOWN, 0, counts) / sizes[0]  # a bar of one row would be a cell
    two = np.histogram(after, edges)[0] / sizes[1]
    out = [
        float(np.count_nonzero((side < edges[0]) | (side > edges[-1])) / size)
        for side, size in zip((before, after), sizes, strict=True)
    ]
    return Histogram(tuple(edges.tolist()), tuple(one.tolist()), tuple(two.tolist()), (out[0], out[1]), axis, unit)


def tails(before: FloatArray, after: FloatArray) -> Tails | None:
    """The shares of sorted values beyond points up to where five rows are left, on an axis that suits the tails."""
    if (drawn := drawn_range(before, after, 0.0)) is None:
        return None
    low, high = drawn
    unit = _middle_spread(before)
    axis = axis_for(low, high, unit)
    points = even_points(low, high, axis, unit, TAIL_POINTS)
    one, two = (_beyond(side, points, float(np.median(before))) for side in (before, after))
    return Tails(tuple(points.tolist()), one, two, axis, unit)


def axis_for(low: float, high: float, unit: float) -> Axis:
    """Linear, unless the range is very much wider than the middle half of the rows."""
    if high - low <= FAR * unit:
        return "linear"
    return "log" if low > 1 / MAX_DRAWN else "asinh"


def even_points(low: float, high: float, axis: Axis, unit: float, count: int) -> FloatArray:
    """Points from low to high that are evenly spaced on the axis."""
    if axis == "log":
        return np.geomspace(low, high, count)
    if axis == "asinh":
        return np.sinh(np.linspace(np.arcsinh(low / unit), np.arcsinh(high / unit), count)) * unit
    return np.linspace(low, high, count)


def drawn_range(before: FloatArray, after: FloatArray, edge: float) -> tuple[float, float] | None:
    """The range between the lower and the upper edge quantile of both, or where five rows are left; None if empty."""
    ends = []
    for side in (before, after):
        share = max(edge, MIN_ROWS_SHOWN / max(len(side), 1))
        ends.append((shown_quantile(side, share), shown_quantile(side, 1 - share)))
    known = [end for both in ends for end in both if end is not None]
    if len(known) < 4:
        return None
    low, high = min(known), max(known)
    return (low, high) if max(-low, high) < MAX_DRAWN and high - low > 1 / MAX_DRAWN else None


def _middle_spread(values: FloatArray) -> float:
    """The width of the middle half of the rows, or of all but the ends where the middle half has no width."""
    for share in (0.25, 0.05, EDGE):
        low, high = np.quantile(values, [share, 1 - share])
        if high > low:
            return float(high - low)
    return 1.0


def _beyond(ordered: FloatArray, points: FloatArray, centre: float) -> tuple[float | None, ...]:
    n = len(ordered)
    below = np.searchsorted(ordered, points, side="right")
    above = n - np.searchsorted(ordered, points, side="left")
    count = np.where(points < centre, below, above)
    return tuple(float(rows / n) if rows >= MIN_ROWS_SHOWN else None for rows in count)


def _lattice(pair: Pair, values: FloatArray) -> float | None:
    """The step of a column of whole steps; None where the values are not evenly spaced."""
    if not isinstance(pair.kind, Discrete):
        return None
    if pair.step is not None:
        return pair.step
    gaps = np.diff(values)
    smallest = float(gaps.min())
    return smallest if np.allclose(gaps / smallest, np.rint(gaps / smallest), atol=1e-6) else None


def _written(value: float) -> str:
    """A level of a column of numbers, with all digits that a person may have typed."""
    return f"{value:.10g}".replace("-", "−")


def _finite(number: float | None) -> float | None:
    return number if number is not None and np.isfinite(number) else None
