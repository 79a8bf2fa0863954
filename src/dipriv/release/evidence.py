"""What a fitted mechanism tells about its columns: codecs and noisy counts, no row."""

from __future__ import annotations

import numpy as np

from dipriv._tables.arrow import place_of_others
from dipriv._tables.fitted_columns import FittedColumn
from dipriv.codecs.binned import BinnedCodec, RankedLevelsCodec
from dipriv.codecs.levels import LevelsCodec
from dipriv.references._models.distributions import LevelsDistribution
from dipriv.references._models.independent import Independent
from dipriv.references.measured import MeasuredColumn, Measurements
from dipriv.release.fitting import FittedMechanism
from dipriv.schema import Categorical, Discrete
from dipriv.utility.expected_error import ColumnEvidence, Line
from dipriv.utility.judging import Evidence
from dipriv.utility.total_variation import CELLS

MAX_BINS = 64
"""A gap between bins of an octave counts as at most this many empty bins."""


def evidence_of(mechanism: FittedMechanism) -> Evidence | None:
    """What a private reference was learned from; None for other references."""
    measured = mechanism.measurements
    if measured is None:
        return None
    columns = tuple(
        column_evidence(column, one, measured.n_rows, column.name in mechanism.declared)
        for column, one in zip(mechanism.columns, _in_order(mechanism, measured), strict=True)
    )
    foreseen = tuple(noise / max(1, measured.n_rows) for noise in measured.foreseen)
    return Evidence(measured.n_rows, columns, measured.pairs, measured.pairs_named, foreseen)


def _in_order(mechanism: FittedMechanism, measured: Measurements) -> tuple[MeasuredColumn, ...]:
    """Counts in the order of the codecs: a column that is released by itself may have its levels in another."""
    codec = mechanism.columns[0].codec
    if not (isinstance(codec, LevelsCodec) and isinstance(mechanism.reference, Independent)):
        return measured.columns
    (marginal,), (column,) = mechanism.reference.laws, measured.columns
    if not isinstance(marginal, LevelsDistribution):
        return measured.columns
    return (MeasuredColumn(column.name, np.asarray(marginal.probabilities) * measured.n_rows, column.deviation),)


def column_evidence(column: FittedColumn, measured: MeasuredColumn, rows: int, declared: bool) -> ColumnEvidence:
    """The evidence about one column of a private reference."""
    codec = column.codec
    shares = measured.counts / max(1, rows)
    others = None if declared else _state_of_others(column)
    merged = 0.0 if others is None else float(shares[others])
    return ColumnEvidence(
        column.name,
        np.delete(shares, others) if others is not None and merged else shares,
        measured.deviation / max(1, rows),
        len(codec.missing),
        column.facts.nullable or column.facts.storage.family == "real",
        others is not None,
        merged,
        column.facts.storage.family == "real" and isinstance(column.kind, Discrete) and not declared,
        _line(codec) if isinstance(codec, BinnedCodec) else _levels_in_order(column, declared),
        isinstance(codec, BinnedCodec) and bool(np.any(codec.sizes[shares[len(codec.missing) :] > 0] > 1)),
        declared and any(getattr(column.kind, stated, None) is not None for stated in ("levels", "lower", "upper")),
    )


def _state_of_others(column: FittedColumn) -> int | None:
    """The state of the label that stands for all others; None where labels were not looked for."""
    codec = column.codec
    place = -1 if column.labels is None else place_of_others(column.labels)
    if place < 0 or not isinstance(codec, RankedLevelsCodec | LevelsCodec):
        return None
    in_order = codec.levels[codec.order] if isinstance(codec, RankedLevelsCodec) else codec.levels
    states = np.flatnonzero(in_order == place)
    return len(codec.missing) + int(states[0]) if len(states) else None


def _levels_in_order(column: FittedColumn, declared: bool) -> Line | None:
    """Listed numbers, smoothed as one range; None for labels, and for a few declared levels.

    Values beyond those that were found for a single column are as unseen as beyond a range of bins.
    """
    if isinstance(column.kind, Categorical) or not isinstance(column.codec, RankedLevelsCodec | LevelsCodec):
        return None
    count = len(column.codec.levels)
    if declared and count <= CELLS:
        return None
    group_of = np.zeros(count, dtype=np.intp) if count > CELLS else np.arange(count, dtype=np.intp)
    return Line(group_of, np.bincount(group_of).astype(np.float64), (0.0, 0.0), (not declared, not declared))


def _line(codec: BinnedCodec) -> Line:
    """Which octaves are there, and about how many bins they had: gaps are counted in bins of the usual size."""
    octaves = codec.line.octaves
    present, octave_of = np.unique(np.searchsorted(octaves.starts, codec.starts, side="right") - 1, return_inverse=True)
    bounds = np.append(octaves.starts.astype(np.float64), codec.line.last + 1.0)
    starts, sizes = codec.starts.astype(np.float64), codec.sizes.astype(np.float64)
    gaps = []
    for number, octave in enumerate(present):
        inside = octave_of == number
        own = sizes[inside]
        ends = np.column_stack([starts[inside], starts[inside] + own]).ravel()
        empty = np.diff(np.concatenate([bounds[octave : octave + 1], ends, bounds[octave + 1 : octave + 2]]))[::2]
        bins = empty / np.median(own[own > 1] if np.any(own > 1) else own)
        gaps.append(np.where(empty > 0, np.clip(bins, 1.0, MAX_BINS), 0.0))
    found = np.bincount(octave_of).astype(np.float64)
    last = int(present[-1])
    return Line(
        octave_of,
        found + np.array([empty.sum() for empty in gaps]),
        (float(gaps[0][0]), float(gaps[-1][-1])),
        (int(present[0]) > 0, last < len(octaves.starts) - 1),
        bool(octaves.signs[last] <= 0 < octaves.signs[-1]),
    )
