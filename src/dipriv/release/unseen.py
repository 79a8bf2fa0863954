"""What a bootstrap of the reference cannot show, because the reference does not have it.

Noise hides rows beyond the ends of a column and rows of rare values, so that the reference has none; it hides as well
in which rows of other columns they are; and inside a group of states that were counted together, the reference has
columns that do not depend on each other. For each, the released table is changed as far as the noise, or the
neighbouring groups, would allow: how far a statistic moves is added to its interval. What was not counted by itself at
all is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray
from dipriv._base.columns import PRESENT, ColumnValues
from dipriv._tables.fitted_columns import FittedColumn
from dipriv._tables.frames import read
from dipriv.codecs.binned import BinnedCodec
from dipriv.references._learning.postprocess import FURTHER, OUTERMOST
from dipriv.references._models.network import Network, Node
from dipriv.release.bootstrap import BootstrapModel, cells_of
from dipriv.release.rules import Rewriting
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
    if value is None:
        return None
    if not _is_own(name, model):
        return _reason_by_rules(name, model, alone_in_tables=alone_in_tables)
    column = model.column(name)
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


def _is_own(name: str, model: BootstrapModel) -> bool:
    """Whether a released column is one of the reference, and not computed by a rule."""
    return name in model.names and (model.rewriting is None or name not in model.rewriting.computed)


def _reason_by_rules(name: str, model: BootstrapModel, *, alone_in_tables: bool) -> str | None:
    """The same for a column that follows from others by a rule."""
    if alone_in_tables or model.rewriting is None or name not in model.rewriting.listed:
        return f"{name} follows from other columns by a rule, and its values were not counted by themselves."
    if found := [part for part in model.rests_on([name]) if part in model.found]:
        return f"{name} follows from {found[0]}, whose labels of few rows are among others."
    return None


def _noise(name: str, model: BootstrapModel) -> float:
    """The noise of a count of a value: where a rule gives it to many states of other columns, that of their sum."""
    if _is_own(name, model):
        return model.deviations[name]
    parts = [model.column(part) for part in model.rests_on([name])]
    return max(model.deviations[part.name] * math.sqrt(getattr(part.codec, "states", 1)) for part in parts)


@dataclass(frozen=True, eq=False)
class _ByRules:
    """A statistic of released columns, as one of the reference's columns that they follow from."""

    statistic: Statistic
    rewriting: Rewriting
    fitted: tuple[FittedColumn, ...]

    @classmethod
    def of(cls, statistic: Statistic, rewriting: Rewriting, model: BootstrapModel) -> _ByRules:
        own = rewriting.about(statistic.columns)
        return cls(statistic, own, tuple(model.column(name) for name in own.learned_names))

    @property
    def columns(self) -> tuple[str, ...]:
        return self.rewriting.learned_names

    @property
    def names(self) -> tuple[str, ...]:
        return self.statistic.names

    def values(self, cells: Cells) -> FloatArray:
        parts = [cells.columns[name][0] for name in self.columns]
        return self.statistic.values(cells_of(self.fitted, parts, self.rewriting))

    def learned(self, released: Any) -> Cells:
        """The columns of the reference that a released table has."""
        table = self.rewriting.before(read(released))
        return cells_of(self.fitted, [column.all_cells(table) for column in self.fitted])


def unseen(statistic: Statistic, table: Cells, released: Any, model: BootstrapModel) -> tuple[FloatArray, FloatArray]:
    """How far the numbers of a statistic may be too high and too low for what the reference cannot show: ≤ 0, ≥ 0.

    `table` has the columns of the statistic, `released` is the whole released table.
    """
    given = statistic.values(table)
    low, high = np.zeros(len(given)), np.zeros(len(given))
    if isinstance(statistic, Share):
        high += max(0.0, HIDDEN * _noise(statistic.column, model) / model.n_learned - float(given[0]))
        return low, high
    if isinstance(statistic, ShareBelow):
        return low, high
    if model.rewriting is not None:
        by_rules = _ByRules.of(statistic, model.rewriting, model)
        statistic, table = by_rules, by_rules.learned(released)
        given = statistic.values(table)
    found = [_moves(statistic, given, kind) for kind in _alternatives(statistic.columns, table, model)]
    return sum((down for down, _ in found), low), sum((up for _, up in found), high)


def _moves(statistic: Statistic, given: FloatArray, tables: Sequence[Alternative]) -> tuple[FloatArray, FloatArray]:
    """How far the numbers move down and up at most in tables of one kind.

    That other rows may have the cells which were moved adds in quadrature: it rests on the noise of other measurements.
    """
    moved = [statistic.values(one.table) - given for one in tables]
    again = [statistic.values(other) - statistic.values(one.table) for one in tables for other in one.with_other_rows]
    down, up = _extremes(moved, len(given))
    further_down, further_up = _extremes(again, len(given))
    return -np.hypot(down, further_down), np.hypot(up, further_up)


def _extremes(moved: Iterable[FloatArray], count: int) -> tuple[FloatArray, FloatArray]:
    down, up = np.zeros(count), np.zeros(count)
    for one in moved:
        down, up = np.fmin(down, one), np.fmax(up, one)
    return down, up


@dataclass(frozen=True, eq=False)
class Alternative:
    """A table that could have led to this release as well, and tables in which other rows of it have the same cells."""

    table: Cells
    with_other_rows: Sequence[Cells] = ()


def _alternatives(columns: tuple[str, ...], table: Cells, model: BootstrapModel) -> Iterator[list[Alternative]]:
    """Tables that could have led to this release as well, of one kind after the other."""
    for name in columns:
        others = [other for other in columns if other != name]
        yield list(_with_longer_tails(name, others, table, model))
        yield [Alternative(_dependent_inside_groups(name, other, table, model)) for other in others]


def _in_other_rows(
    name: str, other: str, table: Cells, moved: NDArray[np.intp], model: BootstrapModel
) -> Iterator[Cells]:
    """The table with more of the moved cells, and then fewer, in each group of another column.

    How many rows of the last group are in a group of another column was measured with noise, which may hide HIDDEN
    standard deviations. Cells are exchanged, so that the column itself stays as it is.
    """
    node, deviation = _node(other, model), model.deviation_of_pairs
    if node is None or deviation is None:
        return
    cells, codec = table.columns[name][0], cast(Any, model.column(other).codec)
    group = node.group_of[codec.to_states(table.columns[other][0])]
    most = math.ceil(HIDDEN * deviation * table.n_rows / model.n_learned)
    there = np.zeros(table.n_rows, dtype=bool)
    there[moved] = True
    elsewhere = ~there if cells.missing is None else ~there & (cells.missing == PRESENT)
    for one in np.unique(group):
        for gaining, losing in ((group == one, group != one), (group != one, group == one)):
            to, of = np.flatnonzero(elsewhere & gaining)[:most], np.flatnonzero(there & losing)[:most]
            count = min(len(to), len(of))
            values = cells.values.copy()
            values[to[:count]], values[of[:count]] = cells.values[of[:count]], cells.values[to[:count]]
            yield _with_column(table, name, ColumnValues(values, cells.missing))


def _with_longer_tails(name: str, others: Sequence[str], table: Cells, model: BootstrapModel) -> Iterator[Alternative]:
    """The table with rows at either end of a column moved out, as many as noise may hide that far beyond the end.

    Learning takes an octave at the end as empty unless its count is so high that noise exceeds it either way with a
    chance of at most 2 OUTERMOST, times FURTHER for each octave further. The noise that was added to the count may have
    been HIDDEN standard deviations below zero. So declared bounds show how far out rows may be, and how many. Which
    rows they are is asked for the nearest octave: the longest tail in the most unfavourable rows would be two extremes
    at once.
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
            threshold = math.sqrt(-2.0 * math.log(2.0 * OUTERMOST * FURTHER ** (octaves - 1)))
            share = COARSE * (threshold + HIDDEN) * model.deviations[name] / model.n_learned
            moved = inward[: min(math.ceil(share * len(cells)), len(rows) // 2)]
            far = cells.values[moved].astype(np.float64)
            far *= np.exp2(np.where(far * outward > 0, octaves, -octaves))
            values = cells.values.copy()
            values[moved] = codec.line.to_values(codec.line.to_codes(far.astype(codec.dtype)))
            if not np.array_equal(values[moved], cells.values[moved]):
                longer = _with_column(table, name, ColumnValues(values, cells.missing))
                asked = others if octaves == 1 else ()
                tables = [one for other in asked for one in _in_other_rows(name, other, longer, moved, model)]
                yield Alternative(longer, tables)


def _declared_ends(kind: Kind | None) -> tuple[float | None, float | None]:
    return (kind.lower, kind.upper) if isinstance(kind, Continuous | Mixed) else (None, None)


def _octaves_beyond(end: float, bound: float | None) -> tuple[int, ...]:
    """How many octaves beyond an end rows may be: one or two, or up to a declared bound."""
    if bound is None or end <= 0:
        return (1, 2)
    return (1, max(1, math.ceil(math.log2(bound / end)))) if bound > end else ()


def _dependent_inside_groups(name: str, other: str, table: Cells, model: BootstrapModel) -> Cells:
    """The table with values of a column exchanged inside its groups, so that another column changes along with it there
    as it changes from group to group. In the first and last group, which can be wide, it changes as strongly as it can.
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
        slope = (means_y[above] - means_y[below]) / run
        has_two_neighbours = 0 < place < len(present) - 1
        r = slope * spread_x / spread_y if has_two_neighbours else math.copysign(STRONGEST, slope)
        r = min(STRONGEST, max(-STRONGEST, r))
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
