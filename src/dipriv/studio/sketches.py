"""Small histograms of the private columns, for their keeper's screen: they are in no file, log or message."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from dipriv.errors import DiprivError

BINS = 24
MAX_LABELS = 12
"""Labels with a bar of their own, the most frequent ones."""
MAX_CHARACTERS = 24


@dataclass(frozen=True)
class Sketch:
    """The heights of bars, at most 1; and what stands at their ends, or below each."""

    bars: tuple[float, ...] = field(repr=False)
    ends: tuple[str, str] | None = field(default=None, repr=False)
    """Of numbers and times: the lowest and the highest value."""
    labels: tuple[str, ...] = field(default=(), repr=False)
    """Of labels: one for each bar."""
    more: int = 0
    """How many other labels there are."""


def sketch(table: pa.Table) -> dict[str, Sketch]:
    """A sketch of each column that has one."""
    found = {name: _column(table[name]) for name in table.column_names}
    return {name: one for name, one in found.items() if one is not None}


def _column(column: pa.ChunkedArray) -> Sketch | None:
    of = column.type
    try:
        if pt.is_integer(of) or pt.is_floating(of) or pt.is_decimal(of) or pt.is_temporal(of):
            return _histogram(column)
        if pt.is_nested(of) or pt.is_binary(of):
            return None
        return _labels(column)
    except (pa.ArrowException, DiprivError, ValueError, OverflowError):  # a picture is not worth a failure
        return None


def _histogram(column: pa.ChunkedArray) -> Sketch | None:
    of = column.type
    whole = pa.int32() if pt.is_date32(of) or pt.is_time32(of) else pa.int64()
    plain = column.cast(whole) if pt.is_temporal(of) else column
    numbers = plain.cast(pa.float64(), safe=False).to_numpy()
    numbers = numbers[np.isfinite(numbers)]
    if not len(numbers):
        return None
    least, most = float(numbers.min()), float(numbers.max())
    counts, _ = np.histogram(numbers, BINS, (least, most) if np.isfinite(most - least) and most > least else (0, 1))
    if most == least:
        counts = np.array([1])
    ends = pc.min_max(column).as_py()
    return Sketch(_heights(counts), (_shown(ends["min"]), _shown(ends["max"])))


def _labels(column: pa.ChunkedArray) -> Sketch | None:
    counted = column.drop_null().value_counts()
    values, times = counted.field("values"), counted.field("counts").to_numpy()
    if not len(times):
        return None
    order = np.argsort(-times, kind="stable")[:MAX_LABELS]
    labels = [_shown(value) for value in values.take(pa.array(order)).to_pylist()]
    return Sketch(_heights(times[order]), labels=tuple(labels), more=len(times) - len(order))


def _heights(counts: np.ndarray) -> tuple[float, ...]:
    return tuple((counts / max(1, counts.max())).tolist())


def _shown(value: object) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= MAX_CHARACTERS else f"{text[: MAX_CHARACTERS - 1]}…"
