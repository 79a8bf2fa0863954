"""What a bootstrap of the reference cannot show, because the reference does not have it.

Noise hides rows beyond the ends of a column and rows of rare values, so that the reference has none; and inside a group
of states that were counted together, the reference has columns that do not depend on each other. For both, the released
table is changed as far as the noise, or the neighbouring groups, would allow: how far a statistic moves is added to its
interval. What was not counted by itself at all is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray
from dipriv._base.columns import PRESENT, ColumnValues
from dipriv.codecs.binned import BinnedCodec
from dipriv.references._learning.postprocess import FURTHER, OUTERMOST
from dipriv.references._models.network import Network, Node
from dipriv.release.bootstrap import BootstrapModel
from dipriv.schema import Continuous, Kind, Mixed
from dipriv.statistics import Cells, GroupMean, Share, ShareBelow, Statistic

HIDDEN = 2.0
"""Noise of a count may hide this many of its standard deviations in rows."""
COARSE = 1.25
"""The noise in a count of an octave, beside that of a bin: it has two fifths of the budget, bins three fifths."""
STRONGEST = 0.95
"""The strongest correlation that is assumed inside a group."""
_SEED = 7


def unknown_value(statistic: Statistic, model: BootstrapModel) -> str | None:
    """Why the share, or the group, of a value is not known: the release does not have it, or has it with others."""
    if isinstance(statistic, Share) and statistic.value is not None:
        return _reason_of_value(statistic.column, statistic.value, model, alone_in_tables=False)
    if isinstance(statistic, GroupMean):
        return _reason_of_value(statistic.by, statistic.group, model, alone_in_tables=True)
    parts = [getattr(statistic, name, None) for name in ("first", "second")]
    reasons = [unknown_value(part, model) for part in parts if part is not None and hasattr(part, "values")]
    return next((reason for reason in reasons if reason is not None), None)


def _reason_of_value(name: str, value: Any, model: BootstrapModel, *, alone_in_tables: bool) -> str | None:
    column = model.column(name)
    if value is None:
        return None
    if column.labels is not None:
        listed = column.labels.to_pylist()
        if value not in listed:
            return f"{value!r} is not a label of the release in {name}; labels of few rows are among others."
    codec: Any = column.codec
    stored = value if column.labels is None else listed.index(value)
    state = int(codec.to_states(ColumnValues(np.array([stored]).astype(codec.dtype)))[0])
    if isinstance(codec, BinnedCodec) and codec.sizes[state - len(codec.missing)] > 1:
        return f"{value!r} was not counted by itself in {name} but with numbers near it."
    node = _node(name, model)
    if alone_in_tables and node is not None and _has_company(node, state):
        return f"{value!r} was counted together with other values of {name} in tables of pairs."
    return None


def unseen(statistic: Statistic, table: Cells, model: BootstrapModel) -> tuple[FloatArray, FloatArray]:
    """How far the numbers of a statistic may be too high and too low for what the reference cannot show: ≤ 0, ≥ 0."""
    given = statistic.values(table)
    low, high = np.zeros(len(given)), np.zeros(len(given))
    if isinstance(statistic, Share):
        high += max(0.0, HIDDEN * model.deviations[statistic.column] / model.n_learned - float(given[0]))
        return low, high
    if isinstance(statistic, ShareBelow):
        return low, high
    of_kind: dict[str, tuple[FloatArray, FloatArray]] = {}
    for kind, other in _alternatives(statistic.columns, table, model):
        moved = statistic.values(other) - given
        down, up = of_kind.get(kind, (low, high))
        of_kind[kind] = np.fmin(down, moved), np.fmax(up, moved)
    return sum((down for down, _ in of_kind.values()), low), sum((up for _, up in of_kind.values()), high)


def _alternatives(columns: tuple[str, ...], table: Cells, model: BootstrapModel) -> Iterator[tuple[str, Cells]]:
    """Tables that could have led to this release as well."""
    for name in columns:
        for longer in _with_longer_tails(name, table, model):
            yield f"tails of {name}", longer
        for other in columns:
            if other != name:
                yield f"groups of {name}", _dependent_inside_groups(name, other, table, model)


def _with_longer_tails(name: str, table: Cells, model: BootstrapModel) -> Iterator[Cells]:
    """The table with rows at either end of a column moved out, as many as noise may hide that far beyond the end.

    Learning takes an octave at the end as empty unless noise makes its count with a chance of at most OUTERMOST, times
    FURTHER for each octave further. So declared bounds show how far out rows may be, and how many.
    """
    codec = model.column(name).codec
    if not isinstance(codec, BinnedCodec):
        return
    cells = table.columns[name][0]
    rows = np.arange(len(cells)) if cells.missing is None else np.flatnonzero(cells.missing == PRESENT)
    ordered = rows[np.argsort(cells.values[rows], kind="stable")]
    for outward, bound in zip((-1.0, 1.0), _declared_ends(model.declared.get(name)), strict=True):
        inward = ordered if outward < 0 else ordered[::-1]
        end = float(cells.values[inward[0]]) if len(inward) else 0.0
        for octaves in _octaves_beyond(end * outward, None if bound is None else bound * outward):
            chance = OUTERMOST * FURTHER ** (octaves - 1)
            share = COARSE * math.sqrt(2.0 * math.log(1.0 / chance)) * model.deviations[name] / model.n_learned
            moved = inward[: min(math.ceil(share * len(cells)), len(rows) // 2)]
            far = cells.values[moved].astype(np.float64)
            far *= np.exp2(np.where(far * outward > 0, octaves, -octaves))
            values = cells.values.copy()
            values[moved] = codec.line.to_values(codec.line.to_codes(far.astype(codec.dtype)))
            yield _with_column(table, name, ColumnValues(values, cells.missing))


def _declared_ends(kind: Kind | None) -> tuple[float | None, float | None]:
    return (kind.lower, kind.upper) if isinstance(kind, Continuous | Mixed) else (None, None)


def _octaves_beyond(end: float, bound: float | None) -> tuple[int, ...]:
    """How many octaves beyond an end rows may be: one or two, or up to a declared bound."""
    if bound is None or end <= 0:
        return (1, 2)
    return (1, max(1, math.ceil(math.log2(bound / end)))) if bound > end else ()


def _dependent_inside_groups(name: str, other: str, table: Cells, model: BootstrapModel) -> Cells:
    """The table with values of a column exchanged inside its groups, so that another column changes along with it there
    as it changes from group to group.
    """
    node = _node(name, model)
    cells, labels = table.columns[name]
    if node is None or labels is not None:
        return table
    codec: Any = model.column(name).codec
    group = node.group_of[codec.to_states(cells)]
    x = cells.values.astype(np.float64)
    y = _scores(table, other, x)
    values = cells.values.copy()
    noise = np.random.default_rng(_SEED).standard_normal(len(x))  # nothing private: the released table
    means_x, means_y = _means(group, x), _means(group, y)
    present = np.unique(group)
    for place, one in enumerate(present):
        rows = np.flatnonzero(group == one)
        below, above = present[max(place - 1, 0)], present[min(place + 1, len(present) - 1)]
        run, spread_x, spread_y = means_x[above] - means_x[below], float(x[rows].std()), float(y[rows].std())
        if not spread_x or not spread_y or not run:
            continue
        r = np.clip((means_y[above] - means_y[below]) / run * spread_x / spread_y, -STRONGEST, STRONGEST)
        score = r * (y[rows] - y[rows].mean()) / spread_y + math.sqrt(1 - r**2) * noise[rows]
        values[rows[np.argsort(score, kind="stable")]] = np.sort(cells.values[rows])
    return _with_column(table, name, ColumnValues(values, cells.missing))


def _scores(table: Cells, name: str, x: FloatArray) -> FloatArray:
    """A column as numbers: of labels and missing cells the mean of x among their rows."""
    cells, labels = table.columns[name]
    missing = np.zeros(len(cells), dtype=np.int64) if cells.missing is None else cells.missing.astype(np.int64)
    if labels is None and not missing.any():
        return cells.values.astype(np.float64)
    codes = cells.values.astype(np.int64) if labels is not None else np.zeros(len(cells), dtype=np.int64)
    _, codes = np.unique(np.where(missing == PRESENT, codes, -missing - 1), return_inverse=True)
    return _means(codes, x)[codes]


def _means(group: NDArray[np.int64], x: FloatArray) -> FloatArray:
    counts = np.bincount(group)
    return np.asarray(np.bincount(group, x) / np.maximum(counts, 1))


def _node(name: str, model: BootstrapModel) -> Node | None:
    """A column in tables of pairs, where its states are in groups; None where there are no tables."""
    if not isinstance(model.reference, Network) or not model.pairs:
        return None
    return model.reference.nodes[model.order.index(model.names.index(name))]


def _has_company(node: Node, state: int) -> bool:
    """Whether another state of the same group has rows."""
    there = (node.ends > node.inner) & (node.group_of == node.group_of[state])
    there[state] = False
    return bool(there.any())


def _with_column(table: Cells, name: str, cells: ColumnValues) -> Cells:
    return Cells({**table.columns, name: (cells, table.columns[name][1])}, table.n_rows)
